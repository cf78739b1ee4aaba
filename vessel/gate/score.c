/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the vessel.
 * See score.h.
 */
#include "vessel/gate/score.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So far below the forbidden threshold weak families stay: three digits tell it apart. */
#define WEAK_GAP 0.001
#define SEVERITY_UNREAD 0.7 /* what may not go out at all has more */

struct text {
	uint8_t mac[GATE_MAC_SIZE];
	double severity;
};

/* By text, of one text the most severe one first. */
static int by_text(const void *a, const void *b)
{
	const struct text *x = a, *y = b;
	int r = memcmp(x->mac, y->mac, sizeof(x->mac));

	return r ? r : (x->severity < y->severity) - (x->severity > y->severity);
}

bool gate_has_family(const struct gate_finding *f, size_t n, enum gate_family family)
{
	for (size_t i = 0; i < n; i++)
		if (f[i].family == family)
			return true;
	return false;
}

double gate_added(const struct gate_finding *f, size_t n)
{
	cleanup_free struct text *t = xcalloc(n + 1, sizeof(*t));
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(t[i].mac, f[i].mac, sizeof(t[i].mac));
		t[i].severity = f[i].severity;
	}
	qsort(t, n, sizeof(*t), by_text);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || memcmp(t[i].mac, t[i - 1].mac, sizeof(t[i].mac)) != 0)
			sum -= log1p(-0.5 * t[i].severity);
	return sum;
}

static double bucket_score(double sum)
{
	return -expm1(-sum);
}

double gate_score(const struct gate_finding *f, size_t n)
{
	double together = bucket_score(gate_added(f, n)), most = 0;

	for (size_t i = 0; i < n; i++)
		most = f[i].severity > most ? f[i].severity : most;
	return most > together ? most : together;
}

bool gate_is_weak(enum gate_family f)
{
	return f == GATE_EMAIL || f == GATE_ENTROPY || f == GATE_IP || f == GATE_MAC ||
	       f == GATE_NAME || f == GATE_PHONE || f == GATE_ADDRESS;
}

/* So is what only begins like a picture, which an agent cut, a run of letters that nobody can read (a
 * font, a picture of another kind), and a number that only its check digit makes a card. All of it is
 * replaced. */
static bool is_weak(const struct gate_finding *f)
{
	return gate_is_weak(f->family) ||
	       ((f->family == GATE_MEDIA || f->family == GATE_BINARY ||
		 f->family == GATE_CARD) &&
		f->severity < SEVERITY_UNREAD);
}

static double with_bucket(const struct gate_finding *f, size_t n, double carry)
{
	double added = gate_added(f, n), score = gate_score(f, n);
	double bucket = added > 0 ? bucket_score(carry + added) : 0;

	return bucket > score ? bucket : score;
}

double gate_score_of(const struct gate_finding *f, size_t n, double carry, double portal,
		     double forbidden)
{
	double score = with_bucket(f, n, carry), most = forbidden - WEAK_GAP;
	cleanup_free struct gate_finding *strong = NULL;
	size_t n_strong = 0;

	if (score < forbidden || most < portal)
		return score;
	strong = xcalloc(n + 1, sizeof(*strong));
	for (size_t i = 0; i < n; i++)
		if (!is_weak(&f[i]))
			strong[n_strong++] = f[i];
	score = with_bucket(strong, n_strong, carry);
	return score > most ? score : most;
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
