/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects told to be scratch (haleSetMemFlags): until the program has waited for the commands that
 * use one, its content is as good as any other's. Epochs, and checkpoints, are of all threads and
 * queues; so one may be taken between the command that fills it and the one that needs it. */
#include "base/base.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

static void use(struct mem *m, const struct ocl_entry *e)
{
	m = m->root;
	if (!m->scratch)
		return;
	if (m->user != e->queue) {
		if (m->user)
			ocl_drop(OBJ(m->user));
		ocl_hold(OBJ(e->queue));
		m->user = e->queue;
	}
	m->used_at = e->number;
}

static void use_all(const struct ocl_entry *e, const struct ocl_entry *with)
{
	if (e->dst)
		use(e->dst, with);
	if (e->src)
		use(e->src, with);
	for (uint32_t i = 0; i < e->used_count; i++)
		if (e->used[i]->kind == OCL_MEM || e->used[i]->kind == OCL_SVM)
			use((struct mem *)e->used[i], with);
}

static bool has_scratch(struct domain *d)
{
	for
		EACH_CONTENT(d, m)
	if (m->scratch)
		return true;
	return false;
}

void ocl_scratch_look(struct domain *d)
{
	if (!(ocl.set.opt & OCL_OPT_SB) || !has_scratch(d))
		return;
	for (const struct ocl_entry *e = d->first; e; e = e->next) {
		if (!e->queue)
			continue;
		use_all(e, e);
		for (const struct ocl_entry *r = e->recorded ? e->recorded->first : NULL; r;
		     r = r->next)
			use_all(r, e);
	}
}

bool ocl_scratch_is_over(const struct mem *m)
{
	if (!m->scratch || !(ocl.set.opt & OCL_OPT_SB))
		return false;
	if (!m->user) /* it has what it was made with, if that */
		return !(m->flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR));
	return m->used_at <= m->user->finished;
}
