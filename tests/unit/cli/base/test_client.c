/* SPDX-License-Identifier: Apache-2.0 */
/* lych's side of the owner's API, with a vessel that lies, falls silent or is not there. */
#include "cli/base/client.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

TestSuite(client, .timeout = 60);

#define OK "HTTP/1.1 200 OK\r\n"
#define SSE OK "Transfer-Encoding: chunked\r\n\r\n"

static char dir[] = "/tmp/lych-client-XXXXXX";
static char path[108];
static int listener;
static pid_t vessel;
static unsigned drip_usec; /* between what is said over and over */

static void begin(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	cr_assert(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/vessel.sock", dir);
	cr_assert(str_copy(at.sun_path, sizeof(at.sun_path), path) == 0);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0);
	cr_assert(listen(listener, 0) == 0);
}

static void end(void)
{
	if (vessel > 0) {
		(void)kill(vessel, SIGKILL);
		(void)waitpid(vessel, NULL, 0);
	}
	(void)unlink(path);
	(void)rmdir(dir);
}

/* One connection: what is asked is read to the end of its head; then this is said. */
static void speak(const char *head, const char *fill, size_t n, bool stay)
{
	vessel = fork();
	cr_assert(vessel >= 0);
	if (vessel)
		return;

	char asked[65536];
	size_t len = 0;
	int fd = accept(listener, NULL, NULL);

	do {
		ssize_t r = recv(fd, asked + len, sizeof(asked) - 1 - len, 0);

		if (r <= 0)
			_exit(1);
		len += (size_t)r;
		asked[len] = '\0';
	} while (!strstr(asked, "\r\n\r\n"));
	(void)send(fd, head, strlen(head), MSG_NOSIGNAL);
	while (n-- && send(fd, fill, strlen(fill), MSG_NOSIGNAL) >= 0)
		if (drip_usec)
			(void)usleep(drip_usec);
	while (stay)
		(void)pause();
	_exit(0);
}

static void speak_refusal(int status, const char *json)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "HTTP/1.1 %d Refused\r\nContent-Length: %zu\r\n\r\n%s", status,
		       strlen(json), json);
	speak(text, "", 0, false);
}

static int ask(unsigned timeout_ms, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = "/v1/status", .timeout_ms = timeout_ms};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;

	cr_assert(client_new(path, &c, err) == 0);
	return client_json(c, &rq, &j, NULL, err);
}

Test(client, answers_and_refusals, .init = begin, .fini = end)
{
	struct err err = ERR_INIT;

	speak(OK "Content-Length: 2\r\n\r\n{}", "", 0, false);
	cr_expect_eq(ask(0, &err), 0, "%s", err.msg);
	(void)waitpid(vessel, NULL, 0);
	speak_refusal(
		404,
		"{\"error_code\":\"LYCH-HTTP-004\",\"title\":\"t\",\"detail\":\"none\"}");
	cr_expect_eq(ask(0, &err), -1);
	cr_expect_str_eq(err_text(&err), "LYCH-HTTP-004");
	cr_expect_str_eq(err.msg, "none");
}

Test(client, what_is_no_answer_is_an_error, .init = begin, .fini = end)
{
	static const struct {
		const char *text;
		enum err_id id;
	} rows[] = {
		{"", ERRID_HTTP_AWAY},
		{OK, ERRID_HTTP_AWAY},
		{OK "Content-Length: 3\r\n\r\n{}", ERRID_HTTP_AWAY},
		{"SSH-2.0-OpenSSH\r\n", ERRID_HTTP_AWAY},
		{"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}", ERRID_HTTP_ANSWER},
		{"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
		 ERRID_HTTP_ANSWER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;

		speak(rows[i].text, "", 0, false);
		cr_expect_eq(ask(0, &err), -1, "%s", rows[i].text);
		cr_expect_eq(err.id, rows[i].id, "%s: %s", rows[i].text, err.msg);
		cr_expect_neq(err.sys, ECONNREFUSED, "it may have been heard");
		(void)waitpid(vessel, NULL, 0);
	}
}

Test(client, an_answer_is_bounded, .init = begin, .fini = end)
{
	static char chunk[65536 + 16];
	struct err err = ERR_INIT;

	(void)snprintf(chunk, sizeof(chunk), "10000\r\n%065536d\r\n", 0);
	speak(SSE, chunk, CLIENT_REPLY_MAX / 65536 + 1, false);
	cr_expect_eq(ask(0, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_ANSWER, "%s", err.msg);
}

Test(client, silence_ends, .init = begin, .fini = end)
{
	struct err err = ERR_INIT;
	usec_t t = clock_boot_usec();

	speak(OK "Content-Length: 3\r\n\r\n{}", "", 0, true);
	cr_expect_eq(ask(300, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY, "%s", err.msg);
	cr_expect(strstr(err.msg, "no answer in time"));
	cr_expect(clock_boot_usec() - t >= 300 * USEC_PER_MSEC);
}

/* The time is for the whole answer, however little of it comes at a time. */
Test(client, an_answer_that_trickles_ends, .init = begin, .fini = end)
{
	struct err err = ERR_INIT;

	drip_usec = 10000;
	speak(OK "Content-Length: 8000000\r\n\r\n", " ", 8000000, false);
	cr_expect_eq(ask(300, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY, "%s", err.msg);
	cr_expect(strstr(err.msg, "no answer in time"));
}

/* Stopped, with a full queue: a connect that would wait for ever gives up. */
Test(client, nobody_accepts, .init = begin, .fini = end)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct err err = ERR_INIT;
	int r;

	(void)!str_copy(at.sun_path, sizeof(at.sun_path), path);
	do {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		r = connect(fd, (struct sockaddr *)&at, sizeof(at));
	} while (r == 0);
	cr_expect_eq(ask(60000, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY);
	cr_expect_eq(err.sys, ECONNREFUSED, "nobody can have heard it");
	cr_expect(strstr(err.msg, "no answer in time"), "%s", err.msg);
	(void)unlink(path);
	cr_expect_eq(ask(60000, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY);
	cr_expect_eq(err.sys, ECONNREFUSED);
	cr_expect(strstr(err.msg, path) && strstr(err.msg, "No such file"), "%s",
		  err.msg);
}

Test(client, a_path_that_no_socket_can_have)
{
	struct client *c = NULL;
	struct err err = ERR_INIT;
	char longer[200];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	cr_expect_eq(client_new(longer, &c, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY);
}

/* ---- streams ------------------------------------------------------------------ */

struct heard {
	int events, wakes, enough_at, wake_at, fail_at;
	int wake_fd;
};

static int on_event(const char *event, const struct json *data, void *arg,
		    struct err *err)
{
	struct heard *h = arg;

	(void)event, (void)data;
	h->events++;
	if (h->events == h->wake_at)
		(void)eventfd_write(h->wake_fd, 1);
	if (h->events == h->fail_at)
		return err_set_id(err, ERRID_CORE_USAGE, "no more");
	return h->events == h->enough_at;
}

static int on_wake(void *arg, struct err *err)
{
	struct heard *h = arg;
	eventfd_t v;

	h->wakes++;
	(void)eventfd_read(h->wake_fd, &v);
	return h->wakes == 2 ? err_set_id(err, ERRID_CORE_USAGE, "woken twice") : 0;
}

static int follow(struct heard *h, char last_id[64], struct err *err)
{
	const struct client_events ev = {
		.on_event = on_event,
		.on_wake = on_wake,
		.arg = h,
		.wake_fd = h->wake_fd,
		.last_id = last_id,
	};
	cleanup_client struct client *c = NULL;

	cr_assert(client_new(path, &c, err) == 0);
	return client_stream(c, "/v1/jobs/1/events", &ev, err);
}

#define EVENT "19\r\nevent: a\nid: 7\ndata: {}\n\n\r\n"

Test(client, a_stream_ends_as_it_is_wanted, .init = begin, .fini = end)
{
	struct heard h = {.wake_fd = -1};
	char id[64] = "";
	struct err err = ERR_INIT;

	speak(SSE, EVENT, 3, false);
	cr_expect_eq(follow(&h, id, &err), -1, "no last chunk: it may go on");
	cr_expect_eq(err.id, ERRID_HTTP_AWAY, "%s", err.msg);
	cr_expect_eq(h.events, 3);
	cr_expect_str_eq(id, "7");
	(void)waitpid(vessel, NULL, 0);

	speak(SSE EVENT "0\r\n\r\n", "", 0, false);
	cr_expect_eq(follow(&h, id, &err), 0, "%s", err.msg);
	(void)waitpid(vessel, NULL, 0);

	h = (struct heard){.wake_fd = -1, .enough_at = 2};
	speak(SSE, EVENT, 5, false);
	cr_expect_eq(follow(&h, id, &err), 0, "%s", err.msg);
	cr_expect_eq(h.events, 2);
	(void)waitpid(vessel, NULL, 0);

	h = (struct heard){.wake_fd = -1, .fail_at = 2};
	speak(SSE, EVENT, 5, false);
	cr_expect_eq(follow(&h, id, &err), -1);
	cr_expect_eq(err.id, ERRID_CORE_USAGE);
}

Test(client, who_follows_is_woken, .init = begin, .fini = end)
{
	struct heard h = {.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	char id[64] = "";
	struct err err = ERR_INIT;

	(void)eventfd_write(h.wake_fd, 1);
	h.wake_at = 1;
	speak(SSE EVENT, "", 0, true);
	cr_expect_eq(follow(&h, id, &err), -1);
	cr_expect_eq(err.id, ERRID_CORE_USAGE, "%s", err.msg);
	cr_expect_eq(h.wakes, 2);
	cr_expect_eq(h.events, 1);
}

Test(client, a_stream_may_not_be_silent, .init = begin, .fini = end)
{
	struct heard h = {.wake_fd = -1};
	char id[64] = "";
	struct err err = ERR_INIT;

	speak(SSE EVENT, "", 0, true);
	cr_expect_eq(follow(&h, id, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY);
	cr_expect(strstr(err.msg, "silent for 15 s"), "%s", err.msg);
}

/* An upload to a vessel that answers before it has taken all: the answer is heard. */
Test(client, an_early_refusal_is_heard, .init = begin, .fini = end)
{
	static char much[4 << 20];
	const struct client_request rq = {.method = "PUT",
					  .target = "/v1/uploads/x?offset=0",
					  .body = much,
					  .body_len = sizeof(much),
					  .raw = true};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	struct err err = ERR_INIT;

	speak_refusal(413, "{\"error_code\":\"LYCH-STORE-002\"}");
	cr_assert(client_new(path, &c, &err) == 0);
	cr_expect_eq(client_json(c, &rq, &j, NULL, &err), -1);
	cr_expect_str_eq(err_text(&err), "LYCH-STORE-002", "%s", err.msg);
}
