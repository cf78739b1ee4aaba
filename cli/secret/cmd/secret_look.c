/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych secret list|check: which secrets there are, and what is wrong with each.
 */
#include "cli/base/config_file.h"
#include "cli/base/paths.h"
#include "cli/secret/secret.h"
#include "cli/secret/secret_tombs.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdarg.h>

#define ENTRIES_MAX 256

/* ---- what is there ----------------------------------------------------------- */

struct entry {
	char *name;
	char kind[16];
	const struct secret_info *info; /* NULL: not in the manifest */
	bool present, is_bad;
	bool is_local; /* a key that only a server on this machine is told */
	bool is_named; /* codex.yaml names it, or a generation a tomb */
	struct secret_value value;
	char state[256]; /* "ok", or what is wrong, or a note */
};

struct inventory {
	struct entry e[ENTRIES_MAX];
	size_t n;
	bool full;
};

static struct entry *inventory_add(struct inventory *v, const char *name)
{
	struct entry *e;

	for (size_t i = 0; i < v->n; i++)
		if (str_eq(v->e[i].name, name))
			return &v->e[i];
	if (v->n == ENTRIES_MAX) {
		v->full = true;
		return NULL;
	}
	e = &v->e[v->n++];
	e->name = xstrdup(name);
	e->info = secret_find(name);
	(void)snprintf(e->state, sizeof(e->state), "ok");
	return e;
}

static void inventory_free(struct inventory *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->e[i].name);
		secret_value_wipe(&v->e[i].value);
	}
	explicit_bzero(v, sizeof(*v));
	free(v);
}

static void on_name(const char *name, const char *kind, void *arg)
{
	struct entry *e;

	/* Podman's store holds other applications' secrets too: none of our business. */
	if (!str_eq(kind, "file") && !str_starts(name, "lychgate_") &&
	    !str_starts(name, "portal_") && !str_starts(name, "host_"))
		return;
	e = inventory_add(arg, name);
	if (!e)
		return;
	e->present = true;
	(void)snprintf(e->kind, sizeof(e->kind), "%s", kind);
}

static void PRINTF_FMT(3, 4) mark(struct entry *e, bool is_bad, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->state, sizeof(e->state), fmt, ap);
	va_end(ap);
	e->is_bad = is_bad;
}

static void add_keys(const struct conf_broker *b, struct inventory *v)
{
	const char *name;

	for (size_t i = 0; (name = conf_broker_secret(b, i)); i++) {
		struct entry *e = inventory_add(v, name);

		if (!e)
			continue;
		e->is_named = true;
		e->is_local = conf_portal_secret_is_local(b, name);
	}
}

/* Whoever has a generation has both secrets. */
static void add_tombs(struct inventory *v)
{
	size_t n = v->n;

	for (size_t i = 0; i < n; i++)
		for (enum tomb_secret k = 0;
		     str_starts(v->e[i].name, TOMB_GENERATION_OF) && k < TOMB_SECRET_MAX_;
		     k++) {
			cleanup_free char *name =
				xasprintf("%s%s", tomb_secret_prefix(k),
					  v->e[i].name + strlen(TOMB_GENERATION_OF));
			struct entry *e = inventory_add(v, name);

			if (e)
				e->is_named = true;
		}
}

static int take_stock(struct secret_store *s, struct inventory *v, struct err *err)
{
	struct conf conf;

	if (config_load_or_defaults(s->paths->config, &conf, err) < 0)
		return -1;
	add_keys(&conf.broker, v);
	conf_done(&conf);
	for (size_t i = 0; i < secret_manifest_len; i++)
		if (!strchr(secret_manifest[i].name, '*'))
			(void)inventory_add(v, secret_manifest[i].name);
	if (s->ops->list(s, on_name, v, err) < 0)
		return -1;
	add_tombs(v);
	if (v->full)
		return err_set_id(err, ERRID_SECRET_CHECK, "%s holds more than %d",
				  s->where, ENTRIES_MAX);
	return 0;
}

static void judge_value(struct secret_store *s, struct entry *e)
{
	bool is_key = e->info->rotation == ROTATE_GIVEN;
	struct err why = ERR_INIT;

	if (s->ops->read(s, e->name, &e->value, &why) < 0 ||
	    (is_key ? secret_key_check(&e->value, e->is_local, &why)
		    : secret_value_check(&e->value, SECRET_VALUE_MIN_BYTES, &why)) < 0 ||
	    (e->info->rotation == ROTATE_TOMB &&
	     secret_tomb_judge(s, e->name, &e->value, &why) < 0))
		mark(e, true, "%.200s", why.msg);
}

static void judge(struct secret_store *s, struct entry *e)
{
	size_t len = strlen(e->name), suffix = strlen(SECRET_NEXT_SUFFIX);

	if (!e->info && str_ends(e->name, SECRET_NEXT_SUFFIX)) {
		mark(e, true, "a rotation was not finished: 'lych secret rotate %.*s'",
		     (int)(len - suffix), e->name);
		return;
	}
	if (!e->info) {
		mark(e, true, "unused: not in the manifest");
		return;
	}
	if (!e->present) {
		if (e->info->rotation == ROTATE_TOMB)
			mark(e, true, "missing: 'lych secret tomb' makes it");
		else if (e->is_named)
			mark(e, true,
			     "missing: codex.yaml wants it: 'lych secret set %s'",
			     e->name);
		else if (e->info->required)
			mark(e, true, "missing");
		else
			mark(e, false, "not set, and not needed");
		return;
	}
	judge_value(s, e);
	if (!e->is_bad && !e->info->required && !e->is_named &&
	    e->info->rotation != ROTATE_TOMB)
		mark(e, false,
		     e->info->rotation == ROTATE_GIVEN
			     ? "unused: codex.yaml does not name it"
			     : "unused: no release reads it yet");
	else if (!e->is_bad && str_eq(e->kind, "file") && s->ops == &secret_podman)
		mark(e, false, "ok, but Podman's driver 'file' does not encrypt");
}

/* One value under two names: who reads the one can act as the other. A word too short for a
 * secret is none. */
static void judge_aliases(struct inventory *v)
{
	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < v->n; k++) {
			const struct secret_value *a = &v->e[i].value,
						  *b = &v->e[k].value;

			if (i != k && a->len >= SECRET_VALUE_MIN_BYTES &&
			    a->len == b->len && mem_eq_ct(a->s, b->s, a->len))
				mark(&v->e[i], true, "the same value as %.64s",
				     v->e[k].name);
		}
}

/* ---- output ------------------------------------------------------------------ */

static void readers(const struct secret_info *info, char *out, size_t size)
{
	static const char *const names[] = {"phylactery", "migrate", "vessel", "tomb",
					    "egress worker"};
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; info && i < ARRAY_SIZE(names) && n < size; i++)
		if (info->consumers & 1U << i)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "",
					      names[i]);
}

static void print_json(const struct secret_store *s, const struct inventory *v,
		       bool checked)
{
	cleanup_buf struct buf b = {0};
	struct jsonw w;
	char who[128];

	buf_init(&b, 1 << 20);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "store", s->ops->name);
	jsonw_kstr(&w, "where", s->where);
	jsonw_key(&w, "secrets");
	jsonw_arr(&w);
	for (size_t i = 0; i < v->n; i++) {
		const struct entry *e = &v->e[i];

		readers(e->info, who, sizeof(who));
		jsonw_obj(&w);
		jsonw_kstr(&w, "name", e->name);
		jsonw_kbool(&w, "present", e->present);
		jsonw_kbool(&w, "required",
			    e->is_named || (e->info && e->info->required));
		jsonw_kstr(&w, "readers", who);
		jsonw_kstr(&w, "rotation",
			   e->info ? secret_rotation_name(e->info->rotation) : "");
		jsonw_kstr(&w, "kept_by", e->kind);
		jsonw_kstr(&w, "purpose", e->info ? e->info->purpose : "");
		if (checked) {
			jsonw_kbool(&w, "ok", !e->is_bad);
			jsonw_kstr(&w, "state", e->state);
		}
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&b));
}

static void print_table(const struct secret_store *s, const struct inventory *v,
			bool checked)
{
	struct table t;
	char who[128];

	(void)printf("store: %s, %s\n", s->ops->name, s->where);
	table_init(&t, 4);
	table_cell(&t, checked ? "" : "SET");
	table_cell(&t, "NAME");
	table_cell(&t, checked ? "STATE" : "READ BY");
	table_cell(&t, checked ? "" : "ROTATION");
	for (size_t i = 0; i < v->n; i++) {
		const struct entry *e = &v->e[i];

		readers(e->info, who, sizeof(who));
		table_cell(&t, checked	    ? (e->is_bad ? "bad" : "ok")
			       : e->present ? "yes"
					    : "no");
		table_cell(&t, e->name);
		table_cell_whole(&t, checked ? e->state : e->info ? who : "nobody");
		table_cell(&t, checked || !e->info
				       ? ""
				       : secret_rotation_name(e->info->rotation));
	}
	table_print(&t, true);
	table_done(&t);
}

int secret_look(struct secret_store *s, bool check, bool json, struct err *err)
{
	struct inventory *v = xcalloc(1, sizeof(*v));
	size_t n_bad = 0;
	int r = take_stock(s, v, err);

	for (size_t i = 0; r == 0 && check && i < v->n; i++)
		judge(s, &v->e[i]);
	if (r == 0 && check)
		judge_aliases(v);
	for (size_t i = 0; i < v->n; i++)
		n_bad += v->e[i].is_bad;
	if (r == 0) {
		(json ? print_json : print_table)(s, v, check);
		r = render_flush(err);
	}
	if (r == 0 && n_bad)
		r = err_set_id(err, ERRID_SECRET_CHECK, "%zu in the store '%s' (%s)",
			       n_bad, s->ops->name, s->where);
	inventory_free(v);
	return r;
}
