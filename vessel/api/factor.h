/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The second factor: acts of the owner that a program which runs under the owner's uid must not do
 * by itself ask for a passphrase. What is stored of that (the file "passphrase", 0600, in the vessel's
 * data directory) is read at each use. Nothing here takes long: scrypt is the client's
 * (common/crypto/factor.h, docs/adr/0051).
 */
#ifndef LYCH_VESSEL_API_FACTOR_H
#define LYCH_VESSEL_API_FACTOR_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/crypto/factor.h"
#include "common/err.h"
#include "common/net/httpd.h"

/* So many wrong ones are answered at once; then there is a wait before each. */
#define FACTOR_WRONG_MAX 5u
#define FACTOR_WAIT_USEC (60 * USEC_PER_SEC)

struct vessel;

/* In the vessel's memory; zeroed is right. */
struct factor {
	char nonce[FACTOR_NONCE_SIZE]; /* "": none is out */
	unsigned wrong;		       /* since the last right one */
	usec_t until;		       /* boot clock: nothing is tried before */
};

/*
 * Has who asks shown that he knows the passphrase, for this act? ERRID_PASSPHRASE_*. Once in each
 * request, when all else that it is judged by is known: a proof is good for one.
 */
MUST_CHECK int factor_check(struct vessel *v, const struct httpd_req *req,
			    const char *act, struct err *err);
/* Is there a passphrase? Also where what is stored can't be read: then factor_check() says so. */
bool factor_is_set(const struct vessel *v);

#endif
