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
	bool is_second;	   /* the look at what was anonymised; comes at once */
	bool is_cancelled; /* at the worker; nobody wants the answer */
	double score;
	struct gate_finding *findings; /* of the first look */
	size_t n;
};

/* What one party had: bytes, and where its jobs are. */
struct party {
	uint64_t used, jobs_at;
	unsigned waiting;
};

struct gate_lane {
	struct gate_client_config cfg;
	struct gate_config gate;
	const char *name;
	struct reading *note;	   /* the worker's */
	struct reading_note asked; /* whose question it had last */
	int fd;
	struct loop_io *io;
	struct loop_timer *timer; /* of the one at the worker */
	struct loop_timer *soon;  /* answers without a worker come from the loop too */
	struct buf out, in;
	size_t out_at;
	struct gate_ask *first, *last; /* waiting; the first may be at the worker */
	struct party party[GATE_PARTIES];
	uint64_t parties_at;
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
void gate_ask_joins(struct gate_ask *a);
void gate_ask_leaves(struct gate_ask *a);
/* Whose turn it is becomes the first. */
void gate_lane_bring_forward(struct gate_lane *c);
/* The first leaves. */
struct gate_ask *gate_lane_pop(struct gate_lane *c);

/* ---- lane_answer.c ---- */

void gate_ask_free(struct gate_ask *a);
/* The first is answered, or stays the first to be looked at once more. */
void gate_lane_take_report(struct gate_lane *c, const struct gate_report *r);
/* All that wait are refused. */
void gate_lane_fail_all(struct gate_lane *c, enum err_id id, const char *why);

#endif
