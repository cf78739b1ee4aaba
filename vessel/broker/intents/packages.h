/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the package mirrors brought, kept for every job: below packages/ of the vessel's
 * data directory, which no tomb and no job has. A file is named by the sha256 of what was
 * asked for; its first PACKAGES_HEAD bytes say its content type, its length and the
 * sha256 of what follows. The least recently used make room. It is a cache: what a crash
 * left damaged is found by its hash before it is given out for the first time, and goes.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_PACKAGES_H
#define LYCH_VESSEL_BROKER_INTENTS_PACKAGES_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKAGES_HEAD 256
#define PACKAGES_TYPE_MAX 96
#define PACKAGES_ENTRIES_MAX 16384

struct packages;
struct packages_write;

/* data_fd is borrowed. Opens, removes what was half-written, and lists what is there.
 * max_bytes: of all files together. */
MUST_CHECK int packages_new(int data_fd, uint64_t max_bytes,
			    const struct clock_ops *clock, struct packages **ret,
			    struct err *err);
void packages_free(struct packages *p);
uint64_t packages_used(const struct packages *p); /* bytes */

struct packages_hit {
	int fd; /* the caller's; the body begins at PACKAGES_HEAD */
	uint64_t len;
	char content_type[PACKAGES_TYPE_MAX];
};
/* key: any text that names the thing, a URL with the form it was asked in. False when it
 * is not there, older than max_age, or damaged. USEC_INFINITY: any age. */
bool packages_find(struct packages *p, const char *key, usec_t max_age,
		   struct packages_hit *ret);

/* A file that is being fetched. Without room (max_bytes, disk) there is none: the caller
 * goes on without the cache. content_type: ASCII without control bytes. */
MUST_CHECK int packages_begin(struct packages *p, const char *key,
			      const char *content_type, struct packages_write **ret,
			      struct err *err);
MUST_CHECK int packages_add(struct packages_write *w, const void *data, size_t len,
			    struct err *err);
/* Both end it. Only after a commit is it found, by everybody at once. */
MUST_CHECK int packages_commit(struct packages_write *w, struct err *err);
void packages_abort(struct packages_write *w); /* NULL is fine */

#endif
