/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

static bool within(const struct elf_file *f, uint64_t offset, uint64_t len)
{
	return offset <= f->length && len <= f->length - offset;
}

static const Elf64_Phdr *segments(const struct elf_file *f, size_t *count)
{
	const Elf64_Ehdr *h = (const void *)f->bytes;

	*count = 0;
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff % 8 != 0 ||
	    !within(f, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr)))
		return NULL;
	*count = h->e_phnum;
	return (const void *)(f->bytes + h->e_phoff);
}

/* Where a virtual address lies in the file; false when it is not in it. */
static bool file_offset(const struct elf_file *f, uint64_t address, uint64_t *offset)
{
	size_t count;
	const Elf64_Phdr *ph = segments(f, &count);

	for (size_t i = 0; i < count; i++) {
		if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr &&
		    address - ph[i].p_vaddr < ph[i].p_filesz) {
			*offset = address - ph[i].p_vaddr + ph[i].p_offset;
			return *offset < f->length;
		}
	}
	return false;
}

/* A string of the table at strings; NULL unless it ends within the file. */
static const char *string_at(const struct elf_file *f, uint64_t strings, uint64_t index)
{
	if (!within(f, strings, index) ||
	    !memchr(f->bytes + strings + index, '\0', f->length - strings - index))
		return NULL;
	return f->bytes + strings + index;
}

static void read_dynamic(struct elf_file *f, const Elf64_Dyn *d, size_t count)
{
	uint64_t strings = 0;
	bool found = false;

	for (size_t i = 0; i < count && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == DT_STRTAB)
			found = file_offset(f, d[i].d_un.d_ptr, &strings);
	if (!found)
		return;
	f->dynamic = true;
	f->names = f->bytes + strings;
	for (size_t i = 0; i < count && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == DT_STRSZ && within(f, strings, d[i].d_un.d_val))
			f->names_length = d[i].d_un.d_val;
	for (size_t i = 0; i < count && d[i].d_tag != DT_NULL; i++) {
		const char *text = string_at(f, strings, d[i].d_un.d_val);

		if (d[i].d_tag == DT_NEEDED && text && f->needed_count < ARRAY_LEN(f->needed))
			f->needed[f->needed_count++] = text;
		else if (d[i].d_tag == DT_RPATH)
			f->rpath = text;
		else if (d[i].d_tag == DT_RUNPATH)
			f->runpath = text;
	}
}

static elf_kind_t examine(struct elf_file *f)
{
	const Elf64_Ehdr *h = (const void *)f->bytes;
	size_t count;
	const Elf64_Phdr *ph;

	if (f->length < SELFMAG || memcmp(f->bytes, ELFMAG, SELFMAG) != 0)
		return ELF_NOT;
	if (f->length < sizeof(*h) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_machine != EM_X86_64)
		return ELF_FOREIGN;
	ph = segments(f, &count);
	for (size_t i = 0; i < count; i++) {
		if (!within(f, ph[i].p_offset, ph[i].p_filesz))
			continue;
		if (ph[i].p_type == PT_INTERP)
			f->loader = string_at(f, ph[i].p_offset, 0);
		if (ph[i].p_type == PT_DYNAMIC && ph[i].p_offset % 8 == 0)
			read_dynamic(f, (const void *)(f->bytes + ph[i].p_offset),
				     ph[i].p_filesz / sizeof(Elf64_Dyn));
	}
	return ELF_OURS;
}

bool elf_names(const struct elf_file *f, const char *name)
{
	size_t n = strlen(name) + 1;
	const char *at = f->names, *end = at + f->names_length;

	/* the linker puts one name at the end of another: only a whole string counts */
	while (at && (size_t)(end - at) >= n && (at = memmem(at, (size_t)(end - at), name, n))) {
		if (at == f->names || at[-1] == '\0')
			return true;
		at++;
	}
	return false;
}

elf_kind_t elf_open(const char *path, struct elf_file *f)
{
	struct stat st;
	elf_kind_t kind = ELF_UNREADABLE;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(f, 0, sizeof(*f));
	if (fd < 0)
		return ELF_UNREADABLE;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		goto close_file;
	kind = ELF_NOT;
	if (st.st_size < 4)
		goto close_file;
	f->length = (size_t)st.st_size;
	f->bytes = mmap(NULL, f->length, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f->bytes == MAP_FAILED) {
		kind = ELF_UNREADABLE;
		f->bytes = NULL;
		goto close_file;
	}
	kind = examine(f);
	if (kind != ELF_OURS)
		elf_close(f);
close_file:
	close(fd);
	return kind;
}

void elf_close(struct elf_file *f)
{
	if (f->bytes)
		munmap(f->bytes, f->length);
	f->bytes = NULL;
}
