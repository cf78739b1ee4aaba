/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The transfers of one job: inputs in, output and artifacts out. What touches its folder is
 * asked of the file workers.
 */
#include "tomb/job/run.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define INPUT_NAME "input.tar"
#define STDIN_NAME "stdin"

/* Out of space, a vessel without room and a spawner that is gone are the tomb's trouble, and
 * pass. */
static void trouble_as(struct run *run, enum fail_class class, bool nothing_runs,
		       const struct err *err)
{
	if (err->code == ERR_GONE) {
		run_gone(run, err);
		return;
	}
	if (err->code == ERR_SYS || err->code == ERR_UNAVAILABLE ||
	    err->code == ERR_INTERNAL || err->code == ERR_UPSTREAM ||
	    err->id == ERRID_SANDBOX_SPAWNER)
		run_trouble(run, FAIL_TRANSPORT_LOSS, true, nothing_runs, err);
	else
		run_trouble(run, class, false, nothing_runs, err);
}

static void trouble_of(struct run *run, bool nothing_runs, const struct err *err)
{
	trouble_as(run, FAIL_SETUP_REFUSED, nothing_runs, err);
}

static void relay_overflow(void *arg)
{
	run_simple(arg, EVENT_OVERFLOW);
}

static void deliver_check(struct run *run)
{
	if (run->uploaded && run->flushed)
		run_simple(run, EVENT_DELIVERED);
}

static void relay_flushed(void *arg)
{
	struct run *run = arg;

	run->flushed = true;
	deliver_check(run);
}

void run_transfer_trouble(const struct err *why, void *arg)
{
	struct err copy = *why; /* it lives in the relay, which may go */

	if (copy.code == ERR_GONE)
		run_gone(arg, &copy);
	else
		run_trouble(arg, FAIL_TRANSPORT_LOSS, true, false, &copy);
}

static void ask(struct run *run, enum files_op op, const char *name,
		const struct buf *payload, file_done *done)
{
	assert(!run->task);
	run->task =
		files_ask(run->world->files, op, run->folder, name, payload, done, run);
}

static void make_relay(struct run *run, struct files_answer *a)
{
	struct relay_events ev = {
		.overflow = relay_overflow,
		.flushed = relay_flushed,
		.trouble = run_transfer_trouble,
		.arg = run,
	};
	int fds[RELAY_STREAMS];

	for (int i = 0; i < RELAY_STREAMS; i++)
		fds[i] = TAKE_FD(a->fds[i]);
	run->relay = relay_new(run->world->loop, run->world->work, &run->key, fds,
			       run->spec.output_bytes, &ev);
}

/* The i-th blob that this job needs and the name of its file in spool/; NULL at the end.
 */
static const char *blob_at(const struct run *run, size_t i, char *name, size_t size)
{
	const struct tomb_spec *s = &run->spec;

	if (s->input_blob[0] && i-- == 0)
		return str_copy(name, size, INPUT_NAME) < 0 ? NULL : s->input_blob;
	if (s->stdin_blob[0] && i-- == 0)
		return str_copy(name, size, STDIN_NAME) < 0 ? NULL : s->stdin_blob;
	for (size_t k = 0; k < s->n_files; k++) {
		if (!s->files[k].blob[0] || i-- != 0)
			continue;
		return str_fmt(name, size, "file-%zu", k) < 0 ? NULL : s->files[k].blob;
	}
	return NULL;
}

static void fetch_next(struct run *run);

static void fetch_done(const struct err *err, void *arg)
{
	struct run *run = arg;

	run->get = NULL;
	fd_close(&run->get_fd);
	if (err)
		trouble_as(run, FAIL_INPUT, false, err);
	else
		fetch_next(run);
}

/* A descriptor that a file worker must have sent. */
static bool has_fd(struct run *run, const struct files_answer *a, unsigned n,
		   const struct err *err)
{
	struct err missing = ERR_INIT;

	if (!err && n && a->fds[n - 1] < 0) {
		(void)err_set(&missing, ERR_UPSTREAM, "a file worker sent no descriptor");
		err = &missing;
	}
	if (err)
		trouble_of(run, true, err);
	return !err;
}

static void fetch_opened(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;
	char name[32];

	run->task = NULL;
	if (!has_fd(run, a, 1, err))
		return;
	run->get_fd = TAKE_FD(a->fds[0]);
	run->get = blob_get_start(run->world->work, &run->key,
				  blob_at(run, run->fetch_next++, name, sizeof(name)),
				  run->get_fd, fetch_done, run);
}

static void fetch_next(struct run *run)
{
	char name[32];

	if (!blob_at(run, run->fetch_next, name, sizeof(name))) {
		run_simple(run, EVENT_PREPARED);
		return;
	}
	ask(run, FILES_NEW, name, NULL, fetch_opened);
}

static void made(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;
	char name[32];

	run->task = NULL;
	if (err) {
		run_trouble(run, FAIL_TRANSPORT_LOSS, true, false, err);
		return;
	}
	if (!has_fd(run, a, RELAY_STREAMS, err))
		return;
	make_relay(run, a);
	if (blob_at(run, 0, name, sizeof(name)))
		run_phase(run, "preparing");
	fetch_next(run);
}

void run_prepare(struct run *run)
{
	if (err_is_set(&run->spec_err)) {
		run_trouble(run, FAIL_SETUP_REFUSED, false, false, &run->spec_err);
		return;
	}
	run->made = true;
	run_begin_tls(run);
	ask(run, FILES_MAKE, "", NULL, made);
}

static int run_spawn(struct run *run, enum tomb_spec_use use, int stdin_fd,
		     struct err *err)
{
	cleanup_buf struct buf block = {.max = SPAWN_SPEC_MAX_BYTES};
	char work[FILES_JOB_SIZE + sizeof("/work")];
	const struct tomb_spec_place place = {
		.grade = run->world->grade,
		.workspace = work,
		.tools = run->world->tools,
		.key = &run->broker_key,
		.planted_as = PLANTED_VARIABLE,
		.planted = run->planted.s,
	};
	const bool is_job = use == SPEC_USE_JOB;
	const struct spawn_wish wish = {
		.broker = tomb_spec_egress(&run->spec, use) != EGRESS_NONE,
		.cols = is_job ? run->spec.tty.cols : 0,
		.rows = is_job ? run->spec.tty.rows : 0,
	};
	cleanup_close int out = -1, errs = -1;
	int second, r;

	(void)snprintf(work, sizeof(work), "%s/work", run->folder);
	if (tomb_spec_block(&run->spec, use, &place, &block, err) < 0)
		return -1;
	if (run_outputs(run, use, &out, &errs, err) < 0)
		return -1;
	second = errs >= 0 ? errs : run->world->null_fd;
	r = spawn_run(run->world->spawn, run->handle, block.data, block.len,
		      (const int[]){stdin_fd, out >= 0 ? out : second, second}, &wish,
		      err);
	run->handed = r == 0;
	if (block.data)
		explicit_bzero(block.data, block.len); /* it has the job's key */
	return r;
}

static void spawn_or_tell(struct run *run, enum tomb_spec_use use, int stdin_fd)
{
	struct err err = ERR_INIT;

	if (run_spawn(run, use, stdin_fd, &err) < 0)
		trouble_of(run, true, &err);
}

static void unpack_opened(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;

	run->task = NULL;
	if (has_fd(run, a, 1, err))
		spawn_or_tell(run, SPEC_USE_UNPACK, a->fds[0]);
}

void run_unpack(struct run *run)
{
	ask(run, FILES_OPEN, INPUT_NAME, NULL, unpack_opened);
}

static void add_put(struct buf *b, enum files_where where, unsigned mode,
		    const char *path, const char *data, size_t len)
{
	const struct files_put p = {.where = where,
				    .mode = mode,
				    .path = path,
				    .path_len = strlen(path),
				    .data = data,
				    .data_len = len};

	files_put_add(b, &p);
}

/* The files of the spec, once: behind the archive, whose links are not followed. */
static void add_files(struct run *run, struct buf *b)
{
	const struct tomb_spec *s = &run->spec;
	char from[FILES_NAME_SIZE];

	if (run->placed)
		return;
	run->placed = true;
	for (size_t i = 0; i < s->n_files; i++) {
		const struct tomb_file *f = &s->files[i];

		(void)snprintf(from, sizeof(from), "file-%zu", i);
		if (f->data)
			add_put(b, FILES_IN_WORK, f->mode, f->path, f->data, f->len);
		else
			add_put(b, FILES_FROM_BLOB, f->mode, f->path, from, strlen(from));
	}
	if (s->script)
		add_put(b, FILES_IN_WORK, 0644, SCRIPT_NAME, s->script,
			strlen(s->script));
}

static bool is_placed(struct run *run, const struct files_answer *a, unsigned n_fds,
		      const struct err *err)
{
	bool full;

	run->task = NULL;
	if (!err || err->code == ERR_UNAVAILABLE)
		return has_fd(run, a, n_fds, err);
	full = err->sys == ENOSPC || err->sys == EDQUOT;
	run_trouble(run, full ? FAIL_TRANSPORT_LOSS : FAIL_INPUT, full, true, err);
	return false;
}

static void deps_placed(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;

	if (!is_placed(run, a, 0, err))
		return;
	run_phase(run, "preparing");
	spawn_or_tell(run, SPEC_USE_DEPS_FETCH, run->world->null_fd);
}

static void add_deps_file(const char *name, const char *data, size_t len, void *arg)
{
	cleanup_free char *path = xasprintf(DEPS_DIR "/%s", name);

	add_put(arg, FILES_IN_WORK, 0644, path, data, len);
}

void run_deps_fetch(struct run *run)
{
	cleanup_buf struct buf all = {.max = PAYLOAD_MAX_BYTES};
	struct err err = ERR_INIT;

	if (run->world->grade == GRADE_FLOOR) {
		(void)err_set_id(&err, ERRID_SPEC_UNSUPPORTED,
				 "deps: grade floor has no loopback for pip, npm, cargo "
				 "and go");
		run_trouble(run, FAIL_SETUP_REFUSED, false, true, &err);
		return;
	}
	relay_drain(run->relay);
	add_files(run, &all);
	add_put(&all, FILES_NEW_DIR, 0, DEPS_DIR, "", 0);
	deps_files(&run->spec.deps, add_deps_file, &all);
	ask(run, FILES_PLACE, "", &all, deps_placed);
}

void run_deps_install(struct run *run)
{
	relay_drain(run->relay);
	spawn_or_tell(run, SPEC_USE_DEPS_INSTALL, run->world->null_fd);
}

/* What the job reads is a file of the spool, or nothing, or comes while it runs. */
static void start_with(struct run *run, int stdin_fd)
{
	const struct runner_world *w = run->world;
	cleanup_close int stream = -1;
	struct err err = ERR_INIT;

	if (run->spec.stdin_stream && !run->spec.tty.cols &&
	    stdin_pipe_new(w->loop, w->work, &run->key, run_transfer_trouble, run,
			   &run->stdin_pipe, &stream, &err) < 0)
		trouble_of(run, true, &err);
	else
		spawn_or_tell(run, SPEC_USE_JOB, stream >= 0 ? stream : stdin_fd);
}

static void start_placed(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;
	bool has_stdin = run->spec.stdin_data || run->spec.stdin_blob[0];

	if (is_placed(run, a, has_stdin ? 1 : 0, err))
		start_with(run, has_stdin ? a->fds[0] : run->world->null_fd);
}

void run_start(struct run *run)
{
	cleanup_buf struct buf all = {.max = PAYLOAD_MAX_BYTES};
	const struct tomb_spec *s = &run->spec;

	relay_drain(run->relay);
	if (!run_has_ca(run))
		return;
	if (run->ca_pem)
		add_put(&all, FILES_IN_WORK, 0644, BROKER_CA_FILE, run->ca_pem,
			strlen(run->ca_pem));
	add_files(run, &all);
	if (s->egress == EGRESS_REGISTRY && run->world->grade == GRADE_FULL)
		add_put(&all, FILES_IN_WORK, 0644, BROKER_CARGO_CONFIG,
			broker_cargo_config, strlen(broker_cargo_config));
	if (s->stdin_data)
		add_put(&all, FILES_IN_SPOOL, 0, STDIN_NAME, s->stdin_data, s->stdin_len);
	if (all.len || s->stdin_blob[0])
		ask(run, FILES_PLACE, s->stdin_data || s->stdin_blob[0] ? STDIN_NAME : "",
		    &all, start_placed);
	else
		start_with(run, run->world->null_fd);
}

void run_waits_for(const struct run *run, char *out, size_t size)
{
	static const char *const sandbox[STEP_MAX_] = {
		[STEP_UNPACK] = "the sandbox that unpacks the input did not end",
		[STEP_DEPS_FETCH] = "the sandbox that fetches dependencies did not end",
		[STEP_DEPS_INSTALL] = "the one that installs dependencies did not end",
		[STEP_START] = "the spawner did not say that the job runs",
	};
	const char *hung = sandbox[run->job.step];
	char name[32];

	if (run->get && blob_at(run, run->fetch_next - 1, name, sizeof(name)))
		(void)snprintf(out, size, "the vessel did not give all of %s", name);
	else if (run->waits_for_ca)
		(void)snprintf(out, size, "the job's TLS process did not answer");
	else
		(void)snprintf(out, size, "%s",
			       run->task || !hung ? "a file worker did not answer"
						  : hung);
}

static void phase_done(const struct work_reply *reply, void *arg)
{
	struct run *run = arg;

	/* Only a picture for people; the lease is judged where it counts. */
	(void)reply;
	run->phase_call = NULL;
}

void run_phase(struct run *run, const char *phase)
{
	char body[64];
	struct work_request rq = {
		.method = HTTP_M_POST,
		.target = "/work/v1/phase",
		.body = body,
		.reply_max = 4096,
	};

	(void)snprintf(body, sizeof(body), "{\"phase\":\"%s\"}", phase);
	rq.len = strlen(body);
	work_cancel(run->phase_call);
	run->phase_call = work_send(run->world->work, &run->key, &rq, phase_done, run);
}

static void harvested(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;
	struct err bad = ERR_INIT;

	run->task = NULL;
	if (!err &&
	    files_harvest_read(a->payload, a->payload_bytes, &run->harvest, &bad) < 0)
		err = &bad;
	if (err) {
		trouble_of(run, false, err);
		return;
	}
	run->harvested = true;
	run_simple(run, EVENT_HARVESTED);
}

void run_harvest(struct run *run)
{
	cleanup_buf struct buf globs = {.max = PAYLOAD_MAX_BYTES};

	relay_drain(run->relay);
	if (!run->spec.n_globs) {
		run_simple(run, EVENT_HARVESTED);
		return;
	}
	run_phase(run, "harvesting");
	for (size_t i = 0; i < run->spec.n_globs; i++)
		buf_add(&globs, run->spec.globs[i], strlen(run->spec.globs[i]) + 1);
	ask(run, FILES_HARVEST, "", &globs, harvested);
}

static void put_next(struct run *run);

static void put_done(const struct err *err, void *arg)
{
	struct run *run = arg;

	run->put = NULL;
	fd_close(&run->put_fd);
	if (err && err->code == ERR_GONE) {
		run_gone(run, err);
		return;
	}
	if (err) {
		log_err(LOG_WARN_, "an artifact was not taken", err);
		harvest_reject(&run->harvest, run->put_next,
			       "not taken by the vessel's store");
	} else {
		run->put_next++;
	}
	put_next(run);
}

static void put_opened(struct files_answer *a, const struct err *err, void *arg)
{
	struct run *run = arg;
	const struct harvest_item *item = &run->harvest.kept.item[run->put_next];

	run->task = NULL;
	if (!has_fd(run, a, 1, err))
		return;
	run->put_fd = TAKE_FD(a->fds[0]);
	run->put = blob_put_start(run->world->work, &run->key, item->sha256, run->put_fd,
				  item->size, put_done, run);
}

static void put_next(struct run *run)
{
	char name[16];

	if (!run->harvested || run->put_next >= run->harvest.kept.n) {
		run->uploaded = true;
		deliver_check(run);
		return;
	}
	(void)snprintf(name, sizeof(name), "%u", run->harvest.kept.item[run->put_next].n);
	ask(run, FILES_COPY, name, NULL, put_opened);
}

void run_deliver(struct run *run)
{
	/* For those that do not come by way of the harvest. */
	relay_drain(run->relay);
	relay_finish(run->relay);
	put_next(run);
}

void run_abort(struct run *run)
{
	work_cancel(run->phase_call);
	run->phase_call = NULL;
	blob_get_cancel(run->get);
	run->get = NULL;
	fd_close(&run->get_fd);
	blob_put_cancel(run->put);
	run->put = NULL;
	fd_close(&run->put_fd);
	files_cancel(run->task);
	run->task = NULL;
	relay_free(run->relay);
	run->relay = NULL;
	stdin_pipe_free(run->stdin_pipe);
	run->stdin_pipe = NULL;
	run->waits_for_ca = false;
}

static void cleaned(struct files_answer *a UNUSED, const struct err *err, void *arg)
{
	struct run *run = arg;

	run->task = NULL;
	if (err)
		log_err(LOG_WARN_, "a job's folder stays behind until the next start",
			err);
	run_simple(run, EVENT_CLEANED);
	loop_timer_arm(run->reap, 0);
}

void run_clean(struct run *run)
{
	run_abort(run);
	if (run->made)
		ask(run, FILES_CLEAN, "", NULL, cleaned);
	else
		cleaned(NULL, NULL, run);
}
