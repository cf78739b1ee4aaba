/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See always.h.
 */
#include "cli/proposals/always.h"
#include "cli/local/config_change.h"
#include "cli/local/ward_text.h"
#include "cli/secret/second_factor.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdio.h>

#define RULE_MAX_BYTES 4096
#define TIMEOUT_MS 30000

struct reload {
	struct client *c;
	struct second_factor factor;
	struct json **ret;
};

static int reload(const struct buf *text, void *arg, struct err *err)
{
	struct reload *r = arg;
	cleanup_free char *act = NULL, *proof = NULL;
	struct client_request rq = {.method = "POST",
				    .target = "/v1/ward/reload?adds=1",
				    .body = text->data,
				    .body_len = text->len,
				    .raw = true,
				    .timeout_ms = TIMEOUT_MS};
	uint8_t sum[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	sha256_of(text->data, text->len, sum);
	hex_encode(sum, sizeof(sum), hex);
	act = xasprintf("reload the ward from %s", hex);
	proof = second_factor_prove(&r->factor, act);
	rq.proof = proof;
	return client_json(r->c, &rq, r->ret, NULL, err);
}

static void show(const char *codex, const char *rule)
{
	cleanup_free char *shown = render_shown(rule), *file = render_shown(codex);

	(void)printf(
		"%s, ward:\n  - %s\nfor all jobs, with what lies below that path; GET "
		"is HEAD too\n",
		file, shown);
	(void)fflush(stdout);
}

int proposal_always(struct client *c, const char *codex, const struct json *one,
		    const char *reason, bool is_quiet, struct json **ret, struct err *err)
{
	const struct ward_rule_text rule = {.host = render_text_of(one, "host"),
					    .method = render_text_of(one, "method"),
					    .path = render_text_of(one, "path"),
					    .reason = reason};
	cleanup_buf struct buf text = {.max = RULE_MAX_BYTES};
	struct reload r = {.c = c, .ret = ret};
	int done = -1;

	/* before anybody is asked */
	if (ward_rule_write(&rule, &text, err) < 0 || second_factor_need(c, err) < 0 ||
	    config_check_rule(codex, buf_str(&text), err) < 0)
		return -1;
	if (!is_quiet)
		show(codex, buf_str(&text));
	if (second_factor_ask(c, &r.factor, err) == 0)
		done = config_add_rule(codex, buf_str(&text), reload, &r, err);
	second_factor_wipe(&r.factor);
	return done;
}
