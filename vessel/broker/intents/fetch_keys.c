/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See fetch_keys.h.
 */
#include "vessel/broker/intents/fetch_keys.h"

#include "common/str.h"
#include "vessel/broker/ward_path.h"

#include <string.h>

/* A classifier is one of the portals as codex.yaml has them. */
_Static_assert(CONF_PORTALS_MAX <= EGRESS_PORTALS_MAX &&
		       CONF_CREDENTIALS_MAX <= EGRESS_HOSTS_MAX,
	       "every key has its worker");
_Static_assert(CONF_PORTAL_NAME_SIZE <= EGRESS_NAME_SIZE, "a name fits");

static const enum headers_for dialects[PORTAL_KIND_MAX_] = {
	[PORTAL_OPENAI] = HEADERS_OPENAI,
	[PORTAL_ANTHROPIC] = HEADERS_ANTHROPIC,
	[PORTAL_GEMINI] = HEADERS_GEMINI,
};

static struct egress_portal of_portal(const struct conf_portal *p)
{
	return (struct egress_portal){
		.name = p->name,
		.url = p->url.text,
		.dialect = dialects[p->kind],
		.secret = p->secret,
		.is_local = conf_url_is_loopback(&p->url),
		.addresses = (const char *const *)p->addresses.v,
		.n_addresses = p->addresses.n,
	};
}

static struct egress_portal of_credential(const struct conf_credential *c)
{
	return (struct egress_portal){
		.name = c->name,
		.url = c->origin,
		.dialect = HEADERS_FETCH,
		.secret = c->secret,
		.addresses = (const char *const *)c->addresses.v,
		.n_addresses = c->addresses.n,
		.is_host = true,
		.path = c->url.path,
		.field = c->field,
		.user = c->user,
	};
}

size_t fetch_keys_portals(const struct conf_broker *b,
			  struct egress_portal ret[EGRESS_PORTALS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_portals; i++)
		ret[n++] = of_portal(&b->portal[i]);
	if (conf_classifier(b))
		ret[n++] = of_portal(&b->classifier);
	return n;
}

size_t fetch_keys_hosts(const struct conf_broker *b,
			struct egress_portal ret[EGRESS_HOSTS_MAX])
{
	for (size_t i = 0; i < b->n_credentials; i++)
		ret[i] = of_credential(&b->credential[i]);
	return b->n_credentials;
}

/* Does the path of a URL, target, go to base or below? */
static bool is_below(const struct url *u, const char *base)
{
	size_t n = strlen(base);

	return n <= u->path_len && strncmp(u->target, base, n) == 0 &&
	       (n == u->path_len || u->target[n] == '/');
}

static bool may_climb(const struct url *u)
{
	char path[URL_BYTES_MAX + 1];

	memcpy(path, u->target, u->path_len);
	path[u->path_len] = '\0';
	return ward_path_may_climb(path);
}

const char *fetch_key_at(const struct url *u, const struct conf_broker *b,
			 const struct ward_verdict *v, const char **ret_target)
{
	const struct conf_url *place;
	const char *name =
		v->credential ? conf_key_place(b, v->credential, &place) : NULL;
	bool is_portal = name && !conf_credential_find(b, name);
	size_t n;

	if (!name || u->https != place->https || u->port != place->port ||
	    !str_eq(u->host, place->host) || !is_below(u, place->path) || may_climb(u))
		return NULL;
	n = is_portal ? strlen(place->path) : 0;
	/* a portal's own URL is no place of its API */
	if (u->target[n] != '/')
		return NULL;
	*ret_target = u->target + n;
	return name;
}

const char *fetch_key(const struct fetch *f, const struct conf_broker *b,
		      const struct ward_verdict *v, const char **ret_target)
{
	return f->left_origin ? NULL : fetch_key_at(&f->url, b, v, ret_target);
}
