/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What lane.c (the worker's socket), lane_turn.c (whose turn it is) and lane_answer.c (what
 * an answer means) share.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_LANE_PRIV_H
#define LYCH_VESSEL_BROKER_GATE_LANE_PRIV_H

#include "common/buf.h"
#include "vessel/broker/gate/lane.h"
#include "vessel/gate/wire.h"

struct gate_ask {
	struct gate_lane *c;
	struct gate_ask *next;
	struct gate_job *job;
	char *destination;
	struct gate_parts *parts;
	gate_ask_done *done;
	void *arg;
	unsigned
		rewritten; /* how often what was found was replaced; the look after it is another */
	bool is_again; /* it was looked at: the next look comes at once */
	/* The job's own key, or what was planted in it, was taken out, before the first look that counts. */
	bool had_key, had_planted;
	bool is_cancelled; /* at the worker; nobody wants the answer */
	bool is_read; /* the worker has it, or will have it next: its job's only one */
	double score;
	struct gate_finding *findings; /* of the first look */
	size_t n;
	char note[GATE_NOTE_SIZE]; /* as in a report */
};

/* What one party had, and the line of its jobs. */
struct party {
	struct turns_account account;
	struct turns_line jobs;
};

struct gate_lane {
	struct gate_client_config cfg;
	struct gate_config gate;
	enum gate_lanes which;
	struct reading *note;	   /* the worker's */
	struct reading_note asked; /* whose question it had last */
	int fd;
	struct loop_io *io;
	struct loop_timer *timer; /* of the one at the worker */
	struct loop_timer *soon;  /* answers without a worker come from the loop too */
	struct buf out, in;
	size_t out_at;
	struct gate_ask *first, *last; /* waiting; the first may be at the worker */
	struct gate_lane *other;
	struct party party[GATE_PARTIES];
	struct turns_line parties;
	bool at_work;
	uint64_t id;
	size_t n;
	usec_t began;
	struct buf private;
	struct gate_report *report;
	struct gate_client_figures figures;
	bool was_up;
};

/* ---- lane_turn.c ---- */

/* *none, emptied, for a person's question, which has no job. */
struct gate_turn *gate_ask_turn(const struct gate_ask *a, struct gate_turn *none);
/* It was answered: of what it paid for its pack, what was not unpacked. Before it is taken out. */
void gate_ask_gets_back(struct gate_ask *a, size_t unpacked);
/* The job may be gone before the answer comes. */
void gate_ask_forget_job(struct gate_ask *a);
/* Whose turn it is becomes the first, and pays. False: nobody may be read now. */
bool gate_lane_bring_forward(struct gate_lane *c);
/* Behind all that wait, and before them. */
void gate_lane_append(struct gate_lane *c, struct gate_ask *a);
void gate_lane_put_back(struct gate_lane *c, struct gate_ask *a);
void gate_lane_take_out(struct gate_ask *a);
/* Until the worker is done with it, the other one gets no question of its job. */
void gate_ask_is_read(struct gate_ask *a);
void gate_ask_has_read(struct gate_ask *a);

/* ---- lane_answer.c ---- */

void gate_ask_free(struct gate_ask *a);
/* The first is answered, or stays the first to be looked at once more. */
void gate_lane_take_report(struct gate_lane *c, const struct gate_report *r);
/* All that wait are refused. */
void gate_lane_fail_all(struct gate_lane *c, enum err_id id, const char *why);

#endif
