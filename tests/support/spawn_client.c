/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the spawner for tests, without the tomb: starts lych-sandbox --serve and
 * obeys lines on stdin, one answer line on stdout for each message of the spawner.
 *
 *	spawn_client SANDBOX JOBS_DIR GRADE [OPTION OF THE SPAWNER...]
 *	run HANDLE OPTION... -- ARGV...	words by blanks; stdio: /dev/null, null, stderr
 *	tty HANDLE COLS ROWS OPTION... -- ARGV...	the same with a terminal; what that says
 *					is told a line each, "says TEXT"
 *	resize HANDLE COLS ROWS
 *	kill HANDLE WHY GRACE_MS
 *	raw N				N bytes of nonsense instead of a message
 *	wrong HANDLE BYTES HAS 0|1 TAIL	a RUN that says BYTES of a spec, with a memfd of HAS
 *					(0: none) that is sealed or not, and TAIL bytes in
 *					the packet behind it
 *
 * "pid N" (the spawner's outer process) is the first line. EOF of stdin: closes the
 * socket and waits for the spawner. EOF of the spawner: prints "gone" and exits 3.
 */
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/mem.h"
#include "common/proto/payload.h"
#include "common/proto/spawn_proto.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LINE_MAX_BYTES 65536
#define WORDS_MAX 256
#define ARGS_MAX 16
#define TAIL_MAX_BYTES 256
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int sock = -1, null_fd = -1, terminal = -1;

static pid_t start(char **argv, int argc)
{
	static char *const no_env[] = {NULL};
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		char arg[][16] = {"lych-sandbox", "--serve", "3", "--jobs", "--grade"};
		char *av[ARGS_MAX + 1] = {arg[0],  arg[1], arg[2], arg[3],
					  argv[2], arg[4], argv[3]};

		for (int i = 4; i < argc && i + 3 < ARGS_MAX; i++)
			av[i + 3] = argv[i];
		if (sv[1] == 3)
			(void)fcntl(3, F_SETFD, 0);
		else if (dup2(sv[1], 3) < 0)
			_exit(90);
		(void)execve(argv[1], av, no_env);
		_exit(91);
	}
	(void)close(sv[1]);
	sock = sv[0];
	return pid;
}

/* m: what is not the same in each. */
static void send_run(struct spawn_run m, const char *block, size_t len)
{
	const int fds[] = {null_fd, null_fd, 2};
	struct payload spec;

	m.type = SPAWN_RUN;
	m.version = SPAWN_PROTO_VERSION;
	m.spec_bytes = (uint32_t)len;
	if (payload_make(block, len, &spec, NULL) < 0)
		abort();
	if (payload_send(sock, &m, sizeof(m), &spec, fds, ARRAY_SIZE(fds), 0) < 0)
		printf("send failed: %s\n", strerror(errno));
	payload_done(&spec);
}

static uint64_t number(const char *s)
{
	uint64_t v = 0;

	if (!s || parse_u64(s, 0, UINT64_MAX, &v, NULL) < 0) {
		printf("not a number\n");
		exit(2);
	}
	return v;
}

/* word: HANDLE BYTES HAS 0|1 TAIL. */
static void send_wrong(char *const *word)
{
	size_t bytes = number(word[1]), has = number(word[2]), tail = number(word[4]);
	struct {
		struct spawn_run run;
		char tail[TAIL_MAX_BYTES];
	} m = {.run = {.type = SPAWN_RUN,
		       .version = SPAWN_PROTO_VERSION,
		       .handle = number(word[0]),
		       .spec_bytes = (uint32_t)bytes}};
	cleanup_close int fd = memfd_create("spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int fds[] = {fd, null_fd, null_fd, 2};
	unsigned skip = has ? 0 : 1;

	if (tail > sizeof(m.tail) || fd < 0 || ftruncate(fd, (off_t)has) < 0 ||
	    (number(word[3]) && fcntl(fd, F_ADD_SEALS, SEALS) < 0))
		abort();
	if (fdpass_send(sock, &m, sizeof(m.run) + tail, fds + skip,
			ARRAY_SIZE(fds) - skip, 0) < 0)
		printf("send failed: %s\n", strerror(errno));
}

static void run(char *const *words, size_t n, struct spawn_run m)
{
	cleanup_free char *block = xmalloc(LINE_MAX_BYTES);
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(block + len, words[i], strlen(words[i]) + 1);
		len += strlen(words[i]) + 1;
	}
	send_run(m, block, len);
}

static void run_at_terminal(char *const *words, size_t n)
{
	run(words + 3, n - 3,
	    (struct spawn_run){.handle = number(words[0]),
			       .flags = SPAWN_RUN_TTY,
			       .cols = (uint32_t)number(words[1]),
			       .rows = (uint32_t)number(words[2])});
}

static void resize(char *const *words)
{
	struct spawn_resize m = {.type = SPAWN_RESIZE,
				 .handle = number(words[0]),
				 .cols = (uint32_t)number(words[1]),
				 .rows = (uint32_t)number(words[2])};

	(void)!send(sock, &m, sizeof(m), MSG_NOSIGNAL);
}

static void obey(char *line)
{
	char *word[WORDS_MAX], *save = NULL;
	size_t n = 0;

	for (char *w = strtok_r(line, " \n", &save); w && n < WORDS_MAX - 1;
	     w = strtok_r(NULL, " \n", &save))
		word[n++] = w;
	word[n] = NULL;
	if (n == 0)
		return;
	if (str_eq(word[0], "run")) {
		run(word + 2, n - 2, (struct spawn_run){.handle = number(word[1])});
	} else if (str_eq(word[0], "tty") && n > 4) {
		run_at_terminal(word + 1, n - 1);
	} else if (str_eq(word[0], "resize") && n == 4) {
		resize(word + 1);
	} else if (str_eq(word[0], "wrong") && n == 6) {
		send_wrong(word + 1);
	} else if (str_eq(word[0], "kill") && n == 4) {
		struct spawn_kill m = {.type = SPAWN_KILL,
				       .handle = number(word[1]),
				       .why = (uint32_t)number(word[2]),
				       .grace_ms = (uint32_t)number(word[3])};

		(void)!send(sock, &m, sizeof(m), MSG_NOSIGNAL);
	} else if (str_eq(word[0], "raw") && n == 2) {
		cleanup_free char *junk = xcalloc(1, number(word[1]) + 1);

		(void)!send(sock, junk, number(word[1]), MSG_NOSIGNAL);
	} else {
		printf("unknown: %s\n", word[0]);
	}
}

static void tell_said(void)
{
	char said[4096], *save = NULL;
	ssize_t n = read(terminal, said, sizeof(said) - 1);

	if (n <= 0) {
		fd_close(&terminal);
		return;
	}
	said[n] = '\0';
	for (char *l = strtok_r(said, "\r\n", &save); l;
	     l = strtok_r(NULL, "\r\n", &save))
		printf("says %s\n", l);
}

static bool tell(void)
{
	union spawn_message m = {0};
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(sock, &m, sizeof(m), fds, &n_fds, 0);

	if (n <= 0)
		return false;
	if (m.type == SPAWN_TERMINAL && n_fds == 1)
		terminal = TAKE_FD(fds[0]);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	if (m.type == SPAWN_TERMINAL)
		printf("terminal %llu\n", (unsigned long long)m.terminal.handle);
	else if (m.type == SPAWN_HELLO)
		printf("hello %u abi=%u %s\n", m.hello.version, m.hello.landlock_abi,
		       m.hello.mechanism);
	else if (m.type == SPAWN_STARTED)
		printf("started %llu grade=%u layers=%u limits=%u\n",
		       (unsigned long long)m.started.handle, m.started.grade,
		       m.started.n_layers, m.started.n_limits);
	else if (m.type == SPAWN_REFUSED)
		printf("refused %llu %s %s %d %s\n", (unsigned long long)m.refused.handle,
		       m.refused.error_code, m.refused.stage, m.refused.sys,
		       m.refused.text);
	else if (m.type == SPAWN_DENIED)
		printf("denied %llu wall=%u act=%u count=%u errno=%d %s %s\n",
		       (unsigned long long)m.denied.handle, m.denied.wall, m.denied.act,
		       m.denied.count, m.denied.sys, m.denied.call, m.denied.object);
	else if (m.type == SPAWN_EXITED)
		printf("exited %llu how=%u code=%d gone=%u strays=%u wall_ms=%llu "
		       "memory=%llu "
		       "disk=%llu processes=%u %s\n",
		       (unsigned long long)m.exited.handle, m.exited.how, m.exited.code,
		       m.exited.tree_gone, m.exited.killed_strays,
		       (unsigned long long)m.exited.wall_usec / 1000,
		       (unsigned long long)m.exited.memory_peak_bytes,
		       (unsigned long long)m.exited.disk_peak_bytes,
		       m.exited.processes_peak, m.exited.detail);
	else
		printf("unknown message %u of %zd bytes\n", m.type, n);
	return true;
}

int main(int argc, char **argv)
{
	static char line[LINE_MAX_BYTES];
	size_t len = 0;
	pid_t pid;
	int status = 0;

	if (argc < 4)
		return 2;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid = start(argv, argc);
	printf("pid %d\n", pid);
	for (;;) {
		struct pollfd p[] = {{.fd = sock, .events = POLLIN},
				     {.fd = 0, .events = POLLIN},
				     {.fd = terminal, .events = POLLIN}};
		ssize_t n;
		char *nl;

		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			return 1;
		if (p[2].revents)
			tell_said();
		if (p[0].revents && !tell()) {
			(void)waitpid(pid, &status, 0);
			printf("gone %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
			return 3;
		}
		if (!p[1].revents)
			continue;
		n = read(0, line + len, sizeof(line) - len - 1);
		if (n <= 0)
			break;
		len += (size_t)n;
		line[len] = '\0';
		while ((nl = strchr(line, '\n'))) {
			*nl = '\0';
			obey(line);
			len -= (size_t)(nl + 1 - line);
			memmove(line, nl + 1, len + 1);
		}
	}
	(void)close(sock);
	(void)waitpid(pid, &status, 0);
	printf("end %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
