/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real parent and its real, confined workers against a hostile server on loopback:
 * what a caller of egress.h sees, what the server saw, and what is left when one dies.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "tests/support/certificate.h"
#include "tests/support/proc_stat.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/redact.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define KEY "sk-test-Zq7/R+xV2m9LbT0cHs51"
#define BIG (8u << 20)

static char dir[] = "/tmp/ly-egress-XXXXXX";
static char secrets[64], seen[64], base[64], https_base[64];
static pid_t server, https_server;

/* ---- the server ---- */

static pid_t start_server(const char *pem, char *url, size_t size, const char *scheme)
{
	char program[] = "/usr/bin/python3",
	     script[] = "tests/support/python/egress_server.py";
	char log[sizeof(seen)], certificate[128] = "", port[16] = "";
	char *const argv[] = {program, script, log, pem ? certificate : NULL, NULL};
	int out[2];
	ssize_t n;
	pid_t pid;

	cr_assert_eq(str_copy(log, sizeof(log), seen), 0);
	cr_assert_eq(str_copy(certificate, sizeof(certificate), pem ? pem : ""), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(out[1], 1) == 1)
			(void)execve(argv[0], argv, environ);
		_exit(127);
	}
	fd_close(&out[1]);
	n = read(out[0], port, sizeof(port) - 1);
	cr_assert(n > 1, "no server");
	port[n - 1] = '\0';
	cr_assert_eq(str_fmt(url, size, "%s://127.0.0.1:%s", scheme, port), 0);
	fd_close(&out[0]);
	return pid;
}

static void write_secret(const char *name, const char *text)
{
	char path[128];
	struct err err = ERR_INIT;
	cleanup_close int fd = -1;

	cr_assert_eq(str_fmt(path, sizeof(path), "%s/%s", secrets, name), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && fs_write_all(fd, text, strlen(text), &err) == 0);
}

static void set_up(void)
{
	cr_assert(mkdtemp(dir));
	cr_assert_eq(str_fmt(secrets, sizeof(secrets), "%s/secrets", dir), 0);
	cr_assert_eq(str_fmt(seen, sizeof(seen), "%s/seen", dir), 0);
	cr_assert_eq(mkdir(secrets, 0700), 0);
	write_secret("portal_test", KEY "\n");
	write_secret("portal_claude", KEY "\n");
	server = start_server(NULL, base, sizeof(base), "http");
}

static void tear_down(void)
{
	cleanup_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err = ERR_INIT;

	if (server > 0)
		(void)kill(server, SIGKILL);
	if (https_server > 0)
		(void)kill(https_server, SIGKILL);
	cr_expect(fs_remove_beneath(tmp, dir + strlen("/tmp/"), &err) == 0, "%s",
		  err.msg);
}

TestSuite(egress, .init = set_up, .fini = tear_down, .timeout = 120);

/* What the server was sent, whole. */
static const char *server_saw(void)
{
	static char *text;
	struct err err = ERR_INIT;
	size_t len;

	free(text);
	cr_assert_eq(fs_read_file(AT_FDCWD, seen, BIG, &text, &len, &err), 0, "%s",
		     err.msg);
	return text;
}

/* ---- the system under test ---- */

struct world {
	struct loop *loop;
	struct egress *egress;
	unsigned redactions, ups, downs, lost, gates;
	int gate_fd, large_fd;
};

static void on_redacted(const char *portal, bool in_header UNUSED, unsigned count,
			void *arg)
{
	struct world *w = arg;

	cr_assert_not_null(portal);
	w->redactions += count;
}

static void on_worker(const char *name, bool up, const struct err *why, void *arg)
{
	struct world *w = arg;

	if (why)
		(void)fprintf(stderr, "%s: %s\n", name, why->msg);
	w->ups += up;
	w->downs += !up;
	if (up && w->downs > 0)
		loop_stop(w->loop, 0);
}

static void on_gate(unsigned which, int fd, struct reading *note UNUSED, void *arg)
{
	struct world *w = arg;

	if (which > 0) { /* the other one is not asked here */
		fd_close(&w->large_fd);
		w->large_fd = fd;
		return;
	}
	fd_close(&w->gate_fd);
	w->gate_fd = fd;
	w->gates++;
}

static void on_lost(const struct err *why, void *arg)
{
	struct world *w = arg;

	cr_assert(err_is_set(why));
	w->lost++;
	loop_stop(w->loop, 0);
}

/* Echoes what it is asked; tries what it may not. */
static int gate_main(int fd, struct egress_pulse *pulse, void *arg UNUSED)
{
	char byte;

	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		return 3;
	do
		egress_pulse_wait(pulse, fd);
	while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1);
	return 0;
}

static const char *const loopback[] = {"127.0.0.1"};

static int begin(struct world *w, const char *secret, struct err *err)
{
	static struct egress_portal portals[4];
	struct egress_config cfg = {.secrets_dir = secrets,
				    .portals = portals,
				    .n_portals = https_base[0] ? 4 : 3,
				    .gate = gate_main};
	struct egress_events events = {.on_redacted = on_redacted,
				       .on_worker = on_worker,
				       .on_gate = on_gate,
				       .on_lost = on_lost,
				       .arg = w};

	*w = (struct world){.gate_fd = -1, .large_fd = -1};
	portals[0] = (struct egress_portal){"test", base, false, secret, loopback, 1};
	portals[1] = (struct egress_portal){"claude",	     base,     true,
					    "portal_claude", loopback, 1};
	portals[2] = (struct egress_portal){"fenced", base, false, NULL, NULL, 0};
	portals[3] =
		(struct egress_portal){"tls", https_base, false, secret, loopback, 1};
	cr_assert_eq(egress_fork(&cfg, &w->egress, err), 0, "%s", err->msg);
	cr_assert_eq(loop_new(&w->loop, err), 0);
	return egress_attach(w->egress, w->loop, &events, err);
}

static void up(struct world *w)
{
	struct err err = ERR_INIT;

	cr_assert_eq(begin(w, "portal_test", &err), 0, "%s", err.msg);
}

static void down(struct world *w)
{
	egress_free(w->egress);
	loop_free(w->loop);
	fd_close(&w->large_fd);
	fd_close(&w->gate_fd);
}

struct answer {
	struct world *world;
	struct egress_call *call;
	struct buf head, body;
	char location[128];
	unsigned status;
	struct egress_end end;
	struct err err;
	uint64_t bytes;
	bool done, discard, pause_once, cancel_at_body;
};

static void on_head(const struct egress_head *h, void *arg)
{
	struct answer *a = arg;

	a->status = h->status;
	for (size_t i = 0; i < h->n_headers; i++)
		buf_addf(&a->head, "%s: %s\n", h->headers[i].name, h->headers[i].value);
	if (h->location)
		cr_assert_eq(str_copy(a->location, sizeof(a->location), h->location), 0);
}

static bool on_body(const void *data, size_t len, void *arg)
{
	struct answer *a = arg;

	a->bytes += len;
	if (!a->discard)
		buf_add(&a->body, data, len);
	if (a->cancel_at_body) {
		egress_cancel(a->call);
		a->done = true;
		loop_stop(a->world->loop, 0);
		return true;
	}
	if (a->pause_once) {
		a->pause_once = false;
		loop_stop(a->world->loop, 0);
		return false;
	}
	return true;
}

static void on_end(const struct egress_end *end, void *arg)
{
	struct answer *a = arg;

	a->end = *end;
	if (end->err) {
		a->err = *end->err;
		a->end.err = &a->err;
	}
	a->done = true;
	loop_stop(a->world->loop, 0);
}

static void start_with(struct world *w, struct answer *a, const struct egress_request *rq)
{
	static const struct egress_ops ops = {on_head, on_body, on_end, NULL};
	struct err err = ERR_INIT;

	a->world = w;
	buf_init(&a->head, BIG);
	buf_init(&a->body, BIG);
	cr_assert_eq(egress_start(w->egress, rq, &ops, a, &a->call, &err), 0, "%s",
		     err.msg);
}

static void run(struct world *w)
{
	struct err err = ERR_INIT;

	cr_assert_geq(loop_run(w->loop, &err), 0);
}

static void wait_end(struct answer *a)
{
	while (!a->done)
		run(a->world);
	buf_addc(&a->body, '\0');
	a->body.len--;
}

static void ask_with(struct world *w, struct answer *a, const struct egress_request *rq)
{
	start_with(w, a, rq);
	wait_end(a);
}

static void ask(struct world *w, struct answer *a, const char *path)
{
	struct egress_request rq = {.portal = "test",
				    .method = "POST",
				    .target = path,
				    .body = "{}",
				    .body_len = 2};

	ask_with(w, a, &rq);
}

static void answer_done(struct answer *a)
{
	buf_done(&a->head);
	buf_done(&a->body);
	*a = (struct answer){0};
}

/* ---- refusals ---- */

Test(egress, a_missing_credential_is_named_and_nothing_starts)
{
	struct world w;
	struct err err = ERR_INIT;

	cr_assert(begin(&w, "portal_absent", &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_SECRET, "%s", err.msg);
	cr_expect(strstr(err.msg, "portal test") &&
			  strstr(err.msg, "lych secret set portal_absent"),
		  "%s", err.msg);
	down(&w);
	write_secret("portal_short", "short\n");
	err_clear(&err);
	cr_assert(begin(&w, "portal_short", &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_SECRET);
	cr_expect_null(strstr(err.msg, "short\n"));
	down(&w);
}

Test(egress, what_may_not_be_sent_is_refused_at_once)
{
	struct world w;
	static const struct egress_ops ops = {on_head, on_body, on_end, NULL};
	struct egress_request rq = {
		.portal = "test", .method = "GET", .target = "/hello"};
	struct egress_call *call;
	struct err err = ERR_INIT;

	up(&w);
	rq.portal = "unknown";
	cr_expect(egress_start(w.egress, &rq, &ops, NULL, &call, &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_AWAY);
	/* the credential cannot be sent to another host */
	rq.portal = "test";
	rq.target = "http://127.0.0.1:1/hello";
	cr_expect(egress_start(w.egress, &rq, &ops, NULL, &call, &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_REQUEST);
	rq.portal = NULL;
	rq.target = "/hello";
	cr_expect(egress_start(w.egress, &rq, &ops, NULL, &call, &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_REQUEST);
	down(&w);
}

Test(egress, an_address_that_no_rule_names_is_not_connected_to)
{
	struct world w;
	struct answer a = {0};
	struct egress_request rq = {
		.portal = "fenced", .method = "GET", .target = "/hello"};
	char url[128];

	up(&w);
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 0u);
	cr_expect_eq(a.err.id, ERRID_FETCH_ADDRESS, "%s", a.err.msg);
	cr_expect(a.end.reason == REASON_SELF || a.end.reason == REASON_ADDR_PRIVATE);
	cr_expect(!a.end.sent);
	answer_done(&a);
	cr_assert_eq(str_fmt(url, sizeof(url), "%s/hello", base), 0);
	rq = (struct egress_request){.method = "GET", .target = url};
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.err.id, ERRID_FETCH_ADDRESS);
	answer_done(&a);
	rq.target = "http://[::ffff:127.0.0.1]/";
	ask_with(&w, &a, &rq);
	cr_expect(a.end.err && !a.end.sent);
	answer_done(&a);
	cr_expect_str_eq(server_saw(), "");
	down(&w);
}

Test(egress, replies_that_are_not_acceptable_are_cut)
{
	static const struct {
		const char *path;
		enum err_id id;
	} table[] = {
		{"/gzip", ERRID_EGRESS_REPLY},
		{"/flood", ERRID_EGRESS_REPLY},
		{"/die", ERRID_EGRESS_REPLY},
		{"/nothing", ERRID_EGRESS_REPLY},
		{"/hang", ERRID_EGRESS_TIMEOUT},
		{"/stall", ERRID_EGRESS_TIMEOUT},
		{"/drip", ERRID_EGRESS_TIMEOUT},
		{"/giant?2000000", ERRID_EGRESS_TOO_LARGE},
	};
	struct world w;

	up(&w);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct answer a = {0};
		struct egress_request rq = {.portal = "test",
					    .method = "POST",
					    .target = table[i].path,
					    .limits = {.first_byte_usec = USEC_PER_SEC,
						       .idle_usec = USEC_PER_SEC,
						       .total_usec = 3 * USEC_PER_SEC,
						       .reply_max_bytes = 1000000}};

		ask_with(&w, &a, &rq);
		cr_expect_eq(a.err.id, table[i].id, "%s: %s", table[i].path, a.err.msg);
		cr_expect(a.end.sent, "%s", table[i].path);
		answer_done(&a);
	}
	down(&w);
}

Test(egress, nobody_listens)
{
	struct world w;
	struct answer a = {0};
	struct egress_request rq = {
		.portal = "test", .method = "POST", .target = "/hello"};

	up(&w);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	server = -1;
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.err.id, ERRID_EGRESS_CONNECT, "%s", a.err.msg);
	cr_expect(!a.end.sent);
	cr_expect_null(strstr(a.err.msg, "127.0.0.1"));
	answer_done(&a);
	down(&w);
}

/* ---- what works ---- */

Test(egress, the_credential_goes_out_and_nothing_of_the_environment)
{
	struct world w;
	struct answer a = {0};
	static const struct egress_header version = {"anthropic-version", "2024-01-01"};
	struct egress_request rq = {
		.portal = "claude", .method = "POST", .target = "/hello"};
	char url[128];

	up(&w);
	ask(&w, &a, "/hello");
	cr_expect_eq(a.status, 200u, "%s", a.err.msg);
	cr_expect_str_eq(a.body.data, "hello POST");
	cr_expect_str_eq(a.head.data, "content-type: text/plain\n");
	answer_done(&a);
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 200u);
	answer_done(&a);
	rq.headers = &version;
	rq.n_headers = 1;
	ask_with(&w, &a, &rq);
	answer_done(&a);
	cr_assert_eq(str_fmt(url, sizeof(url), "%s/hello", base), 0);
	rq = (struct egress_request){
		.method = "GET", .target = url, .addresses = loopback, .n_addresses = 1};
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 200u, "%s", a.err.msg);
	cr_expect_str_eq(a.body.data, "hello GET");
	answer_done(&a);
	rq.method = "HEAD";
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 200u);
	cr_expect_eq(a.bytes, 0u);
	answer_done(&a);
	cr_expect(strstr(server_saw(), "\"authorization\": \"Bearer " KEY "\""));
	cr_expect(strstr(server_saw(), "\"x-api-key\": \"" KEY "\""));
	cr_expect(strstr(server_saw(), "\"anthropic-version\": \"2023-06-01\""));
	cr_expect(strstr(server_saw(), "\"anthropic-version\": \"2024-01-01\""));
	cr_expect_null(strstr(server_saw(), "\"expect\""));
	/* the worker without a key sent none */
	cr_expect_null(strstr(strstr(server_saw(), "[\"GET\""), "authorization"));
	cr_expect_eq(w.redactions, 0u);
	down(&w);
}

Test(egress, an_echoed_key_does_not_come_back_in_any_form)
{
	static const char *const paths[] = {"/raw", "/coded", "/split", "/header"};
	struct world w;

	up(&w);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct answer a = {0};
		unsigned before = w.redactions;

		ask(&w, &a, paths[i]);
		cr_expect_null(a.end.err, "%s", a.err.msg);
		cr_expect_gt(a.end.redactions, 0u, "%s", paths[i]);
		cr_expect_eq(w.redactions - before, a.end.redactions);
		cr_expect_null(strstr(buf_str(&a.body), "Zq7"), "%s: %s", paths[i],
			       a.body.data);
		cr_expect_null(strstr(buf_str(&a.head), "Zq7"), "%s", a.head.data);
		cr_expect(strstr(buf_str(i == 3 ? &a.head : &a.body), REDACT_MARK));
		if (i == 0)
			cr_expect_eq(a.status, 401u,
				     "the provider's error stays its own");
		answer_done(&a);
	}
	down(&w);
}

/* What a reader of the events makes of them. */
static void join_events(const char *at, struct buf *out)
{
	static const char before[] = "\"content\":\"";

	while ((at = strstr(at, before))) {
		at += sizeof(before) - 1;
		buf_add(out, at, strcspn(at, "\""));
	}
}

Test(egress, a_key_that_is_spelt_does_not_come_back)
{
	static const char *const paths[] = {"/spell", "/spell_large"};
	cleanup_buf struct buf text;
	struct answer a = {0};
	struct world w;

	buf_init(&text, 4u << 20);
	up(&w);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		ask(&w, &a, paths[i]);
		cr_expect_null(a.end.err, "%s", a.err.msg);
		cr_expect_eq(a.end.redactions, 1u);
		buf_reset(&text);
		join_events(buf_str(&a.body), &text);
		cr_expect(str_starts(buf_str(&text), "so: " REDACT_MARK " "), "%.80s",
			  buf_str(&text));
		cr_expect(str_ends(buf_str(&text), i ? "xas" : "  as"));
		cr_expect_eq(text.len, i ? 1400018u : 18u);
		cr_expect(str_ends(buf_str(&a.body), "data: [DONE]\n\n"));
		answer_done(&a);
	}
	ask(&w, &a, "/spell_parts");
	cr_expect_null(a.end.err, "%s", a.err.msg);
	cr_expect(strstr(buf_str(&a.body), REDACT_MARK));
	cr_expect_null(strstr(buf_str(&a.body), "\"L\""), "%s", buf_str(&a.body));
	answer_done(&a);
	ask(&w, &a, "/no_events");
	cr_assert(a.end.err);
	cr_expect_eq(a.err.id, ERRID_EGRESS_REPLY, "%s", a.err.msg);
	cr_expect_eq(a.bytes, 0u);
	answer_done(&a);
	down(&w);
}

Test(egress, a_redirect_is_told_and_not_followed)
{
	struct world w;
	struct answer a = {0};

	up(&w);
	ask(&w, &a, "/redirect");
	cr_expect_eq(a.status, 302u);
	cr_expect_str_eq(a.location, "//127.0.0.1/");
	cr_expect_null(strchr(strchr(server_saw(), '\n') + 1, '['));
	answer_done(&a);
	down(&w);
}

Test(egress, it_tries_again_only_when_asked_and_before_a_byte_went_back)
{
	struct world w;
	struct answer a = {0};
	struct egress_request rq = {
		.portal = "test", .method = "POST", .target = "/busy?1"};

	up(&w);
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 429u);
	cr_expect_eq(a.end.attempts, 1u);
	answer_done(&a);
	rq.target = "/busy?2";
	rq.retries = 2;
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 200u);
	cr_expect_str_eq(a.body.data, "now");
	cr_expect_eq(a.end.attempts, 2u);
	answer_done(&a);
	rq.target = "/always";
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.status, 429u);
	cr_expect_eq(a.end.attempts, 3u);
	answer_done(&a);
	down(&w);
}

Test(egress, a_large_body_goes_up)
{
	struct world w;
	struct answer a = {0};
	char *body = xmalloc(EGRESS_BODY_MAX_BYTES);
	struct egress_request rq = {.portal = "test",
				    .method = "POST",
				    .target = "/count",
				    .body = body,
				    .body_len = EGRESS_BODY_MAX_BYTES};

	memset(body, 'x', EGRESS_BODY_MAX_BYTES);
	up(&w);
	ask_with(&w, &a, &rq);
	cr_expect_str_eq(a.body.data, "8388608", "%s", a.err.msg);
	cr_expect_eq(a.end.bytes_up, (uint64_t)EGRESS_BODY_MAX_BYTES);
	answer_done(&a);
	free(body);
	down(&w);
}

Test(egress, a_gibibyte_comes_down_in_flat_memory)
{
	struct world w;
	struct answer a = {.discard = true};
	struct rusage use;
	struct egress_request rq = {.portal = "test",
				    .method = "GET",
				    .target = "/giant?1073741824",
				    .limits = {.reply_max_bytes = (uint64_t)2 << 30}};
	pid_t worker;
	long own, before;

	up(&w);
	worker = grandchild_named("(portal:test)");
	cr_assert(worker > 0);
	(void)getrusage(RUSAGE_SELF, &use);
	own = use.ru_maxrss;
	before = proc_rss_kib(worker);
	ask_with(&w, &a, &rq);
	cr_expect_eq(a.bytes, (uint64_t)1 << 30, "%s", a.err.msg);
	(void)getrusage(RUSAGE_SELF, &use);
	/* AddressSanitizer keeps what was freed, by design: there is nothing to measure. */
#ifndef __SANITIZE_ADDRESS__
	cr_expect_lt(use.ru_maxrss - own, 8192, "the vessel's side: +%ld KiB",
		     use.ru_maxrss - own);
	cr_expect_lt(proc_rss_kib(worker) - before, 8192, "the worker: +%ld KiB",
		     proc_rss_kib(worker) - before);
#else
	(void)own;
	(void)before;
#endif
	answer_done(&a);
	down(&w);
}

static void on_beat(void *arg)
{
	loop_stop(arg, 0);
}

Test(egress, a_paused_call_holds_the_server_and_no_other_call)
{
	struct world w;
	struct answer slow = {.pause_once = true}, quick = {0};
	struct egress_request rq = {.portal = "test",
				    .method = "GET",
				    .target = "/giant?50000000",
				    /* what the vessel holds up is not idle */
				    .limits = {.idle_usec = 500 * USEC_PER_MSEC}};
	struct loop_timer *beat;

	up(&w);
	slow.discard = true;
	start_with(&w, &slow, &rq);
	while (slow.bytes == 0)
		run(&w);
	beat = loop_timer_new(w.loop, on_beat, w.loop);
	loop_timer_arm(beat, 1500 * USEC_PER_MSEC);
	run(&w);
	cr_expect(!slow.done);
	cr_expect_leq(slow.bytes, EGRESS_WINDOW_BYTES);
	ask(&w, &quick, "/hello");
	cr_expect_eq(quick.status, 200u);
	egress_resume(slow.call);
	wait_end(&slow);
	cr_expect_eq(slow.bytes, 50000000u, "%s", slow.err.msg);
	answer_done(&slow);
	answer_done(&quick);
	loop_timer_free(beat);
	down(&w);
}

Test(egress, a_cancelled_call_is_silent_and_lets_go_of_the_server)
{
	struct world w;
	struct answer a = {.cancel_at_body = true}, b = {0};
	struct egress_request rq = {.portal = "test", .method = "GET", .target = "/drip"};
	struct egress_worker_info info;

	up(&w);
	ask_with(&w, &a, &rq);
	ask(&w, &b, "/hello");
	cr_expect_eq(b.status, 200u);
	egress_worker_info(w.egress, 1, &info);
	cr_expect_eq(info.calls, 0u);
	answer_done(&a);
	answer_done(&b);
	down(&w);
}

Test(egress, many_at_once)
{
	enum { N = 200 };
	static struct answer a[N];
	struct world w;
	struct egress_request rq = {
		.portal = "test", .method = "POST", .target = "/split"};

	up(&w);
	for (unsigned i = 0; i < N; i++)
		start_with(&w, &a[i], &rq);
	for (unsigned i = 0; i < N; i++) {
		wait_end(&a[i]);
		cr_expect_eq(a[i].status, 200u, "%u: %s", i, a[i].err.msg);
		cr_expect_str_eq(a[i].body.data, REDACT_MARK ".");
		answer_done(&a[i]);
	}
	down(&w);
}

/* ---- TLS ---- */

/* The server has a certificate for `address`; believed is the one in `bundle`. */
static void ask_tls(const char *address, bool believe, struct answer *a)
{
	static char variable[160], *env[] = {variable, NULL};
	char own[96], other[96];
	struct egress_request rq = {
		.portal = "tls", .method = "POST", .target = "/hello"};
	struct world w;

	cr_assert_eq(str_fmt(own, sizeof(own), "%s/own.pem", dir), 0);
	cr_assert_eq(str_fmt(other, sizeof(other), "%s/other.pem", dir), 0);
	certificate_write(own, address);
	certificate_write(other, "127.0.0.1");
	cr_assert_eq(str_fmt(variable, sizeof(variable), "SSL_CERT_FILE=%s",
			     believe ? own : other),
		     0);
	environ = env;
	https_server = start_server(own, https_base, sizeof(https_base), "https");
	up(&w);
	ask_with(&w, a, &rq);
	down(&w);
}

Test(egress, a_certificate_of_nobody_is_not_believed)
{
	struct answer a = {0};

	ask_tls("127.0.0.1", false, &a);
	cr_expect_eq(a.err.id, ERRID_EGRESS_TLS, "%s", a.err.msg);
	cr_expect(!a.end.sent);
	cr_expect_str_eq(server_saw(), "");
	answer_done(&a);
}

Test(egress, a_certificate_for_another_name_is_not_believed)
{
	struct answer a = {0};

	ask_tls("127.0.0.2", true, &a);
	cr_expect_eq(a.err.id, ERRID_EGRESS_TLS, "%s", a.err.msg);
	cr_expect(!a.end.sent);
	cr_expect_str_eq(server_saw(), "");
	answer_done(&a);
}

Test(egress, a_good_certificate_is_believed_and_the_key_goes_out)
{
	struct answer a = {0};

	ask_tls("127.0.0.1", true, &a);
	cr_expect_eq(a.status, 200u, "%s", a.err.msg);
	cr_expect(strstr(server_saw(), KEY));
	answer_done(&a);
}

/* ---- deaths ---- */

Test(egress, a_killed_worker_loses_its_calls_and_comes_back)
{
	struct world w;
	struct answer a = {0}, b = {0};
	struct egress_request rq = {
		.portal = "test", .method = "POST", .target = "/stall"};
	struct egress_worker_info info;
	pid_t pid;

	up(&w);
	start_with(&w, &a, &rq);
	a.pause_once = true;
	while (a.bytes == 0)
		run(&w);
	egress_resume(a.call);
	pid = grandchild_named("(portal:test)");
	cr_assert(pid > 0 && kill(pid, SIGKILL) == 0);
	wait_end(&a);
	cr_expect_eq(a.err.id, ERRID_EGRESS_LOST, "%s", a.err.msg);
	cr_expect(a.end.sent, "it counts as spent");
	cr_expect_eq(a.end.bytes_down, 5u);
	do {
		run(&w);
		egress_worker_info(w.egress, 1, &info);
	} while (!info.up);
	cr_expect_eq(info.restarts, 1u);
	ask(&w, &b, "/raw");
	cr_expect_eq(b.status, 401u);
	cr_expect(strstr(b.body.data, REDACT_MARK), "the new one has the key");
	answer_done(&a);
	answer_done(&b);
	down(&w);
}

Test(egress, the_gate_is_alone_with_its_socket_and_comes_back)
{
	struct world w;
	char byte = 'x';
	pid_t pid;

	up(&w);
	cr_assert_eq(w.gates, 1u);
	for (unsigned life = 1; life <= 2; life++) {
		cr_assert_eq(write(w.gate_fd, &byte, 1), 1);
		byte = 0;
		(void)fcntl(w.gate_fd, F_SETFL, 0);
		cr_assert_eq(read(w.gate_fd, &byte, 1), 1);
		cr_assert_eq(byte, 'x');
		pid = grandchild_named("(gate)");
		cr_assert(pid > 0);
		(void)kill(pid, SIGKILL);
		w.downs = 1;
		while (w.gates == life)
			run(&w);
	}
	down(&w);
}

/* That a stopped worker is: tests/soak/hangs.sh. */
Test(egress, a_stopped_parent_is_lost)
{
	char name[64];
	struct world w;
	usec_t stopped;
	pid_t parent;

	up(&w);
	parent = proc_parent(grandchild_named("(keyless)"), name);
	cr_assert(parent > 1);
	(void)kill(parent, SIGSTOP); /* before its first sign of life */
	stopped = clock_boot_usec();
	while (!w.lost)
		run(&w);
	cr_expect(clock_boot_usec() - stopped < 15 * USEC_PER_SEC);
	down(&w);
	cr_expect_eq(kill(parent, 0), 0, "who lost it does not wait for it");
	(void)kill(parent, SIGKILL);
}

Test(egress, without_the_vessel_nobody_is_left)
{
	struct world w;
	int status[2];
	pid_t vessel, pid = -1;

	cr_assert_eq(pipe2(status, O_CLOEXEC), 0);
	vessel = fork();
	if (vessel == 0) {
		up(&w);
		pid = grandchild_named("(keyless)");
		cr_assert(write(status[1], &pid, sizeof(pid)) == sizeof(pid));
		pause();
		_exit(0);
	}
	cr_assert_eq(read(status[0], &pid, sizeof(pid)), (ssize_t)sizeof(pid));
	cr_assert(pid > 0 && kill(pid, 0) == 0);
	(void)kill(vessel, SIGKILL);
	for (unsigned i = 0; i < 3000 && kill(pid, 0) == 0; i++)
		(void)usleep(10000);
	cr_expect(kill(pid, 0) < 0, "worker %d lives on", pid);
}

Test(egress, every_wall_of_every_worker_was_tried)
{
	struct world w;

	up(&w);
	cr_expect_eq(egress_worker_count(w.egress), 7u);
	for (size_t i = 0; i < egress_worker_count(w.egress); i++) {
		struct egress_worker_info info;
		bool inet = false;

		egress_worker_info(w.egress, i, &info);
		cr_expect(info.up, "%s", info.name);
		cr_expect_gt(info.walls->n, 10u, "%s", info.name);
		for (unsigned k = 0; k < info.walls->n; k++) {
			cr_expect(info.walls->line[k].held, "%s: %s", info.name,
				  info.walls->line[k].wall);
			inet = inet || str_eq(info.walls->line[k].wall, "socket:inet");
		}
		if (str_starts(info.name, "gate"))
			cr_expect(inet, "the gate has no network");
	}
	down(&w);
}
