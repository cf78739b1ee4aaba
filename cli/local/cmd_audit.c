/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych audit tail: the last records of the audit log, and those that follow. It reads the
 * scribe's files (docs/PROTOCOL.md, "The audit log"), which are the user's: no daemon need
 * run. It shows, it does not verify: that is `lych-audit verify`.
 */
#include "cli/base/audit_log.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#define LAST_MAX 10000
#define NAP_NSEC (200L * 1000 * 1000)

struct audit_args {
	const char *verb;
	bool json, follow;
	uint64_t last;
};

struct reader {
	const struct audit_args *a;
	int dirfd, fd;
	uint64_t segment;
	struct buf line; /* what came of a record that is not whole yet */
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct audit_args *a = state->input;
	struct err err = ERR_INIT;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'f':
		a->follow = true;
		return 0;
	case 'n':
		if (parse_u64(arg, 0, LAST_MAX, &a->last, &err) < 0)
			cmd_usage(state, "-n: a number up to 10000");
		return 0;
	case ARGP_KEY_ARG:
		if (a->verb)
			return ARGP_ERR_UNKNOWN;
		a->verb = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->verb || !str_eq(a->verb, "tail"))
			cmd_usage(state, "say what: tail");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- one record -------------------------------------------------------------- */

static const char *text_of(const struct json *o, const char *key)
{
	const char *s = "";
	struct err ignored = ERR_INIT;

	return json_get_str(o, key, true, AUDIT_LINE_MAX_BYTES, &s, &ignored) < 0 ? ""
										  : s;
}

static int show(const struct reader *r, const char *line, size_t len, struct err *err)
{
	const struct json *metadata = NULL;
	cleanup_json struct json *j = NULL;
	cleanup_buf struct buf out = {0};
	struct err ignored = ERR_INIT;
	char when[WHEN_SIZE];
	uint64_t seq = 0;

	buf_init(&out, AUDIT_LINE_MAX_BYTES * 8);
	if (r->a->json) {
		render_escape(&out, line, len, 0);
	} else if (json_parse(line, len, JSON_DEPTH_DEFAULT, &j, &ignored) < 0 ||
		   json_get_u64(j, "seq", true, 0, INT64_MAX, &seq, &ignored) < 0) {
		buf_adds(&out, "not a record: ");
		render_escape(&out, line, len, 100);
	} else {
		buf_addf(&out, "%8" PRIu64 "  ", seq);
		when_text_of(text_of(j, "ts"), when);
		render_escape(&out, when, strlen(when), 0);
		buf_adds(&out, "  ");
		render_escape(&out, text_of(j, "event"), strlen(text_of(j, "event")), 40);
		if (json_get_obj(j, "metadata", true, &metadata, &ignored) == 0) {
			const char *job = text_of(metadata, "correlation_uid");

			buf_adds(&out, job[0] ? "  job " : "");
			render_escape(&out, job, strlen(job), 40);
		}
	}
	if (!r->a->json) {
		cleanup_free char *fit = render_fit(buf_str(&out), STDOUT_FILENO);

		buf_reset(&out);
		buf_adds(&out, fit);
	}
	buf_addc(&out, '\n');
	return render_write(STDOUT_FILENO, buf_str(&out), out.len, err);
}

/* ---- the last ones, and what follows ----------------------------------------- */

/* Where the last n lines of a file begin; *ret_n: how many there are. */
static int last_lines(int fd, uint64_t n, off_t *ret, uint64_t *ret_n, struct err *err)
{
	char chunk[65536];
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat");
	*ret_n = 0;
	*ret = at = st.st_size;
	while (at > 0) {
		size_t want = at < (off_t)sizeof(chunk) ? (size_t)at : sizeof(chunk);
		ssize_t got = pread(fd, chunk, want, at - (off_t)want);

		if (got != (ssize_t)want)
			return err_sys(err, "read");
		for (size_t i = want; i-- > 0;) {
			if (chunk[i] != '\n')
				continue;
			/* this newline ends a line that begins behind the one before */
			*ret = at - (off_t)want + (off_t)i + 1;
			if (*ret_n == n)
				return 0;
			++*ret_n;
		}
		at -= (off_t)want;
	}
	*ret = 0;
	return 0;
}

/* Back over as many segments as hold the last n records. */
static int begin(struct reader *r, struct err *err)
{
	uint64_t wanted = r->a->last, have = 0;

	if (audit_log_newest(r->dirfd, &r->segment, err) < 0)
		return -1;
	if (r->segment == 0)
		return err_set_id(err, ERRID_AUDIT_NONE, "nothing was written to it");
	for (;;) {
		off_t from = 0;

		r->fd = audit_log_segment(r->dirfd, r->segment);
		if (r->fd < 0)
			return err_sys(err, "segment %" PRIu64, r->segment);
		if (last_lines(r->fd, wanted, &from, &have, err) < 0)
			return -1;
		if (lseek(r->fd, from, SEEK_SET) < 0)
			return err_sys(err, "lseek");
		if (have >= wanted || r->segment == 1)
			return 0;
		wanted -= have;
		fd_close(&r->fd);
		r->segment--;
	}
}

/* What the segment has by now. */
static int drain(struct reader *r, struct err *err)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(r->fd, chunk, sizeof(chunk))) != 0) {
		const char *at = chunk, *end = chunk + n, *newline;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read");
		while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
			buf_add(&r->line, at, (size_t)(newline - at));
			if (show(r, buf_str(&r->line), r->line.len, err) < 0)
				return -1;
			buf_reset(&r->line);
			at = newline + 1;
		}
		buf_add(&r->line, at, (size_t)(end - at));
	}
	return 0;
}

static int tail(struct reader *r, struct err *err)
{
	struct timespec nap = {.tv_nsec = NAP_NSEC};

	if (begin(r, err) < 0)
		return -1;
	if (!r->a->json && !r->a->follow && pager_begin(err) < 0)
		return -1;
	for (;;) {
		/* asked before it is read: what this one gets afterwards is nothing */
		int next = audit_log_segment(r->dirfd, r->segment + 1);

		if (drain(r, err) < 0) {
			fd_close(&next);
			return -1;
		}
		if (next >= 0) {
			fd_close(&r->fd);
			r->fd = next;
			r->segment++;
			continue;
		}
		if (!r->a->follow)
			return 0;
		(void)nanosleep(&nap, NULL);
	}
}

int cmd_audit(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"lines", 'n', "N", 0, "the last N records (20)", 0},
		{"follow", 'f', NULL, 0, "and those that follow", 0},
		{"json", 'j', NULL, 0, "the records as they stand in the log", 0},
		{0},
	};
	static const struct argp argp = {.options = options,
					 .parser = parse_option,
					 .children = when_option,
					 .args_doc = "tail",
					 .doc = "Show the last records of the audit log. "
						"'lych-audit verify' proves "
						"them.\v"
						"Examples:\n"
						"  lych audit tail -n 5\n"
						"  lych audit tail --json"};
	struct audit_args a = {.last = 20};
	struct reader r = {.a = &a, .dirfd = -1, .fd = -1};
	cleanup_paths struct paths p = {0};
	struct err err = ERR_INIT;
	int rc = -1;

	cmd_parse(&argp, argc, argv, 0, &a);
	buf_init(&r.line, AUDIT_LINE_MAX_BYTES + 1);
	if (paths_resolve(&p, &err) == 0 && audit_log_open(&p, &r.dirfd, &err) == 0)
		rc = tail(&r, &err);
	fd_close(&r.fd);
	fd_close(&r.dirfd);
	buf_done(&r.line);
	return rc < 0 ? cmd_fail(&err, a.json) : 0;
}
