/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See agent_list.h.
 */
#include "cli/agent/agent_list.h"

#include "cli/base/client.h"
#include "cli/ui/render.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include <stdio.h>

#define LIST_MAX_BYTES ((size_t)8 << 20)
/* A profile is refused, what an agent needs, no vessel. */
#define REASONS_MAX (NEED_MAX_ + 2)

struct verdict {
	struct conf_agent agent; /* without a summary: it was refused */
	struct err why[REASONS_MAX];
	size_t n;
};

/* 0: it answers. */
static int ask_vessel(const struct paths *p, struct err *err)
{
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *status = NULL;
	bool is_ready;

	return client_new(p->api_sock, &c, err) < 0 ||
			       client_status(c, &status, &is_ready, err) < 0
		       ? -1
		       : 0;
}

static void judge(const struct agents *all, const char *name, const struct conf *c,
		  const struct err *vessel, struct verdict *v)
{
	if (agents_read(all, name, &v->agent, &v->why[0]) < 0) {
		v->n = 1;
		return;
	}
	for (enum agent_need need = 0; need < NEED_MAX_; need++)
		v->n += agent_has(need, &v->agent, c, &v->why[v->n]) < 0;
	if (err_is_set(vessel))
		v->why[v->n++] = *vessel;
}

static void write_json(struct jsonw *w, const char *name, const struct verdict *v)
{
	const struct conf_agent *a = &v->agent;

	jsonw_obj(w);
	jsonw_kstr(w, "name", name);
	jsonw_kstr(w, "summary", a->summary);
	jsonw_kbool(w, "works", v->n == 0);
	jsonw_key(w, "why");
	jsonw_arr(w);
	for (size_t i = 0; i < v->n; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "error_code", err_text(&v->why[i]));
		jsonw_kstr(w, "detail", v->why[i].msg);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	jsonw_kstr(w, "package", a->package);
	jsonw_kstr(w, "package_version", a->version);
	jsonw_kstr(w, "dialect", a->model ? portal_api_name(a->api) : NULL);
	jsonw_kstr(w, "model", a->model);
	jsonw_obj_end(w);
}

static void add_row(struct table *t, const char *name, const struct verdict *v)
{
	table_cell(t, name);
	table_cell(t, v->n ? "no" : "yes");
	table_cell(t, v->agent.summary ? v->agent.summary : "");
	for (size_t i = 0; i < v->n; i++) {
		if (i > 0) {
			table_cell(t, "");
			table_cell(t, "");
			table_cell(t, "");
		}
		table_cell_whole(t, v->why[i].msg);
	}
	if (v->n == 0)
		table_cell(t, "");
}

int agent_list(const struct paths *p, const struct agents *all, const struct conf *c,
	       bool json, struct err *err)
{
	cleanup_buf struct buf out = {.max = LIST_MAX_BYTES};
	struct err vessel = ERR_INIT;
	struct jsonw w;
	struct table t;

	if (ask_vessel(p, &vessel) < 0)
		(void)err_wrap(&vessel, "the vessel does not answer");
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "agents");
	jsonw_arr(&w);
	table_init(&t, 4);
	table_cell(&t, "AGENT");
	table_cell(&t, "WORKS");
	table_cell(&t, "WHAT IT IS");
	table_cell(&t, "WHY NOT");
	for (size_t i = 0; i < all->n; i++) {
		struct verdict v = {.n = 0};

		judge(all, all->name[i], c, &vessel, &v);
		write_json(&w, all->name[i], &v);
		add_row(&t, all->name[i], &v);
		conf_agent_done(&v.agent);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	if (json && buf_ok(&out))
		(void)puts(buf_str(&out));
	else if (!json)
		table_print(&t, true);
	table_done(&t);
	if (!buf_ok(&out))
		return err_set_id(err, ERRID_CORE_TOO_LARGE, "above %zu bytes",
				  LIST_MAX_BYTES);
	return render_flush(err);
}
