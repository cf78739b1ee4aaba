/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A fetch before the ward: the question in the ward's terms, what only a rule that names it
 * allows, names below a wildcard (labels.h), and where no rule allows it the word that
 * tells a person what a rule would have to name.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_FETCH_WARD_H
#define LYCH_VESSEL_BROKER_INTENTS_FETCH_WARD_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/broker/intents/fetch.h"
#include "vessel/broker/intents/labels.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/reason.h"

/* All but the identity. path: where ret->path points to; f is borrowed too. */
void fetch_ward_ask(const struct fetch *f, char path[URL_BYTES_MAX + 1],
		    struct ward_ask *ret);

/* said, v, err: what the ward answered to ask. The same as below, but for the names below a wildcard:
 * nothing is counted. */
MUST_CHECK int fetch_ward_judge_url(const struct url *u, const struct conf_broker *b,
				    const struct ward_ask *ask, int said,
				    const struct ward_verdict *v, enum reason *ret_reason,
				    struct err *err);

/*
 * said, v, err: what ward_take() answered to ask. Once for each request, redirected ones
 * too: it counts the name. *ret_odd: the name is below a wildcard, looks made up and is
 * new: to be reported. Errors of the families WARD and FETCH; *ret_reason is of reason.def,
 * or untouched where the ward's own error says it all.
 */
MUST_CHECK int fetch_ward_judge(const struct fetch *f, const struct conf_broker *b,
				const struct ward_ask *ask, int said,
				const struct ward_verdict *v, struct labels *labels,
				job_id_t job, usec_t now, bool *ret_odd,
				enum reason *ret_reason, struct err *err);

#endif
