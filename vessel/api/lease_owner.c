/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See lease_owner.h.
 */
#include "vessel/api/lease_owner.h"

#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/auth.h"
#include "vessel/api/vessel.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"
#include "vessel/broker/triggers.h"
#include <stdlib.h>

/* One place for each job number modulo this: another job in it only means to ask again. */
#define PLACES 1024
#define TELL_GAP_USEC (10 * USEC_PER_SEC)

struct place {
	struct queue_lease lease; /* job 0: empty */
	char tomb[TOMB_NAME_SIZE];
};

struct lease_owners {
	usec_t told;
	struct place place[PLACES];
};

struct waiting {
	struct vessel *v;
	struct httpd_req *req;
	lease_fn *fn;
	bool must_live;
};

struct lease_owners *lease_owners_new(void)
{
	return xnew(struct lease_owners);
}

void lease_owners_free(struct lease_owners *o)
{
	free(o);
}

static struct place *place_of(struct lease_owners *o, const struct queue_lease *l)
{
	return &o->place[(uint64_t)l->job % PLACES];
}

static bool is_same(const struct queue_lease *a, const struct queue_lease *b)
{
	return a->job == b->job && a->epoch == b->epoch && str_eq(a->token.s, b->token.s);
}

static void put_in_log(struct vessel *v, const struct principal *p, bool is_anothers)
{
	cleanup_buf struct buf data = {.max = AUDIT_DATA_MAX};
	struct audit_event e = {
		.name = "detection.foreign_token",
		.time_ms = v->clock->wall_usec(v->clock->ctx) / USEC_PER_MSEC,
		.actor = "lych-vessel",
		.job = p->lease.job,
		.epoch = p->lease.epoch,
	};
	struct jsonw w;

	jsonw_init(&w, &data);
	jsonw_obj(&w);
	jsonw_kstr(&w, "tomb", p->tomb);
	jsonw_kstr(&w, "token_of", is_anothers ? "another tomb" : "nobody");
	jsonw_obj_end(&w);
	e.data = buf_str(&data);
	e.data_len = data.len;
	audit_note(v->audit, &e);
	triggers_pull(v->triggers, TRIGGER_FOREIGN_TOKEN, &p->lease,
		      "a token that is not its own");
}

/* It may do so in a loop. */
static void tell(struct vessel *v, const struct principal *p, bool is_anothers)
{
	usec_t now = clock_boot_usec();

	if (v->owners->told && now - v->owners->told < TELL_GAP_USEC)
		return;
	v->owners->told = now;
	log_kv(LOG_ERROR_,
	       is_anothers
		       ? "security: a tomb spoke for another one's lease"
		       : "security: a tomb spoke for a lease by a token that is nobody's",
	       "tomb", p->tomb, NULL);
	if (v->conf.broker.containment.act[TRIGGER_FOREIGN_TOKEN] != TRIGGER_OFF)
		put_in_log(v, p, is_anothers);
}

static void refuse(struct vessel *v, struct httpd_req *req)
{
	struct err err = ERR_INIT;

	tell(v, auth_principal(req), true);
	(void)err_set_id(&err, ERRID_RUN_DENIED, "the lease of another tomb");
	httpd_reply_err(req, &err);
}

static void live(const struct err *err, void *arg)
{
	cleanup_free struct waiting *w = arg;
	/* a copy: the principal goes with the reply */
	struct queue_lease lease = auth_principal(w->req)->lease;

	if (err)
		httpd_reply_err(w->req, err);
	else
		w->fn(w->v, w->req, &lease);
}

/* It is the tomb's own. */
static void go_on(const struct waiting *w, const struct queue_lease *l)
{
	struct waiting *next;

	if (!w->must_live) {
		w->fn(w->v, w->req, l);
		return;
	}
	next = xnew(struct waiting);
	*next = *w;
	queue_lease_check(w->v->queue, l, false, live, next);
}

static void known(const char *owner, size_t len UNUSED, const struct err *err, void *arg)
{
	cleanup_free struct waiting *w = arg;
	const struct principal *p = auth_principal(w->req);
	/* a copy: the principal goes with the reply */
	struct place found = {.lease = p->lease};
	struct err gone = ERR_INIT;

	if (err) {
		if (err->id == ERRID_RUN_DENIED)
			tell(w->v, p, false);
		httpd_reply_err(w->req, err);
		return;
	}
	if (!str_eq(owner, p->tomb) ||
	    str_copy(found.tomb, sizeof(found.tomb), owner) < 0) {
		refuse(w->v, w->req);
		return;
	}
	*place_of(w->v->owners, &found.lease) = found;
	if (httpd_req_is_gone(w->req)) {
		(void)err_set_id(&gone, ERRID_HTTP_AWAY, "gone");
		httpd_reply_err(w->req, &gone);
		return;
	}
	go_on(w, &found.lease);
}

static void check(const struct waiting *w)
{
	const struct principal *p = auth_principal(w->req);
	const struct place *at = place_of(w->v->owners, &p->lease);
	struct queue_lease lease = p->lease;
	struct waiting *later;

	if (!is_same(&at->lease, &lease)) {
		later = xnew(struct waiting);
		*later = *w;
		queue_lease_owner(w->v->queue, &lease, known, later);
	} else if (str_eq(at->tomb, p->tomb)) {
		go_on(w, &lease);
	} else {
		refuse(w->v, w->req);
	}
}

void lease_owned(struct vessel *v, struct httpd_req *req, lease_fn *fn)
{
	const struct waiting w = {.v = v, .req = req, .fn = fn};

	check(&w);
}

void lease_live(struct vessel *v, struct httpd_req *req, lease_fn *fn)
{
	const struct waiting w = {.v = v, .req = req, .fn = fn, .must_live = true};

	check(&w);
}
