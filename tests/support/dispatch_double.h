/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher between two doubles, for test_dispatch_*.c: in front of it a real HTTP
 * socket with one client at a time (dispatch_client.h), behind it every step as a double
 * that writes down that it was called, and refuses, waits or answers as the test says. No
 * database, no network, no worker.
 */
#ifndef LYCH_TESTS_SUPPORT_DISPATCH_DOUBLE_H
#define LYCH_TESTS_SUPPORT_DISPATCH_DOUBLE_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"
#include "vessel/broker/dispatch/priv.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum step { LEASE, WARD, RESERVE, GATE, AUDIT, ACT, STEPS };

static struct {
	struct loop *loop;
	struct httpd *httpd;
	struct dispatch *d;
	struct conf_broker broker;
	struct buf trace;  /* "lease ward reserve" */
	struct buf told;   /* the names of events, in order */
	struct buf pulled; /* triggers, a line each */
	char last_event[4096];
	/* what happens at a step: an error, and whether it is told by the function itself */
	enum step refuse_at;
	enum err_id refuse_with;
	bool at_once;
	bool held[STEPS]; /* the answer waits for release() */
	const char *egress;
	struct gate_answer answer;
	struct gate_job *gate_job;
	struct err answer_err;
	struct gate_parts *parts;
	unsigned settle_fails, n_settled, n_sent, n_ended;
	struct budget_want want;
	struct budget_amounts estimate, actual;
	uint64_t grant; /* units that are granted; 0: all that are wanted */
	/* bytes that may be reserved altogether, 0: as many as one wants; what the worker was
	 * told of it */
	uint64_t bytes_left, wanted, room;
	bool room_is_last, room_held;
	budget_extend_done *extend_done;
	void *extend_arg;
	const struct egress_ops *worker;
	void *worker_arg;
	char target[256];
	/* who waits for an answer of a step */
	struct {
		void (*done)(void);
		struct loop_timer *timer;
	} step[STEPS];
	budget_lease_done *lease_done;
	budget_grant_done *reserve_done;
	queue_done *logged;
	gate_ask_done *gate_done;
	budget_ended_done *ended_done;
	void *lease_arg, *reserve_arg, *gate_arg, *logged_arg, *ended_arg;
	usec_t ahead; /* of the clock */
	int fd;
	struct buf got;
	enum gate_part_kind last_part; /* of what the gate was given */
	struct buf headers;	       /* what the worker was given, a line each */
	struct buf sent;	       /* the body that it was given */
	size_t grown; /* letters that the gate puts in each text's place */
	char path[64];
} w;

static struct reading_page double_page;
static struct reading double_note = {.page = &double_page};

/* Only while the request is read and judged it is noted whose it is: not while anything is
 * waited for. */
static inline void called(const char *what)
{
	struct reading_note note;
	bool is_noted = reading_get(&double_note, &note);

	cr_expect_eq(is_noted, str_eq(what, "ward"), "%s", what);
	if (is_noted)
		cr_expect(reading_is_of(&note, 7, 1));
	buf_addf(&w.trace, "%s%s", w.trace.len ? " " : "", what);
}

static inline const char *traced(void)
{
	return buf_str(&w.trace);
}

/* ---- the steps ---- */

static inline bool refuses(enum step s, struct err *err)
{
	return w.refuse_at == s && err_set_id(err, w.refuse_with, "as the test says") < 0;
}

static inline void on_answer_time(void *arg)
{
	enum step *s = arg;

	w.step[*s].done();
}

static inline void answer_later(enum step s)
{
	if (!w.held[s])
		loop_timer_arm(w.step[s].timer, 0);
}

/* What was held answers now. */
static inline void release(enum step s)
{
	w.held[s] = false;
	w.step[s].done();
}

static inline void answer_lease(void)
{
	struct err err = ERR_INIT;
	bool bad = refuses(LEASE, &err);

	w.lease_done("owner", w.egress, bad ? &err : NULL, w.lease_arg);
}

static inline void op_lease(void *env UNUSED, const struct queue_lease *l UNUSED,
			    bool with_spec UNUSED, budget_lease_done *done, void *arg)
{
	called("lease");
	w.lease_done = done;
	w.lease_arg = arg;
	answer_later(LEASE);
}

static inline int op_ward(void *env UNUSED, const struct ward_ask *ask UNUSED,
			  struct ward_verdict *ret, unsigned *ret_retry_sec,
			  struct err *err)
{
	called("ward");
	*ret = (struct ward_verdict){.action = WARD_ALLOW};
	*ret_retry_sec = 0;
	return refuses(WARD, err) ? -1 : 0;
}

static inline void answer_reserve(void)
{
	struct err err = ERR_INIT;
	bool bad = refuses(RESERVE, &err);

	w.reserve_done(bad	 ? 0
		       : w.grant ? w.grant
				 : w.want.most,
		       bad ? &err : NULL, w.reserve_arg);
}

static inline void op_reserve(void *env UNUSED, const struct budget_call *c UNUSED,
			      const struct budget_want *want, budget_grant_done *done,
			      void *arg)
{
	called("reserve");
	w.want = *want;
	budget_want_amounts(want, w.grant ? w.grant : want->most, &w.estimate);
	w.reserve_done = done;
	w.reserve_arg = arg;
	answer_later(RESERVE);
}

static inline void answer_extend(void)
{
	uint64_t bytes =
		w.bytes_left && w.bytes_left < w.wanted ? w.bytes_left : w.wanted;

	w.estimate.n[BUDGET_BYTES] = (int64_t)bytes;
	w.extend_done(bytes, NULL, w.extend_arg);
}

static inline void op_extend(void *env UNUSED, const struct budget_call *c UNUSED,
			     uint64_t bytes, budget_extend_done *done, void *arg)
{
	called("extend");
	w.wanted = bytes;
	w.extend_done = done;
	w.extend_arg = arg;
	if (!w.room_held)
		answer_extend();
}

static inline void op_room(struct egress_call *c UNUSED, uint64_t bytes, bool is_last)
{
	called("room");
	w.room = bytes;
	w.room_is_last = is_last;
}

static inline void op_settle(void *env UNUSED, const struct budget_call *c UNUSED,
			     const struct budget_amounts *actual, queue_done *done,
			     void *arg)
{
	struct err err = ERR_INIT;

	called("settle");
	w.actual = *actual;
	if (w.settle_fails > 0) {
		w.settle_fails--;
		(void)err_set_id(&err, ERRID_RUN_DB, "away");
		done(&err, arg);
		return;
	}
	w.n_settled++;
	done(NULL, arg);
}

static inline void op_denied(void *env UNUSED, job_id_t job UNUSED, queue_done *done,
			     void *arg)
{
	called("denied");
	done(NULL, arg);
}

static inline void op_trigger(void *env UNUSED, enum conf_trigger which,
			      const struct queue_lease *l, const char *why)
{
	cr_expect_eq(l->job, 7);
	buf_addf(&w.pulled, "%s: %s\n", conf_trigger_name(which), why);
}

static inline void op_count(void *env UNUSED, queue_count_done *done, void *arg)
{
	done(0, NULL, arg);
}

static inline void answer_gate(void)
{
	gate_ask_done *done = w.gate_done;

	w.gate_done = NULL;
	w.answer.err = &w.answer_err;
	w.answer.parts = w.parts;
	done(&w.answer, w.gate_arg);
	gate_parts_free(TAKE_PTR(w.parts));
}

/* As the gate does with what is private, to a text that says "hi". */
static inline void grow(struct gate_parts *p, size_t i)
{
	cleanup_free char *text = xmalloc(w.grown);

	if (p->part[i].len != 2 || memcmp(p->part[i].data, "hi", 2) != 0)
		return;
	memset(text, 'x', w.grown);
	gate_parts_replace(p, i, text, w.grown);
}

static inline int op_gate(void *env UNUSED, struct gate_job *job,
			  const char *destination UNUSED, struct gate_parts *parts,
			  gate_ask_done *done, void *arg, struct gate_ask **ret,
			  struct err *err)
{
	called("gate");
	w.gate_job = job;
	if (w.at_once && refuses(GATE, err)) {
		gate_parts_free(parts);
		return -1;
	}
	w.answer.verdict = refuses(GATE, &w.answer_err) ? GATE_REFUSE
			   : w.grown			? GATE_ANONYMISE
							: GATE_PASS;
	w.parts = parts;
	for (size_t i = 0; i < parts->n && w.grown; i++)
		grow(parts, i);
	w.last_part = parts->n ? parts->part[parts->n - 1].kind : GATE_PART_TEXT;
	w.gate_done = done;
	w.gate_arg = arg;
	*ret = (struct gate_ask *)&w;
	answer_later(GATE);
	return 0;
}

static inline void op_gate_cancel(struct gate_ask *a UNUSED)
{
	called("gate_cancel");
	loop_timer_disarm(w.step[GATE].timer);
	gate_parts_free(TAKE_PTR(w.parts));
}

static inline void keep_event(const struct audit_event *e)
{
	buf_addf(&w.told, "%s%s", w.told.len ? " " : "", e->name);
	cr_assert(str_fmt(w.last_event, sizeof(w.last_event), "%s %.*s", e->name,
			  (int)e->data_len, e->data) == 0);
}

static inline void answer_audit(void)
{
	struct err err = ERR_INIT;
	bool bad = refuses(AUDIT, &err);

	w.logged(bad ? &err : NULL, w.logged_arg);
}

static inline struct audit_wait *op_before(void *env UNUSED, const struct audit_event *e,
					   queue_done *done, void *arg, struct err *err)
{
	called("audit");
	if (w.at_once && refuses(AUDIT, err))
		return NULL;
	keep_event(e);
	w.logged = done;
	w.logged_arg = arg;
	answer_later(AUDIT);
	return (struct audit_wait *)&w;
}

static inline void op_forget(struct audit_wait *a UNUSED)
{
	called("forget");
	loop_timer_disarm(w.step[AUDIT].timer);
}

static inline void op_note(void *env UNUSED, const struct audit_event *e)
{
	keep_event(e);
}

static inline void answer_act(void)
{
	static const struct egress_header json[] = {{"content-type", "application/json"}};
	static const char body[] = "{\"choices\":[],\"usage\":{\"prompt_tokens\":11,"
				   "\"completion_tokens\":7}}";
	const struct egress_head head = {.status = 200, .headers = json, .n_headers = 1};
	const struct egress_end end = {.bytes_up = 100,
				       .bytes_down = sizeof(body) - 1,
				       .attempts = 1,
				       .sent = true};

	w.worker->on_head(&head, w.worker_arg);
	(void)w.worker->on_body(body, sizeof(body) - 1, w.worker_arg);
	w.worker->on_end(&end, w.worker_arg);
}

static inline int op_start(void *env UNUSED, const struct egress_request *rq,
			   const struct egress_ops *ops, void *arg,
			   struct egress_call **ret, struct err *err)
{
	called("act");
	if (refuses(ACT, err))
		return -1;
	w.n_sent++;
	buf_reset(&w.headers);
	for (size_t i = 0; i < rq->n_headers; i++)
		buf_addf(&w.headers, "%s: %s\n", rq->headers[i].name,
			 rq->headers[i].value);
	cr_assert(str_copy(w.target, sizeof(w.target), rq->target) == 0);
	w.room = rq->limits.reply_room_bytes;
	buf_reset(&w.sent);
	buf_add(&w.sent, rq->body, rq->body_len);
	w.worker = ops;
	w.worker_arg = arg;
	*ret = (struct egress_call *)&w;
	answer_later(ACT);
	return 0;
}

static inline void op_resume(struct egress_call *c UNUSED)
{
	called("resume");
}

static inline void op_cancel(struct egress_call *c UNUSED)
{
	called("cancel");
	loop_timer_disarm(w.step[ACT].timer);
}

static inline void op_ended(void *env UNUSED, const struct queue_lease *l UNUSED,
			    size_t n UNUSED, budget_ended_done *done, void *arg)
{
	w.n_ended++;
	w.ended_done = done;
	w.ended_arg = arg;
}

/* The database says that the lease of the request under way no longer stands. */
static inline void end_lease(void)
{
	const size_t place = 0;

	dispatch_hint(w.d);
	cr_assert(w.n_ended > 0);
	w.ended_done(&place, 1, NULL, w.ended_arg);
}

/* ---- the house ---- */

static inline void on_request(struct httpd_req *req, void *arg UNUSED)
{
	const struct queue_lease lease = {
		.job = 7, .epoch = 1, .token = {"00000000-0000-4000-8000-000000000001"}};

	if (str_eq(httpd_req_route(req)->path, "/ask"))
		dispatch_ask(w.d, req, &lease);
	else if (str_eq(httpd_req_route(req)->path, "/fetch"))
		dispatch_fetch(w.d, req, &lease);
	else
		dispatch_package(w.d, req, &lease);
}

static const struct httpd_route double_routes[] = {
	{HTTP_M_POST, "/ask", 0, 1 << 20, on_request},
	{HTTP_M_POST, "/fetch", 0, 1 << 20, on_request},
	{HTTP_M_POST, "/package", 0, 1 << 20, on_request},
};

static const struct dispatch_ops double_ops = {
	.lease = op_lease,
	.ended = op_ended,
	.ward = op_ward,
	.reserve = op_reserve,
	.extend = op_extend,
	.settle = op_settle,
	.denied = op_denied,
	.trigger = op_trigger,
	.recover = op_count,
	.sweep = op_count,
	.gate = op_gate,
	.gate_cancel = op_gate_cancel,
	.before = op_before,
	.forget = op_forget,
	.note = op_note,
	.start = op_start,
	.resume = op_resume,
	.room = op_room,
	.cancel = op_cancel,
};

static char model_name[] = "m", portal_name[] = "main", host_name[] = "api.example.org",
	    url_path[] = "/v1", url_text[] = "https://api.example.org/v1";
static struct conf_model double_model = {.name = model_name, .input_price = 1000000};
static struct conf_portal double_portal = {
	.name = portal_name,
	.kind = PORTAL_OPENAI,
	.url = {.https = true,
		.host = host_name,
		.port = 443,
		.path = url_path,
		.text = url_text},
	.model = &double_model,
	.n_models = 1,
};

static inline usec_t double_usec(void *ctx UNUSED)
{
	return clock_real.boot_usec(clock_real.ctx) + w.ahead;
}

static const struct clock_ops double_clock = {double_usec, double_usec, NULL};

static inline void dispatch_up(void)
{
	const struct dispatch_config cfg = {.loop = w.loop,
					    .clock = &double_clock,
					    .rng = &random_real,
					    .broker = &w.broker,
					    .ops = &double_ops,
					    .note = &double_note};

	w.d = dispatch_new(&cfg);
}

static inline void double_up(void)
{
	static void (*const answers[STEPS])(void) = {
		[LEASE] = answer_lease, [RESERVE] = answer_reserve, [GATE] = answer_gate,
		[AUDIT] = answer_audit, [ACT] = answer_act,
	};
	static enum step numbers[STEPS];
	struct err err = ERR_INIT;

	w.refuse_at = STEPS;
	w.egress = "brokered";
	w.fd = -1;
	w.broker = (struct conf_broker){.portal = &double_portal, .n_portals = 1};
	w.broker.containment = (struct conf_containment){
		.denials = 20, .denials_within_usec = 60 * USEC_PER_SEC};
	w.broker.egress = (struct conf_egress){.connect_usec = USEC_PER_SEC,
					       .request_max_bytes = 65536,
					       .response_max_bytes = 1 << 20,
					       .in_flight = 4};
	buf_init(&w.trace, 1 << 16);
	buf_init(&w.told, 1 << 20);
	buf_init(&w.pulled, 1 << 12);
	buf_init(&w.got, 16 << 20);
	buf_init(&w.headers, 1 << 16);
	buf_init(&w.sent, 1 << 20);
	cr_assert(loop_new(&w.loop, &err) == 0);
	for (unsigned s = 0; s < STEPS; s++) {
		numbers[s] = (enum step)s;
		w.step[s].done = answers[s];
		w.step[s].timer = loop_timer_new(w.loop, on_answer_time, &numbers[s]);
	}
	cr_assert(str_copy(w.path, sizeof(w.path), scratch_socket()) == 0);
	const struct httpd_config cfg = {
		.socket_path = w.path,
		.socket_mode = 0600,
		.routes = double_routes,
		.n_routes = ARRAY_SIZE(double_routes),
		.max_connections = 8,
		.idle_usec = 60 * USEC_PER_SEC,
		.stream_backlog_max_bytes = DISPATCH_BACKLOG_MAX_BYTES,
	};
	cr_assert(httpd_new(w.loop, &cfg, &w.httpd, &err) == 0, "%s", err.msg);
	dispatch_up();
}

static inline void hang_up(void)
{
	if (w.fd >= 0)
		close(w.fd);
	w.fd = -1;
}

static inline void double_down(void)
{
	hang_up();
	httpd_free(w.httpd);
	dispatch_free(w.d);
	for (unsigned s = 0; s < STEPS; s++)
		loop_timer_free(w.step[s].timer);
	gate_parts_free(w.parts);
	loop_free(w.loop);
	buf_done(&w.trace);
	buf_done(&w.told);
	buf_done(&w.pulled);
	buf_done(&w.headers);
	buf_done(&w.sent);
	buf_done(&w.got);
	memset(&w, 0, sizeof(w));
}

static inline void wake(void *arg)
{
	loop_stop(arg, 0);
}

static inline void turn(usec_t usec)
{
	struct loop_timer *t = loop_timer_new(w.loop, wake, w.loop);
	struct err err = ERR_INIT;

	loop_timer_arm(t, usec);
	cr_assert(loop_run(w.loop, &err) == 0);
	loop_timer_free(t);
}

#define AWAIT(cond)                                                                      \
	do {                                                                             \
		for (int tries_ = 0; !(cond) && tries_ < 10000; tries_++)                \
			turn(1000);                                                      \
		cr_assert(cond, "%s", traced());                                         \
	} while (0)

/* Nothing is under way, and the books have everything. */
static inline bool is_quiet(void)
{
	return !w.d->calls && !w.d->settlements;
}

#endif
