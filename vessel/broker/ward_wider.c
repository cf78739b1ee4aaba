/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Could other rules permit more than these? Judged by the rules as they stand, and not by what they mean
 * together: a rule that permits and is new, or one that denied and is gone, is wider; what a
 * person has to be asked too often for is no danger.
 */
#include "common/str.h"
#include "vessel/broker/ward.h"

static bool are_same_addresses(const struct conf_addresses *a,
			       const struct conf_addresses *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!str_eq(a->v[i], b->v[i]))
			return false;
	return true;
}

/* But for its reason, and where it stands. */
static bool is_same_rule(const struct conf_rule *a, const struct conf_rule *b)
{
	return a->target == b->target && a->action == b->action &&
	       str_eq(a->name, b->name) && a->is_suffix == b->is_suffix &&
	       a->scheme == b->scheme && a->port == b->port &&
	       str_eq(a->method, b->method) && str_eq(a->path, b->path) &&
	       a->limit_count == b->limit_count &&
	       a->limit_window_usec == b->limit_window_usec &&
	       str_eq(a->credential, b->credential) && a->replies == b->replies &&
	       a->protocol == b->protocol && a->push == b->push &&
	       are_same_addresses(&a->addresses, &b->addresses);
}

static bool has(const struct conf_broker *b, const struct conf_rule *rule)
{
	for (size_t i = 0; i < b->n_rules; i++)
		if (is_same_rule(&b->rule[i], rule))
			return true;
	return false;
}

static bool is_same_credential(const struct conf_credential *a,
			       const struct conf_credential *b)
{
	return str_eq(a->name, b->name) && str_eq(a->url.text, b->url.text) &&
	       a->form == b->form && str_eq(a->user, b->user) &&
	       str_eq(a->field, b->field) && str_eq(a->secret, b->secret) &&
	       are_same_addresses(&a->addresses, &b->addresses);
}

/* A key that is new, or is said to go elsewhere or otherwise. */
static bool has_other_keys(const struct conf_broker *b, const struct conf_broker *next)
{
	for (size_t i = 0; i < next->n_credentials; i++) {
		const struct conf_credential *is = &next->credential[i];
		const struct conf_credential *was = conf_credential_find(b, is->name);

		if (!was || !is_same_credential(is, was))
			return true;
	}
	return false;
}

bool ward_may_be_wider(const struct conf_broker *b, const struct conf_broker *next)
{
	for (size_t i = 0; i < next->n_rules; i++)
		if (next->rule[i].action != WARD_DENY && !has(b, &next->rule[i]))
			return true;
	/* a limit that is gone may have been stricter than what is left */
	for (size_t i = 0; i < b->n_rules; i++)
		if (b->rule[i].action != WARD_ALLOW && !has(next, &b->rule[i]))
			return true;
	return has_other_keys(b, next);
}
