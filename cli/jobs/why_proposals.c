/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See why_proposals.h.
 */
#include "cli/jobs/why_proposals.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include <inttypes.h>
#include <stdio.h>

#define LIST_MAX 1024
#define TIMEOUT_MS 30000

struct json *why_proposals_ask(struct client *c)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/proposals", .timeout_ms = TIMEOUT_MS};
	struct err ignored = ERR_INIT;
	struct json *j = NULL;

	return client_json(c, &rq, &j, NULL, &ignored) == 0 ? j : NULL;
}

/* The i-th of the job, from *at on; NULL: there are no more. */
static const struct json *next(const struct json *all, job_id_t id, size_t *at)
{
	const struct json *list = NULL, *one;
	struct err ignored = ERR_INIT;

	if (!all || json_get_arr(all, "proposals", true, LIST_MAX, &list, &ignored) < 0)
		return NULL;
	while (*at < json_arr_len(list)) {
		one = json_arr_at(list, (*at)++);
		if (render_number_of(one, "job") == (uint64_t)id)
			return one;
	}
	return NULL;
}

static void print_one(const struct json *one)
{
	uint64_t times = render_number_of(one, "times");
	cleanup_free char *what = xasprintf(
		"  %" PRIu64 "  %s https://%s%s, %" PRIu64 " time%s, %s",
		render_number_of(one, "proposal"), render_text_of(one, "method"),
		render_text_of(one, "host"), render_text_of(one, "path"), times,
		times == 1 ? "" : "s", render_text_of(one, "state"));
	cleanup_free char *shown = render_shown(what);

	(void)puts(shown);
}

void why_proposals_print(const struct json *all, job_id_t id, bool ended)
{
	const struct json *one;
	size_t n = 0;

	for (size_t at = 0; next(all, id, &at);)
		n++;
	if (n == 0)
		return;
	(void)printf(
		"For want of a rule alone, by number, so that you may allow it (%zu):\n",
		n);
	for (size_t at = 0; (one = next(all, id, &at));)
		print_one(one);
	(void)puts(ended ? "It has ended: 'lych proposals allow N --always' makes a rule "
			   "of one, for later jobs."
			 : "'lych proposals allow N' lets the next such request pass, "
			   "--job each until it ends.");
}

void why_proposals_json(const struct json *all, job_id_t id, struct jsonw *w)
{
	const struct json *one;

	jsonw_key(w, "proposals");
	jsonw_arr(w);
	for (size_t at = 0; (one = next(all, id, &at));)
		json_write(one, w);
	jsonw_arr_end(w);
}
