/* SPDX-License-Identifier: BSD-3-Clause */
/* Error classes and codes: the texts that programs see are Open MPI's, word for word, because some
 * print them and are compared by them. A predefined code is its own class. */
#include <string.h>
#include "mpi/comm/comm.h"
#include "mpi/mpi4.h"

static const char *const predefined[MPI_ERR_VALUE_TOO_LARGE + 1] = {
    [MPI_SUCCESS] = "MPI_SUCCESS: no errors",
    [MPI_ERR_BUFFER] = "MPI_ERR_BUFFER: invalid buffer pointer",
    [MPI_ERR_COUNT] = "MPI_ERR_COUNT: invalid count argument",
    [MPI_ERR_TYPE] = "MPI_ERR_TYPE: invalid datatype",
    [MPI_ERR_TAG] = "MPI_ERR_TAG: invalid tag",
    [MPI_ERR_COMM] = "MPI_ERR_COMM: invalid communicator",
    [MPI_ERR_RANK] = "MPI_ERR_RANK: invalid rank",
    [MPI_ERR_REQUEST] = "MPI_ERR_REQUEST: invalid request",
    [MPI_ERR_ROOT] = "MPI_ERR_ROOT: invalid root",
    [MPI_ERR_GROUP] = "MPI_ERR_GROUP: invalid group",
    [MPI_ERR_OP] = "MPI_ERR_OP: invalid reduce operation",
    [MPI_ERR_TOPOLOGY] = "MPI_ERR_TOPOLOGY: invalid communicator topology",
    [MPI_ERR_DIMS] = "MPI_ERR_DIMS: invalid topology dimension",
    [MPI_ERR_ARG] = "MPI_ERR_ARG: invalid argument of some other kind",
    [MPI_ERR_UNKNOWN] = "MPI_ERR_UNKNOWN: unknown error",
    [MPI_ERR_TRUNCATE] = "MPI_ERR_TRUNCATE: message truncated",
    [MPI_ERR_OTHER] = "MPI_ERR_OTHER: known error not in list",
    [MPI_ERR_INTERN] = "MPI_ERR_INTERN: internal error",
    [MPI_ERR_IN_STATUS] = "MPI_ERR_IN_STATUS: error code in status",
    [MPI_ERR_PENDING] = "MPI_ERR_PENDING: pending request",
    [MPI_ERR_ACCESS] = "MPI_ERR_ACCESS: invalid access mode",
    [MPI_ERR_AMODE] = "MPI_ERR_AMODE: invalid amode argument",
    [MPI_ERR_ASSERT] = "MPI_ERR_ASSERT: invalid assert argument",
    [MPI_ERR_BAD_FILE] = "MPI_ERR_BAD_FILE: bad file",
    [MPI_ERR_BASE] = "MPI_ERR_BASE: invalid base",
    [MPI_ERR_CONVERSION] = "MPI_ERR_CONVERSION: error in data conversion",
    [MPI_ERR_DISP] = "MPI_ERR_DISP: invalid displacement",
    [MPI_ERR_DUP_DATAREP] = "MPI_ERR_DUP_DATAREP: error duplicating data representation",
    [MPI_ERR_FILE_EXISTS] = "MPI_ERR_FILE_EXISTS: file exists alreay",
    [MPI_ERR_FILE_IN_USE] = "MPI_ERR_FILE_IN_USE: file already in use",
    [MPI_ERR_FILE] = "MPI_ERR_FILE: invalid file",
    [MPI_ERR_INFO_KEY] = "MPI_ERR_INFO_KEY: invalid key argument for info object",
    [MPI_ERR_INFO_NOKEY] = "MPI_ERR_INFO_NOKEY: unknown key for given info object",
    [MPI_ERR_INFO_VALUE] = "MPI_ERR_INFO_VALUE: invalid value argument for info object",
    [MPI_ERR_INFO] = "MPI_ERR_INFO: invalid info object",
    [MPI_ERR_IO] = "MPI_ERR_IO: input/output error",
    [MPI_ERR_KEYVAL] = "MPI_ERR_KEYVAL: invalid key value",
    [MPI_ERR_LOCKTYPE] = "MPI_ERR_LOCKTYPE: invalid lock",
    [MPI_ERR_NAME] = "MPI_ERR_NAME: invalid name argument",
    [MPI_ERR_NO_MEM] = "MPI_ERR_NO_MEM: out of memory",
    [MPI_ERR_NOT_SAME] = "MPI_ERR_NOT_SAME: objects are not identical",
    [MPI_ERR_NO_SPACE] = "MPI_ERR_NO_SPACE: no space left on device",
    [MPI_ERR_NO_SUCH_FILE] = "MPI_ERR_NO_SUCH_FILE: no such file or directory",
    [MPI_ERR_PORT] = "MPI_ERR_PORT: invalid port",
    [MPI_ERR_QUOTA] = "MPI_ERR_QUOTA: out of quota",
    [MPI_ERR_READ_ONLY] = "MPI_ERR_READ_ONLY: file is read only",
    [MPI_ERR_RMA_CONFLICT] = "MPI_ERR_RMA_CONFLICT: rma conflict during operation",
    [MPI_ERR_RMA_SYNC] = "MPI_ERR_RMA_SYNC: error executing rma sync",
    [MPI_ERR_SERVICE] = "MPI_ERR_SERVICE: unknown service name",
    [MPI_ERR_SIZE] = "MPI_ERR_SIZE: invalid size",
    [MPI_ERR_SPAWN] = "MPI_ERR_SPAWN: could not spawn processes",
    [MPI_ERR_UNSUPPORTED_DATAREP] =
	"MPI_ERR_UNSUPPORTED_DATAREP: data representation not supported",
    [MPI_ERR_UNSUPPORTED_OPERATION] = "MPI_ERR_UNSUPPORTED_OPERATION: operation not supported",
    [MPI_ERR_WIN] = "MPI_ERR_WIN: invalid window",
    [MPI_T_ERR_MEMORY] = "MPI_T_ERR_MEMORY: out of memory",
    [MPI_T_ERR_NOT_INITIALIZED] = "MPI_T_ERR_NOT_INITIALIZED: interface not initialized",
    [MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_CANNOT_INIT: interface not in the state to be initialized",
    [MPI_T_ERR_INVALID_INDEX] = "MPI_T_ERR_INVALID_INDEX: invalid index",
    [MPI_T_ERR_INVALID_ITEM] = "MPI_T_ERR_INVALID_ITEM: the item index queried is out of range",
    [MPI_T_ERR_INVALID_HANDLE] = "MPI_T_ERR_INVALID_HANDLE: the handle is invalid",
    [MPI_T_ERR_OUT_OF_HANDLES] = "MPI_T_ERR_OUT_OF_HANDLES: no more handles available",
    [MPI_T_ERR_OUT_OF_SESSIONS] = "MPI_T_ERR_OUT_OF_SESSIONS: no more sessions available",
    [MPI_T_ERR_INVALID_SESSION] =
	"MPI_T_ERR_INVALID_SESSION: session argument is not a valid session",
    [MPI_T_ERR_CVAR_SET_NOT_NOW] =
	"MPI_T_ERR_CVAR_SET_NOT_NOW: variable cannot be set at this moment",
    [MPI_T_ERR_CVAR_SET_NEVER] =
	"MPI_T_ERR_CVAR_SET_NEVER: variable cannot be set until end of execution",
    [MPI_T_ERR_PVAR_NO_STARTSTOP] =
	"MPI_T_ERR_PVAR_NO_STARTSTOP: variable cannot be started or stopped",
    [MPI_T_ERR_PVAR_NO_WRITE] = "MPI_T_ERR_PVAR_NO_WRITE: variable cannot be written or reset",
    [MPI_T_ERR_PVAR_NO_ATOMIC] =
	"MPI_T_ERR_PVAR_NO_ATOMIC: variable cannot be read and written atomically",
    [MPI_ERR_RMA_RANGE] = "MPI_ERR_RMA_RANGE: invalid RMA address range",
    [MPI_ERR_RMA_ATTACH] = "MPI_ERR_RMA_ATTACH: Could not attach RMA segment",
    [MPI_ERR_RMA_FLAVOR] = "MPI_ERR_RMA_FLAVOR: Invalid type of window",
    [MPI_ERR_RMA_SHARED] = "MPI_ERR_RMA_SHARED: Memory cannot be shared",
    [MPI_T_ERR_INVALID] =
	"MPI_T_ERR_INVALID: Invalid use of the interface or bad parameter value(s)",
    [MPI_ERR_PROC_ABORTED] = "MPI_ERR_PROC_ABORTED: operation failed because a remote peer has aborted",
    [MPI_ERR_SESSION] = "MPI_ERR_SESSION: invalid session",
    [MPI_ERR_VALUE_TOO_LARGE] =
	"MPI_ERR_VALUE_TOO_LARGE: value is too large to be stored in the output argument",
    [MPI_T_ERR_INVALID_NAME] = "MPI_T_ERR_INVALID_NAME: The variable or category name is invalid",
};

/* Codes from MPI_ERR_LASTCODE + 1 on, in the order of their making. */
struct added {
	int class; /* 0: removed, and free for the next one */
	char text[MPI_MAX_ERROR_STRING];
};
static struct added *added;
static int added_count, added_cap;

static struct added *added_find(int code)
{
	int i = code - MPI_ERR_LASTCODE - 1;
	return code > MPI_ERR_LASTCODE && i < added_count && added[i].class ? &added[i] : NULL;
}

bool error_known(int code)
{
	return (code >= 0 && code <= MPI_ERR_LASTCODE) || added_find(code);
}

int error_class(int code)
{
	const struct added *a = added_find(code);
	if (a)
		return a->class;
	return code >= 0 && code < (int)ARRAY_LEN(predefined) && predefined[code]
		   ? code
		   : MPI_ERR_UNKNOWN;
}

const char *error_text(int code)
{
	const struct added *a = added_find(code);
	if (a)
		return a->text;
	if (code >= 0 && code < (int)ARRAY_LEN(predefined) && predefined[code])
		return predefined[code];
	return error_known(code) ? "Unknown error (this should not happen!)" : NULL;
}

static int add_code(int class, int *code)
{
	int slot = 0;
	while (slot < added_count && added[slot].class)
		slot++;
	if (slot == added_cap) {
		int cap = added_cap ? 2 * added_cap : 16;
		struct added *grown = heap_realloc(added, (size_t)cap * sizeof(*grown));
		if (!grown)
			return MPI_ERR_NO_MEM;
		added = grown;
		added_cap = cap;
	}
	*code = MPI_ERR_LASTCODE + 1 + slot;
	struct added *a = &added[slot];
	added_count += slot == added_count;
	memset(a, 0, sizeof(*a));
	a->class = class < 0 ? *code : class;
	attr_last_used_code(*code);
	return MPI_SUCCESS;
}

int PMPI_Error_class(int errorcode, int *errorclass)
{
	API_ENTER_ANYTIME("MPI_Error_class");
	if (!errorclass || !error_known(errorcode))
		return API_FAIL(NULL, MPI_ERR_ARG);
	*errorclass = error_class(errorcode);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Error_class);

int PMPI_Error_string(int errorcode, char *string, int *resultlen)
{
	API_ENTER_ANYTIME("MPI_Error_string");
	const char *text = error_text(errorcode);
	if (!text || !string || !resultlen)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*resultlen = (int)strlen(text);
	memcpy(string, text, (size_t)*resultlen + 1);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Error_string);

int PMPI_Add_error_class(int *errorclass)
{
	API_ENTER_ANYTIME("MPI_Add_error_class");
	if (!errorclass)
		return API_FAIL(NULL, MPI_ERR_ARG);
	return API_LEAVE(NULL, add_code(-1, errorclass));
}
API_ALIAS(Add_error_class);

int PMPI_Add_error_code(int errorclass, int *errorcode)
{
	API_ENTER_ANYTIME("MPI_Add_error_code");
	const struct added *a = added_find(errorclass);
	bool is_class =
	    a ? a->class == errorclass : errorclass >= 0 && errorclass <= MPI_ERR_LASTCODE;
	if (!errorcode || !is_class)
		return API_FAIL(NULL, MPI_ERR_ARG);
	return API_LEAVE(NULL, add_code(errorclass, errorcode));
}
API_ALIAS(Add_error_code);

int PMPI_Add_error_string(int errorcode, const char *string)
{
	API_ENTER_ANYTIME("MPI_Add_error_string");
	struct added *a = added_find(errorcode);
	size_t n = string ? strlen(string) + 1 : 0;
	if (!a || n == 0 || n > sizeof(a->text))
		return API_FAIL(NULL, MPI_ERR_ARG);
	memcpy(a->text, string, n);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Add_error_string);

/* ---- MPI-4.1 9.5: what was added goes again ---- */

static bool class_has_codes(int class)
{
	for (int i = 0; i < added_count; i++)
		if (added[i].class == class && MPI_ERR_LASTCODE + 1 + i != class)
			return true;
	return false;
}

int PMPI_Remove_error_class(int errorclass)
{
	API_ENTER_ANYTIME("MPI_Remove_error_class");
	struct added *a = added_find(errorclass);
	if (!a || a->class != errorclass || a->text[0] || class_has_codes(errorclass))
		return API_FAIL(NULL, MPI_ERR_OTHER);
	a->class = 0;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Remove_error_class);

int PMPI_Remove_error_code(int errorcode)
{
	API_ENTER_ANYTIME("MPI_Remove_error_code");
	struct added *a = added_find(errorcode);
	if (!a || a->class == errorcode || a->text[0])
		return API_FAIL(NULL, MPI_ERR_OTHER);
	a->class = 0;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Remove_error_code);

int PMPI_Remove_error_string(int errorcode)
{
	API_ENTER_ANYTIME("MPI_Remove_error_string");
	struct added *a = added_find(errorcode);
	if (!a || !a->text[0])
		return API_FAIL(NULL, MPI_ERR_OTHER);
	a->text[0] = '\0';
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Remove_error_string);
