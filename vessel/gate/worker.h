/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * The gate worker: a process without network and files that answers one question after
 * the other on its socket (wire.h). It has confined itself before (vessel/egress/worker.c).
 */
#ifndef LYCH_VESSEL_GATE_WORKER_H
#define LYCH_VESSEL_GATE_WORKER_H

#include "common/worker/pulse.h"

/* fd: SOCK_STREAM, blocking. pulse: NULL, or where it shows that it lives. arg is not used. Returns the exit code at end of file; a
 * protocol error or rules that do not load are an exit code other than 0. */
int gate_worker_main(int fd, struct egress_pulse *pulse, void *arg);

#endif
