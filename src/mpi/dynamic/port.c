/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports: two groups of one job that have no communicator in common meet, by their leaders.
 *
 *   who connects ── {number, tag} ──▶ the port's process: waits in the port until it accepts,
 *                ◀──── an error class ──── or gets MPI_ERR_PORT: the port is, or gets, closed
 *
 * Calls are answered in the progress of the port's process, whatever MPI call that is in. Numbers
 * of ports are not used again, so a name that is old names no port. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fmt.h"
#include "channel/carry/carry.h"
#include "mpi/dynamic/dynamic.h"

enum {
	PORTS_MAX = 1024, /* open at a time */
	HANDSHAKE = 0x68616c65
};

/* Somebody who connects, and waits for the answer. */
struct port_caller {
	struct port_caller *next;
	struct request *request; /* the call while it comes; NULL: it is there */
	int process;
	int call[2]; /* number of the port, tag of the meeting */
};

struct port_open {
	struct port_open *next;
	int number;
	struct port_caller *first; /* in the order of arrival */
};

static struct port_open *open_ports;
static int ports_open, ports_made;
static struct port_caller *coming; /* calls whose bytes are under way */

static const char *job(void)
{
	const char *name = getenv("HALE_JOB");
	return name ? name : "alone";
}

/* "hale:JOB:PROCESS:NUMBER". False: it is no port of this job. */
static bool port_parse(const char *text, int *process, int *number)
{
	size_t n = strlen(job());
	if (!text || strncmp(text, "hale:", 5) != 0 || strncmp(text + 5, job(), n) != 0 ||
	    text[5 + n] != ':' || sscanf(text + 6 + n, "%d:%d", process, number) != 2)
		return false;
	return *process >= 0 && *process < (int)link_self()->nranks && *number >= 0;
}

/* Leaders meet by the messages of their job, so nobody outside of it can be reached. */
static void say_other_job(const char *text)
{
	if (text && strncmp(text, "hale:", 5) == 0)
		log_warn(
		    "MPI_Comm_connect: '%s' is no port of this job, which is %s; processes of "
		    "two jobs can't meet: start both programs in one, `hale run -n 1 A : -n 1 B`",
		    text, job());
}

/* Where the open port stands in the list; NULL: it is closed. */
static struct port_open **port_find(int number)
{
	for (struct port_open **at = &open_ports; *at; at = &(*at)->next)
		if ((*at)->number == number)
			return at;
	return NULL;
}

/* ---- calls ---- */

static void caller_answer(struct port_caller *c, int error)
{
	static const int answers[2] = {MPI_SUCCESS, MPI_ERR_PORT};
	struct request *r = NULL;
	if (match_isend(&answers[error != MPI_SUCCESS], 1, datatype_of(MPI_INT), c->process,
			TAG_ANSWER + c->call[1], world_all(), MATCH_STANDARD, &r))
		log_warn("process %d, which connects to a port, can't be answered", c->process);
	else
		match_request_free(r);
	heap_free(c);
}

/* A call has arrived: it waits in its port, or the port is closed. */
static void caller_arrive(struct port_caller *c)
{
	struct port_open **port = port_find(c->call[0]);
	if (!port) {
		caller_answer(c, MPI_ERR_PORT);
		return;
	}
	struct port_caller **at = &(*port)->first;
	while (*at)
		at = &(*at)->next;
	c->next = NULL;
	*at = c;
}

static int calls_progress(void)
{
	struct match_message *m;
	size_t bytes;
	int source, moved = 0;
	while (world_all() && match_take(world_all(), TAG_CALL, NULL, NULL, &m, &source, &bytes)) {
		struct port_caller *c = heap_calloc(1, sizeof(*c));
		if (!c || match_imrecv(c->call, 2, datatype_of(MPI_INT), m, &c->request)) {
			log_warn("there is no memory for a process that connects to a port");
			link_abort(70);
		}
		c->process = source;
		struct port_caller **at = &coming;
		while (*at)
			at = &(*at)->next;
		*at = c;
	}
	while (coming && coming->request->complete) {
		struct port_caller *c = coming;
		coming = c->next;
		match_request_free(c->request);
		c->request = NULL;
		caller_arrive(c);
		moved++;
	}
	return moved;
}

static void calls_listen(void)
{
	static bool listening;
	if (!listening)
		match_progress_hook(calls_progress);
	listening = true;
}

void port_carry(struct carry *c)
{
	carry_bytes(c, &ports_made, sizeof(ports_made));
	if (c->loading && ports_made > 0)
		calls_listen();
}

static bool available(const char *function)
{
	if (!world_all())
		log_warn("%s: a job with replicas has no ports", function);
	return world_all() != NULL;
}

int PMPI_Open_port(MPI_Info info, char *port_name)
{
	API_ENTER("MPI_Open_port");
	if (!port_name)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!available("MPI_Open_port"))
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	struct port_open *p = ports_open < PORTS_MAX ? heap_calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return API_FAIL(NULL, MPI_ERR_PORT);
	calls_listen();
	p->number = ports_made++;
	p->next = open_ports;
	open_ports = p;
	ports_open++;
	fmt_print(port_name, SPAWN_PORT_MAX, "hale:%s:%u:%d", job(), link_self()->rank, p->number);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Open_port);

int PMPI_Close_port(const char *port_name)
{
	API_ENTER("MPI_Close_port");
	int process, number;
	struct port_open **at = NULL;
	if (port_parse(port_name, &process, &number) && process == (int)link_self()->rank)
		at = port_find(number);
	if (!at)
		return API_FAIL(NULL, MPI_ERR_PORT);
	struct port_open *p = *at;
	*at = p->next;
	ports_open--;
	while (p->first) {
		struct port_caller *c = p->first;
		p->first = c->next;
		caller_answer(c, MPI_ERR_PORT);
	}
	heap_free(p);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Close_port);

/* ---- the two leaders ---- */

struct contact {
	int error, process, tag;
};

static bool is_called(void *number)
{
	struct port_open **at = port_find(*(int *)number);
	return !at || (*at)->first;
}

/* Waits for one who connects; it has chosen the tag of the meeting. */
static void accept_one(const char *port, struct contact *c)
{
	int number = -1;
	struct port_open **at = NULL;
	c->error = MPI_ERR_PORT;
	if (!port_parse(port, &c->process, &number) || c->process != (int)link_self()->rank ||
	    !port_find(number))
		return;
	if (!is_called(&number))
		match_wait_until(is_called, &number);
	at = port_find(number);
	if (!at) /* another thread has closed it */
		return;
	struct port_caller *caller = (*at)->first;
	(*at)->first = caller->next;
	c->process = caller->process;
	c->tag = caller->call[1];
	c->error = MPI_SUCCESS;
	caller_answer(caller, MPI_SUCCESS);
}

static void connect_one(const char *port, struct contact *c)
{
	int number, answer = MPI_SUCCESS;
	if (!port_parse(port, &c->process, &number)) {
		say_other_job(port);
		c->error = MPI_ERR_PORT;
		return;
	}
	calls_listen(); /* the port may be this process's own, and closed */
	c->tag = world_tag(c->process);
	int call[2] = {number, c->tag};
	c->error = match_send(call, 2, datatype_of(MPI_INT), c->process, TAG_CALL, world_all(),
			      MATCH_STANDARD);
	if (!c->error)
		c->error =
		    match_recv(&answer, 1, datatype_of(MPI_INT), c->process, TAG_ANSWER + c->tag,
			       world_all(), MATCH_STANDARD, MPI_STATUS_IGNORE);
	if (!c->error)
		c->error = answer;
}

static int meet_at_port(const char *port, int root, struct comm *c,
			void (*one)(const char *port, struct contact *c), struct comm **out)
{
	struct contact k = {0};
	if (c->rank == root)
		one(port, &k);
	int rc = coll_bcast(&k, sizeof(k) / sizeof(int), datatype_of(MPI_INT), root, c);
	if (!rc)
		rc = k.error;
	return rc ? rc : intercomm_meet(c, root, world_all(), k.process, k.tag, out);
}

static int check_local(struct comm *c, int root, const char *function)
{
	if (!comm_ok(c) || comm_is_inter(c))
		return MPI_ERR_COMM;
	if (check_root(root, c))
		return MPI_ERR_ROOT;
	return available(function) ? MPI_SUCCESS : MPI_ERR_UNSUPPORTED_OPERATION;
}

int PMPI_Comm_accept(const char *port_name, MPI_Info info, int root, MPI_Comm comm,
		     MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_accept");
	struct comm *c = comm_of(comm), *out = NULL;
	int rc = check_local(c, root, "MPI_Comm_accept");
	if (rc || !newcomm)
		return API_FAIL(comm_ok(c) ? c : NULL, rc ? rc : MPI_ERR_ARG);
	*newcomm = MPI_COMM_NULL;
	rc = meet_at_port(port_name, root, c, accept_one, &out);
	if (!rc)
		*newcomm = comm_handle(out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_accept);

int PMPI_Comm_connect(const char *port_name, MPI_Info info, int root, MPI_Comm comm,
		      MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_connect");
	struct comm *c = comm_of(comm), *out = NULL;
	int rc = check_local(c, root, "MPI_Comm_connect");
	if (rc || !newcomm)
		return API_FAIL(comm_ok(c) ? c : NULL, rc ? rc : MPI_ERR_ARG);
	*newcomm = MPI_COMM_NULL;
	rc = meet_at_port(port_name, root, c, connect_one, &out);
	if (!rc)
		*newcomm = comm_handle(out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_connect);

/* ---- MPI_Comm_join ---- */

struct handshake {
	int magic, process, tag;
	char job[64];
};

static bool swap(int fd, const struct handshake *mine, struct handshake *theirs)
{
	size_t done = 0;
	if (write(fd, mine, sizeof(*mine)) != (ssize_t)sizeof(*mine))
		return false;
	while (done < sizeof(*theirs)) {
		ssize_t n = read(fd, (char *)theirs + done, sizeof(*theirs) - done);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return theirs->magic == HANDSHAKE;
}

static int join(const struct handshake *mine, const struct handshake *theirs, struct comm **out)
{
	if (strcmp(mine->job, theirs->job) != 0) {
		log_warn("MPI_Comm_join: the other process is of another job (%.60s); this "
			 "version joins processes of one job",
			 theirs->job);
		return MPI_ERR_UNSUPPORTED_OPERATION;
	}
	return intercomm_meet(COMM_SELF, 0, world_all(), theirs->process,
			      mine->process < theirs->process ? mine->tag : theirs->tag, out);
}

int PMPI_Comm_join(int fd, MPI_Comm *intercomm)
{
	API_ENTER("MPI_Comm_join");
	struct handshake mine = {.magic = HANDSHAKE, .process = (int)link_self()->rank}, theirs;
	struct comm *out = NULL;
	if (!intercomm)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*intercomm = MPI_COMM_NULL;
	if (!available("MPI_Comm_join"))
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	mine.tag = world_tag((int)link_self()->nranks); /* marked as of the lower process */
	fmt_print(mine.job, sizeof(mine.job), "%s", job());
	/* the other side may come late: a checkpoint need not wait for it */
	guard_leave();
	bool met = swap(fd, &mine, &theirs);
	guard_enter();
	theirs.job[sizeof(theirs.job) - 1] = '\0';
	int rc = met ? join(&mine, &theirs, &out) : MPI_ERR_OTHER;
	if (!rc)
		*intercomm = comm_handle(out);
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Comm_join);
