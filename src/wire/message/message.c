/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/message/message.h"

#include <stdlib.h>
#include <string.h>
#include "base/base.h"

#define MESSAGE_FIELDS(name, fields) [(name)] = (fields),
static const char *const fields_of[MESSAGE_TYPES] = {MESSAGES(MESSAGE_FIELDS)};
#undef MESSAGE_FIELDS

#define MESSAGE_NAME(name, fields) [(name)] = #name,
static const char *const names[MESSAGE_TYPES] = {MESSAGES(MESSAGE_NAME)};
#undef MESSAGE_NAME

const char *message_name(uint32_t type)
{
	return type < MESSAGE_TYPES && names[type] ? names[type] : "?";
}

/* ---- writing: the same walk counts and writes ---- */

struct message_out {
	unsigned char *at; /* NULL: only count */
	size_t len;
};

static void put(struct message_out *o, const void *bytes, size_t len)
{
	if (o->at && len > 0)
		memcpy(o->at + o->len, bytes, len);
	o->len += len;
}

static void put_text(struct message_out *o, const char *text)
{
	uint32_t len = text ? (uint32_t)strlen(text) : 0;

	put(o, &len, sizeof(len));
	put(o, text ? text : "", (size_t)len + 1);
}

static void put_field(struct message_out *o, const struct message *m, char field)
{
	switch (field) {
	case 'r':
		put(o, &m->rank, sizeof(m->rank));
		break;
	case 'v':
		put(o, &m->value, sizeof(m->value));
		break;
	case 'i':
		put(o, &m->id, sizeof(m->id));
		break;
	case 'b':
		put(o, &m->base, sizeof(m->base));
		break;
	case 'f':
		put(o, &m->flags, sizeof(m->flags));
		break;
	case 'n':
		put(o, &m->number, sizeof(m->number));
		break;
	case 'p':
		put(o, m->position, sizeof(m->position));
		break;
	case 't':
		put_text(o, m->text);
		break;
	case 's':
		put_text(o, m->name);
		break;
	default:
		put(o, m->bytes, m->len);
		break;
	}
}

static void put_all(struct message_out *o, const struct message *m)
{
	put(o, &m->type, sizeof(m->type));
	for (const char *f = fields_of[m->type]; *f; f++)
		put_field(o, m, *f);
}

unsigned char *message_write(const struct message *m, size_t *size)
{
	struct message_out count = {NULL, 0};
	struct message_out o = {NULL, 0};
	uint32_t len;

	put_all(&count, m);
	count.len++; /* the newline */
	if (count.len > MESSAGE_MAX)
		return NULL;
	o.at = malloc(MESSAGE_HEADER + count.len);
	if (!o.at)
		return NULL;
	len = (uint32_t)count.len;
	put(&o, &len, sizeof(len));
	put_all(&o, m);
	put(&o, "\n", 1);
	*size = o.len;
	return o.at;
}

/* ---- reading ---- */

struct message_in {
	const unsigned char *at;
	size_t left;
	bool good;
};

static void get(struct message_in *in, void *to, size_t len)
{
	in->good = in->good && in->left >= len;
	if (!in->good)
		return;
	memcpy(to, in->at, len);
	in->at += len;
	in->left -= len;
}

static const char *get_text(struct message_in *in)
{
	const char *text = (const char *)in->at + sizeof(uint32_t);
	uint32_t len = 0;

	get(in, &len, sizeof(len));
	in->good = in->good && in->left > len && text[len] == '\0' && strlen(text) == len;
	if (!in->good)
		return "";
	in->at += len + 1;
	in->left -= len + 1;
	return text;
}

static void get_field(struct message_in *in, struct message *m, char field)
{
	switch (field) {
	case 'r':
		get(in, &m->rank, sizeof(m->rank));
		break;
	case 'v':
		get(in, &m->value, sizeof(m->value));
		break;
	case 'i':
		get(in, &m->id, sizeof(m->id));
		break;
	case 'b':
		get(in, &m->base, sizeof(m->base));
		break;
	case 'f':
		get(in, &m->flags, sizeof(m->flags));
		break;
	case 'n':
		get(in, &m->number, sizeof(m->number));
		break;
	case 'p':
		get(in, m->position, sizeof(m->position));
		break;
	case 't':
		m->text = get_text(in);
		break;
	case 's':
		m->name = get_text(in);
		break;
	default:
		m->bytes = in->at;
		m->len = in->left;
		in->at += in->left;
		in->left = 0;
		break;
	}
}

bool message_read(const unsigned char *frame, size_t size, struct message *m)
{
	struct message_in in = {frame, size - 1, size > 0 && frame[size - 1] == '\n'};

	*m = (struct message){.text = "", .name = ""};
	get(&in, &m->type, sizeof(m->type));
	if (!in.good || m->type == MSG_NONE || m->type >= MESSAGE_TYPES)
		return false;
	for (const char *f = fields_of[m->type]; *f && in.good; f++)
		get_field(&in, m, *f);
	return in.good && in.left == 0;
}
