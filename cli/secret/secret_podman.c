/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Podman's secrets, through its own command. A value goes in on stdin and comes out on
 * stdout of `inspect --showsecret`, both through memory that has no name: never argv, the
 * environment or a file.
 */
#include "cli/secret/secret.h"

#include "cli/base/podman.h"
#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PODMAN_TIMEOUT (60 * USEC_PER_SEC)
#define SYSTEMCTL_TIMEOUT (360 * USEC_PER_SEC)
#define LIST_MAX ((size_t)256 << 10)

/* proc_env, and where systemd put the credential that opens our driver's store. */
static char **podman_env(void)
{
	const char *credentials = getenv("CREDENTIALS_DIRECTORY");
	char **env = proc_env();
	size_t n = 0;

	while (env[n])
		n++;
	env = xreallocarray(env, n + 2, sizeof(*env));
	env[n] = credentials ? xasprintf("CREDENTIALS_DIRECTORY=%s", credentials) : NULL;
	env[n + 1] = NULL;
	return env;
}

int secret_podman_open(struct secret_store *s, struct err *err)
{
	s->where = xstrdup("podman secret");
	s->podman = podman_find_program("podman");
	s->systemctl = podman_find_program("systemctl");
	s->env = podman_env();
	if (!s->podman)
		return err_set_id(
			err, ERRID_START_TOOL,
			"there is no podman in PATH: install the package podman");
	return 0;
}

void secret_store_close(struct secret_store *s)
{
	free(s->where);
	free(s->podman);
	free(s->systemctl);
	proc_env_free(s->env);
	fd_close(&s->dirfd);
	s->where = s->podman = s->systemctl = NULL;
	s->env = NULL;
}

/* ---- running it ------------------------------------------------------------ */

static int nameless(struct err *err)
{
	int fd = memfd_create("lych-secret", MFD_CLOEXEC);

	return fd < 0 ? err_sys(err, "memfd_create") : fd;
}

static int wait_for(pid_t pid, usec_t timeout, int *ret_status, struct err *err)
{
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int r = 0;

	if (pidfd < 0 || poll(&p, 1, (int)(timeout / USEC_PER_MSEC)) <= 0) {
		(void)kill(pid, SIGKILL);
		r = err_set_id(err, ERRID_CORE_TIMEOUT, "no end in time");
	}
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return r;
}

/* Our driver says more than Podman does of it. */
static void last_words(int fd, char *out, size_t size)
{
	static const char mark[] = "lych-secret-driver: ";
	char text[4096], *driver;
	const char *code; /* it begins the second line */
	size_t len;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	driver = strstr(text, mark);
	if (driver) {
		driver += strlen(mark);
		len = strcspn(driver, "\n");
		code = driver + len + strspn(driver + len, "\n ");
		(void)snprintf(out, size, "%.*s: %.*s", (int)strcspn(code, " \n"), code,
			       (int)len, driver);
		return;
	}
	(void)snprintf(out, size, "%.300s", proc_why(text));
}

/* *ret_out: what it wrote to stdout, at most max bytes, NUL-terminated; the caller wipes
 * it. NULL: not wanted. */
static int run(const struct secret_store *s, const char *const *argv, const void *in,
	       size_t in_len, usec_t timeout, char *ret_out, size_t max, struct err *err)
{
	cleanup_close int input = nameless(err);
	cleanup_close int output = input < 0 ? -1 : nameless(err);
	cleanup_close int words = output < 0 ? -1 : nameless(err);
	char why[320];
	int status = 0;
	ssize_t n;
	pid_t pid;

	if (words < 0)
		return -1;
	if (in_len && fs_write_all(input, in, in_len, err) < 0)
		return -1;
	if (lseek(input, 0, SEEK_SET) < 0)
		return err_sys(err, "lseek");
	struct proc_spec spec = {
		.argv = argv,
		.env = (const char *const *)s->env,
		.in = input,
		.out = output,
		.err = words,
		.ready_fd = -1,
		.death_signal = SIGKILL,
	};
	if (proc_start(&spec, &pid, err) < 0 || wait_for(pid, timeout, &status, err) < 0)
		return err_wrap(err, "%s", argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		last_words(words, why, sizeof(why));
		return err_set_id(
			err, ERRID_SECRET_PODMAN, "%s ended with %s %d: %s", argv[0],
			WIFEXITED(status) ? "exit code" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), why);
	}
	if (!ret_out)
		return 0;
	n = pread(output, ret_out, max + 1, 0);
	if (n < 0)
		return err_sys(err, "read its answer");
	if ((size_t)n > max) {
		explicit_bzero(ret_out, max + 1);
		return err_set_id(err, ERRID_SECRET_PODMAN,
				  "its answer has more than %zu bytes", max);
	}
	ret_out[n] = '\0';
	return (int)n;
}

int secret_systemctl(struct secret_store *s, const char *const *args, struct err *err)
{
	const char *argv[8];
	size_t n = 0;

	if (!s->systemctl)
		return err_set_id(err, ERRID_START_TOOL, "there is no systemctl in PATH");
	argv[n++] = s->systemctl;
	argv[n++] = "--user";
	while (*args && n + 1 < ARRAY_SIZE(argv))
		argv[n++] = *args++;
	argv[n] = NULL;
	return run(s, argv, NULL, 0, SYSTEMCTL_TIMEOUT, NULL, 0, err) < 0 ? -1 : 0;
}

/* ---- the store ------------------------------------------------------------- */

/* A mark, since Podman's warnings can go to stdout too. */
#define LINE_MARK "lych-secret "

static int podman_list(struct secret_store *s,
		       void (*on_name)(const char *name, const char *kind, void *arg),
		       void *arg, struct err *err)
{
	static const char format[] = LINE_MARK "{{.Name}} {{.Driver}}";
	const char *const argv[] = {s->podman, "secret", "ls", "--format", format, NULL};
	cleanup_free char *out = xmalloc(LIST_MAX + 1);

	if (run(s, argv, NULL, 0, PODMAN_TIMEOUT, out, LIST_MAX, err) < 0)
		return -1;
	for (char *line = out, *end; *line; line = end) {
		char *name = line + strlen(LINE_MARK), *kind;

		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (!str_starts(line, LINE_MARK) || !(kind = strchr(name, ' ')))
			continue;
		*kind++ = '\0';
		on_name(name, kind, arg);
	}
	return 0;
}

struct search {
	const char *name;
	bool found;
};

static void find_name(const char *name, const char *kind UNUSED, void *arg)
{
	struct search *f = arg;

	f->found |= str_eq(name, f->name);
}

static int podman_has(struct secret_store *s, const char *name, bool *ret,
		      struct err *err)
{
	struct search f = {.name = name};

	if (podman_list(s, find_name, &f, err) < 0)
		return -1;
	*ret = f.found;
	return 0;
}

static int podman_read(struct secret_store *s, const char *name, struct secret_value *ret,
		       struct err *err)
{
	const char *const argv[] = {s->podman,	    "secret",	"inspect",
				    "--showsecret", "--format", "{{.SecretData}}",
				    name,	    NULL};
	char out[SECRET_VALUE_MAX_BYTES + 3];
	bool has = false;
	int n, r = -1;

	if (podman_has(s, name, &has, err) < 0)
		return -1;
	if (!has)
		return err_set_id(err, ERRID_SECRET_MISSING, "secret '%.80s' is missing",
				  name);
	n = run(s, argv, NULL, 0, PODMAN_TIMEOUT, out, sizeof(out) - 1, err);
	/* one newline is the template's, one more as in a file */
	for (int i = 0; i < 2 && n > 0 && out[n - 1] == '\n'; i++)
		n--;
	if (n == 0 || n > SECRET_VALUE_MAX_BYTES)
		(void)err_set_id(err, ERRID_SECRET_VALUE, "'%.80s' is empty or too long",
				 name);
	else if (n > 0) {
		memcpy(ret->s, out, (size_t)n);
		ret->s[n] = '\0';
		ret->len = (size_t)n;
		r = 0;
	}
	explicit_bzero(out, sizeof(out));
	return r;
}

static int podman_write(struct secret_store *s, const char *name,
			const struct secret_value *v, bool replace, struct err *err)
{
	const char *argv[] = {s->podman, "secret", "create", name, "-", NULL, NULL};
	bool has = false;

	if (podman_has(s, name, &has, err) < 0)
		return -1;
	if (has && !replace)
		return err_set_id(err, ERRID_SECRET_EXISTS, "'%.80s' in Podman", name);
	if (has) {
		argv[3] = "--replace";
		argv[4] = name;
		argv[5] = "-";
	}
	return run(s, argv, v->s, v->len, PODMAN_TIMEOUT, NULL, 0, err) < 0 ? -1 : 0;
}

static int podman_remove(struct secret_store *s, const char *name, struct err *err)
{
	const char *const argv[] = {s->podman, "secret", "rm", name, NULL};
	bool has = false;

	if (podman_has(s, name, &has, err) < 0)
		return -1;
	if (!has)
		return err_set_id(err, ERRID_SECRET_MISSING, "secret '%.80s' is missing",
				  name);
	return run(s, argv, NULL, 0, PODMAN_TIMEOUT, NULL, 0, err) < 0 ? -1 : 0;
}

const struct secret_store_ops secret_podman = {
	.name = "podman",
	.list = podman_list,
	.read = podman_read,
	.write = podman_write,
	.remove = podman_remove,
};
