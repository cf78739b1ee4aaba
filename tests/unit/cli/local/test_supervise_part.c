/* SPDX-License-Identifier: Apache-2.0 */
/* What of a part's log is told of a start that failed. */
#include "cli/local/supervise_priv.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define AT "ts=2026-11-29T10:00:00Z "

/* The words that a log of the vessel with that text comes to. */
static void expect_told(const char *text, const char *want)
{
	char dir[] = "/tmp/lych-part-XXXXXX", told[512];
	struct err err = ERR_INIT;
	struct paths paths = {.data = dir};
	struct supervise s = {.paths = &paths};
	struct super u = {.s = &s};
	cleanup_close int fd = -1;

	cr_assert_not_null(mkdtemp(dir));
	fd = fs_open_dir(dir, &err);
	cr_assert_eq(mkdirat(fd, "log", 0700), 0);
	cr_assert_eq(
		fs_write_atomic(fd, "log/vessel.log", text, strlen(text), 0600, &err), 0,
		"%s", err.msg);
	part_log_tail(&u, PART_VESSEL, told, sizeof(told));
	cr_expect_str_eq(told, want);
	cr_expect_eq(unlinkat(fd, "log/vessel.log", 0), 0);
	cr_expect_eq(unlinkat(fd, "log", AT_REMOVEDIR), 0);
	cr_expect_eq(rmdir(dir), 0);
}

/* The vessel ends, and its workers see that. */
Test(supervise_part, a_reason_of_its_own_counts_and_not_that_of_a_bystander)
{
	expect_told("<6>" AT "unit=vessel msg=\"begins\"\n"
		    "<3>" AT "unit=vessel msg=\"cannot start\" code=\"LYCH-EGRESS-010\" "
		    "error=\"portal main: a \\\"sign\\\"\" hint=\"Set it\"\n"
		    "<3>" AT "unit=egress msg=\"the gate worker ends\" "
		    "code=\"LYCH-CORE-002\" error=\"read from the vessel: Connection "
		    "reset by peer\" hint=\"See\"\n",
		    "LYCH-EGRESS-010: portal main: a \"sign\"");
}

Test(supervise_part, without_one_it_is_the_last_line)
{
	expect_told("<4>" AT
		    "unit=vessel msg=\"database is away\" code=\"LYCH-CORE-002\" "
		    "error=\"x\" hint=\"\"\n"
		    "<6>" AT "unit=egress msg=\"unit=vessel  code=\" and=\"more\"\n",
		    "unit=vessel  code=");
	expect_told("Segmentation fault\n", "Segmentation fault");
	expect_told("", "");
}
