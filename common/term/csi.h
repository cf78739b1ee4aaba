/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A control sequence (CSI) taken apart, and of those that are lists what passes of them.
 */
#ifndef LYCH_COMMON_TERM_CSI_H
#define LYCH_COMMON_TERM_CSI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERM_CSI_VALUES_MAX 4

struct term_csi {
	char id[8]; /* prefix, intermediates and final; a string */
	const char *params;
	size_t n_params; /* bytes */
};

/* Of the text of a TERM_CSI token. False: it has not the form of one. */
bool term_csi_read(const char *text, size_t size, struct term_csi *ret);

/* Its numbers; none given is none. False: more than TERM_CSI_VALUES_MAX, more than five digits,
 * or parts (':'). */
bool term_csi_values(const struct term_csi *csi, uint32_t *values, size_t *ret_n);

/*
 * "Select graphic rendition" (SGR): what passes of the list, whole and written anew, or nothing; at
 * most 2 * n_params + 4 bytes. Colours are written without ':', which terminals that do not know it
 * read as numbers of their own; a number behind one that they do not know they read as one too
 * (the 8 of 58;5;8 conceals), so of those with numbers only 38 and 48 pass.
 */
size_t term_csi_sgr(const struct term_csi *csi, bool is_log, char *out);

/* Modes (CSI h, l; with '?' DEC's): likewise. */
size_t term_csi_modes(const struct term_csi *csi, char *out);

#endif
