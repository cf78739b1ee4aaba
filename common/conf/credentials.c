/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The key credentials of codex.yaml: keys for hosts that are no portals. A rule of the ward names
 * one to give it to a request; it goes below its own place and nowhere else.
 */
#include "common/conf/priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECRET_PREFIX "host_"
#define FIELD_NAME_MAX_BYTES 64
#define USER_MAX_BYTES 64
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static const cyaml_schema_value_t string_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CONF_VALUE_MAX),
};
static const cyaml_schema_field_t credential_fields[] = {
	CONF_STR("name", raw_credential, name),
	CONF_STR("host", raw_credential, host),
	CONF_STR("port", raw_credential, port),
	CONF_STR("path", raw_credential, path),
	CONF_STR("header", raw_credential, header),
	CONF_STR("user", raw_credential, user),
	CONF_STR("secret", raw_credential, secret),
	CONF_LIST("addresses", raw_credential, addresses, string_schema,
		  CONF_ADDRESSES_MAX),
	CYAML_FIELD_END,
};
const cyaml_schema_value_t conf_credential_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_credential, credential_fields),
};

const struct conf_credential *conf_credential_find(const struct conf_broker *b,
						   const char *name)
{
	for (size_t i = 0; i < b->n_credentials; i++)
		if (str_eq(b->credential[i].name, name))
			return &b->credential[i];
	return NULL;
}

const char *conf_key_place(const struct conf_broker *b, const char *name,
			   const struct conf_url **ret_place)
{
	const struct conf_credential *c = conf_credential_find(b, name);
	const struct conf_portal *p = conf_portal_find(b, name);

	if (c) {
		*ret_place = &c->url;
		return c->name;
	}
	if (!p || !p->secret)
		return NULL;
	*ret_place = &p->url;
	return p->name;
}

const char *conf_broker_secret(const struct conf_broker *b, size_t at)
{
	const struct conf_portal *classifier = conf_classifier(b);

	for (size_t i = 0; i < b->n_portals; i++)
		if (b->portal[i].secret && at-- == 0)
			return b->portal[i].secret;
	if (classifier && classifier->secret && at-- == 0)
		return classifier->secret;
	return at < b->n_credentials ? b->credential[at].secret : NULL;
}

/* ---- where it goes ---- */

static int read_place(const struct conf_item *item, const struct raw_credential *raw,
		      struct conf_credential *c)
{
	cleanup_free char *text = NULL;
	bool is_v6 = raw->host && strchr(raw->host, ':');
	struct err why = ERR_INIT;
	uint64_t port = 443;

	/* by the grammar of rules: what no rule can name gets no key */
	if (!raw->host || !conf_host_is_plain(raw->host))
		return conf_fail_item(item, "host",
				      "one exact name in lower case, or an address: no "
				      "pattern, no port, no scheme");
	if (raw->port && parse_u64(raw->port, 1, 65535, &port, &why) < 0)
		return conf_fail_item(item, "port", why.msg);
	if (!raw->path)
		return conf_fail_item(item, "path",
				      "it is missing: below which path the key may go; / "
				      "is the whole host");
	if (conf_path_check(raw->path, &why) < 0)
		return conf_fail_item(item, "path", why.msg);
	if (strlen(raw->path) > 1 && str_ends(raw->path, "/"))
		return conf_fail_item(item, "path",
				      "no slash at its end: what is below it is meant "
				      "anyway");
	text = xasprintf("https://%s%s%s:%u%s", is_v6 ? "[" : "", raw->host,
			 is_v6 ? "]" : "", (unsigned)port, raw->path);
	if (conf_url_parse(text, &c->url, &why) < 0)
		return conf_fail_item(item, "host", why.msg);
	c->origin = xstrndup(c->url.text, strlen(c->url.text) - strlen(c->url.path));
	return 0;
}

static int check_address(const struct conf_item *item, const struct conf_credential *c)
{
	for (size_t i = 0; c->url.is_address && i < c->addresses.n; i++)
		if (str_eq(c->addresses.v[i], c->url.host))
			return 0;
	return c->url.is_address
		       ? conf_fail_item(item, "host",
					"an address instead of a name must stand in "
					"addresses too")
		       : 0;
}

/* ---- how it goes ---- */

/* What a job may say itself, or what says where a message ends and to whom it goes. */
static bool is_taken_field(const char *name)
{
	static const char *const taken[] = {"accept",
					    "connection",
					    "expect",
					    "git-protocol",
					    "host",
					    "keep-alive",
					    "te",
					    "trailer",
					    "upgrade",
					    "user-agent",
					    "cookie",
					    "range",
					    "transfer-encoding"};
	static const char *const families[] = {"accept-", "content-", "proxy-"};

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (strcasecmp(name, taken[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (strncasecmp(name, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}

static int read_header(const struct conf_item *item, const struct raw_credential *raw,
		       struct conf_credential *c)
{
	const char *h = raw->header;

	c->form = h && str_eq(h, "bearer")  ? CREDENTIAL_BEARER
		  : h && str_eq(h, "basic") ? CREDENTIAL_BASIC
					    : CREDENTIAL_FIELD;
	if (!h || strlen(h) > FIELD_NAME_MAX_BYTES || !strchr(LETTERS, h[0]) ||
	    strspn(h, LETTERS DIGITS "-") != strlen(h) || is_taken_field(h))
		return conf_fail_item(item, "header",
				      "bearer, basic (with a user), or the name of the "
				      "header field that takes it, such as X-Api-Key; "
				      "none that a request has anyway");
	if (c->form == CREDENTIAL_FIELD)
		c->field = xstrdup(h);
	if ((c->form == CREDENTIAL_BASIC) != (raw->user != NULL))
		return conf_fail_item(item, "user",
				      "with header basic, and only with it");
	if (!raw->user)
		return 0;
	if (strlen(raw->user) > USER_MAX_BYTES ||
	    strspn(raw->user, LETTERS DIGITS "._@+-") != strlen(raw->user))
		return conf_fail_item(item, "user",
				      "letters, digits and ._@+-, at most 64");
	c->user = xstrdup(raw->user);
	return 0;
}

static int read_secret(const struct conf_item *item, const char *value,
		       const struct conf_broker *before, struct conf_credential *c)
{
	if (!value || !conf_secret_name_ok(value, SECRET_PREFIX))
		return conf_fail_item(item, "secret",
				      "a secret's name that begins with host_: the key "
				      "itself never stands here");
	for (size_t i = 0; i < before->n_credentials; i++)
		if (str_eq(before->credential[i].secret, value))
			return conf_fail_item(item, "secret",
					      "another credential has it already: a key "
					      "goes to one place and to no other");
	c->secret = xstrdup(value);
	return 0;
}

static int read_credential(const struct conf_item *item, const struct raw_credential *raw,
			   const struct conf_broker *before, struct conf_credential *c)
{
	if (!raw->name || !conf_portal_name_ok(raw->name))
		return conf_fail_item(item, "name",
				      "lower-case letters, digits and '_', at most 32, a "
				      "letter first");
	if (conf_credential_find(before, raw->name) ||
	    conf_portal_find(before, raw->name) ||
	    str_eq(before->classifier.name, raw->name))
		return conf_fail_item(item, "name",
				      "another credential, or a portal, has it already");
	c->name = xstrdup(raw->name);
	if (conf_addresses_read(item, raw->addresses, raw->addresses_count,
				&c->addresses) < 0 ||
	    read_place(item, raw, c) < 0 || check_address(item, c) < 0 ||
	    read_header(item, raw, c) < 0)
		return -1;
	return read_secret(item, raw->secret, before, c);
}

int conf_credentials_read(const struct conf_reader *r, const struct raw_credential *raw,
			  unsigned n, struct conf_broker *b)
{
	b->credential = xcalloc(n + 1, sizeof(*b->credential));
	for (unsigned i = 0; i < n; i++) {
		const struct conf_item item = {.r = r, .list = "credentials", .at = i};
		const struct conf_broker before = *b;

		b->n_credentials++; /* half-built ones are freed with the rest */
		if (read_credential(&item, &raw[i], &before, &b->credential[i]) < 0)
			return -1;
	}
	return 0;
}

void conf_credentials_done(struct conf_broker *b)
{
	for (size_t i = 0; i < b->n_credentials; i++) {
		struct conf_credential *c = &b->credential[i];

		free(c->name);
		free(c->origin);
		free(c->field);
		free(c->user);
		free(c->secret);
		conf_url_done(&c->url);
		conf_addresses_done(&c->addresses);
	}
	free(b->credential);
}
