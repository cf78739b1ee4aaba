/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See run_spec.h.
 */
#include "cli/jobs/run_spec.h"

#include "cli/base/cmd.h"
#include "cli/base/tar.h"
#include "cli/ui/progress.h"
#include "cli/ui/render.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto/sensitive.h"
#include "common/str.h"
#include "common/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#define INLINE_ONE_MAX ((size_t)128 << 10) /* one file or stdin, raw bytes */
#define INLINE_ALL_MAX                                                                   \
	((size_t)512 << 10) /* together, raw bytes: base64 and escapes fit */

/* A stdin that is at its end by then, and not larger, is a part of the spec; any other is streamed. */
#define PEEK_USEC (50 * USEC_PER_MSEC)

/* ---- bytes that go in ------------------------------------------------------- */

struct input {
	int fd;
	const char *head; /* bytes read already */
	size_t head_len;
	bool at_end; /* nothing follows it */
};

static int input_read(void *out, size_t size, size_t *ret_len, void *arg, struct err *err)
{
	struct input *in = arg;
	char *p = out;
	size_t len = 0;

	if (in->head_len) {
		len = in->head_len < size ? in->head_len : size;
		memcpy(p, in->head, len);
		in->head += len;
		in->head_len -= len;
	}
	while (len < size && !in->at_end) {
		ssize_t n = read(in->fd, p + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read");
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret_len = len;
	return 0;
}

/* What was read of it to look at it, and the rest. */
struct parts {
	struct input head, *rest;
};

static int parts_read(void *out, size_t size, size_t *ret_len, void *arg, struct err *err)
{
	struct parts *p = arg;
	size_t n = 0, more = 0;

	if (input_read(out, size, &n, &p->head, err) < 0 ||
	    input_read((char *)out + n, size - n, &more, p->rest, err) < 0)
		return -1;
	*ret_len = n + more;
	return 0;
}

/* Text that JSON can carry as it is? */
static bool is_text(const char *data, size_t len)
{
	return utf8_is_valid(data, len) && !memchr(data, '\0', len);
}

/*
 * All of in as one of three keys: text, base64 or the sha256 of a blob.
 * *budget is what may still be put into the spec itself.
 */
static int write_bytes(struct client *c, struct jsonw *w, struct input *in,
		       const char *const keys[3], size_t *budget, struct err *err)
{
	size_t max = *budget < INLINE_ONE_MAX ? *budget : INLINE_ONE_MAX, len = 0;
	cleanup_free char *head = xmalloc(max + 1);
	struct parts whole = {.head = {.fd = -1, .head = head, .at_end = true},
			      .rest = in};
	char sha[65];
	uint64_t size;

	if (input_read(head, max + 1, &len, in, err) < 0)
		return -1;
	if (len > max) {
		whole.head.head_len = len;
		if (client_upload(c, parts_read, &whole, sha, &size, err) < 0)
			return -1;
		jsonw_kstr(w, keys[2], sha);
		return 0;
	}
	*budget -= len;
	if (is_text(head, len)) {
		jsonw_key(w, keys[0]);
		jsonw_strn(w, head, len);
		return 0;
	}
	struct buf b;

	buf_init(&b, INLINE_ONE_MAX * 2);
	base64_add(&b, head, len);
	jsonw_kstr(w, keys[1], buf_str(&b));
	buf_done(&b);
	return 0;
}

/* PATH[=DEST] of --file: the path, owned; *ret_dest is the name that the job has it by, a part
 * of arg. */
static char *split_file(const char *arg, const char **ret_dest)
{
	const char *eq = strrchr(arg, '=');
	const char *slash = strrchr(arg, '/');

	*ret_dest = eq ? eq + 1 : slash ? slash + 1 : arg;
	return eq ? xstrndup(arg, (size_t)(eq - arg)) : xstrdup(arg);
}

static int write_file(struct client *c, struct guard *g, struct jsonw *w, const char *arg,
		      size_t *budget, struct err *err)
{
	static const char *const keys[3] = {"content", "base64", "blob"};
	const char *dest;
	cleanup_free char *path = split_file(arg, &dest);
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct input in = {.fd = fd};
	struct stat st;

	if (fd < 0)
		return err_sys_id(err,
				  errno == ENOENT ? ERRID_CORE_NO_FILE : ERRID_CORE_USAGE,
				  "--file %s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "--file %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_CORE_FILE_KIND,
				  "--file %s: not a regular file", path);
	if (path_check_relative(dest, strlen(dest), err) < 0)
		return err_wrap(err, "--file %s", arg);
	if (guard_file(g, path, fd, err) < 0)
		return err_wrap(err, "--file");
	jsonw_obj(w);
	jsonw_kstr(w, "path", dest);
	if (write_bytes(c, w, &in, keys, budget, err) < 0)
		return err_wrap(err, "--file %s", path);
	jsonw_kstr(w, "mode", st.st_mode & 0100 ? "0755" : "0644");
	jsonw_obj_end(w);
	return 0;
}

/* DIR[=DEST] of --dir: the directory, owned; *ret_dest is where its contents go, a part of arg,
 * NULL: to the top. */
static int split_dir(const char *arg, char **ret, const char **ret_dest, struct err *err)
{
	const char *eq = strrchr(arg, '=');

	*ret_dest = eq && !str_eq(eq + 1, ".") ? eq + 1 : NULL;
	if (*ret_dest && path_check_relative(*ret_dest, strlen(*ret_dest), err) < 0)
		return err_wrap(err, "--dir %s", arg);
	*ret = eq ? xstrndup(arg, (size_t)(eq - arg)) : xstrdup(arg);
	return 0;
}

/* One tree more; two of them in one place would be a mixture that nobody asked for. */
static int add_dir(const struct run_args *a, size_t i, struct guard *g, struct tar *t,
		   struct err *err)
{
	cleanup_free char *dir = NULL;
	const char *dest;
	int top;

	if (split_dir(a->dirs[i], &dir, &dest, err) < 0)
		return -1;
	for (size_t k = 0; k < i; k++) {
		cleanup_free char *other = NULL;
		const char *taken;

		if (split_dir(a->dirs[k], &other, &taken, err) < 0)
			return -1;
		if (str_eq(dest, taken))
			return err_set_id(err, ERRID_CORE_USAGE,
					  "--dir %s and --dir %s would be in one place; "
					  "--dir %s=NAME copies it into a directory NAME",
					  a->dirs[k], a->dirs[i], dir);
	}
	if (tar_add(t, dir, dest, &top, err) < 0 ||
	    guard_tree(g, dir, dest, top, err) < 0)
		return err_wrap(err, "--dir");
	return 0;
}

/* Everything is looked at by name before the first byte is sent. */
static int open_dirs(const struct run_args *a, struct guard *g, struct tar *t,
		     struct err *err)
{
	for (size_t i = 0; i < a->n_dirs; i++)
		if (add_dir(a, i, g, t, err) < 0)
			return -1;
	return 0;
}

static int read_counted(void *buf, size_t size, size_t *ret_len, void *tar,
			struct err *err)
{
	if (tar_read(buf, size, ret_len, tar, err) < 0)
		return -1;
	progress_add(*ret_len);
	return 0;
}

/* At most: what is left out is among it. */
static uint64_t weigh_dirs(const struct run_args *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < a->n_dirs; i++) {
		cleanup_free char *dir = NULL;
		const char *dest;

		if (split_dir(a->dirs[i], &dir, &dest, NULL) == 0)
			sum += progress_weigh(dir);
	}
	return sum;
}

static int write_dirs(const struct run_args *a, struct client *c, struct guard *g,
		      struct tar *t, struct jsonw *w, struct err *err)
{
	uint64_t size;
	char sha[65];
	int r;

	progress_begin("copying in", weigh_dirs(a), true, a->json);
	r = client_upload(c, read_counted, t, sha, &size, err);
	progress_end();
	if (r < 0)
		return err_wrap(err, "--dir");
	guard_tell_more(g);
	if (render_is_terminal(STDERR_FILENO)) {
		char text[32];

		render_size(text, size);
		(void)fprintf(stderr, "lych: %" PRIu64 " files copied in (%s)\n",
			      tar_stats(t)->files, text);
	}
	jsonw_kstr(w, "input", sha);
	return 0;
}

/* ---- the spec --------------------------------------------------------------- */

/* Does one of the first n set the name of the one behind them, which has len bytes? */
static bool env_is_set(const struct run_args *a, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strcspn(a->env[i], "=") == len &&
		    strncmp(a->env[i], a->env[n], len) == 0)
			return true;
	return false;
}

/* NAME=VALUE, or NAME with the value that it has here. */
static const char *env_value(const char *arg, const char *name)
{
	const char *eq = strchr(arg, '=');

	return eq ? eq + 1 : getenv(name);
}

/* A value that nobody typed here. */
static int check_passed_on(const char *name, const char *value, struct err *err)
{
	const char *what = sensitive_value(name, value);

	if (!what)
		return 0;
	return err_set_id(err, ERRID_SPEC_SECRET, "--env %s: what it is here holds %s",
			  name, what);
}

static int write_env(const struct run_args *a, struct jsonw *w, struct err *err)
{
	jsonw_key(w, "env");
	jsonw_obj(w);
	for (size_t i = 0; i < a->n_env; i++) {
		size_t len = strcspn(a->env[i], "=");
		cleanup_free char *name = xstrndup(a->env[i], len);
		const char *value = env_value(a->env[i], name);

		if (!env_name_is_allowed(name, len))
			return err_set_id(err, ERRID_SPEC_ENV, "--env %s", name);
		if (env_is_set(a, i, len))
			return err_set_id(err, ERRID_SPEC_ENV, "--env %s is given twice",
					  name);
		if (!value)
			return err_set_id(err, ERRID_SPEC_ENV,
					  "--env %s: it is not set here, so there is no "
					  "value to pass on; or say %s=VALUE",
					  name, name);
		if (!utf8_is_valid(value, strlen(value)))
			return err_set_id(err, ERRID_SPEC_ENV, "--env %s: not UTF-8",
					  name);
		if (!strchr(a->env[i], '=') && check_passed_on(name, value, err) < 0)
			return -1;
		jsonw_kstr(w, name, value);
	}
	jsonw_obj_end(w);
	return 0;
}

/* Of a struct run_args: its --file of that name, or where its --dir at the top would have it. */
static char *path_of(const void *args, const char *name)
{
	const struct run_args *a = args;

	for (size_t i = 0; i < a->n_files; i++) {
		const char *dest;
		cleanup_free char *path = split_file(a->files[i], &dest);

		if (str_eq(dest, name))
			return TAKE_PTR(path);
	}
	for (size_t i = 0; i < a->n_dirs; i++) {
		cleanup_free char *dir = NULL;
		struct err none = ERR_INIT;
		const char *dest;

		if (split_dir(a->dirs[i], &dir, &dest, &none) == 0 && !dest)
			return xasprintf("%s/%s", dir, name);
	}
	return NULL;
}

static int write_deps(const struct run_args *a, struct jsonw *w, struct err *err)
{
	const struct deps_files files = {path_of, a};

	return deps_write(&a->deps, &files, w, err);
}

static void write_limits(const struct run_args *a, struct jsonw *w)
{
	const struct {
		const char *name;
		uint64_t value;
	} l[] = {
		{"memory_bytes", a->memory}, {"disk_bytes", a->disk},
		{"output_bytes", a->output}, {"timeout_ms", a->timeout_usec / 1000},
		{"processes", a->processes}, {"cpus", a->cpus},
	};

	jsonw_key(w, "limits");
	jsonw_obj(w);
	for (size_t i = 0; i < ARRAY_SIZE(l); i++)
		if (l[i].value)
			jsonw_ku64(w, l[i].name, l[i].value);
	jsonw_obj_end(w);
}

/* Is all of it wanted before the job begins? Then it is kept, and the job can be run again. */
static bool is_whole(const struct run_args *a)
{
	struct stat st;

	return a->detach || a->names_request ||
	       (a->retry && str_eq(a->retry, "on_lost")) ||
	       (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode));
}

/* Its modes and what it can are not the job's: the filter between them knows what passes. */
static void write_tty(struct jsonw *w, const struct feed *feed, bool stays)
{
	jsonw_kstr(w, "stdin_stream", feed->name);
	jsonw_key(w, "tty");
	jsonw_obj(w);
	jsonw_ku64(w, "cols", feed->cols);
	jsonw_ku64(w, "rows", feed->rows);
	jsonw_kstr(w, "term", TTY_TERM_DEFAULT);
	if (stays)
		jsonw_kbool(w, "stays", true);
	jsonw_obj_end(w);
}

static int write_stdin(struct client *c, const struct run_args *a, struct feed *feed,
		       struct jsonw *w, size_t *budget, struct err *err)
{
	static const char *const keys[3] = {"stdin", "stdin_base64", "stdin_blob"};
	struct input in = {.fd = STDIN_FILENO};
	bool whole = true;

	if (a->tty) {
		write_tty(w, feed, a->detach);
		return 0;
	}
	if (render_is_terminal(STDIN_FILENO))
		return 0;
	if (!is_whole(a)) {
		if (feed_peek(feed, PEEK_USEC, INLINE_ONE_MAX, &whole, err) < 0)
			return -1;
		if (!whole) {
			jsonw_kstr(w, "stdin_stream", feed->name);
			return 0;
		}
		in = (struct input){.fd = -1,
				    .head = buf_str(&feed->data),
				    .head_len = feed->data.len,
				    .at_end = true};
	}
	return write_bytes(c, w, &in, keys, budget, err) < 0 ? err_wrap(err, "stdin") : 0;
}

static int write_argv(const struct run_args *a, struct jsonw *w, struct err *err)
{
	if (a->argc > ARGV_MAX)
		return err_set_id(err, ERRID_SPEC_ARGV, "%d strings", a->argc);
	jsonw_key(w, "argv");
	jsonw_arr(w);
	for (int i = 0; i < a->argc; i++) {
		size_t len = strlen(a->argv[i]);

		if (len > ARG_MAX_BYTES || !utf8_is_valid(a->argv[i], len))
			return err_set_id(err, ERRID_SPEC_ARGV, "argument %d: %s", i,
					  len > ARG_MAX_BYTES ? "too long" : "not UTF-8");
		jsonw_str(w, a->argv[i]);
	}
	jsonw_arr_end(w);
	return 0;
}

static int write_globs(const struct run_args *a, struct jsonw *w, struct err *err)
{
	jsonw_key(w, "artifacts");
	jsonw_arr(w);
	for (size_t i = 0; i < a->n_artifacts; i++) {
		if (!utf8_is_valid(a->artifacts[i], strlen(a->artifacts[i])))
			return err_set_id(err, ERRID_SPEC_PATH,
					  "--artifact %s: not UTF-8", a->artifacts[i]);
		jsonw_str(w, a->artifacts[i]);
	}
	jsonw_arr_end(w);
	return 0;
}

static int write_files(struct client *c, const struct run_args *a, struct guard *g,
		       struct jsonw *w, size_t *budget, struct err *err)
{
	jsonw_key(w, "files");
	jsonw_arr(w);
	for (size_t i = 0; i < a->n_files; i++)
		if (write_file(c, g, w, a->files[i], budget, err) < 0)
			return -1;
	for (size_t i = 0; i < a->n_texts; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "path", a->texts[i].path);
		jsonw_kstr(w, "content", a->texts[i].text);
		jsonw_kstr(w, "mode", "0644");
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	return 0;
}

/* What goes in: files, directories, stdin. */
static int write_inputs(struct client *c, const struct run_args *a, struct feed *feed,
			struct jsonw *w, struct err *err)
{
	const struct guard_wish wish = {.exclude = a->exclude,
					.include = a->include,
					.n_exclude = a->n_exclude,
					.n_include = a->n_include,
					.git = a->git,
					.home = a->home};
	cleanup_guard struct guard *g = NULL;
	size_t budget = INLINE_ALL_MAX;
	struct tar *t;
	int r;

	if (guard_new(&wish, &g, err) < 0)
		return -1;
	t = tar_new(guard_want, guard_tell, g);
	r = open_dirs(a, g, t, err);
	if (r == 0 && (a->n_files || a->n_texts))
		r = write_files(c, a, g, w, &budget, err);
	if (r == 0 && a->n_dirs)
		r = write_dirs(a, c, g, t, w, err);
	tar_close(t);
	if (r < 0)
		return -1;
	return a->no_stdin ? 0 : write_stdin(c, a, feed, w, &budget, err);
}

int run_spec_build(struct client *c, const struct run_args *a, struct feed *feed,
		   struct buf *out, struct err *err)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "request_id", a->request_id);
	if (write_argv(a, &w, err) < 0 || write_inputs(c, a, feed, &w, err) < 0)
		return -1;
	if (a->n_env && write_env(a, &w, err) < 0)
		return -1;
	write_limits(a, &w);
	if (a->network)
		jsonw_kstr(&w, "network", a->network);
	if (a->egress)
		jsonw_kstr(&w, "egress", a->egress);
	if (write_deps(a, &w, err) < 0)
		return -1;
	if (a->retry)
		jsonw_kstr(&w, "retry", a->retry);
	if (a->has_priority)
		jsonw_ku64(&w, "priority", a->priority);
	if (a->explain)
		jsonw_kbool(&w, "explain", true);
	if (a->n_artifacts && write_globs(a, &w, err) < 0)
		return -1;
	jsonw_obj_end(&w);
	if (!buf_ok(out))
		return err_set_id(err, ERRID_SPEC_SIZE, "above %zu bytes",
				  SPEC_MAX_BYTES);
	return 0;
}

int run_submit(struct client *c, const struct buf *spec, const struct run_args *a,
	       struct json **ret, job_id_t *ret_id, struct err *err)
{
	const struct client_request rq = {.method = "POST",
					  .target = a->detach ? "/v1/jobs"
							      : "/v1/jobs?attended=1",
					  .body = buf_str(spec),
					  .body_len = spec->len,
					  .timeout_ms = 60000};

	if (client_json(c, &rq, ret, NULL, err) == 0 &&
	    json_get_i64(*ret, "id", true, 1, INT64_MAX, ret_id, err) == 0)
		return 0;
	if ((err->id == ERRID_RUN_DB || err->id == ERRID_HTTP_AWAY) &&
	    err->sys != ECONNREFUSED) {
		if (a->is_agent)
			return err_wrap(err, "not known whether it was accepted; 'lych "
					     "jobs' shows it");
		return err_wrap(
			err,
			"not known whether it was accepted; the same command with "
			"--request-id %s is the same job",
			a->request_id);
	}
	return -1;
}
