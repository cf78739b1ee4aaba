/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The names of a package registry on its two sides: what a job asks for below
 * /registry/{npm,pypi,cargo,go}/, and the URL upstream. Pure. A job can name nothing but what the
 * configuration lists: the registry itself and the places where it keeps its files; and elsewhere
 * at the registry's origin what an index of it has named (registry_links.h).
 *
 *	npm	npm/REST		URL REST
 *		npm/~N/REST		FILES[N-1] REST
 *	pypi	pypi/simple/REST	URL REST
 *		pypi/~0/MARK/REST	the origin of URL, REST
 *		pypi/~N/REST		FILES[N-1] REST
 *	cargo	cargo/REST		URL REST
 *		cargo/~0/MARK/REST	the origin of URL, REST
 *		cargo/~N/REST		FILES[N-1] REST
 *	go	go/REST			URL REST
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proto/broker_proto.h"
#include "vessel/broker/intents/registry_rewrite.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_FILES_MAX CONF_FILE_HOSTS_MAX
#define REGISTRY_PATH_MAX 1024

struct registry {
	enum registry_kind kind;
	char *url; /* "https://host[:port]/path/", with the slash */
	/* of the same form; links elsewhere are dropped */
	char *files[REGISTRY_FILES_MAX];
	size_t n_files;
	uint8_t links_key[SHA256_SIZE];
};

/* Of what codex.yaml says; c has a URL. */
void registry_init(struct registry *r, enum registry_kind kind,
		   const struct conf_registry *c, const uint8_t links_key[SHA256_SIZE]);
void registry_done(struct registry *r);

/*
 * path: behind "/registry/<name>/", as it stood in the request, still percent-encoded.
 * Only what such registries are made of: segments of unreserved characters, '@', '+',
 * '!', and %2F behind an @scope, %2B and %40; no query. url gets the upstream's,
 * *ret_index whether links of it are to be rewritten. ERRID_REGISTRY_PATH.
 */
MUST_CHECK int registry_upstream(const struct registry *r, const char *path, char *url,
				 size_t size, bool *ret_index, struct err *err);

/* Is it a path of a file host? No key goes there. */
bool registry_is_elsewhere(const char *path);

/* What page a link of which is being rewritten. */
struct registry_page {
	const struct registry *registry;
	const char *url; /* upstream's */
};

/* A registry_map of a struct registry_page: absolute links, those from the root and
 * relative ones become http://127.0.0.1:8787/registry/…; the fragment (a hash) stays; a
 * link with a query, or to anywhere else, is dropped, and so is cargo's "dl" when it is none. */
bool registry_map_link(void *page, const char *link, struct buf *out);

/* The same judgement of a redirect: the URL where it leads, when that is one of the
 * registry's places. */
bool registry_resolve(const struct registry_page *page, const char *link, char *url,
		      size_t size);

/* The Accept header that asks for what we can rewrite and, of PyPI's two forms, for what the
 * job's program takes; NULL: it takes neither. */
const char *registry_accept(enum registry_kind kind, enum broker_simple wants);

/* Of an index that came: */
struct registry_got {
	enum registry_kind kind;
	enum broker_simple wants;
	const char *path;	  /* as in registry_upstream() */
	const char *content_type; /* NULL: none was named */
	bool has_key;		  /* one went along */
};
struct registry_is {
	enum registry_form form;
	const char *key;	  /* of its links; NULL: not in this form */
	const char *content_type; /* for the job */
};
/* npm's and PyPI's form is told by the content type, that of the others by the path. Any other
 * type: -1 with ERRID_REGISTRY_INDEX. */
MUST_CHECK int registry_form(const struct registry_got *got, struct registry_is *ret,
			     struct err *err);

#endif
