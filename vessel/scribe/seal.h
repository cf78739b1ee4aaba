/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * One seal: a checkpoint of the log, signed. Its text is that of C2SP's tlog-checkpoint, in a
 * signed note (a signature of type 1, Ed25519):
 *
 *	lychgate.audit/<uuid of the log>
 *	<how many lines>
 *	<Merkle root of these, base64>
 *	epoch <whose key signed>
 *	time <RFC 3339>
 *	prev <SHA-256 of the seal before, hex; 64 zeros in the first>
 *	genesis <public key>	only where keys begin: the key that signed this
 *	next <public key>	only in the last of an epoch: the key of the next one
 *
 *	— lychgate.audit/<uuid> <base64: 4 bytes of key id, 64 of signature>
 *
 * The file "seals" is one after the other, an empty line behind each. There is one way to
 * write a seal: what was read is written again and compared.
 */
#ifndef LYCH_VESSEL_SCRIBE_SEAL_H
#define LYCH_VESSEL_SCRIBE_SEAL_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/crypto/ed25519.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/scribe/merkle.h"

#define SEAL_FILE "seals"
#define SEAL_MAX ((size_t)1024) /* with the empty line behind it */
#define SEAL_TEXT32 45		/* a public key or a hash in base64, with its NUL */

struct seal {
	struct uuid log;
	uint64_t size;
	struct merkle_hash root;
	uint64_t epoch;
	char time[RFC3339_SIZE];
	struct merkle_hash prev;
	bool has_genesis, has_next;
	uint8_t genesis[ED25519_PUBLIC_SIZE], next[ED25519_PUBLIC_SIZE];
	/* of who signed it */
	uint8_t key_id[4], signature[ED25519_SIGNATURE_SIZE];
};

/* As it stands in the file, its empty line included. */
void seal_write(struct buf *out, const struct seal *s);
/* Fill key_id and signature. */
void seal_sign(struct seal *s, const uint8_t seed[ED25519_SEED_SIZE]);
MUST_CHECK bool seal_is_of(const struct seal *s,
			   const uint8_t public[ED25519_PUBLIC_SIZE]);
/* What the next seal says as "prev". */
void seal_hash(const struct seal *s, struct merkle_hash *ret);

/* How many bytes the first seal has that stands here; 0: it is not finished. */
size_t seal_length(const char *data, size_t len);
/* Exactly one. ERRID_AUDIT_SEAL. */
MUST_CHECK int seal_parse(const char *data, size_t len, struct seal *ret,
			  struct err *err);

/* Public keys and hashes, 32 bytes each, in base64. */
void seal_text32(const uint8_t raw[32], char ret[SEAL_TEXT32]);
/* ERR_INVALID */
MUST_CHECK int seal_parse32(const char *text, uint8_t ret[32], struct err *err);

#endif
