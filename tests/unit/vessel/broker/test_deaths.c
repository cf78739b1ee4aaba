/* SPDX-License-Identifier: Apache-2.0 */
/* The book of daemons that died while they read what was a job's (vessel/broker/deaths.h). */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/deaths.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

static char dir[] = "/tmp/test-deaths-XXXXXX";
static int dir_fd = -1;
static struct loop *loop;
static struct deaths *d;
static struct err err;
static struct buf said; /* what was done, in order */
static bool is_away, is_late;
static unsigned n_signals, n_to_do;
static struct waiting {
	queue_done *done;
	void *arg;
} log_wait, database;

static void one_less(void)
{
	if (n_to_do > 0 && --n_to_do == 0)
		loop_stop(loop, 0);
}

static void on_answer(void *arg)
{
	struct waiting *w = arg;
	queue_done *done = w->done;

	w->done = NULL;
	if (done)
		done(NULL, w->arg);
	one_less();
}

static struct loop_timer *log_timer, *database_timer;

static struct audit_wait *before(void *env UNUSED, const struct audit_event *e,
				 queue_done *done, void *arg, struct err *ret)
{
	if (is_away) {
		(void)err_set_id(ret, ERRID_AUDIT_AWAY, "no log");
		one_less();
		return NULL;
	}
	buf_addf(&said, "%s(%lld.%lld %.*s) ", e->name, (long long)e->job,
		 (long long)e->epoch, (int)e->data_len, e->data);
	log_wait = (struct waiting){done, arg};
	loop_timer_arm(log_timer, 0);
	return (struct audit_wait *)&log_wait;
}

static void forget(struct audit_wait *w UNUSED)
{
	log_wait.done = NULL;
}

static void contain(void *env UNUSED, job_id_t job, const char *reason, queue_done *done,
		    void *arg)
{
	cr_expect_leq(strlen(reason), 250u);
	buf_addf(&said, "contain(%lld) ", (long long)job);
	database = (struct waiting){done, arg};
	if (!is_late)
		loop_timer_arm(database_timer, 0);
	else
		one_less();
}

static void count(void *env UNUSED)
{
	n_signals++;
}

static void open_book(void)
{
	const struct deaths_config cfg = {.loop = loop,
					  .clock = &clock_real,
					  .data_fd = dir_fd,
					  .ops = {NULL, before, forget, contain, count}};

	cr_assert_eq(deaths_new(&cfg, &d, &err), 0, "%s", err.msg);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(loop_new(&loop, &err), 0);
	log_timer = loop_timer_new(loop, on_answer, &log_wait);
	database_timer = loop_timer_new(loop, on_answer, &database);
	buf_init(&said, 1 << 20);
	open_book();
}

static void end(void)
{
	deaths_free(d);
	buf_done(&said);
	loop_timer_free(log_timer);
	loop_timer_free(database_timer);
	loop_free(loop);
	(void)unlinkat(dir_fd, DEATHS_FILE, 0);
	(void)close(dir_fd);
	cr_expect_eq(rmdir(dir), 0);
}

/* So many answers of log and database, or refusals. */
static void answers(unsigned n)
{
	n_to_do = n;
	cr_assert_eq(loop_run(loop, &err), 0);
}

static void died(job_id_t job, int64_t epoch)
{
	const struct reading_note note = {job, epoch, READING_TEXTS};

	deaths_found(d, "gate:large", &note);
}

static const char *so_far(void)
{
	static char text[4096];

	(void)snprintf(text, sizeof(text), "%s", buf_str(&said));
	buf_reset(&said);
	return text;
}

#define ONCE                                                                             \
	"{\"daemon\":\"gate:large\",\"read\":\"texts\",\"times\":1,\"ends_job\":false}"
#define TWICE                                                                            \
	"{\"daemon\":\"gate:large\",\"read\":\"texts\",\"times\":2,\"ends_job\":true}"

Test(deaths, the_first_is_told_and_nothing_more, .init = begin, .fini = end)
{
	died(7, 3);
	answers(1);
	cr_expect_str_eq(so_far(), "daemon.died(7.3 " ONCE ") ");
	cr_expect_eq(n_signals, 0u);
}

Test(deaths, two_jobs_once_each_are_no_second_time, .init = begin, .fini = end)
{
	died(7, 3);
	answers(1);
	died(8, 1);
	answers(1);
	cr_expect_str_eq(so_far(),
			 "daemon.died(7.3 " ONCE ") daemon.died(8.1 " ONCE ") ");
	cr_expect_eq(n_signals, 0u);
}

Test(deaths, the_second_of_a_job_in_any_attempt_ends_it, .init = begin, .fini = end)
{
	died(7, 3);
	answers(1);
	died(7, 4);
	answers(2);
	cr_expect_str_eq(so_far(), "daemon.died(7.3 " ONCE
				   ") detection.daemon_died(7.4 " TWICE ") contain(7) ");
	cr_expect_eq(n_signals, 1u);
}

Test(deaths, the_book_outlives_the_vessel, .init = begin, .fini = end)
{
	uint64_t key = deaths_key(d);

	is_away = true;
	died(7, 3);
	deaths_free(d);
	open_book();
	cr_expect_eq(deaths_key(d), key);
	/* what was not told by the first is told by the second */
	is_away = false;
	answers(1);
	cr_expect_str_eq(so_far(), "daemon.died(7.3 " ONCE ") ");
	died(7, 3);
	is_late = true;
	answers(2);
	cr_expect_str_eq(so_far(), "detection.daemon_died(7.3 " TWICE ") contain(7) ");
	/* and so is what was not ended, once */
	deaths_free(d);
	database.done(NULL, database.arg);
	is_late = false;
	open_book();
	answers(1);
	cr_expect_str_eq(so_far(), "contain(7) ");
	deaths_free(d);
	open_book();
	died(9, 1);
	answers(1);
	cr_expect_str_eq(so_far(), "daemon.died(9.1 " ONCE ") ");
	cr_expect_eq(n_signals, 1u);
}

Test(deaths, no_job_is_ended_before_the_log_has_it, .init = begin, .fini = end)
{
	is_away = true;
	died(7, 3);
	died(7, 3);
	answers(1);
	cr_expect_str_eq(so_far(), "");
	is_away = false;
	deaths_hint(d);
	answers(2);
	cr_expect_str_eq(so_far(), "detection.daemon_died(7.3 " TWICE ") contain(7) ");
}

Test(deaths, a_damaged_book_is_begun_anew_and_blames_nobody, .init = begin, .fini = end)
{
	static const char *const books[] = {
		"",
		"{",
		"\xff\xfe",
		"{}",
		"{\"key\":0,\"deaths\":[]}",
		"{\"key\":5,\"deaths\":[7]}",
		"{\"key\":5,\"deaths\":{}}",
		"{\"key\":5,\"deaths\":[{\"job\":-1,\"epoch\":1,\"daemon\":\"x\","
		"\"read\":"
		"\"texts\",\"times\":2,\"told\":0,\"ended\":false}]}",
		"{\"key\":5,\"deaths\":[{\"job\":1,\"epoch\":1,\"daemon\":\"x\",\"read\":"
		"\"tea\",\"times\":2,\"told\":0,\"ended\":false}]}",
		"{\"key\":5,\"deaths\":[{\"job\":1,\"epoch\":1,\"daemon\":\"x\",\"read\":"
		"\"texts\",\"times\":2,\"told\":3,\"ended\":false}]}",
		"{\"key\":5,\"deaths\":[{\"job\":1,\"epoch\":1,\"daemon\":\"x\",\"read\":"
		"\"texts\",\"times\":2,\"told\":0,\"ended\":false},7]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(books); i++) {
		deaths_free(d);
		cr_assert_eq(fs_write_atomic(dir_fd, DEATHS_FILE, books[i],
					     strlen(books[i]), 0600, &err),
			     0);
		open_book();
		cr_expect_neq(deaths_key(d), 5u, "%zu", i);
		died(3, 1);
		answers(1);
		cr_expect_str_eq(so_far(), "daemon.died(3.1 " ONCE ") ", "%zu", i);
	}
}

Test(deaths, a_full_book_forgets_the_oldest_that_is_done_with, .init = begin, .fini = end)
{
	died(1000, 1);
	died(1000, 1);
	answers(2);
	for (job_id_t job = 1; job <= DEATHS_MAX; job++) {
		died(job, 1);
		answers(1);
	}
	(void)so_far();
	/* 1000 has gone, and begins anew; the last ones are there */
	died(DEATHS_MAX, 2);
	answers(2);
	cr_expect_str_eq(so_far(), "detection.daemon_died(64.2 " TWICE ") contain(64) ");
	died(1000, 1);
	answers(1);
	cr_expect_str_eq(so_far(), "daemon.died(1000.1 " ONCE ") ");
}
