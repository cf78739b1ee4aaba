/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Times as a person reads them: local, or UTC with --utc. What programs read (--json) stays
 * as the vessel wrote it, RFC 3339 in UTC.
 */
#ifndef LYCH_CLI_UI_WHEN_H
#define LYCH_CLI_UI_WHEN_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include <argp.h>
#include <stdbool.h>

/* The option --utc: .children of each argp whose command shows a time. */
extern const struct argp_child when_option[];

/* Exactly what clock_rfc3339() writes; false: it is another text. */
bool when_parse(const char *rfc3339, usec_t *ret);

/* "2026-11-28 11:47:09.123 +0100" or "... UTC" */
#define WHEN_SIZE 64
void when_text(usec_t wall, char out[WHEN_SIZE]);
/* The same of a time as the vessel writes it; any other text as it is, cut. */
void when_text_of(const char *rfc3339, char out[WHEN_SIZE]);

/* What a person means by a time in the past: how long ago ("10m", "1h30m"), a day, a time of
 * today, or both ("2026-11-28", "11:47", "2026-11-28 11:47:09"), local or UTC as times are
 * shown, and with what when_text() and the vessel write behind it. ERRID_SPEC_TYPE;
 * ERRID_SPEC_RANGE: not in the past. */
MUST_CHECK int when_read(const char *text, usec_t now, usec_t *ret, struct err *err);

/* How long: "0.4s", "12s", "3m12s", "2h05m", "3d04h". Less than nothing (a clock that was
 * set) is "0s". */
#define WHEN_SPAN_SIZE 32
void when_span(usec_t from, usec_t to, char out[WHEN_SPAN_SIZE]);

#endif
