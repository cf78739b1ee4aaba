/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See copy_text.h.
 */
#include "cli/backup/copy_text.h"

#include <assert.h>
#include <string.h>

void copy_text_begin(struct copy_text *c)
{
	*c = (struct copy_text){.place = COPY_TEXT_LINE};
}

static int refuse(const struct copy_text *c, const char *why, struct err *err)
{
	return err_set_id(err, ERRID_BACKUP_DAMAGED,
			  "the rows of its database, byte %llu: %s",
			  (unsigned long long)c->bytes, why);
}

static int end_section(struct copy_text *c, struct err *err)
{
	if (c->lines[c->sections] == 0)
		return refuse(c, "a table without its columns' names", err);
	c->sections++;
	c->place = COPY_TEXT_LINE;
	c->line_bytes = 0;
	return 0;
}

static void end_line(struct copy_text *c)
{
	c->lines[c->sections]++;
	c->place = COPY_TEXT_LINE;
	c->line_bytes = 0;
}

/* A byte that stands for itself, or ends a field or line. */
static int plain(struct copy_text *c, unsigned char b, struct err *err)
{
	switch (b) {
	case '\n':
		end_line(c);
		return 0;
	case '\t':
		c->place = COPY_TEXT_FIELD;
		return 0;
	case '\\':
		c->before = c->place;
		c->place = COPY_TEXT_ESCAPE;
		return 0;
	case '\0':
	case '\b':
	case '\f':
	case '\r':
	case '\v':
		return refuse(c, "one that is written with a backslash", err);
	default:
		c->place = COPY_TEXT_INSIDE;
		return 0;
	}
}

static int escaped(struct copy_text *c, unsigned char b, struct err *err)
{
	if (b == '.' && c->before == COPY_TEXT_LINE) {
		c->place = COPY_TEXT_END;
		return 0;
	}
	if (b == 'N' && c->before != COPY_TEXT_INSIDE) {
		c->place = COPY_TEXT_NULL;
		return 0;
	}
	if (!b || !strchr("bfnrtv\\", b))
		return refuse(c, "a backslash that means nothing there", err);
	c->place = COPY_TEXT_INSIDE;
	return 0;
}

static int add_byte(struct copy_text *c, unsigned char b, struct err *err)
{
	if (c->sections == COPY_TEXT_SECTIONS_MAX)
		return refuse(c, "something follows", err);
	if (c->line_bytes++ == COPY_TEXT_LINE_MAX)
		return refuse(c, "a row without end", err);
	switch (c->place) {
	case COPY_TEXT_ESCAPE:
		return escaped(c, b, err);
	case COPY_TEXT_NULL:
		return b == '\t' || b == '\n' ? plain(c, b, err)
					      : refuse(c, "something behind \\N", err);
	case COPY_TEXT_END:
		return b == '\n' ? end_section(c, err)
				 : refuse(c, "something behind \\.", err);
	case COPY_TEXT_LINE:
	case COPY_TEXT_FIELD:
	case COPY_TEXT_INSIDE:
		return plain(c, b, err);
	}
	return refuse(c, "nowhere", err);
}

int copy_text_add(struct copy_text *c, const void *data, size_t len, struct err *err)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < len; i++) {
		if (add_byte(c, at[i], err) < 0)
			return -1;
		c->bytes++;
	}
	return 0;
}

int copy_text_end(const struct copy_text *c, unsigned sections, struct err *err)
{
	if (c->sections < sections)
		return refuse(c, "it is cut short", err);
	if (c->sections > sections || c->place != COPY_TEXT_LINE || c->line_bytes ||
	    (c->sections < COPY_TEXT_SECTIONS_MAX && c->lines[c->sections]))
		return refuse(c, "something follows the last table", err);
	return 0;
}

uint64_t copy_text_rows(const struct copy_text *c, unsigned section)
{
	assert(section < c->sections);
	return c->lines[section] - 1;
}
