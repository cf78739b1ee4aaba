/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych bind, lych unbind.
 */
#include "cli/base/cmd.h"
#include "cli/pod/bind.h"
#include "cli/ui/diff.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>

#define OVERWRITE_MAX 64
enum { OPT_DRY_RUN = 256, OPT_INSTALL, OPT_START, OPT_OVERWRITE };

struct bind_args {
	bool dry_run, install, start, json;
	const char *overwrite[OVERWRITE_MAX];
	size_t n_overwrite;
};

static error_t bind_parse(int key, char *arg, struct argp_state *state)
{
	struct bind_args *a = state->input;

	switch (key) {
	case OPT_DRY_RUN:
		a->dry_run = true;
		return 0;
	case OPT_INSTALL:
		a->install = true;
		return 0;
	case OPT_START:
		a->install = a->start = true;
		return 0;
	case OPT_OVERWRITE:
		if (a->n_overwrite == OVERWRITE_MAX)
			cmd_usage(state, "--overwrite is given too often");
		a->overwrite[a->n_overwrite++] = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_END:
		if (a->dry_run && a->install)
			cmd_usage(state, "--dry-run writes nothing: not with --install "
					 "or --start");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option bind_options[] = {
	{"dry-run", OPT_DRY_RUN, NULL, 0,
	 "check everything, print what would change, write nothing", 0},
	{"install", OPT_INSTALL, NULL, 0,
	 "give the units to Podman and prove that all arrived", 0},
	{"start", OPT_START, NULL, 0,
	 "install, start the pod and wait until every part of it answers", 0},
	{"overwrite", OPT_OVERWRITE, "NAME", 0,
	 "give up what somebody changed in this unit", 0},
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp bind_argp = {
	.options = bind_options,
	.parser = bind_parse,
	.doc = "Render the units of the pod from codex.yaml.\v"
	       "Examples:\n"
	       "  lych bind --dry-run\n"
	       "  lych bind --start"};

static const struct argp_option unbind_options[] = {
	{"dry-run", OPT_DRY_RUN, NULL, 0, "name what would be removed, remove nothing",
	 0},
	{"overwrite", OPT_OVERWRITE, "NAME", 0,
	 "remove this unit although somebody changed it", 0},
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp unbind_argp = {
	.options = unbind_options,
	.parser = bind_parse,
	.doc = "Stop the pod and remove its units. Data and secrets stay.\v"
	       "Examples:\n"
	       "  lych unbind"};

/* ---- what would change ------------------------------------------------------ */

/* Installed against rendered; a unit that is installed and not rendered any more goes. */
static int diff_one(const struct bind *b, const char *name, struct buf *out,
		    struct err *err)
{
	cleanup_free char *from_name = xasprintf("%s/%s", bind_place(b, name), name);
	cleanup_free char *to_name = xasprintf("%s (rendered)", name);
	const struct unit *u = units_find(&b->units, name);
	cleanup_free char *from = NULL;
	enum bind_state state;

	if (bind_look(b, name, &state, &from, err) < 0)
		return -1;
	if (from || u)
		(void)diff_unified(from_name, from, to_name, u ? u->text : NULL, out);
	return 0;
}

static int dry_run(const struct bind *b, bool json, struct err *err)
{
	cleanup_free const char **names = NULL;
	cleanup_buf struct buf out = {0};
	size_t n;

	bind_names(b, &names, &n);
	buf_init(&out, (size_t)16 << 20);
	for (size_t i = 0; i < n; i++)
		if (diff_one(b, names[i], &out, err) < 0)
			return -1;
	if (!buf_ok(&out))
		return err_set_id(err, ERRID_CORE_TOO_LARGE,
				  "the difference is too large to show");
	if (json) {
		cleanup_buf struct buf text = {0};
		struct jsonw w;

		buf_init(&text, (size_t)64 << 20);
		jsonw_init(&w, &text);
		jsonw_obj(&w);
		jsonw_kstr(&w, "profile", b->conf.pod.profile);
		jsonw_kbool(&w, "changes", out.len > 0);
		jsonw_kstr(&w, "diff", buf_str(&out));
		jsonw_obj_end(&w);
		(void)puts(buf_str(&text));
		return render_flush(err);
	}
	/* What is installed may be anybody's text. */
	cleanup_buf struct buf shown = {0};

	buf_init(&shown, (size_t)64 << 20);
	for (const char *at = buf_str(&out); *at;) {
		size_t len = strcspn(at, "\n");

		render_escape(&shown, at, len, 0);
		buf_addc(&shown, '\n');
		at += len + (at[len] == '\n');
	}
	if (out.len == 0)
		buf_adds(&shown, "Nothing would change.\n");
	return render_write(STDOUT_FILENO, buf_str(&shown), shown.len, err);
}

/* ---- bind ------------------------------------------------------------------- */

static int tell_bound(const struct bind *b, const struct bind_args *a, struct err *err)
{
	if (a->json) {
		cleanup_buf struct buf out = {0};
		struct jsonw w;

		buf_init(&out, 65536);
		jsonw_init(&w, &out);
		jsonw_obj(&w);
		jsonw_kstr(&w, "profile", b->conf.pod.profile);
		jsonw_kstr(&w, "directory", b->staged);
		jsonw_kbool(&w, "installed", a->install);
		jsonw_kbool(&w, "started", a->start);
		jsonw_key(&w, "units");
		jsonw_arr(&w);
		for (size_t i = 0; i < b->units.n; i++)
			jsonw_str(&w, b->units.unit[i].name);
		jsonw_arr_end(&w);
		jsonw_obj_end(&w);
		(void)puts(buf_str(&out));
		return render_flush(err);
	}
	(void)printf("%zu units of profile %s: %s\n", b->units.n, b->conf.pod.profile,
		     b->staged);
	if (a->start)
		(void)printf("installed in %s and started: every part answers\n",
			     b->quadlets);
	else if (a->install)
		(void)printf("installed in %s; 'lych bind --start' starts the pod\n",
			     b->quadlets);
	else
		(void)printf(
			"'lych bind --install' installs them, as would 'podman quadlet "
			"install --replace %s'\n",
			b->staged);
	return render_flush(err);
}

static int install_and_start(struct bind *b, const struct bind_args *a, struct err *err)
{
	if (a->install && bind_install(b, err) < 0)
		return -1;
	return a->start ? bind_start(b, err) : 0;
}

static int bind(const struct bind_args *a, struct err *err)
{
	cleanup_bind struct bind b = BIND_INIT;

	b.overwrite = a->overwrite;
	b.n_overwrite = a->n_overwrite;
	if (bind_open(&b, err) < 0 || bind_render(&b, err) < 0 ||
	    paths_check_data(&b.paths, err) < 0)
		return -1;
	if (a->dry_run)
		return dry_run(&b, a->json, err);
	if (bind_check_files(&b, err) < 0 ||
	    (a->install && bind_can_install(&b, err) < 0) || bind_lock(&b, err) < 0 ||
	    bind_check_files(&b, err) < 0 || bind_tomb_secrets(&b, err) < 0 ||
	    bind_stage(&b, err) < 0 || install_and_start(&b, a, err) < 0)
		return -1;
	return tell_bound(&b, a, err);
}

int cmd_bind(int argc, char **argv)
{
	struct bind_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&bind_argp, argc, argv, 0, &a);
	return bind(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}

/* ---- unbind ----------------------------------------------------------------- */

static int tell_removable(const struct bind *b, struct err *err)
{
	cleanup_free const char **names = NULL;
	size_t n;

	bind_names(b, &names, &n);
	for (size_t i = 0; i < n; i++) {
		enum bind_state state;

		if (bind_look(b, names[i], &state, NULL, err) < 0)
			return -1;
		if (state != BIND_MISSING)
			(void)printf("would be removed: %s/%s\n", bind_place(b, names[i]),
				     names[i]);
	}
	(void)printf("would be removed: %s\n", b->dir);
	return render_flush(err);
}

static int unbind(const struct bind_args *a, struct err *err)
{
	cleanup_bind struct bind b = BIND_INIT;
	size_t removed = 0;

	b.overwrite = a->overwrite;
	b.n_overwrite = a->n_overwrite;
	if (bind_open(&b, err) < 0)
		return -1;
	if (!b.has_receipt)
		return err_set_id(err, ERRID_BIND_NONE, "%s does not exist",
				  b.receipt_path);
	if (bind_check_files(&b, err) < 0)
		return -1;
	if (a->dry_run)
		return tell_removable(&b, err);
	if (podman_open(&b.podman, err) < 0 || bind_lock(&b, err) < 0 ||
	    bind_remove(&b, &removed, err) < 0)
		return -1;
	if (a->json)
		(void)printf("{\"removed\":%zu}\n", removed);
	else
		(void)printf(
			"%zu units removed; data stays in %s, secrets stay in Podman\n",
			removed, b.paths.data);
	return render_flush(err);
}

int cmd_unbind(int argc, char **argv)
{
	struct bind_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&unbind_argp, argc, argv, 0, &a);
	return unbind(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
