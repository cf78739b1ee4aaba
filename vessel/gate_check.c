/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate_check.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/gate_names.h"
#include "vessel/gate_valid.h"
#include <ctype.h>
#include <strings.h>

#define PEM_MAX_BYTES 16384
#define JWT_MAX_BYTES 8192
#define AUTH_MIN 20 /* bytes of a token, to be refused by itself */
/* A token whose checksum is wrong is still somebody's secret, perhaps. */
#define SEVERITY_UNPROVED 0.6

static bool has_word(const char *s, size_t len, const char *word)
{
	size_t n = strlen(word);

	/* Letters of either case have that bit alike, and so have the signs. */
	for (size_t i = 0; i + n <= len; i++)
		if ((s[i] | 0x20) == (word[0] | 0x20) && strncasecmp(s + i, word, n) == 0)
			return true;
	return false;
}

bool gate_is_placeholder(const char *s, size_t len)
{
	static const char *const words[] = {
		"example", "changeme",	"change_me", "change-me", "placeholder",
		"your_",   "your-",	"yourpass",  "yourkey",	  "xxxx",
		"dummy",   "redacted",	"****",	     "....",	  "${",
		"{{",	   "<",		"insert",    "replace",	  "none",
		"null",	   "undefined", "test_",     "sample",	  "1234567",
		"abcdefg", "deadbeef",	"todo",	     "%s",	  "%(",
	};

	if (distinct_bytes(s, len) < 4)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (has_word(s, len, words[i]))
			return true;
	return false;
}

/* What chance gives n draws of many letters, halved. */
static bool is_diverse(const char *s, size_t len)
{
	size_t want = len < 16 ? 5 : len < 40 ? 8 : 10;

	return distinct_bytes(s, len) >= want && !has_word(s, len, "xxxxx") &&
	       !has_word(s, len, "example");
}

struct classes {
	size_t lower, upper, digit, other;
};

static struct classes classes_of(const char *s, size_t len)
{
	struct classes c = {0};

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

static bool unproved(struct gate_match *m)
{
	m->family = GATE_ENTROPY;
	m->severity = SEVERITY_UNPROVED;
	return is_diverse(m->text + m->start, m->end - m->start);
}

static bool is_token_byte(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '=' || c == '.';
}

/* Up to and with the END line, or as far as it looks like a key. */
static bool extend_pem(struct gate_match *m)
{
	size_t max = m->end + PEM_MAX_BYTES < m->len ? m->end + PEM_MAX_BYTES : m->len;
	const char *end = memmem(m->text + m->end, max - m->end, "-----END", 8);
	size_t at;

	if (!end) {
		while (m->end < max && (isalnum((unsigned char)m->text[m->end]) ||
					strchr("+/=\r\n \t\"'\\,:-", m->text[m->end])))
			m->end++;
		return true;
	}
	at = (size_t)(end - m->text) + 8;
	while (at < max && m->text[at] != '\n' && m->text[at] != '\\' &&
	       at - (size_t)(end - m->text) < 64 && m->text[at] != '"')
		at++;
	m->end = at;
	return true;
}

/* Base64url without padding, as far as out reaches. */
static size_t decode64url(const char *s, size_t len, char *out, size_t max)
{
	unsigned bits = 0, have = 0;
	size_t n = 0;

	for (size_t i = 0; i < len && n < max; i++) {
		unsigned v;
		char c = s[i];

		if (c >= 'A' && c <= 'Z')
			v = (unsigned)(c - 'A');
		else if (c >= 'a' && c <= 'z')
			v = (unsigned)(c - 'a') + 26;
		else if (c >= '0' && c <= '9')
			v = (unsigned)(c - '0') + 52;
		else
			v = c == '-' || c == '+' ? 62 : 63;
		bits = (bits << 6 | v) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (char)(bits >> have);
		}
	}
	return n;
}

static bool check_jwt(struct gate_match *m)
{
	char head[320];
	size_t dot = m->end - 1;
	size_t n = decode64url(m->text + m->start, dot - m->start, head, sizeof(head));
	size_t max =
		m->start + JWT_MAX_BYTES < m->len ? m->start + JWT_MAX_BYTES : m->len;

	if (n < 8 || head[0] != '{' || !utf8_is_valid(head, n) ||
	    !(has_word(head, n, "\"alg\"") || has_word(head, n, "\"typ\"") ||
	      has_word(head, n, "\"kid\"")))
		return false;
	while (m->end < max && is_token_byte(m->text[m->end]))
		m->end++;
	return true;
}

static bool check_urlpass(const struct gate_match *m)
{
	static const char *const stand_ins[] = {
		"password", "pass", "passwd", "pw",  "pwd",
		"secret",   "user", "token",  "key", "hunter2",
	};
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;

	if (gate_is_placeholder(s, len) || strchr("$%{[(", s[0]))
		return len > 3 && s[0] == '%' && s[1] != 's' && s[1] != '(';
	for (size_t i = 0; i < ARRAY_SIZE(stand_ins); i++)
		if (strlen(stand_ins[i]) == len && strncasecmp(s, stand_ins[i], len) == 0)
			return false;
	return true;
}

static bool check_authline(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	struct classes c = classes_of(s, len);

	/* Shorter ones are examples of documents more often than somebody's. */
	if (len < AUTH_MIN)
		m->severity = SEVERITY_UNPROVED;
	return !gate_is_placeholder(s, len) && (c.digit || (c.upper && c.lower)) &&
	       entropy_of(s, len) > 2.5;
}

static bool is_prose(const char *s, size_t len)
{
	struct classes c = classes_of(s, len);

	/* A word, a name of a variable, a path, a call: no digit, one case. */
	return c.digit == 0 && (c.upper == 0 || c.lower == 0 || c.other == 0) &&
	       c.other <= len / 4;
}

static bool looks_like_code(const char *s, size_t len)
{
	static const char *const words[] = {
		"self.", "os.", "getenv", "environ", "config.", "request", "://",
		"args.", "()",	"=>",	  "->",	     "::",	"/usr/",   "import ",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (has_word(s, len, words[i]))
			return true;
	return false;
}

/* 0.5 to 0.7 by how much it looks drawn by lot. */
static void weigh_by_entropy(struct gate_match *m, const char *s, size_t len)
{
	double share = (entropy_of(s, len) - 3.0) / 1.5;

	m->severity = 0.5 + 0.2 * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static bool check_keyword(struct gate_match *m)
{
	const char *s;
	size_t len;
	bool is_quoted = strchr("\"'`", m->text[m->start]) != NULL;

	if (is_quoted) {
		m->start++;
		m->end--;
	}
	s = m->text + m->start;
	len = m->end - m->start;
	if (gate_is_placeholder(s, len) || looks_like_code(s, len) || is_prose(s, len) ||
	    entropy_of(s, len) < 2.75)
		return false;
	if (!is_quoted && memchr(s, '.', len) && !classes_of(s, len).digit)
		return false;
	weigh_by_entropy(m, s, len);
	return true;
}

/* Digests have the lengths of digests: of 128, 160, 224, 256, 384 and 512 bits. */
static bool check_hex(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	struct classes c = classes_of(s, len);

	if (len == 32 || len == 40 || len == 56 || len == 64 || len == 96 || len == 128)
		return false;
	if (c.digit == 0 || c.upper + c.lower < 4 || (c.upper && c.lower))
		return false;
	return entropy_of(s, len) > 3.0 && !gate_is_placeholder(s, len);
}

static bool is_after_hash_name(const struct gate_match *m)
{
	static const char *const names[] = {"sha1-",   "sha256-", "sha384-", "sha512-",
					    "sha256:", "sha512:", "md5-",    "h1:"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if ((m->start >= n &&
		     strncasecmp(m->text + m->start - n, names[i], n) == 0) ||
		    (m->end - m->start > n &&
		     strncasecmp(m->text + m->start, names[i], n) == 0))
			return true;
	}
	return false;
}

static bool check_text64(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	struct classes c = classes_of(s, len);
	size_t changes = 0;

	if (c.digit < 3 || c.upper < 3 || c.lower < 3 || c.other > len / 6 ||
	    is_after_hash_name(m) || gate_is_placeholder(s, len))
		return false;
	/* Names keep to a case for some letters; what is drawn by lot does not. */
	for (size_t i = 1; i < len; i++)
		changes += (islower((unsigned char)s[i]) != 0) !=
			   (islower((unsigned char)s[i - 1]) != 0);
	return changes * 3 > len && entropy_of(s, len) > (len < 32 ? 4.0 : 4.4);
}

static bool check_email(struct gate_match *m)
{
	static const char *const unreal[] = {
		"example.com", "example.org", "example.net", ".example",     ".invalid",
		".test",       "localhost",   "@domain.com", "users.noreply"};
	static const char *const files[] = {".png", ".jpg", ".svg", ".gif",
					    ".js",  ".css", ".py",  ".html"};
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;

	for (size_t i = 0; i < ARRAY_SIZE(unreal); i++)
		if (has_word(s, len, unreal[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t n = strlen(files[i]);

		if (len > n && strncasecmp(s + len - n, files[i], n) == 0)
			return false;
	}
	return true;
}

static bool check_phone(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start, digits = classes_of(s, len).digit;
	const char *fiction = memmem(s, len, "555", 3);

	if (digits < 8 || digits > 15 || distinct_bytes(s, len) < 5)
		return false;
	/* 555-0100 to 555-0199 belong to nobody */
	return !(fiction && memmem(fiction, len - (size_t)(fiction - s), "01", 2) &&
		 digits <= 11);
}

static bool check_ipv4(struct gate_match *m)
{
	unsigned b[4] = {0}, at = 0;
	const char *s = m->text + m->start;

	for (size_t i = 0; i < m->end - m->start; i++) {
		if (s[i] == '.') {
			at++;
			continue;
		}
		b[at] = b[at] * 10 + (unsigned)(s[i] - '0');
		if (b[at] > 255)
			return false;
	}
	/* nobody's: this host, loopback, documentation, masks, versions */
	if (b[0] == 0 || b[0] == 127 || b[0] >= 224 || (b[0] == 192 && b[1] == 0) ||
	    (b[0] == 198 && b[1] == 51 && b[2] == 100) ||
	    (b[0] == 203 && b[1] == 0 && b[2] == 113) || b[0] < 8)
		return false;
	if (b[0] == 10 || (b[0] == 172 && b[1] >= 16 && b[1] < 32) ||
	    (b[0] == 192 && b[1] == 168) || (b[0] == 169 && b[1] == 254))
		m->severity = 0.1;
	return true;
}

static bool check_ipv6(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start, colons = 0;

	for (size_t i = 0; i < len; i++)
		colons += s[i] == ':';
	/* 2000::/3 without documentation, or fc00::/7, fe80::/10; a clock has no letters */
	if (colons < 3 || len < 10 || strncasecmp(s, "2001:db8", 8) == 0)
		return false;
	return s[0] == '2' || s[0] == '3' || tolower((unsigned char)s[0]) == 'f';
}

static bool check_mac(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	struct classes c = classes_of(s, m->end - m->start);

	return distinct_bytes(s, m->end - m->start) > 4 && !(c.upper && c.lower) &&
	       strncasecmp(s, "ff:ff", 5) != 0;
}

static bool check_gps(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	char *next;
	char copy[64];
	size_t len = m->end - m->start;
	double lat, lon;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, s, len);
	copy[len] = '\0';
	lat = strtod(copy, &next);
	while (*next == ',' || *next == ' ')
		next++;
	lon = strtod(next, NULL);
	return lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180 &&
	       (lat > 1 || lat < -1) && (lon > 1 || lon < -1);
}

static bool check_aws(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;

	if (!is_diverse(s, len))
		return false;
	return valid_aws_key(s, len) || unproved(m);
}

static bool check_crc(struct gate_match *m)
{
	return valid_crc62(m->text + m->start, m->end - m->start, 4) || unproved(m);
}

static bool check_name(const struct gate_match *m)
{
	const char *s = m->text + m->start;
	const char *blank = memchr(s, ' ', m->end - m->start);

	return gate_is_given_name(s, blank ? (size_t)(blank - s) : m->end - m->start);
}

bool gate_check(enum gate_check_kind check, struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	struct classes c;

	switch (check) {
	case CHECK_NONE:
		return true;
	case CHECK_DIVERSE:
		return is_diverse(s, len);
	case CHECK_MIXED:
		c = classes_of(s, len);
		return c.lower > 6 && c.upper > 6 && is_diverse(s, len);
	case CHECK_CRC62:
		return check_crc(m);
	case CHECK_AWS:
		return check_aws(m);
	case CHECK_PEM:
		return extend_pem(m);
	case CHECK_BECH32:
		return valid_bech32(s, len);
	case CHECK_BASE58:
		return valid_base58check(s, len);
	case CHECK_JWT:
		return check_jwt(m);
	case CHECK_URLPASS:
		return check_urlpass(m);
	case CHECK_PASSWORD:
		return !gate_is_placeholder(s, len);
	case CHECK_AUTHLINE:
		return check_authline(m);
	case CHECK_KEYWORD:
		return check_keyword(m);
	case CHECK_HEX:
		return check_hex(m);
	case CHECK_TEXT64:
		return check_text64(m);
	case CHECK_CARD:
		return valid_card(s, len);
	case CHECK_IBAN:
		return valid_iban(s, len);
	case CHECK_SSN:
		return valid_ssn(s, len);
	case CHECK_NHS:
		return valid_nhs(s, len);
	case CHECK_EMAIL:
		return check_email(m);
	case CHECK_PHONE:
		return check_phone(m);
	case CHECK_IPV4:
		return check_ipv4(m);
	case CHECK_IPV6:
		return check_ipv6(m);
	case CHECK_MAC:
		return check_mac(m);
	case CHECK_GPS:
		return check_gps(m);
	case CHECK_HASDIGITS:
		return classes_of(s, len).digit >= 4;
	case CHECK_NAME:
		return check_name(m);
	}
	return false;
}
