/* SPDX-License-Identifier: Apache-2.0 */
/* The Merkle tree: reference values of certificate transparency (RFC 6962, 9162), and what holds
 * of all trees of up to 200 leaves. */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/scribe/merkle.h"
#include <criterion/criterion.h>
#include <string.h>

#define SIZES 200

TestSuite(merkle, .timeout = 60);

static struct merkle_hash leaves[SIZES], roots[SIZES + 1];

/* The root as RFC 6962, 2.1 defines it, by its recursion. */
static void defined_root(const struct merkle_hash *d, uint64_t n, struct merkle_hash *ret)
{
	struct merkle_hash left, right;
	uint64_t k = 1;

	if (n == 1) {
		*ret = d[0];
		return;
	}
	while (k * 2 < n)
		k *= 2;
	defined_root(d, k, &left);
	defined_root(d + k, n - k, &right);
	merkle_node(&left, &right, ret);
}

static void fill(void)
{
	struct merkle m = {0};

	merkle_root(&m, &roots[0]);
	for (unsigned i = 0; i < SIZES; i++) {
		merkle_leaf(&i, sizeof(i), &leaves[i]);
		merkle_add(&m, &leaves[i]);
		merkle_root(&m, &roots[i + 1]);
	}
}

static void is_hex(const struct merkle_hash *h, const char *hex)
{
	char got[SHA256_HEX_SIZE];

	hex_encode(h->b, sizeof(h->b), got);
	cr_expect_str_eq(got, hex);
}

/* The eight inputs of the reference tests of certificate transparency. */
static const struct {
	const char *hex, *root;
} reference[] = {
	{"", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
	{"00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
	{"10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
	{"2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
	{"3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
	{"40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
	{"5051525354555657",
	 "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
	{"606162636465666768696a6b6c6d6e6f",
	 "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"},
};

static void reference_leaves(struct merkle_hash ret[8])
{
	for (size_t i = 0; i < 8; i++) {
		uint8_t data[16];
		size_t len = strlen(reference[i].hex) / 2;

		cr_assert(hex_decode(reference[i].hex, data, len) == 0);
		merkle_leaf(data, len, &ret[i]);
	}
}

Test(merkle, roots_are_those_of_certificate_transparency)
{
	struct merkle_hash d[8], root;
	struct merkle m = {0};

	reference_leaves(d);
	merkle_root(&m, &root);
	is_hex(&root, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	for (size_t i = 0; i < 8; i++) {
		merkle_add(&m, &d[i]);
		merkle_root(&m, &root);
		is_hex(&root, reference[i].root);
	}
}

static void is_path(const struct merkle_proof *p, size_t n, const char *const *hex)
{
	cr_assert_eq(p->n, n);
	for (size_t i = 0; i < n; i++)
		is_hex(&p->hash[i], hex[i]);
}

Test(merkle, proofs_are_those_of_certificate_transparency)
{
	static const char *const first_of_8[] = {
		"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
		"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
		"6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"};
	static const char *const sixth_of_8[] = {
		"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
		"ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"};
	static const char *const from_6_to_8[] = {
		"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
		"ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"};
	static const char *const from_2_to_5[] = {
		"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
		"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"};
	struct merkle_hash d[8];
	struct merkle_proof p;

	reference_leaves(d);
	merkle_prove_inclusion(d, 0, 1, &p);
	is_path(&p, 0, NULL);
	merkle_prove_inclusion(d, 0, 8, &p);
	is_path(&p, 3, first_of_8);
	merkle_prove_inclusion(d, 5, 8, &p);
	is_path(&p, 3, sixth_of_8);
	merkle_prove_consistency(d, 1, 1, &p);
	is_path(&p, 0, NULL);
	merkle_prove_consistency(d, 1, 8, &p);
	is_path(&p, 3, first_of_8);
	merkle_prove_consistency(d, 6, 8, &p);
	is_path(&p, 3, from_6_to_8);
	merkle_prove_consistency(d, 2, 5, &p);
	is_path(&p, 2, from_2_to_5);
}

Test(merkle, a_tree_that_grows_has_the_root_of_its_definition)
{
	struct merkle_hash want;

	fill();
	for (uint64_t n = 1; n <= SIZES; n++) {
		defined_root(leaves, n, &want);
		cr_assert(merkle_hash_eq(&want, &roots[n]), "%u", (unsigned)n);
	}
}

static struct merkle_hash changed(const struct merkle_hash *h)
{
	struct merkle_hash c = *h;

	c.b[SHA256_SIZE - 1] ^= 1;
	return c;
}

Test(merkle, each_leaf_of_each_size_is_proved_and_nothing_else)
{
	fill();
	for (uint64_t n = 1; n <= SIZES; n++) {
		for (uint64_t i = 0; i < n; i++) {
			struct merkle_hash bad = changed(&roots[n]),
					   leaf = changed(&leaves[i]);
			struct merkle_proof p;

			merkle_prove_inclusion(leaves, i, n, &p);
			cr_assert(merkle_includes(&roots[n], n, &leaves[i], i, &p));
			cr_assert_not(merkle_includes(&bad, n, &leaves[i], i, &p));
			cr_assert_not(merkle_includes(&roots[n], n, &leaf, i, &p));
			cr_assert_not(merkle_includes(&roots[n], n, &leaves[i],
						      (i + 1) % n, &p) &&
				      n > 1);
			cr_assert_not(merkle_includes(&roots[n], i, &leaves[i], i, &p));
			if (p.n) {
				p.hash[i % p.n] = changed(&p.hash[i % p.n]);
				cr_assert_not(
					merkle_includes(&roots[n], n, &leaves[i], i, &p));
				p.hash[i % p.n] = changed(&p.hash[i % p.n]);
				p.n--;
				cr_assert_not(
					merkle_includes(&roots[n], n, &leaves[i], i, &p));
				p.n++;
			}
			p.hash[p.n++] = roots[n];
			cr_assert_not(merkle_includes(&roots[n], n, &leaves[i], i, &p));
		}
	}
}

Test(merkle, each_size_goes_on_to_each_larger_one_and_to_no_other_tree)
{
	fill();
	for (uint64_t to = 1; to <= SIZES; to++) {
		for (uint64_t from = 1; from <= to; from++) {
			struct merkle_hash old = changed(&roots[from]),
					   new = changed(&roots[to]);
			struct merkle_proof p;

			merkle_prove_consistency(leaves, from, to, &p);
			cr_assert(merkle_goes_on(&roots[from], from, &roots[to], to, &p),
				  "%u %u", (unsigned)from, (unsigned)to);
			cr_assert_not(merkle_goes_on(&old, from, &roots[to], to, &p));
			cr_assert_not(merkle_goes_on(&roots[from], from, &new, to, &p));
			cr_assert_not(
				merkle_goes_on(&roots[to], to, &roots[from], from, &p) &&
				from != to);
			cr_assert_not(
				merkle_goes_on(&roots[from], 0, &roots[to], to, &p));
			if (p.n) {
				p.hash[from % p.n] = changed(&p.hash[from % p.n]);
				cr_assert_not(merkle_goes_on(&roots[from], from,
							     &roots[to], to, &p));
				p.hash[from % p.n] = changed(&p.hash[from % p.n]);
				p.n--;
				cr_assert_not(merkle_goes_on(&roots[from], from,
							     &roots[to], to, &p));
				p.n++;
			}
			p.hash[p.n++] = roots[to];
			cr_assert_not(
				merkle_goes_on(&roots[from], from, &roots[to], to, &p));
		}
	}
}
