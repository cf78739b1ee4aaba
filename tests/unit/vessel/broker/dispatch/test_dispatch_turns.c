/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that asks for more at once than it may have under way: the rest waits in its order, and
 * who leaves the line, or is thrown out of it, leaves nothing there.
 */
#include "tests/support/dispatch_double.h"
#include "vessel/broker/dispatch/dispatch.h"

TestSuite(dispatch_turns, .timeout = 60);

#define CLIENTS 6

static struct client {
	int fd;
	struct buf got;
} client[CLIENTS];

/* Until the dispatcher has it: then the next one comes after it. */
static void send_one(unsigned i)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	uint64_t before = w.d->fig.in_flight + w.d->fig.refused[ERRID_BROKER_BUSY];
	char body[256], head[256];

	cr_assert(str_fmt(body, sizeof(body),
			  "{\"seq\":%u,\"dialect\":\"openai\",\"stream\":false,"
			  "\"request\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
			  "\"content\":\"number %u\"}],\"max_tokens\":100}}",
			  i + 1, i) == 0);
	cr_assert(str_fmt(head, sizeof(head),
			  "POST /ask HTTP/1.1\r\nHost: lychgate\r\nContent-Length: "
			  "%zu\r\n\r\n",
			  strlen(body)) == 0);
	buf_init(&client[i].got, 1 << 20);
	client[i].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(str_copy(to.sun_path, sizeof(to.sun_path), w.path) == 0);
	cr_assert(connect(client[i].fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	cr_assert(send(client[i].fd, head, strlen(head), MSG_NOSIGNAL) > 0);
	cr_assert(send(client[i].fd, body, strlen(body), MSG_NOSIGNAL) > 0);
	AWAIT(w.d->fig.in_flight + w.d->fig.refused[ERRID_BROKER_BUSY] > before);
}

static bool got(unsigned i, const char *text)
{
	char chunk[4096];
	ssize_t n;

	while ((n = recv(client[i].fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
		buf_add(&client[i].got, chunk, (size_t)n);
	return strstr(buf_str(&client[i].got), text) != NULL;
}

/* The first is with its worker, the others wait. */
static void line_up(unsigned n)
{
	double_up();
	w.broker.egress.in_flight = 1;
	w.held[ACT] = true;
	send_one(0);
	AWAIT(w.n_sent == 1);
	for (unsigned i = 1; i < n; i++) {
		send_one(i);
		AWAIT(w.d->jobs->waiting == i);
	}
	cr_assert_eq(w.d->jobs->in_flight, 1u);
}

/* What the worker has is of this one; it is answered. */
static void serve(unsigned i, unsigned nth)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "number %u", i);
	AWAIT(w.n_sent == nth);
	cr_expect(strstr(buf_str(&w.sent), text), "%s: %s", text, buf_str(&w.sent));
	w.step[ACT].done();
	AWAIT(got(i, "completion_tokens"));
}

static void hang_up_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (client[i].fd > 0)
			close(client[i].fd);
		buf_done(&client[i].got);
		client[i] = (struct client){0};
	}
}

static void all_gone(void)
{
	AWAIT(w.d->fig.in_flight == 0);
	cr_expect_eq(w.d->jobs->waiting, 0u);
	cr_expect_eq(w.d->jobs->called, 0u);
	cr_expect_eq(w.d->jobs->in_flight, 0u);
	hang_up_all();
	double_down();
}

Test(dispatch_turns, what_comes_beyond_the_line_is_refused_with_a_time)
{
	line_up(5);
	send_one(5);
	AWAIT(got(5, "LYCH-BROKER-006"));
	cr_expect(got(5, " 429 "));
	cr_expect(got(5, "Retry-After: 1\r\n"), "%s", buf_str(&client[5].got));
	cr_expect_eq(w.n_sent, 1u);
	for (unsigned i = 0; i < 5; i++)
		serve(i, i + 1);
	all_gone();
}

Test(dispatch_turns, the_rest_waits_and_comes_in_its_order)
{
	line_up(5);
	turn(10000);
	cr_expect_eq(w.n_sent, 1u);
	for (unsigned i = 0; i < 5; i++) {
		serve(i, i + 1);
		/* one that comes late stands behind all that wait */
		if (i == 1)
			send_one(5);
	}
	serve(5, 6);
	cr_expect_eq(w.n_settled, 6u);
	all_gone();
}

Test(dispatch_turns, more_than_one_may_be_let_in)
{
	line_up(4);
	w.broker.egress.in_flight = 2;
	w.d->jobs->is_granted = false;
	w.held[RESERVE] = true;
	w.step[ACT].done();
	AWAIT(w.d->jobs->waiting == 1 && w.d->jobs->in_flight == 2);
	cr_expect_eq(w.d->jobs->called, 0u);
	/* the vessel ends with one in the line */
	hang_up_all();
	double_down();
}

Test(dispatch_turns, who_hangs_up_in_the_line_is_not_missed)
{
	line_up(4);
	close(client[2].fd);
	client[2].fd = 0;
	AWAIT(w.d->fig.gone == 1 && w.d->jobs->waiting == 2);
	serve(0, 1);
	serve(1, 2);
	serve(3, 3);
	all_gone();
}

/* Its place was kept for it when it went. */
Test(dispatch_turns, who_hangs_up_at_its_turn_lets_the_next_one_in)
{
	line_up(3);
	close(client[1].fd);
	client[1].fd = 0;
	serve(0, 1);
	/* its own may have gone to the worker before it was seen to be gone */
	AWAIT(strstr(buf_str(&w.sent), "number 2"));
	w.step[ACT].done();
	AWAIT(got(2, "completion_tokens"));
	all_gone();
}

Test(dispatch_turns, a_lease_that_ends_ends_them_all)
{
	line_up(2);
	w.refuse_at = LEASE;
	w.refuse_with = ERRID_RUN_STALE;
	end_lease();
	AWAIT(got(0, "LYCH-RUN-003"));
	AWAIT(got(1, "LYCH-RUN-003"));
	cr_expect_eq(w.n_sent, 1u);
	all_gone();
}

Test(dispatch_turns, a_vessel_that_stops_lets_nobody_wait)
{
	line_up(2);
	dispatch_stop(w.d);
	AWAIT(got(0, "LYCH-BROKER-007"));
	AWAIT(got(1, "LYCH-BROKER-007"));
	all_gone();
}
