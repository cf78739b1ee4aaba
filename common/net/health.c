/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See health.h.
 */
#include "common/net/health.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PATIENCE_SEC 5

static int dial(const char *path, int *ret_fd, struct err *err)
{
	struct timeval patience = {.tv_sec = PATIENCE_SEC};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return err_sys(err, "socket");
	if (str_copy(sa.sun_path, sizeof(sa.sun_path), path) < 0)
		return err_set(err, ERR_INVALID, "%s: too long for a socket", path);
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return err_set(err, ERR_UNAVAILABLE, "%s: %s", path,
			       strerrordesc_np(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int health_ask(const char *path, const char *request, const char *end_mark,
	       char reply[HEALTH_REPLY_BYTES], struct err *err)
{
	cleanup_close int fd = -1;
	size_t len = 0;

	reply[0] = '\0';
	if (dial(path, &fd, err) < 0 ||
	    fs_write_all(fd, request, strlen(request), err) < 0)
		return -1;
	while (!end_mark || !strstr(reply, end_mark)) {
		ssize_t n = read(fd, reply + len, HEALTH_REPLY_BYTES - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && !end_mark)
			return 0;
		if (n <= 0)
			return err_set(err, ERR_UNAVAILABLE, "%s: no whole answer", path);
		len += (size_t)n;
		reply[len] = '\0';
	}
	return 0;
}
