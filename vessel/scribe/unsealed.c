/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * See unsealed.h.
 */
#include "vessel/scribe/unsealed.h"

#include "common/str.h"
#include <string.h>

/* Twice the minute. */
#define LATE_MSEC ((uint64_t)120000)
/* A batch of 512 may follow the 255 that need no seal yet; and a seal comes within the second. */
#define LATE_LINES 2048
#define LATE_LINES_MSEC ((uint64_t)10000)

void unsealed_none(struct unsealed *u)
{
	*u = (struct unsealed){0};
}

/* What a scribe writes before its first seal: it seals when it starts, so no time has passed for it. */
static bool begins(const struct audit_head *h, const char *members, size_t len)
{
	static const char *const first[] = {"scribe.segment", "scribe.recovered_tail",
					    UNSEALED_EVENT, "scribe.start"};

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		if (audit_line_is_event(h, members, len, first[i]))
			return true;
	return false;
}

void unsealed_add(struct unsealed *u, const struct audit_head *h, const char *members,
		  size_t len)
{
	u->ends_with_stop = audit_line_is_event(h, members, len, "scribe.stop");
	if (h->up_ms < u->last_ms && str_eq(u->boot.s, h->boot.s) && !u->late_at)
		u->late_at = h->seq;
	u->last_ms = h->up_ms;
	if (!str_eq(u->boot.s, h->boot.s) || begins(h, members, len)) {
		u->boot = h->boot;
		u->up_ms = h->up_ms;
		u->boot_lines = 0;
	}
	u->boot_lines++;
	if (!u->late_at &&
	    (h->up_ms > u->up_ms + LATE_MSEC ||
	     (u->boot_lines > LATE_LINES && h->up_ms > u->up_ms + LATE_LINES_MSEC)))
		u->late_at = h->seq;
}
