/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 120 */
/* The asynchronous pool and the vessel's queue calls against a real server that dies. */
#include "common/mem.h"
#include "common/pg/pgconn.h"
#include "common/str.h"
#include "tests/support/migrated.h"
#include "tests/support/pgtest.h"
#include "vessel/db/migrate.h"
#include "vessel/db/queue.h"
#include "vessel/watchdog.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>

static struct loop *loop;
static struct loop_timer *guard;
static int ups, downs, notices, done_calls, ok_calls;
static char last_err[512], last_text[256];
static enum err_id last_id;

ReportHook(PRE_ALL)(struct criterion_test_set *set UNUSED)
{
	static const char *const tombs[] = {"tomb_1"};

	migrated_start(tombs, 1);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats UNUSED)
{
	pgtest_stop();
}

static void too_long(void *arg UNUSED)
{
	loop_stop(loop, 99);
}

static void begin(void)
{
	struct err err = ERR_INIT;

	pgtest_lock();
	if (loop_new(&loop, &err) < 0)
		abort();
	guard = loop_timer_new(loop, too_long, NULL);
}

static void end(void)
{
	loop_timer_free(guard);
	loop_free(loop);
}

TestSuite(pgconn, .init = begin, .fini = end, .timeout = 60);

static void on_state(bool up, const struct err *why UNUSED, void *arg UNUSED)
{
	if (up)
		ups++;
	else
		downs++;
}

static int stop_at_notices;

static void on_notify(void *arg UNUSED)
{
	notices++;
	if (notices == stop_at_notices)
		loop_stop(loop, 0);
}

static struct pg *pool(unsigned n, const char *channel)
{
	struct err err = ERR_INIT;
	struct pg *pg;
	char *sock = xstrdup(pgtest_path("sock"));
	const struct pg_config cfg = {
		.socket_dir = sock,
		.dbname = "lychgate",
		.user = "lych_migrate",
		.password = pgtest_secret("lychgate_db_migrate"),
		.application_name = "test",
		.connections = n,
		.listen_channel = channel,
		.on_notify = on_notify,
		.on_state = on_state,
	};

	cr_assert(pg_new(loop, &cfg, &pg, &err) == 0, "%s", err.msg);
	free(sock);
	return pg;
}

/* Run the loop until it is stopped by code 0; the guard stops it with 99. */
static void run(unsigned sec)
{
	struct err err = ERR_INIT;

	loop_timer_arm(guard, sec * USEC_PER_SEC);
	cr_assert_eq(loop_run(loop, &err), 0);
	loop_timer_disarm(guard);
}

static int stop_after;

static void answered(const struct pg_result *res, const struct err *err, void *arg UNUSED)
{
	done_calls++;
	if (err) {
		last_id = err->id;
		(void)snprintf(last_err, sizeof(last_err), "%s", err->msg);
	} else {
		ok_calls++;
		(void)snprintf(last_text, sizeof(last_text), "%s", pg_text(res, 0, 0));
	}
	if (done_calls == stop_after)
		loop_stop(loop, 0);
}

static const struct pg_stmt stmt_echo = {"echo", "SELECT $1::text", 1};
static const struct pg_stmt stmt_nap = {
	"nap", "SELECT $1::text FROM (SELECT pg_sleep(1.0)) AS s", 1};
static const struct pg_stmt stmt_long = {
	"long", "SELECT $1::text FROM (SELECT pg_sleep(20)) AS s", 1};
static const struct pg_stmt stmt_bulk = {
	"bulk", "SELECT $1::text FROM (SELECT pg_sleep(0.2)) AS s", 1};
static const struct pg_stmt stmt_bad = {"bad", "SELECT $1::text::int", 1};
static const struct pg_stmt stmt_bytes = {"bytes", "SELECT $1::bytea, NULL::bytea", 1};

static void call(struct pg *pg, const struct pg_stmt *s, const char *v, usec_t timeout,
		 unsigned how)
{
	const struct pg_param p[] = {{.data = v}};

	pg_call(pg, s, p, timeout, how, answered, NULL);
}

Test(pgconn, wrong_password_is_down_and_calls_end_at_their_deadline)
{
	struct err err = ERR_INIT;
	struct pg *pg;
	char *sock = xstrdup(pgtest_path("sock"));
	const struct pg_config cfg = {.socket_dir = sock,
				      .dbname = "lychgate",
				      .user = "lych_vessel",
				      .password = "wrong",
				      .application_name = "test",
				      .connections = 2,
				      .on_state = on_state};

	cr_assert(pg_new(loop, &cfg, &pg, &err) == 0);
	stop_after = 1;
	call(pg, &stmt_echo, "x", USEC_PER_SEC, PG_RESEND);
	run(10);
	cr_expect_eq(ok_calls, 0);
	cr_expect_eq(last_id, ERRID_RUN_DB);
	cr_expect_eq(ups, 0);
	cr_expect_eq(downs, 1);
	cr_expect_not(pg_is_up(pg));
	pg_free(pg);
	free(sock);
}

Test(pgconn, many_calls_each_answered_once)
{
	struct pg *pg = pool(3, NULL);

	stop_after = 1000;
	for (int i = 0; i < 1000; i++)
		call(pg, &stmt_echo, "hello", 20 * USEC_PER_SEC, PG_RESEND);
	run(30);
	cr_expect_eq(ok_calls, 1000);
	cr_expect_str_eq(last_text, "hello");
	pg_free(pg);
}

Test(pgconn, too_many_waiting_are_refused_once_each)
{
	struct pg *pg = pool(1, NULL);

	stop_after = 4100;
	for (int i = 0; i < 4100; i++)
		call(pg, &stmt_echo, "x", 30 * USEC_PER_SEC, PG_RESEND);
	run(40);
	cr_expect_eq(ok_calls, 4096);
	cr_expect_eq(last_id, ERRID_RUN_QUEUE_FULL);
	pg_free(pg);
}

static int bulk_done;

static void bulk_answered(const struct pg_result *res UNUSED, const struct err *err,
			  void *arg UNUSED)
{
	cr_expect(!err);
	if (++bulk_done == 60)
		loop_stop(loop, 0);
}

/* What jobs ask for, as much as they like, is not in the way of anybody else's call. */
Test(pgconn, calls_that_yield_wait_behind_all_others)
{
	struct pg *pg = pool(3, NULL);
	const struct pg_param p[] = {{.data = "x"}};

	stop_after = 6; /* enough for all three to be connected */
	for (int i = 0; i < 6; i++)
		call(pg, &stmt_bulk, "warm", 10 * USEC_PER_SEC, PG_RESEND);
	run(15);
	for (int i = 0; i < 60; i++) /* 6 s of work for two connections */
		pg_call(pg, &stmt_bulk, p, 30 * USEC_PER_SEC, PG_RESEND | PG_YIELD,
			bulk_answered, NULL);
	for (int i = 0; i < 5; i++) {
		stop_after++;
		call(pg, &stmt_echo, "now", 10 * USEC_PER_SEC, PG_RESEND);
		run(15);
	}
	cr_expect_eq(ok_calls, 11);
	cr_expect_eq(bulk_done, 0, "one of five calls waited for %d that yield",
		     bulk_done);
	run(20);
	pg_free(pg);
}

/* Of two tombs that ask, the one that asks little is not behind all of the other. */
Test(pgconn, calls_that_yield_take_turns_between_parties)
{
	struct pg *pg = pool(3, NULL);
	const struct pg_param p[] = {{.data = "x"}};

	stop_after = 6;
	for (int i = 0; i < 6; i++)
		call(pg, &stmt_bulk, "warm", 10 * USEC_PER_SEC, PG_RESEND);
	run(15);
	for (int i = 0; i < 60; i++)
		pg_call(pg, &stmt_bulk, p, 30 * USEC_PER_SEC,
			PG_RESEND | PG_YIELD | PG_OF(1), bulk_answered, NULL);
	for (int i = 0; i < 4; i++) {
		stop_after++;
		call(pg, &stmt_echo, "mine", 10 * USEC_PER_SEC,
		     PG_RESEND | PG_YIELD | PG_OF(2 + (unsigned)i % 2));
		run(15);
	}
	cr_expect_eq(ok_calls, 10);
	cr_expect_leq(bulk_done, 12, "one of four calls waited for %d of another's",
		      bulk_done);
	run(20);
	pg_free(pg);
}

Test(pgconn, too_many_that_yield_leave_places_to_others)
{
	struct pg *pg = pool(1, NULL);

	for (int i = 0; i < 4000; i++)
		call(pg, &stmt_echo, "x", 30 * USEC_PER_SEC, PG_RESEND | PG_YIELD);
	call(pg, &stmt_echo, "a person's", 30 * USEC_PER_SEC, PG_RESEND);
	stop_after = 4001;
	run(40);
	cr_expect_eq(ok_calls, 3841);
	cr_expect_eq(last_id, ERRID_RUN_QUEUE_FULL);
	pg_free(pg);
}

Test(pgconn, server_errors_carry_their_sqlstate)
{
	struct pg *pg = pool(1, NULL);

	stop_after = 2;
	call(pg, &stmt_bad, "no number", 10 * USEC_PER_SEC, PG_RESEND);
	call(pg, &stmt_echo, "after", 10 * USEC_PER_SEC, PG_RESEND);
	run(15);
	cr_expect(str_starts(last_err, "22P02: "), "%s", last_err);
	cr_expect_str_eq(last_text, "after");
	pg_free(pg);
}

static void got_ends(const struct pg_result *res, const struct err *err, void *arg UNUSED)
{
	cr_assert(!err);
	cr_expect_eq(pg_i64(res, 0, 0), INT64_MIN);
	cr_expect_eq(pg_i64(res, 0, 1), INT64_MAX);
	cr_expect_eq(pg_i64(res, 0, 2), -1);
	cr_expect_eq(pg_i64(res, 0, 3), 0);
	loop_stop(loop, 0);
}

Test(pgconn, every_bigint_is_a_number)
{
	static const struct pg_stmt ends = {
		"ends",
		"SELECT '-9223372036854775808'::bigint, '9223372036854775807'::bigint, "
		"-1::bigint, 0::bigint",
		0};
	struct pg *pg = pool(1, NULL);

	pg_call(pg, &ends, NULL, 10 * USEC_PER_SEC, PG_RESEND, got_ends, NULL);
	run(15);
	pg_free(pg);
}

static void got_bytes(const struct pg_result *res, const struct err *err, void *arg)
{
	size_t len = 0;

	cr_assert(!err);
	const void *p = pg_bytes(res, 0, 0, &len);
	cr_expect_eq(len, 256);
	cr_expect(memcmp(p, arg, 256) == 0);
	cr_expect_eq(pg_bytes(res, 0, 0, &len), p);
	cr_expect(pg_bytes(res, 0, 1, &len) == NULL && pg_is_null(res, 0, 1));
	loop_stop(loop, 0);
}

Test(pgconn, bytes_pass_both_ways)
{
	struct pg *pg = pool(1, NULL);
	unsigned char all[256];
	const struct pg_param p[] = {{.data = all, .len = sizeof(all), .binary = true}};

	for (int i = 0; i < 256; i++)
		all[i] = (unsigned char)i;
	pg_call(pg, &stmt_bytes, p, 10 * USEC_PER_SEC, PG_RESEND, got_bytes, all);
	run(15);
	pg_free(pg);
}

Test(pgconn, deadline_drops_the_connection_and_the_next_call_works)
{
	struct pg *pg = pool(1, NULL);

	stop_after = 2;
	call(pg, &stmt_long, "x", 1500 * USEC_PER_MSEC, PG_RESEND);
	call(pg, &stmt_echo, "next", 20 * USEC_PER_SEC, PG_RESEND);
	run(15);
	cr_expect_eq(ok_calls, 1);
	cr_expect_str_eq(last_text, "next");
	cr_expect_eq(last_id, ERRID_RUN_DB);
	pg_free(pg);
}

static void kill_server(void *arg)
{
	pgtest_pg("kill");
	pgtest_pg("start");
	*(int *)arg += 1;
}

Test(pgconn, a_call_in_flight_survives_kill_9_of_the_server)
{
	struct pg *pg = pool(2, "lych");
	int kills = 0;
	struct loop_timer *t = loop_timer_new(loop, kill_server, &kills);

	stop_after = 4;
	call(pg, &stmt_echo, "warm", 20 * USEC_PER_SEC, PG_RESEND);
	call(pg, &stmt_nap, "slow", 30 * USEC_PER_SEC, PG_RESEND);
	call(pg, &stmt_nap, "lost", 30 * USEC_PER_SEC, 0);
	call(pg, &stmt_echo, "quick", 30 * USEC_PER_SEC, PG_RESEND);
	loop_timer_arm(t, 500 * USEC_PER_MSEC);
	run(40);
	cr_expect_eq(kills, 1);
	cr_expect_eq(ok_calls, 3, "%d", ok_calls);
	cr_expect_eq(last_id, ERRID_RUN_DB); /* the one that must not be sent twice */
	cr_expect_geq(ups, 2);
	cr_expect_geq(downs, 1);
	loop_timer_free(t);
	pg_free(pg);
}

static void notify(void)
{
	PGconn *c = pgtest_connect("lych_migrate");

	(void)pgtest_ask(c, "NOTIFY lych");
	PQfinish(c);
}

static void expect_notice(int nth)
{
	stop_at_notices = nth;
	run(30);
	cr_assert_eq(notices, nth);
}

Test(pgconn, listen_is_renewed_after_a_reconnect)
{
	struct pg *pg = pool(1, "lych");
	int kills = 0;

	expect_notice(1); /* connected */
	notify();
	expect_notice(2);
	kill_server(&kills);
	expect_notice(3); /* reconnected */
	notify();
	expect_notice(4);
	pg_free(pg);
}

static void free_inside(const struct pg_result *res UNUSED, const struct err *err UNUSED,
			void *arg)
{
	pg_free(arg);
	loop_stop(loop, 0);
}

Test(pgconn, free_inside_a_callback)
{
	struct pg *pg = pool(2, NULL);
	const struct pg_param p[] = {{.data = "x"}};

	pg_call(pg, &stmt_echo, p, 10 * USEC_PER_SEC, PG_RESEND, free_inside, pg);
	for (int i = 0; i < 10; i++)
		call(pg, &stmt_nap, "never told", 10 * USEC_PER_SEC, PG_RESEND);
	run(15);
	cr_expect_eq(done_calls, 0);
}

/* ---- the queue's calls ----------------------------------------------------------- */

static struct queue *queue;
static job_id_t submitted;
static int64_t version;

static void queue_is_sound(const char *json, size_t len, const struct err *err,
			   void *arg UNUSED)
{
	cr_assert(!err, "%s", err->msg);
	cr_expect(strstr(json, "\"violations\": 0") != NULL && len == strlen(json));
	loop_stop(loop, 0);
}

static void health(const char *json, size_t len, const struct err *err, void *arg UNUSED)
{
	cr_assert(!err, "%s", err->msg);
	cr_expect(strstr(json, "\"leases\": 0") != NULL && len == strlen(json));
	queue_check(queue, queue_is_sound, NULL);
}

static void reaped(unsigned n, const struct err *err, void *arg UNUSED)
{
	cr_expect(!err && n == 0);
	queue_health(queue, health, NULL);
}

static void beaten(const struct err *err, void *arg UNUSED)
{
	cr_expect(!err);
	queue_reap(queue, 10, reaped, NULL);
}

static void refused(const struct err *err, void *arg UNUSED)
{
	struct uuid boot = {"00000000-0000-4000-8000-00000000feed"};

	cr_expect(err && err->id == ERRID_RUN_DENIED);
	queue_vessel_beat(queue, &boot, beaten, NULL);
}

static void cancelled(enum job_state now, const struct err *err, void *arg UNUSED)
{
	struct queue_lease l = {.job = submitted,
				.epoch = 1,
				.token = {"00000000-0000-4000-8000-000000000000"}};

	cr_expect(!err && now == JOB_CANCELLED);
	queue_lease_check(queue, &l, true, refused, NULL);
}

static void looked(const struct queue_job *jobs, size_t n, const job_id_t *gone,
		   size_t n_gone, const struct err *err, void *arg UNUSED)
{
	cr_expect(!err && n == 1 && jobs[0].id == submitted &&
		  jobs[0].version == version);
	cr_expect(n_gone == 1 && gone[0] == 999999);
	queue_cancel(queue, submitted, cancelled, NULL);
}

static void listed(const struct queue_job *jobs, size_t n, const struct err *err,
		   void *arg UNUSED)
{
	const struct queue_seen seen[] = {{submitted, version - 1}, {999999, 1}};

	cr_expect(!err && n == 1 && jobs[0].state == JOB_QUEUED && !jobs[0].spec);
	queue_look(queue, seen, 2, looked, NULL);
}

static void shown(const struct queue_job *jobs, size_t n, const struct err *err,
		  void *arg UNUSED)
{
	struct queue_list f = {.by_state = true, .state = JOB_QUEUED, .limit = 10};

	cr_assert(!err && n == 1);
	cr_expect_str_eq(jobs[0].request_id, "r1");
	cr_expect_eq(jobs[0].spec_len, 2);
	cr_expect(memcmp(jobs[0].spec, "{}", 2) == 0 && jobs[0].result == NULL);
	version = jobs[0].version;
	queue_list(queue, &f, listed, NULL);
}

static void not_found(const struct queue_job *jobs UNUSED, size_t n,
		      const struct err *err, void *arg UNUSED)
{
	cr_expect(err && err->id == ERRID_RUN_NOT_FOUND && n == 0);
	queue_show(queue, submitted, shown, NULL);
}

static void conflicted(job_id_t id UNUSED, bool existing UNUSED, const struct err *err,
		       void *arg UNUSED)
{
	cr_expect(err && err->id == ERRID_RUN_CONFLICT);
	queue_show(queue, 999999, not_found, NULL);
}

static struct queue_submit job_of(const char *spec)
{
	return (struct queue_submit){.queue = "main",
				     .request_id = "r1",
				     .spec = spec,
				     .spec_len = strlen(spec),
				     .priority = 50,
				     .retry_on_lost = true,
				     .max_runtime_sec = 60,
				     .max_waiting = 10};
}

static void again(job_id_t id, bool existing, const struct err *err, void *arg UNUSED)
{
	struct queue_submit s = job_of("{\"v\":2}");

	cr_expect(!err && existing && id == submitted);
	queue_submit(queue, &s, conflicted, NULL);
}

static void first(job_id_t id, bool existing, const struct err *err, void *arg UNUSED)
{
	struct queue_submit s = job_of("{}");

	cr_assert(!err && !existing && id > 0, "%s", err ? err->msg : "");
	submitted = id;
	queue_submit(queue, &s, again, NULL);
}

Test(pgconn, queue_calls_from_submit_to_health)
{
	struct err err = ERR_INIT;
	char *sock = xstrdup(pgtest_path("sock"));
	const struct queue_config cfg = {.socket_dir = sock,
					 .password = pgtest_secret("lychgate_db_vessel"),
					 .on_change = on_notify,
					 .on_state = on_state};
	struct queue_submit s = job_of("{}");

	cr_assert(queue_new(loop, &cfg, &queue, &err) == 0);
	queue_submit(queue, &s, first, NULL);
	run(20);
	cr_expect(queue_is_up(queue));
	if (notices < 2) { /* on its way: another connection brings it */
		stop_at_notices = 2;
		run(20);
	}
	cr_expect_geq(notices, 2);
	queue_free(queue);
	free(sock);
}

static void killed(const char *role, const char *why, void *arg UNUSED)
{
	cr_expect_str_eq(role, "tomb_1");
	cr_expect_str_eq(why, "idle in transaction");
	loop_stop(loop, 0);
}

Test(pgconn, watchdog_kills_an_idle_transaction_by_itself)
{
	/* first: the helper's secrets share one buffer */
	PGconn *c = pgtest_connect("tomb_1");
	struct err err = ERR_INIT;
	struct watchdog *w;
	char *sock = xstrdup(pgtest_path("sock"));
	const struct watchdog_config cfg = {.socket_dir = sock,
					    .password =
						    pgtest_secret("lychgate_db_watchdog"),
					    .on_kill = killed};

	(void)pgtest_ask(c, "BEGIN");
	cr_assert(watchdog_new(loop, &cfg, &w, &err) == 0);
	run(10);
	cr_expect(strncmp(pgtest_ask(c, "SELECT 1"), "ERROR", 5) == 0);
	watchdog_free(w);
	PQfinish(c);
	free(sock);
}
