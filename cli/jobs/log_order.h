/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The stored output of a job, both streams in the order in which they came to the vessel, and
 * what is left of it by --only, --since and --tail.
 */
#ifndef LYCH_CLI_JOBS_LOG_ORDER_H
#define LYCH_CLI_JOBS_LOG_ORDER_H

#include "cli/base/client.h"
#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_piece {
	int which; /* 0: stdout, 1: stderr */
	uint64_t from, to;
	uint64_t sec; /* when it came; LOG_NO_TIME: that was not noted */
};
#define LOG_NO_TIME UINT64_MAX

struct log_order {
	int64_t epoch;	   /* the attempt */
	uint64_t bytes[2]; /* of each stream, when it was asked for */
	struct log_piece *piece;
	size_t n;
};
void log_order_done(struct log_order *o);
#define cleanup_log_order __attribute__((cleanup(log_order_done)))

void log_order_only(struct log_order *o, int which);
/* From the first piece on that came then or later, or of which that is not known. */
void log_order_since(struct log_order *o, usec_t wall);

/* Reads with what lies ahead; begins with client, id and tainted. */
struct log_reader {
	struct client *client;
	job_id_t id;
	bool tainted; /* of a contained job too */
	struct log_ahead {
		char *data;
		uint64_t at;
		size_t len, room;
	} ahead[2];
	bool is_damaged; /* some of it could not be read, and that was told */
	bool looks_ahead; /* for where the last lines begin: what can't be read is told later */
};
void log_reader_done(struct log_reader *r);
MUST_CHECK int log_order_get(const struct log_reader *r, struct log_order *ret,
			     struct err *err);
#define cleanup_log_reader __attribute__((cleanup(log_reader_done)))

/* Bytes [from, to) of a stream: as many of them as are there now, at least one, until the next
 * call. *ret_len 0: they can't be read; *ret_next is where others follow. */
MUST_CHECK int log_read(struct log_reader *r, int which, uint64_t from, uint64_t to,
			const char **ret, size_t *ret_len, uint64_t *ret_next,
			struct err *err);
/* The last n lines of what is left; one that has no end yet is one. */
MUST_CHECK int log_order_tail(struct log_reader *r, struct log_order *o, uint64_t n,
			      struct err *err);

#endif
