/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych status, where the units of a pod are bound.
 */
#include "cli/pod/bind.h"

#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/pod/status_wait.h"
#include "cli/pod/status_words.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"

#define PS_MARK "lych-ps "
#define POD_SERVICE "lychgate-pod.service"

struct row {
	const char *name;
	char service[UNIT_NAME_MAX + 32];
	const char *file; /* installed, outdated, changed, foreign, missing */
	char load[32], active[32], sub[32], result[48], restarts[16], health[16];
};

struct status {
	struct row row[UNITS_MAX];
	size_t n;
	bool complete; /* every file is there, every service is active, the vessel has its database */
	struct json *vessel;
	struct err vessel_err;
};

static const char *file_state(const struct bind *b, const struct receipt_file *f,
			      struct err *err)
{
	cleanup_free char *text = NULL;
	enum bind_state state;

	if (bind_look(b, f->name, &state, &text, err) < 0)
		return NULL;
	switch (state) {
	case BIND_MISSING:
		return "missing";
	case BIND_CHANGED:
		return "changed";
	case BIND_FOREIGN:
		return "foreign";
	case BIND_OURS:
		break;
	}
	return bind_is_present(f, text) ? "installed" : "outdated";
}

/* "Key=value" lines of systemctl show. */
static void take_property(const char *out, const char *key, char *ret, size_t size)
{
	size_t n = strlen(key);

	for (const char *at = out; *at;) {
		size_t len = strcspn(at, "\n");

		if (len > n && strncmp(at, key, n) == 0 && at[n] == '=')
			(void)snprintf(ret, size, "%.*s", (int)(len - n - 1), at + n + 1);
		at += len + (at[len] == '\n');
	}
}

static int read_service(const struct bind *b, struct row *r, struct err *err)
{
	const char *const args[] = {
		"show", "--property=LoadState,ActiveState,SubState,Result,NRestarts",
		r->service, NULL};
	cleanup_free char *out = NULL;

	if (podman_systemctl(&b->podman, args, &out, err) < 0)
		return -1;
	take_property(out, "LoadState", r->load, sizeof(r->load));
	take_property(out, "ActiveState", r->active, sizeof(r->active));
	take_property(out, "SubState", r->sub, sizeof(r->sub));
	take_property(out, "Result", r->result, sizeof(r->result));
	take_property(out, "NRestarts", r->restarts, sizeof(r->restarts));
	return 0;
}

/* "lych-ps lychgate-tomb Up 2 minutes (healthy)" */
static int read_health(const struct bind *b, struct status *s, struct err *err)
{
	static const char format[] = PS_MARK "{{.Names}} {{.Status}}";
	static const char *const args[] = {"ps", "--all", "--format", format, NULL};
	cleanup_free char *out = NULL;

	if (podman_run(&b->podman, args, &out, err) < 0)
		return -1;
	for (char *at = out, *next; at && *at; at = next) {
		char *name = at + strlen(PS_MARK), *paren;
		size_t len;

		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		if (!str_starts(at, PS_MARK))
			continue;
		len = strcspn(name, " ");
		paren = strrchr(name + len, '(');
		for (size_t i = 0; paren && i < s->n; i++)
			if (strlen(s->row[i].name) == len + strlen(".container") &&
			    strncmp(s->row[i].name, name, len) == 0)
				(void)snprintf(s->row[i].health, sizeof(s->row[i].health),
					       "%.*s", (int)strcspn(paren + 1, ")"),
					       paren + 1);
	}
	return 0;
}

/* The host's oneshot runs when there is something to do. */
static bool is_active(const struct row *r)
{
	return str_eq(r->active, "active") || str_ends(r->name, ".service");
}

static int gather(const struct bind *b, struct status *s, struct err *err)
{
	bool ready = false;
	cleanup_client struct client *c = NULL;

	s->complete = b->receipt.n_files > 0;
	for (size_t i = 0; i < b->receipt.n_files; i++) {
		struct row *r = &s->row[s->n];

		*r = (struct row){.name = b->receipt.file[i].name};
		r->file = file_state(b, &b->receipt.file[i], err);
		if (!r->file ||
		    unit_service(r->name, r->service, sizeof(r->service), err) < 0 ||
		    read_service(b, r, err) < 0)
			return -1;
		s->complete = s->complete && str_eq(r->file, "installed") && is_active(r);
		s->n++;
	}
	if (read_health(b, s, err) < 0 || client_new(b->paths.api_sock, &c, err) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++)
		s->complete = s->complete && !str_eq(s->row[i].health, "unhealthy");
	if (client_status(c, &s->vessel, &ready, &s->vessel_err) < 0)
		s->vessel = NULL;
	s->complete = s->complete && ready;
	return 0;
}

/* Where not all of it runs: which parts do not, and why. */
static void missing_parts(const struct status *s, struct buf *missing)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct row *r = &s->row[i];

		if (!str_eq(r->file, "installed"))
			status_missing(missing, r->name, r->file);
		else if (!str_eq(r->load, "loaded"))
			status_missing(missing, r->service, r->load);
		else if (!is_active(r))
			status_missing(missing, r->service,
				       str_eq(r->result, "success") ? r->active
								    : r->result);
		else if (str_eq(r->health, "unhealthy"))
			status_missing(missing, r->service, r->health);
	}
	/* it says so itself, once its service is there */
	if (missing->len == 0 && !s->complete)
		status_missing(missing, s->vessel ? "database" : "vessel",
			       s->vessel ? "does not answer" : s->vessel_err.msg);
}

int bind_look_missing(struct bind *b, struct buf *missing, struct err *err)
{
	struct status s = {.vessel_err = ERR_INIT};
	struct err why = ERR_INIT;

	if (!b->podman.program && podman_open(&b->podman, err) < 0)
		return -1;
	/* Early at a login neither may answer yet. */
	if (gather(b, &s, &why) < 0)
		status_missing(missing, "Podman or systemd", why.msg);
	else
		missing_parts(&s, missing);
	json_free(s.vessel);
	return 0;
}

static int look(void *arg, struct buf *missing, struct err *err)
{
	return bind_look_missing(arg, missing, err);
}

int bind_start(struct bind *b, struct err *err)
{
	static const char *const args[] = {"restart", POD_SERVICE, NULL};

	if (podman_systemctl(&b->podman, args, NULL, err) < 0)
		return -1;
	return status_wait(look, b, STATUS_WAIT_DEFAULT, err);
}

static void print_json(const struct bind *b, const struct status *s)
{
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	buf_init(&out, (size_t)16 << 20);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kbool(&w, "ready", s->complete);
	jsonw_kstr(&w, "mode", "pod");
	jsonw_kstr(&w, "profile", b->receipt.profile);
	jsonw_kstr(&w, "rendered", b->receipt.time);
	jsonw_kstr(&w, "podman", b->podman.version);
	jsonw_key(&w, "units");
	jsonw_arr(&w);
	for (size_t i = 0; i < s->n; i++) {
		const struct row *r = &s->row[i];

		jsonw_obj(&w);
		jsonw_kstr(&w, "unit", r->name);
		jsonw_kstr(&w, "file", r->file);
		jsonw_kstr(&w, "service", r->service);
		jsonw_kstr(&w, "load", r->load);
		jsonw_kstr(&w, "active", r->active);
		jsonw_kstr(&w, "sub", r->sub);
		jsonw_kstr(&w, "result", r->result);
		jsonw_kstr(&w, "restarts", r->restarts);
		jsonw_kstr(&w, "health", r->health);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_key(&w, "vessel");
	if (s->vessel)
		json_write(s->vessel, &w);
	else
		jsonw_null(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
}

static void print_units(const struct status *s)
{
	static const char *const head[] = {"UNIT", "FILE", "SERVICE", "HEALTH",
					   "RESTARTS"};
	struct table t;

	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < s->n; i++) {
		const struct row *r = &s->row[i];
		bool loaded = str_eq(r->load, "loaded"),
		     ok = str_eq(r->result, "success");
		cleanup_free char *service = !loaded ? xstrdup(r->load)
						     : xasprintf("%s (%s)", r->active,
								 ok ? r->sub : r->result);

		table_cell(&t, r->name);
		table_cell(&t, r->file);
		table_cell(&t, service);
		table_cell(&t, r->health);
		table_cell(&t, r->restarts);
	}
	table_print(&t, true);
	table_done(&t);
}

/* The units are in one line only while there is nothing to be said of them. */
static void print_people(const struct bind *pod, const struct status *s, bool verbose)
{
	if (s->vessel)
		status_alarm(s->vessel);
	(void)printf("Lychgate %s: a pod, profile %s, Podman %s\n", LYCH_VERSION,
		     pod->receipt.profile, pod->podman.version);
	if (verbose || !s->complete) {
		(void)puts("");
		print_units(s);
		(void)puts("");
	} else {
		cleanup_buf struct buf b = {.max = 8192};

		buf_addf(&b, "%zu of %zu installed and active", s->n, s->n);
		for (size_t i = 0; i < s->n; i++)
			if (s->row[i].restarts[0] && !str_eq(s->row[i].restarts, "0"))
				buf_addf(&b, ", %s restarted %sx", s->row[i].name,
					 s->row[i].restarts);
		status_line("units", buf_str(&b));
	}
	status_vessel(s->vessel, &s->vessel_err, verbose);
}

int bind_status(struct bind *b, bool as_json, bool verbose, struct err *err)
{
	struct status s = {.vessel_err = ERR_INIT};

	if ((!b->podman.program && podman_open(&b->podman, err) < 0) ||
	    gather(b, &s, err) < 0) {
		json_free(s.vessel);
		return -1;
	}
	if (!as_json && verbose && pager_begin(err) < 0) {
		json_free(s.vessel);
		return -1;
	}
	if (as_json)
		print_json(b, &s);
	else
		print_people(b, &s, verbose);
	json_free(s.vessel);
	if (render_flush(err) < 0)
		return -1;
	return s.complete ? 0 : EXIT_UNAVAILABLE;
}
