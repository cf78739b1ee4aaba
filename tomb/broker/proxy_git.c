/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See proxy_git.h.
 */
#include "tomb/broker/proxy_git.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdio.h>
#include <string.h>

#define LINE_DIGITS ((size_t)4)
#define COMMANDS_MAX 32 /* of which the report speaks */
#define REF_AT 82	/* behind two ids and their blanks */
#define REF_MAX_BYTES 512
#define BAND_MAX_BYTES ((size_t)60000)
#define BANDS "side-band-64k"
#define NOT_GOOD "ng "

enum git_request proxy_git_request(const char *method, const char *target)
{
	cleanup_free char *path = xstrdup(target);
	char *query = strchr(path, '?');

	if (query)
		*query++ = '\0';
	return git_request_of(method, path, query);
}

/* A line of git's protocol (gitprotocol-common). */
static void add_line(struct buf *out, const char *before, const char *text)
{
	buf_addf(out, "%04zx%s%s", LINE_DIGITS + strlen(before) + strlen(text), before,
		 text);
}

/* ---- what a push was to do ---- */

struct command {
	const char *ref;
	size_t len;
};

/* The line at *at, which moves behind it. False: a mark, or the end of what can be read. */
static bool next_line(const char **at, size_t *left, const char **ret, size_t *ret_len)
{
	size_t n = 0;

	for (size_t i = 0; i < LINE_DIGITS; i++) {
		int digit = *left > i ? hex_digit_value((*at)[i]) : -1;

		if (digit < 0)
			return false;
		n = n * 16 + (size_t)digit;
	}
	if (n <= LINE_DIGITS || n > *left)
		return false;
	*ret = *at + LINE_DIGITS;
	*ret_len = n - LINE_DIGITS;
	*at += n;
	*left -= n;
	return true;
}

/* The refs of "OLD NEW REF"; *ret_bands: the client takes its answer in bands. */
static size_t read_commands(const char *at, size_t left, struct command ret[COMMANDS_MAX],
			    bool *ret_bands)
{
	const char *line;
	size_t len, n = 0;

	*ret_bands = false;
	while (n < COMMANDS_MAX && next_line(&at, &left, &line, &len)) {
		const char *nul = memchr(line, '\0', len);
		size_t end = nul ? (size_t)(nul - line) : len;

		if (nul && memmem(nul, len - end, BANDS, strlen(BANDS)))
			*ret_bands = true;
		end -= end > 0 && line[end - 1] == '\n';
		if (end <= REF_AT || end - REF_AT > REF_MAX_BYTES ||
		    str_has_control(line, end))
			continue; /* "shallow ID", or what git does not send */
		ret[n++] = (struct command){line + REF_AT, end - REF_AT};
	}
	return n;
}

/* As a server answers a push that it does not take. False: what was asked is no push. Of one of which nothing was
 * read it is not known which refs it names; that its client takes bands is, as each git does. */
static bool write_report(const struct proxy_refusal *refusal, const char *text,
			 const void *asked, size_t asked_len, struct buf *out)
{
	struct command command[COMMANDS_MAX];
	bool bands = true;
	size_t n = asked_len ? read_commands(asked, asked_len, command, &bands) : 0;
	cleanup_buf struct buf report;

	if (n == 0 && asked_len)
		return false;
	buf_init(&report, BAND_MAX_BYTES);
	add_line(&report, "unpack ", refusal->code);
	for (size_t i = 0; i < n; i++) {
		buf_addf(&report, "%04zx%s%.*s %s",
			 LINE_DIGITS + strlen(NOT_GOOD) + command[i].len + 1 +
				 strlen(refusal->code),
			 NOT_GOOD, (int)command[i].len, command[i].ref, refusal->code);
	}
	buf_adds(&report, "0000");
	if (!buf_ok(&report))
		return false;
	if (!bands) {
		buf_add(out, report.data, report.len);
		return true;
	}
	/* what a person sees, and then the report */
	add_line(out, "\2", text);
	buf_addf(out, "%04zx\1", LINE_DIGITS + 1 + report.len);
	buf_add(out, report.data, report.len);
	buf_adds(out, "0000");
	return true;
}

void proxy_git_refusal(enum git_request r, const struct proxy_refusal *refusal,
		       const void *asked, size_t asked_len, struct buf *out,
		       int *ret_status, const char **ret_type)
{
	char text[1200];

	(void)snprintf(text, sizeof(text), "%s: %s%s%s\n%s\n", refusal->code,
		       refusal->title, refusal->detail[0] ? ": " : "", refusal->detail,
		       refusal->hint);
	*ret_status = refusal->status;
	*ret_type = "text/plain";
	/* the forms in which git shows a reason: an error or a report in a good answer */
	if (r == GIT_FETCH)
		add_line(out, "ERR ", text);
	if (r == GIT_FETCH ||
	    (r == GIT_PUSH && write_report(refusal, text, asked, asked_len, out))) {
		*ret_status = 200;
		*ret_type = git_reply_type(r);
		return;
	}
	/* git shows each line of a text behind "remote:" */
	buf_adds(out, text);
}
