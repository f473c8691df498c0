/* SPDX-License-Identifier: BSD-3-Clause */
/* On a spare processes of the program stand ready (docs/nodes.md, 'Spares are warm'): the
 * supervisor has them, and takes one where it would start a process that becomes an image. Here is
 * decided how many there are to be. They are started one after the other, not again and again if
 * they don't stay, and not when memory is short. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/memory.h"
#include "agent/agent_private.h"

enum {
	DEATHS = 3, /* so many more than wanted are started for one answer */
	SCARCE = 8, /* of all memory, less than this part is free */
	AMPLE = 6,
};
#define NEXT_SECONDS   0.01
#define LOOK_SECONDS   0.2
#define MEMORY_SECONDS 1.0

/* The head need not hear the same again. */
static void say(struct agent *a, const char *why)
{
	if (strcmp(a->stand.text, why) == 0 &&
	    a->stand.said == atomic_load(&a->supervisor.book->standing))
		return;
	snprintf(a->stand.text, sizeof(a->stand.text), "%s", why);
	agent_warm_say(a);
}

static bool still_leased(void *arg)
{
	return agent_lease_holds(arg);
}

/* The rank's arguments, but for its name, so that nobody takes it for one. */
static const char **arguments(const struct agent *a)
{
	size_t count = 0;
	const char **argv;

	while (a->setup.argv[count])
		count++;
	argv = calloc(count + 1, sizeof(*argv));
	if (argv)
		memcpy(argv, a->setup.argv, count * sizeof(*argv));
	if (argv && count > 0)
		argv[0] = PROTO_STAND_NAME;
	return argv;
}

static bool start_one(struct agent *a)
{
	const char **argv = arguments(a);
	struct supervisor_launch l = {.path = a->supervisor.book->stand_program,
				      .wdir = a->setup.wdir[0] ? a->setup.wdir : NULL,
				      .argv = (char *const *)argv};
	struct error err;
	char **env = agent_environment(a, 0, PROTO_STAND, &err);
	bool good = false;

	if (env && argv) {
		l.env = env;
		good = supervisor_stand(&a->supervisor, &l, still_leased, a);
	}
	agent_environment_free(env);
	free(argv);
	if (a->supervisor.control < 0)
		agent_ward_look(a);
	return good;
}

/* Those that stand there end when little is free, and come again when a little more is. */
static bool memory_is_short(bool any)
{
	struct memory_room room;

	return memory_look("", &room) && room.available < room.total / (any ? SCARCE : AMPLE);
}

static void next(void *arg)
{
	struct agent *a = arg;
	struct agent_stand *s = &a->stand;
	uint32_t standing = atomic_load(&a->supervisor.book->standing);
	double again = MEMORY_SECONDS;

	if (s->wanted == 0 || a->view.here > 0 || a->orphaned)
		return;
	if (a->move.id) {
		/* nothing begins or ends beside it */
	} else if (memory_is_short(standing > 0)) {
		if (standing > 0)
			supervisor_stand_end(&a->supervisor);
		s->started = 0;
		say(a, "memory is short there, so no process stands ready");
	} else if (standing >= s->wanted) {
		say(a, "");
	} else if (s->started >= s->wanted + DEATHS) {
		say(a, "processes that are to stand ready there end at once");
	} else if (agent_lease_holds(a) && start_one(a)) {
		s->started++;
		again = NEXT_SECONDS;
	}
	loop_timer_set(&a->loop, &s->timer, again, next, a);
}

void agent_stand_want(struct agent *a, uint32_t count, const char *program, uint64_t identity)
{
	struct book *b = a->supervisor.book;
	struct agent_stand *s = &a->stand;

	/* what they have mapped is what was there when they were started */
	if (strcmp(b->stand_program, program) != 0 || b->stand_identity != identity ||
	    atomic_load(&b->standing) > count)
		supervisor_stand_end(&a->supervisor);
	snprintf(b->stand_program, sizeof(b->stand_program), "%s", program);
	b->stand_identity = identity;
	s->wanted = count;
	s->started = 0;
	/* the supervisor has ended those by then */
	loop_timer_set(&a->loop, &s->timer, NEXT_SECONDS, next, a);
}

void agent_stand_none(struct agent *a)
{
	a->stand.wanted = 0;
	a->stand.text[0] = '\0';
	loop_timer_clear(&a->loop, &a->stand.timer);
	if (atomic_load(&a->supervisor.book->standing) > 0)
		supervisor_stand_end(&a->supervisor);
}

void agent_stand_count(struct agent *a)
{
	struct agent_stand *s = &a->stand;
	double soon = clock_seconds() + LOOK_SECONDS;

	if (s->wanted > atomic_load(&a->supervisor.book->standing) &&
	    (!s->timer.armed || s->timer.at > soon))
		loop_timer_set(&a->loop, &s->timer, LOOK_SECONDS, next, a);
}
