/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checkpoint needs of this node: a look at its ranks from outside, their mailboxes, and news
 * of how far their images are. Faults at a call are told the ranks the same way. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "image/image.h"
#include "agent/agent_private.h"
#include "node/living.h"

enum {
	HALTED_MAX = 64, /* more of a node are not told of */
	NAME_TEXT = 48,
};

#define LOOK_FIRST_SECONDS 0.25
#define LOOK_SECONDS	   0.5

/* ---- can it be done? ---- */

static uint64_t resident_bytes(pid_t pid)
{
	char path[64];
	unsigned long size = 0, resident = 0, shared = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu %lu", &size, &resident, &shared) != 3)
		resident = shared = 0;
	fclose(f);
	return (uint64_t)(resident > shared ? resident - shared : 0) * HALE_PAGE;
}

/* What the network channel opens and closes at any time: connections, what event loops are made of,
 * and a socket for a moment by whoever wakes a sleeper (mailbox_ring). */
static bool of_the_network(const char *link)
{
	static const char *const begins[] = {"socket:",
					     "anon_inode:[eventpoll]",
					     "anon_inode:[eventfd]",
					     "anon_inode:[timerfd]",
					     "anon_inode:[infinibandevent]",
					     "/dev/infiniband/"};
	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (!strncmp(link, begins[i], strlen(begins[i])))
			return true;
	return false;
}

enum { CHECKS = 3, CHECK_PAUSE_US = 2000 };

/* ---- what ranks share ---- */

/* How many ranks have asked for what they may have together. */
static uint32_t users_of(struct agent *a)
{
	uint32_t users = 0;

	for (uint32_t r = 0; r < a->setup.nranks; r++)
		users += agent_has(a, r) && atomic_load(&agent_mailbox(a, r)->may_share);
	return users;
}

/* The ranks of this node, whose images may be of one moment. */
static bool beside_fill(struct agent *a, struct image_beside *beside)
{
	beside->count = 0;
	beside->shared = false;
	beside->met = users_of(a) > 1;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (a->ranks[r].pid > 0 && a->ranks[r].member > 0 && beside->count < IMAGE_TREE_MAX)
			beside->pid[beside->count++] = a->ranks[r].member;
	return a->setup.degree == 1 && beside->count > 1;
}

/* The kernel tells of some uses only, and of none that is over. So two ranks that have asked once
 * for what they may have together may do so at any time. */
static bool ranks_share(struct agent *a)
{
	struct image_beside beside;
	const struct image_tree none = {.beside = &beside};
	struct error err;
	bool several = beside_fill(a, &beside);
	uint32_t users = several ? users_of(a) : 0;

	for (uint32_t r = 0; several && r < a->setup.nranks; r++)
		if (a->ranks[r].pid > 0)
			image_check_ipc(a->ranks[r].member, &none, &err);
	atomic_store(&a->view.segment->together_known, several && users <= 1 ? users : UINT32_MAX);
	return several && (a->ckpt.connected || beside.shared || users > 1);
}

static uint32_t ranks_asked(const struct agent *a)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < a->setup.nranks; r++)
		count += agent_has(a, r) && a->ranks[r].pid > 0;
	return count;
}

/* System V objects of a rank, after all else has been looked at. */
static hale_status_t check_shared(struct agent *a, uint32_t rank, const struct image_tree *tree,
				  struct error *err)
{
	bool connected = tree->beside && tree->beside->shared;
	hale_status_t status = image_check_ipc(a->ranks[rank].member, tree, err);

	a->ckpt.connected |= connected;
	a->ckpt.children |= tree->count > 0;
	if (status == HALE_OK && tree->beside && tree->beside->shared && a->ckpt.children)
		return error_set(err, HALE_ERR_AGAIN,
				 "it has %s together with another rank, while ranks have child "
				 "processes",
				 connected ? "a connection or a pipe" : "System V objects");
	return status;
}

/* In sentences: of a job with replicas which of them, too. */
static const char *process_named(const struct agent *a, uint32_t process, char text[NAME_TEXT])
{
	uint32_t n = a->setup.nranks / a->setup.degree;

	if (a->setup.degree == 1)
		snprintf(text, NAME_TEXT, "rank %u", process);
	else
		snprintf(text, NAME_TEXT, "rank %u (replica %u)", living_rank_of(process, n),
			 living_slot_of(process, n));
	return text;
}

static bool is_written(pid_t pid, const char *number)
{
	char path[64];
	unsigned flags = O_RDONLY;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", (int)pid, number);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "pos: %*d flags: %o", &flags) != 1)
		flags = O_RDONLY;
	fclose(f);
	return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

/* What the rank's children write, who have no segment to say it in. */
static void files_note(struct agent *a, uint32_t rank, const struct image_tree *tree)
{
	for (size_t i = 0; i < tree->count && a->setup.nranks > 1; i++) {
		char path[64];
		struct dirent *e;
		struct stat st;
		DIR *d;

		snprintf(path, sizeof(path), "/proc/%d/fd", (int)tree->pid[i]);
		d = tree->pid[i] != a->ranks[rank].member ? opendir(path) : NULL;
		while (d && (e = readdir(d)))
			if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
			    S_ISREG(st.st_mode) && is_written(tree->pid[i], e->d_name))
				segment_file_note(a->view.segment, rank, st.st_ino);
		if (d)
			closedir(d);
	}
}

/* Of a rank that has connections to other nodes every socket passes, the program's too: it closes
 * its own before its image is taken, and looks itself at what is left then. */
static hale_status_t check_rank(struct agent *a, uint32_t rank, struct error *err)
{
	const struct mailbox *m = agent_mailbox(a, rank);
	struct error why, child;
	struct image_beside beside;
	struct image_tree tree;
	hale_status_t status = HALE_ERR_UNSUPPORTED, children = HALE_OK;
	char name[NAME_TEXT];
	pid_t thread = agent_thread_of(a->ranks[rank].member);
	bool hears;

	if (!thread)
		return error_set(err, HALE_ERR_STATE, "%s has just ended",
				 process_named(a, rank, name));
	hears = agent_hears(thread); /* asked once: it may execute another program just now */
	if (!hears &&
	    atomic_load(&segment_spawn_room(a->view.segment, rank)->state) == SPAWN_ORDERED)
		return error_set(err, HALE_ERR_AGAIN,
				 "%s is becoming the program that MPI_Comm_spawn asked for",
				 process_named(a, rank, name));
	hears = hears || agent_hears(thread);
	if (!hears && !agent_thread_of(a->ranks[rank].member))
		return error_set(err, HALE_ERR_STATE, "%s has just ended",
				 process_named(a, rank, name));
	if (!hears)
		return error_set(
		    err, status,
		    "%s can't be captured: hale's library is not in the program that "
		    "process %d executes now (is it static, or was LD_PRELOAD taken away?)",
		    process_named(a, rank, name), (int)a->ranks[rank].member);
	children =
	    image_check_children(a->ranks[rank].member, m->own_fd, MAILBOX_OWN_FDS, &tree, &child);
	tree.beside = beside_fill(a, &beside) ? &beside : NULL;
	files_note(a, rank, &tree);
	/* it may show other descriptors, or open its channel, after we read its mailbox; and who
	 * has something open for a moment may have lost its core just then. Who has not come to its
	 * new mailbox yet, after a move, still has the stream that it came through */
	for (int i = 0; i < CHECKS && status == HALE_ERR_UNSUPPORTED; i++) {
		int own[MAILBOX_OWN_FDS];
		bool there;
		if (i > 0)
			usleep(CHECK_PAUSE_US);
		there = atomic_load(&m->pid) != 0;
		memcpy(own, m->own_fd, sizeof(own));
		status = image_check_in(thread, own, MAILBOX_OWN_FDS,
					!there || atomic_load(&m->net_open) ? of_the_network : NULL,
					&tree, &why);
		if (status == HALE_OK)
			status = image_check_threads(a->ranks[rank].member, &why);
	}
	if (status == HALE_OK)
		status = check_shared(a, rank, &tree, &why);
	if (status == HALE_OK && children != HALE_OK) {
		status = children;
		why = child;
	}
	if (status == HALE_OK)
		return HALE_OK;
	if (status == HALE_ERR_PROCESS) /* while we looked at it */
		return error_set(err, HALE_ERR_STATE, "%s has just ended",
				 process_named(a, rank, name));
	return error_set(err, status, "%s can't be captured: %s", process_named(a, rank, name),
			 why.text);
}

/* The files that ranks of this node write; those of other nodes may write them, too. */
static size_t files_fill(struct agent *a, uint64_t files[SEGMENT_FILES])
{
	const struct segment *s = a->view.segment;
	size_t count = 0;

	for (uint32_t i = 0; s && i < SEGMENT_FILES; i++)
		if (atomic_load(&s->file[i]))
			files[count++] = atomic_load(&s->file[i]);
	if (s && atomic_load(&s->files_full))
		files[count == SEGMENT_FILES ? count - 1 : count++] = UINT64_MAX;
	return count;
}

void agent_ckpt_check(struct agent *a, uint32_t id, bool files)
{
	static uint64_t written[SEGMENT_FILES];
	struct message answer = {.type = MSG_CHECKED, .id = id, .bytes = written};
	struct error err = {HALE_OK, ""};

	if (!files)
		a->ckpt.children = a->ckpt.connected = false;
	for (uint32_t r = 0; r < a->setup.nranks && !files; r++) {
		struct error why;

		if (a->ranks[r].pid == 0 || !a->view.segment)
			continue;
		answer.number += resident_bytes(agent_thread_of(a->ranks[r].member));
		if (check_rank(a, r, &why) == HALE_OK)
			continue;
		/* a refusal for good counts more than one that may be over soon */
		if (err.code == HALE_OK || (err.code == HALE_ERR_AGAIN && why.code != err.code)) {
			answer.rank = r;
			err = why;
		}
		if (err.code != HALE_ERR_AGAIN)
			break;
	}
	answer.value = (int32_t)err.code;
	answer.text = err.text;
	answer.len = files_fill(a, written) * sizeof(*written);
	agent_send(a, &answer);
}

/* ---- how far are the images? ---- */

/* In place of a state as proc(5) has it: all but those that have ended. */
enum { LIVING = 0 };

static bool thread_has_child(pid_t pid, const char *thread, char wanted)
{
	char path[320], state;
	long child;
	FILE *f;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, thread);
	f = fopen(path, "re");
	if (!f) /* a kernel without this list */
		return wanted == LIVING;
	while (!found && fscanf(f, "%ld", &child) == 1) {
		state = agent_process_state(child);
		found = wanted == LIVING ? state != 'Z' && state != 'X' : state == wanted;
	}
	fclose(f);
	return found;
}

/* The writer of an image is a child of one of its rank's threads; one that was killed can't say
 * so. The program's own children may hide that; then the head's patience decides. */
static bool has_child(pid_t pid, char state)
{
	char path[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d)))
		if (e->d_name[0] != '.')
			found = thread_has_child(pid, e->d_name, state);
	if (d)
		closedir(d);
	return found;
}

static void image_path(const struct agent *a, uint32_t process, char *path, size_t cap)
{
	snprintf(path, cap, "%s/" JOB_IMAGE_NAME, a->ckpt.folder,
		 a->setup.flags & SETUP_STORE_ALL
		     ? process
		     : living_rank_of(process, a->setup.nranks / a->setup.degree));
}

/* Of replicas the leader's image is that of their rank. The head has said who lives before it asks
 * for a checkpoint, so all nodes and the head itself mean the same process. */
static bool writes_image(const struct agent *a, uint32_t process)
{
	uint32_t n = a->setup.nranks / a->setup.degree;

	if (a->setup.flags & SETUP_STORE_ALL)
		return true;
	for (uint32_t p = living_rank_of(process, n); p < process; p += n)
		if (!atomic_load(&segment_mailbox(a->view.segment, p)->lost))
			return false;
	return true;
}

static bool was_asked_for_image(const struct agent *a, uint32_t process)
{
	return !(atomic_load(&agent_mailbox(a, process)->ckpt_flags) & CKPT_NO_IMAGE);
}

/* One that has given all of its image to the kernel waits until the disk has it, in one call. */
static bool writer_waits_for_disk(const struct agent *a, const struct agent_rank *k)
{
	return k->pid > 0 && k->resumed && !k->written &&
	       was_asked_for_image(a, (uint32_t)(k - a->ranks)) && has_child(k->member, 'D');
}

/* Twice in a row: what it said last may still have to be read here, and a list of children that
 * come and go may leave one out. */
static bool writer_is_missing(const struct agent *a, struct agent_rank *k)
{
	bool before = k->childless;

	k->childless = k->pid > 0 && k->resumed && !k->written &&
		       was_asked_for_image(a, (uint32_t)(k - a->ranks)) &&
		       !has_child(k->member, LIVING);
	return before && k->childless;
}

/* Who is at it says so in its mailbox. Others are asked again: a signal that found no room in the
 * queue of its process (getrlimit(2), RLIMIT_SIGPENDING) is gone. */
static bool is_silent(struct agent *a, uint32_t rank)
{
	if (a->ranks[rank].pid == 0 || a->ranks[rank].resumed ||
	    atomic_load(&agent_mailbox(a, rank)->state) == RANK_CHECKPOINTING)
		return false;
	agent_signal_member(a, rank, PROTO_CKPT_SIGNAL);
	mailbox_ring_slow(agent_mailbox(a, rank));
	return true;
}

/* A rank that is waited for, and that stands still by a signal or a debugger. */
static bool is_halted(const struct agent_rank *k)
{
	char state;

	if (k->pid == 0 || k->member <= 0 || k->resumed)
		return false;
	state = agent_process_state(agent_thread_of(k->member));
	return state == 'T' || state == 't';
}

static void look(void *arg)
{
	struct agent *a = arg;
	uint32_t halted[HALTED_MAX];
	struct message m = {.type = MSG_PROGRESS, .id = a->ckpt.id};
	char path[PATH_MAX + 32];
	struct stat st;

	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		struct agent_rank *k = &a->ranks[r];

		if (!agent_has(a, r))
			continue;
		image_path(a, r, path, sizeof(path));
		if (was_asked_for_image(a, r) && stat(path, &st) == 0)
			m.number += (uint64_t)st.st_size;
		if (writer_is_missing(a, k))
			m.flags |= PROGRESS_IDLE;
		if (writer_waits_for_disk(a, k))
			m.flags |= PROGRESS_DISK;
		if (is_silent(a, r)) {
			m.flags |= PROGRESS_SILENT;
			m.rank = r;
		}
		if (m.len < sizeof(halted) && is_halted(k)) {
			halted[m.len / sizeof(*halted)] = r;
			m.len += sizeof(*halted);
		}
	}
	m.bytes = halted;
	agent_send(a, &m);
	loop_timer_set(&a->loop, &a->ckpt.look, LOOK_SECONDS, look, a);
}

static uint64_t inode_of(const char *folder)
{
	struct stat st;

	return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) ? st.st_ino : 0;
}

/* ---- asking ---- */

/* An agent before this one has begun it, and died before that was written down: its ranks are at
 * it. */
static bool was_asked(const struct agent *a, uint32_t id)
{
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_has(a, r) && atomic_load(&agent_mailbox(a, r)->ckpt_wanted) == id)
			return true;
	return false;
}

void agent_ckpt_start(struct agent *a, const struct message *m)
{
	uint32_t flags = m->flags;

	if (!a->view.segment)
		return;
	a->ckpt.id = a->last_id = m->id;
	a->ckpt.local = !m->text[0] && a->setup.local[0];
	if (a->ckpt.local && was_asked(a, m->id))
		agent_copies_path(a, m->id, a->ckpt.folder, sizeof(a->ckpt.folder));
	else if (a->ckpt.local)
		agent_copies_folder(a, m->id, a->ckpt.folder, sizeof(a->ckpt.folder));
	else
		snprintf(a->ckpt.folder, sizeof(a->ckpt.folder), "%s", m->text);
	a->ckpt.inode = a->ckpt.local ? 0 : inode_of(a->ckpt.folder);
	if (ranks_share(a))
		flags |= CKPT_TOGETHER;
	atomic_store(&a->view.segment->together, (uint64_t)m->id << 32 | ranks_asked(a));
	/* every mailbox before the first signal: a fast rank rings its peers */
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		struct mailbox *box = agent_mailbox(a, r);

		if (!agent_has(a, r))
			continue;
		a->ranks[r].resumed = a->ranks[r].written = a->ranks[r].childless = false;
		/* store_open has seen to it that it fits */
		image_path(a, r, box->ckpt_path, sizeof(box->ckpt_path));
		atomic_store(&box->ckpt_base, m->base);
		atomic_store(&box->ckpt_flags, flags | (writes_image(a, r) ? 0 : CKPT_NO_IMAGE));
	}
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		if (a->ranks[r].pid == 0)
			continue;
		atomic_store(&agent_mailbox(a, r)->ckpt_wanted, m->id);
		agent_signal_member(a, r, PROTO_CKPT_SIGNAL);
		mailbox_ring_slow(agent_mailbox(a, r));
	}
	loop_timer_set(&a->loop, &a->ckpt.look, LOOK_FIRST_SECONDS, look, a);
}

void agent_ckpt_again(struct agent *a)
{
	loop_timer_set(&a->loop, &a->ckpt.look, LOOK_FIRST_SECONDS, look, a);
}

void agent_ckpt_take(struct agent *a, uint32_t rank, const struct proto_ckpt *p)
{
	if (p->id != a->ckpt.id)
		return;
	a->ranks[rank].resumed |= p->type == PROTO_CKPT_RESUMED;
	a->ranks[rank].written |= p->type == PROTO_CKPT_WRITTEN;
}

void agent_ckpt_over(struct agent *a)
{
	a->ckpt.id = 0;
	loop_timer_clear(&a->loop, &a->ckpt.look);
}

void agent_ckpt_cancel(struct agent *a, uint32_t id)
{
	if (a->ckpt.id == id && a->ckpt.local)
		agent_copies_discard(a, id);
	agent_ckpt_over(a);
	for (uint32_t r = 0; a->view.segment && r < a->setup.nranks; r++) {
		if (!agent_has(a, r))
			continue;
		atomic_store(&agent_mailbox(a, r)->ckpt_cancelled, id);
		mailbox_ring_slow(agent_mailbox(a, r));
	}
}

/* Without a manifest they are nothing, and go when something newer is kept. */
void agent_ckpt_orphan(struct agent *a)
{
	if (a->ckpt.id == 0)
		return;
	a->ckpt.local = false;
	agent_ckpt_cancel(a, a->ckpt.id);
}

/* The folder had another name if the checkpoint were complete. One of that name that another head
 * has made since is another one. */
void agent_ckpt_forget(const struct agent *a)
{
	const struct agent_ckpt *c = &a->ckpt;
	size_t len = strlen(c->folder);

	if (len > 4 && strcmp(c->folder + len - 4, ".tmp") == 0 && c->inode != 0 &&
	    inode_of(c->folder) == c->inode)
		store_remove_folder(c->folder);
}

static void ring_all(struct agent *a)
{
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_has(a, r))
			mailbox_ring_slow(agent_mailbox(a, r));
}

void agent_ckpt_on(struct agent *a, uint32_t id, uint32_t stage)
{
	uint64_t word = (uint64_t)id << 32 | stage;

	if (!a->view.segment || atomic_load(&a->view.segment->across) >= word)
		return;
	atomic_store(&a->view.segment->across, word);
	ring_all(a);
}

void agent_ckpt_back(struct agent *a, uint32_t generation)
{
	if (!a->view.segment || a->view.segment->generation != generation ||
	    atomic_exchange(&a->view.segment->all_back, 1))
		return;
	ring_all(a);
	agent_conns_back(a);
}

/* Asks of HALE_Checkpoint() that came to nothing: they are counted in each mailbox. */
void agent_ckpt_refuse_all(struct agent *a)
{
	for (uint32_t r = 0; a->view.segment && r < a->setup.nranks; r++) {
		if (!agent_has(a, r))
			continue;
		atomic_fetch_add(&agent_mailbox(a, r)->ckpt_refused, 1);
		mailbox_ring_slow(agent_mailbox(a, r));
	}
}

/* ---- faults at a call ---- */

void agent_inject(struct agent *a, const struct message *m)
{
	struct mailbox *box;

	if (!a->view.segment || !agent_has(a, m->rank))
		return;
	box = agent_mailbox(a, m->rank);
	if (strncmp(m->text, "flip:", 5) == 0) {
		agent_flip(a, m);
		return;
	}
	atomic_store(&box->inject_armed, 0);
	snprintf(box->inject_call, sizeof(box->inject_call), "%s", m->text);
	atomic_store(&box->inject_count, m->number);
	atomic_store(&box->inject_signal, m->flags);
	atomic_store(&box->inject_armed, 1);
	/* makes it look into its mailbox */
	agent_signal_member(a, m->rank, PROTO_CKPT_SIGNAL);
	mailbox_ring_slow(box);
}

/* Tasks look by themselves when they begin. */
void agent_task_due(struct agent *a, const struct message *m)
{
	for (uint32_t r = 0; a->view.segment && r < a->setup.nranks; r++) {
		struct mailbox *box = agent_mailbox(a, r);

		if (!agent_has(a, r))
			continue;
		atomic_store(&box->due_number, 0);
		snprintf(box->task_due, sizeof(box->task_due), "%s", m->text);
		atomic_store(&box->due_number, (uint32_t)m->number);
	}
}
