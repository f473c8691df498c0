/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/opencl_loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

/* Where distributions put theirs, wherever the folder of CUDA's stands in the dynamic linker's
 * list. */
static const char *const places[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
				     "/usr/lib64", "/usr/lib", "/usr/local/lib"};

/* A loader that reads the list of layers has the name of the variable in it. */
static bool has_layers(const char *path)
{
	static const char name[] = "OPENCL_LAYERS";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *text = MAP_FAILED;
	bool yes = false;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text != MAP_FAILED) {
		yes = memmem(text, (size_t)st.st_size, name, sizeof(name)) != NULL;
		munmap(text, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	return yes;
}

/* The one that a program gets which asks the dynamic linker for no other folder. */
static bool usual_loader(char path[PATH_MAX])
{
	void *lib = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map = NULL;
	bool found;

	if (!lib)
		return false;
	found = dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0] != '\0' &&
		snprintf(path, PATH_MAX, "%s", map->l_name) < PATH_MAX;
	dlclose(lib);
	return found;
}

static bool preload(const char *path)
{
	const char *others = getenv("LD_PRELOAD");
	char *list;

	if (asprintf(&list, "%s%s%s", path, others && *others ? ":" : "", others ? others : "") < 0)
		return false;
	setenv("LD_PRELOAD", list, 1);
	free(list);
	return true;
}

bool opencl_loader_set(void)
{
	char usual[PATH_MAX], path[PATH_MAX];

	if (!usual_loader(usual) || has_layers(usual))
		return true; /* without any, the program brings its own or uses none */
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s/libOpenCL.so.1", places[i]);
		if (has_layers(path)) {
			log_info("--opencl: '%s' knows nothing of layers: the program gets '%s'",
				 usual, path);
			return preload(path);
		}
	}
	log_warn(
	    "--opencl: the OpenCL loader '%s' knows nothing of layers, so the program would run "
	    "unprotected; install another one (Debian: ocl-icd-libopencl1)",
	    usual);
	return false;
}
