/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See audit_log.h.
 */
#include "cli/base/audit_log.h"

#include "common/base64.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENT_NAME "segment-%010" PRIu64 ".jsonl"
#define CHUNK_BYTES 65536
#define SEALS_TAIL 4096 /* four of them at least */

int audit_log_open(const struct paths *p, int *ret_dirfd, struct err *err)
{
	cleanup_free char *dir = xasprintf("%s/audit", p->data);

	*ret_dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dirfd >= 0)
		return 0;
	if (errno == ENOENT)
		return err_set_id(err, ERRID_AUDIT_NONE, "%s is not there", dir);
	return err_sys(err, "%s", dir);
}

int audit_log_segment(int dirfd, uint64_t number)
{
	char name[64];

	(void)snprintf(name, sizeof(name), SEGMENT_NAME, number);
	return openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

int audit_log_newest(int dirfd, uint64_t *ret, struct err *err)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		(void)err_sys(err, "the audit log's directory");
		fd_close(&fd);
		return -1;
	}
	*ret = 0;
	while ((e = readdir(d))) {
		uint64_t n;
		char again[64];

		if (sscanf(e->d_name, "segment-%10" SCNu64 ".jsonl", &n) != 1)
			continue;
		(void)snprintf(again, sizeof(again), SEGMENT_NAME, n);
		if (str_eq(again, e->d_name) && n > *ret)
			*ret = n;
	}
	return 0;
}

int audit_log_first_key(int dirfd, char ret[AUDIT_KEY_TEXT], struct err *err)
{
	static const char mark[] = "\ngenesis ";
	cleanup_close int fd =
		openat(dirfd, "seals", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char head[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
	const char *at = n < 0 ? NULL : memmem(head, (size_t)n, mark, sizeof(mark) - 1);

	if (n < 0)
		return err_sys_id(err, ERRID_AUDIT_SEAL, "the audit log's checkpoints");
	if (at)
		at += sizeof(mark) - 1;
	if (!at || head + n - at < AUDIT_KEY_TEXT || at[AUDIT_KEY_TEXT - 1] != '\n' ||
	    !base64_is_valid(at, AUDIT_KEY_TEXT - 1))
		return err_set_id(err, ERRID_AUDIT_SEAL, "its first checkpoint");
	return str_fmt(ret, AUDIT_KEY_TEXT, "%.*s", AUDIT_KEY_TEXT - 1, at);
}

/* "origin\n<records>\n<root>\n...\n\n<signature>\n\n", one behind the other. */
static bool read_size(const char *at, const char *end, uint64_t *ret)
{
	const char *text_end = memmem(at, (size_t)(end - at), "\n\n", 2);
	const char *line = memchr(at, '\n', (size_t)(end - at)), *line_end;
	char digits[24];

	if (!text_end || !memmem(text_end + 2, (size_t)(end - text_end) - 2, "\n\n", 2))
		return false;
	line_end = memchr(line + 1, '\n', (size_t)(end - line) - 1);
	return line_end &&
	       str_fmt(digits, sizeof(digits), "%.*s", (int)(line_end - line - 1),
		       line + 1) == 0 &&
	       parse_u64(digits, 0, INT64_MAX, ret, NULL) == 0;
}

int audit_log_sealed(int dirfd, uint64_t *ret, struct err *err)
{
	static const char origin[] = "\n\nlychgate.audit/";
	cleanup_close int fd =
		openat(dirfd, "seals", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char tail[SEALS_TAIL + 2] = "\n\n";
	const char *at = tail, *end;
	struct stat st;
	ssize_t n = -1;

	*ret = 0;
	if (fd >= 0 && fstat(fd, &st) == 0)
		n = pread(fd, tail + 2, SEALS_TAIL,
			  st.st_size > SEALS_TAIL ? st.st_size - SEALS_TAIL : 0);
	if (n < 0)
		return err_sys_id(err, ERRID_AUDIT_SEAL, "the audit log's checkpoints");
	end = tail + 2 + n;
	while ((at = memmem(at, (size_t)(end - at), origin, sizeof(origin) - 1))) {
		at += 2;
		if (!read_size(at, end, ret))
			break; /* it is being written */
	}
	return 0;
}

/* ---- the records of one job -------------------------------------------------- */

/* The text behind "ts":" in the head of a line, which is written in a fixed order. */
static void time_of(const char *line, size_t len, char *out, size_t size)
{
	static const char mark[] = "\"ts\":\"";
	const char *at = memmem(line, len, mark, sizeof(mark) - 1), *end;

	out[0] = '\0';
	if (!at)
		return;
	at += sizeof(mark) - 1;
	end = memchr(at, '"', (size_t)(line + len - at));
	if (end && (size_t)(end - at) < size)
		(void)snprintf(out, size, "%.*s", (int)(end - at), at);
}

/* Does a segment begin after that time? One that cannot be told does not. */
static bool begins_after(int fd, const char *when)
{
	char head[1024], ts[64];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n <= 0 || !when[0])
		return false;
	time_of(head, (size_t)n, ts, sizeof(ts));
	return strcmp(ts, when) > 0;
}

static int take(const struct audit_log_query *q, const char *mark, const char *line,
		size_t len, struct err *err)
{
	cleanup_json struct json *j = NULL;
	const struct json *metadata = NULL;
	const char *event = "", *job = "", *ts = "";
	struct err ignored = ERR_INIT;

	if (!memmem(line, len, mark, strlen(mark)) ||
	    json_parse(line, len, JSON_DEPTH_DEFAULT, &j, &ignored) < 0 ||
	    json_get_str(j, "event", true, 256, &event, &ignored) < 0 ||
	    json_get_str(j, "ts", true, 64, &ts, &ignored) < 0 ||
	    json_get_obj(j, "metadata", true, &metadata, &ignored) < 0 ||
	    json_get_str(metadata, "correlation_uid", true, 32, &job, &ignored) < 0 ||
	    !str_eq(job, q->job) || (q->from[0] && strcmp(ts, q->from) < 0) ||
	    (q->to[0] && strcmp(ts, q->to) > 0))
		return 0;
	return q->on_record(event, j, q->arg, err);
}

/* What is longer than a record is none. */
static int read_segment(int fd, const struct audit_log_query *q, const char *mark,
			struct err *err)
{
	cleanup_free char *chunk = xmalloc(CHUNK_BYTES);
	size_t have = 0;
	ssize_t n;

	_Static_assert(CHUNK_BYTES > 2 * AUDIT_LINE_MAX_BYTES, "a record fits");
	while ((n = read(fd, chunk + have, CHUNK_BYTES - have)) != 0) {
		const char *at = chunk, *end, *newline;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read the audit log");
		end = chunk + have + (size_t)n;
		for (; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
			if (take(q, mark, at, (size_t)(newline - at), err) < 0)
				return -1;
		have = (size_t)(end - at);
		if (have == CHUNK_BYTES)
			have = 0;
		memmove(chunk, at, have);
	}
	return 0;
}

int audit_log_read(int dirfd, const struct audit_log_query *q, struct err *err)
{
	cleanup_free char *mark = xasprintf("\"correlation_uid\":\"%s\"", q->job);
	uint64_t first, newest = 0;

	if (audit_log_newest(dirfd, &newest, err) < 0)
		return -1;
	/* back to the one that was written when it began; what was rotated away is gone */
	for (first = newest; first > 1; first--) {
		cleanup_close int fd = audit_log_segment(dirfd, first);

		if (fd < 0 || !begins_after(fd, q->from))
			break;
	}
	for (uint64_t i = first ? first : 1; i <= newest; i++) {
		cleanup_close int fd = audit_log_segment(dirfd, i);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return err_sys(err, "segment %" PRIu64 " of the audit log", i);
		if (begins_after(fd, q->to))
			break;
		if (read_segment(fd, q, mark, err) < 0)
			return -1;
	}
	return 0;
}
