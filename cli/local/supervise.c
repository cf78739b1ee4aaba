/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The starter's long life: PostgreSQL, scribe, vessel and tomb as children, started in
 * that order, restarted with backoff when one dies, stopped in reverse order.
 * One thread, one poll loop. A part that does not move any more is killed, and so started
 * again (supervise_watch.c). Children die with this process (PDEATHSIG: an immediate
 * shutdown for PostgreSQL, SIGKILL for the others); as a subreaper it also inherits
 * what a killed postmaster leaves, so that "stopped" means that nothing is left.
 */
#include "cli/local/supervise_priv.h"

#include "cli/base/proc.h"
#include "cli/secret/secret_tombs.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define START_TIMEOUT (60 * USEC_PER_SEC) /* one part, from exec to ready */
#define FIRST_TIMEOUT (40 * USEC_PER_SEC) /* retries of the first start */
#define BACKOFF_MIN (100 * USEC_PER_MSEC)
#define BACKOFF_MAX (5 * USEC_PER_SEC)
/* Of one that had been ready: it can start, so that its jobs need not wait for long. */
#define BACKOFF_READY_MAX USEC_PER_SEC
#define HEALTHY_AFTER (10 * USEC_PER_SEC)
#define DISK_LEAST_BYTES ((uint64_t)1 << 20)

/* ---- the ends of children ------------------------------------------------- */

/* PostgreSQL and its log lie on the same disk: it may not even have been able to say so. */
static bool is_disk_full(const struct super *u, const char *why)
{
	struct statvfs st;

	return proc_says_disk_full(why) ||
	       (statvfs(u->s->paths->data, &st) == 0 &&
		(uint64_t)st.f_bavail * st.f_frsize < DISK_LEAST_BYTES);
}

/* In the first start some ends can't get better by trying again. */
static bool end_is_fatal(const struct super *u, int status)
{
	if (!u->first)
		return false;
	if (clock_boot_usec() >= u->first_deadline)
		return true;
	return WIFEXITED(status) &&
	       (WEXITSTATUS(status) == EXIT_SETUP || WEXITSTATUS(status) == 2);
}

static int part_ended(struct super *u, enum part_id id, int status, struct err *err)
{
	struct part *p = &u->part[id];
	usec_t now = clock_boot_usec();
	usec_t longest = p->state == PART_READY ? BACKOFF_READY_MAX : BACKOFF_MAX;
	char why[512], code[32];
	bool is_full;

	part_log_tail(u, id, why, sizeof(why));
	fd_close(&p->ready_fd);
	fd_close(&p->dial_fd);
	watch_end(&p->watch);
	p->pid = 0;
	if (p->state == PART_READY && now - p->started >= HEALTHY_AFTER)
		p->backoff = 0;
	p->state = PART_DOWN;
	if (u->stopping)
		return 0;
	watch_kill_strays(u);
	if (u->halting)
		return 0;
	(void)snprintf(code, sizeof(code), "%s %d", WIFEXITED(status) ? "exit" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	log_kv(LOG_WARN_, "a part ended; it is started again", "part",
	       supervise_names[id], "end", code, "last", why, NULL);
	is_full = u->first && is_disk_full(u, why);
	if (is_full || end_is_fatal(u, status)) {
		cleanup_free char *log = part_log_path(u, id);

		(void)err_set_id(err,
				 id == PART_PG ? ERRID_START_DB : ERRID_START_CONFINE,
				 "%s: %s ended with %s%s%s (log: %s)", u->s->paths->data,
				 supervise_names[id], code, why[0] ? ": " : "", why, log);
		part_adopt_code(err);
		/* Whichever part sees it first. The kernel has the same word (ENOSPC) for user namespaces
		 * that may not be made. */
		if (is_full && err->id != ERRID_START_USERNS)
			part_set_code(err, ERRID_CORE_DISK_FULL);
		return -1;
	}
	p->backoff = p->backoff ? p->backoff * 2 : BACKOFF_MIN;
	if (p->backoff > longest)
		p->backoff = longest;
	p->next_start = now + p->backoff;
	p->restarts++;
	part_write_state(u);
	return 0;
}

static int reap(struct super *u, struct err *err)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < PART_MAX; i++)
			if (u->part[i].pid == pid &&
			    part_ended(u, (enum part_id)i, status, err) < 0)
				return -1;
	return 0;
}

/* ---- stopping ------------------------------------------------------------- */

static void wait_signal(struct super *u, int timeout_ms)
{
	struct pollfd p[1 + PART_MAX];
	struct signalfd_siginfo si;

	/* who is being stopped may have to be connected for its last words */
	p[0] = (struct pollfd){.fd = u->sfd, .events = POLLIN};
	for (int i = 0; i < PART_MAX; i++)
		p[1 + i] = (struct pollfd){.fd = u->part[i].dial_fd, .events = POLLIN};
	if (poll(p, ARRAY_SIZE(p), timeout_ms) <= 0)
		return;
	for (int i = 0; i < PART_MAX; i++)
		if (p[1 + i].revents)
			part_dial(u, (enum part_id)i);
	if (!p[0].revents || read(u->sfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	/* one that came while parts were stopped is not lost */
	if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
		u->asked_stop = true;
	if (si.ssi_signo == STARTER_RESTART_SIGNAL)
		u->asked_restart = true;
}

static void stop_part(struct super *u, enum part_id id)
{
	struct part *p = &u->part[id];
	usec_t limit = (id == PART_PG ? 60 : 25) * USEC_PER_SEC;
	usec_t deadline = clock_boot_usec() + limit;
	struct err ignored = ERR_INIT;
	bool killed = false;

	if (p->pid <= 0)
		return;
	(void)kill(p->pid, id == PART_PG ? SIGINT : SIGTERM);
	while (p->pid > 0) {
		if (!killed && clock_boot_usec() >= deadline) {
			log_kv(LOG_WARN_, "does not stop; killed", "part",
			       supervise_names[id], NULL);
			(void)kill(p->pid, SIGKILL);
			killed = true;
		}
		(void)reap(u, &ignored);
		if (p->pid > 0)
			wait_signal(u, 100);
	}
	log_kv(LOG_INFO_, "stopped", "part", supervise_names[id], NULL);
}

/* What a killed postmaster left behind; as a subreaper we are its parent now. */
static void reap_strays(struct super *u)
{
	usec_t deadline = clock_boot_usec() + 10 * USEC_PER_SEC;

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		wait_signal(u, 50);
		if (clock_boot_usec() >= deadline)
			watch_kill_strays(u);
	}
}

static void stop_all(struct super *u)
{
	cleanup_free char *state = xasprintf("%s/" STARTER_STATE, u->s->paths->data);

	u->stopping = true;
	part_write_state(u);
	stop_part(u, PART_TOMB);
	stop_part(u, PART_VESSEL);
	stop_part(u, PART_SCRIBE);
	stop_part(u, PART_PG);
	reap_strays(u);
	(void)unlink(state);
}

/* Secrets changed: what read them ends, the logins get their passwords anew, and it is
 * started again. Running jobs are killed and released, as by a stop. */
static void restart_readers(struct super *u)
{
	log_info("vessel and tomb are started anew");
	u->tomb_held = false;
	u->restarting = true;
	u->halting = true;
	part_write_state(u);
	stop_part(u, PART_TOMB);
	stop_part(u, PART_VESSEL);
	u->halting = false;
	u->migrated = false;
	u->migrate_again = 0;
	u->generation++;
	u->part[PART_TOMB].next_start = u->part[PART_VESSEL].next_start = 0;
	part_write_state(u);
}

/* ---- what the vessel asks of the host --------------------------------------- */

static void stop_tomb(struct super *u, bool hold)
{
	u->tomb_held = hold;
	u->halting = true;
	stop_part(u, PART_TOMB);
	u->halting = false;
	u->part[PART_TOMB].next_start = 0;
	part_write_state(u);
}

/* As the reactor of the pod (cli/pod/cmd_react.c), here on our own parts. */
static int rotate_tombs_secrets(struct super *u, struct err *err)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};

	if (secret_store_open("files", u->s->paths, &s, err) < 0 ||
	    secret_tombs_set(&s, SECRET_TOMB_NEXT, err) < 0)
		return -1;
	u->asked_restart = true;
	return 0;
}

static int act(enum host_request what, void *arg, struct err *err)
{
	struct super *u = arg;

	switch (what) {
	case HOST_REQUEST_RESTART_TOMB:
	case HOST_REQUEST_STOP_TOMB:
		stop_tomb(u, what == HOST_REQUEST_STOP_TOMB);
		return 0;
	case HOST_REQUEST_STOP_POD:
		u->asked_stop = true;
		return 0;
	case HOST_REQUEST_ROTATE_SECRET:
		return rotate_tombs_secrets(u, err);
	case HOST_REQUEST_MAX_:
	default:
		return err_set(err, ERR_INTERNAL, "host request %u", (unsigned)what);
	}
}

static int watch_intents(struct super *u, struct err *err)
{
	cleanup_free char *dir =
		xasprintf("%s/vessel/" HOST_REQUEST_DIR, u->s->paths->data);

	if (host_requests_open(u->s->paths, &u->requests, err) < 0)
		return -1;
	u->requests.act = act;
	u->requests.arg = u;
	u->requests_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (u->requests_fd < 0 ||
	    inotify_add_watch(u->requests_fd, dir, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) <
		    0)
		return err_sys(err, "watch %s", dir);
	return 0;
}

static void take_intents(struct super *u)
{
	struct err err = ERR_INIT;
	char events[4096];

	while (read(u->requests_fd, events, sizeof(events)) > 0)
		;
	if (!u->first && host_requests_run(&u->requests, &err) < 0)
		log_err(LOG_ERROR_, "requests of the vessel", &err);
}

/* ---- the loop ------------------------------------------------------------- */

/* In the first start a failure ends it; later PostgreSQL may be away for a moment. */
static int migrate_now(struct super *u, struct err *err)
{
	usec_t now = clock_boot_usec();

	if (now < u->migrate_again || part_migrate(u, err) == 0)
		return 0;
	if (u->first)
		return -1;
	log_err(LOG_ERROR_, "the migration failed; it is tried again", err);
	err_clear(err);
	u->migrate_again = clock_boot_usec() + BACKOFF_MAX;
	return 0;
}

static bool may_start(const struct super *u, enum part_id id)
{
	if (u->part[id].state != PART_DOWN || clock_boot_usec() < u->part[id].next_start)
		return false;
	switch (id) {
	case PART_PG:
	case PART_SCRIBE:
		return true;
	case PART_VESSEL:
		return u->migrated &&
		       (!u->first || u->part[PART_SCRIBE].state == PART_READY);
	case PART_TOMB:
		return u->migrated && !u->tomb_held &&
		       (!u->first || u->part[PART_VESSEL].state == PART_READY);
	case PART_MAX:
	default:
		return false;
	}
}

static int advance(struct super *u, struct err *err)
{
	struct part *pg = &u->part[PART_PG];
	usec_t now = clock_boot_usec();

	if (u->state_again && now >= u->state_again)
		part_write_state(u);
	part_logs_trim(u);
	if (pg->state == PART_STARTING && pg_is_ready(&u->s->pg, pg->pid))
		part_ready(u, PART_PG);
	if (pg->state == PART_READY && !u->migrated && migrate_now(u, err) < 0)
		return -1;
	for (int i = 0; i < PART_MAX; i++) {
		struct part *p = &u->part[i];

		if (p->state == PART_STARTING && now - p->started > START_TIMEOUT)
			(void)kill(p->pid, SIGKILL);
		if (!may_start(u, (enum part_id)i))
			continue;
		if (part_start(u, (enum part_id)i, err) < 0) {
			if (u->first)
				return -1;
			log_err(LOG_ERROR_, "a part could not be started", err);
			err_clear(err);
			p->next_start = now + BACKOFF_MAX;
		}
	}
	for (int i = 0; i < PART_MAX; i++)
		if (u->part[i].state != PART_READY && !(i == PART_TOMB && u->tomb_held))
			return 0;
	if (u->restarting && !u->first) {
		u->restarting = false;
		part_write_state(u);
	}
	if (u->first) {
		u->first = u->restarting = false;
		part_write_state(u);
		log_info("lychgate is up");
		take_intents(u);
		if (*u->s->report_fd >= 0)
			(void)!write(*u->s->report_fd, "ok\n", 3);
		fd_close(u->s->report_fd);
	}
	return 0;
}

static int poll_timeout(const struct super *u)
{
	usec_t now = clock_boot_usec(), next = u->logs_again;

	if (u->part[PART_PG].state == PART_STARTING)
		return 5;
	if (u->state_again && u->state_again < next)
		next = u->state_again;
	if (!u->migrated && u->migrate_again > now && u->migrate_again < next)
		next = u->migrate_again;
	for (int i = 0; i < PART_MAX; i++) {
		const struct part *p = &u->part[i];

		if (p->state == PART_STARTING && p->started + START_TIMEOUT < next)
			next = p->started + START_TIMEOUT;
		if (p->state == PART_DOWN && p->next_start > now && p->next_start < next)
			next = p->next_start;
	}
	return next <= now ? 1 : (int)((next - now) / USEC_PER_MSEC) + 1;
}

/* 1: told to stop. */
static int turn(struct super *u, struct err *err)
{
	struct pollfd p[3 + 2 * PART_MAX];
	struct signalfd_siginfo si;
	int timeout, look;

	if (advance(u, err) < 0)
		return -1;
	look = watch_turn(u);
	timeout = poll_timeout(u);
	p[0] = (struct pollfd){.fd = u->sfd, .events = POLLIN};
	for (int i = 0; i < PART_MAX; i++)
		p[1 + i] = (struct pollfd){.fd = u->part[i].ready_fd, .events = POLLIN};
	p[1 + PART_MAX] = (struct pollfd){.fd = u->requests_fd, .events = POLLIN};
	p[2 + PART_MAX] = (struct pollfd){.fd = u->pg_ask_fd, .events = POLLIN};
	for (int i = 0; i < PART_MAX; i++)
		p[3 + PART_MAX + i] =
			(struct pollfd){.fd = u->part[i].dial_fd, .events = POLLIN};
	if (poll(p, ARRAY_SIZE(p), look < timeout ? look : timeout) < 0 && errno != EINTR)
		return err_sys(err, "poll");
	for (int i = 0; i < PART_MAX; i++)
		if (p[1 + i].fd >= 0 && p[1 + i].revents)
			part_hear(u, (enum part_id)i);
	for (int i = 0; i < PART_MAX; i++)
		if (p[3 + PART_MAX + i].revents)
			part_dial(u, (enum part_id)i);
	if (p[1 + PART_MAX].revents)
		take_intents(u);
	if (p[2 + PART_MAX].fd >= 0 && p[2 + PART_MAX].revents)
		watch_pg_hear(u);
	while (read(u->sfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
			return 1;
		if (si.ssi_signo == STARTER_RESTART_SIGNAL)
			u->asked_restart = true;
	}
	if (u->asked_restart) {
		u->asked_restart = false;
		restart_readers(u);
	}
	if (u->asked_stop)
		return 1;
	return reap(u, err);
}

int supervise_run(struct supervise *s, struct err *err)
{
	struct super u = {
		.s = s, .first = true, .sfd = -1, .requests_fd = -1, .pg_ask_fd = -1};
	sigset_t mask;
	int r;

	for (int i = 0; i < PART_MAX; i++)
		u.part[i].ready_fd = u.part[i].dial_fd = -1;
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, STARTER_RESTART_SIGNAL);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return err_sys(err, "sigprocmask");
	u.sfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (u.sfd < 0)
		return err_sys(err, "signalfd");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "subreaper");
	if (watch_intents(&u, err) < 0)
		return -1;
	u.no_scope = up_no_cgroup_reason();
	part_set_no_cgroup(&u, u.no_scope);
	u.env = proc_env_of_daemons(s->conf->unrooted);
	u.first_deadline = clock_boot_usec() + FIRST_TIMEOUT;
	part_write_state(&u);
	do
		r = turn(&u, err);
	while (r == 0);
	stop_all(&u);
	proc_env_free(u.env);
	free(u.no_cgroup);
	fd_close(&u.sfd);
	fd_close(&u.requests_fd);
	fd_close(&u.pg_ask_fd);
	host_requests_close(&u.requests);
	return r < 0 ? -1 : 0;
}
