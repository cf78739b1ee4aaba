/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See event_stream.h.
 */
#include "common/text/event_stream.h"

#include <string.h>

#define MARK "\xef\xbb\xbf" /* U+FEFF */

void event_stream_init(struct event_stream *s, size_t event_max_bytes)
{
	*s = (struct event_stream){.n_data = 0};
	buf_init(&s->event, event_max_bytes);
	buf_init(&s->data, event_max_bytes);
}

void event_stream_done(struct event_stream *s)
{
	buf_done(&s->event);
	buf_done(&s->data);
}

bool event_line_is(const struct event_line *l, const char *field)
{
	return l->field_len == strlen(field) && memcmp(l->text, field, l->field_len) == 0;
}

static void begin_event(struct event_stream *s)
{
	buf_reset(&s->event);
	buf_reset(&s->data);
	s->n_data = 0;
	s->line = 0;
	s->is_over = false;
}

static void read_line(struct event_line *l)
{
	const char *colon = memchr(l->text, ':', l->len);
	size_t skip = l->len;

	l->field_len = colon ? (size_t)(colon - l->text) : l->len;
	if (colon) {
		skip = l->field_len + 1;
		skip += skip < l->len && l->text[skip] == ' ';
	}
	l->value = l->text + skip;
	l->value_len = l->len - skip;
}

/* What was taken since the last one is a line. */
static enum event_got line_done(struct event_stream *s, struct event_line *ret)
{
	struct event_line l = {.text = s->event.data + s->line,
			       .len = s->event.len - s->line};

	s->line = s->event.len;
	while (l.len > 0 && (l.text[l.len - 1] == '\n' || l.text[l.len - 1] == '\r'))
		l.len--;
	if (!s->has_begun && l.len >= strlen(MARK) &&
	    memcmp(l.text, MARK, strlen(MARK)) == 0) {
		l.text += strlen(MARK);
		l.len -= strlen(MARK);
	}
	s->has_begun = true;
	if (l.len == 0) {
		s->is_over = true;
		return EVENT_END;
	}
	read_line(&l);
	if (event_line_is(&l, "data")) {
		if (s->n_data++ > 0)
			buf_addc(&s->data, '\n');
		buf_add(&s->data, l.value, l.value_len);
	}
	*ret = l;
	return EVENT_LINE;
}

static bool take_bytes(struct event_stream *s, const char **data, size_t *len, size_t n)
{
	if (n > s->event.max - s->event.len)
		return false;
	buf_add(&s->event, *data, n);
	*data += n;
	*len -= n;
	return true;
}

/* Up to the first LF or CR, that with it. */
static size_t line_bytes(const char *data, size_t len)
{
	const char *lf = memchr(data, '\n', len);
	size_t n = lf ? (size_t)(lf - data) + 1 : len;
	const char *cr = memchr(data, '\r', n);

	return cr ? (size_t)(cr - data) + 1 : n;
}

enum event_got event_stream_take(struct event_stream *s, const char **data, size_t *len,
				 struct event_line *ret)
{
	if (s->is_over)
		begin_event(s);
	while (*len > 0) {
		size_t n = line_bytes(*data, *len);
		char last = (*data)[n - 1];

		if (s->is_cr) {
			if (**data == '\n' && !take_bytes(s, data, len, 1))
				return EVENT_TOO_LONG;
			s->is_cr = false;
			return line_done(s, ret);
		}
		if (!take_bytes(s, data, len, n))
			return EVENT_TOO_LONG;
		if (last == '\n')
			return line_done(s, ret);
		s->is_cr = last == '\r';
	}
	return EVENT_NONE;
}

enum event_got event_stream_end(struct event_stream *s, struct event_line *ret)
{
	if (s->is_over)
		begin_event(s);
	s->is_cr = false;
	return s->event.len > s->line ? line_done(s, ret) : EVENT_NONE;
}
