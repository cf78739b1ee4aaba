/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tomb's half of the work socket for tests: plain sockets, one connection a call, so
 * that it can be killed anywhere. Needs a door (tests/support/door.c) or a vessel.
 */
#ifndef LYCH_TESTS_SUPPORT_DOOR_CLIENT_H
#define LYCH_TESTS_SUPPORT_DOOR_CLIENT_H

#include <stddef.h>

struct door_client {
	char socket[108];
	char bearer[128];
	char tomb[40];
};
/* dir: of tests/support/pg; the socket is dir/work/vessel.sock. Aborts. */
void door_client_init(struct door_client *c, const char *dir, const char *tomb);

/* -1: no answer, or one about the vessel (429, 5xx but 501): unknown outcome. Else the
 * status; *ret_body is the caller's, NUL-terminated. Lease texts may be NULL. */
int door_client_call(const struct door_client *c, const char *method, const char *target,
		     const char *job, const char *epoch, const char *token,
		     const void *body, size_t len, char **ret_body);

struct door_client_job {
	char job[24], epoch[24], token[40];
	char *spec; /* decoded, the caller's */
	size_t spec_len;
};
/* How many, -1: unknown, -2: refused. jobs has room for n, and for one when n is 0. */
int door_client_claim(const struct door_client *c, unsigned n, unsigned ttl,
		      const char *boot, const char *claim, struct door_client_job *jobs);
/* "ok", "cancel", "lost"; NULL: unknown; "ERROR ..." as PostgreSQL would say. Static. */
const char *door_client_extend(const struct door_client *c, unsigned ttl,
			       const char *boot, const char *job, const char *epoch,
			       const char *token);
/* target: "ack", "release", "fail?retry=true&class=crash". As extend. */
const char *door_client_end(const struct door_client *c, const char *target,
			    const char *job, const char *epoch, const char *token,
			    const void *body, size_t len);

#endif
