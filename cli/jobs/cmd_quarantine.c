/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych quarantine: what was put aside, files and jobs; what a file is; and one taken out by a person.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/follow/job_end.h"
#include "cli/jobs/artifacts.h"
#include "cli/jobs/quarantine.h"
#include "cli/ui/pager.h"
#include "cli/ui/prompt.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/hazard.h"
#include "common/utf8.h"
#include <argp.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define LIST_MAX 500
#define PREVIEW_LINES 20
#define SHOWN_MAX ((size_t)1 << 20)
#define PREVIEW_BYTES ((size_t)64 << 10)

enum { KEY_TAINTED = 256 };

struct quarantine_args {
	struct cmd_words words; /* the verb, the job, the file */
	const char *out;
	bool force, yes, json, tainted;
};

static error_t quarantine_parse(int key, char *arg, struct argp_state *state)
{
	struct quarantine_args *a = state->input;

	switch (key) {
	case 'o':
		a->out = arg;
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case 'y':
		a->yes = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case KEY_TAINTED:
		a->tainted = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_word(&a->words, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- list -------------------------------------------------------------------- */

static int get_jobs(const struct paths *p, struct json **ret, const struct json **ret_arr,
		    struct err *err)
{
	cleanup_client struct client *c = NULL;
	cleanup_free char *target =
		xasprintf("/v1/jobs?state=quarantined&limit=%d", LIST_MAX);
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = 30000};

	if (client_new(p->api_sock, &c, err) < 0 ||
	    client_json(c, &rq, ret, NULL, err) < 0)
		return -1;
	return json_get_arr(*ret, "jobs", true, LIST_MAX, ret_arr, err);
}

static void tell_odd(const struct paths *p, const struct quarantine *q)
{
	for (size_t i = 0; i < q->n_odd; i++) {
		cleanup_free char *text = xasprintf(
			"%s/tomb/quarantine/%s: its manifest is missing or damaged; look "
			"at the copies there yourself",
			p->data, q->odd[i]);

		cmd_tell(ERRID_NONE, text);
	}
}

static void print_files(const struct quarantine *q)
{
	static const char *const head[] = {"JOB", "FILE", "SIZE", "WHY", "PATH"};
	struct table t;

	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < q->n; i++) {
		const struct held_file *f = &q->file[i];
		cleanup_free char *job = xasprintf("%" PRId64, f->job);
		cleanup_free char *n = xasprintf("%" PRIu64, f->n);
		char size[32];

		render_size(size, f->size);
		table_cell(&t, job);
		table_cell(&t, n);
		table_cell(&t, size);
		table_cell(&t, f->why);
		table_cell_whole(&t, f->path);
	}
	if (q->n)
		table_print(&t, true);
	else
		(void)puts("no files are in quarantine");
	table_done(&t);
}

static void print_jobs(const struct json *jobs)
{
	for (size_t i = 0; i < json_arr_len(jobs); i++) {
		const struct json *job = json_arr_at(jobs, i);
		int64_t id = 0;

		if (json_get_i64(job, "id", true, 1, INT64_MAX, &id, NULL) == 0)
			(void)printf("job %" PRId64
				     " is in quarantine itself: 'lych why %" PRId64
				     "' tells why\n",
				     id, id);
	}
}

static void write_file(struct jsonw *w, const struct held_file *f)
{
	jsonw_obj(w);
	jsonw_ki64(w, "job", f->job);
	jsonw_ki64(w, "epoch", f->epoch);
	jsonw_ku64(w, "file", f->n);
	jsonw_kstr(w, "path", f->path);
	jsonw_kstr(w, "why", f->why);
	jsonw_ku64(w, "size", f->size);
	jsonw_kstr(w, "sha256", f->sha256);
	jsonw_obj_end(w);
}

/* jobs NULL: it is about files alone. */
static void print_all_json(const struct quarantine *q, const struct json *jobs)
{
	cleanup_buf struct buf out = {.max = (size_t)256 << 20};
	struct jsonw w;

	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_key(&w, "files");
	jsonw_arr(&w);
	for (size_t i = 0; i < q->n; i++)
		write_file(&w, &q->file[i]);
	jsonw_arr_end(&w);
	if (jobs) {
		jsonw_key(&w, "jobs");
		jsonw_arr(&w);
		for (size_t i = 0; i < json_arr_len(jobs); i++)
			json_write(json_arr_at(jobs, i), &w);
		jsonw_arr_end(&w);
	}
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
}

/* Files are told though the vessel is away, which alone knows of jobs. */
static int list(const struct quarantine_args *a, const struct paths *p, struct err *err)
{
	cleanup_quarantine struct quarantine q = {.fd = -1};
	cleanup_json struct json *j = NULL;
	const struct json *jobs = NULL;
	int r;

	if (quarantine_read(p->data, 0, &q, err) < 0)
		return -1;
	tell_odd(p, &q);
	r = get_jobs(p, &j, &jobs, err);
	if (a->json && r < 0)
		return -1;
	if (a->json)
		print_all_json(&q, jobs);
	else
		print_files(&q);
	if (r == 0 && !a->json)
		print_jobs(jobs);
	return r;
}

/* ---- show -------------------------------------------------------------------- */

/* The first lines, no line cut, each byte of them as what it is; then how much is not shown. */
static void preview(const struct buf *text, size_t lines, size_t bytes, FILE *to)
{
	const char *at = text->data, *end = at + text->len;

	for (; at && at < end && lines > 0 && bytes > 0; lines--) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);
		size_t shown = len < bytes ? len : bytes;
		cleanup_buf struct buf b = {.max = (size_t)16 << 20};

		render_escape(&b, at, shown, 0);
		(void)fprintf(to, "  | %s\n", buf_str(&b));
		bytes -= shown;
		at += shown + (nl && shown == len);
	}
	if (at && at < end)
		(void)fprintf(to, "  … %zu more bytes\n", (size_t)(end - at));
}

static void describe(const struct held_file *f, const struct buf *text, FILE *to)
{
	cleanup_free char *path = render_shown(f->path);
	cleanup_free char *why = render_shown(f->why);
	char size[32];

	render_size(size, f->size);
	(void)fprintf(to, "path    %s\nheld    %s\nclass   %s\nsize    %s\nsha256  %s\n",
		      path, why, hazard_class(buf_str(text), text->len), size, f->sha256);
}

/* Of a job that was contained nothing is given out unasked; the vessel alone knows which ones are. One
 * that is gone from there was not: such a job stays. */
static int check_taint(const struct paths *p, job_id_t job, struct err *err)
{
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	const char *taint = NULL;

	if (client_new(p->api_sock, &c, err) < 0)
		return -1;
	if (job_get(c, job, JOB_GET_MSEC, &j, err) < 0) {
		if (err->id != ERRID_RUN_NOT_FOUND)
			return err_wrap(err,
					"whether job %" PRId64
					" was contained (--tainted does not ask)",
					job);
		*err = (struct err)ERR_INIT;
		return 0;
	}
	if (json_is_null(j, "taint"))
		return 0;
	if (json_get_str(j, "taint", true, 4096, &taint, err) < 0)
		return -1;
	return err_set_id(err, ERRID_RUN_TAINTED, "%s", taint);
}

static int show_one(const struct quarantine_args *a, const struct paths *p,
		    const struct quarantine *q, job_id_t job, struct err *err)
{
	cleanup_buf struct buf text = {0};
	const struct held_file *f;
	uint64_t n;

	if (parse_u64(a->words.at[2], 1, UINT32_MAX, &n, err) < 0 ||
	    quarantine_find(q, job, n, &f, err) < 0)
		return -1;
	if (!a->tainted && check_taint(p, job, err) < 0)
		return -1;
	if (quarantine_bytes(q, f, &text, err) < 0)
		return -1;
	if (a->json) {
		struct quarantine one = {.fd = -1, .file = NULL};
		struct held_file copy = *f;

		one.file = &copy;
		one.n = 1;
		print_all_json(&one, NULL);
		return 0;
	}
	if (!render_is_terminal(STDOUT_FILENO))
		return render_write(STDOUT_FILENO, text.data, text.len, err);
	if (pager_begin(err) < 0)
		return -1;
	describe(f, &text, stdout);
	preview(&text, SIZE_MAX, SHOWN_MAX, stdout);
	return 0;
}

static int show(const struct quarantine_args *a, const struct paths *p, struct err *err)
{
	cleanup_quarantine struct quarantine q = {.fd = -1};
	job_id_t job;

	if (job_id_parse(a->words.at[1], &job, err) < 0 ||
	    quarantine_read(p->data, job, &q, err) < 0)
		return -1;
	tell_odd(p, &q);
	if (a->words.at[2])
		return show_one(a, p, &q, job, err);
	if (a->json)
		print_all_json(&q, NULL);
	else if (q.n == 0)
		return err_set_id(err, ERRID_STORE_HELD,
				  "no files of job %" PRId64 " are in quarantine", job);
	else
		print_files(&q);
	return 0;
}

/* ---- release ----------------------------------------------------------------- */

/* Tells the log: the wish, which has to be there before anything is taken out (outcome NULL), or
 * what became of it. */
static int announce(const struct paths *p, const struct held_file *f, const char *to,
		    const char *outcome, struct err *err)
{
	cleanup_free char *target =
		xasprintf("/v1/jobs/%" PRId64 "/quarantine/release", f->job);
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *answer = NULL;
	cleanup_buf struct buf body = {.max = 65536};
	struct jsonw w;

	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "path", f->path);
	jsonw_kstr(&w, "why", f->why);
	jsonw_ku64(&w, "size", f->size);
	jsonw_kstr(&w, "sha256", f->sha256);
	jsonw_kstr(&w, "to", to);
	if (outcome)
		jsonw_kstr(&w, "outcome", outcome);
	jsonw_obj_end(&w);
	const struct client_request rq = {.method = "POST",
					  .target = target,
					  .body = body.data,
					  .body_len = body.len,
					  .timeout_ms = 30000};
	if (client_new(p->api_sock, &c, err) < 0 ||
	    client_json(c, &rq, &answer, NULL, err) < 0)
		return -1;
	return 0;
}

/* The directory that top is, by its path now. */
static int path_of(int top, char **ret, struct err *err)
{
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", top);
	*ret = realpath(link, NULL);
	if (!*ret)
		return err_sys(err, "%s", link);
	if (!utf8_is_valid(*ret, strlen(*ret)))
		return err_set_id(
			err, ERRID_CORE_USAGE,
			"the path of --out is not UTF-8, so the audit log could "
			"not name it");
	return 0;
}

/* What was done or not is done or not, whether the log hears of it or not. */
static void announce_end(const struct paths *p, const struct held_file *f, const char *to,
			 bool is_written)
{
	struct err err = ERR_INIT;

	if (announce(p, f, to, is_written ? "released" : "failed", &err) == 0)
		return;
	cleanup_free char *text = xasprintf(
		"the audit log has that it was asked for, not how it ended: %s", err.msg);

	cmd_tell(ERRID_NONE, text);
}

/* Nothing of the way to path is made yet: a release that the log refuses leaves no directory. */
static int check_place(int top, const char *path, const char *full, bool force,
		       struct err *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
	cleanup_close int parent =
		fs_open_beneath(top, dir ? dir : ".", O_PATH | O_DIRECTORY, 0, err);

	if (parent < 0 && err->sys == ENOENT) {
		*err = (struct err)ERR_INIT;
		return 0;
	}
	if (parent < 0)
		return -1;
	return force || faccessat(parent, slash ? slash + 1 : path, F_OK,
				  AT_SYMLINK_NOFOLLOW) < 0
		       ? 0
		       : err_set_id(err, ERRID_STORE_EXISTS, "%s", full);
}

/* top: the directory that --out named when the person was asked, whatever has its name by now. */
static int put(const struct quarantine_args *a, const struct paths *p, int top,
	       const struct held_file *f, const struct buf *text, struct err *err)
{
	cleanup_free char *full = xasprintf("%s/%s", a->out, f->path);
	cleanup_free char *to = NULL;
	cleanup_close int parent = -1;
	cleanup_close int fd = -1;
	int r;

	if (path_of(top, &to, err) < 0 ||
	    check_place(top, f->path, full, a->force, err) < 0)
		return -1;
	if (announce(p, f, to, NULL, err) < 0)
		return err_wrap(err, "it stays where it is");
	r = artifacts_new(top, f->path, &parent, &fd, err);
	if (r == 0)
		r = fs_write_all(fd, text->data, text->len, err);
	if (r == 0)
		r = artifacts_name(parent, fd, f->path, full, a->force, err);
	announce_end(p, f, to, r == 0);
	if (r < 0)
		return -1;
	if (a->json) {
		struct quarantine one = {.fd = -1, .n = 1};
		struct held_file copy = *f;

		one.file = &copy;
		print_all_json(&one, NULL);
		return 0;
	}
	cleanup_free char *shown = render_shown(full);

	(void)printf("%s written, mode 0644; the audit log has it\n", shown);
	return 0;
}

static int ask_and_put(const struct quarantine_args *a, const struct paths *p,
		       const struct held_file *f, const struct buf *text, struct err *err)
{
	bool was_there = access(a->out, F_OK) == 0, yes = a->yes;
	cleanup_close int top = artifacts_open_place(a->out, err);
	int r = 0;

	if (top < 0)
		return -1;
	describe(f, text, stderr);
	preview(text, PREVIEW_LINES, PREVIEW_BYTES, stderr);
	if (!yes)
		r = prompt_yes("Programs obey such a file by themselves. Write it?", &yes,
			       err);
	if (r == 0)
		r = yes ? put(a, p, top, f, text, err)
			: err_set_id(err, ERRID_CORE_UNCONFIRMED,
				     "the answer was not yes: nothing was written");
	if (r < 0 && !was_there)
		(void)rmdir(a->out); /* empty, or it stays */
	return r;
}

static int release(const struct quarantine_args *a, const struct paths *p,
		   struct err *err)
{
	cleanup_quarantine struct quarantine q = {.fd = -1};
	cleanup_buf struct buf text = {0};
	const struct held_file *f;
	job_id_t job;
	uint64_t n;

	if (!a->yes && !prompt_can_ask())
		return err_set_id(err, ERRID_CORE_NOBODY,
				  "nobody can be asked here: look at it with 'lych "
				  "quarantine show', then --yes");
	if (job_id_parse(a->words.at[1], &job, err) < 0 ||
	    parse_u64(a->words.at[2], 1, UINT32_MAX, &n, err) < 0 ||
	    quarantine_read(p->data, job, &q, err) < 0)
		return -1;
	tell_odd(p, &q);
	if (quarantine_find(&q, job, n, &f, err) < 0 ||
	    quarantine_bytes(&q, f, &text, err) < 0)
		return -1;
	return ask_and_put(a, p, f, &text, err);
}

/* ---- the command ------------------------------------------------------------- */

static int quarantine(const struct quarantine_args *a, struct err *err)
{
	const char *verb = a->words.n ? a->words.at[0] : "";
	cleanup_paths struct paths p = {0};

	if (paths_resolve(&p, err) < 0)
		return -1;
	if (cmd_words_are(&a->words, 1, "list"))
		return list(a, &p, err);
	if (a->words.n >= 2 && str_eq(verb, "show"))
		return show(a, &p, err);
	if (cmd_words_are(&a->words, 3, "release") && a->out)
		return release(a, &p, err);
	if (a->words.n >= 2 && str_eq(verb, "release"))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "'lych quarantine release JOB FILE --out DIR'; a job "
				  "that is in quarantine itself: 'lych retry JOB'");
	return err_set_id(
		err, ERRID_CORE_USAGE,
		"'lych quarantine list', 'show JOB [FILE]' or 'release JOB FILE "
		"--out DIR'");
}

int cmd_quarantine(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"out", 'o', "DIR", 0, "release: below this directory", 0},
		{"force", 'f', NULL, 0, "release: in place of a file", 0},
		{"yes", 'y', NULL, 0, "release: do not ask", 0},
		{"tainted", KEY_TAINTED, NULL, 0, "show a file of a contained job too",
		 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = quarantine_parse,
		.args_doc = "list\nshow JOB [FILE]\nrelease JOB FILE",
		.doc = "What was put aside because programs on your side would obey it "
		       "(docs/QUARANTINE.md).\vFILE is its number in the list. show with "
		       "a FILE has its content, on a terminal with each byte as what it "
		       "is. release writes it to where --out of 'lych run' would have, "
		       "after it was shown and you said yes; the audit log has it "
		       "first.\n\n"
		       "Examples:\n"
		       "  lych quarantine list\n"
		       "  lych quarantine show 2\n"
		       "  lych quarantine release --out ./got 2 1"};
	struct quarantine_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return cmd_end(quarantine(&a, &err), &err, a.json);
}
