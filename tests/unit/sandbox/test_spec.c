/* SPDX-License-Identifier: Apache-2.0 */
#include "common/str.h"
#include "sandbox/contract/sandbox.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <limits.h>
#include <unistd.h>

TestSuite(sandbox_spec, .timeout = 20);

#define ARGS_MAX 12

struct refusal {
	char args[ARGS_MAX][64]; /* after the program's name, ended by "" after "--" */
	enum err_id id;
};

static int parse_list(const char args[ARGS_MAX][64], struct sbx_spec *spec,
		      struct err *err)
{
	char program[] = "lych-sandbox";
	char *argv[ARGS_MAX + 2] = {program};
	char text[ARGS_MAX][64];
	int n = 0;

	memcpy(text, args, sizeof(text));
	while (n < ARGS_MAX && text[n][0]) {
		argv[n + 1] = text[n];
		n++;
	}
	return sbx_spec_parse(n + 1, argv, spec, err);
}

static struct refusal refusals[] = {
	{{""}, ERRID_SPEC_ARGV},
	{{"--"}, ERRID_SPEC_ARGV},
	{{"true"}, ERRID_CORE_USAGE},
	{{"-x", "--", "true"}, ERRID_CORE_USAGE},
	{{"--gradex", "full", "--", "true"}, ERRID_CORE_USAGE},
	{{"--grad", "full", "--", "true"}, ERRID_CORE_USAGE},
	{{"--dev-bind", "/", "--", "true"}, ERRID_CORE_USAGE},
	{{"--timeout"}, ERRID_CORE_USAGE},
	{{"--json=1", "--", "true"}, ERRID_CORE_USAGE},
	{{"--tty=yes", "--", "true"}, ERRID_CORE_USAGE},
	{{"--tty", "--tty", "--", "true"}, ERRID_CORE_USAGE},
	{{"--tty", "--grade", "floor", "--", "true"}, ERRID_TTY_GRADE},
	{{"--explain=yes", "--", "true"}, ERRID_CORE_USAGE},
	{{"--explain", "--explain", "--", "true"}, ERRID_CORE_USAGE},
	{{"--limit", "--", "true"}, ERRID_SPEC_KEY},
	{{"--limit", "=", "--", "true"}, ERRID_SPEC_KEY},
	{{"--limit", "grace=1", "--", "true"}, ERRID_SPEC_KEY},
	{{"--limit", "mem=1GiB", "--", "true"}, ERRID_SPEC_KEY},
	{{"--limit", "memoryx=1GiB", "--", "true"}, ERRID_SPEC_KEY},
	{{"--limit", "memory", "--", "true"}, ERRID_CORE_USAGE},
	{{"--limit", "memory=", "--", "true"}, ERRID_NONE},
	{{"--limit", "cpus=0", "--", "true"}, ERRID_NONE},
	{{"--limit", "timeout=0", "--", "true"}, ERRID_NONE},
	{{"--limit", "memory=1GiB", "--memory", "1GiB", "--", "true"}, ERRID_CORE_USAGE},
	{{"--limit", "cpus=1", "--limit", "cpus=2", "--", "true"}, ERRID_CORE_USAGE},
	{{"--grade", "auto", "--", "true"}, ERRID_SPEC_RANGE},
	{{"--grade", "full", "--grade", "floor", "--", "true"}, ERRID_CORE_USAGE},
	{{"--network", "host", "--", "true"}, ERRID_SPEC_RANGE},
	{{"--processes", "0", "--", "true"}, ERRID_NONE},
	{{"--processes", "-1", "--", "true"}, ERRID_NONE},
	{{"--processes", "1e3", "--", "true"}, ERRID_NONE},
	{{"--processes", "5000", "--", "true"}, ERRID_NONE},
	{{"--nofile", "3", "--", "true"}, ERRID_NONE},
	{{"--memory", "12abc", "--", "true"}, ERRID_NONE},
	{{"--memory", "99999999999999999999", "--", "true"}, ERRID_NONE},
	{{"--timeout", "0", "--", "true"}, ERRID_NONE},
	{{"--timeout", "-1", "--", "true"}, ERRID_NONE},
	{{"--workspace", "/", "--", "true"}, ERRID_SPEC_PATH},
	{{"--workspace", "..", "--", "true"}, ERRID_NONE},
	{{"--workspace", "/tmp/../etc", "--", "true"}, ERRID_NONE},
	{{"--workspace", "/a", "--workspace-ro", "/b", "--", "true"}, ERRID_CORE_USAGE},
	{{"--ro", "/", "--", "true"}, ERRID_SPEC_PATH},
	{{"--ro", "/proc", "--", "true"}, ERRID_SPEC_PATH},
	{{"--rw", "/dev/shm", "--", "true"}, ERRID_SPEC_PATH},
	{{"--rw", "/tmp", "--", "true"}, ERRID_SPEC_PATH},
	{{"--ro", "/run", "--", "true"}, ERRID_SPEC_PATH},
	{{"--ro", "/nonexistent/x", "--", "true"}, ERRID_SPEC_PATH},
	{{"--ro", "/usr", "--rw", "/usr", "--", "true"}, ERRID_SPEC_PATH},
	{{"--cwd", "work", "--", "true"}, ERRID_SPEC_PATH},
	{{"--env", "A", "--", "true"}, ERRID_SPEC_ENV},
	{{"--env", "=1", "--", "true"}, ERRID_SPEC_ENV},
	{{"--env", "1A=1", "--", "true"}, ERRID_SPEC_ENV},
	{{"--env", "A B=1", "--", "true"}, ERRID_SPEC_ENV},
	{{"--env", "BASH_FUNC_x%%=()", "--", "true"}, ERRID_SPEC_ENV},
	{{"--env", "A=1", "--env", "A=2", "--", "true"}, ERRID_SPEC_ENV},
	{{"--hostname", "-x", "--", "true"}, ERRID_SPEC_RANGE},
	{{"--hostname", "a b", "--", "true"}, ERRID_SPEC_RANGE},
	{{"--hostname", "a\nb", "--", "true"}, ERRID_SPEC_RANGE},
};

ParameterizedTestParameters(sandbox_spec, bad_command_lines_are_refused)
{
	return cr_make_param_array(struct refusal, refusals,
				   sizeof(refusals) / sizeof(refusals[0]));
}

ParameterizedTest(struct refusal *c, sandbox_spec, bad_command_lines_are_refused)
{
	struct err err = ERR_INIT;
	struct sbx_spec spec;

	cr_assert_eq(parse_list(c->args, &spec, &err), -1, "%s %s", c->args[0],
		     c->args[1]);
	cr_assert(err_is_set(&err));
	if (c->id != ERRID_NONE)
		cr_assert_eq(err.id, c->id, "%s %s: %s: %s", c->args[0], c->args[1],
			     err_text(&err), err.msg);
	cr_assert_null(spec.argv, "nothing is left of a refused spec");
	cr_assert_null(spec.workspace);
}

static bool has_env(const struct sbx_spec *s, const char *pair)
{
	for (char *const *e = s->env; *e; e++)
		if (str_eq(*e, pair))
			return true;
	return false;
}

Test(sandbox_spec, defaults_stand_without_options)
{
	const char args[ARGS_MAX][64] = {"--", "true", "--grade"};
	struct err err = ERR_INIT;
	struct sbx_spec s;

	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(s.grade, GRADE_FULL);
	cr_assert_eq(s.net, NET_LOOPBACK);
	cr_assert_eq(s.memory_bytes, LIMIT_MEMORY_DEFAULT);
	cr_assert_eq(s.timeout_usec, LIMIT_TIMEOUT_USEC_DEFAULT);
	cr_assert_eq(s.workspace_fd, -1);
	cr_assert_str_eq(s.argv[0], "true");
	cr_assert_str_eq(s.argv[1], "--grade");
	cr_assert_null(s.argv[2]);
	cr_assert(has_env(&s, "HOME=/tmp"));
	cr_assert(has_env(&s, "PATH=/usr/local/bin:/usr/bin:/bin"));
	cr_assert(has_env(&s, "TERM=dumb"));
	sbx_spec_done(&s);
}

Test(sandbox_spec, nothing_of_the_callers_environment_is_taken)
{
	const char args[ARGS_MAX][64] = {"--env", "A=b=c", "--", "true"};
	struct err err = ERR_INIT;
	struct sbx_spec s;
	size_t n = 0;

	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert(has_env(&s, "A=b=c"));
	while (s.env[n])
		n++;
	cr_assert_eq(n, 10,
		     "A, HOME, PATH, TMPDIR, LANG, USER, TERM, and of three languages");
	sbx_spec_done(&s);
}

Test(sandbox_spec, heaps_are_told_the_memory_limit)
{
	const char args[ARGS_MAX][64] = {"--memory", "1GiB", "--", "true"};
	const char own[ARGS_MAX][64] = {
		"--env", "NODE_OPTIONS=",     "--env", "JAVA_TOOL_OPTIONS=-Xmx9m",
		"--env", "PYTHONUNBUFFERED=", "--",    "true"};
	struct err err = ERR_INIT;
	struct sbx_spec s;
	size_t n = 0;

	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert(has_env(&s, "NODE_OPTIONS=--max-old-space-size=682"));
	cr_assert(has_env(&s, "JAVA_TOOL_OPTIONS=-Xmx614m"));
	cr_assert(has_env(&s, "PYTHONUNBUFFERED=1"));
	sbx_spec_done(&s);
	cr_assert_eq(parse_list(own, &s, &err), 0, "%s", err.msg);
	cr_assert(has_env(&s, "NODE_OPTIONS="), "what the caller says stands");
	cr_assert(has_env(&s, "JAVA_TOOL_OPTIONS=-Xmx9m"));
	while (s.env[n])
		n++;
	cr_assert_eq(n, 9);
	sbx_spec_done(&s);
}

Test(sandbox_spec, java_is_told_where_floor_has_temporary_files)
{
	const char args[ARGS_MAX][64] = {"--grade", "floor",	   "--memory", "1GiB",
					 "--env",   "TMPDIR=/a b", "--",       "true"};
	const char quoted[ARGS_MAX][64] = {"--grade", "floor",	     "--memory", "1GiB",
					   "--env",   "TMPDIR=/a'b", "--",	 "true"};
	const char unspeakable[ARGS_MAX][64] = {"--grade", "floor", "--memory",
						"1GiB",	   "--env", "TMPDIR=/a'\"",
						"--",	   "true"};
	struct err err = ERR_INIT;
	struct sbx_spec s;

	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert(has_env(&s, "JAVA_TOOL_OPTIONS=-Xmx614m -Djava.io.tmpdir='/a b'"));
	sbx_spec_done(&s);
	cr_assert_eq(parse_list(quoted, &s, &err), 0, "%s", err.msg);
	cr_assert(has_env(&s, "JAVA_TOOL_OPTIONS=-Xmx614m -Djava.io.tmpdir=\"/a'b\""));
	sbx_spec_done(&s);
	cr_assert_eq(parse_list(unspeakable, &s, &err), 0, "%s", err.msg);
	cr_assert(has_env(&s, "JAVA_TOOL_OPTIONS=-Xmx614m"));
	sbx_spec_done(&s);
}

Test(sandbox_spec, what_every_job_sees_is_not_shown_again_with_less)
{
	const char shown[ARGS_MAX][64] = {"--ro",  "/usr/lib",	 "--ro", "/usr",
					  "--rox", "/usr/share", "--",	 "true"};
	const char stricter[ARGS_MAX][64] = {"--rw",	   "/usr", "--ro",
					     "/usr/share", "--",   "true"};
	const char others[ARGS_MAX][64] = {"--ro",     "/opt", "--ro",
					   "/usr/bin", "--",   "true"};
	struct err err = ERR_INIT;
	struct sbx_spec s;

	cr_assert_eq(parse_list(shown, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(s.n_mounts, 0);
	sbx_spec_done(&s);
	cr_assert_eq(parse_list(stricter, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(s.n_mounts, 2, "below what can be written it is a wall");
	sbx_spec_done(&s);
	cr_assert_eq(parse_list(others, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(s.n_mounts, 1);
	cr_assert_str_eq(s.mounts[0].path, "/opt");
	sbx_spec_done(&s);
}

Test(sandbox_spec, options_take_their_value_both_ways)
{
	const char args[ARGS_MAX][64] = {"--memory=64MiB",
					 "--timeout",
					 "250ms",
					 "--grade=floor",
					 "--network=none",
					 "--rw=/usr/share/",
					 "--json",
					 "--",
					 "true"};
	struct err err = ERR_INIT;
	struct sbx_spec s;

	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(s.memory_bytes, (uint64_t)64 << 20);
	cr_assert_eq(s.timeout_usec, 250 * USEC_PER_MSEC);
	cr_assert_eq(s.grade, GRADE_FLOOR);
	cr_assert_eq(s.net, NET_NONE);
	cr_assert(s.json);
	cr_assert_eq(s.n_mounts, 1);
	cr_assert_eq(s.mounts[0].kind, MOUNT_RW);
	cr_assert_str_eq(s.mounts[0].path, "/usr/share");
	sbx_spec_done(&s);
}

Test(sandbox_spec, a_relative_workspace_is_below_the_callers_directory)
{
	const char args[ARGS_MAX][64] = {"--workspace", "dir/", "--", "true"};
	char cwd[PATH_MAX], want[PATH_MAX + 16];
	struct err err = ERR_INIT;
	struct sbx_spec s;

	cr_assert_not_null(getcwd(cwd, sizeof(cwd)));
	(void)snprintf(want, sizeof(want), "%s/dir", cwd);
	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert_str_eq(s.workspace, want);
	cr_assert_str_eq(s.caller_cwd, cwd);
	sbx_spec_done(&s);
}

Test(sandbox_spec, a_stricter_path_where_it_would_be_no_wall_is_refused)
{
	static const char cases[][ARGS_MAX][64] = {
		{"--grade=floor", "--rw", "/usr", "--ro", "/usr/share", "--", "true"},
		{"--grade=floor", "--ro", "/var/lib/dpkg", "--rox", "/var/lib", "--",
		 "true"},
		{"--grade=floor", "--workspace-ro", "/usr/share", "--rw", "/usr", "--",
		 "true"},
		{"--grade=floor", "--workspace", "/usr", "--ro", "/usr/share", "--",
		 "true"},
		{"--grade=full", "--workspace", "/usr", "--ro", "/usr/share", "--",
		 "true"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = ERR_INIT;
		struct sbx_spec s;

		cr_assert_eq(parse_list(cases[i], &s, &err), -1, "case %zu", i);
		cr_assert_eq(err.id, ERRID_SPEC_PATH, "case %zu: %s", i, err.msg);
	}
}

Test(sandbox_spec, nested_paths_are_mounted_parents_first)
{
	const char args[ARGS_MAX][64] = {"--ro", "/usr/share", "--rw",
					 "/usr", "--",	       "true"};
	struct err err = ERR_INIT;
	struct sbx_spec s;

	cr_assert_eq(parse_list(args, &s, &err), 0, "%s", err.msg);
	cr_assert_str_eq(s.mounts[0].path, "/usr");
	cr_assert_str_eq(s.mounts[1].path, "/usr/share");
	cr_assert_eq(s.mounts[1].kind, MOUNT_RO);
	sbx_spec_done(&s);
}

/* ---- the block ------------------------------------------------------------------ */

#define BLOCK(text) text, sizeof(text)

static int parse_block(const char *block, size_t len, struct sbx_spec *s,
		       enum err_id *ret_id)
{
	struct err err = ERR_INIT;
	int r = sbx_spec_parse_block(block, len, s, &err);

	*ret_id = err.id;
	return r;
}

Test(sandbox_spec, bad_blocks_are_refused)
{
	struct sbx_spec s;
	enum err_id id;

	cr_assert_eq(parse_block("", 0, &s, &id), -1);
	cr_assert_eq(id, ERRID_SPEC_SIZE);
	/* the last string has no end */
	cr_assert_eq(parse_block("--\0true", 7, &s, &id), -1);
	cr_assert_eq(id, ERRID_SPEC_SIZE);
	cr_assert_eq(parse_block(BLOCK("--"), &s, &id), -1);
	cr_assert_eq(id, ERRID_SPEC_ARGV);
	cr_assert_eq(parse_block(BLOCK("--\0"), &s, &id), -1);
	cr_assert_eq(id, ERRID_SPEC_ARGV);
	cr_assert_eq(parse_block(BLOCK("\0--\0true"), &s, &id), -1);
	cr_assert_eq(id, ERRID_CORE_USAGE);
	cr_assert_eq(parse_block(BLOCK("--ro\0relative\0--\0true"), &s, &id), -1);
	cr_assert_eq(id, ERRID_SPEC_PATH);
	cr_assert_eq(parse_block(BLOCK("--ro\0/a/../b\0--\0true"), &s, &id), -1);
	cr_assert_eq(parse_block(BLOCK("--ro\0/a//b\0--\0true"), &s, &id), -1);
	cr_assert_eq(parse_block(BLOCK("--workspace\0../x\0--\0true"), &s, &id), -1);
	cr_assert_eq(parse_block(BLOCK("--workspace\0a/../../x\0--\0true"), &s, &id), -1);
	cr_assert_eq(parse_block(BLOCK("--workspace\0\0--\0true"), &s, &id), -1);
	cr_assert_null(s.argv);
}

Test(sandbox_spec, too_many_strings_are_refused)
{
	size_t n = 8192;
	char *block = calloc(n, 2);
	struct sbx_spec s;
	enum err_id id;

	cr_assert_not_null(block);
	memcpy(block, "--", 3);
	for (size_t i = 3; i + 1 < 2 * n; i += 2)
		block[i] = 'x';
	cr_assert_eq(parse_block(block, 2 * n - 1, &s, &id), -1);
	cr_assert_eq(id, ERRID_SPEC_ARGV);
	free(block);
}

Test(sandbox_spec, a_relative_workspace_of_a_block_gets_its_base)
{
	struct err err = ERR_INIT;
	struct sbx_spec s;
	enum err_id id;

	cr_assert_eq(parse_block(BLOCK("--grade\0floor\0--workspace\0"
				       "42.1/work\0--\0sh\0-c\0exit 7"),
				 &s, &id),
		     0);
	cr_assert_str_eq(s.workspace, "42.1/work");
	cr_assert_null(s.caller_cwd);
	cr_assert_str_eq(s.argv[2], "exit 7");
	cr_assert_eq(sbx_spec_base_workspace(&s, "relative", &err), -1);
	cr_assert_eq(sbx_spec_base_workspace(&s, "/data/jobs", NULL), 0);
	cr_assert_str_eq(s.workspace, "/data/jobs/42.1/work");
	cr_assert(has_env(&s, "HOME=/data/jobs/42.1/work"));
	cr_assert(has_env(&s, "TMPDIR=/data/jobs/42.1/work/.tmp"));
	cr_assert(s.own_tmpdir);
	sbx_spec_done(&s);
}

Test(sandbox_spec, a_given_variable_wins_over_its_default)
{
	struct sbx_spec s;
	enum err_id id;

	cr_assert_eq(
		parse_block(BLOCK("--env\0HOME=/x\0--env\0PATH=\0--\0true"), &s, &id), 0);
	cr_assert(has_env(&s, "HOME=/x"));
	cr_assert_not(has_env(&s, "HOME=/tmp"));
	cr_assert(has_env(&s, "PATH="));
	sbx_spec_done(&s);
	sbx_spec_done(&s); /* twice is once */
}

Test(sandbox_spec, a_limit_has_two_spellings_and_one_meaning)
{
	static const struct {
		const char *option, *value;
		size_t offset, size;
	} limits[] = {
#define FIELD(f) offsetof(struct sbx_spec, f), sizeof(((struct sbx_spec *)0)->f)
		{"timeout", "90", FIELD(timeout_usec)},
		{"cpu-time", "1500ms", FIELD(cpu_sec)},
		{"memory", "1GiB", FIELD(memory_bytes)},
		{"disk", "2GiB", FIELD(disk_bytes)},
		{"tmp", "3MiB", FIELD(tmp_bytes)},
		{"file-size", "5MiB", FIELD(output_bytes)},
		{"processes", "17", FIELD(processes)},
		{"cpus", "2", FIELD(cpus)},
		{"nofile", "333", FIELD(nofile)},
#undef FIELD
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		char by_name[ARGS_MAX][64] = {"", "", "--", "true"};
		char by_limit[ARGS_MAX][64] = {"--limit", "", "--", "true"};
		struct sbx_spec a, b, plain;
		struct err err = ERR_INIT;

		cr_assert_eq(str_fmt(by_name[0], 64, "--%s", limits[i].option), 0);
		cr_assert_eq(str_copy(by_name[1], 64, limits[i].value), 0);
		cr_assert_eq(str_fmt(by_limit[1], 64, "%s=%s", limits[i].option,
				     limits[i].value),
			     0);
		cr_assert_eq(parse_list(by_name, &a, &err), 0, "%s", err.msg);
		cr_assert_eq(parse_list(by_limit, &b, &err), 0, "%s", err.msg);
		sbx_spec_init(&plain);
		cr_assert_arr_eq((char *)&a + limits[i].offset,
				 (char *)&b + limits[i].offset, limits[i].size);
		cr_assert_arr_neq((char *)&a + limits[i].offset,
				  (char *)&plain + limits[i].offset, limits[i].size,
				  "%s set nothing", limits[i].option);
		sbx_spec_done(&a);
		sbx_spec_done(&b);
	}
}

Test(sandbox_spec, an_unknown_limit_lists_the_known_ones)
{
	static const char args[ARGS_MAX][64] = {"--limit", "ram=1", "--", "true"};
	struct sbx_spec s;
	struct err err = ERR_INIT;

	cr_assert_lt(parse_list(args, &s, &err), 0);
	cr_assert_eq(err.id, ERRID_SPEC_KEY);
	cr_assert_not_null(strstr(err.msg, "timeout, cpu-time, memory"));
	cr_assert_not_null(strstr(err.msg, "nofile"));
}

Test(sandbox_spec, a_terminal_is_asked_for_on_a_command_line_only)
{
	static const char args[ARGS_MAX][64] = {"--tty", "--", "true"};
	struct sbx_spec s;
	struct err err = ERR_INIT;
	enum err_id id;

	cr_assert_eq(parse_block(BLOCK("--tty\0--\0true"), &s, &id), -1);
	cr_assert_eq(id, ERRID_CORE_USAGE);
	cr_assert_eq(parse_list(args, &s, &err), 0);
	cr_assert(s.tty);
	cr_assert(has_env(&s, "TERM=xterm-256color"));
	sbx_spec_done(&s);
}

Test(sandbox_spec, explain_is_off_unless_asked_for)
{
	static const char with[ARGS_MAX][64] = {"--explain", "--", "true"};
	static const char without[ARGS_MAX][64] = {"--", "true"};
	struct sbx_spec s;
	struct err err = ERR_INIT;

	cr_assert_eq(parse_list(without, &s, &err), 0);
	cr_assert_not(s.explain);
	sbx_spec_done(&s);
	cr_assert_eq(parse_list(with, &s, &err), 0);
	cr_assert(s.explain);
	sbx_spec_done(&s);
}
