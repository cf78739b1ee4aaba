/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer may send, and that what is written is one line, whatever it says. */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/proto.h"
#include "common/str.h"
#include "common/utf8.h"
#include "vessel/audit/event.h"
#include "vessel/scribe/line.h"
#include "vessel/scribe/scribe.h"
#include <criterion/criterion.h>

#define UUID "aaaaaaaa-1111-4222-8333-444444444444"

static int parse(const char *text, size_t len, struct scribe_packet *k, struct err *err)
{
	return scribe_packet_parse(text, len, k, err);
}

Test(audit_packet, what_is_not_exactly_a_packet_is_refused)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"null",
		"{\"hello\":1}",
		"{\"hello\":2,\"prod\":\"queue\",\"stream\":\"" UUID "\"}",
		"{\"hello\":1,\"prod\":\"Queue\",\"stream\":\"" UUID "\"}",
		"{\"hello\":1,\"prod\":\"\",\"stream\":\"" UUID "\"}",
		"{\"hello\":1,\"prod\":\"a b\",\"stream\":\"" UUID "\"}",
		"{\"hello\":1,\"prod\":\"9\",\"stream\":\"" UUID "\"}",
		"{\"hello\":1,\"prod\":\"queue\",\"stream\":\"x\"}",
		"{\"hello\":1,\"prod\":\"queue\",\"stream\":\"" UUID "\",\"x\":1}",
		"{\"pseq\":1}",
		"{\"event\":{\"a\":1}}",
		"{\"pseq\":0,\"event\":{\"a\":1}}",
		"{\"pseq\":-1,\"event\":{\"a\":1}}",
		"{\"pseq\":1.5,\"event\":{\"a\":1}}",
		"{\"pseq\":\"1\",\"event\":{\"a\":1}}",
		"{\"pseq\":9223372036854775808,\"event\":{\"a\":1}}",
		"{\"pseq\":1,\"event\":{}}",
		"{\"pseq\":1,\"event\":[]}",
		"{\"pseq\":1,\"event\":\"a\"}",
		"{\"pseq\":1,\"event\":{\"a\":1},\"x\":1}",
		"{\"pseq\":1,\"pseq\":2,\"event\":{\"a\":1}}",
		"{\"pseq\":1,\"event\":{\"a\":1,\"a\":2}}",
		"{\"pseq\":1,\"event\":{\"a\":NaN}}",
		"{\"pseq\":1,\"event\":{\"a\":1}}{}",
		"{\"pseq\":1,\"event\":{\"a\":\"\xff\"}}",
		"{\"pseq\":1,\"event\":{\"a\":[[[[[[[[1]]]]]]]]}}",
	};
	static const char *const reserved[] = {"v",    "log",	"seq",	"prev",	  "ts",
					       "boot", "up_ms", "prod", "stream", "pseq"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct scribe_packet k;
		struct err err = ERR_INIT;

		cr_expect(parse(bad[i], strlen(bad[i]), &k, &err) < 0, "%s", bad[i]);
		cr_expect_eq(err.id, ERRID_AUDIT_EVENT, "%s: %s", bad[i], err.msg);
		buf_done(&k.members);
	}
	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		struct scribe_packet k;
		struct err err = ERR_INIT;
		char text[64];

		snprintf(text, sizeof(text), "{\"pseq\":1,\"event\":{\"%s\":1}}",
			 reserved[i]);
		cr_expect(parse(text, strlen(text), &k, &err) < 0, "%s", text);
		buf_done(&k.members);
	}
}

Test(audit_packet, a_packet_that_is_too_long_is_refused)
{
	cleanup_buf struct buf b;
	struct scribe_packet k;
	struct err err = ERR_INIT;

	buf_init(&b, 1 << 20);
	buf_adds(&b, "{\"pseq\":1,\"event\":{\"a\":\"");
	while (b.len < SCRIBE_PACKET_MAX)
		buf_addc(&b, 'x');
	buf_adds(&b, "\"}}");
	cr_expect(parse(b.data, b.len, &k, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_EVENT);
	buf_done(&k.members);
	/* short as a packet, too long once its control bytes are escaped */
	buf_reset(&b);
	buf_adds(&b, "{\"pseq\":1,\"event\":{\"a\":\"");
	while (b.len < 10000)
		buf_adds(&b, "\xe2\x80\xa8");
	buf_adds(&b, "\"}}");
	cr_expect(parse(b.data, b.len, &k, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_EVENT);
	buf_done(&k.members);
}

/* Text as a job or an attacker would choose it. */
static const char *const hostile[] = {
	"two\nlines",
	"\x1b[2J\x1b]0;title\x07",
	"\x7f\x08\x0d",
	"\xe2\x80\xa8\xe2\x80\xa9", /* U+2028, U+2029 */
	"\xe2\x80\xae"
	"gnp.exe",					/* right-to-left override */
	"\xd8\x9c\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8e", /* other bidi controls */
	"\xc2\x85\xc2\x9b",				/* NEL, CSI */
	"\",\"seq\":1,\"prev\":\"",
	"}\n{\"v\":1,\"log\":\"" UUID "\",\"seq\":2",
	"\\u000a\\",
};

static void check_line(const char *line, size_t len)
{
	cr_assert(utf8_is_valid(line, len));
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		cr_assert(c >= 0x20 && c != 0x7f, "byte %zu is %#x", i, c);
		cr_assert(!(c == 0xe2 && (unsigned char)line[i + 1] == 0x80 &&
			    ((unsigned char)line[i + 2] & 0xf8) == 0xa8),
			  "U+2028..202E");
		cr_assert(!(c == 0xc2 && (unsigned char)line[i + 1] < 0xa0), "C1");
	}
}

Test(audit_packet, hostile_text_is_one_escaped_line_that_reads_back)
{
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		cleanup_buf struct buf packet;
		cleanup_buf struct buf line;
		cleanup_json struct json *back = NULL;
		struct audit_head h = {.log = {UUID},
				       .boot = {UUID},
				       .stream = {UUID},
				       .seq = 7,
				       .pseq = 9,
				       .prod = "queue"};
		struct audit_head got;
		struct scribe_packet k;
		struct err err = ERR_INIT;
		const char *members, *text;
		struct jsonw w;

		memset(h.prev, '0', 64);
		clock_rfc3339(0, h.ts);
		buf_init(&packet, 1 << 16);
		buf_init(&line, 1 << 16);
		jsonw_init(&w, &packet);
		jsonw_obj(&w);
		jsonw_ku64(&w, "pseq", 9);
		jsonw_key(&w, "event");
		jsonw_obj(&w);
		jsonw_kstr(&w, "event", hostile[i]);
		jsonw_kstr(&w, hostile[i], "a key");
		jsonw_obj_end(&w);
		jsonw_obj_end(&w);
		cr_assert(parse(packet.data, packet.len, &k, &err) == 0, "%zu: %s", i,
			  err.msg);
		audit_line_write(&line, &h, k.members.data, k.members.len);
		cr_assert(line.data[line.len - 1] == '\n');
		check_line(line.data, line.len - 1);
		cr_assert(audit_line_parse(line.data, line.len - 1, &got, &members,
					   &err) == 0,
			  "%s", err.msg);
		cr_expect(got.seq == 7 && got.pseq == 9);
		cr_assert(json_parse(line.data, line.len - 1, 16, &back, &err) == 0);
		cr_assert(json_get_str(back, "event", true, 4096, &text, &err) == 0);
		cr_expect_str_eq(text, hostile[i]);
		buf_done(&k.members);
	}
}

Test(audit_packet, an_event_always_fits_and_is_always_taken)
{
	static const size_t sizes[] = {0, 1, 100, 8000, 8192, 9000, 100000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (int escaped = 0; escaped < 2; escaped++) {
			cleanup_buf struct buf data;
			cleanup_buf struct buf event;
			cleanup_buf struct buf packet;
			struct scribe_packet k;
			struct err err = ERR_INIT;
			struct audit_event e = {.name = "job.contained",
						.time_ms = 1,
						.actor = "tomb_1",
						.job = INT64_MAX,
						.epoch = INT64_MAX};

			buf_init(&data, 1 << 20);
			buf_adds(&data, "{\"reason\":\"");
			while (data.len < sizes[i])
				buf_adds(&data, escaped ? "\xe2\x80\xae" : "x");
			buf_adds(&data, "\"}");
			e.data = data.data;
			e.data_len = data.len;
			buf_init(&event, AUDIT_EVENT_BUF_MAX);
			audit_event_write(&e, &event);
			cr_assert(buf_ok(&event));
			buf_init(&packet, SCRIBE_PACKET_MAX);
			buf_addf(&packet,
				 "{\"pseq\":%lld,\"event\":", (long long)INT64_MAX);
			buf_add(&packet, event.data, event.len);
			buf_addc(&packet, '}');
			cr_assert(buf_ok(&packet));
			cr_expect(parse(packet.data, packet.len, &k, &err) == 0,
				  "%zu: %s", sizes[i], err.msg);
			/* encoded twice it is the same: nothing grows on the way */
			cr_expect_eq(k.members.len, event.len - 2);
			buf_done(&k.members);
		}
	}
}

Test(audit_packet, an_event_has_ocsf_names_and_its_job)
{
	static const char data[] = "{\"class\":\"oom_kill\"}";
	const struct audit_event e = {.name = "attempt.failed",
				      .time_ms = 1234,
				      .actor = "tomb_1",
				      .job = 42,
				      .epoch = 3,
				      .data = data,
				      .data_len = sizeof(data) - 1};
	cleanup_buf struct buf b;

	buf_init(&b, AUDIT_EVENT_BUF_MAX);
	audit_event_write(&e, &b);
	cr_expect_str_eq(
		b.data,
		"{\"event\":\"attempt.failed\",\"class_uid\":1006,\"category_uid\":1,"
		"\"activity_id\":2,\"type_uid\":100602,\"time\":1234,\"severity_id\":1,"
		"\"status_id\":2,\"metadata\":{\"version\":\"1.3.0\",\"product\":{"
		"\"name\":"
		"\"lychgate\",\"version\":\"" LYCH_VERSION
		"\"},\"correlation_uid\":\"42\"},"
		"\"actor\":{\"user\":{\"name\":\"tomb_1\"},\"session\":{\"uid\":\"3\"}},"
		"\"unmapped\":{\"class\":\"oom_kill\"}}");
}

Test(audit_packet, data_that_is_no_object_is_left_out_and_named_by_its_hash)
{
	static const char *const bad[] = {"nonsense", "[1]", "\xff", "{\"a\":"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct audit_event e = {.name = "unheard.of",
					      .actor = "x",
					      .data = bad[i],
					      .data_len = strlen(bad[i])};
		cleanup_buf struct buf b;

		buf_init(&b, AUDIT_EVENT_BUF_MAX);
		audit_event_write(&e, &b);
		cr_expect(strstr(b.data, "\"left_out_sha256\":\""), "%s", b.data);
		cr_expect(strstr(b.data, "\"event\":\"unheard.of\""));
	}
}

Test(audit_packet, a_head_that_is_written_otherwise_is_no_line)
{
	static const char good[] =
		"{\"v\":1,\"log\":\"" UUID "\",\"seq\":1,\"prev\":"
		"\"0000000000000000000000000000000000000000000000000000000000000000\","
		"\"ts\":\"2026-11-22T00:00:00.000Z\",\"boot\":\"" UUID "\",\"up_ms\":0,"
		"\"prod\":\"queue\",\"stream\":\"" UUID "\",\"pseq\":1,\"a\":1}";
	static const char *const swaps[][2] = {
		{"{\"v\":1", "{\"v\":2"},	  {"\"seq\":1", "\"seq\":01"},
		{"\"seq\":1", "\"seq\":0"},	  {"\"seq\":1", "\"seq\":1 "},
		{"\"up_ms\":0", "\"up_ms\":-1"},  {"\"prod\":\"queue\"", "\"prod\":\"\""},
		{"\"pseq\":1", "\"pseq\":0"},	  {",\"a\":1}", "}"},
		{",\"a\":1}", ",\"a\":1"},	  {"aaaaaaaa", "AAAAAAAA"},
		{"\"prev\":\"0", "\"prev\":\"G"}, {"\"prev\":\"0", "\"prev\":\""},
	};
	struct audit_head h;
	struct err err = ERR_INIT;
	const char *members;

	cr_assert(audit_line_parse(good, sizeof(good) - 1, &h, &members, &err) == 0, "%s",
		  err.msg);
	cr_expect_str_eq(members, "\"a\":1}");
	for (size_t i = 0; i < sizeof(swaps) / sizeof(*swaps); i++) {
		cleanup_buf struct buf b;
		const char *at = strstr(good, swaps[i][0]);

		buf_init(&b, 4096);
		buf_add(&b, good, (size_t)(at - good));
		buf_adds(&b, swaps[i][1]);
		buf_adds(&b, at + strlen(swaps[i][0]));
		cr_expect(audit_line_parse(b.data, b.len, &h, &members, &err) < 0,
			  "%s for %s", swaps[i][1], swaps[i][0]);
	}
}
