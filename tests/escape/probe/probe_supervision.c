/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts inside on those who watch the job, by their numbers (threat 66). */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IOPRIO_PROCESS 1
#define IOPRIO_IDLE 0x6000

static int guard_attacks_refused(pid_t pid)
{
	struct rlimit l = {1, 1};
	siginfo_t info = {.si_code = SI_QUEUE};
	cpu_set_t one;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), refused = 0;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	refused += kill(pid, SIGSTOP) < 0;
	refused += kill(pid, SIGKILL) < 0;
	refused += syscall(SYS_tkill, pid, SIGKILL) < 0;
	refused += syscall(SYS_tgkill, pid, pid, SIGSTOP) < 0;
	refused += syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info) < 0;
	refused += syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGKILL, &info) < 0;
	refused += fd < 0 || syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0;
	refused += ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0;
	refused += ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0;
	refused += prlimit(pid, RLIMIT_NOFILE, &l, NULL) < 0;
	refused += prlimit(pid, RLIMIT_CPU, &l, NULL) < 0;
	refused += setpriority(PRIO_PROCESS, (id_t)pid, 19) < 0;
	refused += syscall(SYS_ioprio_set, IOPRIO_PROCESS, pid, IOPRIO_IDLE) < 0;
	refused += sched_setaffinity(pid, sizeof(one), &one) < 0;
	refused += sched_setscheduler(pid, SCHED_BATCH, &(struct sched_param){0}) < 0;
	if (fd >= 0)
		(void)close(fd);
	return refused == 15;
}
/* Judged from outside too: tests/escape/guard.sh */
int attack_guard(void)
{
	return guard_attacks_refused(guard_pid()) ? HELD : GOT_THROUGH;
}
int attack_keeper(void)
{
	return guard_attacks_refused(keeper_pid()) ? HELD : GOT_THROUGH;
}

/* Its number is told to nobody here. It is forked some milliseconds after the job by who is not of the
 * job's session; whatever else has such a number is nobody that may be touched either. */
#define METER_WITHIN 400
int attack_meter(void)
{
	const struct timespec a_bit = {.tv_nsec = 20000000};
	unsigned met = 0;

	for (int i = 0; i < 50 && !met; i++) {
		(void)nanosleep(&a_bit, NULL);
		for (pid_t pid = guard_pid() + 1; pid < guard_pid() + METER_WITHIN;
		     pid++) {
			if ((kill(pid, 0) < 0 && errno == ESRCH) ||
			    getsid(pid) == getsid(0))
				continue;
			met++;
			if (!guard_attacks_refused(pid))
				return GOT_THROUGH;
		}
	}
	return met ? HELD : NO_ANSWER;
}
