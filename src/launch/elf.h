/* SPDX-License-Identifier: BSD-3-Clause */
/* The dynamic section of 64-bit ELF files of this machine, as far as launching needs it. */
#ifndef HALE_LAUNCH_ELF_H
#define HALE_LAUNCH_ELF_H

#include <stdbool.h>
#include <stddef.h>

struct elf_file {
	char *bytes; /* mapped privately */
	size_t length;
	const char *needed[256]; /* point into bytes */
	size_t needed_count;
	const char *rpath, *runpath; /* NULL: none */
	const char *loader;	     /* the program's interpreter (PT_INTERP); NULL: none */
	const char *names;	     /* its table of dynamic symbols' names … */
	size_t names_length;	     /* … and how long that is; 0: unknown */
	bool dynamic;
};

typedef enum elf_kind { ELF_UNREADABLE, ELF_NOT, ELF_FOREIGN, ELF_OURS } elf_kind_t;

/* Reads the file; everything is bounds-checked. On ELF_OURS elf_close it. */
elf_kind_t elf_open(const char *path, struct elf_file *f);
void elf_close(struct elf_file *f);
/* Is there a dynamic symbol of that name, its own or one that it wants? */
bool elf_names(const struct elf_file *f, const char *name);

#endif
