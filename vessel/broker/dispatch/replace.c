/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Other rules, while requests are under way: each that was permitted is judged again in the same turn
 * of the loop, and cut where the new rules would not permit it, or not with the key and the
 * addresses that it has. Nothing points at the old rules afterwards.
 */
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"

/* Permitted, and not at an end. The next hop of a redirect is judged anyway, before it is sent. */
static const bool is_under_way[DISPATCH_STATES_] = {
	[WAY_RESERVE] = true,	    [WAY_RESERVE_GATE] = true, [WAY_RESERVE_LOG] = true,
	[WAY_RESERVE_READY] = true, [WAY_GATE] = true,	       [WAY_LOG] = true,
	[WAY_SENT] = true,	    [WAY_REPLY] = true,	       [WAY_PAUSED] = true,
	[WAY_DRAIN] = true,	    [WAY_GATHER] = true,
};

static bool has_address(const struct conf_addresses *a, const char *address)
{
	for (size_t i = 0; a && i < a->n; i++)
		if (str_eq(a->v[i], address))
			return true;
	return false;
}

/* All that a rule gave to it is given by one still. */
static bool has_gifts(const struct ward_verdict *was, const struct ward_verdict *is)
{
	if (was->credential && !str_eq(was->credential, is->credential))
		return false;
	if (was->replies > is->replies || (was->git && was->git != is->git))
		return false;
	for (size_t i = 0; was->addresses && i < was->addresses->n; i++)
		if (!has_address(is->addresses, was->addresses->v[i]))
			return false;
	return true;
}

static int judge(const struct dispatch_call *c, struct ward_verdict *ret, struct err *err)
{
	int r = ward_decide(c->d->cfg.broker, &c->ward, ret, err);

	/* what a person allowed stays so, unless a rule denies it now */
	if (r < 0 && err->id == ERRID_WARD_NOT_ALLOWED && dispatch_is_by_proposal(c)) {
		*ret = c->verdict;
		*err = (struct err)ERR_INIT;
		r = 0;
	}

	if (c->kind->still)
		r = c->kind->still(c, r, ret, err);
	if (r == 0 && !has_gifts(&c->verdict, ret))
		return err_set(err, ERR_DENIED,
			       "no rule gives it that key, those addresses or those "
			       "replies");
	return r;
}

/* The name of its key, from where it stays. */
static const char *key_of(const struct dispatch_call *c)
{
	const struct conf_url *place;

	return conf_key_place(c->d->cfg.broker, c->verdict.credential, &place);
}

/* Did that cut it? */
static bool replace(struct dispatch_call *c)
{
	struct ward_verdict now = {.action = WARD_DENY};
	struct err said = ERR_INIT, why = ERR_INIT;
	const char *key = key_of(c);
	enum ward_replies replies = c->verdict.replies;
	enum git_request git = c->verdict.git;
	bool is_judged = is_under_way[c->machine.way] && c->verdict.rule;
	int r = is_judged ? judge(c, &now, &said) : -1;

	if (!is_judged) /* the log has the number that it was refused by */
		now.number = c->verdict.number;
	/* what it was permitted with, and no more: that is what the log has */
	now.credential = key;
	now.replies = replies;
	now.git = git;
	if (r < 0 || !c->verdict.addresses)
		now.addresses = NULL;
	c->verdict = now;
	if (!is_judged || r == 0)
		return false;
	c->d->fig.outlawed++;
	(void)err_set_id(&why, ERRID_WARD_CHANGED, "%s", said.msg);
	dispatch_on(c, ON_CUT, &why);
	return true;
}

unsigned dispatch_replace_ward(struct dispatch *d, struct conf_broker *next)
{
	unsigned n = 0;

	d->ops->replace(d->env, next);
	for (struct dispatch_call *c = d->calls, *following; c; c = following) {
		following = c->next;
		n += replace(c);
	}
	return n;
}
