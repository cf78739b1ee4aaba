/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * One text for the many ways to write it. Character by character, so that every byte of
 * the result knows where it came from.
 */
#ifndef LYCH_VESSEL_GATE_TEXT_FOLD_H
#define LYCH_VESSEL_GATE_TEXT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* percent signs, HTML entities, backslashes: to what they stand for */
#define FOLD_ESCAPES 1u
/* look-alikes, full-width and decorated letters to ASCII; zero-width characters, marks
 * and direction marks go; odd blanks, dashes and quotes to the plain ones */
#define FOLD_SHAPES 2u
/* lower case, and one blank for each run of blanks */
#define FOLD_CASE 4u
/* with FOLD_CASE: `+` and the escapes \\n, \\r and \\t are blanks, as in forms and in JSON within
 * JSON */
#define FOLD_FORM 8u
/* with FOLD_CASE: other alphabets' capitals, too */
#define FOLD_LETTERS 16u
/* Text that was made of bytes: each character U+0000 to U+00FF is one byte, and so is each escape of the
 * kinds that stand beside it. With FOLD_FORM `+` is a blank. */
#define FOLD_BYTES 32u
#define FOLD_PERCENT 64u
#define FOLD_BACKSLASH 128u /* also \\n and the like */
#define FOLD_REFERENCE 256u
/* percent signs, of the bytes of the character in UTF-8, as encodeURIComponent() writes it */
#define FOLD_UTF8 512u

struct gate_folded {
	char *data;    /* len bytes, never longer than the input */
	uint32_t *map; /* len + 1: data[i] came from input bytes map[i] .. map[i + 1] */
	size_t len;
	bool changed; /* differs from the input */
	bool had_escapes;
	bool had_nested; /* FOLD_BYTES: escapes are left, as of JSON within JSON */
	unsigned
		escapes; /* of which kinds there were: FOLD_PERCENT and those behind it */
	/* What a compressed stream begins with was there, and not as bytes: how, FOLD_BYTES for
	 * characters. */
	unsigned packed;
	bool had_unseen; /* an escape was a character that stands for a byte */
};

#define GATE_FOLD_DROP 0u	   /* nothing stands for it */
#define GATE_FOLD_SAME 0xffffffffu /* none that FOLD_SHAPES changes */
/* What FOLD_SHAPES makes of one character: one of ASCII, or one of the two above. */
uint32_t gate_fold_one(uint32_t c);
/* What FOLD_LETTERS makes of one: the same for both cases of a letter. */
uint32_t gate_fold_letter(uint32_t c);

/* The byte that a character stands for which shows nothing; -1: for none. One of Unicode's tags
 * (U+E0000 to U+E00FF), by its last byte, and a variation selector (VS1 to VS256: 0 to 255). */
#define GATE_CANCEL_TAG 0xe007fu
int gate_tag_byte(uint32_t c);
int gate_selector_byte(uint32_t c);
static inline bool gate_is_unseen(uint32_t c)
{
	return gate_tag_byte(c) >= 0 || gate_selector_byte(c) >= 0;
}

/* len < 4 GiB. What is no UTF-8 stays as it is. */
void gate_fold(const char *s, size_t len, unsigned how, struct gate_folded *ret);
/*
 * FOLD_ESCAPES | FOLD_SHAPES, and only what lies within `around` (> 0) bytes of something that may
 * change: pieces with a newline between them. Most text has nothing, and costs nothing.
 */
void gate_fold_around(const char *s, size_t len, size_t around, struct gate_folded *ret);
/* Two bytes, or characters, that a compressed stream begins with: gzip (RFC 1952), or zlib (RFC 1950) of any
 * level with a window of the common size. */
bool gate_begins_packed(uint32_t a, uint32_t b);
void gate_folded_done(struct gate_folded *f);

/* How to read a text as bytes in which f->packed was seen: FOLD_BYTES with each kind of escapes that may be
 * theirs, and with all of them. How many; none when nothing was seen. */
#define GATE_FOLD_WAYS_MAX 8
size_t gate_fold_ways(const struct gate_folded *f, unsigned how[GATE_FOLD_WAYS_MAX]);

#endif
