/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Why a job ended, in plain words. Everything comes from the job's result, which the sandbox
 * and the tomb wrote; nothing from what the job printed. A wall is named only where a record
 * or the end itself names it: a job that failed by itself is said to have failed by itself.
 */
#include "cli/jobs/why.h"

#include "cli/ui/denials.h"
#include "cli/ui/render.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"
#include "common/str.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

/* Each limit, as the spec names it and as lych run does. */
static const struct why_limit limits[] = {
	{"timeout", "timeout_kill", "time", "timeout_ms", "--timeout", WHY_MSEC,
	 LIMIT_TIMEOUT_USEC_MAX / 1000},
	{"oom", "oom_kill", "memory", "memory_bytes", "--memory", WHY_BYTES,
	 LIMIT_MEMORY_MAX},
	{"disk", "disk_limit", "disk", "disk_bytes", "--disk", WHY_BYTES, LIMIT_DISK_MAX},
	{"output", "output_limit", "output", "output_bytes", "--output", WHY_BYTES,
	 LIMIT_OUTPUT_MAX},
	{"processes", "-", "processes", "processes", "--processes", WHY_COUNT,
	 LIMIT_PROCESSES_MAX},
};

static const struct json *child(const struct json *o, const char *key)
{
	const struct json *c = NULL;

	return o && json_has(o, key) && !json_is_null(o, key) &&
			       json_get_obj(o, key, true, &c, NULL) == 0
		       ? c
		       : NULL;
}

/* As lych run reads it: the largest unit that says it exactly. */
static void put_value(struct buf *b, enum why_unit unit, uint64_t v)
{
	static const struct {
		uint64_t n;
		const char *name;
	} bytes[] = {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}},
	  msecs[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}};

	for (size_t i = 0; unit == WHY_BYTES && i < ARRAY_SIZE(bytes); i++)
		if (v && v % bytes[i].n == 0) {
			buf_addf(b, "%" PRIu64 "%s", v / bytes[i].n, bytes[i].name);
			return;
		}
	for (size_t i = 0; unit == WHY_MSEC && i < ARRAY_SIZE(msecs); i++)
		if (v && v % msecs[i].n == 0) {
			buf_addf(b, "%" PRIu64 "%s", v / msecs[i].n, msecs[i].name);
			return;
		}
	buf_addf(b, "%" PRIu64 "%s", v, unit == WHY_MSEC ? "ms" : "");
}

/* ---- the reason ------------------------------------------------------------- */

static void why_limit(struct why *y)
{
	const struct why_limit *l = y->limit;
	const char *detail = render_text_of(y->result, "detail");
	uint64_t twice;

	buf_addf(&y->reason, "it was ended at its %s limit of ", l->name);
	put_value(&y->reason, l->unit, y->limit_value);
	if (detail[0])
		buf_addf(&y->reason, " (%s)", detail);
	if (y->limit_value >= l->max) {
		buf_addf(&y->advice,
			 "that is the most that any job may have: make it need less");
		return;
	}
	twice = y->limit_value > l->max / 2 ? l->max : y->limit_value * 2;
	buf_addf(&y->advice, "anything above ");
	put_value(&y->advice, l->unit, y->limit_value);
	buf_addf(&y->advice,
		 " is a raise, how much it needs cannot be known; try "
		 "'lych run %s ",
		 l->option);
	put_value(&y->advice, l->unit, twice);
	buf_addf(&y->advice, "'");
}

static void why_refused(struct why *y)
{
	const struct json *r = child(y->result, "refused");
	enum err_id id = err_id_from_text(render_text_of(r, "error_code"));

	if (r)
		buf_addf(&y->reason,
			 "nothing ran: a wall could not be raised, at stage %s: %s (%s)",
			 render_text_of(r, "stage"), render_text_of(r, "detail"),
			 render_text_of(r, "error_code"));
	else
		buf_addf(&y->reason, "the job did not start: %s",
			 render_text_of(y->result, "detail"));
	buf_adds(&y->advice, err_info(id ? id : ERRID_EXEC_SETUP)->hint);
}

static void why_input(struct why *y)
{
	buf_addf(&y->reason, "nothing ran: its input could not be taken: %s",
		 render_text_of(y->result, "detail"));
	buf_adds(&y->advice, err_info(ERRID_EXEC_INPUT)->hint);
}

static void why_exec(struct why *y)
{
	const char *what = strerrordesc_np(y->end.exec_errno);

	buf_addf(&y->reason, "the command could not be executed: %s (%s)",
		 what ? what : "?", y->exec);
	if (y->end.exec_errno == ENOENT)
		buf_adds(&y->advice,
			 "inside, a bare name is looked for in /usr/local/bin, /usr/bin "
			 "and /bin, a file of the job's own is ./NAME, and the "
			 "interpreter in a script's first line must exist too");
	else if (y->end.exec_errno == ENOEXEC)
		buf_adds(&y->advice, "it is no program of this machine, and as a script "
				     "it lacks a first line such as #!/bin/sh");
	else if (y->end.exec_errno == EACCES)
		buf_adds(&y->advice,
			 "it must be a regular file with its executable bit set");
	else
		buf_adds(&y->advice, err_info(ERRID_SANDBOX_EXEC)->hint);
}

/* By whoever measures it, and not at a limit that it could be given more of. */
static void why_resource(struct why *y)
{
	const char *detail = render_text_of(y->result, "detail");

	buf_addf(&y->reason, "it was ended by its supervision: %s",
		 detail[0] ? detail : y->how);
	buf_adds(&y->advice, err_info(ERRID_EXEC_RESOURCE)->hint);
}

static void why_signal(struct why *y)
{
	buf_addf(&y->reason, "it was ended by %s", y->sig);
	if (str_eq(y->sig, "SIGSYS")) {
		buf_adds(&y->reason, ", which the seccomp filter sends for a system call "
				     "of a foreign architecture");
		buf_adds(&y->advice, "run a program built for this machine's own "
				     "architecture");
	} else if (str_eq(y->sig, "SIGXFSZ")) {
		buf_adds(&y->reason, ": it wrote one file past the largest size allowed, "
				     "which is its disk limit");
		buf_adds(&y->advice, "raise --disk");
	} else {
		buf_adds(&y->reason, ", which it raised itself or met in its own code; "
				     "no limit and no wall ended it");
	}
}

static bool is_streamed(const struct json *job)
{
	const struct json *spec = NULL;

	return json_has(job, "spec") && !json_is_null(job, "spec") &&
	       json_get_obj(job, "spec", true, &spec, NULL) == 0 &&
	       json_has(spec, "stdin_stream");
}

static void why_lost(struct why *y)
{
	buf_addf(&y->reason,
		 "its worker was lost (%s)%s%s, so what became of it is not "
		 "known",
		 fail_class_name(y->end.fail_class), y->end.detail[0] ? ": " : "",
		 y->end.detail);
	if (is_streamed(y->job)) {
		buf_addf(&y->reason, ". %s (%s)", err_info(ERRID_RUN_STREAMED)->title,
			 err_info(ERRID_RUN_STREAMED)->text);
		buf_adds(&y->advice, err_info(ERRID_RUN_STREAMED)->hint);
		return;
	}
	buf_addf(&y->advice,
		 "'lych status' shows whether a worker is up; 'lych retry %" PRId64
		 "' runs it again when it may run twice",
		 y->id);
}

/* Contained by a person or a signal, put aside because its workers died under it, or come
 * with an archive that nobody vouched for. */
static void why_quarantined(struct why *y)
{
	const char *taint = render_text_of(y->job, "taint");

	if (taint[0]) {
		buf_addf(&y->reason, "it was contained, and is kept as evidence: %s",
			 taint);
		buf_adds(&y->advice, err_info(ERRID_RUN_TAINTED)->hint);
		return;
	}
	if (render_number_of(y->job, "lost") == 0) {
		buf_adds(&y->reason,
			 "it came with an archive that was restored without its seal "
			 "(--unsealed), where it had not ended: whoever made the archive "
			 "chose what it does, so it does not begin by itself");
		buf_addf(&y->advice,
			 "'lych show %" PRId64
			 "' tells what it would do; 'lych retry %" PRId64
			 "' runs it, 'lych rm %" PRId64 "' removes it",
			 y->id, y->id, y->id);
		return;
	}
	buf_addf(
		&y->reason,
		"its worker died or fell silent %" PRIu64
		" times while it ran, so it is not begun again by itself: it may be what "
		"ends a worker, or it only met an outage each time; nothing records that "
		"it is to blame",
		render_number_of(y->job, "lost"));
	buf_addf(&y->advice,
		 "'lych status' and the tomb's log tell how its workers ended; 'lych "
		 "retry "
		 "%" PRId64 "' runs it again, 'lych rm %" PRId64 "' removes it",
		 y->id, y->id);
}

static void why_unfinished(struct why *y)
{
	buf_addf(&y->reason, "it has not ended yet: %s", job_state_name(y->end.state));
	buf_adds(&y->advice, "what the walls have refused is known when it has ended");
}

static void why_own_end(struct why *y)
{
	if (y->end.has_exit_code && y->end.exit_code == 0)
		buf_adds(&y->reason, "it succeeded: exit code 0");
	else if (y->end.has_exit_code)
		buf_addf(&y->reason,
			 "it ended by itself with exit code %d, the program's own",
			 y->end.exit_code);
	else
		buf_addf(&y->reason, "it ended: %s",
			 y->end.detail[0] ? y->end.detail
					  : fail_class_name(y->end.fail_class));
}

static void find_reason(struct why *y)
{
	if (!y->final)
		why_unfinished(y);
	else if (y->end.state == JOB_CANCELLED)
		buf_adds(&y->reason, "it was cancelled");
	else if (y->end.state == JOB_QUARANTINED)
		why_quarantined(y);
	else if (y->end.state == JOB_LOST)
		why_lost(y);
	else if (y->limit)
		why_limit(y);
	else if (y->end.fail_class == FAIL_SETUP_REFUSED)
		why_refused(y);
	else if (y->end.fail_class == FAIL_INPUT)
		why_input(y);
	else if (y->exec[0])
		why_exec(y);
	else if (y->end.fail_class == FAIL_RESOURCE_KILL)
		why_resource(y);
	else if (y->end.signal)
		why_signal(y);
	else
		why_own_end(y);
}

/* How it ended is one thing, that it was contained since another. */
static void add_taint(struct why *y)
{
	const char *taint = render_text_of(y->job, "taint");

	if (!taint[0] || y->end.state == JOB_QUARANTINED)
		return;
	buf_addf(&y->reason, "; since then it was contained, and is kept as evidence: %s",
		 taint);
	buf_reset(&y->advice);
	buf_adds(&y->advice, err_info(ERRID_RUN_TAINTED)->hint);
}

/* ---- from the job ----------------------------------------------------------- */

static const struct why_limit *find_limit(const struct why *y)
{
	const char *class_name = fail_class_name(y->end.fail_class);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (str_eq(limits[i].class, class_name) ||
		    (y->end.fail_class == FAIL_RESOURCE_KILL &&
		     str_eq(limits[i].end, y->how)))
			return &limits[i];
	return NULL;
}

static int read_denials(struct why *y, struct err *err)
{
	const struct json *arr = NULL;

	if (!y->result || !json_has(y->result, "denials"))
		return 0;
	if (json_get_arr(y->result, "denials", true, SPAWN_DENIED_MAX, &arr, err) < 0)
		return -1;
	y->n_denied = json_arr_len(arr);
	y->denied = xcalloc(y->n_denied + 1, sizeof(*y->denied));
	for (size_t i = 0; i < y->n_denied; i++)
		if (denials_read_one(json_arr_at(arr, i), &y->denied[i], err) < 0)
			return -1;
	y->dropped = render_number_of(y->result, "denials_dropped");
	return 0;
}

/* It only illustrates: one that is of no such form is none. */
static void read_curve(struct why *y)
{
	const struct json *curve = NULL;
	struct err ignored = ERR_INIT;
	size_t n;

	if (!y->result || !json_has(y->result, "curve") ||
	    json_get_arr(y->result, "curve", true, SPAWN_SAMPLES_MAX, &curve, &ignored) <
		    0)
		return;
	for (n = 0; n < json_arr_len(curve); n++) {
		const struct json *look = json_arr_at(curve, n);

		if (json_as_obj(look, &ignored) < 0 ||
		    json_get_u64(look, "memory_bytes", true, 0, INT64_MAX, &y->memory[n],
				 &ignored) < 0 ||
		    json_get_u64(look, "processes", true, 0, INT64_MAX, &y->processes[n],
				 &ignored) < 0)
			return;
	}
	y->n_samples = n;
}

int why_read(struct why *y, job_id_t id, const struct json *job, struct err *err)
{
	const struct json *layers = NULL;

	*y = (struct why){.id = id, .how = "", .refused.unread = ERR_INIT};
	buf_init(&y->reason, WHY_WORDS_MAX);
	buf_init(&y->advice, WHY_WORDS_MAX);
	y->job = job;
	y->spec = child(job, "spec");
	y->result = child(job, "result");
	if (job_end_read(job, &y->end, err) < 0 || read_denials(y, err) < 0)
		return -1;
	read_curve(y);
	y->final = job_state_is_final(y->end.state);
	y->how = render_text_of(y->result, "end");
	y->sig = render_text_of(y->result, "signal");
	y->exec = render_text_of(y->result, "exec_errno");
	if (y->spec && json_get_bool(y->spec, "explain", false, &y->explain, err) < 0)
		return -1;
	if (child(y->result, "walls"))
		y->ran = json_get_arr(child(y->result, "walls"), "layers", true, 64,
				      &layers, NULL) == 0;
	y->limit = find_limit(y);
	if (y->limit)
		y->limit_value =
			render_number_of(child(y->spec, "limits"), y->limit->key);
	find_reason(y);
	add_taint(y);
	return 0;
}

void why_done(struct why *y)
{
	free(y->denied);
	refused_done(&y->refused);
	buf_done(&y->reason);
	buf_done(&y->advice);
}
