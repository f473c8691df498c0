// SPDX-License-Identifier: BSD-3-Clause
/* Loading libhale_net.so into a link namespace of its own (wire.h says why). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fmt.h"
#include "channel/net/internal.h"

/* For UCX's constructors, which read the environment: no signal handlers, no patched system calls,
 * no thread that shows its state as files. */
static char *const musts[] = {
    "UCX_HANDLE_ERRORS=none",	   "UCX_ERROR_SIGNALS=", "UCX_MEM_EVENTS=n",
    "UCX_MEM_MMAP_HOOK_MODE=none", "UCX_VFS_ENABLE=n",	 "UCX_WARN_UNUSED_ENV_VARS=n"};
/* Unless the user wants otherwise. It logs to stdout, and what it finds worth a warning (a lost
 * connection, a transfer that an image has cut off) is daily business here. */
static char *const defaults[] = {"UCX_LOG_LEVEL=fatal"};
enum { MUSTS = ARRAY_LEN(musts), DEFAULTS = ARRAY_LEN(defaults) };

static bool path_beside(char *path, size_t size)
{
	Dl_info us;
	if (!dladdr(&net, &us) || !us.dli_fname)
		return false;
	const char *slash = strrchr(us.dli_fname, '/');
	int n = slash ? (int)(slash - us.dli_fname) + 1 : 0;
	if ((size_t)n + sizeof("libhale_net.so") > size)
		return false;
	memcpy(path, us.dli_fname, (size_t)n);
	strcpy(path + n, "libhale_net.so");
	return true;
}

/* The program's environment gets nothing of it: it is another array while the library loads. */
static void *load_with_settings(const char *path)
{
	char **before = environ;
	size_t n = 0;
	while (before && before[n])
		n++;
	char **with = calloc(MUSTS + n + DEFAULTS + 1, sizeof(*with));
	if (!with)
		return NULL;
	/* the first of a name counts */
	memcpy(with, musts, sizeof(musts));
	memcpy(with + MUSTS, before, n * sizeof(*with));
	memcpy(with + MUSTS + n, defaults, sizeof(defaults));
	environ = with;
	void *module = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
	environ = before;
	free(with);
	return module;
}

const struct wire *net_load(struct error *err)
{
	static const struct wire *loaded;
	char path[4096];
	if (loaded)
		return loaded;
	if (!path_beside(path, sizeof(path))) {
		error_set(err, HALE_ERR_LINK, "can't tell where Hale's libraries are");
		return NULL;
	}
	void *module = load_with_settings(path);
	const struct wire *wire = module ? dlsym(module, WIRE_SYMBOL) : NULL;
	if (!wire) {
		error_set(err, HALE_ERR_LINK,
			  "ranks on other nodes need libhale_net.so and UCX (Debian package "
			  "libucx0): %s",
			  dlerror());
		return NULL;
	}
	if (wire->version != WIRE_VERSION) {
		error_set(err, HALE_ERR_LINK, "%s is of another version of Hale", path);
		return NULL;
	}
	loaded = wire;
	return loaded;
}
