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
	enum verdict next_of;
	char next[512]; /* the command to type first; "" while nothing is to be done */
};

void doctor_line(struct doctor_lines *d, const char *where, const char *tried,
		 const char *answer, enum verdict v);

/* What to do about the last line; the first one of a FAIL is told, else the first. */
PRINTF_FMT(3, 4)
void doctor_next(struct doctor_lines *d, enum verdict v, const char *fmt, ...);

/* doctor_guard.c: run() in a child of our own, whose code is returned. What it made in dir is
 * removed, however it ends; a signal that ends us first ends it. */
int doctor_guard(const char *dir, int (*run)(const char *dir, void *arg), void *arg);

/* doctor_host.c: what the kernel can do, what this host's own policies say and do. unrooted: the
 * owner said daemons: no_private_root, so that user namespaces are not needed. */
void doctor_host(struct doctor_lines *d, bool unrooted);
/* errno of what the sandbox of grade full and the daemons' private root begin with; 0: it works. */
int doctor_try_userns(void);
/* doctor_pod.c: the containers of a bound pod, as Podman and the kernel have them. Nothing
 * when nothing is bound. */
void doctor_pod(struct doctor_lines *d);

/* doctor_services.c: what runs, as it reports itself. true: a job can be tried. */
struct paths;
bool doctor_services(struct doctor_lines *d, const struct paths *p);

/* doctor_anchors.c: where else the checkpoints of the audit log are kept; audit: of the vessel's status. */
struct json;
void doctor_anchors(struct doctor_lines *d, const struct paths *p,
		    const struct json *audit);

/* doctor_broker.c: what codex.yaml lets jobs ask for, and the keys for it. */
void doctor_broker(struct doctor_lines *d, const struct paths *p);

#endif
