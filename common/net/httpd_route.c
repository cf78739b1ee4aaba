/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * From a decoded path to a route and its parameters.
 */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"

#include "common/str.h"

static const char *const method_names[HTTP_M_MAX_] = {
	[HTTP_M_GET] = "GET",
	[HTTP_M_POST] = "POST",
	[HTTP_M_PUT] = "PUT",
	[HTTP_M_DELETE] = "DELETE",
};

/* Cut the decoded path into its components. */
static int split_path(struct httpd_req *req)
{
	char *at = req->path + 1;

	for (;;) {
		char *slash = strchr(at, '/');

		if (req->n_segments == GATE_SEGMENTS_MAX)
			return -1;
		req->segments[req->n_segments++] = at;
		if (!slash)
			return 0;
		*slash = '\0';
		at = slash + 1;
	}
}

/* Component i of a route's pattern; its length in *ret_len, NULL past the end. */
static const char *pattern_segment(const char *pattern, size_t i, size_t *ret_len)
{
	const char *at = pattern;

	do {
		at = strchr(at, '/');
		if (!at)
			return NULL;
		at++;
	} while (i-- > 0);
	*ret_len = strcspn(at, "/");
	return at;
}

static bool is_tail(const char *pattern, size_t len)
{
	return len > 5 && pattern[0] == '{' && memcmp(pattern + len - 4, "...}", 4) == 0;
}

static bool route_matches(const struct httpd_route *r, const struct httpd_req *req)
{
	size_t i, n;

	for (i = 0; i < req->n_segments; i++) {
		const char *p = pattern_segment(r->path, i, &n);

		if (!p)
			return false;
		if (is_tail(p, n) && *req->segments[i])
			return true;
		if (*p == '{' ? !*req->segments[i]
			      : strlen(req->segments[i]) != n ||
					memcmp(p, req->segments[i], n) != 0)
			return false;
	}
	return pattern_segment(r->path, i, &n) == NULL;
}

/* The segments under {x...} become one string again. */
static void join_tail(struct httpd_req *req)
{
	for (size_t i = 0, n = 0; i + 1 < req->n_segments; i++) {
		const char *p = pattern_segment(req->route->path, i, &n);

		if (!is_tail(p, n))
			continue;
		for (i++; i < req->n_segments; i++)
			req->path[req->segments[i] - req->path - 1] = '/';
	}
}

int httpd_find_route(const struct httpd_config *cfg, struct httpd_req *req,
		     struct err *err)
{
	bool path_known = false;

	if (split_path(req) < 0)
		return err_set_id(err, ERRID_HTTP_ROUTE, "path too deep");
	for (size_t i = 0; i < cfg->n_routes; i++) {
		const struct httpd_route *r = &cfg->routes[i];

		if (!route_matches(r, req))
			continue;
		path_known = true;
		if (str_eq(method_names[r->method], req->g.method)) {
			req->route = r;
			join_tail(req);
			return 0;
		}
	}
	if (path_known)
		return err_set_id(err, ERRID_HTTP_METHOD, "%.16s", req->g.method);
	return err_set_id(err, ERRID_HTTP_ROUTE, "%.128s", req->g.path);
}

const char *httpd_req_param(const struct httpd_req *req, const char *name)
{
	const char *at = req->route->path;
	size_t n = strlen(name);

	for (size_t i = 0; i < req->n_segments && at; i++) {
		at++;
		if (at[0] == '{' && strncmp(at + 1, name, n) == 0 &&
		    (at[n + 1] == '}' || at[n + 1] == '.'))
			return req->segments[i];
		at = strchr(at, '/');
	}
	return NULL;
}
