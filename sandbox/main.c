/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * lych-sandbox: runs one command behind walls, or serves the tomb as its spawner.
 *
 * Theory of operation. Whoever starts this program is trusted, what it runs is not. Three
 * processes share a job (sandbox.h): this one, which reads the description and afterwards
 * only waits and passes signals on; the keeper, which holds the namespaces and supervises;
 * the job, which takes every right from itself before it becomes the command. They go
 * through these stages, and any stage that fails ends all of it with exit code 78, before
 * anything ran:
 *
 *	parent	spec, workspace opened and judged, limits prepared, keeper started
 *	keeper	namespaces and identity map, private root (grade full)
 *	job	fds, session, cwd, limits, caps, landlock, seccomp, self-test, exec
 *
 * There is no option that leaves a wall out and no state in between: the grade that was
 * asked for stands as a whole. The environment of this process is never handed on, no file
 * is read as a configuration, and the program refuses to be root.
 */
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/fs.h"
#include "common/proto/denied.h"
#include "common/str.h"
#include "common/term/person.h"
#include "sandbox/contract/keeper.h"
#include "sandbox/contract/meminfo.h"
#include "sandbox/home.h"
#include "sandbox/offer.h"
#include "sandbox/outcome.h"
#include "sandbox/terminal/relay.h"
#include "sandbox/terminal/terminal.h"
#include "sandbox/walls/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define EXIT_USAGE 2

static const char usage[] =
	"Usage: lych-sandbox [options] -- command [argument...]\n"
	"       lych-sandbox --serve FD --jobs DIR [--cgroup DIR] [--tools DIR] [--grade "
	"full|floor] "
	"[--pool N]\n"
	"\n"
	"Run one command behind walls. Every wall stands, or nothing runs (exit 78).\n"
	"\n"
	"Walls\n"
	"  --grade full|floor     full (default): own namespaces and a private root, and "
	"all of\n"
	"                         floor. floor: Landlock, seccomp and limits, no "
	"namespace\n"
	"  --network loopback|none\n"
	"                         full: an empty network with its own loopback "
	"(default), or no\n"
	"                         socket but AF_UNIX. floor has no sockets at all\n"
	"What it sees\n"
	"  --workspace DIR        a directory of yours, writable, at /work (floor: where "
	"it is);\n"
	"                         the working directory\n"
	"  --workspace-ro DIR     the same, read-only\n"
	"  --ro PATH              readable at its own path; --rox: and executable;\n"
	"  --rw PATH              readable, writable, executable\n"
	"  --home                 yes: one of these is your home directory, or holds it\n"
	"  --cwd DIR              where it starts\n"
	"  --env NAME=VALUE       nothing of your own environment is passed on\n"
	"  --hostname NAME\n"
	"  --tty                  full, at a terminal: one of its own, shown to you "
	"through a\n"
	"                         filter\n"
	"Limits\n"
	"  --limit NAME=VALUE     any of these but --grace, by name; repeatable\n"
	"  --timeout TIME  --grace TIME  --cpu-time TIME         90s, 1h30m, 250ms\n"
	"  --memory SIZE  --disk SIZE  --tmp SIZE  --file-size SIZE   512m, 2g, 64KiB\n"
	"  --processes N  --cpus N  --nofile N\n"
	"  --cgroup DIR           a delegated cgroup v2 directory for the limits\n"
	"Output\n"
	"  --json                 one line of JSON about the end on stderr\n"
	"  --explain              name what the walls refused, and the option that would "
	"allow it\n"
	"  --help  --version\n"
	"\n"
	"Exit: the command's own code; 128+N after signal N; 124 out of time; 126 or 127 "
	"it could\n"
	"not be executed; 78 a wall could not be raised; 125 another failure; 2 wrong "
	"usage.\n"
	"\n"
	"Examples:\n"
	"  lych-sandbox --workspace . --timeout 30s -- python3 x.py\n"
	"  lych-sandbox --workspace ./copy --memory 2g --explain -- make\n"
	"  lych-sandbox --grade floor --rox . -- ./report src\n"
	"  lych-sandbox --tty --timeout 2h --workspace ./copy -- bash -i\n";

/* Before the "--", behind which are the job's own. */
static bool wants_json(int argc, char **argv)
{
	bool has_it = false;

	for (int i = 1; i < argc; i++) {
		if (str_eq(argv[i], "--"))
			return has_it;
		has_it |= str_eq(argv[i], "--json");
	}
	return has_it;
}

/* Of what was wrong with the options, which may not have been read as far as --json. */
static int refuse_options(int argc, char **argv, const struct err *err)
{
	if (wants_json(argc, argv))
		outcome_complain_json(err);
	else
		outcome_complain(err);
	return EXIT_USAGE;
}

/* 0 when what was printed has arrived. */
static int end_print(void)
{
	struct err err = ERR_INIT;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	(void)err_sys_id(&err, ERRID_CORE_OUTPUT, "write to stdout");
	outcome_complain(&err);
	return err_exit_code(&err);
}

static void take_denied(struct spawn_denied *d, struct outcome *o)
{
	if (!offer_judge(d))
		return;
	if (o->n_denied < SPAWN_DENIED_MAX)
		o->denied[o->n_denied++] = *d;
	else
		o->denied[SPAWN_DENIED_MAX - 1].dropped++;
}

union message {
	uint32_t type;
	struct keeper_terminal terminal;
	struct spawn_started started;
	struct spawn_refused refused;
	struct spawn_denied denied;
	struct spawn_exited exited;
};

static bool is_terminal(const union message *m, ssize_t n, unsigned n_fds)
{
	return n == sizeof(m->terminal) && m->type == KEEPER_TERMINAL &&
	       n_fds == TERMINAL_FDS;
}

/* As take_message(). */
static int take_report(union message *m, ssize_t n, struct outcome *o, struct err *err)
{
	if (m->type == SPAWN_STARTED && n == sizeof(m->started)) {
		o->started = m->started;
		o->has_started = true;
		return 0;
	}
	if (m->type == SPAWN_REFUSED && n == sizeof(m->refused)) {
		o->refused = m->refused;
		o->has_refused = true;
		return 1;
	}
	if (m->type == SPAWN_DENIED && n == sizeof(m->denied) &&
	    denied_is_valid(&m->denied)) {
		take_denied(&m->denied, o);
		return 0;
	}
	if (m->type == SPAWN_EXITED && n == sizeof(m->exited)) {
		o->exited = m->exited;
		o->has_exited = true;
		return 1;
	}
	err_set_id(err, ERRID_SANDBOX_SPAWNER, "a message of %zd bytes, type %u", n,
		   m->type);
	return -1;
}

/* One message of the keeper. Returns 1 when it was the last, 0 for more, -1 at end of
 * file. */
static int take_message(int sock, struct outcome *o, struct terminal *terminal,
			struct err *err)
{
	union message m = {0};
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(sock, &m, sizeof(m), fds, &n_fds, 0);
	int r = -1;

	if (n < 0 && errno == EINTR)
		r = 0;
	else if (is_terminal(&m, n, n_fds)) /* it comes before the job */
		r = terminal_begin(terminal, fds, err);
	else if (n > 0)
		r = take_report(&m, n, o, err);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	return r;
}

/* The first signal asks with the grace period, a second one ends it at once. */
static void cancel(int sock, unsigned grace_ms, int signal, struct outcome *o)
{
	struct spawn_kill kill_msg = {.type = SPAWN_KILL,
				      .why = SPAWN_END_CANCEL,
				      .grace_ms = o->signal ? 0 : grace_ms};

	o->signal = signal;
	(void)send(sock, &kill_msg, sizeof(kill_msg), MSG_NOSIGNAL);
}

static void on_signal(int signal_fd, int sock, unsigned grace_ms,
		      struct terminal *terminal, struct outcome *o)
{
	struct signalfd_siginfo si;

	if (read(signal_fd, &si, sizeof(si)) != sizeof(si))
		return;
	switch (si.ssi_signo) {
	case SIGWINCH:
		terminal_resize(terminal);
		break;
	case SIGCONT:
		terminal_continue(terminal);
		break;
	case SIGTSTP:
		terminal_suspend(terminal);
		break;
	default:
		cancel(sock, grace_ms, (int)si.ssi_signo, o);
	}
}

static int follow(const struct sbx_spec *spec, struct keeper *k, int signal_fd,
		  struct terminal *terminal, struct outcome *o, struct err *err)
{
	for (;;) {
		struct pollfd p[] = {{.fd = k->sock, .events = POLLIN},
				     {.fd = signal_fd, .events = POLLIN},
				     {.fd = terminal->sock}}; /* its end */
		int r;

		if (poll(p, ARRAY_SIZE(p), -1) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, "poll");
		}
		if (p[1].revents)
			on_signal(signal_fd, k->sock, spec->grace_ms, terminal, o);
		if (p[2].revents)
			terminal_lost(terminal);
		if (spec->tty && terminal->sock < 0 && !o->signal)
			cancel(k->sock, spec->grace_ms, SIGHUP, o);
		if (!p[0].revents)
			continue;
		r = take_message(k->sock, o, terminal, err);
		if (r != 0)
			return err_is_set(err) ? -1 : 0;
	}
}

/* With --tty also those of the terminal that is lent. */
static int catch_signals(bool tty, struct err *err)
{
	static const int always[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		(void)sigaddset(&set, always[i]);
	if (tty)
		person_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (tty)
		(void)sigaddset(&set, SIGTTOU);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		fd_close(&fd);
		return err_sys(err, "block signals");
	}
	return fd < 0 ? err_sys(err, "signalfd") : fd;
}

static int start(struct sbx_birth *birth, struct sbx_spec *spec,
		 struct terminal *terminal, struct keeper *k, struct err *err)
{
	static struct sbx_terminal like;

	if (root_open_workspace(spec, err) < 0)
		return -1;
	if (spec->tty) {
		if (terminal_lend(terminal, &like, err) < 0)
			return -1;
		birth->terminal = &like;
	}
	return keeper_start(birth, k, err);
}

static void refused_at_start(const struct err *err, struct outcome *o)
{
	(void)snprintf(o->refused.error_code, sizeof(o->refused.error_code), "%s",
		       err_text(err));
	(void)snprintf(o->refused.stage, sizeof(o->refused.stage), "start");
	(void)snprintf(o->refused.text, sizeof(o->refused.text), "%.*s",
		       SPAWN_TEXT_MAX - 1, err->msg);
	o->has_refused = true;
}

static int run(struct sbx_spec *spec, struct terminal *terminal)
{
	struct err err = ERR_INIT;
	cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup_close int meminfo_fd = meminfo_open(&err);
	struct sbx_birth birth = {.spec = spec,
				  .stdio = {0, 1, 2},
				  .null_fd = null_fd,
				  .meminfo_fd = meminfo_fd,
				  .workspace = -1,
				  .rules = {.fd = -1}};
	static struct outcome o;
	struct keeper k;
	cleanup_close int signal_fd = -1;
	int r = 0;

	spec->tell_absent = spec->explain;
	if (null_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
		err_sys(&err, null_fd < 0 ? "open /dev/null" : "subreaper");
		outcome_complain(&err);
		return EXIT_SETUP;
	}
	signal_fd = catch_signals(spec->tty, &err);
	if (signal_fd < 0 || meminfo_fd < 0 ||
	    start(&birth, spec, terminal, &k, &err) < 0) {
		refused_at_start(&err, &o);
	} else {
		r = follow(spec, &k, signal_fd, terminal, &o, &err);
		keeper_done(&k, !o.has_exited && !o.has_refused);
		limits_sweep_all();
	}
	o.is_cut = !terminal_end(terminal, signal_fd);
	if (spec->tty)
		outcome_bound(&o, o.is_cut ? 1 : RELAY_STALL_SEC);
	if (r < 0)
		outcome_complain(&err);
	outcome_print(&o, spec);
	return outcome_exit_code(&o);
}

static const char *option_value(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i++)
		if (str_eq(argv[i], name))
			return argv[i + 1];
	return NULL;
}

/* --serve FD --jobs DIR [--cgroup DIR] [--tools DIR] [--grade full|floor] [--pool N], in
 * any order, nothing else. */
static int serve(int argc, char **argv)
{
	static const char *const known[] = {"--serve", "--jobs", "--cgroup",
					    "--grade", "--pool", "--tools"};
	struct serve_options o = {.jobs_dir = option_value(argc, argv, "--jobs"),
				  .cgroup = option_value(argc, argv, "--cgroup"),
				  .tools = option_value(argc, argv, "--tools"),
				  .grade = GRADE_FULL};
	const char *fd_text = option_value(argc, argv, "--serve");
	const char *grade_text = option_value(argc, argv, "--grade");
	const char *pool_text = option_value(argc, argv, "--pool");
	struct err err = ERR_INIT;
	uint64_t fd = 0, pool = 0;

	for (int i = 1; i < argc; i += 2) {
		size_t k = 0;

		while (k < ARRAY_SIZE(known) && !str_eq(argv[i], known[k]))
			k++;
		if (k == ARRAY_SIZE(known) || i + 1 >= argc)
			err_set_id(&err, ERRID_CORE_USAGE,
				   "--serve does not take '%.40s'", argv[i]);
	}
	if (!err_is_set(&err) && (!fd_text || !o.jobs_dir || o.jobs_dir[0] != '/'))
		err_set_id(&err, ERRID_CORE_USAGE, "--serve FD --jobs /DIR");
	if (!err_is_set(&err) && grade_text && !sbx_grade_from_name(grade_text, &o.grade))
		err_set_id(&err, ERRID_CORE_USAGE, "--grade: full or floor");
	if (err_is_set(&err) || parse_u64(fd_text, 3, 1 << 20, &fd, &err) < 0 ||
	    (pool_text && parse_u64(pool_text, 0, SPAWN_JOBS_MAX, &pool, &err) < 0)) {
		outcome_complain(&err);
		return EXIT_USAGE;
	}
	o.fd = (int)fd;
	o.pool = (unsigned)pool;
	return serve_main(&o);
}

/* Who reads what a job writes (relay.h) is a copy of us, and has no use for the caller's. */
static void forget_environment(char **environment)
{
	for (char **e = environment; *e; e++)
		explicit_bzero(*e, strlen(*e));
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct terminal terminal = TERMINAL_NONE;
	struct sbx_spec spec;
	int code;

	if (fs_fill_stdio(&err) < 0)
		return EXIT_OWN_ERROR;
	if (argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"))) {
		(void)fputs(usage, stdout);
		return end_print();
	}
	if (argc == 2 && str_eq(argv[1], "--version")) {
		(void)puts("lych-sandbox " LYCH_VERSION);
		return end_print();
	}
	if (getuid() == 0 || geteuid() == 0 || getegid() != getgid() ||
	    geteuid() != getuid()) {
		err_set_id(&err, ERRID_CORE_ROOT, "uid %u, euid %u", getuid(), geteuid());
		outcome_complain(&err);
		return EXIT_SETUP;
	}
	ns_default_signals();
	if (keyring_leave_session(&err) < 0) {
		outcome_complain(&err);
		return EXIT_SETUP;
	}
	if (argc > 1 && str_eq(argv[1], "--serve"))
		return serve(argc, argv);
	if (sbx_spec_parse(argc, argv, &spec, &err) < 0)
		return refuse_options(argc, argv, &err);
	if (home_check(&spec, &err) < 0 ||
	    (spec.tty && terminal_open(&terminal, &err) < 0)) {
		sbx_spec_done(&spec);
		return refuse_options(argc, argv, &err);
	}
	if (spec.tty)
		forget_environment(argv + argc + 1);
	code = run(&spec, &terminal);
	sbx_spec_done(&spec);
	return code;
}
