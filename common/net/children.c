/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See children.h.
 */
#include "common/net/children.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int children_begin(const char *process_name, int *ret_fd, struct err *err)
{
	static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
	const struct rlimit no_core = {0, 0};
	sigset_t watched;

	(void)prctl(PR_SET_NAME, process_name);
	/* The maker's end is ours; a signal to its whole group is for the maker. A write to
	 * who is gone is an error. */
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (signal(ends[i], SIG_IGN) == SIG_ERR)
			return err_sys(err, "ignore a signal");
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || sigemptyset(&watched) < 0 ||
	    sigaddset(&watched, SIGCHLD) < 0 ||
	    sigprocmask(SIG_SETMASK, &watched, NULL) < 0)
		return err_sys(err, "watch the children");
	*ret_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (*ret_fd < 0)
		return err_sys(err, "watch the children");
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_sys(err, "forbid core files");
	return 0;
}

void children_heard(int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) > 0)
		continue;
}

int child_begin(pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
			       sigprocmask(SIG_SETMASK, &none, NULL) < 0
		       ? -1
		       : 0;
}

void children_keep(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low < 3)
		low = 2;
	if (low > 3)
		(void)close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		(void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	(void)close_range((unsigned)high + 1, ~0U, 0);
}

int children_fork(int (*child)(int end, void *arg), void *arg)
{
	cleanup_close int ours = -1;
	pid_t self = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	ours = pair[0];
	pid = fork();
	if (pid == 0) {
		if (child_begin(self) < 0)
			_exit(EXIT_FAILURE);
		children_keep(pair[1], -1);
		_exit(child(pair[1], arg));
	}
	fd_close(&pair[1]);
	return pid < 0 ? -1 : TAKE_FD(ours);
}

static void reap(int signals, const char *what)
{
	int status;
	pid_t pid;

	children_heard(signals);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			log_warn("%s %d ended with status %#x", what, (int)pid,
				 (unsigned)status);
}

int children_serve(int control, int signals, const char *what,
		   int (*one_more)(int control, void *arg), void *arg)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = control, .events = POLLIN},
				       {.fd = signals, .events = POLLIN}};
		char word;
		ssize_t n;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return EXIT_FAILURE;
		if (fds[1].revents)
			reap(signals, what);
		if (!fds[0].revents)
			continue;
		n = recv(control, &word, sizeof(word), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n != 1)
			return n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		if (one_more(control, arg) < 0)
			return EXIT_FAILURE;
	}
}
