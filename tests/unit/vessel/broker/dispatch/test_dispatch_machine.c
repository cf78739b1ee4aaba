/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's machine, row by row: for every state, every event and all sets of facts it does
 * what is written here, by event where the table is by state; and what is not written here is a
 * defect, which ends the call as a cut does.
 */
#include "vessel/broker/dispatch/machine.h"

#include "common/str.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(dispatch_machine, .timeout = 60);

static const char *const effects[DISPATCH_EFFECTS_] = {
	"",	      "look-spec",    "look",	    "take",	    "step-out",
	"judge",      "estimate",     "reserve",    "gate",	    "cancel-gate",
	"write",      "log",	      "forget-log", "start",	    "read-head",
	"read-chunk", "read-end",     "pump",	    "resume",	    "cancel",
	"rewind",     "said",	      "less",	    "broken",	    "no-reply",
	"gone",	      "count-cut",    "refuse",	    "turn",	    "time",
	"answer",     "drop-request", "end-stream", "abort-stream", "settle",
	"log-done",   "log-failed",   "leave",	    "free",	    "want-room",
	"extend",     "tell-room",
};

/* "event: state... -> state: effect..."; = is the state that it was in. */
static const char *const wanted[] = {
	"begin: new -> lease: look-spec",
	"begin-known: new -> take-known: take",

	"lease-good: lease -> take: take",
	"lease-good: lease-hop -> ward-hop: judge",
	"lease-good: lease-judged lease-cut -> refuse: refuse",
	"lease-good: lease-gone -> over: drop-request fails",
	"lease-bad: lease lease-hop lease-judged lease-cut -> refuse: said refuse",
	"lease-bad: lease-gone -> over: drop-request fails",

	"stopping: lease lease-hop lease-judged -> lease-cut: said",
	"stopping: reserve reserve-ready reserve-judged -> reserve-cut: said",
	"stopping: reserve-gate -> reserve-cut: cancel-gate said",
	"stopping: reserve-log -> reserve-cut: forget-log said",
	"stopping: lease-cut lease-gone reserve-cut reserve-gone -> =:",

	"taken: take -> ward: judge",
	"taken: take-known -> ward-known: judge",
	"misfit: take -> refuse: said refuse",
	"misfit: take-known -> lease-judged: said look",
	"waits: take take-known -> wait:",
	"busy: take -> refuse: said refuse",
	"busy: take-known -> lease-judged: said look",

	"allowed: ward ward-known -> reserve: estimate reserve",
	"allowed: ward-hop -> gate: gate",
	"allowed-ahead: ward ward-known -> reserve-ask: estimate gate",
	"allowed-ahead: ward-hop -> gate: gate",
	"denied: ward ward-hop -> refuse: said refuse",
	"denied: ward-known -> lease-judged: said look",

	"reserved: reserve -> gate: gate",
	"reserved: reserve-gate -> gate:",
	"reserved: reserve-log -> log:",
	"reserved: reserve-ready -> start: start",
	"reserved: reserve-judged reserve-cut -> refuse: refuse",
	"reserved: reserve-gone -> over: drop-request fails",
	"reserve-bad: reserve reserve-ready -> refuse: said refuse",
	"reserve-bad: reserve-judged reserve-cut -> refuse: said refuse",
	"reserve-bad: reserve-gate -> refuse: cancel-gate said refuse",
	"reserve-bad: reserve-log -> refuse: forget-log said refuse",
	"reserve-bad: reserve-gone -> over: drop-request fails",
	"reserve-lost: reserve reserve-ready -> refuse: said refuse",
	"reserve-lost: reserve-judged reserve-cut -> refuse: said refuse",
	"reserve-lost: reserve-gate -> refuse: cancel-gate said refuse",
	"reserve-lost: reserve-log -> refuse: forget-log said refuse",
	"reserve-lost: reserve-gone -> over: drop-request fails",

	"gate-asked: gate -> =:",
	"gate-asked: reserve-ask -> reserve-gate: reserve",
	"gate-away: gate -> refuse: said refuse",
	"gate-away: reserve-ask -> reserve-judged: said reserve",
	"gate-passed: gate -> write: write",
	"gate-passed: reserve-gate -> reserve-write: write",
	"gate-refused: gate -> refuse: said refuse",
	"gate-refused: reserve-gate -> reserve-judged: said",
	"written: write -> log: log",
	"written: reserve-write -> reserve-log: log",
	"write-bad: write -> refuse: said refuse",
	"write-bad: reserve-write -> reserve-judged: said",

	"log-begun: log reserve-log -> =:",
	"logged: log -> start: start",
	"logged: reserve-log -> reserve-ready:",
	"log-bad: log -> refuse: said refuse",
	"log-bad: reserve-log -> reserve-judged: said",

	"started: start -> sent:",
	"kept: start -> served: turn",
	"start-bad: start -> refuse: less refuse",

	"head: sent -> head: read-head",
	"head: cut -> =:",
	"chunk: reply paused gather -> =: read-chunk",
	"chunk: sent again cut cut-stream -> =:",
	"more: sent reply paused gather -> =: want-room",
	"more: again cut cut-stream -> =:",
	"worker-done: sent -> refuse: no-reply refuse",
	"worker-done: reply paused -> end: read-end",
	"worker-done: gather -> gathered: read-end",
	"worker-done: again cut cut-stream -> =:",
	"worker-failed: sent gather -> refuse: broken refuse",
	"worker-failed: reply paused -> over: broken count-cut abort-stream fails",
	"worker-failed: again cut cut-stream -> =:",
	"worker-lost: sent gather -> refuse: broken refuse",
	"worker-lost: reply paused -> over: broken count-cut abort-stream fails",
	"worker-lost: again cut cut-stream -> =:",

	"head-streams: head -> reply:",
	"head-gathers: head -> gather:",
	"head-redirects: head -> again: turn",
	"head-bad: head -> cut: said turn",
	"chunk-passed: reply paused -> reply:",
	"chunk-passed: gather -> =:",
	"chunk-stuck: reply paused -> paused:",
	"chunk-bad: reply paused -> cut-stream: said turn",
	"chunk-bad: gather -> cut: said turn",
	"end-good: end -> drain: pump",
	"end-good: gathered -> served: turn",
	"end-bad: end -> over: broken count-cut abort-stream fails",
	"end-bad: gathered -> refuse: said refuse",

	"drained: reply cut-stream -> =:",
	"drained: paused drain -> =: pump",
	"reader-ready: paused -> reply: resume",
	"reader-ready: drain -> served: end-stream turn",
	"reader-behind: paused drain -> =:",

	"turn: wait -> take-known: take",
	"turn: again -> lease-hop: cancel rewind look",
	"turn: served -> over: settle log-done leave free",
	"turn: cut -> refuse: cancel refuse",
	"turn: cut-gone -> over: drop-request fails",
	"turn: cut-stream -> over: cancel abort-stream fails",
	"turn: cut-closed -> over: fails",
	"turn: refused -> over: answer fails",
	"turn: refused-gone -> over: drop-request fails",
	"answer-now: refuse -> over: answer fails",
	"answer-later: refuse -> refused: time",

	"cut: lease lease-hop lease-judged lease-cut -> lease-cut: said",
	"cut: lease-gone reserve-gone -> =: said",
	"cut: reserve reserve-write reserve-ready -> reserve-cut: said",
	"cut: reserve-judged reserve-cut -> reserve-cut: said",
	"cut: reserve-gate -> reserve-cut: cancel-gate said",
	"cut: reserve-log -> reserve-cut: forget-log said",
	"cut: wait -> lease-cut: step-out said look",
	"cut: gate reserve-ask -> cut: cancel-gate said turn",
	"cut: log -> cut: forget-log said turn",
	"cut: new take take-known ward ward-known ward-hop -> cut: said turn",
	"cut: write start sent head again refuse gather gathered -> cut: said turn",
	"cut: reply paused end drain -> cut-stream: said turn",
	"cut: served cut cut-gone cut-stream cut-closed refused refused-gone -> =:",

	"gone: lease lease-hop lease-judged -> lease-gone: gone",
	"gone: lease-cut -> lease-gone:",
	"gone: reserve reserve-ready reserve-judged -> reserve-gone: gone",
	"gone: reserve-gate -> reserve-gone: cancel-gate gone",
	"gone: reserve-log -> reserve-gone: forget-log gone",
	"gone: reserve-cut -> reserve-gone:",
	"gone: wait -> cut-gone: step-out gone turn",
	"gone: gate -> cut-gone: cancel-gate gone turn",
	"gone: log -> cut-gone: forget-log gone turn",
	"gone: sent again cut gather -> cut-gone: cancel gone turn",
	"gone: refused -> refused-gone:",
	"closed: reply paused -> cut-closed: cancel gone turn",
	"closed: drain -> cut-closed: gone turn",
	"closed: cut-stream -> cut-closed: cancel turn",

	"drop: lease lease-hop lease-judged -> over: drop-request leave free",
	"drop: lease-cut lease-gone -> over: drop-request leave free",
	"drop: reserve reserve-ready reserve-judged -> over: drop-request leave free",
	"drop: reserve-cut reserve-gone -> over: drop-request leave free",
	"drop: wait -> over: step-out drop-request leave free",
	"drop: gate reserve-gate -> over: cancel-gate drop-request leave free",
	"drop: log reserve-log -> over: forget-log drop-request leave free",
	"drop: sent again cut gather -> over: cancel drop-request leave free",
	"drop: reply paused cut-stream -> over: cancel abort-stream leave free",
	"drop: drain -> over: abort-stream leave free",
	"drop: served cut-closed -> over: leave free",
	"drop: cut-gone refused refused-gone -> over: drop-request leave free",

	"room-wanted: room-open -> room-asked: extend",
	"room-wanted: room-asked room-last -> =:",
	"room-given: room-asked -> room-open: tell-room",
	"room-last: room-asked -> room-last: tell-room",
};

/* What happened becomes a fact, and what a worker was told; nothing else does. */
static const struct {
	enum dispatch_event ev;
	unsigned sets, clears;
} happened[] = {
	{ON_TAKEN, IS_TAKEN, 0},
	{ON_MISFIT, IS_TAKEN, 0},
	{ON_RESERVED, IS_RESERVED, 0},
	{ON_RESERVE_LOST, IS_RESERVED, 0},
	{ON_GATE_PASSED, IS_SCANNED, 0},
	{ON_GATE_REFUSED, IS_SCANNED, 0},
	{ON_LOG_BEGUN, IS_LOGGED, 0},
	{ON_STARTED, IS_WORKER, 0},
	{ON_WORKER_DONE, 0, IS_WORKER},
	{ON_WORKER_FAILED, 0, IS_WORKER},
	{ON_WORKER_LOST, IS_LOST, IS_WORKER},
	{ON_END_GOOD, IS_WHOLE, 0},
};

struct expectation {
	bool is_row;
	enum dispatch_state next;
	unsigned n;
	enum dispatch_effect list[DISPATCH_ROW_MAX];
};

static struct expectation expected[DISPATCH_STATES_][DISPATCH_EVENTS_];

static unsigned state_by(const char *name)
{
	unsigned s = 0;

	while (s < DISPATCH_STATES_ && !str_eq(dispatch_state_name(s), name))
		s++;
	cr_assert(s < DISPATCH_STATES_, "no state: %s", name);
	return s;
}

static unsigned event_by(const char *name)
{
	unsigned e = 0;

	while (e < DISPATCH_EVENTS_ && !str_eq(dispatch_event_name(e), name))
		e++;
	cr_assert(e < DISPATCH_EVENTS_, "no event: %s", name);
	return e;
}

static enum dispatch_effect effect_by(const char *name)
{
	unsigned i = 1;

	while (i < DISPATCH_EFFECTS_ && !str_eq(effects[i], name))
		i++;
	cr_assert(i < DISPATCH_EFFECTS_, "no effect: %s", name);
	return i;
}

static void add_effect(struct expectation *x, const char *name)
{
	static const enum dispatch_effect fails[] = {DO_SETTLE, DO_LOG_FAILED, DO_LEAVE,
						     DO_FREE};

	if (!str_eq(name, "fails")) {
		x->list[x->n++] = effect_by(name);
		return;
	}
	for (size_t i = 0; i < sizeof(fails) / sizeof(*fails); i++)
		x->list[x->n++] = fails[i];
}

static void expect(const char *text)
{
	char copy[256], *end, *word, *arrow, *list;
	struct expectation x = {.is_row = true};
	bool stays;
	unsigned ev;

	cr_assert(str_copy(copy, sizeof(copy), text) == 0);
	word = strtok_r(copy, ":", &end);
	ev = event_by(word);
	arrow = strstr(end, " -> ");
	cr_assert(arrow, "%s", text);
	*arrow = '\0';
	list = strchr(arrow + 4, ':');
	cr_assert(list, "%s", text);
	*list++ = '\0';
	stays = arrow[4] == '=';
	x.next = stays ? 0 : state_by(arrow + 4);
	for (char *at, *w = strtok_r(list, " ", &at); w; w = strtok_r(NULL, " ", &at))
		add_effect(&x, w);
	for (char *at, *w = strtok_r(end, " ", &at); w; w = strtok_r(NULL, " ", &at)) {
		unsigned s = state_by(w);

		cr_assert(!expected[s][ev].is_row, "twice: %s in %s", word, w);
		expected[s][ev] = x;
		expected[s][ev].next = stays ? s : x.next;
	}
}

static void expect_all(void)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		expect(wanted[i]);
}

/* Carried out only where there is something to give back, to tell or to stop. */
static bool is_left_out(enum dispatch_effect e, unsigned facts)
{
	if (e == DO_SETTLE)
		return !(facts & IS_RESERVED);
	if (e == DO_LOG_DONE || e == DO_LOG_FAILED)
		return !(facts & IS_LOGGED);
	if (e == DO_LEAVE)
		return !(facts & IS_TAKEN);
	return (e == DO_CANCEL || e == DO_TELL_ROOM) && !(facts & IS_WORKER);
}

static unsigned facts_after(enum dispatch_event ev, unsigned facts)
{
	for (size_t i = 0; i < sizeof(happened) / sizeof(*happened); i++)
		if (happened[i].ev == ev)
			facts = (facts & ~happened[i].clears) | happened[i].sets;
	return facts;
}

/* x: the row; the machine was in a state that it is of. */
static void goes_by(const struct expectation *x, enum dispatch_event ev, unsigned facts,
		    const struct dispatch_machine *m, const struct dispatch_effects *got,
		    const char *what)
{
	unsigned n = 0;

	facts = facts_after(ev, facts);
	for (unsigned i = 0; i < x->n; i++) {
		if (is_left_out(x->list[i], facts))
			continue;
		cr_assert(n < got->n && got->list[n] == x->list[i], "%s: %s is missing",
			  what, effects[x->list[i]]);
		n++;
		if (x->list[i] == DO_CANCEL)
			facts = (facts & ~(unsigned)IS_WORKER) | IS_LOST;
		if (x->list[i] == DO_REWIND)
			facts &= ~(unsigned)IS_LOST;
	}
	cr_assert_eq(got->n, n, "%s: too much is done", what);
	cr_assert_eq(m->facts, facts, "%s: facts", what);
	cr_assert_eq(x->next >= ROOM_OPEN ? m->room : m->way, x->next, "%s: to %s", what,
		     dispatch_state_name(x->next >= ROOM_OPEN ? m->room : m->way));
}

static bool is_rooms(enum dispatch_event ev)
{
	return ev >= ON_ROOM_WANTED;
}

static void try_one(enum dispatch_state s, enum dispatch_event ev, unsigned facts)
{
	struct dispatch_machine m = {.way = s, .room = ROOM_OPEN, .facts = facts};
	const struct expectation *x = &expected[s][ev];
	struct dispatch_effects got;
	char what[96];

	if (s >= ROOM_OPEN) {
		m.way = WAY_REPLY;
		m.room = s;
	}
	(void)snprintf(what, sizeof(what), "%s in %s, facts %x", dispatch_event_name(ev),
		       dispatch_state_name(s), facts);
	struct dispatch_machine was = m;

	dispatch_machine_step(&m, ev, &got);
	cr_assert_eq(got.is_defect, !x->is_row, "%s: row or defect", what);
	if (got.is_defect)
		x = &expected[was.way][ON_CUT];
	cr_assert(x->is_row, "%s: nothing cuts it", what);
	goes_by(x, ev, facts, &m, &got, what);
	if (x->next >= ROOM_OPEN)
		cr_assert_eq(m.way, was.way, "%s: the way", what);
	else
		cr_assert_eq(m.room, was.room, "%s: the room", what);
}

Test(dispatch_machine, does_what_is_written_and_nothing_else)
{
	unsigned rows = 0, defects = 0;

	expect_all();
	for (unsigned s = 0; s < DISPATCH_STATES_; s++) {
		if (s == WAY_OVER)
			continue;
		for (unsigned ev = ON_BEGIN; ev < DISPATCH_EVENTS_; ev++) {
			if (is_rooms(ev) != (s >= ROOM_OPEN))
				continue;
			rows += expected[s][ev].is_row;
			defects += !expected[s][ev].is_row;
			for (unsigned facts = 0; facts < DISPATCH_FACTS_; facts++)
				try_one(s, ev, facts);
		}
	}
	cr_log_info("%u rows, %u defects", rows, defects);
	cr_expect_gt(rows, 200u);
}

Test(dispatch_machine, begins_with_nothing)
{
	struct dispatch_machine m = {.way = WAY_OVER, .room = ROOM_LAST, .facts = 1};

	dispatch_machine_init(&m);
	cr_expect(m.way == WAY_NEW && m.room == ROOM_OPEN && m.facts == 0);
}

/* Names go into the log: each is there, and no two are the same. */
Test(dispatch_machine, every_state_and_event_has_its_name)
{
	for (unsigned s = 0; s < DISPATCH_STATES_; s++) {
		cr_assert(dispatch_state_name(s), "%u", s);
		cr_expect_eq(state_by(dispatch_state_name(s)), s);
	}
	for (unsigned e = 0; e < DISPATCH_EVENTS_; e++) {
		cr_assert(dispatch_event_name(e), "%u", e);
		cr_expect_eq(event_by(dispatch_event_name(e)), e);
	}
	cr_expect_str_eq(dispatch_state_name(DISPATCH_STATES_), "?");
	cr_expect_str_eq(dispatch_event_name(DISPATCH_EVENTS_), "?");
}

/* The way that all of it is for, and the one beside the reservation. */
Test(dispatch_machine, a_request_is_sent_and_served)
{
	static const enum dispatch_event after[] = {
		ON_BEGIN,	 ON_LEASE_GOOD,	  ON_TAKEN,	   ON_ALLOWED,
		ON_RESERVED,	 ON_GATE_ASKED,	  ON_GATE_PASSED,  ON_WRITTEN,
		ON_LOG_BEGUN,	 ON_LOGGED,	  ON_STARTED,	   ON_HEAD,
		ON_HEAD_STREAMS, ON_CHUNK,	  ON_CHUNK_PASSED, ON_WORKER_DONE,
		ON_END_GOOD,	 ON_READER_READY, ON_TURN};
	static const enum dispatch_event beside[] = {
		ON_BEGIN_KNOWN,	 ON_TAKEN,	  ON_ALLOWED_AHEAD, ON_GATE_ASKED,
		ON_GATE_PASSED,	 ON_WRITTEN,	  ON_LOG_BEGUN,	    ON_LOGGED,
		ON_RESERVED,	 ON_STARTED,	  ON_HEAD,	    ON_HEAD_STREAMS,
		ON_CHUNK,	 ON_CHUNK_PASSED, ON_WORKER_DONE,   ON_END_GOOD,
		ON_READER_READY, ON_TURN};
	struct {
		const enum dispatch_event *by;
		size_t n;
	} all[] = {{after, sizeof(after) / sizeof(*after)},
		   {beside, sizeof(beside) / sizeof(*beside)}};

	for (size_t k = 0; k < 2; k++) {
		struct dispatch_machine m;
		struct dispatch_effects out;

		dispatch_machine_init(&m);
		for (size_t i = 0; i < all[k].n; i++) {
			dispatch_machine_step(&m, all[k].by[i], &out);
			cr_expect(!out.is_defect, "%s",
				  dispatch_event_name(all[k].by[i]));
		}
		cr_expect_eq(m.way, WAY_OVER);
		cr_expect_eq(m.facts, (unsigned)(IS_TAKEN | IS_RESERVED | IS_SCANNED |
						 IS_LOGGED | IS_WHOLE));
		cr_expect(out.n == 4 && out.list[1] == DO_LOG_DONE);
	}
}
