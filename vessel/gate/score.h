/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the vessel.
 * The arithmetic of gate.h's score.
 */
#ifndef LYCH_VESSEL_GATE_SCORE_H
#define LYCH_VESSEL_GATE_SCORE_H

#include "vessel/gate/gate.h"

/* -log of the product in the score: what findings add to a job's bucket, in which
 * 1 - exp(-sum) is a score again. */
double gate_added(const struct gate_finding *f, size_t n);

bool gate_has_family(const struct gate_finding *f, size_t n, enum gate_family family);

/* Of no check digit and no form of its own: e-mail, telephones, streets, entropy, IP and MAC addresses,
 * names. */
bool gate_is_weak(enum gate_family f);

/*
 * The score of findings and of the job's bucket. Weak families make nothing forbidden, however
 * many there are: much of what is taken for them is harmless, and all that is found of them
 * can be replaced. Forbidden is what the others are without them.
 */
double gate_score_of(const struct gate_finding *f, size_t n, double carry, double portal,
		     double forbidden);

#endif
