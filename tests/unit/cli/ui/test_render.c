/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/sse.h"
#include "cli/ui/log_filter.h"
#include "cli/ui/render.h"
#include "common/term/table.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <string.h>

static const char *escaped(const char *text, size_t len, size_t width)
{
	static struct buf b;

	buf_done(&b);
	buf_init(&b, 65536);
	render_escape(&b, text, len, width);
	cr_assert(buf_ok(&b));
	return buf_str(&b);
}

Test(render, a_cell_shows_control_bytes_instead_of_sending_them)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} cases[] = {
		{"a\x1b[31mb", 7, "a\\x1b[31mb"},
		{"\x1b]0;title\a", 10, "\\x1b]0;title\\x07"},
		{"line\nfeed\ttab\rcr", 16, "line\\nfeed\\ttab\\rcr"},
		{"nul\0x", 5, "nul\\x00x"},
		{"\xc2\x9b"
		 "31m",
		 5, "\\u{9b}31m"}, /* C1 CSI */
		{"\xe2\x80\xae"
		 "abc",
		 6, "\\u{202e}abc"},		    /* right-to-left override */
		{"\xe2\x81\xa6x", 4, "\\u{2066}x"}, /* isolate */
		{"\xff\xfe", 2, "\\xff\\xfe"},
		{"\xc3", 1, "\\xc3"},	       /* cut character */
		{"\xc0\xaf", 2, "\\xc0\\xaf"}, /* overlong */
		{"gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f"},
		{"\x7f", 1, "\\x7f"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_str_eq(escaped(cases[i].in, cases[i].len, 0), cases[i].out,
				 "case %zu: %s", i,
				 escaped(cases[i].in, cases[i].len, 0));
}

Test(render, a_long_cell_is_cut_with_an_ellipsis)
{
	cr_assert_str_eq(escaped("abcdefghij", 10, 5), "abcd…");
	cr_assert_str_eq(escaped("abcde", 5, 5), "abcde");
}

Test(render, a_tree_has_one_row_for_each_limit_and_wall_and_cuts_nothing)
{
	static const char text[] =
		"{\"layers\":[\"fds\",\"env\"],\"none\":null,\"empty\":[],"
		"\"limits\":[{\"name\":\"memory\",\"value\":7,\"mechanism\":\"cgroup\"}],"
		"\"walls\":[{\"wall\":\"net\",\"answer\":\"EACCES\",\"held\":true},"
		"{\"wall\":\"fs\",\"answer\":\"opened\",\"held\":false}],"
		"\"others\":[{\"a\":{\"b\":\"\\u001b[2J\"}}],\"long\":\"%s\"}";
	static const char *const rows[] = {
		"layers",	 "[\"fds\",\"env\"]",
		"none",		 "-",
		"empty",	 "-",
		"limits.memory", "7 by cgroup",
		"walls.net",	 "held: EACCES",
		"walls.fs",	 "DID NOT HOLD: opened",
		"others.0.a.b",	 "\\x1b[2J",
		"long",
	};
	char filler[6001], in[8192];
	struct err err = ERR_INIT;
	struct json *j = NULL;
	struct table t;
	int len;

	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	len = snprintf(in, sizeof(in), text, filler);
	cr_assert_eq(json_parse(in, (size_t)len, JSON_DEPTH_DEFAULT, &j, &err), 0, "%s",
		     err.msg);
	table_init(&t, 2);
	table_tree(&t, j);
	cr_assert_eq(t.n_cells, ARRAY_SIZE(rows) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_assert_str_eq(t.cells[i], rows[i]);
	cr_assert_str_eq(t.cells[ARRAY_SIZE(rows)], filler);
	table_done(&t);
	json_free(j);
}

/* Both ends of a terminal of that width. */
static void terminal(int fd[2], unsigned short columns)
{
	struct winsize w = {.ws_row = 24, .ws_col = columns};

	cr_assert_eq(openpty(&fd[0], &fd[1], NULL, NULL, &w), 0);
}

Test(render, a_line_is_cut_to_the_columns_of_its_terminal)
{
	static const struct {
		const char *in;
		unsigned short columns;
		const char *out;
	} cases[] = {
		{"abcdefghij", 10, "abcdefghij"},
		{"abcdefghij", 9, "abcdefgh…"},
		{"a    7  9 MiB", 5, "a   …"},
		{"字字字", 6, "字字字"},
		{"字字字", 5, "字字…"}, /* each takes two */
		{"字字字", 4, "字…"},
		{"\U0001f600x", 2, "…"},
		{"éé", 1, "…"},
		{"é", 1, "é"},
		{"\xff\xe5\xad", 2, "\xff…"}, /* no character is a column for each byte */
		{"\xff\xff", 2, "\xff\xff"},
	};
	char filler[100] = "";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd[2];

		terminal(fd, cases[i].columns);
		char *fit = render_fit(cases[i].in, fd[1]);

		cr_expect_str_eq(fit, cases[i].out, "case %zu: %s", i, fit);
		free(fit);
		(void)close(fd[0]);
		(void)close(fd[1]);
	}
	memset(filler, 'x', sizeof(filler) - 1);
	int fd[2], none = open("/dev/null", O_WRONLY | O_CLOEXEC);

	terminal(fd, 0);
	char *unknown = render_fit(filler, fd[1]), *whole = render_fit(filler, none);

	cr_expect_eq(strlen(unknown), 79 + strlen("…"));
	cr_expect_str_eq(whole, filler);
	free(unknown);
	free(whole);
	(void)close(none);
}

Test(render, output_that_cannot_be_written_is_an_error_of_its_own)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct err err = ERR_INIT;

	cr_assert_geq(fd, 0);
	cr_assert_lt(render_write(fd, "x", 1, &err), 0);
	cr_assert_eq(err.id, ERRID_CORE_OUTPUT);
	cr_assert_eq(err.code, ERR_SYS);
	cr_assert_eq(err.sys, ENOSPC);
	(void)close(fd);
}

/* Feed byte by byte and as a whole: the pieces must not matter. */
static const char *filtered(const char *in, size_t len)
{
	static struct buf whole, bytes;
	struct log_filter f = {0}, g = {0};

	buf_done(&whole);
	buf_done(&bytes);
	buf_init(&whole, 65536);
	buf_init(&bytes, 65536);
	log_filter(&f, in, len, &whole);
	for (size_t i = 0; i < len; i++)
		log_filter(&g, in + i, 1, &bytes);
	cr_assert_str_eq(buf_str(&whole), buf_str(&bytes));
	return buf_str(&whole);
}

Test(render, the_terminal_filter_keeps_colours_and_drops_the_rest)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain\n", "plain\n"},
		{"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"},
		{"\x1b[38;2;1;2;3mx", "\x1b[38;2;1;2;3mx"},
		{"\x1b[38:5:1mx", "\x1b[38;5;1mx"},
		{"\x1b[2Jx", "x"},     /* clear */
		{"\x1b[10;10Hx", "x"}, /* move */
		{"\x1b[?1049hx", "x"}, /* other screen */
		{"\x1b[>4;2mx", "x"},  /* keyboard mode: not SGR */
		{"\x1b[6nx", "x"},     /* report */
		{"\x1b]0;title\ax", "x"},
		{"\x1b]52;c;ZXZpbA==\x1b\\x", "x"}, /* clipboard */
		{"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1bPq#0;2;0\x1b\\x", "x"}, /* DCS */
		{"\x1b_apc\x1b\\x", "x"},
		{"\x1b^pm\x1b\\x", "x"},
		{"\x1bXsos\x1b\\x", "x"},
		{"\x1b"
		 "cx",
		 "x"},		  /* reset */
		{"\x1b(0x", "x"}, /* character set */
		{"\x1b]0;never closed\nnext", "\nnext"},
		{"\xc2\x9b"
		 "2Jx",
		 "\\u{9b}2Jx"},
		{"a\x0e"
		 "b",
		 "a\\x0eb"},
		{"\xe2\x80\xae"
		 "x",
		 "\\u{202e}x"},
		{"\xff", "\\xff"},
		{"\xc3(", "\\xc3("},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_str_eq(filtered(cases[i].in, strlen(cases[i].in)), cases[i].out,
				 "case %zu", i);
}

/* What a job has shown stays where it is: nothing of it is written over by the job. */
Test(render, what_was_shown_is_not_overwritten)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"rm -rf /\rls\n", "rm -rf /\nls\n"},
		{"one\r\ntwo\r\n", "one\ntwo\n"},
		{" 10%\r 20%\r 30%\n", " 10%\n 20%\n 30%\n"},
		{"\r 10%\r\r\r 20%\r\n", " 10%\n 20%\n"},
		{"bad\r\x1b[2K\x1b[32mgood\n", "bad\x1b[32m\ngood\n"},
		{"bad\x1b[3Dgood", "badgood"},
		{"\n\rx", "\nx"},
		{"x\r\ty", "x\n\ty"},
		{"\xc3\xbc\r\xc3\xb6", "\xc3\xbc\n\xc3\xb6"},
		{"\xff\ry", "\\xff\ny"},
		{"abc\b\b\bxyz", "abc\\x08\\x08\\x08xyz"},
		{"ring\a", "ring\\x07"},
		{"a\vb\fc", "a\\x0bb\\x0cc"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_str_eq(filtered(cases[i].in, strlen(cases[i].in)), cases[i].out,
				 "case %zu: %s", i,
				 filtered(cases[i].in, strlen(cases[i].in)));
}

Test(render, of_the_renditions_logs_have_those_of_the_table)
{
	for (size_t i = 0; i < term_table_len; i++) {
		const struct term_rule *r = &term_table[i];
		bool is_colour = r->from == 38 || r->from == 48;
		char in[32];

		if (r->kind != TERM_OF_SGR) {
			cr_assert(!r->is_in_logs || r->kind == TERM_OF_C0, "%s", r->name);
			continue;
		}
		(void)snprintf(in, sizeof(in), "\x1b[%u%smx", r->from,
			       is_colour ? ";5;1" : "");
		cr_assert_str_eq(filtered(in, strlen(in)), r->is_in_logs ? in : "x", "%s",
				 r->name);
	}
}

Test(render, a_line_that_ends_in_a_return_is_ended)
{
	struct log_filter f = {0};
	struct buf out;

	buf_init(&out, 256);
	log_filter(&f, "99%\r", 4, &out);
	log_filter_end(&f, &out);
	cr_assert_str_eq(buf_str(&out), "99%\n\x1b[0m");
	buf_reset(&out);
	log_filter(&f, "done\n\r", 6, &out);
	log_filter_end(&f, &out);
	cr_assert_str_eq(buf_str(&out), "done\n\x1b[0m");
	buf_done(&out);
}

Test(render, no_rendition_hides_text)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"\x1b[8msecret", "secret"},
		{"\x1b[1;8;31msecret", "\x1b[1;31msecret"},
		{"\x1b[008msecret", "secret"},
		{"\x1b[0000008msecret", "secret"},
		{"\x1b[4294967304msecret", "secret"},
		{"\x1b[5mx\x1b[6mx", "xx"},
		{"\x1b[10mx\x1b[11mx\x1b[12mx\x1b[20mx", "xxxx"},
		{"\x1b[mx", "\x1b[0mx"},
		{"\x1b[;31mx", "\x1b[0;31mx"},
		{"\x1b[28mx", "\x1b[28mx"},
		/* a number of a colour is no rendition, and what follows it is */
		{"\x1b[38;5;8mx", "\x1b[38;5;8mx"},
		{"\x1b[38;5;8;8mx", "\x1b[38;5;8mx"},
		{"\x1b[48;2;8;8;8;1mx", "\x1b[48;2;8;8;8;1mx"},
		{"\x1b[38;2;8;8mx", "x"},
		{"\x1b[38;8mx", "x"},
		{"\x1b[1;38;8;8mx", "\x1b[1mx"},
		{"\x1b[38;5;256mx", "x"},
		/* parts: who does not know them may read them as numbers */
		{"\x1b[38:2::1:8:3mx", "\x1b[38;2;1;8;3mx"},
		{"\x1b[38:2:1:8:3mx", "\x1b[38;2;1;8;3mx"},
		{"\x1b[58;5;8mx", "x"},
		{"\x1b[58:5:8mx", "x"},
		{"\x1b[4:3mx", "\x1b[4mx"},
		{"\x1b[0:8mx", "x"},
		{"\x1b[1:8mx", "x"},
		{"\x1b[38:5:8:8mx", "x"},
		{"\x1b[1:2:3:4:5:6:7:8:9mx", "x"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_str_eq(filtered(cases[i].in, strlen(cases[i].in)), cases[i].out,
				 "case %zu: %s", i,
				 filtered(cases[i].in, strlen(cases[i].in)));
}

Test(render, an_endless_parameter_list_is_dropped)
{
	char in[300];

	memset(in, '1', sizeof(in));
	memcpy(in, "\x1b[", 2);
	in[298] = 'm';
	in[299] = 'x';
	cr_assert_str_eq(filtered(in, sizeof(in)), "x");
}

static unsigned events;
static char last[64];

static int on_event(const char *event, const char *data, size_t len, void *arg,
		    struct err *err)
{
	(void)arg;
	(void)err;
	cr_assert_eq(strlen(data), len);
	(void)snprintf(last, sizeof(last), "%s=%s", event, data);
	return ++events == 3;
}

Test(sse, events_are_read_in_any_pieces_and_stop_when_told)
{
	static const char in[] =
		": hello\n\nevent: state\ndata: {}\n\nevent:x\r\ndata:1\r\n\r\n"
		"data: plain\n\nevent: never\ndata: seen\n\n";
	struct err err = ERR_INIT;
	struct sse s;
	int r = 0;

	sse_init(&s);
	for (size_t i = 0; i < sizeof(in) - 1 && r == 0; i++)
		r = sse_feed(&s, in + i, 1, on_event, NULL, &err);
	cr_assert_eq(r, 1);
	cr_assert_eq(events, 3);
	cr_assert_str_eq(last, "message=plain");
	sse_done(&s);
}

static int refuse_second(const char *event, const char *data UNUSED, size_t len UNUSED,
			 void *arg UNUSED, struct err *err)
{
	return strcmp(event, "b") == 0 ? err_set(err, ERR_INTERNAL, "b") : 0;
}

Test(sse, the_id_is_of_the_last_event_that_was_taken)
{
	static const char in[] =
		"id: 1-2-3\nevent: a\ndata: {}\n\nevent: a\ndata: {}\n\n:\n\n";
	static const char more[] = "id: 1-9-9\nevent: b\ndata: {}\n\n";
	static const char long_id[] = "id: "
				      "01234567890123456789012345678901234567890123456789"
				      "01234567890123456789\n";
	struct err err = ERR_INIT;
	struct sse s;

	sse_init(&s);
	cr_assert_str_eq(s.id, "");
	cr_assert_eq(sse_feed(&s, in, 12, refuse_second, NULL, &err), 0);
	cr_assert_str_eq(s.id, "", "it is not whole yet");
	cr_assert_eq(sse_feed(&s, in + 12, strlen(in) - 12, refuse_second, NULL, &err),
		     0);
	cr_assert_str_eq(s.id, "1-2-3", "an event without one leaves it");
	cr_assert_lt(sse_feed(&s, more, strlen(more), refuse_second, NULL, &err), 0);
	cr_assert_str_eq(s.id, "1-2-3", "one that was not taken");
	sse_done(&s);
	sse_init(&s);
	cr_assert_lt(sse_feed(&s, long_id, strlen(long_id), refuse_second, NULL, &err),
		     0);
	sse_done(&s);
}

Test(sse, two_data_lines_and_long_names_are_refused)
{
	static const char two[] = "data: 1\ndata: 2\n\n";
	static const char name[] = "event: a-name-that-is-much-longer-than-any-of-ours\n";
	struct err err = ERR_INIT;
	struct sse s;

	sse_init(&s);
	cr_assert_lt(sse_feed(&s, two, strlen(two), on_event, NULL, &err), 0);
	sse_done(&s);
	sse_init(&s);
	cr_assert_lt(sse_feed(&s, name, strlen(name), on_event, NULL, &err), 0);
	sse_done(&s);
}
