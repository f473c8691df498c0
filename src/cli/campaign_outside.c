/* SPDX-License-Identifier: BSD-3-Clause */
/* Flips bits of a process that knows nothing of it. Named data are the objects of the program's
 * symbol table that it may write, "[heap]" and "[anonymous]" (large blocks of malloc are there).
 * The process is stopped meanwhile (ptrace), so that none of its own writes is lost. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "cli/campaign.h"

#define PLACES_MAX 8192

struct place {
	char name[64];
	uint64_t at, bytes;
};

struct outside {
	pid_t pid;
	const char *only;
	uint64_t state;
	struct place *symbol;
	size_t symbols;
};

static bool wanted(const char *only, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = only; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == len && strncmp(p, name, len) == 0)
			return true;
	return !only;
}

static void symbols_read(struct outside *o, const char *image, size_t len, uint64_t base)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
	const Elf64_Shdr *section;

	if (len < sizeof *head || memcmp(image, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof *section ||
	    head->e_shoff > len || (len - head->e_shoff) / sizeof *section < head->e_shnum)
		return;
	section = (const Elf64_Shdr *)(const void *)(image + head->e_shoff);
	for (int i = 0; i < head->e_shnum; i++) {
		const Elf64_Shdr *s = &section[i], *names;
		if (s->sh_type != SHT_SYMTAB || s->sh_link >= head->e_shnum)
			continue;
		names = &section[s->sh_link];
		if (s->sh_offset > len || s->sh_size > len - s->sh_offset ||
		    names->sh_offset > len || names->sh_size > len - names->sh_offset ||
		    !names->sh_size || image[names->sh_offset + names->sh_size - 1])
			return;
		const Elf64_Sym *sym = (const Elf64_Sym *)(const void *)(image + s->sh_offset);
		for (size_t k = 0; k < s->sh_size / sizeof *sym && o->symbols < PLACES_MAX; k++) {
			const char *name = sym[k].st_name < names->sh_size
					       ? image + names->sh_offset + sym[k].st_name
					       : "";
			if (ELF64_ST_TYPE(sym[k].st_info) != STT_OBJECT || !sym[k].st_size ||
			    sym[k].st_shndx == SHN_UNDEF || sym[k].st_shndx >= head->e_shnum ||
			    !(section[sym[k].st_shndx].sh_flags & SHF_WRITE) ||
			    !wanted(o->only, name))
				continue;
			struct place *p = &o->symbol[o->symbols++];
			snprintf(p->name, sizeof p->name, "%s", name);
			p->at = sym[k].st_value + (head->e_type == ET_DYN ? base : 0);
			p->bytes = sym[k].st_size;
		}
	}
}

static FILE *maps_open(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	return fopen(path, "r");
}

/* Where the program's own file is mapped first. */
static uint64_t base_of(pid_t pid)
{
	char link[64], exe[1024], line[2048];
	FILE *f = maps_open(pid);
	unsigned long long from = 0;
	ssize_t n;

	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	n = readlink(link, exe, sizeof exe - 1);
	exe[n > 0 ? n : 0] = '\0';
	while (f && n > 0 && fgets(line, sizeof line, f))
		if (strstr(line, exe) && sscanf(line, "%llx-", &from) == 1)
			break;
	if (f)
		fclose(f);
	return from;
}

struct outside *outside_open(pid_t pid, const char *program, const char *only, uint64_t seed)
{
	struct outside *o = calloc(1, sizeof *o);
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!o || fd < 0 || fstat(fd, &st) != 0 ||
	    !(o->symbol = calloc(PLACES_MAX, sizeof *o->symbol))) {
		if (fd >= 0)
			close(fd);
		outside_close(o);
		return NULL; /* it has just ended */
	}
	o->pid = pid;
	o->only = only;
	o->state = seed;
	char *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (image != MAP_FAILED) {
		symbols_read(o, image, (size_t)st.st_size, base_of(pid));
		munmap(image, (size_t)st.st_size);
	}
	return o;
}

void outside_close(struct outside *o)
{
	if (o)
		free(o->symbol);
	free(o);
}

/* The process's heap and nameless memory, as they are now. */
static size_t mappings_read(const struct outside *o, struct place *out, size_t max)
{
	FILE *f = maps_open(o->pid);
	char line[2048], rights[8], name[1024];
	unsigned long long from, to;
	size_t n = 0;

	while (f && n < max && fgets(line, sizeof line, f)) {
		name[0] = '\0';
		if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %1023s", &from, &to, rights, name) <
			3 ||
		    strncmp(rights, "rw-p", 4) != 0 || (*name && strcmp(name, "[heap]") != 0))
			continue;
		const char *called = *name ? name : "[anonymous]";
		if (!wanted(o->only, called))
			continue;
		snprintf(out[n].name, sizeof out[n].name, "%.63s", called);
		out[n].at = from;
		out[n++].bytes = to - from;
	}
	if (f)
		fclose(f);
	return n;
}

static bool bit_flip(pid_t pid, uint64_t at, int bit)
{
	unsigned char byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)at, 1};

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != 1)
		return false;
	byte ^= (unsigned char)(1u << bit);
	return process_vm_writev(pid, &here, 1, &there, 1, 0) == 1;
}

/* All threads stand still between stop and go. */
static bool process_stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		return false;
	if (kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		return true;
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return false;
}

static void process_go(pid_t pid)
{
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	kill(pid, SIGCONT);
}

bool outside_flip(struct outside *o, struct campaign_flip *f)
{
	static struct place mapping[1024];
	uint64_t total = 0, at;
	size_t mappings;
	int bit;
	bool done = false;

	if (!process_stop(o->pid))
		return false;
	mappings = mappings_read(o, mapping, ARRAY_LEN(mapping));
	for (size_t i = 0; i < o->symbols; i++)
		total += o->symbol[i].bytes;
	for (size_t i = 0; i < mappings; i++)
		total += mapping[i].bytes;
	at = total ? campaign_draw(&o->state) % total : 0;
	bit = (int)(campaign_draw(&o->state) % 8);
	for (size_t i = 0; i < o->symbols + mappings && total; i++) {
		const struct place *p = i < o->symbols ? &o->symbol[i] : &mapping[i - o->symbols];
		if (at < p->bytes) {
			done = bit_flip(o->pid, p->at + at, bit);
			snprintf(f->var, sizeof f->var, "%s", p->name);
			f->mended = false;
			break;
		}
		at -= p->bytes;
	}
	process_go(o->pid);
	return done;
}
