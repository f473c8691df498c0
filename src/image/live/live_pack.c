// SPDX-License-Identifier: BSD-3-Clause
#include "image/live/live_pack.h"

/* Batches before the first try, and most between two. */
enum { GAP_FIRST = 4, GAP_MOST = 1024, GAP_GROWS = 4 };

/* What compressing must save at least. */
#define WORTH 0.9

bool live_pack_next(struct live_packing *p)
{
	if (p->on)
		return true;
	if (p->gap == 0)
		p->wait = p->gap = GAP_FIRST;
	return p->wait == 0;
}

static double mean(double before, double now)
{
	return before > 0 ? (before + now) / 2 : now;
}

void live_pack_took(struct live_packing *p, size_t raw, size_t packed, size_t sent, double send_s,
		    double pack_s)
{
	if (sent > 0)
		p->send = mean(p->send, send_s / (double)sent);
	if (pack_s <= 0 || raw == 0) {
		p->wait -= p->wait > 0;
		return;
	}
	p->pack = mean(p->pack, pack_s / (double)raw);
	p->left = mean(p->left, (double)packed / (double)raw);
	p->on = p->pack + p->left * p->send < WORTH * p->send;
	if (p->on)
		return;
	p->gap = p->gap * GAP_GROWS < GAP_MOST ? p->gap * GAP_GROWS : GAP_MOST;
	p->wait = p->gap;
}
