/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Theory of operation. A daemon without a private root is denied connect() altogether, by a
 * filter that nobody can take back. What it must reach later (a database that was restarted,
 * the vessel after a crash) it reaches by asking here, over a socketpair that it was started
 * with. A question is a number of a fixed list and a serial; an answer is that serial, and a
 * connected descriptor or an error. So a daemon that was taken over can ask for what it has
 * anyway, and for nothing else: no path, no length and no text of its own crosses the border.
 * A question that is none, or is not that daemon's, ends the dialer for it; the daemon is our
 * own program, and a broken promise of it is treated as one.
 *
 * Nothing here waits: connect() to a socket's path succeeds or fails at once.
 */
#include "cli/local/up_dial.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/proto/dial_proto.h"
#include "common/str.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Connected, or -1 with errno. */
static int reach(enum dial_name name, const struct paths *p)
{
	const struct {
		const char *dir, *file;
		int type;
	} places[DIAL_MAX_] = {
		[DIAL_DATABASE] = {p->pg_dir, ".s.PGSQL.5432", SOCK_STREAM},
		[DIAL_WORK] = {p->work_dir, "vessel.sock", SOCK_STREAM},
		[DIAL_SCRIBE] = {p->audit_dir, "scribe.sock", SOCK_SEQPACKET},
	};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd = -1;

	if (str_fmt(sa.sun_path, sizeof(sa.sun_path), "%s/%s", places[name].dir,
		    places[name].file) < 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, places[name].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -1;
	return TAKE_FD(fd);
}

int up_dial_answer(int sock, unsigned may, const struct paths *p)
{
	struct dial_ask ask = {0};
	struct dial_answer answer = {0};
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	cleanup_close int fd = -1;
	ssize_t n = fdpass_recv(sock, &ask, sizeof(ask), fds, &n_fds, MSG_DONTWAIT);

	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -1;
	if (n != (ssize_t)sizeof(ask) || n_fds > 0 || ask.name == 0 ||
	    ask.name >= DIAL_MAX_ || !(may & DIAL_BIT(ask.name))) {
		log_warn(
			"security: a daemon asked the dialer for what it has no business "
			"with (%zd bytes, name %u): nobody is connected for it any more",
			n, ask.name);
		return -1;
	}
	fd = reach((enum dial_name)ask.name, p);
	answer.serial = ask.serial;
	answer.error = fd < 0 ? errno : 0;
	/* One whose buffer is full of answers that it did not take is not waited for. */
	return fdpass_send(sock, &answer, sizeof(answer), &fd, fd >= 0, MSG_DONTWAIT);
}
