/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * One line of the audit log, and the chain that its lines make.
 *
 *	{"v":1,"log":"<uuid>","seq":42,"prev":"<64 hex>","ts":"...Z","boot":"<uuid>",
 *	 "up_ms":N,"prod":"vessel","stream":"<uuid>","pseq":7, <members of the event>}
 *
 * (without the break). The head is always written in this order and without blanks, so
 * it is read back by comparing bytes, not by a JSON parser. The exact bytes are hashed:
 * leaf = SHA256(0x00 || line without its newline), and "prev" is the leaf of the line
 * before; 64 zeros in the first. There is no canonical JSON.
 */
#ifndef LYCH_VESSEL_SCRIBE_LINE_H
#define LYCH_VESSEL_SCRIBE_LINE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/scribe/merkle.h"
#include <stdint.h>

#define AUDIT_LINE_MAX ((size_t)16384) /* with its newline */
#define AUDIT_PROD_MAX 32
#define AUDIT_OWN_PROD "scribe"
/* What the members of an event may take; the head has the rest. */
#define AUDIT_EVENT_MAX ((size_t)15360)

struct audit_head {
	struct uuid log;
	uint64_t seq;
	char prev[SHA256_HEX_SIZE];
	char ts[RFC3339_SIZE];
	struct uuid boot; /* of the kernel */
	uint64_t up_ms;	  /* since that boot */
	char prod[AUDIT_PROD_MAX];
	struct uuid stream;
	uint64_t pseq;
};

/* "[a-z][a-z0-9_]*" of at most AUDIT_PROD_MAX - 1 bytes. */
bool audit_prod_is_valid(const char *prod);
/* Append head, members ("\"a\":1,\"b\":2", encoded already) and the newline. */
void audit_line_write(struct buf *out, const struct audit_head *head, const char *members,
		      size_t len);
/* A line without its newline; *ret_members points into it, at what follows the head,
 * its '}' included. ERRID_AUDIT_CHAIN. */
MUST_CHECK int audit_line_parse(const char *line, size_t len, struct audit_head *ret,
				const char **ret_members, struct err *err);
/* The hash of the newest seal that a record of the scribe's own names; false: none. */
bool audit_line_seal(const struct audit_head *head, const char *members, size_t len,
		     char ret_hex[SHA256_HEX_SIZE]);
/* Is this line the scribe's, of that event ("scribe.stop")? */
bool audit_line_is_event(const struct audit_head *h, const char *members, size_t len,
			 const char *event);

/* Where a reader or the writer stands: what the next line must say, and the tree so far. */
struct audit_chain {
	struct uuid log; /* "" before the first line */
	uint64_t seq;	 /* of the next line */
	char prev[SHA256_HEX_SIZE];
	struct merkle tree; /* of the seq - 1 lines before it */
};
void audit_chain_init(struct audit_chain *c);
/* Step over a line that is known to be the next one. */
void audit_chain_step(struct audit_chain *c, const char *line, size_t len);
/* Check the next line and step over it. ERRID_AUDIT_CHAIN names the seq that is wrong;
 * the chain is unchanged then. */
MUST_CHECK int audit_chain_next(struct audit_chain *c, const char *line, size_t len,
				struct audit_head *ret, const char **ret_members,
				struct err *err);

/* ---- files: segment-0000000001.jsonl ... ----------------------------------- */

#define AUDIT_SEGMENT_NAME 32
void audit_segment_name(uint64_t n, char out[AUDIT_SEGMENT_NAME]);
/* A regular file, or an error that names it: never waits for whoever has the other end. */
MUST_CHECK int audit_segment_open(int dirfd, uint64_t n, int flags, int *ret,
				  struct err *err);
/* The numbers of the first and the last segment, 0 when there is none. They must follow
 * each other without a gap (they are set then too); another file than these, "lock" and those of the seals is
 * refused (ERRID_AUDIT_CHAIN). */
MUST_CHECK int audit_segments(int dirfd, uint64_t *ret_first, uint64_t *ret_last,
			      struct err *err);

typedef int audit_line_fn(const struct audit_head *head, const char *members, size_t len,
			  void *arg, struct err *err);
/*
 * Check every complete line that a segment has now. *ret_end: bytes up to and with the last
 * newline; *ret_size: of the file. What lies between is a torn tail: the caller's to
 * judge. fn may be NULL.
 */
MUST_CHECK int audit_segment_read(int dirfd, uint64_t n, struct audit_chain *c,
				  audit_line_fn *fn, void *arg, uint64_t *ret_end,
				  uint64_t *ret_size, struct err *err);

#endif
