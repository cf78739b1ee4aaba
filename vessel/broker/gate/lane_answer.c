/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the worker's answer to a question means, and the question's end.
 *
 * Theory of operation. Below the thresholds it passes, above them it is refused. Between
 * them a job's is anonymised and looked at once more, and passes only if it is below them
 * then; a person is only told. What the worker does not answer is refused. Who asked hears
 * it once, unless it no longer wants to.
 *
 * An agent that prints its environment has the key of its own broker in its conversation from then
 * on, and sends it at each turn. Where that key stands as it is in a text for a portal, it is
 * replaced before anything else is judged. Encoded, turned around, cut, in a name, or on its
 * way to anybody else it refuses. The same holds for what was planted in its environment, but that
 * the job is not told what it was.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/gate/lane_priv.h"
#include "vessel/gate/score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAMILIES_TEXT 200
#define REWRITES_MAX 4

void gate_ask_free(struct gate_ask *a)
{
	gate_parts_free(a->parts);
	free(a->destination);
	free(a->findings);
	free(a);
}

static void tell(struct gate_ask *a, const struct gate_answer *answer)
{
	struct gate_lane *c = a->c;

	if (answer->verdict == GATE_PASS)
		c->figures.passed++;
	else if (answer->verdict == GATE_ANONYMISE)
		c->figures.anonymised++;
	else
		c->figures.refused++;
	if (!a->is_cancelled)
		a->done(answer, a->arg);
	gate_ask_free(a);
}

/* What was planted is nothing but a token to who sent it. */
static enum gate_family told(enum gate_family f)
{
	return f == GATE_PLANTED ? GATE_TOKEN : f;
}

/* "token, email" */
static void name_families(const struct gate_ask *a, char *out, size_t size)
{
	bool seen[GATE_FAMILY_MAX_] = {false};
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < a->n; i++) {
		enum gate_family f = told(a->findings[i].family);
		const char *name = gate_family_info(f)->name;
		int n;

		if (seen[f])
			continue;
		seen[f] = true;
		n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", name);
		if (n < 0 || (size_t)n >= size - at)
			return;
		at += (size_t)n;
	}
}

static bool had_own(const struct gate_ask *a)
{
	return a->had_key || a->had_planted;
}

static bool has_family(const struct gate_ask *a, enum gate_family f)
{
	return gate_has_family(a->findings, a->n, f);
}

static void finish(struct gate_ask *a, enum gate_verdict verdict, double score_after,
		   const struct err *err)
{
	const struct gate_answer answer = {
		.verdict = verdict,
		.score = a->score,
		.score_after = score_after,
		.err = err,
		.has_canary = a->had_key || has_family(a, GATE_CANARY),
		.is_canary_replaced = a->had_key && !has_family(a, GATE_CANARY),
		.has_planted = a->had_planted || has_family(a, GATE_PLANTED),
		.is_planted_replaced = a->had_planted && !has_family(a, GATE_PLANTED),
		.findings = a->findings,
		.n_findings = a->n,
		.parts = a->parts,
	};

	tell(a, &answer);
}

static void refuse(struct gate_ask *a, enum err_id id, double score_after,
		   const char *more)
{
	char families[FAMILIES_TEXT];
	struct err err = ERR_INIT;

	name_families(a, families, sizeof(families));
	(void)err_set_id(&err, id, "score %.2f: %s%s%s", a->score, families,
			 families[0] && more[0] ? "; " : "", more);
	finish(a, GATE_REFUSE, score_after, &err);
}

void gate_lane_fail_all(struct gate_lane *c, enum err_id id, const char *why)
{
	struct gate_ask *all = NULL, **end = &all;

	/* who asks again from within the callback is in a new queue */
	c->at_work = false;
	while (c->first) {
		struct gate_ask *a = c->first;

		gate_ask_has_read(a);
		gate_lane_take_out(a);
		a->next = NULL;
		*end = a;
		end = &a->next;
	}
	while (all) {
		struct gate_ask *next = all->next;
		struct err err = ERR_INIT;

		(void)err_set_id(&err, id, "%s", why);
		all->score = 1.0;
		c->figures.failed++;
		finish(all, GATE_REFUSE, 1.0, &err);
		all = next;
	}
}

/* ---- what an answer means ------------------------------------------------------------ */

static enum gate_verdict judge(const struct gate_lane *c, double score)
{
	return gate_judge(score, c->cfg.portal_threshold, c->cfg.forbidden_threshold);
}

static void remember(struct gate_ask *a, const struct gate_report *r)
{
	a->score = r->score;
	a->n = r->n;
	memcpy(a->note, r->note, sizeof(a->note));
	free(a->findings);
	a->findings = xcalloc(r->n + 1, sizeof(*a->findings));
	memcpy(a->findings, r->finding, r->n * sizeof(*a->findings));
	for (size_t i = 0; i < r->n; i++)
		a->c->figures.findings[r->finding[i].family]++;
}

/* What was found in it is replaced. */
static int rewrite(struct gate_ask *a, const struct gate_finding *f, size_t n,
		   struct err *err)
{
	const struct gate_turn *t = gate_job_turn(a->job);
	struct reading *note = a->c->cfg.note;
	bool began = reading_begin(note, t->job, t->epoch, READING_TEXTS);
	int r = gate_job_anonymise(a->job, f, n, a->parts, err);

	reading_end(note, began);
	return r;
}

static bool is_plain(const struct gate_finding *f, const struct gate_parts *p)
{
	return f->depth == 0 && !f->is_split && f->part < p->n &&
	       p->part[f->part].kind == GATE_PART_TEXT;
}

/* The job's own key and what was planted in it, replaced wherever they are. True: that is looked at as if it
 * had come so. */
static bool replace_own(struct gate_ask *a)
{
	cleanup_free struct gate_finding *own = xcalloc(a->n + 1, sizeof(*own));
	bool key = false, planted = false;
	size_t n = 0;

	if (!a->job || had_own(a) || !str_starts(a->destination, "portal:"))
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct gate_finding *f = &a->findings[i];

		if (f->family != GATE_CANARY && f->family != GATE_PLANTED)
			continue;
		if (!is_plain(f, a->parts))
			return false;
		key |= f->family == GATE_CANARY;
		planted |= f->family == GATE_PLANTED;
		own[n++] = *f;
	}
	if (n == 0 || rewrite(a, own, n, NULL) < 0)
		return false;
	a->had_key = key;
	a->had_planted = planted;
	return true;
}

static void look_again(struct gate_lane *c, struct gate_ask *a)
{
	a->is_again = true;
	gate_ask_is_read(a);
	gate_lane_put_back(c, a);
}

static void pass(struct gate_ask *a, enum gate_verdict verdict,
		 const struct gate_report *r)
{
	if (a->job)
		gate_job_sent(a->job, a->destination, a->parts, r);
	finish(a, verdict, r->score, NULL);
}

static void refuse_unread(struct gate_ask *a)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_GIT_REQUEST, "%s",
			 a->note[0] ? a->note : "it took too long, or is too large");
	finish(a, GATE_REFUSE, a->score, &err);
}

static bool is_of_git(const struct gate_ask *a)
{
	const struct gate_parts *p = a->parts;

	return p->n > 0 && gate_part_is_git(p->part[p->n - 1].kind);
}

/* True: it goes to the worker once more. */
static bool anonymise(struct gate_ask *a)
{
	struct err err = ERR_INIT;

	if (rewrite(a, a->findings, a->n, &err) < 0) {
		finish(a, GATE_REFUSE, a->score, &err);
		return false;
	}
	a->rewritten++;
	return true;
}

/* What a placeholder made of the text beside it, or was hidden by what it replaced. */
static bool anonymise_more(struct gate_ask *a, const struct gate_report *r)
{
	return a->rewritten++ < REWRITES_MAX && rewrite(a, r->finding, r->n, NULL) == 0;
}

void gate_lane_take_report(struct gate_lane *c, const struct gate_report *r)
{
	struct gate_ask *a = c->first;
	enum gate_verdict v = judge(c, r->score);

	gate_ask_has_read(a);
	gate_ask_gets_back(a, r->unpacked);
	gate_lane_take_out(a);
	c->figures.scan_usec += clock_boot_usec() - c->began;
	if (a->is_cancelled) {
		gate_ask_free(a);
		return;
	}
	if (!a->rewritten)
		remember(a, r);
	if (!a->rewritten && v == GATE_REFUSE && replace_own(a))
		look_again(c, a);
	else if (a->rewritten && v == GATE_PASS)
		pass(a, GATE_ANONYMISE, r);
	else if (a->rewritten && v == GATE_ANONYMISE && anonymise_more(a, r))
		look_again(c, a);
	else if (a->rewritten)
		refuse(a, ERRID_GATE_PRIVATE, r->score, "still, after anonymising");
	else if (v == GATE_PASS)
		pass(a, had_own(a) ? GATE_ANONYMISE : GATE_PASS, r);
	else if (v == GATE_REFUSE && is_of_git(a) && has_family(a, GATE_UNREADABLE))
		refuse_unread(a);
	else if (v == GATE_REFUSE && has_family(a, GATE_UNREADABLE))
		refuse(a, ERRID_GATE_UNREADABLE, r->score, "");
	else if (v == GATE_REFUSE)
		refuse(a, ERRID_GATE_PRIVATE, r->score, a->note);
	else if (!a->job)
		finish(a, GATE_ANONYMISE, r->score, NULL);
	else if (anonymise(a))
		look_again(c, a);
}
