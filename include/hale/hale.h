/* SPDX-License-Identifier: BSD-3-Clause */
/* <hale/hale.h>: what a program may say to Hale. Link with -lhale (from lib/hale), or declare the
 * functions weak and test them for NULL: under `hale run` they are there, elsewhere not. */
#ifndef HALE_HALE_H
#define HALE_HALE_H

#ifdef __cplusplus
extern "C" {
#endif

#define HALE_CKPT_CONTINUED 0	 /* the checkpoint was taken and this process simply goes on */
#define HALE_CKPT_RESTARTED 1	 /* this process was rebuilt from that checkpoint */
#define HALE_CKPT_FAILED    (-1) /* no checkpoint was taken; a sentence on stderr says why */

/* Asks for a checkpoint of the whole job and returns when this process's state has been captured
 * (its image may still be on its way to the store; the checkpoint counts once it is complete).
 * Any rank may call it; calls by several ranks while one checkpoint is under way are one. Blocks.
 * Not from a signal handler. Outside `hale run` it returns HALE_CKPT_FAILED.
 * Source: application-initiated checkpoint, seed 001, 2.1. */
int HALE_Checkpoint(void);

#ifdef __cplusplus
}
#endif

#endif
