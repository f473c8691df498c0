/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "top/top.h"

static const char *node_name(const struct top_job *job, int node)
{
	return node >= 0 && (size_t)node < job->node_count ? job->nodes[node].name : "?";
}

static bool matches(const struct top_job *job, const struct top_rank *r, const char *filter)
{
	char text[256];

	if (!*filter)
		return true;
	snprintf(text, sizeof(text), "rank %d %s %d %s %s %s", r->rank, node_name(job, r->node),
		 (int)r->pid, r->state, top_does(r),
		 !job->replicas ? ""
		 : r->leader	? "leader"
				: "replica");
	return strcasestr(text, filter) != NULL;
}

struct rows_order {
	const struct top_job *job;
	top_sort_t sort;
};

static int by_rank(const struct top_rank *a, const struct top_rank *b)
{
	return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank)
				  : (a->slot > b->slot) - (a->slot < b->slot);
}

static int compare(const void *x, const void *y, void *arg)
{
	const struct rows_order *o = arg;
	const struct top_rank *a = &o->job->ranks[((const struct top_row *)x)->rank];
	const struct top_rank *b = &o->job->ranks[((const struct top_row *)y)->rank];
	int d = 0;

	switch (o->sort) {
	case TOP_SORT_NODE:
		d = (a->node > b->node) - (a->node < b->node);
		break;
	case TOP_SORT_STATE: /* what is not usual first */
		d = (strcmp(a->state, "running") == 0) - (strcmp(b->state, "running") == 0);
		d = d ? d : strcmp(a->state, b->state);
		break;
	case TOP_SORT_CPU:
		d = (a->cpu < b->cpu) - (a->cpu > b->cpu);
		break;
	case TOP_SORT_MEMORY:
		d = (a->memory < b->memory) - (a->memory > b->memory);
		break;
	default:
		break;
	}
	return d ? d : by_rank(a, b);
}

size_t top_rows(const struct top_job *job, top_sort_t sort, const char *filter,
		struct top_row *rows)
{
	struct top_row *ranks = calloc(job->rank_count + 1, sizeof(*ranks));
	struct rows_order o = {job, sort};
	size_t count = 0, n = 0, at = 0;

	if (!ranks)
		return 0;
	for (size_t i = 0; i < job->rank_count; i++)
		if (matches(job, &job->ranks[i], filter))
			ranks[n++] = (struct top_row){-1, (int)i};
	qsort_r(ranks, n, sizeof(*ranks), compare, &o);
	if (sort != TOP_SORT_NODE) {
		memcpy(rows, ranks, n * sizeof(*rows));
		free(ranks);
		return n;
	}
	for (; at < n && job->ranks[ranks[at].rank].node < 0; at++)
		rows[count++] = ranks[at];
	for (size_t k = 0; k < job->node_count; k++) {
		size_t node_row = count;

		rows[count++] = (struct top_row){(int)k, -1};
		for (; at < n && job->ranks[ranks[at].rank].node == (int)k; at++)
			if (!job->nodes[k].folded || *filter)
				rows[count++] = ranks[at];
		if (*filter && count == node_row + 1)
			count = node_row;
	}
	free(ranks);
	return count;
}

void top_node_summary(const struct top_job *job, int node, char *text, size_t size)
{
	const char *states[16];
	int counts[16] = {0};
	size_t n = 0, len = 0;

	for (size_t i = 0; i < job->rank_count; i++) {
		const struct top_rank *r = &job->ranks[i];
		size_t k = 0;

		if (r->node != node)
			continue;
		while (k < n && strcmp(states[k], r->state) != 0)
			k++;
		if (k == 16)
			continue;
		if (k == n)
			states[n++] = r->state;
		counts[k]++;
	}
	text[0] = '\0';
	for (size_t k = 0; k < n && len < size; k++)
		len += (size_t)snprintf(text + len, size - len, "%s%d %s", k ? ", " : "", counts[k],
					states[k]);
	if (n == 0)
		snprintf(text, size, "no ranks");
}

/* The next of what blanks part. */
static const char *word_next(const char **at, const char *end, size_t *len)
{
	const char *word = *at;

	while (word < end && *word == ' ')
		word++;
	*at = word;
	while (*at < end && **at != ' ')
		(*at)++;
	*len = (size_t)(*at - word);
	return word;
}

void top_event_text(const char *line, size_t len, char *text, size_t size)
{
	enum { TIME, SEVERITY, SPACE, NAME, HOST, WORDS };
	const char *at = line, *end = line + len, *word[WORDS], *clock, *more;
	size_t n[WORDS], more_len;

	for (int i = 0; i < WORDS; i++)
		word[i] = word_next(&at, end, &n[i]);
	clock = memchr(word[TIME], 'T', n[TIME]);
	if (n[HOST] < 6 || strncmp(word[HOST], "host=", 5) != 0 || !clock ||
	    n[TIME] < (size_t)(clock - line) + 9) {
		snprintf(text, size, "%.*s", (int)len, line);
		return;
	}
	more = word_next(&at, end, &more_len);
	if (more_len > 4 && strncmp(more, "job=", 4) == 0)
		more = word_next(&at, end, &more_len);
	snprintf(text, size, "%.8s %.*s %.*s %.*s%s%.*s", clock + 1, (int)n[SEVERITY],
		 word[SEVERITY], (int)n[NAME], word[NAME], (int)n[HOST] - 5, word[HOST] + 5,
		 more < end ? ": " : "", (int)(end - more), more);
}
