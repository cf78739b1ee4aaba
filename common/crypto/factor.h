/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The second factor's arithmetic: a passphrase is shown to be known without being sent. Who asks makes
 * a key of it with scrypt, which costs him the time, and sends a proof that is good for one
 * question and one act (as SCRAM does, RFC 5802); who judges stores the key's hash, and works
 * out two hashes.
 *
 *	stored = SHA-256(key)
 *	proof = key XOR HMAC-SHA-256(stored, "lychgate-passphrase-1" LF nonce LF act)
 */
#ifndef LYCH_COMMON_CRYPTO_FACTOR_H
#define LYCH_COMMON_CRYPTO_FACTOR_H

#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACTOR_SALT_BYTES 32
#define FACTOR_NONCE_BYTES 16
#define FACTOR_NONCE_SIZE (2 * FACTOR_NONCE_BYTES + 1) /* as hex, with a NUL */
#define FACTOR_PROOF_SIZE SHA256_HEX_SIZE
#define FACTOR_ACT_MAX_BYTES 256
/* scrypt's cost: the least that is taken, and the most, beyond which who asks would run out of memory. */
#define FACTOR_LOG2_N_MIN 15
#define FACTOR_LOG2_N_MAX 18
#define FACTOR_R 8
#define FACTOR_P_MAX 4
/* The header of a request that has one: "NONCE:PROOF". */
#define FACTOR_HEADER "Lychgate-Passphrase"

/* nonce: hex; act: what is to be done, in the words that both sides make of it. */
void factor_prove(const uint8_t key[SHA256_SIZE], const char *nonce, const char *act,
		  char ret_proof[FACTOR_PROOF_SIZE]);
/* proof: from outside. */
bool factor_is_proven(const uint8_t stored[SHA256_SIZE], const char *nonce,
		      const char *act, const char *proof);

#endif
