/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See fetch.h.
 */
#include "vessel/broker/intents/fetch.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"

#include <string.h>
#include <strings.h>

#define FIELD_TEXT_MAX 8192
#define ANY_TYPE_MAX 200
#define STATUS_NO_CONTENT 204
#define STATUS_NOT_MODIFIED 304

static const char *const methods[] = {
	[FETCH_GET] = "GET", [FETCH_HEAD] = "HEAD",   [FETCH_POST] = "POST",
	[FETCH_PUT] = "PUT", [FETCH_PATCH] = "PATCH", [FETCH_DELETE] = "DELETE"};

static bool may_have_body(enum fetch_method m)
{
	return m != FETCH_GET && m != FETCH_HEAD;
}

const char *fetch_method_name(enum fetch_method m)
{
	return methods[m];
}

void fetch_done(struct fetch *f)
{
	headers_done(&f->headers);
	free(f->body);
	f->body = NULL;
	f->body_len = 0;
}

void fetch_target(const struct fetch *f, struct buf *out)
{
	url_write(&f->url, out);
}

/* ---- the intent ---- */

static int read_method(const struct json *intent, struct fetch *f, enum reason *why,
		       struct err *err)
{
	const char *text = "GET";

	if (json_get_str(intent, "method", true, 16, &text, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (str_eq(text, methods[i])) {
			f->method = (enum fetch_method)i;
			return 0;
		}
	return reason_set(why, REASON_METHOD, err,
			  "GET, HEAD, POST, PUT, PATCH or DELETE");
}

static int read_headers(const struct json *intent, struct fetch *f, enum reason *why,
			struct err *err)
{
	struct header_offer offered[HEADERS_OFFERED_MAX];
	const struct json *list = NULL;
	size_t n;

	if (json_get_arr(intent, "headers", false, HEADERS_OFFERED_MAX, &list, err) < 0)
		return -1;
	n = list ? json_arr_len(list) : 0;
	for (size_t i = 0; i < n; i++) {
		const struct json *pair = json_arr_at(list, i);

		if (json_arr_len(pair) != 2)
			return err_set_id(err, ERRID_SPEC_TYPE,
					  "a header is [\"name\", \"value\"]");
		if (json_as_str(json_arr_at(pair, 0), FIELD_TEXT_MAX, &offered[i].name,
				err) < 0 ||
		    json_as_str(json_arr_at(pair, 1), FIELD_TEXT_MAX, &offered[i].value,
				err) < 0)
			return err_wrap(err, "header %zu", i);
		if (strcasecmp(offered[i].name, "git-protocol") == 0)
			f->git_protocol = offered[i].value;
		else if (strcasecmp(offered[i].name, "content-encoding") == 0)
			f->content_encoding = offered[i].value;
	}
	return headers_out(offered, n, &f->headers, why, err);
}

static int read_body(const struct json *intent, size_t body_max, struct fetch *f,
		     enum reason *why, struct err *err)
{
	size_t text_max = (body_max / 3 + 1) * 4;
	const char *text = "";

	if (json_get_str(intent, "body", false, SIZE_MAX / 2, &text, err) < 0)
		return -1;
	if (strlen(text) > text_max)
		return reason_set(why, REASON_BODY_TOO_LARGE, err, "over %zu bytes",
				  body_max);
	if (base64_decode(text, strlen(text), &f->body, &f->body_len, err) < 0)
		return err_wrap(err, "body");
	if (f->body_len > body_max)
		return reason_set(why, REASON_BODY_TOO_LARGE, err, "over %zu bytes",
				  body_max);
	if (f->body_len > 0 && !may_have_body(f->method))
		return reason_set(why, REASON_METHOD, err, "%s has no body",
				  methods[f->method]);
	if ((f->body_len > 0 || f->method == FETCH_POST) &&
	    !headers_get(&f->headers, "content-type") &&
	    !headers_set(&f->headers, "content-type", "application/octet-stream"))
		return reason_set(why, REASON_HEADER, err, "too many fields");
	return 0;
}

int fetch_read(const struct json *intent, size_t body_max, struct fetch *ret,
	       enum reason *ret_reason, struct err *err)
{
	static const char *const keys[] = {"seq", "method", "url", "headers", "body"};
	cleanup_fetch struct fetch f = {.method = FETCH_GET};
	const char *url = "";

	if (json_check_keys(intent, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(intent, "url", true, (size_t)16 * URL_BYTES_MAX, &url, err) <
		    0 ||
	    url_parse(url, strlen(url), &f.url, ret_reason, err) < 0 ||
	    read_method(intent, &f, ret_reason, err) < 0 ||
	    read_headers(intent, &f, ret_reason, err) < 0 ||
	    read_body(intent, body_max, &f, ret_reason, err) < 0)
		return -1;
	*ret = f;
	f.headers = (struct headers){NULL, 0};
	f.body = NULL;
	return 0;
}

/* ---- redirects ---- */

static bool is_redirect(unsigned status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 ||
	       status == 308;
}

static void drop_header(struct headers *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (str_eq(h->h[i].name, name)) {
			h->h[i] = h->h[--h->n];
			return;
		}
}

static void drop_body(struct fetch *f)
{
	free(f->body);
	f->body = NULL;
	f->body_len = 0;
	drop_header(&f->headers, "content-type");
}

int fetch_redirect(struct fetch *f, unsigned status, const char *location,
		   enum reason *ret_reason, struct err *err)
{
	enum fetch_method method = f->method;
	struct url to;

	if (!is_redirect(status) || !location)
		return 0;
	if (method > FETCH_POST)
		return reason_set(ret_reason, REASON_REDIRECT_METHOD, err,
				  "a %s is not sent on", methods[method]);
	if (f->redirects == FETCH_REDIRECTS_MAX)
		return reason_set(ret_reason, REASON_REDIRECT_LIMIT, err,
				  "over %d in a row", FETCH_REDIRECTS_MAX);
	if (url_resolve(&f->url, location, strlen(location), &to, ret_reason, err) < 0)
		return err_wrap(err, "where the redirect leads");
	if (status == 303 && method == FETCH_POST)
		method = FETCH_GET;
	if ((status == 301 || status == 302) && method == FETCH_POST)
		method = FETCH_GET;
	if (!url_same_origin(&f->url, &to)) {
		if (method == FETCH_POST)
			return reason_set(ret_reason, REASON_REDIRECT_METHOD, err,
					  "a POST is not sent on to another origin");
		f->left_origin = true;
	}
	if (method != FETCH_POST)
		drop_body(f);
	f->method = method;
	f->url = to;
	f->redirects++;
	return 1;
}

/* ---- replies ---- */

static const char *const text_types[] = {
	"application/json",	  "application/ld+json",
	"application/x-ndjson",	  "application/jsonl",
	"application/jsonlines",  "application/json-seq",
	"application/xml",	  "application/javascript",
	"application/ecmascript", "application/x-javascript",
	"application/yaml",	  "application/x-yaml",
	"application/toml",	  "application/sql",
	"application/graphql",	  "application/x-www-form-urlencoded",
	"application/x-sh",	  "application/x-python",
	"application/rtf",	  "application/x-tex",
	"application/x-subrip",
};

static bool is_text_type(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(text_types); i++)
		if (str_eq(type, text_types[i]))
			return true;
	return str_starts(type, "text/") || str_ends(type, "+json") ||
	       str_ends(type, "+xml") || str_ends(type, "+yaml");
}

static bool is_type_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr("!#$&^_.+-/", c));
}

/* "Text/HTML; charset=..." -> "text/html"; false when it is none. */
static bool take_type(const char *value, char *ret, size_t size)
{
	size_t n = strcspn(value, "; \t");

	if (n == 0 || n >= size)
		return false;
	for (size_t i = 0; i < n; i++) {
		ret[i] = value[i] >= 'A' && value[i] <= 'Z' ? (char)(value[i] | 0x20)
							    : value[i];
		if (!is_type_char(ret[i]))
			return false;
	}
	ret[n] = '\0';
	return strchr(ret, '/') && strchr(ret, '/') == strrchr(ret, '/') &&
	       ret[0] != '/' && ret[n - 1] != '/';
}

/* The value of the parameter charset; "" when there is none. */
static void take_charset(const char *value, char *ret, size_t size)
{
	const char *at = strcasestr(value, "charset=");
	size_t n;

	ret[0] = '\0';
	if (!at)
		return;
	at += strlen("charset=");
	if (*at == '"')
		at++;
	n = strcspn(at, "\"; \t");
	/* One that is too long is none that we know. */
	if (n >= size)
		n = size - 1;
	memcpy(ret, at, n);
	ret[n] = '\0';
}

static bool is_charset(const char *charset, const char *const *names)
{
	for (; *names; names++)
		if (strcasecmp(charset, *names) == 0)
			return true;
	return false;
}

/* What the type says is the client's to judge; whoever reads it is only spared what is no type. */
static int pass_type(struct fetch_reply *r, const char *value, enum reason *why,
		     struct err *err)
{
	char bare[HEADER_NAME_MAX + 1];

	if (!value || strlen(value) > ANY_TYPE_MAX ||
	    !take_type(value, bare, sizeof(bare)))
		value = "application/octet-stream";
	if (!headers_set(&r->headers, "content-type", value))
		return reason_set(why, REASON_REPLY_TYPE, err,
				  "its type cannot be passed on");
	return 0;
}

static int judge_type(struct fetch_reply *r, const char *value, enum reason *why,
		      struct err *err)
{
	static const char *const utf8[] = {"",	       "utf-8", "utf8",
					   "us-ascii", "ascii", NULL};
	static const char *const latin1[] = {"iso-8859-1", "latin1", "iso8859-1", NULL};
	char type[HEADER_NAME_MAX + 1], charset[32], whole[HEADER_NAME_MAX + 32];

	if (!value)
		value = "text/plain";
	if (!take_type(value, type, sizeof(type)) || !is_text_type(type))
		return reason_set(why, REASON_REPLY_TYPE, err,
				  "'%.60s' is no kind of text, and only text goes back, "
				  "unless the rule has replies: binary",
				  value);
	take_charset(value, charset, sizeof(charset));
	r->latin1 = is_charset(charset, latin1);
	if (!r->latin1 && !is_charset(charset, utf8))
		return reason_set(why, REASON_REPLY_TYPE, err,
				  "its charset '%.31s' is not UTF-8, ASCII or Latin-1",
				  charset);
	if (str_fmt(whole, sizeof(whole), "%s; charset=utf-8", type) < 0 ||
	    !headers_set(&r->headers, "content-type", whole))
		return reason_set(why, REASON_REPLY_TYPE, err,
				  "its type cannot be passed on");
	return 0;
}

void fetch_reply_done(struct fetch_reply *r)
{
	headers_done(&r->headers);
}

int fetch_reply_begin(struct fetch_reply *r, const struct fetch *f, unsigned status,
		      const struct header_offer *fields, size_t n,
		      enum reason *ret_reason, struct err *err)
{
	char type[HEADER_VALUE_MAX + 1] = "";
	bool has_type = false;
	struct header h;

	for (size_t i = 0; i < n; i++) {
		if (!headers_back(HEADERS_FETCH, fields[i].name, strlen(fields[i].name),
				  fields[i].value, strlen(fields[i].value), &h))
			continue;
		if (str_eq(h.name, "content-type")) {
			/* Two of them, and whoever reads the reply chooses. */
			if (has_type)
				return reason_set(ret_reason, REASON_REPLY_HEADERS, err,
						  "it has two types");
			has_type = true;
			memcpy(type, h.value, sizeof(type));
		} else if (!headers_set(&r->headers, h.name, h.value)) {
			return reason_set(ret_reason, REASON_REPLY_HEADERS, err,
					  "over %d fields", HEADERS_MAX);
		}
	}
	if (f->method == FETCH_HEAD || status == STATUS_NO_CONTENT ||
	    status == STATUS_NOT_MODIFIED) {
		char bare[HEADER_NAME_MAX + 1];

		if (has_type && take_type(type, bare, sizeof(bare)) &&
		    !headers_set(&r->headers, "content-type", bare))
			return reason_set(ret_reason, REASON_REPLY_HEADERS, err,
					  "over %d fields", HEADERS_MAX);
		return 0;
	}
	r->has_body = true;
	if (r->any_bytes)
		return pass_type(r, has_type ? type : NULL, ret_reason, err);
	return judge_type(r, has_type ? type : NULL, ret_reason, err);
}

/* How many bytes a character that begins so has; 0: none begins so. */
static size_t char_len(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

/* How many bytes at the end begin a character that is not whole. */
static size_t unfinished(const unsigned char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++)
		if ((p[n - back] & 0xc0) != 0x80)
			return char_len(p[n - back]) > back ? back : 0;
	return 0;
}

static int not_text(enum reason *why, struct err *err)
{
	return reason_set(why, REASON_REPLY_TEXT, err,
			  "its bytes are no text in UTF-8, and the rule has not replies: "
			  "binary");
}

static int add_utf8(struct fetch_reply *r, const unsigned char *p, size_t n,
		    struct buf *out, enum reason *why, struct err *err)
{
	size_t rest;

	while (r->n_held > 0 && n > 0) {
		r->held[r->n_held++] = *p++;
		n--;
		if (r->n_held < char_len(r->held[0]))
			continue;
		if (!utf8_is_valid(r->held, r->n_held))
			return not_text(why, err);
		buf_add(out, r->held, r->n_held);
		r->n_held = 0;
	}
	rest = unfinished(p, n);
	if (!utf8_is_valid(p, n - rest))
		return not_text(why, err);
	buf_add(out, p, n - rest);
	memcpy(r->held + r->n_held, p + n - rest, rest);
	r->n_held += rest;
	return 0;
}

int fetch_reply_text(struct fetch_reply *r, const void *data, size_t len, struct buf *out,
		     enum reason *ret_reason, struct err *err)
{
	const unsigned char *p = data;

	if (len == 0)
		return 0;
	if (!r->has_body)
		return reason_set(ret_reason, REASON_REPLY_HEADERS, err,
				  "a body where there is none");
	if (r->any_bytes) {
		buf_add(out, data, len);
		return 0;
	}
	if (memchr(p, '\0', len))
		return not_text(ret_reason, err);
	if (!r->latin1)
		return add_utf8(r, p, len, out, ret_reason, err);
	for (size_t i = 0; i < len; i++) {
		char utf8[4];

		buf_add(out, utf8, utf8_put(p[i], utf8));
	}
	return 0;
}

int fetch_reply_end(struct fetch_reply *r, enum reason *ret_reason, struct err *err)
{
	return r->n_held > 0 ? not_text(ret_reason, err) : 0;
}
