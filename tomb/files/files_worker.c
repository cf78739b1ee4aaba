/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the file worker.
 * A file worker (tomb/files/files.h): takes one task at a time from the tomb, does it, answers. It
 * may be made to wait for ever by whoever holds a directory; that is what it is for.
 */
#include "tomb/files/files.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "tomb/files/harvest.h"
#include "tomb/files/workspace.h"
#include "tomb/spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directory entries removed between two words that say so. */
#define REMOVE_STEP 512

struct worker {
	int fd;
	int jobs, spool, artifacts, quarantine; /* directories */
};

/* What one task is answered with. */
struct answer {
	int fds[FILES_FDS_MAX];
	unsigned n_fds;
	struct buf payload;
};

/* -1: there is none. */
static int give(struct answer *a, int fd)
{
	if (fd < 0)
		return -1;
	a->fds[a->n_fds++] = fd;
	return 0;
}

static int still_busy(const struct worker *w, struct err *err)
{
	return files_say(w->fd, FILES_BUSY, NULL) < 0 ? err_sys(err, "tell the tomb") : 0;
}

/* ---- before the job ---------------------------------------------------------------- */

static int do_make(const struct worker *w, const struct files_request *rq,
		   struct answer *a, struct err *err)
{
	static const char *const outputs[] = {"stdout", "stderr"};
	struct workspace ws;
	int r = 0;

	if (workspace_make(w->jobs, w->spool, rq->job, err) < 0 ||
	    workspace_open(&ws, w->jobs, w->spool, rq->job, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(outputs) && r == 0; i++)
		r = give(a, workspace_spool(&ws, outputs[i], err));
	workspace_done(&ws);
	return r;
}

static int place_all(const struct worker *w, const struct workspace *ws,
		     const struct payload *p, struct err *err)
{
	struct wire r = {.at = p->block, .left = p->block ? p->bytes : 0};
	struct files_put put;
	int more;

	while ((more = files_put_next(&r, &put)) > 0)
		if (workspace_put(ws, &put, err) < 0 || still_busy(w, err) < 0)
			return -1;
	return more < 0 ? err_set(err, ERR_INTERNAL, "no list of files") : 0;
}

static int do_spool(const struct worker *w, const struct files_request *rq,
		    const struct payload *p, struct answer *a, struct err *err)
{
	struct workspace ws;
	int r = 0;

	if (workspace_open(&ws, w->jobs, w->spool, rq->job, err) < 0)
		return -1;
	if (rq->op == FILES_PLACE)
		r = place_all(w, &ws, p, err);
	if (r == 0 && rq->op == FILES_NEW)
		r = give(a, workspace_spool(&ws, rq->name, err));
	else if (r == 0 && rq->name[0])
		r = give(a, fs_open_beneath(ws.spool_fd, rq->name, O_RDONLY, 0, err));
	workspace_done(&ws);
	return r;
}

/* ---- after it ------------------------------------------------------------------------ */

static int make_copies_dir(int at, const char *name, struct err *err)
{
	if (mkdirat(at, name, 0700) < 0)
		return err_sys(err, "make the folder for artifacts");
	return fs_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0, err);
}

/* Which copy in quarantine is what: for the person who looks at it later. */
static int write_manifest(const struct harvest *h, int held_fd, struct err *err)
{
	cleanup_buf struct buf out = {.max = RESULT_MAX_BYTES};

	for (size_t i = 0; i < h->held.n; i++) {
		const struct harvest_item *item = &h->held.item[i];
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
	return fs_write_atomic(held_fd, "manifest.jsonl", out.data, out.len, 0600, err);
}

/* The globs where they lie in the payload. -1: it is no list of them. */
static ssize_t read_globs(const struct payload *p, const char *globs[GLOBS_MAX])
{
	const char *at = p->block, *end = at ? at + p->bytes : NULL;
	ssize_t n = 0;

	if (!at || end[-1] != '\0')
		return -1;
	for (; at < end; at += strlen(at) + 1) {
		if (n == GLOBS_MAX)
			return -1;
		globs[n++] = at;
	}
	return n;
}

static int harvest_all(const struct worker *w, struct harvest *h, int work, int kept,
		       int held, const struct payload *p, struct err *err)
{
	const char *globs[GLOBS_MAX];
	ssize_t n = read_globs(p, globs);
	int r;

	if (n < 0)
		return err_set(err, ERR_INTERNAL, "no list of globs");
	if (harvest_begin(h, work, kept, held, globs, (size_t)n, &harvest_caps_default,
			  err) < 0)
		return -1;
	while ((r = harvest_step(h, err)) > 0)
		if (still_busy(w, err) < 0)
			return -1;
	return r < 0 ? -1 : write_manifest(h, held, err);
}

static int do_harvest(const struct worker *w, const struct files_request *rq,
		      const struct payload *p, struct answer *a, struct err *err)
{
	cleanup_close int kept = make_copies_dir(w->artifacts, rq->job, err);
	cleanup_close int held =
		kept < 0 ? -1 : make_copies_dir(w->quarantine, rq->job, err);
	struct harvest h = {.walk = NULL};
	struct workspace ws;
	int r;

	if (held < 0 || workspace_open(&ws, w->jobs, w->spool, rq->job, err) < 0)
		return -1;
	r = harvest_all(w, &h, ws.work_fd, kept, held, p, err);
	if (r == 0)
		files_harvest_write(&a->payload, &h);
	harvest_done(&h);
	workspace_done(&ws);
	return r;
}

static int do_copy(const struct worker *w, const struct files_request *rq,
		   struct answer *a, struct err *err)
{
	cleanup_close int dir =
		fs_open_beneath(w->artifacts, rq->job, O_PATH | O_DIRECTORY, 0, err);

	return dir < 0 ? -1 : give(a, fs_open_beneath(dir, rq->name, O_RDONLY, 0, err));
}

static int remove_tree(const struct worker *w, int at, const char *name, struct err *err)
{
	struct fs_removal *r = fs_removal_new(at, name);
	int left;

	while ((left = fs_removal_step(r, REMOVE_STEP, err)) > 0)
		if (still_busy(w, err) < 0)
			left = -1;
	fs_removal_free(r);
	return left;
}

static int do_clean(const struct worker *w, const struct files_request *rq,
		    struct err *err)
{
	const int trees[] = {w->jobs, w->spool, w->artifacts};
	int r = 0;

	/* What was held stays for a person; an empty folder says nothing. */
	(void)unlinkat(w->quarantine, rq->job, AT_REMOVEDIR);
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		if (remove_tree(w, trees[i], rq->job, r < 0 ? NULL : err) < 0)
			r = -1;
	return r;
}

/* ---- the loop -------------------------------------------------------------------------- */

static int act(const struct worker *w, const struct files_request *rq,
	       const struct payload *p, struct answer *a, struct err *err)
{
	switch ((enum files_op)rq->op) {
	case FILES_MAKE:
		return do_make(w, rq, a, err);
	case FILES_PLACE:
	case FILES_NEW:
	case FILES_OPEN:
		return do_spool(w, rq, p, a, err);
	case FILES_HARVEST:
		return do_harvest(w, rq, p, a, err);
	case FILES_COPY:
		return do_copy(w, rq, a, err);
	case FILES_CLEAN:
		return do_clean(w, rq, err);
	case FILES_OP_MAX_:
		break;
	}
	return err_set(err, ERR_INTERNAL, "task %u is none", rq->op);
}

static int reply(const struct worker *w, const struct answer *a)
{
	struct files_reply r = {.word = FILES_DONE,
				.payload_bytes = (uint32_t)a->payload.len};
	struct payload p = PAYLOAD_NONE;
	struct err err = ERR_INIT;
	int sent;

	if (!a->payload.len)
		return fdpass_send(w->fd, &r, sizeof(r), a->fds, a->n_fds, 0);
	if (!buf_ok(&a->payload) ||
	    payload_make(a->payload.data, a->payload.len, &p, &err) < 0)
		return -1;
	sent = payload_send(w->fd, &r, sizeof(r), &p, a->fds, a->n_fds, 0);
	payload_done(&p);
	return sent;
}

/* -1: the tomb is gone, or broke its word. */
static int serve_one(const struct worker *w)
{
	struct files_request rq;
	int fds[FDPASS_MAX] = FDPASS_NONE, r = 0;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(w->fd, &rq, sizeof(rq), fds, &n_fds, 0);
	struct answer a = {.fds = {-1, -1}, .payload = {.max = PAYLOAD_MAX_BYTES}};
	struct payload p = PAYLOAD_NONE;
	struct err err = ERR_INIT;

	if (n != (ssize_t)sizeof(rq) ||
	    (rq.payload_bytes &&
	     payload_take(rq.payload_bytes, fds, &n_fds, &p, &err) < 0))
		return -1;
	rq.job[FILES_JOB_SIZE - 1] = rq.name[FILES_NAME_SIZE - 1] = '\0';
	if (act(w, &rq, &p, &a, &err) < 0)
		r = files_say(w->fd, FILES_FAILED, &err);
	else
		r = reply(w, &a);
	payload_done(&p);
	for (unsigned i = 0; i < FILES_FDS_MAX; i++)
		fd_close(&a.fds[i]);
	buf_done(&a.payload);
	return r;
}

static int open_tree_of(const char *path, int *ret, struct err *err)
{
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? err_sys(err, "open %s", path) : 0;
}

int files_worker_run(const struct files_place *place, int fd)
{
	struct worker w = {.fd = fd};
	struct err err = ERR_INIT;

	if (files_confine(place, false, &err) < 0 ||
	    open_tree_of(place->jobs, &w.jobs, &err) < 0 ||
	    open_tree_of(place->spool, &w.spool, &err) < 0 ||
	    open_tree_of(place->artifacts, &w.artifacts, &err) < 0 ||
	    open_tree_of(place->quarantine, &w.quarantine, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		(void)!files_say(fd, FILES_FAILED, &err);
		return err_exit_code(&err);
	}
	files_probe(place, "file-worker");
	if (files_say(fd, FILES_READY, NULL) < 0)
		return EXIT_FAILURE;
	while (serve_one(&w) == 0)
		continue;
	/* The end of the socket is how a worker is told that it is not needed. */
	return EXIT_SUCCESS;
}
