/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Undoes what hides a text in a text: each run of an encoding becomes a block of the
 * result. A run that does not decode to something that could be read, or is known by its
 * first bytes, is left out: words, names and digests look like base64.
 */
#ifndef LYCH_VESSEL_GATE_DECODE_DECODE_H
#define LYCH_VESSEL_GATE_DECODE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [start, end) of a text; several are in order. */
struct gate_stretch {
	size_t start, end;
};
struct gate_stretches {
	struct gate_stretch *one;
	size_t n;
};

struct gate_block {
	uint32_t out, out_len; /* in data */
	uint32_t src, src_len; /* the run it came from */
	bool is_strange;       /* that it was decoded does not say what is in it */
	bool is_loose;	/* it may be more than belongs together: no finding by itself */
	bool is_public; /* a certificate, a public key: made to be shown */
};

struct gate_decoded {
	char *data; /* blocks, an empty line between any two */
	size_t len, cap, max;
	struct gate_block *block;
	size_t n, n_cap;
	bool too_large; /* max was not enough */
	/* Runs of the text that hold much and nothing known: the first GATE_OPAQUE_RUNS_MAX. */
	struct gate_stretch *opaque;
	size_t n_opaque;
};

#define GATE_OPAQUE_RUNS_MAX 64 /* a few are too many already */

/* Decoded bytes of one run of which nothing is known are a finding from so many on. */
#define GATE_OPAQUE64_MIN 192 /* of base64: names and paths look like a short one */
#define GATE_OPAQUE16_MIN 128 /* of hex: no digest is as long */
/* In lines of so many digits; shorter ones are commits, by the dozen. */
#define GATE_WIDE16 56
#define GATE_OPAQUE_WIDE_MIN 96
/* And so many values of bytes are in it: what was drawn by lot has more. */
#define GATE_OPAQUE_DISTINCT 60

enum gate_encoding {
	GATE_BASE64,  /* both alphabets, over several lines */
	GATE_HEX,     /* the same; also in pairs with a blank or a colon between them */
	GATE_DEFLATE, /* gzip and zlib */
	GATE_UTF16,   /* both orders */
	/* characters that show nothing (unseen.c); they are the last */
	GATE_TAGS,
	GATE_SELECTORS,
	GATE_ENCODING_MAX_
};

/* Is `at` in one of them; then *ret_end is its end. */
bool gate_stretches_has(const struct gate_stretches *s, size_t at, size_t *ret_end);

/* At most max bytes of result. No compressed stream is looked for in `unread`. */
void gate_decode(enum gate_encoding e, const char *s, size_t len,
		 const struct gate_stretches *unread, size_t max,
		 struct gate_decoded *ret);
/* Words of base64 and hex that hold 4 to GATE_SHORT_MAX bytes, all of them readable, which most
 * words do not. Those of UTF-16 become one byte a letter. */
#define GATE_SHORT_MAX 8
void gate_decode_short(const char *s, size_t len, size_t max, struct gate_decoded *ret);
void gate_decoded_done(struct gate_decoded *d);

#endif
