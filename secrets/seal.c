/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * See seal.h.
 */
#include "secrets/seal.h"

#include "common/mem.h"
#include "common/str.h"
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#define FORMAT_VERSION 1
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define AT_CHECK 56 /* in the header: nonce and tag of the key check */
#define AT_NONCE 16 /* in a record */
#define AT_VALUE 28
#define HKDF_INFO "lychgate secret store 1"
#define RAW_KEY_DIGITS 64

static const uint8_t header_magic[8] = {'L', 'Y', 'C', 'H', 'S', 'T', 'O', 'R'};
static const uint8_t record_magic[8] = {'L', 'Y', 'C', 'H', 'S', 'E', 'C', 'R'};

/* ---- integers, big-endian -------------------------------------------------- */

static void put32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
	       at[3];
}

static void put_start(uint8_t *at, const uint8_t magic[8])
{
	memcpy(at, magic, 8);
	at[8] = 0;
	at[9] = FORMAT_VERSION;
}

static int check_start(const uint8_t *at, const uint8_t magic[8], enum err_id id,
		       struct err *err)
{
	if (memcmp(at, magic, 8) != 0)
		return err_set_id(err, id, "not a file of this format");
	if (at[8] != 0 || at[9] != FORMAT_VERSION)
		return err_set_id(err, id, "format version %u, this program knows %d",
				  (unsigned)at[8] << 8 | at[9], FORMAT_VERSION);
	return 0;
}

/* ---- AES-256-GCM ----------------------------------------------------------- */

/* Two parts of associated data, since one of them lies in the file already. */
struct aad {
	const void *a, *b;
	size_t a_len, b_len;
};

static void cipher_free(EVP_CIPHER_CTX **c)
{
	EVP_CIPHER_CTX_free(*c);
}
#define cleanup_cipher __attribute__((cleanup(cipher_free)))

static bool begin(EVP_CIPHER_CTX *c, bool seal, const uint8_t *key, const uint8_t *nonce,
		  const struct aad *aad)
{
	int n;

	return EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce, seal) == 1 &&
	       EVP_CipherUpdate(c, NULL, &n, aad->a, (int)aad->a_len) == 1 &&
	       (!aad->b_len ||
		EVP_CipherUpdate(c, NULL, &n, aad->b, (int)aad->b_len) == 1);
}

static int gcm_seal(const uint8_t *key, const uint8_t *nonce, const struct aad *aad,
		    const void *in, size_t len, uint8_t *out, uint8_t *tag,
		    struct err *err)
{
	cleanup_cipher EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t none[1] = {0};
	int n;

	if (!c || !begin(c, true, key, nonce, aad) ||
	    (len && EVP_CipherUpdate(c, out, &n, in, (int)len) != 1) ||
	    EVP_CipherFinal_ex(c, none, &n) != 1 ||
	    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, tag) != 1)
		return err_set(err, ERR_INTERNAL, "AES-256-GCM failed");
	return 0;
}

static bool gcm_open(const uint8_t *key, const uint8_t *nonce, const struct aad *aad,
		     const uint8_t *in, size_t len, uint8_t *out, const uint8_t *tag)
{
	cleanup_cipher EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t want[TAG_BYTES], none[1];
	int n;

	memcpy(want, tag, sizeof(want));
	return c && begin(c, false, key, nonce, aad) &&
	       (!len || EVP_CipherUpdate(c, out, &n, in, (int)len) == 1) &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, want) == 1 &&
	       EVP_CipherFinal_ex(c, none, &n) == 1;
}

/* ---- the key --------------------------------------------------------------- */

static int check_params(const struct seal_params *p, struct err *err)
{
	switch (p->kdf) {
	case SEAL_KDF_HKDF:
		if (p->log2_n || p->r || p->p)
			return err_set_id(err, ERRID_SECRET_STORE,
					  "scrypt parameters beside another derivation");
		return 0;
	case SEAL_KDF_SCRYPT:
		if (p->log2_n < SEAL_LOG2_N_MIN || p->log2_n > SEAL_LOG2_N_MAX ||
		    p->r != SEAL_R || p->p < 1 || p->p > SEAL_P_MAX)
			return err_set_id(err, ERRID_SECRET_STORE,
					  "scrypt parameters N=2^%u r=%u p=%u; taken are "
					  "N=2^%d..2^%d r=%d p=1..%d",
					  p->log2_n, p->r, p->p, SEAL_LOG2_N_MIN,
					  SEAL_LOG2_N_MAX, SEAL_R, SEAL_P_MAX);
		return 0;
	default:
		return err_set_id(err, ERRID_SECRET_STORE, "unknown key derivation %u",
				  (unsigned)p->kdf);
	}
}

int seal_params_new(enum seal_kdf kdf, uint8_t log2_n, const struct random_ops *rng,
		    struct seal_params *ret, struct err *err)
{
	bool scrypt = kdf == SEAL_KDF_SCRYPT;

	*ret = (struct seal_params){
		.kdf = kdf,
		.log2_n = scrypt ? log2_n : 0,
		.r = scrypt ? SEAL_R : 0,
		.p = scrypt ? 1 : 0,
	};
	rng->bytes(rng->ctx, ret->salt, sizeof(ret->salt));
	return check_params(ret, err);
}

static int run_kdf(const char *name, const OSSL_PARAM *params,
		   uint8_t ret_key[SEAL_KEY_BYTES], struct err *err)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, name, NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	int ok = ctx && EVP_KDF_derive(ctx, ret_key, SEAL_KEY_BYTES, params) == 1;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	if (!ok)
		return err_set(err, ERR_INTERNAL, "%s could not derive a key", name);
	return 0;
}

static OSSL_PARAM octets(const char *name, const void *data, size_t len)
{
	return OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)data, len);
}

static int derive_scrypt(const struct seal_params *p, const char *pass, size_t len,
			 uint8_t ret_key[SEAL_KEY_BYTES], struct err *err)
{
	uint64_t n = (uint64_t)1 << p->log2_n, memory = 128 * n * p->r + (1U << 20);
	uint32_t r = p->r, lanes = p->p;
	const OSSL_PARAM params[] = {
		octets(OSSL_KDF_PARAM_PASSWORD, pass, len),
		octets(OSSL_KDF_PARAM_SALT, p->salt, sizeof(p->salt)),
		OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
		OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
		OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &lanes),
		OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &memory),
		OSSL_PARAM_construct_end(),
	};

	if (len < SEAL_PASSPHRASE_MIN || len > SEAL_PASSPHRASE_MAX)
		return err_set_id(err, ERRID_SECRET_KEY,
				  "the passphrase has %zu bytes; taken are %d..%d", len,
				  SEAL_PASSPHRASE_MIN, SEAL_PASSPHRASE_MAX);
	return run_kdf("SCRYPT", params, ret_key, err);
}

static int derive_hkdf(const struct seal_params *p, const char *hex, size_t len,
		       uint8_t ret_key[SEAL_KEY_BYTES], struct err *err)
{
	char digest[] = "SHA256", digits[RAW_KEY_DIGITS + 1];
	uint8_t raw[SEAL_KEY_BYTES];
	int r = -1;

	if (len != RAW_KEY_DIGITS)
		return err_set_id(err, ERRID_SECRET_KEY,
				  "the key has %zu bytes; it must be %d hex digits", len,
				  RAW_KEY_DIGITS);
	memcpy(digits, hex, len);
	digits[len] = '\0';
	const OSSL_PARAM params[] = {
		octets(OSSL_KDF_PARAM_KEY, raw, sizeof(raw)),
		octets(OSSL_KDF_PARAM_SALT, p->salt, sizeof(p->salt)),
		octets(OSSL_KDF_PARAM_INFO, HKDF_INFO, strlen(HKDF_INFO)),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};
	if (hex_decode(digits, raw, sizeof(raw)) < 0)
		(void)err_set_id(err, ERRID_SECRET_KEY,
				 "the key is not lower-case hex digits");
	else
		r = run_kdf("HKDF", params, ret_key, err);
	explicit_bzero(digits, sizeof(digits));
	explicit_bzero(raw, sizeof(raw));
	return r;
}

int seal_derive(const struct seal_params *p, const char *opener, size_t len,
		uint8_t ret_key[SEAL_KEY_BYTES], struct err *err)
{
	if (check_params(p, err) < 0)
		return -1;
	return p->kdf == SEAL_KDF_SCRYPT ? derive_scrypt(p, opener, len, ret_key, err)
					 : derive_hkdf(p, opener, len, ret_key, err);
}

/* ---- the header ------------------------------------------------------------ */

int seal_header_write(const struct seal_params *p, const uint8_t key[SEAL_KEY_BYTES],
		      const struct random_ops *rng, uint8_t ret[SEAL_HEADER_BYTES],
		      struct err *err)
{
	const struct aad aad = {.a = ret, .a_len = AT_CHECK};
	uint8_t none[1] = {0};

	if (check_params(p, err) < 0)
		return -1;
	memset(ret, 0, SEAL_HEADER_BYTES);
	put_start(ret, header_magic);
	ret[10] = (uint8_t)p->kdf;
	put32(ret + 12, p->log2_n);
	put32(ret + 16, p->r);
	put32(ret + 20, p->p);
	memcpy(ret + 24, p->salt, SEAL_SALT_BYTES);
	rng->bytes(rng->ctx, ret + AT_CHECK, NONCE_BYTES);
	return gcm_seal(key, ret + AT_CHECK, &aad, none, 0, none,
			ret + AT_CHECK + NONCE_BYTES, err);
}

int seal_header_parse(const uint8_t *data, size_t len, struct seal_params *ret,
		      struct err *err)
{
	struct seal_params p = {0};

	if (len != SEAL_HEADER_BYTES)
		return err_set_id(err, ERRID_SECRET_STORE,
				  "its header has %zu bytes instead of %d", len,
				  SEAL_HEADER_BYTES);
	if (check_start(data, header_magic, ERRID_SECRET_STORE, err) < 0)
		return -1;
	if (data[11] != 0 || get32(data + 12) > UINT8_MAX)
		return err_set_id(err, ERRID_SECRET_STORE, "its header is malformed");
	p.kdf = (enum seal_kdf)data[10];
	p.log2_n = (uint8_t)get32(data + 12);
	p.r = get32(data + 16);
	p.p = get32(data + 20);
	memcpy(p.salt, data + 24, SEAL_SALT_BYTES);
	if (check_params(&p, err) < 0)
		return -1;
	*ret = p;
	return 0;
}

int seal_header_check(const uint8_t data[SEAL_HEADER_BYTES],
		      const uint8_t key[SEAL_KEY_BYTES], struct err *err)
{
	const struct aad aad = {.a = data, .a_len = AT_CHECK};
	uint8_t none[1] = {0};

	if (!gcm_open(key, data + AT_CHECK, &aad, none, 0, none,
		      data + AT_CHECK + NONCE_BYTES))
		return err_set_id(err, ERRID_SECRET_KEY,
				  "the key check failed: another key, or the store's "
				  "header was changed");
	return 0;
}

/* ---- records --------------------------------------------------------------- */

bool seal_id_ok(const char *id)
{
	static const char alnum[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t len = strlen(id);

	if (len < 1 || len > SEAL_ID_MAX || !strchr(alnum, id[0]) || strstr(id, ".."))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr(alnum, id[i]) && !strchr("_-.", id[i]))
			return false;
	return true;
}

/* What a record is bound to beside its own first bytes: the store and its id. */
struct binding {
	uint8_t bytes[SEAL_SALT_BYTES + 1 + SEAL_ID_MAX];
	size_t len;
};

static int bind_to(const uint8_t *salt, const char *id, struct binding *ret,
		   struct err *err)
{
	size_t n = strlen(id);

	if (!seal_id_ok(id))
		return err_set_id(err, ERRID_SECRET_NAME, "'%.80s' is no secret's id",
				  id);
	memcpy(ret->bytes, salt, SEAL_SALT_BYTES);
	ret->bytes[SEAL_SALT_BYTES] = (uint8_t)n;
	memcpy(ret->bytes + SEAL_SALT_BYTES + 1, id, n);
	ret->len = SEAL_SALT_BYTES + 1 + n;
	return 0;
}

int seal_record(const uint8_t key[SEAL_KEY_BYTES], const uint8_t salt[SEAL_SALT_BYTES],
		const char *id, const void *value, size_t len,
		const struct random_ops *rng, uint8_t *ret, struct err *err)
{
	struct binding to;

	if (bind_to(salt, id, &to, err) < 0)
		return -1;
	if (len < 1 || len > SEAL_VALUE_MAX)
		return err_set_id(err, ERRID_SECRET_VALUE,
				  "%zu bytes; a secret has 1..%d", len, SEAL_VALUE_MAX);
	put_start(ret, record_magic);
	ret[10] = ret[11] = 0;
	put32(ret + 12, (uint32_t)len);
	rng->bytes(rng->ctx, ret + AT_NONCE, NONCE_BYTES);
	const struct aad aad = {
		.a = ret, .a_len = AT_NONCE, .b = to.bytes, .b_len = to.len};

	return gcm_seal(key, ret + AT_NONCE, &aad, value, len, ret + AT_VALUE,
			ret + AT_VALUE + len, err);
}

int seal_record_parse(const uint8_t *data, size_t len, size_t *ret_value_len,
		      struct err *err)
{
	if (len <= SEAL_RECORD_OVERHEAD || len > SEAL_RECORD_MAX)
		return err_set_id(err, ERRID_SECRET_DAMAGED,
				  "%zu bytes are no sealed secret", len);
	if (check_start(data, record_magic, ERRID_SECRET_DAMAGED, err) < 0)
		return -1;
	if (data[10] || data[11] || get32(data + 12) != len - SEAL_RECORD_OVERHEAD)
		return err_set_id(err, ERRID_SECRET_DAMAGED,
				  "its length is not the one that it names");
	*ret_value_len = len - SEAL_RECORD_OVERHEAD;
	return 0;
}

int unseal_record(const uint8_t key[SEAL_KEY_BYTES], const uint8_t salt[SEAL_SALT_BYTES],
		  const char *id, const uint8_t *data, size_t len, uint8_t *ret,
		  struct err *err)
{
	struct binding to;
	size_t n = 0;

	if (bind_to(salt, id, &to, err) < 0 || seal_record_parse(data, len, &n, err) < 0)
		return -1;
	const struct aad aad = {
		.a = data, .a_len = AT_NONCE, .b = to.bytes, .b_len = to.len};

	if (!gcm_open(key, data + AT_NONCE, &aad, data + AT_VALUE, n, ret,
		      data + AT_VALUE + n)) {
		explicit_bzero(ret, n);
		return err_set_id(err, ERRID_SECRET_DAMAGED,
				  "'%.80s' does not authenticate: changed, of another "
				  "store, or stored under another id",
				  id);
	}
	return 0;
}
