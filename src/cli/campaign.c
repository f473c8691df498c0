/* SPDX-License-Identifier: BSD-3-Clause */
/* hale campaign: runs a program many times with flipped bits, and says what became of them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "cli/campaign.h"
#include "cli/cli.h"
#include "node/job.h"
#include "model/quantity.h"

uint64_t campaign_draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* "1/25s", "0.04", "3/min". */
static bool rate_parse(const char *text, double *rate)
{
	char *end;
	double count = strtod(text, &end), time;
	struct error err;

	if (end != text && *end == '/' && count > 0 && end[1] >= '0' && end[1] <= '9' &&
	    model_quantity_parse(end + 1, MODEL_TIME_S, &time, &err) == HALE_OK && time > 0) {
		*rate = count / time;
		return true;
	}
	if (model_quantity_parse(text, MODEL_RATE_HZ, rate, &err) == HALE_OK && *rate > 0)
		return true;
	log_warn("--rate takes faults in a time, as 1/25s or 0.5/s, not '%s'", text);
	return false;
}

static bool option_take(struct campaign *c, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {{"--output", &c->output},
		     {"--judge", &c->judge},
		     {"--data", &c->data},
		     {"--plot", &c->plot}};
	const struct {
		const char *name;
		long min, max, *to;
	} numbers[] = {{"--runs", 1, 1000000, &c->runs},
		       {"--faults", 1, 64, &c->faults},
		       {"--seed", 0, 1000000000, &c->seed}};

	if (strcmp(name, "--rate") == 0)
		return rate_parse(value, &c->rate);
	if (strcmp(name, "--limit") == 0) {
		if (units_parse_seconds(value, &c->limit_s) && c->limit_s > 0)
			return true;
		log_warn("--limit takes a time, as 30s, not '%s'", value);
		return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (strcmp(name, texts[i].name) == 0) {
			*texts[i].to = value;
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (strcmp(name, numbers[i].name) == 0) {
			if (units_parse_int(value, numbers[i].min, numbers[i].max, numbers[i].to))
				return true;
			log_warn("%s takes a number from %ld to %ld, not '%s'", name,
				 numbers[i].min, numbers[i].max, value);
			return false;
		}
	log_warn("unknown option '%s'; `hale help campaign` lists them", name);
	return false;
}

static bool options_read(struct campaign *c, int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--outside") == 0)
			c->outside = true;
		else if (strcmp(argv[i], "--json") == 0)
			c->json = true;
		else if (i + 1 == argc) {
			log_warn(
			    "%s needs a value, or is no option; `hale help campaign` lists them",
			    argv[i]);
			return false;
		} else if (!option_take(c, argv[i], argv[i + 1]))
			return false;
		else
			i++;
	}
	if (i >= argc) {
		log_warn("name a program: hale campaign --runs 100 ./chain");
		return false;
	}
	if (c->rate > 0 && c->faults) {
		log_warn("--rate and --faults: give one of them");
		return false;
	}
	if (c->data && !c->outside) {
		log_warn("--data chooses what is struck from outside: add --outside");
		return false;
	}
	c->argv = argv + i;
	return true;
}

static struct campaign_var *var_of(struct campaign *c, const char *name)
{
	for (size_t i = 0; i < c->vars; i++)
		if (strcmp(c->var[i].name, name) == 0)
			return &c->var[i];
	if (c->vars == ARRAY_LEN(c->var)) {
		snprintf(c->var[c->vars - 1].name, sizeof c->var->name, "(others)");
		return &c->var[c->vars - 1];
	}
	snprintf(c->var[c->vars].name, sizeof c->var->name, "%s", name);
	return &c->var[c->vars++];
}

/* What a run tells of each fault: what was corrected was; the rest shares the fate of the run. */
static void run_count(struct campaign *c, const struct campaign_run *r)
{
	bool all_mended = true;

	c->ends[r->end]++;
	c->seconds += r->seconds;
	for (size_t i = 0; i < r->flips; i++)
		all_mended &= r->flip[i].mended;
	for (size_t i = 0; i < r->flips; i++) {
		struct campaign_var *v = var_of(c, r->flip[i].var);
		v->faults++;
		if (r->flip[i].mended && (r->end == END_RIGHT || !all_mended))
			v->corrected++;
		else if (r->end == END_RIGHT)
			v->harmless++;
		else if (r->end == END_WRONG)
			v->wrong++;
		else if (r->end == END_REPORTED)
			v->reported++;
		else
			v->crashed++;
	}
}

static void folder_remove(const struct campaign *c)
{
	static const char *const names[] = {"out", "err", "log", NULL};
	char path[128];

	campaign_reports_remove(c);
	for (int i = 0; names[i]; i++) {
		snprintf(path, sizeof path, "%s/%s", c->folder, names[i]);
		unlink(path);
	}
	rmdir(c->folder);
}

static int run_all(struct campaign *c)
{
	static struct campaign_run r;

	if (!campaign_run_once(c, 0, &r))
		return 1;
	if (r.end != END_RIGHT) {
		log_warn(
		    "the program itself does not end with 0 and a right result: no faults were "
		    "tried");
		return 1;
	}
	c->alone_s = r.seconds;
	if (c->limit_s <= 0)
		c->limit_s = 10 * r.seconds + 5;
	if (!c->faults && c->rate <= 0)
		c->faults = 1;
	for (long i = 1; i <= c->runs; i++) {
		if (!campaign_run_once(c, i, &r))
			return 1;
		run_count(c, &r);
	}
	campaign_show(c);
	if (c->plot && !campaign_plot(c))
		return 1;
	return c->ends[END_WRONG] ? EXIT_CAMPAIGN_WRONG : 0;
}

int cli_campaign(int argc, char **argv)
{
	static struct campaign c;
	const char *tmp = getenv("TMPDIR");
	int status;

	c = (struct campaign){.runs = 100, .seed = 1};
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return cli_help("campaign");
	if (!options_read(&c, argc, argv))
		return EXIT_USAGE;
	if (snprintf(c.folder, sizeof c.folder, "%s/hale-campaign.XXXXXX",
		     tmp && *tmp ? tmp : "/tmp") >= (int)sizeof c.folder ||
	    !mkdtemp(c.folder)) {
		log_warn("can't make a folder %s: %s. TMPDIR names another place", c.folder,
			 strerror(errno));
		return 1;
	}
	status = run_all(&c);
	folder_remove(&c);
	return status;
}
