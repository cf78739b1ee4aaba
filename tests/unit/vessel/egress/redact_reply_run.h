/* SPDX-License-Identifier: Apache-2.0 */
/* A reply in steps through the blotting, and what a reader makes of what came out. */
#ifndef LYCH_TESTS_UNIT_VESSEL_EGRESS_REDACT_REPLY_RUN_H
#define LYCH_TESTS_UNIT_VESSEL_EGRESS_REDACT_REPLY_RUN_H

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

static inline void begin(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(redact_new(KEY, strlen(KEY), &key, &err), 0, "%s", err.msg);
}

static inline void end(void)
{
	redact_free(key);
}

static const size_t steps[] = {1 << 20, 1, 7};

/* 0, or -1 when it was refused; what came out until then is in out. */
static inline int run(const char *reply, bool is_stream, size_t step, struct buf *out,
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

static inline void expect(const char *reply, bool is_stream, const char *want)
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

static inline void join_piece(enum json_piece what, const char *name, const char *text,
			      size_t len, void *arg)
{
	struct joined *j = arg;

	if (what == JSON_PIECE_NUMBER && name && !j->has_index &&
	    (str_eq(name, "index") || str_eq(name, "output_index"))) {
		j->has_index = true;
		j->is_it = str_eq(text, j->index);
	}
	if (what == JSON_PIECE_STRING && name && str_eq(name, j->key) && j->is_it)
		buf_add(j->out, text, len);
}

/* All texts of that key in the events of choice or block `index`. */
static inline void join(const char *stream, const char *name, const char *index,
			struct buf *out)
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
#define RESPONSES(type)                                                                  \
	"event: response." type ".delta\ndata: {\"type\":\"response." type ".delta\","   \
	"\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":"
#define SAID(type, field)                                                                \
	"event: response." type ".done\ndata: {\"type\":\"response." type ".done\","     \
	"\"output_index\":0,\"content_index\":0,\"" field "\":\"\"}\n\n"
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
	{RESPONSES("output_text"), "}\n\n", SAID("output_text", "text"), "delta"},
	{RESPONSES("function_call_arguments"), "}\n\n",
	 SAID("function_call_arguments", "arguments"), "delta"},
};

static inline void add_event(struct buf *b, const struct shape *s, const char *text,
			     size_t len)
{
	struct jsonw w;

	buf_adds(b, s->before);
	jsonw_init(&w, b);
	jsonw_strn(&w, text, len);
	buf_adds(b, s->after);
}

/* The text in events that end at each of the cuts (0: everywhere). */
static inline void speak(struct buf *b, const struct shape *s, const char *text,
			 size_t cut, size_t second)
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

static inline void expect_blotted(const struct shape *s, const char *text, size_t cut,
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

/* The longest beginning of the key in a text. */
static inline size_t beginning_in(const char *text)
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

#endif
