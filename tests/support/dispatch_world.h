/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world around the dispatcher's machine, for test_dispatch_ways.c: it holds what it was asked
 * and what it was given, says what can happen now, and refuses an effect that does not fit.
 */
#ifndef LYCH_TESTS_SUPPORT_DISPATCH_WORLD_H
#define LYCH_TESTS_SUPPORT_DISPATCH_WORLD_H

#include "vessel/broker/dispatch/machine.h"

#include <criterion/criterion.h>

/* What is around the machine. Bits are small on purpose: a situation is compared as a whole. */
struct world {
	struct dispatch_machine m;
	enum dispatch_effect due;		/* its answer comes next */
	bool lease_asked, lease_good, has_word; /* on the lease, whichever */
	bool is_estimated, reserve_asked, reserved, maybe_reserved; /* answer lost */
	bool gate_asked, gate_passed, worker, has_head, room_asked;
	bool log_asked, log_begun, logged; /* of this hop, on disk */
	bool request, stream, turn, waits, taken, has_why;
	bool gathers; /* the reply is put by, and the request has its answer at the end */
	bool is_known, is_gone, is_cut;		/* by the world */
	bool is_refused, is_broken, is_counted; /* broken: in its stream */
	bool answered, settled, log_ended, is_whole, is_free, is_dropped;
};

static enum dispatch_event now_by; /* the event that is taken in */
static void tell_way(void);	   /* how it came to here, by the test */

#define HOLDS(what, ...)                                                                 \
	do {                                                                             \
		if (!(what)) {                                                           \
			tell_way();                                                      \
			cr_assert_fail(__VA_ARGS__);                                     \
		}                                                                        \
	} while (0)

static void answer(struct world *w)
{
	HOLDS(!w->answered, "answered twice");
	w->answered = true;
}

static void take_back(bool *what, const char *name)
{
	HOLDS(*what, "%s is not there", name);
	*what = false;
}

static void ask(bool *what, const char *name)
{
	HOLDS(!*what, "%s is there already", name);
	*what = true;
}

static void sends(struct world *w)
{
	/* the statement that reserves asks for the lease */
	HOLDS(w->reserved, "sent, and not reserved");
	HOLDS(w->lease_good, "sent, and the lease was not found good");
	HOLDS(w->gate_passed, "sent, and not read by the gate");
	HOLDS(w->logged, "sent, and not in the log");
	HOLDS(w->request && !w->worker, "sent twice");
	HOLDS(!w->is_gone && !w->is_cut, "sent after its end");
}

static void ends(struct world *w)
{
	HOLDS(w->m.way == WAY_OVER, "freed before its end");
	HOLDS(!w->request && !w->stream && w->answered, "not answered");
	HOLDS(!w->worker && !w->gate_asked && !w->log_asked && !w->taken && !w->waits,
	      "something is not given back");
	w->is_free = true;
	if (w->is_dropped) {
		HOLDS(!w->settled && !w->log_ended, "settled by one who is dropped");
		return;
	}
	HOLDS(!w->lease_asked && !w->reserve_asked, "the database will answer nobody");
	HOLDS(w->settled == (w->reserved || w->maybe_reserved), "not settled");
	HOLDS(w->log_ended == w->log_begun, "the log does not know its end");
	HOLDS(w->is_whole || w->has_why, "it ends without a reason");
	HOLDS(w->is_counted == w->is_broken, "a reply that broke off is counted");
}

static void finishes(struct world *w, enum dispatch_effect e)
{
	switch ((unsigned)e) {
	case DO_ANSWER:
		HOLDS(!w->is_gone && w->has_why, "answered to nobody, or nothing");
		take_back(&w->request, "the request");
		answer(w);
		break;
	case DO_DROP_REQUEST:
		HOLDS(w->is_gone || w->is_dropped, "dropped, and somebody waits for it");
		take_back(&w->request, "the request");
		answer(w);
		break;
	case DO_END_STREAM:
		HOLDS(!w->worker && !w->is_cut, "ended before its end");
		w->is_whole = true;
		take_back(&w->stream, "the stream");
		answer(w);
		break;
	case DO_ABORT_STREAM:
		take_back(&w->stream, "the stream");
		answer(w);
		break;
	case DO_SETTLE:
		HOLDS(w->reserved || w->maybe_reserved, "settled, and not reserved");
		HOLDS(!w->worker && w->answered, "settled before its end");
		ask(&w->settled, "a settlement");
		break;
	case DO_LOG_DONE:
	case DO_LOG_FAILED:
		HOLDS(w->log_begun && w->is_whole == (e == DO_LOG_DONE), "a wrong word");
		HOLDS(w->settled == (w->reserved || w->maybe_reserved),
		      "told before it is known");
		ask(&w->log_ended, "an end in the log");
		break;
	case DO_LEAVE:
		take_back(&w->taken, "its place");
		break;
	case DO_FREE:
		ends(w);
		break;
	default:
		cr_assert_fail("effect %u", e);
	}
}

static void asks(struct world *w, enum dispatch_effect e)
{
	switch ((unsigned)e) {
	case DO_LOOK_SPEC:
	case DO_LOOK:
		HOLDS((e == DO_LOOK_SPEC) == (!w->is_known && !w->has_word),
		      "the specification is asked for once");
		ask(&w->lease_asked, "a look at the lease");
		break;
	case DO_RESERVE:
		HOLDS(!w->reserved && !w->maybe_reserved, "reserved twice");
		HOLDS(w->is_estimated && w->taken, "nobody knows how much, or for whom");
		ask(&w->reserve_asked, "a reservation");
		break;
	case DO_EXTEND:
		ask(&w->room_asked, "a look for room");
		break;
	case DO_CANCEL_GATE:
		take_back(&w->gate_asked, "a question to the gate");
		break;
	case DO_FORGET_LOG:
		take_back(&w->log_asked, "an event on its way");
		break;
	case DO_CANCEL:
		take_back(&w->worker, "the worker");
		break;
	case DO_RESUME:
	case DO_TELL_ROOM:
		HOLDS(w->worker, "no worker");
		break;
	case DO_STEP_OUT:
		take_back(&w->waits, "its place in the line");
		break;
	case DO_REWIND:
		HOLDS(!w->worker, "the worker has it still");
		w->lease_good = w->gate_passed = w->logged = w->has_head = false;
		break;
	case DO_AT_TURN:
	case DO_AT_TIME:
		HOLDS((e == DO_AT_TIME) == (now_by == ON_ANSWER_LATER),
		      "not at its time");
		w->turn = true;
		break;
	default:
		finishes(w, e);
	}
}

static void does(struct world *w, enum dispatch_effect e, bool is_last)
{
	HOLDS(!w->is_free, "done after its end");
	switch ((unsigned)e) {
	case DO_REFUSE:
		HOLDS(w->has_why && w->request && !w->worker, "refused too early");
		HOLDS(w->has_word && !w->lease_asked && !w->reserve_asked,
		      "told to one who may not hold the lease");
		w->is_refused = true;
		break;
	case DO_LOG:
		HOLDS(w->gate_passed && !w->is_cut, "logged before the gate has read it");
		break;
	case DO_START:
		sends(w);
		break;
	case DO_READ_HEAD:
		HOLDS(w->worker && w->request, "a head for nobody");
		break;
	case DO_READ_CHUNK:
	case DO_READ_END:
		HOLDS((w->stream || (w->gathers && w->request)) && !w->is_cut,
		      "a reply for nobody");
		break;
	case DO_PUMP:
		HOLDS(w->stream && !w->is_cut, "a reply for nobody");
		break;
	case DO_JUDGE:
		HOLDS(w->taken, "judged before it is whose it is");
		break;
	case DO_TAKE:
	case DO_GATE:
	case DO_WRITE:
		HOLDS(w->request && !w->is_gone, "nobody waits for it");
		break;
	case DO_WANT_ROOM:
		break;
	case DO_WHY_SAID:
	case DO_WHY_LESS:
	case DO_WHY_BROKEN:
	case DO_WHY_NO_REPLY:
	case DO_WHY_GONE:
		w->is_broken = e == DO_WHY_BROKEN && w->stream;
		w->has_why = true;
		return;
	case DO_ESTIMATE:
		ask(&w->is_estimated, "an estimate");
		return;
	case DO_COUNT_CUT:
		ask(&w->is_counted, "a count");
		return;
	default:
		HOLDS(is_last || (e != DO_RESERVE && e != DO_LOOK && e != DO_LOOK_SPEC &&
				  e != DO_RESUME && e != DO_EXTEND),
		      "it may answer at once, and is not the last");
		asks(w, e);
		return;
	}
	HOLDS(is_last, "its answer comes next, and it is not the last");
	w->due = e;
}

/* ---- what happens ---- */

/* At once, and not by a stream. */
static void answer_whole(struct world *w)
{
	w->is_whole = true;
	take_back(&w->request, "the request");
	answer(w);
}

/* Of the job, its request and its worker, and what ends it. */
static void happens_to_it(struct world *w, enum dispatch_event ev)
{
	switch ((unsigned)ev) {
	case ON_TAKEN:
	case ON_MISFIT:
		ask(&w->taken, "its place");
		break;
	case ON_WAITS:
		ask(&w->waits, "its place in the line");
		break;
	case ON_STARTED:
		w->worker = true;
		break;
	case ON_HEAD_GATHERS:
		w->gathers = true;
		break;
	case ON_END_GOOD:
		if (w->gathers)
			answer_whole(w);
		break;
	case ON_KEPT:
		answer_whole(w);
		break;
	case ON_HEAD:
		w->has_head = true;
		break;
	case ON_HEAD_STREAMS:
		take_back(&w->request, "the request");
		w->stream = true;
		break;
	case ON_WORKER_DONE:
	case ON_WORKER_FAILED:
	case ON_WORKER_LOST:
		take_back(&w->worker, "the worker");
		break;
	case ON_TURN:
		w->turn = w->waits = false;
		break;
	case ON_GONE:
		w->is_gone = true;
		break;
	case ON_CLOSED:
		take_back(&w->stream, "the stream");
		answer(w);
		break;
	case ON_STOPPING:
	case ON_CUT:
		w->is_cut = true;
		break;
	case ON_DROP:
		w->is_dropped = true;
		break;
	case ON_ROOM_GIVEN:
	case ON_ROOM_LAST:
		w->room_asked = false;
		break;
	default:
		break;
	}
}

/* Ends of what was asked, and what the world remembers of them. */
static void happens(struct world *w, enum dispatch_event ev)
{
	switch ((unsigned)ev) {
	case ON_BEGIN_KNOWN:
		w->is_known = true;
		break;
	case ON_LEASE_GOOD:
	case ON_LEASE_BAD:
		take_back(&w->lease_asked, "a look at the lease");
		w->lease_good = ev == ON_LEASE_GOOD;
		w->has_word = true;
		break;
	case ON_RESERVED:
	case ON_RESERVE_BAD:
	case ON_RESERVE_LOST:
		take_back(&w->reserve_asked, "a reservation");
		w->reserved = w->lease_good = ev == ON_RESERVED;
		w->maybe_reserved = ev == ON_RESERVE_LOST;
		w->has_word = true;
		break;
	case ON_GATE_ASKED:
		ask(&w->gate_asked, "a question to the gate");
		break;
	case ON_GATE_PASSED:
	case ON_GATE_REFUSED:
		take_back(&w->gate_asked, "a question to the gate");
		w->gate_passed = ev == ON_GATE_PASSED;
		break;
	case ON_LOG_BEGUN:
		ask(&w->log_asked, "an event on its way");
		w->log_begun = true;
		break;
	case ON_LOGGED:
	case ON_LOG_BAD:
		w->log_asked = false;
		w->logged = ev == ON_LOGGED;
		break;
	default:
		happens_to_it(w, ev);
	}
}

/* What a worker says before its end, and who was asked for its room, is listened to; w: before. */
static void is_heard(const struct world *w, enum dispatch_event ev,
		     const struct dispatch_effects *out)
{
	enum dispatch_effect first = out->n ? out->list[0] : DO_NOTHING;

	if (ev == ON_CHUNK && (w->stream || w->gathers) && !w->turn)
		HOLDS(first == DO_READ_CHUNK, "a piece is lost");
	if (ev == ON_MORE && !w->turn)
		HOLDS(first == DO_WANT_ROOM, "it waits for room");
	if ((ev == ON_ROOM_GIVEN || ev == ON_ROOM_LAST) && w->worker)
		HOLDS(first == DO_TELL_ROOM, "it waits for room");
}

static const enum dispatch_event answers[DISPATCH_EFFECTS_][4] = {
	[DO_TAKE] = {ON_TAKEN, ON_MISFIT, ON_WAITS, ON_BUSY},
	[DO_JUDGE] = {ON_ALLOWED, ON_ALLOWED_AHEAD, ON_DENIED},
	[DO_GATE] = {ON_GATE_ASKED, ON_GATE_AWAY},
	[DO_WRITE] = {ON_WRITTEN, ON_WRITE_BAD},
	[DO_LOG] = {ON_LOG_BEGUN, ON_LOG_BAD},
	[DO_START] = {ON_STARTED, ON_KEPT, ON_START_BAD},
	[DO_READ_HEAD] = {ON_HEAD_STREAMS, ON_HEAD_GATHERS, ON_HEAD_REDIRECTS,
			  ON_HEAD_BAD},
	[DO_READ_CHUNK] = {ON_CHUNK_PASSED, ON_CHUNK_STUCK, ON_CHUNK_BAD},
	[DO_READ_END] = {ON_END_GOOD, ON_END_BAD},
	[DO_PUMP] = {ON_READER_READY, ON_READER_BEHIND},
	[DO_REFUSE] = {ON_ANSWER_NOW, ON_ANSWER_LATER},
	[DO_WANT_ROOM] = {ON_ROOM_WANTED},
};

/* Whose word the end is told by, if this event says one that counts: who ends it first has it,
 * but for what comes while the database is asked. */
static enum dispatch_effect why_of(const struct world *w, enum dispatch_event ev)
{
	bool awaits = w->lease_asked || w->reserve_asked;

	switch ((unsigned)ev) {
	case ON_LEASE_BAD:
	case ON_RESERVE_BAD:
	case ON_RESERVE_LOST:
		return w->is_gone ? DO_NOTHING : DO_WHY_SAID;
	case ON_MISFIT:
	case ON_BUSY:
	case ON_DENIED:
	case ON_GATE_AWAY:
	case ON_GATE_REFUSED:
	case ON_WRITE_BAD:
	case ON_LOG_BAD:
	case ON_HEAD_BAD:
	case ON_CHUNK_BAD:
		return DO_WHY_SAID;
	case ON_STOPPING:
		return w->is_cut || w->is_gone ? DO_NOTHING : DO_WHY_SAID;
	case ON_BEGIN: /* a defect */
		return w->m.way == WAY_NEW ? DO_NOTHING : why_of(w, ON_CUT);
	case ON_CUT:
		return awaits || !(w->has_why || w->is_whole) ? DO_WHY_SAID : DO_NOTHING;
	case ON_GONE:
		return w->is_refused || (awaits && w->is_cut) ? DO_NOTHING : DO_WHY_GONE;
	case ON_CLOSED:
		return w->has_why ? DO_NOTHING : DO_WHY_GONE;
	case ON_START_BAD:
		return DO_WHY_LESS;
	case ON_END_BAD:
		return w->gathers ? DO_WHY_SAID : DO_WHY_BROKEN;
	case ON_WORKER_DONE:
		return w->turn || w->stream || w->gathers ? DO_NOTHING : DO_WHY_NO_REPLY;
	case ON_WORKER_FAILED:
	case ON_WORKER_LOST:
		return w->turn ? DO_NOTHING : DO_WHY_BROKEN;
	default:
		return DO_NOTHING;
	}
}

/* Could it happen now? Not by what the machine says. */
static bool can(const struct world *w, enum dispatch_event ev)
{
	if (w->due) {
		for (unsigned i = 0; i < 4; i++)
			if (answers[w->due][i] == ev && ev)
				/* who writes for nobody yet is never behind */
				return !(w->gathers && ev == ON_CHUNK_STUCK);
		return false;
	}
	if (w->m.way == WAY_NEW) /* begun as soon as it is there */
		return ev == ON_BEGIN || ev == ON_BEGIN_KNOWN;
	switch ((unsigned)ev) {
	case ON_BEGIN:
		return true; /* a defect */
	case ON_LEASE_GOOD:
	case ON_LEASE_BAD:
		return w->lease_asked;
	case ON_RESERVED:
	case ON_RESERVE_BAD:
	case ON_RESERVE_LOST:
		return w->reserve_asked;
	case ON_STOPPING:
		return w->lease_asked || w->reserve_asked;
	case ON_GATE_PASSED:
	case ON_GATE_REFUSED:
		return w->gate_asked;
	case ON_LOGGED:
	case ON_LOG_BAD:
		return w->log_asked;
	case ON_HEAD:
		return w->worker && !w->has_head;
	case ON_CHUNK:
	case ON_MORE:
	case ON_WORKER_DONE:
	case ON_WORKER_FAILED:
	case ON_WORKER_LOST:
		return w->worker;
	case ON_DRAINED:
	case ON_CLOSED:
		return w->stream;
	case ON_GONE:
		return w->request && !w->is_gone;
	case ON_TURN:
		return w->turn || w->waits;
	case ON_CUT:
	case ON_DROP:
		return true;
	case ON_ROOM_GIVEN:
	case ON_ROOM_LAST:
		return w->room_asked;
	default:
		return false;
	}
}

#endif
