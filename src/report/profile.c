/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/profile.h"

#include <string.h>
#include "base/base.h"
#include "model/redundancy.h"

enum { TRIES = 100, PROGRESS_LEAST = 50 };

static const char *const call_names[METER_CALLS] = {
    [METER_SEND] = "send",	   [METER_ISEND] = "isend",
    [METER_RECV] = "recv",	   [METER_IRECV] = "irecv",
    [METER_SENDRECV] = "sendrecv", [METER_WAIT] = "wait",
    [METER_TEST] = "test",	   [METER_PROBE] = "probe",
    [METER_START] = "start",	   [METER_COLLECTIVE] = "collective",
    [METER_OTHER] = "other"};

const char *profile_call_name(enum meter_call call)
{
	return call_names[call];
}

/* ---- reading ---- */

struct reading {
	struct profile_call call[METER_CALLS];
	double app_seconds;
};

static struct profile_call read_call(struct rank_meter *m, int i)
{
	struct meter_times *t = &m->times[i];
	uint64_t covered = atomic_load(&t->covered);
	struct profile_call c = {.count = atomic_load(&t->calls) + atomic_load(&t->gap) -
					  atomic_load(&m->left[i])};
	double each = covered ? (double)atomic_load(&t->short_ns) / (double)covered : 0;

	c.seconds = 1e-9 * (each * (double)c.count + (double)atomic_load(&t->long_ns));
	return c;
}

static void read_once(struct rank_meter *m, uint64_t now_ns, struct reading *r)
{
	uint64_t app_ns = atomic_load(&m->app_ns);

	if (!app_ns)
		app_ns = now_ns - atomic_load(&m->began_ns);
	r->app_seconds = 1e-9 * (double)app_ns;
	for (int i = 0; i < METER_CALLS; i++)
		r->call[i] = read_call(m, i);
}

/* A rank that was killed in the middle of a change leaves its version odd; then what is there is
 * good enough. */
static void read_whole(struct rank_meter *m, uint64_t now_ns, struct reading *r)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t before = atomic_load(&m->version);
		read_once(m, now_ns, r);
		if (before % 2 == 0 && atomic_load(&m->version) == before)
			return;
		cpu_relax();
	}
}

static void add_times(struct profile *p, const struct reading *r)
{
	double mpi = 0, share, scale = 1;

	for (int i = 0; i < METER_CALLS; i++)
		mpi += r->call[i].seconds;
	/* threads that are in MPI at the same time, and the error of sampling */
	if (mpi > r->app_seconds) {
		scale = r->app_seconds / mpi;
		mpi = r->app_seconds;
	}
	for (int i = 0; i < METER_CALLS; i++) {
		p->call[i].count += r->call[i].count;
		p->call[i].seconds += scale * r->call[i].seconds;
	}
	share = r->app_seconds > 0 ? mpi / r->app_seconds : 0;
	p->app_seconds += r->app_seconds;
	p->mpi_seconds += mpi;
	if (p->ranks == 0 || share < p->share_least)
		p->share_least = share;
	if (p->ranks == 0 || share > p->share_most)
		p->share_most = share;
	p->ranks++;
}

void profile_add_rank(struct profile *p, struct rank_meter *m, uint64_t now_ns)
{
	struct reading r;

	for (int i = 0; i < METER_TASKS; i++)
		p->task[i] += atomic_load(&m->task[i]);
	if (atomic_load(&m->began_ns) == 0)
		return;
	read_whole(m, now_ns, &r);
	add_times(p, &r);
	for (int i = 0; i < METER_SIZES; i++) {
		p->messages[i] += atomic_load(&m->sizes[i].messages);
		p->bytes[i] += atomic_load(&m->sizes[i].bytes);
	}
	p->collectives += atomic_load(&m->collectives);
	p->collective_bytes += atomic_load(&m->collective_bytes);
}

void profile_add_node(struct profile *p, struct segment *s, uint32_t nranks)
{
	uint64_t now = clock_ns();

	for (uint32_t r = 0; s && r < nranks; r++)
		profile_add_rank(p, segment_meter(s, r), now);
}

void profile_merge(struct profile *p, const struct profile *other)
{
	for (int i = 0; i < METER_TASKS; i++)
		p->task[i] += other->task[i];
	if (other->ranks == 0)
		return;
	if (p->ranks == 0 || other->share_least < p->share_least)
		p->share_least = other->share_least;
	if (p->ranks == 0 || other->share_most > p->share_most)
		p->share_most = other->share_most;
	p->ranks += other->ranks;
	p->app_seconds += other->app_seconds;
	p->mpi_seconds += other->mpi_seconds;
	for (int i = 0; i < METER_CALLS; i++) {
		p->call[i].count += other->call[i].count;
		p->call[i].seconds += other->call[i].seconds;
	}
	for (int i = 0; i < METER_SIZES; i++) {
		p->messages[i] += other->messages[i];
		p->bytes[i] += other->bytes[i];
	}
	p->collectives += other->collectives;
	p->collective_bytes += other->collective_bytes;
}

uint64_t profile_progress(struct segment *s, uint32_t nranks)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; s && r < nranks; r++) {
		struct rank_meter *m = segment_meter(s, r);

		sum += atomic_load_explicit(&m->collectives, memory_order_relaxed);
		for (int i = 0; i < METER_SIZES; i++)
			sum += atomic_load_explicit(&m->sizes[i].messages, memory_order_relaxed);
	}
	return sum;
}

/* ---- pace ---- */

void profile_pace_turn(struct profile_pace *p, enum profile_phase next, double now,
		       uint64_t progress, struct profile_stretch *last)
{
	struct profile_stretch s = {.seconds = now - p->since};

	/* less than before: another life of the job has begun */
	if (progress > p->progress)
		s.progress = progress - p->progress;
	if (p->phase == PROFILE_UNDISTURBED) {
		p->undisturbed.seconds += s.seconds;
		p->undisturbed.progress += s.progress;
	}
	if (last)
		*last = s;
	p->phase = next;
	p->since = now;
	p->progress = progress;
}

bool profile_checkpoint_cost(const struct profile_pace *p, const struct profile_stretch *during,
			     double *seconds)
{
	const struct profile_stretch *u = &p->undisturbed;

	if (u->progress < PROGRESS_LEAST || u->seconds <= 0 || during->seconds <= 0)
		return false;
	*seconds = during->seconds - (double)during->progress * u->seconds / (double)u->progress;
	return true;
}

/* ---- as JSON ---- */

/* 000 eq. 3.1-3.3. What sends and receives in one call is half of each; MPI_Start is where a
 * nonblocking call's time goes that was prepared beforehand. */
static void print_fractions(const struct profile *p, struct json_out *j)
{
	double exchange = p->call[METER_SENDRECV].seconds / 2;
	struct model_mpi_times t = {.app_s = p->app_seconds,
				    .mpi_s = p->mpi_seconds,
				    .send_s = p->call[METER_SEND].seconds + exchange,
				    .isend_s = p->call[METER_ISEND].seconds,
				    .recv_s = p->call[METER_RECV].seconds + exchange,
				    .irecv_s = p->call[METER_IRECV].seconds,
				    .wait_s =
					p->call[METER_WAIT].seconds + p->call[METER_START].seconds};
	struct model_comm c = {0};

	if (p->app_seconds > 0 && p->mpi_seconds > 0)
		model_comm_from_times(&t, &c, NULL);
	json_double(j, "mpi_share", c.alpha);
	json_double(j, "mpi_share_least", p->share_least);
	json_double(j, "mpi_share_most", p->share_most);
	json_double(j, "f_send", c.f_send);
	json_double(j, "f_recv", c.f_recv);
	json_double(j, "beta", c.beta);
}

static void print_sizes(const struct profile *p, struct json_out *j)
{
	json_open_array(j, "sizes");
	for (unsigned i = 0; i < METER_SIZES; i++) {
		json_open_object(j, NULL);
		if (i < METER_SIZES - 1)
			json_uint(j, "up_to", meter_size_limit(i));
		json_uint(j, "count", p->messages[i]);
		json_uint(j, "bytes", p->bytes[i]);
		json_close_object(j);
	}
	json_close_array(j);
}

static void print_messages(const struct profile *p, struct json_out *j)
{
	uint64_t count = 0, bytes = 0;

	for (int i = 0; i < METER_SIZES; i++) {
		count += p->messages[i];
		bytes += p->bytes[i];
	}
	json_open_object(j, "messages");
	json_uint(j, "count", count);
	json_uint(j, "bytes", bytes);
	print_sizes(p, j);
	json_close_object(j);
	json_open_object(j, "collectives");
	json_uint(j, "count", p->collectives);
	json_uint(j, "bytes", p->collective_bytes);
	json_close_object(j);
}

void profile_print(const struct profile *p, const char *key, struct json_out *j)
{
	json_open_object(j, key);
	json_uint(j, "ranks", p->ranks);
	json_double(j, "app_seconds", p->app_seconds);
	json_double(j, "mpi_seconds", p->mpi_seconds);
	print_fractions(p, j);
	json_open_object(j, "calls");
	for (int i = 0; i < METER_CALLS; i++) {
		json_open_object(j, call_names[i]);
		json_uint(j, "count", p->call[i].count);
		json_double(j, "seconds", p->call[i].seconds);
		json_close_object(j);
	}
	json_close_object(j);
	print_messages(p, j);
}
