/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include "model/check.h"
#include "model/interval.h"
#include "model/law.h"
#include "model/quad.h"
#include "model/redundancy.h"

hale_status_t model_beta(double alpha, double f_send, double f_recv, double *beta,
			 struct error *err)
{
	if (check_fraction("alpha", alpha, err) || check_fraction("F_send", f_send, err) ||
	    check_fraction("F_recv", f_recv, err))
		return HALE_ERR_ARGUMENT;
	*beta = fmin(f_send, f_recv) * alpha;
	return HALE_OK;
}

static hale_status_t check_times(const struct model_mpi_times *t, struct error *err)
{
	double parts = t->send_s + t->isend_s + t->recv_s + t->irecv_s + t->wait_s;

	if (check_positive("the run's time (s)", t->app_s, err) ||
	    check_not_negative("the time in MPI (s)", t->mpi_s, err) ||
	    check_not_negative("the time in sends (s)", t->send_s, err) ||
	    check_not_negative("the time in non-blocking sends (s)", t->isend_s, err) ||
	    check_not_negative("the time in receives (s)", t->recv_s, err) ||
	    check_not_negative("the time in non-blocking receives (s)", t->irecv_s, err) ||
	    check_not_negative("the time in waits (s)", t->wait_s, err))
		return HALE_ERR_ARGUMENT;
	if (t->mpi_s > t->app_s)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the time in MPI (%g s) is longer than the run (%g s)", t->mpi_s,
				 t->app_s);
	/* a little more is the clock's resolution */
	if (parts > t->mpi_s * 1.001)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "sends, receives and waits (%g s) are longer than the time in MPI "
				 "(%g s)",
				 parts, t->mpi_s);
	return HALE_OK;
}

hale_status_t model_comm_from_times(const struct model_mpi_times *t, struct model_comm *comm,
				    struct error *err)
{
	double as_send = 0, as_recv = 0;
	struct model_comm c = {0};

	if (check_times(t, err))
		return HALE_ERR_ARGUMENT;
	if (t->isend_s > 0 && t->irecv_s > 0)
		as_send = as_recv = 0.5;
	else if (t->irecv_s > 0)
		as_recv = 1;
	else if (t->isend_s > 0)
		as_send = 1;
	c.alpha = t->mpi_s / t->app_s;
	if (t->mpi_s > 0) {
		c.f_send = fmin(1, (t->send_s + t->isend_s + as_send * t->wait_s) / t->mpi_s);
		c.f_recv = fmin(1, (t->recv_s + t->irecv_s + as_recv * t->wait_s) / t->mpi_s);
	}
	c.beta = fmin(c.f_send, c.f_recv) * c.alpha;
	*comm = c;
	return HALE_OK;
}

static hale_status_t check_redundancy(const struct model_redundancy *in, struct error *err)
{
	if (check_positive("the program's time (s)", in->work_s, err) ||
	    check_whole("the number of nodes", in->nodes, 1, 1e12, err) ||
	    check_whole("the degree of redundancy", in->degree, 1, 16, err) ||
	    check_fraction("beta", in->beta, err) ||
	    check_above_0("the mean time to failure of a node (s)", in->node_mttf_s, err) ||
	    check_not_negative("the cloning time (s)", in->clone_s, err) ||
	    check_not_negative("the time to launch again (s)", in->relaunch_s, err) ||
	    check_above_0("the time to repair a node (s)", in->repair_s, err))
		return HALE_ERR_ARGUMENT;
	if (in->cloning && in->degree < 2)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "cloning needs a replica to clone from: a degree of 2 or more");
	return HALE_OK;
}

/* Expected time of a job of length T that starts again from its beginning, after D, at each loss;
 * losses at the constant rate 1/Λ. */
static double rerun_s(double length_s, double relaunch_s, double loss_hz)
{
	if (loss_hz * length_s < 1e-12) /* (e^x - 1) / x = 1 + x/2 */
		return length_s;
	return (relaunch_s + 1 / loss_hz) * expm1(loss_hz * length_s);
}

/* P(no rank of n has lost all r replicas by t), nodes failing exponentially; its logarithm. */
static double log_reliability(const struct model_redundancy *in, double t_s)
{
	double gone = -expm1(-t_s / in->node_mttf_s);

	return in->nodes * log1p(-pow(gone, in->degree));
}

static double reliability_integrand(double t_s, const void *context)
{
	return exp(log_reliability(context, t_s));
}

/* Re-executed from the start when a rank has lost all its replicas. */
static hale_status_t rerun(const struct model_redundancy *in, struct model_redundancy_result *out,
			   struct error *err)
{
	double t = out->red_s, log_r, up_s;

	if (isinf(in->node_mttf_s)) {
		out->reliability = 1;
		out->total_s = t;
		return HALE_OK;
	}
	if (in->exact) {
		log_r = log_reliability(in, t);
		/* a renewal: each try runs to its loss or its end, E[tries] = 1/R */
		up_s = model_integrate(reliability_integrand, in, 0, t);
		out->reliability = exp(log_r);
		out->total_s = up_s * exp(-log_r) + in->relaunch_s * expm1(-log_r);
		return HALE_OK;
	}
	if (t >= in->node_mttf_s)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the published formula takes T/MTTF for the probability of a "
				 "failure, but the run (%g s) is not shorter than a node's mean "
				 "time to failure (%g s); ask for the exact form",
				 t, in->node_mttf_s);
	log_r = in->nodes * in->degree * log1p(-pow(t / in->node_mttf_s, in->degree));
	out->reliability = exp(log_r);
	out->total_s = rerun_s(t, in->relaunch_s, -log_r / t);
	return HALE_OK;
}

/* 000 eq. 3.7. What it leaves out, a rank whose other replicas all fail while it is cloned, comes
 * at the rate n r λ (1 - e^(-λ t_clone))^(r-1): its absence is the reliability; the exact form
 * starts the job again then. */
static hale_status_t clone(const struct model_redundancy *in, struct model_redundancy_result *out,
			   struct error *err)
{
	double fail_hz = in->nodes * in->degree / in->node_mttf_s;
	double busy = fail_hz * in->clone_s;
	double loss_hz = fail_hz * pow(-expm1(-in->clone_s / in->node_mttf_s), in->degree - 1);

	if (busy >= 1)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the job never finishes: nodes fail every %.3g s on average, and "
				 "cloning one takes %.3g s (lambda n r t_clone = %.3g, and must be "
				 "below 1)",
				 1 / fail_hz, in->clone_s, busy);
	out->total_s = out->red_s / (1 - busy);
	out->reliability = exp(-loss_hz * out->total_s);
	if (in->exact)
		out->total_s = rerun_s(out->total_s, in->relaunch_s, loss_hz);
	return HALE_OK;
}

/* Cloning replaces every node lost; without, the nodes lost in tries that came to nothing. */
static double spares(const struct model_redundancy *in, const struct model_redundancy_result *out)
{
	double window_s = in->cloning ? out->total_s : fmax(0, out->total_s - out->red_s);
	double lost = window_s * out->nodes_running / in->node_mttf_s;

	if (window_s == 0)
		return 0;
	if (isinf(in->repair_s))
		return ceil(lost);
	if (in->exact) /* under repair at a time, on average (Little) */
		return ceil(fmin(window_s, in->repair_s) * out->nodes_running / in->node_mttf_s);
	return ceil(ceil(lost) / fmax(1, floor(out->total_s / in->repair_s)));
}

hale_status_t model_redundancy(const struct model_redundancy *in,
			       struct model_redundancy_result *out, struct error *err)
{
	struct model_redundancy_result r = {0};

	if (check_redundancy(in, err))
		return HALE_ERR_ARGUMENT;
	r.nodes_running = in->nodes * in->degree;
	r.red_s = in->beta * in->work_s * in->degree + (1 - in->beta) * in->work_s;
	if (in->cloning ? clone(in, &r, err) : rerun(in, &r, err))
		return HALE_ERR_ARGUMENT;
	r.failures = r.total_s * r.nodes_running / in->node_mttf_s;
	r.spare_nodes = spares(in, &r);
	r.node_s = r.nodes_running * r.total_s;
	*out = r;
	return HALE_OK;
}

/* log(time of b / time of a); one that never finishes, or can't be computed, takes for ever. */
static double advantage(struct model_redundancy a, struct model_redundancy b, double nodes)
{
	struct model_redundancy_result ra, rb;

	a.nodes = b.nodes = floor(nodes);
	if (model_redundancy(&a, &ra, NULL))
		ra.total_s = INFINITY;
	if (model_redundancy(&b, &rb, NULL))
		rb.total_s = INFINITY;
	if (isinf(ra.total_s) && isinf(rb.total_s))
		return 0;
	return log(rb.total_s) - log(ra.total_s);
}

hale_status_t model_redundancy_crossing(const struct model_redundancy *a,
					const struct model_redundancy *b, double low, double high,
					double *nodes, struct error *err)
{
	double l = low, h = high, at_low;
	struct model_redundancy x = *a, y = *b;

	x.nodes = y.nodes = 1;
	if (check_redundancy(&x, err) || check_redundancy(&y, err) ||
	    check_range("the lower number of nodes", low, 1, 1e12, err) ||
	    check_range("the higher number of nodes", high, low, 1e12, err))
		return HALE_ERR_ARGUMENT;
	at_low = advantage(x, y, low);
	if (at_low * advantage(x, y, high) >= 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "neither overtakes the other between %.0f and %.0f nodes", low,
				 high);
	while (h - l > 1) {
		double middle = floor((l + h) / 2);

		if (middle == l)
			break;
		if (advantage(x, y, middle) * at_low > 0)
			l = middle;
		else
			h = middle;
	}
	*nodes = h;
	return HALE_OK;
}

/* Poisson probabilities from the mode outwards would be faster; a pool has thousands at most, and
 * beyond the normal law is as good as anything. */
hale_status_t model_spares_for(double mean, double probability, double *spares_out,
			       struct error *err)
{
	double sum = 0;
	long k;

	if (check_not_negative("the mean number of failures", mean, err) ||
	    check_range("the probability", probability, 0, 1 - 1e-9, err))
		return HALE_ERR_ARGUMENT;
	if (mean > 1e7)
		return error_set(err, HALE_ERR_ARGUMENT, "%g failures are more than this can count",
				 mean);
	for (k = 0; (double)k < mean + 20 * sqrt(mean) + 40; k++) {
		sum += exp((double)k * (mean > 0 ? log(mean) : 0) - mean - lgamma((double)k + 1));
		if (sum >= probability || mean == 0)
			break;
	}
	*spares_out = (double)k;
	return HALE_OK;
}

hale_status_t model_vulnerability(double window_s, double ranks, double rank_s, double *probability,
				  struct error *err)
{
	double p;

	if (check_not_negative("the window (s)", window_s, err) ||
	    check_whole("the number of ranks", ranks, 1, 1e15, err) ||
	    check_positive("the time of a rank (s)", rank_s, err))
		return HALE_ERR_ARGUMENT;
	p = window_s / (2 * ranks * rank_s);
	if (p > 1)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the window is longer than all ranks together run");
	*probability = p;
	return HALE_OK;
}

struct survival {
	double single, paired, mttf_s;
};

/* P(neither a single rank nor both of a pair have failed), all nodes new at 0 */
static double partial_survival(double t_s, const void *context)
{
	const struct survival *s = context;
	double gone = -expm1(-t_s / s->mttf_s);

	return exp(-s->single * t_s / s->mttf_s + s->paired * log1p(-gone * gone));
}

static double mean_time_to_interrupt_s(const struct survival *s)
{
	double scale_s = INFINITY;

	if (s->single > 0)
		scale_s = s->mttf_s / s->single;
	if (s->paired > 0) /* about exp(-paired (t/mttf)^2), for one pair like exp(-t/mttf) */
		scale_s = fmin(scale_s, s->mttf_s / sqrt(s->paired));
	return model_integrate(partial_survival, s, 0, 8 * scale_s) +
	       model_integrate(partial_survival, s, 8 * scale_s, 64 * scale_s);
}

hale_status_t model_partial(const struct model_partial *in, struct model_partial_result *out,
			    struct error *err)
{
	struct model_partial_result r;
	double pairs = round(in->nodes * in->fraction), work_s;

	if (check_positive("the program's time (s)", in->work_s, err) ||
	    check_whole("the number of nodes", in->nodes, 1, 1e12, err) ||
	    check_fraction("the fraction of ranks with a replica", in->fraction, err) ||
	    check_fraction("beta", in->beta, err) ||
	    check_positive("the mean time to failure of a node (s)", in->node_mttf_s, err) ||
	    check_positive("the checkpoint time (s)", in->ckpt_s, err) ||
	    check_not_negative("the restart time (s)", in->restart_s, err))
		return HALE_ERR_ARGUMENT;
	work_s = in->work_s * (1 + in->beta * in->fraction);
	r.mtti_s =
	    mean_time_to_interrupt_s(&(struct survival){in->nodes - pairs, pairs, in->node_mttf_s});
	if (model_daly_s(in->ckpt_s, r.mtti_s, &r.interval_s, err))
		return HALE_ERR_ARGUMENT;
	r.interval_s = fmin(r.interval_s, work_s);
	if (model_daly_wall_s(work_s, r.interval_s, in->ckpt_s, in->restart_s, r.mtti_s, &r.total_s,
			      err))
		return HALE_ERR_ARGUMENT;
	r.node_s = r.total_s * (in->nodes + pairs);
	*out = r;
	return HALE_OK;
}
