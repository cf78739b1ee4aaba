/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See args.h.
 */
#include "common/args/args.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/near.h"
#include "common/str.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)64 << 10)

struct reading {
	const struct argp *argp;
	int argc, next; /* next: the argument that is looked at */
	char **argv;
	const struct args_voice *voice;
};

/* ---- telling ------------------------------------------------------------------- */

static const char *base_of(const char *command)
{
	const char *slash = strrchr(command, '/');

	return slash ? slash + 1 : command;
}

static void tell(const char *name, const char *title, const char *text)
{
	cleanup_buf struct buf shown = {.max = 4 * TEXT_MAX};

	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p < 0x20 || *p >= 0x7f)
			buf_addf(&shown, "\\x%02x", *p);
		else
			buf_addc(&shown, (char)*p);
	(void)fprintf(stderr, "%.*s: %s: %s\n", (int)strcspn(name, " "), name, title,
		      buf_str(&shown));
}

int args_fail(const char *program, const struct err *err)
{
	tell(base_of(program), err_title(err), err->msg);
	(void)fprintf(stderr, "      %s  %s\n", err_text(err), err_hint(err));
	return err_exit_code(err);
}

void args_refuse(const char *command, const char *text)
{
	const char *name = base_of(command);

	tell(name, err_info(ERRID_CORE_USAGE)->title, text);
	(void)fprintf(stderr, "      %s  See '%s --help'.\n",
		      err_info(ERRID_CORE_USAGE)->text, name);
	exit(ARGS_EXIT_USAGE);
}

void args_error(const struct argp_state *state, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	args_refuse(state->name, text);
}

NORETURN PRINTF_FMT(2, 3) static void refuse(const struct reading *r, const char *fmt,
					     ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->voice->refuse(r->argv[0], text);
	exit(ARGS_EXIT_USAGE);
}

/* ---- reading ------------------------------------------------------------------- */

const struct argp_option *args_option_at(const struct argp *argp, size_t at)
{
	const struct argp_option *o = argp->options;

	for (; o && (o->name || o->key); o++)
		if (at-- == 0)
			return o;
	/* no child has children of its own */
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		for (o = c->argp->options; o && (o->name || o->key); o++)
			if (at-- == 0)
				return o;
	return NULL;
}

static const char *const builtin[] = {"help", "usage"};

NORETURN static void refuse_long(const struct reading *r, const char *name, size_t len)
{
	struct near n = {.word = name, .len = len};
	const struct argp_option *o;

	for (size_t i = 0; (o = args_option_at(r->argp, i)); i++)
		if (o->name)
			near_offer(&n, o->name);
	for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
		near_offer(&n, builtin[i]);
	if (n.best)
		refuse(r, "no option '--%.*s'; did you mean '--%s'?", (int)len, name,
		       n.best);
	refuse(r, "no option '--%.*s'", (int)len, name);
}

/* The option's own value, where it must have one and it stands in the next argument. */
static void take_next(struct reading *r, const struct argp_option *o, const char *dashes,
		      size_t len, const char *name)
{
	if (o->flags & OPTION_ARG_OPTIONAL)
		return;
	if (++r->next >= r->argc)
		refuse(r, "'%s%.*s' wants a value: %s", dashes, (int)len, name, o->arg);
}

/* Which options a word may stand for. */
struct meant {
	const char *word;
	size_t len;
	const char *name[2]; /* the first two that begin so; the one that is so, alone */
	const struct argp_option
		*option; /* of the first; NULL: argp's own, which have no value */
	bool is_exact;
};

static void consider(struct meant *m, const char *name, const struct argp_option *o)
{
	if (!name || m->is_exact || strncmp(name, m->word, m->len) != 0)
		return;
	m->is_exact = !name[m->len];
	if (m->is_exact || !m->name[0]) {
		m->name[0] = name;
		m->option = o;
	} else {
		m->name[1] = name;
	}
}

/* A beginning is enough where only one option has it. */
static void check_long(struct reading *r, const char *arg)
{
	struct meant m = {.word = arg, .len = strcspn(arg, "=")};
	const struct argp_option *o;

	for (size_t i = 0; (o = args_option_at(r->argp, i)); i++)
		consider(&m, o->name, o);
	for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
		consider(&m, builtin[i], NULL);
	if (!m.name[0])
		refuse_long(r, arg, m.len);
	if (m.name[1] && !m.is_exact)
		refuse(r, "'--%.*s' may be '--%s' or '--%s'", (int)m.len, arg, m.name[0],
		       m.name[1]);
	if (arg[m.len] && !(m.option && m.option->arg))
		refuse(r, "'--%s' takes no value", m.name[0]);
	if (!arg[m.len] && m.option && m.option->arg)
		take_next(r, m.option, "--", strlen(m.name[0]), m.name[0]);
}

/* Letters in one word; the first that takes a value has the rest of it, or the next one. */
static void check_short(struct reading *r, const char *letters)
{
	for (const char *s = letters; *s; s++) {
		const struct argp_option *o = NULL;

		for (size_t i = 0; (o = args_option_at(r->argp, i)); i++)
			if (o->key == *s)
				break;
		if (!o && *s != '?')
			refuse(r, "no option '-%c'", *s);
		if (!o || !o->arg)
			continue;
		if (!s[1])
			take_next(r, o, "-", 1, s);
		return;
	}
}

/* Whom argp may end while it reads: by exit(0) when it has printed the help. NULL: it does not read. */
static const struct reading *asked;

/* Whether the help could be written argp does not ask. */
static void end_help(void)
{
	int code = asked ? asked->voice->flush(asked->argv[0]) : 0;

	if (code)
		_exit(code);
}

void args_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
		void *input, const struct args_voice *voice)
{
	struct reading r = {.argp = argp, .argc = argc, .argv = argv, .voice = voice};
	bool in_order = (flags & ARGP_IN_ORDER) || getenv("POSIXLY_CORRECT");

	argp_err_exit_status = ARGS_EXIT_USAGE;
	for (r.next = 1; r.next < argc; r.next++) {
		const char *arg = argv[r.next];

		if (str_eq(arg, "--"))
			break;
		if (str_starts(arg, "--"))
			check_long(&r, arg + 2);
		else if (arg[0] == '-' && arg[1])
			check_short(&r, arg + 1);
		else if (in_order)
			break;
	}
	asked = &r;
	(void)atexit(end_help);
	(void)argp_parse(argp, argc, argv, flags, &r.next, input);
	asked = NULL;
	if (r.next < argc)
		refuse(&r, "one argument too many: '%s'", argv[r.next]);
}
