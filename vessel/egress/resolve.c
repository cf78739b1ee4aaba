/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Theory of operation. A query is two questions, A and AAAA, each with a socket of its own: a
 * fresh port and a fresh id for every try, connected to the one server, so that an answer
 * must come from there. A try ends by a usable answer, a failure of that server or a
 * time-out; then the next server is asked, some rounds over. A truncated answer is asked for
 * again by TCP within the same try. Both questions must end well; then all addresses of
 * both stand before the policy together.
 *
 * The cache holds addresses, not verdicts: what comes out of it is judged again.
 */
#include "vessel/egress/resolve.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/worker/reading.h"
#include "vessel/egress/dns.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#define TCP_PREFIX 2u

struct ask;

/* One of the two questions. */
struct ask {
	struct resolve_query *q;
	enum dns_type type;
	struct loop_io *io;
	struct loop_timer *timer;
	int fd;
	bool tcp, done;
	uint16_t id;
	unsigned try_no;
	uint8_t *out; /* TCP: what is not sent yet */
	size_t out_len, out_at;
	uint8_t *in; /* TCP: what came so far, with the prefix */
	size_t in_len;
	struct dns_answer answer;
};

struct resolve_query {
	struct resolver *r;
	struct resolve_query *next, **link;
	char name[254];
	const struct addr_policy *policy;
	resolve_done *done;
	void *arg;
	struct ask ask[2];
	struct loop_timer *at_once; /* the answer that is there already */
	struct addr addrs[RESOLVE_ADDRS_MAX];
	size_t n;
	unsigned generation; /* it began in */
	struct reading *note;
	job_id_t job;
	int64_t epoch;
};

struct cached {
	char name[254];
	struct addr addrs[RESOLVE_ADDRS_MAX];
	size_t n;
	usec_t until, used;
};

struct resolver {
	struct loop *loop;
	struct resolve_config cfg;
	struct resolve_query *queries;
	unsigned n_queries;
	struct cached *cache; /* RESOLVE_CACHE_MAX of them */
	unsigned generation;  /* of the configuration */
};

static void ask_try(struct ask *a);

/* ---- cache ---- */

static struct cached *cache_find(struct resolver *r, const char *name)
{
	usec_t now = clock_boot_usec();

	for (unsigned i = 0; i < RESOLVE_CACHE_MAX; i++) {
		struct cached *e = &r->cache[i];

		if (e->n > 0 && e->until > now && str_eq(e->name, name)) {
			e->used = now;
			return e;
		}
	}
	return NULL;
}

static void cache_put(const struct resolve_query *q, usec_t ttl_usec)
{
	struct cached *at = q->r->cache;
	usec_t now = clock_boot_usec();

	/* An entry of this name, or the one that was not used for the longest time. */
	for (unsigned i = 0; i < RESOLVE_CACHE_MAX; i++) {
		struct cached *e = &q->r->cache[i];

		if (str_eq(e->name, q->name)) {
			at = e;
			break;
		}
		if (e->used < at->used)
			at = e;
	}
	if (ttl_usec < RESOLVE_TTL_MIN_USEC)
		ttl_usec = RESOLVE_TTL_MIN_USEC;
	if (ttl_usec > RESOLVE_TTL_MAX_USEC)
		ttl_usec = RESOLVE_TTL_MAX_USEC;
	memcpy(at->name, q->name, sizeof(at->name));
	memcpy(at->addrs, q->addrs, sizeof(at->addrs));
	at->n = q->n;
	at->used = now;
	at->until = now + ttl_usec;
}

/* ---- the end of a query ---- */

static void ask_stop(struct ask *a)
{
	loop_io_free(a->io);
	a->io = NULL;
	fd_close(&a->fd);
	if (a->timer)
		loop_timer_disarm(a->timer);
	free(a->out);
	free(a->in);
	a->out = a->in = NULL;
	a->out_len = a->out_at = a->in_len = 0;
}

static void query_free(struct resolve_query *q)
{
	for (unsigned i = 0; i < 2; i++) {
		ask_stop(&q->ask[i]);
		loop_timer_free(q->ask[i].timer);
	}
	loop_timer_free(q->at_once);
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
	q->r->n_queries--;
	free(q);
}

static void query_end(struct resolve_query *q, enum reason reason, const char *why)
{
	resolve_done *done = q->done;
	void *arg = q->arg;
	struct addr addrs[RESOLVE_ADDRS_MAX];
	size_t n = reason == REASON_NONE ? q->n : 0;

	memcpy(addrs, q->addrs, sizeof(addrs));
	query_free(q);
	done(reason, addrs, n, why, arg);
}

/* Every address, or none. */
static void query_judge(struct resolve_query *q)
{
	char why[ADDR_TEXT_SIZE + 32], text[ADDR_TEXT_SIZE];

	if (q->n == 0) {
		query_end(q, REASON_DNS, "no address");
		return;
	}
	for (size_t i = 0; i < q->n; i++) {
		enum reason r = addr_policy_check(q->policy, &q->addrs[i]);

		if (r == REASON_NONE)
			continue;
		addr_format(&q->addrs[i], text);
		if (str_fmt(why, sizeof(why), "one address is %s", text) < 0)
			why[0] = '\0';
		query_end(q, r, why);
		return;
	}
	query_end(q, REASON_NONE, "");
}

static void query_answered(struct resolve_query *q)
{
	usec_t ttl = RESOLVE_TTL_MAX_USEC;

	for (unsigned i = 0; i < 2; i++) {
		const struct dns_answer *a = &q->ask[i].answer;

		for (size_t k = 0; k < a->n; k++) {
			if (q->n == RESOLVE_ADDRS_MAX) {
				query_end(q, REASON_DNS, "too many addresses");
				return;
			}
			q->addrs[q->n++] = a->addr[k];
		}
		if (a->n > 0 && a->ttl * USEC_PER_SEC < ttl)
			ttl = a->ttl * USEC_PER_SEC;
	}
	/* another network's answer is not this one's */
	if (q->n > 0 && q->generation == q->r->generation)
		cache_put(q, ttl);
	query_judge(q);
}

/* ---- one question ---- */

static void ask_failed(struct ask *a, const char *why)
{
	const struct resolve_config *c = &a->q->r->cfg;

	ask_stop(a);
	if (++a->try_no >= c->n_servers * c->tries)
		query_end(a->q, REASON_DNS, why);
	else
		ask_try(a);
}

static void ask_answered(struct ask *a)
{
	struct resolve_query *q = a->q;

	ask_stop(a);
	a->done = true;
	if (q->ask[0].done && q->ask[1].done)
		query_answered(q);
}

static void ask_by_tcp(struct ask *a);

/* False: it was not for us, go on waiting. */
static bool ask_take(struct ask *a, const uint8_t *msg, size_t len)
{
	const struct resolve_query *q = a->q;
	bool began = reading_begin(q->note, q->job, q->epoch, READING_REPLY);
	enum dns_verdict r = dns_parse(msg, len, a->id, q->name, a->type, &a->answer);

	reading_end(q->note, began);
	switch (r) {
	case DNS_OK:
		ask_answered(a);
		return true;
	case DNS_FOREIGN:
		return false;
	case DNS_TRUNCATED:
		if (a->tcp)
			ask_failed(a, "truncated");
		else
			ask_by_tcp(a);
		return true;
	case DNS_NO_NAME:
		query_end(a->q, REASON_DNS, "no such name");
		return true;
	case DNS_LOOP:
		query_end(a->q, REASON_DNS, "a loop or chain of aliases");
		return true;
	case DNS_REFUSED:
		ask_failed(a, "the server fails or refuses");
		return true;
	case DNS_BAD:
		break;
	}
	ask_failed(a, "the answer makes no sense");
	return true;
}

static void on_datagram(int fd, unsigned what UNUSED, void *arg)
{
	struct ask *a = arg;
	uint8_t msg[DNS_ANSWER_MAX];
	ssize_t n = recv(fd, msg, sizeof(msg), 0);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		ask_failed(a, "the server is not there");
	else if (n >= 0)
		(void)ask_take(a, msg, (size_t)n);
}

static void on_timeout(void *arg)
{
	ask_failed(arg, "time-out");
}

/* A socket to the server of this try; -1 when there is no way. */
static int ask_connect(struct ask *a, int type)
{
	const struct resolve_config *c = &a->q->r->cfg;
	const struct addr *server =
		&c->server[c->n_servers ? a->try_no % c->n_servers : 0];
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(server, c->port, &sa);

	if (c->n_servers == 0) /* since it was asked for */
		return -1;
	a->fd = socket(server->v6 ? AF_INET6 : AF_INET,
		       type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return -1;
	if (connect(a->fd, (const struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS)
		return -1;
	random_bytes(&a->id, sizeof(a->id));
	return 0;
}

static void ask_try(struct ask *a)
{
	uint8_t query[DNS_QUERY_MAX];
	size_t len;

	a->tcp = false;
	/* A try that fails at once waits for its time-out too: it may be the network that is
	 * away for a moment, and nothing is called back from within a call. */
	loop_timer_arm(a->timer, a->q->r->cfg.try_usec);
	if (ask_connect(a, SOCK_DGRAM) < 0)
		return;
	len = dns_query(a->id, a->q->name, a->type, query);
	if (len == 0 || send(a->fd, query, len, MSG_NOSIGNAL) < 0)
		return;
	a->io = loop_io_new(a->q->r->loop, a->fd, LOOP_READ, on_datagram, a);
}

static void tcp_read(struct ask *a)
{
	size_t want = TCP_PREFIX, len = 0;
	ssize_t n;

	if (a->in_len >= TCP_PREFIX) {
		len = (size_t)a->in[0] << 8 | a->in[1];
		want = TCP_PREFIX + len;
	}
	n = recv(a->fd, a->in + a->in_len, want - a->in_len, 0);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		ask_failed(a, "the connection ended");
		return;
	}
	if (n < 0)
		return;
	a->in_len += (size_t)n;
	if (a->in_len < TCP_PREFIX)
		return;
	len = (size_t)a->in[0] << 8 | a->in[1];
	if (len == 0 || len > DNS_ANSWER_MAX)
		ask_failed(a, "the answer is too long");
	else if (a->in_len == TCP_PREFIX + len && !ask_take(a, a->in + TCP_PREFIX, len))
		ask_failed(a, "the answer is to something else");
}

static void on_stream(int fd, unsigned what, void *arg)
{
	struct ask *a = arg;
	ssize_t n;

	if (what & LOOP_WRITE) {
		n = send(fd, a->out + a->out_at, a->out_len - a->out_at, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			ask_failed(a, "the server is not there");
			return;
		}
		a->out_at += n > 0 ? (size_t)n : 0;
		if (a->out_at == a->out_len)
			loop_io_set(a->io, LOOP_READ);
		return;
	}
	tcp_read(a);
}

static void ask_by_tcp(struct ask *a)
{
	size_t len;

	/* The time-out of this try goes on. */
	loop_io_free(a->io);
	a->io = NULL;
	fd_close(&a->fd);
	a->tcp = true;
	if (ask_connect(a, SOCK_STREAM) < 0) {
		ask_failed(a, "no TCP to the server");
		return;
	}
	a->out = xmalloc(TCP_PREFIX + DNS_QUERY_MAX);
	a->in = xmalloc(TCP_PREFIX + DNS_ANSWER_MAX);
	len = dns_query(a->id, a->q->name, a->type, a->out + TCP_PREFIX);
	a->out[0] = (uint8_t)(len >> 8);
	a->out[1] = (uint8_t)len;
	a->out_len = TCP_PREFIX + len;
	a->io = loop_io_new(a->q->r->loop, a->fd, LOOP_WRITE, on_stream, a);
}

/* ---- the whole ---- */

static void set_config(struct resolver *r, const struct resolve_config *config)
{
	assert(config->n_servers <= RESOLVE_SERVERS_MAX);
	r->cfg = *config;
	r->cfg.hosts = xcalloc(config->n_hosts + 1, sizeof(*r->cfg.hosts));
	if (config->n_hosts > 0)
		memcpy(r->cfg.hosts, config->hosts,
		       config->n_hosts * sizeof(*config->hosts));
}

struct resolver *resolver_new(struct loop *l, const struct resolve_config *config)
{
	struct resolver *r = xnew(struct resolver);

	r->loop = l;
	set_config(r, config);
	r->cache = xcalloc(RESOLVE_CACHE_MAX, sizeof(*r->cache));
	return r;
}

void resolver_set(struct resolver *r, const struct resolve_config *config)
{
	resolve_config_done(&r->cfg);
	set_config(r, config);
	memset(r->cache, 0, RESOLVE_CACHE_MAX * sizeof(*r->cache));
	r->generation++;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	while (r->queries)
		query_free(r->queries);
	resolve_config_done(&r->cfg);
	free(r->cache);
	free(r);
}

/* An address in the place of a name, the hosts file, the cache. */
static bool known_already(struct resolve_query *q)
{
	const struct resolve_config *c = &q->r->cfg;
	const struct cached *e;

	if (addr_parse(q->name, &q->addrs[0]) == 0) {
		q->n = 1;
		return true;
	}
	for (size_t i = 0; i < c->n_hosts && q->n < RESOLVE_ADDRS_MAX; i++)
		if (str_eq(c->hosts[i].name, q->name))
			q->addrs[q->n++] = c->hosts[i].addr;
	if (q->n > 0)
		return true;
	e = cache_find(q->r, q->name);
	if (e) {
		memcpy(q->addrs, e->addrs, sizeof(q->addrs));
		q->n = e->n;
	}
	return q->n > 0;
}

static void on_known(void *arg)
{
	query_judge(arg);
}

static void on_no_way(void *arg)
{
	struct resolve_query *q = arg;

	query_end(q, REASON_DNS,
		  q->r->cfg.n_servers == 0 ? "no name server is configured"
					   : "a name of one label");
}

struct resolve_query *resolve_start(struct resolver *r, const char *name,
				    const struct addr_policy *policy, resolve_done *done,
				    void *arg)
{
	struct resolve_query *q;

	if (r->n_queries == RESOLVE_QUERIES_MAX)
		return NULL;
	q = xnew(struct resolve_query);
	q->r = r;
	q->generation = r->generation;
	q->policy = policy;
	q->done = done;
	q->arg = arg;
	q->next = r->queries;
	q->link = &r->queries;
	if (q->next)
		q->next->link = &q->next;
	r->queries = q;
	r->n_queries++;
	q->ask[0] = (struct ask){.q = q, .type = DNS_TYPE_A, .fd = -1};
	q->ask[1] = (struct ask){.q = q, .type = DNS_TYPE_AAAA, .fd = -1};
	/* A name that is too long finds no answer. */
	if (str_copy(q->name, sizeof(q->name), name) == 0 && known_already(q)) {
		q->at_once = loop_timer_new(r->loop, on_known, q);
		loop_timer_arm(q->at_once, 0);
		return q;
	}
	if (r->cfg.n_servers == 0 || r->cfg.tries == 0 || !strchr(q->name, '.')) {
		q->at_once = loop_timer_new(r->loop, on_no_way, q);
		loop_timer_arm(q->at_once, 0);
		return q;
	}
	for (unsigned i = 0; i < 2; i++) {
		q->ask[i].timer = loop_timer_new(r->loop, on_timeout, &q->ask[i]);
		ask_try(&q->ask[i]);
	}
	return q;
}

void resolve_whose(struct resolve_query *q, struct reading *note, job_id_t job,
		   int64_t epoch)
{
	q->note = note;
	q->job = job;
	q->epoch = epoch;
}

void resolve_cancel(struct resolve_query *q)
{
	if (q)
		query_free(q);
}
