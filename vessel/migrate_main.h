/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * `lych-vessel migrate`: the options of vessel/db/migrate.h.
 */
#ifndef LYCH_VESSEL_MIGRATE_MAIN_H
#define LYCH_VESSEL_MIGRATE_MAIN_H

/* argv[0]: the command. Returns an exit code (common/err.h); reports on stderr. */
int migrate_main(int argc, char **argv);

#endif
