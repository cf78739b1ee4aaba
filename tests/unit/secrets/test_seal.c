/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 180 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "secrets/manifest.h"
#include "secrets/opener.h"
#include "secrets/store.h"
#include "tests/support/vectors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

TestSuite(seal, .timeout = 120);

static const char hex_key[] =
	"808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f";
static const char hex_other[] =
	"808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9e";

static size_t vector_bytes(const char *kind, const char *what, uint8_t *out, size_t max)
{
	cleanup_free char *name = xasprintf("%s_%s", kind, what);
	cleanup_free char *hex = vector(name);
	size_t len = strlen(hex) / 2;

	cr_assert_leq(len, max);
	cr_assert_eq(hex_decode(hex, out, len), 0);
	return len;
}

/* Answers from a list of bytes instead of chance. */
static void given_bytes(void *ctx, void *out, size_t len)
{
	const uint8_t **at = ctx;

	memcpy(out, *at, len);
	*at += len;
}

static void known_answers(const char *kind)
{
	uint8_t want_key[32], header[84], record[256], key[32], made[84], sealed[256],
		opened[256];
	cleanup_free char *name = xasprintf("%s_opener", kind);
	cleanup_free char *opener = vector(name);
	cleanup_free char *id = vector("record_id");
	cleanup_free char *value = vector("record_value");
	size_t n = vector_bytes(kind, "record", record, sizeof(record)), got = 0;
	struct err err = ERR_INIT;
	struct seal_params p;

	cr_assert_eq(vector_bytes(kind, "key", want_key, 32), 32);
	cr_assert_eq(vector_bytes(kind, "header", header, 84), 84);
	cr_assert_eq(seal_header_parse(header, 84, &p, &err), 0, "%s", err.msg);
	cr_assert_eq(seal_derive(&p, opener, strlen(opener), key, &err), 0, "%s",
		     err.msg);
	cr_assert_arr_eq(key, want_key, 32);
	cr_assert_eq(seal_header_check(header, key, &err), 0);
	const uint8_t *chance = header + 56;
	const struct random_ops rng = {given_bytes, &chance};

	cr_assert_eq(seal_header_write(&p, key, &rng, made, &err), 0);
	cr_assert_arr_eq(made, header, 84);
	chance = record + 16;
	cr_assert_eq(
		seal_record(key, p.salt, id, value, strlen(value), &rng, sealed, &err),
		0);
	cr_assert_eq(n, strlen(value) + SEAL_RECORD_OVERHEAD);
	cr_assert_arr_eq(sealed, record, n);
	cr_assert_eq(seal_record_parse(record, n, &got, &err), 0);
	cr_assert_eq(unseal_record(key, p.salt, id, record, n, opened, &err), 0);
	cr_assert_eq(got, strlen(value));
	cr_assert_arr_eq(opened, value, got);
}

Test(seal, known_answers_of_the_document_scrypt)
{
	known_answers("scrypt");
}

Test(seal, known_answers_of_the_document_hkdf)
{
	known_answers("hkdf");
}

Test(seal, weak_and_absurd_parameters_are_refused_before_any_work)
{
	static const struct {
		size_t at;
		uint8_t value;
	} bad[] = {{10, 0}, {10, 3},  {11, 1},	{12, 1},  {13, 1},  {14, 1},
		   {15, 0}, {15, 14}, {15, 19}, {15, 31}, {15, 63}, {15, 255},
		   {16, 1}, {19, 0},  {19, 1},	{19, 9},  {20, 1},  {22, 1},
		   {23, 0}, {23, 5},  {8, 1},	{9, 0},	  {9, 2},   {0, 'l'}};
	uint8_t header[84];
	struct err err = ERR_INIT;
	struct seal_params p;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)vector_bytes("scrypt", "header", header, 84);
		header[bad[i].at] = bad[i].value;
		cr_assert_lt(seal_header_parse(header, 84, &p, &err), 0, "byte %zu = %u",
			     bad[i].at, bad[i].value);
		cr_assert_eq(err.id, ERRID_SECRET_STORE);
	}
	cr_assert_lt(seal_params_new(SEAL_KDF_SCRYPT, 14, &random_real, &p, &err), 0);
	cr_assert_lt(seal_params_new(SEAL_KDF_SCRYPT, 19, &random_real, &p, &err), 0);
	cr_assert_lt(seal_params_new((enum seal_kdf)7, 16, &random_real, &p, &err), 0);
}

Test(seal, openers_that_are_weak_or_malformed_are_refused)
{
	uint8_t key[32];
	struct err err = ERR_INIT;
	struct seal_params p;

	cr_assert_eq(seal_params_new(SEAL_KDF_SCRYPT, 15, &random_real, &p, &err), 0);
	cr_assert_lt(seal_derive(&p, "elevenbytes", 11, key, &err), 0);
	cr_assert_lt(seal_derive(&p, "", 0, key, &err), 0);
	cr_assert_eq(seal_params_new(SEAL_KDF_HKDF, 0, &random_real, &p, &err), 0);
	cr_assert_lt(seal_derive(&p, hex_key, 63, key, &err), 0);
	cr_assert_lt(seal_derive(&p, "zz", 2, key, &err), 0);
	cr_assert_lt(seal_derive(&p,
				 "808182838485868788898A8B8C8D8E8F"
				 "909192939495969798999A9B9C9D9E9F",
				 64, key, &err),
		     0);
	cr_assert_eq(err.id, ERRID_SECRET_KEY);
}

/* Every bit of the header: bounds, or the key check. */
Test(seal, a_header_with_any_bit_turned_opens_nothing)
{
	uint8_t header[84], key[32];
	struct err err = ERR_INIT;
	unsigned refused = 0;

	(void)vector_bytes("hkdf", "header", header, 84);
	for (size_t bit = 0; bit < sizeof(header) * 8; bit++) {
		struct seal_params p;

		header[bit / 8] ^= (uint8_t)(1U << bit % 8);
		refused += seal_header_parse(header, 84, &p, &err) < 0 ||
			   seal_derive(&p, hex_key, 64, key, &err) < 0 ||
			   seal_header_check(header, key, &err) < 0;
		header[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	cr_assert_eq(refused, sizeof(header) * 8);
	for (size_t len = 0; len < 90; len++) {
		cleanup_free uint8_t *cut = xcalloc(1, 90);
		struct seal_params p;

		memcpy(cut, header, 84);
		cr_assert(len == 84 || seal_header_parse(cut, len, &p, &err) < 0);
	}
}

Test(seal, a_record_with_any_bit_turned_cut_or_moved_gives_nothing_out)
{
	uint8_t record[256], key[32], salt[32], opened[256], nothing[256] = {0};
	size_t n = vector_bytes("hkdf", "record", record, sizeof(record));
	cleanup_free char *id = vector("record_id");
	struct err err = ERR_INIT;

	(void)vector_bytes("hkdf", "key", key, 32);
	for (int i = 0; i < 32; i++)
		salt[i] = (uint8_t)(0x40 + i);
	cr_assert_eq(unseal_record(key, salt, id, record, n, opened, &err), 0);
	memset(opened, 0, sizeof(opened));
	for (size_t bit = 0; bit < n * 8; bit++) {
		record[bit / 8] ^= (uint8_t)(1U << bit % 8);
		cr_assert_lt(unseal_record(key, salt, id, record, n, opened, &err), 0,
			     "bit %zu", bit);
		cr_assert_eq(err.id, ERRID_SECRET_DAMAGED);
		cr_assert_arr_eq(opened, nothing, sizeof(opened));
		record[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	for (size_t len = 0; len < n; len++) {
		cleanup_free uint8_t *cut = xmalloc(len ? len : 1);

		memcpy(cut, record, len);
		cr_assert_lt(unseal_record(key, salt, id, cut, len, opened, &err), 0);
	}
	cr_assert_lt(unseal_record(key, salt, id, record, n + 1, opened, &err), 0);
	/* another id, another store, another key */
	cr_assert_lt(unseal_record(key, salt, "0123456789abcdef012345679", record, n,
				   opened, &err),
		     0);
	cr_assert_lt(unseal_record(key, salt, "0123456789abcdef01234567", record, n,
				   opened, &err),
		     0);
	salt[0] ^= 1;
	cr_assert_lt(unseal_record(key, salt, id, record, n, opened, &err), 0);
	salt[0] ^= 1;
	key[31] ^= 1;
	cr_assert_lt(unseal_record(key, salt, id, record, n, opened, &err), 0);
	cr_assert_arr_eq(opened, nothing, sizeof(opened));
}

Test(seal, ids_are_no_paths)
{
	static const char *const bad[] = {"",	".",   "..",  "a/b", "-a",    "a..b",
					  ".a", "a b", "a\n", "é",   "a\x7f", "_x"};
	char longest[SEAL_ID_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_not(seal_id_ok(bad[i]), "'%s'", bad[i]);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[SEAL_ID_MAX + 1] = '\0';
	cr_assert_not(seal_id_ok(longest));
	longest[SEAL_ID_MAX] = '\0';
	cr_assert(seal_id_ok(longest));
	cr_assert(seal_id_ok("lychgate_db.v-1"));
}

Test(seal, values_of_no_length_or_too_many_bytes_are_refused)
{
	uint8_t key[32] = {1}, salt[32] = {2};
	cleanup_free uint8_t *big = xcalloc(1, SEAL_RECORD_MAX + 1);
	cleanup_free uint8_t *out = xcalloc(1, SEAL_RECORD_MAX + 1);
	struct err err = ERR_INIT;
	size_t n;

	cr_assert_lt(seal_record(key, salt, "a", "", 0, &random_real, out, &err), 0);
	cr_assert_lt(seal_record(key, salt, "a", big, SEAL_VALUE_MAX + 1, &random_real,
				 out, &err),
		     0);
	cr_assert_eq(
		seal_record(key, salt, "a", big, SEAL_VALUE_MAX, &random_real, out, &err),
		0);
	cr_assert_eq(seal_record_parse(out, SEAL_RECORD_MAX, &n, &err), 0);
	cr_assert_lt(seal_record_parse(out, SEAL_RECORD_MAX + 1, &n, &err), 0);
}

/* ---- on disk ----------------------------------------------------------------- */

static char dir[64];

static void make_dir(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/lych-seal-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
	struct err err = ERR_INIT;

	cleanup_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(fs_remove_beneath(tmp, dir + strlen("/tmp/"), &err), 0, "%s",
		     err.msg);
}

TestSuite(store, .init = make_dir, .fini = remove_dir, .timeout = 120);

static char *below(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void make_store(struct store *s)
{
	struct err err = ERR_INIT;

	cr_assert_eq(store_make(dir, SEAL_KDF_HKDF, 0, hex_key, 64, &err), 0, "%s",
		     err.msg);
	cr_assert_eq(store_open(dir, s, &err), 0, "%s", err.msg);
	cr_assert_eq(store_unlock(s, hex_key, 64, &err), 0, "%s", err.msg);
}

static uint8_t got[SEAL_VALUE_MAX + 1];

Test(store, another_key_is_refused_and_gives_nothing)
{
	struct store s = STORE_INIT, t = STORE_INIT;
	struct err err = ERR_INIT;
	size_t n;

	make_store(&s);
	cr_assert_eq(store_open(dir, &t, &err), 0);
	cr_assert_lt(store_unlock(&t, hex_other, 64, &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_KEY);
	cr_assert_lt(store_put(&t, "a", "value", 5, &err), 0);
	cr_assert_lt(store_get(&t, "a", got, &n, &err), 0);
	store_done(&t);
	cr_assert_lt(store_make(dir, SEAL_KDF_HKDF, 0, hex_other, 64, &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_EXISTS);
	store_done(&s);
}

Test(store, a_store_or_file_that_others_could_touch_is_refused)
{
	struct store s = STORE_INIT, t = STORE_INIT;
	cleanup_free char *file = below("a.secret");
	cleanup_free char *twin = below("b.secret");
	cleanup_free char *header = below("store.header");
	struct err err = ERR_INIT;
	size_t n;

	make_store(&s);
	cr_assert_eq(store_put(&s, "a", "value", 5, &err), 0);
	cr_assert_eq(chmod(file, 0640), 0);
	cr_assert_lt(store_get(&s, "a", got, &n, &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_STORE);
	cr_assert_eq(chmod(file, 0600), 0);
	cr_assert_eq(link(file, twin), 0);
	cr_assert_lt(store_get(&s, "a", got, &n, &err), 0);
	cr_assert_eq(unlink(twin), 0);
	cr_assert_eq(store_get(&s, "a", got, &n, &err), 0, "%s", err.msg);
	/* one's file under the other's name */
	cr_assert_eq(store_put(&s, "b", "other", 5, &err), 0);
	cr_assert_eq(rename(file, twin), 0);
	cr_assert_lt(store_get(&s, "b", got, &n, &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_DAMAGED);
	cr_assert_eq(unlink(twin), 0);
	cr_assert_eq(symlink("store.header", file), 0);
	cr_assert_lt(store_get(&s, "a", got, &n, &err), 0);
	cr_assert_eq(unlink(file), 0);
	cr_assert_eq(mkfifo(file, 0600), 0);
	cr_assert_lt(store_get(&s, "a", got, &n, &err), 0);
	cr_assert_eq(unlink(file), 0);
	cr_assert_eq(chmod(header, 0644), 0);
	cr_assert_lt(store_unlock(&s, hex_key, 64, &err), 0);
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_assert_lt(store_open(dir, &t, &err), 0);
	cr_assert_eq(chmod(dir, 0700), 0);
	store_done(&s);
}

struct seen {
	unsigned n;
	char last[SEAL_ID_MAX + 1];
};

static void on_id(const char *id, void *arg)
{
	struct seen *seen = arg;

	seen->n++;
	cr_assert_eq(str_copy(seen->last, sizeof(seen->last), id), 0);
}

Test(store, put_get_list_delete)
{
	struct store s = STORE_INIT;
	struct err err = ERR_INIT;
	struct seen seen = {0};
	cleanup_free char *alien = below("notes.txt");
	size_t n;

	make_store(&s);
	cr_assert_lt(store_get(&s, "a", got, &n, &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_MISSING);
	cr_assert_lt(store_put(&s, "../a", "value", 5, &err), 0);
	cr_assert_eq(store_put(&s, "a", "va\0ue", 5, &err), 0, "%s", err.msg);
	cr_assert_lt(store_put(&s, "a", "again", 5, &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_EXISTS);
	cr_assert_eq(store_get(&s, "a", got, &n, &err), 0);
	cr_assert_eq(n, 5);
	cr_assert_arr_eq(got, "va\0ue", 5);
	cr_assert_eq(store_list(&s, on_id, &seen, &err), 0);
	cr_assert_eq(seen.n, 1);
	cr_assert_str_eq(seen.last, "a");
	cr_assert_eq(close(open(alien, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	cr_assert_lt(store_list(&s, on_id, &seen, &err), 0);
	cr_assert_eq(unlink(alien), 0);
	cr_assert_eq(store_delete(&s, "a", &err), 0);
	cr_assert_lt(store_delete(&s, "a", &err), 0);
	cr_assert_eq(err.id, ERRID_SECRET_MISSING);
	store_done(&s);
}

/* ---- the manifest ------------------------------------------------------------- */

Test(store, every_secret_of_the_manifest_is_in_the_document)
{
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;
	size_t len;

	cr_assert_eq(
		fs_read_file(AT_FDCWD, "docs/SECRETS.md", 1 << 20, &text, &len, &err), 0);
	for (size_t i = 0; i < secret_manifest_len; i++) {
		cleanup_free char *row = xasprintf("\n| `%s` |", secret_manifest[i].name);

		cr_assert_not_null(strstr(text, row), "%s", secret_manifest[i].name);
	}
	cr_assert_null(secret_find("lychgate_db_other"));
	cr_assert_null(secret_find("portal_"));
	cr_assert_null(secret_find("portal_A"));
	cr_assert_null(secret_find("../x"));
	cr_assert_not_null(secret_find("portal_openai"));
	cr_assert_not_null(secret_find("lychgate_work"));
}
