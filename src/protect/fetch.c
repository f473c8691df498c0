/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "protect/fetch.h"
#include "protect/team.h"

#define PAGE 4096

/* Two pages that are in no cache take less than 1 us, and some 3 us where both fault in vain. */
#define TOUCH_SLOW_S 10e-6

static char rooms[TEAM_MAX][FETCH_BYTES_MAX];
static atomic_flag taken[TEAM_MAX]; /* static: all clear */

bool fetch_pays(const void *base, size_t bytes)
{
	const volatile char *first = base;
	double began = clock_seconds();

	if (bytes <= 2 * PAGE)
		return false;
	(void)first[0];
	(void)first[PAGE];
	return clock_seconds() - began > TOUCH_SLOW_S;
}

/* A page that the program touches before the kernel does costs once, the other way round twice. */
static void room_touch(char *room, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		*(volatile char *)(room + i) = 0;
}

static bool copied(char *to, const void *from, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};

	room_touch(to, bytes);
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

struct fetch_window fetch_open(const void *from, size_t bytes)
{
	struct fetch_window w = {from, -1};

	if (bytes > FETCH_BYTES_MAX)
		return w;
	for (int i = 0; i < TEAM_MAX && w.room < 0; i++)
		if (!atomic_flag_test_and_set_explicit(&taken[i], memory_order_acquire))
			w.room = i;
	if (w.room < 0)
		return w;
	if (copied(rooms[w.room], from, bytes)) {
		w.at = rooms[w.room];
	} else {
		fetch_close(w);
		w.room = -1;
	}
	return w;
}

void fetch_close(struct fetch_window w)
{
	if (w.room >= 0)
		atomic_flag_clear_explicit(&taken[w.room], memory_order_release);
}
