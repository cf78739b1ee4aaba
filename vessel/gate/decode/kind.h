/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * What kind of file some bytes are, by their first ones.
 */
#ifndef LYCH_VESSEL_GATE_DECODE_KIND_H
#define LYCH_VESSEL_GATE_DECODE_KIND_H

#include "vessel/gate/rules/families.h"
#include <stdbool.h>
#include <stddef.h>

/* So many bytes that are no text, close together, are binary: gate_find_binary(). */
#define GATE_STRANGE_MIN 20

struct gate_kind {
	const char *name; /* "sqlite" */
	enum gate_family family;
	double severity; /* 0: no finding, it is public */
};

/* NULL: not known. */
const struct gate_kind *gate_kind_of(const char *s, size_t len);
/* GATE_MEDIA, and it goes on as it began: its bytes are what it says. */
bool gate_is_media(const char *s, size_t len);
/* The first stretch that is no text at all: false when there is none. */
bool gate_find_binary(const char *s, size_t len, size_t *ret_at);
/* How many bytes from s on could be read: ASCII without control bytes, or UTF-8. */
size_t gate_readable(const char *s, size_t len);
/* Are there that many such bytes in a row? */
bool gate_has_readable(const char *s, size_t len, size_t min);

#endif
