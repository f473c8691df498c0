/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: connect, declare, disconnect. */
#include "ftb/lib.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

struct lib lib = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER, .wake = -1};

struct lib_client *lib_client(FTB_client_handle_t handle)
{
	for (struct lib_client *c = lib.clients; c; c = c->next)
		if ((uintptr_t)handle == c->id && !c->dead)
			return c;
	return NULL;
}

/* ---- connect ---- */

static int style_parse(const char *text)
{
	static const struct {
		const char *name;
		int style;
	} styles[] = {
	    {"FTB_SUBSCRIPTION_NONE", FTB_SUBSCRIPTION_NONE},
	    {"FTB_SUBSCRIPTION_POLLING", FTB_SUBSCRIPTION_POLLING},
	    {"FTB_SUBSCRIPTION_NOTIFY", FTB_SUBSCRIPTION_NOTIFY},
	    {"FTB_SUBSCRIPTION_BOTH", FTB_SUBSCRIPTION_POLLING | FTB_SUBSCRIPTION_NOTIFY}};

	for (size_t i = 0; i < ARRAY_LEN(styles); i++)
		if (strncasecmp(text, styles[i].name, FTB_MAX_SUBSCRIPTION_STYLE) == 0)
			return styles[i].style;
	return -1;
}

static int check_info(const FTB_client_t *i)
{
	size_t space = strnlen(i->event_space, sizeof(i->event_space));
	size_t name = strnlen(i->client_name, sizeof(i->client_name));
	size_t job = strnlen(i->client_jobid, sizeof(i->client_jobid));

	if (style_parse(i->client_subscription_style) < 0)
		return FTB_ERR_SUBSCRIPTION_STYLE;
	if (space == sizeof(i->event_space) || !ftb_name_ok(i->event_space, space, true))
		return FTB_ERR_EVENTSPACE_FORMAT;
	if (name == sizeof(i->client_name) || !ftb_text_ok(i->client_name, name) ||
	    job == sizeof(i->client_jobid) || !ftb_text_ok(i->client_jobid, job))
		return FTB_ERR_INVALID_VALUE;
	return FTB_SUCCESS;
}

static struct lib_client *client_new(const FTB_client_t *info)
{
	struct lib_client *c = calloc(1, sizeof(*c));
	struct timespec now;

	if (!c)
		return NULL;
	c->fd = -1;
	c->info = *info;
	c->style = (unsigned)style_parse(info->client_subscription_style);
	c->queue_len = info->client_polling_queue_len > 0 ? info->client_polling_queue_len
							  : FTB_DEFAULT_POLLING_Q_LEN;
	c->publisher = ftb_random();
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(c->start, sizeof(c->start), "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
	return c;
}

static void client_free(struct lib_client *c)
{
	lib_close(c);
	outq_fini(&c->out);
	subs_free_all(c);
	kept_fini(&c->kept);
	free(c->declared);
	free(c);
}

/* Whether there is a client that differs in nothing: then this is the same call a second time. */
static bool registered(const FTB_client_t *i)
{
	for (const struct lib_client *c = lib.clients; c; c = c->next)
		if (!c->dead && strcasecmp(c->info.event_space, i->event_space) == 0 &&
		    strcasecmp(c->info.client_name, i->client_name) == 0 &&
		    strcmp(c->info.client_jobid, i->client_jobid) == 0 &&
		    c->style == (unsigned)style_parse(i->client_subscription_style))
			return true;
	return false;
}

int FTB_Connect(const FTB_client_t *client_info, FTB_client_handle_t *client_handle)
{
	struct lib_client *c;
	int ret;

	if (!client_info || !client_handle)
		return FTB_ERR_NULL_POINTER;
	ret = check_info(client_info);
	if (ret != FTB_SUCCESS)
		return ret;
	c = client_new(client_info);
	if (!c)
		return FTB_ERR_GENERAL;
	ret = lib_open(c); /* nobody else knows of it yet */
	pthread_mutex_lock(&lib.lock);
	if (ret == FTB_SUCCESS && registered(client_info))
		ret = FTB_ERR_DUP_CALL;
	if (ret == FTB_SUCCESS && !lib_thread_start())
		ret = FTB_ERR_GENERAL;
	if (ret == FTB_SUCCESS) {
		c->id = ++lib.next_id;
		c->token_base = token_base(c->info.event_space, c->info.client_name, c->host,
					   c->start, getpid());
		c->next = lib.clients;
		lib.clients = c;
		*client_handle = (FTB_client_handle_t)(uintptr_t)c->id;
		lib_wake();
	}
	pthread_mutex_unlock(&lib.lock);
	if (ret != FTB_SUCCESS)
		client_free(c);
	return ret;
}

/* ---- disconnect ---- */

static void unlink_client(struct lib_client *c)
{
	for (struct lib_client **p = &lib.clients; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
}

/* Waits for the thread to end when there is nothing left for it to do. */
static void join_thread(void)
{
	pthread_t t = lib.thread;

	while (lib.running && !lib.clients)
		pthread_cond_wait(&lib.news, &lib.lock);
	if (lib.running || !lib.joinable)
		return;
	lib.joinable = false;
	pthread_mutex_unlock(&lib.lock);
	pthread_join(t, NULL);
	pthread_mutex_lock(&lib.lock);
}

static void send_rest(struct lib_client *c)
{
	struct timespec step = {.tv_nsec = 2000000};

	for (int i = 0; i < WAIT_MS / 2; i++) {
		if (c->fd >= 0)
			lib_flush(c);
		if (c->fd < 0 || outq_empty(&c->out))
			return;
		pthread_mutex_unlock(&lib.lock);
		nanosleep(&step, NULL);
		pthread_mutex_lock(&lib.lock);
	}
}

int FTB_Disconnect(FTB_client_handle_t client_handle)
{
	struct lib_client *c;
	bool here;

	pthread_mutex_lock(&lib.lock);
	c = lib_client(client_handle);
	if (!c) {
		pthread_mutex_unlock(&lib.lock);
		return FTB_ERR_INVALID_HANDLE;
	}
	here = lib_in_thread();
	c->dead = true;
	send_rest(c);
	while (c->busy && !here)
		pthread_cond_wait(&lib.news, &lib.lock);
	if (c->busy) { /* by us */
		c->orphaned = true;
	} else {
		unlink_client(c);
		client_free(c);
	}
	lib_wake();
	if (!here && !lib.clients)
		join_thread();
	pthread_mutex_unlock(&lib.lock);
	return FTB_SUCCESS;
}

void lib_client_gone(struct lib_client *c)
{
	unlink_client(c);
	client_free(c);
}

/* ---- declare ---- */

static int declare(struct lib_client *c, const char *name, size_t len, const char *severity,
		   size_t severity_len)
{
	int s = ftb_severity_parse(severity, severity_len);
	struct declared *grown;

	if (len >= FTB_MAX_EVENT_NAME || !ftb_name_ok(name, len, false) || s < 0)
		return FTB_ERR_INVALID_FIELD;
	for (size_t i = 0; i < c->declared_count; i++)
		if (strlen(c->declared[i].name) == len &&
		    strncasecmp(c->declared[i].name, name, len) == 0)
			return (int)c->declared[i].severity == s ? FTB_SUCCESS : FTB_ERR_DUP_EVENT;
	if (c->declared_count == DECLARED_MAX)
		return FTB_ERR_GENERAL;
	grown = realloc(c->declared, (c->declared_count + 1) * sizeof(*grown));
	if (!grown)
		return FTB_ERR_GENERAL;
	c->declared = grown;
	grown += c->declared_count++;
	*grown = (struct declared){.severity = (enum ftb_severity)s};
	memcpy(grown->name, name, len);
	return FTB_SUCCESS;
}

/* The next word, # and the rest of its line left out; its length, 0 at the end. A comma divides a
 * name from its severity as well as a blank does. */
static size_t word(FILE *f, char *to, size_t cap)
{
	size_t n = 0;
	int ch;

	while ((ch = getc(f)) != EOF) {
		if (ch == '#')
			while ((ch = getc(f)) != EOF && ch != '\n')
				;
		bool blank =
		    ch == EOF || ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r' || ch == ',';
		if (blank && n)
			break;
		if (!blank && n < cap - 1)
			to[n++] = (char)ch;
	}
	to[n] = 0;
	return n;
}

/* start NAMESPACE { NAME SEVERITY } end; what stands outside is not looked at. */
static int declare_file(struct lib_client *c, FILE *f)
{
	char text[80], severity[80];
	bool any = false;

	while (word(f, text, sizeof(text))) {
		if (strcmp(text, "start") != 0)
			continue;
		if (!word(f, text, sizeof(text)) || strcasecmp(text, c->info.event_space) != 0)
			return FTB_ERR_INVALID_SCHEMA_FILE;
		while (word(f, text, sizeof(text)) && strcmp(text, "end") != 0) {
			int ret;

			if (!word(f, severity, sizeof(severity)))
				return FTB_ERR_INVALID_SCHEMA_FILE;
			ret = declare(c, text, strlen(text), severity, strlen(severity));
			if (ret != FTB_SUCCESS)
				return ret;
		}
		if (strcmp(text, "end") != 0)
			return FTB_ERR_INVALID_SCHEMA_FILE;
		any = true;
	}
	return any ? FTB_SUCCESS : FTB_ERR_INVALID_SCHEMA_FILE;
}

int FTB_Declare_publishable_events(FTB_client_handle_t client_handle, const char *schema_file,
				   const FTB_event_info_t *event_info, int num_events)
{
	FILE *f = schema_file ? fopen(schema_file, "re") : NULL;
	int ret = FTB_SUCCESS;
	struct lib_client *c;

	pthread_mutex_lock(&lib.lock);
	c = lib_client(client_handle);
	if (!c)
		ret = FTB_ERR_INVALID_HANDLE;
	else if (schema_file)
		ret = f ? declare_file(c, f) : FTB_ERR_INVALID_SCHEMA_FILE;
	else if (!event_info && num_events > 0)
		ret = FTB_ERR_NULL_POINTER;
	for (int i = 0; ret == FTB_SUCCESS && !schema_file && i < num_events; i++)
		ret = declare(c, event_info[i].event_name,
			      strnlen(event_info[i].event_name, FTB_MAX_EVENT_NAME),
			      event_info[i].severity,
			      strnlen(event_info[i].severity, FTB_MAX_SEVERITY));
	pthread_mutex_unlock(&lib.lock);
	if (f)
		fclose(f);
	return ret;
}

/* ---- what codes mean ---- */

static const struct {
	int class;
	const char *text;
} errors[] = {
    {0, "no error"},
    {2, "out of memory, or no thread could be started"},
    {1, "a namespace is words of A-Z a-z 0-9 _ - with dots between them"},
    {1, "the subscription style is none of FTB_SUBSCRIPTION_NONE, _POLLING, _NOTIFY, _BOTH"},
    {1, "the client's name or job id is too long"},
    {1, "this client is registered already; another one in this process needs another name"},
    {1, "a pointer is NULL that may not be"},
    {1, "not with the client's subscription style"},
    {1, "an event's name or severity is not one"},
    {1, "no such handle, or not any more"},
    {1, "the event was declared with another severity"},
    {1, "the schema file can't be read, or is none of this client"},
    {1, "the event was not declared"},
    {1, "the event type is neither 1 (normal) nor 2 (response)"},
    {1, "a filter is key=value with commas or blanks between, each key once"},
    {1, "a filter's keys are namespace, name, severity, host, job, client"},
    {1, "a filter's key can't have this value"},
    {3, "no event"},
    {3, "not the same event"},
    {1, "a parameter is out of its range"},
    {2, "the broker takes nothing at the moment"},
    {2, "no event broker serves this user on this node"},
};

int FTB_Check_error_code(const int error_code, int *error_class, int *error_value)
{
	if (error_code > 0 || error_code <= -(int)ARRAY_LEN(errors))
		return FTB_ERR_INVALID_PARAMETER;
	if (error_class)
		*error_class = errors[-error_code].class;
	if (error_value)
		*error_value = -error_code;
	return FTB_SUCCESS;
}

int FTB_Check_error(const int error_code, int *error_class, int *error_value)
{
	return FTB_Check_error_code(error_code, error_class, error_value);
}

const char *HALE_FTB_Error_text(int error_code)
{
	return error_code > 0 || error_code <= -(int)ARRAY_LEN(errors) ? "no code of the backplane"
								       : errors[-error_code].text;
}

int HALE_FTB_Lost(FTB_client_handle_t client_handle, uint64_t *info, uint64_t *above)
{
	struct lib_client *c;

	pthread_mutex_lock(&lib.lock);
	c = lib_client(client_handle);
	if (c && info)
		*info = c->lost_info + c->told_info + c->now_info;
	if (c && above)
		*above = c->lost_above + c->told_above + c->now_above;
	pthread_mutex_unlock(&lib.lock);
	return c ? FTB_SUCCESS : FTB_ERR_INVALID_HANDLE;
}
