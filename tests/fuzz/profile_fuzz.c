/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/model/advise.c src/model/advise_measure.c src/model/advise_time.c src/model/catalog.c
 * src/model/check.c src/model/contest.c src/model/entries.c src/model/entries_shadow.c
 * src/model/entries_system.c src/model/interval.c src/model/law.c src/model/lvf.c src/model/quad.c
 * src/model/quantity.c src/model/redundancy.c src/model/shadow.c src/model/unified.c
 * src/model/unified_play.c */
/* Profiles as a file or another job may hold them: refused with a sentence, or numbers that
 * `hale advise` can work with. An input is the JSON text itself, or what its numbers are to be. */
#include "fuzz.h"
#include <math.h>
#include <stdio.h>
#include "base/base.h"
#include "base/json.h"
#include "model/advise.h"

static struct input in;

/* ---- a profile of the input's ---- */

static double number(void)
{
	static const double some[] = {
	    0,	    1,	   0.5,	 2,	 1e-3,	       10,	     60,
	    3600,   1e6,   1e9,	 1e12,	 1e18,	       1.8e19,	     1e25,
	    1e300,  -1,	   -0.5, 1e-300, 4294967295.0, 4294967296.0, 4294967297.0,
	    9.3e18, -1e300};
	uint8_t which = input_byte(&in);
	double x;

	if (which < ARRAY_LEN(some))
		return some[which];
	if (which < 128)
		return which / 128.0;
	if (which < 250)
		return which * 0.37;
	input_take(&in, &x, sizeof(x));
	return x;
}

static void put(struct json_out *j, const char *key, double likely)
{
	switch (input_byte(&in) % 8) {
	case 0:
		json_double(j, key, number());
		break;
	case 1:
		json_string(j, key, "text");
		break;
	case 2:
		break; /* missing */
	case 3:
		json_double(j, key, NAN); /* null */
		break;
	default:
		json_double(j, key, likely);
	}
}

static void put_count(struct json_out *j, const char *key, int64_t likely)
{
	switch (input_byte(&in) % 8) {
	case 0:
		json_int(j, key, (int64_t)input_byte(&in) - 128);
		break;
	case 1:
		json_uint(j, key, UINT64_MAX - input_byte(&in));
		break;
	case 2:
		json_uint(j, key, UINT32_MAX - 2ull + input_byte(&in));
		break;
	default:
		json_int(j, key, likely);
	}
}

static void put_kind(struct json_out *j, const char *key)
{
	json_open_object(j, key);
	put_count(j, "count", 4);
	put(j, "bytes", 1e9);
	put(j, "pause_seconds", 0.02);
	put(j, "write_seconds", 1.5);
	put(j, "write_deviation", 0.2);
	put(j, "cost_seconds", 0.1);
	put(j, "cost_deviation", 0.05);
	json_close_object(j);
}

static char *profile(size_t *len)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	put_count(&j, "ranks", 8);
	put(&j, "app_seconds", 800);
	put(&j, "wall_seconds", 110);
	put(&j, "mpi_share", 0.2);
	put(&j, "mpi_share_least", 0.1);
	put(&j, "mpi_share_most", 0.3);
	put(&j, "f_send", 0.5);
	put(&j, "f_recv", 0.5);
	put(&j, "beta", 0.1);
	json_open_object(&j, "messages");
	put(&j, "bytes", 1e9);
	json_close_object(&j);
	json_open_object(&j, "checkpoints");
	put_kind(&j, "full");
	put_kind(&j, "incremental");
	json_close_object(&j);
	json_open_object(&j, "restarts");
	put_count(&j, "count", 2);
	put(&j, "seconds", 3);
	put(&j, "deviation", 1);
	json_close_object(&j);
	json_close_object(&j);
	*len = j.len;
	return j.text;
}

/* ---- what must hold ---- */

static void sound(const struct advise_known *k)
{
	must(isfinite(k->value) && isfinite(k->low) && isfinite(k->high));
	must(k->low >= 0 && k->low <= k->value && k->value <= k->high);
}

static void sound_checkpoint(const struct advise_checkpoint *c)
{
	if (c->count == 0)
		return;
	sound(&c->cost_s);
	sound(&c->write_s);
	must(isfinite(c->pause_s) && c->pause_s >= 0);
	must(isnan(c->bytes) || (c->bytes >= 0 && c->bytes < 0x1p63)); /* shown as a uint64_t */
}

static void choose(const struct advise_measure *m)
{
	struct advise_machine k = {.nodes = 1 + input_byte(&in) % 4 * 1000.0,
				   .fails = {.mean_s = 1e8, .shape = 1},
				   .work_s = 1e6,
				   .node_w = 500,
				   .static_part = 0.4,
				   .power_limit_w = INFINITY};
	struct advise_choice choices[ADVISE_CHOICES_MAX];
	struct error err = {HALE_OK, ""};
	size_t count;

	if (advise_choose(m, &k, input_byte(&in) & 1, choices, &count, &err) != HALE_OK) {
		must(err.text[0] != '\0');
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct advise_choice *c = &choices[i];

		must(!isnan(c->time_s.value) && !isnan(c->energy_j.value));
		must(memchr(c->flags, 0, sizeof(c->flags)) && memchr(c->why, 0, sizeof(c->why)));
		must(c->why[0] || c->time_s.value >= k.work_s * (1 - 1e-9));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct advise_measure m;
	struct error err = {HALE_OK, ""};
	struct json_value *v;
	char *text = NULL;
	size_t len = 0;

	in = (struct input){data, size};
	if (size == 0)
		return 0;
	if (data[0] == '{')
		v = json_parse((const char *)data, size);
	else
		v = json_parse((text = profile(&len)) ? text : "", len);
	free(text);
	if (!v)
		return 0;
	if (advise_measure_read(v, &m, &err) == HALE_OK) {
		must(m.ranks > 0 && isfinite(m.app_s) && m.app_s > 0);
		must(m.message_bytes_hz >= 0 && isfinite(m.message_bytes_hz));
		sound_checkpoint(&m.full);
		sound_checkpoint(&m.incremental);
		if (m.restart_s.source != ADVISE_UNKNOWN)
			sound(&m.restart_s);
		/* beta's limits come from the ranks' shares, and may lie beside it */
		must(m.beta.value >= 0 && m.beta.high <= 1 && m.beta.low >= 0);
		advise_measure_override(&m, input_byte(&in) % 4 ? NAN : 2, NAN);
		if (input_byte(&in) % 32 == 1) /* which takes its time */
			choose(&m);
	} else {
		must(err.text[0] != '\0');
	}
	json_free(v);
	return 0;
}
