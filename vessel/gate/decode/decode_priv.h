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
/* Pairs in a list (listed.c), for gate_decode_hex(). */
void gate_decode_listed_hex(const char *s, size_t len, struct gate_decoded *d);
/* Notes the runs of digits and letters of one case that look drawn by lot (onecase.c). */
void gate_note_one_case(const char *s, size_t len, struct gate_decoded *d);

/* One way to read them: with the shorter line that may be their end, and without it, for it may be of
 * something else. */
struct gate_lines_way {
	size_t from, to; /* in the text */
	size_t n;	 /* letters of the alphabet in it */
	bool is_loose;	 /* something else stands on its first line or on its last one */
	size_t skip; /* letters of its first line that may be none of it; 0: there are none such */
};
/* Lines of one length that hold nothing but an alphabet, behind what quotes or indents them. The last may
 * be shorter; anything may stand before the first one's letters, and behind the last one's. */
struct gate_lines {
	struct gate_lines_way way[4];
	unsigned n_ways;
	bool is_plain; /* nothing but line ends between the letters of two lines */
	bool is_cut;   /* its first line is shorter than the others */
	size_t width;  /* letters of the others */
};
/* The next such lines, two or more, from *at on, which is moved behind them. between: what
 * may stand between two letters of a line. */
bool gate_next_lines(const uint8_t in[256], const char *between, const char *s,
		     size_t len, size_t *at, struct gate_lines *ret);
/* Nothing but what may indent, quote or comment out a line of them. */
bool gate_is_edge(const char *s, size_t len);

/* Pieces of one length, with something else around them: lines of a list, of a program's comment, with
 * numbers (rows.c). All of them together may be more than belongs together. */
struct gate_rows {
	char *letters; /* n of the alphabet, of the pieces alone; to be freed behind the last call */
	size_t n, room;
	size_t from, to; /* in the text */
};
/* The next such pieces, from the line at *at on; *at is moved to a line behind them. *ret is zero before
 * the first call. */
bool gate_next_rows(const uint8_t in[256], const char *s, size_t len, size_t *at,
		    struct gate_rows *ret);

#endif
