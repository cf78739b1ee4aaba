/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See sse.h.
 */
#include "cli/base/sse.h"

#include "common/str.h"

void sse_init(struct sse *s)
{
	*s = (struct sse){.event = ""};
	event_stream_init(&s->lines, SSE_EVENT_MAX_BYTES);
}

void sse_done(struct sse *s)
{
	event_stream_done(&s->lines);
}

static bool copy_value(const struct event_line *l, char *out, size_t size)
{
	if (l->value_len >= size || memchr(l->value, '\0', l->value_len))
		return false;
	memcpy(out, l->value, l->value_len);
	out[l->value_len] = '\0';
	return true;
}

static int take_line(struct sse *s, const struct event_line *l, struct err *err)
{
	if (event_line_is(l, "event") && !copy_value(l, s->event, sizeof(s->event)))
		return err_set_id(err, ERRID_HTTP_ANSWER, "an event's name is too long");
	if (event_line_is(l, "id") && (!copy_value(l, s->next_id, sizeof(s->next_id)) ||
				       str_has_control(s->next_id, l->value_len)))
		return err_set_id(err, ERRID_HTTP_ANSWER, "an event's id is none");
	if (s->lines.n_data > 1)
		return err_set_id(err, ERRID_HTTP_ANSWER, "an event with two data lines");
	return 0;
}

static int take_event(struct sse *s, sse_fn *fn, void *arg, struct err *err)
{
	const struct buf *data = &s->lines.data;
	int r = 0;

	if (s->lines.n_data > 0)
		r = fn(s->event[0] ? s->event : "message", buf_str(data), data->len, arg,
		       err);
	if (r >= 0)
		memcpy(s->id, s->next_id, sizeof(s->id));
	s->event[0] = '\0';
	return r;
}

int sse_feed(struct sse *s, const void *data, size_t len, sse_fn *fn, void *arg,
	     struct err *err)
{
	const char *at = data;
	struct event_line l;
	int r = 0;

	while (r == 0) {
		switch (event_stream_take(&s->lines, &at, &len, &l)) {
		case EVENT_NONE:
			return 0;
		case EVENT_LINE:
			r = take_line(s, &l, err);
			break;
		case EVENT_END:
			r = take_event(s, fn, arg, err);
			break;
		case EVENT_TOO_LONG:
			return err_set_id(err, ERRID_HTTP_ANSWER,
					  "an event of the stream is too long");
		}
	}
	return r;
}
