/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real parent and its real, confined workers against a hostile server on loopback:
 * what a caller of egress.h sees, and what the server saw.
 */
#include "common/mem.h"
#include "tests/integration/broker/egress_bench.h"
#include "tests/support/certificate.h"
#include "tests/support/proc_stat.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/redact.h"
#include <sys/resource.h>
#include <sys/wait.h>

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

Test(egress, a_word_is_a_key_for_a_server_on_this_machine)
{
	struct world w;
	struct answer a = {0};
	struct err err = ERR_INIT;

	write_secret("portal_word", "hello\n");
	test_is_local = true;
	cr_assert_eq(begin(&w, "portal_word", &err), 0, "%s", err.msg);
	ask(&w, &a, "/hello");
	cr_expect_null(a.end.err, "%s", a.err.msg);
	/* and is not taken out of what it answers, where it may be any word */
	cr_expect_str_eq(a.body.data, "hello POST");
	answer_done(&a);
	cr_expect(strstr(server_saw(), "\"authorization\": \"Bearer hello\""));
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

/* The server has a certificate for `address`. Variables name it when it is not to be
 * believed, and another one when it is: they have no say. */
static void ask_tls(const char *address, bool believe, struct answer *a)
{
	static char own[96], other[96], named[128], bundle[128],
		directory[] = "SSL_CERT_DIR=/nonexistent";
	static char *env[] = {named, bundle, directory, NULL};
	struct egress_request rq = {
		.portal = "tls", .method = "POST", .target = "/hello"};
	struct world w;

	cr_assert_eq(str_fmt(own, sizeof(own), "%s/own.pem", dir), 0);
	cr_assert_eq(str_fmt(other, sizeof(other), "%s/other.pem", dir), 0);
	certificate_write(own, address);
	certificate_write(other, "127.0.0.1");
	cr_assert_eq(
		str_fmt(named, sizeof(named), "SSL_CERT_FILE=%s", believe ? other : own),
		0);
	cr_assert_eq(str_fmt(bundle, sizeof(bundle), "CURL_CA_BUNDLE=%s",
			     believe ? other : own),
		     0);
	environ = env;
	authorities = believe ? own : other;
	https_server = start_server(own, https_base, sizeof(https_base), "https");
	up(&w);
	ask_with(&w, a, &rq);
	down(&w);
}

Test(egress, authorities_that_cannot_be_read_are_named_and_nothing_starts)
{
	struct world w;
	struct err err = ERR_INIT;

	authorities = "/nonexistent";
	cr_assert(begin(&w, "portal_test", &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG, "%s", err.msg);
	cr_expect(strstr(err.msg, "/nonexistent"), "%s", err.msg);
	down(&w);
	authorities = "/etc/passwd";
	err_clear(&err);
	cr_assert(begin(&w, "portal_test", &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG, "%s", err.msg);
	down(&w);
}

static bool has_tried(const struct confine_report *walls, const char *wall)
{
	for (unsigned i = 0; i < walls->n; i++)
		if (str_eq(walls->line[i].wall, wall))
			return walls->line[i].held;
	return false;
}

/* ... but where the self-tests aim. */
Test(egress, variables_of_the_environment_have_no_say)
{
	static char log[128], home[128], run[128],
		file[] = "SSL_CERT_FILE=/nonexistent",
		directory[] = "SSL_CERT_DIR=/nonexistent",
		bundle[] = "CURL_CA_BUNDLE=/nonexistent",
		conf[] = "OPENSSL_CONF=/nonexistent",
		proxy[] = "http_proxy=http://127.0.0.1:1";
	static char *env[] = {file, directory, home, bundle, conf, run, proxy, log, NULL};
	struct egress_worker_info info;
	struct world w;
	struct answer a = {0};

	cr_assert_eq(str_fmt(log, sizeof(log), "SSLKEYLOGFILE=%s/keys", dir), 0);
	cr_assert_eq(str_fmt(home, sizeof(home), "HOME=%s", dir), 0);
	cr_assert_eq(str_fmt(run, sizeof(run), "XDG_RUNTIME_DIR=%s", dir), 0);
	environ = env;
	up(&w);
	ask(&w, &a, "/hello");
	cr_expect_eq(a.status, 200u, "%s", a.err.msg);
	cr_expect(access(strchr(log, '/'), F_OK) < 0,
		  "the keys of sessions were written");
	for (size_t i = 0; i < egress_worker_count(w.egress); i++) {
		egress_worker_info(w.egress, i, &info);
		cr_expect(has_tried(info.walls, "read:~/.ssh") &&
				  has_tried(info.walls, "connect:user bus"),
			  "%s", info.name);
	}
	answer_done(&a);
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
