/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The egress workers as codex.yaml asks for them, and what the vessel does when one of
 * them speaks: between main.c and egress.h.
 */
#ifndef LYCH_VESSEL_EGRESS_WORKERS_H
#define LYCH_VESSEL_EGRESS_WORKERS_H

#include "vessel/api/vessel.h"
#include "vessel/egress/egress.h"

/* First of all, before a secret is read: v->conf is there, v->egress comes to be. probe: as in
 * egress_config; opt outlives it. */
struct confine_probe;
struct options;
MUST_CHECK int egress_workers_fork(struct vessel *v, const struct options *opt,
				   const struct confine_probe *probe, struct err *err);
/* A worker died while it read this (egress_events, gate_client_config); arg: the vessel. */
void egress_workers_died(const char *name, const struct reading_note *note, void *arg);
/* v->loop is there, the vessel is not confined yet. Every worker holds its walls when it
 * returns 0. The parent's end stops the loop. */
MUST_CHECK int egress_workers_attach(struct vessel *v, struct err *err);
void egress_workers_free(struct vessel *v);

#endif
