/* SPDX-License-Identifier: Apache-2.0 */
/* A credential that a provider spells out in pieces, so that its bytes never stand side by
 * side: what a reader puts together from the reply does not hold it. */
#include "common/base64.h"
#include "common/buf.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "common/text/stream_text.h"
#include "vessel/egress/redact_reply.h"

#include <criterion/criterion.h>

#define BIG ((size_t)8 << 20)
#define KEY "sk-proj-Zq7/R+xV2m9LbT0c_Hs"
/* One letter less than what is blotted out when it stands alone. */
#define BEGINNING_MAX (sizeof("sk-proj-") - 1 + 8 - 1)

TestSuite(redact_reply, .timeout = 60);

static struct redact *key;

static void begin(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(redact_new(KEY, strlen(KEY), &key, &err), 0, "%s", err.msg);
}

static void end(void)
{
	redact_free(key);
}

static const size_t steps[] = {1 << 20, 1, 7};

/* 0, or -1 when it was refused; what came out until then is in out. */
static int run(const char *reply, bool is_stream, size_t step, struct buf *out,
	       unsigned *hits)
{
	struct redact_reply *r = redact_reply_new(key, is_stream);
	struct err err = ERR_INIT;
	int done = 0;

	buf_reset(out);
	for (size_t i = 0, len = strlen(reply), n; done == 0 && i < len; i += n) {
		n = len - i < step ? len - i : step;
		done = redact_reply_feed(r, reply + i, n, out, &err);
	}
	if (done == 0)
		done = redact_reply_end(r, out, &err);
	cr_expect(done == 0 || err.id == ERRID_EGRESS_REPLY);
	if (hits)
		*hits = redact_reply_hits(r);
	redact_reply_free(r);
	return done;
}

static void expect(const char *reply, bool is_stream, const char *want)
{
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
		cr_expect_eq(run(reply, is_stream, steps[k], &out, NULL), 0);
		cr_expect_str_eq(buf_str(&out), want, "in steps of %zu:\n%s", steps[k],
				 buf_str(&out));
	}
}

/* ---- what a reader makes of it ---- */

struct joined {
	const char *key;
	const char *index; /* as the first number of that name says */
	bool is_it, has_index;
	struct buf *out;
};

static void join_piece(enum json_piece what, const char *name, const char *text,
		       size_t len, void *arg)
{
	struct joined *j = arg;

	if (what == JSON_PIECE_NUMBER && name && str_eq(name, "index") && !j->has_index) {
		j->has_index = true;
		j->is_it = str_eq(text, j->index);
	}
	if (what == JSON_PIECE_STRING && name && str_eq(name, j->key) && j->is_it)
		buf_add(j->out, text, len);
}

/* All texts of that key in the events of choice or block `index`. */
static void join(const char *stream, const char *name, const char *index, struct buf *out)
{
	const char *at = stream;

	buf_reset(out);
	while ((at = strstr(at, "data: "))) {
		const char *stop = strchr(at, '\n');
		struct joined j = {.key = name, .index = index, .out = out};
		cleanup_json struct json *v = NULL;

		at += 6;
		cr_assert(stop);
		if (json_parse(at, (size_t)(stop - at), 32, &v, NULL) == 0)
			json_visit(v, join_piece, &j);
		at = stop;
	}
	buf_addc(out, '\0');
}

struct shape {
	const char *before, *after, *end; /* of one event; the stream's */
	const char *key;
};

#define OPENAI(choice, fields)                                                           \
	"data: {\"id\":\"c\",\"choices\":[{\"index\":" choice ",\"delta\":{" fields
#define ANTHROPIC(type, field)                                                           \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\","           \
	"\"index\":0,\"delta\":{\"type\":\"" type "\",\"" field "\":"
#define STOP                                                                             \
	"event: content_block_stop\n"                                                    \
	"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"

static const struct shape shapes[] = {
	{OPENAI("0", "\"content\":"), "}}]}\n\n", "data: [DONE]\n\n", "content"},
	{OPENAI("0", "\"reasoning_content\":"), "}}]}\n\n", "data: [DONE]\n\n",
	 "reasoning_content"},
	{OPENAI("0", "\"refusal\":"), "}}]}\n\n", "", "refusal"},
	{OPENAI("0", "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"),
	 "}}]}}]}\n\n", "data: [DONE]\n\n", "arguments"},
	{ANTHROPIC("text_delta", "text"), "}}\n\n", STOP, "text"},
	{ANTHROPIC("thinking_delta", "thinking"), "}}\n\n", STOP, "thinking"},
	{ANTHROPIC("input_json_delta", "partial_json"), "}}\n\n", "", "partial_json"},
};

static void add_event(struct buf *b, const struct shape *s, const char *text, size_t len)
{
	struct jsonw w;

	buf_adds(b, s->before);
	jsonw_init(&w, b);
	jsonw_strn(&w, text, len);
	buf_adds(b, s->after);
}

/* The text in events that end at each of the cuts (0: everywhere). */
static void speak(struct buf *b, const struct shape *s, const char *text, size_t cut,
		  size_t second)
{
	size_t len = strlen(text), from = 0;

	buf_reset(b);
	for (size_t i = 1; i <= len; i++)
		if (i == len || cut == 0 || i == cut || i == second) {
			add_event(b, s, text + from, i - from);
			from = i;
		}
	buf_adds(b, s->end);
}

static void expect_blotted(const struct shape *s, const char *text, size_t cut,
			   size_t second, const char *want)
{
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	speak(&reply, s, text, cut, second);
	for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
		unsigned hits = 0;

		cr_assert_eq(run(buf_str(&reply), true, steps[k], &out, &hits), 0);
		join(buf_str(&out), s->key, "0", &told);
		cr_assert_str_eq(told.data, want,
				 "%s, cut at %zu and %zu, steps %zu:\n%s", s->key, cut,
				 second, steps[k], buf_str(&out));
		cr_assert_eq(hits, 1u);
	}
}

Test(redact_reply, a_key_over_two_events_at_every_place, .init = begin, .fini = end)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (size_t cut = 1; cut < strlen("it is " KEY "."); cut++)
			expect_blotted(&shapes[i], "it is " KEY ".", cut, 0,
				       "it is [redacted].");
}

Test(redact_reply, a_key_over_three_events_at_every_place, .init = begin, .fini = end)
{
	for (size_t cut = 1; cut < strlen(KEY); cut++)
		for (size_t second = cut + 1; second <= strlen(KEY); second++)
			expect_blotted(&shapes[0], KEY " it is", cut, second,
				       "[redacted] it is");
}

Test(redact_reply, a_letter_an_event, .init = begin, .fini = end)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		expect_blotted(&shapes[i], "ask: " KEY "sk-", 0, 0, "ask: [redacted]sk-");
		/* the end of the stream is in the middle of it */
		expect_blotted(&shapes[i], "sk-proj-Zq7/R+xV2", 0, 0, "[redacted]");
	}
}

static void add_base64(struct buf *b, size_t before, bool url)
{
	cleanup_buf struct buf plain;

	buf_init(&plain, 4096);
	buf_add(&plain, "\1\2", before);
	buf_adds(&plain, KEY);
	base64_add(b, plain.data, plain.len);
	for (size_t i = 0; url && i < b->len; i++)
		b->data[i] = b->data[i] == '+'	 ? '-'
			     : b->data[i] == '/' ? '_'
						 : b->data[i];
}

Test(redact_reply, in_base64_and_escaped_over_events, .init = begin, .fini = end)
{
	cleanup_buf struct buf text, reply, out, told;

	buf_init(&text, 4096);
	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t form = 0; form < 8; form++) {
		buf_reset(&text);
		if (form < 6)
			add_base64(&text, form % 3, form >= 3);
		for (const char *k = KEY; form >= 6 && *k; k++)
			buf_addf(&text, form == 6 ? "\\u%04x" : "%%%02X", (unsigned)*k);
		for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
			for (size_t cut = 0; cut < text.len; cut++) {
				speak(&reply, &shapes[i], text.data, cut, 0);
				cr_assert_eq(run(reply.data, true, 4096, &out, NULL), 0);
				join(buf_str(&out), shapes[i].key, "0", &told);
				cr_assert(strstr(told.data, REDACT_MARK),
					  "form %zu cut %zu: %s", form, cut, told.data);
				cr_assert(strlen(told.data) < 20, "form %zu cut %zu: %s",
					  form, cut, told.data);
			}
	}
}

/* As the wire's JSON has it: "s" is "s". */
Test(redact_reply, letters_that_are_escapes_of_the_event, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (const char *k = KEY; *k; k++)
		buf_addf(&reply, "%s\"\\u%04x\"%s", shapes[0].before, (unsigned)*k,
			 shapes[0].after);
	cr_assert_eq(run(reply.data, true, 100, &out, NULL), 0);
	join(buf_str(&out), "content", "0", &told);
	cr_expect_str_eq(told.data, REDACT_MARK);
}

Test(redact_reply, choices_between_each_other, .init = begin, .fini = end)
{
	static const struct shape other = {OPENAI("1", "\"content\":"), "}}]}\n\n", "",
					   "content"};
	static const char words[] = "so it goes as so often sk";
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t i = 0; i < strlen(KEY); i++) {
		add_event(&reply, &shapes[0], KEY + i, 1);
		if (i < strlen(words))
			add_event(&reply, &other, words + i, 1);
	}
	cr_assert_eq(run(reply.data, true, 64, &out, NULL), 0);
	join(buf_str(&out), "content", "0", &told);
	cr_expect_str_eq(told.data, REDACT_MARK);
	join(buf_str(&out), "content", "1", &told);
	cr_expect_str_eq(told.data, words);
}

Test(redact_reply, two_choices_in_one_event, .init = begin, .fini = end)
{
	expect("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a sk-proj-\"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"b Zq7/\"}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Zq7/R+xV2m9\"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"R+xV\"}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"LbT0c_Hs!\"}}]}\n\n",
	       true,
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"b Zq7/\"}}]}\n\n"
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}},"
	       "{\"index\":1,\"delta\":{\"content\":\"R+xV\"}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"[redacted]!\"}}]}"
	       "\n\n");
}

Test(redact_reply, ordinary_events_are_not_delayed, .init = begin, .fini = end)
{
	struct redact_reply *r = redact_reply_new(key, true);
	static const char event[] = "data: {\"choices\":[{\"index\":0,\"delta\":"
				    "{\"content\":\"Hello\"}}]}\n\n";
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (unsigned i = 1; i < 4; i++) {
		cr_assert_eq(redact_reply_feed(r, event, sizeof(event) - 1, &out, NULL),
			     0);
		cr_expect_eq(out.len, i * (sizeof(event) - 1));
	}
	redact_reply_free(r);
}

/* What is held comes before the event that says it is over, in a small event of its own,
 * that repeats nothing which a reader adds up. */
Test(redact_reply, what_is_held_goes_out_before_the_end, .init = begin, .fini = end)
{
	expect("data: "
	       "{\"id\":\"c1\",\"usage\":{\"n\":1},\"choices\":[{\"index\":0,\"delta\":"
	       "{\"role\":\"assistant\",\"content\":\"yes\"},\"finish_reason\":null,"
	       "\"logprobs\":{\"content\":[]}}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	       "data: [DONE]\n\n",
	       true,
	       "data: "
	       "{\"id\":\"c1\",\"usage\":{\"n\":1},\"choices\":[{\"index\":0,\"delta\":"
	       "{\"role\":\"assistant\",\"content\":\"ye\"},\"finish_reason\":null,"
	       "\"logprobs\":{\"content\":[]}}]}\n\n"
	       "data: "
	       "{\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"s\"},"
	       "\"finish_reason\":null}]}\n\n"
	       "data: "
	       "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	       "data: [DONE]\n\n");
	/* with its end in the same event nothing need wait */
	expect("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},"
	       "\"finish_reason\":\"stop\"}]}\n\n",
	       true,
	       "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},"
	       "\"finish_reason\":\"stop\"}]}\n\n");
}

Test(redact_reply, a_block_of_anthropic_ends_whole, .init = begin, .fini = end)
{
	expect("event: content_block_start\ndata: "
	       "{\"type\":\"content_block_start\",\"index\":0,"
	       "\"content_block\":{\"type\":\"text\",\"text\":\"this\"}}\n\n"
	       "event: content_block_delta\ndata: "
	       "{\"type\":\"content_block_delta\",\"index\":0,"
	       "\"delta\":{\"type\":\"text_delta\",\"text\":\" is\"}}\n\n"
	       "event: ping\ndata: {\"type\":\"ping\"}\n\n" STOP,
	       true,
	       "event: content_block_start\ndata: "
	       "{\"type\":\"content_block_start\",\"index\":0,"
	       "\"content_block\":{\"type\":\"text\",\"text\":\"this\"}}\n\n"
	       "event: content_block_delta\ndata: "
	       "{\"type\":\"content_block_delta\",\"index\":0,"
	       "\"delta\":{\"type\":\"text_delta\",\"text\":\" i\"}}\n\n"
	       "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	       "event: content_block_delta\ndata: "
	       "{\"type\":\"content_block_delta\",\"index\":0,"
	       "\"delta\":{\"type\":\"text_delta\",\"text\":\"s\"}}\n\n" STOP);
}

/* A reader takes the second call's first piece for the end of the first call. */
Test(redact_reply, one_tool_after_the_other, .init = begin, .fini = end)
{
#define CALL(i, more, text)                                                              \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":" i more \
	",\"function\":{\"arguments\":\"" text "\"}}]}}]}\n\n"
	expect(CALL("0", ",\"id\":\"a\",\"type\":\"function\"", "{\\\"x\\\":\\\"us")
		       CALL("1", ",\"id\":\"b\"", "{}"),
	       true,
	       CALL("0", ",\"id\":\"a\",\"type\":\"function\"", "{\\\"x\\\":\\\"u")
		       CALL("0", ",\"type\":\"function\"", "s")
			       CALL("1", ",\"id\":\"b\"", "{}"));
}

/* The longest beginning of the key in a text. */
static size_t beginning_in(const char *text)
{
	size_t best = 0;

	for (; *text; text++) {
		size_t n = 0;

		while (KEY[n] && text[n] == KEY[n])
			n++;
		best = n > best ? n : best;
	}
	return best;
}

/* An end in the middle of the key lets a beginning go; what follows is still seen. */
Test(redact_reply, an_end_that_is_none, .init = begin, .fini = end)
{
	static const char *const ends[] = {
		"data: "
		"{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"
		"\n\n",
		"data: [DONE]\n\n", "data: {}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"x\"}}]}\n\n"};
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t e = 0; e < ARRAY_SIZE(ends); e++)
		for (size_t every = 1; every < 20; every++) {
			buf_reset(&reply);
			for (size_t i = 0; i < strlen(KEY); i++) {
				add_event(&reply, &shapes[0], KEY + i, 1);
				if (i % every == 0)
					buf_adds(&reply, ends[e]);
			}
			cr_assert_eq(run(reply.data, true, 64, &out, NULL), 0);
			join(buf_str(&out), "content", "0", &told);
			cr_expect(beginning_in(told.data) <= BEGINNING_MAX, "%s",
				  told.data);
			cr_expect(strstr(told.data, REDACT_MARK), "%s", told.data);
			cr_expect(strlen(told.data) <=
					  BEGINNING_MAX + strlen(REDACT_MARK),
				  "%s", told.data);
		}
}

/* Fields that nobody knows cannot wait, but are read on. */
Test(redact_reply, a_field_that_is_not_known, .init = begin, .fini = end)
{
	static const char *const fields[] = {
		"data: {\"id\":%s,\"choices\":[]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"new\":%s}}]}\n\n",
		"data: "
		"{\"choices\":[{\"index\":0,\"logprobs\":{\"content\":[{\"token\":%s}]}}]"
		"}\n\n",
		"data: {\"list\":[%s]}\n\n",
	};
	static const char *const names[] = {"id", "new", "token", "list"};
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	for (size_t f = 0; f < ARRAY_SIZE(fields); f++)
		for (size_t piece = 1; piece < strlen(KEY); piece++) {
			buf_reset(&reply);
			for (size_t i = 0; i < strlen(KEY); i += piece) {
				char text[64];

				(void)snprintf(text, sizeof(text), "\"%.*s\"", (int)piece,
					       KEY + i);
				for (const char *p = fields[f]; *p; p++)
					if (*p == '%' && p[1] == 's' && p++)
						buf_adds(&reply, text);
					else
						buf_addc(&reply, *p);
			}
			cr_assert_eq(run(reply.data, true, 64, &out, NULL), 0);
			buf_reset(&told);
			for (const char *at = out.data; (at = strstr(at, names[f]));) {
				at = strchr(at, ':') + 1;
				at += *at == '[';
				at += *at == '"';
				buf_add(&told, at, strcspn(at, "\""));
			}
			cr_expect(told.len <= BEGINNING_MAX + strlen(REDACT_MARK),
				  "%s: %s", names[f], buf_str(&told));
			cr_expect(beginning_in(buf_str(&told)) <= BEGINNING_MAX);
		}
}

Test(redact_reply, a_stream_that_is_none_is_refused, .init = begin, .fini = end)
{
	static const char *const bad[] = {
		"data: sk-pr\n\n",	  "data: {\n\n",
		"data: [1]\n\n",	  "data: {}{}\n\n",
		"data: {}\rdata: {}\n\n", "data: {\"a\":1,\"a\":2}\n\n",
		"data: \"x\"\n\n",	  "data: {\"half\":",
	};
	cleanup_buf struct buf out;

	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
			cr_expect_eq(run(bad[i], true, steps[k], &out, NULL), -1, "%s",
				     bad[i]);
}

Test(redact_reply, what_is_too_much_is_refused, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_adds(&reply, "data: {\"x\":\"");
	for (size_t i = 0; i < STREAM_TEXT_EVENT_MAX_BYTES; i++)
		buf_addc(&reply, 'a');
	buf_adds(&reply, "\"}\n\n");
	cr_expect_eq(run(reply.data, true, 65536, &out, NULL), -1);
	cr_expect_eq(out.len, 0u);
	buf_reset(&reply);
	for (unsigned i = 0; i <= STREAM_TEXT_CHANNELS_MAX; i++)
		buf_addf(&reply, "data: {\"x%u\":\"a\"}\n\n", i);
	cr_expect_eq(run(reply.data, true, 65536, &out, NULL), -1);
}

Test(redact_reply, lines_that_are_no_data_say_nothing, .init = begin, .fini = end)
{
	expect(": sk-proj-\n\nid: Zq7\nretry: 7\nevent: a b\nevent: ok_1\nodd\n"
	       "data: {}\n\n:\r\n\r\ndata:{}\r\n\r\ndata\n\ndata: "
	       "[DONE]",
	       true,
	       ":\n\nevent: ok_1\ndata: {}\n\n:\n\ndata: {}\n\ndata: \n\n"
	       "data: [DONE]\n\n");
}

Test(redact_reply, several_lines_of_data_are_one, .init = begin, .fini = end)
{
	expect("data: {\"a\":\ndata: 1}\n\n", true, "data: {\"a\":1}\n\n");
}

Test(redact_reply, lines_may_end_in_any_way, .init = begin, .fini = end)
{
	static const char *const ends[] = {"\n", "\r", "\r\n"};
	cleanup_buf struct buf reply, out;
	unsigned hits = 0;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
			const char *e = ends[i];

			buf_reset(&reply);
			buf_addf(&reply,
				 "event: d%sdata: {\"delta\":{\"text\":\"it is "
				 "sk-proj-\"}}%s%s",
				 e, e, e);
			buf_addf(&reply,
				 "data: {\"delta\":%sdata: {\"text\":\"Zq7/R+xV2m9"
				 "LbT0c_Hs!\"}}%s%s",
				 e, e, e);
			cr_expect_eq(run(buf_str(&reply), true, steps[k], &out, &hits),
				     0);
			cr_expect_eq(hits, 1u, "line end %zu", i);
			cr_expect_null(strchr(buf_str(&out), '\r'));
			cr_expect_not_null(strstr(buf_str(&out), "event: d\ndata: {"));
			cr_expect_null(strstr(buf_str(&out), "Zq7"));
		}
}

/* ---- a whole reply ---- */

Test(redact_reply, parts_of_a_message, .init = begin, .fini = end)
{
	expect("{\"content\":[{\"type\":\"text\",\"text\":\"it is sk-proj-\"},"
	       "{\"type\":\"text\",\"text\":\"Zq7/R+xV2m9\"},{\"type\":\"text\",\"text\":"
	       "\"LbT0c_Hs!\"}],\"id\":\"m\"}",
	       false,
	       "{\"content\":[{\"type\":\"text\",\"text\":\"it is sk-proj-\"},"
	       "{\"type\":\"text\",\"text\":\"[redacted]\"},{\"type\":\"text\",\"text\":"
	       "\"!\"}],\"id\":\"m\"}");
	expect("[\"sk-proj-Zq7\", {\"b\" : [\"x\"], \"c\":\"\\\"\"}, "
	       "\"/R+xV2m9LbT0c_Hs\"]",
	       false,
	       "[\"sk-proj-Zq7\", {\"b\" : [\"x\"], \"c\":\"\\\"\"}, \"[redacted]\"]");
}

Test(redact_reply, a_whole_reply_cut_everywhere, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (size_t cut = 1; cut < strlen(KEY); cut++) {
		buf_reset(&reply);
		buf_addf(&reply, "{\"a\":{\"text\":\"%.*s\"},\"b\":{\"text\":\"%s\"}}",
			 (int)cut, KEY, KEY + cut);
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
			cr_assert_eq(run(reply.data, false, steps[k], &out, NULL), 0);
			cr_expect(beginning_in(out.data) <= BEGINNING_MAX, "%s",
				  out.data);
			cr_expect(!strstr(out.data, KEY + cut), "%s", out.data);
		}
	}
}

/* An SDK that asked for a stream reads one whatever the reply says that it is. */
Test(redact_reply, a_stream_under_another_name, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out, told;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	buf_init(&told, BIG);
	speak(&reply, &shapes[0], KEY, 0, 0);
	cr_assert_eq(run(reply.data, false, 50, &out, NULL), 0);
	join(buf_str(&out), "content", "0", &told);
	cr_expect(beginning_in(told.data) <= BEGINNING_MAX, "%s", told.data);
}

Test(redact_reply, what_is_no_json_passes, .init = begin, .fini = end)
{
	expect("an \"open\nquote\" [[}}]] \"\\", false, "an \"open\nquote\" [[}}]] \"\\");
	expect("", false, "");
	expect("", true, "");
}

Test(redact_reply, deep_and_of_many_keys, .init = begin, .fini = end)
{
	cleanup_buf struct buf reply, out;

	buf_init(&reply, BIG);
	buf_init(&out, BIG);
	for (unsigned i = 0; i < 1000; i++)
		buf_addf(&reply, "{\"k%u\":[\"v\",", i);
	for (unsigned i = 0; i < 1000; i++)
		buf_adds(&reply, "\"\"]}");
	cr_assert_eq(run(reply.data, false, 64, &out, NULL), 0);
	cr_expect_str_eq(out.data, reply.data);
}

Test(redact_reply, without_a_credential_all_goes_through)
{
	key = NULL;
	expect("data: " KEY "\n", true, "data: " KEY "\n");
	expect("{\"a\":\"" KEY "\"}", false, "{\"a\":\"" KEY "\"}");
}
