/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/monitor_sink.h"

#include <libftb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"

enum { SPACES_MAX = 8 };

struct monitor_sink {
	FILE *file;
	/* a client has one namespace for its life */
	struct {
		char space[FTB_MAX_EVENTSPACE];
		FTB_client_handle_t client;
	} spaces[SPACES_MAX];
	int count;
	bool complained;
};

static int space_connect(struct monitor_sink *s, const char *space, FTB_client_handle_t *client)
{
	FTB_client_t me = {.client_schema_ver = "0.5",
			   .client_name = "monitor",
			   .client_subscription_style = "FTB_SUBSCRIPTION_NONE"};
	int status;

	for (int i = 0; i < s->count; i++) {
		if (strcmp(s->spaces[i].space, space) == 0) {
			*client = s->spaces[i].client;
			return FTB_SUCCESS;
		}
	}
	if (s->count == SPACES_MAX)
		return FTB_ERR_GENERAL;
	snprintf(me.event_space, sizeof(me.event_space), "%s", space);
	status = FTB_Connect(&me, client);
	if (status != FTB_SUCCESS)
		return status;
	snprintf(s->spaces[s->count].space, sizeof(s->spaces[0].space), "%s", space);
	s->spaces[s->count++].client = *client;
	return status;
}

static int event_send(struct monitor_sink *s, const struct monitor_event *e)
{
	FTB_event_info_t info = {0};
	FTB_client_handle_t client;
	int status = space_connect(s, e->space, &client);

	snprintf(info.event_name, sizeof(info.event_name), "%s", e->name);
	snprintf(info.severity, sizeof(info.severity), "%s", monitor_severity_name(e->severity));
	if (status == FTB_SUCCESS)
		status = FTB_Declare_publishable_events(client, NULL, &info, 1);
	if (status == FTB_SUCCESS)
		status = HALE_FTB_Publish(client, e->name, HALE_FTB_EVENT_NORMAL, e->payload,
					  strlen(e->payload), NULL);
	return status;
}

static void event_write(FILE *f, const struct monitor_event *e)
{
	char stamp[TIMESTAMP_SIZE];
	struct json_out j;

	timestamp_print(stamp, (int64_t)(e->time * 1e3));
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "time", stamp);
	json_string(&j, "severity", monitor_severity_name(e->severity));
	json_string(&j, "namespace", e->space);
	json_string(&j, "name", e->name);
	json_string(&j, "host", e->node);
	json_string(&j, "payload", e->payload);
	json_close_object(&j);
	fprintf(f, "%s\n", j.text);
	json_out_fini(&j);
	fflush(f);
}

void monitor_sink_publish(void *sink, const struct monitor_event *e)
{
	struct monitor_sink *s = sink;
	int status;

	log_info("%s %s %s %s: %s", monitor_severity_name(e->severity), e->space, e->name, e->node,
		 e->payload);
	if (s->file) {
		event_write(s->file, e);
		return;
	}
	status = event_send(s, e);
	if (status == FTB_SUCCESS)
		s->complained = false;
	else if (!s->complained)
		log_warn("%s is not published: %s", e->name, HALE_FTB_Error_text(status));
	s->complained |= status != FTB_SUCCESS;
}

struct monitor_sink *monitor_sink_open(const char *path, struct error *err)
{
	struct monitor_sink *s = calloc(1, sizeof(*s));
	FTB_client_handle_t client;
	int status;

	if (!s) {
		error_set(err, HALE_ERR_MEMORY, "out of memory");
		return NULL;
	}
	if (path) {
		s->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "ae");
		if (s->file)
			return s;
		error_sys(err, HALE_ERR_SYSTEM, "can't write events to '%s'", path);
		free(s);
		return NULL;
	}
	status = space_connect(s, "FTB.MONITOR", &client);
	if (status == FTB_SUCCESS)
		return s;
	error_set(err, HALE_ERR_LINK,
		  "no event broker takes the events (%s): start `hale backplane`, or write them "
		  "to a file with --to FILE",
		  HALE_FTB_Error_text(status));
	free(s);
	return NULL;
}

void monitor_sink_close(struct monitor_sink *s)
{
	if (!s)
		return;
	for (int i = 0; i < s->count; i++)
		FTB_Disconnect(s->spaces[i].client);
	if (s->file && s->file != stdout)
		fclose(s->file);
	free(s);
}
