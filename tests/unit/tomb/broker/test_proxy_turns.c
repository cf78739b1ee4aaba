/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's broker when more is asked at once than may be under way: the rest waits in its order,
 * what is more than that is told so, and who leaves meanwhile leaves nothing behind.
 */
#include "common/proto/broker_limits.h"
#include "tests/unit/tomb/broker/proxy_bench.h"
#include "tomb/broker/proxy.h"
#include <sys/ioctl.h>

#define AT_ONCE 4u
#define WAITING (AT_ONCE * 4u)
#define ALL (AT_ONCE + WAITING)

static struct proxy *p;
static int fd[ALL + AT_ONCE];

static void open_house(void)
{
	struct proxy_config cfg;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = HOLD;
	cr_assert_eq(cfg.inflight_max, AT_ONCE);
	cr_assert_eq(broker_waiting_max(AT_ONCE), WAITING);
}

/* The broker is in this process: has its end of this connection been read? */
static bool is_read(int client)
{
	struct sockaddr_in mine = {0}, peer_of = {0};
	socklen_t len = sizeof(mine);

	cr_assert(getsockname(client, (struct sockaddr *)&mine, &len) == 0);
	for (int s = 3; s < 512; s++) {
		int unread = 1;

		len = sizeof(peer_of);
		if (getpeername(s, (struct sockaddr *)&peer_of, &len) == 0 &&
		    peer_of.sin_family == AF_INET && peer_of.sin_port == mine.sin_port)
			return ioctl(s, FIONREAD, &unread) == 0 && unread == 0;
	}
	return false;
}

/* Of requests that are there together, who came first is not known: each waits until the one
 * before it was read. */
static void dial(unsigned i)
{
	char body[32];

	(void)snprintf(body, sizeof(body), "{\"n\":%u}", i);
	fd[i] = turn_dial(&addr, CHAT(body));
	TURN_UNTIL(loop, is_read(fd[i]));
}

/* Which client's request the vessel got as its nth. */
static unsigned whose(unsigned nth)
{
	size_t len;
	const char *body, *n;

	TURN_UNTIL(loop, n_asked > nth);
	body = httpd_req_body(held[nth], &len);
	n = body ? strstr(body, "\"n\":") : NULL;
	cr_assert(n);
	return (unsigned)strtoul(n + 4, NULL, 10);
}

static void answer(unsigned nth, unsigned client)
{
	cleanup_buf struct buf b;
	char text[32];

	buf_init(&b, 1 << 16);
	(void)snprintf(text, sizeof(text), "answer to %u.", client);
	httpd_req_add_header(held[nth], "Lychgate-Upstream-Status", "200");
	httpd_reply(held[nth], 200, "text/plain", text, strlen(text));
	turn_until_text(loop, fd[client], &b, text);
	close(fd[client]);
}

static void close_house(void)
{
	proxy_free(p);
	end();
}

Test(proxy, many_at_once_are_all_answered_in_the_order_in_which_they_came)
{
	bool first[AT_ONCE] = {false};

	open_house();
	for (unsigned i = 0; i < ALL; i++)
		dial(i);
	TURN_UNTIL(loop, n_asked == AT_ONCE);
	turn_loop(loop, 50000);
	cr_assert_eq(n_asked, AT_ONCE);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		unsigned n = whose(i);

		cr_assert(n < AT_ONCE && !first[n], "%u was let in before its turn", n);
		first[n] = true;
	}
	for (unsigned i = 0; i < ALL; i++) {
		unsigned n = whose(i);

		if (i >= AT_ONCE)
			cr_expect_eq(n, i, "%u came before %u", n, i);
		answer(i, n);
	}
	cr_expect_eq(refused.count[ERRID_BROKER_INFLIGHT], 0u);
	close_house();
}

Test(proxy, what_is_more_than_may_wait_is_refused_with_a_time)
{
	cleanup_buf struct buf b;

	open_house();
	buf_init(&b, 1 << 16);
	for (unsigned i = 0; i < ALL + AT_ONCE; i++)
		dial(i);
	for (unsigned i = ALL; i < ALL + AT_ONCE; i++) {
		buf_reset(&b);
		turn_until_text(loop, fd[i], &b, "request_id");
		cr_expect(strstr(buf_str(&b), "HTTP/1.1 429 "), "%s", buf_str(&b));
		cr_expect(strstr(buf_str(&b), "\r\nRetry-After: 1\r\n"));
		cr_expect_null(strstr(buf_str(&b), "X-Should-Retry"));
		cr_expect(strstr(buf_str(&b), "\"type\":\"rate_limit_error\""));
		cr_expect(strstr(buf_str(&b), "\"code\":\"LYCH-BROKER-022\""));
		close(fd[i]);
	}
	cr_expect_eq(refused.count[ERRID_BROKER_INFLIGHT], AT_ONCE);
	/* none of the others is touched by that */
	for (unsigned i = 0; i < ALL; i++)
		answer(i, whose(i));
	/* and there is room again */
	mood = ANSWER;
	expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	close_house();
}

Test(proxy, who_leaves_while_it_waits_is_not_asked_for)
{
	unsigned n = 0;

	open_house();
	for (unsigned i = 0; i < ALL; i++)
		dial(i);
	TURN_UNTIL(loop, n_asked == AT_ONCE);
	for (unsigned i = AT_ONCE; i < ALL; i += 2)
		close(fd[i]);
	turn_loop(loop, 50000);
	for (unsigned i = 0; i < AT_ONCE + WAITING / 2; i++) {
		n = whose(i);
		cr_expect(n < AT_ONCE || n % 2 == 1, "%u had left", n);
		answer(i, n);
	}
	cr_expect_eq(n, ALL - 1);
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, AT_ONCE + WAITING / 2);
	mood = ANSWER;
	expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	close_house();
}

Test(proxy, a_job_that_ends_while_it_waits_leaves_nothing_behind)
{
	open_house();
	for (unsigned i = 0; i < ALL; i++)
		dial(i);
	TURN_UNTIL(loop, n_asked == AT_ONCE);
	proxy_free(p);
	TURN_UNTIL(loop, n_gone == AT_ONCE);
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, AT_ONCE);
	for (unsigned i = 0; i < AT_ONCE; i++)
		httpd_reply(held[i], 200, "text/plain", "", 0);
	for (unsigned i = 0; i < ALL; i++)
		close(fd[i]);
	end();
}

/* Nobody reads while it is sent but the loop. */
static int push(const char *data, size_t len)
{
	int s = turn_dial(&addr, "");

	for (size_t at = 0; at < len;) {
		ssize_t k = send(s, data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		cr_assert(k > 0 || errno == EAGAIN);
		at += k > 0 ? (size_t)k : 0;
		if (k <= 0)
			turn_loop(loop, 1000);
	}
	return s;
}

/* Escapes make six bytes of one: what was 3 MB becomes 18. */
Test(proxy, bodies_for_which_there_is_no_room_wait)
{
	enum { LEN = 600000, N = 5 };
	cleanup_buf struct buf b;
	struct proxy_config cfg;

	begin();
	cfg = config(7);
	cfg.inflight_max = 8;
	p = serve(&cfg, &addr);
	mood = HOLD;
	buf_init(&b, 1 << 20);
	buf_addf(&b,
		 "POST /v1/chat/completions HTTP/1.1\r\n" H BEARER
		 "Content-Length: %d\r\n\r\n{\"a\":\"",
		 LEN + 8);
	for (int i = 0; i < LEN; i++)
		buf_addc(&b, '\x7f');
	buf_addf(&b, "\"}");
	cr_assert(buf_ok(&b));
	for (int i = 0; i < N; i++)
		fd[i] = push(b.data, b.len);
	TURN_UNTIL(loop, n_asked == N - 1);
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, N - 1);
	httpd_reply(held[0], 200, "text/plain", "x", 1);
	TURN_UNTIL(loop, n_asked == N);
	for (int i = 1; i < N; i++)
		httpd_reply(held[i], 200, "text/plain", "x", 1);
	for (int i = 0; i < N; i++) {
		buf_reset(&b);
		turn_until_text(loop, fd[i], &b, " 200 ");
		close(fd[i]);
	}
	cr_expect_eq(refused.count[ERRID_BROKER_INFLIGHT], 0u);
	close_house();
}
