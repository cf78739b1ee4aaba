/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * Shared by conf.c, lint.c, shape.c and the files that read one key each, and by agent.c.
 */
#ifndef LYCH_COMMON_CONF_PRIV_H
#define LYCH_COMMON_CONF_PRIV_H

#include "common/attr.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include <cyaml/cyaml.h>
#include <stddef.h>

/* Refuse what is outside of our subset of YAML. */
MUST_CHECK int conf_lint(const char *text, size_t len, struct err *err);
/* The line on which a dotted key of a lint-clean text stands; 1 when it is not there. */
unsigned conf_line_of(const char *text, const char *dotted_key);
/* The line of entry `at` (from 0) of a top-level list; 1 when it is not there. */
unsigned conf_line_of_item(const char *text, const char *list, unsigned at);
/* The nth line from `from` on with a key of that name; `from` when there is none. */
unsigned conf_line_of_name(const char *text, const char *name, unsigned from,
			   unsigned nth);

#define CONF_VALUE_MAX 4095
#define CONF_STR(key, type, member)                                                      \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,            \
			       struct type, member, 1, CONF_VALUE_MAX)
#define CONF_MAP(key, type, member, fields)                                              \
	CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,           \
				struct type, member, fields)

#define CONF_LIST(key, type, member, entry, max)                                         \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct type, \
			     member, &(entry), 1, max)

/* ---- near_key.c */
#define CONF_KEY_SIZE 64
/* Of the keys that may stand at a place the one that was perhaps meant; NULL: none is near. */
const char *conf_near_key(const cyaml_schema_field_t *fields, const char *key);

/* ---- shape.c */
/* What is wrong with a lint-clean text that libcyaml has refused. Returns -1, with a line in err;
 * page is the manual that lists the keys. */
int conf_shape_explain(const cyaml_schema_field_t *fields, const char *page,
		       const char *text, struct err *err);

/* ---- conf.c */
/* A text of the right shape (lint.c, libcyaml): its values are as they were written.
 * conf_shape_free() after success. */
MUST_CHECK int conf_shape_load(const cyaml_schema_value_t *schema, const char *page,
			       const char *text, size_t len, void **ret, struct err *err);
void conf_shape_free(const cyaml_schema_value_t *schema, void *raw);

/* ---- flat.c */
void conf_flat_write(const cyaml_schema_field_t *fields, const void *data,
		     struct buf *out);
MUST_CHECK int conf_key_find(const cyaml_schema_field_t *fields, const char *key,
			     struct err *err);

struct conf_reader {
	const char *text;
	struct err *err;
};
/* "line 4: limits.memory.max: <why>" */
int conf_fail_at(const struct conf_reader *r, const char *key, const char *why);

typedef int conf_parse_fn(const char *s, uint64_t min, uint64_t max, uint64_t *ret,
			  struct err *err);
/* value NULL: *ret stays. */
MUST_CHECK int conf_read_number(const struct conf_reader *r, const char *key,
				const char *value, conf_parse_fn *parse, uint64_t min,
				uint64_t max, uint64_t *ret);

/* ---- pod.c ---- */
struct raw_unit {
	char *image, *memory, *processes, *cpus;
};

struct raw_pod {
	char *profile, *cgroups, *unmask_proc, *label;
	struct raw_unit *tomb, *vessel, *scribe, *phylactery;
	char **mounts;
	unsigned mounts_count;
};
extern const cyaml_schema_field_t conf_pod_fields[];
void conf_pod_defaults(struct conf_pod *p);
void conf_pod_done(struct conf_pod *p);
/* raw NULL: all stays at its default. */
MUST_CHECK int conf_pod_read(const struct conf_reader *r, const struct raw_pod *raw,
			     struct conf_pod *p);

/* ---- anchors.c ---- */
struct raw_anchor {
	char *kind, *path, *required;
};
struct raw_audit {
	struct raw_anchor *anchors;
	unsigned anchors_count;
};
extern const cyaml_schema_field_t conf_audit_fields[];
MUST_CHECK int conf_audit_read(const struct conf_reader *r, const struct raw_audit *raw,
			       struct conf *c);
void conf_audit_done(struct conf *c);

/* What a message is about: an entry of a top-level list, or a mapping that is none. */
struct conf_item {
	const struct conf_reader *r;
	const char *list; /* "portals", or NULL: then map */
	unsigned at;	  /* from 0 */
	const char *map;  /* "registries.npm" */
};
unsigned conf_item_line(const struct conf_item *item);
/* "line 12: portals, entry 2: url: <why>"; key NULL: of the whole entry. */
int conf_fail_item(const struct conf_item *item, const char *key, const char *why);

/* ---- url.c ---- */
/* A name by the grammar of every URL (a message without a line). */
MUST_CHECK int conf_host_check(const char *host, struct err *err);
/* And of two labels or more: where a base URL leads must not depend on the network. */
MUST_CHECK int conf_host_check_full(const char *host, struct err *err);
MUST_CHECK int conf_path_check(const char *path, struct err *err);
/* Of one that is acceptable: would the ward refuse all that is below it, since some server takes a part of
 * it for ".."? As ward_path_may_climb(), of the vessel, for the characters of a rule. */
bool conf_path_may_climb(const char *path);
/* As inet_ntop() writes it, allocated; NULL: no address, or one that is none of its own. */
char *conf_address(const char *text);
/* Loopback, link-local or private use: where plain http is nobody else's business. */
bool conf_address_is_local(const char *address);

/* ---- suffix.c ---- */
/* Is it a domain where, or somewhere below which, anybody may have a name? */
bool conf_suffix_is_shared(const char *domain);

/* ---- models.c ---- */
struct raw_extra {
	char *name, *input, *output, *context;
};
struct raw_model {
	char *name, *input, *output, *cache_read, *cache_write, *max_output, *context,
		*picture;
	struct raw_extra *extras;
	unsigned extras_count;
};
extern const cyaml_schema_value_t conf_model_schema;
/* The models of a portal, whose kind is read already. max_output: the portal's own, for
 * those that name none; NULL: it has none. */
MUST_CHECK int conf_models_read(const struct conf_item *item, const struct raw_model *raw,
				unsigned n, const char *max_output,
				struct conf_portal *p);
void conf_models_done(struct conf_portal *p);
bool conf_model_name_ok(const char *name);
bool conf_beta_ok(const char *name);

/* ---- portals.c ---- */
struct raw_portal {
	char *name, *kind, *url, *secret, *max_output, *output_cap;
	char **betas, **lacks;
	unsigned betas_count, lacks_count;
	struct raw_model *models;
	unsigned models_count;
	char **addresses;
	unsigned addresses_count;
};
struct raw_registry {
	char *url;
	char **file_hosts;
	unsigned file_hosts_count;
	char **addresses;
	unsigned addresses_count;
};
struct raw_registries {
	struct raw_registry *npm, *pypi, *cargo, *go;
};
extern const cyaml_schema_value_t conf_portal_schema;
extern const cyaml_schema_field_t conf_registries_fields[];
/* Name, addresses, URL and secret, which portals of every kind have. before: what stands before it. */
MUST_CHECK int conf_portal_place_read(const struct conf_item *item,
				      const struct raw_portal *raw,
				      const struct conf_broker *before,
				      struct conf_portal *p);
MUST_CHECK int conf_portals_read(const struct conf_reader *r,
				 const struct raw_portal *raw, unsigned n,
				 struct conf_broker *b);
MUST_CHECK int conf_registries_read(const struct conf_reader *r,
				    const struct raw_registries *raw,
				    struct conf_broker *b);
void conf_portals_done(struct conf_broker *b);
/* Of portals and credentials. */
bool conf_portal_name_ok(const char *name);
bool conf_secret_name_ok(const char *name, const char *prefix);
MUST_CHECK int conf_addresses_read(const struct conf_item *item, char *const *raw,
				   unsigned n, struct conf_addresses *ret);
void conf_addresses_done(struct conf_addresses *a);

/* ---- classifier.c ---- */
#define CONF_KIND_CLASSIFIER "classifier"
MUST_CHECK int conf_classifier_read(const struct conf_item *item,
				    const struct raw_portal *raw,
				    const struct conf_broker *before,
				    struct conf_portal *p);
struct raw_gate;
/* After the portals: is one asked, how long, how much? */
MUST_CHECK int conf_opinion_read(const struct conf_reader *r, const struct raw_gate *raw,
				 struct conf_broker *b);

/* ---- credentials.c ---- */
struct raw_credential {
	char *name, *host, *port, *path, *header, *user, *secret;
	char **addresses;
	unsigned addresses_count;
};
extern const cyaml_schema_value_t conf_credential_schema;
/* After the portals, whose names they may not have. */
MUST_CHECK int conf_credentials_read(const struct conf_reader *r,
				     const struct raw_credential *raw, unsigned n,
				     struct conf_broker *b);
void conf_credentials_done(struct conf_broker *b);

/* ---- ward.c ---- */
struct raw_rule {
	char *portal, *registry, *host, *scheme, *port, *method, *path;
	char *action, *limit, *credential, *replies, *protocol, *push, *reason;
	char **addresses;
	unsigned addresses_count;
};
extern const cyaml_schema_value_t conf_rule_schema;
/* After the portals, credentials and registries, which it names. */
MUST_CHECK int conf_ward_read(const struct conf_reader *r, const struct raw_rule *raw,
			      unsigned n, struct conf_broker *b);
void conf_ward_done(struct conf_broker *b);

/* ---- containment.c ---- */
struct raw_containment {
	char *trigger[CONF_TRIGGER_MAX_];
	char *denials_count, *denials_within;
};
extern const cyaml_schema_field_t conf_containment_fields[];
/* raw NULL: all stays at its default. */
MUST_CHECK int conf_containment_read(const struct conf_reader *r,
				     const struct raw_containment *raw,
				     struct conf_containment *c);

/* ---- budget.c ---- */
#define CONF_REQUEST_MAX_BYTES ((uint64_t)4 << 20)
struct raw_budget {
	char *requests, *tokens, *money, *bytes, *denials, *packages;
};
struct raw_budgets {
	struct raw_budget *job, *identity_day, *day;
};
struct raw_gate {
	char *portal_threshold, *forbidden_threshold;
	char *pictures, *sound, *pdf;
	char *classifier, *classifier_timeout, *classifier_max;
};
struct raw_egress {
	char *connect, *first_byte, *idle, *total;
	char *request_max, *response_max, *package_max, *in_flight, *retries;
	char *authorities;
};
extern const cyaml_schema_field_t conf_budgets_fields[], conf_gate_fields[],
	conf_egress_fields[];
MUST_CHECK int conf_budgets_read(const struct conf_reader *r,
				 const struct raw_budgets *raw, struct conf_broker *b);
MUST_CHECK int conf_gate_read(const struct conf_reader *r, const struct raw_gate *raw,
			      struct conf_gate *g);
MUST_CHECK int conf_egress_read(const struct conf_reader *r, const struct raw_egress *raw,
				struct conf_egress *e);
void conf_broker_defaults(struct conf_broker *b);
void conf_broker_done(struct conf_broker *b);

#endif
