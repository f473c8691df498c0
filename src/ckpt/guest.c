// SPDX-License-Identifier: BSD-3-Clause
/* Libraries beside the program that take part in its checkpoints. See guest.h. */
#include "base/exit_status.h"
#include "node/guest.h"

#include <string.h>
#include <unistd.h>

#include "ckpt/rank_private.h"
#include "image/image.h"

enum { GUESTS_MAX = 4 };

static const struct hale_guest *guests[GUESTS_MAX];

void hale_guest_join(const struct hale_guest *g)
{
	for (int i = 0; i < GUESTS_MAX; i++) {
		if (guests[i])
			continue;
		guests[i] = g;
		return;
	}
	log_warn("too many libraries take part in checkpoints: one is left out of them");
}

void hale_guest_enter(void)
{
	guest_inside++;
	__asm__ volatile("" ::: "memory");
}

void hale_guest_leave(void)
{
	__asm__ volatile("" ::: "memory");
	guest_inside--;
	if (UNLIKELY(guard_attention) && guest_inside == 0 && guard_inside == 0)
		guard_attend();
}

bool hale_guest_say(const char *line, size_t len)
{
	return link_say(line, len);
}

void hale_guest_memory(void *addr, size_t len, bool in)
{
	if (in)
		image_exclude_add(addr, len);
	else
		image_exclude_remove(addr);
}

void hale_guest_descriptor(int fd, bool in)
{
	if (in)
		image_fd_own(fd);
	else
		image_fd_disown(fd);
	if (link_self()->mailbox)
		link_show_fds();
}

bool guests_prepare(struct error *err)
{
	char why[192] = "";
	for (int i = 0; i < GUESTS_MAX && guests[i]; i++)
		if (!guests[i]->prepare(why, sizeof(why))) {
			error_set(err, HALE_ERR_UNSUPPORTED, "rank %u can't be captured: %s",
				  link_self()->rank, why);
			return false;
		}
	return true;
}

void guests_resume(bool restored)
{
	char why[192] = "";
	for (int i = 0; i < GUESTS_MAX && guests[i]; i++)
		if (!guests[i]->resume(restored, why, sizeof(why))) {
			log_warn("rank %u can't go on%s: %s", link_self()->rank,
				 restored ? " after the restart" : "", why);
			_exit(EXIT_UNRECOVERED);
		}
}
