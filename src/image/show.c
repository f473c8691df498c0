// SPDX-License-Identifier: BSD-3-Clause
/* What is in an image, for people and as JSON. Ordinary processes only. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/json.h"
#include "image/fd/fd.h"
#include "image/read.h"

static const char *compress_name(uint32_t c)
{
	return c == IMAGE_LZ4 ? "lz4" : c == IMAGE_ZSTD ? "zstd" : "none";
}

static const char *map_kind_name(uint32_t kind)
{
	static const char *const name[] = {
	    [MAP_KIND_ANON] = "memory",
	    [MAP_KIND_FILE] = "file",
	    [MAP_KIND_SHARED_FILE] = "shared file",
	    [MAP_KIND_SHARED_ANON] = "shared memory",
	    [MAP_KIND_SYSV] = "System V memory",
	};
	return kind < ARRAY_LEN(name) && name[kind] ? name[kind] : "unknown";
}

static const char *fd_kind_name(uint32_t kind)
{
	static const char *const name[] = {
	    [FD_FILE] = "file",
	    [FD_UNLINKED] = "file without a name",
	    [FD_STREAM] = "standard stream",
	    [FD_DEVICE] = "device",
	    [FD_PIPE] = "pipe",
	    [FD_EVENT] = "eventfd",
	    [FD_TIMER] = "timerfd",
	    [FD_SIGNAL] = "signalfd",
	    [FD_EPOLL] = "epoll",
	    [FD_SOCKETPAIR] = "socket pair",
	    [FD_BROKER] = "connection to an event broker",
	    [FD_SOCKET] = "socket inside the job",
	    [FD_PID] = "handle of a process",
	    [FD_FIFO] = "named pipe",
	    [FD_QUEUE] = "message queue",
	    [FD_INOTIFY] = "inotify",
	    [FD_TERMINAL] = "terminal",
	    [FD_BESIDE] = "in another rank's image",
	};
	return kind < ARRAY_LEN(name) && name[kind] ? name[kind] : "unknown";
}

static void prot_text(uint32_t prot, char text[4])
{
	text[0] = prot & PROT_READ ? 'r' : '-';
	text[1] = prot & PROT_WRITE ? 'w' : '-';
	text[2] = prot & PROT_EXEC ? 'x' : '-';
	text[3] = 0;
}

static const char *map_path(const struct image_tables *t, const struct map_record *m)
{
	if (m->kind == MAP_KIND_FILE || m->kind == MAP_KIND_SHARED_FILE)
		return t->map_text + m->path_offset;
	if (m->flags & MAP_FLAG_GROWSDOWN)
		return "[stack]";
	return m->start <= t->process->start_brk && m->end > t->process->start_brk ? "[heap]" : "";
}

/* "file 3" and its target, "standard stream 1" and so on. */
static void fd_target(const struct image_tables *t, const struct fd_record *r, char *buf,
		      size_t cap)
{
	buf[0] = 0;
	if (r->same_as >= 0)
		snprintf(buf, cap, "same open file as %d", t->fds[r->same_as].fd);
	else if (r->kind == FD_STREAM)
		snprintf(buf, cap, "number %" PRIu64 ", was %s", r->a, t->fd_text + r->text_offset);
	else if (r->kind == FD_FILE || r->kind == FD_UNLINKED)
		snprintf(buf, cap, "%s at %" PRIu64 " of %" PRIu64 "%s",
			 t->fd_text + r->text_offset, r->offset, r->size,
			 r->has_content ? ", content saved"
			 : r->truncates ? ", will be cut to this size"
					: "");
	else if (r->kind == FD_DEVICE)
		snprintf(buf, cap, "%s", t->fd_text + r->text_offset);
	else if (r->kind == FD_FIFO)
		snprintf(buf, cap, "%s%s", t->fd_text + r->text_offset,
			 r->has_content ? ", content saved" : "");
	else if (r->kind == FD_PIPE)
		snprintf(buf, cap, "%s end of pipe %" PRIu64 "%s", r->b ? "read" : "write",
			 r->inode, r->has_content ? ", content saved" : "");
	else if (r->kind == FD_EVENT)
		snprintf(buf, cap, "counter %" PRIu64, r->a);
	else if (r->kind == FD_EPOLL)
		snprintf(buf, cap, "watches %" PRIu64, r->a);
}

/* ---- for people ---- */

static void show_head(const struct image_file *f, const struct image_tables *t)
{
	const struct image_header *h = &f->header;
	char size[16], when[64] = "", names[512];
	time_t taken = (time_t)(h->taken_ns / 1000000000);
	struct tm tm;
	if (localtime_r(&taken, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	printf("image       %s\n", f->path);
	printf("job         %s, rank %u of %u\n", h->identity.job, h->identity.rank,
	       h->identity.nranks);
	if (h->identity.base)
		printf("checkpoint  %u, a difference to checkpoint %u\n", h->identity.id,
		       h->identity.base);
	else
		printf("checkpoint  %u, full\n", h->identity.id);
	printf("taken       %s\n", when);
	printf("program     %s (pid %d)\n", h->program, t->process->pid);
	printf("folder      %s\n", t->cwd);
	printf("size        %s, format %u, compression %s\n", units_show_bytes(h->file_len, size),
	       h->version, compress_name(h->compress));
	printf("pages       %" PRIu64 " saved (%s), %" PRIu64 " zero\n", h->pages,
	       units_show_bytes(h->pages * HALE_PAGE, size), h->pages_zero);
	printf("processor   %s\n",
	       processor_names(h->xfeatures, names, sizeof(names)) ? names : "any");
	printf("checksum    %016" PRIx64 "\n", f->checksum);
}

static void show_tables(const struct image_tables *t)
{
	char size[16], saved[16], prot[4], target[IMAGE_PATH_MAX + 64];
	printf("\nthreads     %zu\n", t->thread_count);
	for (size_t i = 0; i < t->thread_count; i++)
		printf("  %-8d  %.15s%s%s\n", t->threads[i].tid, t->threads[i].name,
		       t->threads[i].leader ? ", main thread" : "",
		       t->threads[i].coordinator ? ", took the checkpoint" : "");
	printf("\nmemory      %zu mappings\n", t->map_count);
	for (size_t i = 0; i < t->map_count; i++) {
		const struct map_record *m = &t->maps[i];
		prot_text(m->prot, prot);
		printf("  %012" PRIx64 "  %s  %10s  %10s saved  %-13s  %s\n", m->start, prot,
		       units_show_bytes(m->end - m->start, size),
		       units_show_bytes(m->pages * HALE_PAGE, saved), map_kind_name(m->kind),
		       map_path(t, m));
	}
	printf("\ndescriptors %zu\n", t->fd_count);
	for (size_t i = 0; i < t->fd_count; i++) {
		fd_target(t, &t->fds[i], target, sizeof(target));
		if (t->fds[i].fd >= FD_ON_WAY)
			printf("  sent  %-19s  %s\n", fd_kind_name(t->fds[i].kind), target);
		else
			printf("  %-4d  %-19s  %s\n", t->fds[i].fd, fd_kind_name(t->fds[i].kind),
			       target);
	}
}

static void show_frames(const struct image_file *f)
{
	uint64_t count[FRAME_KINDS] = {0}, bytes[FRAME_KINDS] = {0};
	char size[16];
	for (size_t i = 0; i < f->frames.count; i++) {
		const struct frame_at *n = list_at(&f->frames, i);
		count[n->frame.kind]++;
		bytes[n->frame.kind] += frame_len(&n->frame);
	}
	printf("\nframes      %zu\n", f->frames.count);
	for (unsigned k = 0; k < FRAME_KINDS; k++)
		if (count[k])
			printf("  %-12s  %6" PRIu64 "  %10s\n", frame_kind_name(k), count[k],
			       units_show_bytes(bytes[k], size));
}

/* ---- for programs ---- */

static void json_head(struct json_out *j, const struct image_file *f, const struct image_tables *t)
{
	const struct image_header *h = &f->header;
	char sum[20], names[512];
	snprintf(sum, sizeof(sum), "%016" PRIx64, f->checksum);
	json_string(j, "image", f->path);
	json_string(j, "job", h->identity.job);
	json_uint(j, "rank", h->identity.rank);
	json_uint(j, "ranks", h->identity.nranks);
	json_uint(j, "id", h->identity.id);
	json_uint(j, "base", h->identity.base);
	json_double(j, "taken", (double)h->taken_ns * 1e-9);
	json_string(j, "program", h->program);
	json_int(j, "pid", t->process->pid);
	json_string(j, "folder", t->cwd);
	json_uint(j, "format", h->version);
	json_string(j, "compression", compress_name(h->compress));
	json_uint(j, "bytes", h->file_len);
	json_uint(j, "pages", h->pages);
	json_uint(j, "pages_zero", h->pages_zero);
	json_string(j, "checksum", sum);
	processor_names(h->xfeatures, names, sizeof(names));
	json_string(j, "processor", names);
	json_uint(j, "frames", f->frames.count);
}

static void json_tables(struct json_out *j, const struct image_tables *t)
{
	char text[IMAGE_PATH_MAX + 64], prot[4];
	json_open_array(j, "threads");
	for (size_t i = 0; i < t->thread_count; i++) {
		json_open_object(j, NULL);
		json_int(j, "tid", t->threads[i].tid);
		snprintf(text, sizeof(text), "%.15s", t->threads[i].name);
		json_string(j, "name", text);
		json_bool(j, "main", t->threads[i].leader);
		json_close_object(j);
	}
	json_close_array(j);
	json_open_array(j, "maps");
	for (size_t i = 0; i < t->map_count; i++) {
		const struct map_record *m = &t->maps[i];
		json_open_object(j, NULL);
		snprintf(text, sizeof(text), "%" PRIx64, m->start);
		json_string(j, "start", text);
		json_uint(j, "bytes", m->end - m->start);
		prot_text(m->prot, prot);
		json_string(j, "protection", prot);
		json_string(j, "kind", map_kind_name(m->kind));
		json_uint(j, "pages", m->pages);
		json_string(j, "path", map_path(t, m));
		json_close_object(j);
	}
	json_close_array(j);
	json_open_array(j, "descriptors");
	for (size_t i = 0; i < t->fd_count; i++) {
		json_open_object(j, NULL);
		json_int(j, "fd", t->fds[i].fd);
		json_string(j, "kind", fd_kind_name(t->fds[i].kind));
		fd_target(t, &t->fds[i], text, sizeof(text));
		json_string(j, "target", text);
		json_close_object(j);
	}
	json_close_array(j);
}

hale_status_t image_show(const char *path, bool json, struct error *err)
{
	struct arena arena;
	struct image_file f;
	struct image_tables t;
	struct error local;
	if (!err)
		err = &local;
	hale_status_t rc = image_reader_arena(&arena, err);
	if (rc != HALE_OK)
		return rc;
	rc = image_file_open(&f, &arena, path, err);
	if (rc == HALE_OK) {
		rc = image_file_tables(&f, &t, err);
		if (rc == HALE_OK && json) {
			struct json_out j;
			json_out_init(&j);
			json_open_object(&j, NULL);
			json_head(&j, &f, &t);
			json_tables(&j, &t);
			json_close_object(&j);
			puts(j.text);
			json_out_fini(&j);
		} else if (rc == HALE_OK) {
			show_head(&f, &t);
			show_tables(&t);
			show_frames(&f);
		}
		image_file_close(&f);
	}
	arena_fini(&arena);
	return rc;
}
