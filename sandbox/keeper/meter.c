/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * The keeper's child that measures the job's memory and processes, and nothing
 * else. Not the keeper itself, which acts on files for the job and counts them: a disk may make it
 * wait for seconds, and the job's memory would not be looked at meanwhile. What the meter looks
 * into can only be held by the job, so when it is held for a second the guard ends the job.
 *
 * It is forked when a job has lived for some milliseconds; shorter ones are not measured. In
 * full it is of the job's pid namespace, and the guard's kill(-1) ends it along with the job, when
 * nobody asks for it any more. When the keeper dies it dies.
 */
#include "sandbox/keeper/keep.h"

#include "common/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static NORETURN void meter_main(struct keep *k)
{
	for (;;) {
		usec_t now = clock_boot_usec();
		usec_t left = k->next_sample > now ? k->next_sample - now : 0;
		struct timespec ts = {.tv_sec = (time_t)(left / USEC_PER_SEC),
				      .tv_nsec = (long)(left % USEC_PER_SEC * 1000)};
		struct pollfd guard = {.fd = k->words};

		atomic_store(&k->watch->busy_since, 0);
		/* The guard's end is the keeper's, and ours with it. */
		if (ppoll(&guard, 1, &ts, NULL) > 0)
			(void)pause();
		atomic_store(&k->watch->busy_since, clock_boot_usec());
		keep_sample(k);
	}
}

/* Without it nobody would measure the job. */
static void fail(struct keep *k)
{
	keep_verdict(k, SPAWN_END_LOST, "its meter could not be forked");
	k->meter_pid = -1;
}

void meter_fork(struct keep *k)
{
	pid_t self = getpid(), pid = _Fork();
	struct err err = ERR_INIT;

	if (pid == 0) {
		fd_close(&k->words);
		k->words = TAKE_FD(k->meter_words);
		notify_leave(&k->notify);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != self)
			_exit(EXIT_SETUP);
		/* It may fill a gigabyte in the time that a busy machine lets us wait. */
		if (guard_short_slice(&err) < 0)
			_exit(EXIT_SETUP);
		k->tree.meter = getpid();
		k->tree.self = self;
		meter_main(k);
	}
	fd_close(&k->meter_words);
	if (pid < 0) {
		fail(k);
		return;
	}
	k->meter_pid = k->notify.meter = pid;
	atomic_store(&k->watch->meter_pid, pid);
}

void meter_end(struct keep *k)
{
	if (k->meter_pid <= 0)
		return;
	(void)kill(k->meter_pid, SIGKILL);
	while (waitpid(k->meter_pid, NULL, 0) < 0 && errno == EINTR)
		;
	k->meter_pid = 0;
}
