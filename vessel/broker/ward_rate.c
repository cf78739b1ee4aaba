/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A bucket for each limiting rule and identity. What is kept is one moment: when it will
 * be full again. So a bucket that is full need not be kept, and how many there are is
 * bounded by how many were used within a window. In the vessel's memory: a restart fills
 * them, which the budgets of a day, kept in the database, do not forget.
 */
#include "vessel/broker/ward.h"

#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct bucket {
	size_t rule; /* place in the list */
	char *identity;
	usec_t full_at;
};

struct ward_rates {
	struct bucket *bucket;
	size_t n;
};

struct ward_rates *ward_rates_new(void)
{
	return xnew(struct ward_rates);
}

void ward_rates_free(struct ward_rates *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->bucket[i].identity);
	free(r->bucket);
	free(r);
}

static struct bucket *find(struct ward_rates *r, size_t rule, const char *identity)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->bucket[i].rule == rule && str_eq(r->bucket[i].identity, identity))
			return &r->bucket[i];
	return NULL;
}

static void forget_full(struct ward_rates *r, usec_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->bucket[i].full_at > now)
			r->bucket[kept++] = r->bucket[i];
		else
			free(r->bucket[i].identity);
	}
	r->n = kept;
}

/* NULL: too many that are in use. */
static struct bucket *add(struct ward_rates *r, size_t rule, const char *identity)
{
	if (r->n >= WARD_RATES_MAX)
		return NULL;
	r->bucket = xreallocarray(r->bucket, r->n + 1, sizeof(*r->bucket));
	r->bucket[r->n] = (struct bucket){.rule = rule, .identity = xstrdup(identity)};
	return &r->bucket[r->n++];
}

static usec_t one_takes(const struct conf_rule *rule)
{
	usec_t each = rule->limit_window_usec / rule->limit_count;

	return each ? each : 1;
}

/* How long until there is one; 0: now. */
static usec_t wait_for(struct ward_rates *r, const struct conf_rule *rule, size_t at,
		       const char *identity, usec_t now)
{
	const struct bucket *k = find(r, at, identity);
	usec_t each = one_takes(rule), room = each * rule->limit_count;

	if (!k || k->full_at <= now || k->full_at - now + each <= room)
		return 0;
	return k->full_at - now + each - room;
}

static bool limits(const struct conf_rule *rule, const struct ward_ask *ask)
{
	return rule->action == WARD_LIMIT && ward_match(rule, ask) == WARD_MATCHES;
}

static int refuse(size_t at, usec_t wait, unsigned *ret_retry_sec, struct err *err)
{
	unsigned sec = (unsigned)((wait + USEC_PER_SEC - 1) / USEC_PER_SEC);

	if (ret_retry_sec)
		*ret_retry_sec = sec;
	return err_set_id(err, ERRID_WARD_RATE,
			  "rate: rule %zu of the ward; again in %u s", at + 1, sec);
}

int ward_take(struct ward_rates *r, const struct conf_broker *b,
	      const struct ward_ask *ask, usec_t now, struct ward_verdict *ret,
	      unsigned *ret_retry_sec, struct err *err)
{
	if (ret_retry_sec)
		*ret_retry_sec = 0;
	if (ward_decide(b, ask, ret, err) < 0)
		return -1;
	if (ret->action != WARD_LIMIT)
		return 0;
	/* at once, so that none goes that was found before */
	if (r->n + b->n_rules > WARD_RATES_MAX)
		forget_full(r, now);
	for (size_t i = 0; i < b->n_rules; i++) {
		usec_t wait;

		if (!limits(&b->rule[i], ask))
			continue;
		wait = wait_for(r, &b->rule[i], i, ask->identity, now);
		if (wait)
			return refuse(i, wait, ret_retry_sec, err);
		if (!find(r, i, ask->identity) && !add(r, i, ask->identity))
			return refuse(i, USEC_PER_SEC, ret_retry_sec, err);
	}
	/* all have one: take it from each */
	for (size_t i = 0; i < b->n_rules; i++) {
		struct bucket *k;

		if (!limits(&b->rule[i], ask))
			continue;
		k = find(r, i, ask->identity);
		k->full_at =
			(k->full_at > now ? k->full_at : now) + one_takes(&b->rule[i]);
	}
	return 0;
}

/* ---- other rules ---- */

/* Two limits of the same requests. */
static bool is_about_same(const struct conf_rule *a, const struct conf_rule *b)
{
	return a->action == WARD_LIMIT && b->action == WARD_LIMIT &&
	       a->target == b->target && str_eq(a->name, b->name) &&
	       a->is_suffix == b->is_suffix && a->scheme == b->scheme &&
	       a->port == b->port && str_eq(a->method, b->method) &&
	       str_eq(a->path, b->path) && a->protocol == b->protocol &&
	       a->push == b->push;
}

static bool is_as_much(const struct conf_rule *a, const struct conf_rule *b)
{
	return a->limit_count == b->limit_count &&
	       a->limit_window_usec == b->limit_window_usec;
}

/* For each rule of b without a place in `to` yet: that of the same limit in next. */
static void match(const struct conf_broker *b, const struct conf_broker *next,
		  bool need_as_much, const struct conf_rule **to)
{
	for (size_t i = 0; i < b->n_rules; i++) {
		for (size_t j = 0; !to[i] && j < next->n_rules; j++) {
			const struct conf_rule *rule = &next->rule[j];
			bool is_taken = false;

			if (!is_about_same(&b->rule[i], rule) ||
			    (need_as_much && !is_as_much(&b->rule[i], rule)))
				continue;
			for (size_t k = 0; k < b->n_rules; k++)
				is_taken |= to[k] == rule;
			if (!is_taken)
				to[i] = rule;
		}
	}
}

/* What was taken stays taken, but never more than there is. */
static usec_t full_again(const struct conf_rule *was, const struct conf_rule *is,
			 usec_t full_at, usec_t now)
{
	usec_t each = one_takes(was);
	uint64_t taken;

	if (full_at <= now || is_as_much(was, is))
		return full_at;
	taken = (full_at - now + each - 1) / each;
	if (taken > is->limit_count)
		taken = is->limit_count;
	return now + taken * one_takes(is);
}

void ward_rates_replace(struct ward_rates *r, const struct conf_broker *b,
			const struct conf_broker *next, usec_t now)
{
	const struct conf_rule *to[CONF_RULES_MAX] = {NULL};
	size_t kept = 0;

	assert(b->n_rules <= CONF_RULES_MAX);
	match(b, next, true, to);
	match(b, next, false, to);
	for (size_t i = 0; i < r->n; i++) {
		struct bucket *k = &r->bucket[i];
		const struct conf_rule *was = &b->rule[k->rule], *is = to[k->rule];

		if (!is) {
			free(k->identity);
			continue;
		}
		k->full_at = full_again(was, is, k->full_at, now);
		k->rule = (size_t)(is - next->rule);
		r->bucket[kept++] = *k;
	}
	r->n = kept;
}
