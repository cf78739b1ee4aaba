/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What people see. Text that a job controls is never trusted: in tables every control
 * byte, bidi control and invalid byte is shown escaped; a job's output on a terminal
 * passes log_filter.h. Pipes get raw bytes.
 */
#ifndef LYCH_CLI_UI_RENDER_H
#define LYCH_CLI_UI_RENDER_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stddef.h>

/* Append text with everything dangerous shown as \xNN or \u{NNNN}; at most width columns
 * (bytes of ASCII, characters otherwise), 0 = all; a cut ends in "…". */
void render_escape(struct buf *out, const char *text, size_t len, size_t width);

/* The same, whole. The caller frees it. */
char *render_shown(const char *text);

/* Is this stream a terminal that wants colours? NO_COLOR and TERM=dumb say no. */
bool render_has_colour(int fd);
bool render_is_terminal(int fd);
/* stdout, and stderr where it is a terminal, go to this descriptor (a pager's), and are taken
 * for the terminal that they were until render_unpage(). */
MUST_CHECK int render_page(int fd, struct err *err);
void render_unpage(void);
/* A terminal on which what stands can be written over. */
bool render_has_cursor(int fd);
size_t render_rows(int fd);

/* Of a line that has been escaped what a terminal shows in one, cut as above: what wrapped
 * would begin a line of its own, and could look like one of ours. Whole when fd is none.
 * The caller frees it. */
char *render_fit(const char *line, int fd);

/* A table: columns as wide as their widest cell. Cells are escaped. On a terminal the widest
 * columns give way until a row is one line of it. */
struct table {
	size_t n_cols, n_cells;
	char **cells;
};
void table_init(struct table *t, size_t n_cols);
void table_cell(struct table *t, const char *text);
/* The same, cut for a terminal only. */
void table_cell_whole(struct table *t, const char *text);
/* An object as rows of two cells, "a.b" and its value, cut by table_print() only; a list's
 * limits and walls are one row each. */
void table_tree(struct table *t, const struct json *obj);
void table_print(const struct table *t, bool header); /* stdout */
void table_done(struct table *t);

/* A string of an object (NULL: of none); "" when it is absent, null or no string. */
const char *render_text_of(const struct json *o, const char *key);
/* A whole number of an object (NULL: of none); 0 when it is absent or none. */
uint64_t render_number_of(const struct json *o, const char *key);
/* One value as one line of JSON on stdout. */
void render_json(const struct json *j);
/* "512.0 MiB" */
void render_size(char out[32], unsigned long long bytes);
/* What is written to stdout by stdio goes through render_write too: first in main. is_closed:
 * nobody gave this process a stdout, so whatever is written there is lost, and is an error. */
MUST_CHECK int render_stdout_init(bool is_closed, struct err *err);
/* All of it to stdout or stderr, whoever made that non-blocking: ERRID_CORE_OUTPUT. */
MUST_CHECK int render_write(int fd, const void *data, size_t len, struct err *err);
/* Does somebody read stdout yet? Of a pipe or socket whose other end is gone: ERRID_CORE_OUTPUT with
 * EPIPE, before anything is written. */
MUST_CHECK int render_is_read(struct err *err);
/* Flush stdout; EPIPE and a full disk are errors. */
MUST_CHECK int render_flush(struct err *err);

#endif
