/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A job's placeholders: which stands for which text. Both ways are looked up by a keyed
 * digest, so neither a request nor a reply can make it slow.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_MAP_H
#define LYCH_VESSEL_BROKER_GATE_MAP_H

#include "common/id.h"
#include "vessel/gate/gate.h"

#define GATE_MAP_MAX 4096
#define GATE_MAP_MAX_BYTES (512u << 10)
#define GATE_ROW_NAME_SIZE 32

struct gate_row {
	enum gate_family family;
	char name[GATE_ROW_NAME_SIZE]; /* "EMAIL_1" */
	char *text;
	size_t len;
};

/* {0} is an empty one. */
struct gate_map {
	struct gate_row *row;
	size_t n, bytes;
	/* private */
	unsigned of_family[GATE_FAMILY_MAX_];
	uint8_t key[SHA256_SIZE];
	uint16_t *by_text, *by_name; /* 1 + the row; 0: free */
};

void gate_map_done(struct gate_map *m); /* wipes */
/* The row of a text: the one it has, or a new one. NULL: the map is full. */
const struct gate_row *gate_map_take(struct gate_map *m, enum gate_family family,
				     const char *text, size_t len);
/* The row of a name that stands in a reply; NULL: there is none. */
const struct gate_row *gate_map_find(const struct gate_map *m, const char *name,
				     size_t len);

#endif
