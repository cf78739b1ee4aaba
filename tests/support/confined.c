/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon in miniature: confines itself to the directory DIR, runs the self-test
 * with the FOREIGN paths, does a daemon's ordinary work, then tries the rest.
 *
 *	confined [--root] [--no-unix] DIR FOREIGN...
 *
 * Exit 0 all walls stand and the work went; 78 could not confine; 1 otherwise.
 */
#include "common/cleanup.h"
#include "common/confine/confine.h"
#include "common/landlock.h"
#include "common/net/loop.h"
#include "common/str.h"
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int failures;

static void expect(bool ok, const char *what)
{
	printf("%s %s%s%s\n", ok ? "ok" : "not ok", what, ok ? "" : ": ",
	       ok ? "" : strerrorname_np(errno));
	failures += !ok;
}

static void on_timer(void *arg)
{
	loop_stop(arg, 7);
}

static void on_signal(int signo, void *arg)
{
	(void)signo;
	(void)arg;
}

static void work(const char *dir, bool may_unix)
{
	struct err err = ERR_INIT;
	struct loop *l = NULL;
	struct loop_timer *t;
	char path[512];
	int pair[2];
	FILE *f;

	expect(str_fmt(path, sizeof(path), "%s/file", dir) == 0, "name a file");
	f = fopen(path, "we");
	expect(f && fputs("x\n", f) >= 0 && fclose(f) == 0, "write a file");
	expect(chmod(path, 0640) == 0 && unlink(path) == 0, "change and remove it");
	expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0,
	       "socketpair");
	if (may_unix) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		PGconn *pg = PQconnectdb("host=/nonexistent user=x dbname=x password=y");

		expect(fd >= 0, "socket(AF_UNIX)");
		fd_close(&fd);
		expect(PQstatus(pg) == CONNECTION_BAD &&
			       strstr(PQerrorMessage(pg), "No such file"),
		       "libpq tries and reports");
		PQfinish(pg);
	}
	expect(loop_new(&l, &err) == 0 &&
		       loop_signal(l, SIGTERM, on_signal, NULL, &err) == 0,
	       "event loop");
	t = loop_timer_new(l, on_timer, l);
	loop_timer_arm(t, 1000);
	expect(loop_run(l, &err) == 7, "timer on the loop");
	loop_timer_free(t);
	loop_free(l);
}

static void try_the_rest(void)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0 && errno == EPERM,
	       "a page cannot become executable");
	expect(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 && errno == EPERM,
	       "dumpable cannot come back");
	expect(fcntl(0, F_SETOWN, getppid()) < 0 && errno == EPERM,
	       "SIGIO to others is refused");
	expect(kill(-1, SIGCONT) < 0 && errno == EPERM,
	       "a signal to everybody is refused");
	expect(kill(0, SIGCONT) < 0 && errno == EPERM,
	       "a signal to the group is refused");
	expect(syscall(471, 0, 0, 0) < 0 && errno == ENOSYS, "an unknown call is ENOSYS");
	expect(socket(AF_UNIX | 0x10, SOCK_STREAM, 0) < 0, "another family is refused");
}

int main(int argc, char **argv)
{
	struct confine_policy policy = {.name = "confined",
					.may_make_unix_sockets = true};
	struct confine_report report;
	struct confine_path paths[1];
	struct err err = ERR_INIT;
	int i = 1;

	for (; i < argc && str_starts(argv[i], "--"); i++) {
		if (str_eq(argv[i], "--root"))
			policy.private_root = true;
		else if (str_eq(argv[i], "--no-unix"))
			policy.may_make_unix_sockets = false;
	}
	if (i >= argc)
		return 2;
	paths[0] = (struct confine_path){argv[i], LL_FS_RW};
	policy.paths = paths;
	policy.n_paths = 1;
	if (confine_self(&policy, &err) < 0) {
		(void)fprintf(stderr, "%s %s\n", err_text(&err), err.msg);
		return 78;
	}
	if (confine_selftest(&policy, (const char *const *)&argv[i + 1], &report, &err) <
	    0) {
		(void)fprintf(stderr, "%s %s\n", err_text(&err), err.msg);
		failures++;
	}
	for (unsigned n = 0; n < report.n; n++)
		printf("%s %s: %s\n", report.line[n].held ? "held" : "OPEN",
		       report.line[n].wall, report.line[n].answer);
	work(argv[i], policy.may_make_unix_sockets);
	try_the_rest();
	return failures ? 1 : 0;
}
