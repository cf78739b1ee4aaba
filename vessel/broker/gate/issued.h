/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a portal issued to a job: the ids and opaque fields of its replies, which a client
 * sends back byte for byte and which look drawn by lot, for they are. No secret of the job's
 * is in them: the portal had them first.
 *
 * A value is known again only for this job, on its way to the portal that said it, at a key
 * of the kind that it came at. The gate then looks in it for registered terms and canaries
 * and for nothing else (GATE_PART_ECHO), and nobody rewrites it. Kept are keyed digests of 64
 * bits, of those that were issued or sent back last, within the bound below. What is not known
 * (any more) is read as anything else.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_ISSUED_H
#define LYCH_VESSEL_BROKER_GATE_ISSUED_H

#include "common/json/json.h"
#include "vessel/gate/parts.h"
#include <stddef.h>

/* At least so many values are known, at most twice as many: 1 MiB of a job at the most. */
#define ISSUED_MAX 32768
/* Shorter, it is read as anything else, which does it no harm; of single letters a job could
 * choose a text. */
#define ISSUED_MIN_BYTES 8
#define ISSUED_ID_MAX_BYTES 256
#define ISSUED_OPAQUE_MAX_BYTES ((size_t)1 << 20)

struct issued;
struct issued *issued_new(void);
void issued_free(struct issued *s); /* wipes; NULL is fine */

/* A reply of that portal, or an event of one, as the portal said it: before a placeholder in
 * it became what it stands for, which the portal does not know. */
void issued_note(struct issued *s, const char *portal, const struct json *said);
/* A signature that came in pieces, whole. */
void issued_note_signature(struct issued *s, const char *portal, const char *text);

/* p's parts from `first` on are those of `request` (gate_parts_add_json): what the portal
 * issued becomes GATE_PART_ECHO. */
void issued_mark(struct issued *s, const char *portal, const struct json *request,
		 struct gate_parts *p, size_t first);

/* Could a text of JSON hold one? Most events of a stream can't. */
bool issued_may_hold(const char *text, size_t len);

#endif
