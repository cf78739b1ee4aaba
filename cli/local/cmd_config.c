/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych config init|check|set|unset|edit: a codex.yaml to begin with, what one means for jobs, and other values.
 */
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/machine.h"
#include "cli/base/paths.h"
#include "cli/local/config_change.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

struct config_args {
	struct cmd_words words;
	bool json;
};

static error_t config_parse(int key, char *arg, struct argp_state *state)
{
	struct config_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_word(&a->words, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- init -------------------------------------------------------------------- */

static int check_text(const struct buf *text, size_t *ret_registries, struct err *err)
{
	struct conf conf;

	if (!buf_ok(text))
		return err_set(err, ERR_INTERNAL, "the file would be too long");
	if (conf_parse(buf_str(text), text->len, &conf, err) < 0)
		return err_wrap(err, "what this machine's settings made of it");
	*ret_registries = 0;
	for (unsigned k = 0; k < REGISTRY_KIND_MAX_; k++)
		*ret_registries += conf.broker.registry[k].url.text != NULL;
	conf_done(&conf);
	return 0;
}

static int config_init(const struct config_args *a, const struct paths *p,
		       struct err *err)
{
	cleanup_free char *dir = xstrdup(p->config);
	cleanup_buf struct buf text = {0};
	cleanup_close int fd = -1;
	size_t n_registries = 0;

	*strrchr(dir, '/') = '\0';
	buf_init(&text, CONF_FILE_MAX_BYTES);
	buf_adds(&text, conf_template());
	if (access(p->config, F_OK) < 0)
		machine_write_registries(p->home, true, &text);
	if (check_text(&text, &n_registries, err) < 0 || fs_mkdir_all(dir, 0700, err) < 0)
		return -1;
	fd = open(p->config, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return err_set_id(err, ERRID_STORE_EXISTS, "%s; it was not touched",
				  p->config);
	if (fd < 0)
		return err_sys(err, "%s", p->config);
	if (fs_write_all(fd, text.data, text.len, err) < 0 ||
	    (fsync(fd) < 0 && err_sys(err, "%s", p->config) < 0)) {
		(void)unlink(p->config); /* half of one would be taken for whole */
		return -1;
	}
	cleanup_free char *shown = render_shown(p->config);

	if (a->json)
		(void)printf("{\"ok\":true,\"registries\":%zu}\n", n_registries);
	else
		(void)printf("%s written; every key is at its default%s\n", shown,
			     n_registries ? ", registries as npm and pip have them here"
					  : "");
	return render_flush(err) < 0
		       ? err_wrap(err, "%s was written, only not told", p->config)
		       : 0;
}

/* ---- check ------------------------------------------------------------------- */

static void put_portal(struct buf *b, const struct conf_portal *p)
{
	char apis[PORTAL_APIS_TEXT_SIZE];

	buf_addf(b, "portal %s (%s", p->name, p->url.text);
	if (p->lacks) {
		conf_portal_apis(p, apis);
		buf_addf(b, ", with %s only", apis);
	}
	buf_addc(b, ')');
}

static void put_rule(struct buf *b, const struct conf_broker *c,
		     const struct conf_rule *rule)
{
	static const char *const schemes[] = {
		[WARD_HTTPS] = "https", [WARD_HTTP] = "http", [WARD_ANY_SCHEME] = "*"};
	bool is_v6 = rule->target == WARD_HOST && strchr(rule->name, ':');

	buf_addf(b, "rule %zu, %s", (size_t)(rule - c->rule) + 1,
		 ward_action_name(rule->action));
	if (rule->action == WARD_LIMIT)
		buf_addf(b, " %" PRIu64 " in %" PRIu64 " s", rule->limit_count,
			 rule->limit_window_usec / USEC_PER_SEC);
	buf_adds(b, ": ");
	switch (rule->target) {
	case WARD_PORTAL:
		put_portal(b, conf_portal_find(c, rule->name));
		break;
	case WARD_REGISTRY:
		buf_addf(b, "registry %s, with egress registry", rule->name);
		break;
	case WARD_HOST:
	default:
		buf_addf(b, "%s %s://%s%s%s%s",
			 rule->protocol == WARD_GIT ? "git"
			 : rule->method		    ? rule->method
						    : "any method",
			 schemes[rule->scheme], rule->is_suffix ? "*." : "",
			 is_v6 ? "[" : "", rule->name, is_v6 ? "]" : "");
		if (rule->port)
			buf_addf(b, ":%u", rule->port);
		buf_adds(b, rule->path ? rule->path : "/");
		if (rule->credential)
			buf_addf(b, ", with the key of %s", rule->credential);
		if (rule->push)
			buf_adds(b, ", with push");
		if (rule->replies == WARD_BINARY)
			buf_adds(b, ", binary replies");
	}
}

/* The rules of two kinds: those that permit, those that refuse. */
static void print_rules(struct jsonw *w, const struct conf_broker *c, bool permitting)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_rules; i++) {
		cleanup_buf struct buf b = {0};

		if ((c->rule[i].action <= WARD_LIMIT) != permitting)
			continue;
		buf_init(&b, 8192);
		put_rule(&b, c, &c->rule[i]);
		if (w) {
			jsonw_str(w, buf_str(&b));
			continue;
		}
		if (n++ == 0)
			(void)printf("%s\n",
				     permitting ? "jobs that run with --egress may ask:"
						: "but not:");
		(void)printf("  %s\n", buf_str(&b));
	}
	if (!w && permitting && n == 0)
		(void)puts(
			"jobs may ask nothing of models, the network or registries: no "
			"rule of the ward allows it");
}

static bool is_given(const struct conf_broker *c, const char *credential)
{
	for (size_t i = 0; i < c->n_rules; i++)
		if (str_eq(c->rule[i].credential, credential))
			return true;
	return false;
}

/* No error: what takes a permission away must not need another change as well (ADR 50). */
static void print_unused_keys(const struct conf_broker *c)
{
	for (size_t i = 0; i < c->n_credentials; i++)
		if (!is_given(c, c->credential[i].name))
			(void)printf(
				"no rule of the ward gives a request the key of %s\n",
				c->credential[i].name);
}

static void print_classifier(const struct conf_broker *c)
{
	if (conf_classifier(c))
		(void)printf("the gate asks portal %s (%s) for a second opinion on each "
			     "ask\n",
			     c->classifier.name, c->classifier.url.text);
	else if (c->classifier.name)
		(void)printf("nobody asks portal %s, of kind classifier: gate.classifier "
			     "does not name it\n",
			     c->classifier.name);
}

static void print_config(const struct config_args *a, const char *file,
			 const struct conf *conf)
{
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	cleanup_free char *shown = render_shown(file);

	if (!a->json) {
		(void)printf("%s: ok\n", shown);
		print_rules(NULL, &conf->broker, true);
		print_rules(NULL, &conf->broker, false);
		print_unused_keys(&conf->broker);
		print_classifier(&conf->broker);
		return;
	}
	buf_init(&out, (size_t)1 << 20);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kbool(&w, "ok", true);
	jsonw_kstr(&w, "file", file);
	jsonw_key(&w, "permits");
	jsonw_arr(&w);
	print_rules(&w, &conf->broker, true);
	jsonw_arr_end(&w);
	jsonw_key(&w, "refuses");
	jsonw_arr(&w);
	print_rules(&w, &conf->broker, false);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
}

static int config_check(const struct config_args *a, const struct paths *p,
			struct err *err)
{
	cleanup_free char *shown = render_shown(p->config);
	struct conf conf;

	if (access(p->config, F_OK) < 0 && errno == ENOENT) {
		if (a->json)
			(void)puts("{\"ok\":true,\"file\":null}");
		else
			(void)printf("no %s: every key is at its default\n", shown);
		return 0;
	}
	if (config_load(p->config, &conf, err) < 0)
		return -1;
	print_config(a, p->config, &conf);
	conf_done(&conf);
	return 0;
}

static int config(const struct config_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};

	if (paths_resolve(&p, err) < 0)
		return -1;
	if (cmd_words_are(&a->words, 1, "init"))
		return config_init(a, &p, err);
	if (cmd_words_are(&a->words, 1, "check"))
		return config_check(a, &p, err);
	if (cmd_words_are(&a->words, 1, "edit"))
		return config_edit(p.config, a->json, err);
	if (cmd_words_are(&a->words, 3, "set"))
		return config_set(p.config, a->words.at[1], a->words.at[2], a->json, err);
	if (cmd_words_are(&a->words, 2, "unset"))
		return config_set(p.config, a->words.at[1], NULL, a->json, err);
	return err_set_id(
		err, ERRID_CORE_USAGE,
		"'lych config init', 'check', 'edit', 'set KEY VALUE' or 'unset "
		"KEY'");
}

int cmd_config(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = config_parse,
		.args_doc = "init\ncheck\nset KEY VALUE\nunset KEY\nedit",
		.doc = "Write codex.yaml; check it and say what it allows to jobs; set "
		       "one key of it or take it out again, with its comments and layout "
		       "as they are; or edit "
		       "it in $VISUAL or $EDITOR, where nothing is changed until all of "
		       "it is acceptable.\vA KEY is written with dots: tomb.slots, "
		       "limits.memory.max. Lists are for 'edit'.\n\n"
		       "Examples:\n"
		       "  lych config init\n"
		       "  lych config set limits.memory.max 4GiB\n"
		       "  lych config unset limits.memory.max\n"
		       "  lych config check"};
	struct config_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return cmd_end(config(&a, &err), &err, a.json);
}
