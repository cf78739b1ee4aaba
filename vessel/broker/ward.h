/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The ward: may this identity ask that portal, that registry, that URL? A pure decision
 * over the rules of codex.yaml, and beside it the one thing that has a memory, the rates.
 *
 * Every rule that matches is looked at; the strictest wins (deny, limit, allow).
 * No rule: denied. One that denies is read widely: if about a host it a host matches
 * portals and registries there too, and its path matches however the request
 * spells it (ward_path.h); a permitting one is read narrowly, byte by byte. So adding a rule that is
 * stricter never permits anything that was refused.
 */
#ifndef LYCH_VESSEL_BROKER_WARD_H
#define LYCH_VESSEL_BROKER_WARD_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/proto.h"
#include "common/proto/git_http.h"
#include <stdbool.h>
#include <stddef.h>

/* What is to be decided on. All strings are borrowed. */
struct ward_ask {
	const char *identity; /* whose job */
	enum ward_target target;
	const char *name; /* of a portal or registry; NULL with WARD_HOST */
	/* where it goes */
	bool https;
	const char *host; /* as url.h leaves it: lower case, no brackets */
	unsigned port;
	const char *method; /* "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" */
	const char *path;   /* begins with '/', no query; as it is sent */
	const char *
		query; /* behind the '?'; NULL: none. Only git's requests are told by it */
};

/* An ask of a portal (POST) or of a registry (GET), for the place that codex.yaml gives it;
 * name must be one of codex.yaml's. */
void ward_ask_portal(const struct conf_portal *p, const char *identity,
		     struct ward_ask *ret);
void ward_ask_registry(const struct conf_broker *b, enum registry_kind kind,
		       const char *identity, struct ward_ask *ret);

struct ward_verdict {
	enum ward_action action;      /* WARD_DENY also when nothing matches */
	const struct conf_rule *rule; /* the first that decides; NULL: none matches, or
					 the request itself is not acceptable */
	unsigned number;	      /* of that rule, from 1; 0 without */
	/* Of a permitted fetch: */
	const char *credential;			/* whose key may go along; NULL: none */
	const struct conf_addresses *addresses; /* may be reached though not public */
	bool address_named; /* the host is an address, and a rule names exactly it */
	enum ward_replies replies; /* what may come back */
	enum git_request git;	   /* a rule of git's protocol permits it, as this one */
};

/* ERRID_WARD_*: what the job learns of a refusal. 0: allow or limit, and then the rate has
 * still to be taken. ret is set in both cases. */
MUST_CHECK int ward_decide(const struct conf_broker *b, const struct ward_ask *ask,
			   struct ward_verdict *ret, struct err *err);

/* Why one rule matches or does not. */
enum ward_match {
	WARD_MATCHES,
	WARD_OTHER_TARGET,
	WARD_OTHER_HOST,
	WARD_OTHER_SCHEME,
	WARD_OTHER_PORT,
	WARD_OTHER_METHOD,
	WARD_OTHER_PATH,
	WARD_OTHER_PROTOCOL,
	WARD_PUSHES,
	WARD_MATCH_MAX_
};
enum ward_match ward_match(const struct conf_rule *rule, const struct ward_ask *ask);
const char *ward_match_text(enum ward_match m); /* "another host" */

/*
 * Could a job of this identity with this egress be permitted anything: brokered a portal
 * or a host, registry a registry? ERRID_WARD_EMPTY, which names the rule that denies what
 * another allows. Of a rule about a host the plainest URL is asked: a path below it may be
 * permitted where that one is denied, or the other way.
 */
MUST_CHECK int ward_could_permit(const struct conf_broker *b, const char *identity,
				 enum egress_mode egress, struct err *err);

/* Could the rules of next permit anything that those of b do not, or a key go elsewhere (ward_wider.c)? True
 * where it is not plain. */
bool ward_may_be_wider(const struct conf_broker *b, const struct conf_broker *next);

/* ---- rates (ward_rate.c) ---- */

#define WARD_RATES_MAX 4096

struct ward_rates;
struct ward_rates *ward_rates_new(void);
void ward_rates_free(struct ward_rates *r);
/* The rules of next take the place of b's: the limits that are in both, about the same and
 * wherever they stand, go on with what was taken of them; of one with another number too. */
void ward_rates_replace(struct ward_rates *r, const struct conf_broker *b,
			const struct conf_broker *next, usec_t now);
/*
 * ward_decide(), and where the verdict is limit, one from each limiting rule that matches,
 * or from none. now: any clock that does not go back. ERRID_WARD_RATE with the seconds to
 * wait in *ret_retry_sec (else 0; NULL is fine).
 */
MUST_CHECK int ward_take(struct ward_rates *r, const struct conf_broker *b,
			 const struct ward_ask *ask, usec_t now, struct ward_verdict *ret,
			 unsigned *ret_retry_sec, struct err *err);

#endif
