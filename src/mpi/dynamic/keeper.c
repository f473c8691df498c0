/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper: the last process of a job with a reserve. It never becomes a program, so it always
 * answers, and its memory is the only place that says which processes are free.
 *
 *   who spawns   CLAIM n ──▶ keeper      free enough: their numbers; else they may come back
 *                        ◀── n numbers, or one that says that there are too few
 *   who spawns   BACK …  ──▶             claimed, and not used
 *   a process    RESTS   ──▶             its program has ended
 *                RETURN  ──▶             and it can be used again
 *   rank 0       OVER    ──▶             the first world has finalized
 *                        ◀── one number  when all spawned programs have ended, too
 *   the keeper ── TAG_OVER ──▶ all that are free: they end
 *
 * Questions and answers are messages, so checkpoints and rollbacks need no rule of their own. */
#include <string.h>
#include "base/clock.h"
#include "mpi/dynamic/dynamic.h"

enum keeper_question { KEEPER_CLAIM = 1, KEEPER_BACK, KEEPER_RESTS, KEEPER_RETURN, KEEPER_OVER };

/* What a question begins with; KEEPER_BACK has count numbers behind it. */
struct keeper_head {
	int question, number, count;
};

enum { SERIAL_MASK = 0x1ffffff, TOO_FEW = -1 };

/* A program that has told its parent that it is through may need so long to come to its end. */
static const double return_s = 5;

static int keeper_process(void)
{
	return (int)link_self()->nranks - 1;
}

bool keeper_is_me(void)
{
	return world_in_reserve() && (int)link_self()->rank == keeper_process();
}

int message_take(int tag, void *to, size_t room, size_t *bytes)
{
	struct match_message *m;
	int source;
	if (!world_all() || !match_take(world_all(), tag, NULL, NULL, &m, &source, bytes))
		return -1;
	if (*bytes > room ||
	    match_mrecv(to, *bytes, datatype_of(MPI_BYTE), m, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
		log_warn("internal error: a message about spawned processes can't be received");
		link_abort(70);
	}
	return source;
}

/* ---- who asks ---- */

struct keeper_asking {
	struct request *sent, *answer; /* answer NULL: none is waited for */
};

static bool question_over(void *arg)
{
	const struct keeper_asking *q = arg;
	return order_job_ends() || (q->sent->complete && (!q->answer || q->answer->complete));
}

/* Sends a question, and waits for an answer of at most room numbers unless room is 0. Returns how
 * many came. When the job ends meanwhile the keeper may be gone: then what is under way stays. */
static int keeper_ask(struct keeper_head *head, const int *numbers, int *answer, int room)
{
	static int serial;
	size_t ints = sizeof(*head) / sizeof(int);
	size_t more = head->question == KEEPER_BACK ? (size_t)head->count : 0;
	struct keeper_asking q = {0};
	int *words = heap_alloc((ints + more) * sizeof(int)), came = 0;
	if (!words)
		return 0;
	head->number = serial = (serial + 1) & SERIAL_MASK;
	memcpy(words, head, sizeof(*head));
	for (size_t i = 0; i < more; i++)
		words[ints + i] = numbers[i];
	if (match_isend(words, ints + more, datatype_of(MPI_INT), keeper_process(), TAG_KEEPER,
			world_all(), MATCH_STANDARD, &q.sent) ||
	    (room && match_irecv(answer, (size_t)room, datatype_of(MPI_INT), keeper_process(),
				 TAG_KEPT + head->number, world_all(), MATCH_STANDARD, &q.answer)))
		return 0;
	match_wait_until(question_over, &q);
	if (q.answer && q.answer->complete)
		came = (int)(q.answer->status._ucount / sizeof(int));
	else if (q.answer)
		match_cancel(q.answer);
	if (q.sent->complete)
		heap_free(words);
	match_request_free(q.sent);
	if (q.answer)
		match_request_free(q.answer);
	return came;
}

int keeper_claim(int *processes, int count)
{
	struct keeper_head head = {.question = KEEPER_CLAIM, .count = count};
	int came = keeper_ask(&head, NULL, processes, count);
	return came == count && processes[0] != TOO_FEW ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

void keeper_give_back(const int *processes, int count)
{
	struct keeper_head head = {.question = KEEPER_BACK, .count = count};
	keeper_ask(&head, processes, NULL, 0);
}

void keeper_rests(void)
{
	struct keeper_head head = {.question = KEEPER_RESTS};
	keeper_ask(&head, NULL, NULL, 0);
}

void keeper_return(void)
{
	struct keeper_head head = {.question = KEEPER_RETURN};
	keeper_ask(&head, NULL, NULL, 0);
}

void keeper_first_world_over(void)
{
	struct keeper_head head = {.question = KEEPER_OVER};
	int heard;
	keeper_ask(&head, NULL, &heard, 1);
}

/* ---- the keeper itself ---- */

/* What it knows of each process. NEW ones are given out before those that were used. */
enum kept_state { KEPT_NOT = 0, KEPT_NEW, KEPT_USED, KEPT_GIVEN, KEPT_RESTING };

struct claim_waiting {
	struct claim_waiting *next;
	int process, number, count;
	double until;
};

static struct {
	unsigned char *state; /* enum kept_state of each process of the job */
	int n;
	struct claim_waiting *first; /* in the order of arrival */
	bool over;		     /* the first world has finalized; its rank 0 has the answer */
} keeper;

static int kept_count(enum kept_state state)
{
	int n = 0;
	for (int i = 0; i < keeper.n; i++)
		n += keeper.state[i] == state;
	return n;
}

static void keeper_answer(int process, int number, const int *numbers, int count)
{
	match_send(numbers, (size_t)count, datatype_of(MPI_INT), process, TAG_KEPT + number,
		   world_all(), MATCH_STANDARD);
}

static void claim_refuse(const struct claim_waiting *w)
{
	const int none = TOO_FEW;
	keeper_answer(w->process, w->number, &none, 1);
}

static int kept_take(enum kept_state state, int *numbers, int count)
{
	int n = 0;
	for (int i = 0; i < keeper.n && n < count; i++)
		if (keeper.state[i] == state) {
			keeper.state[i] = KEPT_GIVEN;
			numbers[n++] = i;
		}
	return n;
}

static void claim_grant(const struct claim_waiting *w)
{
	int *numbers = heap_alloc((size_t)w->count * sizeof(int));
	if (!numbers) {
		claim_refuse(w);
		return;
	}
	int n = kept_take(KEPT_NEW, numbers, w->count);
	kept_take(KEPT_USED, numbers + n, w->count - n);
	keeper_answer(w->process, w->number, numbers, w->count);
	heap_free(numbers);
}

/* In the order of their arrival, so that a large one is not passed over for ever. */
static void claims_serve(void)
{
	struct claim_waiting *w;
	while ((w = keeper.first)) {
		int free_now = kept_count(KEPT_NEW) + kept_count(KEPT_USED);
		if (free_now >= w->count)
			claim_grant(w);
		else if (free_now + kept_count(KEPT_GIVEN) + kept_count(KEPT_RESTING) < w->count ||
			 clock_seconds() > w->until)
			claim_refuse(w);
		else
			return;
		keeper.first = w->next;
		heap_free(w);
	}
}

static void claim_take(int process, const struct keeper_head *head)
{
	struct claim_waiting *w = heap_alloc(sizeof(*w)), **at = &keeper.first;
	const struct claim_waiting asked = {.process = process,
					    .number = head->number,
					    .count = head->count,
					    .until = clock_seconds() + return_s};
	if (!w || head->count < 1) {
		claim_refuse(&asked);
		heap_free(w);
		return;
	}
	*w = asked;
	while (*at)
		at = &(*at)->next;
	*at = w;
}

static void kept_change(int process, enum kept_state from, enum kept_state to)
{
	if (process >= 0 && process < keeper.n && keeper.state[process] == from)
		keeper.state[process] = (unsigned char)to;
}

static void question_take(int process, const int *words, size_t ints)
{
	const size_t begin = sizeof(struct keeper_head) / sizeof(int);
	const int heard = 1;
	struct keeper_head head;
	if (ints < begin)
		return;
	memcpy(&head, words, sizeof(head));
	switch ((enum keeper_question)head.question) {
	case KEEPER_CLAIM:
		claim_take(process, &head);
		break;
	case KEEPER_BACK:
		for (size_t i = begin; i < ints; i++)
			kept_change(words[i], KEPT_GIVEN, KEPT_NEW);
		break;
	case KEEPER_RESTS:
		kept_change(process, KEPT_GIVEN, KEPT_RESTING);
		break;
	case KEEPER_RETURN:
		kept_change(process, KEPT_RESTING, KEPT_USED);
		break;
	case KEEPER_OVER:
		keeper.over = true;
		keeper_answer(process, head.number, &heard, 1);
		break;
	}
}

static bool keeper_has_work(void *more)
{
	return order_job_ends() || match_peek(world_all(), TAG_KEEPER);
}

static bool all_complete(void *requests)
{
	struct request **all = requests;
	if (order_job_ends())
		return true;
	for (int i = 0; i < keeper.n; i++)
		if (all[i] && !all[i]->complete)
			return false;
	return true;
}

/* All of them wait for it, so a synchronous message comes to its end. */
static void reserve_end(void)
{
	static const int over = 1;
	struct request **all = heap_calloc((size_t)keeper.n, sizeof(struct request *));
	for (int i = 0; all && i < keeper.n; i++)
		if (keeper.state[i] != KEPT_NOT &&
		    match_isend(&over, 1, datatype_of(MPI_INT), i, TAG_OVER, world_all(),
				MATCH_SYNCHRONOUS, &all[i]))
			all[i] = NULL;
	if (all)
		match_wait_until(all_complete, all);
	heap_free(all);
}

void keeper_serve(void)
{
	const size_t room = ((size_t)link_self()->nranks + 8) * sizeof(int);
	int *words = heap_alloc(room);
	keeper.n = keeper_process();
	keeper.state = heap_calloc((size_t)keeper.n, 1);
	if (!words || !keeper.state) {
		log_warn("there is no memory to keep count of processes in reserve");
		link_abort(70);
	}
	for (int i = 0; i < keeper.n; i++)
		keeper.state[i] = spawn_world_has(world_text(), (uint32_t)i) ? KEPT_NOT : KEPT_NEW;
	while (!order_job_ends()) {
		size_t bytes;
		int process = message_take(TAG_KEEPER, words, room, &bytes);
		if (process >= 0)
			question_take(process, words, bytes / sizeof(int));
		claims_serve();
		if (keeper.over && !keeper.first && !kept_count(KEPT_GIVEN)) {
			reserve_end();
			break;
		}
		if (process < 0)
			match_sleep(keeper_has_work, NULL);
	}
	heap_free(words);
	heap_free(keeper.state);
	keeper.state = NULL;
}
