/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/echo.h"

#include <stdlib.h>
#include <string.h>

bool echo_init(struct echoes *e, uint32_t degree,
	       void (*pass)(void *arg, const char *text, size_t len), void *arg)
{
	*e = (struct echoes){
	    .of = calloc(degree, sizeof(*e->of)), .degree = degree, .pass = pass, .arg = arg};
	return e->of != NULL;
}

static void echo_forget(struct echo *o)
{
	free(o->kept);
	*o = (struct echo){0};
}

void echo_fini(struct echoes *e)
{
	for (uint32_t s = 0; e->of && s < e->degree; s++)
		echo_forget(&e->of[s]);
	free(e->of);
	*e = (struct echoes){0};
}

void echo_begin(struct echoes *e)
{
	for (uint32_t s = 0; s < e->degree; s++)
		echo_forget(&e->of[s]);
	e->spoken = e->lost = 0;
	e->over = false;
}

static bool is_lost(const struct echoes *e, uint32_t slot)
{
	return e->lost >> slot & 1;
}

static bool may_speak(const struct echoes *e, uint32_t slot)
{
	return !is_lost(e, slot) && e->spoken >= e->of[slot].from;
}

static bool speaks(const struct echoes *e, uint32_t slot)
{
	for (uint32_t s = 0; s < slot; s++)
		if (may_speak(e, s))
			return false;
	return may_speak(e, slot);
}

/* Of what it keeps the bytes before `spoken` have been passed on. */
static void echo_trim(const struct echoes *e, struct echo *o)
{
	uint64_t begin = o->end - o->len;
	size_t said = 0;

	if (e->spoken > begin)
		said = e->spoken - begin < o->len ? (size_t)(e->spoken - begin) : o->len;
	if (said == 0)
		return;
	memmove(o->kept, o->kept + said, o->len - said);
	o->len -= said;
}

static bool echo_keep(struct echo *o, const char *text, size_t len)
{
	if (o->len + len > o->cap) {
		size_t cap = (o->len + len) * 2;
		char *more = realloc(o->kept, cap);

		if (!more)
			return false;
		o->kept = more;
		o->cap = cap;
	}
	memcpy(o->kept + o->len, text, len);
	o->len += len;
	return true;
}

/* Whoever speaks now has perhaps printed more than the one before. */
static void echo_catch_up(struct echoes *e);

static void echo_speak(struct echoes *e, const char *text, size_t len)
{
	e->spoken += len;
	e->pass(e->arg, text, len);
	for (uint32_t s = 0; s < e->degree; s++)
		echo_trim(e, &e->of[s]);
}

bool echo_take(struct echoes *e, uint32_t slot, const char *text, size_t len)
{
	struct echo *o = &e->of[slot];
	uint64_t begin = o->end;

	o->end += len;
	if (e->over || o->end <= e->spoken)
		return true;
	if (begin < e->spoken) { /* the first part of it is known */
		text += e->spoken - begin;
		len -= (size_t)(e->spoken - begin);
	}
	if (!speaks(e, slot))
		return echo_keep(o, text, len);
	echo_speak(e, text, len);
	echo_catch_up(e);
	return true;
}

static void echo_catch_up(struct echoes *e)
{
	for (uint32_t s = 0; s < e->degree && !e->over; s++) {
		struct echo *o = &e->of[s];

		if (!speaks(e, s) || o->len == 0)
			continue;
		char *kept = o->kept;
		size_t len = o->len;

		o->kept = NULL;
		o->len = o->cap = 0;
		echo_speak(e, kept, len);
		free(kept);
	}
}

void echo_lost(struct echoes *e, uint32_t slot)
{
	bool last = true;

	e->lost |= 1ull << slot;
	echo_forget(&e->of[slot]);
	/* nobody will say what is before the copies */
	for (uint32_t s = 0; s < e->degree; s++)
		last = last && !may_speak(e, s);
	for (uint32_t s = 0; last && s < e->degree; s++)
		e->of[s].from = 0;
	echo_catch_up(e);
}

void echo_returned(struct echoes *e, uint32_t slot, uint64_t position)
{
	struct echo *o = &e->of[slot];

	echo_forget(o);
	o->end = position;
	o->from = position;
	e->lost &= ~(1ull << slot);
}

void echo_restored(struct echoes *e, uint32_t slot, uint64_t position)
{
	e->of[slot].end = position;
	if (position > e->spoken)
		e->spoken = position;
}

void echo_ended(struct echoes *e, uint32_t slot)
{
	if (speaks(e, slot))
		e->over = true;
}
