/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See fetch_ward.h.
 */
#include "vessel/broker/intents/fetch_ward.h"
#include "common/str.h"

#include <string.h>

/* In what a rule differs; ward_match() looks at these things in this order. */
static enum reason difference(enum ward_match m)
{
	switch (m) {
	case WARD_OTHER_PORT:
		return REASON_PORT;
	case WARD_OTHER_METHOD:
		return REASON_METHOD;
	case WARD_OTHER_PATH:
		return REASON_PATH;
	case WARD_OTHER_PROTOCOL:
		return REASON_PROTOCOL;
	case WARD_PUSHES:
		return REASON_PUSH;
	case WARD_MATCHES:
	case WARD_OTHER_TARGET:
	case WARD_OTHER_HOST:
	case WARD_OTHER_SCHEME:
	case WARD_MATCH_MAX_:
		break;
	}
	return REASON_NOT_ALLOWED;
}

/* What the rule that comes nearest differs in: the one of which most was looked at. */
static enum reason nearest(const struct conf_broker *b, const struct ward_ask *ask)
{
	enum ward_match most = WARD_OTHER_TARGET;

	for (size_t i = 0; i < b->n_rules; i++) {
		enum ward_match m = ward_match(&b->rule[i], ask);

		/* one that denies allows nothing that could be meant */
		if (b->rule[i].action != WARD_DENY && m > most)
			most = m;
	}
	return difference(most);
}

static const char *what_a_rule_must_name(enum reason r)
{
	switch ((int)r) {
	case REASON_SCHEME:
		return "only https is fetched, unless a rule allows http to this host";
	case REASON_IP_LITERAL:
		return "an address instead of a name, which no rule names";
	case REASON_SINGLE_LABEL:
		return "a name of one label means nothing outside of its network";
	case REASON_PORT:
		return "no rule allows this port of the host";
	case REASON_METHOD:
		return "no rule allows this method there";
	case REASON_PROTOCOL:
		return "the rule is for git's smart HTTP, and this is none of its "
		       "requests";
	case REASON_PUSH:
		return "the rule is for reading; a push needs push: allow in it";
	case REASON_PATH:
		return "no rule allows this path of the host";
	default:
		return "no rule allows this host";
	}
}

void fetch_ward_ask(const struct fetch *f, char path[URL_BYTES_MAX + 1],
		    struct ward_ask *ret)
{
	memcpy(path, f->url.target, f->url.path_len);
	path[f->url.path_len] = '\0';
	*ret = (struct ward_ask){
		.target = WARD_HOST,
		.https = f->url.https,
		.host = f->url.host,
		.port = f->url.port,
		.method = fetch_method_name(f->method),
		.path = path,
		.query = url_query(&f->url),
	};
}

static int check_labels(const struct fetch *f, const struct conf_rule *rule,
			struct labels *labels, job_id_t job, usec_t now, bool *ret_odd,
			enum reason *why, struct err *err)
{
	if (!rule || rule->target != WARD_HOST || !rule->is_suffix)
		return 0;
	switch (labels_check(labels, job, rule->name, f->url.host, now)) {
	case LABELS_PASS:
		return 0;
	case LABELS_ODD:
		*ret_odd = true;
		return 0;
	case LABELS_REFUSE:
		break;
	}
	return reason_set(why, REASON_LABELS, err, "too many names below *.%.200s",
			  rule->name);
}

static bool is_git(const struct ward_ask *ask)
{
	return git_request_of(ask->method, ask->path, ask->query) != GIT_NONE;
}

static int explain(const struct url *u, const struct conf_broker *b,
		   const struct ward_ask *ask, enum reason *ret_reason, struct err *err)
{
	enum reason r = url_needs_rule(u), near = nearest(b, ask);

	if (err->id != ERRID_WARD_NOT_ALLOWED && err->id != ERRID_WARD_SPELLING)
		return -1;
	if (r == REASON_NONE && err->id == ERRID_WARD_SPELLING)
		return -1;
	/* a rule that has the host's name says more than the name does */
	if (r == REASON_NONE || (r == REASON_SINGLE_LABEL && near != REASON_NOT_ALLOWED))
		r = near;
	/* the ward's refusal, which counts as one, whatever kind of error the word has elsewhere */
	*ret_reason = r;
	return err_set_id(err, ERRID_WARD_NOT_ALLOWED, "%s: %s%s", reason_word(r),
			  what_a_rule_must_name(r),
			  r != REASON_PUSH && is_git(ask)
				  ? " (for git: one with protocol: git)"
				  : "");
}

int fetch_ward_judge_url(const struct url *u, const struct conf_broker *b,
			 const struct ward_ask *ask, int said,
			 const struct ward_verdict *v, enum reason *ret_reason,
			 struct err *err)
{
	if (said < 0)
		return explain(u, b, ask, ret_reason, err);
	/* Whatever matched: an address is fetched only where a rule is about exactly it. */
	if (url_needs_rule(u) == REASON_IP_LITERAL && !v->address_named)
		return reason_set(ret_reason, REASON_IP_LITERAL, err, "no rule names it");
	return 0;
}

int fetch_ward_judge(const struct fetch *f, const struct conf_broker *b,
		     const struct ward_ask *ask, int said, const struct ward_verdict *v,
		     struct labels *labels, job_id_t job, usec_t now, bool *ret_odd,
		     enum reason *ret_reason, struct err *err)
{
	*ret_odd = false;
	if (fetch_ward_judge_url(&f->url, b, ask, said, v, ret_reason, err) < 0)
		return -1;
	return check_labels(f, v->rule, labels, job, now, ret_odd, ret_reason, err);
}
