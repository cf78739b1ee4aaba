/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * What http.c (the calls and the vessel's frames), http_attempt.c (where a call goes) and
 * http_reply.c (what comes back) share.
 */
#ifndef LYCH_VESSEL_EGRESS_HTTP_PRIV_H
#define LYCH_VESSEL_EGRESS_HTTP_PRIV_H

#include "common/buf.h"
#include "common/net/httpc_multi.h"
#include "common/worker/pulse.h"
#include "vessel/egress/easy.h"
#include "vessel/egress/http.h"
#include "vessel/egress/link.h"
#include "vessel/egress/redact_reply.h"
#include "vessel/egress/reply.h"

enum waiting { FOR_REQUEST, FOR_NAME, FOR_HEAD, FOR_BODY, FOR_RETRY };

struct http;

struct call {
	struct http *http;
	struct call *prev, *next;
	uint32_t id;
	job_id_t job; /* 0: of none */
	int64_t epoch;
	struct egress_wire_request request;
	struct buf body;
	struct url url;
	struct addr_policy *policy; /* with the request's own exact addresses */
	struct resolve_query *query;
	struct addr addrs[RESOLVE_ADDRS_MAX];
	size_t n_addrs;
	struct egress_easy *easy;
	struct egress_reply reply;
	struct redact_reply *redact; /* NULL: the reply has no head yet */
	struct buf pending;	     /* redacted, and the vessel has no room */
	struct loop_timer *timer, *total;
	enum waiting waiting;
	uint32_t window;
	struct err why; /* what made a callback end the attempt */
	enum reason reason;
	uint64_t bytes_up, bytes_down;
	uint64_t room; /* of the reply, as far as the vessel has said */
	unsigned attempts, redactions;
	bool paused, head_sent, sent, again;
	bool room_is_last, room_is_asked;
	bool complete; /* the reply is here as a whole, of which pending is the rest */
};

struct http {
	const struct egress_http_config *cfg;
	struct loop *loop;
	struct egress_link *link;
	struct httpc_multi *curl;
	struct resolver *resolver;
	unsigned generation; /* of the sources, as they are in force */
	struct loop_timer *beat;
	struct call *calls;
	unsigned n_calls;
	struct reading *note; /* of what is parsed just now */
	bool in_turn;	      /* it is of curl's turn */
	struct {	      /* of the request that comes next */
		uint32_t call;
		job_id_t job;
		int64_t epoch;
	} whose;
};

/* ---- http.c ---- */

/* What is parsed from here on is the call's reply: the result is for reading_end(). */
bool http_call_reads_reply(const struct call *c);
void http_call_wait(struct call *c, enum waiting what, usec_t usec);
/* why NULL: the reply came to its end. The call is gone then. */
void http_call_end(struct call *c, const struct err *why);
/* The vessel has it all, or takes the rest when it has room. */
void http_call_end_when_sent(struct call *c);

/* ---- http_attempt.c ---- */

/* Its request is here whole. Each of these three may end the call. */
void http_attempt_begin(struct call *c);
void http_attempt_start(struct call *c);
void http_attempt_on_look(void *http); /* curl has ended some */
void http_attempt_on_turn(CURL *easy, bool begins, void *http);
void http_attempt_drop(struct call *c);
/* After a reply with that status; 0: without one. */
bool http_attempt_may_repeat(const struct call *c, unsigned status);

/* ---- http_reply.c ---- */

size_t http_reply_on_header(char *line, size_t size, size_t n, void *call);
size_t http_reply_on_body(char *data, size_t size, size_t n, void *call);
/* Through the redactor; data NULL: nothing follows. -1: c->why has it. */
MUST_CHECK int http_reply_hand_on(struct call *c, const void *data, size_t len);
/* As much of what is redacted as the vessel has room for. */
void http_reply_drain(struct call *c);
uint64_t http_reply_max(const struct call *c);
usec_t http_reply_idle_usec(const struct call *c);

#endif
