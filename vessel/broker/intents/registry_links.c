/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_links.h.
 */
#include "vessel/broker/intents/registry_links.h"

#include "common/crypto/hmac.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/registry.h"

#include <string.h>
#include <strings.h>

#define DIGITS (REGISTRY_MARK_SIZE - 1)
#define METADATA ".metadata"
#define TEXT_MAX ((size_t)16 << 10)
#define SEGMENTS_MAX 32 /* looked at for the place of a "dl" */

/* What a mark is of: they can't stand for each other. */
#define ONE_FILE "file"
#define CRATES "crates"		    /* PLACE/CRATE/VERSION/download */
#define CRATES_BELOW "crates below" /* by a template */

void registry_links_key(const char *work_master, uint8_t ret[SHA256_SIZE])
{
	/* a tomb's secrets begin with "lychgate tomb" */
	static const char input[] = "lychgate registry links 1";

	hmac_sha256(work_master, strlen(work_master), input, strlen(input), ret);
}

/* A client may write '+' and '@' either way. */
static void add_plain(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool plus = len - i > 2 && strncasecmp(s + i, "%2b", 3) == 0;
		bool at = len - i > 2 && strncmp(s + i, "%40", 3) == 0;

		buf_addc(out, plus ? '+' : at ? '@' : s[i]);
		i += plus || at ? 2 : 0;
	}
}

static bool mark_of(const struct registry *r, const char *what, const char *place,
		    size_t len, char ret[REGISTRY_MARK_SIZE])
{
	cleanup_buf struct buf text = {.max = TEXT_MAX};
	uint8_t mac[SHA256_SIZE];

	/* a URL has no blank: one input, one meaning */
	buf_addf(&text, "%s %s %s\n", registry_kind_name(r->kind), r->url, what);
	add_plain(&text, place, len);
	if (!buf_ok(&text))
		return false;
	gate_mac(r->links_key, text.data, text.len, mac);
	hex_encode(mac, DIGITS / 2, ret);
	return true;
}

static size_t without_metadata(const char *rest)
{
	size_t len = strlen(rest);

	return str_ends(rest, METADATA) ? len - strlen(METADATA) : len;
}

/* The directory that a template begins with, for all crates the same. */
static size_t before_marks(const char *rest)
{
	size_t len = strcspn(rest, "{");

	while (len && rest[len - 1] != '/')
		len--;
	return len ? len - 1 : 0;
}

bool registry_link_mark(const struct registry *r, const char *rest,
			char ret[REGISTRY_MARK_SIZE])
{
	size_t len;

	if (r->kind != REGISTRY_CARGO)
		return mark_of(r, ONE_FILE, rest, without_metadata(rest), ret);
	if (!strchr(rest, '{'))
		return rest[0] && mark_of(r, CRATES, rest, strlen(rest), ret);
	/* directly below the origin it would name all of it */
	len = before_marks(rest);
	return len && mark_of(r, CRATES_BELOW, rest, len, ret);
}

static bool is_mark_of(const struct registry *r, const char *what, const char *place,
		       size_t len, const char *mark)
{
	char want[REGISTRY_MARK_SIZE];

	return mark_of(r, what, place, len, want) && mem_eq_ct(want, mark, DIGITS);
}

/* Without its last three segments; 0: there is nothing else. */
static size_t before_crate(const char *rest)
{
	size_t len = strlen(rest);

	for (unsigned n = 0; n < 3; n++) {
		while (len && rest[len - 1] != '/')
			len--;
		if (!len)
			return 0;
		len--;
	}
	return len;
}

static bool is_crate_named(const struct registry *r, const char *rest, const char *mark)
{
	size_t len = before_crate(rest), at = 0;

	if (len && str_ends(rest, "/download") && is_mark_of(r, CRATES, rest, len, mark))
		return true;
	for (unsigned n = 0; n < SEGMENTS_MAX; n++) {
		at += strcspn(rest + at, "/");
		if (!rest[at])
			return false;
		if (is_mark_of(r, CRATES_BELOW, rest, at++, mark))
			return true;
	}
	return false;
}

static bool has_mark(const char *s, size_t len)
{
	return len > DIGITS && s[DIGITS] == '/' &&
	       strspn(s, "0123456789abcdef") == DIGITS;
}

const char *registry_link_named(const struct registry *r, const char *marked)
{
	const char *rest;
	bool is_named;

	if (!has_mark(marked, strlen(marked)))
		return NULL;
	rest = marked + DIGITS + 1;
	is_named = r->kind == REGISTRY_CARGO ? is_crate_named(r, rest, marked)
					     : is_mark_of(r, ONE_FILE, rest,
							  without_metadata(rest), marked);
	return is_named ? rest : NULL;
}

void registry_unmarked(const char *path, size_t len, struct buf *out)
{
	if (len > 3 && memcmp(path, "~0/", 3) == 0 && has_mark(path + 3, len - 3)) {
		buf_add(out, "~0/", 3);
		path += 3 + DIGITS + 1;
		len -= 3 + DIGITS + 1;
	}
	buf_add(out, path, len);
}

bool registry_dl_is_usable(const char *dl)
{
	static const char *const marks[] = {"{crate}", "{version}", "{prefix}",
					    "{lowerprefix}", "{sha256-checksum}"};
	const char *s = dl;

	if (strchr(dl, '#') || strstr(dl, "/./") || strstr(dl, "/../") ||
	    str_ends(dl, "/.") || str_ends(dl, "/.."))
		return false;
	while (*(s += strcspn(s, "{}"))) {
		size_t n = 0;

		for (size_t i = 0; i < ARRAY_SIZE(marks) && !n; i++)
			n = str_starts(s, marks[i]) ? strlen(marks[i]) : 0;
		if (!n)
			return false;
		s += n;
	}
	return true;
}
