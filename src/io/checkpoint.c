/* SPDX-License-Identifier: BSD-3-Clause */
/* Files around an image. No descriptor of theirs is in it: what the file had is in the journal, as
 * far as it is overwritten after the checkpoint, and whoever is restored opens it again. */
#include "ckpt/rank.h"
#include "io/internal.h"

/* Everybody who could change a file's size has stopped. */
static void files_save(void)
{
	for (struct file *f = io_files; f; f = f->next) {
		if (f->fd >= 0)
			f->floor = io_file_bytes(f);
		f->noted = false;
	}
}

static void files_resume(bool fresh)
{
	for (struct file *f = io_files; f && fresh; f = f->next)
		if (!io_file_is_there(f))
			io_file_reopen(f);
}

void io_checkpoint_init(void)
{
	static struct ckpt_participant participant = {
	    .name = "files", .save = files_save, .resume = files_resume};
	ckpt_participate(&participant);
}
