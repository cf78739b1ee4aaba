/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Runs of bytes of one class, found without a look at most of the others.
 */
#ifndef LYCH_VESSEL_GATE_TEXT_RUNS_H
#define LYCH_VESSEL_GATE_TEXT_RUNS_H

#include <stddef.h>
#include <stdint.h>

#define GATE_RUN_MIN 4
#define GATE_RUN_MAX 128

/* From `i` on, where the next run of at least `min` (GATE_RUN_MIN to GATE_RUN_MAX) bytes begins that in[] has
 * (not zero), or goes on: `i` itself may be within one. len: none. */
size_t gate_next_run(const uint8_t in[256], size_t min, const char *s, size_t len,
		     size_t i);
/* The end of the run at `i`: the first byte from there on that in[] has not; len: none. */
size_t gate_run_end(const uint8_t in[256], const char *s, size_t len, size_t i);

/* Few bytes among many: those of `one`, those below or above, and `n` from `from` on. */
struct gate_stops {
	uint8_t one[4];
	uint8_t below, above;
	uint8_t from, n;
};
/* The first of them from `i` on; len: none. */
size_t gate_next_stop(const struct gate_stops *stops, const char *s, size_t len,
		      size_t i);

#endif
