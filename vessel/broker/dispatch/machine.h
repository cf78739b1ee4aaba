/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * One request of a job on its way through the dispatcher: a pure state machine. It does no I/O,
 * allocates nothing and knows no time; events go in, effects come out, and call.c
 * carries them out. The transitions are one table, table.def.
 *
 *	lease -> ward -> reserve -> gate -> log -> start -> reply -> drain
 *						     or -> gather
 *
 * A job whose last reservation was granted does not wait for the next one: gate and log work
 * beside it, in RESERVE_GATE and RESERVE_LOG, and whoever is done first waits for the other:
 * RESERVE_READY for the reservation; GATE and LOG, when it is there already, for the rest
 * (docs/adr/0033).
 *
 * A second, small machine beside it is the room of the reply: bytes are reserved while it comes.
 *
 * An effect may answer at once, by an event of its own or by the callback that it was given; it
 * is the last of its row, and its event is taken in before any other. So states between such
 * an effect and its answer last no time: nobody else's event comes there.
 *
 * An event that has no row in its state is a defect of the program. It is told in the log, and
 * the request is cut where it stands with LYCH-CORE-001, as by ON_CUT: what it reserved is
 * settled like that of any other.
 */
#ifndef LYCH_VESSEL_BROKER_DISPATCH_MACHINE_H
#define LYCH_VESSEL_BROKER_DISPATCH_MACHINE_H

#include <stdbool.h>

/* "(at once)": lasts no time, an effect's own answer comes next. */
enum dispatch_state {
	WAY_NEW,
	WAY_LEASE,	  /* asked for, of a job that was not seen before */
	WAY_LEASE_HOP,	  /* asked for again, for the next hop of a redirect */
	WAY_LEASE_JUDGED, /* a refusal waits for it: only who holds the lease learns that */
	WAY_LEASE_CUT,	  /* cut while it is asked for */
	WAY_LEASE_GONE,	  /* the tomb hung up meanwhile */
	WAY_TAKE,	  /* counted among its job's requests (at once) */
	WAY_TAKE_KNOWN,	  /* the same; the lease is asked for with the reservation */
	WAY_WAIT,	  /* its job has as many under way as it may */
	WAY_WARD,	  /* read and judged by the rules (at once) */
	WAY_WARD_KNOWN,	  /* the same, without a word on the lease yet */
	WAY_WARD_HOP,	  /* the same, with its reservation already */
	WAY_RESERVE,	  /* gate and log wait for it */
	WAY_RESERVE_ASK,    /* they do not: the gate is asked (at once), then this */
	WAY_RESERVE_GATE,   /* both under way */
	WAY_RESERVE_WRITE,  /* the gate has answered, what may go is written (at once) */
	WAY_RESERVE_LOG,    /* reservation and log under way */
	WAY_RESERVE_READY,  /* gate and log are done, it is not */
	WAY_RESERVE_JUDGED, /* one of them refused; lease and budget have the first word */
	WAY_RESERVE_CUT,
	WAY_RESERVE_GONE,
	WAY_GATE,  /* reserved; the gate reads */
	WAY_WRITE, /* (at once) */
	WAY_LOG,   /* the decision is on its way to the disk */
	WAY_START, /* handed to its worker, or found in the cache (at once) */
	WAY_SENT,  /* the worker has it */
	WAY_HEAD,  /* the reply's head is read (at once) */
	WAY_REPLY,
	WAY_PAUSED,	/* the reader is behind, the worker is held up */
	WAY_END,	/* the reply's end is read (at once) */
	WAY_DRAIN,	/* the worker is done, the reader is not */
	WAY_GATHER,	/* the reply is put by: the job is answered when it is whole */
	WAY_GATHERED,	/* its end is read (at once) */
	WAY_SERVED,	/* answered; to be ended from the loop */
	WAY_AGAIN,	/* a redirect, to be followed from the loop */
	WAY_CUT,	/* to be refused from the loop */
	WAY_CUT_GONE,	/* to be ended from the loop: nobody waits for an answer */
	WAY_CUT_STREAM, /* its stream is to be cut off from the loop */
	WAY_CUT_CLOSED, /* its reader closed that */
	WAY_REFUSE,	/* counted and told (at once) */
	WAY_REFUSED,	/* the answer waits for its time */
	WAY_REFUSED_GONE,
	WAY_OVER,
	ROOM_OPEN,  /* more may be asked for */
	ROOM_ASKED, /* more of it is */
	ROOM_LAST,  /* there is no more */
	DISPATCH_STATES_
};

enum dispatch_event {
	ON_NOTHING, /* no event */
	ON_BEGIN,
	ON_BEGIN_KNOWN, /* of a job whose lease was good before */
	ON_LEASE_GOOD,
	ON_LEASE_BAD,
	ON_STOPPING, /* before a good answer of the database: the vessel stops */
	ON_TAKEN,
	ON_MISFIT, /* taken, but its job has not this kind of egress */
	ON_WAITS,  /* not taken yet: ON_TURN says when */
	ON_BUSY,   /* not taken */
	ON_ALLOWED,
	ON_ALLOWED_AHEAD, /* and its job's last reservation was granted */
	ON_DENIED,
	ON_RESERVED,
	ON_RESERVE_BAD,
	ON_RESERVE_LOST, /* nobody knows whether it was */
	ON_GATE_ASKED,
	ON_GATE_AWAY,
	ON_GATE_PASSED,
	ON_GATE_REFUSED,
	ON_WRITTEN,
	ON_WRITE_BAD,
	ON_LOG_BEGUN,
	ON_LOGGED,
	ON_LOG_BAD,
	ON_STARTED,
	ON_KEPT, /* answered from the cache */
	ON_START_BAD,
	ON_HEAD, /* the worker's: until one of the three ends */
	ON_CHUNK,
	ON_MORE, /* half of the room is used up */
	ON_WORKER_DONE,
	ON_WORKER_FAILED,
	ON_WORKER_LOST, /* with what it had read */
	ON_HEAD_STREAMS,
	ON_HEAD_GATHERS,
	ON_HEAD_REDIRECTS,
	ON_HEAD_BAD,
	ON_CHUNK_PASSED,
	ON_CHUNK_STUCK, /* its reader is behind */
	ON_CHUNK_BAD,
	ON_END_GOOD,
	ON_END_BAD,
	ON_DRAINED, /* the stream has room */
	ON_READER_READY,
	ON_READER_BEHIND,
	ON_TURN, /* of the loop, or the refusal's time */
	ON_ANSWER_NOW,
	ON_ANSWER_LATER,
	ON_CUT,	   /* the lease ended, the vessel stops, the program is wrong */
	ON_GONE,   /* the tomb hung up before an answer began */
	ON_CLOSED, /* and after that */
	ON_DROP,   /* with the whole dispatcher: nothing is settled or told */
	ON_ROOM_WANTED,
	ON_ROOM_GIVEN,
	ON_ROOM_LAST,
	DISPATCH_EVENTS_
};

/* "(answers)": by an event of its own, "(door)": perhaps by a callback before it is back. */
enum dispatch_effect {
	DO_NOTHING,   /* no effect */
	DO_LOOK_SPEC, /* asks for the lease, and what the job's specification says (door) */
	DO_LOOK,      /* (door) */
	DO_TAKE,      /* (answers) */
	DO_STEP_OUT, /* of its job's line */
	DO_JUDGE,    /* (answers) */
	DO_ESTIMATE,
	DO_RESERVE, /* (door) */
	DO_GATE,    /* (answers) */
	DO_CANCEL_GATE,
	DO_WRITE, /* (answers) */
	DO_LOG,	  /* (answers) */
	DO_FORGET_LOG,
	DO_START,      /* (answers) */
	DO_READ_HEAD,  /* (answers) */
	DO_READ_CHUNK, /* (answers) */
	DO_READ_END,   /* (answers) */
	DO_PUMP,       /* (answers) */
	DO_RESUME,     /* the worker; (door) */
	DO_CANCEL,     /* the worker, where IS_WORKER */
	DO_REWIND,     /* for the next hop */
	/* Why it ends: what the event says, ... */
	DO_WHY_SAID,
	DO_WHY_LESS,   /* ... of that the code: a worker's words are not the job's, ... */
	DO_WHY_BROKEN, /* ... the same, told in the vessel's log, ... */
	DO_WHY_NO_REPLY,
	DO_WHY_GONE,
	DO_COUNT_CUT,
	DO_REFUSE,  /* counts and tells it; (answers) */
	DO_AT_TURN, /* ON_TURN from the loop */
	DO_AT_TIME, /* ON_TURN at the refusal's time */
	DO_ANSWER,
	DO_DROP_REQUEST, /* nobody waits for its answer */
	DO_END_STREAM,
	DO_ABORT_STREAM,
	DO_SETTLE,     /* where IS_RESERVED */
	DO_LOG_DONE,   /* where IS_LOGGED */
	DO_LOG_FAILED, /* where IS_LOGGED */
	DO_LEAVE,      /* its job's requests under way, where IS_TAKEN */
	DO_FREE,
	DO_WANT_ROOM, /* (answers): ON_ROOM_WANTED */
	DO_EXTEND,    /* (door) */
	DO_TELL_ROOM, /* where IS_WORKER */
	DISPATCH_EFFECTS_
};

/* What has happened. Only the machine sets them, by events and effects and nothing else. */
enum dispatch_fact {
	IS_TAKEN = 1 << 0,    /* counted among its job's requests under way */
	IS_RESERVED = 1 << 1, /* or perhaps: to be settled */
	IS_SCANNED = 1 << 2,  /* by the gate */
	IS_LOGGED = 1 << 3,   /* or perhaps: the log is told how it ended */
	IS_WORKER = 1 << 4,   /* a worker has it */
	IS_LOST = 1 << 5,     /* a worker had it, and read more than is known */
	IS_WHOLE = 1 << 6,    /* the reply came to its end */
};
#define DISPATCH_FACTS_ (1u << 7)

struct dispatch_machine {
	enum dispatch_state way, room;
	unsigned facts;
};

#define DISPATCH_ROW_MAX 8 /* effects */
struct dispatch_effects {
	unsigned n;
	enum dispatch_effect list[DISPATCH_ROW_MAX];
	bool is_defect; /* no row: as by ON_CUT */
};

void dispatch_machine_init(struct dispatch_machine *m);
/* One event in; what is to be done, in this order, comes out. Not ON_NOTHING; nothing after
 * WAY_OVER. */
void dispatch_machine_step(struct dispatch_machine *m, enum dispatch_event ev,
			   struct dispatch_effects *ret);
const char *dispatch_state_name(enum dispatch_state s);
const char *dispatch_event_name(enum dispatch_event ev);

static inline bool dispatch_machine_is(const struct dispatch_machine *m,
				       enum dispatch_fact f)
{
	return m->facts & f;
}

#endif
