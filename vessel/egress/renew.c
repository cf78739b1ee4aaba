/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Other keys of hosts while requests are under way.
 *
 * Theory of operation. A worker has its key for life. So another key is another worker, in another
 * place, which the parent forks and which reads its secret there; the vessel knows names and places
 * and never a value. Whether a key is another one only the parent can say, which sees the file.
 * What is prepared is asked by nobody before all of it is up; then it changes places with what is in
 * force, in one step. What was replaced has no new calls, and ends with its last.
 *
 * Each place is told of with a turn, so that what the parent says of its last worker is not taken
 * for its next one's.
 */
#include "common/cleanup.h"
#include "common/str.h"
#include "vessel/egress/egress_priv.h"
#include "vessel/egress/hosts/word.h"
#include "vessel/egress/parent.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define LATE_USEC (20 * USEC_PER_SEC)
#define KIND "host:"

const char *egress_host_name(const struct worker *w)
{
	return w->name + strlen(KIND);
}

struct worker *egress_host_find(const struct egress *e, const char *name)
{
	for (size_t i = egress_first_host(&e->cfg); i < e->n; i++)
		if (e->worker[i].host == HOST_IN_FORCE &&
		    str_eq(egress_host_name(&e->worker[i]), name))
			return &e->worker[i];
	return NULL;
}

uint32_t egress_turn(const unsigned char *at)
{
	uint32_t turn = 0;

	for (unsigned i = EGRESS_TURN_BYTES; i > 0; i--)
		turn = turn << 8 | at[i - 1];
	return turn;
}

static unsigned place_of(const struct worker *w)
{
	return (unsigned)(w - w->egress->worker);
}

static int tell_parent(const struct egress *e, const struct host_word *word,
		       struct err *err)
{
	cleanup_buf struct buf b;

	buf_init(&b, HOST_WORD_MAX_BYTES);
	if (host_word_add(&b, word, err) < 0)
		return -1;
	if (send(e->control, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	    (ssize_t)b.len)
		return 0;
	return err_set_id(err, ERRID_CREDENTIAL_BUSY,
			  "the parent of the workers takes no word: %s", strerror(errno));
}

/* ---- one place ---- */

/* Its calls are lost; the place is free. */
static void end_host(struct worker *w)
{
	const struct host_word word = {.place = place_of(w), .is_end = true};
	struct err err = ERR_INIT;

	w->host = HOST_NOBODY;
	w->up = false;
	egress_link_free(TAKE_PTR(w->link));
	/* its socket has ended, which ends it as well; the next one would not come */
	if (tell_parent(w->egress, &word, &err) < 0)
		w->egress->events.on_lost(&err, w->egress->events.arg);
	egress_calls_lost(w);
}

void egress_host_idle(struct worker *w)
{
	end_host(w);
}

static struct worker *free_place(const struct egress *e)
{
	for (size_t i = egress_first_host(&e->cfg); i < e->n; i++)
		if (e->worker[i].host == HOST_NOBODY && e->worker[i].n_calls == 0)
			return &e->worker[i];
	return NULL;
}

static void take_place(struct worker *w, const struct egress_portal *host)
{
	*w = (struct worker){.egress = w->egress,
			     .host = HOST_PREPARED,
			     .turn = ++w->egress->next.turn,
			     .next_id = w->next_id,
			     .pulse = w->pulse};
	egress_worker_name(&w->egress->cfg, place_of(w), host, w->name);
}

/* ---- all of them ---- */

void egress_hosts_drop(struct egress *e)
{
	e->next.done = NULL;
	if (e->next.late)
		loop_timer_disarm(e->next.late);
	for (size_t i = 0; i < e->next.n; i++)
		if (e->next.worker[i]->host == HOST_PREPARED)
			end_host(e->next.worker[i]);
	e->next.n = 0;
}

/* They are as they shall be, or will not be. */
static void answer(struct egress *e, const struct err *why)
{
	egress_hosts_done *done = e->next.done;
	struct err copy;

	loop_timer_disarm(e->next.late);
	if (why) { /* it may be of what ends now */
		copy = *why;
		why = &copy;
		egress_hosts_drop(e);
	}
	e->next.done = NULL;
	done(why, e->next.arg);
}

static void is_as_it_shall(struct egress *e)
{
	if (--e->next.missing == 0)
		answer(e, NULL);
}

void egress_host_began(struct worker *w, const struct err *why)
{
	struct egress *e = w->egress;
	struct err bad = ERR_INIT;

	if (w->host != HOST_PREPARED || !e->next.done)
		return;
	if (!why) {
		is_as_it_shall(e);
		return;
	}
	bad = *why;
	if (why->id == ERRID_EGRESS_SECRET)
		(void)err_set_id(&bad, ERRID_CREDENTIAL_SECRET, "%s", why->msg);
	answer(e, &bad);
}

static void on_late(void *arg)
{
	struct egress *e = arg;
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_CREDENTIAL_BUSY, "not all workers came up in time");
	answer(e, &err);
}

static int prepare_one(struct egress *e, const struct egress_portal *host,
		       struct err *err)
{
	struct worker *w = free_place(e), *was = egress_host_find(e, host->name);
	struct host_word word = {.same = was ? place_of(was) : HOST_NO_PLACE,
				 .host = *host};

	if (!w)
		return err_set_id(err, ERRID_CREDENTIAL_BUSY,
				  "keys that were replaced have requests under way yet");
	take_place(w, host);
	word.place = place_of(w);
	word.turn = w->turn;
	e->next.worker[e->next.n++] = w;
	return tell_parent(e, &word, err);
}

void egress_hosts_prepare(struct egress *e, const struct egress_portal *hosts, size_t n,
			  egress_hosts_done *done, void *arg)
{
	struct err err = ERR_INIT;

	assert(!e->next.done && n <= EGRESS_HOSTS_MAX);
	if (!e->next.late)
		e->next.late = loop_timer_new(e->loop, on_late, e);
	e->next.done = done;
	e->next.arg = arg;
	e->next.n = 0;
	e->next.missing = n;
	for (size_t i = 0; i < n; i++)
		if (prepare_one(e, &hosts[i], &err) < 0) {
			answer(e, &err);
			return;
		}
	if (n == 0)
		answer(e, NULL);
	else
		loop_timer_arm(e->next.late, LATE_USEC);
}

bool egress_hosts_is_new(const struct egress *e, size_t i)
{
	return e->next.worker[i]->host == HOST_PREPARED;
}

/* Is there one of that name among the next ones, and another than w? */
static bool is_replaced(const struct worker *w)
{
	const struct egress *e = w->egress;

	for (size_t i = 0; i < e->next.n; i++)
		if (e->next.worker[i] != w && str_eq(e->next.worker[i]->name, w->name))
			return true;
	return false;
}

static bool is_kept(const struct worker *w)
{
	const struct egress *e = w->egress;

	for (size_t i = 0; i < e->next.n; i++)
		if (e->next.worker[i] == w)
			return true;
	return false;
}

/* Of one name at most one goes on beside the one in force. */
static bool may_stay(const struct worker *w)
{
	const struct worker *is = egress_host_find(w->egress, egress_host_name(w));

	return is && is_kept(is);
}

void egress_hosts_commit(struct egress *e)
{
	size_t first = egress_first_host(&e->cfg);

	for (size_t i = first; i < e->n; i++)
		if (e->worker[i].host == HOST_REPLACED && !may_stay(&e->worker[i]))
			end_host(&e->worker[i]);
	for (size_t i = first; i < e->n; i++) {
		struct worker *w = &e->worker[i];

		if (w->host != HOST_IN_FORCE || is_kept(w))
			continue;
		if (is_replaced(w) && w->n_calls > 0)
			w->host = HOST_REPLACED;
		else
			end_host(w);
	}
	for (size_t i = 0; i < e->next.n; i++)
		e->next.worker[i]->host = HOST_IN_FORCE;
	e->next.n = 0;
}

/* ---- what the parent says ---- */

int egress_host_told(struct egress *e, const unsigned char *data, size_t len,
		     struct err *err)
{
	size_t head = 2 + EGRESS_TURN_BYTES, used;
	struct err why = ERR_INIT;
	struct egress_frame f;
	struct worker *w, *was;

	if (len < head || data[1] >= e->n || !egress_is_host(&e->worker[data[1]]))
		return egress_broken(err, "the parent names no place");
	w = &e->worker[data[1]];
	if (w->host != HOST_PREPARED || egress_turn(data + 2) != w->turn || !e->next.done)
		return 0;
	if (data[0] == EGRESS_PARENT_REFUSED) {
		if (egress_frame_next((const char *)data + head, len - head, &f, &used,
				      err) != 1 ||
		    f.type != EGRESS_F_FAILED ||
		    egress_failed_parse(f.data, f.len, &why, err) < 0)
			return egress_broken(err, "the parent refuses, and not why");
		egress_host_began(w, &why);
		return 0;
	}
	was = egress_host_find(e, egress_host_name(w));
	if (len != head || !was)
		return egress_broken(err, "the parent keeps a key that is not there");
	for (size_t i = 0; i < e->next.n; i++)
		if (e->next.worker[i] == w)
			e->next.worker[i] = was;
	w->host = HOST_NOBODY;
	is_as_it_shall(e);
	return 0;
}
