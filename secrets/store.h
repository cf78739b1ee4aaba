/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * The encrypted store on disk: a directory 0700 of ours with `store.header` and one file
 * `<id>.secret` for each secret, all 0600. The key is derived once, when it is opened.
 */
#ifndef LYCH_SECRETS_STORE_H
#define LYCH_SECRETS_STORE_H

#include "secrets/seal.h"

struct store {
	int dirfd; /* -1: not open */
	uint8_t salt[SEAL_SALT_BYTES];
	uint8_t key[SEAL_KEY_BYTES];
	bool has_key;
};
#define STORE_INIT {.dirfd = -1}

/* Make the directory (its parent exists) and the header; an existing store is refused. */
MUST_CHECK int store_make(const char *dir, enum seal_kdf kdf, uint8_t log2_n,
			  const char *opener, size_t len, struct err *err);
/* Without the key: for list and delete. */
MUST_CHECK int store_open(const char *dir, struct store *ret, struct err *err);
/* The key is derived and checked. */
MUST_CHECK int store_unlock(struct store *s, const char *opener, size_t len,
			    struct err *err);
/* Wipes the key. */
void store_done(struct store *s);

/* ERRID_SECRET_EXISTS when the id is taken; complete and on disk on success. */
MUST_CHECK int store_put(struct store *s, const char *id, const void *value, size_t len,
			 struct err *err);
/* *ret: SEAL_VALUE_MAX bytes from the caller. */
MUST_CHECK int store_get(struct store *s, const char *id, uint8_t *ret, size_t *ret_len,
			 struct err *err);
MUST_CHECK int store_delete(struct store *s, const char *id, struct err *err);
/* Calls on_id for each; a file that is not one of ours is an error. */
MUST_CHECK int store_list(struct store *s, void (*on_id)(const char *id, void *arg),
			  void *arg, struct err *err);

#endif
