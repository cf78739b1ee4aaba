/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	try_probe --outside DIR
 *		the victims; writes DIR/work/targets; on SIGTERM judges what became of them
 *	try_probe --terminal PTS COMMAND...
 *		COMMAND with that terminal as its own
 *	try_probe full|floor [ID]
 *		inside, in the workspace: every attempt, a line each of
 *		verdict, grade, id, answer, wanted, what (separated by tabs)
 *	try_probe --table | --proofs
 *		the table for docs/SANDBOX.md; the tests it names and the marks in them
 * Exit 1: an answer that is not in the table, or a victim that was reached.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define TARGETS "targets"
#define TARGETS_MAX 65536
#define ROWS_MAX 512
#define PROBE_TIME_SEC 20
#define LOOK_USEC 20000
#define RESULT_FD 600 /* high, so that a probe finds only the descriptors it was given */

static const struct section *const sections[] = {
	&section_files,	 &section_metadata,  &section_roots,  &section_inet,
	&section_unix,	 &section_processes, &section_kernel, &section_terminal,
	&section_parent, &section_harvest,   &section_setup,  &section_leaks,
};
static const struct victims *const victims[] = {&victims_files, &victims_network,
						&victims_processes, &victims_terminal};

static const char *scratch;
static int is_floor;
static pid_t guard;
static char targets[TARGETS_MAX];

/* ---- what both sides know ------------------------------------------------------------ */

const char *scratch_path(const char *name)
{
	static char path[8][PATH_MAX];
	static unsigned next;
	char *p = path[next++ % 8];

	(void)snprintf(p, PATH_MAX, "%s/%s", scratch, name);
	return p;
}

const char *path_beside(const char *path, const char *name)
{
	static char beside[PATH_MAX];

	(void)snprintf(beside, sizeof(beside), "%s.%s", path, name);
	return beside;
}

void target_set(const char *key, const char *fmt, ...)
{
	size_t n = strlen(targets);
	va_list ap;

	(void)snprintf(targets + n, sizeof(targets) - n, "%s ", key);
	n = strlen(targets);
	va_start(ap, fmt);
	(void)vsnprintf(targets + n, sizeof(targets) - n, fmt, ap);
	va_end(ap);
	n = strlen(targets);
	(void)snprintf(targets + n, sizeof(targets) - n, "\n");
}

const char *target(const char *key)
{
	static char value[8][PATH_MAX];
	static unsigned next;
	size_t n = strlen(key);

	for (const char *line = targets; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, key, n) == 0 && line[n] == ' ') {
			char *v = value[next++ % 8];
			size_t len = strcspn(line + n + 1, "\n");

			(void)snprintf(v, PATH_MAX, "%.*s", (int)len, line + n + 1);
			return v;
		}
	(void)fprintf(stderr, "no target %s\n", key);
	_exit(2);
}

long target_number(const char *key)
{
	return strtol(target(key), NULL, 10);
}

/* ---- inside -------------------------------------------------------------------------- */

int in_floor(void)
{
	return is_floor;
}

int keeper_pid(void)
{
	return is_floor ? guard : 1;
}

int guard_pid(void)
{
	return guard;
}

int answer_of(long r)
{
	return r < 0 ? errno : GOT_THROUGH;
}

int allowed_or_errno(long r)
{
	return r < 0 ? errno : ALLOWED;
}

int read_outside(const char *path)
{
	return answer_of(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

int write_outside(const char *path)
{
	return answer_of(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

static const char *answer_name(int answer)
{
	static char text[32];

	if (answer == ALLOWED)
		return "allowed";
	if (answer == HELD)
		return "held";
	if (answer == NOT_HERE)
		return "-";
	if (answer == GOT_THROUGH)
		return "GOT THROUGH";
	if (answer == NO_ANSWER)
		return "NO ANSWER";
	if (answer > KILLED_BY) {
		(void)snprintf(text, sizeof(text), "SIG%s",
			       sigabbrev_np(answer - KILLED_BY));
		return text;
	}
	return strerrorname_np(answer) ? strerrorname_np(answer) : "?";
}

static void print_answers(const int *answers)
{
	for (int i = 0; i < ANSWERS_MAX && answers[i]; i++)
		(void)printf("%s%s", i ? " or " : "", answer_name(answers[i]));
}

static int is_wanted(const int *answers, int got)
{
	for (int i = 0; i < ANSWERS_MAX && answers[i]; i++)
		if (answers[i] == got)
			return 1;
	return 0;
}

/* A container around the sandbox (tests/e2e/) may refuse first, and with another errno: its
 * filter's ENOSYS, its root's EROFS; or show an empty file. What must be held is still held, nothing gets through. */
static int is_nested;
static int is_refused(int got)
{
	return is_nested && (got == HELD || (got > 0 && got < ALLOWED));
}

static int run_probe(const struct probe *p)
{
	int pipe_fd[2], answer = NO_ANSWER, status = 0;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return NO_ANSWER;
	pid = fork();
	if (pid == 0) {
		int out = fcntl(pipe_fd[1], F_DUPFD_CLOEXEC, RESULT_FD);

		(void)close(pipe_fd[0]);
		(void)close(pipe_fd[1]);
		(void)alarm(PROBE_TIME_SEC);
		answer = p->run();
		_exit(write(out, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
	}
	(void)close(pipe_fd[1]);
	if (read(pipe_fd[0], &answer, sizeof(answer)) != sizeof(answer))
		answer = NO_ANSWER;
	(void)close(pipe_fd[0]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		return KILLED_BY + WTERMSIG(status);
	return answer;
}

static int read_targets(void)
{
	int fd = open(TARGETS, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, targets, sizeof(targets) - 1);

	if (fd >= 0)
		(void)close(fd);
	return n > 0 ? 0 : -1;
}

static int run_inside(const char *grade, const char *only)
{
	int failed = 0, n = 0;

	if (read_targets() < 0)
		return 2;
	is_floor = strcmp(grade, "floor") == 0;
	is_nested = access("nested", F_OK) == 0;
	guard = getppid();
	/* Attempts to signal everybody also reach this one. */
	(void)signal(SIGUSR1, SIG_IGN);
	for (size_t s = 0; s < N_OF(sections); s++)
		for (size_t i = 0; i < sections[s]->n; i++) {
			const struct probe *p = &sections[s]->probes[i];
			const int *wanted = is_floor ? p->floor : p->full;
			int got, ok;

			if (!p->run || (only && strcmp(only, p->id) != 0))
				continue;
			got = run_probe(p);
			ok = is_wanted(wanted, got) || is_refused(got);
			failed += !ok;
			n++;
			(void)printf("%s\t%s\t%s\t%s\t", ok ? "ok" : "FAIL", grade, p->id,
				     answer_name(got));
			print_answers(wanted);
			(void)printf("\t%s\n", p->tried);
			(void)fflush(stdout);
		}
	(void)printf("%d probes, %d failed\n", n, failed);
	return failed || !n;
}

/* ---- outside -------------------------------------------------------------------------- */

static volatile sig_atomic_t stop;
static void on_term(int s)
{
	stop = s;
}

static int write_targets(void)
{
	char tmp[PATH_MAX];
	FILE *f;

	(void)snprintf(tmp, sizeof(tmp), "%s/work/%s.tmp", scratch, TARGETS);
	f = fopen(tmp, "we");
	if (!f || fputs(targets, f) < 0 || fclose(f) != 0)
		return -1;
	return rename(tmp, scratch_path("work/" TARGETS));
}

static int run_outside(void)
{
	int failed = 0;

	(void)signal(SIGTERM, on_term);
	for (size_t v = 0; v < N_OF(victims); v++)
		for (size_t i = 0; i < victims[v]->n; i++)
			if (victims[v]->all[i].set_up &&
			    victims[v]->all[i].set_up() < 0) {
				(void)printf("FAIL\toutside: cannot set up: %s: %s\n",
					     victims[v]->all[i].what, strerror(errno));
				return 2;
			}
	if (write_targets() < 0)
		return 2;
	while (!stop) {
		for (size_t v = 0; v < N_OF(victims); v++)
			for (size_t i = 0; i < victims[v]->n; i++)
				if (victims[v]->all[i].look)
					victims[v]->all[i].look();
		(void)usleep(LOOK_USEC);
	}
	for (size_t v = 0; v < N_OF(victims); v++)
		for (size_t i = 0; i < victims[v]->n; i++) {
			int ok = victims[v]->all[i].unharmed();

			failed += !ok;
			(void)printf("%s\toutside: %s\n", ok ? "ok" : "FAIL",
				     victims[v]->all[i].what);
		}
	return failed != 0;
}

/* ---- the table ------------------------------------------------------------------------- */

static int number_of(const char *id)
{
	return (int)strtol(id, NULL, 10);
}

static int by_number(const void *a, const void *b)
{
	const struct probe *x = *(const struct probe *const *)a;
	const struct probe *y = *(const struct probe *const *)b;
	int nx = number_of(x->id), ny = number_of(y->id);

	return nx != ny ? nx - ny : strcmp(x->id, y->id);
}

static void print_row(const struct probe *p)
{
	(void)printf("| %s | %s | ", p->id, p->tried);
	if (p->run) {
		print_answers(p->full);
		(void)printf(" | ");
		print_answers(p->floor);
		(void)printf(" | %s |\n", p->note ? p->note : "");
	} else {
		(void)printf("%s | %s | `%s` |\n", p->note, p->note, p->test);
	}
}

/* A letter may have several files; the rows come by number. */
static int print_table(void)
{
	const struct probe *rows[ROWS_MAX];
	size_t n = 0;

	for (size_t s = 0; s < N_OF(sections); s++) {
		const struct section *now = sections[s];

		for (size_t i = 0; i < now->n && n < ROWS_MAX; i++)
			rows[n++] = &now->probes[i];
		if (s + 1 < N_OF(sections) && sections[s + 1]->letter == now->letter)
			continue;
		qsort(rows, n, sizeof(rows[0]), by_number);
		(void)printf("\n### %c. %s\n\n| # | tried | full | floor | |\n"
			     "| --- | --- | --- | --- | --- |\n",
			     now->letter, now->title);
		for (size_t i = 0; i < n; i++)
			print_row(rows[i]);
		n = 0;
	}
	return 0;
}

static int print_proofs(void)
{
	for (size_t s = 0; s < N_OF(sections); s++)
		for (size_t i = 0; i < sections[s]->n; i++) {
			const struct probe *p = &sections[s]->probes[i];

			(void)printf("%s\t%s\t%s\n", p->id, p->run ? "" : p->test,
				     p->run ? "" : p->mark);
		}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--outside") == 0) {
		scratch = argv[2];
		return run_outside();
	}
	if (argc > 3 && strcmp(argv[1], "--terminal") == 0)
		return run_on_terminal(argv[2], argv + 3);
	if (argc == 2 && strcmp(argv[1], "--table") == 0)
		return print_table();
	if (argc == 2 && strcmp(argv[1], "--proofs") == 0)
		return print_proofs();
	if ((argc == 2 || argc == 3) &&
	    (strcmp(argv[1], "full") == 0 || strcmp(argv[1], "floor") == 0))
		return run_inside(argv[1], argv[2]);
	(void)fputs("usage: try_probe --outside DIR | --terminal PTS COMMAND... | "
		    "full|floor [ID] | --table | --proofs\n",
		    stderr);
	return 2;
}
