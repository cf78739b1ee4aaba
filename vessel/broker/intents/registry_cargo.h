/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The paths of a registry of crates, by cargo's sparse protocol: config.json, and one index a
 * crate below the first letters of its name, "1/a", "2/ab", "3/a/abc", "ab/cd/abcd". Pure.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_CARGO_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_CARGO_H

#include <stdbool.h>

#define CARGO_CONFIG_PATH "config.json"

/* path: of segments that registry_upstream() has let through. */
bool registry_cargo_is_index(const char *path); /* of a crate */
bool registry_cargo_is_file(const char *path);

#endif
