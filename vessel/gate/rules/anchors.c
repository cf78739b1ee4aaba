/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See anchors.h.
 */
#include "vessel/gate/rules/anchors.h"

static const char all[] __attribute__((aligned(8))) =
#define GATE_DB_PART 0
#include "gate_db.inc"
	;
static const char strong[] __attribute__((aligned(8))) =
#undef GATE_DB_PART
#define GATE_DB_PART 1
#include "gate_db.inc"
	;
#undef GATE_DB_PART
#define GATE_DB_PART 2
const struct gate_width gate_widths[] = {
#include "gate_db.inc"
};
const struct gate_db gate_dbs[GATE_DB_MAX_] = {
	[GATE_DB_ALL] = {all, sizeof(all) - 1},
	[GATE_DB_STRONG] = {strong, sizeof(strong) - 1},
};
