/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a provider issued goes back as it is, and nothing else does. The replies have the
 * shapes of the real providers, ids of their length and alphabet, signatures of random bytes.
 * LYCH_ISSUED: so many values; by hand, with the program itself, a million.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/gate/issued.h"
#include "vessel/broker/gate/reply.h"
#include "vessel/gate/private.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(gate_issued, .timeout = 600);

#define ROOM ((size_t)4 << 20)
#define VALUES 10000
#define TURN 40 /* replies of one conversation */

static const char alnum[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
static const char base58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const char base64[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64url[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char hex[] = "0123456789abcdef";

static uint32_t seed = 1;

static uint32_t draw(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(seed >> 4) * n) >> 28);
}

static void letters(struct buf *b, const char *alphabet, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_addc(b, alphabet[draw((uint32_t)strlen(alphabet))]);
}

/* {prefix}{n letters}, as a string of JSON. */
static void id(struct buf *b, const char *prefix, const char *alphabet, size_t n)
{
	buf_addf(b, "\"%s", prefix);
	letters(b, alphabet, n);
	buf_addc(b, '"');
}

static void opaque(struct buf *b, const char *prefix, const char *alphabet)
{
	id(b, prefix, alphabet, 4 * (50 + draw(draw(8) ? 100 : 1000)));
}

/* ---- replies, and what a client makes of them ---------------------------------------- */

struct talk {
	struct buf reply, request; /* the request goes on from turn to turn */
	size_t values;
};

static void add(struct talk *t, const char *text)
{
	buf_adds(&t->reply, text);
	buf_adds(&t->request, text);
}

/* The same value in both. */
static void both(struct talk *t, const char *key, void (*make)(struct buf *))
{
	cleanup_buf struct buf b;

	buf_init(&b, ROOM);
	make(&b);
	buf_addf(&t->reply, "\"%s\":%s", key, buf_str(&b));
	buf_addf(&t->request, "\"%s\":%s", key, buf_str(&b));
	t->values++;
}

static void toolu(struct buf *b)
{
	id(b, "toolu_01", base58, 22);
}

static void tooluse(struct buf *b)
{
	id(b, "tooluse_", base64url, 22);
}

static void call(struct buf *b)
{
	switch (draw(4)) {
	case 0:
		return id(b, "", alnum, 9);
	case 1:
		return id(b, "chatcmpl-tool-", hex, 32);
	default:
		return id(b, "call_", alnum, 24);
	}
}

static void msg(struct buf *b)
{
	id(b, "msg_01", base58, 22);
}

static void rs(struct buf *b)
{
	id(b, "rs_0", hex, 49);
}

static void fc(struct buf *b)
{
	id(b, "fc_0", hex, 49);
}

static void signature(struct buf *b)
{
	opaque(b, "EqQB", base64);
}

static void fernet(struct buf *b)
{
	opaque(b, "gAAAAAB", base64url);
}

static void anthropic(struct talk *t)
{
	buf_adds(&t->reply, "{\"type\":\"message\",\"role\":\"assistant\",\"id\":");
	msg(&t->reply);
	buf_adds(&t->reply, ",\"content\":[");
	buf_adds(&t->request, "{\"role\":\"assistant\",\"content\":[");
	add(t, "{\"type\":\"thinking\",\"thinking\":\"so\",");
	both(t, "signature", signature);
	add(t, "},{\"type\":\"redacted_thinking\",");
	both(t, "data", signature);
	add(t, "},{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{},");
	both(t, "id", draw(2) ? toolu : tooluse);
	add(t, "}]}");
}

static void openai(struct talk *t)
{
	buf_adds(&t->reply, "{\"id\":");
	id(&t->reply, "chatcmpl-", alnum, 29);
	buf_adds(&t->reply, ",\"choices\":[{\"index\":0,\"message\":");
	add(t, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":"
	       "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"},");
	both(t, "id", call);
	add(t, "}],\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",");
	both(t, "data", fernet);
	add(t, "}]}");
	buf_adds(&t->reply, "}]}");
}

static void responses(struct talk *t)
{
	buf_adds(&t->reply, "{\"id\":");
	id(&t->reply, "resp_0", hex, 49);
	buf_adds(&t->reply, ",\"output\":[");
	add(t, "{\"type\":\"reasoning\",\"summary\":[],");
	both(t, "encrypted_content", fernet);
	add(t, ",");
	both(t, "id", rs);
	add(t, "},{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\",");
	both(t, "call_id", call);
	add(t, ",");
	both(t, "id", fc);
	add(t, "}");
	buf_adds(&t->reply, "]}");
}

static void gemini(struct talk *t)
{
	buf_adds(&t->reply, "{\"responseId\":");
	id(&t->reply, "", base64url, 22);
	buf_adds(&t->reply, ",\"candidates\":[{\"content\":");
	add(t, "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\","
	       "\"args\":{},");
	both(t, "id", call);
	add(t, "},");
	both(t, "thoughtSignature", signature);
	add(t, "}]}");
	buf_adds(&t->reply, "}]}");
}

static void (*const provider[])(struct talk *t) = {anthropic, openai, responses, gemini};
#define PROVIDERS (sizeof(provider) / sizeof(provider[0]))

static void hear(struct gate_job *job, const char *portal, const char *reply, size_t len,
		 bool is_stream, size_t step)
{
	struct gate_reply *r = gate_reply_new(job, portal, is_stream);
	struct buf out;

	buf_init(&out, 2 * ROOM);
	for (size_t i = 0, n; i < len; i += n) {
		n = len - i < step ? len - i : step;
		gate_reply_feed(r, reply + i, n, &out);
	}
	gate_reply_end(r, &out);
	gate_reply_free(r);
	buf_done(&out);
}

static void hear_whole(struct gate_job *job, const char *portal, const char *reply)
{
	hear(job, portal, reply, strlen(reply), false, 1000);
}

static struct gate *g;
static struct gate_report r;

static void begin(void)
{
	/* a busy machine takes its time */
	const struct gate_config cfg = {.portal_threshold = 0.4,
					.forbidden_threshold = 0.7,
					.deadline_usec = 600 * USEC_PER_SEC};
	struct err err = ERR_INIT;

	cr_assert_eq(gate_new(&cfg, &g, &err), 0, "%s", err.msg);
}

static void end(void)
{
	gate_free(g);
}

static struct gate_parts *request_parts(struct gate_job *job, const char *portal,
					const char *text, struct json **ret)
{
	struct gate_parts *p = gate_parts_new();
	struct err err = ERR_INIT;

	cr_assert_eq(json_parse(text, strlen(text), 28, ret, &err), 0, "%s", err.msg);
	gate_parts_add_json(p, *ret);
	gate_job_mark_issued(job, portal, *ret, p, 0);
	return p;
}

static void scan(const struct gate_parts *p)
{
	const struct gate_input in = {.parts = p->part, .n_parts = p->n};

	gate_scan(g, &in, &r);
}

static size_t echoes(const struct gate_parts *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->part[i].kind == GATE_PART_ECHO;
	return n;
}

/* Is the string of the request taken for one that was issued? */
static bool is_echo(struct gate_job *job, const char *portal, const char *request,
		    const char *value)
{
	cleanup_json struct json *j = NULL;
	cleanup_gate_parts struct gate_parts *p = request_parts(job, portal, request, &j);

	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->part[i].data, value))
			return p->part[i].kind == GATE_PART_ECHO;
	cr_assert_fail("%s is not in the request", value);
	return false;
}

/* ---- refusals -------------------------------------------------------------------------- */

#define ISSUED "toolu_01A09q90qw90lq917835lq9b"
#define REPLY                                                                            \
	"{\"id\":\"msg_1\",\"content\":[{\"type\":\"tool_use\",\"id\":\"" ISSUED         \
	"\",\"input\":{}}]}"
#define BACK(key, value)                                                                 \
	"{\"messages\":[{\"content\":[{\"type\":\"tool_result\",\"" key "\":\"" value    \
	"\"}]}]}"

Test(gate_issued, an_id_that_nobody_issued_is_read)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

	cr_expect_not(is_echo(a, "portal:a", BACK("tool_use_id", ISSUED), ISSUED));
	hear_whole(a, "portal:a", REPLY);
	cr_expect_not(is_echo(a, "portal:a",
			      BACK("tool_use_id", "toolu_01A09q90qw90lq917835lq9c"),
			      "toolu_01A09q90qw90lq917835lq9c"));
	/* nor one with something behind it, or that is cut */
	cr_expect_not(
		is_echo(a, "portal:a", BACK("tool_use_id", ISSUED "x"), ISSUED "x"));
	cr_expect_not(is_echo(a, "portal:a", BACK("tool_use_id", "toolu_01A09q90qw90l"),
			      "toolu_01A09q90qw90l"));
}

Test(gate_issued, what_another_job_was_given_is_read)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);

	hear_whole(a, "portal:a", REPLY);
	hear_whole(b, "portal:a", "{\"id\":\"msg_1\"}");
	cr_expect_not(is_echo(b, "portal:a", BACK("tool_use_id", ISSUED), ISSUED));
}

Test(gate_issued, on_its_way_to_another_portal_it_is_read)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

	hear_whole(a, "portal:a", REPLY);
	cr_expect_not(is_echo(a, "portal:b", BACK("tool_use_id", ISSUED), ISSUED));
	cr_expect(is_echo(a, "portal:a", BACK("tool_use_id", ISSUED), ISSUED));
}

Test(gate_issued, at_another_key_it_is_read)
{
	static const char *const requests[] = {
		BACK("text", ISSUED),	   BACK("content", ISSUED),
		BACK("signature", ISSUED), BACK("encrypted_content", ISSUED),
		BACK("data", ISSUED),	   "{\"id\":[\"" ISSUED "\"]}",
	};
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

	hear_whole(a, "portal:a", REPLY);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		cr_expect_not(is_echo(a, "portal:a", requests[i], ISSUED), "%s",
			      requests[i]);
}

/* `data` is anything, but in an object whose type says that it is opaque. */
Test(gate_issued, data_is_known_by_the_type_beside_it)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

	hear_whole(a, "portal:a",
		   "{\"source\":{\"type\":\"base64\",\"data\":\"abcdefgh\"}}");
	cr_expect_not(
		is_echo(a, "portal:a",
			"{\"b\":{\"data\":\"abcdefgh\",\"type\":\"redacted_thinking\"}}",
			"abcdefgh"));
	hear_whole(a, "portal:a",
		   "{\"b\":{\"data\":\"abcdefgh\",\"type\":\"redacted_thinking\"}}");
	cr_expect_not(is_echo(a, "portal:a",
			      "{\"source\":{\"type\":\"base64\",\"data\":\"abcdefgh\"}}",
			      "abcdefgh"));
	cr_expect(
		is_echo(a, "portal:a",
			"{\"b\":{\"type\":\"redacted_thinking\",\"data\":\"abcdefgh\"}}",
			"abcdefgh"));
}

/* What was taken out of a request is put back into its reply; the portal never had it. */
Test(gate_issued, what_a_placeholder_stands_for_was_not_issued, .init = begin,
     .fini = end)
{
	static const char back[] = BACK("tool_use_id", "jane.doe@corp.io");
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	const struct gate_finding f = {.family = GATE_EMAIL, .len = 16};

	gate_parts_add(p, GATE_PART_TEXT, "c", "jane.doe@corp.io", f.len);
	cr_assert_eq(gate_job_anonymise(a, &f, 1, p, NULL), 0);
	cr_assert_str_eq(p->part[0].data, "<EMAIL_1>");
	hear_whole(a, "portal:a", "{\"id\":\"<EMAIL_1>\"}");
	cr_expect_not(is_echo(a, "portal:a", back, "jane.doe@corp.io"));
	cr_expect(is_echo(a, "portal:a", BACK("tool_use_id", "<EMAIL_1>"), "<EMAIL_1>"));
}

Test(gate_issued, a_text_is_no_id)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	char reply[512], value[ISSUED_ID_MAX_BYTES + 2];

	hear_whole(a, "portal:a", "{\"id\":\"two words\"}");
	cr_expect_not(is_echo(a, "portal:a", "{\"id\":\"two words\"}", "two words"));
	memset(value, 'a', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	(void)snprintf(reply, sizeof(reply), "{\"id\":\"%s\"}", value);
	hear_whole(a, "portal:a", reply);
	cr_expect_not(is_echo(a, "portal:a", reply, value));
}

Test(gate_issued, it_may_hold_no_term_and_no_canary, .init = begin, .fini = end)
{
	static const char reply[] = "{\"id\":\"call_canary-5c1fd03a77\",\"signature\":"
				    "\"cHJvamVjdCBibHVlYmlyZA==\"}";
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_private struct gate_private *store = gate_private_new();
	cleanup_gate_parts struct gate_parts *p = NULL;
	cleanup_json struct json *j = NULL;
	struct gate_input in = {0};
	uint64_t term;

	hear_whole(a, "portal:a", reply);
	p = request_parts(a, "portal:a", reply, &j);
	cr_assert_eq(echoes(p), 2);
	scan(p);
	cr_expect_eq(r.score, 0);
	cr_assert_eq(gate_job_add_canary(a, "canary-5c1fd03a77", 17, NULL), 0);
	gate_job_fill(a, "portal:a", &in);
	in.parts = p->part;
	in.n_parts = p->n;
	gate_scan(g, &in, &r);
	cr_expect_eq(r.score, 1.0);
	cr_expect_eq(r.finding[0].family, GATE_CANARY);
	/* in base64, too */
	cr_assert_eq(gate_private_add(store, PRIVATE_TERM, "t", "project bluebird", 16, 0,
				      &term, NULL),
		     0);
	gate_set_private(g, store);
	scan(p);
	cr_expect_eq(r.score, 1.0);
	cr_expect_eq(r.finding[0].family, GATE_EXACT);
	gate_set_private(g, NULL);
}

/* It is no cover for what stands beside it. */
Test(gate_issued, a_secret_beside_it_is_found, .init = begin, .fini = end)
{
	static const char request[] =
		"{\"a\":[{\"type\":\"tool_result\",\"tool_use_id\":\"" ISSUED
		"\",\"content\":\"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\"}]}";
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_parts struct gate_parts *p = NULL;
	cleanup_json struct json *j = NULL;

	hear_whole(a, "portal:a", REPLY);
	p = request_parts(a, "portal:a", request, &j);
	cr_assert_eq(echoes(p), 1);
	scan(p);
	cr_expect_eq(r.score, 1.0);
	cr_assert_eq(r.n, 1);
	cr_expect_eq(p->part[r.finding[0].part].kind, GATE_PART_TEXT);
}

/* ---- what is bounded ------------------------------------------------------------------- */

static void hear_number(struct gate_job *a, unsigned i)
{
	char reply[64];

	(void)snprintf(reply, sizeof(reply), "{\"id\":\"number-%u\"}", i);
	hear_whole(a, "portal:a", reply);
}

Test(gate_issued, the_oldest_is_forgotten_and_what_is_used_is_not)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

	hear_whole(a, "portal:a", "{\"id\":\"never-used\"}");
	hear_whole(a, "portal:a", REPLY);
	for (unsigned i = 0; i < 3 * ISSUED_MAX; i++) {
		hear_number(a, i);
		if (i % 1000 == 0)
			cr_assert(is_echo(a, "portal:a", BACK("tool_use_id", ISSUED),
					  ISSUED));
	}
	cr_expect(is_echo(a, "portal:a", BACK("id", "number-98303"), "number-98303"));
	cr_expect_not(is_echo(a, "portal:a", BACK("id", "never-used"), "never-used"));
}

Test(gate_issued, a_reply_that_is_too_long_goes_on_and_issues_nothing)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	size_t len = GATE_REPLY_NOTED_MAX_BYTES + 1;
	cleanup_free char *reply = xmalloc(len + 1);

	(void)snprintf(reply, len, "{\"id\":\"" ISSUED "\",\"x\":\"");
	memset(reply + strlen(reply), 'x', len - strlen(reply) - 2);
	memcpy(reply + len - 2, "\"}", 3);
	hear(a, "portal:a", reply, len, false, 65536);
	cr_expect_not(is_echo(a, "portal:a", BACK("tool_use_id", ISSUED), ISSUED));
	hear(a, "portal:a", "data: {\"id\":", 12, true, 12);
	hear(a, "portal:a", "nonsense", 8, false, 8);
}

/* ---- what goes back -------------------------------------------------------------------- */

Test(gate_issued, events_issue_in_pieces_of_any_size)
{
	static const char stream[] =
		"event: content_block_start\ndata: "
		"{\"type\":\"content_block_start\",\"index\":1,"
		"\"content_block\":{\"type\":\"tool_use\",\"id\":\"" ISSUED
		"\",\"name\":\"f\",\"input\":{}}}\n\n"
		"event: ping\ndata: {\"type\":\"ping\"}\n\n"
		"data: "
		"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"signature_"
		"delta\","
		"\"signature\":\"EqQBCgIYAg==\"}}\r\n\r\n"
		"data: {\"item_id\":\"fc_1a2b3c4d\"}"; /* and it just ends */

	for (size_t step = 1; step < 40; step += 6) {
		cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);

		hear(a, "portal:a", stream, strlen(stream), true, step);
		cr_expect(is_echo(a, "portal:a", BACK("tool_use_id", ISSUED), ISSUED));
		cr_expect(is_echo(a, "portal:a", BACK("signature", "EqQBCgIYAg=="),
				  "EqQBCgIYAg=="));
		cr_expect(
			is_echo(a, "portal:a", BACK("id", "fc_1a2b3c4d"), "fc_1a2b3c4d"));
	}
}

/* One conversation with a provider: what it issued, and nothing else, goes back untouched. */
static size_t talk_to(size_t which)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	cleanup_gate_parts struct gate_parts *p = NULL;
	cleanup_json struct json *j = NULL;
	struct talk t = {0};
	struct buf written;
	struct jsonw w;

	buf_init(&t.reply, ROOM);
	buf_init(&t.request, ROOM);
	buf_init(&written, ROOM);
	buf_adds(&t.request, "{\"messages\":[");
	for (size_t i = 0; i < TURN; i++) {
		buf_reset(&t.reply);
		buf_adds(&t.request, i ? "," : "");
		if (i % 2)
			buf_adds(&t.reply, "data: ");
		provider[which](&t);
		if (i % 2)
			buf_adds(&t.reply, "\n\n");
		cr_assert(buf_ok(&t.reply));
		hear(job, "portal:a", t.reply.data, t.reply.len, i % 2, 1 + draw(3000));
	}
	buf_adds(&t.request, "]}");
	cr_assert(buf_ok(&t.request));
	p = request_parts(job, "portal:a", buf_str(&t.request), &j);
	cr_assert_eq(echoes(p), t.values);
	scan(p);
	cr_assert_eq(r.score, 0, "%f: %s", r.score, r.n ? r.finding[0].rule : "");
	jsonw_init(&w, &written);
	gate_parts_write_json(p, 0, j, &w);
	cr_assert_str_eq(buf_str(&written), buf_str(&t.request));
	buf_done(&t.reply);
	buf_done(&t.request);
	buf_done(&written);
	return t.values;
}

Test(gate_issued, what_providers_issue_goes_back_untouched, .init = begin, .fini = end)
{
	const char *by_hand = getenv("LYCH_ISSUED");
	size_t want = by_hand ? strtoul(by_hand, NULL, 10) : VALUES;
	size_t values = 0;

	for (size_t i = 0; values < want; i++)
		values += talk_to(i % PROVIDERS);
	cr_log_info("%zu values", values);
}
