/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First byte: how the rest is cut; second: what an event may have. Beside it a plain reader that
 * has all of the bytes: the same lines, the same events and data, and every byte is in one event.
 */
#include "common/text/event_stream.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX ((size_t)1 << 20)

/* What was read, as one text: each line and each event's data with their lengths. */
struct told {
	struct buf lines, raw;
	bool is_too_long;
};

static void add_line(struct buf *out, const char *text, size_t len)
{
	buf_addf(out, "L%zu:", len);
	buf_add(out, text, len);
}

static void add_event(struct buf *out, const struct buf *data, size_t n_data)
{
	buf_addf(out, "E%zu,%zu:", n_data, data->len);
	buf_add(out, data->data, data->len);
}

static void check_line(const struct event_line *l)
{
	assert(l->len > 0 && !memchr(l->text, '\n', l->len) &&
	       !memchr(l->text, '\r', l->len));
	assert(l->field_len <= l->len && l->value >= l->text &&
	       l->value + l->value_len == l->text + l->len);
	assert(!memchr(l->text, ':', l->field_len));
	assert(l->field_len == l->len || l->text[l->field_len] == ':');
}

static void take_all(struct event_stream *s, const char *at, size_t len, struct told *t)
{
	struct event_line l;
	enum event_got got;

	while ((got = event_stream_take(s, &at, &len, &l)) != EVENT_NONE) {
		if (got == EVENT_TOO_LONG) {
			t->is_too_long = true;
			return;
		}
		if (got == EVENT_LINE) {
			check_line(&l);
			add_line(&t->lines, l.text, l.len);
			continue;
		}
		assert(s->event.len <= s->event.max && s->data.len <= s->event.len);
		add_event(&t->lines, &s->data, s->n_data);
		buf_add(&t->raw, s->event.data, s->event.len);
	}
	assert(len == 0);
}

static void run(const char *data, size_t size, size_t piece, size_t max, struct told *t)
{
	struct event_stream s;
	struct event_line l;

	event_stream_init(&s, max);
	for (size_t i = 0; i < size && !t->is_too_long; i += piece)
		take_all(&s, data + i, size - i < piece ? size - i : piece, t);
	if (!t->is_too_long) {
		enum event_got got = event_stream_end(&s, &l);

		if (got == EVENT_LINE)
			add_line(&t->lines, l.text, l.len);
		if (got == EVENT_END)
			add_event(&t->lines, &s.data, s.n_data);
		buf_add(&t->raw, s.event.data, s.event.len);
	}
	event_stream_done(&s);
}

/* As the standard has it, on the whole text. */
static void read_plainly(const char *at, size_t size, struct buf *out)
{
	const char *end = at + size;
	struct buf data;
	size_t n_data = 0;

	buf_init(&data, OUT_MAX);
	if (size >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
		at += 3;
		if (at == end) /* a mark alone is a blank line here, which says nothing */
			add_event(out, &data, 0);
	}
	while (at < end) {
		size_t n = 0, skip = 5;

		while (at + n < end && at[n] != '\n' && at[n] != '\r')
			n++;
		if (n == 0) {
			add_event(out, &data, n_data);
			buf_reset(&data);
			n_data = 0;
		} else {
			add_line(out, at, n);
		}
		if ((n == 4 || (n > 4 && at[4] == ':')) && memcmp(at, "data", 4) == 0) {
			if (n_data++)
				buf_addc(&data, '\n');
			skip += n > skip && at[skip] == ' ';
			if (n > skip)
				buf_add(&data, at + skip, n - skip);
		}
		at += n;
		if (at < end)
			at += at[0] == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1;
	}
	buf_done(&data);
}

static bool is_same(const struct buf *a, const char *b, size_t len)
{
	return a->len == len && (len == 0 || memcmp(a->data, b, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told whole = {.is_too_long = false}, cut = {.is_too_long = false};
	struct buf plain;
	const char *text = (const char *)data + 2;

	if (size < 2 || size > 4096)
		return 0;
	buf_init(&whole.lines, OUT_MAX);
	buf_init(&whole.raw, OUT_MAX);
	buf_init(&cut.lines, OUT_MAX);
	buf_init(&cut.raw, OUT_MAX);
	buf_init(&plain, OUT_MAX);
	run(text, size - 2, size, (size_t)data[1] * 32 + 1, &whole);
	run(text, size - 2, (size_t)data[0] + 1, (size_t)data[1] * 32 + 1, &cut);
	assert(whole.is_too_long == cut.is_too_long);
	assert(is_same(&whole.lines, buf_str(&cut.lines), cut.lines.len));
	read_plainly(text, size - 2, &plain);
	if (whole.is_too_long) {
		assert(plain.len >= whole.lines.len &&
		       memcmp(buf_str(&plain), buf_str(&whole.lines), whole.lines.len) ==
			       0);
	} else {
		assert(is_same(&whole.lines, buf_str(&plain), plain.len));
		assert(is_same(&whole.raw, text, size - 2));
		assert(is_same(&cut.raw, text, size - 2));
	}
	buf_done(&whole.lines);
	buf_done(&whole.raw);
	buf_done(&cut.lines);
	buf_done(&cut.raw);
	buf_done(&plain);
	return 0;
}
