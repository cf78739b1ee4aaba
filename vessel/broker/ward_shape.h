/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The bytes of a path as one server or another reads characters in them.
 *
 * What is left is ASCII (for one of them, beside bytes that are no character): what a rule
 * may name, in small letters, and a few signs that mean something to ward_path.c.
 */
#ifndef LYCH_VESSEL_BROKER_WARD_SHAPE_H
#define LYCH_VESSEL_BROKER_WARD_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Who reads. UTF-8 may be overlong for each of them. */
enum ward_reader {
	WARD_UTF8,	  /* what is none goes */
	WARD_UTF8_KEPT,	  /* what is none stays, and may become some by more escapes */
	WARD_UTF8_LAX,	  /* a lead byte takes whatever follows it */
	WARD_UTF8_LATIN1, /* what is none is Latin-1 */
	WARD_LATIN1,	  /* each byte is a character */
	WARD_7BIT,	  /* the eighth bit does not count */
	WARD_READER_MAX_
};

/* A slash to some, a part of a name to others. */
#define WARD_SLASH_OR_NAME '\\'
/* A character of some script that no rule can name. */
#define WARD_OTHER_CHAR '"'

bool ward_shape_is_ascii(const char *s, size_t n);
/* Into out, *ret_n bytes. False: it has no room for them. */
bool ward_shape_read(enum ward_reader who, const char *s, size_t n, char *out,
		     size_t size, size_t *ret_n);

#endif
