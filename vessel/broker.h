/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The dispatcher's life in the vessel: after the gate's client and the egress workers
 * (egress_workers.h).
 */
#ifndef LYCH_VESSEL_BROKER_H
#define LYCH_VESSEL_BROKER_H

#include "vessel/api/vessel.h"

/* v has queue and audit, and the workers are up. */
MUST_CHECK int broker_start(struct vessel *v, struct err *err);
/* After the listeners, before audit, gate, egress and queue. */
void broker_free(struct vessel *v);
#endif
