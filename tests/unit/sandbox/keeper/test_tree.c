/* SPDX-License-Identifier: Apache-2.0 */
/* Pure parts of the supervision: what /proc says, sets of inodes, what nobody holds. */
#include "common/cleanup.h"
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
