/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See err.h.
 */
#define LYCH_ERR_IMPL 1 /* the definitions, not what the analyzers are told */
#include "common/err.h"
#include "common/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_code_info codes[ERR_CODE_MAX_] = {
	[ERR_NONE] = {"none", 200, 0, true},
	[ERR_INVALID] = {"invalid", 400, 2, true},
	[ERR_DENIED] = {"denied", 403, 1, true},
	[ERR_UNAUTH] = {"unauthorized", 401, 1, true},
	[ERR_NOT_FOUND] = {"not_found", 404, 3, true},
	[ERR_CONFLICT] = {"conflict", 409, 1, true},
	[ERR_GONE] = {"gone", 410, 1, true},
	[ERR_TOO_LARGE] = {"too_large", 413, 1, true},
	[ERR_LIMIT] = {"limit", 429, 1, true},
	[ERR_TIMEOUT] = {"timeout", 504, 1, true},
	[ERR_UNAVAILABLE] = {"unavailable", 503, 4, true},
	[ERR_UPSTREAM] = {"upstream", 502, 1, true},
	[ERR_UNSUPPORTED] = {"unsupported", 501, 1, true},
	[ERR_SETUP] = {"setup", 503, 78, true},
	[ERR_SYS] = {"system", 500, 1, false},
	[ERR_INTERNAL] = {"internal", 500, 1, false},
};

static const struct err_info infos[ERRID_MAX_] = {
	[ERRID_NONE] = {"NONE", "LYCH-CORE-000", ERR_INTERNAL, "Unclassified error",
			"See the detail; if it does not help, run 'lych doctor'.", "-"},
#define X(id_, text_, code_, title_, hint_, prior_)                                      \
	[ERRID_##id_] = {#id_, text_, code_, title_, hint_, prior_},
#include "common/errors.def"
#undef X
};

const struct err_code_info *err_code_info(enum err_code code)
{
	if ((unsigned)code >= ERR_CODE_MAX_)
		code = ERR_INTERNAL;
	return &codes[code];
}

const struct err_info *err_info(enum err_id id)
{
	if ((unsigned)id >= ERRID_MAX_)
		id = ERRID_NONE;
	return &infos[id];
}

enum err_id err_id_from_text(const char *text)
{
	for (unsigned i = 1; i < ERRID_MAX_; i++)
		if (str_eq(infos[i].text, text))
			return (enum err_id)i;
	return ERRID_NONE;
}

/* A message is one line wherever it is shown. */
static void flatten(char *s)
{
	char *end = s;

	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
		if (*s != ' ')
			end = s + 1;
	}
	*end = '\0';
}

/* ": text" behind the first at bytes, cut where the object ends. */
static void append(struct err *err, int at, const char *text)
{
	size_t n, len = strlen(text);

	if (at < 0 || (size_t)at + 3 >= sizeof(err->msg))
		return;
	n = (size_t)at;
	err->msg[n++] = ':';
	err->msg[n++] = ' ';
	if (len > sizeof(err->msg) - n - 1)
		len = sizeof(err->msg) - n - 1;
	memcpy(err->msg + n, text, len);
	err->msg[n + len] = '\0';
}

PRINTF_FMT(5, 0)
static void set_va(struct err *err, enum err_code code, enum err_id id, int sys,
		   const char *fmt, va_list ap)
{
	struct err e = {.code = code, .id = id, .sys = sys};
	int n = vsnprintf(e.msg, sizeof(e.msg), fmt, ap);

	if (sys != 0) {
		const char *text = strerrordesc_np(sys);

		append(&e, n, text ? text : "unknown error");
	}
	flatten(e.msg);
	*err = e;
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	set_va(err, code, ERRID_NONE, 0, fmt, ap);
	va_end(ap);
	return -1;
}

int err_set_id(struct err *err, enum err_id id, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	set_va(err, err_info(id)->code, id, 0, fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *err, const char *fmt, ...)
{
	int sys = errno;
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	if (sys == ENOSPC || sys == EDQUOT)
		set_va(err, err_info(ERRID_CORE_DISK_FULL)->code, ERRID_CORE_DISK_FULL,
		       sys, fmt, ap);
	else
		set_va(err, ERR_SYS, ERRID_CORE_SYS, sys, fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys_id(struct err *err, enum err_id id, const char *fmt, ...)
{
	int sys = errno;
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	set_va(err, err_info(id)->code, id, sys, fmt, ap);
	va_end(ap);
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;
	int n;

	if (!err)
		return -1;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	append(err, n, old);
	flatten(err->msg);
	return -1;
}

void err_clear(struct err *err)
{
	if (err)
		*err = (struct err)ERR_INIT;
}

const char *err_text(const struct err *err)
{
	return err_info(err->id)->text;
}

const char *err_title(const struct err *err)
{
	if (err->id != ERRID_NONE)
		return err_info(err->id)->title;
	return err_code_info(err->code)->name;
}

const char *err_hint(const struct err *err)
{
	return err_info(err->id)->hint;
}

int err_exit_code(const struct err *err)
{
	return err_code_info(err->code)->exit_code;
}

int err_http_status(const struct err *err)
{
	return err_code_info(err->code)->http_status;
}
