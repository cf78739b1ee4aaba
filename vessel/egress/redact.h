/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Takes a credential out of what a server sends back: as it is, percent-encoded,
 * JSON-escaped (\uNNNN, \xNN, \/), as references of HTML (&#43; &#x2f; &amp;), any mix of these, in base64 and base64url at each of
 * the three alignments (these too with escapes or one line end between any two letters, and with the letter behind it that holds its
 * last bits; the one before it, with two or four bits of its first byte, has gone by then), and its beginning alone when
 * that is long enough to be of use: 8 bytes past the part that is the same in
 * everybody's keys ("sk-proj-": up to 16 bytes of whole words that end in - or _).
 *
 * As a stream: bytes that may be the beginning of a match wait for what follows them, no
 * others do, so a chunk's border hides nothing and ordinary text is not delayed.
 */
#ifndef LYCH_VESSEL_EGRESS_REDACT_H
#define LYCH_VESSEL_EGRESS_REDACT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/proto/key.h"
#include <stdbool.h>
#include <stddef.h>

#define REDACT_SECRET_MIN KEY_LOOKED_FOR_MIN_BYTES
#define REDACT_SECRET_MAX 512
#define REDACT_MARK "[redacted]"
/* What a stream holds back at most: a reference of 10 bytes for each of the longest form, and a line end
 * of 4. */
#define REDACT_HELD_MAX (14 * (4 * REDACT_SECRET_MAX / 3 + 5))

struct redact; /* what is looked for: holds the secret in all its forms, in locked memory */

/* ERRID_EGRESS_SECRET: not 8 to 512 visible ASCII characters, or one of them is of
 * KEY_SIGNS_REFUSED, which no token has. The words never show it. */
MUST_CHECK int redact_new(const char *secret, size_t len, struct redact **ret,
			  struct err *err);
void redact_free(struct redact *r); /* wipes; NULL is fine */

struct redact_stream {
	const struct redact *what; /* NULL: nothing is looked for, all goes through */
	struct buf held;
	size_t gone;	   /* so much of held went out before it was decided */
	bool marked;	   /* ... and ended in a mark */
	bool ends_in_mark; /* what is being written */
	/* Set once it began: what is taken out leaves as many bytes, since what is around it says
	 * how long its pieces are. */
	bool keeps_length;
	unsigned hits;
};

void redact_begin(struct redact_stream *s, const struct redact *what);
/* What may go on is added to out: at most the bytes held, len, and a mark for each 8 of
 * them; out must have that room. */
void redact_feed(struct redact_stream *s, const void *data, size_t len, struct buf *out);
/* Bytes that wait. */
size_t redact_held(const struct redact_stream *s);
/* What waits goes out now, although it may be the beginning of a match, and is remembered:
 * if what follows makes one of it, the rest is taken out. So however often this is
 * called, of a key never more goes through than a beginning too short to be a match. */
void redact_release(struct redact_stream *s, struct buf *out);
/* Nothing follows: the rest. The stream can begin anew. */
void redact_end(struct redact_stream *s, struct buf *out);
void redact_done(struct redact_stream *s); /* frees what is held */

#endif
