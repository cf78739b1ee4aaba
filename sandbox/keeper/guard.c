/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the guard.
 * From its fork until nothing of the job is left. See guard.h.
 */
#include "sandbox/keeper/guard.h"

#include "common/cleanup.h"
#include "common/landlock.h"
#include "sandbox/contract/keeper.h"
#include "sandbox/keeper/guard_priv.h"
#include "sandbox/walls/caps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILL_EVERY_USEC (5 * USEC_PER_MSEC)
/* For the keeper to say whether a job that is killed in its first moments had begun. */
#define WORD_MAX_USEC USEC_PER_SEC
#define REAP_BATCH 4096
/* For the parent to take the report; it has it whether we wait or not. */
#define PASS_ON_MAX_MSEC 100
/* The least that the kernel grants (sched(7), since Linux 6.12 for SCHED_OTHER). */
#define SLICE_NSEC 100000

/* ---- ending ------------------------------------------------------------------------ */

static void enter_kill(struct guard *g)
{
	if (g->phase >= GUARD_KILL)
		return;
	atomic_store(&g->watch->killing, true);
	g->phase = GUARD_KILL;
	g->next_kill = 0;
	g->word_by = clock_boot_usec() + WORD_MAX_USEC;
}

/* grace_ms 0: at once. The first reason stays; a later, harder one only shortens the
 * grace. */
static void end_job(struct guard *g, enum spawn_end how, unsigned grace_ms,
		    const char *detail)
{
	if (g->phase >= GUARD_KILL)
		return;
	if (!g->ended) {
		atomic_store(&g->watch->ended, true);
		g->ended = true;
		g->how = how;
		(void)snprintf(g->detail, sizeof(g->detail), "%s", detail);
	}
	if (!grace_ms || g->phase < GUARD_RUNNING) {
		enter_kill(g);
		return;
	}
	if (g->phase == GUARD_TERM)
		return;
	g->phase = GUARD_TERM;
	g->kill_at = clock_boot_usec() + grace_ms * USEC_PER_MSEC;
	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
}

static void refuse(struct guard *g, const char *stage, const struct err *err)
{
	watch_refuse(g->watch, stage, err);
	g->refused = true;
	enter_kill(g);
}

static void main_ended(struct guard *g, int status)
{
	g->main_over = true;
	g->main_status = status;
	g->over = clock_boot_usec();
	if (g->phase != GUARD_RUNNING)
		return;
	g->ended = true;
	g->how = WIFEXITED(status) ? SPAWN_END_EXITED : SPAWN_END_SIGNALLED;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
		g->how = SPAWN_END_CPU;
		(void)snprintf(g->detail, sizeof(g->detail), "CPU time of one process");
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) {
		g->how = SPAWN_END_DISK;
		(void)snprintf(g->detail, sizeof(g->detail),
			       "a file above the size limit");
	}
}

/* The main process is over and others live: they get the same grace. */
static void end_strays(struct guard *g)
{
	g->phase = GUARD_TERM;
	g->kill_at = clock_boot_usec() + g->watch->grace_ms * USEC_PER_MSEC;
	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
}

static void account(struct guard *g, const struct rusage *r)
{
	uint64_t cpu =
		(uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * USEC_PER_SEC +
		(uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec);

	atomic_fetch_add(&g->watch->reaped_cpu_usec, cpu);
	if ((uint64_t)r->ru_maxrss * 1024 > g->largest_bytes)
		g->largest_bytes = (uint64_t)r->ru_maxrss * 1024;
}

/* What came of exec is read off the unreaped process, by the keeper: not before its word. A
 * job's first output can make its parent end it before the keeper looked. */
static bool awaits_word(const struct guard *g)
{
	if (g->phase < GUARD_RUNNING)
		return true;
	return g->phase == GUARD_KILL && !g->began && !g->refused && !g->keeper_gone &&
	       !g->killed && clock_boot_usec() < g->word_by;
}

static void reap(struct guard *g)
{
	if (awaits_word(g) || (g->phase == GUARD_RUNNING && !g->child_ended))
		return;
	for (int i = 0; i < REAP_BATCH && !g->empty; i++) {
		struct rusage used;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &used);

		g->empty = pid < 0 && errno == ECHILD;
		g->child_ended = pid > 0; /* more may be there */
		if (pid <= 0)
			break;
		account(g, &used);
		if (pid == g->main_pid)
			main_ended(g, status);
		else if (g->main_over && g->phase != GUARD_RUNNING)
			g->strays++;
	}
	if (!g->empty && g->main_over && g->phase == GUARD_RUNNING)
		end_strays(g);
}

/* ---- what comes -------------------------------------------------------------------- */

static void start_clock(struct guard *g)
{
	g->began = clock_boot_usec();
	if (g->phase != GUARD_SETUP)
		return;
	g->phase = GUARD_RUNNING;
	g->deadline = g->began + g->watch->timeout_usec;
	guard_start_pulse(g, g->began);
	g->child_ended = true; /* it may have ended before we were told */
}

static void on_verdict(struct guard *g)
{
	char detail[SPAWN_TEXT_MAX];

	(void)snprintf(detail, sizeof(detail), "%.*s", SPAWN_TEXT_MAX - 1,
		       g->watch->detail);
	end_job(g, (enum spawn_end)g->watch->how, 0, detail);
}

static void on_word(struct guard *g, uint32_t word)
{
	switch ((enum keeper_word)word) {
	case KEEPER_TAKEN:
		if (g->phase == GUARD_WARM)
			g->phase = GUARD_SETUP;
		g->deadline = clock_boot_usec() + SETUP_MAX_USEC;
		break;
	case KEEPER_EXECUTED:
		start_clock(g);
		break;
	case KEEPER_REFUSED:
		g->refused = true;
		g->exec_failed = g->watch->status.error_id == ERRID_SANDBOX_EXEC;
		enter_kill(g);
		break;
	case KEEPER_OVER:
		on_verdict(g);
		break;
	case KEEPER_LOOKED:
		g->looked = true;
		break;
	}
}

/* The death of either is the end of the job: nobody measures it, or answers it, any more. */
static void on_keeper(struct guard *g)
{
	uint32_t word = 0;
	ssize_t n = read(g->words, &word, sizeof(word));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == (ssize_t)sizeof(word)) {
		on_word(g, word);
		return;
	}
	g->keeper_gone = true;
	end_job(g, SPAWN_END_LOST, 0, "the keeper was killed");
}

static void on_meter(struct guard *g)
{
	uint32_t word = 0;
	ssize_t n = read(g->meter_words, &word, sizeof(word));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == (ssize_t)sizeof(word)) {
		on_word(g, word);
		return;
	}
	fd_close(&g->meter_words);
	/* One that is over needs none. */
	if (!g->main_over)
		end_job(g, SPAWN_END_LOST, 0, "the meter was killed");
}

static void on_parent(struct guard *g)
{
	struct spawn_kill m;
	ssize_t n = recv(g->parent_sock, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == (ssize_t)sizeof(m) && m.type == SPAWN_KILL &&
	    m.why >= SPAWN_END_OUTPUT && m.why <= SPAWN_END_SHUTDOWN) {
		end_job(g, (enum spawn_end)m.why, m.grace_ms, "");
		return;
	}
	g->parent_gone = true; /* or speaks nonsense, which is the same */
	end_job(g, SPAWN_END_SHUTDOWN, 0, "the parent is gone");
}

/* ---- the clock --------------------------------------------------------------------- */

static void on_clock(struct guard *g)
{
	usec_t now = clock_boot_usec();

	if (g->phase == GUARD_SETUP && now >= g->deadline) {
		struct err err = ERR_INIT;

		(void)err_set_id(&err, ERRID_EXEC_SETUP, "the set-up took too long");
		refuse(g, "setup", &err);
	}
	if (g->phase == GUARD_RUNNING && now >= g->deadline)
		end_job(g, SPAWN_END_TIMEOUT, g->watch->grace_ms, "");
	if (g->phase >= GUARD_RUNNING && now >= g->pulse_at)
		guard_take_pulse(g, now);
	if (g->killed)
		end_job(g, SPAWN_END_LOST, 0, "the keeper was killed");
	if (g->stopped)
		end_job(g, SPAWN_END_LOST, 0, "the meter was stopped");
	if (g->held)
		end_job(g, SPAWN_END_UNMEASURED, 0,
			"it kept its meter from measuring it for a second");
	if (g->phase == GUARD_TERM && now >= g->kill_at)
		enter_kill(g);
	if (g->phase == GUARD_KILL && !g->empty && now >= g->next_kill) {
		(void)kill(-1, SIGKILL);
		g->next_kill = clock_boot_usec() + KILL_EVERY_USEC;
	}
}

static usec_t next_event(const struct guard *g)
{
	usec_t at = USEC_INFINITY;

	if (g->phase == GUARD_SETUP || g->phase == GUARD_RUNNING)
		at = g->deadline;
	if (g->phase == GUARD_TERM)
		at = g->kill_at;
	if (g->phase == GUARD_KILL && !g->empty)
		at = g->next_kill;
	if (g->phase >= GUARD_RUNNING && g->pulse_at < at)
		at = g->pulse_at;
	if (g->empty && g->look_by < at)
		at = g->look_by;
	return at;
}

static void wait_event(struct guard *g)
{
	usec_t now = clock_boot_usec(), at = next_event(g);
	usec_t left = at > now ? at - now : 0;
	struct timespec ts = {.tv_sec = (time_t)(left / USEC_PER_SEC),
			      .tv_nsec = (long)(left % USEC_PER_SEC * 1000)};
	/* Until it has the spec the keeper takes what the parent sends; its end is ours. */
	struct pollfd p[] = {
		{.fd = g->keeper_gone ? -1 : g->words, .events = POLLIN},
		{.fd = g->parent_gone ? -1 : g->parent_sock,
		 .events = g->phase == GUARD_WARM ? 0 : POLLIN},
		{.fd = g->signal_fd, .events = POLLIN},
		{.fd = g->meter_words, .events = POLLIN},
	};

	if (ppoll(p, ARRAY_SIZE(p), at == USEC_INFINITY ? NULL : &ts, NULL) < 0)
		return;
	if (p[0].revents)
		on_keeper(g);
	if (p[3].revents)
		on_meter(g);
	if (p[1].revents)
		on_parent(g);
	if (p[2].revents) {
		struct signalfd_siginfo si;

		(void)!read(g->signal_fd, &si, sizeof(si));
		g->child_ended = true;
	}
}

/* Nothing of the job is left, and its keeper has seen what there was to see, or can't. */
static bool is_over(struct guard *g)
{
	usec_t now = clock_boot_usec();

	if (!g->empty)
		return false;
	if (!g->look_by)
		g->look_by = now + LAST_LOOK_MAX_USEC;
	return g->looked || g->keeper_gone || g->killed || g->refused ||
	       now >= g->look_by;
}

static NORETURN void watch_over(struct guard *g)
{
	while (!is_over(g)) {
		wait_event(g);
		reap(g);
		on_clock(g);
	}
	guard_report(g);
	/* Our memory takes the kernel its time, on the processor on which the parent has just
	 * been woken: it passes the report on first, then closes its end. */
	if (!g->parent_gone)
		(void)poll(&(struct pollfd){.fd = g->parent_sock}, 1, PASS_ON_MAX_MSEC);
	_exit(0);
}

/* ---- its birth --------------------------------------------------------------------- */

/* A domain is no wall before it was walked into: the keeper is outside of it. */
static int scope_signals(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs of the guard");
	if (landlock_scope_signals(err) < 0)
		return -1;
	if (kill(getppid(), SIGCONT) == 0 || errno != EPERM)
		return err_set_id(err, ERRID_SANDBOX_SELFTEST,
				  "landlock: the guard can signal its keeper");
	return 0;
}

/* What the job inherits of it. */
static int before_fork(const struct guard_birth *born, struct err *err)
{
	sigset_t all;

	(void)sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return err_sys(err, "block signals");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "become a subreaper");
	return born->birth->spec->grade == GRADE_FLOOR ? scope_signals(err) : 0;
}

/* sched(7): a waiting thread with a short slice is among the next, however many wait. */
int guard_short_slice(struct err *err)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a;

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "sched_getattr");
	a.runtime = SLICE_NSEC;
	a.flags = 0;
	if (syscall(SYS_sched_setattr, 0, &a, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "sched_setattr");
	return 0;
}

/* Nothing of its own is held where the job could meet it, and nothing of the job's. */
static int after_fork(struct guard *g, const struct guard_birth *born, struct err *err)
{
	static const int none[] = {-1};
	const int keep[] = {g->parent_sock,	  g->words,
			    g->meter_words,	  g->pulse_fd,
			    g->proc_fd,		  born->stands_fd,
			    born->birth->null_fd, born->limits->cgroup_fd};
	sigset_t child;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs of the guard");
	if (ns_close_all_but(keep, ARRAY_SIZE(keep), err) < 0 ||
	    ns_stdio_null(born->birth->null_fd, true, err) < 0 ||
	    caps_keep_only(none, err) < 0 || guard_short_slice(err) < 0)
		return -1;
	if (setsid() < 0 || chdir("/") < 0)
		return err_sys(err, "setsid and chdir of the guard");
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	g->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return g->signal_fd < 0 ? err_sys(err, "signalfd") : 0;
}

/* For the keeper, which waits for it before the job executes anything. */
static int say_that_it_stands(const struct guard_birth *born, struct err *err)
{
	static const uint64_t once = 1;
	int fd = born->stands_fd;
	ssize_t n = write(fd, &once, sizeof(once));

	fd_close(&fd);
	return n == (ssize_t)sizeof(once)
		       ? 0
		       : err_sys(err, "tell the keeper that it stands");
}

static NORETURN void guard_main(const struct guard_birth *born, struct watch *w,
				const int words[2])
{
	struct guard g = {.limits = born->limits,
			  .watch = w,
			  .parent_sock = born->parent_sock,
			  .words = words[0],
			  .meter_words = words[1],
			  .meter_fd = -1,
			  .proc_fd = born->proc_fd,
			  .signal_fd = -1,
			  .pulse_fd = born->pulse_fd,
			  .phase = born->birth->warm ? GUARD_WARM : GUARD_SETUP,
			  .deadline = clock_boot_usec() + SETUP_MAX_USEC};
	const char *stage = "guard";
	struct err err = ERR_INIT;
	pid_t self = getpid();
	int r = before_fork(born, &err);

	if (r == 0) {
		g.main_pid = _Fork(); /* one thread: nothing to be told of it */
		if (g.main_pid == 0)
			birth_of_job(born, w, self);
		stage = "fork";
		r = g.main_pid < 0 ? err_sys(&err, "fork the job") : 0;
	}
	if (r == 0) {
		stage = "guard";
		r = after_fork(&g, born, &err);
	}
	if (r == 0)
		r = say_that_it_stands(born, &err);
	if (r < 0)
		refuse(&g, stage, &err);
	watch_over(&g);
}

bool watch_judge(struct watch *w, enum spawn_end how, const char *detail)
{
	if (atomic_exchange(&w->judged, true))
		return false;
	(void)snprintf(w->detail, sizeof(w->detail), "%s", detail);
	w->how = how;
	return true;
}

void watch_refuse_as(struct watch *w, const struct job_status *status)
{
	if (!atomic_exchange(&w->refused, true))
		w->status = *status;
}

void watch_refuse(struct watch *w, const char *stage, const struct err *err)
{
	struct job_status s = {.error_id = err->id, .sys = err->sys};

	/* An error without a public name of its own is still a wall that does not stand. */
	if (err->id == ERRID_NONE)
		s.error_id = ERRID_EXEC_SETUP;
	(void)snprintf(s.stage, sizeof(s.stage), "%s", stage);
	(void)snprintf(s.text, sizeof(s.text), "%.*s", SPAWN_TEXT_MAX - 1, err->msg);
	watch_refuse_as(w, &s);
}

static int make_pipes(int here[2], int there[2], struct err *err)
{
	for (int i = 0; i < 2; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
			return err_sys(err, "a pipe to the guard");
		there[i] = p[0];
		here[i] = p[1];
	}
	return 0;
}

int guard_fork(const struct guard_birth *born, pid_t *ret_pid, int ret_words[2],
	       struct watch **ret_watch, struct err *err)
{
	struct watch *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int here[2] = {-1, -1}, there[2] = {-1, -1};
	pid_t pid = -1;
	int r;

	if (w == MAP_FAILED)
		return err_sys(err, "what is shared with the guard");
	r = make_pipes(here, there, err);
	if (r == 0)
		pid = _Fork();
	if (pid == 0) {
		fd_close(&here[0]);
		fd_close(&here[1]);
		guard_main(born, w, there);
	}
	if (r == 0 && pid < 0)
		r = err_sys(err, "fork the guard");
	for (int i = 0; i < 2; i++) {
		fd_close(&there[i]);
		if (r < 0)
			fd_close(&here[i]);
		ret_words[i] = here[i];
	}
	*ret_pid = pid;
	*ret_watch = w;
	return r;
}
