/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See job.h.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/gate/issued.h"
#include "vessel/broker/gate/job_priv.h"
#include "vessel/gate/score.h"
#include <math.h>
#include <strings.h>

struct destination {
	char *name;
	uint64_t used; /* order of use: the oldest one goes */
	struct gate_tail tail[GATE_TAILS_MAX];
	size_t n;
};

struct gate_job {
	const struct clock_ops *clock;
	struct gate_turn turn;
	struct gate_map map;
	struct issued *issued; /* NULL: nothing was */
	struct destination to[GATE_DESTINATIONS_MAX];
	size_t n_to;
	uint64_t uses;
	struct gate_canary canary[GATE_CANARIES_MAX];
	size_t n_canaries;
	double bucket; /* at `bucket_usec`; halves in GATE_BUCKET_HALF_LIFE_USEC */
	usec_t bucket_usec;
	/* Of the texts that are in it: the last of them. */
	uint8_t counted[GATE_COUNTED_MAX][GATE_MAC_SIZE];
	uint64_t counts;
};

struct gate_job *gate_job_new(const struct clock_ops *clock)
{
	struct gate_job *j = xnew(struct gate_job);

	j->clock = clock;
	return j;
}

struct gate_turn *gate_job_turn(struct gate_job *j)
{
	return &j->turn;
}

static void wipe_free(const char *s, size_t len)
{
	char *p = (char *)(uintptr_t)s;

	if (p)
		explicit_bzero(p, len);
	free(p);
}

void gate_job_free(struct gate_job *j)
{
	if (!j)
		return;
	gate_map_done(&j->map);
	for (size_t i = 0; i < j->n_canaries; i++)
		wipe_free(j->canary[i].data, j->canary[i].len);
	for (size_t i = 0; i < j->n_to; i++)
		free(j->to[i].name);
	issued_free(j->issued);
	explicit_bzero(j, sizeof(*j));
	free(j);
}

static int add_canary(struct gate_job *j, const void *value, size_t len, bool is_planted,
		      struct err *err)
{
	char *copy;

	if (len < GATE_CANARY_MIN_BYTES || len > GATE_CANARY_MAX_BYTES)
		return err_set_id(err, ERRID_GATE_CANARY, "%zu bytes", len);
	if (j->n_canaries == GATE_CANARIES_MAX)
		return err_set_id(err, ERRID_GATE_CANARY, "there are %d already",
				  GATE_CANARIES_MAX);
	copy = xmalloc(len);
	memcpy(copy, value, len);
	j->canary[j->n_canaries++] =
		(struct gate_canary){.data = copy, .len = len, .is_planted = is_planted};
	return 0;
}

int gate_job_add_canary(struct gate_job *j, const void *value, size_t len,
			struct err *err)
{
	return add_canary(j, value, len, false, err);
}

int gate_job_add_planted(struct gate_job *j, const void *value, size_t len,
			 struct err *err)
{
	return add_canary(j, value, len, true, err);
}

const struct gate_canary *gate_job_canary_in(const struct gate_job *j, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < j->n_canaries; i++) {
		const struct gate_canary *c = &j->canary[i];

		for (size_t at = 0; at + c->len <= len; at++)
			if (strncasecmp(text + at, c->data, c->len) == 0)
				return c;
	}
	return NULL;
}

static void leak(struct gate_job *j)
{
	usec_t now = j->clock->boot_usec(j->clock->ctx);
	double halves =
		(double)(now - j->bucket_usec) / (double)GATE_BUCKET_HALF_LIFE_USEC;

	j->bucket *= exp2(-halves);
	j->bucket_usec = now;
}

static struct destination *find_destination(struct gate_job *j, const char *name)
{
	for (size_t i = 0; i < j->n_to; i++)
		if (str_eq(j->to[i].name, name))
			return &j->to[i];
	return NULL;
}

static struct destination *make_destination(struct gate_job *j, const char *name)
{
	struct destination *d = find_destination(j, name);

	if (!d && j->n_to < GATE_DESTINATIONS_MAX) {
		d = &j->to[j->n_to++];
		d->name = xstrdup(name);
	} else if (!d) {
		d = &j->to[0];
		for (size_t i = 1; i < j->n_to; i++)
			if (j->to[i].used < d->used)
				d = &j->to[i];
		free(d->name);
		*d = (struct destination){.name = xstrdup(name)};
	}
	d->used = ++j->uses;
	return d;
}

void gate_job_fill(struct gate_job *j, const char *destination, struct gate_input *in)
{
	const struct destination *d = find_destination(j, destination);

	leak(j);
	in->tails = d ? d->tail : NULL;
	in->n_tails = d ? d->n : 0;
	in->canaries = j->canary;
	in->n_canaries = j->n_canaries;
	in->carry = j->bucket;
}

static struct gate_tail *tail_of(struct destination *d, uint32_t tag)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->tail[i].tag == tag)
			return &d->tail[i];
	/* the first one makes room: what is at a request's end is the newest */
	if (d->n == GATE_TAILS_MAX)
		memmove(&d->tail[0], &d->tail[1], sizeof(d->tail[0]) * --d->n);
	d->tail[d->n] = (struct gate_tail){.tag = tag};
	return &d->tail[d->n++];
}

static void tail_add(struct gate_tail *t, const char *s, size_t len)
{
	size_t keep;

	if (len > GATE_TAIL_BYTES) {
		s += len - GATE_TAIL_BYTES;
		len = GATE_TAIL_BYTES;
	}
	keep = GATE_TAIL_BYTES - len < t->len ? GATE_TAIL_BYTES - len : t->len;
	memmove(t->data, t->data + t->len - keep, keep);
	memcpy(t->data + keep, s, len);
	t->len = (uint32_t)(keep + len);
}

static bool is_counted(const struct gate_job *j, const uint8_t mac[GATE_MAC_SIZE])
{
	size_t n = j->counts < GATE_COUNTED_MAX ? (size_t)j->counts : GATE_COUNTED_MAX;

	for (size_t i = 0; i < n; i++)
		if (memcmp(j->counted[i], mac, GATE_MAC_SIZE) == 0)
			return true;
	return false;
}

/* A client sends its whole conversation at each turn: what is in it adds up once. */
static double added_anew(struct gate_job *j, const struct gate_report *r)
{
	cleanup_free struct gate_finding *old = xcalloc(r->n + 1, sizeof(*old));
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (is_counted(j, r->finding[i].mac))
			old[n++] = r->finding[i];
	for (size_t i = 0; i < r->n; i++)
		if (!is_counted(j, r->finding[i].mac))
			memcpy(j->counted[j->counts++ % GATE_COUNTED_MAX],
			       r->finding[i].mac, GATE_MAC_SIZE);
	return fmax(0, gate_added(r->finding, r->n) - gate_added(old, n));
}

void gate_job_sent(struct gate_job *j, const char *destination,
		   const struct gate_parts *p, const struct gate_report *r)
{
	struct destination *d = make_destination(j, destination);
	size_t at = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct gate_part *part = &p->part[i];
		struct gate_tail *t;
		size_t len = part->len;

		if (part->kind != GATE_PART_TEXT || !len)
			continue;
		t = tail_of(d, part->tag);
		while (at < r->n_judged && r->judged[at].part < i)
			at++;
		if (at < r->n_judged && r->judged[at].part == i) {
			len = r->judged[at].left;
			t->len = 0;
		}
		tail_add(t, part->data + part->len - len, len);
	}
	leak(j);
	j->bucket += added_anew(j, r);
}

static struct issued *issued_of(struct gate_job *j)
{
	if (!j->issued)
		j->issued = issued_new();
	return j->issued;
}

void gate_job_issued(struct gate_job *j, const char *portal, const struct json *said)
{
	issued_note(issued_of(j), portal, said);
}

void gate_job_issued_signature(struct gate_job *j, const char *portal, const char *text)
{
	issued_note_signature(issued_of(j), portal, text);
}

void gate_job_mark_issued(struct gate_job *j, const char *portal,
			  const struct json *request, struct gate_parts *p, size_t first)
{
	if (j->issued)
		issued_mark(j->issued, portal, request, p, first);
}

/* ---- placeholders ---------------------------------------------------------------- */

const struct gate_map *gate_job_map(const struct gate_job *j)
{
	return &j->map;
}

bool gate_job_is_clean(const struct gate_job *j)
{
	return j->map.n == 0;
}

/* Findings f[0..n) of one part, by offset: those that overlap are one. */
static int rewrite_part(struct gate_map *m, const struct gate_finding *f, size_t n,
			struct gate_parts *p, struct err *err)
{
	const struct gate_part *part = &p->part[f->part];
	struct buf out;
	size_t at = 0;
	int r = 0;

	buf_init(&out, part->len + n * (GATE_ROW_NAME_SIZE + 2) + 1);
	for (size_t i = 0; i < n && r == 0;) {
		size_t start = f[i].offset, end = start + f[i].len, best = i;
		const struct gate_row *row;

		for (; i < n && f[i].offset < end; i++) {
			if (f[i].offset + f[i].len > end)
				end = f[i].offset + f[i].len;
			if (f[i].severity > f[best].severity)
				best = i;
		}
		row = gate_map_take(m, f[best].family, part->data + start, end - start);
		if (!row) {
			r = err_set_id(err, ERRID_GATE_MAP, "the job's map is full");
			break;
		}
		buf_add(&out, part->data + at, start - at);
		buf_addf(&out, "<%s>", row->name);
		at = end;
	}
	buf_add(&out, part->data + at, part->len - at);
	if (r == 0)
		gate_parts_replace(p, f->part, buf_str(&out), out.len);
	if (out.data)
		explicit_bzero(out.data, out.len);
	buf_done(&out);
	return r;
}

static int check_rewritable(const struct gate_finding *f, const struct gate_parts *p,
			    struct err *err)
{
	if (f->part >= p->n || f->is_split || p->part[f->part].kind != GATE_PART_TEXT)
		return err_set_id(err, ERRID_GATE_MAP, "%s",
				  gate_family_info(f->family)->name);
	return 0;
}

int gate_job_anonymise(struct gate_job *j, const struct gate_finding *f, size_t n,
		       struct gate_parts *p, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (check_rewritable(&f[i], p, err) < 0)
			return -1;
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && f[end].part == f[i].part; end++)
			;
		if (rewrite_part(&j->map, f + i, end - i, p, err) < 0)
			return -1;
	}
	return 0;
}
