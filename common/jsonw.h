/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A strict JSON encoder over struct buf (libc only). Strings must be UTF-8;
 * invalid bytes are written as U+FFFD. Escaped: control bytes, DEL, U+0080-9F,
 * U+2028/2029, bidi controls (U+061C, 200E-F, 202A-E, 2066-9), BOM - so that
 * untrusted text can neither break a line nor reorder what a terminal shows.
 */
#ifndef LYCH_COMMON_JSONW_H
#define LYCH_COMMON_JSONW_H

#include "common/buf.h"
#include <stdbool.h>
#include <stdint.h>

/* What goes deeper makes the buffer fail, as what passes its ceiling does. */
#define JSONW_DEPTH_MAX 32

struct jsonw {
	struct buf *out;
	unsigned depth;
	unsigned too_deep; /* levels open beyond the last: the buffer has failed */
	bool need_comma[JSONW_DEPTH_MAX];
	bool after_key;
};

void jsonw_init(struct jsonw *w, struct buf *out);
void jsonw_obj(struct jsonw *w);
void jsonw_obj_end(struct jsonw *w);
void jsonw_arr(struct jsonw *w);
void jsonw_arr_end(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
void jsonw_str(struct jsonw *w, const char *s); /* NULL writes null */
void jsonw_strn(struct jsonw *w, const void *s, size_t len);
void jsonw_i64(struct jsonw *w, int64_t v);
void jsonw_bool(struct jsonw *w, bool v);
void jsonw_null(struct jsonw *w);
/* Already encoded JSON, trusted to be one value. */
void jsonw_raw(struct jsonw *w, const char *json, size_t len);

/* key + value */
void jsonw_kstr(struct jsonw *w, const char *key, const char *s);
void jsonw_ku64(struct jsonw *w, const char *key, uint64_t v);
void jsonw_ki64(struct jsonw *w, const char *key, int64_t v);
void jsonw_kbool(struct jsonw *w, const char *key, bool v);

#endif
