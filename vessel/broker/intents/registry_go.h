/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The paths of a mirror of Go modules (the GOPROXY protocol of go.dev/ref/mod), and of the
 * checksum database that one may pass on. Pure.
 *
 *	MODULE/@v/list, MODULE/@v/VERSION.info, MODULE/@latest		indexes
 *	MODULE/@v/VERSION.mod, MODULE/@v/VERSION.zip			files
 *	sumdb/NAME/supported, …/latest, …/lookup/MODULE@VERSION		indexes: signed text
 *	sumdb/NAME/tile/H/L/K[.p/W]					files
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_GO_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_GO_H

#include "common/buf.h"
#include <stdbool.h>
#include <stddef.h>

enum go_path { GO_NOTHING, GO_LIST, GO_INFO, GO_NOTE, GO_FILE };

/* path: of segments that registry_upstream() has let through. */
enum go_path registry_go_path(const char *path);
/* As the module's name is: "!x" is a capital. */
void registry_go_spell(const char *path, struct buf *out);
/* What a version may be, with capitals as they are or as "!x". */
bool registry_go_is_version(const char *s, size_t len);

#endif
