/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See receipts.h. Theory of operation: what it printed is read for its digests; then its books are asked
 * for, then the job itself, with spec and result, and the receipt is handed to the log. Whoever removes
 * the job or tries it again meanwhile has made it one of which there is nothing to say. More than WAITING_MAX ends at
 * once are not waited for: the queue's own records have these ends all the same.
 */
#include "vessel/receipts.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "vessel/api/receipt.h"
#include "vessel/api/vessel.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"
#include <inttypes.h>

#define WAITING_MAX 4096u
#define SLICE_BYTES ((size_t)1 << 18) /* read in one turn of the loop */
#define RETRY_USEC USEC_PER_SEC
#define TRIES_MAX 120u

_Static_assert(RECEIPT_MAX_BYTES < AUDIT_DATA_MAX, "never left out");

struct ended_job {
	job_id_t job;
	int64_t epoch;
};

struct receipts {
	struct vessel *v;
	struct loop_timer *turn;
	struct ended_job waiting[WAITING_MAX];
	size_t first, n; /* of these; the first is the one that is made */
	bool is_asking;
	unsigned tries;
	uint64_t left_out;
	char *piece;		 /* SLICE_BYTES */
	void (*idle)(void *arg); /* NULL: nobody waits for that */
	void *idle_arg;
	/* while its output is read */
	int64_t epoch; /* whose output it is; 0: it was not asked yet */
	unsigned which;
	uint64_t at;
	struct sha256 *sum;
	struct receipt_output output;
	struct job_spent spent;
};

static struct ended_job *current(struct receipts *r)
{
	return &r->waiting[r->first];
}

static void tell_idle(struct receipts *r)
{
	void (*fn)(void *arg) = r->idle;

	r->idle = NULL;
	if (fn)
		fn(r->idle_arg);
}

static void next(struct receipts *r)
{
	r->first = (r->first + 1) % WAITING_MAX;
	r->n--;
	r->is_asking = false;
	r->tries = 0;
	sha256_free(r->sum);
	r->sum = NULL;
	r->epoch = 0;
	r->which = 0;
	r->output = (struct receipt_output){0};
	r->spent = (struct job_spent){0};
	if (r->n > 0)
		loop_timer_arm(r->turn, 0);
	else
		tell_idle(r);
}

static void give_up(struct receipts *r, const char *what, const struct err *err)
{
	char id[24];

	/* a job that was removed */
	if (err->id != ERRID_RUN_NOT_FOUND) {
		(void)snprintf(id, sizeof(id), "%" PRId64, current(r)->job);
		log_kv(LOG_WARN_, "a job gets no receipt", "job", id, "step", what, "why",
		       err->msg, NULL);
	}
	next(r);
}

/* The database may be away for a while. */
static void try_again(struct receipts *r, const char *what, const struct err *err)
{
	if (err->id == ERRID_RUN_NOT_FOUND || ++r->tries >= TRIES_MAX) {
		give_up(r, what, err);
		return;
	}
	r->is_asking = false;
	loop_timer_arm(r->turn, RETRY_USEC);
}

static void shown(const struct queue_job *jobs, size_t n, const struct err *err,
		  void *arg)
{
	struct receipts *r = arg;
	cleanup_buf struct buf b = {.max = RECEIPT_MAX_BYTES};
	const struct clock_ops *clock = r->v->clock;
	struct audit_event e = {.name = "job.receipt",
				.time_ms = clock->wall_usec(clock->ctx) / USEC_PER_MSEC,
				.actor = "lych-vessel",
				.job = current(r)->job,
				.epoch = current(r)->epoch};

	if (err) {
		try_again(r, "ask for it", err);
		return;
	}
	if (n == 1 && receipt_write(&jobs[0], e.epoch, &r->output, &r->spent, &b)) {
		e.data = b.data;
		e.data_len = b.len;
		audit_note(r->v->audit, &e);
	}
	next(r);
}

static void counted(const struct budget_row *rows, size_t n, const struct err *err,
		    void *arg)
{
	struct receipts *r = arg;

	if (err) {
		try_again(r, "ask for its books", err);
		return;
	}
	job_spent_take(&r->spent, rows, n);
	queue_show(r->v->queue, current(r)->job, shown, r);
}

/* A piece of it; what the disk has changed is passed over, and counted. */
static int read_piece(struct receipts *r, bool *ret_end, struct err *err)
{
	enum output_stream s = (enum output_stream)r->which;
	uint64_t next_at = 0;
	size_t got = 0;

	*ret_end = false;
	if (output_read(r->v->output, current(r)->job, r->epoch, s, r->at, r->piece,
			SLICE_BYTES, &got, &next_at, err) < 0) {
		if (err->id != ERRID_STORE_DAMAGED || next_at <= r->at)
			return -1;
		err_clear(err);
		r->output.damaged[s] += next_at - r->at;
		r->at = next_at;
		return 0;
	}
	sha256_add(r->sum, r->piece, got);
	r->at += got;
	*ret_end = got == 0;
	return 0;
}

static void read_output(struct receipts *r)
{
	struct err err = ERR_INIT;
	bool is_end = false;

	if (!r->epoch)
		r->epoch =
			output_latest(r->v->output, current(r)->job, current(r)->epoch);
	if (!r->sum) {
		r->sum = sha256_new();
		r->at = 0;
	}
	if (read_piece(r, &is_end, &err) < 0) {
		give_up(r, "read its output", &err);
		return;
	}
	if (is_end) {
		r->output.bytes[r->which] = r->at;
		sha256_hex(r->sum, r->output.sha256[r->which]);
		sha256_free(r->sum);
		r->sum = NULL;
		r->which++;
	}
	loop_timer_arm(r->turn, 0);
}

static void on_turn(void *arg)
{
	struct receipts *r = arg;

	if (r->is_asking || r->n == 0)
		return;
	if (r->which < OUTPUT_STREAM_MAX_) {
		read_output(r);
		return;
	}
	r->is_asking = true;
	budget_of_job(r->v->queue, current(r)->job, counted, r);
}

void receipts_add(struct receipts *r, job_id_t job, int64_t epoch)
{
	if (r->n == WAITING_MAX) {
		if (r->left_out++ == 0)
			log_warn("so many jobs end that some get no receipt");
		return;
	}
	r->waiting[(r->first + r->n++) % WAITING_MAX] =
		(struct ended_job){.job = job, .epoch = epoch};
	if (r->n == 1)
		loop_timer_arm(r->turn, 0);
}

void receipts_when_idle(struct receipts *r, void (*fn)(void *arg), void *arg)
{
	r->idle = fn;
	r->idle_arg = arg;
	if (r->n == 0)
		tell_idle(r);
}

struct receipts *receipts_new(struct vessel *v)
{
	struct receipts *r = xnew(struct receipts);

	r->v = v;
	r->piece = xmalloc(SLICE_BYTES);
	r->turn = loop_timer_new(v->loop, on_turn, r);
	return r;
}

/* Answers that still come find nobody: the queue is gone by then (pg_free() drops them). */
void receipts_free(struct receipts *r)
{
	if (!r)
		return;
	tell_idle(r);
	loop_timer_free(r->turn);
	sha256_free(r->sum);
	free(r->piece);
	free(r);
}
