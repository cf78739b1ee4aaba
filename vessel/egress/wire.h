/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * What vessel and egress workers say to each other: frames on a SOCK_STREAM pair, each
 * of a call. Numbers are little-endian.
 *
 *	0  u32  length of what follows the header, <= EGRESS_FRAME_MAX
 *	4  u8   type
 *	5  u8   0
 *	6  u16  0
 *	8  u32  call; 0 for what belongs to the worker
 *
 * A string is u16 length and bytes without NUL. A frame is taken whole or not at all:
 * too short, a spare byte, a count past its cap, a NUL or a control byte where none may
 * be is a broken protocol, and the reader gives the peer up. Fuzzed (fuzz_egress_wire).
 */
#ifndef LYCH_VESSEL_EGRESS_WIRE_H
#define LYCH_VESSEL_EGRESS_WIRE_H

#include "common/buf.h"
#include "common/id.h"
#include "vessel/egress/egress.h"

#define EGRESS_FRAME_HEADER 12u
#define EGRESS_FRAME_MAX (64u << 10)

enum egress_frame_type {
	EGRESS_F_READY = 1, /* worker: confined; its report. The first frame */
	EGRESS_F_FAILED,    /* worker: instead; an error */
	EGRESS_F_REQUEST,   /* vessel: the head of a call */
	EGRESS_F_DATA,	    /* both: bytes of the body, not empty */
	EGRESS_F_CREDIT,    /* vessel: u32 more bytes of the reply may be sent */
	EGRESS_F_CANCEL,    /* vessel: empty */
	EGRESS_F_HEAD,	    /* worker: status and headers */
	EGRESS_F_REDACTED,  /* worker: u8 in a header, u32 count */
	EGRESS_F_END,	    /* worker: the end of a call */
	EGRESS_F_MORE,	    /* worker: empty; half of the room for the reply is used up */
	EGRESS_F_ROOM,	/* vessel: u64 bytes of the reply altogether, u8 the last word */
	EGRESS_F_WHOSE, /* vessel: i64 job, i64 epoch; before the head of the same call */
	EGRESS_F_MAX_
};

struct egress_frame {
	enum egress_frame_type type;
	uint32_t call;
	const unsigned char *data; /* into the reader's bytes */
	size_t len;
};

/* 1: *ret and *ret_used (bytes of data that it took); 0: more is needed; -1: broken. */
MUST_CHECK int egress_frame_next(const void *data, size_t len, struct egress_frame *ret,
				 size_t *ret_used, struct err *err);
void egress_frame_add(struct buf *out, enum egress_frame_type type, uint32_t call,
		      const void *data, size_t len);
/* A body of any length: as many frames as it takes, none for nothing. */
void egress_frame_add_data(struct buf *out, uint32_t call, const void *data, size_t len);

/* ---- payloads: _add writes a whole frame, _parse reads a frame's data ---- */

/* What _parse points at lives in one allocation: free(ret->memory). */
struct egress_wire_request {
	struct egress_request rq; /* portal NULL, body NULL */
	struct egress_header headers[EGRESS_HEADERS_MAX];
	const char *addresses[EGRESS_ADDRESSES_MAX];
	char *memory;
};
/* ERRID_EGRESS_REQUEST: it does not fit a frame, or breaks a rule of egress.h. */
MUST_CHECK int egress_request_add(struct buf *out, uint32_t call,
				  const struct egress_request *rq, struct err *err);
MUST_CHECK int egress_request_parse(const void *data, size_t len,
				    struct egress_wire_request *ret, struct err *err);

struct egress_wire_head {
	struct egress_head head;
	struct egress_header headers[EGRESS_HEADERS_MAX];
	char *memory;
};
/* What does not fit is an error of the reply: ERRID_EGRESS_REPLY. */
MUST_CHECK int egress_head_add(struct buf *out, uint32_t call,
			       const struct egress_head *head, struct err *err);
MUST_CHECK int egress_head_parse(const void *data, size_t len,
				 struct egress_wire_head *ret, struct err *err);

void egress_end_add(struct buf *out, uint32_t call, const struct egress_end *end);
/* ret->err points to *ret_err or is NULL. Only errors of EGRESS and FETCH are taken:
 * a worker cannot speak in another part's name. */
MUST_CHECK int egress_end_parse(const void *data, size_t len, struct egress_end *ret,
				struct err *ret_err, struct err *err);

void egress_redacted_add(struct buf *out, uint32_t call, bool in_header, unsigned count);
MUST_CHECK int egress_redacted_parse(const void *data, size_t len, bool *ret_in_header,
				     unsigned *ret_count, struct err *err);

void egress_credit_add(struct buf *out, uint32_t call, uint32_t bytes);
MUST_CHECK int egress_credit_parse(const void *data, size_t len, uint32_t *ret,
				   struct err *err);

void egress_room_add(struct buf *out, uint32_t call, uint64_t bytes, bool is_last);
MUST_CHECK int egress_room_parse(const void *data, size_t len, uint64_t *ret,
				 bool *ret_is_last, struct err *err);

/* By itself and not in the request: who reads that has to know before, whose it is. */
void egress_whose_add(struct buf *out, uint32_t call, job_id_t job, int64_t epoch);
MUST_CHECK int egress_whose_parse(const void *data, size_t len, job_id_t *ret_job,
				  int64_t *ret_epoch, struct err *err);

void egress_ready_add(struct buf *out, const struct confine_report *walls);
MUST_CHECK int egress_ready_parse(const void *data, size_t len,
				  struct confine_report *ret, struct err *err);
/* A worker that cannot begin says why, in any family. */
void egress_failed_add(struct buf *out, const struct err *why);
MUST_CHECK int egress_failed_parse(const void *data, size_t len, struct err *ret,
				   struct err *err);

#endif
