/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See keyring.h.
 */
#include "sandbox/walls/keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int keyring_leave_session(struct err *err)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return 0;
	/* A kernel without keys; or a container's filter, which refuses it to everybody in
	 * there, and whose engine made a session of its own: the kernel itself never says EPERM
	 * to this. */
	if (errno == ENOSYS || errno == EPERM)
		return 0;
	return err_sys_id(err, ERRID_SANDBOX_CAPS,
			  "leave the caller's session keyring (EDQUOT: "
			  "/proc/sys/kernel/keys/maxkeys)");
}
