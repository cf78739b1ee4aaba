/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych secret: its options, and set, rotate, rm and tomb. A value is never shown.
 */
#include "cli/base/cmd.h"
#include "cli/base/config_file.h"
#include "cli/base/mode.h"
#include "cli/base/paths.h"
#include "cli/secret/secret_tombs.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>

struct secret_args {
	const char *verb, *name, *store, *tomb;
	bool json, generate, replace;
};

enum { OPT_STORE = 256, OPT_GENERATE, OPT_REPLACE, OPT_TOMB };

static error_t secret_parse(int key, char *arg, struct argp_state *state)
{
	struct secret_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case OPT_STORE:
		a->store = arg;
		return 0;
	case OPT_GENERATE:
		a->generate = true;
		return 0;
	case OPT_REPLACE:
		a->replace = true;
		return 0;
	case OPT_TOMB:
		a->tomb = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else if (!a->name)
			a->name = arg;
		else
			cmd_usage(state, "'%s': one name; a value comes from stdin", arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->verb)
			cmd_usage(state, "list, set, rotate, rm, tomb or check");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option secret_options[] = {
	{"store", OPT_STORE, "files|podman", 0,
	 "where the values are: embedded mode's files, or Podman's secrets (default "
	 "where "
	 "a pod is installed)",
	 0},
	{"generate", OPT_GENERATE, NULL, 0, "set: a random value instead of stdin's", 0},
	{"replace", OPT_REPLACE, NULL, 0, "set: also when there is one", 0},
	{"tomb", OPT_TOMB, "NAME", 0,
	 "rotate: the next generation of this tomb's own secrets", 0},
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp secret_argp = {
	.options = secret_options,
	.parser = secret_parse,
	.args_doc = "list|check\nset|rotate|rm NAME\nrotate --tomb NAME\ntomb NAME",
	.doc = "Secrets: what there is, and what is wrong with it. A value is read from "
	       "stdin or made, and never shown.\v"
	       "Examples:\n"
	       "  lych secret list\n"
	       "  lych secret set portal_main <keyfile\n"
	       "  lych secret rotate lychgate_db_watchdog\n"
	       "  lych secret check",
};

/* ---- set and rotate ---------------------------------------------------------- */

static void say(const struct secret_args *a, const struct secret_store *s,
		const char *state, const char *note)
{
	cleanup_buf struct buf b = {0};
	struct jsonw w;

	if (!a->json) {
		(void)printf("%s: %s in the store '%s' (%s); %s\n", a->name, state,
			     s->ops->name, s->where, note);
		return;
	}
	buf_init(&b, 65536);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "name", a->name);
	jsonw_kstr(&w, "store", s->ops->name);
	jsonw_kstr(&w, "where", s->where);
	jsonw_kstr(&w, "state", state);
	jsonw_kstr(&w, "note", note);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&b));
}

static int read_stdin(struct secret_value *v, struct err *err)
{
	char in[SECRET_VALUE_MAX_BYTES + 2];
	size_t len = 0;
	int r = 0;

	if (isatty(STDIN_FILENO))
		return err_set_id(err, ERRID_SECRET_VALUE,
				  "the value is read from a pipe or a file on stdin, not "
				  "from a terminal, where it would be shown; or say "
				  "--generate");
	for (;;) {
		ssize_t n = read(STDIN_FILENO, in + len, sizeof(in) - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = err_sys(err, "read stdin");
		if (n <= 0)
			break;
		len += (size_t)n;
		if (len == sizeof(in))
			break;
	}
	if (r == 0 && len && in[len - 1] == '\n')
		len--;
	if (r == 0 && len > SECRET_VALUE_MAX_BYTES)
		r = err_set_id(err, ERRID_SECRET_VALUE, "more than %d bytes",
			       SECRET_VALUE_MAX_BYTES);
	if (r == 0) {
		memcpy(v->s, in, len);
		v->s[len] = '\0';
		v->len = len;
	}
	explicit_bzero(in, sizeof(in));
	return r;
}

static int tomb(const struct secret_args *a, struct secret_store *s, struct err *err)
{
	if (secret_tomb_set(s, a->name, SECRET_TOMB_MAKE, err) < 0)
		return -1;
	say(a, s, "has its own secrets",
	    "its database role and what it is are told by 'lych-vessel migrate --tomb'");
	return render_flush(err);
}

static int rotate_tomb(struct secret_args *a, struct secret_store *s, struct err *err)
{
	const char *note = "";

	if (secret_rotate_tomb(s, a->tomb, &note, err) < 0)
		return -1;
	a->name = a->tomb;
	say(a, s, "next generation", note);
	return render_flush(err);
}

/* A container has what it was started with; a worker for a key of a host comes anew. */
static const char *when_used(const struct secret_args *a, const struct secret_store *s)
{
	bool is_host = str_starts(a->name, "host_");

	if (s->ops == &secret_files && is_host)
		return "what runs uses it after 'lych ward reload', or its next start";
	if (is_host || str_starts(a->name, "portal_"))
		return s->ops == &secret_files
			       ? "what runs uses it after its next start"
			       : "a pod that runs uses it after 'lych bind --install' (a "
				 "new name) and 'systemctl --user restart "
				 "lychgate-vessel.service'";
	return "what runs uses it after its next start";
}

static int set(const struct secret_args *a, struct secret_store *s,
	       const struct secret_info *info, struct err *err)
{
	cleanup_secret_value struct secret_value v = {0};
	struct conf conf;
	bool is_local;
	int r;

	if (a->replace && info->rotation == ROTATE_OWNER)
		return err_set_id(
			err, ERRID_SECRET_EXISTS,
			"'%s' is what PostgreSQL knows: use 'lych secret rotate "
			"%s', which tells it",
			a->name, a->name);
	if (a->generate && info->rotation == ROTATE_GIVEN)
		return err_set_id(err, ERRID_SECRET_VALUE,
				  "'%s' is issued by its provider: give it on stdin",
				  a->name);
	if (info->rotation == ROTATE_TOMB)
		return err_set_id(err, ERRID_SECRET_VALUE,
				  "'%s' is made from a master: 'lych secret tomb NAME', "
				  "'lych secret rotate --tomb NAME'",
				  a->name);
	if (a->generate)
		secret_value_generate(&v);
	else if (read_stdin(&v, err) < 0)
		return -1;
	if (config_load_or_defaults(s->paths->config, &conf, err) < 0)
		return -1;
	is_local = conf_portal_secret_is_local(&conf.broker, a->name);
	conf_done(&conf);
	r = info->rotation == ROTATE_GIVEN
		    ? secret_key_check(&v, is_local, err)
		    : secret_value_check(&v, SECRET_VALUE_MIN_BYTES, err);
	if (r < 0 || s->ops->write(s, a->name, &v, a->replace, err) < 0 ||
	    (secret_is_tombs_master(a->name) &&
	     secret_tombs_set(s, SECRET_TOMB_AS_IT_IS, err) < 0))
		return -1;
	say(a, s, "set", when_used(a, s));
	return render_flush(err);
}

static int drop(const struct secret_args *a, struct secret_store *s,
		const struct secret_info *info, struct err *err)
{
	struct conf conf;
	bool is_named = false;
	const char *name;

	if (info->rotation != ROTATE_GIVEN)
		return err_set_id(err, ERRID_SECRET_NEEDED, "'%s' is %s", a->name,
				  info->required ? "one without which nothing starts"
						 : "a tomb's, made from a master");
	if (config_load_or_defaults(s->paths->config, &conf, err) < 0)
		return -1;
	for (size_t i = 0; (name = conf_broker_secret(&conf.broker, i)); i++)
		is_named |= str_eq(name, a->name);
	conf_done(&conf);
	if (s->ops->remove(s, a->name, err) < 0)
		return -1;
	say(a, s, "removed",
	    is_named ? "codex.yaml names it still, so nothing starts without another; "
		       "what runs has it until it ends"
		     : "what runs has it until it ends");
	return render_flush(err);
}

static int check_usage(const struct secret_args *a, bool takes_name, struct err *err)
{
	bool rotates_tomb = a->tomb != NULL;

	if (!takes_name && !str_eq(a->verb, "list") && !str_eq(a->verb, "check"))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "'%.40s': list, set, rotate, rm, tomb or check",
				  a->verb);
	if (rotates_tomb && !str_eq(a->verb, "rotate"))
		return err_set_id(err, ERRID_CORE_USAGE, "--tomb belongs to rotate");
	if (takes_name != (a->name != NULL || rotates_tomb) || (a->name && rotates_tomb))
		return err_set_id(err, ERRID_CORE_USAGE, "'%s' takes %s name", a->verb,
				  takes_name ? "a" : "no");
	if ((a->generate || a->replace) && !str_eq(a->verb, "set"))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--generate and --replace belong to set");
	return 0;
}

/* Nobody said which: that of what is installed here, and which it is. */
static void choose_store(struct secret_args *a, const struct paths *p)
{
	bool is_pod = mode_is_pod(p);

	if (a->store)
		return;
	a->store = mode_store(is_pod);
	if (is_pod && !a->json)
		(void)fprintf(stderr,
			      "lych: a pod is installed: this is about Podman's store; "
			      "embedded mode's is --store=files\n");
}

static int secret(struct secret_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	const struct secret_info *info = a->name ? secret_find(a->name) : NULL;
	bool is_tomb = str_eq(a->verb, "tomb") || a->tomb;
	bool takes_name = is_tomb || str_eq(a->verb, "set") ||
			  str_eq(a->verb, "rotate") || str_eq(a->verb, "rm");
	const char *note = "";

	if (check_usage(a, takes_name, err) < 0)
		return -1;
	if (takes_name && !is_tomb && !info)
		return err_set_id(err, ERRID_SECRET_NAME, "'%.80s'", a->name);
	if (paths_resolve(&p, err) < 0)
		return -1;
	choose_store(a, &p);
	/* before the first start the directory is made here */
	if (str_eq(a->verb, "set") && str_eq(a->store, "files") &&
	    paths_make(&p, err) < 0)
		return -1;
	if (secret_store_open(a->store, &p, &s, err) < 0)
		return -1;
	if (is_tomb)
		return a->tomb ? rotate_tomb(a, &s, err) : tomb(a, &s, err);
	if (!takes_name)
		return secret_look(&s, str_eq(a->verb, "check"), a->json, err);
	if (str_eq(a->verb, "set"))
		return set(a, &s, info, err);
	if (str_eq(a->verb, "rm"))
		return drop(a, &s, info, err);
	if (secret_rotate(&s, info, a->name, &note, err) < 0)
		return -1;
	say(a, &s, "rotated", note);
	return render_flush(err);
}

int cmd_secret(int argc, char **argv)
{
	struct secret_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&secret_argp, argc, argv, 0, &a);
	return secret(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
