/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent.
 * See places.h.
 */
#include "vessel/egress/hosts/places.h"

#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 64u /* secrets that were named since the start */

struct place {
	char *secret, *url, *path, *field, *user;
	char *address[EGRESS_ADDRESSES_MAX];
	size_t n_addresses;
};

struct places {
	struct place place[PLACES_MAX];
	size_t n;
};

struct places *places_new(void)
{
	return xnew(struct places);
}

static void done(struct place *p)
{
	free(p->secret);
	free(p->url);
	free(p->path);
	free(p->field);
	free(p->user);
	for (size_t i = 0; i < p->n_addresses; i++)
		free(p->address[i]);
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		done(&p->place[i]);
	free(p);
}

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void add(struct places *p, const struct egress_portal *host)
{
	struct place *new = &p->place[p->n++];

	*new = (struct place){.secret = xstrdup(host->secret),
			      .url = xstrdup(host->url),
			      .path = xstrdup(host->path),
			      .field = copy(host->field),
			      .user = copy(host->user)};
	for (size_t i = 0; i < host->n_addresses && i < EGRESS_ADDRESSES_MAX; i++)
		new->address[new->n_addresses++] = xstrdup(host->addresses[i]);
}

static bool has_address(const char *const *addresses, size_t n, const char *address)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(addresses[i], address))
			return true;
	return false;
}

/* At that path or below it, where a segment ends. */
static bool is_below(const char *path, const char *base)
{
	size_t n = strlen(base);

	return strncmp(path, base, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_within(const struct egress_portal *host, const struct place *p)
{
	for (size_t i = 0; i < host->n_addresses; i++)
		if (!has_address((const char *const *)p->address, p->n_addresses,
				 host->addresses[i]))
			return false;
	return str_eq(host->url, p->url) && is_below(host->path, p->path) &&
	       str_eq(host->field, p->field) && str_eq(host->user, p->user);
}

int places_take(struct places *p, const struct egress_portal *host, struct err *err)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct place *there = &p->place[i];

		if (!str_eq(there->secret, host->secret))
			continue;
		if (is_within(host, there))
			return 0;
		return err_set_id(err, ERRID_CREDENTIAL_PLACE,
				  "credential %s: %s was for %.100s%.100s", host->name,
				  host->secret, there->url, there->path);
	}
	if (p->n == PLACES_MAX)
		return err_set_id(err, ERRID_CREDENTIAL_MANY, "%u since the start",
				  PLACES_MAX);
	add(p, host);
	return 0;
}

bool places_are_same(const struct egress_portal *a, const struct egress_portal *b)
{
	for (size_t i = 0; i < a->n_addresses; i++)
		if (!has_address(b->addresses, b->n_addresses, a->addresses[i]))
			return false;
	return a->n_addresses == b->n_addresses && str_eq(a->name, b->name) &&
	       str_eq(a->url, b->url) && str_eq(a->path, b->path) &&
	       str_eq(a->secret, b->secret) && str_eq(a->field, b->field) &&
	       str_eq(a->user, b->user);
}
