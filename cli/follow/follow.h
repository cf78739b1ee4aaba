/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Follow one job to its end: output live, Ctrl-C cancels, a lost stream is resumed.
 */
#ifndef LYCH_CLI_FOLLOW_FOLLOW_H
#define LYCH_CLI_FOLLOW_FOLLOW_H

#include "cli/base/client.h"
#include "cli/base/sse.h"
#include "cli/follow/feed.h"
#include "cli/ui/log_filter.h"
#include "cli/ui/render.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stdint.h>

struct follow {
	struct client *client;
	const char *socket; /* for the second connection that a cancel needs */
	job_id_t id;
	bool json;	  /* NDJSON events instead of output */
	const char *only; /* NULL: both; "stdout" or "stderr": this one, on stdout */
	struct feed *
		feed; /* of one that cancels: its stdin comes from us meanwhile; NULL: no */
	struct tty *tty; /* the feed's own: the job's stdout is shown there; NULL: no */
	bool quiet;	 /* no output at all: only wait */
	struct buf *const *keep; /* [2], instead of output: the beginning of each, as far
			   * as they take it; NULL: no */
	bool takes;		 /* the terminal, from whoever is at it */
	bool cancels; /* SIGINT and SIGTERM cancel the job (run), and so does the vessel
			 when we are gone; else they end the following */
	/* result */
	struct json *job; /* of the end event; owned */
	int stopped_by;	  /* signal that ended the following, 0 */
	bool damaged;	  /* some of its output could not be read; it was told */
	/* internal */
	char last_id[SSE_ID_SIZE]; /* where a lost stream goes on */
	uint64_t offset[2];
	struct log_filter filter[2];
	bool terminal[2];
	int sigfd;
	unsigned interrupts;
	usec_t cancel_at; /* when a vessel that did not answer is asked again; 0: never */
	bool unanswered;  /* the vessel has said nothing to this command yet */
	bool is_begun;	  /* more is known of it than that it waits */
	usec_t ask_at;	  /* when a person is told why it waits; 0: never */
	uint64_t events;  /* that have come, on every connection together */
};

/* Block the signals early, so that none is lost between submit and follow. */
MUST_CHECK int follow_init(struct follow *f, struct client *c, const char *socket,
			   struct err *err);
/* Before follow_job(), of a feed that has a terminal. */
MUST_CHECK int follow_at_terminal(struct follow *f, struct feed *feed, struct err *err);
/* Before follow_job(): so many bytes of this attempt's streams are known. */
void follow_from(struct follow *f, int64_t epoch, const uint64_t bytes[2]);
/* Until the job's end (f->job set) or until told to stop (f->stopped_by). */
MUST_CHECK int follow_job(struct follow *f, struct err *err);
/* Ask the vessel to cancel the job, on a connection of its own. */
MUST_CHECK int follow_cancel(const struct follow *f, struct err *err);
void follow_done(struct follow *f);

#endif
