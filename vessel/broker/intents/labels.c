/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See labels.h.
 */
#include "vessel/broker/intents/labels.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/fnv.h"

#include <assert.h>
#include <string.h>

#define NAMES_MAX LABELS_WEIGHT_MAX /* each weighs at least one */
#define WATCHED_MAX 1024

/* The names of one job below one wildcard, as hashes: only whether it is new matters. */
struct watched {
	job_id_t job;
	uint64_t suffix;
	uint64_t names[NAMES_MAX];
	unsigned n, weight;
	usec_t since;
};

struct labels {
	struct watched *w;
	size_t n;
	uint64_t key; /* so that a job cannot choose names of one hash */
};

struct labels *labels_new(void)
{
	struct labels *l = xnew(struct labels);

	random_bytes(&l->key, sizeof(l->key));
	return l;
}

void labels_free(struct labels *l)
{
	if (!l)
		return;
	free(l->w);
	free(l);
}

/* From a secret beginning. */
static uint64_t hash(const struct labels *l, const char *s)
{
	return fnv(FNV_START ^ l->key, s, strlen(s));
}

/* How many symbols a text would have to be drawn from evenly to repeat itself as often as this one
 * does (two to the power of its collision entropy): is that LABELS_ODD_SYMBOLS or more? */
static bool is_varied(const char *s, size_t len)
{
	size_t count[256] = {0}, same = 0;

	for (size_t i = 0; i < len; i++)
		count[(unsigned char)s[i]]++;
	for (unsigned i = 0; i < 256; i++)
		same += count[i] * count[i];
	return len * len >= same * LABELS_ODD_SYMBOLS;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_mixed(const char *s, size_t len)
{
	unsigned changes = 0;

	for (size_t i = 1; i < len; i++)
		if (s[i] != '-' && s[i - 1] != '-' &&
		    is_digit(s[i]) != is_digit(s[i - 1]))
			changes++;
	return changes >= LABELS_ODD_CHANGES;
}

bool labels_is_odd(const char *front, size_t len)
{
	return len >= LABELS_ODD_LENGTH ||
	       (len >= LABELS_ENTROPY_LENGTH &&
		(is_varied(front, len) || is_mixed(front, len)));
}

static void forget_at(struct labels *l, size_t i)
{
	l->w[i] = l->w[--l->n];
}

static struct watched *find(struct labels *l, job_id_t job, uint64_t suffix, usec_t now)
{
	struct watched *w;

	for (size_t i = l->n; i > 0; i--)
		if (now - l->w[i - 1].since >= LABELS_WINDOW_USEC)
			forget_at(l, i - 1);
	for (size_t i = 0; i < l->n; i++)
		if (l->w[i].job == job && l->w[i].suffix == suffix)
			return &l->w[i];
	if (l->n == WATCHED_MAX)
		return NULL;
	l->w = xreallocarray(l->w, l->n + 1, sizeof(*l->w));
	w = &l->w[l->n++];
	*w = (struct watched){.job = job, .suffix = suffix, .since = now};
	return w;
}

enum labels_verdict labels_check(struct labels *l, job_id_t job, const char *suffix,
				 const char *host, usec_t now)
{
	struct watched *w = find(l, job, hash(l, suffix), now);
	size_t len = strlen(host), below = strlen(suffix) + 1;
	uint64_t name = hash(l, host);
	unsigned weight;
	bool odd;

	if (!w)
		return LABELS_REFUSE;
	assert(len > below);
	odd = labels_is_odd(host, len - below);
	for (unsigned i = 0; i < w->n; i++)
		if (w->names[i] == name)
			return LABELS_PASS;
	weight = odd ? LABELS_WEIGHT_ODD : 1;
	if (w->weight + weight > LABELS_WEIGHT_MAX)
		return LABELS_REFUSE;
	w->weight += weight;
	w->names[w->n++] = name;
	return odd ? LABELS_ODD : LABELS_PASS;
}

void labels_forget(struct labels *l, job_id_t job)
{
	for (size_t i = l->n; i > 0; i--)
		if (l->w[i - 1].job == job)
			forget_at(l, i - 1);
}
