/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: one per job, its only supervisor. Builds the root, forks the job,
 * then one poll loop over five things: the status socket (until exec), the
 * control socket to the parent, SIGCHLD, the calls that the job may only make
 * through us (notify.h), and the clock.
 *
 * A warm keeper waits in the same loop, in PHASE_WARM, until it is bound to a spec.
 *
 * It trusts nothing of the job. It cannot be killed or traced by it: in full it
 * is pid 1 of the job's pid namespace (the kernel drops signals from inside, and
 * all are blocked), in floor the job's Landlock domain scopes signals; it is not
 * dumpable and holds capabilities that the job lacks. It keeps no descriptor
 * that the job writes to, so a grandchild that holds stdout delays nothing.
 *
 * The end of a job is proved, not assumed: waitpid() saying ECHILD. In full
 * every process of the namespace is a descendant of pid 1; in floor we are the
 * subreaper, so an orphan becomes our child before anything else can happen to
 * it. SIGKILL is repeated until then.
 *
 * What is left when the keeper itself is killed: full, nothing (the namespace
 * dies with pid 1); floor, the tree goes up to the parent (start.c). When the
 * parent dies: EOF on the control socket, and in full PDEATHSIG too.
 */
#include "sandbox/keep.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "sandbox/handover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define KILL_EVERY_USEC (5 * USEC_PER_MSEC)
#define REAP_BATCH 4096
#define DISK_ENTRIES_AT_ONCE 16
/* A tree is walked so often though nothing seems to be added to it. */
#define DISK_ROUND_USEC USEC_PER_SEC
/* How often to measure: often enough for what could have been filled meanwhile. */
#define SAMPLE_MIN_USEC (5 * USEC_PER_MSEC)
#define SAMPLE_WATCH_USEC (10 * USEC_PER_MSEC)
#define SAMPLE_MAX_USEC (100 * USEC_PER_MSEC)
#define SAMPLE_SLOW_USEC (250 * USEC_PER_MSEC)
#define FILL_BYTES_PER_MSEC ((uint64_t)4 << 20)
#define SAMPLE_COST_FACTOR 10
/* Not so the first: with a whole round behind it a short job needs no walk at its end. */
#define SAMPLES_AT_ONCE 4
/* Of one sample, for the job's calls. */
#define ANSWERING_MAX_USEC (4 * USEC_PER_MSEC)
/* Standing at the process limit this long is a bomb, not a peak. */
#define AT_LIMIT_USEC (200 * USEC_PER_MSEC)
/* So many samples in a row with a process that hides what it holds. */
#define HIDING_SAMPLES 5

void keep_tell(const struct keep *k, const void *msg, size_t size)
{
	if (!k->parent_gone)
		(void)!send(k->sock, msg, size, MSG_NOSIGNAL);
}

uint64_t keep_cpu_usec(void)
{
	struct rusage r;

	if (getrusage(RUSAGE_CHILDREN, &r) < 0)
		return 0;
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * USEC_PER_SEC +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

NORETURN static void refuse(int sock, const char *stage, const struct err *err)
{
	struct spawn_refused m;

	report_refused(stage, err, &m);
	(void)!send(sock, &m, sizeof(m), MSG_NOSIGNAL);
	_exit(EXIT_SETUP);
}

/* ---- ending ---------------------------------------------------------------- */

static void enter_kill(struct keep *k)
{
	k->phase = PHASE_KILL;
	k->next_kill = 0;
}

/* grace_ms 0: at once. The first reason stays; a later, harder one only shortens the
 * grace. */
static void end_job(struct keep *k, enum spawn_end how, unsigned grace_ms,
		    const char *detail)
{
	if (k->phase == PHASE_KILL || k->phase == PHASE_GONE)
		return;
	if (!k->ended) {
		k->ended = true;
		k->how = how;
		(void)snprintf(k->detail, sizeof(k->detail), "%s", detail);
	}
	if (!grace_ms || k->phase == PHASE_SETUP || k->phase == PHASE_WARM) {
		enter_kill(k);
		return;
	}
	if (k->phase == PHASE_TERM)
		return;
	k->phase = PHASE_TERM;
	k->kill_at = clock_boot_usec() + grace_ms * USEC_PER_MSEC;
	(void)tree_signal(&k->tree, SIGTERM);
	(void)tree_signal(&k->tree, SIGCONT);
}

static void main_ended(struct keep *k, int status)
{
	k->main_over = true;
	k->main_status = status;
	k->over = clock_boot_usec();
	if (k->phase != PHASE_RUNNING)
		return;
	k->ended = true;
	k->how = WIFEXITED(status) ? SPAWN_END_EXITED : SPAWN_END_SIGNALLED;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
		k->how = SPAWN_END_CPU;
		(void)snprintf(k->detail, sizeof(k->detail), "CPU time of one process");
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) {
		k->how = SPAWN_END_DISK;
		(void)snprintf(k->detail, sizeof(k->detail),
			       "a file above the size limit");
	}
}

/* The main process is over and others live: they get the same grace. */
static void end_strays(struct keep *k)
{
	unsigned grace = k->spec->grace_ms;

	k->strays = tree_signal(&k->tree, SIGTERM);
	(void)tree_signal(&k->tree, SIGCONT);
	k->phase = PHASE_TERM;
	k->kill_at = clock_boot_usec() + grace * USEC_PER_MSEC;
}

static void reap(struct keep *k)
{
	/* What came of exec is read off the unreaped process: on_status(). */
	if (k->status_fd >= 0 || (!k->child_ended && k->phase == PHASE_RUNNING))
		return;
	for (int i = 0; i < REAP_BATCH; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

		if (pid < 0 && errno == ECHILD)
			k->empty = true;
		k->child_ended = pid > 0; /* more may be there */
		if (pid <= 0)
			break;
		if (pid == k->main_pid)
			main_ended(k, status);
	}
	if (k->empty)
		k->phase = PHASE_GONE;
	else if (k->main_over && k->phase == PHASE_RUNNING)
		end_strays(k);
}

static bool sample_is_due(const struct keep *k, usec_t now)
{
	return (k->phase == PHASE_RUNNING || k->phase == PHASE_TERM) &&
	       now >= k->next_sample;
}

/* ---- messages --------------------------------------------------------------- */

/* The set-up came to nothing; the job, if there is one, did not execute anything. */
static void fail_setup(struct keep *k, const char *stage, const struct err *err)
{
	k->refused = true;
	k->status = (struct job_status){.error_id = err->id, .sys = err->sys};
	if (err->id == ERRID_NONE)
		k->status.error_id = ERRID_EXEC_SETUP;
	(void)snprintf(k->status.stage, sizeof(k->status.stage), "%s", stage);
	(void)snprintf(k->status.text, sizeof(k->status.text), "%.*s", SPAWN_TEXT_MAX - 1,
		       err->msg);
	fd_close(&k->status_fd);
	enter_kill(k);
}

static void on_executed(struct keep *k)
{
	struct spawn_started m;

	k->notify.started = true;
	report_started(k->spec, &k->limits, k->landlock_abi, &m);
	m.broker = k->broker.kind;
	if (!k->parent_gone)
		(void)!fdpass_send(k->sock, &m, sizeof(m), &k->broker.tomb,
				   m.broker ? 1 : 0, 0);
	broker_done(&k->broker);
	k->began = clock_boot_usec();
	k->next_sample = k->began + SAMPLE_MIN_USEC;
	if (k->phase != PHASE_SETUP)
		return;
	k->phase = PHASE_RUNNING;
	k->deadline = k->began + k->spec->timeout_usec;
}

/* What came instead of an exec, or of its end. */
static void on_failed(struct keep *k, bool has_status, struct err *err)
{
	if (has_status) {
		k->refused = true;
		k->exec_failed = k->status.error_id == ERRID_SANDBOX_EXEC;
		fd_close(&k->status_fd);
		enter_kill(k);
		return;
	}
	if (!err_is_set(err))
		(void)err_set_id(err, ERRID_EXEC_SETUP,
				 "it ended before it could execute the command");
	fail_setup(k, "job", err);
}

/* ending: a process of the job is on its way out, or it has no listener yet. The end of the
 * file is an exec otherwise: an exit lets go of the filter first (end.c), then of the
 * socket, and the caller has asked in the other order. */
static void on_status(struct keep *k, bool ending)
{
	static const uint32_t ready = KEEPER_READY;
	struct err err = ERR_INIT;
	ssize_t n = notify_recv_status(&k->notify, k->status_fd, k->main_pid, &k->tree,
				       &k->status, &err);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == NOTIFY_LISTENER)
		return;
	if (n == NOTIFY_READY && k->phase == PHASE_WARM) {
		keep_tell(k, &ready, sizeof(ready));
	} else if (n == 0 && k->phase != PHASE_WARM && k->notify.taken && k->pinned &&
		   (!ending || tree_has_executed(&k->tree, k->main_pid))) {
		fd_close(&k->status_fd);
		on_executed(k);
	} else {
		on_failed(k, n == (ssize_t)sizeof(k->status), &err);
	}
}

/* The self-test asks: the walls that the filter leaves to us are not met without us, and
 * nothing is executed by then. */
static void on_question(struct keep *k, short revents)
{
	struct err err = ERR_INIT;

	/* Answered on this CPU, the job would wait here for the end of a sample that is due,
	 * beside one that has nothing to do. */
	if (sample_is_due(k, clock_boot_usec()))
		notify_stay_apart(&k->notify, true);
	if (k->phase == PHASE_SETUP && !k->pinned && birth_pin(k, &err) < 0)
		fail_setup(k, "limits", &err);
	notify_step(&k->notify, revents, k->status_fd);
}

static void bind_warm(struct keep *k, const struct keeper_bind *m, const char *tail,
		      size_t tail_bytes, int *fds, unsigned n_fds)
{
	const char *stage = "spec";
	struct spawn_spec spec = SPAWN_SPEC_NONE;
	struct err err = ERR_INIT;
	int r = spawn_spec_take(tail, tail_bytes, m->spec_bytes, fds, &n_fds, &spec,
				&err);

	if (r == 0 && n_fds < HANDOVER_WORK)
		r = err_set_id(&err, ERRID_SANDBOX_SPAWNER, "%u descriptors", n_fds);
	if (r == 0)
		r = birth_bind(k, m, &spec, fds, &stage, &err);
	if (r < 0)
		fail_setup(k, stage, &err);
	spawn_spec_done(&spec);
}

static OWN_FRAME void on_control(struct keep *k)
{
	struct {
		union {
			uint32_t type;
			struct spawn_kill kill;
			struct keeper_bind bind;
		};
		char tail[SPAWN_SPEC_INLINE];
	} m;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(k->sock, &m, sizeof(m), fds, &n_fds, MSG_DONTWAIT);

	_Static_assert(offsetof(typeof(m), tail) == sizeof(m.bind), "the tail of BIND");

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n >= (ssize_t)sizeof(m.bind) && m.type == KEEPER_BIND &&
	    k->phase == PHASE_WARM) {
		bind_warm(k, &m.bind, m.tail, (size_t)n - sizeof(m.bind), fds, n_fds);
	} else if (n == (ssize_t)sizeof(m.kill) && m.type == SPAWN_KILL && !n_fds &&
		   m.kill.why >= SPAWN_END_OUTPUT && m.kill.why <= SPAWN_END_SHUTDOWN) {
		end_job(k, (enum spawn_end)m.kill.why, m.kill.grace_ms, "");
	} else {
		k->parent_gone = true; /* or speaks nonsense, which is the same */
		end_job(k, SPAWN_END_SHUTDOWN, 0, "the parent is gone");
	}
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

/* ---- limits ------------------------------------------------------------------ */

static void over(struct keep *k, enum spawn_end how, const char *what, uint64_t is,
		 uint64_t limit)
{
	char text[SPAWN_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s: %llu of %llu", what,
		       (unsigned long long)is, (unsigned long long)limit);
	end_job(k, how, 0, text);
}

static void check_processes(struct keep *k, unsigned n, usec_t now)
{
	if (n > k->processes_peak)
		k->processes_peak = n;
	if (n < k->spec->processes) {
		k->at_limit_since = 0;
		return;
	}
	if (!k->at_limit_since)
		k->at_limit_since = now;
	/* One process with a limit of one is no bomb. */
	if (n > 1 && now - k->at_limit_since >= AT_LIMIT_USEC)
		over(k, SPAWN_END_PROCESSES, "processes", n, k->spec->processes);
}

/* A sample takes its time; the job does not wait for its end with its questions, as long
 * as these do not keep us from it. */
static void answer_meanwhile(void *arg)
{
	struct keep *k = arg;
	usec_t start = clock_boot_usec();

	if (k->answering >= ANSWERING_MAX_USEC)
		return;
	notify_meanwhile(&k->notify, k->status_fd);
	k->answering += clock_boot_usec() - start;
}

void keep_note_disk(struct keep *k, uint64_t bytes)
{
	if (bytes > k->disk_peak)
		k->disk_peak = bytes;
}

static bool walk_disk(struct keep *k)
{
	bool done = false;

	for (unsigned n = 0; n < DISK_ENTRIES_A_STEP && !done;
	     n += DISK_ENTRIES_AT_ONCE) {
		done = disk_step(&k->disk, DISK_ENTRIES_AT_ONCE);
		answer_meanwhile(k);
	}
	return done;
}

/* What may be in use by now. */
static uint64_t check_disk(struct keep *k, const struct tree_use *use)
{
	usec_t now = clock_boot_usec();
	bool begin = disk_at_start(&k->disk);
	uint64_t bytes;

	disk_see_growth(&k->disk);
	if (begin && now < k->next_round &&
	    (disk_is_still(&k->disk) || disk_is_within(&k->disk, k->spec->disk_bytes))) {
		bytes = k->disk.total;
	} else {
		if (begin) {
			k->unlinked = use->unlinked_bytes;
			k->next_round = now + DISK_ROUND_USEC;
		}
		bytes = walk_disk(k) ? k->disk.total : disk_bytes(&k->disk);
	}
	bytes += k->unlinked;
	/* A round over many files takes its time. What has no name by now may have been
	 * counted by it in this round, so it is not added, but it stands by itself. */
	if (use->unlinked_bytes > bytes)
		bytes = use->unlinked_bytes;
	keep_note_disk(k, bytes);
	if (bytes > k->spec->disk_bytes)
		over(k, SPAWN_END_DISK, "disk bytes", bytes, k->spec->disk_bytes);
	else if (k->disk.too_deep)
		end_job(k, SPAWN_END_DISK, 0, "directories too deep to be supervised");
	else if (k->disk.closed_rounds >= HIDING_SAMPLES)
		end_job(k, SPAWN_END_DISK, 0, "a directory that keeps itself closed");
	return bytes + disk_added(&k->disk);
}

static usec_t room_usec(uint64_t is, uint64_t limit)
{
	return is >= limit ? 0 : (limit - is) * USEC_PER_MSEC / FILL_BYTES_PER_MSEC;
}

static void measure(struct keep *k)
{
	usec_t start = clock_boot_usec(), pause = SAMPLE_MAX_USEC, cost;
	struct err err = ERR_INIT;
	struct tree_use use;
	uint64_t disk, cpu;

	if (tree_measure(&k->tree, k->spec->memory_bytes, &use, &err) < 0) {
		end_job(k, SPAWN_END_OOM, 0,
			"the job's processes can no longer be measured");
		return;
	}
	if (use.memory_bytes > k->memory_peak)
		k->memory_peak = use.memory_bytes;
	if (use.memory_bytes > k->spec->memory_bytes)
		over(k, SPAWN_END_OOM,
		     use.unowned_bytes > k->spec->memory_bytes / 2
			     ? "memory bytes, most of them of no process"
			     : "memory bytes",
		     use.memory_bytes, k->spec->memory_bytes);
	k->hiding = use.unreadable ? k->hiding + 1 : 0;
	if (k->hiding >= HIDING_SAMPLES)
		end_job(k, SPAWN_END_OOM, 0,
			"a process hides the files and memory that it holds");
	check_processes(k, use.processes, start);
	disk = check_disk(k, &use);
	cpu = use.cpu_usec + keep_cpu_usec();
	if (k->spec->cpu_sec && cpu > k->spec->cpu_sec * USEC_PER_SEC)
		over(k, SPAWN_END_CPU, "CPU seconds", cpu / USEC_PER_SEC,
		     k->spec->cpu_sec);
	if (limits_cgroup_value(&k->limits, "memory.events", "oom_kill"))
		end_job(k, SPAWN_END_OOM, 0, "memory.max of the cgroup");

	if (room_usec(use.memory_bytes, k->spec->memory_bytes) < pause)
		pause = room_usec(use.memory_bytes, k->spec->memory_bytes);
	if (room_usec(disk, k->spec->disk_bytes) < pause)
		pause = room_usec(disk, k->spec->disk_bytes);
	if (use.watch && pause > SAMPLE_WATCH_USEC)
		pause = SAMPLE_WATCH_USEC;
	if (pause < SAMPLE_MIN_USEC)
		pause = SAMPLE_MIN_USEC;
	cost = (clock_boot_usec() - start - k->answering) * SAMPLE_COST_FACTOR;
	if (k->n_samples++ < SAMPLES_AT_ONCE && !disk_at_start(&k->disk))
		pause = SAMPLE_MIN_USEC;
	else if (cost > pause)
		pause = cost < SAMPLE_SLOW_USEC ? cost : SAMPLE_SLOW_USEC;
	k->next_sample = clock_boot_usec() + pause;
}

static void sample(struct keep *k)
{
	k->answering = 0;
	k->tree.meanwhile = answer_meanwhile;
	k->tree.meanwhile_arg = k;
	notify_stay_apart(&k->notify, true);
	measure(k);
	notify_stay_apart(&k->notify, false);
	k->tree.meanwhile = NULL;
}

/* ---- the loop ---------------------------------------------------------------- */

static void on_clock(struct keep *k)
{
	usec_t now = clock_boot_usec();

	if (k->phase == PHASE_SETUP && now >= k->deadline) {
		struct err err = ERR_INIT;

		(void)err_set_id(&err, ERRID_EXEC_SETUP, "the set-up took too long");
		fail_setup(k, "setup", &err);
	}
	if (k->phase == PHASE_RUNNING && now >= k->deadline)
		end_job(k, SPAWN_END_TIMEOUT, k->spec->grace_ms, "");
	if (sample_is_due(k, now))
		sample(k);
	if (k->phase == PHASE_TERM && now >= k->kill_at)
		enter_kill(k);
	if (k->phase == PHASE_KILL && now >= k->next_kill) {
		limits_cgroup_kill(&k->limits);
		(void)tree_signal(&k->tree, SIGKILL);
		k->next_kill = clock_boot_usec() + KILL_EVERY_USEC;
	}
}

static usec_t next_event(const struct keep *k)
{
	usec_t at = USEC_INFINITY;

	if (k->phase == PHASE_SETUP || k->phase == PHASE_RUNNING)
		at = k->deadline;
	if ((k->phase == PHASE_RUNNING || k->phase == PHASE_TERM) && k->next_sample < at)
		at = k->next_sample;
	if (k->phase == PHASE_TERM && k->kill_at < at)
		at = k->kill_at;
	if (k->phase == PHASE_KILL)
		at = k->next_kill;
	return at;
}

static void wait_event(struct keep *k)
{
	usec_t now = clock_boot_usec(), at = next_event(k);
	usec_t left = at > now ? at - now : 0;
	struct timespec ts = {.tv_sec = (time_t)(left / USEC_PER_SEC),
			      .tv_nsec = (long)(left % USEC_PER_SEC * 1000)};
	int listener = notify_poll_fd(&k->notify);
	struct pollfd p[] = {
		{.fd = k->status_fd, .events = POLLIN},
		{.fd = k->parent_gone ? -1 : k->sock, .events = POLLIN},
		{.fd = k->signal_fd, .events = POLLIN},
		{.fd = listener, .events = POLLIN},
	};

	if (ppoll(p, ARRAY_SIZE(p), at == USEC_INFINITY ? NULL : &ts, NULL) < 0)
		return;
	if (p[0].revents)
		on_status(k, listener < 0 || (p[3].revents & ~POLLIN));
	if (p[1].revents)
		on_control(k);
	if (p[2].revents) {
		struct signalfd_siginfo si;

		(void)!read(k->signal_fd, &si, sizeof(si));
		k->child_ended = true;
	}
	if (p[3].revents)
		on_question(k, p[3].revents);
	if (listener >= 0 && k->notify.over && k->phase == PHASE_RUNNING)
		end_is_near(k);
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
			 .phase = birth->warm ? PHASE_WARM : PHASE_SETUP,
			 .sock = sock,
			 .status_fd = -1,
			 .signal_fd = -1};
	const char *stage = "";
	struct err err = ERR_INIT;

	if (birth->warm)
		ns_map_code();
	disk_init(&k.disk);
	k.disk.tell = &k.tree;
	notify_init(&k.notify, birth->spec->grade);
	k.deadline = clock_boot_usec() + SETUP_MAX_USEC;
	if (birth_give(&k, &stage, &err) < 0) {
		if (k.main_pid <= 0)
			refuse(sock, stage, &err);
		fail_setup(&k, stage, &err);
	}
	while (k.phase != PHASE_GONE) {
		wait_event(&k);
		reap(&k);
		on_clock(&k);
	}
	end_keeper(&k);
}
