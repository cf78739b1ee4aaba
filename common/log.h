/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * key=value lines on stderr for journald: "<6>ts=... unit=vessel msg=\"...\" k=v".
 * Values are quoted and control bytes escaped, so text from a job cannot forge
 * a line. Libraries do not log; only main.c, api_* and loop callbacks do.
 */
#ifndef LYCH_COMMON_LOG_H
#define LYCH_COMMON_LOG_H

#include "common/attr.h"
#include "common/err.h"

enum log_level { LOG_ERROR_ = 3, LOG_WARN_ = 4, LOG_INFO_ = 6, LOG_DEBUG_ = 7 };

/* unit: a literal ("vessel"). Default level is info. */
void log_init(const char *unit, enum log_level max_level);

/*
 * log_kv(LOG_INFO_, "job claimed", "job", "42", "queue", "main", NULL);
 * Pairs of NUL-terminated strings, ended by NULL.
 */
void log_kv(enum log_level level, const char *msg, ...) __attribute__((sentinel));
/* One error with its public code and hint. */
void log_err(enum log_level level, const char *msg, const struct err *err);
void log_info(const char *fmt, ...) PRINTF_FMT(1, 2);
void log_warn(const char *fmt, ...) PRINTF_FMT(1, 2);

#endif
