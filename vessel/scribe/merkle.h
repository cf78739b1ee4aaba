/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * The Merkle tree of RFC 6962 and RFC 9162 (SHA-256) over the lines of the audit log: its
 * root, and the two proofs by which somebody who has only roots can check a line (inclusion)
 * or that one tree goes on from another (consistency). Pure functions.
 */
#ifndef LYCH_VESSEL_SCRIBE_MERKLE_H
#define LYCH_VESSEL_SCRIBE_MERKLE_H

#include "common/attr.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERKLE_LEVELS 64

struct merkle_hash {
	uint8_t b[SHA256_SIZE];
};

/* SHA256(0x00 || data), SHA256(0x01 || left || right). */
void merkle_leaf(const void *data, size_t len, struct merkle_hash *ret);
void merkle_node(const struct merkle_hash *left, const struct merkle_hash *right,
		 struct merkle_hash *ret);
bool merkle_hash_eq(const struct merkle_hash *a, const struct merkle_hash *b);

/*
 * A tree to which leaves are added. What it needs to go on is its right edge: edge[k], where
 * size has bit k, is the root of a full subtree of 2^k leaves. {0} is the empty tree.
 */
struct merkle {
	uint64_t size;
	struct merkle_hash edge[MERKLE_LEVELS];
};
void merkle_add(struct merkle *m, const struct merkle_hash *leaf);
/* SHA256("") of an empty tree. */
void merkle_root(const struct merkle *m, struct merkle_hash *ret);

struct merkle_proof {
	size_t n;
	struct merkle_hash hash[MERKLE_LEVELS + 1];
};
/* That leaves[index] is in the tree of the first `size` leaves; index < size. */
void merkle_prove_inclusion(const struct merkle_hash *leaves, uint64_t index,
			    uint64_t size, struct merkle_proof *ret);
/* That the tree of `from` leaves is the beginning of that of `to`; 0 < from <= to. */
void merkle_prove_consistency(const struct merkle_hash *leaves, uint64_t from,
			      uint64_t to, struct merkle_proof *ret);

MUST_CHECK bool merkle_includes(const struct merkle_hash *root, uint64_t size,
				const struct merkle_hash *leaf, uint64_t index,
				const struct merkle_proof *proof);
MUST_CHECK bool merkle_goes_on(const struct merkle_hash *from_root, uint64_t from,
			       const struct merkle_hash *to_root, uint64_t to,
			       const struct merkle_proof *proof);

#endif
