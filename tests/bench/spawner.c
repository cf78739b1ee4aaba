/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/spawner.h"

#include "common/cleanup.h"
#include "common/proto/payload.h"
#include "tests/bench/die.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SERVE_ARGS_MAX 32
#define SERVE_FD 3
#define BLOCK_MAX 65536

void spawner_start(struct spawner *s, char *const argv[])
{
	static char serve[] = "--serve", fd[] = "3";
	static char *const no_env[] = {NULL};
	char *av[SERVE_ARGS_MAX] = {argv[0], serve, fd};
	struct spawn_hello hello;
	int sv[2];

	for (size_t i = 1; argv[i]; i++) {
		if (i + 3 >= SERVE_ARGS_MAX)
			die("too many options for a spawner");
		av[i + 2] = argv[i];
	}
	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null_fd < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		die_errno("socketpair");
	s->pid = fork();
	if (s->pid < 0)
		die_errno("fork");
	if (s->pid == 0) {
		if (sv[1] == SERVE_FD ? fcntl(SERVE_FD, F_SETFD, 0) < 0
				      : dup2(sv[1], SERVE_FD) < 0)
			_exit(90);
		(void)execve(av[0], av, no_env);
		_exit(91);
	}
	(void)close(sv[1]);
	s->sock = sv[0];
	s->next_handle = 1;
	if (recv(s->sock, &hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
	    hello.type != SPAWN_HELLO || hello.version != SPAWN_PROTO_VERSION)
		die("the spawner did not say hello");
}

uint64_t spawner_request(struct spawner *s, char *const words[])
{
	struct spawn_run m = {.type = SPAWN_RUN,
			      .version = SPAWN_PROTO_VERSION,
			      .handle = s->next_handle++};
	const int fds[] = {s->null_fd, s->null_fd, s->null_fd};
	char block[BLOCK_MAX];
	size_t len = 0;
	struct payload spec;
	struct err err = ERR_INIT;

	for (; *words; words++) {
		size_t n = strlen(*words) + 1;

		if (len + n > sizeof(block))
			die("the spec is too long");
		memcpy(block + len, *words, n);
		len += n;
	}
	if (payload_make(block, len, &spec, &err) < 0)
		die("the spec: %s", err.msg);
	m.spec_bytes = spec.bytes;
	if (payload_send(s->sock, &m, sizeof(m), &spec, fds, ARRAY_SIZE(fds), 0) < 0)
		die_errno("send to the spawner");
	payload_done(&spec);
	return m.handle;
}

struct spawner_end spawner_wait(struct spawner *s)
{
	union {
		uint32_t type;
		struct spawn_started started;
		struct spawn_refused refused;
		struct spawn_exited exited;
		struct spawn_denied denied;
	} m;
	ssize_t n;

	do
		n = recv(s->sock, &m, sizeof(m), 0);
	while ((n < 0 && errno == EINTR) || (n > 0 && m.type == SPAWN_DENIED));
	if (n <= 0)
		die("the spawner is gone");
	if (m.type == SPAWN_STARTED)
		return (struct spawner_end){m.started.handle, 1};
	if (m.type == SPAWN_REFUSED)
		die("refused: %s %s: %s", m.refused.error_code, m.refused.stage,
		    m.refused.text);
	if (m.type != SPAWN_EXITED)
		die("message %u of the spawner", m.type);
	if (m.exited.how != SPAWN_END_EXITED || m.exited.code != 0)
		die("a job ended by %u, code %d: %s", m.exited.how, m.exited.code,
		    m.exited.detail);
	return (struct spawner_end){m.exited.handle, 0};
}

void spawner_stop(struct spawner *s)
{
	int status;

	fd_close(&s->sock);
	fd_close(&s->null_fd);
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
}
