/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See valid.h.
 */
#include "vessel/gate/valid/valid.h"
#include "common/attr.h"
#include "common/crypto/sha256.h"
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#define DIGITS_MAX 40

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits of s; 0 when there are more than max. */
static size_t digits_of(const char *s, size_t len, char *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (!is_digit(s[i]))
			continue;
		if (n == max)
			return 0;
		out[n++] = s[i];
	}
	return n;
}

static unsigned number(const char *digits, size_t n)
{
	unsigned v = 0;

	for (size_t i = 0; i < n; i++)
		v = v * 10 + (unsigned)(digits[i] - '0');
	return v;
}

static bool valid_luhn(const char *s, size_t len)
{
	char d[DIGITS_MAX];
	size_t n = digits_of(s, len, d, sizeof(d));
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned v = (unsigned)(d[n - 1 - i] - '0') * (i % 2 ? 2 : 1);

		sum += v > 9 ? v - 9 : v;
	}
	return n > 1 && sum % 10 == 0;
}

/* First six digits from..to, the lengths as a set of bits; is_wide: so many numbers begin so that
 * only what stands beside one tells that it is a card. */
static const struct {
	unsigned from, to;
	uint32_t lengths;
	bool is_wide;
} issuers[] = {
#define L(n) (1U << (n))
#define FROM16 (L(16) | L(17) | L(18) | L(19))
#define ANY (L(12) | L(13) | L(14) | L(15) | FROM16)
	{400000, 499999, L(13) | L(16) | L(19), false}, /* Visa */
	{510000, 559999, L(16), false},			/* Mastercard */
	{222100, 272099, L(16), false},
	{340000, 349999, L(15), false}, /* American Express */
	{370000, 379999, L(15), false},
	{300000, 305999, L(14) | L(16), false}, /* Diners */
	{309500, 309599, L(14) | L(16), false},
	{360000, 369999, L(14) | L(16), false},
	{380000, 399999, L(14) | L(16), false},
	{384100, 384199, L(13) | L(19), false}, /* Hipercard */
	{606282, 606282, L(13) | L(16) | L(19), false},
	{601100, 601199, FROM16, false}, /* Discover */
	{644000, 659999, FROM16, false}, /* with RuPay, Elo, Verve */
	{350000, 359999, FROM16, false}, /* JCB; of some of them RuPay */
	{213100, 213199, L(15), false},
	{180000, 180099, L(15), false},
	{620000, 629999, FROM16, false}, /* UnionPay */
	{810000, 817199, FROM16, false},
	{600000, 609999, L(16), false}, /* RuPay */
	{810000, 829999, L(16), false},
	{500000, 509999, L(13) | L(16) | L(18) | L(19), false}, /* Maestro, Verve, Elo */
	{501800, 501999, ANY, false},				/* 5019: Dankort */
	{502000, 502099, ANY, false},
	{503800, 503899, ANY, false},
	{560000, 589999, ANY, false},
	{60400, 60499, ANY, false},
	{630400, 630499, ANY, false},
	{639000, 639099, ANY, false},
	{670000, 679999, FROM16, false}, /* with Laser, Solo */
	{675900, 675999, ANY, false},
	{676100, 676399, ANY, false},
	{633400, 633499, FROM16, false},	/* Solo */
	{636000, 636999, FROM16, false},	/* InterPayment; 636297, 636368: Elo */
	{637000, 639999, L(16), false},		/* InstaPayment, Hipercard */
	{627780, 627780, L(16), false},		/* Elo */
	{220000, 220499, FROM16, false},	/* Mir */
	{220500, 220599, L(16), false},		/* Borica */
	{979200, 979299, L(16), false},		/* Troy */
	{970400, 970499, L(16) | L(19), false}, /* Napas */
	{860000, 860099, L(16), false},		/* UzCard */
	{986000, 986099, L(16), false},		/* Humo */
	{100000, 199999, L(15), true},		/* UATP */
#undef ANY
#undef FROM16
#undef L
};

bool valid_card(const char *s, size_t len, bool *ret_is_wide)
{
	char d[DIGITS_MAX];
	size_t n = digits_of(s, len, d, sizeof(d));
	unsigned first;
	bool is_one = false;

	*ret_is_wide = true;
	if (n < 12 || n > 19 || !valid_luhn(d, n) || distinct_bytes(d, n) < 2)
		return false;
	first = number(d, 6);
	for (size_t i = 0; i < ARRAY_SIZE(issuers); i++)
		if (first >= issuers[i].from && first <= issuers[i].to &&
		    issuers[i].lengths & (1U << n)) {
			is_one = true;
			*ret_is_wide &= issuers[i].is_wide;
		}
	return is_one;
}

/* Country and length of its IBAN. */
static const char iban_lengths[] =
	"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28"
	"EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26"
	"IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28"
	"NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25"
	"SV28TL23TN24TR26UA29VA22VG24XK20YE30";

size_t valid_iban_length(const char *s, size_t len)
{
	const char *row = iban_lengths;

	while (len >= 2 && *row && memcmp(row, s, 2) != 0)
		row += 4;
	return len >= 2 && *row ? number(row + 2, 2) : 0;
}

bool valid_iban(const char *s, size_t len)
{
	char c[DIGITS_MAX];
	size_t n = 0;
	unsigned rest = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == ' ' || s[i] == '-')
			continue;
		if (n == sizeof(c))
			return false;
		c[n++] = s[i];
	}
	if (n < 15 || valid_iban_length(c, n) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char x = c[(i + 4) % n];

		if (is_digit(x))
			rest = (rest * 10 + (unsigned)(x - '0')) % 97;
		else if (x >= 'A' && x <= 'Z')
			rest = (rest * 100 + (unsigned)(x - 'A') + 10) % 97;
		else
			return false;
	}
	return rest == 1;
}

bool valid_ssn(const char *s, size_t len)
{
	char d[DIGITS_MAX];
	size_t n = digits_of(s, len, d, sizeof(d));
	unsigned area, group, serial;

	if (n != 9)
		return false;
	area = number(d, 3);
	group = number(d + 3, 2);
	serial = number(d + 5, 4);
	/* two that were printed in advertisements */
	if ((area == 78 && group == 5 && serial == 1120) ||
	    (area == 219 && group == 9 && serial == 9999))
		return false;
	return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0;
}

bool valid_nhs(const char *s, size_t len)
{
	char d[DIGITS_MAX];
	size_t n = digits_of(s, len, d, sizeof(d));
	unsigned sum = 0;

	if (n != 10 || distinct_bytes(d, n) < 2)
		return false;
	for (unsigned i = 0; i < 9; i++)
		sum += (unsigned)(d[i] - '0') * (10 - i);
	sum = (11 - sum % 11) % 11;
	return sum != 10 && sum == (unsigned)(d[9] - '0');
}

bool valid_base58check(const char *s, size_t len)
{
	static const char alphabet[] =
		"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
	uint8_t out[96] = {0}, sum[SHA256_SIZE];
	size_t n = 0, zeros = 0;

	if (len < 25 || len > 120)
		return false;
	while (zeros < len && s[zeros] == '1')
		zeros++;
	/* out: little-endian, n bytes in use */
	for (size_t i = zeros; i < len; i++) {
		const char *at = memchr(alphabet, s[i], sizeof(alphabet) - 1);
		unsigned carry;

		if (!at)
			return false;
		carry = (unsigned)(at - alphabet);
		for (size_t k = 0; k < n; k++) {
			carry += (unsigned)out[k] * 58;
			out[k] = (uint8_t)carry;
			carry >>= 8;
		}
		if (carry && n == sizeof(out))
			return false;
		if (carry)
			out[n++] = (uint8_t)carry;
	}
	if (n + zeros < 5 || n + zeros > sizeof(out))
		return false;
	memset(out + n, 0, zeros);
	n += zeros;
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t x = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = x;
	}
	sha256_of(out, n - 4, sum);
	sha256_of(sum, sizeof(sum), sum);
	return memcmp(sum, out + n - 4, 4) == 0;
}

static uint32_t bech32_step(uint32_t c, unsigned v)
{
	static const uint32_t gen[] = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
				       0x2a1462b3};
	uint32_t top = c >> 25;

	c = (c & 0x1ffffff) << 5 ^ v;
	for (unsigned i = 0; i < 5; i++)
		if (top >> i & 1)
			c ^= gen[i];
	return c;
}

bool valid_bech32(const char *s, size_t len)
{
	static const char alphabet[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
	uint32_t c = 1;
	size_t sep = len;
	bool has_lower = false, has_upper = false;

	for (size_t i = 0; i < len; i++) {
		has_lower |= s[i] >= 'a' && s[i] <= 'z';
		has_upper |= s[i] >= 'A' && s[i] <= 'Z';
		if (s[i] == '1')
			sep = i;
	}
	if (sep == 0 || sep + 7 > len || (has_lower && has_upper))
		return false;
	for (size_t i = 0; i < sep; i++)
		c = bech32_step(c, (unsigned)(s[i] | 0x20) >> 5);
	c = bech32_step(c, 0);
	for (size_t i = 0; i < sep; i++)
		c = bech32_step(c, (unsigned)(s[i] | 0x20) & 31);
	for (size_t i = sep + 1; i < len; i++) {
		const char *at =
			memchr(alphabet, s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 0x20 : s[i],
			       sizeof(alphabet) - 1);

		if (!at)
			return false;
		c = bech32_step(c, (unsigned)(at - alphabet));
	}
	return c == 1 || c == 0x2bc830a3;
}

bool valid_crc62(const char *s, size_t len, size_t prefix_len)
{
	static const char alphabet[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	unsigned long c;

	if (len < prefix_len + 7)
		return false;
	c = crc32(0, (const Bytef *)s + prefix_len, (uInt)(len - prefix_len - 6));
	for (size_t i = 0; i < 6; i++, c /= 62)
		if (s[len - 1 - i] != alphabet[c % 62])
			return false;
	return true;
}

bool valid_aws_key(const char *s, size_t len)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	uint64_t v = 0;

	if (len < 14)
		return false;
	/* The first 48 bits of what follows the prefix; bit 47 is no part of it, the
	 * lowest seven neither. */
	for (size_t i = 4; i < 14; i++) {
		const char *at = memchr(alphabet, s[i], sizeof(alphabet) - 1);

		if (!at)
			return false;
		v = v << 5 | (uint64_t)(at - alphabet);
	}
	v = (v >> 2 & 0x7fffffffff80) >> 7;
	return v > 0 && v <= 999999999999;
}

double entropy_of(const char *s, size_t len)
{
	size_t count[256] = {0};
	double h = 0;

	for (size_t i = 0; i < len; i++)
		count[(unsigned char)s[i]]++;
	for (unsigned i = 0; i < 256; i++)
		if (count[i]) {
			double p = (double)count[i] / (double)len;

			h -= p * log2(p);
		}
	return h;
}

size_t distinct_bytes(const char *s, size_t len)
{
	uint64_t seen[4] = {0};
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		seen[(unsigned char)s[i] / 64] |= (uint64_t)1 << (unsigned char)s[i] % 64;
	for (unsigned i = 0; i < ARRAY_SIZE(seen); i++)
		n += (size_t)__builtin_popcountll(seen[i]);
	return n;
}

struct gate_classes gate_classes_of(const char *s, size_t len)
{
	struct gate_classes c = {0};

	for (size_t i = 0; i < len; i++) {
		if (s[i] >= 'a' && s[i] <= 'z')
			c.lower++;
		else if (s[i] >= 'A' && s[i] <= 'Z')
			c.upper++;
		else if (s[i] >= '0' && s[i] <= '9')
			c.digit++;
		else
			c.other++;
	}
	return c;
}
