/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 60 */
/* The file workers for real: processes below their walls, in three directories; what they do
 * for a job, and what becomes of the others when one of them waits. */
#include "tomb/files/files.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_USEC (3 * USEC_PER_SEC)

static char dir[] = "/tmp/lych-files-XXXXXX";
static char jobs[64], spool[64], artifacts[64], quarantine[64];
static struct files_place place;
static struct loop *loop;
static struct loop_timer *guard;
static struct files *files;
static bool up, gone;
static unsigned told, failed;
static struct err last; /* of the task that was told last */
static struct err gone_why;
static int got[FILES_FDS_MAX];
static struct harvest harvest;

static void too_long(void *arg UNUSED)
{
	loop_stop(loop, 99);
}

static void run(unsigned sec)
{
	struct err err = ERR_INIT;

	loop_timer_arm(guard, sec * USEC_PER_SEC);
	cr_assert_eq(loop_run(loop, &err), 0, "nothing came in %u s", sec);
	loop_timer_disarm(guard);
}

static void on_up(void *arg UNUSED)
{
	up = true;
	loop_stop(loop, 0);
}

static void on_gone(const struct err *why, void *arg UNUSED)
{
	gone_why = *why;
	gone = true;
	loop_stop(loop, 0);
}

static void sub(char path[64], const char *name)
{
	cr_assert_eq(str_fmt(path, 64, "%s/%s", dir, name), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
}

static void setup(void)
{
	const struct files_events ev = {
		.up = on_up, .gone = on_gone, .patience_usec = PATIENCE_USEC};
	struct err err = ERR_INIT;

	cr_assert_not_null(mkdtemp(dir));
	sub(jobs, "jobs");
	sub(spool, "spool");
	sub(artifacts, "artifacts");
	sub(quarantine, "quarantine");
	place = (struct files_place){.jobs = jobs,
				     .spool = spool,
				     .artifacts = artifacts,
				     .quarantine = quarantine};
	cr_assert_eq(files_start(&place, 2, &files, &err), 0, "%s", err.msg);
	cr_assert_eq(loop_new(&loop, &err), 0);
	guard = loop_timer_new(loop, too_long, NULL);
	cr_assert_eq(files_attach(files, loop, &ev, &err), 0);
	run(20);
	cr_assert(up, "%s", gone_why.msg);
}

static void teardown(void)
{
	cleanup_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err = ERR_INIT;

	files_free(files);
	loop_timer_free(guard);
	loop_free(loop);
	harvest_done(&harvest);
	cr_assert_eq(fs_remove_beneath(tmp, dir + 5, &err), 0, "%s", err.msg);
}

TestSuite(files, .init = setup, .fini = teardown, .timeout = 50);

static void on_done(struct files_answer *a, const struct err *err, void *arg)
{
	struct err bad = ERR_INIT;

	last = err ? *err : (struct err)ERR_INIT;
	for (int i = 0; i < FILES_FDS_MAX; i++) {
		fd_close(&got[i]);
		got[i] = TAKE_FD(a->fds[i]);
	}
	if (a->payload)
		cr_assert_eq(
			files_harvest_read(a->payload, a->payload_bytes, &harvest, &bad),
			0, "%s", bad.msg);
	told++;
	failed += err != NULL;
	if (arg)
		*(bool *)arg = true;
	loop_stop(loop, 0);
}

static void ask(enum files_op op, const char *job, const char *name,
		const struct buf *payload)
{
	got[0] = got[1] = -1;
	(void)files_ask(files, op, job, name, payload, on_done, NULL);
	run(20);
}

static void must(enum files_op op, const char *job, const char *name,
		 const struct buf *payload)
{
	ask(op, job, name, payload);
	cr_assert_eq(last.code, ERR_NONE, "%s", last.msg);
}

static void put(struct buf *b, enum files_where where, unsigned mode, const char *path,
		const char *data)
{
	const struct files_put p = {.where = where,
				    .mode = mode,
				    .path = path,
				    .path_len = strlen(path),
				    .data = data,
				    .data_len = strlen(data)};

	files_put_add(b, &p);
}

static char *content(const char *format, const char *name)
{
	static char text[256];
	char path[256];
	cleanup_close int fd = -1;
	ssize_t n;

	cr_assert_eq(str_fmt(path, sizeof(path), "%s/%s/%s", dir, format, name), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", path);
	n = read(fd, text, sizeof(text) - 1);
	cr_assert_geq(n, 0);
	text[n] = '\0';
	return text;
}

static bool exists(const char *name)
{
	char path[256];
	struct stat st;

	cr_assert_eq(str_fmt(path, sizeof(path), "%s/%s", dir, name), 0);
	return lstat(path, &st) == 0;
}

/* The parent and the workers, the oldest first: below this process, whose pid is the fork of
 * Criterion's. */
static size_t processes(pid_t *ret, size_t max)
{
	pid_t todo[16] = {getpid()};
	size_t n = 0, n_todo = 1;

	for (size_t i = 0; i < n_todo; i++) {
		char path[64], text[256] = "", *at = text;
		cleanup_close int fd = -1;

		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", todo[i],
			       todo[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
			continue;
		for (pid_t pid; (pid = (pid_t)strtol(at, &at, 10)) > 0;) {
			cr_assert(n < max && n_todo < 16);
			ret[n++] = todo[n_todo++] = pid;
		}
	}
	return n;
}

Test(files, a_job_from_its_folder_to_its_removal)
{
	cleanup_buf struct buf b = {.max = PAYLOAD_MAX_BYTES};
	cleanup_buf struct buf globs = {.max = 4096};

	must(FILES_MAKE, "1.1", "", NULL);
	cr_assert(got[0] >= 0 && got[1] >= 0);
	cr_assert_eq(pwrite(got[0], "said", 4, 0), 4);
	cr_assert_str_eq(content("spool/1.1", "stdout"), "said");
	must(FILES_NEW, "1.1", "file-0", NULL);
	cr_assert_eq(write(got[0], "of a blob", 9), 9);
	put(&b, FILES_IN_WORK, 0644, "a/b/c.txt", "text");
	put(&b, FILES_FROM_BLOB, 0755, "run.sh", "file-0");
	put(&b, FILES_IN_SPOOL, 0, "stdin", "read me");
	put(&b, FILES_IN_WORK, 0644, ".git/config", "[alias]");
	must(FILES_PLACE, "1.1", "stdin", &b);
	cr_assert_str_eq(content("jobs/1.1/work", "a/b/c.txt"), "text");
	cr_assert_str_eq(content("jobs/1.1/work", "run.sh"), "of a blob");
	char text[16] = "";
	cr_assert_eq(read(got[0], text, sizeof(text)), 7);
	cr_assert_str_eq(text, "read me");
	cr_assert_lt(write(got[0], "x", 1), 0, "a job's stdin can be written");

	buf_add(&globs, "**", 3);
	must(FILES_HARVEST, "1.1", "", &globs);
	cr_assert_eq(harvest.kept.n, 2);
	cr_assert_str_eq(harvest.kept.item[0].path, "a/b/c.txt");
	cr_assert_eq(harvest.kept.item[0].size, 4);
	cr_assert_eq(harvest.held.n, 1);
	cr_assert_str_eq(harvest.held.item[0].path, ".git/config");
	cr_assert(harvest.held.item[0].why && harvest.held.item[0].why[0]);
	cr_assert(exists("quarantine/1.1/manifest.jsonl"));
	(void)snprintf(text, sizeof(text), "%u", harvest.kept.item[0].n);
	must(FILES_COPY, "1.1", text, NULL);
	memset(text, 0, sizeof(text));
	cr_assert_eq(read(got[0], text, sizeof(text)), 4);
	cr_assert_str_eq(text, "text");

	must(FILES_CLEAN, "1.1", "", NULL);
	cr_assert_not(exists("jobs/1.1"));
	cr_assert_not(exists("spool/1.1"));
	cr_assert_not(exists("artifacts/1.1"));
	cr_assert(exists("quarantine/1.1"), "what was held is for a person");
}

Test(files, what_cannot_be_done_is_told_and_the_worker_goes_on)
{
	cleanup_buf struct buf b = {.max = PAYLOAD_MAX_BYTES};

	must(FILES_MAKE, "2.1", "", NULL);
	ask(FILES_MAKE, "2.1", "", NULL);
	cr_assert_eq(last.sys, EEXIST, "%s", last.msg);
	ask(FILES_OPEN, "2.1", "missing", NULL);
	cr_assert_eq(last.sys, ENOENT);
	ask(FILES_OPEN, "2.1", "../work", NULL);
	cr_assert_neq(last.code, ERR_NONE);
	ask(FILES_OPEN, "../outside", "x", NULL);
	cr_assert_neq(last.code, ERR_NONE);
	buf_add(&b, "no list", 7);
	ask(FILES_PLACE, "2.1", "", &b);
	cr_assert_eq(last.code, ERR_INTERNAL);
	must(FILES_NEW, "2.1", "file-0", NULL);
}

/* A link that an archive brought is not followed on the way to a file of the spec. */
Test(files, nothing_is_placed_through_a_link)
{
	cleanup_buf struct buf b = {.max = PAYLOAD_MAX_BYTES};
	char path[256];

	must(FILES_MAKE, "3.1", "", NULL);
	cr_assert_eq(str_fmt(path, sizeof(path), "%s/jobs/3.1/work/out", dir), 0);
	cr_assert_eq(symlink(quarantine, path), 0);
	put(&b, FILES_IN_WORK, 0644, "out/planted", "x");
	ask(FILES_PLACE, "3.1", "", &b);
	cr_assert_neq(last.code, ERR_NONE);
	cr_assert_not(exists("quarantine/planted"));
}

Test(files, many_tasks_of_many_jobs_each_in_its_order)
{
	char job[16];

	for (int i = 0; i < 100; i++) {
		(void)snprintf(job, sizeof(job), "%d.1", i);
		(void)files_ask(files, FILES_MAKE, job, "", NULL, on_done, NULL);
		(void)files_ask(files, FILES_NEW, job, "file-0", NULL, on_done, NULL);
		files_cancel(
			files_ask(files, FILES_NEW, job, "never", NULL, on_done, NULL));
		(void)files_ask(files, FILES_CLEAN, job, "", NULL, on_done, NULL);
	}
	while (told < 300)
		run(20);
	cr_assert_eq(failed, 0, "%s", last.msg);
	cr_assert_eq(rmdir(jobs), 0, "something stayed behind");
	cr_assert_eq(mkdir(jobs, 0700), 0);
}

/* The one that waits is stopped from outside, as by a lock that nobody gives back. */
Test(files, who_waits_holds_up_its_own_job_and_nobody_else)
{
	bool stuck = false, later = false;
	pid_t all[8];
	size_t n;

	must(FILES_MAKE, "4.1", "", NULL);
	n = processes(all, 8);
	cr_assert_eq(n, 2, "%zu: a parent and one worker", n);
	cr_assert_eq(kill(all[1], SIGSTOP), 0);
	(void)files_ask(files, FILES_NEW, "4.1", "file-0", NULL, on_done, &stuck);
	(void)files_ask(files, FILES_CLEAN, "4.1", "", NULL, on_done, &later);
	/* another job gets a worker that is forked for it */
	must(FILES_MAKE, "5.1", "", NULL);
	must(FILES_CLEAN, "5.1", "", NULL);
	cr_assert_not(stuck || later);
	while (!stuck || !later)
		run(10);
	cr_assert_eq(last.code, ERR_UNAVAILABLE);
	cr_assert_not(gone);
	/* it comes to itself: what was begun is done, nobody is told, and it is used again */
	cr_assert_eq(kill(all[1], SIGCONT), 0);
	must(FILES_OPEN, "4.1", "file-0", NULL);
	must(FILES_CLEAN, "4.1", "", NULL);
}

Test(files, a_worker_that_dies_costs_its_task_only)
{
	pid_t all[8];
	size_t n;

	must(FILES_MAKE, "6.1", "", NULL);
	n = processes(all, 8);
	cr_assert_eq(n, 2);
	cr_assert_eq(kill(all[1], SIGKILL), 0);
	ask(FILES_NEW, "6.1", "file-0", NULL);
	if (last.code != ERR_NONE) {
		cr_assert_eq(last.code, ERR_UNAVAILABLE, "%s", last.msg);
		must(FILES_NEW, "6.1", "file-1", NULL);
	}
	must(FILES_CLEAN, "6.1", "", NULL);
}

Test(files, a_parent_that_is_stopped_or_dead_is_told)
{
	pid_t all[8];

	cr_assert_eq(processes(all, 8), 2);
	cr_assert_eq(kill(all[0], SIGSTOP), 0);
	cr_assert_eq(kill(all[1], SIGSTOP), 0);
	(void)files_ask(files, FILES_MAKE, "7.1", "", NULL, on_done, NULL);
	(void)files_ask(files, FILES_MAKE, "8.1", "", NULL, on_done, NULL);
	while (!gone)
		run(10);
	cr_assert(strstr(gone_why.msg, "does not answer"), "%s", gone_why.msg);
	cr_assert_eq(kill(all[0], SIGKILL), 0);
	cr_assert_eq(kill(all[1], SIGKILL), 0);
}
