/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking a classifier: every way without an answer is an error; who waits for whom; what is shown
 * once. The egress worker is a double, which the test speaks for.
 */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/opinion/opinion.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(opinion, .timeout = 60);

#define CALLS_MAX 16u

struct egress_call {
	const struct egress_ops *ops;
	void *arg;
	job_id_t job;
	char *body;
	bool is_open;
};

static struct {
	struct loop *loop;
	struct opinion *o;
	struct conf_gate gate;
	struct egress_call call[CALLS_MAX];
	unsigned n_calls, n_cancelled;
	bool is_away;
} w;

static char portal_name[] = "guard", model_name[] = "judge";
static struct conf_model model = {.name = model_name};
static struct conf_portal portal = {.name = portal_name, .model = &model, .n_models = 1};

static int start(void *env UNUSED, const struct egress_request *rq,
		 const struct egress_ops *ops, void *arg, struct egress_call **ret,
		 struct err *err)
{
	struct egress_call *c = &w.call[w.n_calls];

	cr_assert_str_eq(rq->portal, "guard");
	cr_assert_str_eq(rq->target, "/chat/completions");
	cr_assert_eq(rq->retries, 0);
	if (w.is_away)
		return err_set_id(err, ERRID_EGRESS_AWAY, "as the test says");
	cr_assert_lt(w.n_calls++, CALLS_MAX);
	*c = (struct egress_call){.ops = ops,
				  .arg = arg,
				  .job = rq->job,
				  .body = xstrndup(rq->body, rq->body_len),
				  .is_open = true};
	*ret = c;
	return 0;
}

static void cancel(struct egress_call *c)
{
	cr_assert(c->is_open);
	c->is_open = false;
	w.n_cancelled++;
}

static void up(void)
{
	struct err err = ERR_INIT;

	w.gate = (struct conf_gate){.portal_threshold = 0.4,
				    .classifier_usec = 600 * USEC_PER_SEC,
				    .classifier_max_bytes = 65536};
	cr_assert(loop_new(&w.loop, &err) == 0);
	w.o = opinion_new(&(struct opinion_config){.loop = w.loop,
						   .rng = &random_real,
						   .classifier = &portal,
						   .gate = &w.gate,
						   .start = start,
						   .cancel = cancel});
}

static void down(void)
{
	opinion_free(w.o);
	loop_free(w.loop);
	for (unsigned i = 0; i < CALLS_MAX; i++)
		free(w.call[i].body);
	memset(&w, 0, sizeof(w));
}

/* ---- one who asks ---- */

struct asker {
	struct opinion_job *j;
	struct opinion_ask *ask;
	unsigned n; /* answers */
	double score;
	struct err err;
	unsigned slices;
};

static void on_answer(const struct opinion_answer *a, void *arg)
{
	struct asker *x = arg;

	x->ask = NULL;
	x->n++;
	x->score = a->score;
	x->slices = a->slices;
	x->err = (struct err)ERR_INIT;
	if (a->err)
		x->err = *a->err;
}

static struct gate_parts *message(const char *text)
{
	struct gate_parts *p = gate_parts_new();

	gate_parts_add(p, GATE_PART_NAME, NULL, "content", 7);
	gate_parts_add(p, GATE_PART_TEXT, "content", text, strlen(text));
	return p;
}

/* False: there is nothing to ask about. */
static bool asks(struct asker *x, job_id_t job, const struct gate_parts *p)
{
	struct err err = ERR_INIT;

	if (!x->j)
		x->j = opinion_job_new();
	cr_assert(opinion_prepare(w.o, x->j, job, 1, p, &x->ask, &err) == 0, "%s",
		  err.msg);
	if (!x->ask)
		return false;
	cr_expect(opinion_ask_bytes(x->ask) > 0);
	opinion_begin(x->ask, on_answer, x);
	return true;
}

static bool says(struct asker *x, job_id_t job, const char *text)
{
	cleanup_gate_parts struct gate_parts *p = message(text);

	return asks(x, job, p);
}

static void leaves(struct asker *x)
{
	opinion_cancel(x->ask);
	opinion_job_free(x->j);
	*x = (struct asker){0};
}

/* ---- the worker ---- */

static void ends(struct egress_call *c, const struct err *err)
{
	const struct egress_end end = {.err = err, .sent = true};

	cr_assert(c->is_open);
	c->is_open = false;
	c->ops->on_end(&end, c->arg);
}

static void answers(struct egress_call *c, unsigned status, const char *body)
{
	const struct egress_head head = {.status = status};

	cr_assert(c->is_open);
	c->ops->on_head(&head, c->arg);
	/* in pieces */
	for (; *body; body++)
		cr_assert(c->ops->on_body(body, 1, c->arg));
	ends(c, NULL);
}

#define IS(number)                                                                       \
	"{\"choices\":[{\"message\":{\"content\":\"{\\\"private\\\":" number             \
	",\\\"why\\\":\\\"w\\\"}\"},\"finish_reason\":\"stop\"}]}"

static void stop_loop(void *arg)
{
	loop_stop(arg, 0);
}

static void turn(void)
{
	struct loop_timer *t = loop_timer_new(w.loop, stop_loop, w.loop);
	struct err err = ERR_INIT;

	loop_timer_arm(t, 1000);
	cr_assert(loop_run(w.loop, &err) == 0);
	loop_timer_free(t);
}

#define AWAIT(cond)                                                                      \
	do {                                                                             \
		for (int tries_ = 0; !(cond) && tries_ < 20000; tries_++)                \
			turn();                                                          \
		cr_assert(cond);                                                         \
	} while (0)

static void failed(const struct asker *x, const char *why)
{
	cr_expect_eq(x->n, 1);
	cr_expect_eq(x->err.id, ERRID_CLASSIFIER_AWAY);
	cr_expect_eq(x->score, 1.0);
	cr_expect(strstr(x->err.msg, why), "%s", x->err.msg);
}

/* ---- refusals first ---- */

static void no_answer(unsigned status, const char *body, const char *why)
{
	struct asker x = {0};

	up();
	cr_assert(says(&x, 1, "hello"));
	cr_assert_eq(w.n_calls, 1);
	answers(&w.call[0], status, body);
	failed(&x, why);
	cr_expect_eq(opinion_figures(w.o).failed, 1);
	cr_expect(!opinion_figures(w.o).answers);
	/* it was not judged: it is shown again */
	cr_expect(says(&x, 1, "hello"));
	leaves(&x);
	down();
}

Test(opinion, what_is_no_answer_is_an_error)
{
	no_answer(500, IS("0"), "it answered 500");
	no_answer(302, IS("0"), "it answered 302");
	no_answer(200, "", "no answer");
	no_answer(200, "hello", "not JSON");
	no_answer(200, IS("1.01"), "not the object");
	no_answer(200, IS("-1"), "not the object");
}

Test(opinion, a_worker_that_is_away_or_dies_is_an_error)
{
	struct asker x = {0};
	struct err err = ERR_INIT;

	up();
	w.is_away = true;
	cr_assert(says(&x, 1, "hello"));
	cr_expect_eq(x.n, 0, "never from within");
	AWAIT(x.n == 1);
	failed(&x, "LYCH-EGRESS-001");
	w.is_away = false;
	x.n = 0;
	cr_assert(says(&x, 1, "hello"));
	(void)err_set_id(&err, ERRID_EGRESS_LOST, "gone");
	ends(&w.call[0], &err);
	failed(&x, err_info(ERRID_EGRESS_LOST)->text);
	x.n = 0;
	cr_assert(says(&x, 1, "hello"));
	answers(&w.call[1], 200, IS("0.1"));
	cr_expect_eq(x.n, 1);
	cr_expect(!err_is_set(&x.err));
	leaves(&x);
	down();
}

Test(opinion, one_that_is_silent_is_an_error_when_its_time_is_over)
{
	struct asker x = {0}, behind = {0};

	up();
	w.gate.classifier_usec = 50 * USEC_PER_MSEC;
	cr_assert(says(&x, 1, "hello"));
	behind.j = x.j; /* waits for its turn, and its time runs, too */
	cr_assert(says(&behind, 1, "more"));
	cr_expect_eq(w.n_calls, 1);
	AWAIT(x.n == 1 && behind.n == 1);
	failed(&x, "no answer in time");
	failed(&behind, "no answer in time");
	cr_expect_geq(w.n_cancelled, 1);
	leaves(&x);
	down();
}

Test(opinion, more_text_than_it_may_be_asked_about_is_refused)
{
	cleanup_free char *text = xmalloc(65537);
	struct opinion_job *j = opinion_job_new();
	struct opinion_ask *ask;
	struct err err = ERR_INIT;

	up();
	memset(text, 'x', 65536);
	text[65536] = '\0';
	cleanup_gate_parts struct gate_parts *p = message(text);

	cr_expect(opinion_prepare(w.o, j, 1, 1, p, &ask, &err) < 0);
	cr_expect_eq(err.id, ERRID_CLASSIFIER_SIZE);
	cr_expect(strstr(err.msg, "gate.classifier_max"), "%s", err.msg);
	cr_expect_eq(w.n_calls, 0);
	opinion_job_free(j);
	down();
}

/* ---- answers ---- */

Test(opinion, the_highest_of_all_slices_counts_and_the_first_that_refuses_ends_it)
{
	cleanup_free char *text = xmalloc(20001);
	struct asker x = {0};

	up();
	memset(text, 'x', 20000);
	text[20000] = '\0';
	cr_assert(says(&x, 1, text));
	answers(&w.call[0], 200, IS("0.3"));
	cr_expect_eq(x.n, 0);
	answers(&w.call[1], 200, IS("0.1"));
	answers(&w.call[2], 200, IS("0"));
	cr_expect_eq(x.n, 1);
	cr_expect_eq(x.score, 0.3);
	cr_expect_eq(x.slices, 3);
	cr_expect(!says(&x, 1, text), "it was judged, and passed");
	text[0] = 'y';
	x.n = 0;
	cr_assert(says(&x, 1, text));
	answers(&w.call[3], 200, IS("0.4"));
	cr_expect_eq(x.n, 1);
	cr_expect_eq(x.slices, 1);
	cr_expect_eq(opinion_figures(w.o).passed, 1);
	cr_expect_eq(opinion_figures(w.o).refused, 1);
	/* what was refused is not known */
	cr_expect(says(&x, 1, text));
	leaves(&x);
	down();
}

static bool showed(unsigned call, const char *text)
{
	return strstr(w.call[call].body, text) != NULL;
}

Test(opinion, only_what_is_new_is_shown_and_of_each_job_for_itself)
{
	cleanup_gate_parts struct gate_parts *p = message("first");
	struct asker x = {0}, other = {0};

	up();
	cr_assert(asks(&x, 1, p));
	cr_expect(showed(0, "content: first"));
	answers(&w.call[0], 200, IS("0"));
	gate_parts_add(p, GATE_PART_TEXT, "content", "second", 6);
	/* what the portal itself issued */
	gate_parts_add(p, GATE_PART_ECHO, "id", "opaque", 6);
	cr_assert(asks(&x, 1, p));
	cr_expect(showed(1, "content: second"));
	cr_expect(!showed(1, "first") && !showed(1, "opaque"));
	answers(&w.call[1], 200, IS("0"));
	cr_expect(!asks(&x, 1, p));
	cr_assert(asks(&other, 2, p));
	cr_expect(showed(2, "content: first\\nsecond") ||
		  showed(2, "content: first\\ncontent: second"));
	cr_expect_eq(w.call[2].job, 2);
	leaves(&x);
	leaves(&other);
	down();
}

Test(opinion, a_key_is_a_text_too)
{
	cleanup_gate_parts struct gate_parts *p = message("hello");
	struct asker x = {0};

	up();
	cr_assert(asks(&x, 1, p));
	answers(&w.call[0], 200, IS("0"));
	gate_parts_add(p, GATE_PART_NAME, NULL, "the diagnosis of X", 18);
	gate_parts_add(p, GATE_PART_NAME, NULL, "content", 7);
	gate_parts_add(p, GATE_PART_NUMBER, "content", "4711", 4);
	cr_assert(asks(&x, 1, p));
	cr_expect(showed(1, "the diagnosis of X: \\ncontent: 4711"), "%s",
		  w.call[1].body);
	leaves(&x);
	down();
}

/* ---- who waits for whom ---- */

Test(opinion, a_job_has_one_under_way_and_those_of_others_go_on)
{
	struct asker a[3] = {0}, b = {0};

	up();
	for (unsigned i = 0; i < 3; i++) {
		a[i].j = a[0].j;
		cr_assert(says(&a[i], 1, i == 0 ? "one" : i == 1 ? "two" : "three"));
	}
	cr_assert_eq(w.n_calls, 1);
	cr_assert(says(&b, 2, "other"));
	cr_assert_eq(w.n_calls, 2, "the first of another job does not wait");
	cr_expect_eq(w.call[1].job, 2);
	answers(&w.call[1], 200, IS("0"));
	cr_expect_eq(b.n, 1);
	answers(&w.call[0], 200, IS("0"));
	cr_assert_eq(w.n_calls, 3);
	cr_expect(showed(2, "two"));
	/* one that leaves gives its turn to the next */
	opinion_cancel(TAKE_PTR(a[1].ask));
	cr_expect_eq(w.n_cancelled, 1);
	cr_assert_eq(w.n_calls, 4);
	cr_expect(showed(3, "three"));
	leaves(&b);
	opinion_cancel(a[2].ask);
	opinion_job_free(a[0].j);
	down();
}

Test(opinion, next_is_the_job_that_was_served_longest_ago)
{
	struct asker x[OPINION_AT_WORK + 2] = {0}, again = {0};
	unsigned n = OPINION_AT_WORK;

	up();
	for (unsigned i = 0; i < n; i++)
		cr_assert(says(&x[i], 1 + i, "one"));
	again.j = x[0].j;
	cr_assert(says(&again, 1, "two"));
	cr_assert(says(&x[n], 1 + n, "one"));
	cr_assert_eq(w.n_calls, n);
	answers(&w.call[0], 200, IS("0"));
	cr_assert_eq(w.n_calls, n + 1);
	cr_expect_eq(w.call[n].job, 1 + n, "it came later, and was never served");
	answers(&w.call[1], 200, IS("0"));
	cr_assert_eq(w.n_calls, n + 2);
	cr_expect_eq(w.call[n + 1].job, 1);
	opinion_cancel(again.ask);
	for (unsigned i = 0; i <= n; i++)
		leaves(&x[i]);
	down();
}
