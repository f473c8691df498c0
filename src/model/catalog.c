/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "model/catalog.h"

const struct model_entry *model_entry_find(const char *name)
{
	for (const struct model_entry *e = model_entries; e->name; e++)
		if (strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

int model_key_find(const struct model_entry *entry, const char *name)
{
	for (int i = 0; entry->keys[i].name; i++)
		if (strcmp(entry->keys[i].name, name) == 0)
			return i;
	return -1;
}

static hale_status_t read_choice(const struct model_key *key, const char *text, double *value,
				 struct error *err)
{
	const char *word = key->choices;
	size_t len = strlen(text);

	for (int place = 0; word; place++) {
		const char *end = strchrnul(word, ',');

		if ((size_t)(end - word) == len && memcmp(word, text, len) == 0) {
			*value = place;
			return HALE_OK;
		}
		word = *end ? end + 1 : NULL;
	}
	return error_set(err, HALE_ERR_ARGUMENT, "%s is one of %s, not '%s'", key->name,
			 key->choices, text);
}

static hale_status_t read_value(const struct model_key *key, const char *text, double *value,
				struct error *err)
{
	struct error why;

	if (key->choices)
		return read_choice(key, text, value, err);
	if (model_quantity_parse(text, key->kind, value, &why))
		return error_set(err, HALE_ERR_ARGUMENT, "%s: %s", key->name, why.text);
	return HALE_OK;
}

void model_values_init(const struct model_entry *entry, double values[MODEL_KEYS_MAX])
{
	for (int i = 0; entry->keys[i].name; i++) {
		values[i] = NAN;
		if (entry->keys[i].fallback && *entry->keys[i].fallback)
			read_value(&entry->keys[i], entry->keys[i].fallback, &values[i], NULL);
	}
}

static hale_status_t unknown_key(const struct model_entry *entry, const char *name,
				 struct error *err)
{
	char names[256];
	size_t len = 0;

	names[0] = 0;
	for (const struct model_key *k = entry->keys; k->name && len < sizeof(names); k++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, " %s", k->name);
	return error_set(err, HALE_ERR_ARGUMENT, "model %s has no key '%s'; it has%s", entry->name,
			 name, names);
}

hale_status_t model_values_read(const struct model_entry *entry, const char *assignment,
				double values[MODEL_KEYS_MAX], struct error *err)
{
	const char *equals = strchr(assignment, '=');
	char name[32];
	int place;

	if (!equals || equals == assignment || equals - assignment >= (int)sizeof(name))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%.60s' is not of the form key=value; `hale model %s --help` "
				 "lists the keys",
				 assignment, entry->name);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
	place = model_key_find(entry, name);
	if (place < 0)
		return unknown_key(entry, name, err);
	return read_value(&entry->keys[place], equals + 1, &values[place], err);
}

hale_status_t model_entry_solve(const struct model_entry *entry, const double *values,
				const char *scheme, struct model_answers *out, struct error *err)
{
	for (int i = 0; entry->keys[i].name; i++)
		if (isnan(values[i]) && !entry->keys[i].fallback)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "model %s needs %s=…: %s; for example: hale model %s %s",
					 entry->name, entry->keys[i].name, entry->keys[i].meaning,
					 entry->name, entry->example);
	out->count = 0;
	return entry->solve(values, scheme, out, err);
}

const struct model_answer *model_answer_find(const struct model_answers *answers, const char *name)
{
	for (size_t i = 0; i < answers->count; i++)
		if (strcmp(answers->of[i].name, name) == 0)
			return &answers->of[i];
	return NULL;
}
