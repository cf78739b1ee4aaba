/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Is the tomb that ran here before dead, with everything that it started? Theory of operation:
 *
 * A tomb is process 1 of a pid namespace, and whatever it started is inside. When such a
 * process ends, the kernel kills everybody else in the namespace and waits until the last of
 * them is gone; only then does it become a zombie that its parent can wait for, and a
 * pidfd of it readable (kernel/exit.c: do_exit() -> exit_notify() ->
 * forget_original_parent() -> find_child_reaper() -> zap_pid_ns_processes(), and after
 * that EXIT_ZOMBIE and do_notify_pidfd()). So: no process of that pid and start time, or a
 * readable pidfd of it, is a proof that no process of the namespace lives. A lock or a
 * pipe that process 1 holds would be none: exit_files() comes before the killing.
 *
 * The record of that process is written before it is let go on, and lies where no tomb can
 * write, for whom it names may be killed. It names the boot too: nothing outlives that,
 * on this machine.
 *
 * Who is to blame: a tomb that died alone was perhaps killed by what it ran. One whose
 * starter is dead too went down with the house, and none of its jobs is suspected.
 */
#ifndef LYCH_CLI_LOCAL_UP_GONE_H
#define LYCH_CLI_LOCAL_UP_GONE_H

#include "common/attr.h"
#include "common/err.h"
#include <sys/types.h>

/* Whom the record names is dead (killed here if need be, and waited for), and so is all that it
 * started. NULL: that is not known; a missing record proves nothing. Else the word for
 * the next tomb. */
MUST_CHECK const char *gone_prove(const char *record);
/* Takes the record away; then tomb is the one that it names, and starter its starter. */
MUST_CHECK int gone_forget(const char *record, struct err *err);
MUST_CHECK int gone_record(const char *record, pid_t tomb, pid_t starter,
			   struct err *err);
/* Leaves the word in the tomb's data directory; NULL: takes away what is there. */
MUST_CHECK int gone_tell(const char *tomb_data, const char *word, struct err *err);

#endif
