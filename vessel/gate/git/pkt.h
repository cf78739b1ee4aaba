/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Lines of git's protocol (gitprotocol-common): four hexadecimal digits say how long each is. Strict:
 * small digits, no empty line, no mark that a client never sends.
 */
#ifndef LYCH_VESSEL_GATE_GIT_PKT_H
#define LYCH_VESSEL_GATE_GIT_PKT_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKT_MAX_BYTES 65516 /* of one line, without its digits */

enum pkt_kind {
	PKT_LINE,
	PKT_FLUSH, /* 0000 */
	PKT_DELIM, /* 0001 */
	PKT_END,   /* nothing is left */
};

struct pkt_reader {
	const char *at;
	size_t left;
};

/* *ret: the line within what is read, without the newline at its end, if it has one; NULL for a
 * mark. -1: what stands there is no line. */
MUST_CHECK int pkt_next(struct pkt_reader *r, enum pkt_kind *ret_kind, const char **ret,
			size_t *ret_len, struct err *err);

/* ---- what a line has ---- */

struct pkt_line {
	const char *s;
	size_t len;
};

bool pkt_is(struct pkt_line l, const char *text);
/* Begins with it; *l is then what is behind. */
bool pkt_skip(struct pkt_line *l, const char *prefix);
/* An object's id, of SHA-1 or SHA-256: 40 or 64 small hexadecimal digits, and nothing else. */
bool pkt_is_oid(struct pkt_line l);
/* A number from 0 to max, as it is printed: no sign, no zero before it. */
bool pkt_is_number(struct pkt_line l, uint64_t max);
/* 1 to max bytes of UTF-8 without a blank or a control character: a name, an agent. */
bool pkt_is_word(struct pkt_line l, size_t max);

#endif
