/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Which places of a registry's origin a job may name outside of its URL: those that an index of it
 * has named. A link that is rewritten to there gets a mark, "~0/MARK/REST", which nobody makes
 * without the key; what comes back without one is asked of nobody. The key outlives a restart: lock
 * files keep links.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_LINKS_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_LINKS_H

#include "common/buf.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_MARK_SIZE 33 /* 32 hexadecimal digits: 128 bits */

struct registry;

/* work_master: the secret lychgate_work, which outlives the process and is no tomb's. The caller
 * wipes ret. */
void registry_links_key(const char *work_master, uint8_t ret[SHA256_SIZE]);

/* rest: of a link, behind the origin's slash, without a fragment. PyPI's names one file (and the
 * metadata beside it), cargo's "dl" a place below which crates are. False: it names none. */
bool registry_link_mark(const struct registry *r, const char *rest,
			char ret[REGISTRY_MARK_SIZE]);
/* marked: "MARK/REST", as a job has it. REST, when that was named; else NULL. */
const char *registry_link_named(const struct registry *r, const char *marked);

/* A path behind "/registry/NAME/" as a reader needs it: without the mark. */
void registry_unmarked(const char *path, size_t len, struct buf *out);

/* "dl" with marks: those of cargo's protocol, no others; no fragment, no dot segment. */
bool registry_dl_is_usable(const char *dl);

#endif
