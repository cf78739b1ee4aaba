/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych ward list|test|reload: the rules of the broker, one decision explained by them, and
 * those of codex.yaml as it is now, and its credentials, into force.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/paths.h"
#include "cli/secret/second_factor.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/crypto/sha256.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

struct ward_args {
	const char *verb, *target, *method;
	uint64_t job;
	bool json;
};

enum { OPT_AS = 256, OPT_METHOD };

static error_t ward_parse(int key, char *arg, struct argp_state *state)
{
	struct ward_args *a = state->input;
	struct err err = ERR_INIT;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case OPT_AS:
		if (parse_u64(arg, 1, INT64_MAX, &a->job, &err) < 0)
			cmd_usage(state, "--as: %s", err.msg);
		return 0;
	case OPT_METHOD:
		a->method = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else if (!a->target)
			a->target = arg;
		else
			return ARGP_ERR_UNKNOWN;
		return 0;
	case ARGP_KEY_END:
		if ((str_eq(a->verb, "list") || str_eq(a->verb, "reload")) &&
		    !a->target && !a->job && !a->method)
			return 0;
		if (!str_eq(a->verb, "test") || !a->target)
			cmd_usage(state, "list, test URL|PORTAL|registry:npm, or reload");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* "host *.example.org http :8080 POST /v1" */
static void put_target(struct buf *b, const struct json *rule)
{
	if (json_has(rule, "portal")) {
		buf_addf(b, "portal %s", render_text_of(rule, "portal"));
		return;
	}
	if (json_has(rule, "registry")) {
		buf_addf(b, "registry %s", render_text_of(rule, "registry"));
		return;
	}
	buf_addf(b, "%s://%s",
		 *render_text_of(rule, "scheme") ? render_text_of(rule, "scheme") : "*",
		 render_text_of(rule, "host"));
	if (render_number_of(rule, "port"))
		buf_addf(b, ":%" PRIu64, render_number_of(rule, "port"));
	else
		buf_adds(b, ":*");
	buf_addf(b, "%s %s",
		 *render_text_of(rule, "path") ? render_text_of(rule, "path") : "/*",
		 *render_text_of(rule, "protocol") ? render_text_of(rule, "protocol")
		 : *render_text_of(rule, "method") ? render_text_of(rule, "method")
						   : "any method");
	if (*render_text_of(rule, "push"))
		buf_adds(b, ", with push");
	if (*render_text_of(rule, "credential"))
		buf_addf(b, ", with the key of %s", render_text_of(rule, "credential"));
	if (str_eq(render_text_of(rule, "replies"), "binary"))
		buf_adds(b, ", binary replies");
}

static void put_action(struct buf *b, const struct json *rule)
{
	uint64_t window = render_number_of(rule, "window_sec");

	buf_adds(b, render_text_of(rule, "action"));
	if (window)
		buf_addf(b, " %" PRIu64 "/%s", render_number_of(rule, "limit"),
			 window == 60	  ? "min"
			 : window == 3600 ? "hour"
					  : "day");
}

static int print_rules(const struct json *answer, bool tested, struct err *err)
{
	const struct json *rules = NULL;
	struct table t;

	if (json_get_arr(answer, "rules", true, 1024, &rules, err) < 0)
		return -1;
	if (json_arr_len(rules) == 0)
		return 0;
	table_init(&t, tested ? 4 : 5);
	table_cell(&t, "RULE");
	table_cell(&t, "ACTION");
	table_cell(&t, "TARGET");
	table_cell(&t, tested ? "HERE" : "REASON");
	if (!tested)
		table_cell(&t, "LINE");
	for (size_t i = 0; i < json_arr_len(rules); i++) {
		const struct json *rule = json_arr_at(rules, i);
		cleanup_buf struct buf b = {0};
		char num[32];

		buf_init(&b, 16384);
		(void)snprintf(num, sizeof(num), "%" PRIu64,
			       render_number_of(rule, "number"));
		table_cell(&t, num);
		put_action(&b, rule);
		table_cell(&t, buf_str(&b));
		buf_reset(&b);
		put_target(&b, rule);
		table_cell_whole(&t, buf_str(&b));
		table_cell_whole(&t, render_text_of(rule, tested ? "match" : "reason"));
		(void)snprintf(num, sizeof(num), "%" PRIu64,
			       render_number_of(rule, "line"));
		if (!tested)
			table_cell(&t, num);
	}
	table_print(&t, true);
	table_done(&t);
	return 0;
}

/* "Generation 2, reloaded 2026-01-31T12:00:00Z." */
static void print_generation(const struct json *j)
{
	const char *when = render_text_of(j, "reloaded");

	(void)printf("Generation %" PRIu64 ", %s%s.\n", render_number_of(j, "generation"),
		     *when ? "reloaded " : "as the vessel began", when);
}

static int list(const struct ward_args *a, struct client *c, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/ward", .timeout_ms = 10000};
	const struct json *rules = NULL;
	cleanup_json struct json *j = NULL;

	if (client_json(c, &rq, &j, NULL, err) < 0)
		return -1;
	if (a->json) {
		render_json(j);
		return render_flush(err);
	}
	if (json_get_arr(j, "rules", true, 1024, &rules, err) < 0 ||
	    print_rules(j, false, err) < 0)
		return -1;
	(void)printf("%s\n",
		     json_arr_len(rules)
			     ? "\nThe strictest rule that matches wins; what none "
			       "matches is denied."
			     : "No rules: jobs may ask nothing. See ward in "
			       "codex.yaml(5).");
	print_generation(j);
	return render_flush(err);
}

static void print_verdict(const struct json *j, bool permitted)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, 16384);
	buf_addf(&b, "%s: %s %s", permitted ? "permitted" : "refused",
		 render_text_of(j, "method"), render_text_of(j, "target"));
	if (render_number_of(j, "rule"))
		buf_addf(&b, ", by rule %" PRIu64 " (%s)", render_number_of(j, "rule"),
			 render_text_of(j, "action"));
	if (*render_text_of(j, "credential"))
		buf_addf(&b, ", with the key of portal %s",
			 render_text_of(j, "credential"));
	if (str_eq(render_text_of(j, "replies"), "binary"))
		buf_adds(&b, ", binary replies too");
	buf_addc(&b, '\n');
	if (!permitted)
		buf_addf(&b, "  %s  %s\n  %s\n", render_text_of(j, "error_code"),
			 render_text_of(j, "detail"), render_text_of(j, "hint"));
	else
		buf_adds(&b, "  Budget and gate come after the ward, and an address must "
			     "be public or named.\n");
	cleanup_buf struct buf safe = {0};

	buf_init(&safe, 65536);
	for (const char *at = buf_str(&b), *nl; *at; at = nl + 1) {
		nl = strchr(at, '\n');
		render_escape(&safe, at, (size_t)(nl - at), 0);
		buf_addc(&safe, '\n');
	}
	(void)fputs(buf_str(&safe), stdout);
}

/* The vessel answers by the file of its start or of the last reload: a rule in it now that no URL
 * can match would never be among those that are shown. */
static int check_rules(const char *path, struct err *err)
{
	struct conf conf;

	if (config_load_or_defaults(path, &conf, err) < 0)
		return -1;
	conf_done(&conf);
	return 0;
}

static int test(const struct ward_args *a, struct client *c, struct err *err)
{
	cleanup_buf struct buf body = {0};
	cleanup_json struct json *j = NULL;
	bool permitted = false;
	struct jsonw w;

	buf_init(&body, 16384);
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "target", a->target);
	if (a->method)
		jsonw_kstr(&w, "method", a->method);
	if (a->job)
		jsonw_ku64(&w, "job", a->job);
	jsonw_obj_end(&w);
	if (!buf_ok(&body))
		return err_set_id(err, ERRID_CORE_USAGE, "the target is too long");
	const struct client_request rq = {.method = "POST",
					  .target = "/v1/ward/test",
					  .body = body.data,
					  .body_len = body.len,
					  .timeout_ms = 10000};

	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_bool(j, "permitted", true, &permitted, err) < 0)
		return -1;
	if (a->json) {
		render_json(j);
	} else {
		print_verdict(j, permitted);
		if (print_rules(j, true, err) < 0)
			return -1;
	}
	if (render_flush(err) < 0)
		return -1;
	return permitted ? 0 : EXIT_FAILED;
}

/* ---- reload -------------------------------------------------------------------- */

static int read_codex(const char *path, struct buf *text, struct err *err)
{
	struct conf conf;

	if (conf_read_text(path, text, err) < 0 ||
	    config_accept(path, text, &conf, err) < 0)
		return -1;
	conf_done(&conf);
	return 0;
}

static void print_reloaded(const struct json *j)
{
	uint64_t denying = render_number_of(j, "denying"),
		 cut = render_number_of(j, "cut"),
		 credentials = render_number_of(j, "credentials");

	(void)printf("generation %" PRIu64 " of the ward is in force; rules: %" PRIu64
		     " that permit, %" PRIu64 " that deny\n",
		     render_number_of(j, "generation"),
		     render_number_of(j, "rules") - denying, denying);
	if (credentials)
		(void)printf("credentials: %" PRIu64 ", %" PRIu64
			     " of them with a key that was read now\n",
			     credentials, render_number_of(j, "new_keys"));
	if (cut)
		(void)printf("%" PRIu64 " request%s under way that it does not permit "
			     "%s cut\n",
			     cut, cut == 1 ? "" : "s", cut == 1 ? "was" : "were");
}

static int reload(const struct ward_args *a, const char *path, struct client *c,
		  struct err *err)
{
	cleanup_buf struct buf text = {.max = CONF_FILE_MAX_BYTES};
	cleanup_json struct json *j = NULL;
	cleanup_free char *act = NULL;
	uint8_t sum[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	if (read_codex(path, &text, err) < 0)
		return err_wrap(err, "the rules in force are the same as before");
	const struct client_request rq = {.method = "POST",
					  .target = "/v1/ward/reload",
					  .body = text.data,
					  .body_len = text.len,
					  .raw = true,
					  .timeout_ms = 30000};

	sha256_of(text.data, text.len, sum);
	hex_encode(sum, sizeof(sum), hex);
	act = xasprintf("reload the ward from %s", hex);
	if (second_factor_json(c, &rq, act, &j, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else
		print_reloaded(j);
	return render_flush(err);
}

int cmd_ward(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"as", OPT_AS, "JOB", 0, "test: as this job would be answered", 0},
		{"method", OPT_METHOD, "METHOD", 0, "test: of a URL (GET)", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = ward_parse,
		.args_doc = "list\ntest URL|PORTAL|registry:npm|pypi|cargo|go\nreload",
		.doc = "What jobs may ask of the broker; and the rules and credentials "
		       "of "
		       "codex.yaml as it is now into force, without a restart, for jobs "
		       "that run too.\v"
		       "test sends nothing and uses no rate up; it exits with 1 when the "
		       "answer is no.\n\n"
		       "Examples:\n"
		       "  lych ward list\n"
		       "  lych ward reload\n"
		       "  lych ward test --as 1 main\n"
		       "  lych ward test --method POST https://api.example.com/v1"};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct ward_args a = {0};
	struct err err = ERR_INIT;
	int r = -1;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (paths_resolve(&p, &err) == 0 && client_new(p.api_sock, &c, &err) == 0)
		r = str_eq(a.verb, "list")	       ? list(&a, c, &err)
		    : str_eq(a.verb, "reload")	       ? reload(&a, p.config, c, &err)
		    : check_rules(p.config, &err) == 0 ? test(&a, c, &err)
						       : -1;
	return r < 0 ? cmd_fail(&err, a.json) : r;
}
