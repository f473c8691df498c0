/* SPDX-License-Identifier: BSD-3-Clause */
/* A lazy restart maps the images and lets the ranks run at once; whether they are whole is found
 * out meanwhile, by children of the head that read all of them, one a rank. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"

static hale_status_t check_chain(struct head *h, uint32_t rank, struct error *err)
{
	const struct recovery *v = &h->recovery;
	const char *job_folder = recover_folder_of(h, v->target);
	hale_status_t status = HALE_OK;

	for (size_t i = 0; status == HALE_OK && i < v->chain_count; i++) {
		struct store_manifest m;
		char path[PATH_MAX];

		store_path(job_folder, v->chain[i], path);
		status = store_manifest_read(path, &m, err);
		if (status == HALE_OK)
			status = store_verify_part(path, &m, rank, true, err);
		store_manifest_fini(&m);
	}
	return status;
}

static void be_a_checker(struct head *h, uint32_t rank)
{
	struct error err = {HALE_OK, ""};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check_chain(h, rank, &err);
	h->recovery.verdicts[rank] = err;
	_exit(0);
}

static void start_checkers(struct head *h)
{
	struct recovery *v = &h->recovery;

	while (v->checkers_running < crew_cores(&h->crew) && v->next_check < h->nranks) {
		uint32_t rank = v->next_check++;
		pid_t pid;

		error_set(&v->verdicts[rank], HALE_ERR_SYSTEM,
			  "the check of its image did not end");
		pid = fork();
		if (pid == 0)
			be_a_checker(h, rank);
		if (pid < 0)
			break;
		v->checkers[rank] = pid;
		v->checkers_running++;
	}
}

static void conclude(struct head *h)
{
	struct recovery *v = &h->recovery;

	for (uint32_t r = 0; r < h->nranks; r++) {
		if (v->verdicts[r].code == HALE_OK)
			continue;
		recover_refuse(h, "the job was just restarted from it, and %s",
			       v->verdicts[r].text);
		recover_check_stop(h);
		head_event(h, JOB_DAMAGED, r);
		return;
	}
	recover_check_stop(h);
	checkpoint_poll(h);
}

void recover_check_start(struct head *h)
{
	struct recovery *v = &h->recovery;

	if (h->o->restart != IMAGE_LAZY || v->target == 0)
		return;
	recover_check_stop(h);
	v->checkers = calloc(h->nranks, sizeof(*v->checkers));
	v->verdicts = mmap(NULL, h->nranks * sizeof(struct error), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	v->checking = v->checkers && v->verdicts != MAP_FAILED;
	if (v->checking)
		start_checkers(h);
	if (v->checkers_running == 0) {
		log_warn("checkpoint %u can't be verified: %m", v->target);
		recover_check_stop(h);
	}
}

bool recover_checking(const struct head *h)
{
	return h->recovery.checking;
}

void recover_check_stop(struct head *h)
{
	struct recovery *v = &h->recovery;

	for (uint32_t r = 0; v->checkers && r < h->nranks; r++) {
		if (v->checkers[r] > 0) {
			kill(v->checkers[r], SIGKILL);
			waitpid(v->checkers[r], NULL, 0);
		}
	}
	free(v->checkers);
	v->checkers = NULL;
	if (v->verdicts && v->verdicts != MAP_FAILED)
		munmap(v->verdicts, h->nranks * sizeof(struct error));
	v->verdicts = NULL;
	v->next_check = v->checkers_running = 0;
	v->checking = false;
}

bool recover_child(struct head *h, pid_t pid, int status)
{
	struct recovery *v = &h->recovery;

	for (uint32_t r = 0; v->checkers && r < h->nranks; r++) {
		if (v->checkers[r] != pid)
			continue;
		v->checkers[r] = 0;
		v->checkers_running--;
		start_checkers(h);
		if (v->checkers_running == 0)
			conclude(h);
		return true;
	}
	return false;
}
