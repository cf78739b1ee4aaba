/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/files/harvest.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[] = "/tmp/lych-harvest-XXXXXX";
static int top = -1, work = -1, kept = -1, held = -1;
static struct harvest h;

static int sub(const char *name)
{
	int fd;

	cr_assert_eq(mkdirat(top, name, 0700), 0);
	fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(top, 0);
	work = sub("work");
	kept = sub("kept");
	held = sub("held");
}

static void teardown(void)
{
	cleanup_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err = ERR_INIT;

	harvest_done(&h);
	cr_assert_eq(fs_remove_beneath(tmp, dir + 5, &err), 0, "%s", err.msg);
}

TestSuite(harvest, .init = setup, .fini = teardown, .timeout = 30);

static void put(const char *path, const char *text)
{
	cleanup_close int fd = openat(work, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void run_caps(const char *glob, const struct harvest_caps *caps)
{
	struct err err = ERR_INIT;
	int r;

	cr_assert_eq(harvest_begin(&h, work, kept, held, &glob, 1, caps, &err), 0, "%s",
		     err.msg);
	while ((r = harvest_step(&h, &err)) > 0)
		;
	cr_assert_eq(r, 0, "%s", err.msg);
}

static void run(const char *glob)
{
	run_caps(glob, &harvest_caps_default);
}

static const struct harvest_item *find(const struct harvest_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->item[i].path, path))
			return &l->item[i];
	return NULL;
}

static void expect_refused(const char *path, const char *why)
{
	const struct harvest_item *item = find(&h.refused, path);

	cr_assert_not_null(item, "%s is not refused", path);
	cr_expect_str_eq(item->why, why, "%s: %s", path, item->why);
	cr_expect_null(find(&h.kept, path));
}

Test(harvest, links_of_every_kind_are_refused)
{
	put("real", "x");
	cr_assert_eq(symlinkat("/etc/passwd", work, "abs"), 0);
	cr_assert_eq(symlinkat("real", work, "inside"), 0);
	cr_assert_eq(symlinkat("nowhere", work, "dangling"), 0);
	cr_assert_eq(symlinkat("loop", work, "loop"), 0);
	cr_assert_eq(symlinkat("..", work, "updir"), 0);
	run("**");
	expect_refused("abs", "symlink");
	expect_refused("inside", "symlink");
	expect_refused("dangling", "symlink");
	expect_refused("loop", "symlink");
	expect_refused("updir", "symlink");
	cr_assert_eq(h.kept.n, 1);
	cr_assert_str_eq(h.kept.item[0].path, "real");
}

Test(harvest, what_is_not_a_file_is_refused_without_blocking)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_close int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(mkfifoat(work, "fifo", 0600), 0);
	cr_assert_eq(str_fmt(addr.sun_path, sizeof(addr.sun_path), "%s/work/sock", dir),
		     0);
	cr_assert_eq(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
	run("**");
	expect_refused("fifo", "fifo");
	expect_refused("sock", "socket");
	cr_assert_eq(h.kept.n, 0);
}

Test(harvest, hard_links_are_refused)
{
	put("one", "x");
	cr_assert_eq(linkat(work, "one", work, "two", 0), 0);
	/* Also when the other name is outside of the workspace. */
	put("three", "x");
	cr_assert_eq(linkat(work, "three", top, "outside", 0), 0);
	run("**");
	expect_refused("one", "hard link");
	expect_refused("two", "hard link");
	expect_refused("three", "hard link");
}

Test(harvest, sparse_and_huge_files_are_refused_fast)
{
	cleanup_close int big = openat(work, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cleanup_close int holes =
		openat(work, "holes", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_eq(ftruncate(big, (off_t)1 << 40), 0);
	cr_assert_eq(ftruncate(holes, (off_t)512 << 20), 0);
	run("**");
	expect_refused("big", "too large");
	expect_refused("holes", "sparse");
}

Test(harvest, depth_is_capped)
{
	char path[HARVEST_DEPTH_MAX * 2 + 16] = "d";

	cr_assert_eq(mkdirat(work, "d", 0700), 0);
	for (int i = 0; i < HARVEST_DEPTH_MAX; i++) {
		size_t n = strlen(path);

		(void)snprintf(path + n, sizeof(path) - n, "/d");
		cr_assert_eq(mkdirat(work, path, 0700), 0);
	}
	put("d/d/ok", "x");
	run("**");
	cr_assert_eq(h.refused.n, 1);
	cr_assert_str_eq(h.refused.item[0].why, "too deep");
	cr_assert_not_null(find(&h.kept, "d/d/ok"));
}

Test(harvest, names_that_hurt_are_refused)
{
	put("new\nline", "x");
	put("esc\033[2J", "x");
	put("bad\xff", "x");
	put("ok \xc3\xa9", "x");
	put("bidi\xe2\x80\xaetxt.exe", "x");
	put("c1\xc2\x9b"
	    "31m",
	    "x");
	put("-rf", "x");
	put("...", "x");
	run("**");
	cr_assert_eq(h.refused.n, 5);
	for (size_t i = 0; i < 5; i++)
		cr_expect_str_eq(h.refused.item[i].why, "name");
	cr_assert_eq(h.kept.n, 2);
	cr_assert_not_null(find(&h.held, "-rf"));
}

Test(harvest, names_that_differ_only_in_case_are_refused_together)
{
	put("README", "a");
	put("readme", "b");
	put("Readme.", "c");
	put("other", "d");
	run("**");
	expect_refused("README", "the same as another name but for its case");
	expect_refused("readme", "the same as another name but for its case");
	expect_refused("Readme.", "the same as another name but for its case");
	cr_assert_eq(h.kept.n, 1);
	cr_assert_str_eq(h.kept.item[0].path, "other");
}

/* Ten thousand loose objects: some to look at, all counted, none in the way. */
Test(harvest, what_is_held_takes_no_place_from_the_rest)
{
	struct harvest_caps caps = harvest_caps_default;

	caps.files = 4;
	caps.held_alike = 3;
	caps.held_bytes = 100;
	cr_assert_eq(mkdirat(work, ".git", 0700), 0);
	for (int i = 0; i < 50; i++) {
		char name[24];

		(void)snprintf(name, sizeof(name), ".git/o%d", i);
		put(name, "0123456789");
	}
	put(".envrc", "x");
	put("CLAUDE.md", "123456789012345678901234567890123456789012345678901234567890123"
			 "45678901234567890");
	put("a", "x");
	put("b", "x");
	run_caps("**", &caps);
	cr_assert_eq(h.kept.n, 2);
	cr_assert_not_null(find(&h.held, ".envrc"));
	/* By the order of the directory either the copies or the large one come first. */
	cr_assert_geq(h.held.n, 2);
	cr_assert_leq(h.held.n, 4);
	cr_assert_eq(h.held_total + h.refused_total, 52);
	for (size_t i = 0; i < h.refused.n; i++)
		cr_expect_str_eq(h.refused.item[i].why,
				 "would be quarantined, and is too large for that");
}

Test(harvest, a_program_is_called_one_and_is_not_executable)
{
	struct stat st;

	put("tool", "#!/bin/sh\nrm -rf ~\n");
	put("text", "hello");
	cr_assert_eq(fchmodat(work, "tool", 06755, 0), 0);
	run("**");
	cr_assert_eq(h.kept.n, 2);
	cr_assert_str_eq(find(&h.kept, "tool")->class, "program");
	cr_assert_str_eq(find(&h.kept, "text")->class, "file");
	for (int n = 1; n <= 2; n++) {
		char name[4];

		(void)snprintf(name, sizeof(name), "%d", n);
		cr_assert_eq(fstatat(kept, name, &st, 0), 0);
		cr_expect_eq(st.st_mode & 07777, 0600);
	}
}

Test(harvest, a_parent_that_becomes_a_link_is_not_followed)
{
	struct err err = ERR_INIT;
	const char *const globs[] = {"**"};
	int r;

	/* The walk sees "sub" as a directory; before it is entered it is swapped. */
	cr_assert_eq(mkdirat(work, "sub", 0700), 0);
	put("sub/x", "x");
	cr_assert_eq(harvest_begin(&h, work, kept, held, globs, 1, &harvest_caps_default,
				   &err),
		     0);
	cr_assert_eq(renameat(work, "sub", top, "moved"), 0);
	cr_assert_eq(symlinkat("/etc", work, "sub"), 0);
	while ((r = harvest_step(&h, &err)) > 0)
		;
	cr_assert_eq(r, 0);
	cr_assert_eq(h.kept.n, 0);
	expect_refused("sub", "symlink");
}

Test(harvest, counts_and_sizes_are_capped)
{
	struct harvest_caps caps = {
		.files = 3, .file_bytes = 10, .total_bytes = 12, .walked = 100};

	put("a", "1234567890");
	put("b", "12345678901");
	put("c", "123");
	put("d", "1");
	put("e", "1");
	put("f", "1");
	run_caps("**", &caps);
	expect_refused("b", "too large");
	cr_assert_leq(h.kept.n, 3);
	cr_assert_eq(h.kept.n + h.refused.n, 6);
}

Test(harvest, walking_is_capped)
{
	struct harvest_caps caps = harvest_caps_default;

	caps.walked = 50;
	for (int i = 0; i < 100; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%d", i);
		put(name, "x");
	}
	run_caps("none", &caps);
	cr_assert_eq(h.refused.n, 1);
	cr_assert(str_starts(h.refused.item[0].why, "too many entries"));
}

Test(harvest, unreadable_things_are_named)
{
	if (getuid() == 0)
		cr_skip("root reads everything");
	put("secret", "x");
	cr_assert_eq(fchmodat(work, "secret", 0, 0), 0);
	cr_assert_eq(mkdirat(work, "closed", 0), 0);
	run("**");
	expect_refused("secret", "unreadable");
	expect_refused("closed", "unreadable directory");
}

Test(harvest, hazards_go_to_quarantine)
{
	struct stat st;

	cr_assert_eq(mkdirat(work, ".git", 0700), 0);
	cr_assert_eq(mkdirat(work, ".git/hooks", 0700), 0);
	put(".git/hooks/pre-commit", "#!/bin/sh\n");
	put("a.txt", "hello\n");
	run("**");
	cr_assert_eq(h.held.n, 1);
	cr_assert_str_eq(h.held.item[0].path, ".git/hooks/pre-commit");
	cr_assert_eq(h.kept.n, 1);
	cr_assert_str_eq(h.kept.item[0].path, "a.txt");
	cr_assert_str_eq(
		h.kept.item[0].sha256,
		"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
	cr_assert_eq(h.kept.item[0].size, 6);
	/* Copies have modes of ours. */
	cr_assert_eq(fstatat(kept, h.kept.item[0].n == 1 ? "1" : "2", &st, 0), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
}

Test(harvest, only_what_is_asked_for)
{
	cr_assert_eq(mkdirat(work, "out", 0700), 0);
	put("out/a.o", "x");
	put("out/a.txt", "x");
	put("b.txt", "x");
	run("out/*.txt");
	cr_assert_eq(h.kept.n, 1);
	cr_assert_str_eq(h.kept.item[0].path, "out/a.txt");
	cr_assert_eq(h.refused.n, 0);
}
