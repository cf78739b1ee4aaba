/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See opinion.h.
 *
 * Theory of operation. An ask has its whole text from the start, and shows it slice by slice, one
 * request after the other; the first slice that reaches the portal threshold ends it, since
 * more could not lower the score. Its time runs from opinion_begin(), the wait for its turn
 * included. Whatever fails is told from the loop, by the ask's own timer.
 *
 * Of a job is remembered what was judged and passed, as keyed digests of its parts: an agent sends its
 * whole conversation at each turn. What was forgotten is shown again.
 */
#include "vessel/broker/opinion/opinion.h"

#include "common/cleanup.h"
#include "common/crypto/hmac.h"
#include "common/mem.h"
#include "vessel/broker/opinion/text.h"
#include "vessel/gate/gate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_SETS 2048u
#define KNOWN_WAYS 4u
#define TARGET "/chat/completions"

struct opinion_job {
	bool at_work;
	uint64_t served; /* which turn that was; 0: none yet */
	unsigned next_way;
	uint64_t known[KNOWN_SETS][KNOWN_WAYS]; /* 0: none */
};

struct opinion_ask {
	struct opinion *o;
	struct opinion_ask *prev, *next; /* in the line, once it is begun */
	struct opinion_job *j;
	job_id_t job;
	int64_t epoch;
	struct buf text;
	uint64_t *mac; /* of the parts in it */
	size_t n_macs;
	opinion_done *done;
	void *arg;
	struct loop_timer *timer;
	struct err why; /* set: it fails when the timer comes */
	bool is_begun, at_work;
	usec_t began;
	size_t at, n; /* the slice that is judged */
	struct egress_call *call;
	struct buf reply;
	unsigned status;
	double score;
	unsigned slices;
};

struct opinion {
	struct opinion_config cfg;
	uint8_t key[SHA256_SIZE];
	struct opinion_ask *first, *last;
	size_t n, bytes;
	unsigned at_work;
	uint64_t turns;
	struct opinion_figures figures;
};

/* ---- what was judged ---- */

static uint64_t mac_of(const struct opinion *o, const struct gate_part *p)
{
	uint8_t digest[SHA256_SIZE];
	uint64_t mac;

	gate_mac(o->key, p->data, p->len, digest);
	memcpy(&mac, digest, sizeof(mac));
	return mac ? mac : 1;
}

static bool is_known(const struct opinion_job *j, uint64_t mac)
{
	const uint64_t *set = j->known[mac % KNOWN_SETS];

	for (unsigned i = 0; i < KNOWN_WAYS; i++)
		if (set[i] == mac)
			return true;
	return false;
}

static void remember(struct opinion_job *j, uint64_t mac)
{
	if (!is_known(j, mac))
		j->known[mac % KNOWN_SETS][j->next_way++ % KNOWN_WAYS] = mac;
}

struct opinion_job *opinion_job_new(void)
{
	return xnew(struct opinion_job);
}

void opinion_job_free(struct opinion_job *j)
{
	free(j);
}

/* ---- the text ---- */

static void add_part(struct opinion_ask *a, const struct gate_part *p, uint64_t mac,
		     const char *end)
{
	buf_add(&a->text, p->data, p->len);
	buf_adds(&a->text, end);
	a->mac[a->n_macs++] = mac;
}

/* "key: text", a line each; a key that was judged is shown once more before a text that was not. */
static void add_parts(struct opinion_ask *a, const struct gate_parts *p)
{
	const struct gate_part *key = NULL;
	bool is_open = false; /* the line has a key and no text yet */

	for (size_t i = 0; i < p->n && buf_ok(&a->text); i++) {
		const struct gate_part *part = &p->part[i];
		bool is_key = part->kind == GATE_PART_NAME;
		uint64_t mac = part->kind == GATE_PART_ECHO ? 0 : mac_of(a->o, part);
		bool is_new = mac && !is_known(a->j, mac);

		if (is_key && is_open)
			buf_addc(&a->text, '\n');
		if (is_key) {
			key = part;
			is_open = is_new;
			if (is_new)
				add_part(a, part, mac, ": ");
			continue;
		}
		if (is_new && key && !is_open) {
			buf_add(&a->text, key->data, key->len);
			buf_adds(&a->text, ": ");
		}
		if (is_new)
			add_part(a, part, mac, "\n");
		else if (is_open)
			buf_addc(&a->text, '\n');
		is_open = false;
	}
}

static void ask_free(struct opinion_ask *a)
{
	if (a->text.data)
		explicit_bzero(a->text.data, a->text.len);
	buf_done(&a->text);
	buf_done(&a->reply);
	loop_timer_free(a->timer);
	free(a->mac);
	free(a);
}

int opinion_prepare(struct opinion *o, struct opinion_job *j, job_id_t job, int64_t epoch,
		    const struct gate_parts *p, struct opinion_ask **ret, struct err *err)
{
	uint64_t max = o->cfg.gate->classifier_max_bytes;
	struct opinion_ask *a = xnew(struct opinion_ask);

	*ret = NULL;
	a->o = o;
	a->j = j;
	a->job = job;
	a->epoch = epoch;
	buf_init(&a->text, max);
	buf_init(&a->reply, OPINION_REPLY_MAX_BYTES);
	a->mac = xcalloc(p->n + 1, sizeof(*a->mac));
	add_parts(a, p);
	if (!buf_ok(&a->text)) {
		ask_free(a);
		return err_set_id(err, ERRID_CLASSIFIER_SIZE,
				  "the limit is %llu bytes (gate.classifier_max)",
				  (unsigned long long)max);
	}
	if (a->text.len == 0) {
		ask_free(a);
		return 0;
	}
	if (o->n >= OPINION_ASKS_MAX ||
	    (o->n > 0 && o->bytes + a->text.len > OPINION_ASKS_MAX_BYTES)) {
		ask_free(a);
		return err_set_id(err, ERRID_GATE_BUSY, "%zu wait for the classifier",
				  o->n);
	}
	*ret = a;
	return 0;
}

size_t opinion_ask_bytes(const struct opinion_ask *a)
{
	return a->text.len;
}

/* ---- the line ---- */

static void take_out(struct opinion_ask *a)
{
	struct opinion *o = a->o;

	if (a->call)
		o->cfg.cancel(a->call);
	a->call = NULL;
	if (a->at_work) {
		o->at_work--;
		a->j->at_work = false;
	}
	if (!a->is_begun)
		return;
	*(a->prev ? &a->prev->next : &o->first) = a->next;
	*(a->next ? &a->next->prev : &o->last) = a->prev;
	o->n--;
	o->bytes -= a->text.len;
}

/* Of the jobs that have none under way, the one that was served longest ago. */
static struct opinion_ask *next_of(const struct opinion *o)
{
	struct opinion_ask *best = NULL;

	for (struct opinion_ask *a = o->first; a; a = a->next)
		if (!a->at_work && !a->j->at_work &&
		    (!best || a->j->served < best->j->served))
			best = a;
	return best;
}

static void work(struct opinion *o);

static void finish(struct opinion_ask *a, const struct err *err)
{
	struct opinion *o = a->o;
	const struct opinion_answer answer = {.score = err ? 1.0 : a->score,
					      .err = err,
					      .slices = a->slices,
					      .took_usec = clock_boot_usec() - a->began};
	opinion_done *done = a->done;
	void *arg = a->arg;
	bool is_low = a->score < o->cfg.gate->portal_threshold;

	take_out(a);
	o->figures.answers = !err;
	o->figures.failed += err != NULL;
	o->figures.passed += !err && is_low;
	o->figures.refused += !err && !is_low;
	for (size_t i = 0; !err && is_low && i < a->n_macs; i++)
		remember(a->j, a->mac[i]);
	ask_free(a);
	work(o);
	done(&answer, arg);
}

static void fail(struct opinion_ask *a, const char *why)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_CLASSIFIER_AWAY, "'%s': %s",
			 a->o->cfg.classifier->name, why);
	finish(a, &err);
}

/* The worker's words are its own: of them the code. */
static void fail_of(struct opinion_ask *a, const struct err *why)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "no answer (%s)", err_text(why));
	fail(a, text);
}

static void on_time(void *arg)
{
	struct opinion_ask *a = arg;

	if (err_is_set(&a->why))
		fail_of(a, &a->why);
	else
		fail(a, "no answer in time");
}

/* ---- a slice at the classifier ---- */

static void on_head(const struct egress_head *h, void *arg)
{
	struct opinion_ask *a = arg;

	a->status = h->status;
}

static bool on_body(const void *data, size_t len, void *arg)
{
	struct opinion_ask *a = arg;

	buf_add(&a->reply, data, len);
	return true;
}

static int read_reply(struct opinion_ask *a, double *ret, struct err *err)
{
	struct reading *note = a->o->cfg.note;
	bool began = reading_begin(note, a->job, a->epoch, READING_REPLY);
	int r = buf_ok(&a->reply)
			? opinion_reply_read(a->reply.data, a->reply.len, ret, err)
			: err_set_id(err, ERRID_CLASSIFIER_AWAY,
				     "its answer is too long");

	reading_end(note, began);
	return r;
}

static void show(struct opinion_ask *a);

static void on_end(const struct egress_end *e, void *arg)
{
	struct opinion_ask *a = arg;
	struct err err = ERR_INIT;
	double score = 1.0;
	char text[32];

	a->call = NULL;
	if (e->err) {
		fail_of(a, e->err);
		return;
	}
	if (a->status != 200) {
		(void)snprintf(text, sizeof(text), "it answered %u", a->status);
		fail(a, text);
		return;
	}
	if (read_reply(a, &score, &err) < 0) {
		fail(a, err.msg);
		return;
	}
	a->slices++;
	if (score > a->score)
		a->score = score;
	a->at = opinion_slice_next(a->text.data, a->text.len, a->at, a->n);
	if (a->at >= a->text.len || a->score >= a->o->cfg.gate->portal_threshold)
		finish(a, NULL);
	else
		show(a);
}

/* From here on it is answered by on_end, or by its timer. */
static void show(struct opinion_ask *a)
{
	static const struct egress_ops ops = {on_head, on_body, on_end, NULL};
	static const struct egress_header headers[] = {
		{"content-type", "application/json"}, {"accept", "application/json"}};
	const struct opinion_config *cfg = &a->o->cfg;
	cleanup_buf struct buf body;

	a->n = opinion_slice_len(a->text.data, a->text.len, a->at);
	a->status = 0;
	buf_reset(&a->reply);
	buf_init(&body, OPINION_REQUEST_MAX_BYTES);
	opinion_request_write(cfg->classifier->model[0].name, a->text.data + a->at, a->n,
			      cfg->rng, &body);
	assert(buf_ok(&body));
	const struct egress_request rq = {
		.job = a->job,
		.epoch = a->epoch,
		.portal = cfg->classifier->name,
		.method = "POST",
		.target = TARGET,
		.headers = headers,
		.n_headers = ARRAY_SIZE(headers),
		.body = body.data,
		.body_len = body.len,
		.limits = {.first_byte_usec = cfg->gate->classifier_usec,
			   .idle_usec = cfg->gate->classifier_usec,
			   .total_usec = cfg->gate->classifier_usec,
			   .reply_max_bytes = OPINION_REPLY_MAX_BYTES},
	};
	if (cfg->start(cfg->env, &rq, &ops, a, &a->call, &a->why) < 0) {
		a->call = NULL;
		loop_timer_arm(a->timer, 0);
	}
	explicit_bzero(body.data, body.len);
}

static void work(struct opinion *o)
{
	struct opinion_ask *a;

	while (o->at_work < OPINION_AT_WORK && (a = next_of(o))) {
		o->at_work++;
		a->at_work = a->j->at_work = true;
		a->j->served = ++o->turns;
		show(a);
	}
}

void opinion_begin(struct opinion_ask *a, opinion_done *done, void *arg)
{
	struct opinion *o = a->o;

	a->done = done;
	a->arg = arg;
	a->is_begun = true;
	a->began = clock_boot_usec();
	a->timer = loop_timer_new(o->cfg.loop, on_time, a);
	a->prev = o->last;
	*(o->last ? &o->last->next : &o->first) = a;
	o->last = a;
	o->n++;
	o->bytes += a->text.len;
	loop_timer_arm(a->timer, o->cfg.gate->classifier_usec);
	work(o);
}

void opinion_cancel(struct opinion_ask *a)
{
	struct opinion *o;

	if (!a)
		return;
	o = a->o;
	take_out(a);
	ask_free(a);
	work(o);
}

/* ---- life ---- */

struct opinion *opinion_new(const struct opinion_config *cfg)
{
	struct opinion *o = xnew(struct opinion);

	o->cfg = *cfg;
	o->figures.answers = true;
	cfg->rng->bytes(cfg->rng->ctx, o->key, sizeof(o->key));
	return o;
}

void opinion_free(struct opinion *o)
{
	if (!o)
		return;
	assert(!o->first);
	explicit_bzero(o->key, sizeof(o->key));
	free(o);
}

const char *opinion_portal(const struct opinion *o)
{
	return o->cfg.classifier->name;
}

struct opinion_figures opinion_figures(const struct opinion *o)
{
	return o->figures;
}
