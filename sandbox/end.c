/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a job, in its keeper: what is looked at once more, what the parent is told.
 *
 * It begins before the job is reaped. When the listener of its filter hangs up, every
 * process that the filter was on is on its way through the kernel's exit, and none of them
 * executes anything any more (seccomp_filter_release() in do_exit(), Linux 6.11): nothing
 * can be added to the disk, and SIGCHLD is a matter of microseconds, unless much memory has
 * to be given back.
 */
#include "sandbox/keep.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* For the parent to take the report; it has it whether we wait or not. */
#define PASS_ON_MAX_MSEC 100
/* Of a last look that is taken while the job's processes end; more is looked at after. */
#define NEAR_ENTRIES 256
/* Added since the last whole round, by the job or by others: so much is counted as the job's
 * rather than looked for, when all the job's files would have to be looked at for it. */
#define NEARLY_BYTES ((uint64_t)16 << 20)
/* So long a processor that has nothing else to do is kept from its sleep: waking it up takes
 * as long as the end of a small process. */
#define NEAR_USEC 100

/* Within its limit, whatever renames hid from the running walk: all that anybody added while
 * the job ran is more than that. And nearly known without another walk. */
static bool is_known(struct keep *k)
{
	disk_see_growth(&k->disk);
	return disk_is_within(&k->disk, k->spec->disk_bytes) &&
	       disk_added(&k->disk) <= NEARLY_BYTES;
}

/* What last_look() would find; it sees then that nothing was added since. */
static void look_ahead(struct keep *k)
{
	if (is_known(k) || !k->disk.sees_growth)
		return;
	disk_start_over(&k->disk);
	if (disk_step(&k->disk, NEAR_ENTRIES))
		keep_note_disk(k, k->disk.total);
}

void end_is_near(struct keep *k)
{
	struct pollfd child = {.fd = k->signal_fd, .events = POLLIN};
	usec_t until;

	look_ahead(k);
	until = clock_boot_usec() + NEAR_USEC;
	/* Whoever else wants this processor, the job's own end among them, has it. */
	while (poll(&child, 1, 0) == 0 && clock_boot_usec() < until)
		(void)sched_yield();
}

/* Nothing moves any more: what renames hid from the running walk is found now. */
static void last_look(struct keep *k)
{
	if (k->how != SPAWN_END_EXITED && k->how != SPAWN_END_SIGNALLED)
		return;
	if (is_known(k)) {
		keep_note_disk(k, k->disk.total + disk_added(&k->disk));
		return;
	}
	disk_start_over(&k->disk);
	while (!disk_at_start(&k->disk))
		(void)disk_step(&k->disk, DISK_ENTRIES_A_STEP);
	while (!disk_step(&k->disk, DISK_ENTRIES_A_STEP))
		;
	keep_note_disk(k, k->disk.total);
	if (k->disk.total <= k->spec->disk_bytes && !k->disk.too_deep)
		return;
	k->how = SPAWN_END_DISK;
	(void)snprintf(k->detail, sizeof(k->detail), "disk bytes: %llu of %llu",
		       (unsigned long long)k->disk.total,
		       (unsigned long long)k->spec->disk_bytes);
}

static void send_denied(const struct spawn_denied *d, void *arg)
{
	keep_tell(arg, d, sizeof(*d));
}

static void report_end(struct keep *k)
{
	struct spawn_exited m = {.type = SPAWN_EXITED, .tree_gone = 1, .how = k->how};
	struct rusage r;
	uint64_t peak;

	if (k->refused && !k->exec_failed) {
		struct spawn_refused ref;

		report_refused_status(&k->status, &ref);
		keep_tell(k, &ref, sizeof(ref));
		return;
	}
	notify_flush(&k->notify, send_denied, k);
	if (k->exec_failed) {
		m.how = SPAWN_END_EXEC;
		m.code = k->status.sys;
		(void)snprintf(m.detail, sizeof(m.detail), "%.*s", SPAWN_TEXT_MAX - 1,
			       k->status.text);
		keep_tell(k, &m, sizeof(m));
		return;
	}
	if (limits_cgroup_value(&k->limits, "memory.events", "oom_kill")) {
		m.how = SPAWN_END_OOM;
		(void)snprintf(k->detail, sizeof(k->detail), "memory.max of the cgroup");
	}
	if (WIFSIGNALED(k->main_status))
		m.code = WTERMSIG(k->main_status);
	else
		m.code =
			m.how == SPAWN_END_EXITED ? WEXITSTATUS(k->main_status) : SIGTERM;
	m.wall_usec = k->over > k->began ? k->over - k->began : 0;
	m.cpu_usec = keep_cpu_usec();
	m.memory_peak_bytes = k->memory_peak;
	peak = limits_cgroup_value(&k->limits, "memory.peak", NULL);
	if (peak > m.memory_peak_bytes)
		m.memory_peak_bytes = peak;
	/* Too short to be sampled: the largest resident set of one process is what is
	 * known. */
	if (!m.memory_peak_bytes && getrusage(RUSAGE_CHILDREN, &r) == 0)
		m.memory_peak_bytes = (uint64_t)r.ru_maxrss * 1024;
	m.disk_peak_bytes = k->disk_peak;
	m.processes_peak = k->processes_peak ? k->processes_peak : 1;
	m.killed_strays = k->strays;
	(void)snprintf(m.detail, sizeof(m.detail), "%s", k->detail);
	keep_tell(k, &m, sizeof(m));
}

/* Our memory and namespaces take the kernel its time, on the processor on which the
 * parent has just been woken: it passes the report on first, then closes its end. */
static void await_parent(const struct keep *k)
{
	struct pollfd p = {.fd = k->sock};

	if (!k->parent_gone)
		(void)poll(&p, 1, PASS_ON_MAX_MSEC);
}

void end_keeper(struct keep *k)
{
	last_look(k);
	report_end(k);
	await_parent(k);
	_exit(0);
}
