/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * The anchors of the rules, compiled at build time (vessel/gate/compile/compile.c).
 */
#ifndef LYCH_VESSEL_GATE_RULES_ANCHORS_H
#define LYCH_VESSEL_GATE_RULES_ANCHORS_H

#include <stddef.h>
#include <stdint.h>

enum gate_db_kind {
	GATE_DB_ALL,	/* each rule that has an anchor for Vectorscan */
	GATE_DB_STRONG, /* those without GATE_RULE_WEAK */
	GATE_DB_MAX_
};

struct gate_db {
	/* serialised; a match's id is the rule's index, behind them the word's */
	const char *data;
	size_t bytes;
};
extern const struct gate_db gate_dbs[GATE_DB_MAX_];

/* How long a match of each rule's anchor is, in bytes. */
struct gate_width {
	uint32_t min, max;
};
extern const struct gate_width gate_widths[]; /* gate_rules_n */

#endif
