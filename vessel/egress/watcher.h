/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress watcher.
 * The one process of egress that goes on reading files: those of sources.h, again when they have
 * changed (a laptop roams, an authority is taken back). Forked by the egress parent before that
 * confines itself; it may read below /etc and where the usual links from there lead, and has no
 * network, no secret, and nothing of any job.
 */
#ifndef LYCH_VESSEL_EGRESS_WATCHER_H
#define LYCH_VESSEL_EGRESS_WATCHER_H

#include "vessel/egress/egress.h"
#include "vessel/egress/sources.h"
#include <sys/stat.h>
#include <sys/types.h>

/* One file as it was seen. */
struct seen {
	int error;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};
/* As fstatat() has dir and path; NULL: nothing is there. */
struct seen seen_now(int dir, const char *path);
bool seen_are_same(const struct seen *a, const struct seen *b);

struct watched {
	const char *path;
	struct seen last, taken;
};

struct watcher {
	struct sources *sources;
	const char *authorities; /* as sources_authorities() has it */
	struct watched file[SOURCES_];
};

/* What is in the sources is taken to be of the files as they are now. NULL: the host's. */
void watcher_init(struct watcher *w, struct sources *s, const char *resolv_conf,
		  const char *hosts, const char *authorities);
/* Once: what has changed, and has not since the last look, is read, judged, put into the
 * sources, and told in the log. */
void watcher_look(struct watcher *w);

/*
 * Forks it and waits until its walls stand. *ret_fd: its end is the watcher's, and its death
 * ours to see. ERRID_START_CONFINE.
 */
MUST_CHECK int watcher_start(const struct egress_config *cfg, struct sources *s,
			     struct egress_pulse *pulse, pid_t *ret_pid, int *ret_fd,
			     struct confine_report *ret_walls, struct err *err);

#endif
