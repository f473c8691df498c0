// SPDX-License-Identifier: BSD-3-Clause
/* What offload_eight.c and its functions on the device (offload_kernels.c) say to each other. */
#ifndef OFFLOAD_EIGHT_H
#define OFFLOAD_EIGHT_H

enum { EIGHT_PARTS = 8, EIGHT_CLUSTERS = 16 };

struct eight_step {
	unsigned n, step, part, parts;
	double centre[EIGHT_CLUSTERS][2]; /* for km alone */
};

struct hale_call;
void md(struct hale_call *c);
void mc(struct hale_call *c);
void sg(struct hale_call *c);
void ss(struct hale_call *c);
void km(struct hale_call *c);
void jz(struct hale_call *c);
void gz(struct hale_call *c);
void hz(struct hale_call *c);

#endif
