/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the supervision: what /proc says, sets of inodes, the walk over a
 * workspace. */
#include "common/cleanup.h"
#include "common/fs.h"
#include "sandbox/keeper/disk.h"
#include "sandbox/keeper/hidden.h"
#include "sandbox/keeper/tree.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#define REST                                                                             \
	" 1 1 0 -1 4194560 10 0 0 0 7 5 3 2 20 0 4 0 12345 1000 10 "                     \
	"18446744073709551615\n"

Test(tree, stat_line_is_read)
{
	struct tree_proc p;

	cr_assert_eq(tree_parse_stat("42 (sh) S 7" REST, &p), 0);
	cr_expect_eq(p.pid, 42);
	cr_expect_eq(p.ppid, 7);
	cr_expect_eq(p.state, 'S');
	cr_expect_eq(p.cpu_ticks, 17);
	cr_expect_eq(p.flags, 4194560);
	cr_expect_eq(p.threads, 4);
	cr_expect_eq(p.start, 12345);
}

/* The name of a process is the job's to choose. */
Test(tree, a_name_cannot_forge_the_line)
{
	struct tree_proc p;

	cr_assert_eq(tree_parse_stat("42 (x) Z 1) R 9" REST, &p), 0);
	cr_expect_eq(p.ppid, 9);
	cr_expect_eq(p.state, 'R');
	cr_assert_eq(tree_parse_stat("42 () S 1 \n ((\t) S 8" REST, &p), 0);
	cr_expect_eq(p.ppid, 8);
}

Test(tree, what_is_no_stat_line_is_refused)
{
	static const char *const lines[] = {"",
					    "42",
					    "42 (sh",
					    "42 (sh)",
					    "42 (sh) S",
					    "(sh) S 1",
					    "x (sh) S 1" REST,
					    "0 (sh) S 1" REST,
					    "42 (sh) S 7 1 1"};
	struct tree_proc p;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		cr_expect_lt(tree_parse_stat(lines[i], &p), 0, "%s", lines[i]);
}

Test(tree, status_values_are_whole_names)
{
	const char *text = "Name:\tRssAnon:   9 kB\nVmRSS:\t  12 kB\nRssAnon:\t   8 "
			   "kB\nRssShmem: 0 kB\n";

	cr_expect_eq(tree_status_bytes(text, "RssAnon"), 8 * 1024);
	cr_expect_eq(tree_status_bytes(text, "VmRSS"), 12 * 1024);
	cr_expect_eq(tree_status_bytes(text, "RssShmem"), 0);
	cr_expect_eq(tree_status_bytes(text, "VmSwap"), 0);
	cr_expect_eq(tree_status_bytes("", "VmSwap"), 0);
}

Test(tree, an_inode_is_new_once)
{
	struct inode_set s = {0};

	for (uint64_t i = 1; i < 5000; i++)
		cr_assert(inode_set_add(&s, i % 3, i));
	for (uint64_t i = 1; i < 5000; i++)
		cr_assert_not(inode_set_add(&s, i % 3, i));
	cr_expect(inode_set_add(&s, 9, 1));
	inode_set_reset(&s);
	cr_expect(inode_set_add(&s, 1, 1));
	inode_set_done(&s);
}

Test(tree, a_full_set_over_counts)
{
	struct inode_set s = {0};

	for (uint64_t i = 1; i <= INODE_SET_MAX; i++)
		cr_assert(inode_set_add(&s, 1, i));
	for (uint64_t i = 1; i <= 1000; i++)
		cr_assert(inode_set_add(&s, 1, INODE_SET_MAX + i));
	cr_expect(inode_set_add(&s, 1, INODE_SET_MAX + 1), "counted again, not lost");
	inode_set_done(&s);
}

static const struct tree_proc *find(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->proc[i].pid == pid)
			return &t->proc[i];
	return NULL;
}

/* /proc has the whole machine in floor. */
Test(tree, what_is_older_than_the_keeper_is_read_once)
{
	struct tree t;
	struct err err = ERR_INIT;
	size_t first;
	uint64_t ino;
	pid_t child;

	cr_assert_eq(tree_init(&t, GRADE_FLOOR, 0, -1, &err), 0);
	cr_assert_eq(tree_scan(&t, &err), 0);
	first = t.n;
	cr_assert_not_null(find(&t, 1));
	child = fork();
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	cr_assert_gt(child, 0);
	cr_expect_eq(tree_scan(&t, &err), 1);
	cr_expect_lt(t.n, first + 1);
	cr_expect_null(find(&t, 1));
	cr_assert_not_null(find(&t, child));
	ino = find(&t, child)->ino;
	/* the number of one that is gone */
	(void)inode_set_add(&t.older, (uint64_t)child, ino + 1);
	cr_expect_eq(tree_scan(&t, &err), 1);
	/* what would be if the listing named another process alike */
	(void)inode_set_add(&t.older, (uint64_t)child, ino);
	cr_expect_eq(tree_scan(&t, &err), 0);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	tree_done(&t);
}

static char dir[32] = "/tmp/test_tree.XXXXXX";

static void make_tree(void)
{
	cr_assert_not_null(mkdtemp(dir));
}

/* On a file system whose free space goes down with each write. */
static void make_tmpfs_tree(void)
{
	(void)snprintf(dir, sizeof(dir), "/dev/shm/test_tree.XXXXXX");
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

Test(hidden, a_line_of_maps_is_read)
{
	uint64_t dev, ino, bytes;

	cr_assert(hidden_parse_map("7f0000000000-7f0000003000 rw-s 00000000 00:01 2051"
				   "                       /memfd:x (deleted)",
				   &dev, &ino, &bytes));
	cr_expect_eq(dev, makedev(0, 1));
	cr_expect_eq(ino, 2051u);
	cr_expect_eq(bytes, 0x3000u);
	cr_expect_not(hidden_parse_map("1000-2000 rw-p 00000000 00:00 0 [heap]", &dev,
				       &ino, &bytes),
		      "no file");
	cr_expect_not(hidden_parse_map("2000-1000 rw-p 0 00:01 5", &dev, &ino, &bytes),
		      "backwards");
	cr_expect_not(hidden_parse_map("", &dev, &ino, &bytes));
}

static uint64_t count(const char *text, const char *prefix)
{
	cleanup_close int fd = memfd_create("text", MFD_CLOEXEC);
	uint64_t n;

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	n = hidden_count(fd, prefix);
	return n;
}

Test(hidden, the_file_of_a_mapping_is_told_by_its_fields)
{
	const struct {
		const char *line;
		uint64_t dev, ino;
	} files[] = {
		{"7f00-7f10 r-xp 00000000 fe:01 1234   /usr/lib/x.so", makedev(0xfe, 1),
		 1234},
		{"7f00-7f10 rw-s 00001000 00:1a 77 /memfd:a b (deleted)",
		 makedev(0, 0x1a), 77},
		{"ffffffffff600000-ffffffffff601000 r--s 0 103:02 18446744073709551615",
		 makedev(0x103, 2), UINT64_MAX},
	};
	static const char *const none[] = {
		"",
		"7f00-7f10",
		"7f00-7f10 rw-p 00000000 00:00 0 ",
		"7ffc-7ffd rw-p 00000000 00:00 0   [stack]",
		"7f00-7f10 rw-p 00000000 00:1a",
	};
	uint64_t dev, ino;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cr_assert(hidden_map_file(files[i].line, &dev, &ino), "%s",
			  files[i].line);
		cr_expect_eq(dev, files[i].dev, "%s", files[i].line);
		cr_expect_eq(ino, files[i].ino, "%s", files[i].line);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		cr_expect_not(hidden_map_file(none[i], &dev, &ino), "%s", none[i]);
}

Test(hidden, lines_are_counted_by_how_they_begin)
{
	cr_expect_eq(count("tfd: 1\nxtfd: 2\ntfd: 3", "tfd:"), 2u);
	cr_expect_eq(count("tftfd:\ntfd\n:tfd:\n", "tfd:"), 0u);
	cr_expect_eq(count("pos:\t0\nlock:\t1: FLOCK\nlock:\t2: POSIX\n", "lock:"), 2u);
	cr_expect_eq(count("", "tfd:"), 0u);
}

/* One round in which nothing was held but what is told. */
static struct hidden_sum one_look(struct hidden *h, struct inode_set *held, uint64_t ino,
				  uint64_t bytes, unsigned parked, uint64_t missing)
{
	struct hidden_sum sum;

	inode_set_reset(held);
	hidden_begin(h);
	hidden_park(h, parked);
	if (ino) {
		(void)inode_set_add(held, 1, ino);
		hidden_note(h, 1, ino, bytes, HIDDEN_MEMORY);
	}
	hidden_end(h, held, &(struct hidden_missing){.memory = missing, .files = missing},
		   &sum);
	return sum;
}

#define ANY UINT64_MAX

Test(hidden, what_could_be_parked_counts_on)
{
	const uint64_t size = (uint64_t)64 << 20;
	struct err err = ERR_INIT;
	struct hidden *h = hidden_new(1, -1, -1, -1, &err);
	struct inode_set held = {0};

	cr_expect_eq(one_look(h, &held, 7, size, 0, ANY).memory_bytes, 0u,
		     "held: not ours");
	cr_expect_eq(one_look(h, &held, 0, 0, 1, ANY).memory_bytes, size, "parked");
	cr_expect_eq(one_look(h, &held, 0, 0, 1, ANY).memory_bytes, size, "and stays so");
	cr_expect_eq(one_look(h, &held, 7, size, 1, ANY).memory_bytes, 0u,
		     "taken out again");
	cr_expect_eq(one_look(h, &held, 0, 0, 0, ANY).memory_bytes, 0u,
		     "nothing is parked");
	cr_expect_eq(one_look(h, &held, 0, 0, 1, ANY).memory_bytes, 0u,
		     "it was forgotten");
	inode_set_done(&held);
	hidden_free(h);
}

/* One round in which one page of an object is mapped that nobody holds (ino; 0: none). */
static uint64_t one_growth(struct hidden *h, unsigned ino, unsigned parked,
			   uint64_t shmem_mib, uint64_t shown_mib)
{
	const struct hidden_missing missing = {.shmem = shmem_mib << 20,
					       .shown = shown_mib << 20};
	struct inode_set held = {0};
	struct hidden_sum sum;
	char line[96];

	(void)snprintf(line, sizeof(line),
		       "10000-11000 rw-s 00000000 00:01 %u /memfd:x (deleted)", ino);
	hidden_begin(h);
	hidden_park(h, parked);
	if (ino)
		hidden_map(h, line, true);
	hidden_maps_end(h);
	hidden_end(h, &held, &missing, &sum);
	cr_expect_eq(sum.guessed_bytes, sum.memory_bytes);
	return sum.memory_bytes >> 20;
}

Test(hidden, what_came_while_a_place_is_new_is_the_places)
{
	struct err err = ERR_INIT;
	struct hidden *h = hidden_new(1, -1, -1, -1, &err);

	cr_expect_eq(one_growth(h, 0, 0, 50, 0), 0u, "it came before there was a place");
	cr_expect_eq(one_growth(h, 7, 0, 150, 0), 100u);
	cr_expect_eq(one_growth(h, 7, 0, 170, 0), 120u, "the round had begun before it");
	cr_expect_eq(one_growth(h, 7, 0, 400, 0), 120u, "this is somebody else's");
	cr_expect_eq(one_growth(h, 7, 0, 60, 0), 60u, "there is no more");
	cr_expect_eq(one_growth(h, 0, 0, 400, 0), 0u, "the place is gone");
	hidden_free(h);
}

Test(hidden, what_pages_explain_is_not_hidden)
{
	struct err err = ERR_INIT;
	struct hidden *h = hidden_new(1, -1, -1, -1, &err);
	char line[] = "10000000-20000000 rw-s 00000000 00:01 7 /dev/zero (deleted)";
	const struct hidden_missing missing = {.shmem = (uint64_t)200 << 20,
					       .shown = (uint64_t)200 << 20};
	struct inode_set held = {0};
	struct hidden_sum sum;

	hidden_begin(h);
	hidden_map(h, line, true);
	hidden_maps_end(h);
	hidden_end(h, &held, &missing, &sum);
	cr_expect_eq(sum.memory_bytes, 0u, "256 MiB are mapped, 200 of them there");
	hidden_free(h);
}

/* In floor nobody lists the sockets that are parked in one. */
Test(hidden, what_comes_while_something_is_parked_may_be_in_it)
{
	struct err err = ERR_INIT;
	struct hidden *h = hidden_new(1, -1, -1, -1, &err);

	cr_expect_eq(one_growth(h, 0, 1, 100, 0), 100u);
	cr_expect_eq(one_growth(h, 0, 1, 150, 0), 150u);
	cr_expect_eq(one_growth(h, 0, 1, 151, 0), 150u, "others' memory grows too");
	cr_expect_eq(one_growth(h, 0, 0, 151, 0), 0u, "nothing is parked any more");
	hidden_free(h);
}

Test(hidden, few_places_are_free_and_many_are_not)
{
	const uint64_t mib = (uint64_t)1 << 20;
	struct err err = ERR_INIT;
	struct hidden *h = hidden_new(1, -1, -1, -1, &err);
	struct inode_set held = {0};
	struct hidden_sum sum;

	for (int i = 0; i < 50; i++) {
		cr_expect_eq(one_look(h, &held, 0, 0, 8, ANY).memory_bytes, 0u);
		(void)usleep(10000);
	}
	cr_expect_eq(one_look(h, &held, 0, 0, 40, ANY).memory_bytes, 0u, "for a moment");
	cr_expect(one_look(h, &held, 0, 0, 40, ANY).watch);
	(void)usleep(250000);
	sum = one_look(h, &held, 0, 0, 40, ANY);
	cr_expect_eq(sum.memory_bytes, 32 * 32 * mib);
	cr_expect_eq(sum.guessed_bytes, sum.memory_bytes, "all of it is a guess");
	/* Chromium, and 24 times mmap(-1, 4096): no more than is missing anywhere. */
	cr_expect_eq(one_look(h, &held, 0, 0, 40, 3 * mib).memory_bytes, 3 * mib);
	cr_expect_eq(one_look(h, &held, 0, 0, 40, 0).memory_bytes, 0u);
	cr_expect_eq(one_look(h, &held, 0, 0, 0, ANY).memory_bytes, 0u);
	inode_set_done(&held);
	hidden_free(h);
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
