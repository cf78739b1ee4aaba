/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The list of what a job may say to a terminal, and of what it may not and why.
 *
 * Only rows that are not TERM_REMOVED let anything through. The others say to people why a thing
 * is missing (docs/TERMINAL.md is written from this table), and a test holds the filter to them.
 */
#ifndef LYCH_COMMON_TERM_TABLE_H
#define LYCH_COMMON_TERM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum term_kind {
	TERM_OF_C0,   /* id: the byte */
	TERM_OF_ESC,  /* id: what follows ESC */
	TERM_OF_CSI,  /* id: prefix, intermediates, final; values: from..to, at most n */
	TERM_OF_MODE, /* CSI value h, l */
	TERM_OF_DEC,  /* CSI ? value h, l */
	TERM_OF_SGR,  /* CSI value m */
	TERM_OF_STRING, /* id: what follows ESC, so far as it matters */
	TERM_OF_CHAR,	/* characters from..to, removed; all others pass */
	TERM_KIND_MAX_
};

enum term_verdict {
	TERM_REMOVED,
	TERM_PASSES,
	TERM_ANSWERED, /* it is removed, and the job gets the row's answer */
	TERM_ASKED,    /* passes while few are without an answer */
};

#define TERM_VALUE_MAX 9999

struct term_rule {
	enum term_kind kind;
	enum term_verdict verdict;
	const char *id;
	unsigned n; /* values at most; 0: none may be there */
	uint32_t from, to;
	bool is_in_logs; /* passes also in the output of a job that has no terminal */
	const char *name, *why;
	const char *answer;
};

extern const struct term_rule term_table[];
extern const size_t term_table_len;

/* The row that lets it through, answers or asks it; NULL: it is removed. No value counts as 0. */
const struct term_rule *term_rule_find(enum term_kind kind, const char *id,
				       const uint32_t *values, size_t n);
/* May it be shown? */
bool term_char_passes(uint32_t c);

#endif
