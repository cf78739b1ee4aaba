/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych up, lych down. One starter a data directory and a runtime directory: both
 * hold a lock that lives as long as its process. A second start finds the holder,
 * asks the vessel for its version and says who runs.
 */
#include "cli/base/audit_log.h"
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/mode.h"
#include "cli/local/up.h"
#include "cli/secret/secret.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define HOLDER_TIMEOUT (45 * USEC_PER_SEC)
#define DOWN_TIMEOUT (130 * USEC_PER_SEC)

struct up_args {
	bool detach, json;
};

static error_t up_parse(int key, char *arg, struct argp_state *state)
{
	struct up_args *a = state->input;

	(void)arg;
	switch (key) {
	case 'd':
		a->detach = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option up_options[] = {
	{"detach", 'd', NULL, 0, "stay in the background once everything is ready", 0},
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp up_argp = {
	.options = up_options,
	.parser = up_parse,
	.doc = "Start Lychgate: PostgreSQL, scribe, vessel and tomb.\v"
	       "Examples:\n"
	       "  lych up --detach"};

static const struct argp_option down_options[] = {
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp down_argp = {
	.options = down_options,
	.parser = up_parse,
	.doc = "Stop Lychgate and wait until every process is gone.\v"
	       "Examples:\n"
	       "  lych down"};

static void say(const struct up_args *a, const struct paths *p, const char *state,
		pid_t pid)
{
	if (a->json) {
		cleanup_buf struct buf b = {0};
		struct jsonw w;

		buf_init(&b, 65536);
		jsonw_init(&w, &b);
		jsonw_obj(&w);
		jsonw_kstr(&w, "state", state);
		jsonw_ki64(&w, "pid", pid);
		jsonw_kstr(&w, "version", LYCH_VERSION);
		jsonw_kstr(&w, "data", p->data);
		jsonw_kstr(&w, "socket", p->api_sock);
		jsonw_obj_end(&w);
		(void)puts(buf_str(&b));
	} else if (pid) {
		(void)printf("Lychgate %s: %s (pid %d)\n", LYCH_VERSION, state, pid);
	} else {
		(void)printf("Lychgate %s: %s\n", LYCH_VERSION, state);
	}
	(void)fflush(stdout); /* what became of it: end() */
}

static int lock_open(const char *dir, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/lock", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys_id(err,
				  errno == EROFS || errno == EACCES ? ERRID_START_DATA
								    : ERRID_START_LOCKED,
				  "%s", path);
	return fd;
}

/* ---- somebody runs already ------------------------------------------------- */

static int ask_version(const struct paths *p, char *out, size_t size)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/status", .timeout_ms = 2000};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	struct err ignored = ERR_INIT;
	const char *version;

	if (client_new(p->api_sock, &c, &ignored) < 0 ||
	    client_json(c, &rq, &j, NULL, &ignored) < 0 ||
	    json_get_str(j, "version", true, 64, &version, &ignored) < 0)
		return -1;
	return str_copy(out, size, version);
}

/* Is the holder up; *ret_runtime is where its sockets are (NULL: it has not said yet). */
static bool starter_is_up(const struct paths *p, char **ret_runtime)
{
	struct err ignored = ERR_INIT;
	struct starter_state s = {0};

	*ret_runtime = NULL;
	if (starter_state_read(p, &s, &ignored) < 0)
		return false;
	*ret_runtime = s.runtime;
	return str_eq(s.state, "up");
}

/* The holder is up and of our version: success. Another start under way is waited for. */
static int already_running(const struct up_args *a, const struct paths *p, int lock,
			   pid_t holder, struct err *err)
{
	usec_t deadline = clock_boot_usec() + HOLDER_TIMEOUT;
	char version[64];

	if (starter_check_holder(p, holder, err) < 0)
		return -1;
	for (;;) {
		struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
		cleanup_free char *runtime = NULL;
		bool is_up = starter_is_up(p, &runtime);
		pid_t now = 0;

		if (is_up && !str_eq(runtime, p->runtime))
			return err_set_id(
				err, ERRID_START_LOCKED,
				"%s: pid %d runs on it, with its sockets in %s and not "
				"in %s",
				p->data, holder, runtime, p->runtime);
		if (is_up && ask_version(p, version, sizeof(version)) == 0) {
			if (!str_eq(version, LYCH_VERSION))
				return err_set_id(
					err, ERRID_START_LOCKED,
					"%s: version %s runs here (pid %d), this is %s; "
					"'lych down' first",
					p->data, version, holder, LYCH_VERSION);
			say(a, p, "already running", holder);
			return 0;
		}
		if (fs_lock_holder(lock, &now, err) < 0)
			return -1;
		if (now != holder)
			return err_set_id(
				err, ERRID_START_LOCKED,
				"%s: the starter that held it (pid %d) has just ended; "
				"try again",
				p->data, holder);
		if (clock_boot_usec() >= deadline)
			return err_set_id(
				err, ERRID_START_LOCKED,
				"%s: pid %d holds it, and its vessel does not answer",
				p->data, holder);
		(void)nanosleep(&nap, NULL);
	}
}

/* ---- the starter itself ---------------------------------------------------- */

static int take_locks(const struct paths *p, int *ret_data, struct err *err)
{
	cleanup_close int data = lock_open(p->data, err);
	int run;

	if (data < 0)
		return -1;
	if (fs_lock(data, NULL, err) < 0)
		return err_wrap(err, "%s", p->data);
	run = lock_open(p->runtime, err);
	if (run < 0)
		return -1;
	/* kept open to the end of the process: closing it would give the lock up */
	if (fs_lock(run, NULL, err) < 0) {
		(void)close(run);
		return err_wrap(err, "%s (another data directory uses it)", p->runtime);
	}
	*ret_data = TAKE_FD(data);
	return 0;
}

/* The directory of the programs that every job finds in its PATH. */
static int find_tools(char **ret, struct err *err)
{
	if (paths_program("tools/lych-ask", ret, err) < 0)
		return -1;
	*strrchr(*ret, '/') = '\0';
	return 0;
}

static int starter(const struct paths *p, const struct conf *conf, int *report_fd,
		   struct err *err)
{
	struct supervise s = {.paths = p,
			      .conf = conf,
			      .pg = {.lock_fd = -1},
			      .lock_fd = -1,
			      .report_fd = report_fd};
	int r = -1;

	if (take_locks(p, &s.lock_fd, err) < 0)
		return -1;
	if (paths_self(&s.self, err) == 0 &&
	    paths_program("lych-scribe", &s.scribe, err) == 0 &&
	    paths_program("lych-vessel", &s.vessel, err) == 0 &&
	    paths_program("lych-tomb", &s.tomb, err) == 0 &&
	    paths_program("lych-sandbox", &s.sandbox, err) == 0 &&
	    find_tools(&s.tools, err) == 0 &&
	    pg_prepare(p, conf->postgres_bin, NULL, &s.pg, err) == 0)
		r = supervise_run(&s, err);
	pg_cluster_done(&s.pg);
	free(s.self);
	free(s.scribe);
	free(s.vessel);
	free(s.tomb);
	free(s.sandbox);
	free(s.tools);
	return r;
}

NORETURN static void detached_child(const struct paths *p, const struct conf *conf,
				    int report)
{
	cleanup_free char *path = xasprintf("%s/log/starter.log", p->data);
	struct err err = ERR_INIT;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log =
		open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (null < 0 || log < 0 || setsid() < 0 || chdir("/") < 0 ||
	    dup3(null, 0, 0) < 0 || dup3(log, 1, 0) < 0 || dup3(log, 2, 0) < 0)
		(void)err_sys(&err, "%s", path);
	/* the caller's other descriptors (a pipe that somebody reads to its end) stay out
	 */
	else if (syscall(SYS_close_range, 3, (unsigned)report - 1, 0) < 0 ||
		 syscall(SYS_close_range, (unsigned)report + 1, ~0U, 0) < 0)
		(void)err_sys(&err, "close_range");
	else if (starter(p, conf, &report, &err) == 0 && report < 0)
		_exit(0);
	else if (!err_is_set(&err))
		(void)err_set_id(&err, ERRID_START_STOPPED,
				 "lych down, or a signal to the starter");
	log_err(LOG_ERROR_, "lychgate could not be kept up", &err);
	if (report >= 0) /* "ok" closes it: then nobody listens any more */
		(void)!dprintf(report, "%s %s\n", err_text(&err), err.msg);
	_exit(err_exit_code(&err));
}

static int wait_report(int fd, pid_t pid, struct err *err)
{
	char line[1024];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(line) - 1 &&
	       (got = read(fd, line + n, sizeof(line) - 1 - n)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		n += (size_t)got;
		if (memchr(line, '\n', n))
			break;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (str_eq(line, "ok"))
		return 0;
	(void)waitpid(pid, NULL, 0);
	char *space = strchr(line, ' ');

	if (!space)
		return err_set_id(err, ERRID_CORE_INTERNAL,
				  "the starter ended without a word");
	*space = '\0';
	enum err_id id = err_id_from_text(line);

	if (id == ERRID_NONE)
		return err_set_id(err, ERRID_CORE_SYS, "%s", space + 1);
	return err_set_id(err, id, "%s", space + 1);
}

static int up_detached(const struct up_args *a, const struct paths *p,
		       const struct conf *conf, struct err *err)
{
	int report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	(void)fflush(NULL);
	pid = fork();
	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0) {
		(void)close(report[0]);
		detached_child(p, conf, report[1]);
	}
	(void)close(report[1]);
	int r = wait_report(report[0], pid, err);

	(void)close(report[0]);
	if (r == 0)
		say(a, p, "up", pid);
	return r;
}

/* Said before anything starts: a portal without its key is none. */
static int check_portal_secrets(const struct paths *p, const struct conf *conf,
				struct err *err)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	const char *name;

	if (!conf_broker_secret(&conf->broker, 0))
		return 0;
	if (secret_store_open("files", p, &s, err) < 0)
		return -1;
	for (size_t i = 0; (name = conf_broker_secret(&conf->broker, i)); i++) {
		cleanup_secret_value struct secret_value v = {0};

		if (s.ops->read(&s, name, &v, err) == 0 &&
		    secret_key_check(&v, conf_portal_secret_is_local(&conf->broker, name),
				     err) == 0)
			continue;
		if (err->id == ERRID_SECRET_MISSING)
			return err_set_id(err, ERRID_SECRET_PORTAL, "%s", name);
		return err_wrap(err, "%s", name);
	}
	return 0;
}

static int wait_for_other(const struct up_args *a, const struct paths *p, struct err *err)
{
	struct err why = ERR_INIT;
	cleanup_close int lock = lock_open(p->data, &why);
	pid_t holder = 0;

	if (lock < 0 || fs_lock_holder(lock, &holder, &why) < 0 || !holder)
		return -1; /* it was another lock: what err says */
	err_clear(err);
	return already_running(a, p, lock, holder, err);
}

/* PostgreSQL and the daemons raise their own to the hard limit, and would wait for each other
 * below this one, which every login has as its soft limit. */
#define DESCRIPTORS_MIN 1024

static int check_limits(struct err *err)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return err_sys(err, "getrlimit");
	if (r.rlim_max < DESCRIPTORS_MIN)
		return err_set_id(err, ERRID_START_LIMIT,
				  "open files (ulimit -H -n): %llu, of at least %d",
				  (unsigned long long)r.rlim_max, DESCRIPTORS_MIN);
	return 0;
}

/* Who has it elsewhere sees when the whole log was made anew. */
static void say_first_key(const struct up_args *a, const struct paths *p)
{
	char key[AUDIT_KEY_TEXT];
	struct err err = ERR_INIT;
	int dirfd = -1;

	if (a->json)
		return;
	if (audit_log_open(p, &dirfd, &err) == 0 &&
	    audit_log_first_key(dirfd, key, &err) == 0)
		(void)fprintf(
			stderr,
			"lych: the audit log's keys begin with %s\n"
			"      Write it down elsewhere, for 'lych-audit verify --pin'.\n",
			key);
	else
		cmd_tell(err.id, err.msg);
	fd_close(&dirfd);
}

static int up(const struct up_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	struct conf conf = {0};
	cleanup_free char *cluster = NULL;
	pid_t holder = 0;
	int lock, r, nobody = -1;
	bool is_first;

	if (check_limits(err) < 0 || paths_resolve(&p, err) < 0 ||
	    config_load_or_defaults(p.config, &conf, err) < 0)
		return -1;
	if (paths_make(&p, err) < 0 || check_portal_secrets(&p, &conf, err) < 0) {
		conf_done(&conf);
		return -1;
	}
	lock = lock_open(p.data, err);
	if (lock < 0)
		return -1;
	r = fs_lock_holder(lock, &holder, err);
	if (r == 0 && holder)
		r = already_running(a, &p, lock, holder, err);
	(void)close(lock);
	if (r < 0 || holder)
		goto out;
	cluster = xasprintf("%s/phylactery/data", p.data);
	is_first = access(cluster, F_OK) < 0;
	if (!a->json && is_first)
		(void)fprintf(
			stderr,
			"lych: first use: making a private PostgreSQL cluster in %s\n",
			p.data);
	if (a->detach) {
		r = up_detached(a, &p, &conf, err);
		if (r == 0 && is_first)
			say_first_key(a, &p);
	} else {
		(void)fprintf(stderr, "lych: starting; Ctrl-C or 'lych down' stops it\n");
		r = starter(&p, &conf, &nobody, err);
	}
	/* Two began at the same time: the other one's start is as good. */
	if (r < 0 && err->id == ERRID_START_LOCKED)
		r = wait_for_other(a, &p, err);
out:
	conf_done(&conf);
	return r;
}

/* It is done, whatever becomes of the word of it. */
static int end(int r, struct err *err, bool json)
{
	if (r < 0)
		return cmd_fail(err, json);
	/* who has closed stdout wants no word */
	if (render_flush(err) == 0 || err->sys == EBADF)
		return 0;
	(void)err_wrap(err, "it was done, only not told");
	return cmd_fail(err, json);
}

int cmd_up(int argc, char **argv)
{
	struct up_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&up_argp, argc, argv, 0, &a);
	log_init("starter", LOG_INFO_);
	return end(up(&a, &err), &err, a.json);
}

/* ---- down ------------------------------------------------------------------ */

static int down(const struct up_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_close int pidfd = -1;
	pid_t holder = 0;

	if (paths_resolve(&p, err) < 0 || starter_hold(&p, &pidfd, &holder, err) < 0)
		return -1;
	if (!holder) {
		say(a, &p, "not running", 0);
		if (mode_is_pod(&p) && !a->json)
			(void)fprintf(stderr, "lych: the pod is stopped by '%s'\n",
				      mode_stop(true));
		return 0;
	}
	if (starter_check_holder(&p, holder, err) < 0)
		return -1;
	if (pidfd >= 0) {
		struct pollfd wait = {.fd = pidfd, .events = POLLIN};

		/* one that somebody has stopped would hear the first only when it goes on */
		if ((syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0 ||
		     syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) < 0) &&
		    errno != ESRCH)
			return err_sys(err, "signal to pid %d", holder);
		if (poll(&wait, 1, (int)(DOWN_TIMEOUT / USEC_PER_MSEC)) == 0)
			return err_set_id(err, ERRID_START_LOCKED,
					  "pid %d is still stopping", holder);
	}
	say(a, &p, "stopped", 0);
	return 0;
}

int cmd_down(int argc, char **argv)
{
	struct up_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&down_argp, argc, argv, 0, &a);
	return end(down(&a, &err), &err, a.json);
}
