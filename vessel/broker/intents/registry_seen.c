/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry_seen.h.
 */
#include "vessel/broker/intents/registry_seen.h"
#include "common/crypto/hmac.h"
#include "common/id.h"
#include "common/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct seen_page {
	const struct registry_seen *seen;
	uint64_t id;
	uint64_t used; /* by the count of uses */
	uint64_t *dir; /* sorted, once it is committed */
	size_t n, cap;
};

struct registry_seen {
	uint8_t key[SHA256_SIZE]; /* so that nobody can look for two of one digest */
	struct seen_page *page[SEEN_PAGES_MAX]; /* by id */
	size_t n, n_dirs;
	uint64_t uses;
};

struct registry_seen *registry_seen_new(void)
{
	struct registry_seen *s = xnew(struct registry_seen);

	random_bytes(s->key, sizeof(s->key));
	return s;
}

void registry_seen_free(struct registry_seen *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		seen_page_drop(s->page[i]);
	explicit_bzero(s->key, sizeof(s->key));
	free(s);
}

static uint64_t digest_of(const struct registry_seen *s, const char *text, size_t len)
{
	uint8_t mac[SHA256_SIZE];
	uint64_t ret;

	gate_mac(s->key, text, len, mac);
	memcpy(&ret, mac, sizeof(ret));
	return ret;
}

bool seen_is_hex(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return len >= SEEN_HEX_MIN;
}

/* The length of a path's directory, its slash with it; 0: nothing in it has to be explained. */
static size_t directory_of(const char *path, size_t len)
{
	size_t at = 0, dir = 0;
	bool has_hex = false;

	while (at < len) {
		const char *slash = memchr(path + at, '/', len - at);

		if (!slash)
			break;
		has_hex |= seen_is_hex(path + at, (size_t)(slash - path) - at);
		dir = at = (size_t)(slash - path) + 1;
	}
	return has_hex ? dir : 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* ---- a page ------------------------------------------------------------------------ */

struct seen_page *seen_page_begin(const struct registry_seen *s, const char *page)
{
	struct seen_page *p = xnew(struct seen_page);

	p->seen = s;
	p->id = digest_of(s, page, strlen(page));
	return p;
}

void seen_page_link(struct seen_page *p, const char *path, size_t len)
{
	size_t dir = directory_of(path, len);
	uint64_t digest;

	if (dir == 0 || p->n == SEEN_PAGE_MAX)
		return;
	digest = digest_of(p->seen, path, dir);
	/* a file and its signature follow each other */
	if (p->n && p->dir[p->n - 1] == digest)
		return;
	if (p->n == p->cap) {
		p->cap = p->cap * 2 + 64;
		p->dir = xreallocarray(p->dir, p->cap, sizeof(*p->dir));
	}
	p->dir[p->n++] = digest;
}

void seen_page_drop(struct seen_page *p)
{
	if (!p)
		return;
	free(p->dir);
	free(p);
}

static void forget(struct registry_seen *s, size_t i)
{
	s->n_dirs -= s->page[i]->n;
	seen_page_drop(s->page[i]);
	memmove(s->page + i, s->page + i + 1, (--s->n - i) * sizeof(struct seen_page *));
}

static void forget_oldest(struct registry_seen *s)
{
	size_t oldest = 0;

	for (size_t i = 1; i < s->n; i++)
		if (s->page[i]->used < s->page[oldest]->used)
			oldest = i;
	forget(s, oldest);
}

/* Where the page is, or would be. */
static size_t place_of(const struct registry_seen *s, uint64_t id)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->page[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct seen_page *page_of(const struct registry_seen *s, uint64_t id)
{
	size_t i = place_of(s, id);

	return i < s->n && s->page[i]->id == id ? s->page[i] : NULL;
}

uint64_t seen_page_commit(struct registry_seen *s, struct seen_page *p)
{
	size_t at = place_of(s, p->id);

	if (at < s->n && s->page[at]->id == p->id)
		forget(s, at);
	while (s->n == SEEN_PAGES_MAX || (s->n && s->n_dirs + p->n > SEEN_ALL_MAX))
		forget_oldest(s);
	if (p->n)
		qsort(p->dir, p->n, sizeof(*p->dir), by_value);
	p->used = ++s->uses;
	at = place_of(s, p->id);
	memmove(s->page + at + 1, s->page + at,
		(s->n++ - at) * sizeof(struct seen_page *));
	s->page[at] = p;
	s->n_dirs += p->n;
	return p->id;
}

/* ---- what a job fetched --------------------------------------------------------------- */

void seen_by_add_id(struct seen_by *by, uint64_t id)
{
	for (size_t i = 0; i < by->n; i++)
		if (by->page[i] == id)
			return;
	if (by->n < SEEN_JOB_PAGES_MAX) {
		by->page = xreallocarray(by->page, by->n + 1, sizeof(*by->page));
		by->page[by->n++] = id;
		return;
	}
	by->page[by->next] = id;
	by->next = (by->next + 1) % SEEN_JOB_PAGES_MAX;
}

bool seen_by_add(struct seen_by *by, struct registry_seen *s, const char *page)
{
	struct seen_page *p = page_of(s, digest_of(s, page, strlen(page)));

	if (!p)
		return false;
	p->used = ++s->uses;
	seen_by_add_id(by, p->id);
	return true;
}

void seen_by_done(struct seen_by *by)
{
	free(by->page);
	*by = (struct seen_by){0};
}

bool seen_by_has(const struct seen_by *by, struct registry_seen *s, const char *path)
{
	size_t dir = directory_of(path, strlen(path));
	uint64_t digest;

	if (dir == 0 || by->n == 0)
		return false;
	digest = digest_of(s, path, dir);
	for (size_t i = 0; i < by->n; i++) {
		struct seen_page *p = page_of(s, by->page[i]);

		if (!p || !p->n ||
		    !bsearch(&digest, p->dir, p->n, sizeof(digest), by_value))
			continue;
		p->used = ++s->uses;
		return true;
	}
	return false;
}
