/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The second factor, on the side of the person: a passphrase that is asked for at the terminal, made into
 * a key with scrypt, and shown to the vessel to be known. It is sent nowhere and stored nowhere.
 */
#ifndef LYCH_CLI_SECRET_SECOND_FACTOR_H
#define LYCH_CLI_SECRET_SECOND_FACTOR_H

#include "cli/base/client.h"
#include "common/attr.h"
#include "common/crypto/factor.h"
#include "common/err.h"

/*
 * As client_json(). Where the vessel asks for the passphrase, the person is asked, and the request is
 * sent again with a proof for this act: the words that the vessel has for it.
 * ERRID_PASSPHRASE_*.
 */
MUST_CHECK int second_factor_json(struct client *c, const struct client_request *rq,
				  const char *act, struct json **ret, struct err *err);

/* What a person typed, made into a key for one question of the vessel's. */
struct second_factor {
	char nonce[FACTOR_NONCE_SIZE];
	uint8_t key[SHA256_SIZE];
};
void second_factor_wipe(struct second_factor *f);
#define cleanup_second_factor __attribute__((cleanup(second_factor_wipe)))
/* For who has to ask before it is known what for: ERRID_PASSPHRASE_UNSET, _TERMINAL. */
MUST_CHECK int second_factor_ask(struct client *c, struct second_factor *ret,
				 struct err *err);
/* struct client_request's proof, once; caller frees. */
char *second_factor_prove(struct second_factor *f, const char *act);

/* Is there one: ERRID_PASSPHRASE_UNSET. */
MUST_CHECK int second_factor_need(struct client *c, struct err *err);

/* A new passphrase, typed twice; with is_change the old one is asked for first. */
MUST_CHECK int second_factor_set(struct client *c, bool is_change, struct err *err);

#endif
