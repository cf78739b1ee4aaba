/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See anchor.h.
 */
#include "vessel/audit/anchor.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#define NAME "database"
/* Each checkpoint would be a row a second under load; the last of a minute says what they say. */
#define APART_USEC (60 * USEC_PER_SEC)
#define RETRY_USEC (5 * USEC_PER_SEC)

struct audit_anchor {
	struct audit_anchor_config cfg;
	struct loop_timer *timer;
	struct audit_checkpoint next, sent;
	bool is_owned, has_next, is_under_way, is_waiting, is_foreign;
	bool is_good, was_good, was_told;
	uint64_t size;
	struct err why;
};

static void tell(struct audit_anchor *a)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	if (a->was_told && a->was_good == a->is_good)
		return;
	a->was_told = true;
	a->was_good = a->is_good;
	buf_init(&b, 4096);
	jsonw_init(&w, &b);
	audit_anchor_write(a, &w);
	a->cfg.told(&b, a->cfg.arg);
}

static void put_done(bool was_put, uint64_t newest, const struct err *err, void *arg)
{
	struct audit_anchor *a = arg;

	a->is_under_way = false;
	a->is_good = !err && was_put;
	if (err) {
		a->why = *err;
		if (!a->has_next)
			a->next = a->sent;
		a->has_next = true;
	} else if (was_put) {
		a->size = a->sent.size;
	} else {
		a->is_foreign = true;
		a->size = newest;
		(void)err_set_id(
			&a->why, ERRID_AUDIT_ANCHOR,
			"the database has a checkpoint of %llu records, and the log is "
			"another or has fewer: it was cut or rewritten, or an old copy "
			"was put back",
			(unsigned long long)newest);
	}
	tell(a);
	a->is_waiting = true;
	loop_timer_arm(a->timer, err ? RETRY_USEC : APART_USEC);
}

static void on_timer(void *arg)
{
	struct audit_anchor *a = arg;
	struct queue_anchor row;

	a->is_waiting = false;
	if (!a->is_owned || !a->has_next || a->is_under_way || a->is_foreign)
		return;
	a->is_under_way = true;
	a->has_next = false;
	a->sent = a->next;
	row = (struct queue_anchor){a->sent.log.s, a->sent.root, a->sent.line,
				    a->sent.size};
	queue_anchor_put(a->cfg.queue, &row, put_done, a);
}

struct audit_anchor *audit_anchor_new(const struct audit_anchor_config *cfg)
{
	struct audit_anchor *a = xnew(struct audit_anchor);

	a->cfg = *cfg;
	a->timer = loop_timer_new(cfg->loop, on_timer, a);
	return a;
}

void audit_anchor_free(struct audit_anchor *a)
{
	if (!a)
		return;
	loop_timer_free(a->timer);
	free(a);
}

/* At once, or what is the last when the minute is over. */
void audit_anchor_offer(struct audit_anchor *a, const struct audit_checkpoint *c)
{
	a->next = *c;
	a->has_next = true;
	if (!a->is_waiting)
		on_timer(a);
}

void audit_anchor_owned(struct audit_anchor *a)
{
	a->is_owned = true;
	if (!a->is_waiting)
		on_timer(a);
}

void audit_anchor_write(const struct audit_anchor *a, struct jsonw *w)
{
	if (!a->was_told)
		return;
	jsonw_obj(w);
	jsonw_kstr(w, "name", NAME);
	jsonw_kstr(w, "kind", NAME);
	jsonw_kstr(w, "path", NULL);
	jsonw_kbool(w, "required", false);
	jsonw_kbool(w, "ok", a->is_good);
	jsonw_ku64(w, "size", a->size);
	jsonw_kstr(w, "detail", a->is_good ? NULL : a->why.msg);
	jsonw_obj_end(w);
}
