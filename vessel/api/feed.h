/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Feeds: a stdin that is streamed, on its way from the client of a job to its tomb; and, of a job
 * with a terminal, the size of the client's window.
 *
 * A feed is a window of STREAM_WINDOW_BYTES. The client fills it (feed_put) and the tomb empties
 * it (feed_take): what the tomb asks for next says what it has, and only that is forgotten here.
 * The client too forgets no byte before the tomb has it. So neither a lost answer nor another
 * vessel after this one loses or doubles a byte, and a job that does not read costs one window,
 * however much somebody has for it. No window is made before the tomb has asked, which it does
 * when the job runs: what waits in the queue costs nothing.
 *
 * Who feeds a job also follows it, on one connection that lives as long as the client does. When
 * that is gone, and no other came within FEED_GONE_USEC, the job's stdin has ended, as that of a
 * program in a pipe whose writer died. Nothing here asks the database, and nothing is stored.
 *
 * A terminal may stay (the spec says so, and the tomb with each question): its stdin does not end then, and
 * clients come and go, each with a name of its own. One is at it at a time. Who comes while another is there
 * is refused, or takes its place: the other is told that it was moved away. What was typed before and is
 * here goes on to the job; it is not kept anywhere else any more.
 *
 * The window's size is not a stream: the tomb says which one it has, and is told the client's when
 * that is another. So a lost answer is given again, and a vessel that does not know the client's
 * size says nothing of it.
 */
#ifndef LYCH_VESSEL_API_FEED_H
#define LYCH_VESSEL_API_FEED_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"
#include "common/proto/job_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Without a client: after one that was here; of a vessel that has seen none yet. */
#define FEED_GONE_USEC (2 * USEC_PER_SEC)
#define FEED_BACK_USEC (60 * USEC_PER_SEC)
/* How long a tomb's question is held; less than it waits for an answer. */
#define FEED_HOLD_USEC (10 * USEC_PER_SEC)

struct feeds;
struct feed_follower;

struct feed_place {
	uint64_t taken;	   /* the tomb has all before it */
	uint64_t received; /* and we have all before this */
	size_t room;	   /* for so many more */
	bool known;	   /* the tomb has asked: the numbers above are numbers */
	bool open;	   /* more is wanted */
	bool ended; /* nothing more comes: the client said so, or was away too long */
	bool moved; /* another client is at the terminal now */
};

/* Of a window; 0: there is none, or it is not known. */
struct feed_window {
	unsigned cols, rows;
};

struct feeds *feeds_new(struct loop *l);
void feeds_free(struct feeds *f); /* tombs that wait are told 503 */

/* Is a client of another name there, whose place is not to be taken? ERRID_TTY_TAKEN. */
MUST_CHECK int feed_may_follow(const struct feeds *f, job_id_t job, const char *name,
			       bool takes, struct err *err);
/* A client that follows this job, which has a terminal or not, and feeds it; who is there by another name is
 * moved away. changed() comes from within feed_take(), and from here when it is moved. */
struct feed_follower *feed_follow(struct feeds *f, job_id_t job, const char *name,
				  bool at_terminal, void (*changed)(void *arg),
				  void *arg);
void feed_unfollow(struct feed_follower *x); /* NULL is fine */
/* The job has ended: nothing is taken for it any more. */
void feed_over(struct feed_follower *x);
struct feed_place feed_place_of(const struct feed_follower *x);

/*
 * What comes at offset; the bytes that are here already are skipped, of the others those that have
 * room are taken: ret->received says how far. end: stdin ends behind them, if all were taken.
 * ERRID_RUN_GAP (ret->received is where to go on), ERRID_RUN_STATE (not now: the job does not
 * read yet, or any more), ERRID_RUN_STREAM (nobody follows the job with this name, or its stdin has
 * ended). *ret_is_fed: somebody follows the job, so that nobody else is to be asked about it.
 */
MUST_CHECK int feed_put(struct feeds *f, job_id_t job, const char *name, uint64_t offset,
			const void *data, size_t len, bool end, struct feed_place *ret,
			bool *ret_is_fed, struct err *err);

/* The client's window has this size now. As feed_put(), and ERRID_TTY_NO_WINDOW. */
MUST_CHECK int feed_resize(struct feeds *f, job_id_t job, const char *name,
			   const struct feed_window *window, bool *ret_is_fed,
			   struct err *err);

/* What a tomb asks. */
struct feed_question {
	uint64_t offset;	   /* it has all before this */
	struct feed_window window; /* of its job, if that has a terminal */
	bool stays;		   /* that terminal does, without a client */
	bool closed;		   /* the job reads no more */
};

/*
 * Takes req, which is answered when there is more: 202 with another size, 206 with the next bytes, 200 with
 * the last ones, and when it is closed; and after FEED_HOLD_USEC with 206 and none. ERRID_RUN_GAP.
 */
void feed_take(struct feeds *f, struct httpd_req *req, job_id_t job,
	       const struct feed_question *q);

#endif
