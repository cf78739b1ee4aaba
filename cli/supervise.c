/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The starter's long life: PostgreSQL, scribe, vessel and tomb as children, started in
 * that order, restarted with backoff when one dies, stopped in reverse order.
 * One thread, one poll loop. Children die with this process (PDEATHSIG: a fast
 * shutdown for PostgreSQL, SIGTERM for the others); as a subreaper it also inherits
 * what a killed postmaster leaves, so that "stopped" means that nothing is left.
 */
#include "cli/up.h"

#include "cli/intents.h"
#include "cli/proc.h"
#include "cli/secret.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
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
#include <sys/stat.h>
#include <sys/wait.h>

#define START_TIMEOUT (60 * USEC_PER_SEC) /* one part, from exec to ready */
#define FIRST_TIMEOUT (40 * USEC_PER_SEC) /* retries of the first start */
#define MIGRATE_TIMEOUT (300 * USEC_PER_SEC)
#define BACKOFF_MIN (100 * USEC_PER_MSEC)
#define BACKOFF_MAX (5 * USEC_PER_SEC)
#define HEALTHY_AFTER (10 * USEC_PER_SEC)
#define STATE_AGAIN USEC_PER_SEC
#define LOG_ROTATE_BYTES ((off_t)16 << 20)

enum part_id { PART_PG, PART_SCRIBE, PART_VESSEL, PART_TOMB, PART_MAX };
enum part_state { PART_DOWN, PART_STARTING, PART_READY };

static const char *const part_names[PART_MAX] = {"postgres", "scribe", "vessel", "tomb"};
static const char *const state_names[] = {"down", "starting", "ready"};

struct part {
	enum part_state state;
	pid_t pid;
	int ready_fd;
	char heard[256];
	size_t n_heard;
	unsigned restarts, scope_serial;
	off_t log_from;
	usec_t started, next_start, backoff;
};

struct super {
	struct supervise *s;
	struct part part[PART_MAX];
	const char *no_scope; /* why no scope is asked for; NULL: one is */
	char *no_cgroup;      /* why jobs have no cgroup limits; NULL: they have */
	char **env;
	int sfd;
	bool migrated, first, stopping;
	bool asked_restart, asked_stop;
	bool tomb_held; /* stopped by request: until another one or the next start */
	struct intents intents;
	int intents_fd;	     /* inotify: something was dropped */
	bool halting;	     /* parts are being stopped to be started anew */
	bool restarting;     /* ... and are not all ready again */
	unsigned generation; /* how often that was asked for */
	usec_t migrate_again;
	usec_t first_deadline, state_again; /* 0: the state file is up to date */
};

static char *log_path(const struct super *u, enum part_id id)
{
	if (id == PART_PG)
		return xstrdup(u->s->pg.log);
	return xasprintf("%s/log/%s.log", u->s->paths->data, part_names[id]);
}

/* Opened anew for each start; a log that grew large makes place for one successor. */
static int log_open(const struct super *u, enum part_id id, off_t *ret_from,
		    struct err *err)
{
	cleanup_free char *path = log_path(u, id);
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > LOG_ROTATE_BYTES) {
		cleanup_free char *old = xasprintf("%s.1", path);

		if (rename(path, old) < 0)
			return err_sys(err, "rename %s", path);
	}
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open %s", path);
	*ret_from = st.st_size;
	return fd;
}

/* A child's own error code travels in its text: "LYCH-SANDBOX-004 ...". */
static void adopt_code(struct err *err)
{
	const char *code = strstr(err->msg, "LYCH-");
	char text[32];
	enum err_id id;

	if (!code)
		return;
	(void)snprintf(text, sizeof(text), "%.*s",
		       (int)strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789"), code);
	id = err_id_from_text(text);
	if (id == ERRID_NONE)
		return;
	err->id = id;
	err->code = err_info(id)->code;
}

/* Why a part ended, for the error of a failed start, as it logged it. */
static void log_tail(const struct super *u, enum part_id id, char *out, size_t size)
{
	cleanup_free char *path = log_path(u, id);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	struct stat st;
	off_t from;
	ssize_t n;

	out[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = u->part[id].log_from;
	if (st.st_size - from >= (off_t)sizeof(text))
		from = st.st_size - (off_t)sizeof(text) + 1;
	n = pread(fd, text, sizeof(text) - 1, from);
	if (n <= 0)
		return;
	text[n] = '\0';
	(void)snprintf(out, size, "%.300s", proc_why(text));
}

static void state_write(struct super *u)
{
	cleanup_buf struct buf b = {0};
	cleanup_close int dirfd =
		open(u->s->paths->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct err err = ERR_INIT;
	struct jsonw w;

	buf_init(&b, 65536);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_ki64(&w, "pid", getpid());
	jsonw_kstr(&w, "data", u->s->paths->data);
	jsonw_kstr(&w, "runtime", u->s->paths->runtime);
	jsonw_ku64(&w, "postgres_major", u->s->pg.major);
	jsonw_kstr(&w, "grade", sbx_grade_name(u->s->conf->grade));
	jsonw_kstr(&w, "cgroup", u->no_cgroup ? "none" : "delegated scope");
	jsonw_kstr(&w, "cgroup_reason", u->no_cgroup ? u->no_cgroup : "");
	jsonw_kstr(&w, "state",
		   u->stopping	   ? "stopping"
		   : u->first	   ? "starting"
		   : u->restarting ? "restarting"
				   : "up");
	jsonw_ku64(&w, "generation", u->generation);
	jsonw_key(&w, "parts");
	jsonw_arr(&w);
	for (int i = 0; i < PART_MAX; i++) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "name", part_names[i]);
		jsonw_kstr(&w, "state", state_names[u->part[i].state]);
		jsonw_ki64(&w, "pid", u->part[i].pid > 0 ? u->part[i].pid : 0);
		jsonw_ku64(&w, "restarts", u->part[i].restarts);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	/* On a full disk the old one stays and would name processes that are gone. */
	bool failed = dirfd < 0 || fs_write_atomic(dirfd, STARTER_STATE, b.data, b.len,
						   0600, &err) < 0;

	if (failed && !u->state_again)
		log_err(LOG_WARN_, "the starter's state file could not be written", &err);
	u->state_again = failed ? clock_boot_usec() + STATE_AGAIN : 0;
}

/* ---- starting ------------------------------------------------------------- */

static char **scribe_argv(const struct supervise *s)
{
	char **a = xcalloc(8, sizeof(*a));
	size_t n = 0;

	a[n++] = xstrdup(s->scribe);
	a[n++] = xstrdup("--dir");
	a[n++] = xasprintf("%s/audit", s->paths->data);
	a[n++] = xstrdup("--socket-dir");
	a[n++] = xstrdup(s->paths->audit_dir);
	a[n++] = xstrdup("--ready-fd");
	a[n++] = xasprintf("%d", PROC_READY_FD);
	return a;
}

static char **vessel_argv(const struct supervise *s)
{
	const struct paths *p = s->paths;
	char **a = xcalloc(22, sizeof(*a));
	size_t n = 0;

	a[n++] = xstrdup(s->vessel);
	a[n++] = xstrdup("serve");
	a[n++] = xstrdup("--data");
	a[n++] = xasprintf("%s/vessel", p->data);
	a[n++] = xstrdup("--api-dir");
	a[n++] = xstrdup(p->api_dir);
	a[n++] = xstrdup("--work-dir");
	a[n++] = xstrdup(p->work_dir);
	a[n++] = xstrdup("--pg-dir");
	a[n++] = xstrdup(p->pg_dir);
	a[n++] = xstrdup("--audit-dir");
	a[n++] = xstrdup(p->audit_dir);
	a[n++] = xstrdup("--secrets");
	a[n++] = xasprintf("%s/secrets", p->data);
	if (access(p->config, F_OK) == 0) {
		a[n++] = xstrdup("--config");
		a[n++] = xstrdup(p->config);
	}
	if (s->conf->queue == DOOR_VESSEL) {
		a[n++] = xstrdup("--tomb");
		a[n++] = xstrdup(TOMB_NAME);
	}
	a[n++] = xstrdup("--ready-fd");
	a[n++] = xasprintf("%d", PROC_READY_FD);
	return a;
}

static char **tomb_argv(const struct super *u)
{
	const struct supervise *s = u->s;
	char **a = xcalloc(32, sizeof(*a));
	size_t n = 0;

	if (!u->no_scope) {
		a[n++] = xstrdup("/usr/bin/systemd-run");
		a[n++] = xstrdup("--user");
		a[n++] = xstrdup("--scope");
		a[n++] = xstrdup("--quiet");
		a[n++] = xstrdup("--collect");
		a[n++] = xasprintf("--unit=lychgate-tomb-%d-%u", getpid(),
				   u->part[PART_TOMB].scope_serial);
		a[n++] = xstrdup("--property=Delegate=yes");
		a[n++] = xstrdup("--");
	}
	a[n++] = xstrdup(s->self);
	a[n++] = xstrdup("_tomb");
	a[n++] = xstrdup("--data");
	a[n++] = xasprintf("%s/tomb", s->paths->data);
	a[n++] = xstrdup("--work");
	a[n++] = xstrdup(s->paths->work_dir);
	a[n++] = xstrdup("--queue");
	a[n++] = xstrdup(queue_door_name(s->conf->queue));
	if (s->conf->queue == DOOR_POSTGRES) {
		a[n++] = xstrdup("--pg");
		a[n++] = xstrdup(s->paths->pg_dir);
	}
	a[n++] = xstrdup("--secrets");
	a[n++] = xasprintf("%s/secrets", s->paths->data);
	a[n++] = xstrdup("--tomb");
	a[n++] = xstrdup(s->tomb);
	a[n++] = xstrdup("--sandbox");
	a[n++] = xstrdup(s->sandbox);
	a[n++] = xstrdup("--slots");
	a[n++] = xasprintf("%u", s->conf->slots);
	a[n++] = xstrdup("--grade");
	a[n++] = xstrdup(sbx_grade_name(s->conf->grade));
	a[n++] = xstrdup("--ready");
	if (!u->no_scope)
		a[n++] = xstrdup("--scope");
	return a;
}

static void set_no_cgroup(struct super *u, const char *reason)
{
	free(u->no_cgroup);
	u->no_cgroup = reason ? xstrdup(reason) : NULL;
}

static int part_start(struct super *u, enum part_id id, struct err *err)
{
	struct part *p = &u->part[id];
	cleanup_env char **argv = NULL;
	cleanup_close int log = -1;
	int ready[2] = {-1, -1};
	struct proc_spec spec = {
		.env = (const char *const *)u->env, .in = -1, .ready_fd = -1};

	if (id == PART_PG && pg_configure(u->s->paths, &u->s->pg, err) < 0)
		return -1;
	if (id == PART_TOMB)
		set_no_cgroup(u, u->no_scope); /* its guard may add a reason */
	p->scope_serial++;
	argv = id == PART_PG	   ? pg_server_argv(u->s->paths, &u->s->pg)
	       : id == PART_SCRIBE ? scribe_argv(u->s)
	       : id == PART_VESSEL ? vessel_argv(u->s)
				   : tomb_argv(u);
	log = log_open(u, id, &p->log_from, err);
	if (log < 0)
		return -1;
	if (id != PART_PG && pipe2(ready, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	spec.argv = (const char *const *)argv;
	spec.out = log;
	spec.err = log;
	spec.ready_fd = ready[1];
	spec.death_signal = id == PART_PG ? SIGINT : SIGTERM;
	int r = proc_start(&spec, &p->pid, err);

	fd_close(&ready[1]);
	if (r < 0) {
		fd_close(&ready[0]);
		p->pid = 0;
		return -1;
	}
	p->ready_fd = ready[0];
	p->n_heard = 0;
	p->state = PART_STARTING;
	p->started = clock_boot_usec();
	return 0;
}

static int migrate(struct super *u, struct err *err)
{
	const struct supervise *s = u->s;
	cleanup_free char *secrets = xasprintf("%s/secrets", s->paths->data);
	const char *const argv[] = {
		s->vessel, "migrate", "--pg-dir", s->paths->pg_dir, "--secrets", secrets,
		"--tomb",  TOMB_NAME, NULL,
	};

	if (proc_run(argv, (const char *const *)u->env, NULL, MIGRATE_TIMEOUT,
		     ERRID_START_MIGRATION, NULL, err) < 0) {
		adopt_code(err);
		return -1;
	}
	u->migrated = true;
	return 0;
}

static void part_ready(struct super *u, enum part_id id)
{
	struct part *p = &u->part[id];

	p->state = PART_READY;
	fd_close(&p->ready_fd);
	log_kv(LOG_INFO_, "ready", "part", part_names[id], NULL);
	state_write(u);
}

/* One line of a part; false: what it says was the last that we wait for. */
static bool hear_line(struct super *u, enum part_id id, const char *line)
{
	if (id == PART_TOMB && str_starts(line, UP_NO_CGROUP))
		set_no_cgroup(u, line + strlen(UP_NO_CGROUP));
	if (!str_eq(line, "READY=1"))
		return true;
	part_ready(u, id);
	return false;
}

static void hear(struct super *u, enum part_id id)
{
	struct part *p = &u->part[id];
	ssize_t n = read(p->ready_fd, p->heard + p->n_heard,
			 sizeof(p->heard) - 1 - p->n_heard);
	char *line = p->heard, *end;

	if (n <= 0) {
		fd_close(&p->ready_fd);
		return;
	}
	p->n_heard += (size_t)n;
	p->heard[p->n_heard] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!hear_line(u, id, line))
			return;
	}
	/* The rest of an unfinished line; one that is too long says nothing to us. */
	p->n_heard = strlen(line);
	memmove(p->heard, line, p->n_heard);
	if (p->n_heard == sizeof(p->heard) - 1)
		p->n_heard = 0;
}

/* ---- the ends of children ------------------------------------------------- */

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
	char why[512], code[32];

	log_tail(u, id, why, sizeof(why));
	fd_close(&p->ready_fd);
	p->pid = 0;
	if (p->state == PART_READY && now - p->started >= HEALTHY_AFTER)
		p->backoff = 0;
	p->state = PART_DOWN;
	if (u->stopping || u->halting)
		return 0;
	(void)snprintf(code, sizeof(code), "%s %d", WIFEXITED(status) ? "exit" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	log_kv(LOG_WARN_, "a part ended; it is started again", "part", part_names[id],
	       "end", code, "last", why, NULL);
	if (end_is_fatal(u, status)) {
		cleanup_free char *log = log_path(u, id);

		(void)err_set_id(err,
				 proc_says_disk_full(why) ? ERRID_CORE_DISK_FULL
				 : id == PART_PG	  ? ERRID_START_DB
							  : ERRID_START_CONFINE,
				 "%s ended with %s: %s (log: %s)", part_names[id], code,
				 why, log);
		adopt_code(err);
		return -1;
	}
	p->backoff = p->backoff ? p->backoff * 2 : BACKOFF_MIN;
	if (p->backoff > BACKOFF_MAX)
		p->backoff = BACKOFF_MAX;
	p->next_start = now + p->backoff;
	p->restarts++;
	state_write(u);
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
	struct pollfd p = {.fd = u->sfd, .events = POLLIN};
	struct signalfd_siginfo si;

	if (poll(&p, 1, timeout_ms) <= 0 ||
	    read(u->sfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
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
			log_kv(LOG_WARN_, "does not stop; killed", "part", part_names[id],
			       NULL);
			(void)kill(p->pid, SIGKILL);
			killed = true;
		}
		(void)reap(u, &ignored);
		if (p->pid > 0)
			wait_signal(u, 100);
	}
	log_kv(LOG_INFO_, "stopped", "part", part_names[id], NULL);
}

/* What a killed postmaster left behind; as a subreaper we are its parent now. */
static void reap_strays(struct super *u)
{
	usec_t deadline = clock_boot_usec() + 10 * USEC_PER_SEC;
	cleanup_free char *file = xasprintf("/proc/self/task/%d/children", getpid());

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		cleanup_free char *text = NULL;
		struct err ignored = ERR_INIT;
		size_t len;

		wait_signal(u, 50);
		if (clock_boot_usec() < deadline ||
		    fs_read_file(AT_FDCWD, file, 65536, &text, &len, &ignored) < 0)
			continue;
		for (char *s = text; *s;) {
			unsigned long pid = strtoul(s, &s, 10);

			if (pid > 1)
				(void)kill((pid_t)pid, SIGKILL);
			s += strspn(s, " \n");
		}
	}
}

static void stop_all(struct super *u)
{
	cleanup_free char *state = xasprintf("%s/" STARTER_STATE, u->s->paths->data);

	u->stopping = true;
	state_write(u);
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
	state_write(u);
	stop_part(u, PART_TOMB);
	stop_part(u, PART_VESSEL);
	u->halting = false;
	u->migrated = false;
	u->migrate_again = 0;
	u->generation++;
	u->part[PART_TOMB].next_start = u->part[PART_VESSEL].next_start = 0;
	state_write(u);
}

/* ---- what the vessel asks of the host --------------------------------------- */

static void stop_tomb(struct super *u, bool hold)
{
	u->tomb_held = hold;
	u->halting = true;
	stop_part(u, PART_TOMB);
	u->halting = false;
	u->part[PART_TOMB].next_start = 0;
	state_write(u);
}

/* As the reactor of the pod (cli/cmd_react.c), here on our own parts. */
static int rotate_tombs_secrets(struct super *u, struct err *err)
{
	static const char *const names[] = {"lychgate_db_tomb", "lychgate_work"};
	cleanup_secret_store struct secret_store s = {.dirfd = -1};

	if (secret_store_open("files", u->s->paths, &s, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_secret_value struct secret_value v = {0};

		secret_value_generate(&v);
		if (s.ops->write(&s, names[i], &v, true, err) < 0)
			return -1;
	}
	u->asked_restart = true;
	return 0;
}

static int act(enum intent what, void *arg, struct err *err)
{
	struct super *u = arg;

	switch (what) {
	case INTENT_RESTART_TOMB:
	case INTENT_STOP_TOMB:
		stop_tomb(u, what == INTENT_STOP_TOMB);
		return 0;
	case INTENT_STOP_POD:
		u->asked_stop = true;
		return 0;
	case INTENT_ROTATE_SECRET:
		return rotate_tombs_secrets(u, err);
	case INTENT_MAX_:
	default:
		return err_set(err, ERR_INTERNAL, "intent %u", (unsigned)what);
	}
}

static int watch_intents(struct super *u, struct err *err)
{
	cleanup_free char *dir = xasprintf("%s/vessel/" INTENT_DIR, u->s->paths->data);

	if (intents_open(u->s->paths, &u->intents, err) < 0)
		return -1;
	u->intents.act = act;
	u->intents.arg = u;
	u->intents_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (u->intents_fd < 0 ||
	    inotify_add_watch(u->intents_fd, dir, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) <
		    0)
		return err_sys(err, "watch %s", dir);
	return 0;
}

static void take_intents(struct super *u)
{
	struct err err = ERR_INIT;
	char events[4096];

	while (read(u->intents_fd, events, sizeof(events)) > 0)
		;
	if (!u->first && intents_run(&u->intents, &err) < 0)
		log_err(LOG_ERROR_, "requests of the vessel", &err);
}

/* ---- the loop ------------------------------------------------------------- */

/* In the first start a failure ends it; later PostgreSQL may be away for a moment. */
static int migrate_now(struct super *u, struct err *err)
{
	usec_t now = clock_boot_usec();

	if (now < u->migrate_again || migrate(u, err) == 0)
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
		state_write(u);
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
		state_write(u);
	}
	if (u->first) {
		u->first = u->restarting = false;
		state_write(u);
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
	usec_t now = clock_boot_usec(), next = now + 60 * USEC_PER_SEC;

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
	struct pollfd p[2 + PART_MAX];
	struct signalfd_siginfo si;

	if (advance(u, err) < 0)
		return -1;
	p[0] = (struct pollfd){.fd = u->sfd, .events = POLLIN};
	for (int i = 0; i < PART_MAX; i++)
		p[1 + i] = (struct pollfd){.fd = u->part[i].ready_fd, .events = POLLIN};
	p[1 + PART_MAX] = (struct pollfd){.fd = u->intents_fd, .events = POLLIN};
	if (poll(p, 2 + PART_MAX, poll_timeout(u)) < 0 && errno != EINTR)
		return err_sys(err, "poll");
	for (int i = 0; i < PART_MAX; i++)
		if (p[1 + i].fd >= 0 && p[1 + i].revents)
			hear(u, (enum part_id)i);
	if (p[1 + PART_MAX].revents)
		take_intents(u);
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
	struct super u = {.s = s, .first = true, .sfd = -1, .intents_fd = -1};
	sigset_t mask;
	int r;

	for (int i = 0; i < PART_MAX; i++)
		u.part[i].ready_fd = -1;
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
	set_no_cgroup(&u, u.no_scope);
	u.env = proc_env();
	u.first_deadline = clock_boot_usec() + FIRST_TIMEOUT;
	state_write(&u);
	do
		r = turn(&u, err);
	while (r == 0);
	stop_all(&u);
	proc_env_free(u.env);
	free(u.no_cgroup);
	fd_close(&u.sfd);
	fd_close(&u.intents_fd);
	intents_close(&u.intents);
	return r < 0 ? -1 : 0;
}
