/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ward.h.
 */
#include "vessel/broker/ward.h"

#include "common/host.h"
#include "common/str.h"
#include "vessel/broker/ward_path.h"

#include <string.h>

/* Of a name below a wildcard, which no rule names. */
#define WITNESS_LABEL "some-host."

void ward_ask_portal(const struct conf_portal *p, const char *identity,
		     struct ward_ask *ret)
{
	*ret = (struct ward_ask){
		.identity = identity,
		.target = WARD_PORTAL,
		.name = p->name,
		.https = p->url.https,
		.host = p->url.host,
		.port = p->url.port,
		.method = "POST",
		.path = p->url.path[0] ? p->url.path : "/",
	};
}

void ward_ask_registry(const struct conf_broker *b, enum registry_kind kind,
		       const char *identity, struct ward_ask *ret)
{
	const struct conf_url *u = &b->registry[kind].url;

	*ret = (struct ward_ask){
		.identity = identity,
		.target = WARD_REGISTRY,
		.name = registry_kind_name(kind),
		.https = u->https,
		.host = u->host,
		.port = u->port,
		.method = "GET",
		.path = u->path && u->path[0] ? u->path : "/",
	};
}

/* ---- host ---- */

static bool host_matches(const struct conf_rule *rule, const char *host)
{
	size_t n = strlen(host), m = strlen(rule->name);

	if (!rule->is_suffix)
		return str_eq(host, rule->name);
	return n > m + 1 && host[n - m - 1] == '.' && str_eq(host + n - m, rule->name);
}

/* ---- path ---- */

/* Does it end within `path` where a segment ends? */
static bool prefix_matches(const char *prefix, const char *path)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 &&
	       (prefix[n - 1] == '/' || path[n] == '\0' || path[n] == '/');
}

/*
 * What a server may take it for: escapes undone once, empty segments dropped. -1: a
 * broken escape, a control byte, a backslash, or too long.
 */
static int plain_path(const char *path, char *out, size_t size)
{
	size_t n = 0;

	for (const char *p = path; *p; p++) {
		char c = *p;

		if (c == '%') {
			int high = hex_digit_value(p[1]);
			int low = high < 0 ? -1 : hex_digit_value(p[2]);

			if (low < 0)
				return -1;
			c = (char)(high * 16 + low);
			p += 2;
		}
		if ((unsigned char)c < 0x20 || c == 0x7f || c == '\\')
			return -1;
		if (c == '/' && n > 0 && out[n - 1] == '/')
			continue;
		if (n + 1 >= size)
			return -1;
		out[n++] = c;
	}
	out[n] = '\0';
	return 0;
}

static bool has_dot_segment(const char *plain)
{
	for (const char *p = plain; p; p = strchr(p, '/')) {
		size_t n = strcspn(++p, "/;");

		if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return true;
	}
	return false;
}

static bool path_matches(const struct conf_rule *rule, const char *path)
{
	if (!rule->path)
		return true;
	if (rule->action == WARD_DENY)
		return prefix_matches(rule->path, path) ||
		       ward_path_is_within(path, rule->path);
	return prefix_matches(rule->path, path) && !ward_path_may_climb(path);
}

/* ---- one rule ---- */

static bool target_matches(const struct conf_rule *rule, const struct ward_ask *ask)
{
	if (rule->target == WARD_HOST)
		return ask->target == WARD_HOST || rule->action == WARD_DENY;
	return ask->target == rule->target && str_eq(ask->name, rule->name);
}

static bool method_matches(const char *rule, const char *method)
{
	return !rule || str_eq(rule, method) ||
	       (str_eq(rule, "GET") && str_eq(method, "HEAD"));
}

/* A rule of git's has no method of its own. */
static enum ward_match git_matches(const struct conf_rule *rule,
				   const struct ward_ask *ask)
{
	enum git_request r = git_request_of(ask->method, ask->path, ask->query);

	if (r == GIT_NONE)
		return WARD_OTHER_PROTOCOL;
	return git_request_pushes(r) && !rule->push ? WARD_PUSHES : WARD_MATCHES;
}

enum ward_match ward_match(const struct conf_rule *rule, const struct ward_ask *ask)
{
	if (!target_matches(rule, ask))
		return WARD_OTHER_TARGET;
	if (rule->target != WARD_HOST)
		return WARD_MATCHES;
	if (!host_matches(rule, ask->host))
		return WARD_OTHER_HOST;
	if (rule->scheme != WARD_ANY_SCHEME && (rule->scheme == WARD_HTTPS) != ask->https)
		return WARD_OTHER_SCHEME;
	if (rule->port && rule->port != ask->port)
		return WARD_OTHER_PORT;
	if (!method_matches(rule->method, ask->method))
		return WARD_OTHER_METHOD;
	if (!path_matches(rule, ask->path))
		return WARD_OTHER_PATH;
	return rule->protocol == WARD_GIT ? git_matches(rule, ask) : WARD_MATCHES;
}

const char *ward_match_text(enum ward_match m)
{
	static const char *const texts[] = {
		[WARD_MATCHES] = "matches",
		[WARD_OTHER_TARGET] = "another target",
		[WARD_OTHER_HOST] = "another host",
		[WARD_OTHER_SCHEME] = "another scheme",
		[WARD_OTHER_PORT] = "another port",
		[WARD_OTHER_METHOD] = "another method",
		[WARD_OTHER_PATH] = "another path",
		[WARD_OTHER_PROTOCOL] = "another protocol",
		[WARD_PUSHES] = "a push, and it has no push: allow",
	};

	return m < WARD_MATCH_MAX_ ? texts[m] : "?";
}

/* ---- the decision ---- */

/* Rules compare spellings; so there must be one only. */
static int check_spelling(const struct ward_ask *ask, struct err *err)
{
	char plain[WARD_PATH_BYTES_MAX];

	if (!ask->host || !conf_host_is_plain(ask->host))
		return err_set_id(err, ERRID_WARD_SPELLING, "host_grammar: the host");
	if (!ask->path || ask->path[0] != '/' || strpbrk(ask->path, "?#") ||
	    plain_path(ask->path, plain, sizeof(plain)) < 0 || has_dot_segment(plain))
		return err_set_id(err, ERRID_WARD_SPELLING, "dot_segment: the path");
	if (!conf_method_known(ask->method))
		return err_set_id(err, ERRID_WARD_SPELLING,
				  "method: GET, HEAD, POST, PUT, PATCH and DELETE only");
	return 0;
}

/* What the deciding rules give to a fetch or a package: each thing from the first that gives it. */
static void take_gifts(const struct conf_broker *b, const struct ward_ask *ask,
		       struct ward_verdict *v)
{
	for (size_t i = 0; i < b->n_rules; i++) {
		const struct conf_rule *rule = &b->rule[i];

		if (rule->action != v->action || ward_match(rule, ask) != WARD_MATCHES)
			continue;
		if (!v->credential)
			v->credential = rule->credential;
		if (!v->addresses && rule->addresses.n)
			v->addresses = &rule->addresses;
		v->address_named |= rule->is_address;
		if (rule->protocol == WARD_GIT)
			v->git = git_request_of(ask->method, ask->path, ask->query);
		if (rule->replies > v->replies)
			v->replies = rule->replies;
	}
}

static int refuse(const struct ward_ask *ask, const struct ward_verdict *v,
		  struct err *err)
{
	static const char *const targets[] = {
		[WARD_PORTAL] = "portal",
		[WARD_REGISTRY] = "registry",
		[WARD_HOST] = "host",
	};
	const char *what = ask->target == WARD_HOST ? ask->host : ask->name;
	const char *reason = v->rule ? v->rule->reason : NULL;

	if (!v->rule)
		return err_set_id(err, ERRID_WARD_NOT_ALLOWED,
				  "not_allowed: no rule allows %s %.253s to this job",
				  targets[ask->target], what);
	return err_set_id(err, ERRID_WARD_DENIED, "denied: rule %u of the ward%s%s",
			  v->number, reason ? ": " : "", reason ? reason : "");
}

int ward_decide(const struct conf_broker *b, const struct ward_ask *ask,
		struct ward_verdict *ret, struct err *err)
{
	struct ward_verdict v = {.action = WARD_DENY};

	*ret = v;
	if (check_spelling(ask, err) < 0)
		return -1;
	for (size_t i = 0; i < b->n_rules; i++) {
		const struct conf_rule *rule = &b->rule[i];

		if (ward_match(rule, ask) != WARD_MATCHES)
			continue;
		if (!v.rule || rule->action > v.action) {
			v.rule = rule;
			v.number = (unsigned)i + 1;
			v.action = rule->action;
		}
	}
	if (!v.rule || v.action == WARD_DENY) {
		*ret = v;
		return refuse(ask, &v, err);
	}
	if (ask->target != WARD_PORTAL)
		take_gifts(b, ask, &v);
	*ret = v;
	return 0;
}

/* ---- before a job is taken in ---- */

struct witness {
	char host[HOST_NAME_BYTES_MAX + sizeof(WITNESS_LABEL)];
	char path[WARD_PATH_BYTES_MAX];
};

/* The plainest URL that a rule about a host permits, if no other rule says no. text: room for it. */
static void witness(const struct conf_rule *rule, const char *identity,
		    struct witness *text, struct ward_ask *ret)
{
	bool is_git = rule->protocol == WARD_GIT;
	const char *path = rule->path ? rule->path : "/";
	size_t n = strlen(path);
	const char *label =
		!rule->is_suffix ? ""
		: strlen(rule->name) + strlen(WITNESS_LABEL) <= HOST_NAME_BYTES_MAX
			? WITNESS_LABEL
			: "a.";

	(void)snprintf(text->host, sizeof(text->host), "%s%s", label, rule->name);
	(void)snprintf(text->path, sizeof(text->path), "%.*s%s",
		       (int)(is_git && path[n - 1] == '/' ? n - 1 : n), path,
		       is_git ? "/info/refs" : "");
	*ret = (struct ward_ask){
		.identity = identity,
		.target = WARD_HOST,
		.https = rule->scheme != WARD_HTTP,
		.host = text->host,
		.port = rule->port,
		.method = is_git ? "GET" : rule->method,
		.path = text->path,
		.query = is_git ? "service=git-upload-pack" : NULL,
	};
}

/* 0: it could permit something; else who says no. */
static int rule_could(const struct conf_broker *b, const struct conf_rule *rule,
		      const char *identity, struct err *err)
{
	enum registry_kind kind;
	struct witness text;
	struct ward_verdict v;
	struct ward_ask ask;

	if (rule->target == WARD_PORTAL)
		ward_ask_portal(conf_portal_find(b, rule->name), identity, &ask);
	else if (rule->target == WARD_REGISTRY &&
		 registry_kind_from_name(rule->name, &kind))
		ward_ask_registry(b, kind, identity, &ask);
	else
		witness(rule, identity, &text, &ask);
	return ward_decide(b, &ask, &v, err);
}

int ward_could_permit(const struct conf_broker *b, const char *identity,
		      enum egress_mode egress, struct err *err)
{
	const char *what = egress == EGRESS_REGISTRY ? "registry" : "portal or host";
	struct err why = ERR_INIT;
	unsigned line = 0;

	for (size_t i = 0; i < b->n_rules; i++) {
		const struct conf_rule *rule = &b->rule[i];

		if (rule->action == WARD_DENY ||
		    (rule->target == WARD_REGISTRY) != (egress == EGRESS_REGISTRY))
			continue;
		if (rule_could(b, rule, identity, &why) == 0)
			return 0;
		line = rule->line;
	}
	if (line)
		return err_set_id(err, ERRID_WARD_EMPTY,
				  "egress %s: what the ward in codex.yaml allows (line "
				  "%u) it denies as well: %s",
				  egress_mode_name(egress), line, why.msg);
	return err_set_id(err, ERRID_WARD_EMPTY,
			  "egress %s: no rule of the ward in codex.yaml allows %s any %s",
			  egress_mode_name(egress), identity, what);
}
