/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych status, version: here what embedded mode runs; of a pod, bind_status.c.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/base/proc.h"
#include "cli/local/up.h"
#include "cli/pod/bind.h"
#include "cli/pod/status_wait.h"
#include "cli/pod/status_words.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>

struct status_args {
	bool json, verbose, wait, has_time;
	usec_t time;
};

enum { OPT_WAIT = 256 };

static void take_time(struct status_args *a, const char *text, struct argp_state *state)
{
	struct err err = ERR_INIT;

	if (parse_duration_usec(text, STATUS_WAIT_MIN, STATUS_WAIT_MAX, &a->time, &err) <
	    0)
		cmd_usage(state, "--wait: %s", err.msg);
	a->has_time = true;
}

static error_t parse_arg(int key, char *arg UNUSED, struct argp_state *state)
{
	struct status_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case OPT_WAIT:
		a->wait = true;
		if (arg)
			take_time(a, arg, state);
		return 0;
	case ARGP_KEY_ARG:
		/* --wait SECONDS as well as --wait=SECONDS */
		if (!a->wait || a->has_time)
			return ARGP_ERR_UNKNOWN;
		take_time(a, arg, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- status ---------------------------------------------------------------- */

/* First child of a process; 0 without. */
static pid_t first_child(pid_t pid)
{
	cleanup_free char *text = pid > 0 ? proc_children(pid) : NULL;

	return text ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* In how many pid namespaces does it live? */
static unsigned pid_depth(pid_t pid)
{
	cleanup_free char *text = proc_text(pid, "status", NULL);
	unsigned n = 0;
	char *s;

	if (!text)
		return 0;
	s = strstr(text, "\nNSpid:");
	if (!s)
		return 0;
	for (s += 7; *s && *s != '\n'; s++)
		n += *s != '\t' && (s[1] == '\t' || s[1] == '\n');
	return n;
}

static int64_t part_pid(const struct json *starter, const char *name)
{
	const struct json *parts = NULL;
	struct err ignored = ERR_INIT;

	if (json_get_arr(starter, "parts", true, 16, &parts, &ignored) < 0)
		return 0;
	for (size_t i = 0; i < json_arr_len(parts); i++) {
		const struct json *p = json_arr_at(parts, i);
		const char *have = "";
		int64_t pid = 0;

		if (json_get_str(p, "name", true, 32, &have, &ignored) == 0 &&
		    str_eq(have, name) &&
		    json_get_i64(p, "pid", true, 0, INT_MAX, &pid, &ignored) == 0)
			return pid;
	}
	return 0;
}

/* Pids of what runs. The tomb is pid 1 behind its wall's guard; the spawner is the first
 * process below the tomb that is in a pid namespace of its own. */
static void write_processes(struct jsonw *w, const struct json *starter)
{
	int64_t self = 0;
	struct err ignored = ERR_INIT;
	pid_t guard = (pid_t)part_pid(starter, "tomb"), tomb, spawner;

	/* a scope's systemd-run has become the guard by exec */
	tomb = first_child(guard);
	spawner = first_child(tomb);
	while (spawner && pid_depth(spawner) <= pid_depth(tomb))
		spawner = first_child(spawner);
	if (json_get_i64(starter, "pid", true, 0, INT_MAX, &self, &ignored) < 0)
		self = 0;
	jsonw_key(w, "processes");
	jsonw_obj(w);
	jsonw_ki64(w, "supervisor", self);
	jsonw_ki64(w, "postgres", part_pid(starter, "postgres"));
	jsonw_ki64(w, "scribe", part_pid(starter, "scribe"));
	jsonw_ki64(w, "vessel", part_pid(starter, "vessel"));
	jsonw_ki64(w, "guard", guard);
	jsonw_ki64(w, "tomb", tomb);
	jsonw_ki64(w, "spawner", spawner);
	jsonw_obj_end(w);
}

static int starter_read(const struct paths *p, struct json **ret, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/" STARTER_STATE, p->data);
	cleanup_free char *lock_path = xasprintf("%s/lock", p->data);
	cleanup_free char *text = NULL;
	cleanup_close int lock = open(lock_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	pid_t holder = 0;
	size_t len;

	if (lock < 0 || fs_lock_holder(lock, &holder, err) < 0 || !holder)
		return err_set_id(err, ERRID_HTTP_AWAY, "nothing runs on %s", p->data);
	if (starter_check_holder(p, holder, err) < 0)
		return -1;
	if (fs_read_file(AT_FDCWD, path, 65536, &text, &len, err) < 0)
		return -1;
	return json_parse(text, len, JSON_DEPTH_DEFAULT, ret, err);
}

static void print_parts(const struct json *parts)
{
	struct err ignored = ERR_INIT;
	struct table t;

	table_init(&t, 4);
	table_cell(&t, "PART");
	table_cell(&t, "STATE");
	table_cell(&t, "PID");
	table_cell(&t, "RESTARTS");
	for (size_t i = 0; i < json_arr_len(parts); i++) {
		const struct json *p = json_arr_at(parts, i);
		const char *name = "?", *st = "?";
		int64_t pid = 0;
		uint64_t restarts = 0;
		char num[32];

		(void)!json_get_str(p, "name", true, 32, &name, &ignored);
		(void)!json_get_str(p, "state", true, 32, &st, &ignored);
		(void)!json_get_i64(p, "pid", true, 0, INT_MAX, &pid, &ignored);
		(void)!json_get_u64(p, "restarts", true, 0, UINT32_MAX, &restarts,
				    &ignored);
		table_cell(&t, name);
		table_cell(&t, st);
		(void)snprintf(num, sizeof(num), "%" PRId64, pid);
		table_cell(&t, num);
		(void)snprintf(num, sizeof(num), "%" PRIu64, restarts);
		table_cell(&t, num);
	}
	table_print(&t, true);
	table_done(&t);
}

/* A part that does not stand, so that it is seen: "DOWN". */
static void add_loud(struct buf *b, const char *state)
{
	for (; *state; state++)
		buf_addc(b, (char)toupper((unsigned char)*state));
}

/* Without a tomb nothing else that is told matters. */
static void alarm_of_tomb(const struct json *parts)
{
	for (size_t i = 0; i < json_arr_len(parts); i++) {
		const struct json *p = json_arr_at(parts, i);
		cleanup_buf struct buf b = {.max = 256};

		if (!str_eq(render_text_of(p, "name"), "tomb") ||
		    str_eq(render_text_of(p, "state"), "ready"))
			continue;
		add_loud(&b, render_text_of(p, "state"));
		(void)printf(
			"NO JOB IS BEGUN: the tomb is %s\n      "
			"'lych request restart-tomb' starts one that was stopped\n\n",
			buf_str(&b));
	}
}

/* In one line: "postgres, scribe, vessel, tomb (restarted 2 times)". */
static void print_parts_short(const struct json *parts)
{
	cleanup_buf struct buf b = {0};
	struct err ignored = ERR_INIT;

	buf_init(&b, 4096);
	for (size_t i = 0; i < json_arr_len(parts); i++) {
		const struct json *p = json_arr_at(parts, i);
		const char *state = render_text_of(p, "state");
		uint64_t restarts = 0;

		buf_addf(&b, "%s%s", i ? ", " : "", render_text_of(p, "name"));
		if (!str_eq(state, "ready")) {
			buf_addc(&b, ' ');
			add_loud(&b, state);
		}
		if (json_get_u64(p, "restarts", true, 0, UINT32_MAX, &restarts,
				 &ignored) == 0 &&
		    restarts)
			buf_addf(&b, " (restarted %" PRIu64 "x)", restarts);
	}
	status_line("daemons", buf_str(&b));
}

static void print_people(const struct json *starter, const struct json *vessel,
			 const struct err *vessel_err, bool verbose)
{
	const char *cgroup = "?", *reason = "", *state = "?";
	struct err ignored = ERR_INIT;
	const struct json *parts = NULL;
	bool rooted = true;

	if (json_get_str(starter, "cgroup", true, 64, &cgroup, &ignored) < 0 ||
	    json_get_str(starter, "cgroup_reason", true, 256, &reason, &ignored) < 0 ||
	    json_get_bool(starter, "private_root", true, &rooted, &ignored) < 0 ||
	    json_get_str(starter, "state", true, 32, &state, &ignored) < 0 ||
	    json_get_arr(starter, "parts", true, 16, &parts, &ignored) < 0)
		return;
	if (vessel)
		status_alarm(vessel);
	alarm_of_tomb(parts);
	(void)printf("Lychgate %s: %s, grade %s\n", LYCH_VERSION, state,
		     render_text_of(starter, "grade"));
	if (verbose) {
		(void)puts("");
		print_parts(parts);
		(void)puts("");
	} else {
		print_parts_short(parts);
	}
	cleanup_free char *limits =
		xasprintf("%s%s%s%s", cgroup, reason[0] ? " (" : "", reason,
			  reason[0] ? "): limits by rlimits and supervision" : "");

	if (!rooted)
		status_line("private root",
			    "none (daemons: no_private_root): the daemons stand behind "
			    "Landlock and a filter alone");
	status_line("cgroup", limits);
	status_vessel(vessel, vessel_err, verbose);
}

/* Of one that can't be there is nothing to tell, whoever may look into it. */
static int check_data(const char *data, struct err *err)
{
	struct stat st;

	if (stat(data, &st) < 0)
		return errno == ENOENT || errno == EACCES
			       ? 0
			       : err_sys_id(err, ERRID_START_DATA, "%.200s", data);
	return S_ISDIR(st.st_mode) ? 0
				   : err_set_id(err, ERRID_START_DATA,
						"%.200s: not a directory", data);
}

/* Without the tomb no job is begun. */
static bool are_ready(const struct json *starter)
{
	const struct json *parts = NULL;
	struct err ignored = ERR_INIT;

	if (json_get_arr(starter, "parts", true, 16, &parts, &ignored) < 0)
		return false;
	for (size_t i = 0; i < json_arr_len(parts); i++)
		if (!str_eq(render_text_of(json_arr_at(parts, i), "state"), "ready"))
			return false;
	return true;
}

static int status(const struct status_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_json struct json *starter = NULL;
	cleanup_json struct json *vessel = NULL;
	cleanup_client struct client *c = NULL;
	struct err away = ERR_INIT;
	const char *state = "";
	bool ready = false;

	if (paths_resolve(&p, err) < 0 || check_data(p.data, err) < 0 ||
	    client_new(p.api_sock, &c, err) < 0)
		return -1;
	if (starter_read(&p, &starter, &away) < 0) {
		cleanup_bind struct bind b = BIND_INIT;

		if (bind_open(&b, err) < 0)
			return -1;
		if (b.has_receipt)
			return bind_status(&b, a->json, a->verbose, err);
		*err = away;
		return -1;
	}
	if (json_get_str(starter, "state", true, 32, &state, err) < 0)
		return -1;
	bool answers = client_status(c, &vessel, &ready, &away) == 0;

	if (!a->json) {
		if (a->verbose && pager_begin(err) < 0)
			return -1;
		print_people(starter, answers ? vessel : NULL, &away, a->verbose);
	} else {
		cleanup_buf struct buf b = {0};
		struct jsonw w;

		buf_init(&b, (size_t)16 << 20);
		jsonw_init(&w, &b);
		jsonw_obj(&w);
		jsonw_kbool(&w, "ready",
			    ready && str_eq(state, "up") && are_ready(starter));
		write_processes(&w, starter);
		jsonw_key(&w, "starter");
		json_write(starter, &w);
		jsonw_key(&w, "vessel");
		if (answers)
			json_write(vessel, &w);
		else
			jsonw_null(&w);
		jsonw_obj_end(&w);
		(void)puts(buf_str(&b));
	}
	if (render_flush(err) < 0)
		return -1;
	return answers ? 0 : EXIT_UNAVAILABLE;
}

/* ---- until all of it answers ------------------------------------------------- */

struct waiting {
	struct paths paths;
	struct bind bind; /* opened when a pod is bound */
};

static void missing_embedded(const struct json *starter, const struct waiting *w,
			     struct buf *missing)
{
	cleanup_json struct json *vessel = NULL;
	cleanup_client struct client *c = NULL;
	const struct json *parts = NULL;
	struct err err = ERR_INIT;
	bool ready = false;

	if (json_get_arr(starter, "parts", true, 16, &parts, &err) < 0) {
		status_missing(missing, "lych up", err.msg);
		return;
	}
	for (size_t i = 0; i < json_arr_len(parts); i++) {
		const struct json *p = json_arr_at(parts, i);

		if (!str_eq(render_text_of(p, "state"), "ready"))
			status_missing(missing, render_text_of(p, "name"),
				       render_text_of(p, "state"));
	}
	if (missing->len)
		return;
	if (!str_eq(render_text_of(starter, "state"), "up"))
		status_missing(missing, "lych up", render_text_of(starter, "state"));
	else if (client_new(w->paths.api_sock, &c, &err) < 0 ||
		 client_status(c, &vessel, &ready, &err) < 0)
		status_missing(missing, "vessel", err.msg);
	else if (!ready)
		status_missing(missing, "database", "does not answer");
}

static int look(void *arg, struct buf *missing, struct err *err)
{
	cleanup_json struct json *starter = NULL;
	struct err away = ERR_INIT;
	struct waiting *w = arg;

	if (starter_read(&w->paths, &starter, &away) == 0)
		missing_embedded(starter, w, missing);
	else if (w->bind.has_receipt)
		return bind_look_missing(&w->bind, missing, err);
	else
		status_missing(missing, "lych up", away.msg);
	return 0;
}

static int wait_for_all(usec_t time, struct err *err)
{
	struct waiting w = {.bind = BIND_INIT};
	int r = paths_resolve(&w.paths, err);

	if (r == 0)
		r = bind_open(&w.bind, err);
	if (r == 0)
		r = status_wait(look, &w, time, err);
	bind_done(&w.bind);
	paths_done(&w.paths);
	return r;
}

int cmd_status(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"verbose", 'v', NULL, 0, "all that is known: each wall, each worker", 0},
		{"wait", OPT_WAIT, "SECONDS", OPTION_ARG_OPTIONAL,
		 "first wait until every part answers, for five minutes at most", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_arg,
		.doc = "What runs, and whether its walls stand.\v"
		       "Examples:\n"
		       "  lych status -v\n"
		       "  lych status --wait 2m"};
	struct status_args a = {.time = STATUS_WAIT_DEFAULT};
	struct err err = ERR_INIT;
	int r = 0;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (a.wait)
		r = wait_for_all(a.time, &err);
	if (r == 0)
		r = status(&a, &err);
	return r < 0 ? cmd_fail(&err, a.json) : r;
}

/* ---- version --------------------------------------------------------------- */

int cmd_version(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0}, {0}};
	static const struct argp argp = {
		.options = options, .parser = parse_arg, .doc = "The version."};
	struct status_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (a.json)
		(void)printf("{\"version\":\"%s\",\"api\":%d}\n", LYCH_VERSION,
			     LYCH_API_VERSION);
	else
		(void)printf("lych %s (API %d)\n", LYCH_VERSION, LYCH_API_VERSION);
	return cmd_end(0, &err, a.json);
}
