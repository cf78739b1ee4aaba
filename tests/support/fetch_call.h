/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fetch on its way, for fetch_drive: what dispatch_fetch.c does with fetch.h, fetch_ward.h and
 * egress.h, without leases, books, gate and log: ward, a worker, and a redirect begins all of
 * it again. What comes back is text.
 */
#ifndef LYCH_TESTS_SUPPORT_FETCH_CALL_H
#define LYCH_TESTS_SUPPORT_FETCH_CALL_H

#include "common/attr.h"
#include "common/net/loop.h"
#include "vessel/broker/intents/fetch.h"
#include "vessel/broker/intents/fetch_ward.h"
#include "vessel/egress/egress.h"

struct fetch_verdict {
	struct ward_verdict ward;
	bool odd_name;
};

/* Outlives every call. */
struct fetch_env {
	struct loop *loop;
	struct egress *egress;
	const struct conf_broker *broker;
	struct ward_rates *rates;
	struct labels *labels;
};

struct fetch_call;

struct fetch_hooks {
	/*
	 * The ward allows f, the first request or where a redirect led: reserve, scan, write ahead,
	 * then fetch_call_go() or fetch_call_refuse(), from within or later.
	 */
	void (*permit)(struct fetch_call *c, const struct fetch *f,
		       const struct fetch_verdict *v, void *arg);
	/* Once for each fetch_call_go(): what that request cost. sent: it may have reached the server. */
	void (*settle)(uint64_t bytes_up, uint64_t bytes_down, bool sent, void *arg);
	/* At most once, of the reply that goes back. */
	void (*on_head)(unsigned status, const struct headers *headers, void *arg);
	/* UTF-8, not empty. False: no more until fetch_call_resume(). */
	bool (*on_text)(const void *data, size_t len, void *arg);
	/* Last; the call is gone. err NULL: the reply is whole. reason: for the log. */
	void (*on_end)(const struct err *err, enum reason reason, void *arg);
};

/*
 * Takes what f holds. Every hook comes from the loop, never from within a function of this module
 * but fetch_call_resume() (on_text) and fetch_call_cancel() (settle). identity is copied.
 */
struct fetch_call *fetch_call_new(const struct fetch_env *env, const char *identity,
				  job_id_t job, struct fetch *f,
				  const struct fetch_hooks *hooks, void *arg) MUST_CHECK;
void fetch_call_go(struct fetch_call *c);
void fetch_call_refuse(struct fetch_call *c, const struct err *why);
void fetch_call_resume(struct fetch_call *c);
/* Settles what was begun; no other hook, the call is gone. NULL is fine. */
void fetch_call_cancel(struct fetch_call *c);

#endif
