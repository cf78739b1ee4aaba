/* SPDX-License-Identifier: Apache-2.0 */
/* Each mistake in the options is told before any of them counts; what is right reaches argp as it stands. */
#include "common/args/args.h"

#include "common/mem.h"
#include "common/str.h"
#include <criterion/criterion.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

TestSuite(args, .timeout = 10);

static jmp_buf refused;
static char said[512];
static char seen[256]; /* what argp handed over, letter by letter, values in brackets */

static void refuse(const char *command, const char *text)
{
	cr_expect_str_eq(command, "prog");
	(void)snprintf(said, sizeof(said), "%s", text);
	longjmp(refused, 1);
}

static void see(const char *text)
{
	size_t n = strlen(seen);

	(void)snprintf(seen + n, sizeof(seen) - n, "%s", text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char letter[2] = {(char)key, '\0'};

	(void)state;
	if (key == ARGP_KEY_END || key == ARGP_KEY_INIT || key == ARGP_KEY_SUCCESS ||
	    key == ARGP_KEY_FINI || key == ARGP_KEY_NO_ARGS)
		return 0;
	if (key != ARGP_KEY_ARG && (key < 'a' || key > 'z'))
		return ARGP_ERR_UNKNOWN;
	if (key == ARGP_KEY_ARG && strcmp(arg, "most") == 0)
		return ARGP_ERR_UNKNOWN;
	see(key == ARGP_KEY_ARG ? "" : letter);
	if (arg) {
		see("[");
		see(arg);
		see("]");
	}
	return 0;
}

static const struct argp_option options[] = {
	{"size", 's', "BYTES", 0, "", 0},
	{"since", 'i', "TIME", 0, "", 0},
	{"json", 'j', NULL, 0, "", 0},
	{"wait", 'w', "SEC", OPTION_ARG_OPTIONAL, "", 0},
	{0},
};
static const struct argp argp = {.options = options, .parser = parse};

static const struct args_voice voice = {refuse, args_flush};

/* words: one command line behind the name, a blank between two. */
static const char *read_line(const char *words)
{
	static char text[256];
	static char name[] = "prog";
	char *argv[16] = {name};
	int argc = 1;

	said[0] = seen[0] = '\0';
	(void)snprintf(text, sizeof(text), "%s", words);
	for (char *at = text; *at; at += strcspn(at, " ")) {
		if (*at == ' ')
			*at++ = '\0';
		argv[argc++] = at;
	}
	if (setjmp(refused) == 0)
		args_parse(&argp, argc, argv, 0, NULL, &voice);
	return said;
}

Test(args, mistakes_are_told)
{
	static const char *const cases[][2] = {
		{"--sise 4", "no option '--sise'; did you mean '--size'?"},
		{"--quite", "no option '--quite'"},
		{"-x", "no option '-x'"},
		{"-jx", "no option '-x'"},
		{"--size", "'--size' wants a value: BYTES"},
		{"--siz", "'--size' wants a value: BYTES"},
		{"-s", "'-s' wants a value: BYTES"},
		{"-js", "'-s' wants a value: BYTES"},
		{"--json=1", "'--json' takes no value"},
		{"--help=1", "'--help' takes no value"},
		{"--si 4", "'--si' may be '--size' or '--since'"},
		{"--s", "'--s' may be '--size' or '--since'"},
		{"a most", "one argument too many: 'most'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_str_eq(read_line(cases[i][0]), cases[i][1], "%s: %s",
				 cases[i][0], said);
}

Test(args, what_is_right_counts)
{
	static const char *const cases[][2] = {
		{"--size 4 a", "s[4][a]"},	{"--siz=4", "s[4]"},
		{"-js4 -i -x", "js[4]i[-x]"},	{"--since --json", "i[--json]"},
		{"--wait a", "w[a]"},		{"--wait=3", "w[3]"},
		{"--j -- --nope", "j[--nope]"}, {"a -j", "j[a]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_expect_str_eq(read_line(cases[i][0]), "", "%s: %s", cases[i][0], said);
		cr_expect_str_eq(seen, cases[i][1], "%s: %s", cases[i][0], seen);
	}
}

/* With POSIXLY_CORRECT a command line means what it means without. */
Test(args, the_environment_changes_no_order)
{
	char variable[] = "POSIXLY_CORRECT=1";
	char *with[] = {variable, NULL};
	char **before = environ;

	environ = with;
	cr_expect_str_eq(read_line("a -j b --size 4 -- -c --nope"), "", "%s", said);
	cr_expect_str_eq(seen, "js[4][a][b][-c][--nope]", "%s", seen);
	cr_expect_str_eq(read_line("a --nope"), "no option '--nope'");
	cr_expect_str_eq(read_line("most -j"), "one argument too many: 'most'");
	environ = before;
	(void)read_line("a -j b --size 4 -- -c --nope");
	cr_expect_str_eq(seen, "js[4][a][b][-c][--nope]", "%s", seen);
}

static bool has_json(unsigned flags, const char *words)
{
	char text[256], *argv[16];
	int argc = 0;

	(void)snprintf(text, sizeof(text), "prog %s", words);
	for (char *at = text; *at; at += strcspn(at, " ")) {
		if (*at == ' ')
			*at++ = '\0';
		argv[argc++] = at;
	}
	return args_have_flag(&argp, argc, argv, flags, "json");
}

Test(args, a_flag_is_seen_among_mistakes)
{
	cr_expect(has_json(0, "--nope a --json"));
	cr_expect(has_json(0, "-xj"));
	cr_expect(has_json(0, "--size 4 --js"));
	cr_expect(has_json(0, "--wait --json"));
	cr_expect(!has_json(0, "--size --json"), "a value");
	cr_expect(!has_json(0, "-s -j"), "a value");
	cr_expect(!has_json(0, "-sj"), "a value");
	cr_expect(!has_json(0, "--since=1 -- --json"), "behind --");
	cr_expect(!has_json(ARGP_IN_ORDER, "--nope run --json"), "the job's own");
	cr_expect(has_json(ARGP_IN_ORDER, "-i 1 --json run"));
}

Test(args, h_is_help, .exit_code = 0)
{
	(void)read_line("-h");
	cr_assert(false, "it went on: %s", said);
}

static const struct argp_option only[] = {
	{"dir", ARGS_ONLY, "DIR", 0, "", 0},
	{0},
};

Test(args, the_only_option_is_given)
{
	char name[] = "prog verb", dir[] = "--dir=/x";
	char *argv[] = {name, dir, NULL};

	cr_expect_str_eq(args_only(only, "", 2, argv), "/x");
}

Test(args, the_only_option_is_required, .exit_code = 2)
{
	char name[] = "prog verb";
	char *argv[] = {name, NULL};

	(void)args_only(only, "", 1, argv);
}

Test(args, output_that_is_lost_is_an_error)
{
	cr_assert(freopen("/dev/full", "w", stdout));
	cr_expect_eq(args_flush("prog"), 0, "nothing was printed");
	(void)printf("x");
	cr_expect_eq(args_flush("prog"), 1);
}

Test(args, help_that_is_lost_is_an_error, .exit_code = 1)
{
	char name[] = "prog", help[] = "--help";
	char *argv[] = {name, help, NULL};

	cr_assert(freopen("/dev/full", "w", stdout));
	args_read(&argp, 2, argv, 0, NULL);
}

Test(args, others_are_told_in_two_lines_and_unprintable_bytes_are_shown, .exit_code = 2)
{
	args_refuse("/usr/bin/prog verb", "no option '--\x1b[31m\xe2\x80\xae'");
}
