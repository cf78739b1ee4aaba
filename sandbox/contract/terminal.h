/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox, the spawner, keeper and job.
 * The terminal of a job that has one (--tty): what the parent, or the tomb, says of the person's, and
 * what the keeper gives back for it.
 *
 * The pair is of the job's own devpts. The job has one side of it, as stdio and as the controlling
 * terminal of its session. The other side goes to the parent, for the relay that passes the bytes on
 * (sandbox/terminal/relay.h), or to the spawner, for the tomb; it is closed in the keeper before the
 * job's process exists.
 */
#ifndef LYCH_SANDBOX_CONTRACT_TERMINAL_H
#define LYCH_SANDBOX_CONTRACT_TERMINAL_H

#include "common/clock.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <termios.h>

/* As the person's terminal is, the job's begins. */
struct sbx_terminal {
	bool has_modes; /* false: it begins with the kernel's own, and in UTF-8 */
	struct termios modes;
	struct winsize size;
};

/* For the user's other programs, which have too many descriptors under way just now. */
#define TERMINAL_PATIENCE_USEC (5 * USEC_PER_SEC)
/* keeper -> parent, before the job is there; with the descriptors below. */
#define KEEPER_TERMINAL 0x4b03u
struct keeper_terminal {
	uint32_t type;
};
enum {
	TERMINAL_MASTER,
	TERMINAL_SLAVE, /* held open by the parent: without it the end of the job's last
			   opening could not be told from its end */
	TERMINAL_FDS,
};

#endif
