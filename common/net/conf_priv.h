/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by conf.c, conf_pod.c and conf_lint.c. */
#ifndef LYCH_COMMON_NET_CONF_PRIV_H
#define LYCH_COMMON_NET_CONF_PRIV_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/conf.h"
#include <cyaml/cyaml.h>
#include <stddef.h>

/* Refuse what is outside of our subset of YAML. */
MUST_CHECK int conf_lint(const char *text, size_t len, struct err *err);
/* The line on which a dotted key of a lint-clean text stands; 1 when it is not there. */
unsigned conf_line_of(const char *text, const char *dotted_key);
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

/* ---- conf_pod.c ---- */
struct raw_unit {
	char *image, *memory, *processes, *cpus;
};

struct raw_pod {
	char *profile, *cgroups, *unmask_proc;
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

#endif
