/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See matcher.h.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "vessel/gate/rules/matcher.h"
#include "common/mem.h"
#include "vessel/gate/rules/anchors.h"
#include "vessel/gate/text/runs.h"
#include <hs_runtime.h>
#include <pcre2.h>
#include <string.h>

#define MATCH_LIMIT 400000 /* steps of one search */
#define DEPTH_LIMIT 1000
#define HEAP_LIMIT_KIB 1024

struct compiled {
	pcre2_code *re;
	uint32_t value; /* the group that is the span, or 0 */
	size_t done;	/* where a match could begin before here was searched */
	size_t last;	/* where the last match ended */
	/* GATE_RULE_RUN: the anchor's class and count */
	uint8_t *class;
	size_t run_min;
};

struct gate_matcher {
	hs_database_t *db[GATE_DB_MAX_];
	hs_scratch_t *scratch;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	struct compiled *rule;
	/* The rules of runs; what each of their runs lies in: runs of their classes together. */
	size_t *by_run, n_by_run;
	uint8_t any[256];
	size_t any_min;
	/* the words of the text at hand */
	struct gate_span *word;
	size_t n_words, words_cap;
};

struct run {
	struct gate_matcher *m;
	const char *text;
	size_t len;
	unsigned with, without;
	usec_t deadline;
	gate_matcher_hit *hit;
	void *arg;
	bool gave_up;
	unsigned searches;
};

/* The class of an anchor "[...]{n}", as a table, and n. */
static int read_class(struct gate_matcher *m, const struct gate_rule *rule,
		      struct compiled *c, struct err *err)
{
	const char *close = strstr(rule->anchor, "]{");
	pcre2_match_data *match = pcre2_match_data_create(1, NULL);
	pcre2_code *re = NULL;
	PCRE2_SIZE at;
	int why;

	if (close && rule->anchor[0] == '[')
		re = pcre2_compile((PCRE2_SPTR)rule->anchor,
				   (size_t)(close + 1 - rule->anchor), PCRE2_NEVER_UTF,
				   &why, &at, NULL);
	c->class = xcalloc(256, 1);
	for (unsigned b = 0; re && match && b < 256; b++) {
		unsigned char byte = (unsigned char)b;

		c->class[b] = pcre2_match(re, &byte, 1, 0, 0, match, NULL) > 0;
		m->any[b] |= c->class[b];
		c->run_min = close[2] >= '0' ? strtoul(close + 2, NULL, 10) : 0;
	}
	pcre2_code_free(re);
	pcre2_match_data_free(match);
	if (c->run_min < 4 || c->run_min > 128)
		return err_set_id(err, ERRID_GATE_RULES,
				  "%s: its anchor is no class with a count", rule->name);
	m->by_run[m->n_by_run++] = (size_t)(rule - gate_rules);
	if (m->any_min == 0 || c->run_min < m->any_min)
		m->any_min = c->run_min;
	return 0;
}

static int compile_one(struct gate_matcher *m, const struct gate_rule *rule,
		       struct compiled *c, struct err *err)
{
	int why;
	PCRE2_SIZE at;
	uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL |
			   PCRE2_USE_OFFSET_LIMIT;
	int group;

	if (rule->flags & GATE_RULE_CASELESS)
		options |= PCRE2_CASELESS;
	c->re = pcre2_compile((PCRE2_SPTR)rule->expression, PCRE2_ZERO_TERMINATED,
			      options, &why, &at, NULL);
	if (!c->re)
		return err_set_id(err, ERRID_GATE_RULES, "%s: byte %zu", rule->name, at);
	group = pcre2_substring_number_from_name(c->re, (PCRE2_SPTR) "v");
	c->value = group > 0 ? (uint32_t)group : 0;
	return rule->flags & GATE_RULE_RUN ? read_class(m, rule, c, err) : 0;
}

static bool load(struct gate_matcher *m)
{
	m->match = pcre2_match_data_create(16, NULL);
	m->limits = pcre2_match_context_create(NULL);
	if (!m->match || !m->limits || hs_valid_platform() != HS_SUCCESS)
		return false;
	for (unsigned i = 0; i < GATE_DB_MAX_; i++)
		if (hs_deserialize_database(gate_dbs[i].data, gate_dbs[i].bytes,
					    &m->db[i]) != HS_SUCCESS ||
		    hs_alloc_scratch(m->db[i], &m->scratch) != HS_SUCCESS)
			return false;
	return true;
}

int gate_matcher_new(struct gate_matcher **ret, struct err *err)
{
	struct gate_matcher *m = xnew(struct gate_matcher);

	m->rule = xcalloc(gate_rules_n, sizeof(*m->rule));
	m->by_run = xcalloc(gate_rules_n, sizeof(*m->by_run));
	if (!load(m)) {
		gate_matcher_free(m);
		return err_set_id(err, ERRID_GATE_RULES, "Vectorscan %s refuses them",
				  hs_version());
	}
	(void)pcre2_set_match_limit(m->limits, MATCH_LIMIT);
	(void)pcre2_set_depth_limit(m->limits, DEPTH_LIMIT);
	(void)pcre2_set_heap_limit(m->limits, HEAP_LIMIT_KIB);
	for (size_t i = 0; i < gate_rules_n; i++)
		if (compile_one(m, &gate_rules[i], &m->rule[i], err) < 0) {
			gate_matcher_free(m);
			return -1;
		}
	*ret = m;
	return 0;
}

void gate_matcher_free(struct gate_matcher *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < gate_rules_n; i++) {
		pcre2_code_free(m->rule[i].re);
		free(m->rule[i].class);
	}
	free(m->rule);
	free(m->by_run);
	free(m->word);
	pcre2_match_data_free(m->match);
	pcre2_match_context_free(m->limits);
	(void)hs_free_scratch(m->scratch);
	for (unsigned i = 0; i < GATE_DB_MAX_; i++)
		(void)hs_free_database(m->db[i]);
	free(m);
}

/* One match: judged, told. False: give up. */
static bool judge(struct run *r, const struct gate_rule *rule, const struct compiled *c,
		  bool *ret_is_one)
{
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->m->match);
	size_t group = c->value && v[2 * c->value] != PCRE2_UNSET ? c->value : 0;
	struct gate_match m = {
		.text = r->text,
		.len = r->len,
		.start = v[2 * group],
		.end = v[2 * group + 1],
		.whole = v[0],
		.family = rule->family,
		.severity = rule->severity / 100.0,
	};

	*ret_is_one = m.end > m.start && gate_check(rule->check, &m);
	return !*ret_is_one || r->hit(rule, &m, r->arg);
}

/* All matches that begin in [from, to), from < to. False: give up. */
static bool search(struct run *r, const struct gate_rule *rule, struct compiled *c,
		   size_t from, size_t to)
{
	size_t end = r->len - to > GATE_REACH ? to + GATE_REACH : r->len;

	if (++r->searches % 64 == 0 && clock_thread_usec() > r->deadline)
		return false;
	(void)pcre2_set_offset_limit(r->m->limits, to - 1);
	while (from < to) {
		int n = pcre2_match(c->re, (PCRE2_SPTR)r->text, end, from, 0, r->m->match,
				    r->m->limits);
		const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->m->match);
		bool is_one = false;

		if (n == PCRE2_ERROR_NOMATCH)
			return true;
		if (n < 0)
			return false;
		if (!judge(r, rule, c, &is_one))
			return false;
		/* What is no secret may have swallowed the beginning of one. */
		from = v[1] > v[0] && (is_one || rule->family > GATE_KEYWORD) ? v[1]
									      : v[0] + 1;
		c->last = from;
	}
	return true;
}

static bool is_left_out(const struct run *r, const struct gate_rule *rule)
{
	return rule->flags & r->without || (rule->flags & r->with) != r->with;
}

/* Words that touch are one, and so is a run of one sign; of two that overlap otherwise the
 * longer one is a word. */
static void note_word(struct gate_matcher *m, const char *word, size_t end)
{
	struct gate_span *last = m->n_words ? &m->word[m->n_words - 1] : NULL;
	size_t len = strlen(word), start = end - len;

	if (last && start < last->end && word[0] != word[len - 1]) {
		if (len > last->end - last->start)
			*last = (struct gate_span){.start = start, .end = end};
		return;
	}
	if (last && start <= last->end) {
		last->start = start < last->start ? start : last->start;
		last->end = end;
		return;
	}
	if (!m->word || m->n_words == m->words_cap) {
		m->words_cap = m->words_cap * 2 + 64;
		m->word = xreallocarray(m->word, m->words_cap, sizeof(*m->word));
	}
	m->word[m->n_words++] = (struct gate_span){.start = start, .end = end};
}

static int on_anchor(unsigned id, unsigned long long start __attribute__((unused)),
		     unsigned long long end, unsigned flags __attribute__((unused)),
		     void *arg)
{
	struct run *r = arg;
	const struct gate_rule *rule;
	struct compiled *c;
	size_t back, from, to = (size_t)end;

	if (id >= gate_rules_n) {
		note_word(r->m, gate_words[id - gate_rules_n], (size_t)end);
		return 0;
	}
	rule = &gate_rules[id];
	c = &r->m->rule[id];
	if (is_left_out(r, rule))
		return 0;
	back = rule->flags & GATE_RULE_FAR ? GATE_REACH : GATE_BACK;
	if (rule->flags & GATE_RULE_BEGINS) {
		back = gate_widths[id].max;
		to = to - gate_widths[id].min + 1;
	}
	from = end > back ? (size_t)end - back : 0;
	if (from < c->done)
		from = c->done;
	if (from < c->last)
		from = c->last;
	if (from >= to)
		return 0;
	c->done = to;
	r->gave_up = !search(r, rule, c, from, to);
	return r->gave_up;
}

/* One rule's runs in [at, end). False: give up. */
static bool search_runs_of(struct run *r, size_t rule, size_t at, size_t end)
{
	struct compiled *c = &r->m->rule[rule];

	while ((at = gate_next_run(c->class, c->run_min, r->text, end, at)) < end) {
		if (!search(r, &gate_rules[rule], c, at, at + 1))
			return false;
		at = gate_run_end(c->class, r->text, end, at);
	}
	return true;
}

static bool search_runs(struct run *r)
{
	const struct gate_matcher *m = r->m;
	size_t at = 0, end;

	for (; (at = gate_next_run(m->any, m->any_min, r->text, r->len, at)) < r->len;
	     at = end) {
		end = gate_run_end(m->any, r->text, r->len, at);
		for (size_t i = 0; i < m->n_by_run; i++)
			if (!is_left_out(r, &gate_rules[m->by_run[i]]) &&
			    !search_runs_of(r, m->by_run[i], at, end))
				return false;
	}
	return true;
}

bool gate_matcher_run(struct gate_matcher *m, const char *text, size_t len, unsigned with,
		      unsigned without, usec_t deadline, gate_matcher_hit *hit, void *arg)
{
	struct run r = {
		.m = m,
		.text = text,
		.len = len,
		.with = with,
		.without = without,
		.deadline = deadline,
		.hit = hit,
		.arg = arg,
	};
	enum gate_db_kind kind = without & GATE_RULE_WEAK ? GATE_DB_STRONG : GATE_DB_ALL;
	hs_error_t e;

	for (size_t i = 0; i < gate_rules_n; i++)
		m->rule[i].done = m->rule[i].last = 0;
	m->n_words = 0;
	if (len == 0)
		return true;
	e = hs_scan(m->db[kind], text, (unsigned)len, 0, m->scratch, on_anchor, &r);
	return e == HS_SUCCESS && !r.gave_up && search_runs(&r);
}

const struct gate_span *gate_matcher_words(const struct gate_matcher *m, size_t *ret_n)
{
	*ret_n = m->n_words;
	return m->word;
}
