/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Theory of operation. Each form is read from its first byte on, as far as it says what it is:
 * the object identifier of an algorithm, the name of a kind of key, the tags of packets, and
 * lengths that fit each other. The numbers of a key can't be told from noise, so a form that
 * has little else is bounded in length: what may be hidden as one is no more than that.
 */
#include "vessel/gate/decode/public.h"
#include "common/str.h"

#include <stdint.h>
#include <string.h>

#define KEY_MAX 2400	/* bytes: RSA of 16384 bits */
#define PGP_HEAD_MAX 20 /* of a packet, and what comes before the numbers of a key */

/* ---- DER ---------------------------------------------------------------------------- */

struct der {
	const uint8_t *at, *end;
};

/* The head of a value: its length. What it holds may reach behind the end. */
static bool head(struct der *d, uint8_t tag, size_t *ret)
{
	size_t n;

	if (d->end - d->at < 2 || *d->at != tag)
		return false;
	*ret = d->at[1];
	d->at += 2;
	if (*ret < 0x80)
		return true;
	n = *ret & 0x7f;
	if (n < 1 || n > 2 || d->end - d->at < (ptrdiff_t)n)
		return false;
	*ret = n == 1 ? d->at[0] : (size_t)d->at[0] << 8 | d->at[1];
	d->at += n;
	return *ret >= (n == 1 ? 0x80U : 0x100U);
}

/* A value that is there as a whole. */
static bool whole(struct der *d, uint8_t tag, struct der *ret)
{
	size_t n;

	if (!head(d, tag, &n) || (size_t)(d->end - d->at) < n)
		return false;
	*ret = (struct der){d->at, d->at + n};
	d->at += n;
	return true;
}

static bool skip(struct der *d, uint8_t tag)
{
	struct der value;

	return whole(d, tag, &value);
}

/* The outermost sequence: nothing follows it. */
static bool outermost(struct der *d, size_t *ret)
{
	return head(d, 0x30, ret) && (size_t)(d->end - d->at) <= *ret;
}

static bool is_date(struct der *d)
{
	struct der value;
	uint8_t tag = d->at < d->end && *d->at == 0x18 ? 0x18 : 0x17;
	size_t n = tag == 0x18 ? 15 : 13;

	if (!whole(d, tag, &value) || (size_t)(value.end - value.at) != n ||
	    value.at[n - 1] != 'Z')
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
	return true;
}

static bool is_certificate(const uint8_t *u, size_t len)
{
	struct der d = {u, u + len}, version, dates;
	size_t n, inner;

	if (!outermost(&d, &n) || !head(&d, 0x30, &inner) || inner + 4 > n)
		return false;
	/* of version 1 it is not said */
	if (d.at < d.end && *d.at == 0xa0 &&
	    (!whole(&d, 0xa0, &version) || version.end - version.at != 3))
		return false;
	return skip(&d, 0x02) && skip(&d, 0x30) && skip(&d, 0x30) &&
	       whole(&d, 0x30, &dates) && is_date(&dates) && is_date(&dates) &&
	       dates.at == dates.end;
}

static bool is_known(const struct der *oid)
{
	static const struct {
		uint8_t id[9], len;
	} algorithms[] = {
		{{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1}, 9}, /* RSA */
		{{0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1}, 7},	    /* elliptic curves */
		{{0x2b, 0x65, 0x6e}, 3},			    /* X25519 */
		{{0x2b, 0x65, 0x6f}, 3},			    /* X448 */
		{{0x2b, 0x65, 0x70}, 3},			    /* Ed25519 */
		{{0x2b, 0x65, 0x71}, 3},			    /* Ed448 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (oid->end - oid->at == algorithms[i].len &&
		    memcmp(oid->at, algorithms[i].id, algorithms[i].len) == 0)
			return true;
	return false;
}

/* SubjectPublicKeyInfo: an algorithm, and a string of bits that ends it. */
static bool is_spki(const uint8_t *u, size_t len)
{
	struct der d = {u, u + len}, algorithm, oid;
	const uint8_t *from;
	size_t n, bits;

	if (!outermost(&d, &n))
		return false;
	from = d.at;
	return whole(&d, 0x30, &algorithm) && whole(&algorithm, 0x06, &oid) &&
	       is_known(&oid) && head(&d, 0x03, &bits) &&
	       (size_t)(d.at - from) + bits == n && d.at < d.end && *d.at == 0;
}

/* RSAPublicKey: a modulus that fills all but the exponent's five bytes. A private key has a
 * version in its place. */
static bool is_rsa(const uint8_t *u, size_t len)
{
	struct der d = {u, u + len};
	const uint8_t *from;
	size_t n, modulus;

	if (!outermost(&d, &n))
		return false;
	from = d.at;
	return head(&d, 0x02, &modulus) && modulus >= 128 &&
	       (size_t)(d.at - from) + modulus + 5 == n;
}

/* ---- SSH ---------------------------------------------------------------------------- */

static size_t number(const uint8_t *u)
{
	return (size_t)u[0] << 24 | (size_t)u[1] << 16 | (size_t)u[2] << 8 | u[3];
}

/* The name of a kind, and its fields, each with its length before it. A private key of OpenSSH
 * begins with another magic. */
static bool is_ssh(const uint8_t *u, size_t len)
{
	static const char *const kinds[] = {
		"ssh-rsa",
		"ssh-dss",
		"ssh-ed25519",
		"ecdsa-sha2-nistp256",
		"ecdsa-sha2-nistp384",
		"ecdsa-sha2-nistp521",
		"sk-ssh-ed25519@openssh.com",
		"sk-ecdsa-sha2-nistp256@openssh.com",
	};
	size_t at = 0, name = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (len > 4 + strlen(kinds[i]) && number(u) == strlen(kinds[i]) &&
		    memcmp(u + 4, kinds[i], strlen(kinds[i])) == 0)
			name = strlen(kinds[i]);
	if (name == 0)
		return false;
	for (at = 4 + name; at < len; at += 4 + number(u + at))
		if (len - at < 4 || number(u + at) > KEY_MAX)
			return len - at < 4;
	return true;
}

/* ---- OpenPGP ------------------------------------------------------------------------ */

enum {
	PGP_SIGNATURE = 2,
	PGP_KEY = 6,
	PGP_TRUST = 12,
	PGP_NAME = 13,
	PGP_SUBKEY = 14,
	PGP_ATTRIBUTE = 17,
};

/* The head of a packet at u: its tag and length, both 0 when that is none. */
static size_t packet(const uint8_t *u, size_t len, unsigned *ret_tag, size_t *ret_body)
{
	bool is_new = u[0] & 0x40;
	unsigned form = u[0] & 3;

	*ret_tag = is_new ? u[0] & 0x3f : u[0] >> 2 & 0xf;
	if (!(u[0] & 0x80) || len < 6)
		return 0;
	if (is_new && u[1] < 192) {
		*ret_body = u[1];
		return 2;
	}
	if (is_new && u[1] < 224) {
		*ret_body = ((size_t)(u[1] - 192) << 8) + u[2] + 192;
		return 3;
	}
	if (is_new || form == 3)
		return 0;
	*ret_body = form == 0 ? u[1] : (size_t)u[1] << 8 | u[2];
	*ret_body = form == 2 ? number(u + 1) : *ret_body;
	return form == 0 ? 2 : form == 1 ? 3 : 5;
}

static size_t two(const uint8_t *u)
{
	return (size_t)u[0] << 8 | u[1];
}

/* The packet of a key whose body of so many bytes begins at u: a version, a time, an
 * algorithm, and numbers that are as long as that has them. */
static bool is_pgp_key(const uint8_t *u, size_t len, size_t body)
{
	size_t at = len > 0 && u[0] == 6 ? 10 : 6, n;

	if (len < at + 3 || body > KEY_MAX || (u[0] != 4 && u[0] != 6))
		return false;
	n = (two(u + at) + 7) / 8;
	switch (u[5]) {
	case 1: /* RSA: a modulus, and a short exponent behind it */
	case 2:
	case 3:
		return n >= 128 && at + 2 + n < body && body - at - 2 - n <= 8;
	case 16: /* ElGamal and DSA, at least two numbers of that size */
	case 17:
		return n >= 128 && at + 2 * (2 + n) <= body;
	case 18: /* elliptic curves, by their object identifier */
	case 19:
	case 22:
		return u[at] >= 3 && u[at] <= 10 &&
		       (u[at + 1] == 0x2a || u[at + 1] == 0x2b) && body <= 256;
	case 25: /* X25519, Ed25519, X448, Ed448 */
	case 27:
		return body == at + 32;
	case 26:
		return body == at + 56;
	case 28:
		return body == at + 57;
	default:
		return false;
	}
}

static bool is_pgp(const uint8_t *u, size_t len)
{
	for (size_t at = 0, n, body = 0; at < len; at += n + body) {
		unsigned tag = 0;

		n = packet(u + at, len - at, &tag, &body);
		/* what the end cut says nothing any more */
		if (at > 0 && len - at < PGP_HEAD_MAX)
			return true;
		if (n == 0 || body > KEY_MAX)
			return false;
		if ((at == 0 && tag != PGP_KEY) ||
		    ((tag == PGP_KEY || tag == PGP_SUBKEY) &&
		     !is_pgp_key(u + at + n, len - at - n, body)))
			return false;
		if (tag != PGP_SIGNATURE && tag != PGP_KEY && tag != PGP_TRUST &&
		    tag != PGP_NAME && tag != PGP_SUBKEY && tag != PGP_ATTRIBUTE)
			return false;
	}
	return len > 16;
}

/* ---- */

bool gate_is_public(const char *s, size_t len)
{
	const uint8_t *u = (const uint8_t *)s;

	if (len < 32)
		return false;
	switch (u[0]) {
	case 0x30:
		return is_certificate(u, len) ||
		       (len <= KEY_MAX && (is_spki(u, len) || is_rsa(u, len)));
	case 0:
		return len <= 2 * KEY_MAX && is_ssh(u, len);
	default:
		return is_pgp(u, len);
	}
}
