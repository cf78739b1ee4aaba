/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Names as a way out: below an allowed wildcard a job could write anything into the labels of
 * the names that it asks for, and whoever serves that zone would read it. So for each job and
 * wildcard the distinct names are counted; one that looks made up (long, or of high
 * entropy) counts for many and is reported. No I/O, no clock of its own.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_LABELS_H
#define LYCH_VESSEL_BROKER_INTENTS_LABELS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/id.h"
#include <stdbool.h>

#define LABELS_WEIGHT_MAX 64 /* in one window */
#define LABELS_WEIGHT_ODD 8  /* of a name that looks made up */
#define LABELS_WINDOW_USEC (600 * USEC_PER_SEC)
/* What looks made up: so long; or from LABELS_ENTROPY_LENGTH on so varied, or so often changing between
 * letters and digits, as words are not. */
#define LABELS_ODD_LENGTH 32
#define LABELS_ENTROPY_LENGTH 16
#define LABELS_ODD_SYMBOLS 12 /* 3.6 bits a byte */
#define LABELS_ODD_CHANGES 5

enum labels_verdict {
	LABELS_PASS,
	LABELS_ODD,    /* it may pass, and is reported */
	LABELS_REFUSE, /* too many: REASON_LABELS */
};

struct labels;
struct labels *labels_new(void);
void labels_free(struct labels *l);

/*
 * host: matched the wildcard *.suffix and ends in ".suffix". A name that was counted in this window
 * counts no more. What is refused is not counted.
 */
enum labels_verdict labels_check(struct labels *l, job_id_t job, const char *suffix,
				 const char *host, usec_t now);
/* The job ended. */
void labels_forget(struct labels *l, job_id_t job);

/* Does what stands before the suffix look made up? */
bool labels_is_odd(const char *front, size_t len);

#endif
