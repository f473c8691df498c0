/* SPDX-License-Identifier: BSD-3-Clause */
/* A checkpoint's manifest: JSON, because people look into it, read back strictly. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "base/own.h"
#include "store/seal.h"
#include "store/store.h"

enum {
	MANIFEST_MAX = 64 << 20,
	RANKS_MAX = 1 << 20,
	ARGUMENTS_MAX = 1 << 20,
	HOLDERS_MAX = 4096,
	DEGREE_MAX = 16
};

uint32_t store_part_image(const struct store_part *p)
{
	uint32_t image;

	return sscanf(p->file, "rank-%" SCNu32 ".img", &image) == 1 ? image : UINT32_MAX;
}

bool store_part_of_image(const struct store_manifest *m, uint32_t image, uint32_t *part)
{
	uint32_t ranks = m->nranks / (m->degree ? m->degree : 1);

	if (image >= m->nranks)
		return false;
	/* it is of that rank, or of that process: both leave the same rest */
	for (*part = image % ranks; *part < m->nranks; *part += ranks)
		if (m->parts[*part].file[0] && store_part_image(&m->parts[*part]) == image)
			return true;
	return false;
}

void store_manifest_fini(struct store_manifest *m)
{
	for (char **a = m->argv; a && *a; a++)
		free(*a);
	free(m->argv);
	free(m->library_path);
	free(m->ckpt_local);
	free(m->holders);
	free(m->parts);
	memset(m, 0, sizeof(*m));
}

/* ---- out ---- */

/* JSON numbers are doubles to many readers: 64-bit checksums travel as text. */
static void print_checksum(struct json_out *j, uint64_t checksum)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, checksum);
	json_string(j, "xxh3", text);
}

/* Nothing is said of an image that is only in the checkpoint's folder. */
static void print_copies(struct json_out *j, const struct store_part *p)
{
	if (p->local)
		json_bool(j, "local", true);
	if (p->copies == 0)
		return;
	json_open_array(j, "on");
	for (uint32_t i = 0; i < p->copies; i++)
		json_uint(j, NULL, p->on[i]);
	json_close_array(j);
}

static void print_holders(struct json_out *j, const struct store_manifest *m)
{
	if (m->ckpt_local) {
		json_string(j, "ckpt_local", m->ckpt_local);
		json_int(j, "shared_every", m->shared_every);
	}
	if (m->holder_count == 0)
		return;
	json_open_array(j, "holders");
	for (uint32_t i = 0; i < m->holder_count; i++) {
		json_open_object(j, NULL);
		json_string(j, "node", m->holders[i].node);
		json_string(j, "folder", m->holders[i].folder);
		json_close_object(j);
	}
	json_close_array(j);
}

static uint32_t ranks_of(const struct store_manifest *m)
{
	return m->nranks / (m->degree ? m->degree : 1);
}

static void print_part(struct json_out *j, const struct store_manifest *m, uint32_t rank)
{
	const struct store_part *p = &m->parts[rank];

	json_open_object(j, NULL);
	json_uint(j, "rank", rank % ranks_of(m));
	if (m->degree > 1) {
		json_uint(j, "slot", rank / ranks_of(m));
		json_uint(j, "replicas", p->replicas);
	}
	if (p->file[0]) {
		json_string(j, "file", p->file);
		json_uint(j, "bytes", p->bytes);
		print_checksum(j, p->checksum);
		json_uint(j, "pages", p->pages);
		json_uint(j, "pages_zero", p->pages_zero);
		json_double(j, "pause_seconds", p->pause_seconds);
		json_double(j, "seconds", p->seconds);
		print_copies(j, p);
	} else {
		json_int(j, "ended", p->exit_status);
	}
	json_open_array(j, "position");
	for (int i = 0; i < 3; i++)
		json_uint(j, NULL, p->position[i]);
	json_close_array(j);
	json_close_object(j);
}

static void print_job(struct json_out *j, const struct store_manifest *m)
{
	json_uint(j, "nranks", ranks_of(m));
	if (m->degree > 1)
		json_uint(j, "degree", m->degree);
	if (m->shadows > 0)
		json_uint(j, "shadows", m->shadows);
	json_uint(j, "segment", m->segment);
	json_bool(j, "mpi", m->mpi);
	json_uint(j, "preload_mpi", m->preload_mpi);
	json_string(j, "program", m->program);
	json_open_array(j, "argv");
	for (char **a = m->argv; a && *a; a++)
		json_string(j, NULL, *a);
	json_close_array(j);
	json_string(j, "cwd", m->cwd);
	if (m->library_path)
		json_string(j, "library_path", m->library_path);
	if (m->stdin_path[0])
		json_string(j, "stdin_path", m->stdin_path);
	json_uint(j, "stdin_start", m->stdin_start);
	json_uint(j, "stdin_rest", m->stdin_rest);
	json_double(j, "ckpt_every", m->ckpt_every);
	if (m->ckpt_first > 0) {
		json_double(j, "ckpt_first", m->ckpt_first);
		json_double(j, "overhead", m->overhead);
		json_double(j, "mtbf", m->mtbf);
	}
	json_int(j, "keep", m->keep);
	json_int(j, "max_restarts", m->max_restarts);
	json_bool(j, "incremental", m->incremental);
	json_bool(j, "tag", m->tag);
	json_bool(j, "net_encrypt", m->net_encrypt);
	json_int(j, "compress", m->compress);
	if (m->compares)
		json_int(j, "compares", m->compares);
	if (m->audit > 0) {
		json_double(j, "audit", m->audit);
		json_bool(j, "audit_rolls", m->audit_rolls);
	}
}

char *store_manifest_print(const struct store_manifest *m)
{
	struct json_out j;
	char *text;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "format", "hale checkpoint");
	json_uint(&j, "version",
		  m->shadows > 0  ? STORE_SHADOWS_VERSION
		  : m->degree > 1 ? STORE_REPLICAS_VERSION
				  : STORE_MANIFEST_VERSION);
	json_string(&j, "job", m->job);
	json_string(&j, "run", m->run);
	json_uint(&j, "id", m->id);
	json_uint(&j, "base", m->base);
	json_double(&j, "written_at", m->written_at);
	json_double(&j, "job_seconds", m->job_seconds);
	json_double(&j, "pause_seconds", m->pause_seconds);
	json_double(&j, "seconds", m->seconds);
	json_uint(&j, "bytes", m->bytes);
	print_job(&j, m);
	print_holders(&j, m);
	json_open_array(&j, "parts");
	for (uint32_t r = 0; r < m->nranks; r++)
		if (m->degree <= 1 || m->parts[r].file[0])
			print_part(&j, m, r);
	json_close_array(&j);
	json_close_object(&j);
	text = j.text ? strdup(j.text) : NULL;
	json_out_fini(&j);
	return text;
}

/* ---- in ---- */

static bool copy_text(const struct json_value *v, char *to, size_t cap)
{
	const char *text = json_text(v, NULL);

	if (!text || strlen(text) >= cap)
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

static bool read_count(const struct json_value *v, int64_t min, int64_t max, int64_t *to)
{
	*to = json_number_int(v, -1);
	return *to >= min && *to <= max;
}

static bool read_checksum(const struct json_value *v, uint64_t *to)
{
	const char *text = json_text(v, NULL);
	char *end;

	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	*to = strtoull(text, &end, 16);
	return *end == '\0';
}

/* Names of files come from outside: nothing that leaves the folder. */
static bool read_file_name(const struct json_value *v, char *to)
{
	return copy_text(v, to, STORE_NAME_MAX) && to[0] && to[0] != '.' && !strchr(to, '/');
}

static bool parse_copies(const struct json_value *v, uint32_t holders, struct store_part *p)
{
	const struct json_value *on = json_get(v, "on");
	size_t count = on ? json_count(on) : 0;

	p->local = json_truth(json_get(v, "local"), false);
	if (count > STORE_COPIES_MAX || (p->local && count == 0))
		return false;
	for (size_t i = 0; i < count; i++) {
		int64_t n;

		if (!read_count(json_at(on, i), 0, (int64_t)holders - 1, &n))
			return false;
		p->on[p->copies++] = (uint32_t)n;
	}
	return true;
}

static bool parse_part(const struct json_value *v, uint32_t rank, uint32_t holders,
		       struct store_part *p)
{
	const struct json_value *position = json_get(v, "position");
	int64_t n, bytes = 0, pages = 0, zero = 0;

	if (!read_count(json_get(v, "rank"), rank, rank, &n) || json_count(position) != 3)
		return false;
	for (size_t i = 0; i < 3; i++) {
		if (!read_count(json_at(position, i), 0, INT64_MAX, &n))
			return false;
		p->position[i] = (uint64_t)n;
	}
	if (!json_get(v, "file")) {
		p->exit_status = (int32_t)json_number_int(json_get(v, "ended"), -1);
		return p->exit_status >= 0;
	}
	if (!read_file_name(json_get(v, "file"), p->file) ||
	    !read_count(json_get(v, "bytes"), 0, INT64_MAX, &bytes) ||
	    !read_checksum(json_get(v, "xxh3"), &p->checksum) ||
	    !read_count(json_get(v, "pages"), 0, INT64_MAX, &pages) ||
	    !read_count(json_get(v, "pages_zero"), 0, INT64_MAX, &zero))
		return false;
	p->bytes = (uint64_t)bytes;
	p->pages = (uint64_t)pages;
	p->pages_zero = (uint64_t)zero;
	p->pause_seconds = json_number(json_get(v, "pause_seconds"), 0);
	p->seconds = json_number(json_get(v, "seconds"), 0);
	return parse_copies(v, holders, p);
}

static bool parse_holders(const struct json_value *v, struct store_manifest *m)
{
	const struct json_value *holders = json_get(v, "holders");
	const char *local = json_text(json_get(v, "ckpt_local"), NULL);
	size_t count = holders ? json_count(holders) : 0;
	int64_t every;

	if (local) {
		m->ckpt_local = strdup(local);
		if (!m->ckpt_local || local[0] != '/' ||
		    !read_count(json_get(v, "shared_every"), 0, 1000000, &every))
			return false;
		m->shared_every = every;
	}
	if (count > HOLDERS_MAX)
		return false;
	m->holders = calloc(count + 1, sizeof(*m->holders));
	for (size_t i = 0; m->holders && i < count; i++) {
		const struct json_value *one = json_at(holders, i);
		struct store_holder *o = &m->holders[m->holder_count++];

		if (!copy_text(json_get(one, "node"), o->node, sizeof(o->node)) || !o->node[0] ||
		    !copy_text(json_get(one, "folder"), o->folder, sizeof(o->folder)) ||
		    o->folder[0] != '/' || strchr(o->folder, ':'))
			return false;
	}
	return m->holders != NULL;
}

static bool has_part(const struct store_manifest *m, uint32_t rank)
{
	for (uint32_t s = 0; s < m->degree; s++)
		if (m->parts[s * ranks_of(m) + rank].file[0])
			return true;
	return false;
}

/* Of each rank one process or several, each with an image; they may come in any order. */
static bool parse_replicas(const struct json_value *v, struct store_manifest *m)
{
	uint32_t n = ranks_of(m), seen = 0;

	for (uint32_t i = 0; i < json_count(v); i++) {
		const struct json_value *one = json_at(v, i);
		struct store_part *p;
		int64_t rank, slot, replicas;

		if (!read_count(json_get(one, "rank"), 0, n - 1, &rank) ||
		    !read_count(json_get(one, "slot"), 0, m->degree - 1, &slot) ||
		    !read_count(json_get(one, "replicas"), 1, m->degree, &replicas))
			return false;
		seen += !has_part(m, (uint32_t)rank);
		p = &m->parts[(uint32_t)slot * n + (uint32_t)rank];
		if (p->file[0])
			return false;
		p->replicas = (uint32_t)replicas;
		if (!parse_part(one, (uint32_t)rank, m->holder_count, p) || !p->file[0])
			return false;
	}
	return seen == n;
}

static bool parse_parts(const struct json_value *v, struct store_manifest *m)
{
	if (json_count(v) < ranks_of(m) || json_count(v) > m->nranks)
		return false;
	m->parts = calloc(m->nranks, sizeof(*m->parts));
	if (m->parts && m->degree > 1)
		return parse_replicas(v, m);
	for (uint32_t r = 0; m->parts && r < m->nranks; r++)
		if (!parse_part(json_at(v, r), r, m->holder_count, &m->parts[r]))
			return false;
	return m->parts != NULL;
}

static bool parse_argv(const struct json_value *v, struct store_manifest *m)
{
	size_t n = json_count(v);

	if (n < 1 || n > ARGUMENTS_MAX)
		return false;
	m->argv = calloc(n + 1, sizeof(*m->argv));
	for (size_t i = 0; m->argv && i < n; i++) {
		const char *text = json_text(json_at(v, i), NULL);
		if (!text)
			return false;
		m->argv[i] = strdup(text);
		if (!m->argv[i])
			return false;
	}
	return m->argv != NULL;
}

static bool parse_head(const struct json_value *v, struct store_manifest *m)
{
	bool replicas = json_number_int(json_get(v, "version"), 0) >= STORE_REPLICAS_VERSION;
	int64_t id, base, nranks, bytes, degree = 1, shadows = 0;

	if (!copy_text(json_get(v, "job"), m->job, sizeof(m->job)) || !m->job[0] ||
	    strchr(m->job, '/') || !copy_text(json_get(v, "run"), m->run, sizeof(m->run)) ||
	    !read_count(json_get(v, "id"), 1, UINT32_MAX, &id) ||
	    !read_count(json_get(v, "base"), 0, id - 1, &base) ||
	    !read_count(json_get(v, "nranks"), 1, RANKS_MAX, &nranks) ||
	    !read_count(json_get(v, "bytes"), 0, INT64_MAX, &bytes))
		return false;
	m->id = (uint32_t)id;
	m->base = (uint32_t)base;
	if (replicas && !read_count(json_get(v, "degree"), 2, DEGREE_MAX, &degree))
		return false;
	if (json_get(v, "shadows") &&
	    (degree < 2 || !read_count(json_get(v, "shadows"), 1, nranks, &shadows)))
		return false;
	m->degree = (uint32_t)degree;
	m->shadows = (uint32_t)shadows;
	m->nranks = (uint32_t)(nranks * degree);
	m->bytes = (uint64_t)bytes;
	m->written_at = json_number(json_get(v, "written_at"), 0);
	m->job_seconds = json_number(json_get(v, "job_seconds"), 0);
	m->pause_seconds = json_number(json_get(v, "pause_seconds"), 0);
	m->seconds = json_number(json_get(v, "seconds"), 0);
	return true;
}

static bool parse_job(const struct json_value *v, struct store_manifest *m)
{
	const struct json_value *library_path = json_get(v, "library_path");
	int64_t keep, restarts, start, rest, compress;

	if (!copy_text(json_get(v, "program"), m->program, sizeof(m->program)) ||
	    m->program[0] != '/' || !copy_text(json_get(v, "cwd"), m->cwd, sizeof(m->cwd)) ||
	    !read_count(json_get(v, "keep"), 1, 1000000, &keep) ||
	    !read_count(json_get(v, "max_restarts"), 0, 1000000, &restarts) ||
	    !read_count(json_get(v, "stdin_start"), 0, INT64_MAX, &start) ||
	    !read_count(json_get(v, "stdin_rest"), 0, INT64_MAX, &rest) ||
	    !read_count(json_get(v, "compress"), 0, 2, &compress))
		return false;
	if (json_get(v, "stdin_path") &&
	    !copy_text(json_get(v, "stdin_path"), m->stdin_path, sizeof(m->stdin_path)))
		return false;
	if (library_path) {
		const char *text = json_text(library_path, NULL);
		m->library_path = text ? strdup(text) : NULL;
		if (!m->library_path)
			return false;
	}
	m->keep = keep;
	m->max_restarts = restarts;
	m->stdin_start = (uint64_t)start;
	m->stdin_rest = (uint64_t)rest;
	m->compress = (int)compress;
	m->compares = (int)json_number(json_get(v, "compares"), 0);
	m->audit = json_number(json_get(v, "audit"), 0);
	m->audit_rolls = json_truth(json_get(v, "audit_rolls"), false);
	m->segment = (uint32_t)json_number(json_get(v, "segment"), 0);
	m->mpi = json_truth(json_get(v, "mpi"), true);
	/* manifests of earlier versions say true for libmpi.so.40 */
	m->preload_mpi = json_truth(json_get(v, "preload_mpi"), false)
			     ? 1
			     : (uint32_t)json_number(json_get(v, "preload_mpi"), 0);
	m->incremental = json_truth(json_get(v, "incremental"), false);
	m->tag = json_truth(json_get(v, "tag"), false);
	m->net_encrypt = json_truth(json_get(v, "net_encrypt"), false);
	m->ckpt_every = json_number(json_get(v, "ckpt_every"), 0);
	m->ckpt_first = json_number(json_get(v, "ckpt_first"), 0);
	m->overhead = json_number(json_get(v, "overhead"), 0.01);
	m->mtbf = json_number(json_get(v, "mtbf"), 0);
	return m->ckpt_every >= 0 && m->ckpt_every < 1e12 && m->ckpt_first >= 0 &&
	       m->ckpt_first < 1e12 && m->overhead > 0 && m->overhead <= 0.5 && m->mtbf >= 0 &&
	       m->mtbf < 1e12;
}

hale_status_t store_manifest_parse(const char *text, size_t len, struct store_manifest *m,
				   struct error *err)
{
	struct json_value *v = json_parse(text, len);
	bool good;

	memset(m, 0, sizeof(*m));
	int64_t version = v ? json_number_int(json_get(v, "version"), -1) : -1;

	if (version > STORE_SHADOWS_VERSION) {
		json_free(v);
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "the manifest is of a newer version of hale");
	}
	if (version == 1) {
		json_free(v);
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "the manifest is of an older hale, which did not seal them, so "
				 "nobody knows whose it is: run the job anew");
	}
	good = v && strcmp(json_text(json_get(v, "format"), ""), "hale checkpoint") == 0 &&
	       version >= STORE_MANIFEST_VERSION && parse_head(v, m) && parse_job(v, m) &&
	       parse_argv(json_get(v, "argv"), m) && parse_holders(v, m) &&
	       parse_parts(json_get(v, "parts"), m);
	json_free(v);
	if (good)
		return HALE_OK;
	store_manifest_fini(m);
	return error_set(err, HALE_ERR_IMAGE_CORRUPT, "the manifest is damaged");
}

static hale_status_t read_whole(int fd, const char *path, char **text, size_t *len,
				struct error *err)
{
	struct stat st;
	size_t done = 0;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MANIFEST_MAX)
		return error_set(err, HALE_ERR_IMAGE_CORRUPT, "'%s' is no manifest", path);
	*len = (size_t)st.st_size;
	*text = malloc(*len + 1);
	while (*text && done < *len) {
		ssize_t n = read(fd, *text + done, *len - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	*len = done;
	return *text ? HALE_OK : error_set(err, HALE_ERR_MEMORY, "out of memory");
}

/* The folder of the job. */
static hale_status_t own_parent(const char *folder, struct error *err)
{
	char parent[PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", folder);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return HALE_OK;
	*slash = '\0';
	return own_folder(parent, err);
}

/* A folder that has been moved to another number's place is what is looked for here. */
static hale_status_t check_place(const char *folder, const struct store_manifest *m,
				 struct error *err)
{
	const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
	char id[16];

	snprintf(id, sizeof(id), "%" PRIu32, m->id);
	if (strcmp(name, id) == 0)
		return HALE_OK;
	return error_set(err, HALE_ERR_IMAGE_MISMATCH,
			 "its manifest says that it is number %" PRIu32 ": give it that name",
			 m->id);
}

static hale_status_t read_open(int fd, const char *path, const char *folder,
			       struct store_manifest *m, struct error *err)
{
	struct error why = {HALE_OK, ""};
	char *text = NULL;
	size_t len = 0;
	hale_status_t status = read_whole(fd, path, &text, &len, err);

	if (status != HALE_OK)
		return status;
	/* what is damaged by chance is told as such */
	status = store_manifest_parse(text, len, m, &why);
	if (status == HALE_OK)
		status = store_seal_check(text, len, &why);
	if (status == HALE_OK)
		status = check_place(folder, m, &why);
	if (status != HALE_OK) {
		store_manifest_fini(m);
		error_set(err, status, "checkpoint '%.200s': %s", folder, why.text);
	}
	free(text);
	return status;
}

hale_status_t store_manifest_read(const char *folder, struct store_manifest *m, struct error *err)
{
	char path[PATH_MAX];
	struct error why = {HALE_OK, ""};
	hale_status_t status;
	int fd;

	memset(m, 0, sizeof(*m));
	if (snprintf(path, sizeof(path), "%s/manifest.json", folder) >= (int)sizeof(path))
		return error_set(err, HALE_ERR_ARGUMENT, "the path '%s' is too long", folder);
	if (access(path, F_OK) != 0)
		return error_sys(err, HALE_ERR_IMAGE_MISSING,
				 "'%s' is no complete checkpoint: cannot open its manifest.json",
				 folder);
	status = own_parent(folder, &why);
	if (status == HALE_OK)
		status = own_folder(folder, &why);
	fd = status == HALE_OK ? own_open(path, O_RDONLY, &why) : -1;
	if (fd < 0)
		return error_set(err, why.code, "checkpoint refused: %s", why.text);
	status = read_open(fd, path, folder, m, err);
	close(fd);
	return status;
}
