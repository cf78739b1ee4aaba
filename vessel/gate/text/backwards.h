/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * A text from its last character to its first one.
 */
#ifndef LYCH_VESSEL_GATE_TEXT_BACKWARDS_H
#define LYCH_VESSEL_GATE_TEXT_BACKWARDS_H

#include <stddef.h>

/* What is behind a character's first byte in UTF-8 stays behind it; `len` bytes, which the caller frees. */
char *gate_backwards(const char *data, size_t len);

#endif
