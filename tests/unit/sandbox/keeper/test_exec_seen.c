/* SPDX-License-Identifier: Apache-2.0 */
/* How the keeper tells an exec from an end (keeper.c, on_status): both close the job's status
 * socket, but who ends lets go of its filter before. The kernel's order, asked of the kernel. */
#include "common/fdpass.h"
#include "sandbox/keeper/notify.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ENDS 300
#define EXECS 30
#define WAIT_MSEC 10000

TestSuite(exec_seen, .timeout = 60);

static NORETURN void be_job(int status_fd, bool execs)
{
	struct err err = ERR_INIT;
	struct sbx_spec spec;
	int listener = -1;

	sbx_spec_init(&spec);
	spec.grade = GRADE_FLOOR;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    seccomp_install(&spec, &listener, &err) < 0 ||
	    notify_hand_over(status_fd, &listener, &err) < 0)
		_exit(1);
	if (execs)
		execl("/bin/sleep", "sleep", "60", NULL);
	for (;;)
		(void)pause();
}

struct job {
	pid_t pid;
	int status, listener;
};

static struct job start(bool execs)
{
	int fds[FDPASS_MAX] = FDPASS_NONE, sv[2];
	struct job j = {.listener = -1};
	unsigned n_fds = 0;
	char said[256];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	j.pid = fork();
	cr_assert_geq(j.pid, 0);
	if (j.pid == 0)
		be_job(sv[1], execs);
	(void)close(sv[1]);
	j.status = sv[0];
	cr_assert_gt(fdpass_recv(sv[0], said, sizeof(said), fds, &n_fds, 0), 0,
		     "the job did not get as far as its filter");
	cr_assert_eq(n_fds, 1u);
	j.listener = fds[0];
	return j;
}

/* As wait_event() does: the socket is asked first. */
static bool end_of_file_is_an_end(const struct job *j)
{
	struct pollfd p[] = {{.fd = j->status, .events = POLLIN},
			     {.fd = j->listener, .events = POLLIN}};

	do
		cr_assert_gt(poll(p, 2, WAIT_MSEC), 0, "neither an exec nor an end");
	while (!p[0].revents);
	return p[1].revents & ~POLLIN;
}

static void finish(struct job *j)
{
	(void)kill(j->pid, SIGKILL);
	cr_assert_eq(waitpid(j->pid, NULL, 0), j->pid);
	(void)close(j->status);
	(void)close(j->listener);
}

Test(exec_seen, who_is_killed_before_its_exec_is_not_taken_for_one_that_executed)
{
	for (int i = 0; i < ENDS; i++) {
		struct job j = start(false);

		cr_assert_eq(kill(j.pid, SIGKILL), 0);
		cr_assert(end_of_file_is_an_end(&j), "round %d", i);
		finish(&j);
	}
}

Test(exec_seen, an_exec_leaves_the_listener_as_it_is)
{
	for (int i = 0; i < EXECS; i++) {
		struct job j = start(true);

		cr_assert_not(end_of_file_is_an_end(&j), "round %d", i);
		finish(&j);
	}
}
