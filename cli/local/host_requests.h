/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The host's side of the reactor: takes the vessel's host requests, each once. The vessel is
 * trusted but lives in a container that may be taken over one day: what it drops can say
 * one word of four and nothing else, is opened beneath its directory and never followed,
 * and whatever is not a host request is set aside and reported.
 */
#ifndef LYCH_CLI_LOCAL_HOST_REQUESTS_H
#define LYCH_CLI_LOCAL_HOST_REQUESTS_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/proto/host_request.h"

#define INTENTS_RATE_MAX 10  /* restarts and rotations ... */
#define INTENTS_RATE_SEC 600 /* ... in this time; stops are never too many */

struct host_requests {
	int dirfd, receipts;
	/* Carries it out; idempotent: after a crash it is asked again. */
	int (*act)(enum host_request what, void *arg, struct err *err);
	void *arg;
	unsigned n_done, n_failed, n_aside;
};

/* <data>/vessel/reactor and <data>/reactor (made here; the vessel does not see it). */
MUST_CHECK int host_requests_open(const struct paths *p, struct host_requests *ret,
				  struct err *err);
void host_requests_close(struct host_requests *in);
/* Everything that waits; leaves the directory empty. Logs each. */
MUST_CHECK int host_requests_run(struct host_requests *in, struct err *err);

/* The state in a host request's receipt: "", "begun", "done", "failed". */
struct host_request_receipt {
	char state[16], detail[256];
};
MUST_CHECK int host_requests_receipt(const struct paths *p, const char *id,
				     struct host_request_receipt *ret, struct err *err);

#endif
