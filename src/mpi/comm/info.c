/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects: a list of keys with their values, in the order of setting. */
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/fmt.h"
#include "match/decide.h"
#include "mpi/comm/comm.h"
#include "mpi/mpi4.h"

struct info *info_new(void)
{
	struct info *i = heap_calloc(1, INFO_BYTES);
	if (i)
		object_init(&i->obj, OBJECT_INFO);
	return i;
}

static struct info_entry *entry_find(const struct info *i, const char *key)
{
	struct info_entry *e = i->first;
	while (e && strcmp(e->key, key))
		e = e->next;
	return e;
}

const char *info_get(const struct info *i, const char *key)
{
	struct info_entry *e = entry_find(i, key);
	return e ? e->value : NULL;
}

static char *text_copy(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = heap_alloc(n);
	return copy ? memcpy(copy, text, n) : NULL;
}

int info_set(struct info *i, const char *key, const char *value)
{
	struct info_entry *e = entry_find(i, key);
	char *copy = text_copy(value);
	if (!copy)
		return MPI_ERR_NO_MEM;
	if (e) {
		heap_free(e->value);
		e->value = copy;
		return MPI_SUCCESS;
	}
	e = heap_calloc(1, sizeof(*e));
	if (!e) {
		heap_free(copy);
		return MPI_ERR_NO_MEM;
	}
	strncpy(e->key, key, sizeof(e->key) - 1);
	e->value = copy;
	*(i->last ? i->last : &i->first) = e;
	i->last = &e->next;
	i->count++;
	return MPI_SUCCESS;
}

static bool info_remove(struct info *i, const char *key)
{
	struct info_entry **at = &i->first;
	while (*at && strcmp((*at)->key, key))
		at = &(*at)->next;
	struct info_entry *e = *at;
	if (!e)
		return false;
	*at = e->next;
	if (!e->next)
		i->last = i->first ? at : NULL;
	i->count--;
	heap_free(e->value);
	heap_free(e);
	return true;
}

struct info *info_copy(const struct info *from)
{
	struct info *i = info_new();
	for (struct info_entry *e = from ? from->first : NULL; i && e; e = e->next) {
		if (info_set(i, e->key, e->value)) {
			info_release(i);
			return NULL;
		}
	}
	return i;
}

void info_release(struct info *i)
{
	if (!i || !object_drop(&i->obj))
		return;
	while (i->first)
		info_remove(i, i->first->key);
	object_forget_fortran(&i->obj);
	i->obj.kind = OBJECT_FREED;
	heap_free(i);
}

/* ---- MPI_INFO_ENV ---- */

/* The name that the program was started by. */
static void command_name(char *name, size_t cap)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, name, cap - 1);
	if (fd >= 0)
		close(fd);
	name[n > 0 ? n : 0] = 0;
}

static const char *thread_level(void)
{
	static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
					    "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
	int level;
	if (PMPI_Query_thread(&level) || level < MPI_THREAD_SINGLE || level > MPI_THREAD_MULTIPLE)
		level = MPI_THREAD_SINGLE;
	return names[level];
}

/* What is the same before MPI_Init, between, and after MPI_Finalize. The host is the leader's where
 * a rank has replicas, but not before MPI_Init. */
static void env_fill(struct info *i, const char *command)
{
	char text[MPI_MAX_INFO_VAL];
	struct utsname machine;
	command_name(text, sizeof(text));
	info_set(i, "command", command ? command : text);
	if (!uname(&machine)) {
		char host[DECIDE_VALUE] = "";
		fmt_print(host, sizeof(host), "%s", machine.nodename);
		if (UNLIKELY(redundant_on))
			decide_value(DECIDE_NAME, host, sizeof(host));
		info_set(i, "host", host);
		info_set(i, "arch", machine.machine);
	}
	if (getcwd(text, sizeof(text)))
		info_set(i, "wdir", text);
}

static void env_fill_world(struct info *i)
{
	char text[16];
	fmt_print(text, sizeof(text), "%u", (unsigned)COMM_WORLD->size);
	info_set(i, "maxprocs", text);
	info_set(i, "soft", text);
	info_set(i, "thread_level", thread_level());
}

struct info *info_handle_open(MPI_Info h)
{
	struct info *i = info_of(h);
	if (!info_ok(i))
		return NULL;
	if (h == MPI_INFO_ENV && !i->count && api_state == API_RUNNING) {
		env_fill(i, NULL);
		env_fill_world(i);
	}
	return i;
}

/* ---- bindings ---- */

static bool key_ok(const char *key)
{
	size_t n = key ? strnlen(key, MPI_MAX_INFO_KEY) : 0;
	return n > 0 && n < MPI_MAX_INFO_KEY;
}

int PMPI_Info_create(MPI_Info *info)
{
	API_ENTER_ANYTIME("MPI_Info_create");
	if (!info)
		return API_FAIL(NULL, MPI_ERR_INFO);
	struct info *i = info_new();
	if (!i)
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	*info = info_handle(i);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_create);

int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info)
{
	API_ENTER_ANYTIME("MPI_Info_create_env");
	if (!info || argc < 0)
		return API_FAIL(NULL, MPI_ERR_ARG);
	struct info *i = info_new();
	if (!i)
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	env_fill(i, argc > 0 && argv && argv[0] && argv[0][0] ? argv[0] : NULL);
	*info = info_handle(i);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_create_env);

int PMPI_Info_free(MPI_Info *info)
{
	API_ENTER_ANYTIME("MPI_Info_free");
	if (!info || !info_ok(info_of(*info)) || *info == MPI_INFO_ENV)
		return API_FAIL(NULL, MPI_ERR_INFO);
	info_release(info_of(*info));
	*info = MPI_INFO_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_free);

int PMPI_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
	API_ENTER_ANYTIME("MPI_Info_dup");
	struct info *i = info_handle_open(info);
	if (!i || !newinfo)
		return API_FAIL(NULL, MPI_ERR_INFO);
	struct info *copy = info_copy(i);
	if (!copy)
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	*newinfo = info_handle(copy);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_dup);

int PMPI_Info_set(MPI_Info info, const char *key, const char *value)
{
	API_ENTER_ANYTIME("MPI_Info_set");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!key_ok(key))
		return API_FAIL(NULL, MPI_ERR_INFO_KEY);
	size_t n = value ? strnlen(value, MPI_MAX_INFO_VAL) : 0;
	if (n == 0 || n >= MPI_MAX_INFO_VAL)
		return API_FAIL(NULL, MPI_ERR_INFO_VALUE);
	return API_LEAVE(NULL, info_set(i, key, value));
}
API_ALIAS(Info_set);

int PMPI_Info_delete(MPI_Info info, const char *key)
{
	API_ENTER_ANYTIME("MPI_Info_delete");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!key_ok(key))
		return API_FAIL(NULL, MPI_ERR_INFO_KEY);
	return API_LEAVE(NULL, info_remove(i, key) ? MPI_SUCCESS : MPI_ERR_INFO_NOKEY);
}
API_ALIAS(Info_delete);

int PMPI_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
	API_ENTER_ANYTIME("MPI_Info_get");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (valuelen < 0 || !flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!key_ok(key))
		return API_FAIL(NULL, MPI_ERR_INFO_KEY);
	if (!value)
		return API_FAIL(NULL, MPI_ERR_INFO_VALUE);
	const char *found = info_get(i, key);
	*flag = found != NULL;
	if (found) {
		size_t n = strnlen(found, (size_t)valuelen);
		memcpy(value, found, n);
		value[n] = 0; /* value has valuelen + 1 bytes (MPI-3.1 9) */
	}
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_get);

/* buflen: in, the room in value with its NUL; out, what the whole value takes. */
int PMPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
	API_ENTER_ANYTIME("MPI_Info_get_string");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!buflen || *buflen < 0 || !flag || (*buflen && !value))
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!key_ok(key))
		return API_FAIL(NULL, MPI_ERR_INFO_KEY);
	const char *found = info_get(i, key);
	*flag = found != NULL;
	if (found && *buflen) {
		size_t n = strnlen(found, (size_t)*buflen - 1);
		memcpy(value, found, n);
		value[n] = 0;
	}
	if (found)
		*buflen = (int)strlen(found) + 1;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_get_string);

int PMPI_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
	API_ENTER_ANYTIME("MPI_Info_get_valuelen");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!valuelen || !flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!key_ok(key))
		return API_FAIL(NULL, MPI_ERR_INFO_KEY);
	const char *found = info_get(i, key);
	*flag = found != NULL;
	if (found)
		*valuelen = (int)strlen(found);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_get_valuelen);

int PMPI_Info_get_nkeys(MPI_Info info, int *nkeys)
{
	API_ENTER_ANYTIME("MPI_Info_get_nkeys");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (!nkeys)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*nkeys = i->count;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_get_nkeys);

int PMPI_Info_get_nthkey(MPI_Info info, int n, char *key)
{
	API_ENTER_ANYTIME("MPI_Info_get_nthkey");
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(NULL, MPI_ERR_INFO);
	if (n < 0 || !key)
		return API_FAIL(NULL, MPI_ERR_ARG);
	struct info_entry *e = i->first;
	while (e && n--)
		e = e->next;
	if (!e)
		return API_FAIL(NULL, MPI_ERR_INFO_KEY);
	memcpy(key, e->key, strlen(e->key) + 1);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Info_get_nthkey);
