/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the guard.
 * Is the meter held? It says since when it is about something; the kernel
 * says (/proc/PID/status) whether it waits for a processor, which is no fault of anybody's, and how
 * often it has left one. One that has neither waited for a processor nor had one for a second
 * is blocked, by the job. One that is stopped is so by somebody outside, as the job may signal
 * and trace none of us: the job is not to blame, but nobody measures it.
 */
#include "sandbox/keeper/guard_priv.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELD_MAX_USEC USEC_PER_SEC
#define PULSE_IDLE_USEC (250 * USEC_PER_MSEC)
#define PULSE_BUSY_USEC (50 * USEC_PER_MSEC)
#define PULSE_TEXT_MAX 4096

static const char *after(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	if (!p)
		return NULL;
	p += strlen(name);
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

static bool has_kill(const char *mask)
{
	return mask && (strtoull(mask, NULL, 16) >> (SIGKILL - 1) & 1);
}

int pulse_parse(const char *text, struct pulse *ret)
{
	const char *state = after(text, "\nState:");
	const char *voluntary = after(text, "\nvoluntary_ctxt_switches:");
	const char *forced = after(text, "\nnonvoluntary_ctxt_switches:");

	if (!state || !*state || !voluntary || !forced)
		return -1;
	ret->state = *state;
	ret->switches = strtoull(voluntary, NULL, 10) + strtoull(forced, NULL, 10);
	ret->killed =
		has_kill(after(text, "\nSigPnd:")) || has_kill(after(text, "\nShdPnd:"));
	return 0;
}

static int read_pulse(int fd, struct pulse *ret)
{
	char text[PULSE_TEXT_MAX];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return -1; /* it is gone: the end of its pipe says so */
	text[n] = '\0';
	return pulse_parse(text, ret);
}

/* It is forked some milliseconds after the job. */
static int meter_fd(struct guard *g)
{
	char path[40];
	int pid = atomic_load(&g->watch->meter_pid);

	if (g->meter_fd < 0 && pid > 0) {
		(void)snprintf(path, sizeof(path), "%s%d/status",
			       g->proc_fd < 0 ? "/proc/" : "", pid);
		g->meter_fd = openat(g->proc_fd, path, O_RDONLY | O_CLOEXEC);
	}
	return g->meter_fd;
}

static void look_at_meter(struct guard *g, usec_t now)
{
	uint64_t since = atomic_load(&g->watch->busy_since);
	struct pulse p;

	if (read_pulse(meter_fd(g), &p) < 0)
		return;
	if (p.state == 'T' || p.state == 't') {
		g->stopped |= ++g->stops > HELD_MAX_USEC / PULSE_IDLE_USEC;
		g->still_since = now;
		return;
	}
	g->stops = 0;
	if (!since || now < since + PULSE_BUSY_USEC) {
		g->still_since = now;
		return;
	}
	g->pulse_at = now + PULSE_BUSY_USEC;
	if (p.state == 'R' || p.switches != g->switches || since > g->still_since)
		g->still_since = now;
	g->switches = p.switches;
	g->killed |= p.killed;
	g->held |= now - g->still_since >= HELD_MAX_USEC;
}

void guard_start_pulse(struct guard *g, usec_t now)
{
	g->pulse_at = now + PULSE_IDLE_USEC;
}

void guard_take_pulse(struct guard *g, usec_t now)
{
	struct pulse keeper;

	g->pulse_at = now + PULSE_IDLE_USEC;
	if (!g->keeper_gone && read_pulse(g->pulse_fd, &keeper) == 0)
		g->killed |= keeper.killed;
	if (g->phase < GUARD_KILL && !g->main_over)
		look_at_meter(g, now);
}
