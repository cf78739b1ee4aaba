/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * In an egress worker: the attempts of a call, from its request to curl's end.
 *
 * Theory of operation. The URL is put together (a portal's base is ours, so that no request
 * chooses where the credential goes), the name resolved, every address vetted, and curl
 * gets those addresses and no other. What curl ends with is the end of the call or, before
 * anything of a reply went back, a wait for the next attempt.
 */
#include "common/log.h"
#include "common/str.h"
#include "vessel/egress/http_priv.h"

#include <assert.h>
#include <string.h>

#define FIRST_BYTE_USEC (120 * USEC_PER_SEC)
#define TOTAL_USEC (600 * USEC_PER_SEC)
#define RETRY_WAIT_USEC (500 * USEC_PER_MSEC) /* doubled each time */
#define RETRY_WAIT_MAX_USEC (20 * USEC_PER_SEC)

void http_attempt_drop(struct call *c)
{
	curl_off_t up = 0;

	if (!c->easy)
		return;
	if (curl_easy_getinfo(c->easy->curl, CURLINFO_SIZE_UPLOAD_T, &up) == CURLE_OK)
		c->bytes_up += (uint64_t)up;
	c->sent = c->sent || egress_easy_sent(c->easy);
	httpc_multi_remove(c->http->curl, c->easy->curl);
	egress_easy_free(c->easy);
	c->easy = NULL;
}

static bool is_read(const struct call *c)
{
	return str_eq(c->request.rq.method, "GET") ||
	       str_eq(c->request.rq.method, "HEAD");
}

/* Before anything went back, and only what did not or may not have been carried out. */
bool http_attempt_may_repeat(const struct call *c, unsigned status)
{
	if (c->attempts > c->request.rq.retries || c->head_sent)
		return false;
	if (status == 0)
		return is_read(c) || !c->sent;
	/* longer than we would wait: that is for the caller to do */
	if (c->reply.has_retry_after &&
	    c->reply.retry_after * USEC_PER_SEC > RETRY_WAIT_MAX_USEC)
		return false;
	return status == 429 || status == 503 ||
	       (is_read(c) && (status == 502 || status == 504));
}

static void try_again(struct call *c)
{
	unsigned doubled = c->attempts < 8 ? c->attempts - 1 : 7;
	usec_t usec = c->reply.has_retry_after ? c->reply.retry_after * USEC_PER_SEC
					       : RETRY_WAIT_USEC << doubled;

	http_attempt_drop(c);
	c->again = false;
	err_clear(&c->why);
	http_call_wait(c, FOR_RETRY,
		       usec < RETRY_WAIT_MAX_USEC ? usec : RETRY_WAIT_MAX_USEC);
}

static void on_done(struct call *c, CURLcode code)
{
	struct err err = ERR_INIT;

	c->sent = c->sent || egress_easy_sent(c->easy);
	if (c->again) {
		try_again(c);
		return;
	}
	if (code == CURLE_OK && !c->reply.complete)
		(void)err_set_id(&c->why, ERRID_EGRESS_REPLY, "it has no head");
	if (code == CURLE_OK && !err_is_set(&c->why) &&
	    http_reply_hand_on(c, NULL, 0) == 0) {
		c->complete = true;
		loop_timer_disarm(c->timer);
		http_call_end_when_sent(c);
		return;
	}
	if (err_is_set(&c->why)) {
		http_call_end(c, &c->why);
		return;
	}
	if (c->easy->strayed)
		c->reason = REASON_NOT_PINNED;
	(void)egress_easy_err(c->easy, code, &err);
	if (err.id != ERRID_EGRESS_TLS && !c->easy->strayed && c->reply.status == 0 &&
	    http_attempt_may_repeat(c, 0)) {
		try_again(c);
		return;
	}
	http_call_end(c, &err);
}

void http_attempt_on_look(void *arg)
{
	struct http *h = arg;
	CURLcode code;
	CURL *easy;

	while (httpc_multi_next(h->curl, &easy, &code)) {
		struct call *c = NULL;
		bool began;

		(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&c);
		began = http_call_reads_reply(c);
		httpc_multi_remove(h->curl, easy);
		on_done(c, code);
		reading_end(h->note, began);
	}
}

/* TLS and HTTP are curl's to parse. */
void http_attempt_on_turn(CURL *easy, bool begins, void *arg)
{
	struct http *h = arg;

	if (!begins) {
		reading_end(h->note, h->in_turn);
		h->in_turn = false;
		return;
	}
	for (const struct call *c = h->calls; c; c = c->next)
		if (c->easy && c->easy->curl == easy) {
			h->in_turn = http_call_reads_reply(c);
			return;
		}
}

void http_attempt_start(struct call *c)
{
	const struct egress_http_config *cfg = c->http->cfg;
	const struct egress_limits *l = &c->request.rq.limits;
	const enum headers_for what = cfg->portal ? cfg->portal->dialect : HEADERS_FETCH;
	const struct egress_easy_spec spec = {
		.rq = &c->request.rq,
		.url = &c->url,
		.body = buf_str(&c->body),
		.addrs = c->addrs,
		.n_addrs = c->n_addrs,
		.roots = cfg->roots,
		.credential = cfg->credential,
		.dialect = what,
		.on_header = http_reply_on_header,
		.on_body = http_reply_on_body,
		.arg = c,
	};

	c->attempts++;
	egress_reply_done(&c->reply);
	egress_reply_begin(&c->reply, what);
	if (egress_easy_new(&spec, &c->easy, &c->why) < 0 ||
	    httpc_multi_add(c->http->curl, c->easy->curl) < 0) {
		if (!err_is_set(&c->why))
			(void)err_set_id(&c->why, ERRID_EGRESS_REQUEST,
					 "curl refuses the request");
		http_call_end(c, &c->why);
		return;
	}
	http_call_wait(c, FOR_HEAD,
		       l->first_byte_usec ? l->first_byte_usec : FIRST_BYTE_USEC);
}

/* ---- where it goes ---- */

static void refuse(struct call *c, enum reason reason, const char *why)
{
	log_kv(LOG_WARN_, "a request was not sent", "host", c->url.host, "reason",
	       reason_word(reason), "why", why ? why : "", NULL);
	(void)reason_set(&c->reason, reason, &c->why, "%s", "");
	http_call_end(c, &c->why);
}

static void on_name(enum reason reason, const struct addr *addrs, size_t n,
		    const char *why, void *arg)
{
	struct call *c = arg;

	c->query = NULL;
	if (reason != REASON_NONE) {
		refuse(c, reason, why);
		return;
	}
	assert(n > 0 && n <= RESOLVE_ADDRS_MAX);
	memcpy(c->addrs, addrs, n * sizeof(*addrs));
	c->n_addrs = n;
	http_attempt_start(c);
}

static void find_address(struct call *c)
{
	enum reason reason;

	if (c->url.kind == URL_HOST_NAME) {
		c->query = resolve_start(c->http->resolver, c->url.host, c->policy,
					 on_name, c);
		if (!c->query) {
			(void)err_set_id(&c->why, ERRID_EGRESS_BUSY,
					 "too many names at once");
			http_call_end(c, &c->why);
			return;
		}
		resolve_whose(c->query, c->http->note, c->job, c->epoch);
		return;
	}
	if (addr_parse(c->url.host, &c->addrs[0]) < 0) {
		refuse(c, REASON_HOST_GRAMMAR, NULL);
		return;
	}
	reason = addr_policy_check(c->policy, &c->addrs[0]);
	if (reason != REASON_NONE) {
		refuse(c, reason, NULL);
		return;
	}
	c->n_addrs = 1;
	http_attempt_start(c);
}

/* A host's key goes to its path, or below it, by the bytes. */
static bool is_below(const char *target, const char *path)
{
	size_t n = strlen(path);

	return strncmp(target, path, n) == 0 &&
	       (target[n] == '\0' || target[n] == '/' || target[n] == '?');
}

/* The whole URL: a portal's is its base and the path, nothing else. */
static int build_url(struct call *c, struct err *err)
{
	const struct egress_portal *portal = c->http->cfg->portal;
	const char *target = c->request.rq.target;
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_TARGET_MAX_BYTES + URL_BYTES_MAX);
	if ((target[0] == '/') != (portal != NULL))
		return err_set_id(err, ERRID_EGRESS_REQUEST, "%s",
				  portal ? "a portal takes a path" : "it has no host");
	if (portal && portal->is_host && !is_below(target, portal->path))
		return err_set_id(err, ERRID_EGRESS_REQUEST,
				  "it is not below the place of that key");
	if (portal)
		buf_adds(&b, portal->url);
	buf_adds(&b, target);
	if (!buf_ok(&b))
		return err_set_id(err, ERRID_EGRESS_REQUEST, "its URL is too long");
	return url_parse(b.data, b.len, &c->url, &c->reason, err);
}

void http_attempt_begin(struct call *c)
{
	const struct egress_request *rq = &c->request.rq;
	usec_t total = rq->limits.total_usec;

	loop_timer_arm(c->total, total ? total : TOTAL_USEC);
	http_call_wait(c, FOR_NAME, FIRST_BYTE_USEC);
	for (size_t i = 0; i < rq->n_addresses; i++)
		if (addr_policy_allow(c->policy, rq->addresses[i], &c->why) < 0) {
			http_call_end(c, &c->why);
			return;
		}
	if (build_url(c, &c->why) < 0) {
		http_call_end(c, &c->why);
		return;
	}
	find_address(c);
}
