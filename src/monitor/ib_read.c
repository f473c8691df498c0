/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of the InfiniBand adapters of this node: by asking the adapter itself (a subnet management
 * packet to port 0 hops away, which needs access to /dev/infiniband/umad*), else by what the kernel
 * shows. Adapters' asynchronous events, where libibverbs has them, make the next look come at once.
 */
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/base.h"
#include "monitor/kind.h"

enum { ADAPTERS_MAX = 32, PORTS_MAX = 64, QUERY_MS = 200 };

#define UMAD_FUNCTIONS(X)                                                                          \
	X(umad_init)                                                                               \
	X(umad_get_cas_names)                                                                      \
	X(umad_get_ca)                                                                             \
	X(umad_release_ca)
#define MAD_FUNCTIONS(X)                                                                           \
	X(mad_rpc_open_port)                                                                       \
	X(mad_rpc_close_port)                                                                      \
	X(mad_rpc_set_retries)                                                                     \
	X(smp_query_via)                                                                           \
	X(pma_query_via)                                                                           \
	X(mad_get_field)
#define VERBS_FUNCTIONS(X)                                                                         \
	X(ibv_get_device_list)                                                                     \
	X(ibv_free_device_list)                                                                    \
	X(ibv_get_device_name)                                                                     \
	X(ibv_open_device)                                                                         \
	X(ibv_get_async_event)                                                                     \
	X(ibv_ack_async_event)

struct ib {
#define X(name) __typeof__ (&(name))(name);
	UMAD_FUNCTIONS(X)
	MAD_FUNCTIONS(X)
	VERBS_FUNCTIONS(X)
#undef X
	bool mad, verbs; /* whether there is libibmad, libibverbs */
	int events;	 /* epoll over the adapters' events */
	char names[ADAPTERS_MAX][UMAD_CA_NAME_LEN];
	int count;
	struct ibmad_port *ports[ADAPTERS_MAX][PORTS_MAX + 1];
	struct ibv_context *verbs_of[ADAPTERS_MAX];
};

static bool ib_load(struct ib *m)
{
	void *umad = reader_library("libibumad.so.3"), *mad = reader_library("libibmad.so.5");
	void *verbs = reader_library("libibverbs.so.1");
	bool all = umad;

	m->mad = mad;
	m->verbs = verbs;
#define X(name) m->name = reader_symbol(umad, #name, &all);
	UMAD_FUNCTIONS(X)
#undef X
#define X(name) m->name = reader_symbol(mad, #name, &m->mad);
	MAD_FUNCTIONS(X)
#undef X
#define X(name) m->name = reader_symbol(verbs, #name, &m->verbs);
	VERBS_FUNCTIONS(X)
#undef X
	return all;
}

/* ---- events ---- */

static void events_open(struct ib *m, int i)
{
	struct ibv_device **list = m->verbs ? m->ibv_get_device_list(NULL) : NULL;
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

	for (int k = 0; list && list[k]; k++) {
		if (strcmp(m->ibv_get_device_name(list[k]), m->names[i]) != 0)
			continue;
		m->verbs_of[i] = m->ibv_open_device(list[k]);
		if (!m->verbs_of[i])
			break;
		fcntl(m->verbs_of[i]->async_fd, F_SETFL, O_NONBLOCK);
		epoll_ctl(m->events, EPOLL_CTL_ADD, m->verbs_of[i]->async_fd, &e);
	}
	if (list)
		m->ibv_free_device_list(list);
}

static const char *event_name(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ERR:
		return "PORT_ERR";
	case IBV_EVENT_PORT_ACTIVE:
		return "PORT_ACTIVE";
	case IBV_EVENT_LID_CHANGE:
		return "LID_CHANGE";
	case IBV_EVENT_PKEY_CHANGE:
		return "PKEY_CHANGE";
	case IBV_EVENT_SM_CHANGE:
		return "SM_CHANGE";
	case IBV_EVENT_DEVICE_FATAL:
		return "DEVICE_FATAL";
	default:
		return NULL; /* about queues of other programs */
	}
}

static void events_take(struct reader *r, struct ib *m)
{
	for (int i = 0; i < m->count; i++) {
		struct ibv_async_event e;

		while (m->verbs_of[i] && m->ibv_get_async_event(m->verbs_of[i], &e) == 0) {
			const char *name = event_name(e.event_type);
			if (name)
				reader_line(
				    r, "event %d %d %s", i,
				    e.event_type == IBV_EVENT_DEVICE_FATAL ? 0 : e.element.port_num,
				    name);
			m->ibv_ack_async_event(&e);
		}
	}
}

/* ---- ports ---- */

/* An adapter keeps its index for as long as the reader runs. */
static int adapter_index(struct ib *m, const char *name)
{
	for (int i = 0; i < m->count; i++)
		if (!strcmp(m->names[i], name))
			return i;
	if (m->count == ADAPTERS_MAX)
		return -1;
	snprintf(m->names[m->count], sizeof(m->names[0]), "%.*s", UMAD_CA_NAME_LEN - 1, name);
	events_open(m, m->count);
	return m->count++;
}

static struct ibmad_port *port_open(struct ib *m, int i, int port)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};

	if (!m->mad)
		return NULL;
	if (!m->ports[i][port]) {
		m->ports[i][port] = m->mad_rpc_open_port(m->names[i], port, classes, 3);
		if (m->ports[i][port])
			m->mad_rpc_set_retries(m->ports[i][port], 1);
	}
	return m->ports[i][port];
}

static const char *state_name(unsigned state)
{
	static const char *const names[] = {"DOWN", "DOWN", "INIT", "ARMED", "ACTIVE"};

	return names[state < ARRAY_LEN(names) ? state : 0];
}

/* A number that is another one when the first block of the table of partition keys is. */
static uint64_t pkeys(struct ib *m, struct ibmad_port *mad)
{
	uint8_t block[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t self = {0};
	uint64_t sum = 14695981039346656037u;

	if (!m->smp_query_via(block, &self, IB_ATTR_PKEY_TBL, 0, QUERY_MS, mad))
		return 0;
	for (size_t k = 0; k < sizeof(block); k++)
		sum = (sum ^ block[k]) * 1099511628211u;
	return sum;
}

static void errors_ask(struct reader *r, struct ib *m, struct ibmad_port *mad, int i, int port,
		       unsigned lid)
{
	static const struct {
		const char *name;
		enum MAD_FIELDS field;
	} counters[] = {{"symbol", IB_PC_ERR_SYM_F},
			{"link_recovered", IB_PC_LINK_RECOVERS_F},
			{"link_downed", IB_PC_LINK_DOWNED_F},
			{"receive", IB_PC_ERR_RCV_F}};
	uint8_t data[1024] = {0};
	ib_portid_t self = {.lid = (int)lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};

	if (!m->pma_query_via(data, &self, port, QUERY_MS, IB_GSI_PORT_COUNTERS, mad))
		return;
	for (size_t k = 0; k < ARRAY_LEN(counters); k++)
		reader_line(r, "errors %d %d %s %u", i, port, counters[k].name,
			    m->mad_get_field(data, 0, counters[k].field));
}

/* False when the adapter does not answer. */
static bool port_ask(struct reader *r, struct ib *m, int i, int port)
{
	struct ibmad_port *mad = port_open(m, i, port);
	uint8_t info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t self = {0};
	unsigned state, lid;
	uint64_t keys;

	if (!mad ||
	    !m->smp_query_via(info, &self, IB_ATTR_PORT_INFO, (unsigned)port, QUERY_MS, mad))
		return false;
	state = m->mad_get_field(info, 0, IB_PORT_STATE_F);
	lid = m->mad_get_field(info, 0, IB_PORT_LID_F);
	keys = pkeys(m, mad);
	reader_line(r, keys ? "port %d %d %s %u %u %llu" : "port %d %d %s %u %u -", i, port,
		    state_name(state), lid, m->mad_get_field(info, 0, IB_PORT_SMLID_F),
		    (unsigned long long)keys);
	if (state == 4)
		errors_ask(r, m, mad, i, port, lid);
	return true;
}

static void adapter_look(struct reader *r, struct ib *m, int i, const umad_ca_t *ca)
{
	reader_line(r, "adapter %d \"%s\" %d", i, m->names[i], ca->numports);
	for (int p = 1; p <= ca->numports && p <= PORTS_MAX; p++) {
		const umad_port_t *port = ca->ports[p];

		if (port && !port_ask(r, m, i, p))
			reader_line(r, "port %d %d %s %u %u -", i, p, state_name(port->state),
				    port->base_lid, port->sm_lid);
	}
}

/* Where there is no adapter the library still gives a name, of one that can't be opened. */
static void ib_look(struct reader *r, struct ib *m)
{
	char names[ADAPTERS_MAX][UMAD_CA_NAME_LEN];
	umad_ca_t cas[ADAPTERS_MAX];
	int n = m->umad_get_cas_names(names, ADAPTERS_MAX), index[ADAPTERS_MAX], known = 0;

	for (int k = 0; k < n; k++) {
		if (m->umad_get_ca(names[k], &cas[known]) < 0)
			continue;
		index[known] = adapter_index(m, names[k]);
		if (index[known] >= 0)
			known++;
		else
			m->umad_release_ca(&cas[known]);
	}
	reader_line(r, "adapters %d", known);
	for (int k = 0; k < known; k++) {
		adapter_look(r, m, index[k], &cas[k]);
		m->umad_release_ca(&cas[k]);
	}
	reader_end(r);
}

static struct ib state;

/* No library is no adapter: a program that uses one would have brought it. */
void monitor_ib_read(struct reader *r)
{
	struct ib *m = &state;
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	/* libibmad says on stderr, each time, what becomes an event here */
	if (nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
	if (!ib_load(m) || m->umad_init() < 0) {
		for (;;) {
			reader_line(r, "adapters 0");
			reader_end(r);
			reader_wait(r, -1);
		}
	}
	m->events = epoll_create1(EPOLL_CLOEXEC);
	for (;;) {
		ib_look(r, m);
		if (reader_wait(r, m->events))
			events_take(r, m);
	}
}
