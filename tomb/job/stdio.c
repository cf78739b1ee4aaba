/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What a sandbox of a job is connected to: pipes of which we read the other ends, or the job's own
 * terminal. Of that we have the side that is not the job's: what it says is the job's stdout, what
 * comes as the job's streamed stdin is typed there, and the spawner sets its size.
 */
#include "common/cleanup.h"
#include "tomb/job/run.h"
#include "tomb/job/spawn.h"

#include <fcntl.h>

/* A pipe whose reading end is ours and does not block. */
static int make_pipe(int ret[2], struct err *err)
{
	if (pipe2(ret, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	if (fcntl(ret[0], F_SETFL, O_NONBLOCK) < 0) {
		fd_close(&ret[0]);
		fd_close(&ret[1]);
		return err_sys(err, "pipe");
	}
	return 0;
}

int run_outputs(struct run *run, enum tomb_spec_use use, int *ret_out, int *ret_errs,
		struct err *err)
{
	int out[2], errs[2];

	if (use == SPEC_USE_JOB && run->spec.tty.cols)
		return 0;
	if (make_pipe(errs, err) < 0)
		return -1;
	*ret_errs = errs[1];
	if (use == SPEC_USE_UNPACK)
		relay_attach_words(run->relay, errs[0], &run->words);
	else
		relay_attach(run->relay, RELAY_STDERR, errs[0]);
	if (use != SPEC_USE_JOB)
		return 0;
	if (make_pipe(out, err) < 0)
		return -1;
	*ret_out = out[1];
	relay_attach(run->relay, RELAY_STDOUT, out[0]);
	return 0;
}

static void resize(unsigned cols, unsigned rows, void *arg)
{
	const struct run *run = arg;

	spawn_resize(run->world->spawn, run->handle, cols, rows);
}

void run_terminal(struct run *run, int master)
{
	const struct runner_world *w = run->world;
	cleanup_close int fd = master;
	struct stdin_terminal terminal = {.cols = run->spec.tty.cols,
					  .rows = run->spec.tty.rows,
					  .stays = run->spec.tty.stays,
					  .resize = resize};
	struct err err = ERR_INIT;

	if (!run->relay)
		return; /* it was given up meanwhile, and its end is on the way */
	terminal.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (terminal.fd < 0) {
		(void)err_sys(&err, "the job's terminal");
		run_transfer_trouble(&err, run);
		return;
	}
	relay_attach(run->relay, RELAY_STDOUT, TAKE_FD(fd));
	run->stdin_pipe = stdin_pipe_at(w->loop, w->work, &run->key, run_transfer_trouble,
					run, &terminal);
}
