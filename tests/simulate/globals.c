/* SPDX-License-Identifier: BSD-3-Clause */
#include "globals.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct range {
	char *at;
	size_t len, where; /* in a copy of all */
	bool changes;
};

struct globals {
	struct range *ranges;
	size_t count;
	size_t size;	/* of those that change */
	char *original; /* of all */
	char *pristine; /* of those that change */
};

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Symbols that overlap are one range. */
static void merge(struct globals *g)
{
	size_t n = 0, where = 0;

	qsort(g->ranges, g->count, sizeof(*g->ranges), compare);
	for (size_t i = 0; i < g->count; i++) {
		struct range *r = &g->ranges[i], *last = n ? &g->ranges[n - 1] : NULL;

		if (last && r->at < last->at + last->len) {
			size_t end = (size_t)(r->at - last->at) + r->len;

			last->len = end > last->len ? end : last->len;
		} else {
			g->ranges[n++] = *r;
		}
	}
	g->count = n;
	for (size_t i = 0; i < n; i++) {
		g->ranges[i].where = where;
		where += g->ranges[i].len;
	}
	g->original = malloc(where);
	for (size_t i = 0; i < n; i++)
		memcpy(g->original + g->ranges[i].where, g->ranges[i].at, g->ranges[i].len);
}

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1;
}

static const unsigned char *map_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) != 0)
		abort();
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		abort();
	return at;
}

struct globals *globals_find(void)
{
	struct globals *g = calloc(1, sizeof(*g));
	const unsigned char *file = map_self();
	const Elf64_Ehdr *e = (const void *)file;
	const Elf64_Shdr *s = (const void *)(file + e->e_shoff);
	const char *names = (const char *)file + s[e->e_shstrndx].sh_offset;
	uintptr_t base = 0;

	dl_iterate_phdr(first_object, &base);
	for (int i = 0; i < e->e_shnum; i++) {
		const Elf64_Sym *symbol = (const void *)(file + s[i].sh_offset);
		size_t count = s[i].sh_size / sizeof(*symbol);

		if (s[i].sh_type != SHT_SYMTAB)
			continue;
		g->ranges = calloc(count, sizeof(*g->ranges));
		for (size_t k = 0; k < count; k++) {
			const char *section = symbol[k].st_shndx < e->e_shnum
						  ? names + s[symbol[k].st_shndx].sh_name
						  : "";

			if (ELF64_ST_TYPE(symbol[k].st_info) == STT_OBJECT && symbol[k].st_size &&
			    symbol[k].st_size <= GLOBAL_MAX &&
			    (!strcmp(section, ".data") || !strcmp(section, ".bss")))
				g->ranges[g->count++] =
				    (struct range){.at = (char *)(base + symbol[k].st_value),
						   .len = symbol[k].st_size};
		}
	}
	merge(g);
	g->pristine = malloc(1);
	return g;
}

/* What nobody changes need not be exchanged; which that is, is found out by looking. */
bool globals_learn(struct globals *g)
{
	size_t found = 0, size = 0;

	for (size_t i = 0; i < g->count; i++) {
		struct range *r = &g->ranges[i];

		if (memcmp(r->at, g->original + r->where, r->len) == 0)
			continue;
		found += !r->changes;
		r->changes = true;
		memcpy(r->at, g->original + r->where, r->len);
	}
	if (!found)
		return false;
	for (size_t i = 0; i < g->count; i++)
		size += g->ranges[i].changes ? g->ranges[i].len : 0;
	free(g->pristine);
	g->size = size;
	g->pristine = malloc(size);
	globals_save(g, g->pristine);
	return true;
}

size_t globals_size(const struct globals *g)
{
	return g->size;
}

const char *globals_pristine(const struct globals *g)
{
	return g->pristine;
}

void globals_save(const struct globals *g, char *copy)
{
	for (size_t i = 0; i < g->count; i++) {
		if (!g->ranges[i].changes)
			continue;
		memcpy(copy, g->ranges[i].at, g->ranges[i].len);
		copy += g->ranges[i].len;
	}
}

void globals_load(const struct globals *g, const char *copy)
{
	for (size_t i = 0; i < g->count; i++) {
		if (!g->ranges[i].changes)
			continue;
		memcpy(g->ranges[i].at, copy, g->ranges[i].len);
		copy += g->ranges[i].len;
	}
}
