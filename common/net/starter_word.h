/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the scribe and the tomb.
 * What `lych up` says to each of its daemons on their command lines: one table for all of them.
 */
#ifndef LYCH_COMMON_NET_STARTER_WORD_H
#define LYCH_COMMON_NET_STARTER_WORD_H

#include <argp.h>
#include <stdbool.h>

struct starter_word {
	int ready_fd;  /* where to say that it is ready (notify.h); -1: nowhere */
	bool unrooted; /* daemons: no_private_root */
	int dial_fd;   /* with it, where to be connected (dial.h); -1: no need */
};
#define STARTER_WORD_NONE {.ready_fd = -1, .dial_fd = -1}

/* Above the numbers of any daemon's own. */
enum {
	STARTER_READY_FD = 0x10000,
	STARTER_UNROOTED,
	STARTER_DIAL_FD,
};

/* Rows for the table of a daemon's options. */
#define STARTER_ROW_READY_FD                                                             \
	{"ready-fd", STARTER_READY_FD, "N", 0, "Write READY=1 to this descriptor", 0}
#define STARTER_ROW_UNROOTED                                                             \
	{"no-private-root", STARTER_UNROOTED, NULL, 0, "Stand without user namespaces", 0}
#define STARTER_ROW_DIAL_FD                                                              \
	{"dial-fd",                                                                      \
	 STARTER_DIAL_FD,                                                                \
	 "N",                                                                            \
	 0,                                                                              \
	 "With --no-private-root: where to ask for connected descriptors",               \
	 0}

/* false: it is another option. What is wrong with it ends the process, by args_error(). */
bool starter_word_parse(struct starter_word *w, int key, const char *arg,
			struct argp_state *state);
/* At the end, of a daemon that has all three rows. */
void starter_word_check(const struct starter_word *w, struct argp_state *state);

#endif
