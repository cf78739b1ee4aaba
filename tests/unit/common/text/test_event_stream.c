/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/event_stream.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(event_stream, .timeout = 20);

#define ENOUGH 4096
#define CAP 24

/* Each event as its lines ("text>value"), then its data in brackets when it has some; an event that
 * the end of the stream cut is followed by "!". */
struct row {
	const char *what, *in, *want;
};

static const struct row rows[] = {
	{"nothing", "", ""},
	{"lines end with LF", "a: b\ndata: x\n\n", "a: b>b;data: x>x;[x]\n"},
	{"or CR", "a: b\rdata: x\r\r", "a: b>b;data: x>x;[x]\n"},
	{"or CR LF", "a: b\r\ndata: x\r\n\r\n", "a: b>b;data: x>x;[x]\n"},
	{"or each with another", "a\rb\nc\r\n\rd\n\r\n", "a>;b>;c>;\nd>;\n"},
	{"LF CR are two", "data: x\n\r", "data: x>x;[x]\n"},
	{"CR of CR LF ends no event", "data: x\r\ndata: y\r\n\n",
	 "data: x>x;data: y>y;[x/y]\n"},
	{"lines of data are joined", "data: x\ndata:\ndata\ndata:  y\n\n",
	 "data: x>x;data:>;data>;data:  y> y;[x/// y]\n"},
	{"one empty line of data is data", "data\n\n", "data>;[]\n"},
	{"what is not quite data", "datax: 1\nDATA: 2\n data: 3\n: data: 4\n\n",
	 "datax: 1>1;DATA: 2>2; data: 3>3;: data: 4>data: 4;\n"},
	{"one blank only, and the first colon", "data:\t x\ndata: : y\n\n",
	 "data:\t x>\t x;data: : y>: y;[\t x/: y]\n"},
	{"events without lines", "\n\r\r\n", "\n\n\n"},
	{"a mark in front is no text",
	 "\xef\xbb\xbf"
	 "data: x\n\n",
	 "data: x>x;[x]\n"},
	{"nor is it a line", "\xef\xbb\xbf\ndata: x\n\n", "\ndata: x>x;[x]\n"},
	{"a second one is text",
	 "\xef\xbb\xbf\xef\xbb\xbf"
	 "data: x\n\n",
	 "\xef\xbb\xbf"
	 "data: x>x;\n"},
	{"and one that comes later",
	 "\n\xef\xbb\xbf"
	 "data: x\n\n",
	 "\n\xef\xbb\xbf"
	 "data: x>x;\n"},
	{"half a mark", "\xef\xbb", "\xef\xbb>;!"},
	{"an event that is cut", "data: x\n\ndata: y\n", "data: x>x;[x]\ndata: y>y;[y]!"},
	{"in a line", "data: x\n\ndata: y", "data: x>x;[x]\ndata: y>y;[y]!"},
	{"behind a CR", "data: y\r", "data: y>y;[y]!"},
	{"a blank line's CR is one", "data: y\r\n\r", "data: y>y;[y]\n"},
};

/* Of an event that may have CAP bytes. */
static const struct row capped[] = {
	{"just as long as one may be", "data: 0123456789abcdef\n\n",
	 "data: 0123456789abcdef>0123456789abcdef;[0123456789abcdef]\n"},
	{"each event has that much",
	 "data: 0123456789abcdef\n\ndata: 0123456789abcdef\n\n",
	 "data: 0123456789abcdef>0123456789abcdef;[0123456789abcdef]\n"
	 "data: 0123456789abcdef>0123456789abcdef;[0123456789abcdef]\n"},
	{"too long by its blank line", "data: 0123456789abcdefg\n\n",
	 "data: 0123456789abcdefg>0123456789abcdefg;(too long)"},
	{"too long by an LF", "data: 0123456789abcdef\n\r\n",
	 "data: 0123456789abcdef>0123456789abcdef;(too long)"},
	{"too long in all", "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\n\n",
	 "a: 1>1;b: 2>2;c: 3>3;d: 4>4;(too long)"},
	{"too long in one line", "data: x\n\n0123456789abcdef0123456789\n\n",
	 "data: x>x;[x]\n(too long)"},
};

struct run {
	struct event_stream s;
	struct buf out, raw;
};

static void put_data(struct run *r)
{
	buf_add(&r->raw, r->s.event.data, r->s.event.len);
	if (r->s.n_data == 0)
		return;
	buf_addc(&r->out, '[');
	for (size_t i = 0; i < r->s.data.len; i++)
		buf_addc(&r->out, r->s.data.data[i] == '\n' ? '/' : r->s.data.data[i]);
	buf_addc(&r->out, ']');
}

static void put(struct run *r, enum event_got got, const struct event_line *l)
{
	if (got == EVENT_LINE) {
		buf_add(&r->out, l->text, l->len);
		buf_addc(&r->out, '>');
		buf_add(&r->out, l->value, l->value_len);
		buf_addc(&r->out, ';');
	} else if (got == EVENT_END) {
		put_data(r);
		buf_addc(&r->out, '\n');
	}
}

/* False: it was too long. */
static bool feed(struct run *r, const char *data, size_t len)
{
	struct event_line l;
	enum event_got got;

	while ((got = event_stream_take(&r->s, &data, &len, &l)) != EVENT_NONE) {
		if (got == EVENT_TOO_LONG) {
			buf_adds(&r->out, "(too long)");
			buf_add(&r->raw, r->s.event.data, r->s.event.len);
			buf_add(&r->raw, data, len);
			return false;
		}
		put(r, got, &l);
	}
	cr_assert_eq(len, 0u);
	return true;
}

static void check(const struct row *row, size_t step, size_t max)
{
	size_t len = strlen(row->in);
	struct event_line l;
	struct run r;
	bool goes_on = true;
	size_t at = 0;

	event_stream_init(&r.s, max);
	buf_init(&r.out, ENOUGH);
	buf_init(&r.raw, ENOUGH);
	for (; at < len && goes_on; at += step)
		goes_on = feed(&r, row->in + at, len - at < step ? len - at : step);
	if (goes_on) {
		enum event_got got = event_stream_end(&r.s, &l);

		put(&r, got, &l);
		if (got != EVENT_END && r.s.event.len) {
			put_data(&r);
			buf_addc(&r.out, '!');
		}
	} else if (at < len) {
		buf_add(&r.raw, row->in + at, len - at);
	}
	cr_expect_str_eq(buf_str(&r.out), row->want, "%s, by %zu: %s", row->what, step,
			 buf_str(&r.out));
	cr_expect_str_eq(buf_str(&r.raw), row->in, "%s, by %zu: no byte is lost",
			 row->what, step);
	event_stream_done(&r.s);
	buf_done(&r.out);
	buf_done(&r.raw);
}

Test(event_stream, lines_and_events_whatever_the_pieces)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step <= 64; step += step < 4 ? 1 : 20)
			check(&rows[i], step, ENOUGH);
}

Test(event_stream, an_event_has_an_end_whatever_the_pieces)
{
	for (size_t i = 0; i < ARRAY_SIZE(capped); i++)
		for (size_t step = 1; step <= 64; step += step < 4 ? 1 : 20)
			check(&capped[i], step, CAP);
}

Test(event_stream, a_nul_is_a_byte_like_another)
{
	static const char in[] = "da\0ta: x\ndata: a\0b\n\n";
	const char *at = in;
	size_t len = sizeof(in) - 1;
	struct event_stream s;
	struct event_line l;

	event_stream_init(&s, sizeof(in));
	cr_assert_eq(event_stream_take(&s, &at, &len, &l), EVENT_LINE);
	cr_expect_not(event_line_is(&l, "da"));
	cr_expect_eq(l.field_len, 5u);
	cr_assert_eq(event_stream_take(&s, &at, &len, &l), EVENT_LINE);
	cr_expect(event_line_is(&l, "data") && l.value_len == 3);
	cr_assert_eq(event_stream_take(&s, &at, &len, &l), EVENT_END);
	cr_expect(s.data.len == 3 && memcmp(s.data.data, "a\0b", 3) == 0);
	event_stream_done(&s);
}
