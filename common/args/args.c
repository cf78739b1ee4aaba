/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See args.h.
 */
#include "common/args/args.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/mem.h"
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
	bool in_order; /* what is no option ends the options */
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
static struct meant find_long(const struct argp *argp, const char *arg)
{
	struct meant m = {.word = arg, .len = strcspn(arg, "=")};
	const struct argp_option *o;

	for (size_t i = 0; (o = args_option_at(argp, i)); i++)
		consider(&m, o->name, o);
	for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
		consider(&m, builtin[i], NULL);
	return m;
}

static const struct argp_option *find_short(const struct argp *argp, char letter)
{
	const struct argp_option *o;

	for (size_t i = 0; (o = args_option_at(argp, i)); i++)
		if (o->key == letter)
			return o;
	return NULL;
}

static bool is_option(const char *arg)
{
	return arg[0] == '-' && arg[1];
}

static void check_long(struct reading *r, const char *arg)
{
	const struct meant m = find_long(r->argp, arg);

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

/* Letters in one word; the first that takes a value has the rest of it, or the next one. argp's letter
 * for help is '?', everybody's is 'h'. */
static void check_short(struct reading *r, char *letters)
{
	for (char *s = letters; *s; s++) {
		const struct argp_option *o = find_short(r->argp, *s);

		if (!o && *s == 'h')
			*s = '?';
		if (!o && *s != '?')
			refuse(r, "no option '-%c'", *s);
		if (!o || !o->arg)
			continue;
		if (!s[1])
			take_next(r, o, "-", 1, s);
		return;
	}
}

bool args_have_flag(const struct argp *argp, int argc, char **argv, unsigned flags,
		    const char *name)
{
	for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++) {
		const struct argp_option *o = NULL;
		bool has_value = false;

		if (str_starts(argv[i], "--")) {
			const struct meant m = find_long(argp, argv[i] + 2);

			o = m.option;
			has_value = m.word[m.len] != '\0';
		} else if (!is_option(argv[i])) {
			if (flags & ARGP_IN_ORDER)
				return false;
		} else {
			for (const char *s = argv[i] + 1; *s && !(o && o->arg); s++) {
				o = find_short(argp, *s);
				has_value = s[1] != '\0';
				if (o && o->name && str_eq(o->name, name))
					return true;
			}
		}
		if (o && o->name && str_eq(o->name, name))
			return true;
		if (o && o->arg && !has_value && !(o->flags & OPTION_ARG_OPTIONAL))
			i++;
	}
	return false;
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

/* Checks each argument. ret has room for twice as many and two more, and gets them with all options first,
 * as argp would read them: but where POSIXLY_CORRECT is in the environment it would not, and a command
 * line means the same everywhere. Returns how many there are in ret. */
static int check_all(struct reading *r, char **ret)
{
	static char dashes[] = "--";
	char **words = ret + r->argc + 2;
	int n = 0, n_words = 0;

	ret[n++] = r->argv[0];
	for (r->next = 1; r->next < r->argc; r->next++) {
		char *arg = r->argv[r->next];
		int first = r->next;

		if (str_eq(arg, "--") || (r->in_order && !is_option(arg)))
			break;
		if (!is_option(arg)) {
			words[n_words++] = arg;
			continue;
		}
		if (str_starts(arg, "--"))
			check_long(r, arg + 2);
		else
			check_short(r, arg + 1);
		while (first <= r->next)
			ret[n++] = r->argv[first++];
	}
	if (r->next < r->argc && str_eq(r->argv[r->next], "--"))
		r->next++;
	if (n_words || r->next < r->argc)
		ret[n++] = dashes;
	for (int i = 0; i < n_words; i++)
		ret[n++] = words[i];
	while (r->next < r->argc)
		ret[n++] = r->argv[r->next++];
	return n;
}

/* Of the command line that is read: who refuses it does not come back. */
static char **sorted;

void args_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
		void *input, const struct args_voice *voice)
{
	struct reading r = {.argp = argp,
			    .argc = argc,
			    .argv = argv,
			    .in_order = flags & ARGP_IN_ORDER,
			    .voice = voice};

	free(sorted);
	sorted = xcalloc(2 * (size_t)argc + 2, sizeof(*sorted));
	argp_err_exit_status = ARGS_EXIT_USAGE;
	r.argc = check_all(&r, sorted);
	if (!r.in_order)
		r.argv = sorted;
	else
		r.argc = argc;
	asked = &r;
	(void)atexit(end_help);
	(void)argp_parse(argp, r.argc, r.argv, flags, &r.next, input);
	asked = NULL;
	if (r.next < r.argc)
		refuse(&r, "one argument too many: '%s'", r.argv[r.next]);
	free(sorted);
	sorted = NULL;
}
