/* SPDX-License-Identifier: Apache-2.0 */
/* A name server that lies stands on the same loop, on loopback. */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/dns.h"
#include "vessel/egress/resolve.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

TestSuite(resolve, .timeout = 30);

/* ---- messages ---- */

struct msg {
	uint8_t b[2048];
	size_t n;
};

static void put(struct msg *m, const void *data, size_t n)
{
	memcpy(m->b + m->n, data, n);
	m->n += n;
}

static void put16(struct msg *m, unsigned v)
{
	put(m, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_name(struct msg *m, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		put(m, (uint8_t[]){(uint8_t)n}, 1);
		put(m, name, n);
		name += n + (name[n] == '.');
	}
	put(m, "", 1);
}

static void put_rr(struct msg *m, const char *owner, unsigned type, uint32_t ttl,
		   const void *data, size_t n)
{
	put_name(m, owner);
	put16(m, type);
	put16(m, 1);
	put16(m, ttl >> 16);
	put16(m, ttl & 0xffff);
	put16(m, (unsigned)n);
	put(m, data, n);
	m->b[7]++; /* answers */
}

static void put_cname(struct msg *m, const char *owner, const char *target)
{
	struct msg t = {.n = 0};

	put_name(&t, target);
	put_rr(m, owner, 5, 60, t.b, t.n);
}

static void put_a(struct msg *m, const char *owner, const char *addr, uint32_t ttl)
{
	struct addr a;

	cr_assert_eq(addr_parse(addr, &a), 0);
	put_rr(m, owner, a.v6 ? 28 : 1, ttl, a.b, a.v6 ? 16 : 4);
}

/* The beginning of the answer to a query. */
static struct msg answer_to(const uint8_t *query, size_t n)
{
	struct msg m = {.n = 0};

	put(&m, query, n);
	m.b[2] |= 0x80;
	m.b[3] |= 0x80;
	return m;
}

static struct msg asked(const char *name, enum dns_type type)
{
	uint8_t q[DNS_QUERY_MAX];

	return answer_to(q, dns_query(7, name, type, q));
}

static enum dns_verdict parse(const struct msg *m, struct dns_answer *a)
{
	return dns_parse(m->b, m->n, 7, "a.example", DNS_TYPE_A, a);
}

Test(dns, is_not_fooled_by_foreign_answers)
{
	struct dns_answer a;
	struct msg m = asked("a.example", DNS_TYPE_A);

	put_a(&m, "a.example", "1.2.3.4", 60);
	cr_assert_eq(parse(&m, &a), DNS_OK);
	m.b[0] ^= 1; /* id */
	cr_assert_eq(parse(&m, &a), DNS_FOREIGN);
	m.b[0] ^= 1;
	m.b[2] &= 0x7f; /* a question, not an answer */
	cr_assert_eq(parse(&m, &a), DNS_FOREIGN);
	m = asked("b.example", DNS_TYPE_A);
	put_a(&m, "a.example", "1.2.3.4", 60);
	cr_assert_eq(parse(&m, &a), DNS_FOREIGN);
	m = asked("a.example", DNS_TYPE_AAAA);
	cr_assert_eq(parse(&m, &a), DNS_FOREIGN);
	/* Records about other names, and of other types, do not count. */
	m = asked("a.example", DNS_TYPE_A);
	put_a(&m, "evil.example", "1.2.3.4", 60);
	put_a(&m, "a.example", "2606:4700::1", 60);
	cr_assert_eq(parse(&m, &a), DNS_OK);
	cr_assert_eq(a.n, 0);
}

Test(dns, every_cut_is_survived)
{
	struct msg m = asked("a.example", DNS_TYPE_A);
	struct dns_answer a;

	put_cname(&m, "a.example", "b.example");
	put_a(&m, "b.example", "1.2.3.4", 60);
	cr_assert_eq(parse(&m, &a), DNS_OK);
	cr_assert_eq(a.n, 1);
	for (size_t n = 0; n < m.n; n++) {
		struct msg cut = m;

		cut.n = n;
		cr_assert_neq(parse(&cut, &a), DNS_OK, "cut at %zu", n);
	}
}

Test(dns, aliases_end)
{
	struct dns_answer a;

	for (unsigned n = 1; n <= DNS_ALIASES_MAX + 1; n++) {
		struct msg m = asked("a.example", DNS_TYPE_A);
		char from[16] = "a.example", to[16];

		for (unsigned i = 1; i <= n; i++) {
			cr_assert_eq(str_fmt(to, sizeof(to), "n%u.example", i), 0);
			put_cname(&m, from, to);
			memcpy(from, to, sizeof(from));
		}
		put_a(&m, to, "1.2.3.4", 60);
		cr_assert_eq(parse(&m, &a), n <= DNS_ALIASES_MAX ? DNS_OK : DNS_LOOP);
	}
	struct msg m = asked("a.example", DNS_TYPE_A);
	put_cname(&m, "a.example", "b.example");
	put_cname(&m, "b.example", "a.example");
	put_a(&m, "a.example", "1.2.3.4", 60);
	cr_assert_eq(parse(&m, &a), DNS_LOOP);
	m = asked("a.example", DNS_TYPE_A);
	put_cname(&m, "a.example", "a.example");
	cr_assert_eq(parse(&m, &a), DNS_LOOP);
}

Test(dns, ttl_and_case)
{
	struct msg m = asked("a.example", DNS_TYPE_A);
	struct dns_answer a;

	put_cname(&m, "A.Example", "B.EXAMPLE");
	put_a(&m, "b.example", "1.2.3.4", 30);
	put_a(&m, "b.example", "1.2.3.5", 0x80000001);
	cr_assert_eq(parse(&m, &a), DNS_OK);
	cr_assert_eq(a.n, 2);
	cr_assert_eq(a.ttl, 0);
	cr_assert_eq(a.aliases, 1);
	for (unsigned i = 2; i <= DNS_ADDRS_MAX; i++)
		put_a(&m, "b.example", "1.2.3.6", 30);
	cr_assert_eq(parse(&m, &a), DNS_BAD);
}

/* ---- the resolver against a server that lies ---- */

struct world {
	struct loop *loop;
	struct resolver *r;
	struct addr_policy policy;
	int udp, tcp, peer;
	struct loop_io *io, *accept_io, *peer_io;
	unsigned queries, tcp_queries;
	/* what the callback said */
	enum reason reason;
	struct addr addrs[RESOLVE_ADDRS_MAX];
	size_t n;
	char why[80];
	unsigned calls;
};

/* Fills the answer by the first label of the name; false: stay silent. */
static bool lie(struct world *w, struct msg *m, const char *name, unsigned type, bool tcp)
{
	bool v6 = type == 28;

	if (str_starts(name, "silent"))
		return false;
	if (str_starts(name, "nx"))
		m->b[3] |= 3;
	else if (str_starts(name, "refused"))
		m->b[3] |= 5;
	else if (str_starts(name, "public"))
		put_a(m, name, v6 ? "2606:4700::1" : "8.8.8.8", 1000);
	else if (str_starts(name, "v4only")) {
		if (!v6)
			put_a(m, name, "8.8.8.8", 0);
	} else if (str_starts(name, "private"))
		put_a(m, name, v6 ? "fd00::1" : "127.0.0.1", 60);
	else if (str_starts(name, "mixed")) {
		put_a(m, name, v6 ? "2606:4700::1" : "8.8.8.8", 60);
		if (!v6)
			put_a(m, name, "10.0.0.1", 60);
	} else if (str_starts(name, "mapped"))
		put_a(m, name, v6 ? "::ffff:10.0.0.1" : "8.8.8.8", 60);
	else if (str_starts(name, "halfnx")) {
		if (v6)
			m->b[3] |= 3;
		else
			put_a(m, name, "8.8.8.8", 60);
	} else if (str_starts(name, "loop")) {
		put_cname(m, name, "b.example");
		put_cname(m, "b.example", name);
	} else if (str_starts(name, "rebind")) {
		put_a(m, name,
		      v6		? "2606:4700::1"
		      : w->queries <= 2 ? "8.8.8.8"
					: "10.0.0.1",
		      0);
	} else if (str_starts(name, "big")) {
		if (!tcp)
			m->b[2] |= 2;
		else
			put_a(m, name, v6 ? "2606:4700::1" : "8.8.8.8", 60);
	} else if (str_starts(name, "junk")) {
		m->b[7] = 3;
		put(m, "\xc0\xff\xff", 3);
	}
	return true;
}

static struct msg reply(struct world *w, const uint8_t *q, size_t n, bool tcp,
			bool *silent)
{
	struct msg m = answer_to(q, n);
	char name[256] = "";
	size_t at = 12, to = 0;

	while (q[at] && at < n) {
		memcpy(name + to, q + at + 1, q[at]);
		to += q[at];
		name[to++] = '.';
		at += 1u + q[at];
	}
	name[to - 1] = '\0';
	*silent = !lie(w, &m, name, (unsigned)q[n - 3], tcp);
	return m;
}

static void on_udp(int fd, unsigned what UNUSED, void *arg)
{
	struct world *w = arg;
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	uint8_t q[512];
	ssize_t n = recvfrom(fd, q, sizeof(q), 0, (struct sockaddr *)&from, &len);
	bool silent;
	struct msg m;

	cr_assert_gt(n, 16);
	w->queries++;
	m = reply(w, q, (size_t)n, false, &silent);
	if (!silent)
		cr_assert_gt(sendto(fd, m.b, m.n, 0, (struct sockaddr *)&from, len), 0);
}

static void on_peer(int fd, unsigned what UNUSED, void *arg)
{
	struct world *w = arg;
	uint8_t q[514];
	ssize_t n = recv(fd, q, sizeof(q), 0);
	struct msg m, out = {.n = 0};
	bool silent;

	if (n <= 2)
		return;
	w->tcp_queries++;
	m = reply(w, q + 2, (size_t)n - 2, true, &silent);
	put16(&out, (unsigned)m.n);
	put(&out, m.b, m.n);
	/* In two pieces. */
	cr_assert_eq(send(fd, out.b, 1, 0), 1);
	cr_assert_gt(send(fd, out.b + 1, out.n - 1, 0), 0);
}

static void on_accept(int fd, unsigned what UNUSED, void *arg)
{
	struct world *w = arg;

	/* Two questions: two connections; the test keeps what it cannot close yet. */
	w->peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(w->peer, 0);
	loop_io_free(w->peer_io);
	w->peer_io = loop_io_new(w->loop, w->peer, LOOP_READ, on_peer, w);
}

static void on_done(enum reason reason, const struct addr *addrs, size_t n,
		    const char *why, void *arg)
{
	struct world *w = arg;

	w->calls++;
	w->reason = reason;
	w->n = n;
	memcpy(w->addrs, addrs, n * sizeof(*addrs));
	cr_assert_eq(str_fmt(w->why, sizeof(w->why), "%s", why), 0);
	loop_stop(w->loop, 0);
}

static void world_done(struct world *w)
{
	resolver_free(w->r);
	loop_io_free(w->io);
	loop_io_free(w->accept_io);
	loop_io_free(w->peer_io);
	loop_free(w->loop);
	fd_close(&w->udp);
	fd_close(&w->tcp);
	fd_close(&w->peer);
}
#define cleanup_world __attribute__((cleanup(world_done)))

static void world_init(struct world *w)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct resolve_config c = {.n_servers = 1, .tries = 2, .try_usec = 150000};
	socklen_t len = sizeof(sa);
	struct err err = ERR_INIT;

	*w = (struct world){.peer = -1};
	cr_assert_eq(loop_new(&w->loop, &err), 0);
	w->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(w->tcp, (struct sockaddr *)&sa, len), 0);
	cr_assert_eq(listen(w->tcp, 8), 0);
	cr_assert_eq(getsockname(w->tcp, (struct sockaddr *)&sa, &len), 0);
	w->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(w->udp, (struct sockaddr *)&sa, len), 0);
	c.port = ntohs(sa.sin_port);
	cr_assert_eq(addr_parse("127.0.0.1", &c.server[0]), 0);
	c.hosts = (struct resolve_host[]){{.name = "box"}, {.name = "two.hosts.example"}};
	c.n_hosts = 2;
	cr_assert_eq(addr_parse("10.9.9.9", &c.hosts[0].addr), 0);
	cr_assert_eq(addr_parse("8.8.4.4", &c.hosts[1].addr), 0);
	w->io = loop_io_new(w->loop, w->udp, LOOP_READ, on_udp, w);
	w->accept_io = loop_io_new(w->loop, w->tcp, LOOP_READ, on_accept, w);
	w->r = resolver_new(w->loop, &c);
}

static enum reason ask(struct world *w, const char *name)
{
	struct err err = ERR_INIT;
	unsigned before = w->calls;

	cr_assert_not_null(resolve_start(w->r, name, &w->policy, on_done, w));
	cr_assert_eq(w->calls, before, "called back from within");
	cr_assert_eq(loop_run(w->loop, &err), 0);
	cr_assert_eq(w->calls, before + 1);
	cr_assert_eq(w->reason == REASON_NONE, w->n > 0);
	return w->reason;
}

Test(resolve, one_failure_for_whatever_goes_wrong)
{
	static const char *const names[] = {
		"nx.example",	"refused.example", "silent.example", "loop.example",
		"junk.example", "empty.example",   "halfnx.example", "api"};
	char label[64], longer[300] = "";
	cleanup_world struct world w;

	world_init(&w);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq(ask(&w, names[i]), REASON_DNS, "%s", names[i]);
	memset(label, 'a', 63);
	label[63] = '\0';
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(str_fmt(longer + (size_t)64 * i, 80, "%s.", label), 0);
	cr_assert_eq(ask(&w, longer), REASON_DNS);
}

/* Another network: nothing of the old one goes on, neither its servers nor what they said. */
Test(resolve, new_servers_are_asked_and_old_answers_forgotten)
{
	struct resolve_config c = {.tries = 2, .try_usec = 150000}, none = c;
	cleanup_world struct world w;
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);

	world_init(&w);
	cr_assert_eq(ask(&w, "public.example"), REASON_NONE);
	resolver_set(w.r, &none);
	cr_assert_eq(ask(&w, "public.example"), REASON_DNS);
	cr_assert_eq(ask(&w, "two.hosts.example"), REASON_DNS);
	cr_assert_eq(getsockname(w.udp, (struct sockaddr *)&sa, &len), 0);
	c.port = ntohs(sa.sin_port);
	c.n_servers = 1;
	cr_assert_eq(addr_parse("127.0.0.1", &c.server[0]), 0);
	resolver_set(w.r, &c);
	cr_assert_eq(ask(&w, "public.example"), REASON_NONE);
}

static void take_servers_away(void *arg)
{
	const struct resolve_config none = {.tries = 2, .try_usec = 150000};
	struct world *w = arg;

	resolver_set(w->r, &none);
}

Test(resolve, servers_may_go_while_one_is_asked)
{
	cleanup_world struct world w;
	struct loop_timer *t;

	world_init(&w);
	t = loop_timer_new(w.loop, take_servers_away, &w);
	loop_timer_arm(t, 1000);
	cr_assert_eq(ask(&w, "silent.example"), REASON_DNS);
	loop_timer_free(t);
}

Test(resolve, every_address_must_be_public)
{
	cleanup_world struct world w;

	world_init(&w);
	cr_assert_eq(ask(&w, "private.example"), REASON_ADDR_PRIVATE);
	cr_assert_eq(ask(&w, "mixed.example"), REASON_ADDR_PRIVATE);
	cr_assert_eq(w.n, 0);
	cr_assert_eq(ask(&w, "mapped.example"), REASON_ADDR_PRIVATE);
	cr_assert_eq(ask(&w, "127.0.0.1"), REASON_ADDR_PRIVATE);
	cr_assert_eq(ask(&w, "box"), REASON_ADDR_PRIVATE);
	cr_assert_eq(ask(&w, "public.example"), REASON_NONE);
	cr_assert_eq(w.n, 2);
	cr_assert_eq(ask(&w, "two.hosts.example"), REASON_NONE);
	cr_assert_eq(w.n, 1);
	/* Named one by one. */
	cr_assert_eq(addr_policy_allow(&w.policy, "10.9.9.9", NULL), 0);
	cr_assert_eq(ask(&w, "box"), REASON_NONE);
	cr_assert_eq(addr_policy_allow(&w.policy, "127.0.0.1", NULL), 0);
	cr_assert_eq(ask(&w, "private.example"), REASON_ADDR_PRIVATE,
		     "fd00::1 is not named");
	cr_assert_eq(addr_policy_allow(&w.policy, "fd00::1", NULL), 0);
	cr_assert_eq(ask(&w, "private.example"), REASON_NONE);
	cr_assert_eq(w.n, 2);
	/* What is this host's own is not public, whatever its number. */
	cr_assert_eq(addr_parse("8.8.8.8", &w.policy.own[w.policy.n_own++]), 0);
	cr_assert_eq(ask(&w, "public.example"), REASON_SELF);
}

Test(resolve, what_was_remembered_is_judged_again)
{
	cleanup_world struct world w;
	unsigned asked_before;

	world_init(&w);
	cr_assert_eq(ask(&w, "rebind.example"), REASON_NONE);
	asked_before = w.queries;
	cr_assert_eq(asked_before, 2);
	/* A TTL of 0 is no way to get two different answers at once. */
	cr_assert_eq(ask(&w, "rebind.example"), REASON_NONE);
	cr_assert_eq(w.queries, asked_before);
	cr_assert_eq(ask(&w, "v4only.example"), REASON_NONE);
	cr_assert_eq(w.n, 1);
	cr_assert_eq(addr_parse("8.8.8.8", &w.policy.own[w.policy.n_own++]), 0);
	asked_before = w.queries;
	cr_assert_eq(ask(&w, "v4only.example"), REASON_SELF);
	cr_assert_eq(w.queries, asked_before);
}

Test(resolve, truncated_goes_by_tcp)
{
	cleanup_world struct world w;

	world_init(&w);
	cr_assert_eq(ask(&w, "big.example"), REASON_NONE);
	cr_assert_eq(w.n, 2);
	cr_assert_eq(w.tcp_queries, 2);
}

Test(resolve, cancel_and_too_many)
{
	struct resolve_query *q[RESOLVE_QUERIES_MAX];
	cleanup_world struct world w;

	world_init(&w);
	for (unsigned i = 0; i < RESOLVE_QUERIES_MAX; i++) {
		q[i] = resolve_start(w.r, "silent.example", &w.policy, on_done, &w);
		cr_assert_not_null(q[i]);
	}
	cr_assert_null(resolve_start(w.r, "public.example", &w.policy, on_done, &w));
	for (unsigned i = 0; i < RESOLVE_QUERIES_MAX / 2; i++)
		resolve_cancel(q[i]);
	cr_assert_eq(ask(&w, "public.example"), REASON_NONE);
	cr_assert_eq(w.calls, 1);
	resolver_free(w.r);
	cr_assert_eq(w.calls, 1);
	w.r = NULL;
}

Test(resolve, reads_the_systems_files)
{
	static const char conf[] =
		"# a comment\nsearch evil.example\nnameserver 192.0.2.1\n"
		"nameserver not-an-address\n nameserver\t2001:db8::1 # x\n"
		"options ndots:5\nnameserver 1.1.1.1\nnameserver 9.9.9.9";
	static const char hosts[] = "127.0.0.1 LocalHost loopback # not this\n"
				    "::1\tlocalhost\nbad line\n1.2.3.4\n";
	cleanup_free char *a = xstrdup(conf), *b = xstrdup(hosts);
	char none[1] = "";
	struct resolve_config c;
	struct addr want;

	resolve_config_read(&c, none, none);
	cr_assert_eq(c.n_servers + c.n_hosts, 0);
	resolve_config_done(&c);
	/* one of the two is refused: nobody is asked for anything */
	resolve_config_read(&c, a, NULL);
	cr_assert_eq(c.n_servers + c.n_hosts, 0);
	resolve_config_done(&c);
	resolve_config_read(&c, NULL, b);
	cr_assert_eq(c.n_servers + c.n_hosts, 0);
	resolve_config_done(&c);
	resolve_config_read(&c, a, b);
	cr_assert_eq(c.n_servers, 3);
	cr_assert_eq(addr_parse("2001:db8::1", &want), 0);
	cr_assert(addr_eq(&want, &c.server[1]));
	cr_assert_eq(c.n_hosts, 3);
	cr_assert_str_eq(c.hosts[0].name, "localhost");
	cr_assert_str_eq(c.hosts[2].name, "localhost");
	cr_assert(c.hosts[2].addr.v6);
	resolve_config_done(&c);
}
