/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych gate scan; lych private add|list|remove. The services judge and keep, so that what
 * was registered counts; a text is sent to them and never shown.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/secret/second_factor.h"
#include "cli/ui/prompt.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>

#define SCAN_MAX_BYTES ((size_t)8 << 20)
#define FILE_MAX_BYTES ((size_t)4 << 20)
#define TERM_MAX_BYTES 4096
#define FINDINGS_MAX 4096
#define ENTRIES_MAX 10000
#define TIMEOUT_MS 30000

/* ---- common ---- */

static int read_input(const char *path, size_t max, struct buf *out, struct err *err)
{
	cleanup_close int own = -1;
	int fd = STDIN_FILENO;
	char piece[65536];

	if (!str_eq(path, "-")) {
		own = open(path, O_RDONLY | O_CLOEXEC);
		if (own < 0)
			return err_sys_id(err,
					  errno == ENOENT ? ERRID_CORE_NO_FILE
							  : ERRID_CORE_USAGE,
					  "%s", path);
		fd = own;
	}
	buf_init(out, max);
	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "%s", path);
		if (n == 0)
			break;
		buf_add(out, piece, (size_t)n);
		if (!buf_ok(out))
			return err_set_id(err, ERRID_CORE_TOO_LARGE,
					  "%s: more than %zu bytes", path, max);
	}
	explicit_bzero(piece, sizeof(piece));
	return 0;
}

static int request(const struct client_request *rq, struct json **ret, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0)
		return -1;
	return client_json(c, rq, ret, NULL, err);
}

static const char *text_of(const struct json *obj, const char *key)
{
	const char *s = "?";

	return json_get_str(obj, key, true, 4096, &s, NULL) < 0 ? "?" : s;
}

static void number_cell(struct table *t, const struct json *obj, const char *key)
{
	uint64_t v = 0;
	char text[24];

	if (json_get_u64(obj, key, true, 0, INT64_MAX, &v, NULL) < 0) {
		table_cell(t, "?");
		return;
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	table_cell(t, text);
}

static void share_text(const struct json *obj, const char *key, char out[16])
{
	double v = 0;

	if (json_get_number(obj, key, true, 0, 1, &v, NULL) < 0)
		v = 1;
	(void)snprintf(out, 16, "%.2f", v);
}

/* ---- lych gate scan ---- */

struct gate_args {
	const char *verb, *file;
	bool json;
};

static error_t gate_parse(int key, char *arg, struct argp_state *state)
{
	struct gate_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else if (!a->file)
			a->file = arg;
		else
			cmd_usage(state, "'%s': one file", arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->verb || !str_eq(a->verb, "scan") || !a->file)
			cmd_usage(state, "scan FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int print_findings(const struct json *j, struct err *err)
{
	static const char *const head[] = {"FAMILY", "RULE",   "SEVERITY", "OFFSET",
					   "LENGTH", "LAYERS", "DIGEST"};
	cleanup_free char *verdict = render_shown(text_of(j, "verdict"));
	const struct json *arr = NULL;
	char share[16];
	struct table t;

	if (json_get_arr(j, "findings", true, FINDINGS_MAX, &arr, err) < 0)
		return -1;
	share_text(j, "score", share);
	(void)printf("score %s: %s\n", share, verdict);
	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *f = json_arr_at(arr, i);

		table_cell(&t, text_of(f, "family"));
		table_cell(&t, text_of(f, "rule"));
		share_text(f, "severity", share);
		table_cell(&t, share);
		number_cell(&t, f, "offset");
		number_cell(&t, f, "length");
		number_cell(&t, f, "depth");
		table_cell(&t, text_of(f, "mac"));
	}
	if (json_arr_len(arr))
		table_print(&t, true);
	table_done(&t);
	return 0;
}

/* 1: it would be refused. */
static int scan(const struct gate_args *a, struct err *err)
{
	cleanup_buf struct buf body = {0};
	cleanup_json struct json *j = NULL;
	struct client_request rq = {.method = "POST",
				    .target = "/v1/gate/scan",
				    .raw = true,
				    .timeout_ms = TIMEOUT_MS};

	if (read_input(a->file, SCAN_MAX_BYTES, &body, err) < 0)
		return -1;
	rq.body = buf_str(&body);
	rq.body_len = body.len;
	if (request(&rq, &j, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else if (print_findings(j, err) < 0)
		return -1;
	if (render_flush(err) < 0)
		return -1;
	return str_eq(text_of(j, "verdict"), "refuse");
}

int cmd_gate(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = gate_parse,
		.args_doc = "scan FILE",
		.doc = "What the privatization gate finds in a file (- : stdin), by "
		       "family and place, never the text. Exit code 1: it would refuse.\v"
		       "Examples:\n"
		       "  lych gate scan README\n"
		       "  git diff | lych gate scan -"};
	struct gate_args a = {0};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	r = scan(&a, &err);
	return r < 0 ? cmd_fail(&err, a.json) : r ? EXIT_FAILED : 0;
}

/* ---- lych private ---- */

struct private_args {
	const char *verb, *id, *file, *name;
	bool json;
};

enum { OPT_FILE = 256, OPT_NAME };

static error_t private_parse(int key, char *arg, struct argp_state *state)
{
	struct private_args *a = state->input;
	bool adds, removes;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case OPT_FILE:
		a->file = arg;
		return 0;
	case OPT_NAME:
		a->name = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else if (str_eq(a->verb, "add"))
			/* and it is not said again, where it may be logged */
			cmd_usage(state, "a term is read from stdin, or asked for on a "
					 "terminal: in a command's arguments every "
					 "process and the shell's history would have it");
		else if (!a->id)
			a->id = arg;
		else
			cmd_usage(state, "'%s': one at a time", arg);
		return 0;
	case ARGP_KEY_END:
		adds = a->verb && str_eq(a->verb, "add");
		removes = a->verb && str_eq(a->verb, "remove");
		if (!adds && !removes && !(a->verb && str_eq(a->verb, "list")))
			cmd_usage(state, "add, list or remove");
		if (!adds && (a->file || a->name))
			cmd_usage(state, "--file and --name are for add");
		if (removes != (a->id != NULL))
			cmd_usage(state, "remove ID");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void add_encoded(struct buf *out, const char *s)
{
	for (; *s; s++)
		if (strchr("-._~", *s) || (*s >= '0' && *s <= '9') ||
		    (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'))
			buf_addc(out, *s);
		else
			buf_addf(out, "%%%02X", (unsigned char)*s);
}

static int private_send(const struct private_args *a, const char *kind, const char *name,
			const void *data, size_t len, struct err *err)
{
	cleanup_buf struct buf target = {0};
	cleanup_json struct json *j = NULL;
	struct client_request rq = {
		.method = "POST", .raw = true, .timeout_ms = TIMEOUT_MS};
	uint64_t id;

	buf_init(&target, 8192);
	buf_addf(&target, "/v1/private?kind=%s&name=", kind);
	add_encoded(&target, name);
	rq.target = buf_str(&target);
	rq.body = data;
	rq.body_len = len;
	if (request(&rq, &j, err) < 0 ||
	    json_get_u64(j, "id", true, 1, INT64_MAX, &id, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else
		(void)printf("registered as %" PRIu64 "; only digests of it are kept\n",
			     id);
	return render_flush(err);
}

static int private_add_file(const struct private_args *a, struct err *err)
{
	cleanup_buf struct buf body = {0};
	cleanup_free char *path = xstrdup(a->file);
	int r;

	if (read_input(a->file, FILE_MAX_BYTES, &body, err) < 0)
		return -1;
	r = private_send(a, "file", a->name ? a->name : basename(path), buf_str(&body),
			 body.len, err);
	if (body.data)
		explicit_bzero(body.data, body.len);
	return r;
}

static int private_add_term(const struct private_args *a, struct err *err)
{
	char term[TERM_MAX_BYTES + 1];
	size_t len = 0;
	int r;

	if (prompt_secret("term (not shown): ", term, TERM_MAX_BYTES, &len, err) < 0)
		return err_wrap(err, "the term");
	r = private_send(a, "term", a->name ? a->name : "term", term, len, err);
	explicit_bzero(term, sizeof(term));
	return r;
}

static int private_list(const struct private_args *a, struct err *err)
{
	static const char *const head[] = {"ID", "KIND", "BYTES", "CREATED", "NAME"};
	const struct client_request rq = {
		.method = "GET", .target = "/v1/private", .timeout_ms = TIMEOUT_MS};
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL;
	char when[WHEN_SIZE];
	struct table t;

	if (request(&rq, &j, err) < 0 ||
	    json_get_arr(j, "entries", true, ENTRIES_MAX, &arr, err) < 0)
		return -1;
	if (a->json) {
		render_json(j);
		return render_flush(err);
	}
	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *e = json_arr_at(arr, i);

		number_cell(&t, e, "id");
		table_cell(&t, text_of(e, "kind"));
		number_cell(&t, e, "bytes");
		when_text_of(text_of(e, "created"), when);
		table_cell(&t, when);
		table_cell(&t, text_of(e, "name"));
	}
	table_print(&t, true);
	table_done(&t);
	return render_flush(err);
}

static int private_remove(const struct private_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_free char *target = NULL, *act = NULL;
	cleanup_json struct json *j = NULL;
	struct client_request rq = {.method = "DELETE", .timeout_ms = TIMEOUT_MS};
	uint64_t id;

	if (parse_u64(a->id, 1, INT64_MAX, &id, err) < 0)
		return err_wrap(err, "remove: an id of 'lych private list'");
	rq.target = target = xasprintf("/v1/private/%" PRIu64, id);
	act = xasprintf("remove entry %" PRIu64 " of what is private", id);
	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0 ||
	    second_factor_json(c, &rq, act, &j, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else
		(void)printf("removed\n");
	return render_flush(err);
}

int cmd_private(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"file", OPT_FILE, "FILE", 0, "add: a file; each passage of it counts",
		 0},
		{"name", OPT_NAME, "NAME", 0,
		 "add: what to call it (default: \"term\", or the file's name)", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0}};
	static const struct argp argp = {
		.options = options,
		.parser = private_parse,
		.children = when_option,
		.args_doc = "add\nadd --file FILE\nlist\nremove ID",
		.doc = "What must never leave: terms and files of yours. Only keyed "
		       "digests are kept. A term is read from stdin, or asked for on a "
		       "terminal; remove asks for the passphrase.\v"
		       "Examples:\n"
		       "  lych private add --name 'code name' <name.txt\n"
		       "  lych private add --file contract.txt\n"
		       "  lych private list"};
	struct private_args a = {0};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (str_eq(a.verb, "add"))
		r = a.file ? private_add_file(&a, &err) : private_add_term(&a, &err);
	else if (str_eq(a.verb, "list"))
		r = private_list(&a, &err);
	else
		r = private_remove(&a, &err);
	return r < 0 ? cmd_fail(&err, a.json) : 0;
}
