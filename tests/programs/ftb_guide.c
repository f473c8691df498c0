/* SPDX-License-Identifier: BSD-3-Clause */
/* What the developer's guide of CIFTS FTB (API 0.5) says of subscriptions, polling, schema files,
 * handles and errors, sentence by sentence. No word of Hale's in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "libftb.h"

static int failures;

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			printf("line %d: %s\n", __LINE__, #x);                                     \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static FTB_client_t info(const char *name, const char *style)
{
	FTB_client_t c;

	memset(&c, 0, sizeof(c));
	strcpy(c.event_space, "FTB.TEST1.TEST1");
	strcpy(c.client_name, name);
	strcpy(c.client_jobid, "1234");
	strcpy(c.client_subscription_style, style);
	return c;
}

static int poll_for(FTB_subscribe_handle_t s, FTB_receive_event_t *ev)
{
	int ret = FTB_GOT_NO_EVENT;

	for (int i = 0; i < 500 && ret == FTB_GOT_NO_EVENT; i++) {
		ret = FTB_Poll_event(s, ev);
		if (ret == FTB_GOT_NO_EVENT)
			usleep(10000);
	}
	return ret;
}

static volatile int calls[3];

static int count(FTB_receive_event_t *e, void *arg)
{
	(void)e;
	calls[(long)arg]++;
	return 0;
}

static FTB_event_info_t events[] = {
    {"BAD", "fatal"}, {"GOOD", "Info"}, {"ODD", "WARNING"}, {"WRONG", "Error"}};

/* "An event will be reported only once": 4.4. */
static void once(void)
{
	FTB_client_t both = info("both", "FTB_SUBSCRIPTION_BOTH");
	FTB_client_handle_t c;
	FTB_subscribe_handle_t polled, job, fatal, all;
	FTB_event_handle_t handle, got;
	FTB_receive_event_t ev;

	CHECK(FTB_Connect(&both, &c) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(c, NULL, events, 4) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&job, c, "severity=fatal,jobid=1234", NULL, NULL) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&polled, c, "severity=info", NULL, NULL) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&fatal, c, "severity=fatal", count, (void *)0) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&all, c, "severity=all, event_name=bad", count, (void *)1) ==
	      FTB_SUCCESS);
	CHECK(FTB_Publish(c, "BAD", NULL, &handle) == FTB_SUCCESS);
	CHECK(FTB_Publish(c, "good", NULL, &handle) == FTB_SUCCESS);
	CHECK(poll_for(polled, &ev) == FTB_SUCCESS && strcmp(ev.event_name, "GOOD") == 0);
	CHECK(FTB_Get_event_handle(ev, &got) == FTB_SUCCESS &&
	      FTB_Compare_event_handles(got, handle) == FTB_SUCCESS);
	/* events of one publisher come in their order: the fatal one was before */
	CHECK(calls[0] == 1 && calls[1] == 0);
	CHECK(FTB_Poll_event(job, &ev) == FTB_GOT_NO_EVENT);
	CHECK(FTB_Poll_event(fatal, &ev) == FTB_ERR_NOT_SUPPORTED);
	/* the next one in line, and then those who poll */
	CHECK(FTB_Unsubscribe(&fatal) == FTB_SUCCESS);
	CHECK(FTB_Publish(c, "BAD", NULL, &handle) == FTB_SUCCESS);
	CHECK(FTB_Publish(c, "GOOD", NULL, &handle) == FTB_SUCCESS);
	CHECK(poll_for(polled, &ev) == FTB_SUCCESS);
	CHECK(calls[0] == 1 && calls[1] == 1);
	CHECK(FTB_Unsubscribe(&all) == FTB_SUCCESS);
	CHECK(FTB_Publish(c, "BAD", NULL, &handle) == FTB_SUCCESS);
	CHECK(poll_for(job, &ev) == FTB_SUCCESS && strcmp(ev.severity, "FATAL") == 0);
	CHECK(FTB_Poll_event(job, NULL) == FTB_ERR_NULL_POINTER);
	CHECK(FTB_Disconnect(c) == FTB_SUCCESS);
	CHECK(FTB_Poll_event(job, &ev) == FTB_ERR_INVALID_HANDLE);
}

/* Two subscriptions that poll share the client's queue, and what one takes the other doesn't get.
 */
static void polling(void)
{
	FTB_client_t me = info("poll", "FTB_SUBSCRIPTION_POLLING");
	FTB_client_handle_t c;
	FTB_subscribe_handle_t warning, all;
	FTB_event_handle_t handle;
	FTB_receive_event_t ev;

	me.client_polling_queue_len = 4;
	CHECK(FTB_Connect(&me, &c) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(c, NULL, events, 4) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&warning, c, "severity=warning", NULL, NULL) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&all, c, "", NULL, NULL) == FTB_SUCCESS);
	for (int i = 0; i < 5; i++)
		CHECK(FTB_Publish(c, "GOOD", NULL, &handle) == FTB_SUCCESS);
	CHECK(FTB_Publish(c, "ODD", NULL, &handle) == FTB_SUCCESS);
	CHECK(poll_for(warning, &ev) == FTB_SUCCESS && strcmp(ev.event_name, "ODD") == 0);
	CHECK(FTB_Poll_event(warning, &ev) == FTB_GOT_NO_EVENT);
	/* four fit: the oldest INFO ones were dropped */
	for (int i = 3; i <= 5; i++)
		CHECK(FTB_Poll_event(all, &ev) == FTB_SUCCESS && ev.seqnum == i);
	CHECK(FTB_Poll_event(all, &ev) == FTB_GOT_NO_EVENT);
	CHECK(FTB_Subscribe(&all, c, "", count, NULL) == FTB_ERR_NOT_SUPPORTED);
	CHECK(FTB_Disconnect(c) == FTB_SUCCESS);
}

static int schema(const char *text)
{
	FTB_client_t me = info("schema", "FTB_SUBSCRIPTION_NONE");
	FTB_client_handle_t c;
	FTB_event_handle_t handle;
	FILE *f = fopen("events.ftb", "w");
	int ret;

	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
	CHECK(FTB_Connect(&me, &c) == FTB_SUCCESS);
	ret = FTB_Declare_publishable_events(c, "events.ftb", NULL, 0);
	if (ret == FTB_SUCCESS)
		CHECK(FTB_Publish(c, "SECOND", NULL, &handle) == FTB_SUCCESS);
	CHECK(FTB_Publish(c, "OUTSIDE", NULL, &handle) == FTB_ERR_INVALID_EVENT_NAME);
	CHECK(FTB_Disconnect(c) == FTB_SUCCESS);
	return ret;
}

static void schemas(void)
{
	CHECK(schema("# ours\nstart\nftb.test1.test1 # the event space\nfirst, info\nsecond,fatal\n"
		     "end\n") == FTB_SUCCESS);
	CHECK(schema("a word or two\nstart ftb.test1.test1 second error end\noutside info\n") ==
	      FTB_SUCCESS);
	CHECK(schema("start ftb.test1.other second info end\n") == FTB_ERR_INVALID_SCHEMA_FILE);
	CHECK(schema("start ftb.test1.test1 second info\n") == FTB_ERR_INVALID_SCHEMA_FILE);
	CHECK(schema("start ftb.test1.test1 second dreadful end\n") == FTB_ERR_INVALID_FIELD);
	CHECK(schema("ftb.test1.test1 second info\n") == FTB_ERR_INVALID_SCHEMA_FILE);
	CHECK(schema("") == FTB_ERR_INVALID_SCHEMA_FILE);
}

static void errors(void)
{
	FTB_client_t me = info("errors", "FTB_SUBSCRIPTION_POLLING"), other = me, wrong = me;
	FTB_event_info_t twice[] = {{"BAD", "info"}}, no_severity[] = {{"NEW", "awful"}},
			 no_name[] = {{"NE W", "info"}};
	FTB_client_handle_t c, c2;
	FTB_subscribe_handle_t s;
	FTB_event_handle_t h = NULL, h2;
	FTB_receive_event_t never;

	memset(&never, 0, sizeof(never));
	CHECK(FTB_Connect(NULL, &c) == FTB_ERR_NULL_POINTER);
	memset(wrong.client_name, 'n', sizeof(wrong.client_name));
	CHECK(FTB_Connect(&wrong, &c) == FTB_ERR_INVALID_VALUE);
	CHECK(FTB_Connect(&me, &c) == FTB_SUCCESS);
	CHECK(FTB_Connect(&me, &c2) == FTB_ERR_DUP_CALL);
	strcpy(other.client_name, "another");
	CHECK(FTB_Connect(&other, &c2) == FTB_SUCCESS);
	CHECK(FTB_Disconnect(c2) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(c, NULL, NULL, 0) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(c, NULL, events, 4) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(c, NULL, twice, 1) == FTB_ERR_DUP_EVENT);
	CHECK(FTB_Declare_publishable_events(c, NULL, no_severity, 1) == FTB_ERR_INVALID_FIELD);
	CHECK(FTB_Declare_publishable_events(c, NULL, no_name, 1) == FTB_ERR_INVALID_FIELD);
	CHECK(FTB_Declare_publishable_events(c2, NULL, events, 4) == FTB_ERR_INVALID_HANDLE);
	CHECK(FTB_Publish(c2, "BAD", NULL, &h) == FTB_ERR_INVALID_HANDLE);
	CHECK(FTB_Subscribe(&s, c, "", count, NULL) == FTB_ERR_NOT_SUPPORTED);
	CHECK(FTB_Subscribe(&s, c2, "", NULL, NULL) == FTB_ERR_INVALID_HANDLE);
	CHECK(FTB_Subscribe(NULL, c, "", NULL, NULL) == FTB_ERR_NULL_POINTER);
	CHECK(FTB_Subscribe(&s, c, NULL, NULL, NULL) == FTB_ERR_SUBSCRIPTION_STR);
	CHECK(FTB_Subscribe(&s, c, "severity=info,severity=info", NULL, NULL) ==
	      FTB_ERR_SUBSCRIPTION_STR);
	CHECK(FTB_Subscribe(&s, c, "event_space=ftb..x", NULL, NULL) == FTB_ERR_EVENTSPACE_FORMAT);
	CHECK(FTB_Subscribe(&s, c, "jobid=12345678901234567", NULL, NULL) == FTB_ERR_FILTER_VALUE);
	CHECK(FTB_Publish(c, "BAD", NULL, &h) == FTB_SUCCESS);
	CHECK(FTB_Compare_event_handles(h, h) == FTB_SUCCESS);
	CHECK(FTB_Compare_event_handles(h, NULL) == FTB_ERR_INVALID_HANDLE);
	CHECK(FTB_Get_event_handle(never, &h2) == FTB_FAILURE);
	CHECK(FTB_Disconnect(c) == FTB_SUCCESS);
}

/* A launcher connects and then forks; its child is another process with a client of its own. */
static void forked(void)
{
	FTB_client_t me = info("parent", "FTB_SUBSCRIPTION_POLLING");
	FTB_client_handle_t c, mine;
	FTB_subscribe_handle_t s;
	FTB_event_handle_t h;
	FTB_receive_event_t ev;
	int status;
	pid_t child;

	CHECK(FTB_Connect(&me, &c) == FTB_SUCCESS);
	CHECK(FTB_Subscribe(&s, c, "severity=fatal", NULL, NULL) == FTB_SUCCESS);
	child = fork();
	if (child == 0) {
		alarm(10);
		CHECK(FTB_Disconnect(c) == FTB_ERR_INVALID_HANDLE);
		CHECK(FTB_Connect(&me, &mine) == FTB_SUCCESS);
		CHECK(FTB_Declare_publishable_events(mine, NULL, events, 1) == FTB_SUCCESS);
		CHECK(FTB_Publish(mine, "BAD", NULL, &h) == FTB_SUCCESS);
		CHECK(FTB_Disconnect(mine) == FTB_SUCCESS);
		fflush(stdout);
		_exit(failures != 0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(poll_for(s, &ev) == FTB_SUCCESS && ev.incoming_src.pid == child);
	CHECK(FTB_Disconnect(c) == FTB_SUCCESS);
}

/* All processes of a node come at the same moment. */
static void crowd(void)
{
	int gate[2], status, refused = 0;
	char byte;

	CHECK(pipe(gate) == 0);
	for (int i = 0; i < 200; i++) {
		FTB_client_t me = info("one of many", "FTB_SUBSCRIPTION_NONE");
		FTB_client_handle_t c;

		if (fork() != 0)
			continue;
		alarm(30);
		close(gate[1]);
		if (read(gate[0], &byte, 1) != 0 || FTB_Connect(&me, &c) != FTB_SUCCESS)
			_exit(1);
		_exit(FTB_Disconnect(c) != FTB_SUCCESS);
	}
	close(gate[0]);
	close(gate[1]);
	while (wait(&status) > 0)
		refused += status != 0;
	CHECK(refused == 0);
}

int main(void)
{
	once();
	polling();
	schemas();
	errors();
	forked();
	crowd();
	puts(failures ? "wrong" : "right");
	return failures != 0;
}
