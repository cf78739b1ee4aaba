/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * What codex.yaml says about containment that begins by itself: which signals there are, and what each
 * does (docs/adr/audit/0059). Plain data, as egress.h.
 */
#ifndef LYCH_COMMON_CONF_CONTAINMENT_H
#define LYCH_COMMON_CONF_CONTAINMENT_H

#include "common/clock.h"

#define CONF_DENIALS_MIN 2u
#define CONF_DENIALS_MAX 100u

enum conf_trigger {
	TRIGGER_CANARY,	 /* what was planted in a job was in a request of it */
	TRIGGER_DENIALS, /* so many refusals of one attempt of a job in such a time */
	/* A tomb spoke for an attempt by a token that is another one's, or nobody's. Never contains: who
	 * lies names whose job it likes. */
	TRIGGER_FOREIGN_TOKEN,
	CONF_TRIGGER_MAX_
};

/* The first is what is done where nothing else is said. */
enum trigger_act {
	TRIGGER_SIGNAL,	 /* it is in the audit log, and counted */
	TRIGGER_CONTAIN, /* and the job is contained, as by 'lych contain' */
	TRIGGER_OFF,	 /* neither */
	TRIGGER_ACT_MAX_
};

struct conf_containment {
	enum trigger_act act[CONF_TRIGGER_MAX_];
	unsigned denials; /* CONF_DENIALS_MIN .. CONF_DENIALS_MAX */
	usec_t denials_within_usec;
};

/* As codex.yaml and the audit log have it: "denials". */
const char *conf_trigger_name(enum conf_trigger t);
const char *trigger_act_name(enum trigger_act a); /* "contain" */

#endif
