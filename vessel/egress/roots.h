/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * The certificate authorities that a server's certificate must come from: the system's
 * bundle, or the file that SSL_CERT_FILE names, as every program with OpenSSL has it.
 * Read once, before the process can no longer open a file, and shared by what it forks.
 */
#ifndef LYCH_VESSEL_EGRESS_ROOTS_H
#define LYCH_VESSEL_EGRESS_ROOTS_H

#include "common/attr.h"
#include "common/err.h"

struct egress_roots;

/*
 * Also initialises OpenSSL and curl, which read files of their own. No bundle at all is no
 * error: then no https server is believed. A bundle that cannot be read is one
 * (ERRID_START_CONFIG).
 */
MUST_CHECK int egress_roots_new(struct egress_roots **ret, struct err *err);
void egress_roots_free(struct egress_roots *r);
/* ssl_ctx: an SSL_CTX that is about to connect. Also forbids renegotiation. */
MUST_CHECK int egress_roots_use(const struct egress_roots *r, void *ssl_ctx);

#endif
