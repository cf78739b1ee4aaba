/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * The rules at work on one text: Vectorscan finds the anchors in one pass, PCRE2 searches
 * around them, the check judges. Time is linear in the text: around the anchors of one
 * rule no byte is searched more than a few times.
 */
#ifndef LYCH_VESSEL_GATE_RULES_MATCHER_H
#define LYCH_VESSEL_GATE_RULES_MATCHER_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "vessel/gate/rules/check.h"
#include "vessel/gate/rules/words.h"

struct gate_matcher;

/* ERRID_GATE_RULES. */
MUST_CHECK int gate_matcher_new(struct gate_matcher **ret, struct err *err);
void gate_matcher_free(struct gate_matcher *m);

/* False: enough. */
typedef bool gate_matcher_hit(const struct gate_rule *rule, const struct gate_match *m,
			      void *arg);

/* Rules that have one of the flags `without` are left out, so are those that lack one
 * of `with`. False: it gave up (a limit of PCRE2, the deadline on the boot clock, hit's
 * answer). len < 2 GiB. */
bool gate_matcher_run(struct gate_matcher *m, const char *text, size_t len, unsigned with,
		      unsigned without, usec_t deadline, gate_matcher_hit *hit,
		      void *arg);
/* Where that text has words of words.h: in order, apart from each other. Until the
 * next run. */
const struct gate_span *gate_matcher_words(const struct gate_matcher *m, size_t *ret_n);

#endif
