/* SPDX-License-Identifier: Apache-2.0 */
/* Files that run by themselves where a person or an agent opens the tree. */
#ifndef LYCH_TOMB_HARVEST_NAMES_H
#define LYCH_TOMB_HARVEST_NAMES_H

/* NULL, or a constant that says what would run: "git hook". Case does not matter. */
const char *harvest_name_hazard(const char *path);

#endif
