/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * See seal.h.
 */
#include "vessel/scribe/seal.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/str.h"
#include <string.h>

#define ORIGIN "lychgate.audit/"
#define DASH "\xe2\x80\x94 "
#define ED25519_NOTE_TYPE 1
#define VALUE_MAX 128

/* ---- writing ---- */

static void add_key(struct buf *out, const char *what, const uint8_t *key)
{
	buf_adds(out, what);
	base64_add(out, key, ED25519_PUBLIC_SIZE);
	buf_addc(out, '\n');
}

/* The bytes that are signed. */
static void seal_text(struct buf *out, const struct seal *s)
{
	char prev[SHA256_HEX_SIZE];

	buf_addf(out, ORIGIN "%s\n%llu\n", s->log.s, (unsigned long long)s->size);
	base64_add(out, s->root.b, sizeof(s->root.b));
	hex_encode(s->prev.b, sizeof(s->prev.b), prev);
	buf_addf(out, "\nepoch %llu\ntime %s\nprev %s\n", (unsigned long long)s->epoch,
		 s->time, prev);
	if (s->has_genesis)
		add_key(out, "genesis ", s->genesis);
	if (s->has_next)
		add_key(out, "next ", s->next);
}

void seal_write(struct buf *out, const struct seal *s)
{
	uint8_t both[sizeof(s->key_id) + sizeof(s->signature)];

	memcpy(both, s->key_id, sizeof(s->key_id));
	memcpy(both + sizeof(s->key_id), s->signature, sizeof(s->signature));
	seal_text(out, s);
	buf_addf(out, "\n" DASH ORIGIN "%s ", s->log.s);
	base64_add(out, both, sizeof(both));
	buf_adds(out, "\n\n");
}

/* SHA-256(name || newline || type || key), its first bytes: C2SP's signed-note. */
static void key_id_of(const struct seal *s, const uint8_t *public, uint8_t ret[4])
{
	cleanup_sha256 struct sha256 *h = sha256_new();
	const uint8_t type[2] = {'\n', ED25519_NOTE_TYPE};
	uint8_t full[SHA256_SIZE];

	sha256_add(h, ORIGIN, strlen(ORIGIN));
	sha256_add(h, s->log.s, strlen(s->log.s));
	sha256_add(h, type, sizeof(type));
	sha256_add(h, public, ED25519_PUBLIC_SIZE);
	sha256_final(h, full);
	memcpy(ret, full, 4);
}

void seal_sign(struct seal *s, const uint8_t seed[ED25519_SEED_SIZE])
{
	uint8_t public[ED25519_PUBLIC_SIZE];
	cleanup_buf struct buf text;

	buf_init(&text, SEAL_MAX);
	seal_text(&text, s);
	ed25519_public(seed, public);
	key_id_of(s, public, s->key_id);
	ed25519_sign(seed, text.data, text.len, s->signature);
}

bool seal_is_of(const struct seal *s, const uint8_t public[ED25519_PUBLIC_SIZE])
{
	cleanup_buf struct buf text;
	uint8_t id[sizeof(s->key_id)];

	buf_init(&text, SEAL_MAX);
	seal_text(&text, s);
	key_id_of(s, public, id);
	return buf_ok(&text) && memcmp(id, s->key_id, sizeof(id)) == 0 &&
	       ed25519_verify(public, text.data, text.len, s->signature);
}

void seal_hash(const struct seal *s, struct merkle_hash *ret)
{
	cleanup_buf struct buf b;

	buf_init(&b, SEAL_MAX);
	seal_write(&b, s);
	sha256_of(b.data, b.len, ret->b);
}

/* ---- reading ---- */

static int fixed_base64(const char *text, void *ret, size_t size)
{
	cleanup_free char *raw = NULL;
	size_t n = 0;

	if (base64_decode(text, strlen(text), &raw, &n, NULL) < 0 || n != size)
		return -1;
	memcpy(ret, raw, size);
	return 0;
}

struct lines {
	const char *p, *end;
};

/* The rest of a line that begins in this way; "" and nothing is taken: it does not. */
static bool take(struct lines *l, const char *prefix, char ret[VALUE_MAX])
{
	size_t before = strlen(prefix), n;
	const char *nl = memchr(l->p, '\n', (size_t)(l->end - l->p));

	ret[0] = '\0';
	if (!nl || (size_t)(nl - l->p) < before || memcmp(l->p, prefix, before) != 0)
		return false;
	n = (size_t)(nl - l->p) - before;
	if (n == 0 || n >= VALUE_MAX)
		return false;
	memcpy(ret, l->p + before, n);
	ret[n] = '\0';
	l->p = nl + 1;
	return true;
}

static bool read_text(struct lines *l, struct seal *s)
{
	char v[VALUE_MAX];

	if (!take(l, ORIGIN, v) || uuid_parse(v, &s->log, NULL) < 0 || !take(l, "", v) ||
	    parse_u64(v, 0, INT64_MAX, &s->size, NULL) < 0 || !take(l, "", v) ||
	    fixed_base64(v, s->root.b, sizeof(s->root.b)) < 0 || !take(l, "epoch ", v) ||
	    parse_u64(v, 0, INT64_MAX, &s->epoch, NULL) < 0 || !take(l, "time ", v) ||
	    strspn(v, "0123456789-:.TZ") != RFC3339_SIZE - 1 ||
	    str_copy(s->time, sizeof(s->time), v) < 0 || !take(l, "prev ", v) ||
	    sha256_hex_parse(v, s->prev.b, NULL) < 0)
		return false;
	s->has_genesis = take(l, "genesis ", v);
	if (s->has_genesis && seal_parse32(v, s->genesis, NULL) < 0)
		return false;
	s->has_next = take(l, "next ", v);
	return !s->has_next || seal_parse32(v, s->next, NULL) == 0;
}

static bool read_signature(struct lines *l, struct seal *s)
{
	uint8_t both[sizeof(s->key_id) + sizeof(s->signature)];
	char prefix[VALUE_MAX], v[VALUE_MAX];

	if (str_fmt(prefix, sizeof(prefix), DASH ORIGIN "%s ", s->log.s) < 0 ||
	    l->p == l->end || *l->p++ != '\n' || !take(l, prefix, v) ||
	    fixed_base64(v, both, sizeof(both)) < 0)
		return false;
	memcpy(s->key_id, both, sizeof(s->key_id));
	memcpy(s->signature, both + sizeof(s->key_id), sizeof(s->signature));
	return true;
}

size_t seal_length(const char *data, size_t len)
{
	const char *text_end, *end;

	if (len > SEAL_MAX)
		len = SEAL_MAX;
	text_end = len ? memmem(data, len, "\n\n", 2) : NULL;
	if (!text_end)
		return 0;
	text_end += 2;
	end = memmem(text_end, len - (size_t)(text_end - data), "\n\n", 2);
	return end ? (size_t)(end - data) + 2 : 0;
}

int seal_parse(const char *data, size_t len, struct seal *ret, struct err *err)
{
	struct lines l = {data, data + len};
	struct seal s = {0};
	cleanup_buf struct buf again;

	buf_init(&again, SEAL_MAX);
	if (!len || !read_text(&l, &s) || !read_signature(&l, &s))
		return err_set_id(err, ERRID_AUDIT_SEAL, "no checkpoint (byte %zu)",
				  (size_t)(l.p - data));
	seal_write(&again, &s);
	if (!buf_ok(&again) || again.len != len || memcmp(again.data, data, len) != 0)
		return err_set_id(err, ERRID_AUDIT_SEAL,
				  "a checkpoint that is written in another way");
	*ret = s;
	return 0;
}

void seal_text32(const uint8_t raw[32], char ret[SEAL_TEXT32])
{
	cleanup_buf struct buf b;

	buf_init(&b, SEAL_TEXT32);
	base64_add(&b, raw, 32);
	if (str_copy(ret, SEAL_TEXT32, buf_str(&b)) < 0)
		ret[0] = '\0'; /* 32 bytes are 44 characters */
}

int seal_parse32(const char *text, uint8_t ret[32], struct err *err)
{
	if (fixed_base64(text, ret, 32) < 0)
		return err_set(err, ERR_INVALID, "not 32 bytes in base64");
	return 0;
}
