/* SPDX-License-Identifier: Apache-2.0 */
/* What --explain says that a path may be used for, and the option that would change it. */
#include "sandbox/explain/grants.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(grants, .timeout = 20);

#define RO (GRANT_READ | GRANT_LIST)
#define ROX (RO | GRANT_EXEC)
#define ALL (ROX | GRANT_WRITE)

#define AT(path)                                                                         \
	(char[])                                                                         \
	{                                                                                \
		path                                                                     \
	}
static struct grant some[] = {
	{AT("/usr"), ROX},	    {AT("/tmp"), ALL},	       {AT("/tmp/shown"), RO},
	{AT("/tmp/shown/rw"), ALL}, {AT("/home/u/work"), ALL}, {AT("/etc"), RO},
};
static char workspace[] = "/home/u/work", named[] = "/home/u/link";

static struct grants_table table(enum sbx_grade grade)
{
	return (struct grants_table){.grade = grade,
				     .g = some,
				     .n = sizeof(some) / sizeof(some[0]),
				     .workspace = workspace,
				     .workspace_at = named};
}

Test(grants, floor_adds_up_what_landlock_adds_up)
{
	struct grants_table t = table(GRADE_FLOOR);

	cr_assert_eq(grants_on(&t, "/home/u/.ssh"), 0);
	cr_assert_eq(grants_on(&t, "/home/u/workshop"), 0);
	cr_assert_eq(grants_on(&t, "/"), 0);
	cr_assert_eq(grants_on(&t, "/usr/bin/true"), ROX);
	cr_assert_eq(grants_on(&t, "/tmp/shown/f"), ALL, "a rule above gives more");
	cr_assert_eq(grants_on(&t, "/home/u/work"), ALL);
}

Test(grants, full_takes_the_innermost_mount)
{
	struct grants_table t = table(GRADE_FULL);

	cr_assert_eq(grants_on(&t, "/"), GRANT_LIST);
	cr_assert_eq(grants_on(&t, "/etc/passwd"), RO);
	cr_assert_eq(grants_on(&t, "/tmp/f"), ALL);
	cr_assert_eq(grants_on(&t, "/tmp/shown/f"), RO, "neither written nor executed");
	cr_assert_eq(grants_on(&t, "/tmp/shown/rw/f"), ALL);
}

static void option(const char *real, unsigned right, const char *wanted)
{
	struct grants_table t = table(GRADE_FLOOR);
	char got[256];

	grants_option(&t, real, right, got, sizeof(got));
	cr_assert_str_eq(got, wanted);
}

Test(grants, only_what_the_sandbox_would_take_is_offered)
{
	char longest[400];

	option("/", GRANT_READ, "");
	option("/etc", GRANT_READ, "");
	option("/proc/1/environ", GRANT_READ, "");
	option("/proc", GRANT_READ, "--grade full");
	option("/proc", GRANT_WRITE, "");
	option("/proc/self/maps", GRANT_READ, "--grade full");
	option("/proc/self/oom_score_adj", GRANT_WRITE, "");
	option("/proc/selfish", GRANT_READ, "");
	option("/dev/shm", GRANT_WRITE, "--grade full");
	option("/dev/shm/x", GRANT_READ, "");
	option("/tmp", GRANT_WRITE, "--grade full");
	option("/run/docker.sock", GRANT_WRITE, "");
	option("/dev/kvm", GRANT_WRITE, "");
	option("/srv/new\nline", GRANT_READ, "");
	option("/srv/data", GRANT_READ, "--ro /srv/data");
	option("/etc/ssh", GRANT_READ, "--ro /etc/ssh");
	option("/srv/data", GRANT_WRITE, "--rw /srv/data");
	option("/opt/x", GRANT_EXEC, "--rox /opt/x");
	option("/srv/a b", GRANT_READ, "--ro /srv/a b");
	option("/home/u/work/f", GRANT_WRITE, "--workspace /home/u/link");
	option("/home/u/work/f", GRANT_READ, "");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[0] = longest[200] = '/';
	longest[sizeof(longest) - 1] = '\0';
	option(longest, GRANT_READ, "");
}

Test(grants, the_own_directory_of_proc_by_its_names)
{
	cr_assert_str_eq(grants_below_self("/proc/self"), ".");
	cr_assert_str_eq(grants_below_self("/proc/self//"), ".");
	cr_assert_str_eq(grants_below_self("/proc/self/fd/3"), "fd/3");
	cr_assert_str_eq(grants_below_self("/proc/thread-self/../1/maps"), "../1/maps");
	cr_assert_null(grants_below_self("/proc/selfish"));
	cr_assert_null(grants_below_self("/proc/1/maps"));
	cr_assert_null(grants_below_self("/dev/fd/3"));
}
