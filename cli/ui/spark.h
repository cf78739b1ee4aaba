/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A row of numbers as a line of blocks, for a glance.
 */
#ifndef LYCH_CLI_UI_SPARK_H
#define LYCH_CLI_UI_SPARK_H

#include "common/buf.h"
#include <stddef.h>
#include <stdint.h>

/* One block a number, from none (0) to a full one (top; what is above it is full too). */
void spark_line(const uint64_t *v, size_t n, uint64_t top, struct buf *out);

#endif
