/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See proc.h.
 */
#include "cli/base/proc.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

#define PROC_TEXT_MAX 65536
#define PROC_OUTPUT_MAX ((size_t)256 << 10)

static bool env_is_kept(const char *entry)
{
	static const char *const kept[] = {"HOME=",	     "XDG_RUNTIME_DIR=",
					   "XDG_DATA_HOME=", "XDG_CONFIG_HOME=",
					   "LYCHGATE_DATA=", "DBUS_SESSION_BUS_ADDRESS="};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (str_starts(entry, kept[i]))
			return true;
#ifdef LYCH_TEST_BUILD
	if (str_starts(entry, "LYCH_TEST_") || str_starts(entry, "ASAN_OPTIONS=") ||
	    str_starts(entry, "UBSAN_OPTIONS=") || str_starts(entry, "LSAN_OPTIONS="))
		return true;
#endif
	return false;
}

char *proc_text(pid_t pid, const char *name, size_t *ret_len)
{
	cleanup_free char *path = xasprintf("/proc/%d/%s", pid, name);
	struct err ignored = ERR_INIT;
	char *text = NULL;
	size_t len = 0;

	if (fs_read_file(AT_FDCWD, path, PROC_TEXT_MAX, &text, &len, &ignored) < 0)
		return NULL;
	if (ret_len)
		*ret_len = len;
	return text;
}

char *proc_children(pid_t pid)
{
	cleanup_free char *name = xasprintf("task/%d/children", pid);

	return proc_text(pid, name, NULL);
}

char **proc_env_of_daemons(bool try_agent)
{
	const char *agent = try_agent ? getenv("SSH_AUTH_SOCK") : NULL;
	size_t n = 0;
	char **env;

	for (char **e = environ; e && *e; e++)
		n += env_is_kept(*e);
	env = xcalloc(n + 4, sizeof(*env));
	n = 0;
	env[n++] = xstrdup("PATH=/usr/local/bin:/usr/bin:/bin");
	env[n++] = xstrdup("LANG=C.UTF-8");
	for (char **e = environ; e && *e; e++)
		if (env_is_kept(*e))
			env[n++] = xstrdup(*e);
	if (agent)
		env[n++] = xasprintf("SSH_AUTH_SOCK=%s", agent);
	return env;
}

char **proc_env(void)
{
	return proc_env_of_daemons(false);
}

void proc_env_free(char **env)
{
	for (char **e = env; e && *e; e++)
		free(*e);
	free(env);
}

static int to_fd(int from, int want, int flags)
{
	if (from < 0) {
		from = open("/dev/null", flags | O_CLOEXEC);
		if (from < 0)
			return -1;
	}
	if (from == want)
		return fcntl(want, F_SETFD, 0);
	return dup3(from, want, 0) < 0 ? -1 : 0;
}

/* Everything the parent gave is lifted above the range that is about to be overwritten.
 */
static int lift(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 20);
}

NORETURN static void child_main(const struct proc_spec *s, int status_fd, pid_t parent)
{
	int in = lift(s->in), out = lift(s->out), error = lift(s->err),
	    ready = lift(s->ready_fd), dials = lift(s->dial_fd > 0 ? s->dial_fd : -1);
	int status = lift(status_fd);
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int e;

	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)umask(077);
	(void)setsid(); /* a terminal's signals are for the starter alone */
	if (s->death_signal &&
	    (prctl(PR_SET_PDEATHSIG, s->death_signal) < 0 || getppid() != parent))
		goto fail;
	if (s->data_max_bytes && proc_limit_data(s->data_max_bytes) < 0)
		goto fail;
	if (chdir(s->cwd ? s->cwd : "/") < 0)
		goto fail;
	if (to_fd(in, 0, O_RDONLY) < 0 || to_fd(out, 1, O_WRONLY) < 0 ||
	    to_fd(error, 2, O_WRONLY) < 0)
		goto fail;
	if (ready >= 0 && to_fd(ready, PROC_READY_FD, 0) < 0)
		goto fail;
	if (ready >= 0 && dials >= 0 && to_fd(dials, PROC_DIAL_FD, 0) < 0)
		goto fail;
	/* all above the ready pipe closes at exec; the status pipe tells how that went */
	if (syscall(SYS_close_range,
		    ready < 0	? 3
		    : dials < 0 ? PROC_READY_FD + 1
				: PROC_DIAL_FD + 1,
		    ~0U, 4U) < 0)
		goto fail;
	execve(s->argv[0], (char *const *)(uintptr_t)s->argv,
	       (char *const *)(uintptr_t)s->env);
fail:
	e = errno;
	(void)!write(status, &e, sizeof(e));
	_exit(127);
}

int proc_limit_data(uint64_t max)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_DATA, &r) < 0)
		return -1;
	if (r.rlim_max == RLIM_INFINITY || r.rlim_max > max)
		r.rlim_max = max;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_DATA, &r);
}

int proc_start(const struct proc_spec *spec, pid_t *ret, struct err *err)
{
	int p[2], e = 0;
	pid_t parent = getpid(), pid;
	ssize_t n;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	pid = fork();
	if (pid == 0)
		child_main(spec, p[1], parent);
	int saved = errno;

	(void)close(p[1]);
	if (pid < 0) {
		(void)close(p[0]);
		errno = saved;
		return err_sys(err, "fork");
	}
	do
		n = read(p[0], &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	(void)close(p[0]);
	if (n == (ssize_t)sizeof(e)) {
		(void)waitpid(pid, NULL, 0);
		errno = e;
		return err_sys_id(err, ERRID_START_TOOL, "exec %s", spec->argv[0]);
	}
	*ret = pid;
	return 0;
}

/* Our own daemons say why in their last line, and may quote PostgreSQL before. */
static bool is_telling(const char *line, size_t len)
{
	static const char *const words[] = {"FATAL: ", "PANIC: ", "initdb: error: "};

	if (memmem(line, len, "unit=", strlen("unit=")))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(line, len, words[i], strlen(words[i])))
			return true;
	return false;
}

const char *proc_why(char *text)
{
	size_t n = strlen(text);
	char *line;

	while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = '\0';
	for (line = text; *line; line += n + (line[n] == '\n')) {
		n = strcspn(line, "\n");
		if (!is_telling(line, n))
			continue;
		line[n] = '\0';
		return line;
	}
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

bool proc_says_disk_full(const char *text)
{
	/* the second is PostgreSQL's, of a write that was cut short */
	return strstr(text, "No space left on device") ||
	       strstr(text, "Check free disk space");
}

/* The child's ends of both pipes are in the child only once this returns. */
static int collect(int in, int out, const char *input, usec_t deadline, struct buf *b,
		   struct err *err)
{
	size_t left = input ? strlen(input) : 0;
	cleanup_close int wfd = in;
	cleanup_close int rfd = out;

	if (!left)
		fd_close(&wfd);
	for (;;) {
		struct pollfd p[2] = {{.fd = rfd, .events = POLLIN},
				      {.fd = wfd, .events = POLLOUT}};
		usec_t now = clock_boot_usec();
		char chunk[4096];

		if (now >= deadline)
			return err_set_id(err, ERRID_CORE_TIMEOUT, "no end in time");
		if (poll(p, 2, (int)((deadline - now) / USEC_PER_MSEC) + 1) < 0 &&
		    errno != EINTR)
			return err_sys(err, "poll");
		if (wfd >= 0 && p[1].revents) {
			ssize_t n = write(wfd, input, left);

			if (n > 0) {
				input += n;
				left -= (size_t)n;
			}
			if ((n < 0 && errno != EAGAIN && errno != EINTR) || !left)
				fd_close(&wfd);
		}
		if (p[0].revents) {
			ssize_t n = read(rfd, chunk, sizeof(chunk));

			if (n == 0)
				return 0;
			if (n > 0)
				buf_add(b, chunk, (size_t)n);
		}
	}
}

/* To its end, or to the deadline; `said` and `told` are our ends of its pipes. */
static int attend(pid_t pid, const char *name, int told, int said, const char *input,
		  usec_t deadline, char **ret_text, int *ret_status, struct err *err)
{
	cleanup_buf struct buf b = {0};
	int r;

	buf_init(&b, PROC_OUTPUT_MAX);
	r = collect(told, said, input, deadline, &b, err);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return err_wrap(err, "%s", name);
	*ret_text = xstrdup(buf_str(&b));
	return 0;
}

int proc_output(const char *const *argv, const char *const *env, const char *input,
		usec_t timeout_usec, char **ret_output, int *ret_status, struct err *err)
{
	usec_t deadline = clock_boot_usec() + timeout_usec;
	int in[2], out[2];
	pid_t pid = -1;

	if (pipe2(in, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	if (pipe2(out, O_CLOEXEC) < 0) {
		(void)close(in[0]);
		(void)close(in[1]);
		return err_sys(err, "pipe");
	}
	struct proc_spec s = {
		.argv = argv,
		.env = env,
		.in = in[0],
		.out = out[1],
		.err = out[1],
		.ready_fd = -1,
		.death_signal = SIGKILL,
	};
	int r = proc_start(&s, &pid, err);

	(void)close(in[0]);
	(void)close(out[1]);
	if (r < 0) {
		(void)close(in[1]);
		(void)close(out[0]);
		return -1;
	}
	return attend(pid, argv[0], in[1], out[0], input, deadline, ret_output,
		      ret_status, err);
}

int proc_pipe(const char *const *argv, const char *const *env, int in, int out,
	      usec_t timeout_usec, char **ret_said, int *ret_status, struct err *err)
{
	usec_t deadline = clock_boot_usec() + timeout_usec;
	int said[2];
	pid_t pid = -1;

	if (pipe2(said, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	struct proc_spec s = {
		.argv = argv,
		.env = env,
		.in = in,
		.out = out,
		.err = said[1],
		.ready_fd = -1,
		.death_signal = SIGKILL,
	};
	int r = proc_start(&s, &pid, err);

	(void)close(said[1]);
	if (r < 0) {
		(void)close(said[0]);
		return -1;
	}
	return attend(pid, argv[0], -1, said[0], NULL, deadline, ret_said, ret_status,
		      err);
}

int proc_run(const char *const *argv, const char *const *env, const char *input,
	     usec_t timeout_usec, enum err_id id, char **ret_output, struct err *err)
{
	cleanup_free char *text = NULL;
	int status = 0;

	if (proc_output(argv, env, input, timeout_usec, &text, &status, err) < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set_id(
			err, proc_says_disk_full(text) ? ERRID_CORE_DISK_FULL : id,
			"%s ended with %s %d: %s", argv[0],
			WIFEXITED(status) ? "exit code" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
			proc_why(text));
	if (ret_output)
		*ret_output = TAKE_PTR(text);
	return 0;
}
