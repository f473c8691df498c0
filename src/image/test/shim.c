// SPDX-License-Identifier: BSD-3-Clause
/* A library to preload into programs under test, in libhale.so's place: captures on a signal,
 * becomes another process when asked to. No agent, no job.
 *
 *   SHIM_PATH     images are SHIM_PATH.1, SHIM_PATH.2, …; SHIM_PATH.N.done tells how it went
 *   SHIM_MODE     words of: sync track incremental lz4 zstd flush
 *   SHIM_SINK     full|lazy:PATH[:PATH…], newest first
 *   SHIM_EVERY_MS captures by itself, this often
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fmt.h"
#include "image/image.h"

static char path[3900], mode[128];
static uint32_t taken, newest_tracked;
static bool restored_here;

static void write_report(const char *file, const char *text, size_t len)
{
	char temp[4200];
	fmt_print(temp, sizeof(temp), "%s~", file);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		log_warn("shim: can't write %s", temp);
	close(fd);
	rename(temp, file);
}

static void on_written(void *arg, const struct image_result *r)
{
	char file[4200], text[1024];
	struct rusage cpu;
	getrusage(RUSAGE_SELF, &cpu);
	fmt_print(file, sizeof(file), "%s.%u.done", path, *(uint32_t *)arg);
	size_t n = fmt_print(
	    text, sizeof(text),
	    "status=%d base=%u bytes=%lu pages=%lu zero=%lu checksum=%lx us=%lu cpu_us=%lu %s\n",
	    (int)r->error.code, r->base, (unsigned long)r->bytes, (unsigned long)r->pages_saved,
	    (unsigned long)r->pages_zero, (unsigned long)r->checksum,
	    (unsigned long)(r->seconds * 1e6),
	    (unsigned long)(cpu.ru_utime.tv_sec + cpu.ru_stime.tv_sec) * 1000000 +
		(unsigned long)(cpu.ru_utime.tv_usec + cpu.ru_stime.tv_usec),
	    r->error.code == HALE_OK ? "ok" : r->error.text);
	write_report(file, text, n);
}

static void capture(void)
{
	uint32_t id = ++taken;
	char file[4200];
	uint64_t pause = 0;
	struct error err = {HALE_OK, ""};
	fmt_print(file, sizeof(file), "%s.%u", path, id);
	struct image_params p = {
	    .identity = {.job = "shim", .nranks = 1, .id = id},
	    .path = file,
	    .mode = strstr(mode, "sync") ? IMAGE_SYNC : IMAGE_FORKED,
	    .compress = strstr(mode, "lz4")    ? IMAGE_LZ4
			: strstr(mode, "zstd") ? IMAGE_ZSTD
					       : IMAGE_PLAIN,
	    .incremental = strstr(mode, "incremental") && newest_tracked,
	    .track = strstr(mode, "track") != NULL,
	    .sync = strstr(mode, "flush") != NULL,
	    .note = "a note",
	    .note_len = 6,
	    .written = on_written,
	    .arg = &id,
	};
	if (p.incremental)
		p.identity.base = newest_tracked;
	uint64_t began = clock_ns();
	int busy = image_park();
	uint64_t parked = clock_ns();
	if (busy) {
		log_warn("shim: %d threads can't park", busy);
		return;
	}
	struct timespec cpu[2];
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu[0]);
	image_return_t rc = image_capture(&p, &pause, &err);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu[1]);
	image_unpark();
	if (rc == IMAGE_FAILED) {
		struct image_result failed = {.error = err};
		on_written(&id, &failed);
	}
	if (p.track)
		newest_tracked = id;
	restored_here = rc == IMAGE_RESTORED;
	if (getenv("SHIM_VERBOSE"))
		log_warn("shim: %u %s, parked in %lu us, paused %lu us, processor %ld us", id,
			 rc == IMAGE_RESTORED	? "restored"
			 : rc == IMAGE_CAPTURED ? "captured"
						: err.text,
			 (unsigned long)(parked - began) / 1000, (unsigned long)pause / 1000,
			 (cpu[1].tv_sec - cpu[0].tv_sec) * 1000000 +
			     (cpu[1].tv_nsec - cpu[0].tv_nsec) / 1000);
	if (rc == IMAGE_RESTORED) {
		newest_tracked = 0;
		fmt_print(file, sizeof(file), "%s.restored", path);
		write_report(file, "yes\n", 4);
	}
}

/* For programs that know of us. */
__attribute__((visibility("default"))) int shim_capture(void);
int shim_capture(void)
{
	capture();
	return restored_here;
}

static void on_request(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	capture();
	errno = saved;
	image_restart_syscall(context);
}

static void sink(char *spec)
{
	const char *paths[IMAGE_CHAIN_MAX];
	size_t count = 0;
	struct error err = {HALE_OK, ""};
	static char copy[16384];
	strncpy(copy, spec, sizeof(copy) - 1);
	for (char *rest = strchr(copy, ':'); rest && count < IMAGE_CHAIN_MAX;
	     rest = strchr(rest, ':')) {
		*rest++ = 0;
		paths[count++] = rest;
	}
	image_pass("passed", 6);
	image_sink(paths, NULL, count, strcmp(copy, "lazy") ? IMAGE_FULL : IMAGE_LAZY, &err);
	log_warn("shim: %s", err.text);
	_exit((int)err.code);
}

/* We come before libc's own constructor, which sets environ. */
__attribute__((constructor)) static void shim_start(int argc, char **argv, char **envp)
{
	if (!environ)
		environ = envp;
	char *spec = getenv("SHIM_SINK");
	const char *where = getenv("SHIM_PATH"), *words = getenv("SHIM_MODE");
	log_init_from_env();
	if (spec)
		sink(spec);
	if (!where)
		return;
	strncpy(path, where, sizeof(path) - 1);
	strncpy(mode, words ? words : "", sizeof(mode) - 1);
	image_init(NULL, NULL);
	struct sigaction sa = {.sa_sigaction = on_request, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigfillset(&sa.sa_mask);
	sigaction(SIGRTMAX - 3, &sa, NULL);
}
