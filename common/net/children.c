/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See children.h.
 */
#include "common/net/children.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
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
