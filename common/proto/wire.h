/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Any process. The bytes of a frame or a file: taken from the front, never more than are left; and
 * put at the end of a buffer. Numbers have their least byte first, unless it says otherwise.
 *
 * A reader that asks for what is not there has failed: nothing is taken from then on, numbers are
 * 0 and texts are empty. So who reads many things asks once, at the end.
 */
#ifndef LYCH_COMMON_PROTO_WIRE_H
#define LYCH_COMMON_PROTO_WIRE_H

#include "common/attr.h"
#include "common/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
	const char *at;
	size_t left;
	bool failed;
};

/* n bytes where they lie; NULL: they are not there. */
const char *wire_bytes(struct wire *w, size_t n);
bool wire_take(struct wire *w, void *out, size_t n);
/* Of 1 to 8 bytes. */
uint64_t wire_uint(struct wire *w, unsigned bytes);
/* The same with the most significant byte first. */
uint64_t wire_uint_be(struct wire *w, unsigned bytes);
/* As many bytes as a number of len_bytes before them says, where they lie; more than max fail.
 * Never NULL. */
const char *wire_sized(struct wire *w, unsigned len_bytes, size_t max, size_t *ret_len);
/* The same as a string: copied to *at, which then stands behind its NUL (so that a copy of all of them
 * never needs more than the bytes that they were in, and one), and without a NUL in it. "" once the
 * reader has failed. */
const char *wire_string(struct wire *w, unsigned len_bytes, size_t max, char **at);
/* Was everything there, and is nothing left? */
bool wire_is_done(const struct wire *w);

/* What does not go into so many bytes makes the buffer fail, as what goes past its end does. */
void wire_put_uint(struct buf *out, uint64_t v, unsigned bytes);
void wire_put_sized(struct buf *out, unsigned len_bytes, const void *data, size_t len);

#endif
