/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registered.h.
 */
#include "vessel/db/registered.h"

#include "common/crypto/locked.h"
#include "common/crypto/sha256.h"
#include "common/crypto/tomb_secret.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/net/httpd.h"
#include "common/str.h"
#include "vessel/db/door.h"
#include "vessel/db/queue.h"
#include <string.h>

#define MASTER_SIZE 512
#define AGAIN_USEC (200 * USEC_PER_MSEC)
#define RETRY_USEC (250 * USEC_PER_MSEC)

struct masters {
	char work[MASTER_SIZE], db[MASTER_SIZE];
};

struct tomb {
	char name[TOMB_NAME_SIZE];
	uint64_t generation;
	uint8_t bearer_sha256[SHA256_SIZE]; /* of what it must show, not that itself */
};

/* It outlives the tomb's registration, as its connections do. */
struct held {
	char name[TOMB_NAME_SIZE];
	struct httpd_share share;
};

struct registered {
	struct registered_config cfg;
	struct masters *master;
	struct queue *queue;
	struct door *door;
	struct loop_timer *timer;
	struct tomb tomb[QUEUE_TOMBS_MAX];
	size_t n;
	struct held held[QUEUE_TOMBS_MAX];
	bool is_known, is_asking, is_stale; /* stale: it changed while it was asked for */
	usec_t asked;
};

static void ask(void *arg);

int registered_new(const struct registered_config *cfg, struct registered **ret,
		   struct err *err)
{
	struct registered *r = xnew(struct registered);
	void *memory = NULL;

	r->cfg = *cfg;
	r->cfg.work_master = r->cfg.db_master = NULL;
	if (locked_new(sizeof(*r->master), &memory, err) < 0) {
		free(r);
		return -1;
	}
	r->master = memory;
	r->timer = loop_timer_new(cfg->loop, ask, r);
	if (str_copy(r->master->work, MASTER_SIZE, cfg->work_master) < 0 ||
	    (cfg->db_master &&
	     str_copy(r->master->db, MASTER_SIZE, cfg->db_master) < 0)) {
		registered_free(r);
		return err_set_id(err, ERRID_SECRET_FILE, "a master is too long");
	}
	*ret = r;
	return 0;
}

void registered_free(struct registered *r)
{
	if (!r)
		return;
	loop_timer_free(r->timer);
	locked_free(r->master, sizeof(*r->master));
	free(r);
}

void registered_attach(struct registered *r, struct queue *q, struct door *d)
{
	r->queue = q;
	r->door = d;
}

static const struct tomb *find(const struct registered *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->tomb[i].name, name))
			return &r->tomb[i];
	return NULL;
}

/* Its login at the second door. */
static void log_in(const struct registered *r, const struct tomb *t)
{
	char password[TOMB_SECRET_SIZE];
	struct err err = ERR_INIT;

	if (!r->master->db[0] || !door_find(r->door, t->name))
		return;
	tomb_secret_derive(TOMB_SECRET_DB, r->master->db, t->name, t->generation,
			   password);
	if (door_log_in(r->door, t->name, password, &err) < 0)
		log_err(LOG_ERROR_, "a tomb's login", &err);
	explicit_bzero(password, sizeof(password));
}

static struct tomb make(const struct registered *r, const struct queue_tomb *from)
{
	struct tomb t = {.generation = from->generation};
	char bearer[TOMB_SECRET_SIZE];

	if (!tomb_name_is_usable(from->name) || from->generation == 0 ||
	    str_copy(t.name, sizeof(t.name), from->name) < 0)
		return (struct tomb){0};
	tomb_secret_derive(TOMB_SECRET_WORK, r->master->work, t.name, t.generation,
			   bearer);
	sha256_of(bearer, strlen(bearer), t.bearer_sha256);
	explicit_bzero(bearer, sizeof(bearer));
	return t;
}

static void take(struct registered *r, const struct queue_tomb *list, size_t n)
{
	static struct tomb old[QUEUE_TOMBS_MAX];
	size_t n_old = r->n;

	memcpy(old, r->tomb, sizeof(old));
	r->n = 0;
	for (size_t i = 0; i < n && i < QUEUE_TOMBS_MAX; i++) {
		struct tomb t = make(r, &list[i]);
		bool is_new = true;

		for (size_t k = 0; k < n_old; k++)
			is_new &= !str_eq(old[k].name, t.name) ||
				  old[k].generation != t.generation;
		if (!t.name[0])
			continue;
		r->tomb[r->n++] = t;
		if (!is_new)
			continue;
		log_kv(LOG_INFO_, "a tomb is registered", "tomb", t.name, NULL);
		log_in(r, &t);
	}
}

static void answered(const struct queue_tomb *list, size_t n, const struct err *err,
		     void *arg)
{
	struct registered *r = arg;
	bool is_first = !r->is_known;

	r->is_asking = false;
	if (err) {
		/* who was known stays known: the database is away for a moment */
		loop_timer_arm(r->timer, is_first ? RETRY_USEC : AGAIN_USEC);
		return;
	}
	take(r, list, n);
	r->is_known = true;
	if (r->is_stale)
		loop_timer_arm(r->timer, AGAIN_USEC);
	if (is_first)
		r->cfg.on_ready(r->cfg.arg);
}

static void ask(void *arg)
{
	struct registered *r = arg;

	r->is_asking = true;
	r->is_stale = false;
	r->asked = clock_boot_usec();
	queue_tombs(r->queue, answered, r);
}

void registered_refresh(struct registered *r)
{
	usec_t now = clock_boot_usec(), next = r->asked + AGAIN_USEC;

	if (r->is_asking)
		r->is_stale = true;
	else
		loop_timer_arm(r->timer, !r->is_known || next <= now ? 0 : next - now);
}

bool registered_is_known(const struct registered *r)
{
	return r->is_known;
}

int registered_check(const struct registered *r, const char *tomb, const char *bearer,
		     struct err *err)
{
	const struct tomb *t = find(r, tomb);
	uint8_t got[SHA256_SIZE];

	if (!r->is_known)
		return err_set_id(err, ERRID_RUN_DB, "the tombs are not known yet");
	/* hashes of equal length: the comparison tells nothing about the secret */
	sha256_of(bearer, strlen(bearer), got);
	if (!t)
		return err_set_id(err, ERRID_HTTP_PEER, "no tomb of this name");
	if (!mem_eq_ct(got, t->bearer_sha256, sizeof(got)))
		return err_set_id(err, ERRID_HTTP_PEER, "not this tomb's bearer");
	return 0;
}

static bool holds_nothing(const struct held *h)
{
	return !h->share.connections && !h->share.bodies && !h->share.answers;
}

struct httpd_share *registered_share(struct registered *r, const char *tomb)
{
	struct held *place = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(r->held); i++) {
		struct held *h = &r->held[i];

		if (str_eq(h->name, tomb))
			return &h->share;
		if (!place && holds_nothing(h))
			place = h;
	}
	if (!place || str_copy(place->name, sizeof(place->name), tomb) < 0)
		return NULL;
	return &place->share;
}

unsigned registered_number(const struct registered *r, const char *tomb)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->held); i++)
		if (str_eq(r->held[i].name, tomb))
			return (unsigned)i + 1;
	return 0;
}
