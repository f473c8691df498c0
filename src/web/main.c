/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-web HALE ADDRESS PORT: serves the page and what it asks for, until a signal; started by
 * `hale web`. Whoever has the token may look; nothing can be done by it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "control/control.h"
#include "web/events.h"
#include "web/page.h"

enum { TOKEN_BYTES = 16, CONNECTIONS_MAX = 32, CONNECTION_SECONDS = 20, ADVICE_MAX = 1 << 20 };

static struct {
	const char *hale;
	char token[2 * TOKEN_BYTES + 1];
} web;

/* ---- who asks ---- */

static bool make_token(void)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(web.token + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

/* In a time that says nothing of where they differ. */
static bool is_token(const char *text)
{
	unsigned char differs = 0;

	if (!text || strlen(text) != sizeof(web.token) - 1)
		return false;
	for (size_t i = 0; i < sizeof(web.token) - 1; i++)
		differs |= (unsigned char)(text[i] ^ web.token[i]);
	return differs == 0;
}

/* ---- what is answered ---- */

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *type,
				 char *text)
{
	struct MHD_Response *r =
	    text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE)
		 : NULL;
	enum MHD_Result done;

	if (!r) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	MHD_add_response_header(
	    r, "Content-Security-Policy",
	    "default-src 'none'; script-src 'unsafe-inline'; style-src "
	    "'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'");
	done = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return done;
}

static char *the_page(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f && page_print(f, "null") && fclose(f) == 0)
		return text;
	return NULL;
}

static char *the_jobs(void)
{
	char(*jobs)[JOB_ID_MAX];
	size_t count = control_jobs(&jobs);
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_open_array(&j, "jobs");
	for (size_t i = 0; i < count; i++)
		json_string(&j, NULL, jobs[i]);
	json_close_array(&j);
	json_close_object(&j);
	free(jobs);
	return j.text;
}

/* A job that is over, or stopped, has null in the place of what it does not say. */
static char *the_job(const char *id)
{
	static const char *const requests[] = {"{\"op\":\"report\"}", "{\"op\":\"ps\"}",
					       "{\"op\":\"nodes\"}"};
	char *said[3], *text = NULL;

	for (int i = 0; i < 3; i++)
		said[i] = i > 0 && !said[0] ? NULL : control_ask_text(id, requests[i]);
	if (asprintf(&text, "{\"report\":%s,\"ps\":%s,\"nodes\":%s}", said[0] ? said[0] : "null",
		     said[1] ? said[1] : "null", said[2] ? said[2] : "null") < 0)
		text = NULL;
	for (int i = 0; i < 3; i++)
		free(said[i]);
	return text;
}

static pid_t start_advice(const char *id, int to)
{
	pid_t pid = fork();

	if (pid == 0) {
		dup2(to, STDOUT_FILENO);
		close(STDERR_FILENO);
		execl(web.hale, "hale", "advise", id, "--json", (char *)NULL);
		_exit(127);
	}
	return pid;
}

static char *the_advice(const char *id)
{
	char *text = calloc(1, ADVICE_MAX);
	int ends[2], status = 1;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (!text || pipe2(ends, O_CLOEXEC) != 0) {
		free(text);
		return NULL;
	}
	pid = start_advice(id, ends[1]);
	close(ends[1]);
	while (len < ADVICE_MAX - 1 && (n = read(ends[0], text + len, ADVICE_MAX - 1 - len)) > 0)
		len += (size_t)n;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (status != 0 || len == 0)
		strcpy(text, "null");
	return text;
}

/* A name that a job could have: what else is asked for is none's. */
static const char *job_of(struct MHD_Connection *c)
{
	const char *id = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "id");

	return id && *id && *id != '-' && strlen(id) < JOB_ID_MAX && !strchr(id, '/') ? id : NULL;
}

static enum MHD_Result serve(void *arg, struct MHD_Connection *c, const char *url,
			     const char *method, const char *version, const char *data,
			     size_t *size, void **state)
{
	const char *given = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
	const char *job = job_of(c);
	char *text = NULL;

	if (strcmp(method, "GET") != 0)
		return send_text(c, 405, "text/plain", strdup("hale web only shows\n"));
	if (!given)
		given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "X-Hale-Token");
	if (!is_token(given))
		return send_text(
		    c, 403, "text/plain",
		    strdup("The address that hale web has printed has a token in it; this "
			   "one has none, or another one.\n"));
	if (strcmp(url, "/") == 0)
		return send_text(c, 200, "text/html; charset=utf-8", the_page());
	if (strcmp(url, "/api/jobs") == 0)
		text = the_jobs();
	else if (strcmp(url, "/api/job") == 0 && job)
		text = the_job(job);
	else if (strcmp(url, "/api/advice") == 0 && job)
		text = the_advice(job);
	else if (strcmp(url, "/api/events") == 0 && job)
		text = web_events(web.hale, job);
	else
		return send_text(c, 404, "text/plain", strdup("There is nothing here.\n"));
	return send_text(c, 200, "application/json", text);
}

/* ---- the program ---- */

static struct MHD_Daemon *listen_at(struct sockaddr_in *a)
{
	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, ntohs(a->sin_port), NULL, NULL,
				serve, NULL, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)a,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_SECONDS,
				MHD_OPTION_END);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *d;
	sigset_t ends;
	long port;
	int which;

	log_init_from_env();
	if (argc != 4 || inet_pton(AF_INET, argv[2], &a.sin_addr) != 1 ||
	    !units_parse_int(argv[3], 0, 65535, &port)) {
		log_warn("hale-web is started by hale web");
		return EXIT_USAGE;
	}
	web.hale = argv[1];
	a.sin_port = htons((uint16_t)port);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	d = make_token() ? listen_at(&a) : NULL;
	if (!d) {
		log_warn("cannot listen at %s:%ld: %s", argv[2], port, strerror(errno));
		return EXIT_USAGE;
	}
	info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
	printf("http://%s:%u/?token=%s\n", argv[2], info ? info->port : (unsigned)port, web.token);
	fflush(stdout);
	if (isatty(STDOUT_FILENO))
		log_warn("open this address in a browser; Ctrl-C ends hale web");
	sigwait(&ends, &which);
	MHD_stop_daemon(d);
	web_events_fini();
	return 0;
}
