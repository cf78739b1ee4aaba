/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See score.h.
 */
#include "vessel/gate/score.h"
#include <math.h>
#include <string.h>

/* Has an earlier finding the same text, and at least this severity? */
static bool is_repeated(const struct gate_finding *f, size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++) {
		if (k == i || memcmp(f[k].mac, f[i].mac, GATE_MAC_SIZE) != 0)
			continue;
		if (f[k].severity > f[i].severity ||
		    (k < i && f[k].severity >= f[i].severity))
			return true;
	}
	return false;
}

double gate_added(const struct gate_finding *f, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		if (!is_repeated(f, n, i))
			sum -= log1p(-0.5 * f[i].severity);
	return sum;
}

double gate_bucket_score(double sum)
{
	return -expm1(-sum);
}

double gate_score(const struct gate_finding *f, size_t n)
{
	double together = gate_bucket_score(gate_added(f, n)), most = 0;

	for (size_t i = 0; i < n; i++)
		most = f[i].severity > most ? f[i].severity : most;
	return most > together ? most : together;
}

enum gate_verdict gate_judge(double score, double portal, double forbidden)
{
	/* so that what is no number at all is refused */
	if (!(score < forbidden))
		return GATE_REFUSE;
	return score < portal ? GATE_PASS : GATE_ANONYMISE;
}

const char *gate_verdict_name(enum gate_verdict v)
{
	return v == GATE_PASS ? "pass" : v == GATE_ANONYMISE ? "anonymise" : "refuse";
}
