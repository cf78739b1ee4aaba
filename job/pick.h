/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * One value out of a JSON text, by its path: "choices.0.message.content". For texts that
 * a stranger wrote and only a person reads: it stays inside them whatever they are, goes
 * at most 64 levels deep, and does not judge the rest. Where a name is there twice, the
 * first one is meant.
 */
#ifndef LYCH_JOB_PICK_H
#define LYCH_JOB_PICK_H

#include "common/attr.h"
#include "common/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value as it stands there (into json); false: there is none. */
bool pick_raw(const char *json, size_t len, const char *path, const char **ret,
	      size_t *ret_len);
/* A string, its escapes resolved, added to out. */
bool pick_text(const char *json, size_t len, const char *path, struct buf *out);
bool pick_u64(const char *json, size_t len, const char *path, uint64_t max,
	      uint64_t *ret);

#endif
