/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Which boot of the vessel's had this data directory last: its row in the database is known to be nobody's.
 */
#ifndef LYCH_VESSEL_BOOT_FILE_H
#define LYCH_VESSEL_BOOT_FILE_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/id.h"

/* *ret is empty where there is none, or where it is damaged: that only means waiting until the old row
 * has aged. */
MUST_CHECK int boot_file_read(int data_fd, struct uuid *ret, struct err *err);
MUST_CHECK int boot_file_write(int data_fd, const struct uuid *boot, struct err *err);

#endif
