/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * Why something that a job wanted from the network was refused: one word each. The word
 * goes to the audit log and in front of the message; which public error it belongs to
 * decides what the job learns. Several reasons share one public error where the difference
 * would answer questions about a network that the job cannot see.
 */
#ifndef LYCH_VESSEL_EGRESS_REASON_H
#define LYCH_VESSEL_EGRESS_REASON_H

#include "common/attr.h"
#include "common/err.h"

enum reason {
	REASON_NONE = 0,
#define X(symbol, word, id) REASON_##symbol,
#include "vessel/egress/reason.def"
#undef X
	REASON_MAX_
};

/* "ip_literal"; "-" for REASON_NONE. */
const char *reason_word(enum reason r);

/*
 * The refusal as a statement: *ret (NULL is fine) becomes r, err its public error with the
 * message "<word>: <fmt>", or for a reason about the network (addresses, DNS) a fixed text
 * without a word of fmt, which is for the log alone. Returns -1.
 */
int reason_set(enum reason *ret, enum reason r, struct err *err, const char *fmt, ...)
	PRINTF_FMT(4, 5);

#endif
