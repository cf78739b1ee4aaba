/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the vessel asks of the host: a file in a directory of its own (common/proto/intent.h).
 */
#ifndef LYCH_VESSEL_REACTOR_H
#define LYCH_VESSEL_REACTOR_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proto/intent.h"

MUST_CHECK int reactor_init(int data_fd, struct err *err);

#endif
