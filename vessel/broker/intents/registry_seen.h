/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The directories of digests that indexes named. PyPI spreads its files over
 * "packages/ab/cd/<60 hexadecimal digits>/NAME": digits that look like a key, and that a job
 * did not make up when an index which it fetched has a link to there. Of each such directory a keyed
 * digest of 64 bits is kept, by page; the pages that were used last, all jobs' together, within
 * the bounds below. What does not fit is not known, and then its digits are read as anything else.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_SEEN_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEN_PAGES_MAX 4096
#define SEEN_PAGE_MAX 65536	       /* directories of one page */
#define SEEN_ALL_MAX ((size_t)1 << 20) /* 8 MiB */
#define SEEN_JOB_PAGES_MAX 1024
#define SEEN_HEX_MIN 16 /* digits of a segment; shorter ones look like nothing */

struct registry_seen;
struct registry_seen *registry_seen_new(void);
void registry_seen_free(struct registry_seen *s);

/* A page as it goes by. Links: paths as a job will name them, behind "/registry/NAME/". */
struct seen_page;
struct seen_page *seen_page_begin(const struct registry_seen *s, const char *page);
void seen_page_link(struct seen_page *p, const char *path, size_t len);
/* In the place of what that page had before. Returns its id. */
uint64_t seen_page_commit(struct registry_seen *s, struct seen_page *p);
void seen_page_drop(struct seen_page *p); /* NULL is fine */

/* What one job fetched, the oldest forgotten first. {0} is one that fetched nothing. */
struct seen_by {
	uint64_t *page;
	size_t n, next;
};
/* False: what that page has is not known (any more). */
bool seen_by_add(struct seen_by *by, struct registry_seen *s, const char *page);
void seen_by_add_id(struct seen_by *by, uint64_t id);
void seen_by_done(struct seen_by *by);
/* Does a page that the job fetched name the directory of this path? */
bool seen_by_has(const struct seen_by *by, struct registry_seen *s, const char *path);

/* A segment of digits that only an index explains. */
bool seen_is_hex(const char *s, size_t len);

#endif
