/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/attach/head_record.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"

enum { FILE_MAX = 64 << 20 };

static bool parse_name(const char *name, uint32_t *epoch)
{
	char *end;

	if (strncmp(name, "head.", 5) != 0 || name[5] < '1' || name[5] > '9')
		return false;
	*epoch = (uint32_t)strtoul(name + 5, &end, 10);
	return strcmp(end, ".json") == 0;
}

uint32_t head_record_newest(const char *job_folder)
{
	DIR *d = opendir(job_folder);
	uint32_t newest = 0, epoch;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (parse_name(e->d_name, &epoch) && epoch > newest)
			newest = epoch;
	if (d)
		closedir(d);
	return newest;
}

static hale_status_t bad(struct error *err, const char *what)
{
	return error_set(err, HALE_ERR_IMAGE_CORRUPT,
			 "what the job's last head has left is damaged: %s", what);
}

hale_status_t head_record_read(const char *job_folder, uint32_t epoch, struct json_value **doc,
			       struct error *err)
{
	char path[PATH_MAX];
	struct stat st;
	char *text = NULL;
	int fd;

	*doc = NULL;
	snprintf(path, sizeof(path), "%s/head.%u.json", job_folder, epoch);
	fd = own_open(path, O_RDONLY, err);
	if (fd < 0)
		return HALE_ERR_IMAGE_MISSING;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return error_sys(err, HALE_ERR_IMAGE_MISSING, "cannot read '%s'", path);
	}
	if (st.st_size <= FILE_MAX)
		text = malloc((size_t)st.st_size + 1);
	if (text && read(fd, text, (size_t)st.st_size) == (ssize_t)st.st_size)
		*doc = json_parse(text, (size_t)st.st_size);
	close(fd);
	free(text);
	if (!*doc)
		return bad(err, path);
	if (strcmp(json_text(json_get(*doc, "hale"), ""), HALE_VERSION) == 0)
		return HALE_OK;
	error_set(err, HALE_ERR_UNSUPPORTED, "the job was started by hale %.40s, and this is %s",
		  json_text(json_get(*doc, "hale"), "?"), HALE_VERSION);
	json_free(*doc);
	*doc = NULL;
	return HALE_ERR_UNSUPPORTED;
}

bool head_record_node_lost(const struct json_value *doc, uint32_t node)
{
	return json_number_int(json_get(json_at(json_get(doc, "nodes"), node), "state"), 0) ==
	       NODE_LOST;
}

double head_record_real(double at)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (clock_seconds() - at);
}

double head_record_since(const struct json_value *doc, const char *key)
{
	struct timespec now;
	double real, then = json_number(json_get(doc, key), 0);

	clock_gettime(CLOCK_REALTIME, &now);
	real = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	return clock_seconds() - (real > then ? real - then : 0);
}
