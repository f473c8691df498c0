/* SPDX-License-Identifier: BSD-3-Clause */
/* Redundant ranks: r replicas of each, with and without cloning a lost one from its twin; partial
 * redundancy under checkpoints (000 3.1, 3.7, 3.9). */
#ifndef HALE_MODEL_REDUNDANCY_H
#define HALE_MODEL_REDUNDANCY_H

#include <stdbool.h>
#include "base/error.h"

/* Sums over all ranks and calls of one plain run, by mpiP's definitions: app from the end of
 * MPI_Init to the beginning of MPI_Finalize, mpi within MPI calls, the rest by call. */
struct model_mpi_times {
	double app_s, mpi_s, send_s, isend_s, recv_s, irecv_s, wait_s;
};

struct model_comm {
	double alpha;  /* share of time spent in MPI */
	double f_send; /* 000 eq. 3.1: of that, in sends; f_send + f_recv <= 1 from measurements */
	double f_recv; /* 000 eq. 3.2 */
	double beta;   /* 000 eq. 3.3: share of time that every further replica costs once more */
};

/* Waiting counts as receiving if there are no non-blocking sends, as sending if there are no
 * non-blocking receives, half as each if there are both, as neither if there is neither (C1, C2).
 * A kind of call is there if its time is not 0. */
hale_status_t model_comm_from_times(const struct model_mpi_times *times, struct model_comm *comm,
				    struct error *err);
/* β = min(F_send, F_recv) α. */
hale_status_t model_beta(double alpha, double f_send, double f_recv, double *beta,
			 struct error *err);

struct model_redundancy {
	double work_s;	    /* t: time of the program without redundancy and failures */
	double nodes;	    /* n: nodes that the program sees */
	double degree;	    /* r: replicas of each; whole, 1 … 16 */
	double beta;	    /* see model_comm */
	double node_mttf_s; /* θ; INFINITY: never fails */
	double clone_s;	    /* t_clone: time that a cloning takes from the job */
	double relaunch_s;  /* D: time to start the job again after it was lost */
	double repair_s;    /* MTTR of a node; INFINITY: not repaired while the job runs */
	bool cloning;	    /* lost replicas are cloned (2xD); else the job is lost with the last */
	/* false: the published formulas; true: without their approximations (docs/models.md) */
	bool exact;
};

struct model_redundancy_result {
	double red_s;	      /* T_red: without failures, 000 eq. 3.4 */
	double total_s;	      /* T_total: 000 eq. 3.7 with cloning, 3.9.2 without */
	double failures;      /* expected node failures during total_s */
	double spare_nodes;   /* to replace each; with repair only those under repair; whole */
	double reliability;   /* P(no rank loses all its replicas), R_sys; see the .c for cloning */
	double nodes_running; /* n r */
	double node_s;	      /* n r total_s: what the job uses of the machine */
};

/* With cloning and λ n r t_clone >= 1 the job never finishes: an error that says so. Re-running a
 * hopeless job may give total_s = INFINITY. */
hale_status_t model_redundancy(const struct model_redundancy *in,
			       struct model_redundancy_result *out, struct error *err);

/* The number of nodes n at which a and b take equally long, all else as given in them (their nodes
 * are ignored), searched between low and high; HALE_ERR_ARGUMENT if they don't cross there. */
hale_status_t model_redundancy_crossing(const struct model_redundancy *a,
					const struct model_redundancy *b, double low, double high,
					double *nodes, struct error *err);

/* Spares so that none is missing with that probability, failures being a Poisson process: the
 * quantile of Poisson(mean). */
hale_status_t model_spares_for(double mean, double probability, double *spares, struct error *err);

/* 000 3.9.3: probability that a soft error strikes the rank whose twin is gone, within a window of
 * vulnerability; ranks N of 2, each executing for rank_s: w / (2 N T_p), as published. */
hale_status_t model_vulnerability(double window_s, double ranks, double rank_s, double *probability,
				  struct error *err);

/* Some of the ranks twofold, under checkpoints (000 figure 3.1). */
struct model_partial {
	double work_s;
	double nodes;	    /* that the program sees; replicas come on top */
	double fraction;    /* of these that have a replica */
	double beta;	    /* cost of full redundancy; a part of it for a part */
	double node_mttf_s; /* exponential */
	double ckpt_s, restart_s;
};
struct model_partial_result {
	double mtti_s;	   /* mean time to an interrupt of the job, all nodes new at the start */
	double interval_s; /* Daly's for that */
	double total_s;	   /* Daly's wall time; INFINITY where it exceeds what doubles hold */
	double node_s;	   /* total_s times nodes used: its inverse is the job capacity */
};
hale_status_t model_partial(const struct model_partial *in, struct model_partial_result *out,
			    struct error *err);

#endif
