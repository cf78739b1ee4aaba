/* SPDX-License-Identifier: Apache-2.0 */
/* A log in a directory of its own, as its scribe opens it, by a clock that may be set. */
#ifndef LYCH_TESTS_UNIT_VESSEL_SCRIBE_LOG_FIXTURE_H
#define LYCH_TESTS_UNIT_VESSEL_SCRIBE_LOG_FIXTURE_H

#include "common/attr.h"
#include "common/fs.h"
#include "vessel/scribe/log.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[64];
static const struct uuid stream UNUSED = {"aaaaaaaa-1111-4222-8333-444444444444"};
static inline void begin(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/ly-seals-XXXXXX");
	cr_assert(mkdtemp(dir));
}

static inline void end(void)
{
	struct err err = ERR_INIT;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert(fs_remove_beneath(tmp, dir + 5, &err) == 0);
	close(tmp);
}

/* segment_bytes 0: as it comes */
static inline struct scribe_log *open_with(const struct clock_ops *clock,
					   uint64_t segment_bytes, struct err *err)
{
	struct scribe_log_config cfg = {
		.dir = dir,
		.segment_bytes = segment_bytes,
		.clock = clock,
		.rng = &random_real,
		.kernel_boot = {"00000000-1111-4222-8333-444444444444"},
	};
	struct scribe_log *l = NULL;

	return scribe_log_open(&cfg, &l, err) < 0 ? NULL : l;
}

static inline struct scribe_log *must_open_with(const struct clock_ops *clock,
						uint64_t segment_bytes)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = open_with(clock, segment_bytes, &err);

	cr_assert(l, "%s", err.msg);
	cr_assert(scribe_log_commit(l, &err) == 0, "%s", err.msg);
	return l;
}

static inline void add(struct scribe_log *l, uint64_t pseq)
{
	enum scribe_taken taken;
	struct err err = ERR_INIT;

	cr_assert(scribe_log_add(l, "queue", &stream, pseq, "\"a\":1", 5, &taken, &err) ==
				  0 &&
			  scribe_log_commit(l, &err) == 0,
		  "%s", err.msg);
}

static inline void seal(struct scribe_log *l, bool ends_epoch)
{
	struct err err = ERR_INIT;

	cr_assert(scribe_log_seal(l, ends_epoch, &err) == 0, "%s", err.msg);
}

#endif
