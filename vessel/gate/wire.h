/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * Vessel and gate worker: frames on a SOCK_STREAM pair, numbers in this machine's order
 * (both are one program).
 *
 *	0  u32  length of what follows the header
 *	4  u32  type
 *	8  u64  id of the question; 0 for what is none
 *
 * One question is asked at a time. The worker reads hostile text: what it answers is
 * believed as far as it is consistent with the question (gate_wire_get_report). Fuzzed
 * (fuzz_gate_wire).
 */
#ifndef LYCH_VESSEL_GATE_WIRE_H
#define LYCH_VESSEL_GATE_WIRE_H

#include "common/buf.h"
#include "common/id.h"
#include "vessel/gate/gate.h"

#define GATE_FRAME_HEADER 16u
/* a full private store, or a full question */
#define GATE_FRAME_MAX ((size_t)32 << 20)

enum gate_frame_type {
	GATE_F_CONFIG = 1, /* vessel: struct gate_config; first */
	GATE_F_PRIVATE,	   /* vessel: gate_private_write()'s bytes */
	GATE_F_SCAN,	   /* vessel: a question */
	GATE_F_REPORT,	   /* worker: its answer */
	GATE_F_WHOSE,	   /* vessel: i64 job, i64 epoch of the question that is next */
	GATE_F_MAX_
};

struct gate_frame {
	uint32_t len;
	enum gate_frame_type type;
	uint64_t id;
};

/* 1: header read; 0: more is needed; -1: broken. */
MUST_CHECK int gate_wire_header(const void *data, size_t len, struct gate_frame *ret);
void gate_wire_put_header(struct buf *out, enum gate_frame_type type, uint64_t id,
			  size_t len);

/* Payloads. put_ appends a whole frame; get_ is false for what is not exactly one. */
void gate_wire_put_config(struct buf *out, const struct gate_config *c);
bool gate_wire_get_config(const void *data, size_t len, struct gate_config *ret);
void gate_wire_put_scan(struct buf *out, uint64_t id, const struct gate_input *in);
/* By itself: who reads a question has to know before, whose it is. Without one: no job's. */
void gate_wire_put_whose(struct buf *out, job_id_t job, int64_t epoch);
bool gate_wire_get_whose(const void *data, size_t len, job_id_t *ret_job,
			 int64_t *ret_epoch);
/* *ret points into data and into *ret_memory, which the caller frees. */
bool gate_wire_get_scan(const void *data, size_t len, struct gate_input *ret,
			void **ret_memory);
void gate_wire_put_report(struct buf *out, uint64_t id, const struct gate_report *r);
/* Every span must lie in a part of the question. */
bool gate_wire_get_report(const void *data, size_t len, const struct gate_part *parts,
			  size_t n_parts, struct gate_report *ret);

#endif
