/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * One per job. Builds the root, forks the guard (guard.h), which forks the
 * job, then one poll loop over five things: the status socket (until exec), the parent's
 * socket (until it has a spec), the guard, the calls that the job may only make through us
 * (notify.h), and the next look at the files.
 *
 * A warm keeper waits in the same loop, in KEEP_WARM, until it is bound to a spec.
 *
 * It counts what the job has on the disk, and acts for it; all of that may make it wait for
 * as long as the job, its neighbours or the disk like, so it neither keeps time nor kills nor
 * measures memory: the guard and the meter (meter.c) do.
 *
 * It trusts nothing of the job. It cannot be killed or traced by it: in full it
 * is pid 1 of the job's pid namespace (the kernel drops signals from inside, and
 * all are blocked), in floor the job's Landlock domain scopes signals; it is not
 * dumpable and holds capabilities that the job lacks. It keeps no descriptor
 * that the job writes to, so a grandchild that holds stdout delays nothing.
 *
 * What is left when the keeper itself is killed: full, nothing (the namespace dies with pid 1);
 * floor, the guard, which ends the job. A keeper that is held and killed dies when it is let go: the
 * guard sees the signal that waits for it, and ends the job meanwhile. When the guard is killed
 * the keeper ends: full, the namespace with it; floor, the tree goes up to the parent (start.c).
 */
#include "sandbox/keeper/keep.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "sandbox/contract/handover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void keep_say(const struct keep *k, uint32_t word)
{
	if (k->words >= 0)
		(void)!write(k->words, &word,
			     sizeof(word)); /* EPIPE: wait_event() sees it */
}

void keep_verdict(struct keep *k, enum spawn_end how, const char *detail)
{
	if (watch_judge(k->watch, how, detail) && k->phase == KEEP_RUNNING)
		keep_say(k, KEEPER_OVER);
}

static void tell_parent(const struct keep *k, const void *msg, size_t size, int *fd,
			unsigned n)
{
	(void)!fdpass_send(k->sock, msg, size, fd, n, 0);
}

static bool keep_look_is_due(const struct keep *k, usec_t now)
{
	return k->phase == KEEP_RUNNING && now >= k->next_look;
}

/* ---- until exec ------------------------------------------------------------------ */

/* The set-up came to nothing; the job, if there is one, did not execute anything. */
static void fail_setup(struct keep *k, const char *stage, const struct err *err)
{
	watch_refuse(k->watch, stage, err);
	fd_close(&k->status_fd);
	k->phase = KEEP_OVER;
	keep_say(k, KEEPER_REFUSED);
}

static void on_executed(struct keep *k)
{
	struct spawn_started m;

	k->notify.started = true;
	report_started(k->spec, &k->limits, k->landlock_abi, &m);
	m.broker = k->broker.kind;
	tell_parent(k, &m, sizeof(m), &k->broker.tomb, m.broker ? 1 : 0);
	broker_done(&k->broker);
	k->pace.at = clock_boot_usec();
	k->next_look = k->next_sample = k->pace.at + PACE_MIN_USEC;
	if (k->phase == KEEP_SETUP)
		k->phase = KEEP_RUNNING;
	fd_close(&k->sock);
	keep_say(k, KEEPER_EXECUTED);
}

/* What came instead of an exec, or of its end. */
static void on_failed(struct keep *k, const struct job_status *status, struct err *err)
{
	if (status) {
		watch_refuse_as(k->watch, status);
		fd_close(&k->status_fd);
		k->phase = KEEP_OVER;
		keep_say(k, KEEPER_REFUSED);
		return;
	}
	if (!err_is_set(err))
		(void)err_set_id(err, ERRID_EXEC_SETUP,
				 "it ended before it could execute the command");
	fail_setup(k, "job", err);
}

/* What needs no spec is done while nobody waits for it. */
static void on_ready(struct keep *k)
{
	static const uint32_t ready = KEEPER_READY;
	struct err err = ERR_INIT;

	if (birth_await_guard(k, &err) < 0)
		fail_setup(k, "guard", &err);
	else if (birth_first_for_oom(k, &err) < 0)
		fail_setup(k, "limits", &err);
	else
		tell_parent(k, &ready, sizeof(ready), NULL, 0);
}

/* ending: a process of the job is on its way out, or it has no listener yet. The end of the
 * file is an exec otherwise: an exit lets go of the filter first (end.c), then of the
 * socket, and the caller has asked in the other order. */
static void on_status(struct keep *k, bool ending)
{
	struct err err = ERR_INIT;
	struct job_status status;
	ssize_t n;

	k->main_pid = atomic_load(&k->watch->main_pid);
	n = notify_recv_status(&k->notify, k->status_fd, k->main_pid, &k->tree, &status,
			       &err);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == NOTIFY_LISTENER)
		return;
	if (n == NOTIFY_READY && k->phase == KEEP_WARM) {
		on_ready(k);
	} else if (n == 0 && k->phase != KEEP_WARM && k->notify.taken && k->pinned &&
		   (!ending || tree_has_executed(&k->tree, k->main_pid))) {
		fd_close(&k->status_fd);
		on_executed(k);
	} else {
		on_failed(k, n == (ssize_t)sizeof(status) ? &status : NULL, &err);
	}
}

/* What a cold start leaves until the job waits for us. */
static int settle_cold(struct keep *k, const char **stage, struct err *err)
{
	*stage = "guard";
	if (birth_await_guard(k, err) < 0)
		return -1;
	*stage = "limits";
	return birth_first_for_oom(k, err) < 0 ? -1 : birth_pin(k, err);
}

/* The self-test asks: the walls that the filter leaves to us are not met without us, and
 * nothing is executed by then. */
static void on_question(struct keep *k, short revents)
{
	struct err err = ERR_INIT;

	/* Answered on this CPU, the job would wait here for the end of a look that is due,
	 * beside one that has nothing to do. */
	if (keep_look_is_due(k, clock_boot_usec()))
		notify_stay_apart(&k->notify, true);
	if (k->phase == KEEP_SETUP && !k->pinned) {
		const char *stage = "";

		if (settle_cold(k, &stage, &err) < 0) {
			fail_setup(k, stage, &err);
			return; /* an answer would let it execute the command */
		}
	}
	notify_step(&k->notify, revents, k->status_fd);
}

static void bind_warm(struct keep *k, const struct keeper_bind *m, int *fds,
		      unsigned n_fds)
{
	const char *stage = "spec";
	struct payload spec = PAYLOAD_NONE;
	struct err err = ERR_INIT;
	int r = payload_take(m->spec_bytes, fds, &n_fds, &spec, &err);

	if (r == 0 && n_fds < HANDOVER_WORK)
		r = err_set_id(&err, ERRID_SANDBOX_SPAWNER, "%u descriptors", n_fds);
	if (r == 0)
		r = birth_bind(k, m, &spec, fds, &stage, &err);
	if (r < 0)
		fail_setup(k, stage, &err);
	payload_done(&spec);
}

/* A warm one: its spec. The end of the parent is the guard's matter. */
static void on_parent(struct keep *k)
{
	struct keeper_bind m;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(k->sock, &m, sizeof(m), fds, &n_fds, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	k->phase = KEEP_SETUP;
	keep_say(k, KEEPER_TAKEN);
	if (n == (ssize_t)sizeof(m) && m.type == KEEPER_BIND) {
		bind_warm(k, &m, fds, n_fds);
	} else {
		struct err err = ERR_INIT;

		(void)err_set_id(&err, ERRID_SANDBOX_SPAWNER, "a BIND of %zd bytes", n);
		fail_setup(k, "spec", &err);
	}
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

/* ---- the loop ---------------------------------------------------------------- */

/* It has ended, as always before us, or was killed. It is our child: full, process 1 takes all
 * that is left along; floor, the parent learns that by our exit code. */
static NORETURN void follow_guard(struct keep *k)
{
	int status = 0;

	fd_close(&k->words);
	meter_end(k);
	while (waitpid(k->guard_pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EXIT_SETUP);
}

/* Nobody is left who could ask. */
static void on_end(struct keep *k)
{
	k->phase = KEEP_OVER;
	last_look(k);
	keep_say(k, KEEPER_LOOKED);
}

static void wait_event(struct keep *k)
{
	usec_t now = clock_boot_usec(),
	       at = k->phase == KEEP_RUNNING ? k->next_look : USEC_INFINITY;
	usec_t left = at > now ? at - now : 0;
	struct timespec ts = {.tv_sec = (time_t)(left / USEC_PER_SEC),
			      .tv_nsec = (long)(left % USEC_PER_SEC * 1000)};
	/* Refused, it gets no answer any more. */
	int listener = k->phase == KEEP_OVER ? -1 : notify_poll_fd(&k->notify);
	struct pollfd p[] = {
		{.fd = k->status_fd, .events = POLLIN},
		{.fd = k->phase == KEEP_WARM ? k->sock : -1, .events = POLLIN},
		{.fd = listener, .events = POLLIN},
		{.fd = k->words}, /* the guard's end */
	};

	if (ppoll(p, ARRAY_SIZE(p), at == USEC_INFINITY ? NULL : &ts, NULL) < 0)
		return;
	if (p[3].revents)
		follow_guard(k);
	if (p[0].revents)
		on_status(k, listener < 0 || (p[2].revents & ~POLLIN));
	if (p[1].revents && k->phase == KEEP_WARM)
		on_parent(k);
	if (p[2].revents)
		on_question(k, p[2].revents);
}

/* ---- from birth to end --------------------------------------------------------- */

void keeper_main(const struct sbx_birth *birth, const struct sbx_limits *limits, int sock)
{
	struct keep k = {.birth = *birth,
			 .spec = birth->spec,
			 .limits = *limits,
			 .root = {-1, -1, -1, -1},
			 .broker = BROKER_FDS_NONE,
			 .rules = {.fd = -1},
			 .phase = birth->warm ? KEEP_WARM : KEEP_SETUP,
			 .sock = sock,
			 .words = -1,
			 .meter_words = -1,
			 .diag_fd = -1,
			 .stands_fd = -1,
			 .tmpdir_fd = -1,
			 .status_fd = -1};
	const char *stage = "";
	struct err err = ERR_INIT;

	if (birth->warm)
		ns_map_code();
	disk_init(&k.disk);
	k.disk.tell = files_tell_named;
	k.disk.tell_arg = &k;
	notify_init(&k.notify, birth->spec->grade);
	if (birth_give(&k, &stage, &err) < 0) {
		struct spawn_refused m;

		if (k.words >= 0) {
			fail_setup(&k, stage, &err);
		} else {
			report_refused(stage, &err, &m);
			tell_parent(&k, &m, sizeof(m), NULL, 0);
			_exit(0); /* nobody was forked who could be left */
		}
	}
	for (;;) {
		wait_event(&k);
		if (k.phase == KEEP_RUNNING && k.notify.over)
			on_end(&k);
		if (!keep_look_is_due(&k, clock_boot_usec()))
			continue;
		if (!k.meter_pid)
			meter_fork(&k);
		files_look(&k);
	}
}
