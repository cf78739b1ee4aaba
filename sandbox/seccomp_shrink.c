/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shorter filter with the same answers. The kernel checks, translates and walks the
 * program at every start of a job, some 0.25 us an instruction, and two fifths of what
 * seccomp_bpf.c emits are equal returns. Each jump is led to the farthest equal return
 * within its reach; what nothing reaches any more is left out.
 *
 * Only two facts are used: all jumps go forward, and a return ends the program. Distances
 * only shrink, so a jump that reached before reaches afterwards.
 */
#include "common/attr.h"
#include "sandbox/seccomp_table.h"

#include <linux/filter.h>
#include <string.h>

#define REACH 255 /* of a conditional jump */

static bool is_return(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_RET;
}

static bool is_branch(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP && BPF_OP(f->code) != BPF_JA;
}

static size_t target(const struct sock_filter *out, size_t at, bool taken)
{
	return at + 1 + (taken ? out[at].jt : out[at].jf);
}

/* The farthest return equal to the one at `to` that a jump at `at` can lead to. */
static size_t farthest(const struct sock_filter *out, size_t n, size_t at, size_t to)
{
	size_t last = at + 1 + REACH < n ? at + 1 + REACH : n - 1;

	if (!is_return(&out[to]))
		return to;
	while (last > to && !(is_return(&out[last]) && out[last].k == out[to].k))
		last--;
	return last;
}

static void lead_jumps(struct sock_filter *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_branch(&out[i]))
			continue;
		out[i].jt = (uint8_t)(farthest(out, n, i, target(out, i, true)) - i - 1);
		out[i].jf = (uint8_t)(farthest(out, n, i, target(out, i, false)) - i - 1);
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
		} else if (BPF_CLASS(out[i].code) == BPF_JMP) {
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
		} else if (BPF_CLASS(f.code) == BPF_JMP) {
			f.k = (uint32_t)(at[i + 1 + f.k] - at[i] - 1);
		}
		out[at[i]] = f;
	}
	return kept;
}
