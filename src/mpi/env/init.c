/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the library in one process: MPI_Init to MPI_Finalize, and the questions about it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "deliver/redundant.h"
#include "mpi/abi/abi.h"
#include "mpi/comm/comm.h"
#include "mpi/env/env.h"
#include "rma/rma.h"

api_state_t api_state = API_BEFORE_INIT;

/* Open MPI's words for the same states; its Fortran library compares them (2 to 4: running). */
int ompi_mpi_state;
enum { OMPI_NOT_INITIALIZED = 0, OMPI_INITIALIZED = 2, OMPI_FINALIZED = 5 };

static const struct env_life *life;

void env_life_set(const struct env_life *l)
{
	life = l;
}

static int thread_level = MPI_THREAD_SINGLE;
static pthread_t main_thread;

void api_not_running(const char *function)
{
	if (api_state == API_FINALIZED)
		log_warn("%s was called after MPI_Finalize; move the call before it", function);
	else
		log_warn("%s was called before MPI_Init; call MPI_Init first", function);
	if (link_self()->connected && api_state != API_BEFORE_INIT)
		link_abort(1);
	exit(1);
}

void api_gate(const char *function)
{
	int gate = atomic_load(&call_gate);
	if (gate & CALL_GATE_CLOSED)
		api_not_running(function);
	if (gate & CALL_GATE_INJECT)
		inject_at_call(function);
}

/* From here on nothing can be told to an error handler: there is none yet. */
static void init_failed(const char *what, const char *why)
{
	log_warn("MPI_Init: %s%s%s", what, why ? ": " : "", why ? why : "");
	if (link_self()->connected)
		link_abort(1);
	exit(1);
}

/* In the order of the layers: each may use those before it. */
static void init_layers(void)
{
	struct error err = {0};

	if (link_open(&err) != HALE_OK)
		init_failed(err.text, NULL);
	static const struct {
		int (*init)(void);
		const char *what;
	} layer[] = {
	    {match_init, "messages could not be set up"},
	    {coll_init, "collective operations could not be set up"},
	    {comm_module_init, "MPI_COMM_WORLD could not be set up"},
	    {datatype_module_init, "datatypes could not be set up"},
	    {abi_init, "the Fortran handles could not be set up"},
	    {profile_init, "the counters could not be set up"},
	};
	for (size_t i = 0; i < ARRAY_LEN(layer); i++) {
		int rc = layer[i].init();

		if (rc == MPI_ERR_INTERN) /* which has said why */
			init_failed(layer[i].what, NULL);
		else if (rc != MPI_SUCCESS)
			init_failed(layer[i].what, "out of memory");
	}
}

/* ---- who holds the library open ---- */

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
static enum { LAYERS_NONE, LAYERS_UP, LAYERS_GONE } layers;
static int holders;		/* the world, and sessions */
static api_state_t world_state; /* of MPI_Init and MPI_Finalize */

/* Programs that have sessions only may not use these two. */
static void world_handles_close(bool closed)
{
	struct object *handles[] = {(struct object *)MPI_COMM_WORLD,
				    (struct object *)MPI_COMM_SELF};
	for (size_t i = 0; i < ARRAY_LEN(handles); i++)
		handles[i]->flags = closed ? handles[i]->flags | OBJECT_UNBORN
					   : handles[i]->flags & ~(uint32_t)OBJECT_UNBORN;
}

static bool forked; /* a child's exit is none of MPI's */
static void fork_noticed(void)
{
	forked = true;
}

/* A program that never called MPI_Init: all ranks wait for each other at their end, as in
 * MPI_Finalize, since a peer may still want something. */
static void sessions_over(void)
{
	if (forked || world_state != API_BEFORE_INIT || holders || layers != LAYERS_UP)
		return;
	fflush(NULL);
	guard_enter();
	coll_finish(COMM_WORLD, false);
	match_settle();
	link_mpi_finalized();
	guard_leave();
}

enum { LAST_WORDS_S = 10 };
static bool last_words_over(void *until)
{
	return match_settled() || clock_seconds() > *(double *)until;
}

/* Others may have ended after MPI_Finalize: what is still there for them, nobody misses. */
static void last_words(void)
{
	double until = clock_seconds() + LAST_WORDS_S;
	match_wait_until(last_words_over, &until);
}

static void layers_start(int required)
{
	log_init_from_env();
	guard_enter();
	init_layers();
	main_thread = pthread_self();
	/* its timer may interrupt the first thread only, which then must be the one that calls */
	rma_timer_allow(getpid() == gettid() && required != MPI_THREAD_SERIALIZED);
	layers = LAYERS_UP;
	api_state = API_RUNNING;
	link_mpi_initialized();
	profile_begin();
	life->init_end();
	world_handles_close(true); /* until MPI_Init is through */
	guard_leave();
}

static int level_given(int required)
{
	if (required < MPI_THREAD_SINGLE)
		return MPI_THREAD_SINGLE;
	if (required > MPI_THREAD_MULTIPLE)
		required = MPI_THREAD_MULTIPLE;
	if (!redundant_on || required < MPI_THREAD_MULTIPLE)
		return required;
	/* several threads send in an order that no other replica could follow */
	if (link_self()->process == 0)
		log_warn(
		    "MPI_THREAD_MULTIPLE is not given in a job with replicas, but "
		    "MPI_THREAD_SERIALIZED: with several threads in MPI at once replicas would "
		    "send in different orders");
	return MPI_THREAD_SERIALIZED;
}

int env_library_enter(int required, int *provided, const char *function)
{
	pthread_mutex_lock(&life_lock);
	if (layers == LAYERS_GONE) {
		pthread_mutex_unlock(&life_lock);
		log_warn("%s was called after MPI_Finalize, which has closed the library; open the "
			 "session before MPI_Finalize",
			 function);
		return MPI_ERR_OTHER;
	}
	bool first = layers == LAYERS_NONE;
	if (first)
		layers_start(required);
	holders++;
	api_state = API_RUNNING;
	atomic_fetch_and(&call_gate, ~CALL_GATE_CLOSED);
	*provided = level_given(required);
	/* Outside the guard: entering and leaving must agree about the lock. */
	if (*provided == MPI_THREAD_MULTIPLE)
		guard_multiple = true;
	pthread_mutex_unlock(&life_lock);
	return MPI_SUCCESS;
}

/* Nobody holds it any more; the guard is ours. */
static void library_close(void)
{
	api_state = API_FINALIZED;
	atomic_fetch_or(&call_gate, CALL_GATE_CLOSED);
}

/* Whoever has finalized the world is through with MPI now; others may open it again. */
void env_library_leave(void)
{
	static bool at_exit;

	pthread_mutex_lock(&life_lock);
	if (--holders) {
		pthread_mutex_unlock(&life_lock);
		return;
	}
	guard_enter();
	if (world_state == API_FINALIZED)
		last_words();
	library_close();
	if (world_state == API_FINALIZED && life->stays())
		life->rest_at_exit();
	else if (world_state == API_FINALIZED)
		link_mpi_finalized();
	guard_leave();
	if (world_state == API_BEFORE_INIT && !at_exit)
		at_exit =
		    atexit(sessions_over) == 0 && pthread_atfork(NULL, NULL, fork_noticed) == 0;
	guard_multiple = false;
	pthread_mutex_unlock(&life_lock);
}

static int init_at_level(int required, int *provided, const char *function)
{
	int given;

	if (world_state == API_RUNNING)
		return api_error(NULL, MPI_ERR_OTHER, function);
	if (world_state == API_FINALIZED) {
		log_warn("%s was called after MPI_Finalize; a program can do so only once",
			 function);
		exit(1);
	}
	env_library_enter(required, &given, function);
	world_handles_close(false);
	thread_level = given;
	world_state = API_RUNNING;
	ompi_mpi_state = OMPI_INITIALIZED;
	if (provided)
		*provided = given;
	return MPI_SUCCESS;
}

int PMPI_Init(int *argc, char ***argv)
{
	/* Open MPI lets the environment choose the level of a plain MPI_Init; some programs that
	 * start threads rely on it. */
	const char *level = getenv("OMPI_MPI_THREAD_LEVEL");
	int required = level ? atoi(level) : MPI_THREAD_SINGLE;

	return init_at_level(required, NULL, "MPI_Init");
}
API_ALIAS(Init);

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	return init_at_level(required, provided, "MPI_Init_thread");
}
API_ALIAS(Init_thread);

/* Who has a message of a spawned process in its way may have ended with the first world. */
static bool settled_or_over(void *arg)
{
	return match_settled() || life->job_ends();
}

/* The end of everything: nobody holds the library open. */
static void world_end(bool stays)
{
	if (stays) {
		match_wait_until(settled_or_over, NULL);
	} else {
		life->let_go();
		comm_module_fini();
		coll_fini();
		match_fini();
		layers = LAYERS_GONE;
	}
	library_close();
	if (stays)
		life->rest_at_exit();
	else
		link_mpi_finalized();
}

int PMPI_Finalize(void)
{
	if (world_state != API_RUNNING)
		api_not_running("MPI_Finalize");

	guard_enter();
	profile_end();
	/* Deletes MPI_COMM_SELF's attributes first (MPI-3.1 8.7.1: their callbacks are still in a
	 * running MPI), then waits until all ranks have come: nobody leaves while a peer may still
	 * want something from it, a rendezvous to read out of its memory for instance. */
	bool stays = life->stays();
	comm_module_leave(stays);
	world_state = API_FINALIZED;
	ompi_mpi_state = OMPI_FINALIZED;
	bool last = --holders == 0;
	if (last)
		world_end(stays);
	else
		world_handles_close(true);
	guard_leave();
	if (last)
		guard_multiple = false;
	return MPI_SUCCESS;
}
API_ALIAS(Finalize);

int PMPI_Initialized(int *flag)
{
	if (!flag)
		return env_error(MPI_ERR_ARG, "MPI_Initialized");
	*flag = world_state != API_BEFORE_INIT;
	return MPI_SUCCESS;
}
API_ALIAS(Initialized);

int PMPI_Finalized(int *flag)
{
	if (!flag)
		return env_error(MPI_ERR_ARG, "MPI_Finalized");
	*flag = world_state == API_FINALIZED;
	return MPI_SUCCESS;
}
API_ALIAS(Finalized);

int PMPI_Query_thread(int *provided)
{
	API_ENTER("MPI_Query_thread");
	if (!provided)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*provided = thread_level;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Query_thread);

int PMPI_Is_thread_main(int *flag)
{
	API_ENTER("MPI_Is_thread_main");
	if (!flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*flag = pthread_equal(pthread_self(), main_thread) != 0;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Is_thread_main);

int PMPI_Abort(MPI_Comm comm, int errorcode)
{
	API_ENTER("MPI_Abort");
	struct comm *c = comm_of(comm);
	/* Under hale run the agent says it, once for the job. */
	if (!link_self()->connected)
		log_warn("rank %u called MPI_Abort on %s with error code %d", link_self()->rank,
			 comm_ok(c) && c->name[0] ? c->name : "a communicator", errorcode);
	link_abort(errorcode);
}
API_ALIAS(Abort);

void api_gate_anytime(const char *function)
{
	if (atomic_load(&call_gate) & CALL_GATE_INJECT)
		inject_at_call(function);
}

int env_error(int cls, const char *function)
{
	if (api_state == API_RUNNING)
		return api_error(NULL, cls, function);
	log_warn("%s failed: %s", function, error_text(cls) ? error_text(cls) : "not valid");
	return cls;
}
