/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What a handler reads of a request, and the answers.
 */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"

#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <sys/stat.h>

#define ERROR_BODY_MAX 8192
#define MORE_HEADERS_MAX 24
/* of these for what is somebody else's, so that ours have room */
#define PASSED_HEADERS_MAX 20
#define PASSED_BYTES_MAX 3584

const struct httpd_route *httpd_req_route(const struct httpd_req *req)
{
	return req->route;
}

const char *httpd_req_query(const struct httpd_req *req, const char *name)
{
	for (size_t i = 0; i < req->n_query; i++)
		if (str_eq(req->query[i].name, name))
			return req->query[i].value;
	return NULL;
}

int httpd_req_check_query(const struct httpd_req *req, const char *const *allowed,
			  struct err *err)
{
	for (size_t i = 0; i < req->n_query; i++) {
		const char *const *a = allowed;

		while (*a && !str_eq(*a, req->query[i].name))
			a++;
		if (!*a)
			return err_set_id(err, ERRID_HTTP_QUERY,
					  "unknown parameter %.64s", req->query[i].name);
	}
	return 0;
}

const char *httpd_req_header(const struct httpd_req *req, const char *name)
{
	return gate_header(&req->g, name);
}

bool httpd_req_header_at(const struct httpd_req *req, size_t i, const char **ret_name,
			 const char **ret_value)
{
	if (i >= req->g.n_headers)
		return false;
	*ret_name = req->g.headers[i].name;
	*ret_value = req->g.headers[i].value;
	return true;
}

const char *httpd_req_method(const struct httpd_req *req)
{
	return req->g.method;
}

void httpd_req_target(const struct httpd_req *req, struct buf *out)
{
	buf_adds(out, req->g.path);
	if (req->g.query) {
		buf_addc(out, '?');
		buf_adds(out, req->g.query);
	}
}

void *httpd_req_guest(const struct httpd_req *req)
{
	return req->conn && req->conn->guest ? req->conn->guest->arg : NULL;
}

const void *httpd_req_body(const struct httpd_req *req, size_t *ret_len)
{
	*ret_len = req->body.len;
	return buf_str(&req->body);
}

void httpd_req_peer(const struct httpd_req *req, uid_t *ret_uid, pid_t *ret_pid)
{
	*ret_uid = req->uid;
	*ret_pid = req->pid;
}

bool httpd_req_is_gone(const struct httpd_req *req)
{
	return !req->conn;
}

void httpd_req_set_ctx(struct httpd_req *req, void *ctx, void (*free_fn)(void *))
{
	if (req->ctx_free && req->ctx)
		req->ctx_free(req->ctx);
	req->ctx = ctx;
	req->ctx_free = free_fn;
}

void *httpd_req_ctx(const struct httpd_req *req)
{
	return req->ctx;
}

void httpd_req_on_gone(struct httpd_req *req, void (*fn)(void *arg), void *arg)
{
	req->gone = fn;
	req->gone_arg = arg;
}

bool httpd_req_pass_header(struct httpd_req *req, const char *name, const char *value)
{
	size_t name_len = strlen(name), value_len = strlen(value);
	size_t with = req->more_headers.len + name_len + value_len + strlen(": \r\n");

	if (name_len == 0 || strpbrk(name, ": ") || str_has_control(name, name_len) ||
	    str_has_control(value, value_len) ||
	    req->n_more_headers >= PASSED_HEADERS_MAX || with > PASSED_BYTES_MAX)
		return false;
	httpd_req_add_header(req, name, value);
	return true;
}

void httpd_req_add_header(struct httpd_req *req, const char *name, const char *value)
{
	/* Ours, never a client's bytes: a line break here is a bug, not an input. */
	assert(!str_has_control(name, strlen(name)) &&
	       !str_has_control(value, strlen(value)));
	assert(req->n_more_headers < MORE_HEADERS_MAX);
	req->n_more_headers++;
	buf_addf(&req->more_headers, "%s: %s\r\n", name, value);
	assert(buf_ok(&req->more_headers));
}

/* ---- answers ---- */

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 201:
		return "Created";
	case 204:
		return "No Content";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 409:
		return "Conflict";
	case 410:
		return "Gone";
	case 402:
		return "Payment Required";
	case 408:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 422:
		return "Unprocessable Content";
	case 426:
		return "Upgrade Required";
	case 429:
		return "Too Many Requests";
	case 500:
		return "Internal Server Error";
	case 502:
		return "Bad Gateway";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	default:
		return "Answer";
	}
}

void reply_head(struct conn *c, const struct httpd_req *req, int status,
		const char *content_type, uint64_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	struct request_id fresh;

	if (!req)
		request_id_new(&random_real, &fresh);
	(void)evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nX-Request-Id: %s\r\n", status,
				  req && req->reason[0] ? req->reason : reason(status),
				  req ? req->id.s : fresh.s);
	if (content_type)
		(void)evbuffer_add_printf(out, "Content-Type: %s\r\n", content_type);
	if (req && req->more_headers.len > 0)
		(void)evbuffer_add(out, req->more_headers.data, req->more_headers.len);
	if (len == UINT64_MAX)
		(void)evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
	else
		(void)evbuffer_add_printf(out, "Content-Length: %llu\r\n",
					  (unsigned long long)len);
	(void)evbuffer_add_printf(out,
				  "Cache-Control: no-store\r\n"
				  "X-Content-Type-Options: nosniff\r\n%s\r\n",
				  c->close_after ? "Connection: close\r\n" : "");
}

void httpd_reply(struct httpd_req *req, int status, const char *content_type,
		 const void *body, size_t len)
{
	struct conn *c = req->conn;

	if (c && len > ERROR_BODY_MAX && !share_take_answer(c, len)) {
		struct err err = ERR_INIT;

		(void)err_set_id(&err, ERRID_HTTP_BUSY,
				 "earlier answers wait to be taken");
		httpd_reply_err(req, &err);
		return;
	}
	if (c) {
		assert(c->req == req);
		reply_head(c, req, status, content_type, len);
		if (len > 0)
			(void)bufferevent_write(c->bev, body, len);
		conn_flush(c);
	}
	httpd_req_free(req);
}

void httpd_reply_head_only(struct httpd_req *req, int status, const char *content_type)
{
	struct conn *c = req->conn;

	if (c) {
		reply_head(c, req, status, content_type, UINT64_MAX);
		conn_flush(c);
	}
	httpd_req_free(req);
}

void httpd_reply_json(struct httpd_req *req, int status, const struct buf *json)
{
	struct err err = ERR_INIT;

	if (!buf_ok(json)) {
		(void)err_set_id(&err, ERRID_CORE_INTERNAL, "answer too long");
		httpd_reply_err(req, &err);
		return;
	}
	httpd_reply(req, status, "application/json", buf_str(json), json->len);
}

/* 426: the protocol is to be another one. Clients that try a WebSocket first go on by HTTP
 * at once when they see it. */
static int status_of(const struct err *err)
{
	return err->id == ERRID_HTTP_METHOD    ? 405
	       : err->id == ERRID_HTTP_UPGRADE ? 426
					       : err_http_status(err);
}

static void error_body(struct buf *b, const struct err *err, const char *request_id,
		       const uint64_t *expected)
{
	struct jsonw w;

	jsonw_init(&w, b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", err_text(err));
	jsonw_kstr(&w, "title", err_title(err));
	jsonw_kstr(&w, "detail", err_code_info(err->code)->public_text ? err->msg : "");
	jsonw_kstr(&w, "hint", err_hint(err));
	jsonw_kstr(&w, "request_id", request_id);
	if (expected)
		jsonw_ku64(&w, "expected", *expected);
	jsonw_obj_end(&w);
}

/* What clients show of a proxy's refusal is the status line, if anything. */
static void reason_of_connect(struct httpd_req *req, const struct err *err)
{
	(void)snprintf(req->reason, sizeof(req->reason), "%s %.90s", err_text(err),
		       err_code_info(err->code)->public_text ? err->msg : "");
	for (char *c = req->reason; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static void reply_error(struct httpd_req *req, const struct err *err,
			const uint64_t *expected)
{
	cleanup_buf struct buf b = {0};
	const struct httpd_config *cfg = req->conn ? httpd_config_of(req->conn) : NULL;

	buf_init(&b, ERROR_BODY_MAX);
	if (req->g.is_connect)
		reason_of_connect(req, err);
	if (err->id == ERRID_HTTP_UPGRADE)
		httpd_req_add_header(req, "Upgrade", "HTTP/1.1");
	if (cfg && cfg->error_body)
		cfg->error_body(&b, err, status_of(err), req->id.s, req->g.path,
				cfg->arg);
	else
		error_body(&b, err, req->id.s, expected);
	httpd_reply(req, status_of(err), "application/json", buf_str(&b), b.len);
}

void httpd_reply_err(struct httpd_req *req, const struct err *err)
{
	reply_error(req, err, NULL);
}

void httpd_reply_err_expected(struct httpd_req *req, const struct err *err,
			      uint64_t expected)
{
	reply_error(req, err, &expected);
}

void reply_refusal(struct conn *c, struct httpd_req *req, const struct err *err)
{
	const struct httpd_config *cfg = httpd_config_of(c);
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct httpd_req *r = req;

	if (!r) {
		r = xnew(struct httpd_req);
		request_id_new(&random_real, &r->id);
		r->conn = c;
		c->req = r;
	}
	(void)evbuffer_drain(in, evbuffer_get_length(in));
	c->close_after = true;
	if (req && req->g.method && req->g.path && cfg->refuse &&
	    cfg->refuse(req, err, status_of(err), req->id.s, cfg->arg))
		return;
	httpd_reply_err(r, err);
}

void httpd_reply_file(struct httpd_req *req, int status, const char *content_type, int fd,
		      uint64_t offset, uint64_t len)
{
	cleanup_close int file = fd;
	struct conn *c = req->conn;
	struct err err = ERR_INIT;
	struct stat st;

	if (!c) {
		httpd_req_free(req);
		return;
	}
	/* libevent sends no more than was announced, but could not make up for less. */
	if (fstat(file, &st) < 0 || !S_ISREG(st.st_mode) || offset > INT64_MAX ||
	    len > INT64_MAX || offset + len > (uint64_t)st.st_size) {
		(void)err_set_id(&err, ERRID_CORE_INTERNAL,
				 "file is not what was announced");
		httpd_reply_err(req, &err);
		return;
	}
	reply_head(c, req, status, content_type, len);
	if (len > 0 && evbuffer_add_file(bufferevent_get_output(c->bev), TAKE_FD(file),
					 (ev_off_t)offset, (ev_off_t)len) < 0) {
		/* The head is out: only a closed connection tells the client. */
		conn_doom(c);
		httpd_req_free(req);
		return;
	}
	conn_flush(c);
	httpd_req_free(req);
}
