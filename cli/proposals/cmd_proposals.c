/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych proposals: what jobs were refused for want of a rule, and a person's word on it.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/proposals/always.h"
#include "cli/secret/second_factor.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>
#include <unistd.h>

#define LIST_MAX 1024
#define TIMEOUT_MS 30000
#define REASON_MAX_BYTES 200 /* as of a rule */

enum { OPT_ONCE = 256, OPT_JOB, OPT_ALWAYS, OPT_REASON };

struct proposals_args {
	struct cmd_words words; /* the verb, and a number */
	int how;		/* OPT_ONCE without */
	const char *reason;
	uint64_t number;
	bool json;
};

static void read_how(struct proposals_args *a, int key, struct argp_state *state)
{
	if (a->how && a->how != key)
		cmd_usage(state, "one of --once, --job and --always");
	a->how = key;
}

static void check_words(struct proposals_args *a, struct argp_state *state)
{
	struct err err = ERR_INIT;
	bool allows = cmd_words_are(&a->words, 2, "allow");

	if (a->words.n && !allows && !cmd_words_are(&a->words, 2, "drop"))
		cmd_usage(state, "nothing, allow N or drop N");
	if (!allows && (a->how || a->reason))
		cmd_usage(state, "--once, --job, --always and --reason are for allow");
	if (a->words.n && parse_u64(a->words.at[1], 1, INT64_MAX, &a->number, &err) < 0)
		cmd_usage(state, "%s: %s", a->words.at[0], err.msg);
	if (a->reason && strlen(a->reason) > REASON_MAX_BYTES)
		cmd_usage(state, "--reason: at most %d bytes", REASON_MAX_BYTES);
}

static error_t proposals_parse(int key, char *arg, struct argp_state *state)
{
	struct proposals_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case OPT_ONCE:
	case OPT_JOB:
	case OPT_ALWAYS:
		read_how(a, key, state);
		return 0;
	case OPT_REASON:
		a->reason = arg;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_word(&a->words, arg);
	case ARGP_KEY_END:
		check_words(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the list ---------------------------------------------------------------- */

static int ask_list(struct client *c, struct json **ret, const struct json **ret_list,
		    struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/proposals", .timeout_ms = TIMEOUT_MS};

	if (client_json(c, &rq, ret, NULL, err) < 0)
		return -1;
	return json_get_arr(*ret, "proposals", true, LIST_MAX, ret_list, err);
}

static void number_cell(struct table *t, const struct json *one, const char *key)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, render_number_of(one, key));
	table_cell(t, text);
}

/* "GET https://host/path"; the caller frees it. */
static char *what_of(const struct json *one)
{
	return xasprintf("%s https://%s%s", render_text_of(one, "method"),
			 render_text_of(one, "host"), render_text_of(one, "path"));
}

/* The host is what a person looks at: a long one wraps, and has no blank in it; the path is cut. */
static void print_what(const struct json *one)
{
	cleanup_free char *origin =
		xasprintf("  %s https://%s", render_text_of(one, "method"),
			  render_text_of(one, "host"));
	cleanup_free char *path = render_shown(render_text_of(one, "path"));
	cleanup_free char *shown = render_shown(origin);
	cleanup_free char *most = xasprintf("%s…", shown);
	cleanup_free char *room = render_fit(most, STDOUT_FILENO);
	cleanup_free char *whole = xasprintf("%s%s", shown, path);
	cleanup_free char *cut = render_fit(whole, STDOUT_FILENO);

	(void)puts(str_eq(most, room) ? cut : most);
}

/* On a terminal, which a table would be cut for. */
static void print_each(const struct json *list)
{
	char when[WHEN_SIZE];

	for (size_t i = 0; i < json_arr_len(list); i++) {
		const struct json *one = json_arr_at(list, i);
		cleanup_free char *state = render_shown(render_text_of(one, "state"));
		uint64_t times = render_number_of(one, "times");

		when_text_of(render_text_of(one, "last"), when);
		(void)printf(
			"%" PRIu64 "  job %" PRIu64 ", %" PRIu64 " time%s, last %s, %s\n",
			render_number_of(one, "proposal"), render_number_of(one, "job"),
			times, times == 1 ? "" : "s", when, state);
		print_what(one);
	}
}

static void print_table(const struct json *list)
{
	static const char *const head[] = {"N", "JOB", "TIMES", "LAST", "STATE", "WHAT"};
	char when[WHEN_SIZE];
	struct table t;

	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const struct json *one = json_arr_at(list, i);
		cleanup_free char *what = what_of(one);

		number_cell(&t, one, "proposal");
		number_cell(&t, one, "job");
		number_cell(&t, one, "times");
		when_text_of(render_text_of(one, "last"), when);
		table_cell(&t, when);
		table_cell(&t, render_text_of(one, "state"));
		table_cell_whole(&t, what);
	}
	table_print(&t, true);
	table_done(&t);
}

static void print_list(const struct json *list)
{
	if (json_arr_len(list) == 0) {
		(void)puts("nothing was refused to a job for want of a rule");
		return;
	}
	if (render_is_terminal(STDOUT_FILENO))
		print_each(list);
	else
		print_table(list);
	(void)puts("\n'lych proposals allow N' lets the next such request of that job "
		   "pass; a host that begins\nwith xn-- has letters that look like "
		   "others.");
}

static int list(const struct proposals_args *a, struct client *c, struct err *err)
{
	const struct json *arr = NULL;
	cleanup_json struct json *j = NULL;

	if (ask_list(c, &j, &arr, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else
		print_list(arr);
	return render_flush(err);
}

/* ---- a word on one ----------------------------------------------------------- */

static const struct json *find(const struct json *list, uint64_t number)
{
	for (size_t i = 0; i < json_arr_len(list); i++)
		if (render_number_of(json_arr_at(list, i), "proposal") == number)
			return json_arr_at(list, i);
	return NULL;
}

static void write_word(const struct proposals_args *a, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "how", a->how == OPT_JOB ? "job" : "once");
	if (a->reason)
		jsonw_kstr(&w, "reason", a->reason);
	jsonw_obj_end(&w);
}

static int allow(const struct proposals_args *a, struct client *c, const struct json *one,
		 struct json **ret, struct err *err)
{
	cleanup_free char *target =
		xasprintf("/v1/proposals/%" PRIu64 "/allow", a->number);
	cleanup_free char *act =
		xasprintf("allow proposal %" PRIu64 " to its job %" PRIu64, a->number,
			  render_number_of(one, "job"));
	cleanup_buf struct buf body = {.max = 4096};

	write_word(a, &body);
	const struct client_request rq = {.method = "POST",
					  .target = target,
					  .body = buf_str(&body),
					  .body_len = body.len,
					  .timeout_ms = TIMEOUT_MS};

	return second_factor_json(c, &rq, act, ret, err);
}

static int drop(const struct proposals_args *a, struct client *c, struct json **ret,
		struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/proposals/%" PRIu64, a->number);
	const struct client_request rq = {
		.method = "DELETE", .target = target, .timeout_ms = TIMEOUT_MS};

	return client_json(c, &rq, ret, NULL, err);
}

static const char *told(const struct proposals_args *a, bool allows)
{
	return !allows		      ? "is not shown again, and passes no more"
	       : a->how == OPT_ALWAYS ? "passes, by the rule"
	       : a->how == OPT_JOB    ? "passes until the job ends"
				      : "passes once";
}

/* A rule has it now: it is no proposal any more. */
static int allow_always(const struct proposals_args *a, const char *codex,
			struct client *c, const struct json *one, struct json **ret,
			struct err *err)
{
	cleanup_json struct json *j = NULL;
	struct err gone = ERR_INIT;

	if (proposal_always(c, codex, one, a->reason, a->json, ret, err) < 0)
		return -1;
	(void)!drop(a, c, &j, &gone); /* its job may have ended meanwhile */
	return 0;
}

static int act_on(const struct proposals_args *a, const char *codex, struct client *c,
		  const struct json *one, struct json **ret, struct err *err)
{
	if (str_eq(a->words.at[0], "drop"))
		return drop(a, c, ret, err);
	return a->how == OPT_ALWAYS ? allow_always(a, codex, c, one, ret, err)
				    : allow(a, c, one, ret, err);
}

static int say(const struct proposals_args *a, const char *codex, struct client *c,
	       struct err *err)
{
	bool allows = str_eq(a->words.at[0], "allow");
	cleanup_json struct json *all = NULL, *j = NULL;
	const struct json *arr = NULL, *one;

	if (ask_list(c, &all, &arr, err) < 0)
		return -1;
	one = find(arr, a->number);
	if (!one)
		return err_set_id(err, ERRID_PROPOSAL_GONE, "%" PRIu64, a->number);
	cleanup_free char *what = what_of(one);
	cleanup_free char *shown = render_shown(what);

	/* what the passphrase is about to be given for */
	if (allows && !a->json)
		(void)printf("job %" PRIu64 ": %s\n", render_number_of(one, "job"),
			     shown);
	(void)fflush(stdout);
	if (act_on(a, codex, c, one, &j, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else
		(void)printf("%s: %s\n", shown, told(a, allows));
	return render_flush(err);
}

int cmd_proposals(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"once", OPT_ONCE, NULL, 0,
		 "allow: the next such request of that job (this is so without it)", 0},
		{"job", OPT_JOB, NULL, 0,
		 "allow: each until that job ends; asks for the passphrase", 0},
		{"always", OPT_ALWAYS, NULL, 0,
		 "allow: for all jobs, by a rule in codex.yaml, which is put into force; "
		 "asks for the passphrase",
		 0},
		{"reason", OPT_REASON, "TEXT", 0,
		 "allow: why, for the audit log or the rule", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = proposals_parse,
		.children = when_option,
		.args_doc = "\nallow N\ndrop N",
		.doc = "What jobs were refused for no other reason than that no rule "
		       "allows it, each as one method, host and path. Nothing wider is "
		       "ever allowed, and budget, gate and addresses judge it as "
		       "before.\v"
		       "Examples:\n"
		       "  lych proposals\n"
		       "  lych proposals allow 3\n"
		       "  lych proposals allow 3 --job --reason 'the schema that it asks "
		       "for'\n"
		       "  lych proposals allow 3 --always\n"
		       "  lych proposals drop 4"};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct proposals_args a = {0};
	struct err err = ERR_INIT;
	int r = -1;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (paths_resolve(&p, &err) == 0 && client_new(p.api_sock, &c, &err) == 0)
		r = a.words.n ? say(&a, p.config, c, &err) : list(&a, c, &err);
	return r < 0 ? cmd_fail(&err, a.json) : 0;
}
