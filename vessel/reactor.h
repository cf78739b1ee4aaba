/* SPDX-License-Identifier: Apache-2.0 */
/* What the vessel asks of the host: a file in a directory of its own (common/intent.h). */
#ifndef LYCH_VESSEL_REACTOR_H
#define LYCH_VESSEL_REACTOR_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/intent.h"

MUST_CHECK int reactor_init(int data_fd, struct err *err);
/* On disk when it returns. ERRID_HOST_BUSY when nobody takes them away. */
MUST_CHECK int reactor_drop(int data_fd, const struct random_ops *rng, enum intent what,
			    struct uuid *ret_id, struct err *err);

#endif
