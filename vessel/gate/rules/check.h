/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Does a match of an expression hold what it looks like?
 */
#ifndef LYCH_VESSEL_GATE_RULES_CHECK_H
#define LYCH_VESSEL_GATE_RULES_CHECK_H

#include "vessel/gate/rules/rules.h"

struct gate_match {
	const char *text; /* the layer */
	size_t len;
	size_t start, end;	 /* the span; a check may extend it */
	size_t whole;		 /* where the match begins: at start, or before */
	enum gate_family family; /* a check may name another one */
	double severity;	 /* the rule's; a check may lower it */
};

/* False: it is not one, or one that was published for everybody. */
bool gate_check(enum gate_check_kind check, struct gate_match *m);

#endif
