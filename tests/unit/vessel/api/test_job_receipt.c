/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts as the vessel writes them: whatever a tomb reported, they are of one form, fit into a record, and say what
 * sha256sum(1) says. */
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/receipt.h"
#include "vessel/audit/event.h"
#include <criterion/criterion.h>
#include <string.h>

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
/* as event.c parses what stands in a record */
#define RECORD_DEPTH_MAX 5

TestSuite(job_receipt, .timeout = 30);

static struct queue_job job_of(const char *spec, const char *result)
{
	return (struct queue_job){
		.id = 7,
		.request_id = "r",
		.state = JOB_SUCCEEDED,
		.fail_class = FAIL_NONE,
		.attempts = 1,
		.created_at = "2026-11-30T10:00:00.000Z",
		.started_at = "",
		.finished_at = "2026-11-30T10:00:01.000Z",
		.taint = "",
		.spec = spec,
		.spec_len = spec ? strlen(spec) : 0,
		.result = result,
		.result_len = result ? strlen(result) : 0,
	};
}

/* The receipt, parsed; NULL: there is none. */
static struct json *receipt_of(const struct queue_job *j, const struct job_spent *spent)
{
	static const struct job_spent none;
	const struct receipt_output output = {.bytes = {1, 2}};
	cleanup_buf struct buf b = {.max = RECEIPT_MAX_BYTES};
	struct json *ret = NULL;
	struct err err = ERR_INIT;

	if (!receipt_write(j, 3, &output, spent ? spent : &none, &b))
		return NULL;
	cr_assert_lt(b.len, AUDIT_DATA_MAX);
	cr_assert(json_parse(b.data, b.len, RECORD_DEPTH_MAX, &ret, &err) == 0, "%s: %s",
		  err.msg, b.data);
	return ret;
}

static const struct json *object(const struct json *j, const char *key)
{
	const struct json *o = NULL;

	cr_assert(json_get_obj(j, key, true, &o, NULL) == 0, "%s", key);
	return o;
}

static void is_number(const struct json *j, const char *key, uint64_t want)
{
	uint64_t n = 0;

	cr_expect(json_get_u64(j, key, true, 0, INT64_MAX, &n, NULL) == 0, "%s", key);
	cr_expect_eq(n, want, "%s: %llu", key, (unsigned long long)n);
}

static void is_text(const struct json *j, const char *key, const char *want)
{
	const char *s = "";

	cr_expect(json_get_str(j, key, true, 4096, &s, NULL) == 0, "%s", key);
	cr_expect_str_eq(s, want, "%s", key);
}

static void is_true(const struct json *j, const char *key, bool want)
{
	bool b = !want;

	cr_expect(json_get_bool(j, key, true, &b, NULL) == 0, "%s", key);
	cr_expect_eq(b, want, "%s", key);
}

static void is_sum(const struct json *j, const char *text)
{
	uint8_t sum[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	sha256_of(text, strlen(text), sum);
	hex_encode(sum, sizeof(sum), hex);
	is_text(j, "sha256", hex);
}

Test(job_receipt, who_has_not_ended_has_none)
{
	static const enum job_state not_ended[] = {JOB_HELD, JOB_QUEUED, JOB_PREPARING,
						   JOB_RUNNING, JOB_CANCELLING};
	struct queue_job j = job_of("{}", NULL);

	for (size_t i = 0; i < ARRAY_SIZE(not_ended); i++) {
		j.state = not_ended[i];
		cr_expect_null(receipt_of(&j, NULL));
	}
}

/* Each of them is a report that no tomb of ours writes. */
Test(job_receipt, a_report_of_another_form_is_left_out)
{
	static const char *const results[] = {
		NULL,
		"",
		"[]",
		"{",
		"{\"walls\":1,\"artifacts\":{},\"exit_code\":\"0\",\"signal\":9}",
		"{\"walls\":{\"grade\":\"full\"},\"artifacts\":[1,{\"path\":\"a\"}],"
		"\"exit_code\":1e99,\"stdout_truncated\":0,\"stderr_truncated\":"
		"\"true\"}",
		"{\"walls\":{\"grade\":\"full\",\"landlock_abi\":-1,\"layers\":[]}}",
		"{\"artifacts\":[{\"path\":\"../a\",\"size\":1,\"sha256\":\"" SHA_A
		"\"}]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		struct queue_job j = job_of("{}", results[i]);
		cleanup_json struct json *r = receipt_of(&j, NULL);

		cr_assert(r, "%zu", i);
		cr_expect(json_is_null(r, "walls"), "%zu", i);
		cr_expect(json_is_null(r, "exit_code"), "%zu", i);
		cr_expect(json_is_null(r, "signal"), "%zu", i);
		cr_expect(json_is_null(object(r, "stdout"), "truncated"), "%zu", i);
		cr_expect(json_is_null(object(r, "stderr"), "truncated"), "%zu", i);
		is_number(object(r, "artifacts"), "count", 0);
		is_sum(object(r, "artifacts"), "");
		cr_expect_eq(json_is_null(r, "result"), results[i] == NULL, "%zu", i);
	}
}

static void add_artifacts(struct buf *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		buf_addf(b, "%s{\"path\":\"%03u", i ? "," : "", i);
		for (unsigned k = 0; k < 10; k++)
			buf_addf(b, "%0200u/", k);
		buf_adds(b, "x\",\"size\":1,\"sha256\":\"" SHA_A "\"}");
	}
}

Test(job_receipt, the_longest_report_fits)
{
	cleanup_buf struct buf b = {.max = RESULT_MAX_BYTES * 2};
	char id[201];
	struct queue_job j;

	buf_adds(&b,
		 "{\"walls\":{\"grade\":\"full\",\"landlock_abi\":6,\"deeper\":{\"a\":"
		 "{\"b\":{\"c\":{}}}},\"layers\":[");
	for (unsigned i = 0; i < 20; i++)
		buf_addf(&b,
			 "%s\"\\u2028\\u2028\\u2028\\u2028\\u2028\\u2028\\u2028%02u\"",
			 i ? "," : "", i);
	buf_adds(&b, "]},\"signal\":\"\\u0001\\u0001\\u0001\\u0001\\u0001\\u0001\","
		     "\"artifacts\":[");
	add_artifacts(&b, 256);
	buf_adds(&b, "]}");
	cr_assert(buf_ok(&b));
	j = job_of("{}", b.data);
	memset(id, 1, sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	j.request_id = id;
	cleanup_json struct json *r = receipt_of(&j, NULL);

	cr_assert(r);
	is_number(object(r, "artifacts"), "count", 256);
	is_text(object(r, "walls"), "grade", "full");
	cr_expect_not(json_has(object(r, "walls"), "deeper"));
}

Test(job_receipt, lists_are_those_of_sha256sum)
{
	static const char spec[] = "{\"input\":\"" SHA_A "\",\"stdin_blob\":\"" SHA_B
				   "\",\"files\":[{\"path\":\"in/"
				   "here\",\"content\":\"x\"},{\"path\":\"b\",\"blob\":"
				   "\"" SHA_B "\"}],\"egress\":\"brokered\"}";
	static const char result[] =
		"{\"exit_code\":3,\"signal\":null,\"stdout_truncated\":false,"
		"\"stderr_truncated\":true,\"denials\":[{},{}],"
		"\"artifacts\":[{\"path\":\"o/b\",\"size\":2,\"sha256\":\"" SHA_B
		"\"},{\"path\":\"o/a\",\"size\":3,\"sha256\":\"" SHA_A "\"}]}";
	struct job_spent spent = {.is_counted = true,
				  .has_book = true,
				  .amounts = {.n = {[BUDGET_REQUESTS] = 5,
						    [BUDGET_PACKAGES] = 2,
						    [BUDGET_DENIALS] = 4}}};
	struct queue_job j = job_of(spec, result);
	cleanup_json struct json *r = NULL;

	j.state = JOB_FAILED;
	j.fail_class = FAIL_EXIT;
	r = receipt_of(&j, &spent);
	cr_assert(r);
	is_number(r, "epoch", 3);
	is_text(r, "state", "failed");
	is_text(r, "class", "exit");
	is_number(r, "exit_code", 3);
	is_number(r, "denials", 2);
	cr_expect(json_is_null(r, "started_at"));
	is_sum(object(r, "spec"), spec);
	is_sum(object(r, "result"), result);
	is_sum(object(r, "inputs"), SHA_A "  input\n" SHA_B "  stdin\n" SHA_B "  b\n");
	is_number(object(r, "inputs"), "count", 3);
	is_sum(object(r, "artifacts"), SHA_B "  o/b\n" SHA_A "  o/a\n");
	is_number(object(r, "artifacts"), "bytes", 5);
	is_number(object(r, "stderr"), "bytes", 2);
	is_true(object(r, "stdout"), "truncated", false);
	is_true(object(r, "stderr"), "truncated", true);
	is_number(object(r, "decisions"), "allowed", 7);
	is_number(object(r, "decisions"), "denied", 4);
	is_number(object(r, "spent"), "requests", 5);
}

/* It ran, and was contained before its tomb reported: nobody says that all of its output is there. */
Test(job_receipt, a_job_without_a_report_is_not_said_to_be_whole)
{
	struct queue_job j = job_of("{}", NULL);
	cleanup_json struct json *r = NULL;

	j.state = JOB_QUARANTINED;
	j.started_at = "2026-11-30T10:00:00.500Z";
	j.taint = "a person";
	r = receipt_of(&j, NULL);
	cr_assert(r);
	is_true(r, "contained", true);
	is_text(r, "started_at", j.started_at);
	cr_expect(json_is_null(r, "walls"));
	is_number(object(r, "stdout"), "bytes", 1);
	cr_expect(json_is_null(object(r, "stdout"), "truncated"));
	cr_expect(json_is_null(object(r, "stderr"), "truncated"));
}

/* It may ask, and did not; or may not. */
Test(job_receipt, without_a_broker_nothing_was_decided)
{
	struct queue_job may = job_of("{\"egress\":\"brokered\"}", NULL),
			 not = job_of("{\"egress\":\"none\"}", NULL);
	cleanup_json struct json *a = receipt_of(&may, NULL), *b = receipt_of(&not, NULL);

	cr_assert(a && b);
	is_number(object(a, "decisions"), "allowed", 0);
	cr_expect(json_is_null(b, "decisions") && json_is_null(b, "spent"));
}
