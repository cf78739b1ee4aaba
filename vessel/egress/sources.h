/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent, the egress watcher and the egress worker.
 * What the workers need of the host's files: name servers, hosts, certificate authorities. The
 * texts lie in memory that the watcher alone can write; a worker, which can open no file, reads
 * them there when their generation has changed.
 *
 * A file that became one that cannot be read is *refused*: nothing of it is in force until it is
 * right again. No old one goes on: an authority that was taken out of a file must not be believed
 * because the file has an error besides, and name servers of another network must not hear the
 * names that are asked for here.
 */
#ifndef LYCH_VESSEL_EGRESS_SOURCES_H
#define LYCH_VESSEL_EGRESS_SOURCES_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

enum egress_source { SOURCE_RESOLV, SOURCE_HOSTS, SOURCE_ROOTS, SOURCES_ };

struct sources;

/* Before the watcher is forked: both of it can write, until one says sources_read_only(). */
MUST_CHECK int sources_new(struct sources **ret, struct err *err);
void sources_free(struct sources *s); /* NULL is fine; in each process by itself */
/* This process, and what it forks, can never write there. */
void sources_read_only(struct sources *s);

/*
 * Reads the file and judges it. path NULL, or a file of name servers or hosts that is not there:
 * an empty text, which is none of it. ERRID_START_CONFIG: it cannot be read, is too long, has a
 * NUL, or is a file of authorities without one. The caller frees *ret, a string.
 */
MUST_CHECK int sources_load(enum egress_source which, const char *path, char **ret,
			    size_t *ret_len, struct err *err);
/* The file of authorities: the given one, else the system's bundle; NULL: there is none. */
const char *sources_authorities(const char *given);

/* A new generation. text NULL: it is refused. */
void sources_put(struct sources *s, enum egress_source which, const char *text,
		 size_t len);
unsigned sources_generation(const struct sources *s);
/* A copy, which the caller frees; NULL: it is refused. */
char *sources_get(const struct sources *s, enum egress_source which, size_t *ret_len);
/* Is the text there this one? NULL: refused. */
bool sources_is(const struct sources *s, enum egress_source which, const char *text,
		size_t len);

#endif
