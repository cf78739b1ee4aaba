/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych artifacts: list, or fetch into a directory. Names come from an untrusted job.
 */
#include "cli/jobs/artifacts.h"

#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/jobs/last_job.h"
#include "cli/ui/pager.h"
#include "cli/ui/progress.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

struct artifact {
	uint64_t n, size;
	const char *path, *sha256, *class_name;
};

static int artifact_read(const struct json *v, struct artifact *a, struct err *err)
{
	struct err why = ERR_INIT;

	*a = (struct artifact){.class_name = ""};
	if (!v || json_as_obj(v, err) < 0 ||
	    json_get_u64(v, "n", true, 0, ARTIFACTS_MAX, &a->n, err) < 0 ||
	    json_get_u64(v, "size", true, 0, INT64_MAX, &a->size, err) < 0 ||
	    json_get_str(v, "path", true, 8192, &a->path, err) < 0 ||
	    json_get_str(v, "sha256", true, 64, &a->sha256, err) < 0 ||
	    json_get_str(v, "class", false, 64, &a->class_name, err) < 0)
		return -1;
	return path_check_relative(a->path, strlen(a->path), &why) < 0
		       ? err_set_id(err, ERRID_HTTP_ANSWER, "an artifact's name: %s",
				    why.msg)
		       : 0;
}

static int artifacts_get(struct client *c, job_id_t id, struct json **ret,
			 const struct json **arr, struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64 "/artifacts", id);
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = 30000};

	if (client_json(c, &rq, ret, NULL, err) < 0)
		return -1;
	return json_get_arr(*ret, "artifacts", true, ARTIFACTS_MAX, arr, err);
}

struct download {
	int fd;
	struct sha256 *sum;
	uint64_t left;
};

static int on_bytes(const void *data, size_t len, void *arg, struct err *err)
{
	struct download *d = arg;

	if (len > d->left)
		return err_set_id(err, ERRID_HTTP_ANSWER, "more bytes than its size");
	d->left -= len;
	sha256_add(d->sum, data, len);
	progress_add(len);
	return fs_write_all(d->fd, data, len, err);
}

/* Into an unnamed file first: only complete and correct bytes get the name. */
static int download(struct client *c, job_id_t id, const struct artifact *a, unsigned how,
		    int fd, struct err *err)
{
	cleanup_free char *target =
		xasprintf("/v1/jobs/%" PRId64 "/artifacts/%" PRIu64 "%s", id, a->n,
			  how & ARTIFACTS_TAINTED ? "?tainted=1" : "");
	const struct client_request rq = {.method = "GET", .target = target};
	cleanup_sha256 struct sha256 *sum = sha256_new();
	struct download d = {.fd = fd, .sum = sum, .left = a->size};
	char hex[SHA256_HEX_SIZE];

	if (client_raw(c, &rq, on_bytes, &d, err) < 0)
		return -1;
	sha256_hex(sum, hex);
	if (d.left || !str_eq(hex, a->sha256))
		return err_set_id(err, ERRID_STORE_HASH, "%s", a->path);
	return 0;
}

static int give_name(int parent, int fd, const char *name, const char *full, bool force,
		     struct err *err)
{
	cleanup_free char *self = xasprintf("/proc/self/fd/%d", fd);

	if (linkat(AT_FDCWD, self, parent, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno == EEXIST && !force)
		return err_set_id(err, ERRID_STORE_EXISTS, "%s", full);
	if (errno != EEXIST)
		return err_sys(err, "%s", full);
	if (unlinkat(parent, name, 0) < 0 ||
	    linkat(AT_FDCWD, self, parent, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(err, "%s", full);
	return 0;
}

int artifacts_new(int top, const char *path, int *ret_parent, int *ret_fd,
		  struct err *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
	cleanup_close int parent = -1;
	int fd;

	if (dir && fs_mkdir_beneath(top, dir, 0755, err) < 0)
		return -1;
	parent = dir ? fs_open_beneath(top, dir, O_RDONLY | O_DIRECTORY, 0, err)
		     : openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return dir ? -1 : err_sys(err, "open");
	fd = openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "a file without a name");
	*ret_parent = TAKE_FD(parent);
	*ret_fd = fd;
	return 0;
}

int artifacts_name(int parent, int fd, const char *path, const char *full, bool force,
		   struct err *err)
{
	const char *slash = strrchr(path, '/');

	if (fchmod(fd, 0644) < 0)
		return err_sys(err, "chmod");
	return give_name(parent, fd, slash ? slash + 1 : path, full, force, err);
}

static int fetch_one(struct client *c, job_id_t id, const char *top_path, int top,
		     const struct artifact *a, unsigned how, struct err *err)
{
	cleanup_free char *full = xasprintf("%s/%s", top_path, a->path);
	cleanup_close int parent = -1;
	cleanup_close int fd = -1;

	if (artifacts_new(top, a->path, &parent, &fd, err) < 0 ||
	    download(c, id, a, how, fd, err) < 0)
		return -1;
	return artifacts_name(parent, fd, a->path, full, how & ARTIFACTS_FORCE, err);
}

/* Why errno refused it, in words: what is missing is rarely what was named. */
static int refuse_place(const char *dir, struct err *err)
{
	int why = errno;
	struct stat st;

	if (why == ENOENT && lstat(dir, &st) == 0)
		return err_set_id(err, ERRID_STORE_PLACE,
				  "%s: a link to something that is not there", dir);
	if (why == ENOTDIR && stat(dir, &st) == 0)
		return err_set_id(err, ERRID_STORE_PLACE, "%s: not a directory", dir);
	errno = why;
	(void)err_sys_id(err, ERRID_STORE_PLACE, "%s", dir);
	return why == ENOENT
		       ? err_wrap(err, "the directory that it would be in is missing")
		       : -1;
}

int artifacts_open_place(const char *dir, struct err *err)
{
	int fd;

	if (!*dir)
		return err_set_id(err, ERRID_STORE_PLACE, "--out: the name is empty");
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return refuse_place(dir, err);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
		(void)refuse_place(dir, err);
		fd_close(&fd);
		return -1;
	}
	return fd;
}

static uint64_t weigh(const struct json *arr)
{
	uint64_t sum = 0, size;

	for (size_t i = 0; i < json_arr_len(arr); i++)
		if (json_get_u64(json_arr_at(arr, i), "size", true, 0, INT64_MAX, &size,
				 NULL) == 0 &&
		    size < INT64_MAX - sum)
			sum += size;
	return sum;
}

static void tell_fetched(const char *dir, const struct artifact *a)
{
	cleanup_buf struct buf b = {.max = 65536};

	buf_addf(&b, "lych: %s/", dir);
	render_escape(&b, a->path, strlen(a->path), 0);
	cleanup_free char *line = render_fit(buf_str(&b), STDERR_FILENO);

	progress_hide();
	(void)fprintf(stderr, "%s\n", line);
}

static int fetch_all(struct client *c, job_id_t id, const char *dir, int top,
		     const struct json *arr, unsigned how, struct err *err)
{
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		struct artifact a;

		if (artifact_read(json_arr_at(arr, i), &a, err) < 0 ||
		    fetch_one(c, id, dir, top, &a, how, err) < 0)
			return err_wrap(err, "artifact %zu", i);
		if (!(how & ARTIFACTS_QUIET))
			tell_fetched(dir, &a);
	}
	return 0;
}

int artifacts_fetch(struct client *c, job_id_t id, const char *dir, unsigned how,
		    struct err *err)
{
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL;
	cleanup_close int top = -1;
	int r;

	if (artifacts_get(c, id, &j, &arr, err) < 0)
		return -1;
	top = artifacts_open_place(dir, err);
	if (top < 0)
		return -1;
	progress_begin("fetching", weigh(arr), false, how & ARTIFACTS_QUIET);
	r = fetch_all(c, id, dir, top, arr, how, err);
	progress_end();
	return r;
}

/* ---- the command ------------------------------------------------------------ */

enum { KEY_TAINTED = 256 };

struct art_args {
	bool json, force, tainted;
	const char *out, *id;
};

static error_t art_parse(int key, char *arg, struct argp_state *state)
{
	struct art_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case KEY_TAINTED:
		a->tainted = true;
		return 0;
	case 'o':
		if (a->out)
			cmd_usage(state, "--out is given twice: %s and %s", a->out, arg);
		a->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->id)
			return ARGP_ERR_UNKNOWN;
		a->id = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option art_options[] = {
	{"out", 'o', "DIR", 0, "fetch all of them into this directory", 0},
	{"force", 'f', NULL, 0, "overwrite files", 0},
	{"tainted", KEY_TAINTED, NULL, 0, "fetch those of a contained job too", 0},
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};
static const struct argp art_argp = {.options = art_options,
				     .parser = art_parse,
				     .args_doc = "[JOB]",
				     .doc = "List a job's artifacts, or fetch them; of "
					    "the last job, when none is named.\v"
					    "Examples:\n"
					    "  lych artifacts 2\n"
					    "  lych artifacts 2 --out ./files"};

static int list(const struct json *arr, struct err *err)
{
	struct table t;
	int r = 0;

	table_init(&t, 4);
	table_cell(&t, "N");
	table_cell(&t, "SIZE");
	table_cell(&t, "CLASS");
	table_cell(&t, "PATH");
	for (size_t i = 0; i < json_arr_len(arr) && r == 0; i++) {
		struct artifact a;
		char text[32];

		r = artifact_read(json_arr_at(arr, i), &a, err);
		if (r < 0)
			break;
		(void)snprintf(text, sizeof(text), "%" PRIu64, a.n);
		table_cell(&t, text);
		render_size(text, a.size);
		table_cell(&t, text);
		table_cell(&t, a.class_name);
		table_cell(&t, a.path);
	}
	if (r == 0)
		table_print(&t, true);
	table_done(&t);
	return r;
}

static int artifacts(const struct art_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL;
	job_id_t id = 0;

	if ((a->id && job_id_parse(a->id, &id, err) < 0) || paths_resolve(&p, err) < 0 ||
	    client_new(p.api_sock, &c, err) < 0 || last_job_take(c, false, &id, err) < 0)
		return -1;
	if (a->out)
		return artifacts_fetch(c, id, a->out,
				       (a->force ? ARTIFACTS_FORCE : 0u) |
					       (a->json ? ARTIFACTS_QUIET : 0u) |
					       (a->tainted ? ARTIFACTS_TAINTED : 0u),
				       err);
	if (artifacts_get(c, id, &j, &arr, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else if (pager_begin(err) < 0 || list(arr, err) < 0)
		return -1;
	return render_flush(err);
}

int cmd_artifacts(int argc, char **argv)
{
	struct art_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&art_argp, argc, argv, 0, &a);
	return artifacts(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
