/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a workspace: what counts, and when it is known to stand still. */
#include "common/cleanup.h"
#include "common/fs.h"
#include "sandbox/keeper/disk.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

static char dir[32] = "/tmp/test_disk.XXXXXX";

static void make_tree(void)
{
	cr_assert_not_null(mkdtemp(dir));
}

/* On a file system whose free space goes down with each write. */
static void make_tmpfs_tree(void)
{
	(void)snprintf(dir, sizeof(dir), "/dev/shm/test_disk.XXXXXX");
	make_tree();
}

static void remove_tree(void)
{
	struct err err = ERR_INIT;
	char *name = strrchr(dir, '/');
	int parent;

	*name++ = '\0';
	parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_expect_eq(fs_remove_beneath(parent, name, &err), 0);
	fd_close(&parent);
}

static void put(const char *name, size_t size)
{
	char path[256];
	cleanup_free char *block = calloc(1, size + 1);
	int fd;

	memset(block, 'x', size);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, block, size), (ssize_t)size);
	fd_close(&fd);
}

static uint64_t walk(struct disk_walk *w, unsigned step)
{
	for (int i = 0; i < 100000; i++)
		if (disk_step(w, step))
			return w->total;
	cr_assert_fail("the walk does not end");
	return 0;
}

static void begin(struct disk_walk *w, bool growth)
{
	struct err err = ERR_INIT;

	disk_init(w);
	cr_assert_eq(
		disk_add(w, open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), growth, &err),
		0);
}

Test(disk, counts_files_at_any_step, .init = make_tree, .fini = remove_tree)
{
	struct disk_walk w;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/d", dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	put("a", 100000);
	put("d/b", 200000);
	for (unsigned step = 1; step < 5; step++) {
		begin(&w, false);
		cr_expect_geq(walk(&w, step), 300000);
		cr_expect_lt(w.total, 340000);
		cr_expect(disk_at_start(&w));
		disk_done(&w);
	}
}

Test(disk, a_hard_link_counts_once_and_a_symlink_is_not_followed, .init = make_tree,
     .fini = remove_tree)
{
	struct disk_walk w;
	char from[256], to[256];

	put("a", 1 << 20);
	(void)snprintf(from, sizeof(from), "%s/a", dir);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(to, sizeof(to), "%s/l%d", dir, i);
		cr_assert_eq(link(from, to), 0);
	}
	(void)snprintf(to, sizeof(to), "%s/usr", dir);
	cr_assert_eq(symlink("/usr", to), 0);
	begin(&w, false);
	cr_expect_lt(walk(&w, 3), (1 << 20) + 65536);
	disk_done(&w);
}

Test(disk, of_the_users_own_tree_only_growth_counts, .init = make_tree,
     .fini = remove_tree)
{
	struct disk_walk w;

	put("a", 1 << 20);
	begin(&w, true);
	cr_expect_eq(walk(&w, 100), 0);
	put("b", 1 << 19);
	cr_expect_geq(walk(&w, 100), 1 << 19);
	cr_expect_lt(w.total, 1 << 20);
	disk_done(&w);
}

Test(disk, a_round_that_is_left_leaves_nothing_behind, .init = make_tree,
     .fini = remove_tree)
{
	struct disk_walk w;
	char from[256], to[256];

	(void)snprintf(from, sizeof(from), "%s/a", dir);
	(void)snprintf(to, sizeof(to), "%s/l", dir);
	put("a", 100000);
	put("b", 100000);
	cr_assert_eq(link(from, to), 0);
	for (unsigned seen = 1; seen < 5; seen++) {
		begin(&w, false);
		cr_assert_not(disk_step(&w, seen));
		disk_start_over(&w);
		cr_expect(disk_at_start(&w));
		cr_expect_geq(walk(&w, 2), 200000);
		cr_expect_lt(w.total, 240000);
		disk_done(&w);
	}
}

Test(disk, a_round_that_growth_counts_from_is_not_left, .init = make_tree,
     .fini = remove_tree)
{
	struct disk_walk w;

	put("a", 1 << 20);
	begin(&w, true);
	cr_assert_not(disk_step(&w, 2));
	disk_start_over(&w);
	cr_expect_not(disk_at_start(&w));
	cr_expect_eq(walk(&w, 100), 0);
	put("b", 1 << 19);
	cr_assert_not(disk_step(&w, 1));
	disk_start_over(&w);
	cr_expect(disk_at_start(&w));
	cr_expect_geq(walk(&w, 100), 1 << 19);
	disk_done(&w);
}

Test(disk, a_closed_directory_is_looked_into_and_stays_closed, .init = make_tree,
     .fini = remove_tree)
{
	struct disk_walk w;
	struct stat st;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/c", dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	put("c/x", 1 << 20);
	cr_assert_eq(chmod(path, 0), 0);
	begin(&w, false);
	cr_expect_geq(walk(&w, 100), 1 << 20);
	cr_expect_eq(w.closed_rounds, 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0);
	disk_done(&w);
	(void)chmod(path, 0700);
}

Test(disk, too_deep_is_said, .init = make_tree, .fini = remove_tree)
{
	struct disk_walk w;
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < DISK_DEPTH_MAX + 5; i++) {
		int next;

		cr_assert_eq(mkdirat(at, "d", 0700), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(&at);
		at = next;
	}
	fd_close(&at);
	begin(&w, false);
	(void)walk(&w, 50);
	cr_expect(w.too_deep);
	disk_done(&w);
}

/* Others have files there too, and what they remove between two looks hides as much of what
 * is added: one of several additions shows. */
static bool grows_by(struct disk_walk *w, uint64_t bytes, unsigned files, size_t each)
{
	uint64_t before = w->grown;
	char name[32];

	for (unsigned i = 0; i < 50; i++) {
		for (unsigned k = 0; k < files; k++) {
			(void)snprintf(name, sizeof(name), "%u-%u", i, k);
			put(name, each);
		}
		disk_see_growth(w);
		if (w->grown - before >= bytes)
			return true;
	}
	return false;
}

/* Others write there too: after one of several rounds nothing was added meanwhile. */
static bool is_still_after_a_round(struct disk_walk *w)
{
	for (int i = 0; i < 200; i++) {
		disk_see_growth(w);
		(void)walk(w, 100);
		disk_see_growth(w);
		if (disk_is_still(w))
			return true;
	}
	return false;
}

Test(disk, a_tree_to_which_nothing_is_added_is_still, .init = make_tmpfs_tree,
     .fini = remove_tree)
{
	struct disk_walk w;

	put("before", 3 << 20);
	begin(&w, false);
	disk_see_growth(&w);
	cr_expect_not(disk_is_still(&w), "without a whole round nothing is known");
	cr_expect(is_still_after_a_round(&w));
	cr_expect(grows_by(&w, DISK_STILL_BYTES, 1, DISK_STILL_BYTES));
	cr_expect_not(disk_is_still(&w));
	disk_done(&w);
}

Test(disk, what_is_freed_makes_no_room_for_what_is_added, .init = make_tmpfs_tree,
     .fini = remove_tree)
{
	struct disk_walk w;
	char path[64];

	put("a", 8 << 20);
	begin(&w, false);
	cr_assert(is_still_after_a_round(&w));
	(void)snprintf(path, sizeof(path), "%s/a", dir);
	cr_assert_eq(unlink(path), 0);
	disk_see_growth(&w);
	cr_expect(grows_by(&w, 4 << 20, 1, 4 << 20));
	cr_expect_not(disk_is_still(&w));
	disk_done(&w);
}

/* More than is in it and what was ever added, even when a later round did not find it. */
Test(disk, a_tree_is_within_what_all_that_was_added_leaves, .init = make_tmpfs_tree,
     .fini = remove_tree)
{
	struct disk_walk w;
	uint64_t before;
	char empty[64];

	put("before", 3 << 20);
	begin(&w, false);
	disk_see_growth(&w);
	cr_expect_not(disk_is_within(&w, UINT64_MAX),
		      "without a whole round nothing is known");
	cr_assert(is_still_after_a_round(&w));
	before = w.total + w.grown;
	cr_expect(disk_is_within(&w, before));
	cr_expect_not(disk_is_within(&w, before - 1));
	cr_assert(grows_by(&w, 4 << 20, 1, 4 << 20));
	cr_expect_not(disk_is_within(&w, before + (4 << 20) - 1));
	cr_expect(disk_is_within(&w, before + w.grown));
	cr_expect_geq(disk_added(&w), 4 << 20);
	/* as if renames hid all of it from the next round */
	(void)snprintf(empty, sizeof(empty), "%s/empty", dir);
	cr_assert_eq(mkdir(empty, 0700), 0);
	fd_close(&w.root[0].fd);
	w.root[0].fd = open(empty, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(w.root[0].fd, 0);
	cr_assert(is_still_after_a_round(&w));
	cr_expect_lt(w.total, 4 << 20);
	cr_expect_lt(disk_added(&w), DISK_STILL_BYTES);
	cr_expect_not(disk_is_within(&w, 4 << 20), "what was added once still counts");
	w.closed_rounds = 1;
	cr_expect_not(disk_is_within(&w, UINT64_MAX),
		      "nor with a directory that was closed");
	disk_done(&w);
}

/* A mount or a subvolume: the file system's figures say nothing of it. */
Test(disk, a_directory_on_another_device_is_told, .init = make_tmpfs_tree,
     .fini = remove_tree)
{
	struct disk_walk w;
	char path[64];

	put("file", 1 << 20);
	begin(&w, false);
	w.root[0].dev++; /* as if what is in it were elsewhere */
	cr_assert(walk(&w, 100));
	cr_expect_not(w.foreign, "a file of overlayfs may have another device");
	cr_expect_geq(w.total, 1 << 20);
	(void)snprintf(path, sizeof(path), "%s/below", dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert(walk(&w, 100));
	cr_expect(w.foreign);
	disk_done(&w);
}

Test(disk, empty_files_are_growth_too, .init = make_tmpfs_tree, .fini = remove_tree)
{
	struct disk_walk w;

	begin(&w, false);
	cr_assert(is_still_after_a_round(&w));
	cr_expect(grows_by(&w, DISK_STILL_BYTES, DISK_STILL_BYTES / DISK_ENTRY_BYTES + 10,
			   0));
	cr_expect_not(disk_is_still(&w));
	disk_done(&w);
}

/* A file can be moved from a tree of the user's, where it was no growth. */
Test(disk, several_trees_and_the_users_own_are_never_still, .init = make_tmpfs_tree,
     .fini = remove_tree)
{
	struct err err = ERR_INIT;
	struct disk_walk w;

	begin(&w, true);
	cr_expect_not(is_still_after_a_round(&w));
	disk_done(&w);
	begin(&w, false);
	cr_assert_eq(
		disk_add(&w, open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), false, &err),
		0);
	cr_expect_not(is_still_after_a_round(&w));
	disk_done(&w);
}

/* Where the free space says nothing, each round is walked. */
Test(disk, a_file_system_without_an_answer_is_never_still)
{
	struct err err = ERR_INIT;
	struct disk_walk w;

	disk_init(&w);
	cr_assert_eq(disk_add(&w,
			      open("/proc/self/fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC),
			      false, &err),
		     0);
	cr_expect_not(is_still_after_a_round(&w));
	disk_done(&w);
}
