/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * codex.yaml at the vessel's start: what it means, and what is remembered of its text for a
 * reload of the ward (api/ward_reload.c).
 */
#ifndef LYCH_VESSEL_CODEX_H
#define LYCH_VESSEL_CODEX_H

#include "vessel/api/vessel.h"

/* Fills v->conf and v->codex. path NULL: there is no file, and all is at its default. */
MUST_CHECK int codex_open(struct vessel *v, const char *path, struct err *err);
void codex_close(struct vessel *v);

#endif
