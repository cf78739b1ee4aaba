/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What lych doctor puts in harm's way, and how it looks afterwards. All of it is its own.
 */
#ifndef LYCH_CLI_DOCTOR_VICTIMS_H
#define LYCH_CLI_DOCTOR_VICTIMS_H

#include "common/attr.h"
#include "common/err.h"
#include <sys/stat.h>
#include <sys/types.h>

struct victims {
	char *dir;    /* ~/.lych-doctor-XXXXXX, holds all of this */
	char *secret; /* <dir>/key, 0600 */
	char *work;   /* <dir>/work: a workspace for a sandbox */
	char *path;   /* <dir>/s: a listening unix socket */
	char abstract[40];
	int fd_path, fd_abstract, fd_tcp, fd_udp;
	unsigned tcp, udp;
	pid_t pid; /* a process that only waits */
	struct stat before;
};

/* ~/.lych-doctor-XXXXXX, not made yet. Caller frees. */
char *victims_name(const char *home);
/* In that directory, which is made. */
MUST_CHECK int victims_make(const char *dir, struct victims *ret, struct err *err);
/* The directory with all that is in it; nothing is no error. */
void victims_remove(const char *dir);
/* NULL when nothing happened to any of them, else what did. known_touch: the time stamps
 * may have changed (the documented gap of grade floor); the next judgement starts from
 * there. */
const char *victims_judge(struct victims *v, bool known_touch);
void victims_done(struct victims *v);

#endif
