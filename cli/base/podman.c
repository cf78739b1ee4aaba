/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See podman.h.
 */
#include "cli/base/podman.h"

#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RUN_TIMEOUT (180 * USEC_PER_SEC)
#define ARGS_MAX 128
#define SECRETS_MAX 512
/* Warnings share the output with what is asked for: our lines begin with this. */
#define LINE_MARK "lych-secret "

char *podman_find_program(const char *name)
{
	const char *path = getenv("PATH");

	if (!path || !path[0])
		path = "/usr/local/bin:/usr/bin:/bin";
	for (const char *at = path; *at;) {
		size_t n = strcspn(at, ":");
		cleanup_free char *file = xasprintf("%.*s/%s", (int)n, at, name);
		struct stat st;

		/* A relative entry would make the choice depend on where we stand. */
		if (at[0] == '/' && stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(file, X_OK) == 0)
			return TAKE_PTR(file);
		at += n + (at[n] == ':');
	}
	return NULL;
}

static int run(const struct podman *p, const char *program, const char *first,
	       const char *const *args, char **ret_output, struct err *err)
{
	const char *argv[ARGS_MAX];
	size_t n = 0;

	argv[n++] = program;
	if (first)
		argv[n++] = first;
	for (; *args; args++) {
		if (n + 1 >= ARGS_MAX)
			return err_set(err, ERR_INTERNAL, "too many arguments");
		argv[n++] = *args;
	}
	argv[n] = NULL;
	return proc_run(argv, (const char *const *)p->env, NULL, RUN_TIMEOUT,
			ERRID_BIND_PODMAN, ret_output, err);
}

int podman_run(const struct podman *p, const char *const *args, char **ret_output,
	       struct err *err)
{
	return run(p, p->program, NULL, args, ret_output, err);
}

int podman_systemctl(const struct podman *p, const char *const *args, char **ret_output,
		     struct err *err)
{
	if (!p->systemctl)
		return err_set_id(err, ERRID_BIND_PODMAN, "there is no systemctl");
	return run(p, p->systemctl, "--user", args, ret_output, err);
}

static int read_version(struct podman *p, struct err *err)
{
	static const char *const args[] = {"--version", NULL};
	static const char mark[] = "podman version ";
	cleanup_free char *out = NULL;
	const char *at;

	if (podman_run(p, args, &out, err) < 0)
		return -1;
	at = strstr(out, mark);
	if (!at || sscanf(at + strlen(mark), "%u.%u", &p->major, &p->minor) != 2)
		return err_set_id(err, ERRID_BIND_PODMAN, "%s tells no version",
				  p->program);
	at += strlen(mark);
	(void)snprintf(p->version, sizeof(p->version), "%.*s",
		       (int)strspn(at, "0123456789.abcdefghijklmnopqrstuvwxyz-+~"), at);
	return 0;
}

/* What this Podman can do, asked and not concluded from its number. */
static void read_abilities(struct podman *p)
{
	static const char *const args[] = {"quadlet", "install", "--help", NULL};
	cleanup_free char *out = NULL;
	struct err ignored = ERR_INIT;

	if (p->major == 5 && p->minor < 6)
		return;
	p->installs = podman_run(p, args, &out, &ignored) == 0;
	p->replaces = p->installs && strstr(out, "--replace");
}

int podman_open(struct podman *p, struct err *err)
{
	*p = (struct podman){.env = proc_env()};
	p->program = podman_find_program("podman");
	p->systemctl = podman_find_program("systemctl");
	if (!p->program)
		return err_set_id(err, ERRID_BIND_PODMAN, "there is no podman in $PATH");
	if (read_version(p, err) < 0)
		return -1;
	if (p->major < 5 || (p->major == 5 && p->minor < 4))
		return err_set_id(err, ERRID_BIND_PODMAN, "this is Podman %s",
				  p->version);
	read_abilities(p);
	return 0;
}

void podman_done(struct podman *p)
{
	free(p->program);
	free(p->systemctl);
	proc_env_free(p->env);
	*p = (struct podman){0};
}

/* ---- secrets ---------------------------------------------------------------- */

/* "lych-secret NAME ID" */
static bool parse_secret(const char *line, size_t len, struct podman_secret *ret)
{
	const char *name = line + strlen(LINE_MARK), *end = line + len, *blank;

	if (!str_starts(line, LINE_MARK) || name >= end)
		return false;
	blank = memchr(name, ' ', (size_t)(end - name));
	if (!blank)
		return false;
	return str_fmt(ret->name, sizeof(ret->name), "%.*s", (int)(blank - name), name) ==
		       0 &&
	       str_fmt(ret->id, sizeof(ret->id), "%.*s", (int)(end - blank - 1),
		       blank + 1) == 0;
}

int podman_secrets(const struct podman *p, struct podman_secret **ret, size_t *ret_n,
		   struct err *err)
{
	static const char format[] = LINE_MARK "{{.Name}} {{.ID}}";
	static const char *const args[] = {"secret", "ls", "--format", format, NULL};
	cleanup_free struct podman_secret *list = NULL;
	cleanup_free char *out = NULL;
	size_t n = 0;

	if (podman_run(p, args, &out, err) < 0)
		return -1;
	for (const char *at = out; *at;) {
		size_t len = strcspn(at, "\n");
		struct podman_secret s;

		if (n < SECRETS_MAX && parse_secret(at, len, &s)) {
			list = xreallocarray(list, n + 1, sizeof(*list));
			list[n++] = s;
		}
		at += len + (at[len] == '\n');
	}
	*ret = TAKE_PTR(list);
	*ret_n = n;
	return 0;
}

/* Reads fd to its end. */
static int digest_fd(int fd, uint8_t ret[SHA256_SIZE], bool *ret_empty)
{
	cleanup_sha256 struct sha256 *h = sha256_new();
	unsigned char chunk[4096];
	ssize_t n;

	*ret_empty = true;
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		sha256_add(h, chunk, (size_t)n);
		*ret_empty = *ret_empty && n == 1 && chunk[0] == '\n';
	}
	explicit_bzero(chunk, sizeof(chunk));
	sha256_final(h, ret);
	return n < 0 ? -1 : 0;
}

int podman_secret_digest(const struct podman *p, const char *name,
			 uint8_t ret[SHA256_SIZE], struct err *err)
{
	const char *const argv[] = {p->program,	    "secret",	"inspect",
				    "--showsecret", "--format", "{{.SecretData}}",
				    name,	    NULL};
	bool empty = true;
	int out[2], status = 0;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	struct proc_spec s = {
		.argv = argv,
		.env = (const char *const *)p->env,
		.in = -1,
		.out = out[1],
		.err = -1,
		.ready_fd = -1,
		.death_signal = SIGKILL,
	};
	int r = proc_start(&s, &pid, err);

	(void)close(out[1]);
	if (r == 0 && digest_fd(out[0], ret, &empty) < 0)
		r = err_sys(err, "read");
	(void)close(out[0]);
	if (r < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set_id(err, ERRID_BIND_NO_SECRET,
				  "%s cannot be read by 'podman secret inspect'", name);
	if (empty)
		return err_set_id(err, ERRID_BIND_NO_SECRET, "%s is empty", name);
	return 0;
}
