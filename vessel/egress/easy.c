/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See easy.h.
 */
#include "vessel/egress/easy.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CONNECT_USEC (10 * USEC_PER_SEC)
#define REPLY_MAX_BYTES (64u << 20)
#define ANTHROPIC_VERSION "2023-06-01"

/* ---- where it may go ---- */

static bool is_pinned(const struct egress_easy *e, const struct addr *a)
{
	for (size_t i = 0; i < e->n_addrs; i++)
		if (addr_eq(&e->addrs[i], a))
			return true;
	return false;
}

/* The last word before a SYN: whatever made curl choose this address. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *s)
{
	struct egress_easy *e = arg;
	struct addr a;
	uint16_t port;

	if (purpose != CURLSOCKTYPE_IPCXN || s->socktype != SOCK_STREAM ||
	    addr_from_sockaddr(&s->addr, s->addrlen, &a, &port) < 0 || port != e->port ||
	    !is_pinned(e, &a)) {
		e->strayed = true;
		return CURL_SOCKET_BAD;
	}
	return socket(s->family, SOCK_STREAM | SOCK_CLOEXEC, s->protocol);
}

/* After connect and TLS, before a byte of the request: who is at the other end? */
static int check_peer(void *arg, char *peer, char *own UNUSED, int peer_port,
		      int own_port UNUSED)
{
	struct egress_easy *e = arg;
	struct addr a;

	if (addr_parse(peer, &a) == 0 && peer_port == (int)e->port && is_pinned(e, &a))
		return CURL_PREREQFUNC_OK;
	e->strayed = true;
	return CURL_PREREQFUNC_ABORT;
}

/* "host:port:addr,addr": curl never resolves a name. */
static bool pin(struct egress_easy *e, const struct url *u)
{
	cleanup_buf struct buf b;

	if (u->kind != URL_HOST_NAME)
		return true;
	buf_init(&b, 4096);
	buf_addf(&b, "%s:%u:", u->host, u->port);
	for (size_t i = 0; i < e->n_addrs; i++) {
		char text[ADDR_TEXT_SIZE];

		addr_format(&e->addrs[i], text);
		buf_addf(&b, e->addrs[i].v6 ? "%s[%s]" : "%s%s", i ? "," : "", text);
	}
	e->pins = buf_ok(&b) ? curl_slist_append(NULL, b.data) : NULL;
	return e->pins && curl_easy_setopt(e->curl, CURLOPT_RESOLVE, e->pins) == CURLE_OK;
}

/* ---- settings ---- */

#define SET(e, opt, value) (curl_easy_setopt((e)->curl, CURLOPT_##opt, value) == CURLE_OK)

static long in_msec(usec_t given, usec_t standard)
{
	usec_t usec = given ? given : standard;

	return (long)((usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
}

/* Nothing from the environment, from files, or from an earlier transfer. */
static bool set_isolation(struct egress_easy *e)
{
	/* http_proxy and its kin would resolve and connect in our stead */
	return SET(e, PROXY, "") && SET(e, NOPROXY, "*") &&
	       /* ~/.netrc holds other people's passwords */
	       SET(e, NETRC, (long)CURL_NETRC_IGNORED) &&
	       /* a redirect is a new request, through the ward again */
	       SET(e, FOLLOWLOCATION, 0L) &&
	       /* jobs share no connection: one could read what another's left in it */
	       SET(e, FRESH_CONNECT, 1L) && SET(e, FORBID_REUSE, 1L) &&
	       SET(e, SSL_SESSIONID_CACHE, 0L) &&
	       /* one process, one thread: no SIGALRM */
	       SET(e, NOSIGNAL, 1L) &&
	       /* cookies, alt-svc, HSTS, DoH and unix sockets are off unless named */
	       SET(e, OPENSOCKETFUNCTION, open_socket) && SET(e, OPENSOCKETDATA, e) &&
	       SET(e, PREREQFUNCTION, check_peer) && SET(e, PREREQDATA, e);
}

static bool set_protocol(struct egress_easy *e, const struct egress_easy_spec *spec)
{
	const struct egress_limits *l = &spec->rq->limits;
	uint64_t max = l->reply_max_bytes ? l->reply_max_bytes : REPLY_MAX_BYTES;

	return SET(e, PROTOCOLS_STR, spec->url->https ? "https" : "http") &&
	       SET(e, URL, e->url) &&
	       /* the path was vetted as it stands */
	       SET(e, PATH_AS_IS, 1L) &&
	       /* no upgrade, no multiplexing, no reply without a head */
	       SET(e, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(e, HTTP09_ALLOWED, 0L) &&
	       /* an encoding that was not asked for is refused, not unpacked */
	       SET(e, HTTP_CONTENT_DECODING, 0L) &&
	       SET(e, MAXFILESIZE_LARGE, (curl_off_t)max) &&
	       SET(e, CONNECTTIMEOUT_MS, in_msec(l->connect_usec, CONNECT_USEC)) &&
	       SET(e, HEADERFUNCTION, spec->on_header) && SET(e, HEADERDATA, spec->arg) &&
	       SET(e, WRITEFUNCTION, spec->on_body) && SET(e, WRITEDATA, spec->arg) &&
	       SET(e, PRIVATE, spec->arg);
}

static CURLcode on_tls(CURL *curl UNUSED, void *ctx, void *roots)
{
	return egress_roots_use(roots, ctx) < 0 ? CURLE_SSL_CERTPROBLEM : CURLE_OK;
}

static bool set_tls(struct egress_easy *e, const struct egress_easy_spec *spec)
{
	return SET(e, SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
	       SET(e, SSL_VERIFYPEER, 1L) && SET(e, SSL_VERIFYHOST, 2L) &&
	       /* no file can be opened: the authorities come from roots.h, for each
		* connection anew: curl would go on with those of the first one */
	       SET(e, CAINFO, NULL) && SET(e, CAPATH, NULL) &&
	       SET(e, CA_CACHE_TIMEOUT, 0L) && SET(e, SSL_CTX_FUNCTION, on_tls) &&
	       SET(e, SSL_CTX_DATA, (void *)(uintptr_t)spec->roots);
}

static bool set_method(struct egress_easy *e, const struct egress_easy_spec *spec)
{
	if (str_eq(spec->rq->method, "GET"))
		return SET(e, HTTPGET, 1L);
	if (str_eq(spec->rq->method, "HEAD"))
		return SET(e, NOBODY, 1L);
	if (str_eq(spec->rq->method, "DELETE") && spec->rq->body_len == 0)
		return SET(e, HTTPGET, 1L) && SET(e, CUSTOMREQUEST, "DELETE");
	/* in memory, also an empty one: Content-Length, never chunked */
	return SET(e, POST, 1L) &&
	       (str_eq(spec->rq->method, "POST") ||
		SET(e, CUSTOMREQUEST, spec->rq->method)) &&
	       SET(e, POSTFIELDSIZE_LARGE, (curl_off_t)spec->rq->body_len) &&
	       SET(e, POSTFIELDS, (const char *)spec->body);
}

static bool add_line(struct egress_easy *e, const char *line)
{
	struct curl_slist *more = curl_slist_append(e->headers, line);

	assert(more);
	e->headers = more;
	return true;
}

static bool has(const struct egress_request *rq, const char *name)
{
	for (size_t i = 0; i < rq->n_headers; i++)
		if (strcasecmp(rq->headers[i].name, name) == 0)
			return true;
	return false;
}

static void add_credential(struct egress_easy *e, const struct egress_easy_spec *spec)
{
	if (spec->dialect == HEADERS_ANTHROPIC && !has(spec->rq, "anthropic-version"))
		(void)add_line(e, "anthropic-version: " ANTHROPIC_VERSION);
	if (spec->credential)
		(void)add_line(e, spec->credential);
}

static bool set_headers(struct egress_easy *e, const struct egress_easy_spec *spec)
{
	/* Expect, Accept and the form type of POST are curl's own ideas. */
	static const char *const ours[] = {"Accept-Encoding: identity", "Expect:"};
	static const char *const unless[] = {"Accept", "Content-Type"};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		(void)add_line(e, ours[i]);
	for (size_t i = 0; i < ARRAY_SIZE(unless); i++) {
		char off[32];

		if (!has(spec->rq, unless[i]) &&
		    (str_fmt(off, sizeof(off), "%s:", unless[i]) < 0 ||
		     !add_line(e, off)))
			return false;
	}
	for (size_t i = 0; i < spec->rq->n_headers; i++) {
		const struct egress_header *h = &spec->rq->headers[i];
		/* "name;" is how curl is told to send an empty one */
		cleanup_free char *line = *h->value
						  ? xasprintf("%s: %s", h->name, h->value)
						  : xasprintf("%s;", h->name);

		(void)add_line(e, line);
	}
	add_credential(e, spec);
	return SET(e, HTTPHEADER, e->headers);
}

int egress_easy_new(const struct egress_easy_spec *spec, struct egress_easy **ret,
		    struct err *err)
{
	struct egress_easy *e = xnew(struct egress_easy);
	cleanup_buf struct buf url;

	buf_init(&url, 2 * URL_BYTES_MAX);
	url_write(spec->url, &url);
	e->url = xstrdup(buf_str(&url));
	e->addrs = spec->addrs;
	e->n_addrs = spec->n_addrs;
	e->port = spec->url->port;
	e->curl = curl_easy_init();
	assert(e->curl);
	if (!buf_ok(&url) || !set_isolation(e) || !set_protocol(e, spec) ||
	    !set_tls(e, spec) || !set_method(e, spec) || !pin(e, spec->url) ||
	    !set_headers(e, spec)) {
		egress_easy_free(e);
		return err_set_id(err, ERRID_EGRESS_REQUEST, "curl refuses a setting");
	}
	*ret = e;
	return 0;
}

void egress_easy_free(struct egress_easy *e)
{
	if (!e)
		return;
	/* wiped, all of it (wiped.h) */
	curl_easy_cleanup(e->curl);
	curl_slist_free_all(e->headers);
	curl_slist_free_all(e->pins);
	free(e->url);
	free(e);
}

bool egress_easy_sent(const struct egress_easy *e)
{
	curl_off_t usec = 0;

	return curl_easy_getinfo(e->curl, CURLINFO_PRETRANSFER_TIME_T, &usec) ==
		       CURLE_OK &&
	       usec > 0;
}

int egress_easy_err(const struct egress_easy *e, CURLcode code, struct err *err)
{
	if (e->strayed)
		return reason_set(NULL, REASON_NOT_PINNED, err, "%s", e->url);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set_id(err, ERRID_EGRESS_TIMEOUT, "to connect");
	if (code == CURLE_FILESIZE_EXCEEDED)
		return err_set_id(err, ERRID_EGRESS_TOO_LARGE,
				  "by the length that it names");
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
	    code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_CIPHER ||
	    code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR)
		return err_set_id(err, ERRID_EGRESS_TLS, "%s", curl_easy_strerror(code));
	/* 3.7: nothing of the network's inside gets out by a message */
	if (!egress_easy_sent(e))
		return err_set_id(err, ERRID_EGRESS_CONNECT, "no connection came about");
	return err_set_id(err, ERRID_EGRESS_REPLY, "%s", curl_easy_strerror(code));
}
