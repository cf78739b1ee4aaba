/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl multi on the loop. The peer is one unix socket, so there is no name
 * to resolve, no thread, no TLS, no proxy. curl's own descriptors (its wakeup
 * pair) are made in httpc_new, before a daemon confines itself.
 *
 * curl forbids calls into the multi handle from within its callbacks; done
 * callbacks are therefore made from httpc_collect, outside of curl, and may send
 * or cancel freely. A call is freed exactly there, in cancel, or in httpc_free.
 */
#include "common/net/httpc.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <curl/curl.h>
#include <sys/socket.h>

struct httpc {
	struct loop *loop;
	CURLM *multi;
	char *socket_path;
	struct loop_timer *timer;   /* curl's own deadline */
	struct loop_timer *collect; /* look for finished calls in the next turn */
	struct httpc_call *calls;
	bool collecting; /* done callbacks are running */
	bool dead;	 /* one of them freed the client */
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
};

static void call_free(struct httpc_call *k)
{
	if (k->prev)
		k->prev->next = k->next;
	else
		k->client->calls = k->next;
	if (k->next)
		k->next->prev = k->prev;
	(void)curl_multi_remove_handle(k->client->multi, k->easy);
	curl_easy_cleanup(k->easy);
	curl_slist_free_all(k->headers);
	free(k->url);
	free(k->body);
	buf_done(&k->reply);
	free(k);
}

static void judge(const struct httpc_call *k, CURLcode code, struct httpc_reply *reply,
		  struct err *err)
{
	long status = 0;
	curl_off_t length = -1;

	if (!buf_ok(&k->reply)) {
		(void)err_set(err, ERR_TOO_LARGE, "reply longer than %zu bytes",
			      k->reply.max);
	} else if (code == CURLE_OPERATION_TIMEDOUT) {
		(void)err_set(err, ERR_TIMEOUT, "no answer in time");
	} else if (code != CURLE_OK) {
		(void)err_set_id(err, ERRID_HTTP_AWAY, "%s", curl_easy_strerror(code));
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

static void httpc_collect(void *arg)
{
	struct httpc *c = arg;

	c->collecting = true;
	while (!c->dead) {
		int left;
		CURLMsg *m = curl_multi_info_read(c->multi, &left);
		struct httpc_call *k = NULL;

		if (!m)
			break;
		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&k);
		finish(k, m->data.result);
	}
	c->collecting = false;
	if (c->dead)
		free(c);
}

static void kick(struct httpc *c, curl_socket_t s, int mask)
{
	int running;

	(void)curl_multi_socket_action(c->multi, s, mask, &running);
	loop_timer_arm(c->collect, 0);
}

static void on_io(int fd, unsigned what, void *arg)
{
	int mask = 0;

	if (what & LOOP_READ)
		mask |= CURL_CSELECT_IN;
	if (what & LOOP_WRITE)
		mask |= CURL_CSELECT_OUT;
	kick(arg, fd, mask);
}

static void on_timer(void *arg)
{
	kick(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int curl_wants_socket(CURL *easy UNUSED, curl_socket_t s, int what, void *arg,
			     void *io_ptr)
{
	struct httpc *c = arg;
	struct loop_io *io = io_ptr;
	unsigned mask = 0;

	if (what == CURL_POLL_REMOVE) {
		loop_io_free(io);
		(void)curl_multi_assign(c->multi, s, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		mask |= LOOP_READ;
	if (what & CURL_POLL_OUT)
		mask |= LOOP_WRITE;
	if (io) {
		loop_io_set(io, mask);
	} else {
		io = loop_io_new(c->loop, s, mask, on_io, c);
		(void)curl_multi_assign(c->multi, s, io);
	}
	return 0;
}

static int curl_wants_timer(CURLM *multi UNUSED, long ms, void *arg)
{
	struct httpc *c = arg;

	if (ms < 0)
		loop_timer_disarm(c->timer);
	else
		loop_timer_arm(c->timer, (usec_t)ms * USEC_PER_MSEC);
	return 0;
}

/* curl's own socket() would not be close-on-exec, and could be of another family. */
static curl_socket_t open_socket(void *arg UNUSED, curlsocktype purpose UNUSED,
				 struct curl_sockaddr *addr)
{
	if (addr->family != AF_UNIX)
		return CURL_SOCKET_BAD;
	return socket(AF_UNIX, addr->socktype | SOCK_CLOEXEC, addr->protocol);
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
	bool ok;

	/* Nothing: no TLS library is initialised, no file of it is read. */
	if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "curl_global_init failed");
	c = xnew(struct httpc);
	c->loop = l;
	c->multi = curl_multi_init();
	assert(c->multi);
	c->socket_path = xstrdup(socket_path);
	c->timer = loop_timer_new(l, on_timer, c);
	c->collect = loop_timer_new(l, httpc_collect, c);
	ok = curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, curl_wants_socket) ==
		     CURLM_OK &&
	     curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) == CURLM_OK &&
	     curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, curl_wants_timer) ==
		     CURLM_OK &&
	     curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) == CURLM_OK &&
	     curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) ==
		     CURLM_OK &&
	     curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
			       (long)max_connections) == CURLM_OK;
	if (!ok) {
		httpc_free(c);
		return err_set(err, ERR_INTERNAL, "curl refuses an option");
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
	(void)curl_multi_cleanup(c->multi);
	loop_timer_free(c->timer);
	loop_timer_free(c->collect);
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
	       SET(k, OPENSOCKETFUNCTION, open_socket) && SET(k, URL, k->url) &&
	       SET(k, PRIVATE, k) && SET(k, WRITEFUNCTION, on_bytes) &&
	       SET(k, WRITEDATA, k);
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

int httpc_send(struct httpc *c, const struct httpc_request *rq, httpc_done *done,
	       void *arg, struct httpc_call **ret_call, struct err *err)
{
	struct httpc_call *k;

	if (rq->target[0] != '/' || str_has_control(rq->target, strlen(rq->target)) ||
	    strchr(rq->target, ' ') || strchr(rq->target, '#'))
		return err_set(err, ERR_INVALID, "bad request target");
	k = xnew(struct httpc_call);
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
	buf_init(&k->reply, rq->reply_max_bytes);
	k->done = done;
	k->arg = arg;
	if (!set_transport(k, rq) || !set_method(k, rq) || !set_headers(k, rq->headers) ||
	    curl_multi_add_handle(c->multi, k->easy) != CURLM_OK) {
		call_free(k);
		return err_set(err, ERR_INTERNAL, "curl refuses the request");
	}
	if (ret_call)
		*ret_call = k;
	return 0;
}

void httpc_cancel(struct httpc_call *call)
{
	if (call)
		call_free(call);
}
