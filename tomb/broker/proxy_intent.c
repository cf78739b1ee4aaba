/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See proxy_intent.h.
 */
#include "tomb/broker/proxy_intent.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "common/utf8.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *proxy_dialect_name(enum proxy_dialect d)
{
	return d == DIALECT_ANTHROPIC ? "anthropic"
	       : d == DIALECT_GEMINI  ? "gemini"
				      : "openai";
}

static int too_large(struct err *err)
{
	return err_set_id(err, ERRID_HTTP_BODY, "at most %zu bytes",
			  INTENT_REQUEST_MAX_BYTES);
}

/* NULL: it is not there. */
static int find_field(const struct intent_ask *a, const char *name, const char **ret,
		      struct err *err)
{
	*ret = NULL;
	for (size_t i = 0; i < a->n_headers; i++) {
		if (strcasecmp(a->headers[i].name, name) != 0)
			continue;
		if (*ret)
			return err_set_id(err, ERRID_BROKER_REQUEST,
					  "%s: it is there twice", name);
		*ret = a->headers[i].value;
	}
	return 0;
}

static int write_fields(const struct intent_ask *a, struct jsonw *w, struct err *err)
{
	char betas[BROKER_BETAS_SIZE];
	const char *version, *beta;

	if (a->dialect != DIALECT_ANTHROPIC)
		return 0;
	if (find_field(a, "anthropic-version", &version, err) < 0 ||
	    find_field(a, "anthropic-beta", &beta, err) < 0)
		return -1;
	if (version && !broker_version_is_valid(version))
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "anthropic-version: a date, as in 2023-06-01");
	if (beta && !broker_betas(beta, betas))
		return err_set_id(err, ERRID_BROKER_REQUEST,
				  "anthropic-beta: up to %d names with commas between",
				  BROKER_BETAS_MAX);
	if (version)
		jsonw_kstr(w, "version", version);
	if (beta)
		jsonw_kstr(w, "beta", betas);
	return 0;
}

int intent_ask(uint64_t seq, const struct intent_ask *a, struct buf *out, struct err *err)
{
	cleanup_json struct json *request = NULL;
	bool stream = a->model && a->stream;
	struct jsonw w;
	size_t before;

	if (a->len > INTENT_REQUEST_MAX_BYTES)
		return too_large(err);
	if (json_parse(a->body, a->len, INTENT_DEPTH_MAX, &request, err) < 0)
		return -1;
	if (!a->model && !json_is_null(request, "stream") &&
	    json_get_bool(request, "stream", false, &stream, err) < 0)
		return -1;
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "seq", seq);
	jsonw_kstr(&w, "dialect", proxy_dialect_name(a->dialect));
	if (a->api)
		jsonw_kstr(&w, "api", a->api);
	jsonw_kbool(&w, "stream", stream);
	if (a->model)
		jsonw_kstr(&w, "model", a->model);
	if (write_fields(a, &w, err) < 0)
		return -1;
	jsonw_key(&w, "request");
	before = out->len;
	json_write(request, &w);
	/* Escapes can make it longer than it came. */
	if (!buf_ok(out) || out->len - before > INTENT_REQUEST_MAX_BYTES)
		return too_large(err);
	jsonw_obj_end(&w);
	return buf_ok(out) ? 0 : too_large(err);
}

/* Of one hop, or the broker's own: they say nothing to the far end. */
static bool is_hop_header(const char *name)
{
	static const char *const names[] = {
		"host",		  "connection",
		"keep-alive",	  "content-length",
		"expect",	  "te",
		"trailer",	  "transfer-encoding",
		"upgrade",	  "proxy-connection",
		"authorization",  "x-api-key",
		"x-goog-api-key", "accept-encoding",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

static int check_text(const char *what, const char *text, size_t max, struct err *err)
{
	size_t n = strlen(text);

	if (n == 0 || n > max || str_has_control(text, n) || !utf8_is_valid(text, n))
		return err_set_id(err, ERRID_HTTP_QUERY,
				  "%s: 1 to %zu bytes of text expected", what, max);
	return 0;
}

int intent_fetch(uint64_t seq, const struct intent_fetch *f, struct buf *out,
		 struct err *err)
{
	cleanup_buf struct buf body;
	struct jsonw w;
	size_t n = 0;

	buf_init(&body, INTENT_FETCH_BODY_MAX_BYTES * 4 / 3 + 16);
	if (check_text("url", f->url, INTENT_URL_MAX_BYTES, err) < 0)
		return -1;
	if (f->len > INTENT_FETCH_BODY_MAX_BYTES)
		return err_set_id(err, ERRID_HTTP_BODY, "at most %zu bytes",
				  INTENT_FETCH_BODY_MAX_BYTES);
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "seq", seq);
	jsonw_kstr(&w, "method", f->method);
	jsonw_kstr(&w, "url", f->url);
	jsonw_key(&w, "headers");
	jsonw_arr(&w);
	for (size_t i = 0; i < f->n_headers; i++) {
		const struct intent_header *h = &f->headers[i];

		if (is_hop_header(h->name))
			continue;
		if (++n > INTENT_HEADERS_MAX)
			return err_set_id(err, ERRID_HTTP_QUERY, "more than %d headers",
					  INTENT_HEADERS_MAX);
		if (h->value[0] && check_text(h->name, h->value, 4096, err) < 0)
			return -1;
		jsonw_arr(&w);
		jsonw_str(&w, h->name);
		jsonw_str(&w, h->value);
		jsonw_arr_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_key(&w, "body");
	base64_add(&body, f->body, f->len);
	jsonw_strn(&w, buf_str(&body), body.len);
	jsonw_obj_end(&w);
	return buf_ok(out) && buf_ok(&body) ? 0 : too_large(err);
}

static const char *accept_of(const struct intent_package *p)
{
	for (size_t i = 0; i < p->n_headers; i++)
		if (strcasecmp(p->headers[i].name, "accept") == 0)
			return p->headers[i].value;
	return NULL;
}

int intent_package(uint64_t seq, const struct intent_package *p, struct buf *out,
		   struct err *err)
{
	struct jsonw w;

	if (check_text("path", p->path, INTENT_PATH_MAX_BYTES, err) < 0)
		return -1;
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "seq", seq);
	jsonw_kstr(&w, "registry", p->registry);
	jsonw_kstr(&w, "path", p->path);
	if (str_eq(p->registry, "pypi"))
		jsonw_kstr(&w, "accept",
			   broker_simple_name(broker_simple_of(accept_of(p))));
	jsonw_obj_end(&w);
	return buf_ok(out) ? 0 : too_large(err);
}

static bool is_unreserved(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z') || (c && strchr("-._~", c));
}

int intent_models(enum proxy_dialect d, const char *model, struct buf *target,
		  struct err *err)
{
	buf_addf(target, "/work/v1/models?dialect=%s", proxy_dialect_name(d));
	if (!model)
		return 0;
	if (check_text("model", model, INTENT_MODEL_MAX_BYTES, err) < 0)
		return -1;
	buf_adds(target, "&model=");
	for (const char *s = model; *s; s++)
		if (is_unreserved((unsigned char)*s))
			buf_addc(target, *s);
		else
			buf_addf(target, "%%%02X", (unsigned)(unsigned char)*s);
	return buf_ok(target) ? 0 : too_large(err);
}

/* ---- refusals ---- */

#define PUT(field, text) ((void)snprintf(field, sizeof(field), "%s", text))

void refusal_of_err(struct proxy_refusal *r, const struct err *err, int status,
		    const char *request_id)
{
	*r = (struct proxy_refusal){.status = status};
	PUT(r->code, err_text(err));
	PUT(r->title, err_title(err));
	PUT(r->detail, err_code_info(err->code)->public_text ? err->msg : "");
	PUT(r->hint, err_hint(err));
	PUT(r->request_id, request_id);
	if (err->id == ERRID_BROKER_INFLIGHT || err->id == ERRID_BROKER_AWAY)
		PUT(r->retry_after, "1");
}

/* A member of the vessel's error; text for a person, so its end may be missing. */
static void take(const struct json *obj, const char *key, char *out, size_t size)
{
	const char *text = NULL;
	struct err ignored = ERR_INIT;
	size_t n;

	out[0] = '\0';
	if (json_get_str(obj, key, false, 4096, &text, &ignored) < 0 || !text)
		return;
	n = strlen(text);
	if (n >= size) {
		n = size - 1;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(out, text, n);
	out[n] = '\0';
}

void refusal_of_reply(struct proxy_refusal *r, int status, const char *body, size_t len)
{
	cleanup_json struct json *obj = NULL;
	struct err err = ERR_INIT;

	*r = (struct proxy_refusal){.status = status};
	if (status >= 400 && json_parse(body, len, 4, &obj, &err) == 0) {
		take(obj, "error_code", r->code, sizeof(r->code));
		take(obj, "title", r->title, sizeof(r->title));
		take(obj, "detail", r->detail, sizeof(r->detail));
		take(obj, "hint", r->hint, sizeof(r->hint));
		take(obj, "request_id", r->request_id, sizeof(r->request_id));
		if (r->code[0])
			return;
	}
	err_clear(&err);
	(void)err_set_id(&err, ERRID_BROKER_AWAY, "an answer without a reason");
	refusal_of_err(r, &err, 503, "");
}

bool refusal_is_final(const struct proxy_refusal *r)
{
	return r->status != 503 && !r->retry_after[0];
}

/* What each provider calls a refusal of that status; for every other one the last two rows. */
struct refusal_name {
	int status;
	const char *openai, *anthropic, *gemini;
};
#define OTHER_CLIENT "invalid_request_error"
static const struct refusal_name refusal_names[] = {
	{401, "authentication_error", "authentication_error", "UNAUTHENTICATED"},
	{403, "permission_error", "permission_error", "PERMISSION_DENIED"},
	{404, "not_found_error", "not_found_error", "NOT_FOUND"},
	{409, OTHER_CLIENT, OTHER_CLIENT, "ABORTED"},
	{413, OTHER_CLIENT, "request_too_large", "INVALID_ARGUMENT"},
	{429, "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"},
	{503, "server_error", "overloaded_error", "UNAVAILABLE"},
	{504, "server_error", "timeout_error", "DEADLINE_EXCEEDED"},
	{500, "server_error", "api_error", "INTERNAL"},
	{400, OTHER_CLIENT, OTHER_CLIENT, "INVALID_ARGUMENT"},
};

static const struct refusal_name *name_of(int status)
{
	const struct refusal_name *r = refusal_names;

	while (r->status != status && r->status != 400)
		r++;
	if (r->status != status && status >= 500)
		r--;
	return r;
}

/* google.rpc.Status; when to try again is among its details. */
static void write_gemini(const struct proxy_refusal *r, const char *message,
			 struct jsonw *w)
{
	char delay[sizeof(r->retry_after) + 1];

	jsonw_key(w, "error");
	jsonw_obj(w);
	jsonw_ki64(w, "code", r->status);
	jsonw_kstr(w, "message", message);
	jsonw_kstr(w, "status", name_of(r->status)->gemini);
	jsonw_key(w, "details");
	jsonw_arr(w);
	jsonw_obj(w);
	jsonw_kstr(w, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
	jsonw_kstr(w, "reason", r->code);
	jsonw_kstr(w, "domain", "lychgate");
	jsonw_obj_end(w);
	if (r->retry_after[0]) {
		(void)snprintf(delay, sizeof(delay), "%ss", r->retry_after);
		jsonw_obj(w);
		jsonw_kstr(w, "@type", "type.googleapis.com/google.rpc.RetryInfo");
		jsonw_kstr(w, "retryDelay", delay);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

/* As the provider itself says that it can't hold a conversation: its SDK then sends it whole. */
static void write_unthreaded(const struct proxy_refusal *r, struct jsonw *w)
{
	if (!str_eq(r->code, err_info(ERRID_BROKER_THREAD)->text))
		return;
	jsonw_key(w, "details");
	jsonw_obj(w);
	jsonw_kstr(w, "error_code", "thread_unsupported_request");
	jsonw_key(w, "unsupported");
	jsonw_arr(w);
	jsonw_str(w, "thread");
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

void refusal_write(const struct proxy_refusal *r, enum proxy_dialect d, struct buf *out)
{
	char message[1024];
	struct jsonw w;

	(void)snprintf(message, sizeof(message), "%s: %s%s%s. %s", r->code, r->title,
		       r->detail[0] ? ": " : "", r->detail, r->hint);
	jsonw_init(&w, out);
	jsonw_obj(&w);
	switch (d) {
	case DIALECT_OPENAI:
		jsonw_key(&w, "error");
		jsonw_obj(&w);
		jsonw_kstr(&w, "message", message);
		jsonw_kstr(&w, "type", name_of(r->status)->openai);
		jsonw_kstr(&w, "param", NULL);
		jsonw_kstr(&w, "code", r->code);
		jsonw_obj_end(&w);
		break;
	case DIALECT_ANTHROPIC:
		jsonw_kstr(&w, "type", "error");
		jsonw_key(&w, "error");
		jsonw_obj(&w);
		jsonw_kstr(&w, "type", name_of(r->status)->anthropic);
		jsonw_kstr(&w, "message", message);
		jsonw_kstr(&w, "code", r->code);
		write_unthreaded(r, &w);
		jsonw_obj_end(&w);
		break;
	case DIALECT_GEMINI:
		write_gemini(r, message, &w);
		break;
	case DIALECT_PLAIN:
		jsonw_kstr(&w, "error", message); /* npm shows it */
		jsonw_kstr(&w, "error_code", r->code);
		jsonw_kstr(&w, "title", r->title);
		jsonw_kstr(&w, "detail", r->detail);
		jsonw_kstr(&w, "hint", r->hint);
		break;
	}
	jsonw_kstr(&w, "request_id", r->request_id);
	jsonw_obj_end(&w);
}

bool proxy_header_passes(const char *name, const char **ret_name)
{
	static const struct {
		const char *from, *to;
	} exact[] = {
		{"retry-after", "Retry-After"},
		{"retry-after-ms", "Retry-After-Ms"},
		{"request-id", "Request-Id"},
		/* X-Request-Id is the broker's own, or the vessel's. */
		{"x-upstream-request-id", "X-Upstream-Request-Id"},
		{"x-should-retry", "X-Should-Retry"},
		{"etag", "ETag"},
		{"last-modified", "Last-Modified"},
		{"content-disposition", "Content-Disposition"},
		{"lychgate-upstream-status", "Lychgate-Upstream-Status"},
	};
	static const char *const prefixes[] = {"x-ratelimit-", "anthropic-ratelimit-"};

	/* In small letters it came from the far end; the vessel's own is X-Request-Id. */
	if (strcmp(name, "x-request-id") == 0)
		name = "x-upstream-request-id";
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++) {
		if (strcasecmp(name, exact[i].from) == 0) {
			*ret_name = exact[i].to;
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
			*ret_name = name;
			return true;
		}
	}
	return false;
}
