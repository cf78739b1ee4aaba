/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * The lines behind the last seal. A scribe seals after a minute, after 256 lines (once a second at
 * most), and when it stops. Lines that lie there although a seal was due long before were written
 * by somebody else, or their scribe stood still: nobody can tell, so both programs say it.
 */
#ifndef LYCH_VESSEL_SCRIBE_UNSEALED_H
#define LYCH_VESSEL_SCRIBE_UNSEALED_H

#include "common/attr.h"
#include "vessel/scribe/line.h"

/* The scribe's record of such lines, which it finds when it starts. */
#define UNSEALED_EVENT "scribe.unsealed"

struct unsealed {
	/* since the first of them, or of a scribe that started, or of another boot of the kernel */
	struct uuid boot;
	uint64_t boot_lines, up_ms, last_ms;
	/* the first at which a seal was overdue, or that is older than the one before it; 0: none */
	uint64_t late_at;
	bool ends_with_stop; /* whose seal is gone, or was not made any more */
};

/* A seal was made here: there are none. */
void unsealed_none(struct unsealed *u);
/* One more; members as in audit_line_parse(). */
void unsealed_add(struct unsealed *u, const struct audit_head *h, const char *members,
		  size_t len);

#endif
