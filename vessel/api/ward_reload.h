/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A reload of the ward that waits for workers or for the log; the vessel may end meanwhile.
 */
#ifndef LYCH_VESSEL_API_WARD_RELOAD_H
#define LYCH_VESSEL_API_WARD_RELOAD_H

#include "common/crypto/sha256.h"
#include <stddef.h>

struct ward_reload;
/* NULL is fine. */
void ward_reload_free(struct ward_reload *r);
/* By which a text of codex.yaml is named in answers and in the log. */
void ward_reload_digest(const void *text, size_t len, char ret[SHA256_HEX_SIZE]);

#endif
