/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The error object. Owned by the caller, never allocated, the last parameter
 * of a fallible function, untouched on success.
 *
 *	struct err err = ERR_INIT;
 *	if (thing_do(&t, &err) < 0)
 *		return err_wrap(&err, "while doing the thing");
 *
 * Two levels: enum err_code says what kind of failure it is (that decides the
 * HTTP status, the exit code and whether the text may leave the process); enum
 * err_id names the one public error, LYCH-<FAMILY>-<NNN>, with its title and
 * its hint (errors.def, docs/ERRORS.md).
 */
#ifndef LYCH_COMMON_ERR_H
#define LYCH_COMMON_ERR_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

enum err_code {
	ERR_NONE = 0,
	ERR_INVALID, /* the caller's bytes or arguments are wrong */
	ERR_DENIED,  /* known, and not allowed */
	ERR_UNAUTH,  /* who are you? */
	ERR_NOT_FOUND,
	ERR_CONFLICT, /* state or content differs from what was assumed */
	ERR_GONE,     /* lease lost, revoked, stale */
	ERR_TOO_LARGE,
	ERR_LIMIT, /* a rate, budget or count limit */
	ERR_TIMEOUT,
	ERR_UNAVAILABLE, /* a peer or resource is away; try again */
	ERR_UPSTREAM,	 /* a peer answered nonsense */
	ERR_UNSUPPORTED, /* this kernel, host or version cannot */
	ERR_SETUP,	 /* a wall could not be raised: exit 78 */
	ERR_SYS,	 /* a system call failed: see err->sys */
	ERR_INTERNAL,	 /* a bug */
	ERR_CODE_MAX_
};

enum err_id {
	ERRID_NONE = 0,
#define X(id, text, code, title, hint, prior) ERRID_##id,
#include "common/errors.def"
#undef X
	ERRID_MAX_
};

struct err {
	enum err_code code;
	enum err_id id; /* ERRID_NONE: the generic error of its code */
	int sys;	/* errno, or 0 */
	char msg[512];	/* "what failed: why", plain text, no newline */
};

#define ERR_INIT {.code = ERR_NONE}

/* What each code means at the borders. */
struct err_code_info {
	const char *name; /* "invalid" */
	int http_status;
	int exit_code; /* 0 ok, 1 refused/failed, 2 usage, 3 not found, 4 unavailable, 78
			  set-up */
	bool public_text; /* may msg be shown outside this process? */
};

/* One public error of errors.def. */
struct err_info {
	const char *symbol; /* "SPEC_JSON" */
	const char *text;   /* "LYCH-SPEC-001" */
	enum err_code code;
	const char *title;
	const char *hint;  /* what to do about it */
	const char *prior; /* the families of the prior systems it maps to, or "-" */
};

const struct err_code_info *err_code_info(enum err_code code);
const struct err_info *
err_info(enum err_id id); /* never NULL; ERRID_NONE gives LYCH-CORE-000 */
/* "LYCH-SPEC-001" -> id; ERRID_NONE when unknown. */
enum err_id err_id_from_text(const char *text);

/* All of these return -1, so that "return err_set(...)" is one statement. err may be
 * NULL. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_FMT(3, 4);
int err_set_id(struct err *err, enum err_id id, const char *fmt, ...) PRINTF_FMT(3, 4);
/* errno is read first; the text of errno is appended: "open /x: Permission denied". */
int err_sys(struct err *err, const char *fmt, ...) PRINTF_FMT(2, 3);
/* As err_sys with a public id. */
int err_sys_id(struct err *err, enum err_id id, const char *fmt, ...) PRINTF_FMT(3, 4);
/* Prefix context: msg becomes "<fmt>: <msg>". code, id and sys stay. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF_FMT(2, 3);
void err_clear(struct err *err);

#if (defined(__clang_analyzer__) || defined(LYCH_ANALYZER)) && !defined(LYCH_ERR_IMPL)
/* The analyzers see one file at a time: tell them what these return. */
#define err_set(...) (err_set(__VA_ARGS__), -1)
#define err_set_id(...) (err_set_id(__VA_ARGS__), -1)
#define err_sys(...) (err_sys(__VA_ARGS__), -1)
#define err_sys_id(...) (err_sys_id(__VA_ARGS__), -1)
#define err_wrap(...) (err_wrap(__VA_ARGS__), -1)
#endif

static inline bool err_is_set(const struct err *err)
{
	return err->code != ERR_NONE;
}

/* The public text "LYCH-..." of an error, generic when it has no id. */
const char *err_text(const struct err *err);
const char *err_title(const struct err *err);
const char *err_hint(const struct err *err);
int err_exit_code(const struct err *err);
int err_http_status(const struct err *err);

#endif
