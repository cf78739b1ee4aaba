/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See machine.h.
 */
#include "vessel/broker/dispatch/machine.h"

#include <assert.h>

struct row {
	bool is_row;
	enum dispatch_state next;
	enum dispatch_effect effects[DISPATCH_ROW_MAX];
};

static const struct row table[DISPATCH_STATES_][DISPATCH_EVENTS_] = {
#define ROW_(state, event, to, ...)                                                      \
	[state][event] = {.is_row = true, .next = (to), .effects = {__VA_ARGS__}},
#define ROW(...) ROW_(__VA_ARGS__)
#include "vessel/broker/dispatch/table.def"
#undef ROW
#undef ROW_
};

/* What an event, and an effect that is carried out, make of the facts; an effect that needs one
 * is left out without it. */
struct change {
	unsigned needs, sets, clears;
};

static const struct change by_event[DISPATCH_EVENTS_] = {
	[ON_TAKEN] = {.sets = IS_TAKEN},
	[ON_MISFIT] = {.sets = IS_TAKEN},
	[ON_RESERVED] = {.sets = IS_RESERVED},
	[ON_RESERVE_LOST] = {.sets = IS_RESERVED},
	[ON_GATE_PASSED] = {.sets = IS_SCANNED},
	[ON_GATE_REFUSED] = {.sets = IS_SCANNED},
	[ON_LOG_BEGUN] = {.sets = IS_LOGGED},
	[ON_STARTED] = {.sets = IS_WORKER},
	[ON_WORKER_DONE] = {.clears = IS_WORKER},
	[ON_WORKER_FAILED] = {.clears = IS_WORKER},
	[ON_WORKER_LOST] = {.sets = IS_LOST, .clears = IS_WORKER},
	[ON_END_GOOD] = {.sets = IS_WHOLE},
};

static const struct change by_effect[DISPATCH_EFFECTS_] = {
	[DO_CANCEL] = {.needs = IS_WORKER, .sets = IS_LOST, .clears = IS_WORKER},
	[DO_REWIND] = {.clears = IS_LOST}, /* what came of a redirect has been counted */
	[DO_SETTLE] = {.needs = IS_RESERVED},
	[DO_LOG_DONE] = {.needs = IS_LOGGED},
	[DO_LOG_FAILED] = {.needs = IS_LOGGED},
	[DO_LEAVE] = {.needs = IS_TAKEN},
	[DO_TELL_ROOM] = {.needs = IS_WORKER},
};

static void apply(struct dispatch_machine *m, const struct change *c)
{
	m->facts = (m->facts & ~c->clears) | c->sets;
}

void dispatch_machine_init(struct dispatch_machine *m)
{
	*m = (struct dispatch_machine){.way = WAY_NEW, .room = ROOM_OPEN};
}

/* Of the two machines, the one that the event is for. */
static enum dispatch_state *state_of(struct dispatch_machine *m, enum dispatch_event ev)
{
	return ev >= ON_ROOM_WANTED ? &m->room : &m->way;
}

void dispatch_machine_step(struct dispatch_machine *m, enum dispatch_event ev,
			   struct dispatch_effects *ret)
{
	enum dispatch_state *state = state_of(m, ev);
	const struct row *row = &table[*state][ev];

	assert(m->way != WAY_OVER && ev != ON_NOTHING && ev < DISPATCH_EVENTS_);
	*ret = (struct dispatch_effects){.is_defect = !row->is_row};
	apply(m, &by_event[ev]);
	if (ret->is_defect) {
		state = &m->way;
		row = &table[*state][ON_CUT];
	}
	assert(row->is_row);
	*state = row->next;
	for (unsigned i = 0; i < DISPATCH_ROW_MAX && row->effects[i]; i++) {
		const struct change *c = &by_effect[row->effects[i]];

		if (c->needs && !(m->facts & c->needs))
			continue;
		apply(m, c);
		ret->list[ret->n++] = row->effects[i];
	}
}

const char *dispatch_state_name(enum dispatch_state s)
{
	static const char *const names[DISPATCH_STATES_] = {
		[WAY_NEW] = "new",
		[WAY_LEASE] = "lease",
		[WAY_LEASE_HOP] = "lease-hop",
		[WAY_LEASE_JUDGED] = "lease-judged",
		[WAY_LEASE_CUT] = "lease-cut",
		[WAY_LEASE_GONE] = "lease-gone",
		[WAY_TAKE] = "take",
		[WAY_TAKE_KNOWN] = "take-known",
		[WAY_WAIT] = "wait",
		[WAY_WARD] = "ward",
		[WAY_WARD_KNOWN] = "ward-known",
		[WAY_WARD_HOP] = "ward-hop",
		[WAY_RESERVE] = "reserve",
		[WAY_RESERVE_ASK] = "reserve-ask",
		[WAY_RESERVE_GATE] = "reserve-gate",
		[WAY_RESERVE_WRITE] = "reserve-write",
		[WAY_RESERVE_LOG] = "reserve-log",
		[WAY_RESERVE_READY] = "reserve-ready",
		[WAY_RESERVE_JUDGED] = "reserve-judged",
		[WAY_RESERVE_CUT] = "reserve-cut",
		[WAY_RESERVE_GONE] = "reserve-gone",
		[WAY_GATE] = "gate",
		[WAY_WRITE] = "write",
		[WAY_LOG] = "log",
		[WAY_START] = "start",
		[WAY_SENT] = "sent",
		[WAY_HEAD] = "head",
		[WAY_REPLY] = "reply",
		[WAY_PAUSED] = "paused",
		[WAY_END] = "end",
		[WAY_DRAIN] = "drain",
		[WAY_GATHER] = "gather",
		[WAY_GATHERED] = "gathered",
		[WAY_SERVED] = "served",
		[WAY_AGAIN] = "again",
		[WAY_CUT] = "cut",
		[WAY_CUT_GONE] = "cut-gone",
		[WAY_CUT_STREAM] = "cut-stream",
		[WAY_CUT_CLOSED] = "cut-closed",
		[WAY_REFUSE] = "refuse",
		[WAY_REFUSED] = "refused",
		[WAY_REFUSED_GONE] = "refused-gone",
		[WAY_OVER] = "over",
		[ROOM_OPEN] = "room-open",
		[ROOM_ASKED] = "room-asked",
		[ROOM_LAST] = "room-last",
	};

	return s < DISPATCH_STATES_ ? names[s] : "?";
}

static const char *const event_names[DISPATCH_EVENTS_] = {
	[ON_NOTHING] = "nothing",
	[ON_BEGIN] = "begin",
	[ON_BEGIN_KNOWN] = "begin-known",
	[ON_LEASE_GOOD] = "lease-good",
	[ON_LEASE_BAD] = "lease-bad",
	[ON_STOPPING] = "stopping",
	[ON_TAKEN] = "taken",
	[ON_MISFIT] = "misfit",
	[ON_WAITS] = "waits",
	[ON_BUSY] = "busy",
	[ON_ALLOWED] = "allowed",
	[ON_ALLOWED_AHEAD] = "allowed-ahead",
	[ON_DENIED] = "denied",
	[ON_RESERVED] = "reserved",
	[ON_RESERVE_BAD] = "reserve-bad",
	[ON_RESERVE_LOST] = "reserve-lost",
	[ON_GATE_ASKED] = "gate-asked",
	[ON_GATE_AWAY] = "gate-away",
	[ON_GATE_PASSED] = "gate-passed",
	[ON_GATE_REFUSED] = "gate-refused",
	[ON_WRITTEN] = "written",
	[ON_WRITE_BAD] = "write-bad",
	[ON_LOG_BEGUN] = "log-begun",
	[ON_LOGGED] = "logged",
	[ON_LOG_BAD] = "log-bad",
	[ON_STARTED] = "started",
	[ON_KEPT] = "kept",
	[ON_START_BAD] = "start-bad",
	[ON_HEAD] = "head",
	[ON_CHUNK] = "chunk",
	[ON_MORE] = "more",
	[ON_WORKER_DONE] = "worker-done",
	[ON_WORKER_FAILED] = "worker-failed",
	[ON_WORKER_LOST] = "worker-lost",
	[ON_HEAD_STREAMS] = "head-streams",
	[ON_HEAD_GATHERS] = "head-gathers",
	[ON_HEAD_REDIRECTS] = "head-redirects",
	[ON_HEAD_BAD] = "head-bad",
	[ON_CHUNK_PASSED] = "chunk-passed",
	[ON_CHUNK_STUCK] = "chunk-stuck",
	[ON_CHUNK_BAD] = "chunk-bad",
	[ON_END_GOOD] = "end-good",
	[ON_END_BAD] = "end-bad",
	[ON_DRAINED] = "drained",
	[ON_READER_READY] = "reader-ready",
	[ON_READER_BEHIND] = "reader-behind",
	[ON_TURN] = "turn",
	[ON_ANSWER_NOW] = "answer-now",
	[ON_ANSWER_LATER] = "answer-later",
	[ON_CUT] = "cut",
	[ON_GONE] = "gone",
	[ON_CLOSED] = "closed",
	[ON_DROP] = "drop",
	[ON_ROOM_WANTED] = "room-wanted",
	[ON_ROOM_GIVEN] = "room-given",
	[ON_ROOM_LAST] = "room-last",
};

const char *dispatch_event_name(enum dispatch_event ev)
{
	return ev < DISPATCH_EVENTS_ ? event_names[ev] : "?";
}
