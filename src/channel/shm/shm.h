/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel between processes of one node: rings in the node's segment for records, and
 * process_vm_readv/writev for big payloads. */
#ifndef HALE_CHANNEL_SHM_SHM_H
#define HALE_CHANNEL_SHM_SHM_H

#include "channel/channel.h"

extern const struct channel_ops channel_shm;

/* cma.c: single copies between two processes; see get and put in channel.h. */
void shm_cma_configure(void); /* reads the environment */
void shm_cma_open(void);      /* again after a restart */
ssize_t shm_cma_get(uint32_t rank, const struct iovec *local, size_t nlocal,
		    const struct iovec *remote, size_t nremote, bool stable);
ssize_t shm_cma_put(uint32_t rank, const struct iovec *local, size_t nlocal,
		    const struct iovec *remote, size_t nremote);

#endif
