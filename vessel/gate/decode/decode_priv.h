/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * What the decoders share: blocks are begun, filled, and kept if they are worth it.
 */
#ifndef LYCH_VESSEL_GATE_DECODE_DECODE_PRIV_H
#define LYCH_VESSEL_GATE_DECODE_DECODE_PRIV_H

#include "vessel/gate/decode/decode.h"

/* 1 + the value of each character of both alphabets of base64; 0: of none. */
extern const uint8_t gate_values64[256];
/* The same of hexadecimal digits, either case. */
extern const uint8_t gate_values16[256];

/* Room for that many more bytes; false, and d->too_large, when there is none. */
bool decoded_reserve(struct gate_decoded *d, size_t more);
/* Where the next block begins in d->data. */
size_t decoded_begin(struct gate_decoded *d);
/* The block is what was put since `out`; it came from s[src, src + src_len). */
void decoded_end(struct gate_decoded *d, size_t out, size_t src, size_t src_len);
/* The same if something can be read in it, or its kind is known; else it is dropped. */
bool decoded_keep(struct gate_decoded *d, size_t out, size_t src, size_t src_len);
/* A run that holds much and nothing known. */
void decoded_note_opaque(struct gate_decoded *d, size_t src, size_t src_len);

void gate_decode_base64(const char *s, size_t len, struct gate_decoded *d);
/* GATE_TAGS, GATE_SELECTORS */
void gate_decode_unseen(enum gate_encoding e, const char *s, size_t len,
			struct gate_decoded *d);
void gate_decode_hex(const char *s, size_t len, struct gate_decoded *d);
/* Notes the runs of digits and letters of one case that look drawn by lot (onecase.c). */
void gate_note_one_case(const char *s, size_t len, struct gate_decoded *d);

/* Lines of one length that hold nothing but an alphabet, behind what quotes or indents them; the
 * last may be shorter. */
struct gate_lines {
	size_t from, to; /* in the text */
	size_t n;	 /* letters of the alphabet in it */
	bool is_plain;	 /* nothing but line ends between the letters of two lines */
	size_t width;	 /* letters of the first line */
	size_t whole_to; /* without the shorter one, which may be of something else */
	size_t whole_n;
};
/* The next such lines, two or more, from *at on, which is moved behind them. between: what
 * may stand between two letters of a line. */
bool gate_next_lines(const uint8_t in[256], const char *between, const char *s,
		     size_t len, size_t *at, struct gate_lines *ret);

#endif
