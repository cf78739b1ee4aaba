/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between vessel and egress workers: what is not exactly one is refused. */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/wire.h"
#include <criterion/criterion.h>

#define BIG (1u << 20)

/* The one frame in b; fails the test when there is another number of them. */
static struct egress_frame only(const struct buf *b)
{
	struct egress_frame f = {0};
	struct err err = ERR_INIT;
	size_t used = 0;

	cr_assert_eq(egress_frame_next(b->data, b->len, &f, &used, &err), 1, "%s",
		     err.msg);
	cr_assert_eq(used, b->len);
	return f;
}

Test(egress_wire, what_is_no_frame_is_refused)
{
	static const struct {
		const char *why;
		unsigned char b[EGRESS_FRAME_HEADER];
	} bad[] = {
		{"type 0", {0, 0, 0, 0, 0, 0, 0, 0, 1}},
		{"type past the last", {0, 0, 0, 0, EGRESS_F_MAX_, 0, 0, 0, 1}},
		{"not zero", {0, 0, 0, 0, EGRESS_F_CANCEL, 1, 0, 0, 1}},
		{"not zero either", {0, 0, 0, 0, EGRESS_F_CANCEL, 0, 0, 1, 1}},
		{"too long", {1, 0, 1, 0, EGRESS_F_DATA, 0, 0, 0, 1}},
		{"4 GiB", {255, 255, 255, 255, EGRESS_F_DATA, 0, 0, 0, 1}},
		{"data of no call", {1, 0, 0, 0, EGRESS_F_DATA, 0, 0, 0, 0}},
		{"a report of a call", {1, 0, 0, 0, EGRESS_F_READY, 0, 0, 0, 1}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct egress_frame f;
		struct err err = ERR_INIT;
		size_t used;

		cr_expect_eq(
			egress_frame_next(bad[i].b, sizeof(bad[i].b), &f, &used, &err),
			-1, "%s", bad[i].why);
		cr_expect_eq(err.id, ERRID_EGRESS_WORKER);
	}
}

Test(egress_wire, a_frame_waits_for_its_last_byte)
{
	cleanup_buf struct buf b;
	struct egress_frame f;
	struct err err = ERR_INIT;
	size_t used;

	buf_init(&b, BIG);
	egress_frame_add(&b, EGRESS_F_DATA, 7, "hello", 5);
	for (size_t n = 0; n < b.len; n++)
		cr_assert_eq(egress_frame_next(b.data, n, &f, &used, &err), 0);
	f = only(&b);
	cr_assert_eq(f.call, 7u);
	cr_assert_eq(f.len, 5u);
	cr_assert_arr_eq(f.data, "hello", 5);
}

Test(egress_wire, a_body_of_any_length_is_cut_into_frames)
{
	static char body[3 * EGRESS_FRAME_MAX + 1];
	cleanup_buf struct buf b;
	struct egress_frame f;
	struct err err = ERR_INIT;
	size_t at = 0, used, total = 0;
	unsigned n = 0;

	buf_init(&b, BIG);
	egress_frame_add_data(&b, 1, body, 0);
	cr_assert_eq(b.len, 0u);
	egress_frame_add_data(&b, 1, body, sizeof(body));
	for (; egress_frame_next(b.data + at, b.len - at, &f, &used, &err) == 1; n++) {
		at += used;
		total += f.len;
	}
	cr_assert_eq(n, 4u);
	cr_assert_eq(total, sizeof(body));
}

Test(egress_wire, a_request_that_breaks_a_rule_is_not_written)
{
	static char long_target[EGRESS_TARGET_MAX_BYTES + 2], long_value[8194];
	struct egress_header many[EGRESS_HEADERS_MAX + 1];
	const struct egress_header crlf = {"Accept", "a\r\nHost: b"}, name = {"A b", ""},
				   empty = {"", "x"}, big = {"A", long_value};
	const struct egress_request good = {.method = "POST", .target = "/x"};
	struct egress_request bad[16];
	size_t n = 0;

	memset(long_target, '/', sizeof(long_target) - 1);
	memset(long_value, 'v', sizeof(long_value) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct egress_header){"A", "b"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[n++].method = "TRACE";
	bad[n++].method = "GET /y HTTP/1.1\r\nX:";
	bad[n++].target = "";
	bad[n++].target = "x";
	bad[n++].target = "ftp://x/";
	bad[n++].target = "/a b";
	bad[n++].target = "/a\r\nHost: b";
	bad[n++].target = "/a#b";
	bad[n++].target = long_target;
	bad[n].headers = &crlf, bad[n++].n_headers = 1;
	bad[n].headers = &name, bad[n++].n_headers = 1;
	bad[n].headers = &empty, bad[n++].n_headers = 1;
	bad[n].headers = &big, bad[n++].n_headers = 1;
	bad[n].headers = many, bad[n++].n_headers = ARRAY_SIZE(many);
	bad[n].method = "GET", bad[n++].body_len = 1;
	bad[n++].retries = 4;
	cr_assert_eq(n, ARRAY_SIZE(bad));
	for (size_t i = 0; i < n; i++) {
		struct err err = ERR_INIT;
		cleanup_buf struct buf b;

		buf_init(&b, BIG);
		cr_expect(egress_request_add(&b, 1, &bad[i], &err) < 0, "%zu", i);
		cr_expect_eq(err.id, ERRID_EGRESS_REQUEST);
		cr_expect_eq(b.len, 0u);
	}
}

Test(egress_wire, a_request_comes_over_whole)
{
	static const struct egress_header h[] = {{"Accept", "*/*"}, {"X-Y", ""}};
	static const char *const addresses[] = {"127.0.0.1", "::1"};
	const struct egress_request rq = {
		.method = "POST",
		.target = "https://a.example/x?y=%20",
		.headers = h,
		.n_headers = 2,
		.body_len = 12345,
		.addresses = addresses,
		.n_addresses = 2,
		.limits = {.connect_usec = 1,
			   .first_byte_usec = 2,
			   .idle_usec = 3,
			   .total_usec = 4,
			   .reply_max_bytes = (uint64_t)5 << 32,
			   .reply_room_bytes = 6},
		.retries = 3,
	};
	struct egress_wire_request got;
	struct err err = ERR_INIT;
	cleanup_buf struct buf b;
	struct egress_frame f;

	buf_init(&b, BIG);
	cr_assert_eq(egress_request_add(&b, 9, &rq, &err), 0);
	f = only(&b);
	cr_assert_eq(f.type, EGRESS_F_REQUEST);
	for (size_t n = 0; n < f.len; n++)
		cr_assert(egress_request_parse(f.data, n, &got, &err) < 0);
	cr_assert_eq(egress_request_parse(f.data, f.len, &got, &err), 0, "%s", err.msg);
	cr_assert_str_eq(got.rq.method, "POST");
	cr_assert_str_eq(got.rq.target, rq.target);
	cr_assert_eq(got.rq.n_headers, 2u);
	cr_assert_str_eq(got.rq.headers[0].value, "*/*");
	cr_assert_str_eq(got.rq.headers[1].name, "X-Y");
	cr_assert_str_eq(got.rq.addresses[1], "::1");
	cr_assert_eq(got.rq.body_len, 12345u);
	cr_assert_eq(got.rq.limits.reply_max_bytes, (uint64_t)5 << 32);
	cr_assert_eq(got.rq.limits.reply_room_bytes, 6u);
	cr_assert_eq(got.rq.limits.idle_usec, 3u);
	cr_assert_eq(got.rq.retries, 3u);
	free(got.memory);
}

Test(egress_wire, a_head_with_a_control_byte_is_refused_at_both_ends)
{
	static const struct egress_header bad = {"A", "x\ny"}, good = {"A", "xzy"};
	struct egress_head head = {.status = 200, .headers = &bad, .n_headers = 1};
	struct egress_wire_head got;
	struct err err = ERR_INIT;
	cleanup_buf struct buf b;
	struct egress_frame f;
	char *at;

	buf_init(&b, BIG);
	cr_assert(egress_head_add(&b, 1, &head, &err) < 0);
	cr_assert_eq(err.id, ERRID_EGRESS_REPLY);
	head.headers = &good;
	head.location = "/elsewhere";
	cr_assert_eq(egress_head_add(&b, 1, &head, &err), 0);
	f = only(&b);
	cr_assert_eq(egress_head_parse(f.data, f.len, &got, &err), 0);
	cr_assert_str_eq(got.head.location, "/elsewhere");
	cr_assert_str_eq(got.head.headers[0].value, "xzy");
	free(got.memory);
	at = memchr(b.data, 'z', b.len);
	*at = '\n';
	cr_assert(egress_head_parse(f.data, f.len, &got, &err) < 0);
	*at = '\0';
	cr_assert(egress_head_parse(f.data, f.len, &got, &err) < 0);
	head.status = 199;
	cr_assert(egress_head_add(&b, 1, &head, &err) < 0);
}

Test(egress_wire, the_end_carries_an_error_of_its_family_only)
{
	struct err why = ERR_INIT, got_why, err = ERR_INIT;
	struct egress_end end = {.err = &why,
				 .bytes_up = 1,
				 .bytes_down = (uint64_t)1 << 40,
				 .attempts = 2,
				 .sent = true,
				 .redactions = 3},
			  got;
	cleanup_buf struct buf b;
	struct egress_frame f;

	buf_init(&b, BIG);
	(void)err_set_id(&why, ERRID_EGRESS_TIMEOUT, "idle");
	egress_end_add(&b, 1, &end);
	f = only(&b);
	cr_assert_eq(egress_end_parse(f.data, f.len, &got, &got_why, &err), 0, "%s",
		     err.msg);
	cr_assert_eq(got.err->id, ERRID_EGRESS_TIMEOUT);
	cr_assert_str_eq(got.err->msg, "idle");
	cr_assert_eq(got.bytes_down, (uint64_t)1 << 40);
	cr_assert_eq(got.attempts, 2u);
	cr_assert(got.sent);
	cr_assert_eq(got.redactions, 3u);
	buf_reset(&b);
	(void)err_set_id(&why, ERRID_RUN_REVOKED, "I am the queue");
	egress_end_add(&b, 1, &end);
	f = only(&b);
	cr_assert(egress_end_parse(f.data, f.len, &got, &got_why, &err) < 0);
	buf_reset(&b);
	end.err = NULL;
	egress_end_add(&b, 1, &end);
	f = only(&b);
	cr_assert_eq(egress_end_parse(f.data, f.len, &got, &got_why, &err), 0);
	cr_assert_null(got.err);
}

Test(egress_wire, a_report_and_a_failure_come_over)
{
	struct confine_report walls = {.n = 2}, got;
	struct err why = ERR_INIT, got_why = ERR_INIT, err = ERR_INIT;
	cleanup_buf struct buf b;
	struct egress_frame f;

	buf_init(&b, BIG);
	(void)snprintf(walls.line[0].wall, sizeof(walls.line[0].wall), "exec");
	(void)snprintf(walls.line[1].answer, sizeof(walls.line[1].answer), "EPERM");
	walls.line[1].held = true;
	egress_ready_add(&b, &walls);
	f = only(&b);
	cr_assert_eq(egress_ready_parse(f.data, f.len, &got, &err), 0);
	cr_assert_eq(got.n, 2u);
	cr_assert_str_eq(got.line[0].wall, "exec");
	cr_assert(!got.line[0].held && got.line[1].held);
	cr_assert(egress_ready_parse(f.data, f.len - 1, &got, &err) < 0);
	buf_reset(&b);
	(void)err_set_id(&why, ERRID_START_CONFINE, "a wall");
	egress_failed_add(&b, &why);
	f = only(&b);
	cr_assert_eq(egress_failed_parse(f.data, f.len, &got_why, &err), 0);
	cr_assert_eq(got_why.id, ERRID_START_CONFINE);
}

Test(egress_wire, a_credit_is_of_at_most_a_window)
{
	struct err err = ERR_INIT;
	cleanup_buf struct buf b;
	uint32_t got;

	buf_init(&b, BIG);
	egress_credit_add(&b, 1, EGRESS_WINDOW_BYTES);
	cr_assert_eq(egress_credit_parse(only(&b).data, 4, &got, &err), 0);
	cr_assert_eq(got, EGRESS_WINDOW_BYTES);
	cr_assert(egress_credit_parse("\0\0\0\0", 4, &got, &err) < 0);
	cr_assert(egress_credit_parse("\xff\xff\xff\xff", 4, &got, &err) < 0);
	cr_assert(egress_credit_parse("\1\0\0\0\0", 5, &got, &err) < 0);
}

Test(egress_wire, a_replys_room_is_a_number_and_a_word)
{
	struct err err = ERR_INIT;
	cleanup_buf struct buf b;
	uint64_t got;
	bool is_last;

	buf_init(&b, BIG);
	egress_room_add(&b, 1, (uint64_t)1 << 40, true);
	cr_assert_eq(egress_room_parse(only(&b).data, 9, &got, &is_last, &err), 0);
	cr_assert_eq(got, (uint64_t)1 << 40);
	cr_assert(is_last);
	cr_assert(egress_room_parse("\1\0\0\0\0\1\0\0\0", 9, &got, &is_last, &err) < 0);
	cr_assert(egress_room_parse("\1\0\0\0\0\0\0\0\2", 9, &got, &is_last, &err) < 0);
	cr_assert(egress_room_parse("\1\0\0\0\0\0\0\0", 8, &got, &is_last, &err) < 0);
	cr_assert(egress_room_parse("\1\0\0\0\0\0\0\0\0\0", 10, &got, &is_last, &err) <
		  0);
}

Test(egress_wire, whose_a_call_is_comes_over_or_is_refused)
{
	static const unsigned char negative[16] = {[7] = 0x80, [8] = 1};
	struct err err = ERR_INIT;
	cleanup_buf struct buf b;
	struct egress_frame f;
	int64_t epoch = 0;
	job_id_t job = 0;
	size_t used;

	buf_init(&b, BIG);
	egress_whose_add(&b, 9, INT64_MAX, 3);
	cr_assert_eq(egress_frame_next(b.data, b.len, &f, &used, &err), 1);
	cr_expect_eq(f.type, EGRESS_F_WHOSE);
	cr_expect_eq(f.call, 9u);
	for (size_t n = 0; n < f.len; n++)
		cr_expect_lt(egress_whose_parse(f.data, n, &job, &epoch, &err), 0);
	cr_expect_lt(egress_whose_parse(negative, 16, &job, &epoch, &err), 0);
	cr_assert_eq(egress_whose_parse(f.data, f.len, &job, &epoch, &err), 0);
	cr_expect_eq(job, INT64_MAX);
	cr_expect_eq(epoch, 3);
}
