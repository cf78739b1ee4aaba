/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the gate: one with a store of terms, what it says of a text, and texts in base64. */
#ifndef LYCH_TESTS_SUPPORT_GATE_TEXTS_H
#define LYCH_TESTS_SUPPORT_GATE_TEXTS_H

#include "common/buf.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/private.h"
#include <criterion/criterion.h>
#include <string.h>

/* Of one scan; 0: the gate's own. A test of long texts that is not one of time has another, for
 * a busy machine. */
#ifndef GATE_TEXTS_DEADLINE_USEC
#define GATE_TEXTS_DEADLINE_USEC 0
#endif

static struct gate *g;
static struct gate_private *terms;
static struct gate_report r;

static inline void begin(void)
{
	const struct gate_config cfg = {.portal_threshold = 0.4,
					.forbidden_threshold = 0.7,
					.deadline_usec = GATE_TEXTS_DEADLINE_USEC};
	struct err err = ERR_INIT;

	cr_assert_eq(gate_new(&cfg, &g, &err), 0, "%s", err.msg);
	terms = gate_private_new();
	gate_set_private(g, terms);
}

static inline void end(void)
{
	gate_set_private(g, NULL);
	gate_private_free(terms);
	gate_free(g);
}

static inline void add_term(const char *term)
{
	struct err err = ERR_INIT;
	uint64_t id;

	cr_assert_eq(gate_private_add(terms, PRIVATE_TERM, "t", term, strlen(term), 0,
				      &id, &err),
		     0, "%s", err.msg);
}

static inline double score_of(const void *data, size_t len)
{
	const struct gate_part p = {.data = data, .len = len};
	const struct gate_input in = {.parts = &p, .n_parts = 1};

	gate_scan(g, &in, &r);
	return r.score;
}

/* width 0: on one line. */
static inline void add64(struct buf *out, const void *data, size_t len, size_t width)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/";
	const uint8_t *u = data;
	size_t n = 0;

	for (size_t i = 0; i * 6 < len * 8; i++) {
		size_t at = i * 6 / 8;
		unsigned two = (unsigned)u[at] << 8 | (at + 1 < len ? u[at + 1] : 0U);

		if (width && n && n % width == 0)
			buf_adds(out, "\n");
		buf_add(out, &digits[two >> (10 - i * 6 % 8) & 63], 1);
		n++;
	}
}

static inline struct buf new_buf(void)
{
	struct buf b;

	buf_init(&b, (size_t)4 << 20);
	return b;
}

#endif
