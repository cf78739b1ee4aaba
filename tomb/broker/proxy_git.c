/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See proxy_git.h.
 */
#include "tomb/broker/proxy_git.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <stdio.h>
#include <string.h>

#define LINE_DIGITS 4

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
	buf_addf(out, "%04zx%s%s", (size_t)LINE_DIGITS + strlen(before) + strlen(text),
		 before, text);
}

void proxy_git_refusal(enum git_request r, const struct proxy_refusal *refusal,
		       struct buf *out, int *ret_status, const char **ret_type)
{
	char text[1200];

	(void)snprintf(text, sizeof(text), "%s: %s%s%s\n%s\n", refusal->code,
		       refusal->title, refusal->detail[0] ? ": " : "", refusal->detail,
		       refusal->hint);
	*ret_status = refusal->status;
	*ret_type = "text/plain";
	if (r != GIT_FETCH) {
		/* git shows each line behind "remote:" */
		buf_adds(out, text);
		return;
	}
	/* the one form in which git shows a reason here: an error in a good answer */
	*ret_status = 200;
	*ret_type = git_reply_type(r);
	add_line(out, "ERR ", text);
}
