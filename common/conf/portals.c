/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The keys portals and registries of codex.yaml: to whom the vessel may speak at all.
 */
#include "common/conf/priv.h"

#include "common/mem.h"
#include "common/str.h"

#include <stdio.h>

#define SECRET_PREFIX "portal_"
#define SECRET_NAME_MAX_BYTES 64

static const cyaml_schema_value_t string_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CONF_VALUE_MAX),
};
static const cyaml_schema_field_t portal_fields[] = {
	CONF_STR("name", raw_portal, name),
	CONF_STR("kind", raw_portal, kind),
	CONF_STR("url", raw_portal, url),
	CONF_STR("secret", raw_portal, secret),
	CONF_STR("max_output", raw_portal, max_output),
	CONF_STR("output_cap", raw_portal, output_cap),
	CONF_LIST("betas", raw_portal, betas, string_schema, CONF_BETAS_MAX),
	CONF_LIST("lacks", raw_portal, lacks, string_schema, PORTAL_API_MAX_),
	CONF_LIST("models", raw_portal, models, conf_model_schema, CONF_MODELS_MAX),
	CONF_LIST("addresses", raw_portal, addresses, string_schema, CONF_ADDRESSES_MAX),
	CYAML_FIELD_END,
};
const cyaml_schema_value_t conf_portal_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_portal, portal_fields),
};
static const cyaml_schema_field_t registry_fields[] = {
	CONF_STR("url", raw_registry, url),
	CONF_LIST("file_hosts", raw_registry, file_hosts, string_schema,
		  CONF_FILE_HOSTS_MAX),
	CONF_LIST("addresses", raw_registry, addresses, string_schema,
		  CONF_ADDRESSES_MAX),
	CYAML_FIELD_END,
};
const cyaml_schema_field_t conf_registries_fields[] = {
	CONF_MAP("npm", raw_registries, npm, registry_fields),
	CONF_MAP("pypi", raw_registries, pypi, registry_fields),
	CONF_MAP("cargo", raw_registries, cargo, registry_fields),
	CONF_MAP("go", raw_registries, go, registry_fields),
	CYAML_FIELD_END,
};

static const char *const portal_kinds[] = {
	[PORTAL_OPENAI] = "openai",
	[PORTAL_ANTHROPIC] = "anthropic",
	[PORTAL_GEMINI] = "gemini",
};
static const struct {
	const char *name;
	enum portal_kind kind;
} portal_apis[] = {
	[API_CHAT] = {"chat", PORTAL_OPENAI},
	[API_RESPONSES] = {"responses", PORTAL_OPENAI},
	[API_EMBEDDINGS] = {"embeddings", PORTAL_OPENAI},
	[API_MESSAGES] = {"messages", PORTAL_ANTHROPIC},
	[API_COUNT_TOKENS] = {"count_tokens", PORTAL_ANTHROPIC},
	[API_GENERATE] = {"generate", PORTAL_GEMINI},
	[API_COUNT_CONTENTS] = {"count_tokens", PORTAL_GEMINI},
};
static const char *const portal_caps[] = {
	[CAP_MAX_TOKENS] = "max_tokens",
	[CAP_MAX_COMPLETION_TOKENS] = "max_completion_tokens",
};
static const char *const registry_kinds[] = {
	[REGISTRY_NPM] = "npm",
	[REGISTRY_PYPI] = "pypi",
	[REGISTRY_CARGO] = "cargo",
	[REGISTRY_GO] = "go",
};

const char *portal_kind_name(enum portal_kind k)
{
	return k < PORTAL_KIND_MAX_ ? portal_kinds[k] : NULL;
}

const char *portal_api_name(enum portal_api a)
{
	return a < PORTAL_API_MAX_ ? portal_apis[a].name : NULL;
}

enum portal_kind portal_api_kind(enum portal_api a)
{
	return portal_apis[a].kind;
}

bool conf_portal_has(const struct conf_portal *p, enum portal_api a)
{
	return portal_apis[a].kind == p->kind && !(p->lacks & (1u << a));
}

void conf_portal_apis(const struct conf_portal *p, char out[PORTAL_APIS_TEXT_SIZE])
{
	size_t n = 0;

	out[0] = '\0';
	for (unsigned a = 0; a < PORTAL_API_MAX_; a++) {
		const char *name = portal_apis[a].name;

		if (!conf_portal_has(p, (enum portal_api)a))
			continue;
		(void)snprintf(out + n, PORTAL_APIS_TEXT_SIZE - n, "%s%s", n ? ", " : "",
			       name);
		n = strlen(out);
	}
}

const char *portal_cap_name(enum portal_cap c)
{
	return c < PORTAL_CAP_MAX_ ? portal_caps[c] : NULL;
}

const char *registry_kind_name(enum registry_kind k)
{
	return k < REGISTRY_KIND_MAX_ ? registry_kinds[k] : NULL;
}

bool registry_kind_from_name(const char *name, enum registry_kind *ret)
{
	for (unsigned k = 0; k < REGISTRY_KIND_MAX_; k++)
		if (str_eq(registry_kinds[k], name)) {
			*ret = (enum registry_kind)k;
			return true;
		}
	return false;
}

bool conf_portal_secret_is_local(const struct conf_broker *b, const char *secret)
{
	for (size_t i = 0; i < b->n_portals; i++)
		if (b->portal[i].secret && str_eq(b->portal[i].secret, secret))
			return conf_url_is_loopback(&b->portal[i].url);
	return b->classifier.secret && str_eq(b->classifier.secret, secret) &&
	       conf_url_is_loopback(&b->classifier.url);
}

const struct conf_portal *conf_portal_find(const struct conf_broker *b, const char *name)
{
	for (size_t i = 0; i < b->n_portals; i++)
		if (str_eq(b->portal[i].name, name))
			return &b->portal[i];
	return NULL;
}

const struct conf_portal *conf_portal_of_model(const struct conf_broker *b,
					       enum portal_kind kind, const char *model,
					       const struct conf_model **ret_model)
{
	for (size_t i = 0; i < b->n_portals; i++) {
		const struct conf_portal *p = &b->portal[i];

		for (size_t m = 0; p->kind == kind && m < p->n_models; m++) {
			if (!str_eq(p->model[m].name, model))
				continue;
			if (ret_model)
				*ret_model = &p->model[m];
			return p;
		}
	}
	return NULL;
}

/* ---- what portals, registries and rules share ---- */

int conf_addresses_read(const struct conf_item *item, char *const *raw, unsigned n,
			struct conf_addresses *ret)
{
	ret->v = xcalloc(n + 1, sizeof(*ret->v));
	for (unsigned i = 0; i < n; i++) {
		ret->v[i] = conf_address(raw[i]);
		if (!ret->v[i])
			return conf_fail_item(
				item, "addresses",
				"each is one IP address, exactly: no name, no range, "
				"no IPv4 inside of IPv6");
		ret->n++;
	}
	return 0;
}

void conf_addresses_done(struct conf_addresses *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
	*a = (struct conf_addresses){0};
}

static bool addresses_have(const struct conf_addresses *a, const char *host)
{
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(a->v[i], host))
			return true;
	return false;
}

static int read_base_url(const struct conf_item *item, const char *text,
			 const struct conf_addresses *addresses, struct conf_url *ret)
{
	struct err why = ERR_INIT;

	if (!text)
		return conf_fail_item(item, "url", "it is missing");
	if (conf_url_parse(text, ret, &why) < 0)
		return conf_fail_item(item, "url", why.msg);
	if (ret->is_address && !addresses_have(addresses, ret->host))
		return conf_fail_item(item, "url",
				      "an address instead of a name must stand in "
				      "addresses too");
	if (!ret->https && !(ret->is_address && conf_address_is_local(ret->host)))
		return conf_fail_item(item, "url",
				      "https; http only to an address of this machine or "
				      "its network, such as 127.0.0.1, that addresses "
				      "names");
	return 0;
}

/* ---- portals ---- */

bool conf_portal_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len < CONF_PORTAL_NAME_SIZE && name[0] >= 'a' &&
	       name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static bool secret_is_named(const struct conf_broker *b, const char *name)
{
	for (size_t i = 0; i < b->n_portals; i++)
		if (b->portal[i].secret && str_eq(b->portal[i].secret, name))
			return true;
	return b->classifier.secret && str_eq(b->classifier.secret, name);
}

bool conf_secret_name_ok(const char *name, const char *prefix)
{
	size_t len = strlen(name);

	return str_starts(name, prefix) && len > strlen(prefix) &&
	       len <= SECRET_NAME_MAX_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

/* A key is in one process, the one of its portal, and goes to that portal's URL only. */
static int read_secret(const struct conf_item *item, const char *value,
		       const struct conf_broker *before, char **ret)
{
	if (!value || str_eq(value, "none"))
		return 0;
	if (!conf_secret_name_ok(value, SECRET_PREFIX))
		return conf_fail_item(item, "secret",
				      "none, or a secret's name that begins with "
				      "portal_: the key itself never stands here");
	if (secret_is_named(before, value))
		return conf_fail_item(
			item, "secret",
			"another portal has it already: a key goes to one "
			"portal's URL and to no other, so each has its own");
	*ret = xstrdup(value);
	return 0;
}

static int read_kind(const struct conf_item *item, const char *value,
		     enum portal_kind *ret)
{
	for (unsigned i = 0; value && i < PORTAL_KIND_MAX_; i++)
		if (str_eq(value, portal_kinds[i])) {
			*ret = (enum portal_kind)i;
			return 0;
		}
	return conf_fail_item(item, "kind",
			      "openai, anthropic or gemini; or " CONF_KIND_CLASSIFIER
			      ", for the gate's second opinion");
}

static int read_output_cap(const struct conf_item *item, const char *value,
			   struct conf_portal *p)
{
	if (!value)
		return 0;
	if (p->kind != PORTAL_OPENAI)
		return conf_fail_item(item, "output_cap", "only with kind openai");
	for (unsigned i = 0; i < PORTAL_CAP_MAX_; i++)
		if (str_eq(value, portal_caps[i])) {
			p->output_cap = (enum portal_cap)i;
			return 0;
		}
	return conf_fail_item(item, "output_cap", "max_tokens or max_completion_tokens");
}

static int read_betas(const struct conf_item *item, const struct raw_portal *raw,
		      struct conf_portal *p)
{
	if (raw->betas_count && p->kind != PORTAL_ANTHROPIC)
		return conf_fail_item(item, "betas", "only with kind anthropic");
	p->beta = xcalloc(raw->betas_count + 1, sizeof(*p->beta));
	for (unsigned i = 0; i < raw->betas_count; i++) {
		if (!conf_beta_ok(raw->betas[i]))
			return conf_fail_item(item, "betas",
					      "each is a name: letters, digits and ._-, "
					      "at most 64");
		p->beta[p->n_betas++] = xstrdup(raw->betas[i]);
	}
	return 0;
}

static int read_lacks(const struct conf_item *item, const struct raw_portal *raw,
		      struct conf_portal *p)
{
	const struct conf_portal whole = {.kind = p->kind};
	char left[PORTAL_APIS_TEXT_SIZE];

	for (unsigned i = 0; i < raw->lacks_count; i++) {
		unsigned a = 0;

		while (a < PORTAL_API_MAX_ &&
		       (portal_apis[a].kind != p->kind ||
			!str_eq(portal_apis[a].name, raw->lacks[i])))
			a++;
		if (a == PORTAL_API_MAX_) {
			conf_portal_apis(&whole, left);
			return conf_fail_item(item, "lacks", left);
		}
		p->lacks |= 1u << a;
	}
	conf_portal_apis(p, left);
	return *left ? 0
		     : conf_fail_item(item, "lacks",
				      "all that its kind has: nothing could be asked");
}

int conf_portal_place_read(const struct conf_item *item, const struct raw_portal *raw,
			   const struct conf_broker *before, struct conf_portal *p)
{
	if (conf_portal_find(before, raw->name) ||
	    str_eq(before->classifier.name, raw->name))
		return conf_fail_item(item, "name", "another portal has it already");
	p->name = xstrdup(raw->name);
	if (conf_addresses_read(item, raw->addresses, raw->addresses_count,
				&p->addresses) < 0 ||
	    read_base_url(item, raw->url, &p->addresses, &p->url) < 0)
		return -1;
	return read_secret(item, raw->secret, before, &p->secret);
}

static int read_portal(const struct conf_item *item, const struct raw_portal *raw,
		       const struct conf_broker *before, struct conf_portal *p)
{
	if (read_kind(item, raw->kind, &p->kind) < 0 ||
	    conf_portal_place_read(item, raw, before, p) < 0 ||
	    read_output_cap(item, raw->output_cap, p) < 0 ||
	    read_betas(item, raw, p) < 0 || read_lacks(item, raw, p) < 0 ||
	    conf_models_read(item, raw->models, raw->models_count, raw->max_output, p) <
		    0)
		return -1;
	for (size_t i = 0; i < p->n_models; i++)
		if (conf_portal_of_model(before, p->kind, p->model[i].name, NULL))
			return conf_fail_item(item, "models",
					      "another portal of this kind offers one of "
					      "them: a job names models, so which portal "
					      "would it be?");
	return 0;
}

int conf_portals_read(const struct conf_reader *r, const struct raw_portal *raw,
		      unsigned n, struct conf_broker *b)
{
	b->portal = xcalloc(n + 1, sizeof(*b->portal));
	for (unsigned i = 0; i < n; i++) {
		const struct conf_item item = {.r = r, .list = "portals", .at = i};
		const struct conf_broker before = *b;
		int ok;

		if (!raw[i].name || !conf_portal_name_ok(raw[i].name))
			return conf_fail_item(&item, "name",
					      "lower-case letters, digits and '_', at "
					      "most 32, a letter first");
		/* half-built ones are freed with the rest */
		if (str_eq(raw[i].kind, CONF_KIND_CLASSIFIER))
			ok = conf_classifier_read(&item, &raw[i], &before,
						  &b->classifier);
		else
			ok = read_portal(&item, &raw[i], &before,
					 &b->portal[b->n_portals++]);
		if (ok < 0)
			return -1;
	}
	return 0;
}

/* ---- registries ---- */

static int read_registry(const struct conf_item *item, const struct raw_registry *raw,
			 struct conf_registry *g)
{
	struct err why = ERR_INIT;

	if (!raw)
		return 0;
	if (conf_addresses_read(item, raw->addresses, raw->addresses_count,
				&g->addresses) < 0 ||
	    read_base_url(item, raw->url, &g->addresses, &g->url) < 0)
		return -1;
	g->file_host = xcalloc(raw->file_hosts_count + 1, sizeof(*g->file_host));
	for (unsigned i = 0; i < raw->file_hosts_count; i++) {
		if (conf_host_check_full(raw->file_hosts[i], &why) < 0)
			return conf_fail_item(item, "file_hosts", why.msg);
		g->file_host[g->n_file_hosts++] = xstrdup(raw->file_hosts[i]);
	}
	return 0;
}

int conf_registries_read(const struct conf_reader *r, const struct raw_registries *raw,
			 struct conf_broker *b)
{
	static const char *const maps[REGISTRY_KIND_MAX_] = {
		[REGISTRY_NPM] = "registries.npm",
		[REGISTRY_PYPI] = "registries.pypi",
		[REGISTRY_CARGO] = "registries.cargo",
		[REGISTRY_GO] = "registries.go",
	};

	if (!raw)
		return 0;
	const struct raw_registry *const raws[REGISTRY_KIND_MAX_] = {
		[REGISTRY_NPM] = raw->npm,
		[REGISTRY_PYPI] = raw->pypi,
		[REGISTRY_CARGO] = raw->cargo,
		[REGISTRY_GO] = raw->go,
	};
	for (unsigned k = 0; k < REGISTRY_KIND_MAX_; k++) {
		const struct conf_item item = {.r = r, .map = maps[k]};

		if (read_registry(&item, raws[k], &b->registry[k]) < 0)
			return -1;
	}
	return 0;
}

static void portal_done(struct conf_portal *p)
{
	free(p->name);
	free(p->secret);
	conf_url_done(&p->url);
	conf_addresses_done(&p->addresses);
	for (size_t i = 0; i < p->n_betas; i++)
		free(p->beta[i]);
	free(p->beta);
	conf_models_done(p);
}

void conf_portals_done(struct conf_broker *b)
{
	for (size_t i = 0; i < b->n_portals; i++)
		portal_done(&b->portal[i]);
	portal_done(&b->classifier);
	free(b->portal);
	for (size_t i = 0; i < REGISTRY_KIND_MAX_; i++) {
		struct conf_registry *g = &b->registry[i];

		conf_url_done(&g->url);
		conf_addresses_done(&g->addresses);
		for (size_t k = 0; k < g->n_file_hosts; k++)
			free(g->file_host[k]);
		free(g->file_host);
	}
}
