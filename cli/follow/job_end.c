/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See job_end.h.
 */
#include "cli/follow/job_end.h"

#include "cli/base/cmd.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/denied.h"
#include "common/str.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

static int signal_number(const char *name)
{
	for (int i = 1; i < NSIG; i++) {
		const char *abbrev = sigabbrev_np(i);

		if (abbrev && str_starts(name, "SIG") && str_eq(name + 3, abbrev))
			return i;
	}
	return 0;
}

int job_get(struct client *c, job_id_t id, unsigned timeout_ms, struct json **ret,
	    struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64, id);
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = timeout_ms};

	return client_json(c, &rq, ret, NULL, err);
}

int job_end_read(const struct json *job, struct job_end *ret, struct err *err)
{
	const char *state = "", *class_name = "", *sig = "", *sys = "";
	const struct json *result = NULL, *denials = NULL;
	int64_t code = 0;

	*ret = (struct job_end){.detail = ""};
	if (json_get_str(job, "state", true, 32, &state, err) < 0)
		return -1;
	if (!job_state_from_name(state, &ret->state))
		return err_set_id(err, ERRID_HTTP_ANSWER, "unknown state '%s'", state);
	if (json_has(job, "class") && !json_is_null(job, "class") &&
	    json_get_str(job, "class", true, 32, &class_name, err) < 0)
		return -1;
	if (!fail_class_from_name(class_name, &ret->fail_class))
		return err_set_id(err, ERRID_HTTP_ANSWER, "unknown class '%s'",
				  class_name);
	if (!json_has(job, "result") || json_is_null(job, "result"))
		return 0;
	if (json_get_obj(job, "result", true, &result, err) < 0 ||
	    json_get_str(result, "detail", false, 4096, &ret->detail, err) < 0)
		return -1;
	if (json_has(result, "exit_code") && !json_is_null(result, "exit_code")) {
		if (json_get_i64(result, "exit_code", true, 0, 255, &code, err) < 0)
			return -1;
		ret->has_exit_code = true;
		ret->exit_code = (int)code;
	}
	if (json_has(result, "signal") && !json_is_null(result, "signal")) {
		if (json_get_str(result, "signal", true, 32, &sig, err) < 0)
			return -1;
		ret->signal = signal_number(sig);
	}
	if (json_has(result, "exec_errno") && !json_is_null(result, "exec_errno")) {
		if (json_get_str(result, "exec_errno", true, 32, &sys, err) < 0)
			return -1;
		ret->exec_errno = denied_errno_from_name(sys);
	}
	if (json_has(result, "denials")) {
		if (json_get_arr(result, "denials", true, SPAWN_DENIED_MAX, &denials,
				 err) < 0)
			return -1;
		ret->denials = json_arr_len(denials);
	}
	return 0;
}

int job_end_exit_code(const struct job_end *e)
{
	if (e->state == JOB_TIMED_OUT)
		return EXIT_TIMED_OUT;
	if (e->state == JOB_CANCELLED)
		return 128 + SIGINT;
	if (e->state == JOB_LOST || e->state == JOB_QUARANTINED)
		return EXIT_UNAVAILABLE;
	if (e->fail_class == FAIL_SETUP_REFUSED)
		return EXIT_SETUP;
	if (e->fail_class == FAIL_INPUT)
		return EXIT_INPUT;
	if (e->exec_errno)
		return e->exec_errno == ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_EXEC;
	if (e->has_exit_code && (e->state == JOB_SUCCEEDED || e->fail_class == FAIL_EXIT))
		return e->exit_code;
	/* Whether the end of its pipe or our SIGKILL came first is a race, not a fact. */
	if (e->fail_class == FAIL_OUTPUT_LIMIT)
		return 128 + SIGKILL;
	if (e->signal)
		return 128 + e->signal;
	return e->has_exit_code && e->exit_code ? e->exit_code : EXIT_FAILED;
}

/* The public error of an end that isn't the job's success. */
static enum err_id end_error(enum fail_class c)
{
	static const enum err_id ids[FAIL_CLASS_MAX_] = {
		[FAIL_SETUP_REFUSED] = ERRID_EXEC_SETUP,
		[FAIL_POLICY_DENY] = ERRID_EXEC_POLICY,
		[FAIL_TIMEOUT_KILL] = ERRID_EXEC_TIMEOUT,
		[FAIL_OOM_KILL] = ERRID_EXEC_OOM,
		[FAIL_OUTPUT_LIMIT] = ERRID_EXEC_OUTPUT,
		[FAIL_DISK_LIMIT] = ERRID_EXEC_DISK,
		[FAIL_RESOURCE_KILL] = ERRID_EXEC_RESOURCE,
		[FAIL_EXIT] = ERRID_EXEC_CRASH,
		[FAIL_CRASH] = ERRID_EXEC_CRASH,
		[FAIL_INPUT] = ERRID_EXEC_INPUT,
		[FAIL_LEASE_EXPIRED] = ERRID_EXEC_LEASE,
		[FAIL_GATE_FAILED] = ERRID_EXEC_POLICY,
		[FAIL_TRANSPORT_LOSS] = ERRID_EXEC_TRANSPORT,
		[FAIL_BUDGET_EXHAUSTED] = ERRID_EXEC_POLICY,
	};

	return ids[c];
}

void job_end_explain(const struct job_end *e, job_id_t id)
{
	const char *state = job_state_name(e->state);
	bool says_more = e->detail[0] && !str_eq(e->detail, state);
	cleanup_free char *text = NULL;

	if (e->state == JOB_SUCCEEDED || (e->fail_class == FAIL_EXIT && !e->detail[0]))
		return;
	text = xasprintf("job %" PRId64 ": %s%s%s%s%s", id, state,
			 e->fail_class ? ", class " : "",
			 e->fail_class ? fail_class_name(e->fail_class) : "",
			 says_more ? ": " : "", says_more ? e->detail : "");
	cmd_tell(e->exec_errno ? ERRID_SANDBOX_EXEC : end_error(e->fail_class), text);
}
