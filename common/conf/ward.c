/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The key ward of codex.yaml: who may ask what. A rule has exactly one target, and only
 * the keys that mean something for it; a name that nothing in the file bears is an
 * error, never a rule that matches nothing.
 */
#include "common/conf/priv.h"

#include "common/host.h"
#include "common/mem.h"
#include "common/str.h"

/* With the longest host, scheme and port it is a URL still (URL_BYTES_MAX). */
#define CONF_RULE_PATH_MAX 3800
#define REASON_MAX_BYTES 200
#define LIMIT_COUNT_MAX 1000000

static const cyaml_schema_value_t string_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CONF_VALUE_MAX),
};
static const cyaml_schema_field_t rule_fields[] = {
	CONF_STR("portal", raw_rule, portal),
	CONF_STR("registry", raw_rule, registry),
	CONF_STR("host", raw_rule, host),
	CONF_STR("scheme", raw_rule, scheme),
	CONF_STR("port", raw_rule, port),
	CONF_STR("method", raw_rule, method),
	CONF_STR("path", raw_rule, path),
	CONF_STR("action", raw_rule, action),
	CONF_STR("limit", raw_rule, limit),
	CONF_STR("credential", raw_rule, credential),
	CONF_STR("replies", raw_rule, replies),
	CONF_STR("protocol", raw_rule, protocol),
	CONF_STR("push", raw_rule, push),
	CONF_STR("reason", raw_rule, reason),
	CONF_LIST("addresses", raw_rule, addresses, string_schema, CONF_ADDRESSES_MAX),
	CYAML_FIELD_END,
};
const cyaml_schema_value_t conf_rule_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_rule, rule_fields),
};

static const char *const actions[] = {
	[WARD_ALLOW] = "allow",
	[WARD_LIMIT] = "limit",
	[WARD_DENY] = "deny",
};

const char *ward_action_name(enum ward_action a)
{
	return a < WARD_ACTION_MAX_ ? actions[a] : NULL;
}

static const char *const replies[] = {
	[WARD_TEXT] = "text",
	[WARD_BINARY] = "binary",
};

const char *ward_replies_name(enum ward_replies r)
{
	return r < WARD_REPLIES_MAX_ ? replies[r] : NULL;
}

const char *ward_protocol_name(enum ward_protocol p)
{
	return p == WARD_GIT ? "git" : NULL;
}

static bool permits(const struct conf_rule *rule)
{
	return rule->action == WARD_ALLOW || rule->action == WARD_LIMIT;
}

static int read_action(const struct conf_item *item, const char *value,
		       enum ward_action *ret)
{
	for (unsigned i = 0; value && i < WARD_ACTION_MAX_; i++)
		if (str_eq(value, actions[i])) {
			*ret = (enum ward_action)i;
			return 0;
		}
	return conf_fail_item(item, "action", "allow, limit or deny");
}

/* "60/min", "10/hour", "500/day" */
static int read_limit(const struct conf_item *item, const char *value,
		      struct conf_rule *rule)
{
	static const struct {
		const char *name;
		usec_t window;
	} windows[] = {
		{"/min", 60 * USEC_PER_SEC},
		{"/hour", 3600 * USEC_PER_SEC},
		{"/day", 86400 * USEC_PER_SEC},
	};
	char count[16] = "";
	struct err why = ERR_INIT;

	if ((rule->action == WARD_LIMIT) != (value != NULL))
		return conf_fail_item(item, "limit",
				      "it belongs to action: limit, and that needs one");
	if (!value)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		size_t digits = strcspn(value, "/");

		if (!str_eq(value + digits, windows[i].name) || digits >= sizeof(count))
			continue;
		memcpy(count, value, digits);
		if (parse_u64(count, 1, LIMIT_COUNT_MAX, &rule->limit_count, &why) < 0)
			return conf_fail_item(item, "limit", why.msg);
		rule->limit_window_usec = windows[i].window;
		return 0;
	}
	return conf_fail_item(item, "limit", "a number with /min, /hour or /day");
}

/* ---- host, scheme, port, method, path: of fetches ---- */

static int read_host(const struct conf_item *item, const char *host,
		     struct conf_rule *rule)
{
	struct err why = ERR_INIT;

	rule->is_suffix = str_starts(host, "*.");
	if (rule->is_suffix)
		host += strlen("*.");
	rule->name = rule->is_suffix ? NULL : conf_address(host);
	rule->is_address = rule->name != NULL;
	if (rule->name)
		return 0;
	/* a whole top-level domain may be refused, never allowed */
	if ((rule->is_suffix && permits(rule) ? conf_host_check_full(host, &why)
					      : conf_host_check(host, &why)) < 0)
		return conf_fail_item(item, "host", why.msg);
	if (rule->is_suffix && permits(rule) && conf_suffix_is_shared(host))
		return conf_fail_item(
			item, "host",
			"strangers have names there, or below it, so that it "
			"would allow whoever takes one (publicsuffix.org): "
			"name the hosts, or a domain of one owner");
	rule->name = xstrdup(host);
	return 0;
}

/* What a job can ask for has an end: the shortest URL that the rule could match. */
static int check_length(const struct conf_item *item, const struct conf_rule *rule)
{
	size_t host = strlen(rule->name) + (rule->is_suffix ? strlen("a.") : 0);
	size_t path = rule->path ? strlen(rule->path) : 0;

	if (host > HOST_NAME_BYTES_MAX)
		return conf_fail_item(item, "host",
				      "no name has room before it: a host has at most "
				      "253 bytes");
	if (path > CONF_RULE_PATH_MAX)
		return conf_fail_item(item, "path", "longer than 3800 bytes");
	return 0;
}

static int read_scheme(const struct conf_item *item, const char *value,
		       struct conf_rule *rule)
{
	rule->scheme = permits(rule) ? WARD_HTTPS : WARD_ANY_SCHEME;
	if (!value)
		return 0;
	if (str_eq(value, "https"))
		rule->scheme = WARD_HTTPS;
	else if (str_eq(value, "http"))
		rule->scheme = WARD_HTTP;
	else
		return conf_fail_item(item, "scheme", "https or http");
	return 0;
}

static int read_port(const struct conf_item *item, const char *value,
		     struct conf_rule *rule)
{
	uint64_t port = 0;
	struct err why = ERR_INIT;

	if (!value) {
		if (permits(rule))
			rule->port = rule->scheme == WARD_HTTP ? 80 : 443;
		return 0;
	}
	if (parse_u64(value, 1, 65535, &port, &why) < 0)
		return conf_fail_item(item, "port", why.msg);
	rule->port = (unsigned)port;
	return 0;
}

bool conf_method_known(const char *name)
{
	static const char *const methods[] = {"GET", "HEAD",  "POST",
					      "PUT", "PATCH", "DELETE"};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (str_eq(name, methods[i]))
			return true;
	return false;
}

static int read_protocol(const struct conf_item *item, const struct raw_rule *raw,
			 struct conf_rule *rule)
{
	if (raw->push && (!raw->protocol || !str_eq(raw->push, "allow")))
		return conf_fail_item(
			item, "push",
			"allow, beside protocol: git; without it the rule is "
			"for reading");
	if (!raw->protocol)
		return 0;
	if (!str_eq(raw->protocol, "git"))
		return conf_fail_item(item, "protocol", "git");
	if (!permits(rule))
		return conf_fail_item(
			item, "protocol",
			"only where a host is allowed; what denies is about "
			"every request");
	if (raw->method || raw->replies)
		return conf_fail_item(item, raw->method ? "method" : "replies",
				      "not beside protocol: git, which says it");
	rule->protocol = WARD_GIT;
	rule->push = raw->push != NULL;
	return 0;
}

static int read_method(const struct conf_item *item, const char *value,
		       struct conf_rule *rule)
{
	if (!value && permits(rule) && rule->protocol != WARD_GIT)
		value = "GET";
	if (value && conf_method_known(value))
		rule->method = xstrdup(value);
	else if (value)
		return conf_fail_item(item, "method",
				      "GET (and HEAD), HEAD, POST, PUT, PATCH or DELETE");
	return 0;
}

static int read_fetch(const struct conf_item *item, const struct raw_rule *raw,
		      struct conf_rule *rule)
{
	struct err why = ERR_INIT;

	if (read_host(item, raw->host, rule) < 0 ||
	    read_scheme(item, raw->scheme, rule) < 0 ||
	    read_port(item, raw->port, rule) < 0 || read_protocol(item, raw, rule) < 0 ||
	    read_method(item, raw->method, rule) < 0 ||
	    conf_addresses_read(item, raw->addresses, raw->addresses_count,
				&rule->addresses) < 0)
		return -1;
	if (raw->path) {
		if (conf_path_check(raw->path, &why) < 0)
			return conf_fail_item(item, "path", why.msg);
		if (permits(rule) && conf_path_may_climb(raw->path))
			return conf_fail_item(
				item, "path",
				"some servers take a part of it for '..', so what is "
				"below it is never allowed");
		rule->path = xstrdup(raw->path);
	}
	if (check_length(item, rule) < 0)
		return -1;
	if (rule->addresses.n && (!permits(rule) || rule->is_suffix))
		return conf_fail_item(item, "addresses",
				      "only where one exact host is allowed");
	return 0;
}

/* Could a path be below both? They meet where a segment ends. */
static bool may_meet(const char *prefix, const char *base)
{
	size_t n = strlen(prefix), m = strlen(base), shorter = n < m ? n : m;
	char after = (n < m ? base : prefix)[shorter];

	return strncmp(prefix, base, shorter) == 0 &&
	       (after == '\0' || after == '/' || shorter == 0 ||
		prefix[shorter - 1] == '/');
}

/* The key of a registry goes with each of its indexes, so all of it is where the key may go. */
static int read_registry_key(const struct conf_item *item, const char *value,
			     const struct conf_broker *b, struct conf_rule *rule)
{
	const struct conf_credential *c = conf_credential_find(b, value);
	enum registry_kind kind;
	const struct conf_url *u;
	size_t n;

	if (!c)
		return conf_fail_item(item, "credential",
				      "of a registry it is one of credentials");
	if (!registry_kind_from_name(rule->name, &kind))
		return conf_fail_item(item, "registry", "no registry of that name");
	u = &b->registry[kind].url;
	n = strlen(c->url.path);
	if (!u->https || !str_eq(u->host, c->url.host) || u->port != c->url.port ||
	    strncmp(u->path, c->url.path, n) != 0 ||
	    (u->path[n] != '/' && u->path[n] != '\0'))
		return conf_fail_item(item, "credential",
				      "its key goes to its own place by https, and the "
				      "registry's URL is not there");
	rule->credential = xstrdup(c->name);
	return 0;
}

/* A key goes to the one place that its portal or credential is for, and nowhere else. */
static int read_credential(const struct conf_item *item, const char *value,
			   const struct conf_broker *b, struct conf_rule *rule)
{
	const struct conf_portal *p;
	const struct conf_url *place;
	const char *name;

	if (!value)
		return 0;
	if (rule->target == WARD_PORTAL || !permits(rule))
		return conf_fail_item(
			item, "credential",
			"only where a host or registry is allowed; a portal "
			"always has its own");
	if (rule->target == WARD_REGISTRY)
		return read_registry_key(item, value, b, rule);
	p = conf_portal_find(b, value);
	name = conf_key_place(b, value, &place);
	if (!name)
		return conf_fail_item(item, "credential",
				      p ? "that portal has no secret"
					: "no portal of that name, and none of "
					  "credentials");
	if (rule->is_suffix || rule->scheme != WARD_HTTPS || !place->https ||
	    !str_eq(rule->name, place->host) || rule->port != place->port)
		return conf_fail_item(item, "credential",
				      p ? "a portal's key goes to the portal's own host "
					  "and port by https, and nowhere else"
					: "its key goes to its own host and port by "
					  "https, and nowhere else");
	if (rule->path && !may_meet(rule->path, place->path))
		return conf_fail_item(item, "credential",
				      p ? "a portal's key goes below the portal's own "
					  "URL, which this path is not"
					: "its key goes below its own path, which no "
					  "request of this rule can be");
	rule->credential = xstrdup(name);
	return 0;
}

static int read_replies(const struct conf_item *item, const char *value,
			struct conf_rule *rule)
{
	if (!value)
		return 0;
	if (rule->target != WARD_HOST || !permits(rule))
		return conf_fail_item(item, "replies",
				      "only where a host is allowed; what comes from a "
				      "portal is text, and a registry's files are bytes");
	for (unsigned i = 0; i < WARD_REPLIES_MAX_; i++)
		if (str_eq(value, replies[i])) {
			rule->replies = (enum ward_replies)i;
			return 0;
		}
	return conf_fail_item(item, "replies", "text or binary");
}

/* ---- the rule ---- */

static int read_target(const struct conf_item *item, const struct raw_rule *raw,
		       const struct conf_broker *b, struct conf_rule *rule)
{
	enum registry_kind kind;

	if (!!raw->portal + !!raw->registry + !!raw->host != 1)
		return conf_fail_item(item, NULL,
				      "exactly one of portal, registry and host");
	if (raw->host) {
		rule->target = WARD_HOST;
		return read_fetch(item, raw, rule);
	}
	if (raw->scheme || raw->port || raw->method || raw->path || raw->protocol ||
	    raw->push || raw->addresses_count)
		return conf_fail_item(
			item, NULL,
			"scheme, port, method, path, protocol, push and addresses "
			"belong to a host");
	if (raw->portal) {
		if (str_eq(b->classifier.name, raw->portal))
			return conf_fail_item(item, "portal",
					      "that one is the gate's, of kind "
					      "classifier: no job may ask it");
		if (!conf_portal_find(b, raw->portal))
			return conf_fail_item(item, "portal", "no portal of that name");
		rule->target = WARD_PORTAL;
		rule->name = xstrdup(raw->portal);
		return 0;
	}
	if (!registry_kind_from_name(raw->registry, &kind) || !b->registry[kind].url.text)
		return conf_fail_item(item, "registry",
				      "npm, pypi, cargo or go, and registries must name "
				      "its URL");
	rule->target = WARD_REGISTRY;
	rule->name = xstrdup(raw->registry);
	return 0;
}

static int read_rule(const struct conf_item *item, const struct raw_rule *raw,
		     const struct conf_broker *b, struct conf_rule *rule)
{
	rule->line = conf_item_line(item);
	if (read_action(item, raw->action, &rule->action) < 0 ||
	    read_target(item, raw, b, rule) < 0 ||
	    read_limit(item, raw->limit, rule) < 0 ||
	    read_credential(item, raw->credential, b, rule) < 0 ||
	    read_replies(item, raw->replies, rule) < 0)
		return -1;
	if (raw->reason) {
		if (strlen(raw->reason) > REASON_MAX_BYTES)
			return conf_fail_item(item, "reason", "longer than 200 bytes");
		rule->reason = xstrdup(raw->reason);
	}
	return 0;
}

int conf_ward_read(const struct conf_reader *r, const struct raw_rule *raw, unsigned n,
		   struct conf_broker *b)
{
	b->rule = xcalloc(n + 1, sizeof(*b->rule));
	for (unsigned i = 0; i < n; i++) {
		const struct conf_item item = {.r = r, .list = "ward", .at = i};

		b->n_rules++; /* half-built ones are freed with the rest */
		if (read_rule(&item, &raw[i], b, &b->rule[i]) < 0)
			return -1;
	}
	return 0;
}

void conf_ward_done(struct conf_broker *b)
{
	for (size_t i = 0; i < b->n_rules; i++) {
		struct conf_rule *rule = &b->rule[i];

		free(rule->name);
		free(rule->method);
		free(rule->path);
		free(rule->credential);
		free(rule->reason);
		conf_addresses_done(&rule->addresses);
	}
	free(b->rule);
}
