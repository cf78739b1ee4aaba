/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A job's bytes on a person's terminal. What has been shown stays: nothing moves the cursor
 * back, erases, or hides what is written. Through go printable text, line feeds, tabs, and of
 * "select graphic rendition" (SGR) colours, bold, faint, italic, underline, inverse and
 * crossed out.
 *
 *	\r		ends the line, as \r\n does, unless nothing is on it: what a progress bar
 *			draws over itself stands below itself
 *	\b, \a, ...	other controls, bidi controls and invalid bytes are shown escaped
 *	SGR 5, 6, 8	blinking and concealed: dropped; so are other fonts (on a console they
 *			choose what a byte looks like) and every number that is not known here
 *	other escapes	dropped to their end: cursor, screen, titles, links, clipboard, queries
 *
 * Text in the colour of its background can't be told from here, since nobody knows the
 * terminal's colours; it is there to be selected, and in `lych logs JOB | less`.
 */
#ifndef LYCH_CLI_UI_LOG_FILTER_H
#define LYCH_CLI_UI_LOG_FILTER_H

#include "common/buf.h"
#include "common/term/parse.h"
#include <stdbool.h>
#include <stddef.h>

/* Keeps its state between pieces; begins with zeros. */
struct log_filter {
	struct term_parser parser;
	bool returned; /* a \r, which may belong to a \n that comes */
	bool on_line;  /* something is shown on this line */
};
void log_filter(struct log_filter *f, const void *data, size_t len, struct buf *out);
/* After the last piece: an unfinished character is shown escaped, colours are reset. */
void log_filter_end(struct log_filter *f, struct buf *out);

#endif
