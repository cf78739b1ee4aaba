/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The head of a request on the broker's descriptor: strict JSON into a struct floor_head.
 */
#include "tomb/broker/proxy_floor.h"

#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/net/httpd.h"
#include "common/str.h"

#include <stdio.h>
#include <string.h>

const char *floor_header(const struct floor_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_headers; i++)
		if (str_eq(h->headers[i].name, name))
			return h->headers[i].value;
	return NULL;
}

static bool is_id(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789_-") == strlen(s);
}

static bool is_header_name(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}

/* The text is copied: the JSON goes before the request does. */
static int read_headers(const struct json *obj, struct floor_head *h, struct err *err)
{
	const struct json *headers = NULL, *v;
	const char *key;
	size_t at = 0;

	if (json_get_obj(obj, "headers", false, &headers, err) < 0)
		return -1;
	for (size_t i = 0; headers && json_obj_at(headers, i, &key, &v); i++) {
		struct intent_header *out = &h->headers[i];
		const char *value = NULL;
		size_t n, m;

		if (i == FLOOR_HEADERS_MAX)
			return err_set_id(err, ERRID_BROKER_FRAME, "too many headers");
		if (json_as_str(v, 4096, &value, err) < 0)
			return err_wrap(err, "headers");
		n = strlen(key) + 1;
		m = strlen(value) + 1;
		if (!is_header_name(key) || str_has_control(value, m - 1))
			return err_set_id(err, ERRID_BROKER_FRAME, "a header's bytes");
		/* Unescaped it is never longer than the JSON was. */
		if (n + m > sizeof(h->text) - at)
			return err_set_id(err, ERRID_BROKER_FRAME, "headers too long");
		out->name = memcpy(h->text + at, key, n);
		out->value = memcpy(h->text + at + n, value, m);
		at += n + m;
		h->n_headers++;
	}
	return 0;
}

static int find_route(struct floor_head *h, const char *path, struct err *err)
{
	bool known = false;

	for (size_t i = 0; i < proxy_n_routes; i++) {
		const struct proxy_route *r = &proxy_routes[i];
		size_t n = strlen(r->path);
		bool is_below = r->path[n - 1] == '/';

		if (is_below ? !str_starts(path, r->path) || !path[n]
			     : !str_eq(path, r->path))
			continue;
		known = true;
		if (!str_eq(h->method, proxy_method_name(r)))
			continue;
		h->route = r;
		h->dialect = r->dialect;
		return is_below ? str_copy(h->url, sizeof(h->url), path + n) : 0;
	}
	if (known)
		return err_set_id(err, ERRID_HTTP_METHOD, "%s", h->method);
	return err_set_id(err, ERRID_HTTP_ROUTE, "%.128s", path);
}

static int read_target(const char *raw, struct floor_head *h, struct err *err)
{
	char copy[BROKER_HEAD_MAX], path[BROKER_HEAD_MAX], value[sizeof(h->url)];
	enum proxy_what what;
	char *query;

	if (str_copy(copy, sizeof(copy), raw) < 0)
		return err_set_id(err, ERRID_BROKER_FRAME, "path too long");
	if (str_eq(h->method, "CONNECT"))
		return err_set_id(err, ERRID_TUNNEL_NONE, "grade floor: %.128s", raw);
	query = strchr(copy, '?');
	if (query)
		*query++ = '\0';
	h->dialect = proxy_dialect_of(copy);
	if (httpd_gate_path(copy, true, path, sizeof(path), err) < 0 ||
	    find_route(h, path, err) < 0)
		return -1;
	what = h->route->what;
	/* what is not served is so with any query */
	value[0] = '\0';
	if (what != NOT_SERVED &&
	    httpd_gate_query(query, h->route->params, value, sizeof(value), err) < 0)
		return -1;
	if (what == ASK_GEMINI && str_copy(h->alt, sizeof(h->alt), value) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "alt is too long");
	if ((what == LIST_MODELS || what == SHOW_MODEL) && h->dialect != DIALECT_GEMINI &&
	    floor_header(h, "anthropic-version"))
		h->dialect = DIALECT_ANTHROPIC;
	return what == FETCH ? str_copy(h->url, sizeof(h->url), value) : 0;
}

int floor_head_parse(const char *json, size_t len, struct floor_head *ret,
		     struct err *err)
{
	static const char *const keys[] = {"id", "method", "path", "headers",
					   "body_bytes"};
	cleanup_json struct json *obj = NULL;
	const char *id = NULL, *method = NULL, *path = NULL;
	uint64_t body = 0;
	size_t body_max;

	*ret = (struct floor_head){.dialect = DIALECT_PLAIN};
	if (len > BROKER_HEAD_MAX)
		return err_set_id(err, ERRID_BROKER_FRAME, "a head of %zu bytes", len);
	if (json_parse(json, len, 4, &obj, err) < 0 ||
	    json_get_str(obj, "id", true, BROKER_ID_MAX, &id, err) < 0)
		return -1;
	if (!is_id(id) || str_copy(ret->id, sizeof(ret->id), id) < 0)
		return err_set_id(err, ERRID_BROKER_FRAME, "id");
	if (json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(obj, "method", true, sizeof(ret->method) - 1, &method, err) <
		    0 ||
	    json_get_str(obj, "path", true, BROKER_HEAD_MAX - 1, &path, err) < 0 ||
	    json_get_u64(obj, "body_bytes", false, 0, INT64_MAX, &body, err) < 0 ||
	    str_copy(ret->method, sizeof(ret->method), method) < 0 ||
	    read_headers(obj, ret, err) < 0 || read_target(path, ret, err) < 0)
		return -1;
	body_max = proxy_body_max(ret->route);
	if (body > body_max)
		return err_set_id(err, ERRID_HTTP_BODY, "at most %zu bytes", body_max);
	ret->body_bytes = (size_t)body;
	return 0;
}
