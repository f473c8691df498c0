/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_spawn and MPI_Comm_spawn_multiple. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fmt.h"
#include "mpi/dynamic/dynamic.h"

static struct comm *parent;

void spawn_parent_set(struct comm *c)
{
	parent = c;
	comm_retain(c); /* the program may free its own reference */
	strcpy(c->name, "MPI_COMM_PARENT");
}

struct part {
	const char *command;
	char **argv; /* NULL: none */
	int processes;
	const struct info *info; /* NULL: none */
};

/* ---- which program ---- */

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* In the folders of a list like PATH. */
static bool find_in_folders(const char *list, const char *name, char path[PATH_MAX])
{
	while (list && *list) {
		size_t n = strcspn(list, ":");
		fmt_print(path, PATH_MAX, "%.*s/%s", (int)n, list, name);
		if (n && is_program(path))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

/* The folder in which it starts, and its file. False: there is no such program. */
static bool find_program(const struct part *p, char folder[PATH_MAX], char path[PATH_MAX])
{
	const char *given = p->info ? info_get(p->info, "wdir") : NULL;
	const char *folders = p->info ? info_get(p->info, "path") : NULL;
	if (!getcwd(folder, PATH_MAX))
		return false;
	if (given && given[0] == '/')
		fmt_print(folder, PATH_MAX, "%s", given);
	else if (given)
		fmt_print(folder + strlen(folder), PATH_MAX - strlen(folder), "/%s", given);
	if (p->command[0] == '/') {
		fmt_print(path, PATH_MAX, "%s", p->command);
		return is_program(path);
	}
	if (!strchr(p->command, '/') && (find_in_folders(folders, p->command, path) ||
					 find_in_folders(getenv("PATH"), p->command, path)))
		return true;
	fmt_print(path, PATH_MAX, "%s/%s", folder, p->command);
	return is_program(path);
}

/* ---- orders ---- */

/* "8-11,13" */
static bool world_list(const int *processes, int n, char *text, size_t size)
{
	size_t at = 0;
	for (int i = 0, j; i < n && at < size; i = j) {
		j = i + 1;
		while (j < n && processes[j] == processes[j - 1] + 1)
			j++;
		at += (size_t)fmt_print(text + at, size - at, "%s%d-%d", i ? "," : "", processes[i],
					processes[j - 1]);
	}
	return at < size;
}

/* What a program may ask its environment for. */
static bool add_rank(struct order *o, int rank, int size)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"},
				 *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
	char text[64];
	bool good = true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		fmt_print(text, sizeof(text), "%s=%d", names[i], rank);
		good &= order_add(o, text);
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		fmt_print(text, sizeof(text), "%s=%d", sizes[i], size);
		good &= order_add(o, text);
	}
	return good;
}

struct spawning {
	const struct part *parts;
	int count, total, tag;
	int *processes;
	char world[16384];
	struct order *orders; /* not given yet */
};

static void orders_drop(struct spawning *s)
{
	while (s->orders) {
		struct order *o = s->orders;
		s->orders = o->next;
		heap_free(o);
	}
}

static int part_orders(struct spawning *s, int which, int first)
{
	const struct part *p = &s->parts[which];
	char folder[PATH_MAX], path[PATH_MAX], text[64];
	if (!p->command || !find_program(p, folder, path)) {
		log_warn("MPI_Comm_spawn: there is no program '%s'", p->command ? p->command : "");
		return MPI_ERR_SPAWN;
	}
	for (int i = first; i < first + p->processes; i++) {
		struct order *o = order_new(s->processes[i]);
		if (!o)
			return MPI_ERR_NO_MEM;
		o->next = s->orders;
		s->orders = o;
		bool good = order_add(o, folder) && order_add(o, path) && order_add(o, s->world);
		fmt_print(text, sizeof(text), "HALE_SPAWNED=%u:%d", link_self()->rank, s->tag);
		good = good && order_add(o, text);
		fmt_print(text, sizeof(text), "HALE_APPNUM=%d", which);
		good = good && order_add(o, text) && add_rank(o, i, s->total) && order_add(o, "") &&
		       order_add(o, p->command);
		for (char **a = p->argv; a && *a; a++)
			good = good && order_add(o, *a);
		if (!good) {
			log_warn("MPI_Comm_spawn: the arguments of '%s' are longer than %d bytes",
				 p->command, SPAWN_ORDER_MAX - 20000);
			return MPI_ERR_SPAWN;
		}
	}
	return MPI_SUCCESS;
}

static void say_too_few(int total)
{
	if (!getenv("HALE_WORLD"))
		log_warn("MPI_Comm_spawn: this job has no processes in reserve; start it with "
			 "`hale run --spawn %d …`",
			 total);
	else
		log_warn("MPI_Comm_spawn: %d processes are wanted, and fewer are left in reserve; "
			 "start the job with a larger number behind --spawn",
			 total);
}

/* At the root. All or none are started. */
static int spawn_order(struct spawning *s)
{
	int rc = MPI_SUCCESS, first = 0;
	for (int i = 0; i < s->count; i++) {
		if (s->parts[i].processes < 1)
			return MPI_ERR_ARG;
		s->total += s->parts[i].processes;
	}
	s->processes = heap_alloc((size_t)s->total * sizeof(int));
	if (!s->processes)
		return MPI_ERR_NO_MEM;
	if (!world_text() || keeper_claim(s->processes, s->total)) {
		say_too_few(s->total);
		return MPI_ERR_SPAWN;
	}
	s->tag = world_tag(s->processes[0]);
	strcpy(s->world, "HALE_WORLD=");
	if (!world_list(s->processes, s->total, s->world + 11, sizeof(s->world) - 11))
		rc = MPI_ERR_SPAWN;
	for (int i = 0; !rc && i < s->count; i++) {
		rc = part_orders(s, i, first);
		first += s->parts[i].processes;
	}
	if (rc) {
		orders_drop(s);
		keeper_give_back(s->processes, s->total);
		return rc;
	}
	while (s->orders) {
		struct order *o = s->orders;
		s->orders = o->next;
		rc = order_give(o);
		if (rc) { /* the others wait for it in vain */
			log_warn("MPI_Comm_spawn: an order can't be sent");
			link_abort(70);
		}
	}
	return MPI_SUCCESS;
}

static int spawn(const struct part *parts, int count, int root, struct comm *c, struct comm **out)
{
	int word[3] = {0}, rc;
	if (c->rank == root) {
		struct spawning *s = heap_calloc(1, sizeof(*s));
		word[0] = MPI_ERR_NO_MEM;
		if (s) {
			s->parts = parts;
			s->count = count;
			word[0] = spawn_order(s);
			word[1] = s->processes ? s->processes[0] : 0;
			word[2] = s->tag;
			heap_free(s->processes);
		}
		heap_free(s);
	}
	rc = coll_bcast(word, 3, datatype_of(MPI_INT), root, c);
	if (!rc)
		rc = word[0];
	if (!rc)
		rc = intercomm_meet(c, root, world_all(), word[1], word[2], out);
	return rc;
}

/* ---- bindings ---- */

static int check_spawn(struct comm *c, int root)
{
	if (!comm_ok(c) || comm_is_inter(c))
		return MPI_ERR_COMM;
	if (check_root(root, c))
		return MPI_ERR_ROOT;
	if (!world_all()) {
		log_warn("MPI_Comm_spawn: a job with replicas can't spawn processes");
		return MPI_ERR_UNSUPPORTED_OPERATION;
	}
	return MPI_SUCCESS;
}

/* codes: as many as were asked for at the root, as many as came elsewhere. */
static void fill_codes(int *codes, int n, int rc)
{
	for (int i = 0; codes && i < n; i++)
		codes[i] = rc;
}

int PMPI_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root,
		    MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
	API_ENTER("MPI_Comm_spawn");
	struct comm *c = comm_of(comm), *out = NULL;
	int rc = check_spawn(c, root);
	if (rc || !intercomm)
		return API_FAIL(comm_ok(c) ? c : NULL, rc ? rc : MPI_ERR_ARG);
	struct part part = {command, argv, maxprocs, NULL};
	if (c->rank == root && info != MPI_INFO_NULL)
		part.info = info_handle_open(info);
	*intercomm = MPI_COMM_NULL;
	rc = spawn(&part, 1, root, c, &out);
	if (!rc)
		*intercomm = comm_handle(out);
	fill_codes(array_of_errcodes, rc ? c->rank == root ? maxprocs : 0 : out->peers, rc);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_spawn);

static struct part *parts_make(int count, char *commands[], char **argvs[], const int processes[],
			       const MPI_Info infos[])
{
	struct part *parts = heap_calloc((size_t)count, sizeof(*parts));
	for (int i = 0; parts && i < count; i++) {
		parts[i] = (struct part){commands[i], argvs ? argvs[i] : NULL, processes[i], NULL};
		if (infos && infos[i] != MPI_INFO_NULL)
			parts[i].info = info_handle_open(infos[i]);
	}
	return parts;
}

int PMPI_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[],
			     const int array_of_maxprocs[], const MPI_Info array_of_info[],
			     int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
	API_ENTER("MPI_Comm_spawn_multiple");
	struct comm *c = comm_of(comm), *out = NULL;
	struct part *parts = NULL;
	int rc = check_spawn(c, root), total = 0;
	if (rc || !intercomm)
		return API_FAIL(comm_ok(c) ? c : NULL, rc ? rc : MPI_ERR_ARG);
	if (c->rank == root) {
		if (count < 1 || !array_of_commands || !array_of_maxprocs)
			return API_FAIL(c, MPI_ERR_ARG);
		parts = parts_make(count, array_of_commands, array_of_argv, array_of_maxprocs,
				   array_of_info);
		if (!parts)
			return API_FAIL(c, MPI_ERR_NO_MEM);
		for (int i = 0; i < count; i++)
			total += array_of_maxprocs[i];
	}
	*intercomm = MPI_COMM_NULL;
	rc = spawn(parts, count, root, c, &out);
	heap_free(parts);
	if (!rc)
		*intercomm = comm_handle(out);
	fill_codes(array_of_errcodes, rc ? total : out->peers, rc);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_spawn_multiple);

int PMPI_Comm_get_parent(MPI_Comm *out)
{
	API_ENTER("MPI_Comm_get_parent");
	if (!out)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*out = parent && !parent->freed ? comm_handle(parent) : MPI_COMM_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Comm_get_parent);
