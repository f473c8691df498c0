/* SPDX-License-Identifier: BSD-3-Clause */
/* A fuzz target without libFuzzer: the inputs that are kept (tests/fuzz/seeds/NAME), each of them
 * many times with a few changes, and as many made from nothing. The same ones every time, so that a
 * run that passes passes again: what is new is looked for by scripts/fuzz.sh.
 * Usage: replay [FOLDER]. Files *.hex hold an input as hexadecimal digits, others as it is. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "fuzz.h"

enum { INPUT_MAX = 4096, BENT = 200, MADE = 600 };

static uint64_t state = 0x9e3779b97f4a7c15ull;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % below;
}

static void run(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* so that reading beyond it is seen */

	if (len)
		memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void bend(uint8_t *bytes, size_t *len)
{
	for (uint32_t i = 0, n = 1 + draw(4); i < n; i++) {
		size_t at = *len ? draw((uint32_t)*len) : 0;

		switch (draw(5)) {
		case 0:
			*len = at; /* cut */
			break;
		case 1:
			if (*len < INPUT_MAX) { /* one more */
				memmove(bytes + at + 1, bytes + at, *len - at);
				++*len;
				bytes[at] = (uint8_t)draw(256);
			}
			break;
		case 2:
			if (*len)
				bytes[at] ^= (uint8_t)(1u << draw(8));
			break;
		case 3:
			if (*len)
				bytes[at] = draw(2) ? 0xff : 0;
			break;
		default:
			if (*len)
				bytes[at] = (uint8_t)draw(256);
		}
	}
}

static size_t from_hex(const uint8_t *text, size_t len, uint8_t *bytes)
{
	size_t n = 0;
	unsigned value;

	for (size_t i = 0; i + 1 < len; i++)
		if (sscanf((const char *)text + i, "%2x", &value) == 1 && text[i] > ' ') {
			bytes[n++] = (uint8_t)value;
			i++;
		}
	return n;
}

static void seed(const char *path)
{
	static uint8_t raw[2 * INPUT_MAX + 2], bytes[INPUT_MAX + 1], bent[INPUT_MAX + 1];
	FILE *f = fopen(path, "rb");
	size_t len, n, dot = strlen(path);

	if (!f) {
		perror(path);
		exit(1);
	}
	n = fread(raw, 1, sizeof(raw) - 2, f);
	raw[n] = 0;
	fclose(f);
	if (dot > 4 && strcmp(path + dot - 4, ".hex") == 0)
		n = from_hex(raw, n, raw);
	len = n < INPUT_MAX ? n : INPUT_MAX;
	memcpy(bytes, raw, len);
	run(bytes, len);
	for (int i = 0; i < BENT; i++) {
		size_t m = len;

		memcpy(bent, bytes, len);
		bend(bent, &m);
		run(bent, m);
	}
}

int main(int argc, char **argv)
{
	static uint8_t bytes[INPUT_MAX];
	struct dirent **list;
	int count = argc > 1 ? scandir(argv[1], &list, NULL, alphasort) : 0;

	for (int i = 0; i < count; i++) {
		char path[4096];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", argv[1], list[i]->d_name);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
			seed(path);
		free(list[i]);
	}
	if (count > 0)
		free(list);
	for (int i = 0; i < MADE; i++) {
		size_t len = draw(i % 8 == 0 ? INPUT_MAX : 256);
		uint32_t below = draw(2) ? 256 : 8; /* small numbers mean something more often */

		for (size_t k = 0; k < len; k++)
			bytes[k] = (uint8_t)draw(below);
		run(bytes, len);
	}
	return 0;
}
