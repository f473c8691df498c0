/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/wire/message/message.c src/wire/session/setup.c src/launch/hosts.c
 * src/launch/slurm_step.c src/policy/place.c */
/* Frames as a broken agent or head might send them, descriptions of jobs, and files of hosts as
 * people might write them: refused, or the same when written again. */
#include <stdlib.h>
#include <string.h>
#include "launch/hosts.h"
#include "wire/message/message.h"
#include "wire/session/setup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frame(const uint8_t *data, size_t size)
{
	struct message m;
	unsigned char *again;
	size_t len;

	if (!message_read(data, size, &m))
		return;
	again = message_write(&m, &len);
	if (!again || len != size + MESSAGE_HEADER ||
	    memcmp(again + MESSAGE_HEADER, data, size) != 0)
		abort();
	free(again);
}

static void setup(const uint8_t *data, size_t size)
{
	struct setup s;
	void *again;
	size_t len;

	if (!setup_read(data, size, &s))
		return;
	again = setup_write(&s, &len);
	if (!again || len != size || memcmp(again, data, size) != 0)
		abort();
	free(again);
	setup_fini(&s);
}

static void hosts(const uint8_t *data, size_t size)
{
	struct hosts h = {0};
	struct placement p;
	struct error err;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = 0;
	if (hosts_parse(&h, text, "a file", &err) == HALE_OK && h.count > 0 &&
	    hosts_place(&h, 5, 0, 0, 0, &p, &err) == HALE_OK) {
		for (int r = 0; r < 5; r++)
			if (p.node_of[r] >= h.count)
				abort();
		placement_fini(&p);
	}
	hosts_fini(&h);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size == 0)
		return 0;
	copy = malloc(size); /* so that reading beyond it is seen */
	memcpy(copy, data + 1, size - 1);
	if (data[0] % 3 == 0)
		frame(copy, size - 1);
	else if (data[0] % 3 == 1)
		setup(copy, size - 1);
	else
		hosts(copy, size - 1);
	free(copy);
	return 0;
}
