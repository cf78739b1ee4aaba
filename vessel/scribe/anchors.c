/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * See anchors.h.
 */
#include "vessel/scribe/anchors.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The last lines of one, among which a whole one is looked for. */
#define TAIL_BYTES ((size_t)16384)

struct anchor {
	const char *path;
	char name[ANCHOR_NAME_MAX];
	bool is_required;
	int fd;		 /* -1: it can't be opened */
	bool is_torn;	 /* its last line has no newline */
	bool is_foreign; /* it does not go with this log */
	bool is_good, was_good, was_told;
	struct err why; /* when it is not good */
	uint64_t size;	/* of the newest seal that it has */
	off_t end;	/* bytes that it had when we looked last */
};

struct anchors {
	size_t n;
	struct anchor of[ANCHORS_MAX];
};

static int fail(struct anchor *a, const struct err *why, struct err *err)
{
	a->is_good = false;
	a->why = *why;
	if (!a->is_required)
		return 0;
	*err = *why;
	return -1;
}

PRINTF_FMT(2, 3)
static int is_not_ours(struct anchor *a, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	a->is_foreign = true;
	return err_set_id(&a->why, ERRID_AUDIT_ANCHOR, "%.200s: %s", a->path, text);
}

/* ---- opening ---- */

static int open_dir_of(const char *path, struct err *err)
{
	char dir[PATH_MAX];
	size_t n = (size_t)(strrchr(path, '/') - path);
	int fd;

	if (n >= sizeof(dir))
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%.200s: too long", path);
	memcpy(dir, n ? path : "/", n ? n : 1);
	dir[n ? n : 1] = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys_id(err, ERRID_AUDIT_ANCHOR, "%.200s", dir) : fd;
}

static int check_file(const struct anchor *a, int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "%.200s", a->path);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%.200s: no regular file",
				  a->path);
	if (st.st_uid != geteuid())
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%.200s: belongs to uid %u",
				  a->path, st.st_uid);
	if (st.st_nlink != 1)
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%.200s: has other names too",
				  a->path);
	if (st.st_mode & 022)
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "%.200s: mode %04o, others may write to it", a->path,
				  st.st_mode & 07777);
	return 0;
}

/* For appending; made where it is not. */
static int open_file(struct anchor *a, int dirfd, struct err *err)
{
	cleanup_close int fd = openat(dirfd, a->name,
				      O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW |
					      O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				      0600);

	if (fd < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "open %.200s", a->path);
	if (check_file(a, fd, err) < 0)
		return -1;
	if (fsync(fd) < 0 || fsync(dirfd) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "fsync of %.200s", a->path);
	a->fd = TAKE_FD(fd);
	return 0;
}

/* What is foreign in there is refused by who reads the log. */
static int check_dir(const struct anchor *a, int dirfd, const char *log_dir,
		     struct err *err)
{
	struct stat log, st;

	if (fstat(dirfd, &st) < 0 || stat(log_dir, &log) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "%.200s", a->path);
	if (st.st_dev == log.st_dev && st.st_ino == log.st_ino)
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "%.200s: in the log's own directory", a->path);
	return 0;
}

static int open_one(struct anchor *a, const char *log_dir, struct err *err)
{
	struct err why = ERR_INIT;
	cleanup_close int dirfd = open_dir_of(a->path, &why);

	if (dirfd >= 0 && check_dir(a, dirfd, log_dir, &why) == 0 &&
	    open_file(a, dirfd, &why) == 0)
		return 0;
	return fail(a, &why, err);
}

int anchors_open(const char *log_dir, const struct anchor_want *want, size_t n,
		 struct anchors **ret, struct err *err)
{
	struct anchors *a = xnew(struct anchors);

	for (size_t i = 0; i < ANCHORS_MAX; i++)
		a->of[i].fd = -1;
	for (size_t i = 0; i < n && i < ANCHORS_MAX; i++) {
		struct anchor *one = &a->of[a->n++];

		one->path = want[i].path;
		one->is_required = want[i].is_required;
		if (strlen(one->path) > ANCHOR_PATH_MAX_BYTES) {
			(void)err_set_id(err, ERRID_AUDIT_ANCHOR,
					 "%.100s...: more than %d bytes", one->path,
					 ANCHOR_PATH_MAX_BYTES);
			goto refused;
		}
		if (anchor_name(one->path, one->name, err) < 0)
			goto refused;
		for (size_t k = 0; k < i; k++) {
			if (!str_eq(a->of[k].name, one->name))
				continue;
			(void)err_set_id(err, ERRID_AUDIT_ANCHOR,
					 "two of the name %s: the log names them by it",
					 one->name);
			goto refused;
		}
		if (open_one(one, log_dir, err) < 0)
			goto refused;
	}
	*ret = a;
	return 0;
refused:
	anchors_free(a);
	return -1;
}

void anchors_free(struct anchors *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		fd_close(&a->of[i].fd);
	free(a);
}

/* ---- what lies there ---- */

/* The end of the file, by a descriptor that is closed again: the one that is kept can't read. */
static ssize_t read_tail(struct anchor *a, char tail[TAIL_BYTES], struct err *err)
{
	cleanup_close int fd =
		open(a->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat mine, st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || fstat(a->fd, &mine) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "read %.200s", a->path);
	if (st.st_dev != mine.st_dev || st.st_ino != mine.st_ino)
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%.200s: it was exchanged",
				  a->path);
	n = pread(fd, tail, TAIL_BYTES,
		  st.st_size > (off_t)TAIL_BYTES ? st.st_size - (off_t)TAIL_BYTES : 0);
	if (n < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "read %.200s", a->path);
	a->is_torn = n > 0 && tail[n - 1] != '\n';
	return n;
}

/* The last whole line that is one; what else lies there a verifier judges, who has all of it. */
static bool last_line(const char *tail, size_t len, struct seal *ret)
{
	bool found = false;
	const char *nl;

	for (size_t at = 0; (nl = memchr(tail + at, '\n', len - at));
	     at = (size_t)(nl - tail) + 1)
		found |= anchor_line_parse(tail + at, (size_t)(nl - tail) - at, ret,
					   NULL) == 0;
	return found;
}

static int compare_one(struct anchor *a, const struct seal *last)
{
	cleanup_free char *tail = xmalloc(TAIL_BYTES);
	struct seal there = {0};
	ssize_t n = read_tail(a, tail, &a->why);

	if (n < 0)
		return -1;
	if (!last_line(tail, (size_t)n, &there))
		return anchor_line_is_begun(tail, (size_t)n)
			       ? 0
			       : is_not_ours(a, "no checkpoint is at its end");
	a->size = there.size;
	if (!last || !str_eq(there.log.s, last->log.s))
		return is_not_ours(a, "its checkpoints are of log %s", there.log.s);
	if (there.size > last->size)
		return is_not_ours(a,
				   "it has a checkpoint of %llu records (%s), and the "
				   "log's last is of "
				   "%llu: the log was cut, or an old copy was put back",
				   (unsigned long long)there.size, there.time,
				   (unsigned long long)last->size);
	if (there.size == last->size && !merkle_hash_eq(&there.root, &last->root))
		return is_not_ours(a,
				   "the first %llu records are not those that it has a "
				   "checkpoint of (%s): the log was rewritten",
				   (unsigned long long)there.size, there.time);
	return 0;
}

int anchors_compare(struct anchors *a, const struct seal *last, struct err *err)
{
	for (size_t i = 0; i < a->n; i++) {
		struct anchor *one = &a->of[i];
		struct err why;

		if (one->fd < 0 || compare_one(one, last) == 0)
			continue;
		why = one->why;
		if (fail(one, &why, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- a seal more ---- */

/* Its descriptor is all that we have: nothing tells a file that was moved aside. */
static int check_is_there(struct anchor *a, struct err *err)
{
	struct stat st;

	if (fstat(a->fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "%.200s", a->path);
	if (st.st_nlink == 0)
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "%.200s: it was removed while it was in use", a->path);
	if (st.st_size < a->end)
		return err_set_id(
			err, ERRID_AUDIT_ANCHOR,
			"%.200s: it was cut while it was in use: %lld bytes, and "
			"it had %lld",
			a->path, (long long)st.st_size, (long long)a->end);
	a->end = st.st_size;
	return 0;
}

static int append(struct anchor *a, const struct seal *s, struct err *err)
{
	cleanup_buf struct buf line;

	if (check_is_there(a, err) < 0) {
		a->is_foreign = true;
		return -1;
	}
	buf_init(&line, ANCHOR_LINE_MAX + 1);
	if (a->is_torn)
		buf_addc(&line, '\n');
	anchor_line_write(&line, s);
	if (!buf_ok(&line))
		return err_set(err, ERR_INTERNAL, "a line of an anchor is too long");
	a->is_torn = true;
	if (fs_write_all(a->fd, line.data, line.len, err) < 0) {
		err->id = ERRID_AUDIT_ANCHOR;
		err->code = ERR_UNAVAILABLE;
		return err_wrap(err, "append to %.200s", a->path);
	}
	a->is_torn = false;
	if (fdatasync(a->fd) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "fdatasync of %.200s",
				  a->path);
	a->end += (off_t)line.len;
	return 0;
}

int anchors_add(struct anchors *a, const struct seal *s, struct err *err)
{
	for (size_t i = 0; i < a->n; i++) {
		struct anchor *one = &a->of[i];
		struct err why = ERR_INIT;

		if (one->fd < 0 || one->is_foreign)
			continue;
		if (append(one, s, &why) < 0) {
			if (fail(one, &why, err) < 0)
				return -1;
			continue;
		}
		one->is_good = true;
		one->size = s->size;
	}
	return 0;
}

/* ---- what is told ---- */

bool anchors_tell(struct anchors *a, struct buf *members, const struct err **ret_why)
{
	for (size_t i = 0; i < a->n; i++) {
		struct anchor *one = &a->of[i];
		struct jsonw w;

		if (one->was_told && one->was_good == one->is_good)
			continue;
		one->was_told = true;
		one->was_good = one->is_good;
		*ret_why = one->is_good ? NULL : &one->why;
		jsonw_init(&w, members);
		buf_addf(members,
			 "\"anchor\":\"%s\",\"kind\":\"path\",\"ok\":%s,"
			 "\"size\":%llu",
			 one->name, one->is_good ? "true" : "false",
			 (unsigned long long)one->size);
		buf_adds(members, ",\"detail\":");
		jsonw_str(&w, one->is_good ? NULL : one->why.msg);
		return true;
	}
	return false;
}

void anchors_write_sizes(const struct anchors *a, struct buf *out)
{
	bool comma = false;

	buf_adds(out, ",\"anchored\":{");
	for (size_t i = 0; i < a->n; i++) {
		if (!a->of[i].is_good)
			continue;
		buf_addf(out, "%s\"%s\":%llu", comma ? "," : "", a->of[i].name,
			 (unsigned long long)a->of[i].size);
		comma = true;
	}
	buf_addc(out, '}');
}

void anchors_write(const struct anchors *a, struct jsonw *w)
{
	jsonw_arr(w);
	for (size_t i = 0; i < a->n; i++) {
		const struct anchor *one = &a->of[i];

		jsonw_obj(w);
		jsonw_kstr(w, "name", one->name);
		jsonw_kstr(w, "kind", "path");
		jsonw_kstr(w, "path", one->path);
		jsonw_kbool(w, "required", one->is_required);
		jsonw_kbool(w, "ok", one->is_good);
		jsonw_ku64(w, "size", one->size);
		jsonw_kstr(w, "detail", one->is_good ? NULL : one->why.msg);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}
