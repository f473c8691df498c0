/* SPDX-License-Identifier: BSD-3-Clause */
/* A component as they were written for CIFTS FTB 0.6, no word of Hale's in it: a watchdog that
 * polls for its own events, and two that answer each other, in two processes, by handles in
 * payloads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

static void watchdog(void)
{
	FTB_client_t cinfo;
	FTB_client_handle_t handle;
	FTB_subscribe_handle_t shandle, bad;
	FTB_event_handle_t ehandle, ehandle2, got;
	FTB_receive_event_t ev;
	FTB_event_properties_t prop;
	FTB_event_info_t event_info[2] = {{"WATCH_DOG_EVENT", "INFO"}, {"ALARM", "fatal"}};
	int ret, i;

	memset(&cinfo, 0, sizeof(cinfo));
	strcpy(cinfo.event_space, "FTB.FTB_EXAMPLES.watchdog");
	strcpy(cinfo.client_schema_ver, "0.5");
	strcpy(cinfo.client_name, "watchdog");
	strcpy(cinfo.client_jobid, "1234");
	strcpy(cinfo.client_subscription_style, "FTB_SUBSCRIPTION_NO");
	CHECK(FTB_Connect(&cinfo, &handle) == FTB_ERR_SUBSCRIPTION_STYLE);
	strcpy(cinfo.client_subscription_style, "FTB_SUBSCRIPTION_POLLING");
	strcpy(cinfo.event_space, "FTB..watchdog");
	CHECK(FTB_Connect(&cinfo, &handle) == FTB_ERR_EVENTSPACE_FORMAT);
	strcpy(cinfo.event_space, "FTB.FTB_EXAMPLES.watchdog");
	CHECK(FTB_Connect(&cinfo, NULL) == FTB_ERR_NULL_POINTER);
	CHECK(FTB_Connect(&cinfo, &handle) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(handle, 0, event_info, 2) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(handle, "/no/such/file", NULL, 0) ==
	      FTB_ERR_INVALID_SCHEMA_FILE);
	CHECK(FTB_Subscribe(&bad, handle, "colour=red", NULL, NULL) == FTB_ERR_FILTER_ATTR);
	CHECK(FTB_Subscribe(&bad, handle, "severity=red", NULL, NULL) == FTB_ERR_FILTER_VALUE);
	CHECK(FTB_Subscribe(&bad, handle, "severity", NULL, NULL) == FTB_ERR_SUBSCRIPTION_STR);
	CHECK(FTB_Subscribe(&bad, handle, "", (int (*)(FTB_receive_event_t *, void *))watchdog,
			    NULL) == FTB_ERR_NOT_SUPPORTED);
	CHECK(FTB_Subscribe(&shandle, handle, "event_space=ftb.all.watchdog , jobid=1234", NULL,
			    NULL) == FTB_SUCCESS);
	CHECK(FTB_Poll_event(shandle, &ev) == FTB_GOT_NO_EVENT);
	CHECK(FTB_Publish(handle, "UNDECLARED", NULL, &ehandle) == FTB_ERR_INVALID_EVENT_NAME);
	CHECK(FTB_Publish(handle, "WATCH_DOG_EVENT", NULL, NULL) == FTB_ERR_NULL_POINTER);
	CHECK(FTB_Publish(handle, "WATCH_DOG_EVENT", NULL, &ehandle) == FTB_SUCCESS);
	memset(&prop, 0, sizeof(prop));
	prop.event_type = 3;
	CHECK(FTB_Publish(handle, "ALARM", &prop, &ehandle2) == FTB_ERR_INVALID_EVENT_TYPE);
	prop.event_type = 1;
	memset(prop.event_payload, 'x', sizeof(prop.event_payload));
	CHECK(FTB_Publish(handle, "ALARM", &prop, &ehandle2) == FTB_SUCCESS);
	for (i = 0; (ret = FTB_Poll_event(shandle, &ev)) == FTB_GOT_NO_EVENT && i < 1000; i++)
		usleep(10000);
	CHECK(ret == FTB_SUCCESS && strcmp(ev.event_name, "WATCH_DOG_EVENT") == 0);
	CHECK(strcmp(ev.event_space, "FTB.FTB_EXAMPLES.watchdog") == 0);
	CHECK(strcmp(ev.severity, "INFO") == 0 && strcmp(ev.client_jobid, "1234") == 0);
	CHECK(ev.incoming_src.pid == getpid() && ev.seqnum == 1);
	CHECK(FTB_Get_event_handle(ev, &got) == FTB_SUCCESS);
	CHECK(FTB_Compare_event_handles(got, ehandle) == FTB_SUCCESS);
	CHECK(FTB_Compare_event_handles(got, ehandle2) == FTB_FAILURE);
	for (i = 0; (ret = FTB_Poll_event(shandle, &ev)) == FTB_GOT_NO_EVENT && i < 1000; i++)
		usleep(10000);
	CHECK(ret == FTB_SUCCESS && strcmp(ev.severity, "FATAL") == 0);
	CHECK(memcmp(ev.event_payload, prop.event_payload, sizeof(prop.event_payload)) == 0);
	CHECK(FTB_Unsubscribe(&shandle) == FTB_SUCCESS);
	CHECK(FTB_Unsubscribe(&shandle) == FTB_ERR_INVALID_HANDLE);
	CHECK(FTB_Disconnect(handle) == FTB_SUCCESS);
	CHECK(FTB_Disconnect(handle) == FTB_ERR_INVALID_HANDLE);
}

/* ---- question and answer ---- */

static volatile int done;
static FTB_subscribe_handle_t shandle_answer;

static int answer(FTB_receive_event_t *evt, void *arg)
{
	FTB_client_handle_t *handle = (FTB_client_handle_t *)arg;
	FTB_event_handle_t question, mine;
	FTB_event_properties_t eprop;

	if (strcasecmp(evt->event_name, "unknown_error") != 0)
		return 0;
	CHECK(FTB_Get_event_handle(*evt, &question) == FTB_SUCCESS);
	memset(&eprop, 0, sizeof(eprop));
	eprop.event_type = 2;
	memcpy(&eprop.event_payload, (char *)&question, sizeof(FTB_event_handle_t));
	CHECK(FTB_Publish(*handle, "everything_ok", &eprop, &mine) == FTB_SUCCESS);
	CHECK(FTB_Unsubscribe(&shandle_answer) == FTB_SUCCESS);
	done = 1;
	return 0;
}

static int answered(FTB_receive_event_t *evt, void *arg)
{
	FTB_event_handle_t handle;

	CHECK(evt->event_type == 2);
	memcpy(&handle, &evt->event_payload, sizeof(FTB_event_handle_t));
	CHECK(FTB_Compare_event_handles(handle, *(FTB_event_handle_t *)arg) == FTB_SUCCESS);
	done = 1;
	return 0;
}

static void talk(int server, int ready)
{
	FTB_event_info_t event_info[2] = {{"everything_ok", "info"}, {"unknown_error", "fatal"}};
	FTB_client_handle_t handle;
	FTB_event_handle_t ehandle;
	FTB_client_t cinfo;
	char byte = 0;

	memset(&cinfo, 0, sizeof(cinfo));
	strcpy(cinfo.event_space, "FTB.FTB_EXAMPLES.ftb_eventhandle");
	strcpy(cinfo.client_subscription_style, "FTB_SUBSCRIPTION_NOTIFY");
	CHECK(FTB_Connect(&cinfo, &handle) == FTB_SUCCESS);
	CHECK(FTB_Declare_publishable_events(handle, 0, event_info, 2) == FTB_SUCCESS);
	if (server) {
		CHECK(FTB_Subscribe(&shandle_answer, handle, "severity=fatal", answer, &handle) ==
		      FTB_SUCCESS);
		CHECK(write(ready, &byte, 1) == 1);
	} else {
		FTB_subscribe_handle_t s;

		CHECK(read(ready, &byte, 1) == 1);
		CHECK(FTB_Subscribe(&s, handle, "event_name=everything_ok", answered, &ehandle) ==
		      FTB_SUCCESS);
		CHECK(FTB_Publish(handle, "unknown_error", NULL, &ehandle) == FTB_SUCCESS);
	}
	for (int i = 0; !done && i < 1000; i++)
		usleep(10000);
	CHECK(done);
	CHECK(FTB_Disconnect(handle) == FTB_SUCCESS);
}

int main(void)
{
	int p[2], status;
	pid_t child;

	if (pipe(p) != 0)
		return 1;
	child = fork();
	if (child == 0) {
		talk(1, p[1]);
		return failures != 0;
	}
	talk(0, p[0]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	watchdog();
	puts(failures ? "wrong" : "right");
	return failures != 0;
}
