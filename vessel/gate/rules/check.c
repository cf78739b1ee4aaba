/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See check.h.
 */
#include "vessel/gate/rules/check.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"
#include "vessel/gate/rules/check_person.h"
#include "vessel/gate/rules/words.h"
#include "vessel/gate/valid/form.h"
#include "vessel/gate/valid/valid.h"
#include <ctype.h>
#include <strings.h>

#define PEM_MAX_BYTES 16384
#define JWT_MAX_BYTES 8192
#define AUTH_MIN 20 /* bytes of a token, to be refused by itself */
#define REST_MAX 1536
/* Least lengths of a value: by the expressions of the rules. */
#define TOKEN_MIN 12
#define URLPASS_MIN 3
#define PASSWORD_MIN 4
#define KEYWORD_MIN 6
#define AUTHLINE_MIN 8
#define HEX_RUN_MIN 20
#define TEXT64_MIN 24
#define DISTINCT_MIN 4
#define RUN_BEFORE 24	  /* letters before a word */
#define ENTROPY_DRAWN 3.0 /* bits a byte; of hexadecimal digits, too */
#define CODE_MAX 160
#define AWS_KEY_LEN 20
#define AWS_PREFIX_LEN 4
#define CRC_BODY_LEN 36 /* with the checksum */
/* A token whose checksum is wrong is still somebody's secret, perhaps. */
#define SEVERITY_UNPROVED 0.6
/* An assignment says that it is one, and so does the value. */
#define SEVERITY_DRAWN 0.75
#define DRAWN_MIN 16
#define DRAWN_LETTERS_MIN 3 /* a time has less: "2026-11-29T12:00:00Z" */
#define CONTRACT_LEN 42
#define KEY_BEFORE 40 /* bytes of a name before the word that says what it is */

static bool has_word(const char *s, size_t len, const char *word)
{
	size_t n = strlen(word);

	/* Letters of either case have that bit alike, and so have the signs. */
	for (size_t i = 0; i + n <= len; i++)
		if ((s[i] | 0x20) == (word[0] | 0x20) && strncasecmp(s + i, word, n) == 0)
			return true;
	return false;
}

/* A value without the words that documents put in a secret's place: only that is judged. */
struct rest {
	const char *s;
	size_t len;
	char bytes[REST_MAX];
};

static void take_rest(struct rest *r, const char *s, size_t len)
{
	r->s = s;
	r->len = len;
	if (len > sizeof(r->bytes)) /* too long for any of them to matter */
		return;
	r->len = gate_without_words(s, len, r->bytes);
	if (r->len < len)
		r->s = r->bytes;
}

/* Enough for a secret of at least min bytes. */
static bool is_something(const struct rest *r, size_t min)
{
	return r->len >= min && distinct_bytes(r->s, r->len) >= DISTINCT_MIN;
}

/* What chance gives n draws of many letters, halved. */
static bool is_diverse(const char *s, size_t len)
{
	struct rest r;

	take_rest(&r, s, len);
	return (r.len == len || r.len >= TOKEN_MIN) &&
	       distinct_bytes(r.s, r.len) >= (r.len < 16   ? 5
					      : r.len < 40 ? 8
							   : 10);
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

static bool check_urlpass(struct gate_match *m)
{
	static const char *const stand_ins[] = {
		"password", "pass",	  "passwd",	"pw",  "pwd",
		"secret",   "user",	  "token",	"key", "hunter2",
		"tiger",    "nopassword", "mypassword",
	};
	struct rest r;

	take_rest(&r, m->text + m->start, m->end - m->start);
	if (gate_is_template(m->text + m->start, m->end - m->start) ||
	    !is_something(&r, URLPASS_MIN))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(stand_ins); i++)
		if (strlen(stand_ins[i]) == r.len &&
		    strncasecmp(r.s, stand_ins[i], r.len) == 0)
			return false;
	return true;
}

static bool check_password(struct gate_match *m)
{
	struct rest r;

	take_rest(&r, m->text + m->start, m->end - m->start);
	return !gate_is_template(m->text + m->start, m->end - m->start) &&
	       is_something(&r, PASSWORD_MIN);
}

static bool check_authline(struct gate_match *m)
{
	struct rest r;
	struct gate_classes c;

	take_rest(&r, m->text + m->start, m->end - m->start);
	c = gate_classes_of(r.s, r.len);
	/* Shorter ones are examples of documents more often than somebody's. */
	if (r.len < AUTH_MIN)
		m->severity = SEVERITY_UNPROVED;
	return is_something(&r, AUTHLINE_MIN) && (c.digit || (c.upper && c.lower)) &&
	       entropy_of(r.s, r.len) > 2.5;
}

static bool is_prose(const char *s, size_t len)
{
	struct gate_classes c = gate_classes_of(s, len);

	/* A word, a name of a variable, a path, a call: no digit, one case. */
	return c.digit == 0 && (c.upper == 0 || c.lower == 0 || c.other == 0) &&
	       c.other <= len / 4;
}

/* A path through names, "self.config.password", "request->token()", or a place: a URL, a
 * file. One such word within something that was drawn by lot is not enough. */
static bool looks_like_code(const char *s, size_t len)
{
	static const char *const words[] = {
		"self.", "os.", "getenv", "environ", "config.", "request",
		"args.", "()",	"=>",	  "->",	     "::",
	};
	static const char signs[] = "()=>-:";
	char name[CODE_MAX];
	bool is_code = false;

	if (len >= 5 && memcmp(s, "/usr/", 5) == 0)
		return true;
	for (size_t i = 0; i < len && isalnum((unsigned char)s[i]); i++)
		if (len - i > 3 && memcmp(s + i + 1, "://", 3) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(words) && !is_code; i++)
		is_code = has_word(s, len, words[i]);
	if (!is_code || len > sizeof(name))
		return false;
	for (size_t i = 0; i < len; i++)
		name[i] = memchr(signs, s[i], sizeof(signs) - 1) ? '.' : s[i];
	return gate_is_name(name, len);
}

/* 0.5 to 0.7 by how much it looks drawn by lot. */
static void weigh_by_entropy(struct gate_match *m, const char *s, size_t len)
{
	double share = (entropy_of(s, len) - 3.0) / 1.5;

	m->severity = 0.5 + 0.2 * (share < 0 ? 0 : share > 1 ? 1 : share);
}

/* The name of the value says that a word of SECRET_WORDS in it means something else: what a page of a list
 * or a form is asked for by, a digest of one, which one it is. */
static bool is_named_otherwise(const struct gate_match *m)
{
	static const char *const words[] = {
		"csrf",	       "xsrf",	       "csrfmiddlewaretoken",
		"nonce",       "page",	       "next",
		"hash",	       "continuation", "sha",
		"fingerprint", "cursor",       "id",
		"checksum",    "digest",       "name",
		"ref",	       "tokenizer",    "tokenizers",
		"version",     "public"};
	size_t at = m->whole, n;

	while (at > 0 && m->whole - at < KEY_BEFORE &&
	       (isalnum((unsigned char)m->text[at - 1]) ||
		strchr("_-.", m->text[at - 1])))
		at--;
	for (; at < m->start; at += n ? n : 1) {
		n = gate_name_word(m->text + at, m->start - at);
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (n == strlen(words[i]) &&
			    strncasecmp(m->text + at, words[i], n) == 0)
				return true;
	}
	return false;
}

/* Long enough, of letters of several kinds, and neither a name, a path, an alphabet nor code; nor the address
 * of a contract, which is public ("token" is the usual word for some). */
static bool is_drawn(const char *s, size_t len)
{
	struct gate_classes c = gate_classes_of(s, len);

	if ((len == CONTRACT_LEN && s[0] == '0' && s[1] == 'x') || len < DRAWN_MIN ||
	    c.lower + c.upper < DRAWN_LETTERS_MIN ||
	    (c.digit == 0 && (c.lower == 0 || c.upper == 0)) || 4 * c.other > len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (memchr("(){}[]<>\\", s[i], 9))
			return false;
	return is_diverse(s, len) && entropy_of(s, len) > ENTROPY_DRAWN &&
	       !gate_is_word_chain(s, len) && !gate_is_readable(s, len) &&
	       !gate_is_path(s, len, DRAWN_MIN) && !gate_counts_on(s, len);
}

static bool check_keyword(struct gate_match *m)
{
	const char *s;
	size_t len;
	bool is_quoted = strchr("\"'`", m->text[m->start]) != NULL;
	struct rest r;

	if (is_quoted) {
		m->start++;
		m->end--;
	}
	/* of a quote that is escaped itself */
	while (m->end > m->start && m->text[m->end - 1] == '\\')
		m->end--;
	s = m->text + m->start;
	len = m->end - m->start;
	take_rest(&r, s, len);
	if (gate_is_template(s, len) || looks_like_code(s, len) ||
	    !is_something(&r, KEYWORD_MIN) || is_prose(r.s, r.len) ||
	    entropy_of(r.s, r.len) < 2.75)
		return false;
	if (!is_quoted && memchr(r.s, '.', r.len) && !gate_classes_of(r.s, r.len).digit)
		return false;
	weigh_by_entropy(m, r.s, r.len);
	if (is_drawn(r.s, r.len) && !is_named_otherwise(m))
		m->severity = SEVERITY_DRAWN;
	return true;
}

/* Many a block of text begins behind such a word. */
static bool check_keyword_block(struct gate_match *m)
{
	return check_keyword(m) && m->severity >= SEVERITY_DRAWN;
}

static bool check_keyword_quoted(struct gate_match *m)
{
	struct rest r;
	struct gate_classes c;

	if (!check_keyword(m))
		return false;
	if (m->severity > SEVERITY_UNPROVED)
		m->severity = SEVERITY_UNPROVED;
	take_rest(&r, m->text + m->start, m->end - m->start);
	c = gate_classes_of(r.s, r.len);
	return c.digit && c.lower + c.upper && !gate_is_name(r.s, r.len);
}

/* "sha256=": a line of a list of digests, of a file that is called so. */
static bool begins_digest(const char *s, size_t len)
{
	static const char *const names[] = {"sha1", "sha256", "sha384", "sha512", "md5"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (len > n && strncasecmp(s, names[i], n) == 0 && strchr("=-:", s[n]))
			return true;
	}
	return false;
}

/* A word among the letters of something in base64 is none. */
static bool is_within_run(const struct gate_match *m)
{
	size_t n = 0;

	while (n < RUN_BEFORE && n < m->whole &&
	       (isalnum((unsigned char)m->text[m->whole - n - 1]) ||
		strchr("+/", m->text[m->whole - n - 1])))
		n++;
	return n == RUN_BEFORE;
}

/* What ends a sentence is no part of it. Of what is drawn by lot more than every second letter is of
 * another class than the one before. */
static bool check_keyword_bare(struct gate_match *m)
{
	struct rest r;
	struct gate_classes c;

	while (m->end > m->start && strchr(".!?:", m->text[m->end - 1]))
		m->end--;
	if (is_within_run(m) || begins_digest(m->text + m->start, m->end - m->start) ||
	    !check_keyword_quoted(m))
		return false;
	take_rest(&r, m->text + m->start, m->end - m->start);
	c = gate_classes_of(r.s, r.len);
	return c.upper && c.lower && 2 * gate_class_changes(r.s, r.len) > r.len;
}

/* Digests have the lengths of digests: of 128, 160, 224, 256, 384 and 512 bits. */
static bool check_hex(struct gate_match *m)
{
	struct rest r;
	struct gate_classes c;

	take_rest(&r, m->text + m->start, m->end - m->start);
	c = gate_classes_of(r.s, r.len);
	if (r.len == 32 || r.len == 40 || r.len == 56 || r.len == 64 || r.len == 96 ||
	    r.len == 128)
		return false;
	if (c.digit == 0 || c.upper + c.lower < 4 || (c.upper && c.lower))
		return false;
	return is_something(&r, HEX_RUN_MIN) && entropy_of(r.s, r.len) > 3.0;
}

/* The name of a digest ends at `end`, behind the quotes and the sign of an assignment. */
static bool is_digest_name(const char *s, size_t end)
{
	static const char *const names[] = {"digest", "checksum", "integrity", "sha1",
					    "sha256", "sha384",	  "sha512"};

	for (unsigned i = 0; i < 5 && end > 0 && strchr(" \"':=", s[end - 1]); i++)
		end--;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (end >= n && strncasecmp(s + end - n, names[i], n) == 0)
			return true;
	}
	return false;
}

/* "sha256-" and a value as long as such a digest: of anything else the name says nothing. So
 * it is of "sha256: ", and of a longer name that ends so. */
static bool is_named_digest(const struct gate_match *m)
{
	static const struct {
		const char *name;
		size_t len; /* in base64, without padding */
	} digests[] = {{"sha1-", 27},	{"sha256-", 43}, {"sha384-", 64}, {"sha512-", 86},
		       {"sha256:", 43}, {"sha512:", 86}, {"md5-", 22},	  {"h1:", 43}};
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;

	while (len > 0 && s[len - 1] == '=')
		len--;
	for (size_t i = 0; i < ARRAY_SIZE(digests); i++) {
		size_t n = strlen(digests[i].name);

		if (len == digests[i].len && m->start >= n &&
		    strncasecmp(s - n, digests[i].name, n) == 0)
			return true;
		if (len == n + digests[i].len && strncasecmp(s, digests[i].name, n) == 0)
			return true;
	}
	return (len == 27 || len == 43 || len == 64 || len == 86) &&
	       is_digest_name(m->text, m->start);
}

static bool check_text64(struct gate_match *m)
{
	struct rest r;
	struct gate_classes c;
	size_t changes = 0;

	/* Most of these runs are names: the rest of one has no more of anything. */
	c = gate_classes_of(m->text + m->start, m->end - m->start);
	if (c.digit < 3 || c.upper < 3 || c.lower < 3)
		return false;
	take_rest(&r, m->text + m->start, m->end - m->start);
	c = gate_classes_of(r.s, r.len);
	if (c.digit < 3 || c.upper < 3 || c.lower < 3 || c.other > r.len / 6 ||
	    is_named_digest(m) || !is_something(&r, TEXT64_MIN))
		return false;
	if (gate_is_path(r.s, r.len, TEXT64_MIN))
		return false;
	/* Names keep to a case for some letters; what is drawn by lot does not. */
	for (size_t i = 1; i < r.len; i++)
		changes += (islower((unsigned char)r.s[i]) != 0) !=
			   (islower((unsigned char)r.s[i - 1]) != 0);
	return changes * 3 > r.len && entropy_of(r.s, r.len) > (r.len < 32 ? 4.0 : 4.4);
}

static bool is_key_letter(const struct gate_match *m, size_t at)
{
	return at < m->len && (isupper((unsigned char)m->text[at]) ||
			       isdigit((unsigned char)m->text[at]));
}

/* Whole and by itself, it proves itself. Cut, or else among capitals, it must look drawn by
 * lot: of sixteen letters of base 32 one is a digit, in words and in proteins none is. */
static bool check_aws(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	bool is_alone = !(m->start > 0 && is_key_letter(m, m->start - 1)) &&
			!is_key_letter(m, m->end);

	if (!is_diverse(s, len))
		return false;
	if (len == AWS_KEY_LEN && is_alone)
		return valid_aws_key(s, len) || unproved(m);
	return (len == AWS_KEY_LEN || is_alone) &&
	       gate_classes_of(s + AWS_PREFIX_LEN, len - AWS_PREFIX_LEN).digit > 0 &&
	       valid_aws_key(s, len);
}

/* Without its end it has no checksum, and is secret all the same. */
static bool check_crc(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	const char *body = memchr(s, '_', len);
	size_t prefix = body ? (size_t)(body - s) + 1 : 0;

	if (len - prefix < CRC_BODY_LEN)
		return is_diverse(s, len);
	return valid_crc62(s, len, prefix) || unproved(m);
}

/* A letter too many may have been taken for its last one. */
static bool check_base58(struct gate_match *m)
{
	const char *s = m->text + m->start;

	if (valid_base58check(s, m->end - m->start))
		return true;
	m->end--;
	return valid_base58check(s, m->end - m->start);
}

static bool check_diverse(struct gate_match *m)
{
	return is_diverse(m->text + m->start, m->end - m->start);
}

static bool check_mixed(struct gate_match *m)
{
	struct gate_classes c = gate_classes_of(m->text + m->start, m->end - m->start);

	return c.lower > 6 && c.upper > 6 && check_diverse(m);
}

static bool check_drawn(struct gate_match *m)
{
	struct rest r;

	take_rest(&r, m->text + m->start, m->end - m->start);
	return check_diverse(m) && !gate_is_word_chain(r.s, r.len) &&
	       entropy_of(m->text + m->start, m->end - m->start) > ENTROPY_DRAWN;
}

static bool check_bech32(struct gate_match *m)
{
	return valid_bech32(m->text + m->start, m->end - m->start);
}

static bool check_none(struct gate_match *m)
{
	return m->end > m->start;
}

static bool (*const checks[])(struct gate_match *m) = {
	[CHECK_NONE] = check_none,
	[CHECK_DIVERSE] = check_diverse,
	[CHECK_MIXED] = check_mixed,
	[CHECK_DRAWN] = check_drawn,
	[CHECK_CRC62] = check_crc,
	[CHECK_AWS] = check_aws,
	[CHECK_PEM] = extend_pem,
	[CHECK_BECH32] = check_bech32,
	[CHECK_BASE58] = check_base58,
	[CHECK_JWT] = check_jwt,
	[CHECK_URLPASS] = check_urlpass,
	[CHECK_PASSWORD] = check_password,
	[CHECK_AUTHLINE] = check_authline,
	[CHECK_KEYWORD] = check_keyword,
	[CHECK_KEYWORD_BLOCK] = check_keyword_block,
	[CHECK_KEYWORD_QUOTED] = check_keyword_quoted,
	[CHECK_KEYWORD_BARE] = check_keyword_bare,
	[CHECK_HEX] = check_hex,
	[CHECK_TEXT64] = check_text64,
	[CHECK_CARD] = gate_check_card,
	[CHECK_IBAN] = gate_check_iban,
	[CHECK_SSN] = gate_check_ssn,
	[CHECK_NHS] = gate_check_nhs,
	[CHECK_EMAIL] = gate_check_email,
	[CHECK_PHONE] = gate_check_phone,
	[CHECK_PHONE_NATIONAL] = gate_check_phone_national,
	[CHECK_PHONE_SAID] = gate_check_phone_said,
	[CHECK_STREET] = gate_check_street,
	[CHECK_IPV4] = gate_check_ipv4,
	[CHECK_IPV6] = gate_check_ipv6,
	[CHECK_MAC] = gate_check_mac,
	[CHECK_GPS] = gate_check_gps,
	[CHECK_HASDIGITS] = gate_check_digits,
	[CHECK_NAME] = gate_check_name,
};

bool gate_check(enum gate_check_kind check, struct gate_match *m)
{
	return checks[check](m) && !gate_is_published(m->text, m->len, m->start, m->end);
}
