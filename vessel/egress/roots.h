/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * The certificate authorities that a server's certificate must come from: those of the
 * file that codex.yaml names, else the system's bundle; never what a variable of the
 * environment names. As texts they come from sources.h.
 */
#ifndef LYCH_VESSEL_EGRESS_ROOTS_H
#define LYCH_VESSEL_EGRESS_ROOTS_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

struct egress_roots;

/* PEM: is there a certificate in it, and nothing that cannot be read? */
bool egress_roots_are(const char *text, size_t len);
/*
 * Also initialises OpenSSL and curl, which read files of their own. An empty text: no https
 * server is believed.
 */
MUST_CHECK int egress_roots_new(const char *text, size_t len, struct egress_roots **ret,
				struct err *err);
/* For each connection that begins from now on. NULL, or what is no authorities: none is
 * believed. */
void egress_roots_set(struct egress_roots *r, const char *text, size_t len);
void egress_roots_free(struct egress_roots *r);
/* ssl_ctx: an SSL_CTX that is about to connect. Also forbids renegotiation. */
MUST_CHECK int egress_roots_use(const struct egress_roots *r, void *ssl_ctx);

#endif
