/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See fetch_git.h.
 */
#include "vessel/broker/intents/fetch_git.h"

#include "common/str.h"

#include <string.h>
#include <strings.h>

#define GZIP_MAGIC "\x1f\x8b"

static int take_version(struct fetch *f, enum reason *why, struct err *err)
{
	const char *v = f->git_protocol;

	if (!v)
		return 0;
	if (!str_eq(v, "version=0") && !str_eq(v, "version=1") && !str_eq(v, "version=2"))
		return reason_set(why, REASON_HEADER, err,
				  "Git-Protocol is version=0, 1 or 2");
	return headers_set(&f->headers, "git-protocol", v)
		       ? 0
		       : reason_set(why, REASON_HEADER, err, "too many fields");
}

/* What the field says and what the bytes are is the same: no two readers differ. */
static int take_encoding(struct fetch *f, enum reason *why, struct err *err)
{
	bool is_gzip = f->body_len > 2 && memcmp(f->body, GZIP_MAGIC, 2) == 0;
	const char *said = f->content_encoding;

	if (said && !str_eq(said, "gzip") && !str_eq(said, "x-gzip"))
		return reason_set(why, REASON_HEADER, err,
				  "Content-Encoding is gzip, or is not there");
	if (is_gzip != (said != NULL))
		return reason_set(why, REASON_HEADER, err,
				  "Content-Encoding and the body differ");
	if (is_gzip && !headers_set(&f->headers, "content-encoding", "gzip"))
		return reason_set(why, REASON_HEADER, err, "too many fields");
	return 0;
}

int fetch_git_request(struct fetch *f, enum git_request r, enum reason *ret_reason,
		      struct err *err)
{
	const char *type = headers_get(&f->headers, "content-type");

	if (take_version(f, ret_reason, err) < 0)
		return -1;
	if (!git_request_type(r))
		return 0;
	if (!str_eq(type, git_request_type(r)))
		return reason_set(ret_reason, REASON_HEADER, err,
				  "the body of this request of git's is of type %s",
				  git_request_type(r));
	if (f->body_len == 0)
		return reason_set(ret_reason, REASON_HEADER, err,
				  "this request of git's has a body");
	return take_encoding(f, ret_reason, err);
}

static bool is_moved(unsigned status)
{
	return status >= 300 && status < 400;
}

int fetch_git_reply(enum git_request r, unsigned status,
		    const struct header_offer *offers, size_t n, bool *ret_any_bytes,
		    enum reason *ret_reason, struct err *err)
{
	const char *type = "";

	*ret_any_bytes = false;
	if (is_moved(status))
		return reason_set(ret_reason, REASON_REDIRECT_LOCATION, err,
				  "the repository is somewhere else: use that URL");
	if (status != 200)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(offers[i].name, "content-type") == 0)
			type = offers[i].value;
	if (!str_eq(type, git_reply_type(r)))
		return reason_set(ret_reason, REASON_REPLY_TYPE, err,
				  "'%.60s' is not what git's smart HTTP answers with "
				  "(its older form, of single files, is not served)",
				  type);
	*ret_any_bytes = true;
	return 0;
}
