/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section E: the terminal, descriptors, environment, output. Standard input is a terminal
 * of the caller (victim_terminal.c), the worst case; or, with --tty, one of the job's own, where
 * what leads to that one is no way out.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#define KD_SET_MODE 0x4B3A
#define KD_SET_KBMODE 0x4B45
#define FDS_MAX 2048

extern char **environ;

/* Standard input is of the devpts that this job sees, and it sees only its own (80p). */
static int is_own_terminal(int fd)
{
	struct stat st, pts;

	return !in_floor() && fstat(fd, &st) == 0 && stat("/dev/pts", &pts) == 0 &&
	       st.st_dev == pts.st_dev;
}

/* HELD: it is that one, or leads to it. */
static int terminal_outside(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (is_own_terminal(0) && (is_own_terminal(fd) || tcgetsid(fd) == tcgetsid(0)))
		return HELD;
	return GOT_THROUGH;
}

static int type_at_it(void)
{
	return answer_of(ioctl(0, TIOCSTI, "x"));
}
static int linux_terminal(void)
{
	char paste = 3;

	return answer_of(ioctl(0, TIOCLINUX, &paste));
}
static int take_terminal(void)
{
	return answer_of(ioctl(0, TIOCSCTTY, 1));
}
static int redirect_console(void)
{
	return answer_of(ioctl(0, TIOCCONS));
}
static int line_discipline(void)
{
	int n = 1;

	return answer_of(ioctl(0, TIOCSETD, &n));
}
static int console_mode(void)
{
	return answer_of(ioctl(0, KD_SET_MODE, 1));
}
static int keyboard_mode(void)
{
	return answer_of(ioctl(0, KD_SET_KBMODE, 0));
}
static int dev_tty(void)
{
	return terminal_outside("/dev/tty");
}
static int other_terminals(void)
{
	return terminal_outside(target("pts"));
}
static int foreground(void)
{
	if (tcsetpgrp(0, getpgrp()) < 0)
		return errno;
	return is_own_terminal(0) ? HELD : GOT_THROUGH;
}
static int peer_of_terminal(void)
{
	/* TIOCGPTPEER works on the master only */
	return answer_of(ioctl(0, 0x5441, O_RDWR));
}
static int steal_terminal_output(void)
{
	return allowed_or_errno(ioctl(0, TCFLSH, TCOFLUSH));
}

static int reopened(void)
{
	return isatty(0) ? terminal_outside("/proc/self/fd/0") : errno;
}
static int own_terminal(void)
{
	return allowed_or_errno(posix_openpt(O_RDWR | O_NOCTTY));
}
static int own_typed_at(void)
{
	static const unsigned long requests[] = {TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD};
	int fd = posix_openpt(O_RDWR | O_NOCTTY), n = 3;

	if (fd < 0)
		return in_floor() ? NOT_HERE : errno;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (ioctl(fd, requests[i], &n) >= 0 || errno != EPERM)
			return GOT_THROUGH;
	return HELD;
}

static int inherited_fds(void)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
		/* 600 is the pipe of this very attempt. */
		if (fd != 600 && fcntl(fd, F_GETFD) == 0) {
			(void)fprintf(stderr, "descriptor %d\n", fd);
			return GOT_THROUGH;
		}
	return HELD;
}
static int inherited_env(void)
{
	/* the last two are floor's own */
	static const char *const known[] = {"PATH=",
					    "LANG=",
					    "USER=",
					    "TERM=",
					    "HOME=",
					    "TMPDIR=",
					    "LOGNAME=",
					    "PYTHONUNBUFFERED=1",
					    "NODE_OPTIONS=--max-old-space-size=",
					    "JAVA_TOOL_OPTIONS=-Xmx",
					    "GIT_CONFIG_NOSYSTEM=1",
					    "GIT_ATTR_NOSYSTEM=1",
					    NULL};
	int n = 0;

	for (char **e = environ; *e; e++, n++) {
		const char *const *k = known;

		while (*k && strncmp(*e, *k, strlen(*k)) != 0)
			k++;
		if (!*k) {
			(void)fprintf(stderr, "%.40s\n", *e);
			return GOT_THROUGH;
		}
		for (char **other = environ; other < e; other++)
			if (strncmp(*other, *k, strlen(*k)) == 0)
				return GOT_THROUGH;
	}
	return n ? HELD : NO_ANSWER;
}

/* ---- 86: what can be used up ---- */

static int fds_until_refused(void)
{
	for (int i = 0; i < 1 << 20; i++)
		if (dup(0) < 0)
			return errno;
	return GOT_THROUGH;
}
static int inotify_until_refused(void)
{
	for (int i = 0; i < 1 << 16; i++)
		if (inotify_init1(IN_CLOEXEC) < 0)
			return errno;
	return GOT_THROUGH;
}
static int pipes_until_refused(void)
{
	int p[2];

	for (int i = 0; i < 1 << 16; i++) {
		if (pipe2(p, O_CLOEXEC) < 0)
			return errno;
		(void)fcntl(p[0], F_SETPIPE_SZ, 1 << 20);
	}
	return GOT_THROUGH;
}
static int bigger_pipe(void)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return NO_ANSWER;
	return answer_of(fcntl(p[0], F_SETPIPE_SZ, 1 << 30));
}
static int timers_until_refused(void)
{
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	timer_t t;

	for (int i = 0; i < 1 << 20; i++)
		if (timer_create(CLOCK_MONOTONIC, &e, &t) < 0)
			return errno;
	return GOT_THROUGH;
}
static int signals_until_refused(void)
{
	sigset_t all;
	union sigval v = {0};

	(void)sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0)
		return NO_ANSWER;
	for (int i = 0; i < 1 << 20; i++)
		if (sigqueue(getpid(), SIGRTMIN, v) < 0)
			return errno;
	return GOT_THROUGH;
}

/* clang-format off */
#define DENIED {EPERM}, {EPERM}
#define EDGES "tests/escape/edges.sh"
#define LIFECYCLE "tests/integration/daemons/lifecycle.sh"
#define OWN "held: with --tty it is the job's own"
#define PER_USER "the quota is the user's: a job can use up what the others of it want"

static const struct probe probes[] = {
	{"80", "TIOCSTI", type_at_it, DENIED},
	{"80b", "TIOCLINUX", linux_terminal, DENIED},
	{"80c", "TIOCSCTTY", take_terminal, DENIED},
	{"80d", "TIOCCONS", redirect_console, DENIED},
	{"80e", "TIOCSETD", line_discipline, DENIED},
	{"80f", "KDSETMODE", console_mode, DENIED},
	{"80g", "KDSKBMODE", keyboard_mode, DENIED},
	{"80h", "/dev/tty", dev_tty, {ENXIO, ENOENT, HELD}, {EACCES, ENXIO}, OWN},
	{"80i", "the caller's terminal by its name", other_terminals, {ENOENT, HELD}, {EACCES}, OWN},
	{"80j", "the other end of the terminal", peer_of_terminal, {EIO, ENOTTY},
	 {EIO, ENOTTY}},
	{"80k", "flush a terminal given as stdin", steal_terminal_output, {ALLOWED},
	 {ALLOWED}, "a terminal handed over is the job's to set: give it a pipe instead"},
	{"80l", "the caller's terminal through /proc/self/fd/0", reopened, {EACCES, HELD}, {EACCES}, OWN},
	{"80m", "make a terminal", own_terminal, {ALLOWED}, {EACCES, ENOENT},
	 "full: in a devpts of its own"},
	{"80n", "TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD on a terminal of its own", own_typed_at, {HELD},
	 {NOT_HERE}},
	ELSEWHERE("80o", "TIOCSCTTY where stdin is nobody's controlling terminal", "EPERM",
		  "tests/escape/terminals.sh", "nobody's"),
	ELSEWHERE("80p", "a hundred terminals; those of another job and of the host",
		  "full: 64, none of the others", "tests/escape/terminals.sh", "another job"),
	{"67", "tcsetpgrp on the caller's terminal", foreground, {ENOTTY, HELD}, {ENOTTY}, OWN},
	{"81", "descriptors above 2", inherited_fds, {HELD}, {HELD}},
	{"82", "secrets, LD_*, BASH_ENV, PYTHONPATH, GIT_*, functions, duplicates",
	 inherited_env, {HELD}, {HELD}, "the environment starts from zero"},
	ELSEWHERE("83", "endless output of a deaf job", "ended: output limit", LIFECYCLE,
	 "serve: output limit, deaf job"),
	ELSEWHERE("84", "ANSI, OSC, C1, bidi, CR, bad UTF-8 in output",
	 "escaped when shown", "tests/unit/cli/ui/test_render.c",
	 "a_cell_shows_control_bytes_instead_of_sending_them"),
	ELSEWHERE("84b", "OSC 52, titles, DCS in followed output",
	 "dropped; colours stay", "tests/unit/cli/ui/test_render.c",
	 "the_terminal_filter_keeps_colours_and_drops_the_rest"),
	ELSEWHERE("84c", "CR, backspace, cursor movements over what was shown",
	 "ends the line; shown; dropped", "tests/unit/cli/ui/test_render.c",
	 "what_was_shown_is_not_overwritten"),
	ELSEWHERE("84d", "concealed and blinking text, other fonts (SGR 5, 6, 8, 10 to 20)",
	 "dropped", "tests/unit/cli/ui/test_render.c", "no_rendition_hides_text"),
	ELSEWHERE("85", "memory: heap", "ended: oom", LIFECYCLE, "oom heap"),
	ELSEWHERE("85b", "memory: shared anonymous", "ended: oom", LIFECYCLE,
	 "oom shared"),
	ELSEWHERE("85c", "memory: memfd", "ended: oom", LIFECYCLE, "oom memfd"),
	ELSEWHERE("85d", "memory: files of a tmpfs", "ended: oom (full only)", LIFECYCLE,
	 "oom files /tmp"),
	ELSEWHERE("86", "burn CPU", "ended: cpu", LIFECYCLE, "cpu burn"),
	{"86b", "descriptors", fds_until_refused, {EMFILE}, {EMFILE}},
	{"86c", "inotify instances", inotify_until_refused, {EMFILE}, {EPERM}, PER_USER},
	{"86d", "pipes", pipes_until_refused, {EMFILE}, {EMFILE}, PER_USER},
	{"86e", "a pipe of 1 GiB", bigger_pipe, {EPERM}, {EPERM}},
	{"86f", "timers", timers_until_refused, {EAGAIN}, {EAGAIN}},
	{"86g", "pending signals", signals_until_refused, {EAGAIN}, {EAGAIN}},
	ELSEWHERE("87", "exit codes 0 to 255", "told as they are, `how` says exited",
	 EDGES, "exit $code"),
	ELSEWHERE("87b", "death by each signal, SIGSYS too",
	 "128+N, `how` says signalled", EDGES, "signal $sig"),
	ELSEWHERE("87c", "SIGXCPU and SIGXFSZ of its own making", "told as that limit",
	 EDGES, "SIGXCPU"),
	ELSEWHERE("87d", "a missing, closed or strange program or interpreter",
	 "127 or 126", EDGES, "an interpreter outside"),
	ELSEWHERE("87e", "exit 124 or 137 against out of time or memory",
	 "`how` tells them apart", EDGES, "out of time is not exit 124"),
};
/* clang-format on */

const struct section section_terminal = {'E',
					 "Terminal, descriptors, environment, output",
					 probes, sizeof(probes) / sizeof(probes[0])};
