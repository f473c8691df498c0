/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's segment and its ranks: starting them, watching them, signals. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/memory.h"
#include "agent/agent_private.h"
#include "image/image.h"
#include "launch/environment.h"
#include "launch/program.h"
#include "node/living.h"

static void stream_send(void *arg, const struct stream *s, const void *bytes, size_t len)
{
	agent_kept_add(arg, s->rank, s->which, bytes, len);
	agent_send(arg, &(struct message){.type = MSG_OUTPUT,
					  .rank = s->rank,
					  .value = s->which,
					  .bytes = bytes,
					  .len = len});
}

static void stream_taken(void *arg)
{
	agent_written(arg);
}

static void stream_closed(void *arg, const struct stream *s)
{
	agent_drop_later(arg, HOLD_OUT, 2ull * s->rank + (uint64_t)s->which - 1);
}

hale_status_t agent_ranks_create(struct agent *a, struct error *err)
{
	uint32_t nranks = a->setup.nranks;

	a->ranks = calloc(nranks, sizeof(*a->ranks));
	if (!a->ranks)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", nranks);
	for (uint32_t r = 0; r < nranks; r++) {
		struct agent_rank *k = &a->ranks[r];

		k->rank = r;
		for (int i = 0; i < 2; i++) {
			stream_init(&k->out[i], &a->loop, &a->streams.window[i], r, i + 1);
			k->out[i].send = stream_send;
			k->out[i].taken = stream_taken;
			k->out[i].closed = stream_closed;
			k->out[i].book = a->supervisor.book;
			k->out[i].pieces = &a->done.pieces;
			k->out[i].arg = a;
		}
	}
	return HALE_OK;
}

static void segment_drop(struct agent *a)
{
	if (a->view.segment)
		munmap(a->view.segment, a->view.segment->bytes);
	if (a->view.segment_fd >= 0) {
		close(a->view.segment_fd);
		agent_drop_later(a, HOLD_SEGMENT, a->view.generation);
	}
	a->view.segment = NULL;
	a->view.segment_fd = -1;
}

void agent_ranks_destroy(struct agent *a)
{
	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		for (int i = 0; i < 2; i++)
			stream_fini(&a->ranks[r].out[i]);
	stdin_sink_close(&a->streams.stdin_sink);
	segment_drop(a);
	pin_plan_fini(&a->machine.pin);
	agent_weights_end(a);
	free(a->view.node_of);
	free(a->machine.of);
	free(a->ranks);
	a->view.node_of = a->machine.of = NULL;
	a->ranks = NULL;
}

/* ---- layout ---- */

/* Each rank needs two pipes and a connection here. */
static hale_status_t check_descriptors(uint32_t nranks, struct error *err)
{
	struct rlimit limit;
	rlim_t wanted = 4 * (rlim_t)nranks + 64;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return HALE_OK;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted)
		return error_set(
		    err, HALE_ERR_SYSTEM,
		    "%u ranks need %lu open files in hale, and the limit is %lu; raise "
		    "it with ulimit -n",
		    nranks, (unsigned long)wanted, (unsigned long)limit.rlim_max);
	return HALE_OK;
}

/* A rank that does nothing yet takes about 4 MiB with its libraries' private pages, and uses about
 * 1 of its part of the node's segment, most of which is only room. */
static hale_status_t check_memory(uint32_t nranks, struct error *err)
{
	enum { RANK_BYTES = 5 << 20 };
	char wanted[16], there[16];
	uint64_t need = (uint64_t)nranks * RANK_BYTES;
	struct memory_room room;

	if (!memory_look("", &room) || need <= room.available)
		return HALE_OK;
	return error_set(err, HALE_ERR_MEMORY,
			 "%u ranks need at least %s of memory, and %s are free; start fewer",
			 nranks, units_show_bytes(need, wanted),
			 units_show_bytes(room.available, there));
}

static hale_status_t segment_make(struct agent *a, struct error *err)
{
	size_t bytes = segment_bytes(a->setup.nranks);
	void *at;

	a->view.segment_fd = memfd_create("hale-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (a->view.segment_fd < 0 || ftruncate(a->view.segment_fd, (off_t)bytes) != 0 ||
	    fcntl(a->view.segment_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return error_sys(err, HALE_ERR_MEMORY, "cannot make the shared segment");
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		  a->view.segment_fd, 0);
	if (at == MAP_FAILED)
		return error_sys(err, HALE_ERR_MEMORY, "cannot map the shared segment");
	a->view.segment = at;
	supervisor_hold(&a->supervisor, HOLD_SEGMENT, a->view.generation, a->view.segment_fd);
	return HALE_OK;
}

void agent_machines(struct agent *a, const struct message *m)
{
	uint32_t *machine_of = malloc(m->len ? m->len : 1);

	if (!machine_of || m->len % sizeof(*machine_of) != 0) {
		free(machine_of);
		return;
	}
	memcpy(machine_of, m->bytes, m->len);
	free(a->machine.of);
	a->machine.of = machine_of;
	a->machine.nodes = (uint32_t)(m->len / sizeof(*machine_of));
	if (a->machine.nodes > JOB_NODES_MAX)
		return;
	memcpy(a->supervisor.book->machine_of, machine_of, m->len);
	a->supervisor.book->machines = a->machine.nodes;
}

/* Ranks of the job on this machine, which several nodes may be. */
static uint32_t crowd(const struct agent *a)
{
	uint32_t me = a->setup.node, many = 0;

	if (a->setup.flags & SETUP_TOGETHER)
		return agent_processes(a);
	/* a successor may begin before it is known who lives where */
	if (!a->view.node_of || me >= a->machine.nodes || a->machine.of[me] == 0)
		return a->view.here;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		many += a->view.node_of[r] < a->machine.nodes &&
			a->machine.of[a->view.node_of[r]] == a->machine.of[me];
	return many;
}

/* Several nodes on one machine have a share of its cores each. */
static uint32_t cores_here(const struct agent *a)
{
	uint64_t cores = a->machine.pin.cores;

	if (a->setup.flags & SETUP_TOGETHER)
		cores = cores * a->view.here / agent_processes(a);
	return cores ? (uint32_t)cores : 1;
}

/* Which processes the program's first MPI_COMM_WORLD has; NULL: all, none is in reserve for
 * MPI_Comm_spawn. */
static const char *first_world(const struct agent *a)
{
	const char *text = NULL;

	for (char *const *e = a->setup.exports; e && *e; e++)
		if (strncmp(*e, "HALE_WORLD=", 11) == 0)
			text = *e + 11;
	return text;
}

static bool is_reserved(const struct agent *a, uint32_t rank)
{
	const char *world = first_world(a);

	return world && !spawn_world_has(world, rank);
}

static uint32_t world_size(const struct agent *a)
{
	const char *world = first_world(a);
	uint32_t first, last, n = 0;

	if (!world)
		return a->setup.nranks / a->setup.degree;
	while (spawn_world_run(&world, &first, &last))
		n += last - first + 1;
	return n;
}

/* Of those that compute in the beginning, how many do so here. */
static uint32_t world_here(const struct agent *a)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < a->setup.nranks; r++)
		n += !is_reserved(a, r) && agent_has(a, r);
	return n;
}

static hale_status_t segment_fill(struct agent *a, struct error *err)
{
	unsigned char *here = calloc(a->setup.nranks, 2), *lost = here + a->setup.nranks;

	if (!here)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		here[r] = agent_has(a, r);
		lost[r] = a->view.node_of[r] == LIVING_NOWHERE;
	}
	segment_layout(a->view.segment, a->setup.nranks, cores_here(a), a->view.generation);
	a->view.segment->degree = a->setup.degree;
	a->view.segment->shadows = a->setup.shadows;
	a->view.segment->audits = (a->setup.flags & SETUP_AUDITS) != 0;
	a->view.segment->shadow_rate = agent_shadow_rate(a);
	if (a->setup.shadow_rate == 0 && agent_weights_begin(a, a->view.segment->shadow_rate)) {
		a->view.segment->shadow_rate = 0;
		a->view.segment->shadow_weighed = 1;
	}
	segment_view_first(a->view.segment, lost, a->replicas_view);
	segment_place(a->view.segment, here, crowd(a));
	if (first_world(a)) /* processes in reserve sleep */
		a->view.segment->oversubscribed = world_here(a) > cores_here(a);
	else if (crowd(a) >
		 a->machine.pin.cores) /* a share of less than a core was rounded up to one */
		a->view.segment->oversubscribed = 1;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (is_reserved(a, r))
			atomic_store(&segment_spawn_room(a->view.segment, r)->state,
				     SPAWN_STARTING);
	segment_secret_put(a->view.segment, a->setup.secret);
	a->view.segment->one_host = (a->setup.flags & SETUP_LOCAL) != 0;
	a->view.segment->net_encrypt = (a->setup.flags & SETUP_ENCRYPT) != 0;
	if (a->setup.flags & SETUP_NAMED)
		snprintf(a->view.segment->node, sizeof(a->view.segment->node), "%s", a->setup.name);
	free(here);
	return HALE_OK;
}

static void plan_pins(struct agent *a, uint32_t before)
{
	bool together = (a->setup.flags & SETUP_TOGETHER) != 0;
	uint32_t many = crowd(a);
	bind_to_t how = (bind_to_t)a->setup.bind;

	if (a->machine.pin.cores &&
	    (together || (before == a->view.here && many == a->machine.crowd)))
		return;
	if (!together && many > a->view.here &&
	    how == BIND_DEFAULT) /* others would get the same cores */
		how = BIND_NONE;
	a->machine.crowd = many;
	pin_plan_fini(&a->machine.pin);
	pin_plan_make(&a->machine.pin, agent_units(a), how);
}

void agent_pins(struct agent *a)
{
	plan_pins(a, a->view.here);
}

/* Where in the book the next layout is written down: not where one is that may still be needed. */
static int free_slot(const struct agent *a)
{
	const struct agent_move *v = &a->move;
	int slot = 0;

	while (slot == a->view.slot || slot == v->coming.slot || slot == v->old.slot)
		slot++;
	return slot % BOOK_VIEWS;
}

void agent_view_write(struct agent *a, uint32_t generation, const uint32_t *node_of)
{
	struct book_view *v;
	int slot = free_slot(a);

	v = &a->supervisor.book->views[slot];
	v->generation = generation;
	memcpy(v->node_of, node_of, a->setup.nranks * sizeof(*node_of));
	a->view.slot = slot;
}

static hale_status_t layout(struct agent *a, uint32_t generation, const uint32_t *node_of,
			    uint32_t before, struct error *err)
{
	uint32_t nranks = a->setup.nranks;
	hale_status_t status;

	if (!a->view.node_of)
		a->view.node_of = calloc(nranks, sizeof(*a->view.node_of));
	if (!a->view.node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", nranks);
	memcpy(a->view.node_of, node_of, nranks * sizeof(*node_of));
	agent_view_write(a, generation, node_of);
	a->view.generation = generation;
	a->view.here = 0;
	for (uint32_t r = 0; r < nranks; r++)
		a->view.here += agent_has(a, r);
	if (a->view.here == 0)
		return HALE_OK;
	status = check_descriptors(a->view.here, err);
	if (status == HALE_OK && before != a->view.here)
		status = check_memory(
		    a->setup.flags & SETUP_TOGETHER ? agent_processes(a) : a->view.here, err);
	if (status == HALE_OK)
		status = segment_make(a, err);
	plan_pins(a, before);
	return a->view.segment ? segment_fill(a, err) : status;
}

hale_status_t agent_layout(struct agent *a, uint32_t generation, const uint32_t *node_of,
			   struct error *err)
{
	segment_drop(a);
	a->replicas_view = 0; /* all processes begin, or begin again */
	a->streams.found_count = 0;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		a->ranks[r].spawned = a->ranks[r].ended = a->ranks[r].aborted = a->ranks[r].late =
		    a->ranks[r].stopped = false;
	return layout(a, generation, node_of, a->view.here, err);
}

void agent_view_swap(struct agent *a, struct agent_view *v)
{
	struct agent_view now = a->view;

	a->view = *v;
	*v = now;
}

void agent_view_drop(struct agent *a, struct agent_view *v)
{
	if (v->segment)
		munmap(v->segment, v->segment->bytes);
	if (v->segment_fd >= 0) {
		close(v->segment_fd);
		if (v->generation != a->view.generation) /* else it is that of now, shared */
			agent_drop_later(a, HOLD_SEGMENT, v->generation);
	}
	free(v->node_of);
	*v = (struct agent_view){.segment_fd = -1, .slot = -1};
}

hale_status_t agent_layout_beside(struct agent *a, uint32_t generation, const uint32_t *node_of,
				  struct agent_view *v, struct error *err)
{
	uint32_t before = a->view.here;
	hale_status_t status;

	*v = (struct agent_view){.segment_fd = -1, .slot = -1};
	agent_view_swap(a, v);
	status = layout(a, generation, node_of, before, err);
	agent_view_swap(a, v);
	return status;
}

/* ---- starting ---- */

/* Its pipes are the streams' from now on. */
static hale_status_t open_streams(struct agent *a, uint32_t rank, const uint64_t position[3],
				  const int fd[3], struct error *err)
{
	struct agent_rank *r = &a->ranks[rank];
	struct mailbox *m = agent_mailbox(a, rank);
	bool good = fd[0] < 0 || stdin_sink_open(&a->streams.stdin_sink, fd[0], m, position[0]);

	for (int i = 0; i < 2; i++)
		good = (fd[i + 1] >= 0 && stream_open(&r->out[i], fd[i + 1], m, position[i + 1])) &&
		       good;
	/* those before them had the same names */
	for (int i = 0; i < 2; i++)
		agent_drop_not(a, HOLD_OUT, 2ull * rank + (uint64_t)i);
	if (rank == 0)
		agent_drop_not(a, HOLD_INPUT, 0);
	return good ? HALE_OK
		    : error_sys(err, HALE_ERR_SYSTEM, "cannot wait for the pipes of rank %u", rank);
}

static const char *own_libdir(struct agent *a, struct error *err)
{
	if (!a->machine.libdir[0] && environment_find_libdir(a->machine.libdir, err) != HALE_OK)
		a->machine.libdir[0] = '\0';
	return a->machine.libdir[0] ? a->machine.libdir : NULL;
}

char **agent_environment(struct agent *a, uint32_t rank, const char *sink, struct error *err)
{
	const struct setup *s = &a->setup;
	uint32_t local_rank = 0;
	char **env;

	for (uint32_t r = 0; r < rank; r++)
		local_rank += agent_has(a, r);
	struct environment_params p = {
	    .inherited = s->environ,
	    .exports = s->exports,
	    .libdir = own_libdir(a, err),
	    .preload_mpi = program_mpi_library((s->flags & SETUP_PRELOAD_MPI) / SETUP_PRELOAD_ONE),
	    .agent = a->door.address,
	    .token = a->door.token,
	    .job = s->job,
	    .rank = living_rank_of(rank, s->nranks / s->degree),
	    .nranks = world_size(a),
	    .process = rank,
	    .degree = s->degree,
	    .local_rank = local_rank,
	    .local_size = a->view.here,
	    .no_mpi = s->flags & SETUP_NO_MPI,
	    .sink = sink};
	if (!p.libdir)
		return NULL;
	env = environment_make(&p);
	if (!env)
		error_set(err, HALE_ERR_MEMORY, "out of memory");
	return env;
}

void agent_environment_free(char **env)
{
	environment_free(env);
}

static const cpu_set_t *cpus_of(const struct agent *a, uint32_t rank)
{
	uint32_t index = 0;

	if (!a->machine.pin.bound)
		return NULL;
	if (a->setup.shadows)
		return &a->machine.pin.sets[agent_unit_of(a, rank)];
	if (a->setup.flags & SETUP_TOGETHER)
		return &a->machine.pin.sets[rank];
	for (uint32_t r = 0; r < rank; r++)
		index += agent_has(a, r);
	return &a->machine.pin.sets[index];
}

static bool still_leased(void *arg)
{
	return agent_lease_holds(arg);
}

/* Of the newest image that it is to become: "full:PATH=SUM:…". */
static pid_t id_in_image(const char *sink)
{
	struct image_info info;
	struct error err;
	char path[PATH_MAX + 32];
	const char *begin = strchr(sink, ':'), *end;

	if (strncmp(sink, "full:", 5) != 0 && strncmp(sink, "lazy:", 5) != 0)
		return 0;
	end = begin + 1 + strcspn(begin + 1, ":");
	while (end > begin && *end != '=')
		end--;
	if (end <= begin || (size_t)(end - begin) > sizeof(path))
		return 0;
	snprintf(path, sizeof(path), "%.*s", (int)(end - begin - 1), begin + 1);
	return image_read_info(path, &info, &err) == HALE_OK ? info.pid : 0;
}

enum { FIRST_GENERATION = 1 };

/* Where another node has had the rank it may not know yet that it is lost, and may be on this
 * machine: what it does then to the processes that it had must not strike the new ones. So a rank
 * has its id again where its last process was this node's, when a job begins from an image, and
 * when no node of before is left. */
static pid_t id_of(const struct agent *a, uint32_t rank, const char *sink)
{
	pid_t last = atomic_load(&a->supervisor.book->child[rank].pid), id;
	bool alone = a->view.generation == FIRST_GENERATION || a->setup.flags & SETUP_HEIR;

	if (last == 0 && !alone)
		return 0;
	id = id_in_image(sink);
	return id == last || alone ? id : 0;
}

hale_status_t agent_spawn_rank(struct agent *a, const struct message *m, struct error *err)
{
	struct agent_rank *r = &a->ranks[m->rank];
	char **env;
	struct supervisor_launch l = {.rank = m->rank,
				      .number = a->done.frames + 1,
				      .path = m->text,
				      .wdir = a->setup.wdir[0] ? a->setup.wdir : NULL,
				      .argv = a->setup.argv,
				      .cpus = cpus_of(a, m->rank),
				      .id = id_of(a, m->rank, m->name),
				      .input = m->rank == 0,
				      .stood = &r->stood};
	hale_status_t status;
	char reserve[PATH_MAX + 16], *reserve_argv[] = {"hale-reserve", NULL};
	int fd[3];

	if (!agent_lease_holds(a))
		return error_set(err, HALE_ERR_STATE, "this node has no lease to run ranks");
	env = agent_environment(a, m->rank, m->name[0] ? m->name : NULL, err);
	if (!env)
		return err->code;
	l.env = env;
	if (is_reserved(a, m->rank) && !m->name[0]) {
		snprintf(reserve, sizeof(reserve), "%s/hale-reserve", a->machine.libdir);
		l.path = reserve;
		l.argv = reserve_argv;
	}
	/* its streams are counted from there: before it can ask where they stand */
	for (int i = 0; i < 3; i++)
		atomic_store(&agent_mailbox(a, m->rank)->stream_taken[i], m->position[i]);
	status = supervisor_spawn(&a->supervisor, &l, &r->pid, fd, still_leased, a, err);
	environment_free(env);
	if (a->supervisor.control < 0)
		agent_ward_look(a);
	if (status != HALE_OK)
		return status;
	r->met = r->initialized = r->finalized = r->mpi = r->moved = r->halted = false;
	r->spawned = true;
	r->ended = r->aborted = r->late = r->stopped = false;
	r->member = 0;
	r->group = r->pid;
	agent_kept_begin(a, m->rank, m->position);
	agent_reap_soon(a);
	return open_streams(a, m->rank, m->position, fd, err);
}

/* --report-bindings */
static void say_pins(const struct agent *a, uint32_t rank)
{
	const cpu_set_t *cpus = cpus_of(a, rank);
	char text[200];

	if (a->setup.flags & SETUP_SAY_PINS)
		log_warn("rank %u on %s: %s%s", rank, a->setup.name, cpus ? "cores " : "not bound",
			 cpus ? pin_show(cpus, text, sizeof(text)) : "");
}

void agent_spawn(struct agent *a, const struct message *m)
{
	struct error err = {HALE_OK, ""};

	if (!agent_has(a, m->rank) || !a->view.segment || a->ranks[m->rank].pid > 0)
		error_set(&err, HALE_ERR_PROTOCOL, "rank %u is not to be started here", m->rank);
	else
		agent_spawn_rank(a, m, &err);
	if (err.code == HALE_OK)
		say_pins(a, m->rank);
	if (err.code == HALE_OK)
		agent_send(a, &(struct message){.type = MSG_SPAWNED,
						.rank = m->rank,
						.value = a->ranks[m->rank].pid,
						.flags = a->ranks[m->rank].stood});
	else
		agent_send(a, &(struct message){.type = MSG_NOT_SPAWNED,
						.rank = m->rank,
						.value = (int32_t)err.code,
						.text = err.text});
}

/* ---- watching ---- */

bool agent_group_is_strange(const struct agent *a, uint32_t rank)
{
	const struct book *b = a->supervisor.book;

	return atomic_load(&b->child[rank].group) == a->ranks[rank].group &&
	       supervisor_group_is_strange(b, rank);
}

void agent_signal(struct agent *a, uint32_t rank, int sig)
{
	if (a->ranks[rank].group > 0 && !agent_group_is_strange(a, rank))
		kill(-a->ranks[rank].group, sig);
}

void agent_signal_all(struct agent *a, int sig)
{
	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		agent_signal(a, r, sig);
}

/* The program itself, if a shell started it. */
void agent_signal_program(struct agent *a, uint32_t rank, int sig)
{
	const struct agent_rank *r = &a->ranks[rank];

	if (r->pid > 0)
		kill(r->member > 0 ? r->member : r->pid, sig);
}

void agent_signal_member(struct agent *a, uint32_t rank, int sig)
{
	pid_t pid = a->ranks[rank].member, thread = pid > 0 ? agent_thread_of(pid) : 0;

	/* to the main thread: a signal to the process might pick one that sleeps in a park */
	if (thread && (sig != PROTO_CKPT_SIGNAL || agent_hears(thread)))
		syscall(SYS_tgkill, pid, thread, sig);
}
