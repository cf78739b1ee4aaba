/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * One worker of the gate, and the questions that wait for it. client.c has two, for small
 * questions and for large ones; the functions are its own, one for one.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_LANE_H
#define LYCH_VESSEL_BROKER_GATE_LANE_H

#include "vessel/broker/gate/client.h"

struct gate_lane;

struct gate_lane *gate_lane_new(const struct gate_client_config *cfg,
				enum gate_lanes which);
/* Before the first question: a job's questions are read one after the other in both. */
void gate_lane_pair(struct gate_lane *a, struct gate_lane *b);
void gate_lane_free(struct gate_lane *c);
void gate_lane_attach(struct gate_lane *c, int fd, struct reading *note);
bool gate_lane_is_up(const struct gate_lane *c);
void gate_lane_set_private(struct gate_lane *c, const struct gate_private *p);
MUST_CHECK int gate_lane_ask(struct gate_lane *c, struct gate_job *job,
			     const char *destination, struct gate_parts *parts,
			     gate_ask_done *done, void *arg, struct gate_ask **ret,
			     struct err *err);
/* Bytes that are read beside those that were sent: of a pack, all that it may unpack to; of a request of git's in
 * gzip what its end says (if that is not so, it is refused unread). */
size_t gate_lane_unpacks_to(const struct gate_parts *p);
/* All that this job has waiting, but not at the worker, waits for the other worker. */
void gate_lane_move(struct gate_lane *from, struct gate_job *job);
void gate_lane_cancel(struct gate_ask *a);
struct gate_client_figures gate_lane_figures(const struct gate_lane *c);

#endif
