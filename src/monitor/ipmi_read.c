/* SPDX-License-Identifier: BSD-3-Clause */
/* Sensors by libipmimonitoring, of this node through the kernel's driver or of another through its
 * BMC's address. */
#include <ipmi_monitoring.h>
#include <ipmi_monitoring_bitmasks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "monitor/kind.h"

/* X(name): ipmi_monitoring_<name>, loaded at run time */
#define FUNCTIONS(X)                                                                               \
	X(init)                                                                                    \
	X(ctx_strerror)                                                                            \
	X(ctx_create)                                                                              \
	X(ctx_destroy)                                                                             \
	X(ctx_errormsg)                                                                            \
	X(ctx_sdr_cache_directory)                                                                 \
	X(sensor_readings_by_sensor_type)                                                          \
	X(sensor_iterator_next)                                                                    \
	X(sensor_read_record_id)                                                                   \
	X(sensor_read_sensor_name)                                                                 \
	X(sensor_read_sensor_type)                                                                 \
	X(sensor_read_sensor_units)                                                                \
	X(sensor_read_sensor_reading_type)                                                         \
	X(sensor_read_sensor_reading)                                                              \
	X(sensor_read_sensor_bitmask)                                                              \
	X(sensor_read_sensor_bitmask_strings)

struct ipmi {
#define X(name) __typeof__ (&ipmi_monitoring_##name)(name);
	FUNCTIONS(X)
#undef X
	ipmi_monitoring_ctx_t ctx;
	struct ipmi_monitoring_ipmi_config config;
	char password[128], cache[512];
	bool failed; /* the last time: what is known of the BMC's sensors may be old */
};

static bool ipmi_load(struct ipmi *m)
{
	void *lib = reader_library("libipmimonitoring.so.6");
	bool all = lib;

#define X(name) m->name = reader_symbol(lib, "ipmi_monitoring_" #name, &all);
	FUNCTIONS(X)
#undef X
	return all;
}

static bool read_password(struct reader *r, struct ipmi *m)
{
	const char *path = r->options->password_file;

	if (!path)
		return true;
	if (!reader_file(path, "", m->password, sizeof(m->password))) {
		reader_lost(r, "can't read the password in '%s': %m", path);
		return false;
	}
	m->password[strcspn(m->password, "\r\n")] = 0;
	m->config.password = m->password;
	return true;
}

/* Makes the folder of this user alone in which the library keeps what sensors each BMC has. Asking
 * a real BMC for them takes seconds. */
static bool cache_folder(struct ipmi *m)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct stat st;

	if (base && *base == '/')
		snprintf(m->cache, sizeof(m->cache), "%.400s", base);
	else if (home && *home == '/')
		snprintf(m->cache, sizeof(m->cache), "%.400s/.cache", home);
	mkdir(m->cache, 0700);
	if (!*m->cache || access(m->cache, W_OK) != 0)
		snprintf(m->cache, sizeof(m->cache), "/tmp");
	snprintf(m->cache + strlen(m->cache), 40, "/hale-ipmi-%u", (unsigned)getuid());
	mkdir(m->cache, 0700);
	return lstat(m->cache, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
	       !(st.st_mode & 022);
}

static bool ipmi_open(struct reader *r, struct ipmi *m)
{
	int code = 0;

	if (!ipmi_load(m)) {
		reader_lost(r, "libipmimonitoring.so.6 is not there: install Debian's "
			       "libipmimonitoring6");
		return false;
	}
	m->config = (struct ipmi_monitoring_ipmi_config){
	    .driver_type = -1,
	    .protocol_version = IPMI_MONITORING_PROTOCOL_VERSION_2_0,
	    .username = (char *)r->options->user,
	    .privilege_level = IPMI_MONITORING_PRIVILEGE_LEVEL_USER,
	    .authentication_type = -1,
	    .cipher_suite_id = 3,
	    .session_timeout_len = 5000,
	    .retransmission_timeout_len = 500,
	    /* asked of several vendors' BMCs, and harmless for others */
	    .workaround_flags =
		IPMI_MONITORING_WORKAROUND_FLAGS_PROTOCOL_VERSION_2_0_OPEN_SESSION_PRIVILEGE};
	if (!read_password(r, m))
		return false;
	if (m->init(0, &code) != 0) {
		reader_lost(r, "libipmimonitoring: %s", m->ctx_strerror(code));
		return false;
	}
	m->ctx = m->ctx_create();
	if (!m->ctx || !cache_folder(m)) {
		reader_lost(r, "libipmimonitoring has no memory, or '%s' is no folder of this user",
			    m->cache);
		return false;
	}
	m->ctx_sdr_cache_directory(m->ctx, m->cache);
	return true;
}

static const char *type_name(int type)
{
	return type == IPMI_MONITORING_SENSOR_TYPE_FAN		    ? "Fan"
	       : type == IPMI_MONITORING_SENSOR_TYPE_TEMPERATURE    ? "Temperature"
	       : type == IPMI_MONITORING_SENSOR_TYPE_PROCESSOR	    ? "Processor"
	       : type == IPMI_MONITORING_SENSOR_TYPE_COOLING_DEVICE ? "Cooling Device"
								    : "Other";
}

static const char *units_name(int units)
{
	return units == IPMI_MONITORING_SENSOR_UNITS_RPM       ? "RPM"
	       : units == IPMI_MONITORING_SENSOR_UNITS_CELSIUS ? "C"
	       : units == IPMI_MONITORING_SENSOR_UNITS_PERCENT ? "%"
							       : "N/A";
}

static void reading_text(struct ipmi *m, char *text, size_t cap)
{
	const void *v = m->sensor_read_sensor_reading(m->ctx);

	snprintf(text, cap, "N/A");
	if (!v)
		return;
	switch (m->sensor_read_sensor_reading_type(m->ctx)) {
	case IPMI_MONITORING_SENSOR_READING_TYPE_UNSIGNED_INTEGER32:
		snprintf(text, cap, "%u", *(const unsigned *)v);
		break;
	case IPMI_MONITORING_SENSOR_READING_TYPE_DOUBLE:
		snprintf(text, cap, "%.2f", *(const double *)v);
		break;
	default:
		break;
	}
}

static void event_text(struct ipmi *m, char *text, size_t cap)
{
	int mask = m->sensor_read_sensor_bitmask(m->ctx);
	char **strings = m->sensor_read_sensor_bitmask_strings(m->ctx);
	size_t at = 0;

	snprintf(text, cap, mask < 0 ? "N/A" : "OK");
	for (; mask > 0 && strings && *strings && at < cap; strings++)
		at += (size_t)snprintf(text + at, cap - at, "%s'%s'", at ? " " : "", *strings);
}

/* A name with a comma would be two columns. */
static void name_text(struct ipmi *m, char *text, size_t cap)
{
	const char *name = m->sensor_read_sensor_name(m->ctx);

	snprintf(text, cap, "%s", name ? name : "?");
	for (char *p = text; *p; p++)
		if (*p == ',')
			*p = ' ';
}

static void ipmi_look(struct reader *r, struct ipmi *m)
{
	unsigned types[] = {IPMI_MONITORING_SENSOR_TYPE_TEMPERATURE,
			    IPMI_MONITORING_SENSOR_TYPE_FAN, IPMI_MONITORING_SENSOR_TYPE_PROCESSOR,
			    IPMI_MONITORING_SENSOR_TYPE_COOLING_DEVICE};
	const char *bmc = r->options->bmc;
	unsigned flags = m->failed ? IPMI_MONITORING_SENSOR_READING_FLAGS_REREAD_SDR_CACHE : 0;
	int n = m->sensor_readings_by_sensor_type(m->ctx, bmc, bmc ? &m->config : NULL, flags,
						  types, ARRAY_LEN(types), NULL, NULL);

	m->failed = n < 0;
	if (n < 0) {
		reader_lost(r, "%s: %s", bmc ? bmc : "the BMC of this node",
			    m->ctx_errormsg(m->ctx));
		return;
	}
	if (n == 0) {
		reader_lost(r, "%s has no sensor of fans or temperatures",
			    bmc ? bmc : "the BMC of this node");
		return;
	}
	for (int i = 0; i < n; i++, m->sensor_iterator_next(m->ctx)) {
		char name[64], reading[32], event[512];

		name_text(m, name, sizeof(name));
		reading_text(m, reading, sizeof(reading));
		event_text(m, event, sizeof(event));
		reader_line(r, "%d,%s,%s,%s,%s,%s", m->sensor_read_record_id(m->ctx), name,
			    type_name(m->sensor_read_sensor_type(m->ctx)), reading,
			    units_name(m->sensor_read_sensor_units(m->ctx)), event);
	}
	reader_end(r);
}

void monitor_ipmi_read(struct reader *r)
{
	static struct ipmi m;

	if (!ipmi_open(r, &m))
		return;
	for (;;) {
		ipmi_look(r, &m);
		reader_wait(r, -1);
	}
}
