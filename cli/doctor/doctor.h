/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The parts of lych doctor: what is tried, and one line a wall.
 */
#ifndef LYCH_CLI_DOCTOR_DOCTOR_H
#define LYCH_CLI_DOCTOR_DOCTOR_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/jsonw.h"
#include <stdbool.h>

/* NOTE: a fact that is no wall, for whoever reads the report. */
enum verdict { PASS, FAIL, KNOWN, SKIP, NOTE, VERDICT_MAX_ };

struct doctor_lines {
	bool json;
	struct buf text; /* JSON */
	struct jsonw w;
	unsigned count[VERDICT_MAX_];
};

void doctor_line(struct doctor_lines *d, const char *where, const char *tried,
		 const char *answer, enum verdict v);

/* doctor_host.c: what the kernel can do, what this host's own policies say and do. */
void doctor_host(struct doctor_lines *d);
/* doctor_pod.c: the containers of a bound pod, as Podman and the kernel have them. Nothing
 * when nothing is bound. */
void doctor_pod(struct doctor_lines *d);

/* doctor_broker.c: what codex.yaml lets jobs ask for, and the keys for it. */
struct paths;
void doctor_broker(struct doctor_lines *d, const struct paths *p);

#endif
