/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * What codex.yaml says about the broker: who may be asked (portals, registries), who may
 * ask what (ward), how much (budgets), what may not leave (gate), the caps of one
 * request (egress), and when a job is contained for what it asks (containment). Plain data, valid by construction: conf_parse() refuses the rest.
 */
#ifndef LYCH_COMMON_CONF_EGRESS_H
#define LYCH_COMMON_CONF_EGRESS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/conf/containment.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_PORTALS_MAX 16
#define CONF_CREDENTIALS_MAX 16
#define CONF_MODELS_MAX 64    /* of one portal */
#define CONF_ADDRESSES_MAX 16 /* of one portal, registry or rule */
#define CONF_FILE_HOSTS_MAX 8
#define CONF_RULES_MAX 256
#define CONF_PORTAL_NAME_SIZE 33   /* [a-z][a-z0-9_]{0,31} */
#define CONF_PRICE_PER 1000000	   /* tokens that a price is for */
#define CONF_EXTRAS_MAX 16	   /* of one model */
#define CONF_BETAS_MAX 32	   /* of one portal */
#define CONF_TOKENS_MAX 100000000u /* of one request, of one picture */

/*
 * A base URL. https, or http to an address of this machine or its network that
 * `addresses` names. The host is a lower-case name of two labels or more, or an address
 * without brackets as inet_ntop writes it (common/host.h); the path "" or "/v1": no slash
 * at its end, no dot segment, no escape. No query, no user, no fragment.
 */
struct conf_url {
	bool https;
	bool is_address;
	char *host;
	unsigned port; /* 1..65535; 443 or 80 when it is not written */
	char *path;
	char *text; /* the whole, put together from these parts */
};

/* Exact addresses that may be reached though they are not public; as inet_ntop writes
 * them. */
struct conf_addresses {
	char **v;
	size_t n;
};

enum portal_kind { PORTAL_OPENAI, PORTAL_ANTHROPIC, PORTAL_GEMINI, PORTAL_KIND_MAX_ };

/* The parts of a kind's API that a job may ask for. A server behind a portal has all of its
 * kind's but those that codex.yaml says it lacks. */
enum portal_api {
	API_CHAT, /* openai: chat completions */
	API_RESPONSES,
	API_EMBEDDINGS,
	API_MESSAGES, /* anthropic */
	API_COUNT_TOKENS,
	API_GENERATE,	    /* gemini: generateContent, whole and as a stream */
	API_COUNT_CONTENTS, /* gemini: countTokens */
	PORTAL_API_MAX_
};
#define PORTAL_APIS_TEXT_SIZE 64 /* "chat, responses, embeddings" */

/* What a request may ask for that has prices of its own: "beta:NAME", "service_tier:NAME",
 * "speed:NAME", "inference_geo:NAME", "audio". Prices as in conf_model. */
struct conf_extra {
	char *name;
	uint64_t input_price, output_price;
	uint64_t context; /* 0: not known */
};

struct conf_model {
	char *name;
	/* micro-units of the user's own currency for CONF_PRICE_PER tokens */
	uint64_t input_price, output_price;
	/* of tokens that the provider reads from its cache, or writes there for some minutes */
	uint64_t cache_read_price, cache_write_price;
	bool has_cache_write; /* it stood there */
	uint64_t max_output;  /* tokens of one answer; 0: none is named */
	uint64_t context;     /* tokens that the provider takes at most; 0: not known */
	uint64_t picture;     /* tokens that one picture is at most */
	struct conf_extra *extra;
	size_t n_extras;
};

/* The key by which a server of the OpenAI dialect is told how long an answer may be. */
enum portal_cap { CAP_MAX_TOKENS, CAP_MAX_COMPLETION_TOKENS, PORTAL_CAP_MAX_ };

struct conf_portal {
	char *name;
	enum portal_kind kind;
	struct conf_url url;
	char *secret;	/* "portal_<name>", no other portal's; NULL: it wants no key */
	unsigned lacks; /* 1 << portal_api; never all of its kind's */
	enum portal_cap output_cap; /* of PORTAL_OPENAI */
	char **beta;		    /* names that cost nothing beyond the known ones */
	size_t n_betas;
	struct conf_model *model;
	size_t n_models; /* >= 1; no two portals of a kind offer the same one */
	struct conf_addresses addresses;
};

/* How a key goes to a host. */
enum credential_form {
	CREDENTIAL_BEARER, /* Authorization: Bearer KEY */
	CREDENTIAL_BASIC,  /* Authorization: Basic, of user and key */
	CREDENTIAL_FIELD,  /* a header field of its own */
};

/* A key for a place that is no portal. */
struct conf_credential {
	char *name;	     /* as a portal's, and no portal's */
	struct conf_url url; /* https; below its path, and at the path itself */
	char *origin;	     /* "https://host[:port]" */
	enum credential_form form;
	char *user;   /* of CREDENTIAL_BASIC */
	char *field;  /* of CREDENTIAL_FIELD */
	char *secret; /* "host_<name>", no other credential's */
	struct conf_addresses addresses;
};

enum registry_kind {
	REGISTRY_NPM,
	REGISTRY_PYPI,
	REGISTRY_CARGO,
	REGISTRY_GO,
	REGISTRY_KIND_MAX_
};

struct conf_registry {
	struct conf_url url; /* url.text NULL: not configured */
	char **file_host;    /* other hosts that its index may send a download to */
	size_t n_file_hosts;
	struct conf_addresses addresses;
};

/* In order of strictness: the later one wins. */
enum ward_action { WARD_ALLOW, WARD_LIMIT, WARD_DENY, WARD_ACTION_MAX_ };
enum ward_scheme { WARD_HTTPS, WARD_HTTP, WARD_ANY_SCHEME };
/* What may come back: text, as the vessel reads it, or any bytes, as the server sent them. */
enum ward_replies { WARD_TEXT, WARD_BINARY, WARD_REPLIES_MAX_ };
/* What a rule is about: requests of HTTP by method and path, or those of git's smart HTTP alone. */
enum ward_protocol { WARD_HTTP_ANY, WARD_GIT, WARD_PROTOCOL_MAX_ };
enum ward_target { WARD_PORTAL, WARD_REGISTRY, WARD_HOST };

/*
 * One rule. What an allow or limit leaves out is read narrowly (https, its default port,
 * GET and HEAD), what a deny leaves out widely (any).
 */
struct conf_rule {
	enum ward_target target;
	enum ward_action action;
	char *name;	/* a portal's; a registry kind's; of WARD_HOST: the host */
	bool is_suffix; /* the host stood as "*.name" */
	bool is_address;
	enum ward_scheme scheme;
	unsigned port; /* 0: any */
	char *method;  /* "GET" (and HEAD), "HEAD", "POST", "PUT" ...; NULL: any */
	char *path;    /* a prefix that begins with '/'; NULL: any */
	/* WARD_LIMIT: so many in such a time, else 0 */
	uint64_t limit_count;
	usec_t limit_window_usec;
	char *credential; /* a portal's or credential's name: its key may go there; NULL: none */
	enum ward_replies replies; /* of a host that is permitted */
	enum ward_protocol
		protocol; /* WARD_GIT: method is NULL, and path begins a repository's */
	bool push;	  /* with WARD_GIT: not only for reading */
	char *reason;	  /* shown to whom it concerns; NULL: none given */
	struct conf_addresses addresses;
	unsigned line; /* in codex.yaml */
};

enum budget_scope { BUDGET_JOB, BUDGET_IDENTITY_DAY, BUDGET_DAY, BUDGET_SCOPE_MAX_ };

/* Caps; 0 allows none. */
struct conf_budget {
	uint64_t requests;
	uint64_t tokens;      /* in and out together */
	uint64_t money_micro; /* millionths of the unit that the prices are in */
	uint64_t bytes;	      /* up and down together */
	uint64_t denials;
	uint64_t packages; /* what registries are asked for, which is no request */
};

/* 0 <= portal <= forbidden <= 1 */
struct conf_gate {
	double portal_threshold;    /* from here on: anonymise, and scan again */
	double forbidden_threshold; /* from here on: refuse */
	bool allows_pictures, allows_sound, allows_pdf;
	/* A second opinion (docs/adr/0053). */
	bool asks_classifier;
	usec_t classifier_usec; /* for one ask, its turn included */
	uint64_t
		classifier_max_bytes; /* of the text of one ask that it was not shown before */
};

/* Caps of one request, and of one job's requests at a time. */
struct conf_egress {
	usec_t connect_usec;
	usec_t first_byte_usec;
	usec_t idle_usec;
	usec_t total_usec;
	uint64_t request_max_bytes;
	uint64_t response_max_bytes;
	uint64_t package_max_bytes;
	unsigned in_flight; /* of one job */
	unsigned retries;   /* of what may be sent twice, before any byte went back */
	char *authorities; /* a file of certificates (PEM), absolute; NULL: the system's */
};

struct conf_broker {
	struct conf_portal *portal;
	size_t n_portals;
	/* The portal of kind classifier, which is none of those: no job may ask it, no rule name
	 * it. It speaks chat completions, has one model without a price, and is on this machine or
	 * its network. name NULL: there is none. */
	struct conf_portal classifier;
	struct conf_credential *credential;
	size_t n_credentials;
	struct conf_registry registry[REGISTRY_KIND_MAX_];
	struct conf_rule *rule;
	size_t n_rules;
	struct conf_budget budget[BUDGET_SCOPE_MAX_];
	struct conf_gate gate;
	struct conf_egress egress;
	struct conf_containment containment;
};

const char *portal_kind_name(enum portal_kind k); /* "openai" */
const char *portal_api_name(enum portal_api a);	  /* "chat" */
enum portal_kind portal_api_kind(enum portal_api a);
const char *portal_cap_name(enum portal_cap c);	      /* "max_tokens" */
const char *registry_kind_name(enum registry_kind k); /* "npm" */
bool registry_kind_from_name(const char *name, enum registry_kind *ret);
/* May a rule name it, and a job ask by it? */
bool conf_method_known(const char *name);
const char *ward_replies_name(enum ward_replies r);   /* "text" */
const char *ward_protocol_name(enum ward_protocol p); /* "git"; NULL: it has none */
const char *ward_action_name(enum ward_action a);     /* "allow" */
const char *budget_scope_name(enum budget_scope s);   /* "identity_day" */

/* The secrets that portals and credentials name, no two the same: at(0), at(1) ... until NULL. */
const char *conf_broker_secret(const struct conf_broker *b, size_t at);
/* Does a portal of this machine alone (conf_url_is_loopback) name it? */
bool conf_portal_secret_is_local(const struct conf_broker *b, const char *secret);
/* NULL: no portal of that name. */
const struct conf_portal *conf_portal_find(const struct conf_broker *b, const char *name);
/* The one that gives the gate a second opinion; NULL: none is asked. */
const struct conf_portal *conf_classifier(const struct conf_broker *b);
const struct conf_credential *conf_credential_find(const struct conf_broker *b,
						   const char *name);
/* What a rule's credential names: where its key may go, and its name from where it stays;
 * NULL: no portal with a key and no credential has that name (which may be NULL). */
const char *conf_key_place(const struct conf_broker *b, const char *name,
			   const struct conf_url **ret_place);
bool conf_portal_has(const struct conf_portal *p, enum portal_api a);
/* Their names with commas between. */
void conf_portal_apis(const struct conf_portal *p, char out[PORTAL_APIS_TEXT_SIZE]);
/* The portal of that kind that offers the model, and the model; NULL: none does. */
const struct conf_portal *conf_portal_of_model(const struct conf_broker *b,
					       enum portal_kind kind, const char *model,
					       const struct conf_model **ret_model);

/* A name, or an address without brackets, in its one spelling: what a rule can name. */
bool conf_host_is_plain(const char *host);

/*
 * A URL in the shape that conf_url describes; ret is untouched and errors are
 * ERRID_START_CONFIG without a line. conf_url_done() frees what it holds.
 */
struct err;
MUST_CHECK int conf_url_parse(const char *text, struct conf_url *ret, struct err *err);
void conf_url_done(struct conf_url *u);
/* Nobody but this machine is there, so what goes there is told to nobody else. */
bool conf_url_is_loopback(const struct conf_url *u);

#endif
