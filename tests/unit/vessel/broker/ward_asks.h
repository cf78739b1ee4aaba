/* SPDX-License-Identifier: Apache-2.0 */
/* A codex.yaml with these rules of the ward, and who asks it for what. */
#ifndef LYCH_TESTS_UNIT_VESSEL_BROKER_WARD_ASKS_H
#define LYCH_TESTS_UNIT_VESSEL_BROKER_WARD_ASKS_H

#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/ward.h"

#include <criterion/criterion.h>

TestSuite(ward, .timeout = 60);

#define BASE                                                                             \
	"version: \"1\"\n"                                                               \
	"portals:\n"                                                                     \
	"  - name: main\n    kind: openai\n    url: \"https://api.example.com/v1\"\n"    \
	"    secret: portal_main\n"                                                      \
	"    models:\n      - {name: m, input: \"1\", output: \"1\"}\n"                  \
	"  - name: local\n    kind: openai\n    url: \"http://127.0.0.1:8080/v1\"\n"     \
	"    addresses:\n      - 127.0.0.1\n"                                            \
	"    models:\n      - {name: s, input: \"0\", output: \"0\"}\n"                  \
	"registries: {npm: {url: \"https://npm.example.org\"}}\n"

static inline struct conf conf_with(const char *rules)
{
	cleanup_free char *text =
		xasprintf("%s%s%s", BASE, *rules ? "ward:\n" : "", rules);
	struct conf c;
	struct err err = ERR_INIT;

	cr_assert(conf_parse(text, strlen(text), &c, &err) == 0, "%s\n%s", err.msg, text);
	return c;
}

static inline struct ward_ask fetch_of(const char *method, bool https, const char *host,
				       unsigned port, const char *path)
{
	return (struct ward_ask){.identity = "owner",
				 .target = WARD_HOST,
				 .https = https,
				 .host = host,
				 .port = port,
				 .method = method,
				 .path = path};
}

#define ALLOW_API                                                                        \
	"- {host: api.allowed.example, action: allow}\n"                                 \
	"- {host: api.allowed.example, method: POST, action: allow}\n"

#endif
