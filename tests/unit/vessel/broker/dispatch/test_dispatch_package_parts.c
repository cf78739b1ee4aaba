/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate gets to read of a package's path. */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(dispatch_package_parts, .timeout = 20);

#define KEY "lych-9PDawlMGs9_x-Q0aBcDeFgHiJkLmNoPqRsTuVwXyZ01"

static struct gate_job *job;
static struct gate_parts *parts;

static void begin(void)
{
	job = gate_job_new(&clock_real);
	cr_assert(gate_job_add_canary(job, KEY, strlen(KEY), NULL) == 0);
}

static void end(void)
{
	gate_parts_free(parts);
	gate_job_free(job);
}

static void read_path(enum registry_kind kind, const char *path)
{
	const struct package_path p = {.kind = kind, .path = path};

	gate_parts_free(parts);
	parts = gate_parts_new();
	package_path_parts(&p, job, parts);
	cr_expect_not(parts->overflow, "%s", path);
}

/* A line of a part, from its beginning to its end. */
static bool has_line(const char *line)
{
	size_t len = strlen(line);

	for (size_t i = 0; i < parts->n; i++) {
		const char *s = parts->part[i].data, *stop = s + parts->part[i].len;

		for (const char *at = s; at < stop; at++)
			if ((at == s || at[-1] == '\n') && (size_t)(stop - at) >= len &&
			    memcmp(at, line, len) == 0 &&
			    (at + len == stop || at[len] == '\n'))
				return true;
	}
	return false;
}

Test(dispatch_package_parts, a_modules_capitals_are_capitals, .init = begin, .fini = end)
{
	read_path(REGISTRY_GO, "example.org/!quetzal!moon/@v/v1.0.0-!a.info");
	cr_expect(has_line("example.org/!quetzal!moon/@v/v1.0.0-!a.info"));
	cr_expect(has_line("example.org/QuetzalMoon/@v/v1.0.0-A.info"));
	read_path(REGISTRY_GO,
		  "sumdb/sum.example.org/lookup/example.org/!a!k!i!a@v1.0.0");
	cr_expect(has_line("sumdb/sum.example.org/lookup/example.org/AKIA@v1.0.0"));
	/* elsewhere the sign is one */
	read_path(REGISTRY_NPM, "a!b");
	cr_expect_not(has_line("aB"));
}

Test(dispatch_package_parts, what_is_cut_into_segments_is_one_word, .init = begin,
     .fini = end)
{
	char path[REGISTRY_PATH_MAX + 1];

	read_path(REGISTRY_GO, "example.org/quetzalmo/onbase7731/!x/@v/list");
	cr_expect(has_line("quetzalmoonbase7731"));
	cr_expect(has_line("quetzalmoonbase7731X"));
	cr_expect(has_line("example.orgquetzalmoonbase7731X@vlist"));
	read_path(REGISTRY_PYPI, "simple/tiny/");
	cr_expect(has_line("simpletiny"));
	/* the longest, in the most pieces */
	for (size_t i = 0; i < REGISTRY_PATH_MAX; i++)
		path[i] = i % 2 ? '/' : 'a';
	path[REGISTRY_PATH_MAX] = '\0';
	read_path(REGISTRY_NPM, path);
}

Test(dispatch_package_parts, a_canary_is_found_in_any_case, .init = begin, .fini = end)
{
	static const struct {
		enum registry_kind kind;
		const char *path;
	} row[] = {
		{REGISTRY_CARGO,
		 "ly/ch/lych-9pdawlmgs9_x-q0abcdefghijklmnopqrstuvwxyz01"},
		{REGISTRY_NPM, "LYCH-9PDAWLMGS9_X-Q0ABCDEFGHIJKLMNOPQRSTUVWXYZ01"},
		{REGISTRY_PYPI,
		 "simple/lych-9pdawlmgs9_x-q0abcdef/ghijklmnopqrstuvwxyz01/a.whl"},
		{REGISTRY_GO,
		 "example.org/lych-9!p!dawl!m!gs9_x-!q0a!bc!de!fg!hi!jk!lm!no!pq!rs!tu!vw"
		 "!xy!z01/@v/list"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		read_path(row[i].kind, row[i].path);
		cr_expect(has_line(KEY), "%s", row[i].path);
	}
	read_path(REGISTRY_CARGO, "ly/ch/lych-9pdawlmgs9");
	cr_expect_not(has_line(KEY));
}
