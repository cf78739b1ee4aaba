/* SPDX-License-Identifier: Apache-2.0 */
/* What a tomb says about a job: the end, its reason, and what the walls refused. */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/str.h"
#include "tomb/job/report.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct proxy_refused broker_refused;

static struct spawn_denied denial(void)
{
	struct spawn_denied d = {.type = SPAWN_DENIED,
				 .wall = SPAWN_WALL_SECCOMP,
				 .act = SPAWN_ACT_CALL,
				 .count = 2,
				 .sys = EPERM,
				 .call = "mount"};

	return d;
}

static struct json *written(const struct job *j, const struct denials *d)
{
	const struct report r = {
		.job = j, .denials = d, .broker_refused = &broker_refused};
	struct err err = ERR_INIT;
	struct json *ret = NULL;
	struct buf b;

	buf_init(&b, RESULT_MAX_BYTES);
	report_write(&r, &b);
	cr_assert(buf_ok(&b));
	cr_assert_eq(json_parse(b.data, b.len, JSON_DEPTH_DEFAULT, &ret, &err), 0, "%s",
		     err.msg);
	buf_done(&b);
	return ret;
}

static const char *text(const struct json *o, const char *key)
{
	const char *s = NULL;

	if (json_is_null(o, key))
		return "null";
	cr_assert_eq(json_get_str(o, key, true, 65536, &s, NULL), 0, "%s", key);
	return s;
}

Test(report, more_denials_than_the_protocol_has_are_a_broken_promise)
{
	struct denials d = {.n = 0};
	struct spawn_denied m = denial();

	for (unsigned i = 0; i < SPAWN_DENIED_MAX; i++)
		cr_assert_eq(denials_add(&d, &m), 0);
	cr_assert_lt(denials_add(&d, &m), 0);
	cr_assert_eq(d.n, SPAWN_DENIED_MAX);
	denials_done(&d);
	cr_assert_eq(d.n, 0);
}

Test(report, the_worst_names_fit_and_stay_one_line)
{
	struct job j = {.ran = true, .has_exited = true, .exited = {.code = 1}};
	struct denials d = {.n = 0};
	struct spawn_denied m = denial();
	const struct report r = {
		.job = &j, .denials = &d, .broker_refused = &broker_refused};
	struct buf b;

	memset(m.object, 1, sizeof(m.object) - 1);
	memset(m.grant, 1, sizeof(m.grant) - 1);
	m.dropped = 4294967295u;
	for (unsigned i = 0; i < SPAWN_DENIED_MAX; i++)
		cr_assert_eq(denials_add(&d, &m), 0);
	memset(&broker_refused, 0xff, sizeof(broker_refused));
	buf_init(&b, RESULT_MAX_BYTES / 4);
	report_write(&r, &b);
	cr_assert(buf_ok(&b));
	cr_assert_null(memchr(b.data, '\n', b.len));
	buf_done(&b);
	denials_done(&d);
}

Test(report, a_denial_is_told_with_its_parts)
{
	struct job j = {.ran = true, .has_exited = true, .exited = {.code = 1}};
	struct denials d = {.n = 0};
	struct spawn_denied m = denial();
	const struct json *arr, *o;
	uint64_t n = 0;

	m.dropped = 3;
	cr_assert_eq(denials_add(&d, &m), 0);
	cleanup_json struct json *got = written(&j, &d);

	cr_assert_eq(json_get_arr(got, "denials", true, 64, &arr, NULL), 0);
	cr_assert_eq(json_arr_len(arr), 1);
	o = json_arr_at(arr, 0);
	cr_assert_str_eq(text(o, "act"), "call");
	cr_assert_str_eq(text(o, "wall"), "seccomp");
	cr_assert_str_eq(text(o, "call"), "mount");
	cr_assert_str_eq(text(o, "errno"), "EPERM");
	cr_assert_eq(json_get_u64(got, "denials_dropped", true, 0, 100, &n, NULL), 0);
	cr_assert_eq(n, 3);
	denials_done(&d);
}

Test(report, what_the_broker_refused_is_counted_by_its_code)
{
	struct job j = {.ran = true, .has_exited = true};
	struct denials d = {.n = 0};
	const struct json *arr;
	uint64_t n = 0;

	broker_refused.count[ERRID_BROKER_KEY] = 3;
	cleanup_json struct json *got = written(&j, &d);

	cr_assert_eq(json_get_arr(got, "broker_refused", true, 64, &arr, NULL), 0);
	cr_assert_eq(json_arr_len(arr), 1);
	cr_assert_str_eq(text(json_arr_at(arr, 0), "error_code"), "LYCH-BROKER-020");
	cr_assert_eq(json_get_u64(json_arr_at(arr, 0), "count", true, 0, 9, &n, NULL), 0);
	cr_assert_eq(n, 3);
}

Test(report, an_exec_that_failed_has_its_errno_and_no_exit_code)
{
	struct job j = {.has_exited = true,
			.exited = {.how = SPAWN_END_EXEC, .code = ENOENT}};
	struct denials d = {.n = 0};
	cleanup_json struct json *got = written(&j, &d);

	cr_assert(json_is_null(got, "exit_code"));
	cr_assert(json_is_null(got, "signal"));
	cr_assert_str_eq(text(got, "exec_errno"), "ENOENT");
	cr_assert_str_eq(text(got, "end"), "exec");
}

Test(report, a_wall_that_could_not_be_raised_is_named)
{
	struct job j = {.has_refused = true,
			.refused = {.error_code = "LYCH-SANDBOX-004",
				    .stage = "userns",
				    .text = "no"}};
	struct denials d = {.n = 0};
	const struct json *o;
	cleanup_json struct json *got = written(&j, &d);

	cr_assert_str_eq(text(got, "end"), "refused");
	cr_assert_str_eq(text(got, "exec_errno"), "null");
	cr_assert_eq(json_get_obj(got, "refused", true, &o, NULL), 0);
	cr_assert_str_eq(text(o, "error_code"), "LYCH-SANDBOX-004");
	cr_assert_str_eq(text(o, "stage"), "userns");
}
