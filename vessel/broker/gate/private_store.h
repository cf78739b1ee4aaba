/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the user registered as private, on disk: the file "private" (0600) in the vessel's
 * data directory, written whole and atomically. Each change goes to the gate's worker at
 * once. A file that is damaged ends the start: the gate would let through what it holds.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_PRIVATE_STORE_H
#define LYCH_VESSEL_BROKER_GATE_PRIVATE_STORE_H

#include "vessel/broker/gate/client.h"

struct private_store;

/* The file, or an empty store where there is none. ERRID_GATE_STORE. */
MUST_CHECK int private_store_open(int data_fd, struct gate_client *gate,
				  struct private_store **ret, struct err *err);
void private_store_free(struct private_store *s);

const struct gate_private *private_store_get(const struct private_store *s);
/* As gate_private_add and gate_private_remove; nothing changes when it cannot be written. */
MUST_CHECK int private_store_add(struct private_store *s, enum private_kind kind,
				 const char *name, const void *data, size_t len,
				 uint64_t *ret_id, struct err *err);
MUST_CHECK int private_store_remove(struct private_store *s, uint64_t id,
				    struct err *err);

#endif
