/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports: two groups of one job that have no communicator in common meet, by their leaders. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fmt.h"
#include "mpi/dynamic/dynamic.h"

enum { PORTS_MAX = 1024, TAG_PORTS = 1 << 26, HANDSHAKE = 0x68616c65 };

static bool open_ports[PORTS_MAX];

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
	return *process >= 0 && *process < (int)link_self()->nranks && *number >= 0 &&
	       *number < PORTS_MAX;
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
	int number = 0;
	if (!port_name)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!available("MPI_Open_port"))
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	while (number < PORTS_MAX && open_ports[number])
		number++;
	if (number == PORTS_MAX)
		return API_FAIL(NULL, MPI_ERR_PORT);
	open_ports[number] = true;
	fmt_print(port_name, SPAWN_PORT_MAX, "hale:%s:%u:%d", job(), link_self()->rank, number);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Open_port);

int PMPI_Close_port(const char *port_name)
{
	API_ENTER("MPI_Close_port");
	int process, number;
	if (!port_parse(port_name, &process, &number) || process != (int)link_self()->rank ||
	    !open_ports[number])
		return API_FAIL(NULL, MPI_ERR_PORT);
	open_ports[number] = false;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Close_port);

/* ---- the two leaders ---- */

struct contact {
	int error, process, tag;
};

/* Waits for one who connects; it has chosen the tag of the meeting. */
static void accept_one(const char *port, struct contact *c)
{
	int number, words[2];
	MPI_Status status;
	if (!port_parse(port, &c->process, &number) || c->process != (int)link_self()->rank ||
	    !open_ports[number]) {
		c->error = MPI_ERR_PORT;
		return;
	}
	c->error = match_recv(words, 2, datatype_of(MPI_INT), MPI_ANY_SOURCE, TAG_PORTS + number,
			      world_all(), MATCH_STANDARD, &status);
	c->process = words[0];
	c->tag = words[1];
}

static void connect_one(const char *port, struct contact *c)
{
	int number;
	if (!port_parse(port, &c->process, &number)) {
		c->error = MPI_ERR_PORT;
		return;
	}
	c->tag = world_tag(c->process);
	int words[2] = {(int)link_self()->rank, c->tag};
	c->error = match_send(words, 2, datatype_of(MPI_INT), c->process, TAG_PORTS + number,
			      world_all(), MATCH_STANDARD);
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
