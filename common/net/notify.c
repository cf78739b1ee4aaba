/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See notify.h.
 */
#include "common/net/notify.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOTIFY_TEXT_MAX 512

struct notify {
	int ready_fd;
	int sock; /* connected datagram socket of the service manager, -1: none */
	struct loop_timer *beat;
};

/* NOTIFY_SOCKET is a path, or an abstract name written with '@'. */
static int notify_dial(const char *name, int *ret_fd, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	cleanup_close int fd = -1;

	if ((name[0] != '/' && name[0] != '@') || n < 2 ||
	    str_copy(addr.sun_path, sizeof(addr.sun_path), name) < 0)
		return err_set(err, ERR_INVALID, "NOTIFY_SOCKET is not acceptable");
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = '\0';
	else
		n++; /* a path goes with its NUL */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, "socket for NOTIFY_SOCKET");
	if (connect(fd, (struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return err_sys(err, "connect to NOTIFY_SOCKET");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void notify_send(struct notify *n, const char *text)
{
	if (n->sock >= 0)
		(void)send(n->sock, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The starter is told as long as it listens; one that is stopped keeps nobody waiting. */
static void notify_beat(void *arg)
{
	static const char line[] = WATCH_BEAT_LINE "\n";
	struct notify *n = arg;
	ssize_t w = write(n->ready_fd, line, sizeof(line) - 1);

	if (w < 0 && errno != EAGAIN && errno != EINTR) {
		fd_close(&n->ready_fd);
		return;
	}
	loop_timer_arm(n->beat, WATCH_BEAT_USEC);
}

int notify_new(struct loop *l, int ready_fd, struct notify **ret, struct err *err)
{
	const char *name = getenv("NOTIFY_SOCKET");
	cleanup_close int sock = -1;
	struct notify *n;

	if (name && notify_dial(name, &sock, err) < 0)
		return -1;
	if (ready_fd >= 0 && fcntl(ready_fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "the readiness pipe");
	n = xnew(struct notify);
	n->ready_fd = ready_fd;
	n->sock = TAKE_FD(sock);
	n->beat = loop_timer_new(l, notify_beat, n);
	if (ready_fd >= 0)
		loop_timer_arm(n->beat, 0);
	*ret = n;
	return 0;
}

static void write_line(int fd, const char *text)
{
	char line[NOTIFY_TEXT_MAX];
	ssize_t w;

	if (fd < 0 || str_fmt(line, sizeof(line), "%s\n", text) < 0)
		return;
	/* One small write to a pipe; the starter learns the rest from EOF. */
	do {
		w = write(fd, line, strlen(line));
	} while (w < 0 && errno == EINTR);
}

void notify_ready(struct notify *n)
{
	notify_send(n, "READY=1");
	write_line(n->ready_fd, "READY=1");
}

void notify_status(struct notify *n, const char *text)
{
	char line[NOTIFY_TEXT_MAX - 2];

	/* A line break would be a second assignment. */
	if (str_has_control(text, strlen(text)) ||
	    str_fmt(line, sizeof(line), "STATUS=%s", text) < 0)
		return;
	notify_send(n, line);
	write_line(n->ready_fd, line);
}

void notify_stopping(struct notify *n)
{
	notify_send(n, "STOPPING=1");
	loop_timer_disarm(n->beat);
}

void notify_free(struct notify *n)
{
	if (!n)
		return;
	loop_timer_free(n->beat);
	fd_close(&n->ready_fd);
	fd_close(&n->sock);
	free(n);
}
