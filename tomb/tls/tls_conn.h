/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the TLS process.
 * One tunnel: a client's connection on which CONNECT was allowed, and the plain socket to the
 * tomb's HTTP server. It says 200, ends TLS, and moves bytes both ways through two buffers of fixed size.
 * It does not wait: who has it asks what it waits for, and gives it its turns.
 *
 * Not a byte reaches the plain side before the handshake is over, and what comes back is
 * never written but through TLS.
 */
#ifndef LYCH_TOMB_TLS_TLS_CONN_H
#define LYCH_TOMB_TLS_TLS_CONN_H

#include "common/attr.h"
#include "common/clock.h"
#include "tomb/tls/tls_ca.h"

#define TLS_HANDSHAKE_USEC (10 * USEC_PER_SEC)
/* A client that takes nothing of what waits for it for so long is cut off. */
#define TLS_DEAF_USEC (30 * USEC_PER_SEC)

struct tls_conn;

enum tls_turn {
	TLS_OVER,  /* free it */
	TLS_WAIT,  /* for tls_conn_wants(), or the deadline */
	TLS_AGAIN, /* its turn is over, and it could go on */
};

/* Both descriptors are taken in any case; NULL: it could not be begun. host is copied. */
struct tls_conn *tls_conn_new(struct tls_ca *ca, int client, int plain, const char *host,
			      usec_t now);
void tls_conn_free(struct tls_conn *c); /* NULL is fine */
MUST_CHECK enum tls_turn tls_conn_turn(struct tls_conn *c, usec_t now);
/* For poll(): a side that is not waited for is -1. */
struct pollfd;
void tls_conn_wants(const struct tls_conn *c, struct pollfd *client,
		    struct pollfd *plain);
usec_t tls_conn_deadline(const struct tls_conn *c); /* USEC_INFINITY: none */

#endif
