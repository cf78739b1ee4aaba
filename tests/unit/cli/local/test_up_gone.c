/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that an earlier tomb is dead. */
#include "cli/local/up_gone.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/lych-gone-XXXXXX";
static char *record;
static struct err err = ERR_INIT;

static void begin(void)
{
	cr_assert_not_null(mkdtemp(dir));
	record = xasprintf("%s/tomb.process", dir);
}

static void end(void)
{
	(void)unlink(record);
	(void)rmdir(dir);
	free(record);
}

TestSuite(up_gone, .init = begin, .fini = end, .timeout = 10);

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static void reap(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* One word of the record, counted from 0, replaced. */
static void change(unsigned which, const char *with)
{
	cleanup_free char *text = NULL;
	char out[512] = "";
	size_t len, at = 0;
	unsigned i = 0;

	cr_assert_eq(fs_read_file(AT_FDCWD, record, 256, &text, &len, &err), 0);
	for (char *save = NULL, *w = strtok_r(text, " \n", &save); w;
	     w = strtok_r(NULL, " \n", &save), i++)
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s ",
				       i == which ? with : w);
	cr_assert_eq(fs_write_atomic(AT_FDCWD, record, out, strlen(out), 0600, &err), 0);
}

enum { MACHINE, BOOT, PID_NS, PID, START, STARTER, STARTER_START };

Test(up_gone, no_record_or_a_broken_one_proves_nothing)
{
	cr_assert_null(gone_prove(record));
	for (size_t cut = 0; cut < 60; cut++) {
		const char text[] = "m b 1 2 3 4\nx 77777777777777777777777777777777777"
				    "7777777777777777777777777777777777777777777";

		cr_assert_eq(fs_write_atomic(AT_FDCWD, record, text, cut, 0600, &err), 0);
		cr_assert_null(gone_prove(record));
	}
}

Test(up_gone, who_is_gone_is_proved_and_who_is_there_is_ended_first)
{
	pid_t pid = child();
	int status;

	cr_assert_eq(gone_record(record, pid, getpid(), &err), 0, "%s", err.msg);
	cr_assert_str_eq(gone_prove(record), TOMB_GONE_ALONE);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* Its number names nobody now. */
	cr_assert_str_eq(gone_prove(record), TOMB_GONE_ALONE);
	cr_assert_eq(gone_forget(record, &err), 0);
	cr_assert_null(gone_prove(record));
	cr_assert_eq(gone_forget(record, &err), 0);
}

Test(up_gone, a_number_that_names_somebody_else_now_is_proved_and_left_alone)
{
	pid_t pid = child();

	cr_assert_eq(gone_record(record, pid, getpid(), &err), 0);
	change(START, "1");
	cr_assert_str_eq(gone_prove(record), TOMB_GONE_ALONE);
	cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "the stranger was killed");
	reap(pid);
}

Test(up_gone, another_machine_or_namespace_proves_nothing_and_kills_nobody)
{
	pid_t pid = child();

	cr_assert_eq(gone_record(record, pid, getpid(), &err), 0);
	change(PID_NS, "1");
	cr_assert_null(gone_prove(record));
	cr_assert_eq(gone_record(record, pid, getpid(), &err), 0);
	change(MACHINE, "0123456789abcdef0123456789abcdef");
	cr_assert_null(gone_prove(record));
	cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0);
	reap(pid);
}

Test(up_gone, nothing_outlives_a_boot_of_this_machine)
{
	pid_t pid = child();

	cr_assert_eq(gone_record(record, pid, getpid(), &err), 0);
	change(BOOT, "00000000-0000-4000-8000-000000000001");
	if (access("/etc/machine-id", R_OK) == 0) {
		cr_assert_str_eq(gone_prove(record), TOMB_GONE_ALONE);
		change(MACHINE, "-");
	}
	cr_assert_null(gone_prove(record));
	cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "it has the number of a dead one");
	reap(pid);
}

Test(up_gone, a_dead_starter_took_the_house_with_it)
{
	pid_t tomb = child(), starter = child();

	cr_assert_eq(gone_record(record, tomb, starter, &err), 0);
	(void)kill(starter, SIGKILL);
	/* Dead, and not waited for by anybody: dead. */
	while (waitid(P_PID, (id_t)starter, &(siginfo_t){0}, WEXITED | WNOWAIT) < 0)
		;
	cr_assert_str_eq(gone_prove(record), TOMB_GONE_HOUSE);
	reap(starter);
	cr_assert_str_eq(gone_prove(record), TOMB_GONE_HOUSE);
	reap(tomb);
}

Test(up_gone, the_word_is_left_or_taken_away)
{
	cleanup_free char *word = xasprintf("%s/" TOMB_GONE_FILE, dir);
	cleanup_free char *text = NULL;
	size_t len;

	cr_assert_eq(gone_tell(dir, NULL, &err), 0);
	/* Whatever a tomb put there is not followed. */
	cr_assert_eq(symlink("/etc/passwd", word), 0);
	cr_assert_eq(gone_tell(dir, TOMB_GONE_HOUSE, &err), 0);
	cr_assert_eq(fs_read_file(AT_FDCWD, word, 64, &text, &len, &err), 0);
	cr_assert_str_eq(text, TOMB_GONE_HOUSE);
	cr_assert_eq(gone_tell(dir, NULL, &err), 0);
	cr_assert_neq(access(word, F_OK), 0);
}
