/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See check_person.h.
 */
#include "vessel/gate/rules/check_person.h"

#include "common/mem.h"
#include "common/str.h"
#include "vessel/gate/valid/form.h"
#include "vessel/gate/valid/names.h"
#include "vessel/gate/valid/valid.h"
#include <ctype.h>
#include <strings.h>

#define PHONE_DIGITS_MAX 15
#define TABLE_GROUPS_MIN 4
#define TABLE_DIGITS_MAX 5
#define TABLE_GROUP_END 100000 /* above any group of a card */
#define TABLE_STEP_MAX 256
#define NEAR_BYTES 48 /* where a word says what a number is */
/* What passes for a card and stands where other numbers do: replaced, and no reason to refuse. */
#define SEVERITY_NUMBER 0.5
#define CARD_MIN                                                                         \
	14 /* digits that stand alone: shorter and longer ones are few cards, and many times */
#define CARD_MAX 16
#define NAMED_BYTES 100 /* of the word or link before a number */
#define ROW_BYTES 80	/* of a dump, before a number */
#define ROW_OFFSET_MIN 6

/* The domain, or one above it. */
static bool is_within_domain(const char *s, size_t len, const char *domain)
{
	size_t n = strlen(domain);

	return len >= n && strncasecmp(s + len - n, domain, n) == 0 &&
	       (len == n || s[len - n - 1] == '.');
}

bool gate_check_email(struct gate_match *m)
{
	static const char *const unreal[] = {"example.com",
					     "example.org",
					     "example.net",
					     "example",
					     "invalid",
					     "test",
					     "localhost",
					     "domain.com",
					     "localhost.localdomain",
					     "users.noreply.github.com",
					     "users.noreply.gitlab.com"};
	/* of pictures for two densities, units of systemd, tables of languages */
	static const char *const files[] = {
		"png",	 "jpg",	  "svg",     "gif",    "js",	 "css",
		"py",	 "html",  "service", "socket", "timer",	 "slice",
		"mount", "scope", "conf",    "header", "catalog"};
	const char *end = m->text + m->end;
	const char *host = memrchr(m->text + m->start, '@', m->end - m->start);

	if (!host++)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(unreal); i++)
		if (is_within_domain(host, (size_t)(end - host), unreal[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (is_within_domain(host, (size_t)(end - host), files[i]))
			return false;
	return true;
}

bool gate_check_phone(struct gate_match *m)
{
	const char *s = m->text + m->start, *fiction;
	size_t len = m->end - m->start;

	/* The number that follows on it is another one. */
	while (gate_classes_of(s, len).digit > PHONE_DIGITS_MAX) {
		const char *blank = memrchr(s, ' ', len);

		if (!blank)
			return false;
		len = (size_t)(blank - s);
	}
	m->end = m->start + len;
	fiction = memmem(s, len, "555", 3);
	if (gate_classes_of(s, len).digit < 8 || distinct_bytes(s, len) < 5 ||
	    valid_rising(s, len))
		return false;
	/* 555-0100 to 555-0199 belong to nobody */
	return !(fiction && memmem(fiction, len - (size_t)(fiction - s), "01", 2) &&
		 gate_classes_of(s, len).digit <= 11);
}

bool gate_check_phone_national(struct gate_match *m)
{
	return gate_check_phone(m) &&
	       valid_phone_groups(m->text + m->start, m->end - m->start);
}

bool gate_check_phone_said(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	struct gate_classes c = gate_classes_of(s, len);

	/* a date, two years */
	if (memchr(s, '/', len) && memrchr(s, '/', len) != memchr(s, '/', len))
		return false;
	if (c.digit <= 9 && (s[0] == '1' || s[0] == '2') && memchr("90", s[1], 2) &&
	    (s[4] == '-' || len == 8))
		return false;
	/* a short number must have groups */
	return c.digit >= (c.other ? 7 : 8) && c.digit <= PHONE_DIGITS_MAX &&
	       distinct_bytes(s, len) >= 5 && !valid_rising(s, len);
}

/* "12 March Road" is a day first. */
bool gate_check_street(struct gate_match *m)
{
	static const char *const months[] = {
		"January ",   "February ", "March ",	"April ",
		"May ",	      "June ",	   "July ",	"August ",
		"September ", "October ",  "November ", "December ",
	};
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;

	for (size_t i = 0; i < ARRAY_SIZE(months); i++)
		if (memmem(s, len, months[i], strlen(months[i])))
			return false;
	return true;
}

/* A word behind it may look like one more group; where there are numbers, it is no word. */
bool gate_check_iban(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start, n = valid_iban_length(s, len), at = 0;

	for (; at < len && n > 0; at++)
		n -= s[at] != ' ';
	if (n > 0 || (at < len && s[at] != ' ') ||
	    gate_classes_of(s + at, len - at).digit)
		return false;
	m->end = m->start + at;
	return valid_iban(s, at);
}

bool gate_check_ipv4(struct gate_match *m)
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

bool gate_check_ipv6(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start, colons = 0;

	for (size_t i = 0; i < len; i++)
		colons += s[i] == ':';
	/* 2000::/3 without documentation, or fc00::/7, fe80::/10; a time of a log has colons,
	 * too, but fewer */
	if ((colons != 7 && !memmem(s, len, "::", 2)) || len < 10 ||
	    strncasecmp(s, "2001:db8", 8) == 0)
		return false;
	return s[0] == '2' || s[0] == '3' || tolower((unsigned char)s[0]) == 'f';
}

bool gate_check_mac(struct gate_match *m)
{
	const char *s = m->text + m->start;
	struct gate_classes c = gate_classes_of(s, m->end - m->start);

	return distinct_bytes(s, m->end - m->start) > 4 && !(c.upper && c.lower) &&
	       strncasecmp(s, "ff:ff", 5) != 0;
}

bool gate_check_gps(struct gate_match *m)
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

bool gate_check_name(struct gate_match *m)
{
	const char *s = m->text + m->start;
	const char *blank = memchr(s, ' ', m->end - m->start);

	return gate_is_given_name(s, blank ? (size_t)(blank - s) : m->end - m->start);
}

/* Groups that grow by little: a piece of a table, as of code points. One that begins or goes on within
 * the line may lie a group outside of the match. Of a card all are so once in fifty thousand, all but
 * one once in a thousand. */
static bool is_of_table(const struct gate_match *m)
{
	size_t from = m->start, to = m->end;
	unsigned before = 0, grown = 0, most = 0;

	while (from > 0 && m->start - from <= TABLE_DIGITS_MAX &&
	       (isdigit((unsigned char)m->text[from - 1]) ||
		(from == m->start && m->text[from - 1] == ' ')))
		from--;
	while (to < m->len && to - m->end <= TABLE_DIGITS_MAX &&
	       (isdigit((unsigned char)m->text[to]) ||
		(to == m->end && m->text[to] == ' ')))
		to++;
	for (size_t i = from; i < to; i++) {
		unsigned v = 0;

		if (!isdigit((unsigned char)m->text[i]))
			continue;
		for (; i < to && isdigit((unsigned char)m->text[i]); i++)
			v = v % TABLE_GROUP_END * 10 + (unsigned)(m->text[i] - '0');
		grown = grown && v > before && v - before <= TABLE_STEP_MAX ? grown + 1
									    : 1;
		most = grown > most ? grown : most;
		before = v;
	}
	return most >= TABLE_GROUPS_MIN;
}

/* The last group of a UUID, in which there is no letter. */
static bool is_of_uuid(const struct gate_match *m)
{
	static const char form[] = "hhhhhhhh-hhhh-hhhh-hhhh-";
	const char *s = m->text + m->start - (sizeof(form) - 1);

	if (m->end - m->start != 12 || m->start < sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'h' ? !isxdigit((unsigned char)s[i]) : s[i] != '-')
			return false;
	return true;
}

/* A word of four or five capital hexadecimal digits between `from` and `to` of the text: 1, with a
 * letter among them 2; else 0. */
static unsigned code_point(const struct gate_match *m, size_t from, size_t to)
{
	unsigned ret = 1;

	if ((from > 0 && !isspace((unsigned char)m->text[from - 1])) ||
	    (to < m->len && !isspace((unsigned char)m->text[to])))
		return 0;
	for (size_t i = from; i < to; i++) {
		if (!isxdigit((unsigned char)m->text[i]) ||
		    islower((unsigned char)m->text[i]))
			return 0;
		if (isupper((unsigned char)m->text[i]))
			ret = 2;
	}
	return ret;
}

/* Groups among code points of the same line. Beside those of sixteen digits may stand a year: so there it takes one
 * with a letter, or one on each side. */
static bool is_among_code_points(const struct gate_match *m)
{
	struct gate_classes c = gate_classes_of(m->text + m->start, m->end - m->start);
	unsigned n = 0;

	for (size_t len = 4; len <= 5 && c.other > 0; len++) {
		if (m->start > len && m->text[m->start - 1] != '\n')
			n += code_point(m, m->start - 1 - len, m->start - 1);
		if (m->end + 1 + len <= m->len && m->text[m->end] != '\n')
			n += code_point(m, m->end + 1, m->end + 1 + len);
	}
	return n >= (c.digit > 13 ? 2U : 1U);
}

static bool is_near_words(const struct gate_match *m, const char *const *words, size_t n,
			  size_t behind)
{
	size_t from = m->start > NEAR_BYTES ? m->start - NEAR_BYTES : 0;
	size_t to = m->len - m->end > behind ? m->end + behind : m->len;

	for (size_t i = from; i < to; i++) {
		if (i > from && isalpha((unsigned char)m->text[i - 1]))
			continue;
		for (size_t k = 0; k < n; k++)
			if (strlen(words[k]) <= to - i &&
			    strncasecmp(m->text + i, words[k], strlen(words[k])) == 0)
				return true;
	}
	return false;
}

/* Beside what says so. */
static bool is_said_card(const struct gate_match *m)
{
	static const char *const words[] = {
		"card",	 "kart", "kaart", "carte", "tarje",	"cart",	    "credit",
		"debit", "uatp", "cvv",	  "cvc",   "paid with", "pay with", "payment"};

	return is_near_words(m, words, ARRAY_SIZE(words), NEAR_BYTES / 2);
}

/* What numbers bugs, builds and places, in the word before it or in the link or the longer name that it ends:
 * "bug #4111111111111111", "https://h/testcase/...", "fuzzer-...". */
static bool is_numbered(const struct gate_match *m)
{
	static const char *const words[] = {
		"bug",	   "bugs",   "issue",  "issues",    "ticket", "case",
		"closes",  "fixes",  "fuzz",   "fuzzer",    "build",  "testcase",
		"version", "rev",    "commit", "timestamp", "job",    "revision",
		"run",	   "offset", "id",     "lp",	    "pr",     "changeset",
		"seed",	   "ids",    "oss"};
	size_t end = m->start, at, n;

	for (unsigned i = 0; i < 4 && end > 0 && strchr(" \t#:=\"'", m->text[end - 1]);
	     i++)
		end--;
	for (at = end; at > 0 && end - at < NAMED_BYTES &&
		       !isspace((unsigned char)m->text[at - 1]);)
		at--;
	for (; at < end; at += n ? n : 1) {
		n = gate_name_word(m->text + at, end - at);
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (strlen(words[i]) == n &&
			    strncasecmp(m->text + at, words[i], n) == 0)
				return true;
	}
	return false;
}

/* A row of a dump of bytes: an offset that begins with zeros, and nothing but hexadecimal digits in groups. */
static bool is_in_dump(const struct gate_match *m)
{
	size_t from = m->start, offset = 0;

	while (from > 0 && m->text[from - 1] != '\n') {
		from--;
		if (m->start - from > ROW_BYTES ||
		    (!isxdigit((unsigned char)m->text[from]) &&
		     !strchr(" \t:", m->text[from])) ||
		    !m->text[from])
			return false;
	}
	while (from < m->start && isspace((unsigned char)m->text[from]))
		from++;
	while (from + offset < m->start &&
	       isxdigit((unsigned char)m->text[from + offset]))
		offset++;
	return offset >= ROW_OFFSET_MIN && m->text[from] == '0' &&
	       from + offset < m->start;
}

/* As people write a card: in groups, or alone, or beside a word for it. */
static bool is_for_paying(const struct gate_match *m)
{
	size_t len = m->end - m->start;

	if (is_in_dump(m) || is_among_code_points(m))
		return false;
	if (is_said_card(m) || gate_classes_of(m->text + m->start, len).other > 0)
		return true;
	return len >= CARD_MIN && len <= CARD_MAX && !is_numbered(m);
}

static bool is_card(struct gate_match *m)
{
	const char *s = m->text + m->start;
	size_t len = m->end - m->start;
	bool is_wide, is_grouped = gate_classes_of(s, len).other > 0;

	if (!valid_card(s, len, &is_wide) || is_of_table(m) || is_of_uuid(m) ||
	    (is_wide && !is_grouped && !is_said_card(m)))
		return false;
	if (!is_for_paying(m))
		m->severity = SEVERITY_NUMBER;
	return true;
}

/* The last group may be of a date or a code that stands behind it: "4111 1111 1111 1111 12/29". */
bool gate_check_card(struct gate_match *m)
{
	const char *blank = memrchr(m->text + m->start, ' ', m->end - m->start);
	struct gate_match without = *m;

	if (is_card(m))
		return true;
	if (!blank)
		return false;
	without.end = (size_t)(blank - m->text);
	if (!is_card(&without))
		return false;
	*m = without;
	return true;
}

bool gate_check_ssn(struct gate_match *m)
{
	return valid_ssn(m->text + m->start, m->end - m->start);
}

bool gate_check_nhs(struct gate_match *m)
{
	return valid_nhs(m->text + m->start, m->end - m->start);
}

bool gate_check_digits(struct gate_match *m)
{
	return gate_classes_of(m->text + m->start, m->end - m->start).digit >= 4;
}
