/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALE_CKPT_STAND_H
#define HALE_CKPT_STAND_H

/* Waits until this process, which has done nothing yet, is told what it is to become: its
 * environment and its three streams are other ones then. argv0 is what it is called meanwhile.
 * Returns HALE_SINK's value. Does not return if nobody will say so any more. */
const char *stand_for_order(char *argv0);

#endif
