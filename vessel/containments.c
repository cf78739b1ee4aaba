/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See broker/containments.h.
 */
#include "vessel/broker/containments.h"

#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "vessel/api/vessel.h"
#include "vessel/broker/dispatch/dispatch.h"

#define SOON_USEC (20 * USEC_PER_MSEC)
#define LATE_USEC (500 * USEC_PER_MSEC)
#define SLICE_BYTES ((size_t)1 << 20) /* read in one turn of the loop */
#define SEAL_MAX_BYTES ((size_t)1024)

/* What a job printed, while it is read for its digests. */
struct reading_output {
	job_id_t job; /* 0: none is read */
	int64_t epoch;
	enum output_stream which;
	uint64_t at, size, bytes[OUTPUT_STREAM_MAX_], damaged[OUTPUT_STREAM_MAX_];
	struct sha256 *sum;
	char hex[OUTPUT_STREAM_MAX_][SHA256_HEX_SIZE];
};

struct containments {
	struct vessel *v;
	struct loop_timer *look, *slice;
	struct reading_output read;
	usec_t pause; /* until the next look while one is open */
	bool is_looking, look_again, failed, any;
	unsigned steps; /* that were sent and are not answered */
};

void containments_hint(struct containments *c)
{
	if (!c)
		return;
	c->look_again = c->is_looking;
	if (!c->is_looking)
		loop_timer_arm(c->look, 0);
}

void containments_changed(struct containments *c)
{
	if (c && c->any)
		containments_hint(c);
}

/* Logged once, until it works again. */
static void tell(struct containments *c, const char *what, const struct err *err)
{
	if (err && !c->failed)
		log_err(LOG_WARN_, what, err);
	c->failed = err != NULL;
}

static void stepped(const struct err *err, void *arg)
{
	struct containments *c = arg;

	c->steps--;
	tell(c, "a step of a containment", err);
	c->pause = err ? LATE_USEC : SOON_USEC;
	loop_timer_arm(c->look, err ? LATE_USEC : 0);
}

/* ---- the evidence: what it printed ---- */

static void write_stream(struct jsonw *w, const struct reading_output *r,
			 enum output_stream which)
{
	jsonw_key(w, output_stream_name(which));
	jsonw_obj(w);
	jsonw_ku64(w, "bytes", r->bytes[which]);
	jsonw_kstr(w, "sha256", r->hex[which]);
	if (r->damaged[which])
		jsonw_ku64(w, "damaged_bytes", r->damaged[which]);
	jsonw_obj_end(w);
}

static void seal(struct containments *c)
{
	struct reading_output *r = &c->read;
	cleanup_buf struct buf out = {.max = SEAL_MAX_BYTES};
	struct jsonw w;

	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ki64(&w, "epoch", r->epoch);
	write_stream(&w, r, OUTPUT_STDOUT);
	write_stream(&w, r, OUTPUT_STDERR);
	jsonw_obj_end(&w);
	c->steps++;
	queue_containment_seal(c->v->queue, r->job, buf_str(&out), stepped, c);
	*r = (struct reading_output){0};
}

/* Nothing is sealed that could not be read: it is tried again. */
static void give_up(struct containments *c, const struct err *err)
{
	tell(c, "read the output of a contained job", err);
	sha256_free(c->read.sum);
	c->read = (struct reading_output){0};
	loop_timer_arm(c->look, LATE_USEC);
}

static int begin_stream(struct containments *c, struct err *err)
{
	struct reading_output *r = &c->read;
	bool is_final;

	r->at = 0;
	r->sum = sha256_new();
	return output_size(c->v->output, r->job, r->epoch, r->which, &r->size, &is_final,
			   err);
}

/* A piece of it; what the disk has changed is passed over, and counted. */
static int read_piece(struct containments *c, struct err *err)
{
	struct reading_output *r = &c->read;
	cleanup_free char *piece = xmalloc(SLICE_BYTES);
	uint64_t next = 0;
	size_t got = 0;

	if (output_read(c->v->output, r->job, r->epoch, r->which, r->at, piece,
			SLICE_BYTES, &got, &next, err) < 0) {
		if (err->id != ERRID_STORE_DAMAGED || next <= r->at)
			return -1;
		err_clear(err);
		r->damaged[r->which] += next - r->at;
		r->at = next;
		return 0;
	}
	sha256_add(r->sum, piece, got);
	r->at += got;
	r->size = got ? r->size : r->at;
	return 0;
}

static void on_slice(void *arg)
{
	struct containments *c = arg;
	struct reading_output *r = &c->read;
	struct err err = ERR_INIT;

	if (!r->sum && begin_stream(c, &err) < 0) {
		give_up(c, &err);
		return;
	}
	if (r->at < r->size && read_piece(c, &err) < 0) {
		give_up(c, &err);
		return;
	}
	if (r->at >= r->size) {
		r->bytes[r->which] = r->at;
		sha256_hex(r->sum, r->hex[r->which]);
		sha256_free(r->sum);
		r->sum = NULL;
		if (r->which == OUTPUT_STDERR) {
			seal(c);
			return;
		}
		r->which = OUTPUT_STDERR;
	}
	loop_timer_arm(c->slice, 0);
}

/* One after the other. */
static void begin_seal(struct containments *c, const struct queue_containment *one)
{
	if (c->read.job)
		return;
	c->read = (struct reading_output){
		.job = one->job,
		.epoch = output_latest(c->v->output, one->job, one->epoch),
		.which = OUTPUT_STDOUT,
	};
	loop_timer_arm(c->slice, 0);
}

/* ---- which step is next ---- */

static bool take_step(struct containments *c, const struct queue_containment *one)
{
	switch (one->step) {
	case QUEUE_CONTAIN_CUT:
		if (dispatch_cut(c->v->dispatch, one->job) > 0)
			return true; /* they end in the next turns */
		c->steps++;
		queue_containment_cut(c->v->queue, one->job, stepped, c);
		return true;
	case QUEUE_CONTAIN_SEAL:
		begin_seal(c, one);
		return true;
	case QUEUE_CONTAIN_WAIT:
		break;
	}
	return false;
}

static void looked(const struct queue_containment *list, size_t n, const struct err *err,
		   void *arg)
{
	struct containments *c = arg;
	bool moves = false;

	c->is_looking = false;
	c->any = n > 0;
	tell(c, "look at what is contained", err);
	for (size_t i = 0; !err && i < n; i++)
		moves |= take_step(c, &list[i]);
	if (err || n == 0) {
		if (c->look_again)
			containments_hint(c);
		return; /* the reconciler looks again */
	}
	c->pause = moves		      ? SOON_USEC
		   : c->pause * 2 < LATE_USEC ? c->pause * 2
					      : LATE_USEC;
	loop_timer_arm(c->look, c->look_again ? 0 : c->pause);
}

static void on_look(void *arg)
{
	struct containments *c = arg;

	if (c->is_looking || c->steps)
		return;
	c->is_looking = true;
	c->look_again = false;
	queue_containments(c->v->queue, looked, c);
}

struct containments *containments_new(struct vessel *v)
{
	struct containments *c = xnew(struct containments);

	c->v = v;
	c->pause = SOON_USEC;
	c->look = loop_timer_new(v->loop, on_look, c);
	c->slice = loop_timer_new(v->loop, on_slice, c);
	return c;
}

/* Answers that still come find nobody: the queue is gone by then (pg_free() drops them). */
void containments_free(struct containments *c)
{
	if (!c)
		return;
	loop_timer_free(c->look);
	loop_timer_free(c->slice);
	sha256_free(c->read.sum);
	free(c);
}
