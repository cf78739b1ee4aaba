/* SPDX-License-Identifier: Apache-2.0 */
/* The transfers of one job: inputs in, output and artifacts out. */
#include "tomb/run.h"

#include "common/cleanup.h"
#include "common/deps.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_NAME "input.tar"
#define STDIN_NAME "stdin"

/* Out of space, a vessel without room and a spawner that is gone are the tomb's trouble, and
 * pass. */
static void trouble_of(struct run *run, bool nothing_runs, const struct err *err)
{
	if (err->code == ERR_GONE) {
		run_simple(run, EVENT_LEASE_LOST);
		return;
	}
	if (err->code == ERR_SYS || err->code == ERR_UNAVAILABLE ||
	    err->code == ERR_INTERNAL || err->code == ERR_UPSTREAM ||
	    err->id == ERRID_SANDBOX_SPAWNER)
		run_trouble(run, FAIL_TRANSPORT_LOSS, true, nothing_runs, err);
	else
		run_trouble(run, FAIL_SETUP_REFUSED, false, nothing_runs, err);
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

static void relay_trouble(const struct err *why, void *arg)
{
	struct err copy = *why; /* it lives in the relay, which may go */

	if (copy.code == ERR_GONE)
		run_simple(arg, EVENT_LEASE_LOST);
	else
		run_trouble(arg, FAIL_TRANSPORT_LOSS, true, false, &copy);
}

static int make_relay(struct run *run, struct err *err)
{
	struct relay_events ev = {
		.overflow = relay_overflow,
		.flushed = relay_flushed,
		.trouble = relay_trouble,
		.arg = run,
	};
	int fds[RELAY_STREAMS];

	fds[RELAY_STDOUT] = workspace_spool(&run->ws, "stdout", err);
	if (fds[RELAY_STDOUT] < 0)
		return -1;
	fds[RELAY_STDERR] = workspace_spool(&run->ws, "stderr", err);
	if (fds[RELAY_STDERR] < 0) {
		fd_close(&fds[RELAY_STDOUT]);
		return -1;
	}
	run->relay = relay_new(run->world->loop, run->world->work, &run->key, fds,
			       run->spec.output_bytes, &ev);
	return 0;
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
		trouble_of(run, false, err);
	else
		fetch_next(run);
}

static void fetch_next(struct run *run)
{
	char name[32];
	const char *sha = blob_at(run, run->fetch_next, name, sizeof(name));
	struct err err = ERR_INIT;

	if (!sha) {
		run_simple(run, EVENT_PREPARED);
		return;
	}
	run->fetch_next++;
	run->get_fd = workspace_spool(&run->ws, name, &err);
	if (run->get_fd < 0) {
		trouble_of(run, false, &err);
		return;
	}
	run->get = blob_get_start(run->world->work, &run->key, sha, run->get_fd,
				  fetch_done, run);
}

void run_prepare(struct run *run)
{
	struct err err = ERR_INIT;
	char name[32];

	if (err_is_set(&run->spec_err)) {
		run_trouble(run, FAIL_SETUP_REFUSED, false, false, &run->spec_err);
		return;
	}
	if (workspace_make(&run->ws, run->world->jobs_fd, &run->key, &err) < 0 ||
	    make_relay(run, &err) < 0) {
		run_trouble(run, FAIL_TRANSPORT_LOSS, true, false, &err);
		return;
	}
	if (blob_at(run, 0, name, sizeof(name)))
		run_phase(run, "preparing");
	fetch_next(run);
}

/* A pipe whose reading end is ours and does not block. */
static int make_pipe(int ret[2], struct err *err)
{
	if (pipe2(ret, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	if (fcntl(ret[0], F_SETFL, O_NONBLOCK) < 0) {
		fd_close(&ret[0]);
		fd_close(&ret[1]);
		return err_sys(err, "pipe");
	}
	return 0;
}

static int run_spawn(struct run *run, enum tomb_spec_use use, int stdin_fd,
		     struct err *err)
{
	cleanup_buf struct buf block = {.max = SPAWN_SPEC_MAX_BYTES};
	const struct tomb_spec_place place = {
		.grade = run->world->grade,
		.workspace = run->ws.work_name,
		.tools = run->world->tools,
		.key = &run->broker_key,
	};
	int out[2] = {-1, -1}, errs[2] = {-1, -1};
	int r;

	if (tomb_spec_block(&run->spec, use, &place, &block, err) < 0)
		return -1;
	if (make_pipe(errs, err) < 0)
		return -1;
	relay_attach(run->relay, RELAY_STDERR, errs[0]);
	if (use == SPEC_USE_JOB) {
		if (make_pipe(out, err) < 0) {
			fd_close(&errs[1]);
			return -1;
		}
		relay_attach(run->relay, RELAY_STDOUT, out[0]);
	}
	r = spawn_run(run->world->spawn, run->handle, block.data, block.len,
		      (const int[]){stdin_fd, out[1] >= 0 ? out[1] : errs[1], errs[1]},
		      tomb_spec_egress(&run->spec, use) != EGRESS_NONE, err);
	if (block.data)
		explicit_bzero(block.data, block.len); /* it has the job's key */
	fd_close(&out[1]);
	fd_close(&errs[1]);
	return r;
}

void run_unpack(struct run *run)
{
	struct err err = ERR_INIT;
	cleanup_close int tar =
		fs_open_beneath(run->ws.spool_fd, INPUT_NAME, O_RDONLY, 0, &err);

	if (tar < 0 || run_spawn(run, SPEC_USE_UNPACK, tar, &err) < 0)
		trouble_of(run, true, &err);
}

/* The files of the spec, once. What the archive brought is not followed. */
static int place_files(struct run *run, struct err *err)
{
	if (run->placed)
		return 0;
	run->placed = true;
	return workspace_place(&run->ws, &run->spec, err);
}

static void place_trouble(struct run *run, const struct err *err)
{
	bool full = err->sys == ENOSPC || err->sys == EDQUOT;

	run_trouble(run, full ? FAIL_TRANSPORT_LOSS : FAIL_SETUP_REFUSED, full, true,
		    err);
}

void run_deps_fetch(struct run *run)
{
	cleanup_buf struct buf text = {.max = DEPS_MAX * (DEPS_TEXT_MAX + 1)};
	struct err err = ERR_INIT;

	if (run->world->grade == GRADE_FLOOR) {
		(void)err_set_id(&err, ERRID_SPEC_UNSUPPORTED,
				 "deps: grade floor has no loopback for pip and npm");
		run_trouble(run, FAIL_SETUP_REFUSED, false, true, &err);
		return;
	}
	deps_requirements(&run->spec.deps, &text);
	if (place_files(run, &err) < 0 ||
	    workspace_put(&run->ws, DEPS_REQUIREMENTS, buf_str(&text), text.len, &err) <
		    0) {
		place_trouble(run, &err);
		return;
	}
	run_phase(run, "preparing");
	if (run_spawn(run, SPEC_USE_DEPS_FETCH, run->world->null_fd, &err) < 0)
		trouble_of(run, true, &err);
}

void run_deps_install(struct run *run)
{
	struct err err = ERR_INIT;

	relay_drain(run->relay);
	if (run_spawn(run, SPEC_USE_DEPS_INSTALL, run->world->null_fd, &err) < 0)
		trouble_of(run, true, &err);
}

/* What the job reads: its own bytes as a file of the spool, or nothing. */
static int open_stdin(struct run *run, struct err *err)
{
	const struct tomb_spec *s = &run->spec;

	if (s->stdin_data) {
		cleanup_close int fd = workspace_spool(&run->ws, STDIN_NAME, err);

		if (fd < 0 || fs_write_all(fd, s->stdin_data, s->stdin_len, err) < 0)
			return -1;
	} else if (!s->stdin_blob[0]) {
		int fd = fcntl(run->world->null_fd, F_DUPFD_CLOEXEC, 3);

		return fd < 0 ? err_sys(err, "duplicate /dev/null") : fd;
	}
	return fs_open_beneath(run->ws.spool_fd, STDIN_NAME, O_RDONLY, 0, err);
}

void run_start(struct run *run)
{
	struct err err = ERR_INIT;
	cleanup_close int in = -1;

	if (place_files(run, &err) < 0) {
		place_trouble(run, &err);
		return;
	}
	in = open_stdin(run, &err);
	if (in < 0 || run_spawn(run, SPEC_USE_JOB, in, &err) < 0)
		trouble_of(run, true, &err);
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

static int make_copies_dir(int at, const char *name, struct err *err)
{
	if (mkdirat(at, name, 0700) < 0)
		return err_sys(err, "make the folder for artifacts");
	return fs_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0, err);
}

/* Which copy in quarantine is what: for the person who looks at it later. */
static int write_manifest(const struct run *run, struct err *err)
{
	cleanup_buf struct buf out = {.max = RESULT_MAX_BYTES};

	for (size_t i = 0; i < run->harvest.held.n; i++) {
		const struct harvest_item *item = &run->harvest.held.item[i];
		struct jsonw w;

		jsonw_init(&w, &out);
		jsonw_obj(&w);
		jsonw_ku64(&w, "copy", item->n);
		jsonw_kstr(&w, "path", item->path);
		jsonw_kstr(&w, "why", item->why);
		jsonw_ku64(&w, "size", item->size);
		jsonw_kstr(&w, "sha256", item->sha256);
		jsonw_obj_end(&w);
		buf_addc(&out, '\n');
	}
	if (!out.len)
		return 0;
	return fs_write_atomic(run->held_fd, "manifest.jsonl", out.data, out.len, 0600,
			       err);
}

static void harvest_more(void *arg)
{
	struct run *run = arg;
	struct err err = ERR_INIT;
	int r = harvest_step(&run->harvest, &err);

	if (r > 0) {
		loop_timer_arm(run->harvest_timer, 0);
		return;
	}
	if (r < 0 || write_manifest(run, &err) < 0)
		trouble_of(run, false, &err);
	else
		run_simple(run, EVENT_HARVESTED);
}

void run_harvest(struct run *run)
{
	struct err err = ERR_INIT;

	relay_drain(run->relay);
	if (!run->spec.n_globs) {
		run_simple(run, EVENT_HARVESTED);
		return;
	}
	run_phase(run, "harvesting");
	run->kept_fd = make_copies_dir(run->world->artifacts_fd, run->ws.name, &err);
	if (run->kept_fd >= 0)
		run->held_fd =
			make_copies_dir(run->world->quarantine_fd, run->ws.name, &err);
	if (run->held_fd < 0 ||
	    harvest_begin(&run->harvest, run->ws.work_fd, run->kept_fd, run->held_fd,
			  run->spec.globs, run->spec.n_globs, &harvest_caps_default,
			  &err) < 0) {
		trouble_of(run, false, &err);
		return;
	}
	run->harvested = true;
	run->harvest_timer = loop_timer_new(run->world->loop, harvest_more, run);
	harvest_more(run);
}

static void put_next(struct run *run);

static void put_done(const struct err *err, void *arg)
{
	struct run *run = arg;

	run->put = NULL;
	fd_close(&run->put_fd);
	if (err && err->code == ERR_GONE) {
		run_simple(run, EVENT_LEASE_LOST);
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

static void put_next(struct run *run)
{
	const struct harvest_item *item;
	struct err err = ERR_INIT;
	char name[16];

	if (!run->harvested || run->put_next >= run->harvest.kept.n) {
		run->uploaded = true;
		deliver_check(run);
		return;
	}
	item = &run->harvest.kept.item[run->put_next];
	(void)snprintf(name, sizeof(name), "%u", item->n);
	run->put_fd = fs_open_beneath(run->kept_fd, name, O_RDONLY, 0, &err);
	if (run->put_fd < 0) {
		trouble_of(run, false, &err);
		return;
	}
	run->put = blob_put_start(run->world->work, &run->key, item->sha256, run->put_fd,
				  item->size, put_done, run);
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
	if (run->harvest_timer)
		loop_timer_disarm(run->harvest_timer);
	relay_free(run->relay);
	run->relay = NULL;
}

static void remove_copies(int at, const char *name)
{
	struct err err = ERR_INIT;

	if (fs_remove_beneath(at, name, &err) < 0)
		log_err(LOG_WARN_, "copies of artifacts stay behind", &err);
}

bool run_clean(struct run *run)
{
	struct err err = ERR_INIT;
	int r;

	run_abort(run);
	fd_close(&run->kept_fd);
	fd_close(&run->held_fd);
	if (run->ws.name[0]) {
		remove_copies(run->world->artifacts_fd, run->ws.name);
		/* What was held stays for a person; an empty folder says nothing. */
		(void)unlinkat(run->world->quarantine_fd, run->ws.name, AT_REMOVEDIR);
	}
	r = workspace_remove(&run->ws, &err);
	if (r < 0)
		log_err(LOG_WARN_, "a job's folder stays behind until the next start",
			&err);
	return r <= 0;
}
