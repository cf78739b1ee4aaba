/* SPDX-License-Identifier: Apache-2.0 */
/* One rule of a ward that is not accepted, beside a portal and a registry that are. */
#ifndef LYCH_TESTS_UNIT_COMMON_CONF_WARD_RULE_H
#define LYCH_TESTS_UNIT_COMMON_CONF_WARD_RULE_H

#include "common/conf/conf.h"

#include <criterion/criterion.h>
#include <string.h>

#define MAIN                                                                             \
	"version: 1\n"                                                                   \
	"portals:\n"                                                                     \
	"  - name: main\n"                                                               \
	"    kind: openai\n"                                                             \
	"    url: \"https://api.example.com/v1\"\n"                                      \
	"    models:\n"                                                                  \
	"      - {name: m, input: \"0\", output: \"0\"}\n"                               \
	"registries: {npm: {url: \"https://npm.example.org/\"}}\n"                       \
	"ward:\n"

/* says: behind the place of it. */
static inline void expect_refused(const char *rule, const char *key, const char *says)
{
	struct err err = ERR_INIT;
	char text[1024], whole[256];
	struct conf c;
	int n = snprintf(text, sizeof(text), MAIN "  - %s\n", rule);

	cr_assert(n > 0 && (size_t)n < sizeof(text));
	n = snprintf(whole, sizeof(whole), "line 10: ward, entry 1%s%s", key, says);
	cr_assert(n > 0 && (size_t)n < sizeof(whole));
	cr_expect_lt(conf_parse(text, strlen(text), &c, &err), 0, "%s", text);
	cr_expect_eq(err.id, ERRID_START_CONFIG);
	cr_expect(strstr(err.msg, whole), "%s: %s", rule, err.msg);
}

#endif
