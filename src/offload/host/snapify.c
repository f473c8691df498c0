/* SPDX-License-Identifier: BSD-3-Clause */
/* Pause, capture, resume, restore: docs/offload.md, 'States'. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "offload/host/process.h"
#include "offload/host/snap.h"

static void release(struct hale_process *p)
{
	sem_post(&p->send);
	sem_post(&p->channel);
}

/* A request while the locks are held. */
static int ask(struct hale_process *p, enum offload_op op)
{
	struct process_answer *a = calloc(1, sizeof(*a));
	struct wire_head h = {.op = (uint16_t)op};
	int rc, error;

	if (!a)
		return process_fail(ENOMEM, "no memory for a request");
	a->file = -1;
	rc = process_ask(p, &h, NULL, 0, NULL, a);
	error = errno;
	free(a);
	errno = error;
	return rc;
}

static int lock_and_stop(struct hale_process *p)
{
	process_take(&p->channel); /* no copy, no request is under way */
	process_take(&p->send);	   /* no call is being sent */
	if (p->state == PROCESS_RUNS && ask(p, OFF_PAUSE) == 0) {
		p->state = PROCESS_PAUSED;
		return 0;
	}
	int error = p->state == PROCESS_RUNS ? errno : ESRCH;
	if (p->state != PROCESS_RUNS)
		process_fail(ESRCH, "the device process has ended");
	release(p);
	errno = error;
	return -1;
}

static int go_on(struct hale_process *p)
{
	int rc = ask(p, OFF_RESUME), error = errno;

	if (rc == 0)
		p->state = PROCESS_RUNS;
	release(p);
	errno = error;
	return rc;
}

int snapify_pause(snapify_t *s)
{
	struct hale_process *p = s->m_process;
	char why[300];
	int rc = 0, error;

	s->m_error = 0;
	if (!s->m_snapshot_path || (mkdir(s->m_snapshot_path, 0700) != 0 && errno != EEXIST))
		return process_fail(s->m_snapshot_path ? errno : EINVAL,
				    "the folder of the snapshot can't be made: %s",
				    strerror(errno));
	process_take(&p->life);
	if (p->state == PROCESS_PAUSED || p->state == PROCESS_OUT)
		rc = process_fail(EBUSY, "the process is paused or swapped out already");
	else
		rc = lock_and_stop(p);
	if (rc == 0 && snap_store_save(p, s) != 0) {
		rc = -1;
		error = errno;
		snprintf(why, sizeof(why), "%.299s", hale_offload_why());
		go_on(p);
		process_fail(error, "%s", why);
	}
	error = errno;
	sem_post(&p->life);
	errno = error;
	return rc;
}

int snapify_capture(snapify_t *s, bool terminate)
{
	struct wire_head h = {.op = OFF_CAPTURE};
	struct hale_process *p = s->m_process;
	char path[PATH_MAX], manifest[PATH_MAX];
	int rc;

	if (p->state != PROCESS_PAUSED || p->capture)
		return process_fail(p->state == PROCESS_GONE ? ESRCH : EINVAL,
				    p->state == PROCESS_GONE
					? "the device process has ended"
					: "a capture follows a pause, and one another");
	if (snap_path(path, s, "image") != 0 || snap_path(manifest, s, "manifest") != 0)
		return -1;
	unlink(manifest); /* until all is there */
	sem_init(&s->m_sem, 0, 0);
	p->captured = (struct process_answer){.file = -1};
	p->captured.file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (p->captured.file < 0)
		return process_fail(errno, "'%.200s' can't be written: %s", path, strerror(errno));
	p->terminate = terminate;
	p->image_sum = 0;
	p->capture = s;
	rc = process_begin(p, &h, &p->captured);
	if (rc != 0) {
		p->capture = NULL;
		close(p->captured.file);
	}
	return rc;
}

static int finish_capture(struct hale_process *p, snapify_t *s)
{
	int rc = s->m_error ? process_fail(s->m_error, "the device process has ended")
			    : process_end(&p->captured);

	close(p->captured.file);
	if (rc == 0)
		rc = snap_manifest_write(p, s);
	return rc;
}

/* Now that all of it is on this side. */
static void end_process(struct hale_process *p)
{
	struct wire_head h = {.op = OFF_END, .number = 1};

	pthread_mutex_lock(&p->lock);
	p->state = PROCESS_OUT;
	pthread_mutex_unlock(&p->lock);
	wire_say(p->fd, &h, NULL, 0);
	pthread_join(p->receiver, NULL); /* until it has ended */
	p->received = false;
	process_close(p);
}

int snapify_wait(snapify_t *s)
{
	struct hale_process *p = s->m_process;
	int rc, error;

	process_take(&s->m_sem);
	process_take(&p->life);
	rc = finish_capture(p, s);
	error = errno;
	if (rc == 0 && p->terminate)
		end_process(p);
	s->m_error = rc == 0 ? 0 : error;
	sem_post(&p->life);
	errno = error;
	return rc;
}

int snapify_resume(snapify_t *s)
{
	struct hale_process *p = s->m_process;
	int rc, error;

	process_take(&p->life);
	switch (p->state) {
	case PROCESS_PAUSED:
		rc = go_on(p);
		break;
	case PROCESS_GONE: /* while it was paused: those who wait get the error */
		release(p);
		rc = process_fail(ESRCH, "the device process has ended");
		break;
	default:
		rc = process_fail(EINVAL, p->state == PROCESS_OUT
					      ? "the process is swapped out: restore it first"
					      : "the process is not paused");
	}
	error = errno;
	sem_post(&p->life);
	errno = error;
	return rc;
}

/* ---- restore ---- */

static int check_image(int file, const struct snap_manifest *m)
{
	enum { BLOCK = 1 << 20 };
	char *block = malloc(BLOCK);
	uint64_t sum = 0, done = 0;
	ssize_t n;

	while (block && (n = pread(file, block, BLOCK, (off_t)done)) > 0) {
		sum += wire_sum(block, (size_t)n, done);
		done += (uint64_t)n;
	}
	free(block);
	if (done == m->image_size && sum == m->image_sum)
		return 0;
	return process_fail(EBADMSG, "the image of the snapshot is damaged");
}

static int rebuild(struct hale_process *p, const snapify_t *s, int device)
{
	struct snap_manifest m;
	char path[PATH_MAX];
	int file, rc, error;

	if (snap_manifest_read(s, &m) != 0 || snap_path(path, s, "image") != 0)
		return -1;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return process_fail(errno, "'%.200s' can't be read: %s", path, strerror(errno));
	p->memory = m.memory;
	rc = check_image(file, &m);
	if (rc == 0)
		rc = process_start(p, device,
				   &(struct start_image){.file = file, .size = m.image_size});
	error = errno;
	close(file);
	errno = error;
	if (rc != 0)
		return -1;
	rc = snap_store_load(p, s);
	error = errno;
	if (rc != 0)
		process_disconnect(p);
	errno = error;
	return rc;
}

int snapify_restore(snapify_t *s, int device)
{
	struct hale_process *p = s->m_process;
	int rc, error;

	process_take(&p->life);
	if (p->state != PROCESS_OUT) {
		rc = process_fail(EALREADY, "the process is not swapped out");
	} else {
		p->state = PROCESS_RESTORING;
		rc = rebuild(p, s, device);
		p->state = rc == 0 ? PROCESS_PAUSED : PROCESS_OUT;
	}
	error = errno;
	sem_post(&p->life);
	errno = error;
	return rc;
}

/* ---- figures 2.6 and 2.7 ---- */

/* After an error in the middle: as it was. */
static snapify_t *undo(snapify_t *s, bool paused)
{
	int error = errno;
	char why[300];

	snprintf(why, sizeof(why), "%.299s", hale_offload_why());
	if (paused)
		snapify_resume(s);
	free(s);
	process_fail(error, "%s", why);
	return NULL;
}

snapify_t *snapify_swapout(const char *path, COIProcess *process)
{
	snapify_t *s = calloc(1, sizeof(*s));

	if (!s)
		return process_fail(ENOMEM, "no memory for a snapshot"), NULL;
	s->m_snapshot_path = path;
	s->m_process = process;
	if (snapify_pause(s) != 0)
		return undo(s, false);
	if (snapify_capture(s, true) != 0 || snapify_wait(s) != 0)
		return undo(s, true);
	return s;
}

COIProcess *snapify_swapin(snapify_t *snapshot, int device)
{
	COIProcess *process;

	if (snapify_restore(snapshot, device) != 0 || snapify_resume(snapshot) != 0)
		return NULL;
	process = snapshot->m_process;
	free(snapshot);
	return process;
}

COIProcess *snapify_migration(COIProcess *process, int device_to)
{
	char folder[] = "/tmp/hale-snapshot-XXXXXX", why[300];
	snapify_t *s;
	int from = process->device, error;

	if (!mkdtemp(folder))
		return process_fail(errno, "no folder for a snapshot in /tmp"), NULL;
	s = snapify_swapout(folder, process);
	if (s && !snapify_swapin(s, device_to)) {
		/* back to where it was */
		error = errno;
		snprintf(why, sizeof(why), "%.250s", hale_offload_why());
		if (!snapify_swapin(s, from)) {
			process_fail(errno, "%.150s; nor does it come back: its snapshot is in %s",
				     why, folder);
			return NULL;
		}
		process_fail(error, "%s", why);
		s = NULL;
	}
	error = errno;
	snap_remove(folder);
	errno = error;
	return s ? process : NULL;
}
