/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Bytes for a terminal, taken apart: characters, controls, escape sequences. It judges nothing.
 *
 * It reads as terminals in UTF-8 do (ECMA-48, in the states of DEC's ANSI parser): a sequence goes
 * on over C0 controls, which are carried out at once; CAN, SUB and ESC cancel it, and so does a
 * character that is not ASCII. C1 controls are characters (U+0080 to U+009F), of which those that
 * begin something do; the byte of one alone is broken UTF-8. What a string says (OSC, DCS, SOS, PM,
 * APC, and those of screen and tmux) is in no token: nobody lets one through, so it needs no room.
 * A sequence that is longer than TERM_SEQUENCE_MAX is dropped whole.
 *
 * Pure: no allocation, no input or output, a byte at a time.
 */
#ifndef LYCH_COMMON_TERM_PARSE_H
#define LYCH_COMMON_TERM_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERM_SEQUENCE_MAX 128

/* It begins with zeros. */
struct term_parser {
	/* Set by the owner: what is read is shown line by line, as in a log. A string ends with its
	 * line too, and each with a bell, so that a lost end hides one line only; a C1 control is a
	 * character. */
	bool is_by_line;
	unsigned char state;
	/* of a character: bytes to come, bounds of the next one */
	unsigned char need, low, high;
	unsigned char n_raw;
	char raw[4];
	uint32_t value;
	unsigned n; /* of text; above its size: too long */
	char text[TERM_SEQUENCE_MAX];
};

enum term_token_kind {
	TERM_NOTHING,
	TERM_CHARACTER, /* value */
	TERM_BROKEN,	/* no UTF-8: the one to three bytes in text */
	TERM_CONTROL,	/* of C0, or DEL: value */
	TERM_ESCAPE,	/* text: what came behind ESC, intermediates and final */
	TERM_CSI,	/* text: what came behind CSI, up to the final */
};

struct term_token {
	enum term_token_kind kind;
	uint32_t value;
	const char *text; /* the parser's, until it is called again */
	size_t size;
};

/* One byte more. True: it was not taken; the token is what ended before it, and it is to be given
 * once more. */
bool term_parse(struct term_parser *parser, unsigned char c, struct term_token *ret);

#endif
