/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the TLS process.
 * The authority of one job: its keys are made here, by the process that serves that job and
 * no other, and never leave it. What it signs is believed by this job alone.
 *
 * Of TLS there is what the clients of 2018 and later speak: 1.2 and 1.3, HTTP/1.1 inside. Everything
 * that would keep state between connections, or begin anew inside of one, is off: tickets,
 * resumption, early data, renegotiation, compression. A client is asked for no certificate.
 */
#ifndef LYCH_TOMB_TLS_TLS_CA_H
#define LYCH_TOMB_TLS_TLS_CA_H

#include "common/attr.h"
#include "common/err.h"
#include <openssl/types.h>
#include <stddef.h>

struct tls_ca;

/* What OpenSSL loads when it is first used, while files can be opened, and children inherit. */
MUST_CHECK int tls_ca_warm(struct err *err);
MUST_CHECK int tls_ca_new(struct tls_ca **ret, struct err *err);
void tls_ca_free(struct tls_ca *ca);
/* Its certificate; ended by NUL. */
MUST_CHECK int tls_ca_pem(const struct tls_ca *ca, char *out, size_t size,
			  struct err *err);
/* The server's side of a connection for this host alone, which the client has to name. host is
 * kept by the caller for as long; NULL: out of memory. */
SSL *tls_ca_accept(struct tls_ca *ca, const char *host);

#endif
