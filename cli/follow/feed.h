/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Our stdin as the job's, when it was not all there at once: parts of it go to the vessel while the job
 * is followed, as many as the job has room for. What its tomb does not have yet is kept here
 * (at most STREAM_WINDOW_BYTES), so that another vessel can be given it again.
 *
 * Of a job with a terminal it is what a person types at theirs while that is lent, and what the filter
 * answers for it; and the size of the window.
 */
#ifndef LYCH_CLI_FOLLOW_FEED_H
#define LYCH_CLI_FOLLOW_FEED_H

#include "cli/base/client.h"
#include "cli/follow/tty.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/proto/job_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed {
	char name[STREAM_NAME_SIZE]; /* of the stream; "": there is none */
	struct buf data;	     /* read, and not known to be with the tomb */
	uint64_t base;		     /* of the first byte in data */
	uint64_t
		taken; /* the tomb has all before it; less than base: others typed the rest */
	uint64_t received;     /* what the vessel has */
	size_t room;	       /* and wants beyond that */
	bool is_known;	       /* these numbers are those of the vessel that there is */
	bool at_end;	       /* nothing more can be read */
	bool is_told;	       /* the vessel knows that */
	bool is_over;	       /* nobody wants more */
	bool stays;	       /* at a terminal that others may come to, and leave */
	bool is_joining;       /* it is not known yet where we go on */
	bool is_moved;	       /* somebody else is there now */
	bool is_left;	       /* the person typed that they leave */
	bool is_prefixed;      /* the first of the two keys for it was typed */
	usec_t again;	       /* the vessel had no place for us: not before this */
	struct tty *tty;       /* stdin is that; NULL: it is not */
	unsigned cols, rows;   /* of its window, as the vessel is told */
	bool window_due;       /* the vessel that there is does not know them */
	bool redraw_due;       /* another size comes before: who draws there draws anew */
	struct client *client; /* of its own, beside the one that follows */
	job_id_t job;
};

void feed_init(struct feed *f);
void feed_done(struct feed *f);
#define cleanup_feed __attribute__((cleanup(feed_done)))

/* Read stdin to its end, but not for longer than patience, and no more than max bytes: *ret_whole
 * says whether that was all. Else it gets a name, and is a stream from now on. */
MUST_CHECK int feed_peek(struct feed *f, usec_t patience, size_t max, bool *ret_whole,
			 struct err *err);
/* A person's terminal instead: a stream, whose window has f->cols and f->rows at first. NULL: nobody's
 * yet, for a job whose terminal stays. */
void feed_at(struct feed *f, struct tty *tty);
/* One that stays, and somebody may have been at; the keys of detach.h leave it. */
void feed_join(struct feed *f, struct tty *tty);
/* Of a stream: to this job, on connections of its own. */
MUST_CHECK int feed_open(struct feed *f, const char *socket, job_id_t job,
			 struct err *err);

/* What to wait for: stdin, or -1 while nothing can be sent on. */
int feed_fd(const struct feed *f);
/* Between two looks at the job's events: what is due. ready: feed_fd() can be read. */
MUST_CHECK int feed_turn(struct feed *f, bool ready, struct err *err);
/* The terminal was lent, or its window has another size: the vessel is told, if that is so. */
MUST_CHECK int feed_window(struct feed *f, struct err *err);
/* What the filter of the terminal answers to the job. */
MUST_CHECK int feed_replies(struct feed *f, struct err *err);
/* How far the vessel is: the data of an event `stdin`. */
MUST_CHECK int feed_place(struct feed *f, const struct json *data, struct err *err);
/* Nothing of the events can be read just now: ask how far the vessel is. */
MUST_CHECK int feed_ask(struct feed *f, struct err *err);
/* The events ended: nothing is sent until the next ones say how far the vessel is. */
void feed_pause(struct feed *f);

#endif
