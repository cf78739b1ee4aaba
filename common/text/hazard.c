/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See hazard.h.
 */
#include "common/text/hazard.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/ignorable.h"
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

#define KEY_MAX ((size_t)16 << 10)

static const char why_option[] = "name that reads as an option";
static const char why_short[] = "short name of another file (8.3)";
static const char why_empty[] = "name with nothing to see";

/* The code point at s and its length; the string is UTF-8, or each byte is one. */
static uint32_t next_point(const char *s, size_t *ret_len)
{
	uint32_t cp = (unsigned char)*s;

	*ret_len = utf8_get(s, strnlen(s, 4), &cp);
	if (*ret_len == 0)
		*ret_len = 1;
	return cp;
}

/* Takes no room, or looks like a blank. Joiners and selectors of a variant belong to the character
 * before them: emoji, and scripts whose letters join. Behind one of ASCII they only hide. */
static bool is_unseen(uint32_t cp, uint32_t before)
{
	if (cp == 0x200c || cp == 0x200d || (cp >= 0xfe00 && cp <= 0xfe0f))
		return before < 0x80;
	return is_ignorable(cp) || (cp >= 0x2028 && cp <= 0x202f) || cp == 0xa0 ||
	       cp == 0x2800;
}

bool hazard_is_plain(const char *path)
{
	uint32_t before = '/';
	size_t n;

	for (; *path; path += n) {
		uint32_t cp = next_point(path, &n);

		if (cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || is_unseen(cp, before))
			return false;
		before = cp;
	}
	return true;
}

/* Two that case folding turns into letters of ASCII. */
static char fold_point(uint32_t cp)
{
	if (cp == 0x17f)
		return 's';
	if (cp == 0x212a)
		return 'k';
	if (cp >= 'A' && cp <= 'Z')
		return (char)(cp - 'A' + 'a');
	return cp < 0x80 ? (char)cp : '\0';
}

/* What the component that begins at `from` ends with does not count; nor does it all when
 * only dots and blanks are there. */
static void close_component(struct buf *key, size_t from)
{
	size_t len = key->len;

	while (len > from && (key->data[len - 1] == '.' || key->data[len - 1] == ' '))
		len--;
	if (len > from)
		key->len = len;
}

/* Letters become small ones, or (for HAZARD_EXACT) stay as they are. */
static char *key_of(const char *path, bool is_cased)
{
	cleanup_buf struct buf key;
	bool stream = false; /* after a colon */
	size_t from = 0, n;

	buf_init(&key, KEY_MAX);
	for (; *path; path += n) {
		uint32_t cp = next_point(path, &n);
		char c = is_cased && cp < 0x80 ? (char)cp : fold_point(cp);

		if (c == '/' || c == '\\') {
			close_component(&key, from);
			buf_addc(&key, '/');
			from = key.len;
			stream = false;
		} else if (c == ':') {
			stream = true;
		} else if (stream || is_ignorable(cp)) {
			continue;
		} else if (c) {
			buf_addc(&key, c);
		} else {
			buf_add(&key, path, n);
		}
	}
	close_component(&key, from);
	return xstrndup(buf_ok(&key) ? buf_str(&key) : "", key.len);
}

char *hazard_key(const char *path)
{
	return key_of(path, false);
}

/* Length of the component at s. */
static size_t component(const char *s)
{
	return strcspn(s, "/");
}

/* "claude~1.md": what FAT and NTFS also call a file with a longer name. */
static bool is_short_name(const char *s, size_t len)
{
	const char *tilde = memchr(s, '~', len), *end = s + len;
	const char *p;

	if (!tilde || tilde == s || tilde - s > 6)
		return false;
	for (p = tilde + 1; p < end && *p >= '0' && *p <= '9'; p++)
		;
	if (p == tilde + 1 || p - s > 8)
		return false;
	return p == end || (*p == '.' && end - p <= 4);
}

/* Do the components of `name` stand at s? *ret_end: behind them. */
static bool stands_at(const char *s, const char *name, const char **ret_end)
{
	size_t len = strlen(name);

	*ret_end = s + len;
	return strncmp(s, name, len) == 0 && (s[len] == '\0' || s[len] == '/');
}

static bool stem_stands_at(const char *s, const char *name)
{
	size_t len = strlen(name);

	return strncmp(s, name, len) == 0 && (s[len] == '\0' || s[len] == '.') &&
	       !strchr(s + len, '/');
}

/* cased: the last component, its letters not folded. */
static bool row_matches(const struct hazard *h, const char *s, const char *cased)
{
	const char *end;

	switch (h->kind) {
	case HAZARD_DIR:
		return stands_at(s, h->name, &end) && *end == '/';
	case HAZARD_FILE:
		return stands_at(s, h->name, &end) && *end == '\0';
	case HAZARD_EXACT:
		return !strchr(s, '/') && str_eq(cased, h->name);
	case HAZARD_STEM:
		return stem_stands_at(s, h->name);
	case HAZARD_SUFFIX:
		return !strchr(s, '/') && str_ends(s, h->name) && !str_eq(s, h->name);
	case HAZARD_KIND_MAX_:
		break;
	}
	return false;
}

const char *hazard_of(const char *path)
{
	cleanup_free char *key = hazard_key(path);
	cleanup_free char *cased_key = key_of(path, true);
	const char *slash = strrchr(cased_key, '/');
	const char *cased = slash ? slash + 1 : cased_key;

	for (const char *s = key;;) {
		size_t len = component(s);

		if (len == 0)
			return why_empty;
		if (s[0] == '-')
			return why_option;
		if (is_short_name(s, len))
			return why_short;
		for (size_t i = 0; i < hazard_table_len; i++)
			if (row_matches(&hazard_table[i], s, cased))
				return hazard_table[i].why;
		if (s[len] == '\0')
			return NULL;
		s += len + 1;
	}
}

const char *hazard_class(const void *head, size_t len)
{
	static const struct {
		const char *magic;
		size_t len;
	} programs[] = {
		{"\177ELF", 4},
		{"#!", 2},
		{"MZ", 2},
		{"\0asm", 4},
		{"\xca\xfe\xba\xbe", 4},
		{"\xcf\xfa\xed\xfe", 4},
		{"\xfe\xed\xfa\xcf", 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (len >= programs[i].len &&
		    memcmp(head, programs[i].magic, programs[i].len) == 0)
			return "program";
	return "file";
}
