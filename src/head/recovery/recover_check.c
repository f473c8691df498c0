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
	h->recovery.check.verdicts[rank] = err;
	_exit(0);
}

static void start_checkers(struct head *h)
{
	struct recovery *v = &h->recovery;

	while (v->check.running < node_set_cores(&h->node_set) && v->check.next < h->nranks) {
		uint32_t rank = v->check.next++;
		pid_t pid;

		error_set(&v->check.verdicts[rank], HALE_ERR_SYSTEM,
			  "the check of its image did not end");
		pid = fork();
		if (pid == 0)
			be_a_checker(h, rank);
		if (pid < 0)
			break;
		v->check.children[rank] = pid;
		v->check.running++;
	}
}

static void conclude(struct head *h)
{
	struct recovery *v = &h->recovery;

	for (uint32_t r = 0; r < h->nranks; r++) {
		if (v->check.verdicts[r].code == HALE_OK)
			continue;
		recover_refuse(h, "the job was just restarted from it, and %s",
			       v->check.verdicts[r].text);
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
	v->check.children = calloc(h->nranks, sizeof(*v->check.children));
	v->check.verdicts = mmap(NULL, h->nranks * sizeof(struct error), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	v->check.under_way = v->check.children && v->check.verdicts != MAP_FAILED;
	if (v->check.under_way)
		start_checkers(h);
	if (v->check.running == 0) {
		log_warn("checkpoint %u can't be verified: %m", v->target);
		recover_check_stop(h);
	}
}

bool recover_checking(const struct head *h)
{
	return h->recovery.check.under_way;
}

void recover_check_stop(struct head *h)
{
	struct recovery *v = &h->recovery;

	for (uint32_t r = 0; v->check.children && r < h->nranks; r++) {
		if (v->check.children[r] > 0) {
			kill(v->check.children[r], SIGKILL);
			waitpid(v->check.children[r], NULL, 0);
		}
	}
	free(v->check.children);
	v->check.children = NULL;
	if (v->check.verdicts && v->check.verdicts != MAP_FAILED)
		munmap(v->check.verdicts, h->nranks * sizeof(struct error));
	v->check.verdicts = NULL;
	v->check.next = v->check.running = 0;
	v->check.under_way = false;
}

bool recover_child(struct head *h, pid_t pid, int status)
{
	struct recovery *v = &h->recovery;

	for (uint32_t r = 0; v->check.children && r < h->nranks; r++) {
		if (v->check.children[r] != pid)
			continue;
		v->check.children[r] = 0;
		v->check.running--;
		start_checkers(h);
		if (v->check.running == 0)
			conclude(h);
		return true;
	}
	return false;
}
