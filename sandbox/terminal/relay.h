/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox and the relay.
 * The process that passes the bytes on, between a person's terminal and a job's own: what is typed
 * goes to the job as it is, what the job writes goes through the filter (common/term/filter.h).
 *
 * It is what a job's bytes are read by, and so it has nothing but the two terminals and a socket
 * to its parent, and can do nothing but read, write and wait (relay_walls.h). All that needs more
 * (modes, sizes, signals, the end) is the parent's (terminal.h).
 *
 * Each way has one buffer, and nothing is read before it is empty: a terminal that takes nothing
 * stops the job's writes, a job that reads nothing stops the typing, and neither stops the relay.
 * What was typed is nowhere but in its buffer, and not there any more when it is passed on.
 *
 * Whose the terminal is. Each read of a terminal is a question that the kernel answers by stopping who
 * asks (SIGTTIN) when its process group is not the one in the foreground; it does so before it looks
 * how much is to be read. The relay is in its parent's process group, with that signal at its default.
 * So when the parent is stopped in a way that it cannot see coming (SIGSTOP, SIGTTIN) and the shell
 * has taken the terminal, the next key stops the relay before it is read; and before each write it reads
 * nothing, which does the same. Nothing in here decides it and no call is needed beyond read. The stop is
 * that of the whole group, so that what lets the group go on (fg) lets both go on. What had passed
 * that question when the shell took the terminal is still written: one buffer, filtered.
 */
#ifndef LYCH_SANDBOX_TERMINAL_RELAY_H
#define LYCH_SANDBOX_TERMINAL_RELAY_H

#include "common/attr.h"
#include <stdint.h>
#include <sys/types.h>

/* Parent and relay: a SEQPACKET pair, a word a packet. The end of either is the end of the relay. */
enum relay_word {
	/* relay -> parent: its walls stand. */
	RELAY_READY = 1,
	/* parent -> relay, with the job's side that is not the job's: now. The person's terminal
	 * knows ASCII only. */
	RELAY_BEGIN,
	RELAY_BEGIN_ASCII,
	/* parent -> relay: answered by one of the next two, when what it had is shown. Then it
	 * touches neither terminal until it is told to go on. */
	RELAY_PAUSE,
	RELAY_CLEAN, /* nothing was shown since the last pause */
	RELAY_USED,
	RELAY_GO_ON,
	/* parent -> relay: the job is over. Answered likewise, when all that it has written is
	 * shown, or by the next one when the terminal took nothing for RELAY_STALL_SEC; then it ends. */
	RELAY_END,
	RELAY_LOST,
};

#define RELAY_STALL_SEC 10

/* Of a process that was forked for it. parent_sock: the relay's end. */
NORETURN void relay_main(int person, int parent_sock, pid_t parent);

#endif
