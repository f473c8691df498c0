/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON out (a growing buffer, commas and escapes handled) and in (a small strict reader for
 * Hale's own manifests, records and requests). Uses malloc: not for signal handlers. */
#ifndef HALE_BASE_JSON_H
#define HALE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_out {
	char *text; /* NUL-terminated; owned; free with json_out_fini */
	size_t len, cap;
	bool comma; /* the next value needs a comma before it */
};

void json_out_init(struct json_out *j);
void json_out_fini(struct json_out *j);
/* key may be NULL inside arrays and at the top */
void json_open_object(struct json_out *j, const char *key);
void json_close_object(struct json_out *j);
void json_open_array(struct json_out *j, const char *key);
void json_close_array(struct json_out *j);
void json_string(struct json_out *j, const char *key, const char *value);
void json_int(struct json_out *j, const char *key, int64_t value);
void json_uint(struct json_out *j, const char *key, uint64_t value);
void json_double(struct json_out *j, const char *key, double value);
void json_bool(struct json_out *j, const char *key, bool value);

/* Parsed values, all owned by one document. */
struct json_value;
/* NULL on anything that is not one JSON value with nothing behind it, or deeper than 32. */
struct json_value *json_parse(const char *text, size_t len);
void json_free(struct json_value *doc); /* NULL is fine */
/* NULL when there is none of that name, or at that place. */
const struct json_value *json_get(const struct json_value *object, const char *key);
const struct json_value *json_at(const struct json_value *array, size_t i);
size_t json_count(const struct json_value *array_or_object);
/* Each returns the fallback when v is NULL or of another type. */
const char *json_text(const struct json_value *v, const char *fallback);
int64_t json_number_int(const struct json_value *v, int64_t fallback);
double json_number(const struct json_value *v, double fallback);
bool json_truth(const struct json_value *v, bool fallback);

#endif
