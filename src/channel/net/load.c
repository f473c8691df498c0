// SPDX-License-Identifier: BSD-3-Clause
/* Which wire: our own over TCP, or UCX where there are adapters for RDMA; HALE_NET_WIRE=tcp or ucx
 * decides otherwise. libhale_net.so is loaded into a link namespace of its own (wire.h says why).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

static const char module_name[] = "libhale_net.so";

static bool path_beside(char *path, size_t size)
{
	Dl_info us;
	if (!dladdr(&net, &us) || !us.dli_fname)
		return false;
	const char *slash = strrchr(us.dli_fname, '/');
	int n = slash ? (int)(slash - us.dli_fname) + 1 : 0;
	if ((size_t)n + sizeof(module_name) > size)
		return false;
	memcpy(path, us.dli_fname, (size_t)n);
	memcpy(path + n, module_name, sizeof(module_name));
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
	if (n)
		memcpy(with + MUSTS, before, n * sizeof(*with));
	memcpy(with + MUSTS + n, defaults, sizeof(defaults));
	environ = with;
	void *module = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
	environ = before;
	free(with);
	return module;
}

static const struct net_wire *ucx_load(struct error *err)
{
	char path[4096];
	if (!path_beside(path, sizeof(path))) {
		error_set(err, HALE_ERR_LINK, "can't tell where Hale's libraries are");
		return NULL;
	}
	void *module = load_with_settings(path);
	const struct net_wire *wire = module ? dlsym(module, WIRE_SYMBOL) : NULL;
	if (!wire) {
		error_set(err, HALE_ERR_LINK,
			  "InfiniBand and RoCE need libhale_net.so and UCX (Debian package "
			  "libucx0; HALE_NET_WIRE=tcp goes without): %s",
			  dlerror());
		return NULL;
	}
	if (wire->version != WIRE_VERSION) {
		error_set(err, HALE_ERR_LINK, "%s is of another version of Hale", path);
		return NULL;
	}
	return wire;
}

/* By system calls: opendir needs malloc. */
static bool has_rdma(void)
{
	char entries[1024];
	bool found = false;
	int fd = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	long n = syscall(SYS_getdents64, fd, entries, sizeof(entries));
	for (long at = 0; at < n && !found;) {
		const struct dirent64 *d = (const struct dirent64 *)(entries + at);
		found = d->d_name[0] != '.';
		at += d->d_reclen;
	}
	close(fd);
	return found;
}

const struct net_wire *net_load(struct error *err)
{
	static const struct net_wire *chosen;
	const char *wanted = getenv("HALE_NET_WIRE");
	if (chosen)
		return chosen;
	if (wanted && strcmp(wanted, "tcp") != 0 && strcmp(wanted, "ucx") != 0) {
		error_set(err, HALE_ERR_ARGUMENT, "HALE_NET_WIRE=%s: say tcp or ucx", wanted);
		return NULL;
	}
	bool ucx = wanted ? strcmp(wanted, "ucx") == 0 : has_rdma();
	chosen = ucx ? ucx_load(err) : &wire_tcp;
	return chosen;
}
