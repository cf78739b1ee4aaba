/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The links of a registry's index, rewritten while the bytes go by: a packument or a
 * simple index may have ten megabytes, and nothing but one link at a time is held.
 * JSON (npm; PEP 691; registry_json.h): the string values of one key, however its letters are
 * escaped; that key twice in an object, or with a list, is an error. HTML (PEP 503): the href of every
 * tag; comments, end tags and declarations that some readers end sooner than others are an error. All
 * other bytes pass unchanged, so integrity fields and hashes do too. What is not of the form is an
 * error, never a page with a link left as it was.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_REWRITE_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_REWRITE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define REGISTRY_LINK_MAX 4096
#define REGISTRY_DEPTH_MAX 128

enum registry_form {
	REGISTRY_JSON,
	REGISTRY_HTML,
	/* without links, see registry_text.h */
	REGISTRY_CRATE,	       /* a line of JSON for each version */
	REGISTRY_CARGO_CONFIG, /* config.json */
	/* the same, of a registry to which a key goes along: it may want one of everybody */
	REGISTRY_CARGO_CONFIG_KEY,
	REGISTRY_GO_LIST, /* a version a line */
	REGISTRY_GO_INFO, /* of one version, JSON */
	REGISTRY_GO_NOTE, /* signed text of a checksum database */
};

/* link: unescaped, NUL-terminated, without control bytes. What takes its place goes to
 * out, unescaped; false: the link is dropped, "" takes its place. */
typedef bool registry_map(void *arg, const char *link, struct buf *out);

/* The link that is being read. */
struct registry_held {
	registry_map *map;
	void *arg;
	struct buf text; /* as it stands in the page; of REGISTRY_LINK_MAX bytes */
};
#define REGISTRY_MAPPED_MAX ((size_t)REGISTRY_LINK_MAX * 2)
/* out is as long as s; false: no link of ours is written so. */
typedef bool registry_unescape(const char *s, size_t len, char *out, size_t *ret_len);
/* What takes the place of the link that was held; empty when it is dropped. Nothing is held then. */
void registry_held_map(struct registry_held *h, registry_unescape *unescape,
		       struct buf *mapped);
/* ERRID_REGISTRY_INDEX with what it is instead. */
MUST_CHECK int registry_no_index(struct err *err, const char *what);

struct registry_rewrite;

/* key: the JSON key whose string values are links, with static lifetime; NULL for other forms. */
struct registry_rewrite *registry_rewrite_new(enum registry_form form, const char *key,
					      registry_map *map, void *arg);
void registry_rewrite_free(struct registry_rewrite *rw);
static inline void registry_rewrite_free_p(struct registry_rewrite **rw)
{
	registry_rewrite_free(*rw);
}
/* Appends to out; at most REGISTRY_LINK_MAX bytes are held back. After an error
 * (ERRID_REGISTRY_INDEX) the page must not be used. */
MUST_CHECK int registry_rewrite_feed(struct registry_rewrite *rw, const void *data,
				     size_t len, struct buf *out, struct err *err);
/* The page is over: an error when it ended within something. Appends to out. */
MUST_CHECK int registry_rewrite_end(struct registry_rewrite *rw, struct buf *out,
				    struct err *err);

#endif
