/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See log.h.
 */
#include "common/log.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/str.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192

static const char *log_unit = "lych";
static enum log_level log_max = LOG_INFO_;

void log_init(const char *unit, enum log_level max_level)
{
	log_unit = unit;
	log_max = max_level;
}

/* Quoted, every byte outside printable ASCII and UTF-8 text escaped. */
static void add_quoted(struct buf *b, const char *s)
{
	bool utf8 = utf8_is_valid(s, strlen(s));

	buf_addc(b, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			buf_addf(b, "\\x%02x", c);
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '"');
}

static void begin(struct buf *b, enum log_level level, const char *msg)
{
	char ts[RFC3339_SIZE];

	clock_rfc3339(clock_wall_usec(), ts);
	buf_addf(b, "<%d>ts=%s unit=%s msg=", (int)level, ts, log_unit);
	add_quoted(b, msg);
}

/* One write: lines of several processes on one pipe do not mix. */
static void finish(struct buf *b)
{
	buf_addc(b, '\n');
	if (buf_ok(b))
		(void)!write(STDERR_FILENO, b->data, b->len);
	else
		(void)!write(STDERR_FILENO, "<4>msg=\"log line too long\"\n", 27);
}

void log_kv(enum log_level level, const char *msg, ...)
{
	cleanup_buf struct buf b;
	const char *key, *value;
	va_list ap;

	buf_init(&b, LINE_MAX_BYTES);
	if (level > log_max)
		return;
	begin(&b, level, msg);
	va_start(ap, msg);
	while ((key = va_arg(ap, const char *)) != NULL) {
		value = va_arg(ap, const char *);
		buf_addf(&b, " %s=", key);
		add_quoted(&b, value ? value : "");
	}
	va_end(ap);
	finish(&b);
}

void log_err(enum log_level level, const char *msg, const struct err *err)
{
	log_kv(level, msg, "code", err_text(err), "error", err->msg, "hint",
	       err_hint(err), NULL);
}

PRINTF_FMT(2, 0)
static void log_va(enum log_level level, const char *fmt, va_list ap)
{
	char text[1024];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	log_kv(level, text, NULL);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_va(LOG_INFO_, fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_va(LOG_WARN_, fmt, ap);
	va_end(ap);
}
