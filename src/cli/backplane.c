/* SPDX-License-Identifier: BSD-3-Clause */
/* hale backplane: a broker by itself, its keys, and what it says of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "ftb/broker.h"
#include "node/job.h"

static int usage(const char *what)
{
	log_warn("%s; `hale help backplane` says how", what);
	return EXIT_USAGE;
}

/* ---- hale backplane key, status ---- */

static int key(int argc, char **argv)
{
	char public_key[41];
	struct error err;

	if (argc != 2)
		return usage("hale backplane key takes the file for the new key");
	if (broker_key_make(argv[1], public_key, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return 1;
	}
	puts(public_key);
	return 0;
}

static void show_status(const struct json_value *v)
{
	static const char *const numbers[] = {
	    "clients",	    "subscriptions", "events",	  "delivered",	"forwarded",
	    "received",	    "duplicates",    "lost_info", "lost_above", "refused_users",
	    "refused_keys", "malformed",     "heals"};
	const struct json_value *children = json_get(v, "children");
	const char *parent = json_text(json_get(v, "parent"), "");

	printf("%-14s %s\n", "node", json_text(json_get(v, "node"), "?"));
	printf("%-14s %s\n", "above", *parent ? parent : "(none: this is a root)");
	printf("%-14s", "below");
	for (size_t i = 0; i < json_count(children); i++)
		printf(" %s", json_text(json_at(children, i), "?"));
	putchar('\n');
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		printf("%-14s %lld\n", numbers[i],
		       (long long)json_number_int(json_get(v, numbers[i]), 0));
}

static int status(int argc, char **argv)
{
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct json_value *v;
	struct error err;
	char *text;

	if (argc > 1 && !json)
		return usage("hale backplane status takes --json and nothing else");
	if (broker_ask(NULL, &text, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return 1;
	}
	v = json ? NULL : json_parse(text, strlen(text));
	if (v)
		show_status(v);
	else
		puts(text);
	json_free(v);
	free(text);
	return 0;
}

/* ---- hale backplane ---- */

static bool take_seconds(const char *text, double *to)
{
	return units_parse_seconds(text, to) && *to > 0;
}

/* 0, or an exit status. */
static int parse(int argc, char **argv, struct broker_options *o)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {{"--socket", &o->socket},
		     {"--node", &o->node},
		     {"--group", &o->group},
		     {"--peers", &o->peers},
		     {"--key", &o->key}};

	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		size_t k = 0;
		long n;

		while (k < ARRAY_LEN(texts) && strcmp(a, texts[k].name) != 0)
			k++;
		if (strcmp(a, "--verbose") == 0) {
			log_set_level(LOG_INFO);
			continue;
		}
		if (!value)
			return usage("hale backplane does not know that, or it lacks its value");
		i++;
		if (k < ARRAY_LEN(texts))
			*texts[k].to = value;
		else if (strcmp(a, "--arity") == 0 && units_parse_int(value, 1, 256, &n))
			o->arity = (unsigned)n;
		else if (!(strcmp(a, "--heartbeat") == 0 && take_seconds(value, &o->heartbeat)) &&
			 !(strcmp(a, "--dead") == 0 && take_seconds(value, &o->dead)))
			return usage("hale backplane does not know that option or its value");
	}
	return 0;
}

int cli_backplane(int argc, char **argv)
{
	struct broker_options o = {0};
	struct broker *b;
	struct error err;
	int st, signals;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help("backplane");
	if (argc > 1 && strcmp(argv[1], "key") == 0)
		return key(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "status") == 0)
		return status(argc - 1, argv + 1);
	st = parse(argc, argv, &o);
	if (st != 0)
		return st;
	/* before ZeroMQ's thread is made, which inherits it */
	signals = cli_end_signals();
	if (signals < 0)
		return 1;
	if (broker_create(&o, &b, &err) != HALE_OK) {
		log_warn("%s", err.text);
		close(signals);
		return err.code == HALE_ERR_ARGUMENT ? EXIT_USAGE : 1;
	}
	log_info("event broker: serving");
	st = broker_serve(b, signals, &err) ? 0 : 1;
	if (st != 0)
		log_warn("%s", err.text);
	broker_destroy(b);
	close(signals);
	return st;
}
