/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See quarantine.h.
 */
#include "cli/jobs/quarantine.h"

#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "manifest.jsonl"
#define MANIFEST_MAX ((size_t)1 << 20)
#define FILES_MAX 256 /* of one attempt; the tomb stops at 64 */
#define FOLDERS_MAX 100000
#define WHY_MAX 200

void quarantine_done(struct quarantine *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->file[i].path);
		free(q->file[i].why);
		free(q->file[i].sha256);
	}
	for (size_t i = 0; i < q->n_odd; i++)
		free(q->odd[i]);
	free(q->file);
	free(q->odd);
	fd_close(&q->fd);
	*q = (struct quarantine){.fd = -1};
}

/* A regular file with one name, whatever became of it since. */
static int read_here(int dirfd, const char *name, size_t max, struct buf *out,
		     struct err *err)
{
	cleanup_close int fd = fs_open_beneath(
		dirfd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0, err);
	char chunk[65536];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set_id(err, ERRID_STORE_DAMAGED,
				  "'%s' is not a regular file with one name", name);
	buf_init(out, max);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0 && buf_ok(out))
		buf_add(out, chunk, (size_t)n);
	if (n < 0)
		return err_sys(err, "read '%s'", name);
	return buf_ok(out) ? 0
			   : err_set_id(err, ERRID_CORE_TOO_LARGE,
					"'%s' has more than %zu bytes", name, max);
}

/* "12.3": a job and its attempt, as the tomb names a folder. */
static bool parse_folder(const char *name, job_id_t *job, int64_t *epoch)
{
	const char *dot = strchr(name, '.');
	cleanup_free char *first = dot ? xstrndup(name, (size_t)(dot - name)) : NULL;
	uint64_t j, e;

	if (!first || parse_u64(first, 1, INT64_MAX, &j, NULL) < 0 ||
	    parse_u64(dot + 1, 1, INT64_MAX, &e, NULL) < 0)
		return false;
	*job = (job_id_t)j;
	*epoch = (int64_t)e;
	return true;
}

static int parse_line(const char *line, size_t len, struct held_file *f, struct err *err)
{
	static const char *const keys[] = {"copy", "path", "why", "size", "sha256"};
	cleanup_json struct json *j = NULL;
	const char *path, *why, *sha;
	uint8_t sum[SHA256_SIZE];

	if (json_parse(line, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, "copy", true, 1, UINT32_MAX, &f->n, err) < 0 ||
	    json_get_u64(j, "size", true, 0, QUARANTINE_FILE_MAX, &f->size, err) < 0 ||
	    json_get_str(j, "path", true, PATH_BYTES_MAX, &path, err) < 0 ||
	    json_get_str(j, "why", true, WHY_MAX, &why, err) < 0 ||
	    json_get_str(j, "sha256", true, SHA256_HEX_SIZE - 1, &sha, err) < 0 ||
	    path_check_relative(path, strlen(path), err) < 0)
		return -1;
	if (strlen(sha) != SHA256_HEX_SIZE - 1 || hex_decode(sha, sum, sizeof(sum)) < 0)
		return err_set_id(err, ERRID_STORE_DAMAGED, "sha256");
	f->path = xstrdup(path);
	f->why = xstrdup(why);
	f->sha256 = xstrdup(sha);
	return 0;
}

/* All of the manifest, or nothing of it. */
static int read_manifest(struct quarantine *q, int dirfd, job_id_t job, int64_t epoch,
			 struct err *err)
{
	cleanup_buf struct buf text = {0};
	size_t before = q->n;
	const char *at;

	if (read_here(dirfd, MANIFEST, MANIFEST_MAX, &text, err) < 0)
		return -1;
	for (at = buf_str(&text); *at;) {
		struct held_file f = {.job = job, .epoch = epoch};
		size_t len = strcspn(at, "\n");

		if (q->n - before == FILES_MAX || parse_line(at, len, &f, err) < 0)
			return err_set_id(err, ERRID_STORE_DAMAGED, "its manifest");
		q->file = xreallocarray(q->file, q->n + 1, sizeof(*q->file));
		q->file[q->n++] = f;
		at += len + (at[len] == '\n');
	}
	return at == buf_str(&text) + text.len
		       ? 0
		       : err_set_id(err, ERRID_STORE_DAMAGED, "its manifest");
}

static void forget_from(struct quarantine *q, size_t n)
{
	while (q->n > n) {
		struct held_file *f = &q->file[--q->n];

		free(f->path);
		free(f->why);
		free(f->sha256);
	}
}

static bool is_empty(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool empty = d != NULL;

	if (!d) {
		fd_close(&fd);
		return false;
	}
	while (empty && (e = readdir(d)))
		empty = str_eq(e->d_name, ".") || str_eq(e->d_name, "..");
	(void)closedir(d);
	return empty;
}

/* A job that runs has its folder from the beginning of its harvest on: empty, it says nothing. */
static void read_folder(struct quarantine *q, const char *name, job_id_t job,
			int64_t epoch)
{
	struct err err = ERR_INIT;
	cleanup_close int dirfd = fs_open_beneath(
		q->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &err);
	size_t before = q->n;

	if (dirfd >= 0 &&
	    (is_empty(dirfd) || read_manifest(q, dirfd, job, epoch, &err) == 0))
		return;
	forget_from(q, before);
	q->odd = xreallocarray(q->odd, q->n_odd + 1, sizeof(*q->odd));
	q->odd[q->n_odd++] = xstrdup(name);
}

static int compare(const void *a, const void *b)
{
	const struct held_file *x = a, *y = b;

	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

static int read_folders(struct quarantine *q, DIR *d, job_id_t only, struct err *err)
{
	const struct dirent *e;
	size_t n = 0;

	while ((e = readdir(d))) {
		int64_t epoch;
		job_id_t job;

		if (!parse_folder(e->d_name, &job, &epoch) || (only && job != only))
			continue;
		if (n++ == FOLDERS_MAX)
			return err_set_id(err, ERRID_CORE_TOO_LARGE,
					  "more than %d jobs have files "
					  "in quarantine",
					  FOLDERS_MAX);
		read_folder(q, e->d_name, job, epoch);
	}
	if (q->n)
		qsort(q->file, q->n, sizeof(*q->file), compare);
	return 0;
}

int quarantine_read(const char *data, job_id_t only, struct quarantine *ret,
		    struct err *err)
{
	cleanup_close int top = -1;
	DIR *d;
	int fd, r;

	*ret = (struct quarantine){.fd = -1};
	if (access(data, F_OK) < 0 && errno == ENOENT)
		return 0;
	top = fs_open_dir(data, err);
	if (top < 0)
		return -1;
	if (faccessat(top, "tomb/quarantine", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		return 0;
	ret->fd = fs_open_beneath(top, "tomb/quarantine", O_RDONLY | O_DIRECTORY, 0, err);
	fd = ret->fd < 0 ? -1 : openat(ret->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ret->fd < 0 ? -1 : err_sys(err, "%s/tomb/quarantine", data);
	d = fdopendir(fd);
	if (!d) {
		fd_close(&fd);
		return err_sys(err, "%s/tomb/quarantine", data);
	}
	r = read_folders(ret, d, only, err);
	(void)closedir(d);
	if (r < 0)
		quarantine_done(ret);
	return r;
}

int quarantine_find(const struct quarantine *q, job_id_t job, uint64_t n,
		    const struct held_file **ret, struct err *err)
{
	for (size_t i = q->n; i-- > 0;) {
		if (q->file[i].job != job || q->file[i].n != n)
			continue;
		*ret = &q->file[i];
		return 0;
	}
	return err_set_id(err, ERRID_STORE_HELD,
			  "no file %" PRIu64 " of job %" PRId64 " is in quarantine", n,
			  job);
}

int quarantine_bytes(const struct quarantine *q, const struct held_file *f,
		     struct buf *out, struct err *err)
{
	cleanup_free char *name =
		xasprintf("%" PRId64 ".%" PRId64 "/%" PRIu64, f->job, f->epoch, f->n);
	cleanup_sha256 struct sha256 *sum = sha256_new();
	char hex[SHA256_HEX_SIZE];

	if (read_here(q->fd, name, QUARANTINE_FILE_MAX, out, err) < 0)
		return -1;
	sha256_add(sum, buf_str(out), out->len);
	sha256_hex(sum, hex);
	if (out->len == f->size && str_eq(hex, f->sha256))
		return 0;
	buf_done(out);
	return err_set_id(err, ERRID_STORE_HASH,
			  "the copy of %s is not what the tomb put there", f->path);
}
