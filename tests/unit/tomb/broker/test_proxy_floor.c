/* SPDX-License-Identifier: Apache-2.0 */
/* The broker as frames: what the job's end of the pair sends and sees. */
#include "tomb/broker/proxy_floor.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/net/httpd.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"
#include "tests/support/turns.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

TestSuite(proxy_floor, .timeout = 60);

#define KEY "lych-0123456789"
#define CHAT_HEAD(id, bytes)                                                             \
	"H{\"id\":\"" id "\",\"method\":\"POST\",\"path\":\"/v1/chat/completions\","     \
	"\"headers\":{\"authorization\":\"Bearer " KEY "\"},\"body_bytes\":" bytes "}"

static struct loop *loop;
static struct httpd *vessel;
static struct httpc *to_vessel;
static struct vessel_peer peer;
static struct proxy *proxy;
static char sock_path[64], seen_body[1024];
static struct httpd_stream *stream;
static struct httpd_req *held;
static unsigned n_asked, n_closed, n_gone;
static bool streams;
static int job = -1;

static void closed(void *arg)
{
	(void)arg;
	n_closed++;
	stream = NULL;
}

static void gone(void *arg)
{
	(void)arg;
	n_gone++;
	httpd_reply(held, 200, "text/plain", "", 0);
	held = NULL;
}

static void on_intent(struct httpd_req *req, void *arg)
{
	size_t len;

	(void)arg;
	n_asked++;
	(void)snprintf(seen_body, sizeof(seen_body), "%s",
		       (const char *)httpd_req_body(req, &len));
	if (!streams) {
		held = req;
		httpd_req_on_gone(req, gone, NULL);
		return;
	}
	httpd_req_add_header(req, "Lychgate-Upstream-Status", "200");
	httpd_req_add_header(req, "Retry-After", "4");
	stream = httpd_stream_start(req, 200, "text/plain", closed, NULL);
}

static struct proxy_refused refused;

static const struct httpd_route routes[] = {
	{HTTP_M_POST, "/work/v1/ask", 0, 5 << 20, on_intent},
	{HTTP_M_POST, "/work/v1/fetch", 0, 5 << 20, on_intent},
};

static void begin(void)
{
	const struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.max_connections = 20,
		.idle_usec = 60 * USEC_PER_SEC,
		.stream_backlog_max_bytes = 4 << 20,
	};
	struct proxy_config pc = {
		.key = {.job = 7, .epoch = 1},
		.phantom = KEY,
		.inflight_max = 4,
		.refused = &refused,
		.peer = &peer,
	};
	struct err err = ERR_INIT;
	int pair[2];

	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(httpd_new(loop, &cfg, &vessel, &err) == 0, "%s", err.msg);
	cr_assert(vessel_peer_init(&peer, sock_path, "t1", "secret", 1, &err) == 0);
	cr_assert(httpc_new(loop, sock_path, 8, &to_vessel, &err) == 0);
	cr_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pc.loop = loop;
	pc.vessel = to_vessel;
	job = pair[0];
	cr_assert(proxy_new_floor(&pc, pair[1], &proxy, &err) == 0, "%s", err.msg);
}

static void end(void)
{
	proxy_free(proxy);
	httpc_free(to_vessel);
	httpd_free(vessel);
	vessel_peer_done(&peer);
	loop_free(loop);
	close(job);
}

static void say(const char *frame)
{
	cr_assert(send(job, frame, strlen(frame), MSG_NOSIGNAL) ==
		  (ssize_t)strlen(frame));
}

/* The next frame; "" at the end. */
static const char *hear(void)
{
	static char frame[BROKER_FRAME_MAX + 1];

	for (int i = 0; i < 30000; i++) {
		ssize_t n = recv(job, frame, sizeof(frame) - 1, MSG_DONTWAIT);

		if (n >= 0) {
			frame[n] = '\0';
			return frame;
		}
		if (errno != EAGAIN)
			break;
		turn_loop(loop, 1000);
	}
	cr_assert(false, "no frame");
	return "";
}

static void expect_part(const char *part)
{
	const char *got = hear();

	cr_expect(strstr(got, part), "%s is not in %s", part, got);
}

Test(proxy_floor, only_a_packet_socket_is_served)
{
	struct proxy_config pc = {.phantom = KEY, .inflight_max = 1, .refused = &refused};
	struct proxy *p = NULL;
	struct err err = ERR_INIT;
	int pair[2];

	cr_assert(loop_new(&loop, &err) == 0);
	pc.loop = loop;
	cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	cr_expect(proxy_new_floor(&pc, pair[1], &p, &err) < 0);
	cr_expect_eq(err.id, ERRID_SANDBOX_SPAWNER);
	cr_expect(fcntl(pair[1], F_GETFD) < 0, "taken in any case");
	close(pair[0]);
	loop_free(loop);
}

static const struct {
	const char *frames[4], *code;
} broken[] = {
	{{"Zx"}, "LYCH-BROKER-025"},
	{{"H"}, "LYCH-SPEC-001"},
	{{"H{\"id\":\"a b\",\"method\":\"GET\",\"path\":\"/fetch\"}"}, "LYCH-BROKER-025"},
	{{CHAT_HEAD("a", "2"), "D{}x"}, "LYCH-BROKER-025"},
	{{CHAT_HEAD("a", "2"), "D{", "E"}, "LYCH-BROKER-025"},
	{{CHAT_HEAD("a", "2"), "D"}, "LYCH-BROKER-025"},
	{{CHAT_HEAD("a", "2"), "Ex"}, "LYCH-BROKER-025"},
};

static const struct {
	const char *head, *status, *code;
} refused_heads[] = {
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/nowhere\"}", "404",
	 "LYCH-HTTP-002"},
	{"H{\"id\":\"a\",\"method\":\"PUT\",\"path\":\"/fetch\"}", "400",
	 "LYCH-HTTP-003"},
	{"H{\"id\":\"a\",\"method\":\"CONNECT\",\"path\":\"a.example:443\"}", "403",
	 "LYCH-TUNNEL-002"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/fetch?u=1\"}", "400",
	 "LYCH-HTTP-007"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/fetch?url=x\","
	 "\"extra\":1}",
	 "400", "LYCH-SPEC-002"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/fetch?url=x\","
	 "\"body_bytes\":1}",
	 "413", "LYCH-HTTP-004"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/../x\"}", "400", "LYCH-HTTP-001"},
	{"H{\"id\":\"a\",\"method\":\"POST\",\"path\":\"/api/chat\","
	 "\"body_bytes\":2}",
	 "400", "LYCH-BROKER-009"},
	{"H{\"id\":\"a\",\"method\":\"DELETE\",\"path\":\"/v1/responses/resp_1\"}", "400",
	 "LYCH-BROKER-009"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/files?limit=2\"}", "400",
	 "LYCH-BROKER-009"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/v1/models/\"}", "404",
	 "LYCH-HTTP-002"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/registry/npm/x\"}", "403",
	 "LYCH-BROKER-021"},
	{"H{\"id\":\"a\",\"method\":\"POST\",\"path\":\"/v1/messages\","
	 "\"headers\":{\"x-api-key\":\"sk-real\"},\"body_bytes\":2}",
	 "401", "LYCH-BROKER-020"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/fetch?url=x\","
	 "\"headers\":{\"A\":\"b\"}}",
	 "400", "LYCH-BROKER-025"},
	{"H{\"id\":\"a\",\"method\":\"GET\",\"path\":\"/fetch?url=x\","
	 "\"headers\":{\"a\":\"b\\nc\"}}",
	 "400", "LYCH-BROKER-025"},
};

Test(proxy_floor, frames_that_are_none_are_refused_and_the_next_request_works)
{
	begin();
	streams = true;
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		const char *got;

		for (size_t k = 0; k < 4 && broken[i].frames[k]; k++)
			say(broken[i].frames[k]);
		got = hear();
		cr_expect(got[0] == 'X' && strstr(got, broken[i].code), "%zu: %s", i,
			  got);
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused_heads); i++) {
		say(refused_heads[i].head);
		say("E"); /* passed over */
		expect_part(refused_heads[i].status);
		expect_part(refused_heads[i].code);
		cr_expect_str_eq(hear(), "E");
	}
	cr_expect_eq(n_asked, 0);
	say(CHAT_HEAD("ok", "2"));
	say("D{}");
	say("E");
	TURN_UNTIL(loop, stream);
	httpd_stream_end(stream);
	expect_part("H{\"id\":\"ok\",\"status\":200");
	cr_expect_str_eq(hear(), "E");
	end();
}

Test(proxy_floor, answer_is_streamed_in_frames)
{
	static char big[200000];
	size_t got = 0;

	begin();
	streams = true;
	say(CHAT_HEAD("r3", "11"));
	say("D{\"model\"");
	say("D:1");
	say("D}");
	say("E");
	TURN_UNTIL(loop, stream);
	cr_expect_str_eq(seen_body, "{\"seq\":1,\"dialect\":\"openai\",\"stream\":false,"
				    "\"request\":{\"model\":1}}");
	memset(big, 'x', sizeof(big));
	cr_assert(httpd_stream_send(stream, "one", 3));
	expect_part(
		"{\"id\":\"r3\",\"status\":200,\"headers\":{\"content-type\":\"text/"
		"plain\",\"lychgate-upstream-status\":\"200\",\"retry-after\":\"4\"}}");
	cr_expect_str_eq(hear(), "Done");
	cr_assert(httpd_stream_send(stream, big, sizeof(big)));
	httpd_stream_end(stream);
	for (;;) {
		const char *f = hear();

		if (f[0] == 'E')
			break;
		cr_assert_eq(f[0], 'D');
		got += strlen(f + 1);
	}
	cr_expect_eq(got, sizeof(big));
	end();
}

Test(proxy_floor, cut_answer_is_an_abort)
{
	begin();
	streams = true;
	say(CHAT_HEAD("r", "2"));
	say("D{}");
	say("E");
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "one", 3));
	expect_part("H{");
	cr_expect_str_eq(hear(), "Done");
	httpd_stream_abort(stream);
	expect_part("X{\"id\":\"r\",\"code\":\"LYCH-BROKER-024\"");
	end();
}

Test(proxy_floor, new_head_abort_and_hang_up_cancel_at_the_vessel)
{
	begin();
	for (unsigned i = 0; i < 3; i++) {
		say(CHAT_HEAD("r", "2"));
		say("D{}");
		say("E");
		TURN_UNTIL(loop, n_asked == i + 1 && held);
		if (i == 0)
			say("X{\"id\":\"other\"}");
		turn_loop(loop, 20000);
		cr_expect_eq(n_gone, i);
		if (i == 0)
			say("X{\"id\":\"r\"}");
		else if (i == 1)
			say(CHAT_HEAD("n", "2"));
		else
			(void)shutdown(job, SHUT_RDWR);
		TURN_UNTIL(loop, n_gone == i + 1);
	}
	end();
}

Test(proxy_floor, descriptors_are_not_taken)
{
	int pipes[2];
	char byte;
	ssize_t n;

	begin();
	cr_assert(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0);
	cr_assert(fdpass_send(job, CHAT_HEAD("r", "2"), strlen(CHAT_HEAD("r", "2")),
			      &pipes[1], 1, 0) == 0);
	expect_part("LYCH-BROKER-025");
	close(pipes[1]);
	n = read(pipes[0], &byte, 1);
	cr_expect_eq(n, 0, "nobody else holds the writing end");
	close(pipes[0]);
	end();
}

Test(proxy_floor, job_that_never_reads_is_hung_up)
{
	begin();
	/* Each refusal waits in a queue that has an end. */
	for (int i = 0; i < 2000000; i++) {
		if (send(job, "Zx", 2, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		    errno != EAGAIN)
			break;
		if (i % 64 == 0)
			turn_loop(loop, 10);
	}
	cr_expect(errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN, "%d",
		  errno);
	end();
}

Test(proxy_floor, slow_reader_holds_the_vessel_back)
{
	static char part[50000];
	size_t sent = 0, got = 0;

	begin();
	streams = true;
	memset(part, 'x', sizeof(part));
	say(CHAT_HEAD("r", "2"));
	say("D{}");
	say("E");
	TURN_UNTIL(loop, stream);
	while (httpd_stream_backlog(stream) < 500000) {
		cr_assert(httpd_stream_send(stream, part, sizeof(part)));
		sent += sizeof(part);
		cr_assert(sent < (32 << 20), "nothing holds it back");
		turn_loop(loop, 500);
	}
	httpd_stream_end(stream);
	expect_part("H{");
	for (;;) {
		const char *f = hear();

		if (f[0] != 'D')
			break;
		got += strlen(f + 1);
	}
	cr_expect_eq(got, sent);
	end();
}
