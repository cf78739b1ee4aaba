/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a host in the real worker that alone holds it, beside a server that notes what it was
 * sent: what is refused first.
 */
#include "tests/integration/broker/egress_bench.h"
#include "vessel/egress/egress.h"

/* base64 of "git:" KEY */
#define BASIC "Z2l0OnNrLXRlc3QtWnE3L1IreFYybTlMYlQwY0hzNTE="

Test(egress, a_missing_key_of_a_host_is_named_and_nothing_starts)
{
	struct world w;
	struct err err = ERR_INIT;

	host_secret = "host_absent";
	cr_assert(begin(&w, "portal_test", &err) < 0);
	cr_expect_eq(err.id, ERRID_EGRESS_SECRET, "%s", err.msg);
	cr_expect(strstr(err.msg, "credential forge") &&
			  strstr(err.msg, "lych secret set host_absent"),
		  "%s", err.msg);
	down(&w);
}

/* The vessel has judged it; the process that holds the key judges its place again. */
Test(egress, the_key_of_a_host_goes_to_its_place_and_nowhere_else)
{
	static const char *const beside[] = {"/",
					     "/team",
					     "/team/repository",
					     "/team/repo2/x",
					     "/x/team/repo",
					     "/team/rep",
					     "/team/repo/../other",
					     "/team/repo%2f"};
	static const char *const there[] = {"/team/repo", "/team/repo?x=1",
					    "/team/repo/raw"};
	struct world w;
	struct answer a = {0};
	struct egress_request rq = {.portal = "forge", .method = "PUT"};

	up(&w);
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		rq.target = beside[i];
		ask_with(&w, &a, &rq);
		cr_expect(err_is_set(&a.err) && a.status == 0, "%s", beside[i]);
		answer_done(&a);
	}
	cr_expect_null(strstr(server_saw(), "uthorization"));
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		rq.target = there[i];
		ask_with(&w, &a, &rq);
		cr_expect_neq(a.status, 0u, "%s: %s", there[i], a.err.msg);
		answer_done(&a);
	}
	cr_expect(strstr(server_saw(), "\"authorization\": \"Basic " BASIC "\""));
	cr_expect_null(strstr(server_saw(), "Bearer"));
	rq = (struct egress_request){
		.portal = "field", .method = "DELETE", .target = "/hello"};
	ask_with(&w, &a, &rq);
	answer_done(&a);
	cr_expect(strstr(server_saw(), "\"x-api-key\": \"" KEY "\""));
	down(&w);
}

/* ---- other keys while the vessel runs ---- */

#define NEW_KEY "sk-test-another-Zq7-51-of-them"

struct turn {
	struct world *world;
	struct err why;
	bool done;
};

static void on_prepared(const struct err *why, void *arg)
{
	struct turn *t = arg;

	if (why)
		t->why = *why;
	t->done = true;
	loop_stop(t->world->loop, 0);
}

static struct err prepare(struct world *w, const struct egress_portal *hosts, size_t n)
{
	struct turn t = {.world = w, .why = ERR_INIT};

	egress_hosts_prepare(w->egress, hosts, n, on_prepared, &t);
	while (!t.done)
		run(w);
	return t.why;
}

static struct egress_portal host_at(const char *name, const char *secret,
				    const char *path)
{
	return (struct egress_portal){.name = name,
				      .url = base,
				      .secret = secret,
				      .addresses = loopback,
				      .n_addresses = 1,
				      .is_host = true,
				      .path = path,
				      .field = "X-Api-Key"};
}

static void expect_status(struct world *w, const char *name, unsigned status)
{
	struct answer a = {0};
	struct egress_request rq = {.portal = name, .method = "GET", .target = "/hello"};

	ask_with(w, &a, &rq);
	cr_expect_eq(a.status, status, "%s: %s", name, a.err.msg);
	answer_done(&a);
}

static unsigned count_seen(const char *text)
{
	unsigned n = 0;

	for (const char *at = server_saw(); (at = strstr(at, text)); at++)
		n++;
	return n;
}

static bool has_worker(const struct world *w, const char *name)
{
	for (size_t i = 0; i < egress_worker_count(w->egress); i++) {
		struct egress_worker_info info;

		egress_worker_info(w->egress, i, &info);
		if (str_eq(info.name, name))
			return true;
	}
	return false;
}

Test(egress, new_keys_of_which_one_is_bad_change_nothing)
{
	struct egress_portal field = host_at("field", "host_field", "");
	const struct {
		struct egress_portal host;
		enum err_id id;
		const char *word;
	} rows[] = {
		{host_at("more", "host_absent", ""), ERRID_CREDENTIAL_SECRET,
		 "host_absent"},
		{host_at("more", "host_short", ""), ERRID_CREDENTIAL_SECRET,
		 "credential more"},
		/* the key of one place for another one, another form, another name of it */
		{host_at("more", "host_forge", "/team/repo"), ERRID_CREDENTIAL_PLACE,
		 "host_forge was for"},
		{host_at("more", "host_forge", "/"), ERRID_CREDENTIAL_PLACE,
		 "host_forge was for"},
	};
	struct world w;
	struct err why;

	write_secret("host_short", "short\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct egress_portal both[] = {field, rows[i].host};

		up(&w);
		write_secret("host_field", NEW_KEY "\n");
		why = prepare(&w, both, 2);
		cr_expect_eq(why.id, rows[i].id, "%zu: %s", i, why.msg);
		cr_expect(strstr(why.msg, rows[i].word), "%s", why.msg);
		cr_expect(has_worker(&w, "host:forge") && !has_worker(&w, "host:more"));
		expect_status(&w, "field", 200);
		cr_expect_eq(count_seen(NEW_KEY), 0u);
		write_secret("host_field", KEY "\n");
		down(&w);
	}
}

/* What is under way with the old key goes on, what begins has the new one; what did not change stays. */
Test(egress, a_key_that_was_replaced_is_used_by_the_next_request)
{
	const struct egress_portal forge = host_at("forge", "host_forge", "/team/repo");
	struct egress_portal both[] = {host_at("field", "host_field", ""), forge};
	struct egress_request rq = {
		.portal = "field", .method = "GET", .target = "/drip"};
	struct answer slow = {0}, slower = {0};
	struct world w;
	struct err why;
	uint64_t had;

	both[1].field = NULL;
	both[1].user = "git";
	up(&w);
	start_with(&w, &slow, &rq);
	slow.pause_once = true;
	while (slow.bytes == 0)
		run(&w);
	write_secret("host_field", NEW_KEY "\n");
	why = prepare(&w, both, 2);
	cr_assert(!err_is_set(&why), "%s", why.msg);
	cr_expect(egress_hosts_is_new(w.egress, 0) && !egress_hosts_is_new(w.egress, 1));
	/* prepared is not in force, and may be given up */
	expect_status(&w, "field", 200);
	cr_expect_eq(count_seen(NEW_KEY), 0u);
	egress_hosts_drop(w.egress);
	expect_status(&w, "field", 200);
	cr_expect_eq(count_seen(NEW_KEY), 0u);

	why = prepare(&w, both, 2);
	cr_assert(!err_is_set(&why), "%s", why.msg);
	egress_hosts_commit(w.egress);
	expect_status(&w, "field", 200);
	cr_expect_eq(count_seen(NEW_KEY), 1u);
	had = slow.bytes;
	slow.pause_once = true;
	egress_resume(slow.call);
	while (slow.bytes == had)
		run(&w);

	/* once more: of one name only one is kept beside */
	start_with(&w, &slower, &rq);
	slower.pause_once = true;
	while (slower.bytes == 0)
		run(&w);
	write_secret("host_field", KEY "-3\n");
	why = prepare(&w, both, 2);
	cr_assert(!err_is_set(&why), "%s", why.msg);
	egress_resume(slow.call);
	egress_hosts_commit(w.egress);
	wait_end(&slow);
	cr_expect_eq(slow.err.id, ERRID_EGRESS_LOST, "%s", slow.err.msg);
	cr_expect(!slower.done);
	egress_cancel(slower.call);
	expect_status(&w, "field", 200);
	cr_expect_eq(count_seen(KEY "-3"), 1u);
	cr_expect_eq(w.lost, 0u);
	answer_done(&slow);
	answer_done(&slower);
	down(&w);
}

Test(egress, a_key_that_is_gone_ends_at_once_and_comes_back)
{
	const struct egress_portal field = host_at("field", "host_field", "");
	const struct egress_portal below = host_at("below", "host_field", "/hello");
	struct egress_request rq = {
		.portal = "field", .method = "GET", .target = "/drip"};
	struct answer slow = {0};
	struct egress_call *call;
	struct world w;
	struct err why;

	up(&w);
	start_with(&w, &slow, &rq);
	slow.pause_once = true;
	while (slow.bytes == 0)
		run(&w);
	egress_resume(slow.call);
	why = prepare(&w, NULL, 0);
	cr_assert(!err_is_set(&why), "%s", why.msg);
	egress_hosts_commit(w.egress);
	wait_end(&slow);
	cr_expect_eq(slow.err.id, ERRID_EGRESS_LOST, "%s", slow.err.msg);
	cr_expect(!has_worker(&w, "host:field") && !has_worker(&w, "host:forge"));
	rq.target = "/hello";
	cr_expect(egress_start(w.egress, &rq, &(struct egress_ops){0}, NULL, &call,
			       &why) < 0);
	cr_expect_eq(why.id, ERRID_EGRESS_AWAY);
	answer_done(&slow);
	/* and within its place under another name */
	for (int i = 0; i < 20; i++) {
		why = prepare(&w, i % 2 ? &below : &field, 1);
		cr_assert(!err_is_set(&why), "%d: %s", i, why.msg);
		egress_hosts_commit(w.egress);
		expect_status(&w, i % 2 ? "below" : "field", 200);
	}
	cr_expect_eq(w.lost, 0u);
	down(&w);
}
