/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way that a request can take through the dispatcher's machine: all situations that can be
 * reached, breadth first, in a world that answers what it was asked in any order, hangs up, ends
 * the lease, stops and goes wrong whenever it can. In each of them: nothing is sent before lease,
 * reservation, gate and log; what was taken is given back; the job is answered once; what was
 * reserved is settled once; and the end comes by itself.
 */
#include "tests/support/dispatch_world.h"
#include "vessel/broker/dispatch/machine.h"

#include "common/mem.h"
#include "vessel/broker/dispatch/machine.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

TestSuite(dispatch_ways, .timeout = 60);

#define WORLDS_MAX (1u << 18)
#define EDGES_MAX 24
struct place {
	struct world w;
	unsigned from;
	enum dispatch_event by;
	unsigned n_next, next[EDGES_MAX]; /* that come by themselves */
	bool ends;
};

static struct place *places;
static unsigned n_places, *slots;

static unsigned now_at; /* for messages */

static void tell_way_to(unsigned at)
{
	if (places[at].from != at)
		tell_way_to(places[at].from);
	cr_log_error("%-14s -> %s", dispatch_event_name(places[at].by),
		     dispatch_state_name(places[at].w.m.way));
}

static void tell_way(void)
{
	tell_way_to(now_at);
}

static void is_told_by(enum dispatch_effect why, const struct dispatch_effects *out)
{
	for (unsigned i = 0; i < out->n; i++)
		if (out->list[i] >= DO_WHY_SAID && out->list[i] <= DO_WHY_GONE) {
			HOLDS(out->list[i] == why, "told by a wrong word");
			why = DO_NOTHING;
		}
	HOLDS(why == DO_NOTHING, "its word is not kept");
}

/* Nobody's doing but that of who was asked: the end must come by these alone. */
static bool comes_by_itself(enum dispatch_event ev)
{
	return ev != ON_CUT && ev != ON_STOPPING && ev != ON_DROP && ev != ON_GONE &&
	       ev != ON_CLOSED;
}

/* ---- breadth first ---- */

static uint64_t hash_of(const struct world *w)
{
	const unsigned char *b = (const unsigned char *)w;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(*w); i++)
		h = (h ^ b[i]) * 1099511628211u;
	return h;
}

static unsigned place_of(const struct world *w, unsigned from, enum dispatch_event by)
{
	uint64_t h = hash_of(w);

	for (;; h++) {
		unsigned *slot = &slots[h % (2 * WORLDS_MAX)];

		if (*slot == 0) {
			cr_assert(n_places < WORLDS_MAX, "more situations than that");
			places[n_places] = (struct place){.from = from, .by = by};
			memcpy(&places[n_places].w, w, sizeof(*w));
			*slot = ++n_places;
			return n_places - 1;
		}
		if (memcmp(&places[*slot - 1].w, w, sizeof(*w)) == 0)
			return *slot - 1;
	}
}

static void go_on(unsigned at, enum dispatch_event ev)
{
	struct dispatch_effects out;
	struct world w;
	bool is_wrong;

	memcpy(&w, &places[at].w, sizeof(w));
	is_wrong = w.m.way != WAY_NEW && ev == ON_BEGIN;
	w.due = DO_NOTHING;
	now_at = at;
	now_by = ev;
	happens(&w, ev);
	if (is_wrong)
		w.is_cut = true;
	dispatch_machine_step(&w.m, ev, &out);
	HOLDS(out.is_defect == is_wrong, "%s in %s: %s", dispatch_event_name(ev),
	      dispatch_state_name(places[at].w.m.way), is_wrong ? "a row" : "no row");
	is_told_by(why_of(&places[at].w, ev), &out);
	is_heard(&places[at].w, ev, &out);
	for (unsigned i = 0; i < out.n; i++)
		does(&w, out.list[i], i + 1 == out.n);
	HOLDS((w.m.way == WAY_OVER) == w.is_free, "over, and not freed");

	unsigned to = place_of(&w, at, ev);

	if (!is_wrong && comes_by_itself(ev)) {
		cr_assert(places[at].n_next < EDGES_MAX);
		places[at].next[places[at].n_next++] = to;
	}
}

static void find_all(void)
{
	struct world w;

	places = xcalloc(WORLDS_MAX, sizeof(*places));
	slots = xcalloc(2 * WORLDS_MAX, sizeof(*slots));
	memset(&w, 0, sizeof(w)); /* padding too: worlds are compared as bytes */
	dispatch_machine_init(&w.m);
	w.request = true;
	(void)place_of(&w, 0, ON_NOTHING);
	for (unsigned at = 0; at < n_places; at++)
		for (unsigned ev = ON_BEGIN;
		     !places[at].w.is_free && ev < DISPATCH_EVENTS_; ev++)
			if (can(&places[at].w, ev))
				go_on(at, ev);
}

static void free_all(void)
{
	free(places);
	free(slots);
}

Test(dispatch_ways, whatever_comes_it_is_sent_answered_and_settled_as_it_should)
{
	bool seen[DISPATCH_STATES_] = {false};

	find_all();
	for (unsigned at = 0; at < n_places; at++)
		seen[places[at].w.m.way] = seen[places[at].w.m.room] = true;
	for (unsigned s = 0; s < DISPATCH_STATES_; s++)
		cr_expect(seen[s], "%s is never reached", dispatch_state_name(s));
	cr_log_info("%u situations", n_places);
	free_all();
}

/* From each situation by what was asked alone: no one has to cut it, hang up or stop. */
Test(dispatch_ways, the_end_comes_by_itself)
{
	bool more = true;

	find_all();
	for (unsigned at = 0; at < n_places; at++)
		places[at].ends = places[at].w.is_free;
	while (more) {
		more = false;
		for (unsigned at = n_places; at-- > 0;)
			for (unsigned i = 0; !places[at].ends && i < places[at].n_next;
			     i++)
				if (places[places[at].next[i]].ends)
					more = places[at].ends = true;
	}
	for (unsigned at = 0; at < n_places; at++) {
		now_at = at;
		HOLDS(places[at].ends, "from here it never ends");
	}
	free_all();
}
