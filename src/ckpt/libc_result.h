/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that stand before libc's, and make the system call themselves: what they return. */
#ifndef HALE_CKPT_LIBC_RESULT_H
#define HALE_CKPT_LIBC_RESULT_H

#include <errno.h>
#include "image/sys.h"

/* Of what the kernel has answered: that, or -1 with errno set. */
static inline long libc_result(long rc)
{
	if (!sys_failed(rc))
		return rc;
	errno = (int)-rc;
	return -1;
}

#endif
