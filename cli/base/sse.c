/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/sse.h"

#include "common/str.h"

void sse_init(struct sse *s)
{
	*s = (struct sse){0};
	buf_init(&s->line, SSE_LINE_MAX_BYTES);
	buf_init(&s->data, SSE_LINE_MAX_BYTES);
}

void sse_done(struct sse *s)
{
	buf_done(&s->line);
	buf_done(&s->data);
}

static const char *value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) != 0 || line[n] != ':')
		return NULL;
	line += n + 1;
	return *line == ' ' ? line + 1 : line;
}

static int take_line(struct sse *s, sse_fn *fn, void *arg, struct err *err)
{
	const char *line, *v;
	int r = 0;

	if (s->line.len && s->line.data[s->line.len - 1] == '\r') {
		s->line.data[s->line.len - 1] = '\0';
		s->line.len--;
	}
	line = buf_str(&s->line);
	if (s->line.len == 0) {
		if (s->has_data)
			r = fn(s->event[0] ? s->event : "message", buf_str(&s->data),
			       s->data.len, arg, err);
		if (r >= 0)
			memcpy(s->id, s->next_id, sizeof(s->id));
		buf_reset(&s->data);
		s->event[0] = '\0';
		s->has_data = false;
	} else if ((v = value_of(line, "event"))) {
		if (str_copy(s->event, sizeof(s->event), v) < 0)
			r = err_set_id(err, ERRID_HTTP_ANSWER,
				       "an event's name is too long");
	} else if ((v = value_of(line, "id"))) {
		if (str_copy(s->next_id, sizeof(s->next_id), v) < 0 ||
		    str_has_control(v, strlen(v)))
			r = err_set_id(err, ERRID_HTTP_ANSWER, "an event's id is none");
	} else if ((v = value_of(line, "data"))) {
		if (s->has_data)
			r = err_set_id(err, ERRID_HTTP_ANSWER,
				       "an event with two data lines");
		s->has_data = true;
		buf_add(&s->data, v, s->line.len - (size_t)(v - line));
	}
	buf_reset(&s->line);
	return r;
}

int sse_feed(struct sse *s, const void *data, size_t len, sse_fn *fn, void *arg,
	     struct err *err)
{
	const char *p = data;

	while (len) {
		const char *nl = memchr(p, '\n', len);
		size_t n = nl ? (size_t)(nl - p) : len;

		buf_add(&s->line, p, n);
		if (!buf_ok(&s->line))
			return err_set_id(err, ERRID_HTTP_ANSWER,
					  "a line of the stream is too long");
		if (!nl)
			return 0;
		p += n + 1;
		len -= n + 1;
		int r = take_line(s, fn, arg, err);

		if (r)
			return r;
	}
	return 0;
}
