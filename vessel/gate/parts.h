/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * The texts of one request, as a list that owns its bytes: filled from a JSON value, a
 * URL, headers; judged (vessel/broker/gate/client.h); rewritten; and put back where they came from.
 */
#ifndef LYCH_VESSEL_GATE_PARTS_H
#define LYCH_VESSEL_GATE_PARTS_H

#include "common/attr.h"
#include "common/json/json.h"
#include "vessel/gate/gate.h"

struct jsonw;

struct gate_parts {
	size_t n, cap, bytes;
	bool overflow; /* did not fit: whoever judges it says 1.0 */
	struct gate_part *part;
};

struct gate_parts *gate_parts_new(void);
void gate_parts_free(struct gate_parts *p);
static inline void gate_parts_free_p(struct gate_parts **p)
{
	gate_parts_free(*p);
}
#define cleanup_gate_parts __attribute__((cleanup(gate_parts_free_p)))

/* Copies. tag: see struct gate_part; NULL is a tag too. */
void gate_parts_add(struct gate_parts *p, enum gate_part_kind kind, const char *tag,
		    const void *data, size_t len);
/* Puts other bytes in part i's place. */
void gate_parts_replace(struct gate_parts *p, size_t i, const void *data, size_t len);

/* Every key, string and number of a value, in the order in which gate_parts_write_json
 * meets them again. */
void gate_parts_add_json(struct gate_parts *p, const struct json *v);
/* The same value with the strings of p from part `first` on. */
void gate_parts_write_json(const struct gate_parts *p, size_t first, const struct json *v,
			   struct jsonw *w);

#endif
