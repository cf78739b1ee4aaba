/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * A small dictionary. Names are found by it and their company only: there is no model of
 * language here, and most names are not found.
 */
#ifndef LYCH_VESSEL_GATE_VALID_NAMES_H
#define LYCH_VESSEL_GATE_VALID_NAMES_H

#include <stdbool.h>
#include <stddef.h>

bool gate_is_given_name(const char *s, size_t len);

#endif
