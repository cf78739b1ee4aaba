/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * sched_setaffinity for the job, within the CPUs that the keeper gave it: they are how
 * --cpus stands where no cgroup holds it. And setpriority of a process by its number, which many
 * programs use for themselves. Only for threads of the caller's own process, in
 * full for any process of the job (its pid namespace has no others but the keeper, the guard and the meter).
 * The kernel lets nobody here become more urgent: that would take a limit that the target has not.
 */
#include "sandbox/keeper/notify.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/resource.h>

/* 0, or why the caller may not decide about it. */
static int judge_target(const struct notify *n, pid_t caller, pid_t target)
{
	pid_t group = notify_tgid(n, target);

	if (!group)
		return -ESRCH;
	if (group == getpid() || group == n->guard || group == n->meter ||
	    (n->grade == GRADE_FLOOR && group != notify_tgid(n, caller)))
		return -EPERM;
	return 0;
}

int notify_affinity(const struct notify *n, const struct seccomp_notif *req)
{
	pid_t caller = (pid_t)req->pid, target = (pid_t)(int32_t)req->data.args[0];
	size_t len = (size_t)(uint32_t)req->data.args[1];
	cpu_set_t want;
	int r;

	if (len > sizeof(want))
		len = sizeof(want);
	CPU_ZERO(&want);
	r = notify_read(req, req->data.args[2], &want, len);
	if (r < 0)
		return r;
	if (target < 0)
		return -ESRCH;
	if (target == 0)
		target = caller;
	r = judge_target(n, caller, target);
	if (r < 0)
		return r;
	CPU_AND(&want, &want, &n->cpus);
	if (CPU_COUNT(&want) == 0)
		return -EINVAL;
	if (!notify_still_waits(n, req))
		return -ESRCH;
	return sched_setaffinity(target, sizeof(want), &want) < 0 ? -errno : 0;
}

int notify_priority(struct notify *n, const struct seccomp_notif *req)
{
	pid_t target = (pid_t)(int32_t)req->data.args[1];
	pid_t caller = (pid_t)req->pid;
	int r = target > 0 ? judge_target(n, caller, target) : -ESRCH;

	/* The numbers of who waits for us are nobody else's meanwhile; another thread's may be. */
	if (r == 0 && n->grade == GRADE_FLOOR && target != caller &&
	    target != notify_tgid(n, caller))
		r = -EPERM;
	if (r == -EPERM && notify_is_the_jobs(n, req))
		notify_record_call(n, req);
	if (r < 0)
		return r;
	if (!notify_still_waits(n, req))
		return -ESRCH;
	return setpriority(PRIO_PROCESS, (id_t)target, (int)(int32_t)req->data.args[2]) <
			       0
		       ? -errno
		       : 0;
}
