/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include "cli/sse.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/sha256.h"
#include "common/proto.h"
#include "common/str.h"
#include <curl/curl.h>
#include <errno.h>

struct client {
	CURL *easy;
	CURLM *multi;
	char *socket;
};

/* One exchange in flight. */
struct exchange {
	struct client *c;
	struct buf body; /* of a JSON answer, or of any refusal */
	client_sink *sink;
	void *sink_arg;
	struct sse *sse;
	const struct client_events *ev;
	struct err *err;
	bool failed, enough;
	usec_t heard; /* of a stream: when its last bytes came */
	/* what is being sent */
	const char *send;
	size_t send_len;
};

int client_new(const char *socket_path, struct client **ret, struct err *err)
{
	struct client *c = xnew(struct client);

	/* no TLS is ever spoken here: its set-up would cost more than the request */
	if (curl_global_init(CURL_GLOBAL_NOTHING) != 0)
		goto fail;
	c->easy = curl_easy_init();
	c->multi = curl_multi_init();
	c->socket = xstrdup(socket_path);
	if (!c->easy || !c->multi)
		goto fail;
	*ret = c;
	return 0;
fail:
	client_free(c);
	return err_set(err, ERR_INTERNAL, "libcurl could not be set up");
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->easy)
		curl_easy_cleanup(c->easy);
	if (c->multi)
		curl_multi_cleanup(c->multi);
	free(c->socket);
	free(c);
}

static bool is_refusal(struct exchange *x)
{
	long status = 0;

	(void)curl_easy_getinfo(x->c->easy, CURLINFO_RESPONSE_CODE, &status);
	return status < 200 || status > 299;
}

static int on_sse(const char *event, const char *data, size_t len, void *arg,
		  struct err *err)
{
	struct exchange *x = arg;
	cleanup_json struct json *j = NULL;

	if (json_parse(data, len, JSON_DEPTH_DEFAULT, &j, err) < 0)
		return err_wrap(err, "event %s", event);
	return x->ev->on_event(event, j, x->ev->arg, err);
}

static size_t on_write(char *data, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	size_t len = size * n;
	int r;

	if (is_refusal(x) || (!x->sink && !x->sse)) {
		buf_add(&x->body, data, len);
		return buf_ok(&x->body) ? len : 0;
	}
	r = x->sink ? x->sink(data, len, x->sink_arg, x->err)
		    : sse_feed(x->sse, data, len, on_sse, x, x->err);
	x->heard = clock_boot_usec(); /* what it took to write it out is not silence */
	if (r == 0)
		return len;
	if (r > 0)
		x->enough = true;
	else
		x->failed = true;
	return 0;
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	size_t len = size * n < x->send_len ? size * n : x->send_len;

	if (len)
		memcpy(out, x->send, len);
	x->send += len;
	x->send_len -= len;
	return len;
}

static CURLcode set_options(struct client *c, const struct client_request *rq,
			    struct exchange *x, const char *url,
			    struct curl_slist *headers)
{
	CURL *e = c->easy;
	CURLcode r = CURLE_OK;

	curl_easy_reset(e);
#define OPT(name, value) (r = r ? r : curl_easy_setopt(e, name, value))
	OPT(CURLOPT_UNIX_SOCKET_PATH, c->socket);
	OPT(CURLOPT_URL, url);
	OPT(CURLOPT_PROXY, "");
	OPT(CURLOPT_NOPROXY, "*");
	OPT(CURLOPT_NOSIGNAL, 1L);
	OPT(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	OPT(CURLOPT_FOLLOWLOCATION, 0L);
	OPT(CURLOPT_HTTPHEADER, headers);
	OPT(CURLOPT_WRITEFUNCTION, on_write);
	OPT(CURLOPT_WRITEDATA, x);
	OPT(CURLOPT_CONNECTTIMEOUT_MS, 5000L);
	OPT(CURLOPT_TIMEOUT_MS, (long)rq->timeout_ms);
	if (str_eq(rq->method, "POST")) {
		OPT(CURLOPT_POST, 1L);
		OPT(CURLOPT_POSTFIELDS, rq->body ? rq->body : "");
		OPT(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body_len);
	} else if (str_eq(rq->method, "PUT")) {
		x->send = rq->body;
		x->send_len = rq->body_len;
		OPT(CURLOPT_UPLOAD, 1L);
		OPT(CURLOPT_READFUNCTION, on_read);
		OPT(CURLOPT_READDATA, x);
		OPT(CURLOPT_INFILESIZE_LARGE, (curl_off_t)rq->body_len);
	} else {
		OPT(CURLOPT_HTTPGET, 1L);
		if (str_eq(rq->method, "DELETE"))
			OPT(CURLOPT_CUSTOMREQUEST, "DELETE");
	}
#undef OPT
	return r;
}

static int refusal(struct exchange *x, const struct client_request *rq, long status,
		   struct err *err)
{
	cleanup_json struct json *j = NULL;
	const char *code = "", *detail = "", *title = "";
	struct err bad = ERR_INIT;
	enum err_id id;

	if (json_parse(buf_str(&x->body), x->body.len, JSON_DEPTH_DEFAULT, &j, &bad) <
		    0 ||
	    json_get_str(j, "error_code", true, 64, &code, &bad) < 0 ||
	    json_get_str(j, "title", false, 512, &title, &bad) < 0 ||
	    json_get_str(j, "detail", false, 2048, &detail, &bad) < 0)
		return err_set_id(err, ERRID_HTTP_ANSWER,
				  "the vessel answered %ld without an error", status);
	if (rq->ret_expected)
		(void)!json_get_u64(j, "expected", false, 0, INT64_MAX, rq->ret_expected,
				    &bad);
	id = err_id_from_text(code);
	if (id == ERRID_NONE)
		return err_set_id(err, ERRID_HTTP_ANSWER, "%s: %s: %s", code, title,
				  detail);
	return err_set_id(err, id, "%s", detail[0] ? detail : title);
}

/* sys is ECONNREFUSED when nothing can have been heard by anybody. */
static int transport_error(CURLcode r, const struct client *c, struct err *err)
{
	(void)err_set_id(err, ERRID_HTTP_AWAY, "%s: %s", c->socket,
			 r == CURLE_OPERATION_TIMEDOUT ? "no answer in time"
						       : curl_easy_strerror(r));
	if (r == CURLE_COULDNT_CONNECT)
		err->sys = ECONNREFUSED;
	return -1;
}

/* Drive one transfer; the wake descriptor is watched beside the socket. */
static int drive(struct exchange *x, CURLcode *ret, struct err *err)
{
	struct client *c = x->c;
	int running = 1, left, ready = 0;
	const CURLMsg *msg;

	while (running) {
		struct curl_waitfd wake = {.fd = x->ev ? x->ev->wake_fd : -1,
					   .events = CURL_WAIT_POLLIN};
		unsigned n_wake = wake.fd >= 0;

		if (curl_multi_perform(c->multi, &running) != CURLM_OK)
			return err_set(err, ERR_INTERNAL, "libcurl: perform");
		if (!running)
			break;
		if (curl_multi_poll(c->multi, n_wake ? &wake : NULL, n_wake, 1000,
				    &ready) != CURLM_OK)
			return err_set(err, ERR_INTERNAL, "libcurl: poll");
		if (n_wake && wake.revents && x->ev->on_wake(x->ev->arg, err) < 0)
			return -1;
		if (x->ev && ready == 0 &&
		    clock_boot_usec() - x->heard > CLIENT_SILENCE_USEC)
			return err_set_id(err, ERRID_HTTP_AWAY,
					  "%s: it has been silent for %u s", c->socket,
					  (unsigned)(CLIENT_SILENCE_USEC / USEC_PER_SEC));
	}
	*ret = CURLE_RECV_ERROR;
	while ((msg = curl_multi_info_read(c->multi, &left)))
		if (msg->msg == CURLMSG_DONE)
			*ret = msg->data.result;
	return 0;
}

static int exchange_run(struct exchange *x, const struct client_request *rq,
			int *ret_status, struct err *err)
{
	struct client *c = x->c;
	cleanup_free char *url = xasprintf("http://lychgate%s", rq->target);
	cleanup_free char *last = x->ev && x->ev->last_id[0]
					  ? xasprintf("Last-Event-ID: %s", x->ev->last_id)
					  : NULL;
	struct curl_slist *headers = NULL, *more;
	CURLcode code = CURLE_OK;
	long status = 0;
	int r = -1;

	x->err = err;
	headers = curl_slist_append(NULL, "Expect:");
	more = curl_slist_append(headers,
				 rq->raw ? "Content-Type: application/octet-stream"
					 : "Content-Type: application/json");
	if (more && last)
		more = curl_slist_append(headers, last);
	if (!headers || !more || set_options(c, rq, x, url, more) != CURLE_OK) {
		(void)err_set(err, ERR_INTERNAL, "libcurl: options");
		goto out;
	}
	if (curl_multi_add_handle(c->multi, c->easy) != CURLM_OK) {
		(void)err_set(err, ERR_INTERNAL, "libcurl: add");
		goto out;
	}
	r = drive(x, &code, err);
	(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_multi_remove_handle(c->multi, c->easy);
	if (r < 0)
		goto out;
	r = -1;
	if (x->failed)
		goto out;
	if (x->enough)
		r = 0;
	else if (code != CURLE_OK)
		r = buf_ok(&x->body) ? transport_error(code, c, err)
				     : err_set_id(err, ERRID_HTTP_ANSWER,
						  "the answer is too large");
	else if (status < 200 || status > 299)
		r = refusal(x, rq, status, err);
	else
		r = 0;
	if (ret_status)
		*ret_status = (int)status;
out:
	curl_slist_free_all(headers);
	return r;
}

int client_json(struct client *c, const struct client_request *rq, struct json **ret,
		int *ret_status, struct err *err)
{
	struct exchange x = {.c = c};
	int r;

	buf_init(&x.body, CLIENT_REPLY_MAX);
	r = exchange_run(&x, rq, ret_status, err);
	if (r == 0 &&
	    json_parse(buf_str(&x.body), x.body.len, JSON_DEPTH_DEFAULT, ret, err) < 0)
		r = err_wrap(err, "answer to %s %s", rq->method, rq->target);
	buf_done(&x.body);
	return r;
}

int client_status(struct client *c, struct json **ret, bool *ret_ready, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/status", .timeout_ms = 5000};
	cleanup_json struct json *said = NULL;
	const struct json *database = NULL;

	*ret_ready = false;
	if (client_json(c, &rq, &said, NULL, err) < 0 ||
	    json_get_obj(said, "database", true, &database, err) < 0 ||
	    json_get_bool(database, "up", true, ret_ready, err) < 0)
		return -1;
	*ret = TAKE_PTR(said);
	return 0;
}

int client_raw(struct client *c, const struct client_request *rq, client_sink *sink,
	       void *arg, struct err *err)
{
	struct exchange x = {.c = c, .sink = sink, .sink_arg = arg};
	int r;

	buf_init(&x.body, CLIENT_REPLY_MAX);
	r = exchange_run(&x, rq, NULL, err);
	buf_done(&x.body);
	return r;
}

int client_stream(struct client *c, const char *target, const struct client_events *ev,
		  struct err *err)
{
	const struct client_request rq = {.method = "GET", .target = target};
	struct sse sse;
	struct exchange x = {.c = c, .sse = &sse, .ev = ev, .heard = clock_boot_usec()};
	int r;

	sse_init(&sse);
	memcpy(sse.id, ev->last_id, sizeof(sse.id));
	memcpy(sse.next_id, ev->last_id, sizeof(sse.next_id));
	buf_init(&x.body, CLIENT_REPLY_MAX);
	r = exchange_run(&x, &rq, NULL, err);
	buf_done(&x.body);
	memcpy(ev->last_id, sse.id, sizeof(sse.id));
	sse_done(&sse);
	return r;
}

/* ---- uploads -------------------------------------------------------------- */

static int upload_begin(struct client *c, char id[33], struct err *err)
{
	const struct client_request rq = {
		.method = "POST", .target = "/v1/uploads", .body = "{}", .body_len = 2};
	cleanup_json struct json *j = NULL;
	const char *s;

	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_str(j, "upload", true, 32, &s, err) < 0)
		return err_wrap(err, "upload");
	if (strlen(s) != 32 || strspn(s, "0123456789abcdef") != 32 ||
	    str_copy(id, 33, s) < 0)
		return err_set_id(err, ERRID_HTTP_ANSWER,
				  "an upload's id has another form");
	return 0;
}

static int upload_part(struct client *c, const char *id, const void *data, size_t len,
		       uint64_t offset, struct err *err)
{
	cleanup_free char *target =
		xasprintf("/v1/uploads/%s?offset=%llu", id, (unsigned long long)offset);
	const struct client_request rq = {.method = "PUT",
					  .target = target,
					  .body = data,
					  .body_len = len,
					  .raw = true};
	cleanup_json struct json *j = NULL;
	uint64_t received;

	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_u64(j, "received", true, offset + len, offset + len, &received,
			 err) < 0)
		return err_wrap(err, "upload");
	return 0;
}

static int upload_commit(struct client *c, const char *id, const char *sha256,
			 uint64_t size, struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/uploads/%s/commit", id);
	cleanup_buf struct buf body = {0};
	cleanup_json struct json *j = NULL;
	struct client_request rq = {.method = "POST", .target = target};
	struct jsonw w;

	buf_init(&body, 256);
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "sha256", sha256);
	jsonw_ku64(&w, "size", size);
	jsonw_obj_end(&w);
	rq.body = buf_str(&body);
	rq.body_len = body.len;
	return client_json(c, &rq, &j, NULL, err);
}

/* What came so far would take space until the vessel's sweep. A commit to the sha256 of
 * other bytes is refused, and the upload is gone. */
static void upload_abandon(struct client *c, const char *id, uint64_t received)
{
	struct err ignored = ERR_INIT;
	char sha256[65];

	memset(sha256, '0', sizeof(sha256) - 1);
	sha256[sizeof(sha256) - 1] = '\0';
	(void)!upload_commit(c, id, sha256, received, &ignored);
}

static int upload_parts(struct client *c, const char *id, client_source *source,
			void *arg, struct sha256 *sum, uint64_t *offset, struct err *err)
{
	cleanup_free char *part = xmalloc(UPLOAD_PART_MAX_BYTES);

	for (;;) {
		size_t n = 0;

		if (source(part, UPLOAD_PART_MAX_BYTES, &n, arg, err) < 0)
			return -1;
		if (n == 0)
			return 0;
		if (*offset + n > BLOB_MAX_BYTES)
			return err_set_id(err, ERRID_STORE_LIMIT,
					  "a blob has at most %llu bytes",
					  (unsigned long long)BLOB_MAX_BYTES);
		sha256_add(sum, part, n);
		if (upload_part(c, id, part, n, *offset, err) < 0)
			return -1;
		*offset += n;
	}
}

int client_upload(struct client *c, client_source *source, void *arg, char ret_sha256[65],
		  uint64_t *ret_size, struct err *err)
{
	cleanup_sha256 struct sha256 *sum = sha256_new();
	uint64_t offset = 0;
	char id[33];

	if (upload_begin(c, id, err) < 0)
		return -1;
	if (upload_parts(c, id, source, arg, sum, &offset, err) < 0) {
		upload_abandon(c, id, offset);
		return -1;
	}
	sha256_hex(sum, ret_sha256);
	*ret_size = offset;
	return upload_commit(c, id, ret_sha256, offset, err);
}
