/* SPDX-License-Identifier: BSD-3-Clause */
/* Published names. Each process has those that it has published in its room of the node's segment,
 * where all others of the node read them, and in private memory, from which they come back after a
 * rollback. */
#include <string.h>

#include "deliver/redundant.h"
#include "mpi/dynamic/dynamic.h"

#define COME_BACK_NS 10000000000ull

static struct {
	bool there;
	char service[SPAWN_NAME_MAX], port[SPAWN_PORT_MAX];
} own[SPAWN_NAMES];

static struct spawn_name *names_of(uint32_t process)
{
	return segment_spawn_room(link_self()->segment, process)->names;
}

static void name_show(int i)
{
	struct spawn_name *n = &names_of(link_self()->rank)[i];
	atomic_store(&n->there, 0);
	memcpy(n->service, own[i].service, sizeof(n->service));
	memcpy(n->port, own[i].port, sizeof(n->port));
	atomic_store(&n->there, own[i].there);
}

/* A new segment knows nothing. */
static void names_resume(bool fresh)
{
	if (!fresh)
		return;
	for (int i = 0; i < SPAWN_NAMES; i++)
		if (own[i].there)
			name_show(i);
}

static void names_participate(void)
{
	static struct ckpt_participant participant = {.name = "published names",
						      .resume = names_resume};
	static bool known;
	if (!known)
		ckpt_participate(&participant);
	known = true;
}

void names_forget(void)
{
	for (int i = 0; i < SPAWN_NAMES; i++)
		if (own[i].there) {
			own[i].there = false;
			name_show(i);
		}
}

/* NULL: nobody of this node has published it. */
static const struct spawn_name *name_find(const char *service)
{
	struct segment *s = link_self()->segment;
	for (uint32_t p = 0; p < s->nranks; p++) {
		if (!segment_here(s, p))
			continue;
		const struct spawn_name *names = names_of(p);
		for (int i = 0; i < SPAWN_NAMES; i++)
			if (atomic_load(&names[i].there) && !strcmp(names[i].service, service))
				return &names[i];
	}
	return NULL;
}

/* After a rollback processes go on one by one: does one of this node still come back? In the first
 * segment those in reserve have not begun. */
static bool names_come_back(void)
{
	struct segment *s = link_self()->segment;
	bool any = false;
	for (uint32_t p = 0; link_self()->generation > 1 && p < s->nranks; p++)
		any |= segment_here(s, p) &&
		       atomic_load(&segment_mailbox(s, p)->state) == RANK_STARTING;
	return any;
}

static const struct spawn_name *name_await(const char *service)
{
	uint64_t deadline = clock_ns() + COME_BACK_NS;
	for (int round = 0;; round++) {
		bool more = names_come_back() && clock_ns() < deadline;
		const struct spawn_name *n = name_find(service);
		if (n || !more)
			return n;
		link_wait_step(round);
		guard_safe_point();
	}
}

static bool info_valid(MPI_Info info)
{
	return info == MPI_INFO_NULL || info_ok(info_of(info));
}

/* Each replica would find what was published on its own node by then. */
static bool names_available(const char *function)
{
	if (UNLIKELY(redundant_on))
		log_warn("%s: a job with replicas has no published names", function);
	return !redundant_on;
}

int PMPI_Publish_name(const char *service_name, MPI_Info info, const char *port_name)
{
	API_ENTER("MPI_Publish_name");
	int i = 0;
	if (!service_name || !port_name || strlen(port_name) >= SPAWN_PORT_MAX)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!info_valid(info))
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!names_available("MPI_Publish_name"))
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	if (strlen(service_name) >= SPAWN_NAME_MAX || name_find(service_name))
		return API_FAIL(NULL, MPI_ERR_SERVICE);
	while (i < SPAWN_NAMES && own[i].there)
		i++;
	if (i == SPAWN_NAMES) {
		log_warn("MPI_Publish_name: a process can have %d names at a time; take one back "
			 "with MPI_Unpublish_name",
			 SPAWN_NAMES);
		return API_FAIL(NULL, MPI_ERR_SERVICE);
	}
	names_participate();
	own[i].there = true;
	strcpy(own[i].service, service_name);
	strcpy(own[i].port, port_name);
	name_show(i);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Publish_name);

int PMPI_Unpublish_name(const char *service_name, MPI_Info info, const char *port_name)
{
	API_ENTER("MPI_Unpublish_name");
	int i = 0;
	if (!service_name || !port_name)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!info_valid(info))
		return API_FAIL(NULL, MPI_ERR_INFO);
	while (i < SPAWN_NAMES && !(own[i].there && !strcmp(own[i].service, service_name)))
		i++;
	if (i == SPAWN_NAMES)
		return API_FAIL(NULL, MPI_ERR_SERVICE);
	own[i].there = false;
	name_show(i);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Unpublish_name);

int PMPI_Lookup_name(const char *service_name, MPI_Info info, char *port_name)
{
	API_ENTER("MPI_Lookup_name");
	if (!service_name || !port_name)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!info_valid(info))
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!names_available("MPI_Lookup_name"))
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	const struct spawn_name *n = name_await(service_name);
	if (!n)
		return API_FAIL(NULL, MPI_ERR_NAME);
	memcpy(port_name, n->port, strlen(n->port) + 1);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Lookup_name);
