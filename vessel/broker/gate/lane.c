/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Questions wait in a queue; one is at the worker. Which is next is
 * found when the worker is free: of the party that had least, the job that had least,
 * the question that came first. Who comes back after a while begins where the others
 * are. What a job's question needs of the job (gate_job_fill) is taken when it is sent to
 * the worker, and what it leaves behind (gate_job_sent) is remembered when it is answered:
 * two questions of one job that come at once see each other.
 *
 * An answer between the thresholds is anonymised and asked again. Whatever is not a clear
 * answer in time is a refusal; the worker's socket is then closed, since nobody knows
 * what it still will say, and its parent starts another one.
 */
#include "vessel/broker/gate/lane.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/gate/wire.h"
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#define TIMEOUT_DEFAULT_USEC (10 * USEC_PER_SEC)
#define READ_BYTES 65536
#define FAMILIES_TEXT 200
/* Of a question without a byte. */
#define COST_MIN ((uint64_t)4096)

struct gate_ask {
	struct gate_lane *c;
	struct gate_ask *next;
	struct gate_job *job;
	char *destination;
	struct gate_parts *parts;
	gate_ask_done *done;
	void *arg;
	bool is_second;	   /* the look at what was anonymised; comes at once */
	bool is_cancelled; /* at the worker; nobody wants the answer */
	double score;
	struct gate_finding *findings; /* of the first look */
	size_t n;
};

/* What one party had: bytes, and where its jobs are. */
struct party {
	uint64_t used, jobs_at;
	unsigned waiting;
};

struct gate_lane {
	struct gate_client_config cfg;
	struct gate_config gate;
	const char *name;
	struct reading *note;	   /* the worker's */
	struct reading_note asked; /* whose question it had last */
	int fd;
	struct loop_io *io;
	struct loop_timer *timer; /* of the one at the worker */
	struct loop_timer *soon;  /* answers without a worker come from the loop too */
	struct buf out, in;
	size_t out_at;
	struct gate_ask *first, *last; /* waiting; the first may be at the worker */
	struct party party[GATE_PARTIES];
	uint64_t parties_at;
	bool at_work;
	uint64_t id;
	size_t n;
	usec_t began;
	struct buf private;
	struct gate_report *report;
	struct gate_client_figures figures;
	bool was_up;
};

static void work(struct gate_lane *c);
static void away(struct gate_lane *c, const char *why);

/* ---- whose turn it is ---------------------------------------------------------------- */

/* A person's questions have no job. */
static struct gate_turn *turn_of(const struct gate_ask *a, struct gate_turn *none)
{
	*none = (struct gate_turn){0};
	return a->job ? gate_job_turn(a->job) : none;
}

static void joins(struct gate_ask *a)
{
	struct gate_turn none, *t = turn_of(a, &none);
	struct party *p = &a->c->party[t->party];

	if (p->waiting++ == 0 && p->used < a->c->parties_at)
		p->used = a->c->parties_at;
	if (t->waiting++ == 0 && t->used < p->jobs_at)
		t->used = p->jobs_at;
}

static void leaves(struct gate_ask *a)
{
	struct gate_turn none, *t = turn_of(a, &none);

	a->c->party[t->party].waiting--;
	t->waiting--;
}

static void charge(struct gate_ask *a)
{
	struct gate_turn none, *t = turn_of(a, &none);
	struct party *p = &a->c->party[t->party];

	a->c->parties_at = p->used;
	p->jobs_at = t->used;
	p->used += a->parts->bytes + COST_MIN;
	t->used += a->parts->bytes + COST_MIN;
}

static bool is_before(const struct gate_ask *a, const struct gate_ask *b)
{
	struct gate_turn none_a, none_b;
	const struct gate_turn *x = turn_of(a, &none_a), *y = turn_of(b, &none_b);

	if (x->party != y->party)
		return a->c->party[x->party].used < a->c->party[y->party].used;
	return x->used < y->used;
}

/* Whose turn it is becomes the first. */
static void bring_forward(struct gate_lane *c)
{
	struct gate_ask *best = c->first, *before_best = NULL;

	if (!best || best->is_second)
		return;
	for (struct gate_ask *a = c->first; a->next; a = a->next) {
		if (!is_before(a->next, best))
			continue;
		best = a->next;
		before_best = a;
	}
	if (before_best) {
		before_best->next = best->next;
		if (c->last == best)
			c->last = before_best;
		best->next = c->first;
		c->first = best;
	}
	charge(best);
}

/* ---- the end of a question ---------------------------------------------------------- */

static void ask_free(struct gate_ask *a)
{
	gate_parts_free(a->parts);
	free(a->destination);
	free(a->findings);
	free(a);
}

static struct gate_ask *pop(struct gate_lane *c)
{
	struct gate_ask *a = c->first;

	c->first = a->next;
	if (!c->first)
		c->last = NULL;
	c->n--;
	leaves(a);
	return a;
}

static void tell(struct gate_ask *a, const struct gate_answer *answer)
{
	struct gate_lane *c = a->c;

	if (answer->verdict == GATE_PASS)
		c->figures.passed++;
	else if (answer->verdict == GATE_ANONYMISE)
		c->figures.anonymised++;
	else
		c->figures.refused++;
	if (!a->is_cancelled)
		a->done(answer, a->arg);
	ask_free(a);
}

/* "token, email" */
static void name_families(const struct gate_ask *a, char *out, size_t size)
{
	bool seen[GATE_FAMILY_MAX_] = {false};
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < a->n; i++) {
		const char *name = gate_family_info(a->findings[i].family)->name;
		int n;

		if (seen[a->findings[i].family])
			continue;
		seen[a->findings[i].family] = true;
		n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", name);
		if (n < 0 || (size_t)n >= size - at)
			return;
		at += (size_t)n;
	}
}

static bool has_family(const struct gate_ask *a, enum gate_family f)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->findings[i].family == f)
			return true;
	return false;
}

static void finish(struct gate_ask *a, enum gate_verdict verdict, double score_after,
		   const struct err *err)
{
	const struct gate_answer answer = {
		.verdict = verdict,
		.score = a->score,
		.score_after = score_after,
		.err = err,
		.has_canary = has_family(a, GATE_CANARY),
		.findings = a->findings,
		.n_findings = a->n,
		.parts = a->parts,
	};

	tell(a, &answer);
}

static void refuse(struct gate_ask *a, enum err_id id, double score_after,
		   const char *more)
{
	char families[FAMILIES_TEXT];
	struct err err = ERR_INIT;

	name_families(a, families, sizeof(families));
	(void)err_set_id(&err, id, "score %.2f: %s%s%s", a->score, families,
			 families[0] && more[0] ? "; " : "", more);
	finish(a, GATE_REFUSE, score_after, &err);
}

static void fail_all(struct gate_lane *c, enum err_id id, const char *why)
{
	struct gate_ask *a = c->first;

	/* who asks again from within the callback is in a new queue */
	c->first = c->last = NULL;
	c->n = 0;
	c->at_work = false;
	for (struct gate_ask *x = a; x; x = x->next)
		leaves(x);
	while (a) {
		struct gate_ask *next = a->next;
		struct err err = ERR_INIT;

		(void)err_set_id(&err, id, "%s", why);
		a->score = 1.0;
		c->figures.failed++;
		finish(a, GATE_REFUSE, 1.0, &err);
		a = next;
	}
}

/* ---- what an answer means ------------------------------------------------------------ */

static enum gate_verdict judge(const struct gate_lane *c, double score)
{
	return gate_judge(score, c->cfg.portal_threshold, c->cfg.forbidden_threshold);
}

static void remember(struct gate_ask *a, const struct gate_report *r)
{
	a->score = r->score;
	a->n = r->n;
	a->findings = xcalloc(r->n + 1, sizeof(*a->findings));
	memcpy(a->findings, r->finding, r->n * sizeof(*a->findings));
	for (size_t i = 0; i < r->n; i++)
		a->c->figures.findings[r->finding[i].family]++;
}

static void pass(struct gate_ask *a, enum gate_verdict verdict,
		 const struct gate_report *r)
{
	if (a->job)
		gate_job_sent(a->job, a->destination, a->parts, r->added);
	finish(a, verdict, r->score, NULL);
}

/* True: it goes to the worker once more. */
static bool anonymise(struct gate_ask *a)
{
	const struct gate_turn *t = gate_job_turn(a->job);
	struct reading *note = a->c->cfg.note;
	bool began = reading_begin(note, t->job, t->epoch, READING_TEXTS);
	struct err err = ERR_INIT;
	int r = gate_job_anonymise(a->job, a->findings, a->n, a->parts, &err);

	reading_end(note, began);
	if (r < 0) {
		finish(a, GATE_REFUSE, a->score, &err);
		return false;
	}
	a->is_second = true;
	return true;
}

static void take_report(struct gate_lane *c, const struct gate_report *r)
{
	struct gate_ask *a = pop(c);
	enum gate_verdict v = judge(c, r->score);

	c->figures.scan_usec += clock_boot_usec() - c->began;
	if (a->is_cancelled) {
		ask_free(a);
		return;
	}
	if (!a->is_second)
		remember(a, r);
	if (a->is_second && v == GATE_PASS)
		pass(a, GATE_ANONYMISE, r);
	else if (a->is_second)
		refuse(a, ERRID_GATE_PRIVATE, r->score, "still, after anonymising");
	else if (v == GATE_PASS)
		pass(a, GATE_PASS, r);
	else if (v == GATE_REFUSE && has_family(a, GATE_UNREADABLE))
		refuse(a, ERRID_GATE_UNREADABLE, r->score, "");
	else if (v == GATE_REFUSE)
		refuse(a, ERRID_GATE_PRIVATE, r->score, "");
	else if (!a->job)
		finish(a, GATE_ANONYMISE, r->score, NULL);
	else if (anonymise(a)) {
		a->next = c->first;
		c->first = a;
		if (!c->last)
			c->last = a;
		c->n++;
		joins(a);
	}
}

/* ---- the socket ----------------------------------------------------------------------- */

static void drop(struct gate_lane *c)
{
	loop_io_free(c->io);
	c->io = NULL;
	fd_close(&c->fd);
	loop_timer_disarm(c->timer);
	if (c->out.data)
		explicit_bzero(c->out.data, c->out.len);
	buf_done(&c->out);
	buf_done(&c->in);
	c->out_at = 0;
}

/* An end of file is its death, or a clean end, which leaves no note; when another one comes
 * it is dead. One that is taken over names nobody but who asked. */
static void look_at_note(struct gate_lane *c)
{
	struct reading_note note;
	bool is_noted = reading_get(c->note, &note);

	reading_clear(c->note);
	if (is_noted && c->cfg.on_died &&
	    reading_is_of(&note, c->asked.job, c->asked.epoch))
		c->cfg.on_died(c->name, &note, c->cfg.arg);
}

static void away(struct gate_lane *c, const char *why)
{
	struct err err = ERR_INIT;

	drop(c);
	(void)err_set_id(&err, ERRID_GATE_AWAY, "%s", why);
	if (c->cfg.on_away)
		c->cfg.on_away(&err, c->cfg.arg);
	fail_all(c, ERRID_GATE_AWAY, why);
}

static void flush(struct gate_lane *c)
{
	while (c->out_at < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_io_set(c->io, LOOP_READ | LOOP_WRITE);
			return;
		}
		if (n < 0) {
			away(c, "the worker has gone");
			return;
		}
		c->out_at += (size_t)n;
	}
	if (c->out.data)
		explicit_bzero(c->out.data, c->out.len);
	buf_done(&c->out);
	c->out_at = 0;
	loop_io_set(c->io, LOOP_READ);
}

static void put_whose(struct gate_lane *c, const struct gate_ask *a)
{
	struct gate_turn none;
	const struct gate_turn *t = turn_of(a, &none);

	c->asked = (struct reading_note){.job = t->job, .epoch = t->epoch};
	if (t->job)
		gate_wire_put_whose(&c->out, t->job, t->epoch);
}

/* The next question, if none is at the worker. */
static void work(struct gate_lane *c)
{
	struct gate_input in = {0};
	struct gate_ask *a;

	if (c->fd < 0 || c->at_work || !c->first)
		return;
	bring_forward(c);
	a = c->first;
	if (a->job)
		gate_job_fill(a->job, a->destination, &in);
	in.parts = a->parts->part;
	in.n_parts = a->parts->n;
	put_whose(c, a);
	gate_wire_put_scan(&c->out, ++c->id, &in);
	c->at_work = true;
	c->began = clock_boot_usec();
	c->figures.bytes += a->parts->bytes;
	loop_timer_arm(c->timer, c->cfg.timeout_usec);
	flush(c);
}

/* One frame of c->in; false: there is none, or the worker is away. */
static bool take_frame(struct gate_lane *c)
{
	struct gate_frame f;
	const struct gate_parts *parts = c->first ? c->first->parts : NULL;
	int r = gate_wire_header(c->in.data, c->in.len, &f);

	if (r == 0)
		return false;
	if (r < 0 || f.type != GATE_F_REPORT || !c->at_work || f.id != c->id || !parts) {
		away(c, "the worker broke its protocol");
		return false;
	}
	if (c->in.len - GATE_FRAME_HEADER < f.len)
		return false;
	if (!gate_wire_get_report(c->in.data + GATE_FRAME_HEADER, f.len, parts->part,
				  parts->n, c->report)) {
		away(c, "the worker's answer is not one");
		return false;
	}
	buf_consume(&c->in, GATE_FRAME_HEADER + f.len);
	c->at_work = false;
	loop_timer_disarm(c->timer);
	take_report(c, c->report);
	work(c);
	return c->fd >= 0;
}

static void on_io(int fd, unsigned what, void *arg)
{
	struct gate_lane *c = arg;
	char bytes[READ_BYTES];
	ssize_t n;

	if (what & LOOP_WRITE)
		flush(c);
	if (!(what & LOOP_READ) || c->fd != fd)
		return;
	n = recv(fd, bytes, sizeof(bytes), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		look_at_note(c);
		away(c, "the worker has gone");
		return;
	}
	buf_add(&c->in, bytes, (size_t)n);
	if (!buf_ok(&c->in)) {
		away(c, "the worker's answer is too long");
		return;
	}
	while (c->fd >= 0 && take_frame(c))
		;
}

static void on_timeout(void *arg)
{
	away(arg, "the worker took too long");
}

static void on_soon(void *arg)
{
	work(arg);
}

static void send_private(struct gate_lane *c)
{
	if (c->private.len == 0)
		return;
	gate_wire_put_header(&c->out, GATE_F_PRIVATE, 0, c->private.len);
	buf_add(&c->out, c->private.data, c->private.len);
}

void gate_lane_attach(struct gate_lane *c, int fd, struct reading *note)
{
	look_at_note(c);
	if (c->fd >= 0)
		away(c, "another worker has come");
	c->note = note;
	c->figures.restarts += c->was_up;
	c->was_up = true;
	c->fd = fd;
	c->io = loop_io_new(c->cfg.loop, fd, LOOP_READ, on_io, c);
	gate_wire_put_config(&c->out, &c->gate);
	send_private(c);
	flush(c);
	work(c);
}

bool gate_lane_is_up(const struct gate_lane *c)
{
	return c->fd >= 0;
}

void gate_lane_set_private(struct gate_lane *c, const struct gate_private *p)
{
	buf_done(&c->private);
	gate_private_write(p, &c->private);
	if (c->fd < 0)
		return;
	send_private(c);
	flush(c);
}

/* ---- asking ---------------------------------------------------------------------------- */

struct gate_lane *gate_lane_new(const struct gate_client_config *cfg, const char *name)
{
	struct gate_lane *c = xnew(struct gate_lane);

	c->cfg = *cfg;
	c->name = name;
	if (!c->cfg.timeout_usec)
		c->cfg.timeout_usec = TIMEOUT_DEFAULT_USEC;
	c->gate.portal_threshold = cfg->portal_threshold;
	c->gate.forbidden_threshold = cfg->forbidden_threshold;
	random_bytes(c->gate.mac_key, sizeof(c->gate.mac_key));
	c->fd = -1;
	c->report = xnew(struct gate_report);
	c->timer = loop_timer_new(cfg->loop, on_timeout, c);
	c->soon = loop_timer_new(cfg->loop, on_soon, c);
	buf_init(&c->out, 3 * GATE_FRAME_MAX);
	buf_init(&c->in, GATE_FRAME_MAX);
	buf_init(&c->private, GATE_FRAME_MAX);
	return c;
}

void gate_lane_free(struct gate_lane *c)
{
	if (!c)
		return;
	drop(c);
	while (c->first)
		ask_free(pop(c));
	loop_timer_free(c->timer);
	loop_timer_free(c->soon);
	buf_done(&c->private);
	explicit_bzero(&c->gate, sizeof(c->gate));
	free(c->report);
	free(c);
}

int gate_lane_ask(struct gate_lane *c, struct gate_job *job, const char *destination,
		  struct gate_parts *parts, gate_ask_done *done, void *arg,
		  struct gate_ask **ret, struct err *err)
{
	struct gate_ask *a;
	int r = 0;

	if (c->fd < 0)
		r = err_set_id(err, ERRID_GATE_AWAY, "no worker");
	else if (parts->overflow)
		r = err_set_id(err, ERRID_GATE_UNREADABLE, "too large");
	else if (c->n >= GATE_ASKS_MAX)
		r = err_set_id(err, ERRID_GATE_BUSY, "%d wait", GATE_ASKS_MAX);
	if (r < 0) {
		c->figures.failed++;
		gate_parts_free(parts);
		return -1;
	}
	a = xnew(struct gate_ask);
	a->c = c;
	a->job = job;
	a->destination = xstrdup(destination);
	a->parts = parts;
	a->done = done;
	a->arg = arg;
	if (c->last)
		c->last->next = a;
	else
		c->first = a;
	c->last = a;
	c->n++;
	joins(a);
	*ret = a;
	/* never from within this function */
	loop_timer_arm(c->soon, 0);
	return 0;
}

void gate_lane_cancel(struct gate_ask *a)
{
	struct gate_lane *c = a->c;
	struct gate_ask **at = &c->first, *before = NULL;

	if (a == c->first && c->at_work) {
		/* the job may be gone before the answer comes */
		leaves(a);
		a->job = NULL;
		joins(a);
		a->is_cancelled = true;
		return;
	}
	while (*at != a) {
		assert(*at);
		before = *at;
		at = &before->next;
	}
	*at = a->next;
	if (c->last == a)
		c->last = before;
	c->n--;
	leaves(a);
	ask_free(a);
}

struct gate_client_figures gate_lane_figures(const struct gate_lane *c)
{
	return c->figures;
}
