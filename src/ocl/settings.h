/* SPDX-License-Identifier: BSD-3-Clause */
/* HALE_OPENCL: a list of key=value, separated by blanks, that says how OpenCL programs are
 * protected. The optimisations are those of VOCL-FT (Peña, Bland, Balaji, SC 2015), section 5. */
#ifndef HALE_OCL_SETTINGS_H
#define HALE_OCL_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

typedef enum ocl_check {
	OCL_CHECK_NVML,	 /* uncorrected ECC errors that the driver counts */
	OCL_CHECK_SCRUB, /* buffers that nobody wrote must still have their checksum */
	OCL_CHECK_FILE,	 /* a number in a file that grows with every error */
	OCL_CHECK_NONE,
} ocl_check_t;

typedef enum ocl_when {
	OCL_CKPT_AUTO, /* as often as the disk and the allowed overhead bear */
	OCL_CKPT_EPOCHS,
	OCL_CKPT_SECONDS,
	OCL_CKPT_OFF,
} ocl_when_t;

enum {
	OCL_OPT_MOD = 1 << 0,  /* only objects that the epoch may have modified are saved */
	OCL_OPT_RO = 1 << 1,   /* kernels don't modify CL_MEM_READ_ONLY objects */
	OCL_OPT_HB = 1 << 2,   /* host data is copied when it is about to change, not at once */
	OCL_OPT_SB = 1 << 3,   /* objects marked as scratch are not saved */
	OCL_OPT_HD = 1 << 4,   /* only epochs that bring device data to the host are closed */
	OCL_OPT_CS = 1 << 5,   /* not every epoch ends with a checkpoint */
	OCL_OPT_AUTO = 1 << 6, /* arguments declared const or constant are not modified */
	OCL_OPT_HASH = 1 << 7, /* of modified objects only chunks whose hash changed are saved */
	OCL_OPT_ALL = (1 << 8) - 1,
};

/* What a check for errors is of. */
typedef enum ocl_phase {
	OCL_AT_EPOCH,	   /* data are about to reach the program; as an injection: any */
	OCL_AT_CHECKPOINT, /* it is valid if there were none meanwhile */
	OCL_AT_REPLAY,	   /* commands have been repeated */
} ocl_phase_t;

struct ocl_settings {
	ocl_check_t check;
	char file[PATH_MAX]; /* OCL_CHECK_FILE */
	ocl_when_t when;
	uint64_t every_epochs;
	double every_seconds;
	unsigned opt; /* OCL_OPT_… */
	char dir[PATH_MAX];
	uint64_t log_bytes; /* of host data in the log at most */
	ocl_phase_t inject_at;
	uint64_t inject_epoch; /* or checkpoint, or replay; 0: none */
	uint64_t inject_times;
	char report[PATH_MAX]; /* empty: none */
	bool server;	       /* the runtime in a process of its own; what hale run goes by */
};

/* text may be NULL (all defaults). HALE_ERR_ARGUMENT with a sentence. */
hale_status_t ocl_settings_parse(const char *text, struct ocl_settings *s, struct error *err);

#endif
