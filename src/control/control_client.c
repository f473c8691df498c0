/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands' side of the control socket. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "control/control.h"
#include "wire/session/peer.h"

/* For an answer that comes at once: all jobs together, and the least that each gets. */
#define ANSWER_SECONDS 2.0
#define ANSWER_LEAST   0.02
#define CONNECT_LEAST  0.002

/* "output.4294967295.ffffff" */
enum { NAME_MAX_HERE = 27, BACKLOG = 16 };

static size_t named_address(const char *job, unsigned uid, const char *name,
			    struct sockaddr_un *address)
{
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "hale/%u/%.63s/%.26s",
		     uid, job, name);
	return offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
}

size_t control_address(const char *job, unsigned uid, struct sockaddr_un *address)
{
	return named_address(job, uid, "ctl", address);
}

/* "… @hale/<uid>/<job>/ctl" at the end of a line of /proc/net/unix */
static bool job_in_line(char *line, const char *prefix, char job[JOB_ID_MAX])
{
	char *at = strstr(line, prefix);
	char *slash;

	if (!at)
		return false;
	at += strlen(prefix);
	slash = strchr(at, '/');
	if (!slash || strncmp(slash, "/ctl", 4) != 0 || slash - at >= JOB_ID_MAX)
		return false;
	snprintf(job, JOB_ID_MAX, "%.*s", (int)(slash - at), at);
	return true;
}

static bool listed(char (*jobs)[JOB_ID_MAX], size_t count, const char *job)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(jobs[i], job) == 0)
			return true;
	return false;
}

size_t control_jobs(char (**jobs)[JOB_ID_MAX])
{
	char prefix[32], line[512], job[JOB_ID_MAX];
	FILE *f = fopen("/proc/net/unix", "re");
	size_t count = 0;

	*jobs = NULL;
	snprintf(prefix, sizeof(prefix), " @hale/%u/", (unsigned)geteuid());
	/* a connected socket shows the same name as the listening one */
	while (f && fgets(line, sizeof(line), f)) {
		if (!job_in_line(line, prefix, job) || listed(*jobs, count, job))
			continue;
		char(*more)[JOB_ID_MAX] = realloc(*jobs, (count + 1) * sizeof(**jobs));
		if (!more)
			break;
		*jobs = more;
		snprintf(more[count++], JOB_ID_MAX, "%s", job);
	}
	if (f)
		fclose(f);
	return count;
}

static void wait_at_most(int fd, int direction, double seconds)
{
	struct timeval t = {.tv_sec = (time_t)seconds};

	t.tv_usec = (suseconds_t)((seconds - (double)t.tv_sec) * 1e6);
	setsockopt(fd, SOL_SOCKET, direction, &t, sizeof(t));
}

/* ---- names ---- */

struct name {
	uint32_t epoch;
	char text[NAME_MAX_HERE];
};

static int newer(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->epoch < y->epoch ? 1 : x->epoch > y->epoch ? -1 : strcmp(x->text, y->text);
}

/* "… @hale/<uid>/<job>/KIND.EPOCH.RANDOM" at the end of a line */
static bool name_in_line(char *line, const char *prefix, const char *kind, struct name *name)
{
	char *at = strstr(line, prefix);
	size_t n = strlen(kind);

	if (!at)
		return false;
	at += strlen(prefix);
	at[strcspn(at, "\n")] = '\0';
	if (strncmp(at, kind, n) != 0 || (at[n] && at[n] != '.') ||
	    strlen(at) >= sizeof(name->text))
		return false;
	snprintf(name->text, sizeof(name->text), "%s", at);
	name->epoch = at[n] ? (uint32_t)strtoul(at + n + 1, NULL, 10) : 1;
	return name->epoch > 0;
}

/* All that somebody listens at, or has just listened at: those of the newest heads first. */
static size_t names_of(const char *job, const char *kind, struct name **all)
{
	char prefix[128], line[512];
	FILE *f = fopen("/proc/net/unix", "re");
	struct name one, *more;
	size_t count = 0;

	*all = NULL;
	snprintf(prefix, sizeof(prefix), " @hale/%u/%.63s/", (unsigned)geteuid(), job);
	while (f && fgets(line, sizeof(line), f)) {
		if (!name_in_line(line, prefix, kind, &one))
			continue;
		more = realloc(*all, (count + 1) * sizeof(**all));
		if (!more)
			break;
		*all = more;
		more[count++] = one;
	}
	if (f)
		fclose(f);
	if (count > 1)
		qsort(*all, count, sizeof(**all), newer);
	return count;
}

/* Any user can take a name of an abstract socket: whoever listens there must be one of ours (or
 * root's, as the other way round), or it would be believed where a job's folder is. */
static int connect_to(const struct sockaddr_un *address, size_t len, double until)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), why = 0;
	double left = until - clock_seconds();

	if (fd < 0)
		return -1;
	/* of a stopped job whose queue of callers is full */
	wait_at_most(fd, SO_SNDTIMEO, left > CONNECT_LEAST ? left : CONNECT_LEAST);
	if (connect(fd, (const struct sockaddr *)address, (socklen_t)len) != 0)
		why = errno;
	else if (!peer_may_command(fd))
		why = EPERM;
	if (why == 0)
		return fd;
	close(fd);
	errno = why;
	return -1;
}

/* A head that was stopped when another one took over may still listen: the newest of ours is asked.
 * epoch 0: any. */
static int connect_newest(const char *job, const char *kind, uint32_t epoch, double until)
{
	struct sockaddr_un address;
	struct name *all;
	size_t count = names_of(job, kind, &all);
	int fd = -1, why = ECONNREFUSED;

	for (size_t i = 0; fd < 0 && i < count; i++) {
		if ((epoch && all[i].epoch != epoch) || (i > 0 && newer(&all[i - 1], &all[i]) == 0))
			continue;
		fd = connect_to(&address, named_address(job, geteuid(), all[i].text, &address),
				until);
		if (fd < 0 && errno != ECONNREFUSED && why != EAGAIN)
			why = errno;
	}
	free(all);
	if (fd < 0)
		errno = why;
	return fd;
}

int control_connect(const char *job)
{
	return connect_newest(job, "ctl", 0, clock_seconds() + ANSWER_SECONDS);
}

static int listen_at(const char *job, const char *name)
{
	struct sockaddr_un address;
	size_t len = named_address(job, geteuid(), name, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, (socklen_t)len) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
	return -1;
}

static bool somebody_elses(const char *job, const char *name)
{
	struct sockaddr_un address;
	int fd = connect_to(&address, named_address(job, geteuid(), name, &address),
			    clock_seconds() + ANSWER_SECONDS);

	if (fd >= 0)
		close(fd);
	return fd < 0 && (errno == EPERM || errno == EAGAIN);
}

int control_listen(const char *job, const char *kind, uint32_t epoch)
{
	char name[NAME_MAX_HERE];
	uint32_t random;
	int fd;

	if (epoch <= 1 && strcmp(kind, "ctl") == 0)
		snprintf(name, sizeof(name), "%s", kind);
	else
		snprintf(name, sizeof(name), "%s.%u", kind, epoch);
	fd = listen_at(job, name);
	if (fd >= 0 || errno != EADDRINUSE)
		return fd;
	if (!somebody_elses(job, name) || getrandom(&random, sizeof(random), 0) != sizeof(random)) {
		errno = EADDRINUSE;
		return -1;
	}
	snprintf(name, sizeof(name), "%s.%u.%06x", kind, epoch > 0 ? epoch : 1, random & 0xffffff);
	return listen_at(job, name);
}

/* The request and a newline. A job that ends meanwhile is an error, not a signal that ends us. */
static bool send_request(int fd, const char *request)
{
	struct iovec part[2] = {{(void *)request, strlen(request)}, {"\n", 1}};
	struct msghdr m = {.msg_iov = part, .msg_iovlen = 2};

	while (m.msg_iovlen > 0) {
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		for (; m.msg_iovlen > 0 && (size_t)n >= m.msg_iov->iov_len; m.msg_iovlen--)
			n -= (ssize_t)m.msg_iov++->iov_len;
		if (m.msg_iovlen > 0) {
			m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= (size_t)n;
		}
	}
	return true;
}

/* until: clock_seconds() when it is to be there; 0: any time. NULL and errno EAGAIN: it wasn't. */
static char *read_answer(int fd, double until, size_t *len)
{
	char *text = NULL;
	size_t cap = 0;

	*len = 0;
	for (;;) {
		double left = until - clock_seconds();

		if (until > 0)
			wait_at_most(fd, SO_RCVTIMEO, left > ANSWER_LEAST ? left : ANSWER_LEAST);
		if (cap - *len < 4096) {
			char *more = realloc(text, cap + 65536);
			if (!more)
				break;
			text = more;
			cap += 65536;
		}
		ssize_t n = recv(fd, text + *len, cap - *len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			free(text);
			errno = EAGAIN;
			return NULL;
		}
		errno = 0;
		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	return text;
}

static struct json_value *parse_answer(char *text, size_t len)
{
	struct json_value *answer = text ? json_parse(text, len) : NULL;

	free(text);
	return answer;
}

void control_ask_each(char (*jobs)[JOB_ID_MAX], size_t count, const char *request,
		      struct json_value **answers, hale_status_t *status)
{
	int *fd = calloc(count + 1, sizeof(*fd));
	double until = clock_seconds() + ANSWER_SECONDS;

	for (size_t i = 0; i < count; i++) {
		answers[i] = NULL;
		status[i] = HALE_ERR_STATE;
		if (!fd)
			continue;
		fd[i] = connect_newest(jobs[i], "ctl", 0, until);
		if (fd[i] < 0 && errno == EAGAIN)
			status[i] = HALE_ERR_TIMEOUT;
		if (fd[i] >= 0 && !send_request(fd[i], request)) {
			close(fd[i]);
			fd[i] = -1; /* it has just ended */
		}
	}
	for (size_t i = 0; fd && i < count; i++) {
		size_t len;
		char *text = fd[i] >= 0 ? read_answer(fd[i], until, &len) : NULL;

		if (fd[i] < 0)
			continue;
		status[i] = !text && errno == EAGAIN ? HALE_ERR_TIMEOUT : HALE_ERR_PROTOCOL;
		answers[i] = parse_answer(text, len);
		if (answers[i])
			status[i] = HALE_OK;
		close(fd[i]);
	}
	free(fd);
}

struct json_value *control_ask_at(const char *job, const char *kind, uint32_t epoch,
				  const char *request, double patience)
{
	int fd = connect_newest(job, kind, epoch, clock_seconds() + patience);
	struct json_value *answer = NULL;
	char *text;
	size_t len;

	if (fd < 0)
		return NULL;
	if (send_request(fd, request)) {
		text = read_answer(fd, clock_seconds() + patience, &len);
		answer = parse_answer(text, len);
	}
	close(fd);
	errno = ETIMEDOUT;
	return answer;
}

char *control_ask_text(const char *job, const char *request)
{
	int fd = control_connect(job);
	char *text = NULL, *more;
	size_t len = 0;

	if (fd < 0)
		return NULL;
	if (send_request(fd, request))
		text = read_answer(fd, clock_seconds() + ANSWER_SECONDS, &len);
	close(fd);
	more = text && len > 0 ? realloc(text, len + 1) : NULL;
	if (!more) {
		free(text);
		return NULL;
	}
	more[len] = '\0';
	return more;
}

hale_status_t control_ask(const char *job, const char *request, struct json_value **answer,
			  struct error *err)
{
	int fd = control_connect(job);
	size_t len = 0;
	char *text;

	*answer = NULL;
	if (fd < 0 && errno == EPERM)
		return error_set(err, HALE_ERR_STATE,
				 "somebody else listens in the place of job '%s': it is not asked; "
				 "tell whoever looks after this machine",
				 job);
	if (fd < 0)
		return error_set(err, HALE_ERR_STATE,
				 "no job '%s' of yours is running here; `hale ps` lists them", job);
	if (!send_request(fd, request)) {
		close(fd);
		return error_set(err, HALE_ERR_STATE, "job %s ended before it could be asked", job);
	}
	text = read_answer(fd, 0, &len);
	close(fd);
	*answer = parse_answer(text, len);
	if (!*answer)
		return error_set(err, HALE_ERR_PROTOCOL, "job %s ended before it answered", job);
	const char *why = json_text(json_get(*answer, "error"), NULL);
	return why ? error_set(err, HALE_ERR_STATE, "%s", why) : HALE_OK;
}

/* Without those names that somebody else has taken. */
static size_t own_jobs(char (*jobs)[JOB_ID_MAX], size_t count)
{
	double until = clock_seconds() + ANSWER_SECONDS;
	size_t own = 0;

	for (size_t i = 0; i < count; i++) {
		int fd = connect_newest(jobs[i], "ctl", 0, until);

		if (fd < 0 && errno == EPERM)
			continue;
		if (fd >= 0)
			close(fd);
		if (own != i)
			memcpy(jobs[own], jobs[i], sizeof(*jobs));
		own++;
	}
	return own;
}

hale_status_t control_choose(const char *job, char name[JOB_ID_MAX], struct error *err)
{
	char(*jobs)[JOB_ID_MAX];
	size_t count;

	if (job) {
		if (strlen(job) >= JOB_ID_MAX)
			return error_set(err, HALE_ERR_ARGUMENT, "'%s' is no job", job);
		snprintf(name, JOB_ID_MAX, "%s", job);
		return HALE_OK;
	}
	count = control_jobs(&jobs);
	if (count > 1)
		count = own_jobs(jobs, count);
	if (count == 1)
		snprintf(name, JOB_ID_MAX, "%s", jobs[0]);
	free(jobs);
	if (count == 1)
		return HALE_OK;
	return error_set(err, HALE_ERR_ARGUMENT,
			 count ? "%zu jobs are running: say which (`hale ps` lists them)"
			       : "no job of yours is running here",
			 count);
}
