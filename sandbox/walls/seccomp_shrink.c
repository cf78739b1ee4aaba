/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * A shorter filter with the same answers. The kernel checks, translates and walks the
 * program at every start of a job, some 0.4 us an instruction, and half of what
 * seccomp_bpf.c emits stands elsewhere too: returns, and the checks that several calls
 * share. Two instructions are of one class when they do the same and what follows them is
 * of one class; each jump is led to one of its target's class that others are led to as
 * well. What nothing reaches any more is left out.
 *
 * Only two facts are used: all jumps go forward, and a return ends the program. Distances
 * only shrink, so a jump that reached before reaches afterwards.
 */
#include "common/attr.h"
#include "sandbox/walls/seccomp_table.h"

#include <linux/filter.h>
#include <string.h>

#define REACH 255 /* of a conditional jump */
#define BUCKETS 256

static bool is_return(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_RET;
}

static bool is_jump(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP && BPF_OP(f->code) == BPF_JA;
}

static bool is_branch(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP && BPF_OP(f->code) != BPF_JA;
}

static size_t target(const struct sock_filter *out, size_t at, bool taken)
{
	return at + 1 + (taken ? out[at].jt : out[at].jf);
}

/* What an instruction does: itself, and the classes of what may follow. */
struct effect {
	uint32_t k;
	uint16_t code, yes, no;
};

static struct effect effect_of(const struct sock_filter *out, size_t i,
			       const uint16_t *class)
{
	struct effect d = {.k = out[i].k, .code = out[i].code};

	if (is_branch(&out[i])) {
		d.yes = class[target(out, i, true)];
		d.no = class[target(out, i, false)];
	} else if (!is_return(&out[i])) {
		d.yes = class[i + 1];
	}
	return d;
}

/* Numbers the classes; the last of a class gives it its number. */
static void classify(const struct sock_filter *out, size_t n, uint16_t *class)
{
	static struct effect effect[SC_PROGRAM_MAX];
	static uint16_t next[SC_PROGRAM_MAX]; /* with the same hash; 0 ends */
	uint16_t head[BUCKETS] = {0};

	for (size_t i = n; i-- > 0;) {
		unsigned hash;
		uint16_t same;

		if (is_jump(&out[i])) { /* does nothing itself */
			class[i] = class[i + 1 + out[i].k];
			continue;
		}
		effect[i] = effect_of(out, i, class);
		hash = (effect[i].k + effect[i].code + effect[i].yes * 5u +
			effect[i].no * 3u) %
		       BUCKETS;
		for (same = head[hash]; same; same = next[same])
			if (effect[same].k == effect[i].k &&
			    effect[same].code == effect[i].code &&
			    effect[same].yes == effect[i].yes &&
			    effect[same].no == effect[i].no)
				break;
		class[i] = same ? same : (uint16_t)i;
		if (same)
			continue;
		next[i] = head[hash];
		head[hash] = (uint16_t)i;
	}
}

/* One of the class of `to` for a jump at `at`: one that stays anyway, else the farthest
 * that it reaches, which most of those behind it reach too. */
static size_t choose(size_t n, size_t at, size_t to, const uint16_t *class, bool *stays)
{
	size_t last = at + 1 + REACH < n ? at + 1 + REACH : n - 1, farthest = to;

	for (size_t i = last; i > at; i--) {
		if (class[i] != class[to])
			continue;
		if (stays[i])
			return i;
		if (i > farthest)
			farthest = i;
	}
	stays[farthest] = true;
	return farthest;
}

static void lead_jumps(struct sock_filter *out, size_t n)
{
	static bool stays[SC_PROGRAM_MAX];
	static uint16_t class[SC_PROGRAM_MAX];

	classify(out, n, class);
	memset(stays, 0, n * sizeof(*stays));
	for (size_t i = 0; i < n; i++) {
		size_t t, f;

		if (!is_branch(&out[i]))
			continue;
		t = choose(n, i, target(out, i, true), class, stays);
		f = choose(n, i, target(out, i, false), class, stays);
		out[i].jt = (uint8_t)(t - i - 1);
		out[i].jf = (uint8_t)(f - i - 1);
	}
}

static void mark_reached(const struct sock_filter *out, size_t n, bool *reached)
{
	memset(reached, 0, n * sizeof(*reached));
	reached[0] = true;
	/* Jumps go forward: one pass meets each after all that lead to it. */
	for (size_t i = 0; i < n; i++) {
		if (!reached[i] || is_return(&out[i]))
			continue;
		if (is_branch(&out[i])) {
			reached[target(out, i, true)] = true;
			reached[target(out, i, false)] = true;
		} else if (is_jump(&out[i])) {
			reached[i + 1 + out[i].k] = true;
		} else {
			reached[i + 1] = true;
		}
	}
}

size_t sc_shrink(struct sock_filter *out, size_t n)
{
	static bool reached[SC_PROGRAM_MAX];
	static uint16_t at[SC_PROGRAM_MAX]; /* the new place of each */
	size_t kept = 0;

	lead_jumps(out, n);
	mark_reached(out, n, reached);
	for (size_t i = 0; i < n; i++) {
		at[i] = (uint16_t)kept;
		kept += reached[i];
	}
	for (size_t i = 0; i < n; i++) {
		struct sock_filter f = out[i];

		if (!reached[i])
			continue;
		if (is_branch(&f)) {
			f.jt = (uint8_t)(at[target(out, i, true)] - at[i] - 1);
			f.jf = (uint8_t)(at[target(out, i, false)] - at[i] - 1);
		} else if (is_jump(&f)) {
			f.k = (uint32_t)(at[i + 1 + f.k] - at[i] - 1);
		}
		out[at[i]] = f;
	}
	return kept;
}
