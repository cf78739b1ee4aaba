/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose question a real worker gets next: judged by the order of the answers. Where two workers
 * could race, one of them is stopped.
 */
#include "tests/unit/vessel/broker/gate/gate_rig.h"
#include "vessel/broker/gate/client.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/crypto/sha1.h"
#include "common/mem.h"
#include <string.h>
#include <zlib.h>

TestSuite(gate_fair, .timeout = 120);

/* Whose questions were answered, in their order. */
static char turns[64];
static size_t n_turns, n_expected;

static void on_turn(const struct gate_answer *a UNUSED, void *arg)
{
	turns[n_turns++] = *(const char *)arg;
	if (n_turns == n_expected)
		loop_stop(loop, 0);
}

static struct gate_ask *ask_part(struct gate_job *job, const char *who,
				 enum gate_part_kind kind, const char *data, size_t len)
{
	struct gate_parts *p = gate_parts_new();
	struct gate_ask *a;
	struct err err = ERR_INIT;

	gate_parts_add(p, kind, "content", data, len);
	cr_assert_eq(gate_client_ask(client, job, "portal:x", p, on_turn,
				     (void *)(uintptr_t)who, &a, &err),
		     0, "%s", err.msg);
	n_expected++;
	return a;
}

static struct gate_ask *ask_for(struct gate_job *job, const char *who, size_t len)
{
	cleanup_free char *text = xmalloc(len);

	memset(text, ' ', len);
	return ask_part(job, who, GATE_PART_TEXT, text, len);
}

#define ID "d37e568a7e406c8bb28067d1bee51988c311c1ee"
#define ZERO "0000000000000000000000000000000000000000"
#define COMMAND "0062" ZERO " " ID " refs/heads/a0000"

/* A push of one file of so many blanks, which is small as it is sent. */
static struct gate_ask *push_for(struct gate_job *job, const char *who, size_t len)
{
	static const char pack[12] = "PACK\0\0\0\2\0\0\0\1";
	cleanup_free char *text = xmalloc(len);
	uLongf room = compressBound(len);
	cleanup_free char *packed = xmalloc(room);
	uint8_t digest[SHA1_SIZE];
	cleanup_buf struct buf b;

	memset(text, ' ', len);
	cr_assert_eq(compress((Bytef *)packed, &room, (Bytef *)text, len), Z_OK);
	buf_init(&b, 1 << 20);
	buf_adds(&b, COMMAND);
	buf_add(&b, pack, sizeof(pack));
	/* a blob; four bits of its length, and then seven at a time */
	buf_addc(&b, (char)(0xb0 | (len & 15)));
	for (len >>= 4; len > 0x7f; len >>= 7)
		buf_addc(&b, (char)(0x80 | (len & 0x7f)));
	buf_addc(&b, (char)len);
	buf_add(&b, packed, room);
	sha1_of("", 0, b.data + strlen(COMMAND), b.len - strlen(COMMAND), digest);
	buf_add(&b, digest, sizeof(digest));
	return ask_part(job, who, GATE_PART_GIT_PUSH, b.data, b.len);
}

static const char *in_turn(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(loop_run(loop, &err), 0, "%s", err.msg);
	turns[n_turns] = '\0';
	return turns;
}

Test(gate_fair, a_tomb_that_asks_much_lets_others_ask_too, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *c = gate_job_new(&clock_real);

	gate_job_turn(a)->party = gate_job_turn(b)->party = 1;
	gate_job_turn(c)->party = 2;
	start_worker(gate_worker_main);
	for (int i = 0; i < 4; i++)
		(void)ask_for(a, "a", 100000);
	(void)ask_for(b, "b", 100000);
	for (int i = 0; i < 3; i++)
		(void)ask_for(c, "c", 1000);
	(void)ask_for(NULL, "-", 1000);
	/* the first that came; then who had nothing; the small ones are soon through; then
	 * the jobs of the one that asks much, in turn */
	cr_expect_str_eq(in_turn(), "ac-ccbaaa");
}

Test(gate_fair, who_comes_late_has_no_more_than_its_turn, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);

	gate_job_turn(a)->party = 1;
	gate_job_turn(b)->party = 2;
	start_worker(gate_worker_main);
	for (int i = 0; i < 6; i++)
		(void)ask_for(a, "a", 50000);
	cr_expect_str_eq(in_turn(), "aaaaaa");
	n_turns = n_expected = 0;
	for (int i = 0; i < 3; i++)
		(void)ask_for(a, "a", 50000);
	for (int i = 0; i < 3; i++)
		(void)ask_for(b, "b", 50000);
	gate_client_cancel(ask_for(b, "b", 50000));
	n_expected--;
	cr_expect_str_eq(in_turn(), "bababa");
}

/* The first n answers come while the worker for large ones is stopped; then it goes on. */
static const char *in_turn_without_large(size_t n)
{
	size_t all = n_expected;

	n_expected = n;
	(void)in_turn();
	n_expected = all;
	cr_assert_eq(kill(large_worker, SIGCONT), 0);
	return in_turn();
}

Test(gate_fair, small_questions_do_not_wait_for_large_ones, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);

	start_worker(gate_worker_main);
	large_worker = start_one(gate_worker_main, GATE_LARGE);
	cr_assert_eq(kill(large_worker, SIGSTOP), 0);
	for (int i = 0; i < 3; i++)
		(void)ask_for(a, "A", (size_t)2 << 20);
	/* of a job that waits for a large one: behind it, so that they see each other */
	(void)ask_for(a, "a", 100);
	for (int i = 0; i < 3; i++)
		(void)ask_for(b, "b", 1000);
	cr_expect_str_eq(in_turn_without_large(3), "bbbAAAa");
	n_turns = n_expected = 0;
	cr_assert_eq(kill(large_worker, SIGSTOP), 0);
	(void)ask_for(a, "a", 100);
	(void)ask_for(b, "B", (size_t)4 << 20);
	cr_expect_str_eq(in_turn_without_large(1), "aB");
	cr_expect(gate_client_is_up(client));
}

static void on_pause(void *arg)
{
	loop_stop(arg, 0);
}

/* What is due in the loop is done, and some more. */
static void turn_a_while(void)
{
	struct loop_timer *t = loop_timer_new(loop, on_pause, loop);

	loop_timer_arm(t, 100 * USEC_PER_MSEC);
	cr_assert_eq(loop_run(loop, NULL), 0);
	loop_timer_free(t);
}

static void start_both(void)
{
	start_worker(gate_worker_main);
	large_worker = start_one(gate_worker_main, GATE_LARGE);
}

/* A small question that waits is no ticket for megabytes to the small ones' worker. */
Test(gate_fair, megabytes_beside_a_small_question_hold_no_neighbour, .init = begin,
     .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);

	start_both();
	cr_assert_eq(kill(large_worker, SIGSTOP), 0);
	(void)ask_for(a, "a", 100);
	for (int i = 0; i < 3; i++)
		(void)ask_for(a, "A", (size_t)2 << 20);
	for (int i = 0; i < 3; i++)
		(void)ask_for(b, "b", 1000);
	n_expected = 3; /* the large ones' worker reads nothing */
	cr_expect_str_eq(in_turn(), "bbb");
	n_expected = 7;
	cr_assert_eq(kill(large_worker, SIGCONT), 0);
	/* in the order in which they came */
	cr_expect_str_eq(in_turn(), "bbbaAAA");
}

/* What a job has at one worker must be seen by what it asks of the other. */
Test(gate_fair, a_jobs_questions_are_read_one_after_the_other, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);

	start_both();
	cr_assert_eq(kill(worker, SIGSTOP), 0);
	(void)ask_for(a, "a", 100);
	turn_a_while(); /* the worker has it now */
	(void)ask_for(a, "A", (size_t)1 << 20);
	(void)ask_for(b, "B", (size_t)1 << 20);
	n_expected = 1;
	cr_expect_str_eq(in_turn(), "B");
	turn_a_while();
	cr_expect_eq(n_turns, 1u);
	n_expected = 3;
	cr_assert_eq(kill(worker, SIGCONT), 0);
	cr_expect_str_eq(in_turn(), "BaA");
}

Test(gate_fair, a_cancelled_question_at_a_worker_holds_its_job_no_longer, .init = begin,
     .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	struct gate_ask *small;

	start_both();
	cr_assert_eq(kill(worker, SIGSTOP), 0);
	small = ask_for(a, "a", 100);
	turn_a_while();
	(void)ask_for(a, "A", (size_t)1 << 20);
	gate_client_cancel(small);
	n_expected = 1;
	cr_expect_str_eq(in_turn(), "A");
	cr_assert_eq(kill(worker, SIGCONT), 0);
}

/* The look at what was anonymised is paid for as the first one is. */
Test(gate_fair, anonymising_earns_no_second_share, .init = begin, .fini = end)
{
	static const char mail[] = "john.smith@corp.io ";
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);

	start_worker(gate_worker_main);
	for (int i = 0; i < 3; i++) {
		char text[60000];
		struct gate_parts *p = gate_parts_new();
		struct gate_ask *ask;

		memset(text, ' ', sizeof(text));
		memcpy(text, mail, sizeof(mail) - 1);
		gate_parts_add(p, GATE_PART_TEXT, "content", text, sizeof(text));
		cr_assert_eq(gate_client_ask(client, a, "portal:x", p, on_turn,
					     (void *)(uintptr_t)"a", &ask, NULL),
			     0);
		n_expected++;
	}
	for (int i = 0; i < 5; i++)
		(void)ask_for(b, "b", 60000);
	cr_expect_str_eq(in_turn(), "abbabbab");
	cr_expect_eq(gate_client_figures(client).anonymised, 3u);
}

static int ask_one_more(struct gate_job *job, size_t len, struct err *err)
{
	struct gate_parts *p = gate_parts_new();
	char *text = xmalloc(len);
	struct gate_ask *a;
	int r;

	memset(text, ' ', len);
	gate_parts_add(p, GATE_PART_TEXT, "content", text, len);
	free(text);
	r = gate_client_ask(client, job, "portal:x", p, on_turn, NULL, &a, err);
	if (r == 0)
		gate_client_cancel(a);
	return r;
}

Test(gate_fair, one_job_fills_its_own_queue_and_nobody_elses, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);
	struct gate_ask *ask[GATE_ASKS_JOB_MAX];
	struct err err = ERR_INIT;
	unsigned n = 0;

	start_both();
	for (unsigned i = 0; i < GATE_ASKS_JOB_MAX; i++)
		ask[i] = ask_for(a, "a", 10);
	cr_expect_lt(ask_one_more(a, 10, &err), 0);
	cr_expect_eq(err.id, ERRID_GATE_BUSY);
	cr_expect_eq(ask_one_more(b, 10, &err), 0);
	for (unsigned i = 0; i < GATE_ASKS_JOB_MAX; i++)
		gate_client_cancel(ask[i]);
	cr_expect_eq(ask_one_more(a, 10, &err), 0);

	for (size_t bytes = 0; bytes + (7 << 20) <= GATE_ASKS_JOB_MAX_BYTES;
	     bytes += 7 << 20)
		ask[n++] = ask_for(a, "A", 7 << 20);
	err_clear(&err);
	cr_expect_lt(ask_one_more(a, 7 << 20, &err), 0);
	cr_expect_eq(err.id, ERRID_GATE_BUSY);
	cr_expect_eq(ask_one_more(b, 7 << 20, &err), 0);
	while (n > 0)
		gate_client_cancel(ask[--n]);
	cr_expect_eq(ask_one_more(a, 7 << 20, &err), 0);
	n_expected = 0;
}

/* By what it unpacks to, not by what it is as it is sent. */
Test(gate_fair, a_push_is_paid_for_by_what_is_unpacked, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *c = gate_job_new(&clock_real);

	start_both();
	for (int i = 0; i < 2; i++)
		(void)push_for(a, "a", (size_t)3700 << 10);
	for (int i = 0; i < 3; i++)
		(void)ask_for(b, "b", (size_t)1 << 20);
	cr_expect_str_eq(in_turn(), "abbba");
	/* a small one is a small one */
	n_turns = n_expected = 0;
	for (int i = 0; i < 3; i++)
		(void)push_for(c, "c", 1000);
	for (int i = 0; i < 2; i++)
		(void)ask_for(b, "b", (size_t)1 << 20);
	cr_expect_str_eq(in_turn(), "cbccb");
}

/* What it would have been is not known then. */
Test(gate_fair, who_hangs_up_during_a_push_has_paid_for_it, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *a = gate_job_new(&clock_real);
	cleanup_gate_job struct gate_job *b = gate_job_new(&clock_real);
	struct gate_ask *gone;

	start_both();
	cr_assert_eq(kill(large_worker, SIGSTOP), 0);
	gone = push_for(a, "a", 1000);
	turn_a_while(); /* the worker has it now */
	gate_client_cancel(gone);
	n_expected = 0;
	(void)push_for(a, "a", 1000);
	for (int i = 0; i < 3; i++)
		(void)ask_for(b, "b", (size_t)2 << 20);
	cr_assert_eq(kill(large_worker, SIGCONT), 0);
	cr_expect_str_eq(in_turn(), "bbba");
}

/* Whose worker it is for is known before it is unpacked. */
Test(gate_fair, a_request_of_gits_in_gzip_is_as_large_as_it_says, .init = begin,
     .fini = end)
{
	static const struct {
		const char *end;
		bool is_large;
	} rows[] = {{"\x00\x00\x01\x00", false},
		    {"\x01\x00\x02\x00", true},
		    {"\xff\xff\xff\xff", true}};
	char body[20] = "\x1f\x8b\x08";

	start_worker(gate_worker_main);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct gate_parts *p = gate_parts_new();
		struct gate_ask *a;
		struct err err = ERR_INIT;
		int done;

		memcpy(body + 16, rows[i].end, 4);
		gate_parts_add(p, GATE_PART_GIT_FETCH, "body", body, sizeof(body));
		done = gate_client_ask(client, NULL, "x", p, on_turn, NULL, &a, &err);
		/* the large ones' worker is not there */
		cr_expect_eq(done == 0, !rows[i].is_large, "%zu", i);
		if (done == 0)
			gate_client_cancel(a);
	}
}
