/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Does a path lead to or below another, for whatever server reads it?
 *
 * For rules that forbid. Servers differ in what they make of a path: they undo escapes once
 * or again, cut parameters off (";x"), drop empty segments, follow "..", take "\" for "/",
 * ignore case, blanks and dots at the end of a name, read overlong UTF-8, bytes that are none
 * and characters that are compatible with ASCII or look like it as what they resemble. A rule
 * that denies /admin holds when any of them would come to /admin; so it is read widely, and
 * what can't be told is a match. docs/EGRESS.md has the list.
 */
#ifndef LYCH_VESSEL_BROKER_WARD_PATH_H
#define LYCH_VESSEL_BROKER_WARD_PATH_H

#include <stdbool.h>

#define WARD_PATH_BYTES_MAX 8192

/* prefix: of codex.yaml (conf_path_check), whole segments of it count. path: as it is sent,
 * without a query. */
bool ward_path_is_within(const char *path, const char *prefix);

/* For rules that allow: may a part of it be taken for ".." by any of them? What is below the
 * path of such a rule by its bytes may be elsewhere then. */
bool ward_path_may_climb(const char *path);

#endif
