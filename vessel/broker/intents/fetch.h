/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * One URL that a job wants, from the intent to the text that goes back. Pure: the dispatcher
 * asks the ward, the budget, the gate, the log and a worker between these steps.
 *
 *	fetch_read()      the intent, in parts that were checked
 *	  [ward, budget, gate, log, egress_start() with fetch_target()]
 *	fetch_redirect()  a redirect becomes the next request, which goes all the way again,
 *	                  or is refused
 *	fetch_reply_*()   what of a reply goes back: text, or any bytes where a rule says so
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_FETCH_H
#define LYCH_VESSEL_BROKER_INTENTS_FETCH_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/json/json.h"
#include "vessel/egress/headers.h"
#include "vessel/egress/reason.h"
#include "vessel/egress/url.h"

#define FETCH_REDIRECTS_MAX 3

enum fetch_method {
	FETCH_GET,
	FETCH_HEAD,
	FETCH_POST,
	FETCH_PUT,
	FETCH_PATCH,
	FETCH_DELETE,
	FETCH_METHOD_MAX_
};
const char *fetch_method_name(enum fetch_method m);

struct fetch {
	enum fetch_method method;
	struct url url;
	struct headers headers; /* of headers_out() */
	/* Of git's protocol, and of no other request; within the intent. NULL: not there. */
	const char *git_protocol, *content_encoding;
	char *body; /* owned; NULL: none */
	size_t body_len;
	unsigned redirects; /* followed so far */
	/* A redirect left the first origin: no credential from here on. */
	bool left_origin;
};
void fetch_done(struct fetch *f);
#define cleanup_fetch __attribute__((cleanup(fetch_done)))

/*
 * {"seq":N,"method":"GET","url":"...","headers":[["name","value"],...],"body":"base64"}; seq
 * is the dispatcher's to judge. *ret is whole or untouched; the caller ends it. Errors of the
 * families SPEC and FETCH; *ret_reason only with the latter.
 */
MUST_CHECK int fetch_read(const struct json *intent, size_t body_max, struct fetch *ret,
			  enum reason *ret_reason, struct err *err);
/* The URL for the worker. */
void fetch_target(const struct fetch *f, struct buf *out);

/*
 * 0: no redirect, the reply goes back as it is. 1: f is now the request to where it leads, to be
 * decided upon from the beginning. -1: refused. After 303, and after 301 and 302 of a POST, it
 * is a GET without a body; a POST never goes on to another origin, and a PUT, PATCH or
 * DELETE nowhere at all.
 */
MUST_CHECK int fetch_redirect(struct fetch *f, unsigned status, const char *location,
			      enum reason *ret_reason, struct err *err);

/* A reply on its way back. Zero is a good beginning. */
struct fetch_reply {
	struct headers
		headers; /* what goes back; Content-Type is written anew, in UTF-8 */
	bool latin1;
	bool any_bytes;	       /* set before it begins: a rule says so */
	bool has_body;	       /* set once it began */
	unsigned char held[4]; /* the beginning of a character */
	size_t n_held;
};
void fetch_reply_done(struct fetch_reply *r);
#define cleanup_fetch_reply __attribute__((cleanup(fetch_reply_done)))

/*
 * `fields` as the worker gave them. With a body, its type must be a kind of text (text/..., JSON,
 * XML, JavaScript, YAML, TOML, SQL, CSV and the like) in UTF-8, ASCII or Latin-1; no type at all is read
 * as plain text. What it says of its length is not passed on. With any_bytes its type is passed on as
 * it is, and application/octet-stream where there is none, or none that can be.
 */
MUST_CHECK int fetch_reply_begin(struct fetch_reply *r, const struct fetch *f,
				 unsigned status, const struct header_offer *fields,
				 size_t n, enum reason *ret_reason, struct err *err);
/* Adds to out what of the bytes is whole characters, as UTF-8. Refuses what is no text (a NUL,
 * broken UTF-8): what went back before is cut there. With any_bytes all of them, as they are. */
MUST_CHECK int fetch_reply_text(struct fetch_reply *r, const void *data, size_t len,
				struct buf *out, enum reason *ret_reason,
				struct err *err);
/* The body's end: no character may be unfinished. */
MUST_CHECK int fetch_reply_end(struct fetch_reply *r, enum reason *ret_reason,
			       struct err *err);

#endif
