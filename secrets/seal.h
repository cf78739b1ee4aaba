/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * The encrypted secret store's format, version 1 (docs/SECRETS.md): bytes in, bytes out,
 * no files. A store has one header, which says how its key is made and lets a key be
 * checked; each secret is a record sealed to that store and to its own id.
 */
#ifndef LYCH_SECRETS_SEAL_H
#define LYCH_SECRETS_SEAL_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_KEY_BYTES 32
#define SEAL_SALT_BYTES 32
#define SEAL_HEADER_BYTES 84
#define SEAL_RECORD_OVERHEAD 44
#define SEAL_VALUE_MAX 512000 /* what Podman takes at most */
#define SEAL_RECORD_MAX (SEAL_VALUE_MAX + SEAL_RECORD_OVERHEAD)
#define SEAL_ID_MAX 64

/* scrypt's cost: below the floor a passphrase is guessed, above the ceiling a header
 * makes its reader run out of memory or patience. Memory is 128 * N * r bytes. */
#define SEAL_LOG2_N_MIN 15
#define SEAL_LOG2_N_DEFAULT 16
#define SEAL_LOG2_N_MAX 18
#define SEAL_R 8
#define SEAL_P_MAX 4

#define SEAL_PASSPHRASE_MIN 12
#define SEAL_PASSPHRASE_MAX 1024

enum seal_kdf {
	SEAL_KDF_SCRYPT = 1, /* the secret that opens the store is a passphrase */
	SEAL_KDF_HKDF = 2,   /* it is 32 random bytes, written as 64 hex digits */
};

struct seal_params {
	enum seal_kdf kdf;
	uint8_t log2_n; /* the three: 0 for HKDF */
	uint32_t r, p;
	uint8_t salt[SEAL_SALT_BYTES];
};

/* Make one with a random salt. */
MUST_CHECK int seal_params_new(enum seal_kdf kdf, uint8_t log2_n,
			       const struct random_ops *rng, struct seal_params *ret,
			       struct err *err);

/* Derive the store's key from what opens it (no trailing newline). Weak or absurd
 * parameters and a short passphrase are refused. The caller wipes ret_key. */
MUST_CHECK int seal_derive(const struct seal_params *p, const char *opener, size_t len,
			   uint8_t ret_key[SEAL_KEY_BYTES], struct err *err);

MUST_CHECK int seal_header_write(const struct seal_params *p,
				 const uint8_t key[SEAL_KEY_BYTES],
				 const struct random_ops *rng,
				 uint8_t ret[SEAL_HEADER_BYTES], struct err *err);
/* Form and bounds only: the key is not known yet. */
MUST_CHECK int seal_header_parse(const uint8_t *data, size_t len, struct seal_params *ret,
				 struct err *err);
/* ERRID_SECRET_KEY: another key, or a header that was changed. */
MUST_CHECK int seal_header_check(const uint8_t data[SEAL_HEADER_BYTES],
				 const uint8_t key[SEAL_KEY_BYTES], struct err *err);

/* 1..64 of [A-Za-z0-9_-.], beginning with a letter or digit, without "..". */
bool seal_id_ok(const char *id);

/* ret: SEAL_RECORD_OVERHEAD + len bytes. */
MUST_CHECK int seal_record(const uint8_t key[SEAL_KEY_BYTES],
			   const uint8_t salt[SEAL_SALT_BYTES], const char *id,
			   const void *value, size_t len, const struct random_ops *rng,
			   uint8_t *ret, struct err *err);
/* The length of the value in a record of this form. */
MUST_CHECK int seal_record_parse(const uint8_t *data, size_t len, size_t *ret_value_len,
				 struct err *err);
/* ret: the value's length; nothing is in it unless all of it is authentic. */
MUST_CHECK int unseal_record(const uint8_t key[SEAL_KEY_BYTES],
			     const uint8_t salt[SEAL_SALT_BYTES], const char *id,
			     const uint8_t *data, size_t len, uint8_t *ret,
			     struct err *err);

#endif
