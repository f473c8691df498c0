/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens when a program calls a function that is not implemented (gen_stubs.py). */
#include "mpi/abi/abi.h"
#include "mpi/comm/comm.h"

/* One sentence per function: programs may try in a loop, and some expect to be refused. */
static bool say_it(const char *function)
{
	static const char *said[64];
	static size_t n;

	for (size_t i = 0; i < n; i++)
		if (said[i] == function)
			return false;
	if (n < ARRAY_LEN(said))
		said[n++] = function;
	return true;
}

int abi_unsupported(enum abi_scope scope, const void *handle, const char *function)
{
	struct comm *c = NULL;

	if (api_state != API_RUNNING)
		api_not_running(function);
	if (say_it(function))
		log_warn("%s is not supported by this version of Hale; the call fails with "
			 "MPI_ERR_UNSUPPORTED_OPERATION",
			 function);
	switch (scope) {
	case ABI_FILE:
		return errhandler_file_error(MPI_ERR_UNSUPPORTED_OPERATION, function);
	case ABI_WIN:
		return errhandler_win_error(NULL, NULL, MPI_ERR_UNSUPPORTED_OPERATION, function);
	case ABI_COMM:
		c = (struct comm *)(uintptr_t)handle;
		break;
	case ABI_WORLD:
		break;
	}
	return api_error(comm_ok(c) ? c : NULL, MPI_ERR_UNSUPPORTED_OPERATION, function);
}
