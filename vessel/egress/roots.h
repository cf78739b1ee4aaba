/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * The certificate authorities that a server's certificate must come from: those of the
 * file that codex.yaml names, else the system's bundle; never what a variable of the
 * environment names. Read once, before the process can no longer open a file, and shared by what it forks.
 */
#ifndef LYCH_VESSEL_EGRESS_ROOTS_H
#define LYCH_VESSEL_EGRESS_ROOTS_H

#include "common/attr.h"
#include "common/err.h"

struct egress_roots;

/*
 * Also initialises OpenSSL and curl, which read files of their own. file NULL: the system's;
 * where there is none that is no error: then no https server is believed. A file that cannot
 * be read, or holds no certificate, is one (ERRID_START_CONFIG).
 */
MUST_CHECK int egress_roots_new(const char *file, struct egress_roots **ret,
				struct err *err);
void egress_roots_free(struct egress_roots *r);
/* ssl_ctx: an SSL_CTX that is about to connect. Also forbids renegotiation. */
MUST_CHECK int egress_roots_use(const struct egress_roots *r, void *ssl_ctx);

#endif
