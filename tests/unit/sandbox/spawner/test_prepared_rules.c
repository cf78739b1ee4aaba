/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock rules that are made before there is a job: given away once, and not when what they
 * hold on to is no longer what the names mean. */
#include "common/cleanup.h"
#include "sandbox/contract/paths.h"
#include "sandbox/spawner/prepared_rules.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>

static struct prepared_rules a;

static void made(void)
{
	prepared_rules_init(&a, true);
	cr_assert_eq(prepared_rules_turn(&a), USEC_INFINITY);
	cr_assert_geq(a.rules.fd, 0);
}

static void done(void)
{
	prepared_rules_done(&a);
}

Test(prepared_rules, they_are_used_once, .init = made, .fini = done)
{
	struct landlock_set taken = prepared_rules_take(&a);

	cr_expect_geq(taken.fd, 0);
	cr_expect(taken.handled_fs != 0 && taken.abi >= LL_ABI_REQUIRED);
	landlock_done(&taken);
	taken = prepared_rules_take(&a);
	cr_expect_eq(taken.fd, -1);
}

Test(prepared_rules, the_next_wait_until_a_job_would_be_over, .init = made, .fini = done)
{
	usec_t before = clock_boot_usec();
	struct landlock_set taken = prepared_rules_take(&a);

	landlock_done(&taken);
	cr_expect_gt(a.make_at, before);
	cr_expect_lt(a.make_at, clock_boot_usec() + USEC_PER_SEC);
	/* far enough for a machine on which this test waits for its turn */
	a.make_at = before + 600 * USEC_PER_SEC;
	cr_expect_eq(prepared_rules_turn(&a), a.make_at);
	cr_expect_eq(a.rules.fd, -1);
}

Test(prepared_rules, a_directory_that_changed_makes_them_useless, .init = made,
     .fini = done)
{
	struct landlock_set taken;

	a.place[1].mtime.tv_nsec ^= 1;
	taken = prepared_rules_take(&a);
	cr_expect_eq(taken.fd, -1);
	cr_expect_eq(a.rules.fd, -1);
}

Test(prepared_rules, a_link_that_leads_elsewhere_makes_them_useless, .init = made,
     .fini = done)
{
	struct landlock_set taken;

	cr_assert_gt(a.n_places, 3, "no link among the paths of this host");
	a.place[a.n_places - 1].ino++;
	taken = prepared_rules_take(&a);
	cr_expect_eq(taken.fd, -1);
}

Test(prepared_rules, nobody_wants_them_in_full)
{
	struct landlock_set taken;

	prepared_rules_init(&a, false);
	cr_expect_eq(prepared_rules_turn(&a), USEC_INFINITY);
	cr_expect_eq(a.rules.fd, -1);
	taken = prepared_rules_take(&a);
	cr_expect_eq(taken.fd, -1);
	cr_expect_eq(prepared_rules_turn(&a), USEC_INFINITY);
}

static bool is_watched(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash == path ? 1 : (size_t)(slash - path);

	for (const char *const *d = prepared_rules_directories; *d; d++)
		if (strlen(*d) == n && memcmp(*d, path, n) == 0)
			return true;
	return false;
}

Test(prepared_rules, each_path_is_in_a_directory_that_is_looked_at)
{
	const char *const *const lists[] = {paths_system, paths_etc_public,
					    paths_etc_floor};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *const *p = lists[i]; *p; p++)
			cr_expect(is_watched(*p), "%s", *p);
}
