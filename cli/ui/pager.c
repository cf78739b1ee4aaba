/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See pager.h. The pager is the child, so that the shell waits for it as it waits for lych. An
 * interrupt is for the pager, which shares the terminal.
 */
#include "cli/ui/pager.h"

#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL "/bin/sh"
#define DEFAULT "less -FRX"
#define LEFT_EARLY (128 + SIGPIPE)

static pid_t pager;

static bool is_in_path(const char *name)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t len = strcspn(path, ":");
		cleanup_free char *file = xasprintf("%.*s/%s", (int)len, path, name);

		if (len && access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* NULL: none. */
static const char *choose(void)
{
	const char *wanted = getenv("PAGER");

	if (!render_has_cursor(STDOUT_FILENO))
		return NULL;
	if (!wanted)
		return is_in_path("less") ? DEFAULT : NULL;
	/* of blanks alone a shell makes a command that reads nothing and succeeds */
	return !wanted[strspn(wanted, " \t\n")] || str_eq(wanted, "cat") ? NULL : wanted;
}

/* The environment of the person, and LESS where it says nothing. Caller frees, not the strings. */
static char **environment(char *less)
{
	size_t n = 0;
	char **env;

	while (environ[n])
		n++;
	env = xcalloc(n + 2, sizeof(*env));
	memcpy(env, environ, n * sizeof(*env));
	if (!getenv("LESS"))
		env[n] = less;
	return env;
}

/* A shell, since PAGER may have arguments: it is the person's own line for it. */
NORETURN static void pager_main(const char *command, int in)
{
	char shell[] = "sh", option[] = "-c", less[] = "LESS=FRX";
	cleanup_free char *line = xstrdup(command);
	char *argv[] = {shell, option, line, NULL};
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	(void)sigaction(SIGPIPE, &dfl, NULL);
	(void)sigaction(SIGXFSZ, &dfl, NULL);
	if (dup2(in, STDIN_FILENO) >= 0)
		(void)execve(SHELL, argv, environment(less));
	_exit(127);
}

int pager_begin(struct err *err)
{
	const char *command = choose();
	cleanup_close int from = -1;
	cleanup_close int to = -1;
	int p[2];

	if (!command || pager)
		return 0;
	if (fflush(stdout) != 0 || pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, "pager");
	from = p[0];
	to = p[1];
	pager = fork();
	if (pager == 0)
		pager_main(command, from);
	if (pager < 0) {
		pager = 0;
		return err_sys(err, "fork");
	}
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	return render_page(to, err);
}

int pager_end(int code, struct err *err)
{
	const char *wanted = getenv("PAGER");
	int status = 0;

	if (!pager)
		return code;
	(void)fflush(stdout);
	render_unpage();
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	pager = 0;
	if (WIFEXITED(status) &&
	    (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
		return err_set_id(
			err, ERRID_START_TOOL,
			"the pager, '%s': set PAGER to one that is there, or to "
			"'cat' for none",
			wanted ? wanted : DEFAULT);
	return code == LEFT_EARLY ? 0 : code;
}
