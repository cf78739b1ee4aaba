/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What every request of a tomb on the work socket begins with: who it is, what version
 * of the protocol it speaks, and for a job its lease.
 */
#ifndef LYCH_TOMB_QUEUE_VESSEL_PEER_H
#define LYCH_TOMB_QUEUE_VESSEL_PEER_H

#include "common/attr.h"
#include "common/err.h"
#include "tomb/queue/queue.h"

struct vessel_peer {
	const char *socket_path;
	unsigned protocol; /* LYCH_API_VERSION; test builds may lie */
	char auth[512];	   /* the secret in it is wiped by vessel_peer_done() */
	char name[64], version[48];
};

/* The socket's path is borrowed. ERRID_SECRET_FILE: the secret is too long. */
MUST_CHECK int vessel_peer_init(struct vessel_peer *p, const char *socket_path,
				const char *tomb, const char *bearer, unsigned protocol,
				struct err *err);
void vessel_peer_done(struct vessel_peer *p);

/* The header lines of one request, NULL-terminated. */
struct vessel_headers {
	const char *line[8];
	char job[64], epoch[64], token[64];
};
/* key NULL: a request about no job. Borrows from p. */
void vessel_headers(struct vessel_headers *h, const struct vessel_peer *p,
		    const struct lease_key *key);
void vessel_headers_done(struct vessel_headers *h); /* wipes the token */

/* A refusal as an error: "LYCH-STORE-004: title: detail". Returns -1. */
int vessel_reply_err(int status, const char *body, size_t len, const char *what,
		     struct err *err);

#endif
