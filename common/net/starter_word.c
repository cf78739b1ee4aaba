/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the scribe and the tomb.
 * See starter_word.h.
 */
#include "common/net/starter_word.h"

#include "common/args/args.h"
#include "common/str.h"
#include <limits.h>

static int descriptor(const char *option, const char *arg, struct argp_state *state)
{
	uint64_t n = 0;

	if (parse_u64(arg, 3, INT_MAX, &n, NULL) < 0)
		args_error(state, "--%s: a descriptor above 2", option);
	return (int)n;
}

bool starter_word_parse(struct starter_word *w, int key, const char *arg,
			struct argp_state *state)
{
	switch (key) {
	case STARTER_READY_FD:
		w->ready_fd = descriptor("ready-fd", arg, state);
		return true;
	case STARTER_UNROOTED:
		w->unrooted = true;
		return true;
	case STARTER_DIAL_FD:
		w->dial_fd = descriptor("dial-fd", arg, state);
		return true;
	default:
		return false;
	}
}

void starter_word_check(const struct starter_word *w, struct argp_state *state)
{
	if (w->unrooted != (w->dial_fd >= 0))
		args_error(state, "--no-private-root and --dial-fd belong together");
}
