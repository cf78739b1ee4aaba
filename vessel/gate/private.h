/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * What the user registered as private, without its text: of a term the keyed hash of its
 * first bytes and an HMAC of all of it, of a file keyed fingerprints of its passages. The
 * key lies beside them (vessel data directory, "private"): whoever can read both can try
 * guesses, but finds no text.
 *
 * Text is normalised before it is hashed: letters to lower case, each run of blanks one
 * blank, homoglyphs and zero-width characters folded (fold.h).
 */
#ifndef LYCH_VESSEL_GATE_PRIVATE_H
#define LYCH_VESSEL_GATE_PRIVATE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRIVATE_TERM_MIN_BYTES 4 /* normalised; a shorter one is everywhere */
#define PRIVATE_TERM_MAX_BYTES 4096
#define PRIVATE_FILE_MAX_BYTES ((size_t)4 << 20)
#define PRIVATE_NAME_MAX_BYTES 128
#define PRIVATE_ENTRIES_MAX 10000
#define PRIVATE_PRINTS_MAX (1u << 20) /* fingerprints of all files together */
/* A passage of a file that is this long (normalised) is always found. */
#define PRIVATE_PASSAGE_BYTES 64

struct gate_private;

enum private_kind { PRIVATE_TERM, PRIVATE_FILE };

struct private_entry {
	uint64_t id; /* grows, never reused */
	enum private_kind kind;
	const char *name;      /* what the user calls it; never the text */
	uint64_t created_usec; /* wall clock */
	uint32_t bytes, prints;
};

struct gate_private *gate_private_new(void); /* empty, with a new key */
void gate_private_free(struct gate_private *p);
static inline void gate_private_free_p(struct gate_private **p)
{
	gate_private_free(*p);
}
#define cleanup_private __attribute__((cleanup(gate_private_free_p)))

/* name: 1..128 bytes of UTF-8 without control characters. ERRID_GATE_TERM (too short, too
 * long, registered already), ERRID_GATE_FULL. */
MUST_CHECK int gate_private_add(struct gate_private *p, enum private_kind kind,
				const char *name, const void *data, size_t len,
				uint64_t now_usec, uint64_t *ret_id, struct err *err);
/* ERRID_GATE_NO_TERM. */
MUST_CHECK int gate_private_remove(struct gate_private *p, uint64_t id, struct err *err);
bool gate_private_has(const struct gate_private *p, uint64_t id);
size_t gate_private_count(const struct gate_private *p);
void gate_private_at(const struct gate_private *p, size_t i, struct private_entry *ret);

/* Is there a term of at most that many bytes? */
bool gate_private_has_short(const struct gate_private *p, size_t max);

/* As bytes, for the file and for the worker. */
void gate_private_write(const struct gate_private *p, struct buf *out);
MUST_CHECK int gate_private_read(const void *data, size_t len, struct gate_private **ret,
				 struct err *err);

/* Found: [offset, offset + len) of the normalised text. Return false to stop. */
typedef bool private_hit(size_t offset, size_t len, void *arg);
void gate_private_search(const struct gate_private *p, const char *normal, size_t len,
			 private_hit *hit, void *arg);

#endif
