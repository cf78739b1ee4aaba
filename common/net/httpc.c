/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * curl multi on the loop. The peer is one unix socket, so there is no name
 * to resolve, no thread, no TLS, no proxy. curl's own descriptors (its wakeup
 * pair) are made in httpc_new, before a daemon confines itself.
 *
 * curl forbids calls into the multi handle from within its callbacks; ours
 * therefore only keep what came, and the caller's are made from httpc_collect,
 * outside of curl, and may send or cancel freely. A call is freed exactly there, in
 * cancel, or in httpc_free. A stream keeps at most a window of its body: when that is
 * full, curl is paused, so that the socket's buffers fill and the peer has to wait.
 */
#include "common/net/httpc.h"
#include "common/net/dial.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/net/httpc_multi.h"
#include "common/str.h"

#include <assert.h>
#include <curl/curl.h>
#include <strings.h>
#include <sys/socket.h>

#define WINDOW_BYTES ((size_t)64 << 10)
#define REPLY_HEAD_MAX_BYTES ((size_t)16 << 10)

struct httpc {
	struct httpc_multi *multi;
	char *socket_path;
	struct httpc_call *calls;
	struct httpc_call *cursor;  /* the next one that httpc_collect looks at */
	struct httpc_call *current; /* its callback runs; NULL once it is freed */
	bool collecting;	    /* done callbacks are running */
	bool dead;		    /* one of them freed the client */
};

struct httpc_call {
	struct httpc *client;
	struct httpc_call *prev, *next;
	CURL *easy;
	struct curl_slist *headers;
	char *url;
	void *body;
	struct buf reply;
	httpc_done *done;
	void *arg;

	/* A stream: reply is the window of its body, done is NULL. */
	const struct httpc_stream_ops *ops;
	struct buf head; /* name NUL value NUL ... */
	int status;	 /* of the head that is being read, or was */
	uint64_t body_bytes, body_max_bytes;
	CURLcode code;
	bool head_whole, head_told, framed, finished;
	bool paused;  /* by the caller */
	bool stalled; /* curl is paused: the window was full */
	bool too_large;
};

static void call_free(struct httpc_call *k)
{
	struct httpc *c = k->client;

	if (c->cursor == k)
		c->cursor = k->next;
	if (c->current == k)
		c->current = NULL;
	if (k->prev)
		k->prev->next = k->next;
	else
		k->client->calls = k->next;
	if (k->next)
		k->next->prev = k->prev;
	httpc_multi_remove(k->client->multi, k->easy);
	curl_easy_cleanup(k->easy);
	curl_slist_free_all(k->headers);
	free(k->url);
	free(k->body);
	buf_done(&k->reply);
	buf_done(&k->head);
	free(k);
}

static int judge_transport(bool too_large, uint64_t max_bytes, CURLcode code,
			   struct err *err)
{
	if (too_large)
		return err_set(err, ERR_TOO_LARGE, "reply longer than %llu bytes",
			       (unsigned long long)max_bytes);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, ERR_TIMEOUT, "no answer in time");
	if (code != CURLE_OK)
		return err_set_id(err, ERRID_HTTP_AWAY, "%s", curl_easy_strerror(code));
	return 0;
}

static void judge(const struct httpc_call *k, CURLcode code, struct httpc_reply *reply,
		  struct err *err)
{
	long status = 0;
	curl_off_t length = -1;

	if (judge_transport(!buf_ok(&k->reply), k->reply.max, code, err) < 0) {
		/* err says it */
	} else if (curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &status) !=
			   CURLE_OK ||
		   status < 200 || status > 599) {
		(void)err_set(err, ERR_UPSTREAM, "no acceptable status");
	} else if (curl_easy_getinfo(k->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
				     &length) != CURLE_OK ||
		   length != (curl_off_t)k->reply.len) {
		/* A body that merely ends cannot be told from one that was cut. */
		(void)err_set(err, ERR_UPSTREAM, "reply without a plain length");
	} else {
		reply->status = (int)status;
		reply->body = buf_str(&k->reply);
		reply->body_len = k->reply.len;
		return;
	}
	reply->body = "";
	reply->err = err;
}

static void finish(struct httpc_call *k, CURLcode code)
{
	struct httpc_reply reply = {0};
	struct err err = ERR_INIT;
	httpc_done *done = k->done;
	void *arg = k->arg;
	cleanup_buf struct buf body = {0};

	judge(k, code, &reply, &err);
	/* The call ends before its callback, which may free the whole client. */
	body = k->reply;
	k->reply = (struct buf){0};
	call_free(k);
	done(&reply, arg);
}

/* The stream's last callback; the call ends before it. */
static void finish_stream(struct httpc_call *k)
{
	const struct httpc_stream_ops *ops = k->ops;
	struct err err = ERR_INIT;
	void *arg = k->arg;
	bool whole;

	whole = judge_transport(k->too_large, k->body_max_bytes, k->code, &err) == 0;
	if (whole && (!k->head_whole || !k->framed))
		whole = err_set(&err, ERR_UPSTREAM, "no acceptable reply") == 0;
	call_free(k);
	ops->on_end(whole ? NULL : &err, arg);
}

/* Tell a stream's owner what there is to tell. k may be gone after each callback. */
static void deliver(struct httpc_call *k)
{
	struct httpc *c = k->client;

	c->current = k;
	if (k->head_whole && !k->head_told) {
		k->head_told = true;
		k->ops->on_head(k, k->status, k->arg);
		if (c->current != k)
			return;
	}
	if (k->paused)
		return;
	if (k->reply.len > 0) {
		cleanup_buf struct buf part = k->reply;

		buf_init(&k->reply, WINDOW_BYTES);
		k->ops->on_body(k, part.data, part.len, k->arg);
		if (c->current != k)
			return;
	}
	if (k->paused)
		return;
	if (k->stalled) {
		k->stalled = false;
		(void)curl_easy_pause(k->easy, CURLPAUSE_CONT);
		httpc_multi_look(c->multi);
	} else if (k->finished && k->reply.len == 0) {
		finish_stream(k);
	}
}

static void httpc_collect(void *arg)
{
	struct httpc *c = arg;

	c->collecting = true;
	while (!c->dead) {
		struct httpc_call *k = NULL;
		CURLcode code;
		CURL *easy;

		if (!httpc_multi_next(c->multi, &easy, &code))
			break;
		(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&k);
		if (k->ops) {
			k->finished = true;
			k->code = code;
		} else {
			finish(k, code);
		}
	}
	for (struct httpc_call *k = c->dead ? NULL : c->calls; k; k = c->cursor) {
		c->cursor = k->next;
		if (k->ops)
			deliver(k);
	}
	c->collecting = false;
	if (c->dead)
		free(c);
}

/* curl's own socket() would not be close-on-exec, and could be of another family. Who may not
 * connect has the starter do it: the one peer of this client is the work socket then. */
static curl_socket_t open_socket(void *arg UNUSED, curlsocktype purpose UNUSED,
				 struct curl_sockaddr *addr)
{
	struct err err = ERR_INIT;

	if (addr->family != AF_UNIX)
		return CURL_SOCKET_BAD;
	if (dial_is_on()) /* -1 is CURL_SOCKET_BAD */
		return dial(DIAL_WORK, &err);
	return socket(AF_UNIX, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

static int on_socket(void *arg UNUSED, curl_socket_t fd UNUSED, curlsocktype what UNUSED)
{
	return dial_is_on() ? CURL_SOCKOPT_ALREADY_CONNECTED : CURL_SOCKOPT_OK;
}

/* One line of a head, its CRLF included. Not of the trailers, which nobody reads. */
static bool keep_header(struct httpc_call *k, char *line, size_t len)
{
	char *colon = memchr(line, ':', len);
	char *value, *end = line + len;

	while (end > line && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (end == line) {
		k->head_whole = k->status >= 200 && k->status <= 599;
		return k->head_whole || (k->status >= 100 && k->status < 200);
	}
	if (str_has_control(line, (size_t)(end - line)))
		return false;
	if (len > 9 && memcmp(line, "HTTP/1.1 ", 9) == 0) {
		uint64_t status = 0;
		char digits[4] = {0};
		struct err ignored = ERR_INIT;

		memcpy(digits, line + 9, end - line >= 12 ? 3 : 0);
		if (parse_u64(digits, 100, 599, &status, &ignored) < 0)
			return false;
		k->status = (int)status;
		k->framed = false;
		buf_reset(&k->head);
		return true;
	}
	if (!colon || colon == line || colon >= end)
		return false;
	for (value = colon + 1; value < end && *value == ' ';)
		value++;
	*colon = '\0';
	if (strcasecmp(line, "Content-Length") == 0 ||
	    strcasecmp(line, "Transfer-Encoding") == 0)
		k->framed = true;
	buf_add(&k->head, line, (size_t)(colon - line) + 1);
	buf_add(&k->head, value, (size_t)(end - value));
	buf_addc(&k->head, '\0');
	return buf_ok(&k->head);
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct httpc_call *k = arg;
	cleanup_free char *line = NULL;

	if (k->head_whole)
		return size * n;
	line = xstrndup(data, size * n);
	return keep_header(k, line, strlen(line)) ? size * n : 0;
}

static size_t on_stream_bytes(char *data, size_t size, size_t n, void *arg)
{
	struct httpc_call *k = arg;

	if (k->reply.len + size * n > WINDOW_BYTES) {
		k->stalled = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	k->body_bytes += size * n;
	if (k->body_bytes > k->body_max_bytes) {
		k->too_large = true;
		return 0;
	}
	buf_add(&k->reply, data, size * n);
	assert(buf_ok(&k->reply));
	return size * n;
}

static size_t on_bytes(char *data, size_t size, size_t n, void *arg)
{
	struct httpc_call *k = arg;

	buf_add(&k->reply, data, size * n);
	return buf_ok(&k->reply) ? size * n : 0;
}

int httpc_new(struct loop *l, const char *socket_path, unsigned max_connections,
	      struct httpc **ret, struct err *err)
{
	struct httpc *c;

	/* Nothing: no TLS library is initialised, no file of it is read. */
	if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "curl_global_init failed");
	c = xnew(struct httpc);
	c->socket_path = xstrdup(socket_path);
	if (httpc_multi_new(l, max_connections, httpc_collect, c, &c->multi, err) < 0) {
		httpc_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void httpc_free(struct httpc *c)
{
	if (!c)
		return;
	while (c->calls)
		call_free(c->calls);
	httpc_multi_free(c->multi);
	free(c->socket_path);
	curl_global_cleanup();
	if (c->collecting)
		c->dead = true;
	else
		free(c);
}

static bool set_headers(struct httpc_call *k, const char *const *headers)
{
	/* Expect and the form type of POST are curl's own ideas. */
	static const char *const ours[] = {"Host: lychgate",
					   "Expect:", "Content-Type:", "Accept:", NULL};
	const char *const *lists[] = {ours, headers};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		for (const char *const *h = lists[i]; h && *h; h++) {
			struct curl_slist *more;

			if (str_has_control(*h, strlen(*h)))
				return false;
			more = curl_slist_append(k->headers, *h);
			assert(more);
			k->headers = more;
		}
	}
	return curl_easy_setopt(k->easy, CURLOPT_HTTPHEADER, k->headers) == CURLE_OK;
}

#define SET(k, opt, value) (curl_easy_setopt((k)->easy, CURLOPT_##opt, value) == CURLE_OK)

/* One peer, no environment, no surprises. */
static bool set_transport(struct httpc_call *k, const struct httpc_request *rq)
{
	long ms = (long)((rq->timeout_usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC);

	return SET(k, UNIX_SOCKET_PATH, k->client->socket_path) && SET(k, PROXY, "") &&
	       SET(k, NOPROXY, "*") && SET(k, NETRC, (long)CURL_NETRC_IGNORED) &&
	       SET(k, PROTOCOLS_STR, "http") && SET(k, FOLLOWLOCATION, 0L) &&
	       SET(k, NOSIGNAL, 1L) && SET(k, PATH_AS_IS, 1L) &&
	       SET(k, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(k, HTTP09_ALLOWED, 0L) && SET(k, TIMEOUT_MS, ms) &&
	       SET(k, OPENSOCKETFUNCTION, open_socket) &&
	       SET(k, SOCKOPTFUNCTION, on_socket) && SET(k, URL, k->url) &&
	       SET(k, PRIVATE, k) && SET(k, WRITEFUNCTION, on_bytes) &&
	       SET(k, WRITEDATA, k);
}

static bool set_stream(struct httpc_call *k)
{
	/* On a connection that was used before, curl sends a request again by itself when
	 * the peer closed it meanwhile: never for what may have an effect once. */
	return SET(k, HEADERFUNCTION, on_header) && SET(k, HEADERDATA, k) &&
	       SET(k, WRITEFUNCTION, on_stream_bytes) && SET(k, FRESH_CONNECT, 1L) &&
	       SET(k, FORBID_REUSE, 1L);
}

static bool set_method(struct httpc_call *k, const struct httpc_request *rq)
{
	switch (rq->method) {
	case HTTP_M_GET:
		return SET(k, HTTPGET, 1L);
	case HTTP_M_POST:
	case HTTP_M_PUT:
		/* A body in memory, also an empty one: Content-Length, never chunked. */
		return SET(k, POST, 1L) &&
		       SET(k, POSTFIELDSIZE_LARGE, (curl_off_t)rq->body_len) &&
		       SET(k, POSTFIELDS, (const char *)k->body) &&
		       (rq->method == HTTP_M_POST || SET(k, CUSTOMREQUEST, "PUT"));
	case HTTP_M_DELETE:
		return SET(k, CUSTOMREQUEST, "DELETE");
	case HTTP_M_MAX_:
		break;
	}
	return false;
}

static struct httpc_call *call_new(struct httpc *c, const struct httpc_request *rq,
				   void *arg)
{
	struct httpc_call *k = xnew(struct httpc_call);

	k->client = c;
	k->easy = curl_easy_init();
	assert(k->easy);
	k->next = c->calls;
	if (k->next)
		k->next->prev = k;
	c->calls = k;
	k->url = xasprintf("http://lychgate%s", rq->target);
	k->body = xmalloc(rq->body_len + 1);
	if (rq->body_len > 0)
		memcpy(k->body, rq->body, rq->body_len);
	((char *)k->body)[rq->body_len] = '\0';
	k->arg = arg;
	return k;
}

static int call_start(struct httpc_call *k, const struct httpc_request *rq,
		      struct httpc_call **ret_call, struct err *err)
{
	if (rq->target[0] != '/' || str_has_control(rq->target, strlen(rq->target)) ||
	    strchr(rq->target, ' ') || strchr(rq->target, '#')) {
		call_free(k);
		return err_set(err, ERR_INVALID, "bad request target");
	}
	if (!set_transport(k, rq) || !set_method(k, rq) || !set_headers(k, rq->headers) ||
	    (k->ops && !set_stream(k)) ||
	    httpc_multi_add(k->client->multi, k->easy) < 0) {
		call_free(k);
		return err_set(err, ERR_INTERNAL, "curl refuses the request");
	}
	if (ret_call)
		*ret_call = k;
	return 0;
}

int httpc_send(struct httpc *c, const struct httpc_request *rq, httpc_done *done,
	       void *arg, struct httpc_call **ret_call, struct err *err)
{
	struct httpc_call *k = call_new(c, rq, arg);

	buf_init(&k->reply, rq->reply_max_bytes);
	k->done = done;
	return call_start(k, rq, ret_call, err);
}

int httpc_stream(struct httpc *c, const struct httpc_request *rq,
		 const struct httpc_stream_ops *ops, void *arg,
		 struct httpc_call **ret_call, struct err *err)
{
	struct httpc_call *k = call_new(c, rq, arg);

	buf_init(&k->reply, WINDOW_BYTES);
	buf_init(&k->head, REPLY_HEAD_MAX_BYTES);
	k->ops = ops;
	k->body_max_bytes = rq->reply_max_bytes;
	return call_start(k, rq, ret_call, err);
}

void httpc_pause(struct httpc_call *call)
{
	call->paused = true;
}

void httpc_resume(struct httpc_call *call)
{
	if (!call->paused)
		return;
	call->paused = false;
	httpc_multi_look(call->client->multi);
}

bool httpc_header_next(const struct httpc_call *call, size_t *at, const char **ret_name,
		       const char **ret_value)
{
	if (*at >= call->head.len)
		return false;
	*ret_name = call->head.data + *at;
	*ret_value = *ret_name + strlen(*ret_name) + 1;
	*at += (size_t)(*ret_value - *ret_name) + strlen(*ret_value) + 1;
	return true;
}

const char *httpc_header(const struct httpc_call *call, const char *name)
{
	const char *n, *value;
	size_t at = 0;

	while (httpc_header_next(call, &at, &n, &value))
		if (strcasecmp(n, name) == 0)
			return value;
	return NULL;
}

void httpc_cancel(struct httpc_call *call)
{
	if (call)
		call_free(call);
}
