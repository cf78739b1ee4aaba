/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See reply.h.
 */
#include "vessel/egress/reply.h"

#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOCATION_MAX 8192

void egress_reply_begin(struct egress_reply *r, enum headers_for what)
{
	*r = (struct egress_reply){.what = what};
}

void egress_reply_done(struct egress_reply *r)
{
	free(r->kept);
	free(r->location);
	*r = (struct egress_reply){.what = r->what};
}

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_EGRESS_REPLY, "%s", why);
}

/* "HTTP/1.1 200 OK": a new head begins. */
static int status_line(struct egress_reply *r, const char *line, size_t len,
		       struct err *err)
{
	char digits[4] = "";
	const char *space = memchr(line, ' ', len);
	uint64_t status;

	if (!space || line + len - space < 4)
		return refuse(err, "its status line is malformed");
	memcpy(digits, space + 1, 3);
	if (parse_u64(digits, 100, 599, &status, NULL) < 0)
		return refuse(err, "its status is none");
	if (status == 101)
		return refuse(err, "it changes the protocol, which nobody asked for");
	if (status < 200) {
		if (++r->informational > EGRESS_REPLY_MAX_1XX)
			return refuse(err, "it sends one 1xx after the other");
		return 0;
	}
	r->status = (unsigned)status;
	return 0;
}

static bool is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", s[i]))
			return false;
	return len > 0;
}

static bool is(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(s, word, len) == 0;
}

/* What decides where the body ends and what it is. */
static int framing(struct egress_reply *r, const char *name, size_t name_len,
		   const char *value, size_t value_len, struct err *err)
{
	if (is(name, name_len, "Content-Encoding") && !is(value, value_len, "identity"))
		return refuse(err, "it is encoded although that was not asked for");
	if (is(name, name_len, "Transfer-Encoding")) {
		if (r->is_chunked || !is(value, value_len, "chunked"))
			return refuse(err, "its transfer encoding is not plain chunks");
		r->is_chunked = true;
	}
	if (is(name, name_len, "Content-Length")) {
		if (r->has_length || value_len == 0 || value_len > 18)
			return refuse(err, "its length is ambiguous");
		for (size_t i = 0; i < value_len; i++) {
			if (value[i] < '0' || value[i] > '9')
				return refuse(err, "its length is no number");
			r->length = r->length * 10 + (uint64_t)(value[i] - '0');
		}
		r->has_length = true;
	}
	if (r->has_length && r->is_chunked)
		return refuse(err, "it has two lengths");
	return 0;
}

static void note_retry_after(struct egress_reply *r, const char *value, size_t len)
{
	char text[16] = "";
	uint64_t seconds;

	/* A date is not read: our clock and theirs differ. */
	if (len >= sizeof(text))
		return;
	memcpy(text, value, len);
	if (parse_u64(text, 0, EGRESS_RETRY_AFTER_MAX, &seconds, NULL) < 0)
		return;
	r->retry_after = (unsigned)seconds;
	r->has_retry_after = true;
}

static void keep(struct egress_reply *r, const char *name, size_t name_len,
		 const char *value, size_t value_len)
{
	struct header h;

	if (is(name, name_len, "Retry-After"))
		note_retry_after(r, value, value_len);
	if (is(name, name_len, "Location") && !r->location && value_len <= LOCATION_MAX &&
	    !memchr(value, '\0', value_len) && !str_has_control(value, value_len))
		r->location = xstrndup(value, value_len);
	if (r->n_kept < HEADERS_MAX &&
	    headers_back(r->what, name, name_len, value, value_len, &h)) {
		r->kept = xreallocarray(r->kept, r->n_kept + 1, sizeof(*r->kept));
		r->kept[r->n_kept++] = h;
	}
}

static int field(struct egress_reply *r, const char *line, size_t len, struct err *err)
{
	const char *colon = memchr(line, ':', len), *value;
	size_t name_len, value_len;

	if (!colon || !is_token(line, (size_t)(colon - line)))
		return refuse(err, "a header of it is malformed");
	name_len = (size_t)(colon - line);
	value = colon + 1;
	value_len = len - name_len - 1;
	while (value_len > 0 && (*value == ' ' || *value == '\t')) {
		value++;
		value_len--;
	}
	while (value_len > 0 &&
	       (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
		value_len--;
	if (framing(r, line, name_len, value, value_len, err) < 0)
		return -1;
	/* of a 1xx nothing is kept */
	if (r->status != 0)
		keep(r, line, name_len, value, value_len);
	return 0;
}

int egress_reply_line(struct egress_reply *r, const char *line, size_t len,
		      struct err *err)
{
	/* Trailers: nobody asked for them. */
	if (r->complete)
		return 0;
	r->bytes += len;
	if (++r->lines > EGRESS_REPLY_MAX_LINES || r->bytes > EGRESS_REPLY_MAX_BYTES)
		return refuse(err, "its head is too large");
	while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	if (len == 0) {
		r->complete = r->status != 0;
		if (!r->complete) /* the end of a 1xx */
			r->has_length = r->is_chunked = false;
		return r->complete ? 1 : 0;
	}
	if (r->status == 0 && len > 5 && memcmp(line, "HTTP/", 5) == 0)
		return status_line(r, line, len, err);
	return field(r, line, len, err);
}
