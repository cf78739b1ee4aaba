/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See turns.h.
 */
#include "vessel/broker/gate/turns.h"

#include <assert.h>

void turns_join(const struct turns_line *l, struct turns_account *a)
{
	if (a->waiting++ > 0)
		return;
	a->since = l->served;
	if (a->used < l->at)
		a->used = l->at;
}

void turns_leave(struct turns_account *a)
{
	assert(a->waiting > 0);
	a->waiting--;
}

static bool is_overdue(const struct turns_line *l, const struct turns_account *a)
{
	return l->served - a->since >= TURNS_PASSED_MAX;
}

bool turns_is_before(const struct turns_line *l, const struct turns_account *x,
		     const struct turns_account *y)
{
	if (is_overdue(l, x) || is_overdue(l, y))
		return x->since < y->since;
	return x->used < y->used;
}

void turns_serve(struct turns_line *l, struct turns_account *a, uint64_t cost)
{
	/* who has much and was passed over long is not where the others are */
	if (!is_overdue(l, a) && a->used > l->at)
		l->at = a->used;
	a->used += cost;
	a->since = ++l->served;
}

void turns_give_back(struct turns_account *a, uint64_t n)
{
	assert(n <= a->used);
	a->used -= n;
}
