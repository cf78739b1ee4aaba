/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * sched_setaffinity for the job, within the CPUs that the keeper gave it: they are how
 * --cpus stands where no cgroup holds it. Only for threads of the caller's own process, in
 * full for any process of the job (its pid namespace has no others but the keeper and the guard).
 */
#include "sandbox/keeper/notify.h"

#include <errno.h>
#include <linux/seccomp.h>

int notify_affinity(const struct notify *n, const struct seccomp_notif *req)
{
	pid_t caller = (pid_t)req->pid, target = (pid_t)(int32_t)req->data.args[0];
	size_t len = (size_t)(uint32_t)req->data.args[1];
	cpu_set_t want;
	pid_t group;
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
	group = notify_tgid(n, target);
	if (!group)
		return -ESRCH;
	if (group == getpid() || group == n->guard || group == n->meter ||
	    (n->grade == GRADE_FLOOR && group != notify_tgid(n, caller)))
		return -EPERM;
	CPU_AND(&want, &want, &n->cpus);
	if (CPU_COUNT(&want) == 0)
		return -EINVAL;
	if (!notify_still_waits(n, req))
		return -ESRCH;
	return sched_setaffinity(target, sizeof(want), &want) < 0 ? -errno : 0;
}
