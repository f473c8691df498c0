/* SPDX-License-Identifier: BSD-3-Clause */
/* A run under checkpoints as Hale takes them, as a formula and played out. */
#include <math.h>
#include <stdio.h>
#include "base/base.h"
#include "model/advise.h"
#include "model/interval.h"

/* A checkpoint is taken at an instant and whole write_s later. A failure in between goes back to
 * the one before it. So of every interval the last failure-free write_s count twice: in the mean a
 * failure loses write_s more than in Daly's model, as if every restart took so much longer. */
hale_status_t advise_checkpointed_s(double work_s, double every_s, double cost_s, double write_s,
				    double restart_s, double mtbf_s, double *wall_s,
				    struct error *err)
{
	double interval = every_s - cost_s;

	if (isinf(mtbf_s)) {
		*wall_s = work_s * every_s / interval;
		return HALE_OK;
	}
	if (interval <= 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "checkpoints that cost %.3g s can't be taken every %.3g s", cost_s,
				 every_s);
	if (work_s > interval)
		return model_daly_wall_s(work_s, interval, cost_s, restart_s + write_s, mtbf_s,
					 wall_s, err);
	/* over before the first one: from the beginning each time */
	*wall_s = (mtbf_s + restart_s) * expm1(work_s / mtbf_s);
	return HALE_OK;
}

struct played {
	double every, cost, write, work;
	double done;	/* work, at the beginning of this stretch */
	double started; /* when the stretch began */
};

/* Work done in a stretch that has lasted so long: each interval gives all but the cost. */
static double work_after(const struct played *p, double elapsed)
{
	double intervals = floor(elapsed / p->every), rest = elapsed - intervals * p->every;
	double spent = intervals > 0 && rest > p->cost ? p->cost : intervals > 0 ? rest : 0;
	double before = intervals > 1 ? (intervals - 1) * p->cost : 0;

	return elapsed - spent - before;
}

/* When a stretch without failures is through with work. */
static double time_for(const struct played *p, double work)
{
	double useful = p->every - p->cost, intervals;

	if (work <= p->every)
		return work;
	intervals = ceil((work - p->every) / useful);
	return work + intervals * p->cost;
}

/* Work that is safe when a stretch ends so: that of the last checkpoint that was whole. */
static double safe_after(const struct played *p, double elapsed)
{
	double last = floor((elapsed - p->write) / p->every);

	return last >= 1 ? work_after(p, last * p->every) : 0;
}

double advise_played_s(double work_s, double every_s, double cost_s, double write_s,
		       double restart_s, const double *failures)
{
	struct played p = {.every = every_s, .cost = cost_s, .write = write_s, .work = work_s};

	for (; isfinite(*failures); failures++) {
		double elapsed = *failures - p.started;

		if (elapsed < 0) { /* during the restart: it begins again */
			p.started = *failures + restart_s;
			continue;
		}
		if (elapsed >= time_for(&p, p.work - p.done))
			break;
		p.done += safe_after(&p, elapsed);
		p.started = *failures + restart_s;
	}
	return p.started + time_for(&p, p.work - p.done);
}

double advise_round_s(double seconds, char text[16])
{
	static const struct {
		double below, unit;
		const char *name;
	} units[] = {{1, 1e-3, "ms"}, {120, 1, "s"}, {7200, 60, "min"}, {INFINITY, 3600, "h"}};
	size_t i = 0;
	double number, digit;

	while (seconds >= units[i].below)
		i++;
	number = seconds / units[i].unit;
	digit = pow(10, floor(log10(number)) - 1);
	number = round(number / digit) * digit;
	snprintf(text, 16, "%.*f%s", digit < 0.99 ? (digit < 0.099 ? 2 : 1) : 0, number,
		 units[i].name);
	return number * units[i].unit;
}
