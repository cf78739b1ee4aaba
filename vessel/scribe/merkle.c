/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * See merkle.h. The two ways to check are those of RFC 9162, 2.1.3.2 and 2.1.4.2, word by
 * word; the proofs are made by the recursions of 2.1.3.1 and 2.1.4.1, from the root down and
 * then turned round.
 */
#include "vessel/scribe/merkle.h"
#include "common/crypto/sha256.h"
#include <assert.h>
#include <string.h>

void merkle_leaf(const void *data, size_t len, struct merkle_hash *ret)
{
	cleanup_sha256 struct sha256 *h = sha256_new();

	sha256_add(h, "\0", 1);
	sha256_add(h, data, len);
	sha256_final(h, ret->b);
}

void merkle_node(const struct merkle_hash *left, const struct merkle_hash *right,
		 struct merkle_hash *ret)
{
	uint8_t both[1 + 2 * SHA256_SIZE];

	both[0] = 1;
	memcpy(both + 1, left->b, SHA256_SIZE);
	memcpy(both + 1 + SHA256_SIZE, right->b, SHA256_SIZE);
	sha256_of(both, sizeof(both), ret->b);
}

bool merkle_hash_eq(const struct merkle_hash *a, const struct merkle_hash *b)
{
	return memcmp(a->b, b->b, SHA256_SIZE) == 0;
}

void merkle_add(struct merkle *m, const struct merkle_hash *leaf)
{
	struct merkle_hash h = *leaf;
	unsigned level = 0;

	for (; m->size & ((uint64_t)1 << level); level++)
		merkle_node(&m->edge[level], &h, &h);
	m->edge[level] = h;
	m->size++;
}

void merkle_root(const struct merkle *m, struct merkle_hash *ret)
{
	bool any = false;

	for (unsigned level = 0; level < MERKLE_LEVELS; level++) {
		if (!(m->size & ((uint64_t)1 << level)))
			continue;
		if (any)
			merkle_node(&m->edge[level], ret, ret);
		else
			*ret = m->edge[level];
		any = true;
	}
	if (!any)
		sha256_of("", 0, ret->b);
}

/* ---- proofs ---- */

static void root_of(const struct merkle_hash *leaves, uint64_t n, struct merkle_hash *ret)
{
	struct merkle m = {0};

	for (uint64_t i = 0; i < n; i++)
		merkle_add(&m, &leaves[i]);
	merkle_root(&m, ret);
}

/* The largest power of two below n; n > 1. */
static uint64_t split(uint64_t n)
{
	return (uint64_t)1 << (63 - __builtin_clzll(n - 1));
}

static struct merkle_hash *next_hash(struct merkle_proof *p)
{
	assert(p->n < ARRAY_SIZE(p->hash));
	return &p->hash[p->n++];
}

static void turn_round(struct merkle_proof *p)
{
	for (size_t i = 0; i < p->n / 2; i++) {
		struct merkle_hash h = p->hash[i];

		p->hash[i] = p->hash[p->n - 1 - i];
		p->hash[p->n - 1 - i] = h;
	}
}

void merkle_prove_inclusion(const struct merkle_hash *leaves, uint64_t index,
			    uint64_t size, struct merkle_proof *ret)
{
	assert(index < size);
	ret->n = 0;
	while (size > 1) {
		uint64_t k = split(size);

		if (index < k) {
			root_of(leaves + k, size - k, next_hash(ret));
			size = k;
		} else {
			root_of(leaves, k, next_hash(ret));
			leaves += k;
			index -= k;
			size -= k;
		}
	}
	turn_round(ret);
}

void merkle_prove_consistency(const struct merkle_hash *leaves, uint64_t from,
			      uint64_t to, struct merkle_proof *ret)
{
	bool is_known = true; /* the subtree is the whole of the old tree */

	assert(from > 0 && from <= to);
	ret->n = 0;
	while (from < to) {
		uint64_t k = split(to);

		if (from <= k) {
			root_of(leaves + k, to - k, next_hash(ret));
			to = k;
		} else {
			root_of(leaves, k, next_hash(ret));
			leaves += k;
			from -= k;
			to -= k;
			is_known = false;
		}
	}
	if (!is_known)
		root_of(leaves, to, next_hash(ret));
	turn_round(ret);
}

/* Where a check stands: the numbers fn and sn of RFC 9162. */
struct ascent {
	uint64_t fn, sn;
};

/* Is the next hash of the proof on the left of what is known? */
static bool is_left(struct ascent *a)
{
	if (!(a->fn & 1) && a->fn != a->sn)
		return false;
	while (!(a->fn & 1) && a->fn) {
		a->fn >>= 1;
		a->sn >>= 1;
	}
	return true;
}

static void step_up(struct ascent *a)
{
	a->fn >>= 1;
	a->sn >>= 1;
}

bool merkle_includes(const struct merkle_hash *root, uint64_t size,
		     const struct merkle_hash *leaf, uint64_t index,
		     const struct merkle_proof *proof)
{
	struct ascent at = {index, size - 1};
	struct merkle_hash r = *leaf;

	if (index >= size)
		return false;
	for (size_t i = 0; i < proof->n; i++) {
		if (at.sn == 0)
			return false;
		if (is_left(&at))
			merkle_node(&proof->hash[i], &r, &r);
		else
			merkle_node(&r, &proof->hash[i], &r);
		step_up(&at);
	}
	return at.sn == 0 && merkle_hash_eq(&r, root);
}

bool merkle_goes_on(const struct merkle_hash *from_root, uint64_t from,
		    const struct merkle_hash *to_root, uint64_t to,
		    const struct merkle_proof *proof)
{
	struct ascent at = {from - 1, to - 1};
	struct merkle_hash fr, sr;
	size_t i = 0;

	if (from == 0 || from > to)
		return false;
	if (from == to)
		return proof->n == 0 && merkle_hash_eq(from_root, to_root);
	if (proof->n == 0)
		return false;
	/* a full tree is itself the first hash, which the proof leaves out */
	fr = sr = (from & (from - 1)) == 0 ? *from_root : proof->hash[i++];
	while (at.fn & 1)
		step_up(&at);
	for (; i < proof->n; i++) {
		if (at.sn == 0)
			return false;
		if (is_left(&at)) {
			merkle_node(&proof->hash[i], &fr, &fr);
			merkle_node(&proof->hash[i], &sr, &sr);
		} else {
			merkle_node(&sr, &proof->hash[i], &sr);
		}
		step_up(&at);
	}
	return at.sn == 0 && merkle_hash_eq(&fr, from_root) &&
	       merkle_hash_eq(&sr, to_root);
}
