/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal whose user starts the sandbox: its slave side is the job's standard input.
 * The outside opens it and leaves the name; run_on_terminal() becomes its user.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

static int master = -1;

static int open_terminal(void)
{
	const char *name;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -1;
	name = ptsname(master);
	if (!name)
		return -1;
	target_set("pts", "%s", name);
	return 0;
}

/* Nothing was typed for its user: a reader of the slave finds nothing. */
static int nothing_typed(void)
{
	int fd = open(ptsname(master), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct termios raw;
	char c;
	ssize_t n;

	if (fd < 0 || tcgetattr(fd, &raw) < 0)
		return 0;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSANOW, &raw) < 0)
		return 0;
	n = read(fd, &c, 1);
	(void)close(fd);
	return n < 0 && errno == EAGAIN;
}

int run_on_terminal(const char *pts, char **argv)
{
	int fd, status = 0;
	pid_t pid;

	if (setsid() < 0)
		return 2;
	fd = open(pts, O_RDWR); /* becomes the controlling terminal */
	if (fd < 0 || dup2(fd, 0) < 0)
		return 2;
	if (fd > 0)
		(void)close(fd);
	pid = fork();
	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || WIFSTOPPED(status)) {
		(void)fprintf(stderr, "the caller was stopped\n");
		return 2;
	}
	if (tcgetpgrp(0) != getpgrp()) {
		(void)fprintf(stderr, "the caller lost its terminal\n");
		return 2;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static const struct victim all[] = {
	{"nothing was typed at the caller's terminal", open_terminal, nothing_typed,
	 NULL},
};
const struct victims victims_terminal = {all, sizeof(all) / sizeof(all[0])};
