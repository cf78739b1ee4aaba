/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych doctor interrupted: who does the work holds victims, listeners and sandboxes, and
 * waits for each in turn. So a child does it, and this process only waits: for its end, or
 * for a signal. Then it kills the child, with which everything below goes (each has the
 * death signal, sandboxes end with who started them), and removes what it had made.
 */
#include "cli/doctor/doctor.h"

#include "cli/doctor/victims.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(pid_t parent, const sigset_t *mask, const char *dir,
		  int (*run)(const char *dir, void *arg), void *arg)
{
	int code;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	code = run(dir, arg);
	(void)fflush(NULL);
	_exit(code);
}

/* The signal that is to end us; 0: the child has ended by itself. */
static int wait_for(pid_t pid, const sigset_t *set, int *ret_status)
{
	for (;;) {
		int signo = sigwaitinfo(set, NULL);

		if (signo < 0 && errno == EINTR)
			continue;
		if (signo != SIGCHLD)
			return signo < 0 ? SIGTERM : signo;
		if (waitpid(pid, ret_status, WNOHANG) == pid)
			return 0;
	}
}

int doctor_guard(const char *dir, int (*run)(const char *dir, void *arg), void *arg)
{
	static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
	pid_t parent = getpid(), pid;
	int status = 0, signo;
	sigset_t set, before;

	/* who started us may have asked not to hear of children */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		(void)sigaddset(&set, watched[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(parent, &before, dir, run, arg);
	if (pid < 0) {
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		return -1;
	}
	signo = wait_for(pid, &set, &status);
	if (signo) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
		(void)fprintf(stderr,
			      "lych: interrupted: what it had made is removed, and "
			      "nothing is proved\n");
	} else if (WIFSIGNALED(status)) {
		signo = WTERMSIG(status);
	}
	victims_remove(dir);
	if (!signo)
		return WEXITSTATUS(status);
	/* as any program that a signal ended */
	(void)signal(signo, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)raise(signo);
	return 128 + signo;
}
