/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * PostgreSQL's COPY format (text), as its server writes it and in no other spelling: one
 * section a table, each begins with a line of column names and ends in a line "\.".
 *
 * An archive's rows go to `psql -c 'COPY ... FROM STDIN'`, section by section. Where one
 * ends is decided by psql and by the server, each with a reading of its own of what is odd
 * (an end in the middle of a line, carriage returns, escapes). So nothing odd reaches
 * them: here a backslash is followed by one of b f n r t v \, by N as a whole field, or by
 * a dot as a whole line; what the server escapes does not stand there as it is. What the
 * fields mean is the server's business.
 */
#ifndef LYCH_CLI_BACKUP_COPY_TEXT_H
#define LYCH_CLI_BACKUP_COPY_TEXT_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COPY_TEXT_SECTIONS_MAX 32
/* A body of 1 MiB in hex, many times. The server's own bound is 1 GiB, in its memory. */
#define COPY_TEXT_LINE_MAX ((uint64_t)64 << 20)

enum copy_text_place {
	COPY_TEXT_LINE,	 /* at the beginning of a line */
	COPY_TEXT_FIELD, /* of a field */
	COPY_TEXT_INSIDE,
	COPY_TEXT_ESCAPE, /* behind a backslash */
	COPY_TEXT_NULL,	  /* behind \N */
	COPY_TEXT_END,	  /* behind \. */
};

struct copy_text {
	unsigned sections;			/* complete ones */
	uint64_t lines[COPY_TEXT_SECTIONS_MAX]; /* the names of the columns too */
	uint64_t bytes, line_bytes;
	enum copy_text_place place, before; /* before: a backslash */
};
void copy_text_begin(struct copy_text *c);
/* ERRID_BACKUP_DAMAGED. */
MUST_CHECK int copy_text_add(struct copy_text *c, const void *data, size_t len,
			     struct err *err);
/* Exactly so many sections, and nothing behind them. */
MUST_CHECK int copy_text_end(const struct copy_text *c, unsigned sections,
			     struct err *err);
/* Of a section that is complete. */
uint64_t copy_text_rows(const struct copy_text *c, unsigned section);

#endif
