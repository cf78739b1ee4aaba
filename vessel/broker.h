/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The dispatcher's life in the vessel: after the gate's client and the egress workers
 * (egress_workers.h).
 */
#ifndef LYCH_VESSEL_BROKER_H
#define LYCH_VESSEL_BROKER_H

#include "vessel/api/vessel.h"

/* v has queue and audit, and the workers are up. work_master: the secret lychgate_work, of which
 * the key of registry_links.h is made; not kept. */
MUST_CHECK int broker_start(struct vessel *v, const char *work_master, struct err *err);
/* After the listeners, before audit, gate, egress and queue. */
void broker_free(struct vessel *v);
#endif
