/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * See pty.h. The slave is opened through the master (TIOCGPTPEER), not by a name.
 */
#include "sandbox/walls/pty.h"

#include "common/cleanup.h"
#include "sandbox/contract/paths.h"

#include <fcntl.h>

static int failed(struct err *err, const char *what)
{
	return err_sys_id(err, ERRID_TTY_JOB, "%s", what);
}

int pty_make(const struct sbx_terminal *like, int ret[TERMINAL_FDS], struct err *err)
{
	cleanup_close int master =
		open(PATH_PTS "/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	cleanup_close int slave = -1;
	struct termios modes = like->modes;
	int locked = 0;

	if (master < 0)
		return failed(err, "open " PATH_PTS "/ptmx");
	if (ioctl(master, TIOCSPTLCK, &locked) < 0)
		return failed(err, "unlock it");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return failed(err, "open its other side");
	if (!like->has_modes) {
		if (tcgetattr(slave, &modes) < 0)
			return failed(err, "ask for its modes");
		modes.c_iflag |= IUTF8;
	}
	if (tcsetattr(slave, TCSANOW, &modes) < 0)
		return failed(err, "its modes");
	if (ioctl(slave, TIOCSWINSZ, &like->size) < 0)
		return failed(err, "its size");
	ret[TERMINAL_MASTER] = TAKE_FD(master);
	ret[TERMINAL_SLAVE] = TAKE_FD(slave);
	return 0;
}
