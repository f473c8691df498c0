/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/said.h"

#include <unistd.h>
#include "base/base.h"

static struct output_writer own; /* where an output daemon prints what ranks do */
static struct output_writer *to;
static pid_t speaker; /* a child says by itself what it has to say */

static bool say(const char *line, size_t len)
{
	if (!to || to->broken || getpid() != speaker)
		return false;
	output_writer_write(to, line, len);
	return true;
}

void said_line(const char *line, size_t len)
{
	if (!to || to->terminal < 0 || !say(line, len))
		log_pass(line, len);
}

void said_begin(struct loop *loop, struct output_writer *err)
{
	to = err;
	if (err->output_daemon) {
		output_writer_init(&own, loop, STDERR_FILENO, "stderr", NULL, NULL);
		to = &own;
	}
	speaker = getpid();
	if (to->terminal >= 0)
		log_set_sink(say);
}

void said_end(void)
{
	log_set_sink(NULL);
	if (!to)
		return;
	if (!to->output_daemon)
		output_writer_flush(to);
	if (to == &own)
		output_writer_fini(&own);
	to = NULL;
}
