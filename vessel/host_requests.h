/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the vessel asks of the host: a file in a directory of its own (common/proto/host_request.h).
 */
#ifndef LYCH_VESSEL_HOST_REQUESTS_H
#define LYCH_VESSEL_HOST_REQUESTS_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proto/host_request.h"

MUST_CHECK int host_requests_init(int data_fd, struct err *err);

#endif
