/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"
#include "common/proto.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

Test(proto, every_name_round_trips)
{
	for (unsigned i = 0; i < JOB_STATE_MAX_; i++) {
		enum job_state s;

		cr_assert(job_state_from_name(job_state_name((enum job_state)i), &s));
		cr_assert_eq((unsigned)s, i);
	}
	for (unsigned i = 0; i < FAIL_CLASS_MAX_; i++) {
		enum fail_class c;

		cr_assert(fail_class_from_name(fail_class_name((enum fail_class)i), &c));
		cr_assert_eq((unsigned)c, i);
	}
	cr_assert_not(job_state_from_name("auto", &(enum job_state){0}));
	cr_assert_not(sbx_grade_from_name("auto", &(enum sbx_grade){0}));
	cr_assert_null(job_state_name(JOB_STATE_MAX_));
}

Test(proto, environment_names_that_something_obeys_are_refused)
{
	static const char *const bad[] = {"",
					  "LD_PRELOAD",
					  "LD_AUDIT",
					  "BASH_ENV",
					  "PYTHONPATH",
					  "PATH",
					  "NODE_OPTIONS",
					  "GIT_SSH_COMMAND",
					  "GCONV_PATH",
					  "lower-",
					  "1A",
					  "A-B",
					  "A=B",
					  "HOME",
					  "BASH_FUNC_X",
					  "GLIBC_TUNABLES",
					  "LYCHGATE_X",
					  "lychgate_broker",
					  "Lychgate_Broker_Key"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_not(env_name_is_allowed(bad[i], strlen(bad[i])), "%s", bad[i]);
	cr_assert_not(env_name_is_allowed("A\0B", 3));
	cr_assert(env_name_is_allowed("MY_VAR1", 7));
	cr_assert(env_name_is_allowed("http_proxy", 10));
}

Test(proto, public_errors_are_unique_and_helpful)
{
	for (unsigned i = 1; i < ERRID_MAX_; i++) {
		const struct err_info *a = err_info((enum err_id)i);

		cr_assert(str_starts(a->text, "LYCH-"), "%s", a->symbol);
		cr_assert_gt(strlen(a->title), 5u, "%s", a->text);
		cr_assert_gt(strlen(a->hint), 5u, "%s", a->text);
		cr_assert_eq(err_id_from_text(a->text), (enum err_id)i, "%s twice",
			     a->text);
	}
}

Test(proto, messages_are_one_line_and_bounded)
{
	struct err err = ERR_INIT;
	char big[2000];

	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	cr_assert_lt(err_set(&err, ERR_INVALID, "a\nb\x1b%s", big), 0);
	cr_assert_null(strchr(err.msg, '\n'));
	cr_assert_null(strchr(err.msg, '\x1b'));
	cr_assert_lt(strlen(err.msg), sizeof(err.msg));
	cr_assert_lt(err_wrap(&err, "%s", big), 0);
	cr_assert_lt(strlen(err.msg), sizeof(err.msg));
	cr_assert_eq(err.code, ERR_INVALID);
	cr_assert_lt(err_set(NULL, ERR_INVALID, "no object"), 0);
}
