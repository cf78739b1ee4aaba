/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the guard.
 * The last message about a job.
 */
#include "sandbox/contract/keeper.h"
#include "sandbox/keeper/guard_priv.h"

#include <sys/socket.h>
#include <sys/wait.h>

static void tell(const struct guard *g, const void *msg, size_t size)
{
	if (!g->parent_gone)
		(void)!send(g->parent_sock, msg, size, MSG_NOSIGNAL);
}

static void report_used(const struct guard *g, struct spawn_exited *m)
{
	const struct watch *w = g->watch;
	uint64_t peak = limits_cgroup_value(g->limits, "memory.peak", NULL);
	uint32_t processes = atomic_load(&w->processes_peak);

	m->wall_usec = g->began && g->over > g->began ? g->over - g->began : 0;
	m->cpu_usec = atomic_load(&w->reaped_cpu_usec);
	m->memory_peak_bytes = atomic_load(&w->memory_peak);
	if (peak > m->memory_peak_bytes)
		m->memory_peak_bytes = peak;
	/* Too short to be sampled: the largest resident set of one process is what is
	 * known. */
	if (!m->memory_peak_bytes)
		m->memory_peak_bytes = g->largest_bytes;
	m->disk_peak_bytes = atomic_load(&w->disk_peak);
	m->processes_peak = processes ? processes : 1;
	m->killed_strays = g->strays;
}

/* What decided: the last look and the leaf may know more than the exit status. */
static void report_how(const struct guard *g, struct spawn_exited *m)
{
	const struct watch *w = g->watch;
	bool by_itself = g->how == SPAWN_END_EXITED || g->how == SPAWN_END_SIGNALLED;
	const char *detail = g->detail;

	m->how = g->how;
	if (by_itself && g->looked && w->how != SPAWN_END_EXITED) {
		m->how = w->how;
		detail = w->detail;
	} else if (by_itself && !g->looked) {
		m->how = SPAWN_END_UNMEASURED;
		detail = "its keeper could not take the last look at its files";
	}
	if (limits_cgroup_value(g->limits, "memory.events", "oom_kill")) {
		m->how = SPAWN_END_OOM;
		detail = "memory.max of the cgroup";
	}
	(void)snprintf(m->detail, sizeof(m->detail), "%.*s", SPAWN_TEXT_MAX - 1, detail);
	if (WIFSIGNALED(g->main_status))
		m->code = WTERMSIG(g->main_status);
	else
		m->code = m->how == SPAWN_END_EXITED ? WEXITSTATUS(g->main_status)
						     : SIGTERM;
}

/* The meter is dead by now, or writes one more: the oldest of them is the one that it would
 * write over. */
static void report_curve(const struct guard *g, struct spawn_exited *m)
{
	const struct watch *w = g->watch;
	uint32_t n = atomic_load(&w->n_samples), at;

	if (m->how != SPAWN_END_OOM && m->how != SPAWN_END_PROCESSES)
		return;
	at = n > SPAWN_SAMPLES_MAX - 1 ? n - (SPAWN_SAMPLES_MAX - 1) : 0;
	for (; at != n; at++) {
		m->sample_kib[m->n_samples] = w->sample_kib[at % SPAWN_SAMPLES_MAX];
		m->sample_processes[m->n_samples++] =
			w->sample_processes[at % SPAWN_SAMPLES_MAX];
	}
}

static void tell_denied(const struct spawn_denied *d, void *arg)
{
	tell(arg, d, sizeof(*d));
}

void guard_report(struct guard *g)
{
	struct spawn_exited m = {.type = SPAWN_EXITED, .tree_gone = 1};

	if (g->refused && !g->exec_failed) {
		struct spawn_refused ref;

		report_refused_status(&g->watch->status, &ref);
		tell(g, &ref, sizeof(ref));
		return;
	}
	denials_tell(&g->watch->denials, tell_denied, g);
	if (g->exec_failed) {
		m.how = SPAWN_END_EXEC;
		m.code = g->watch->status.sys;
		(void)snprintf(m.detail, sizeof(m.detail), "%.*s", SPAWN_TEXT_MAX - 1,
			       g->watch->status.text);
	} else {
		report_how(g, &m);
		report_used(g, &m);
		report_curve(g, &m);
	}
	tell(g, &m, sizeof(m));
}
