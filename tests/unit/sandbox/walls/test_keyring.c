/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/walls/keyring.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POSSESSOR_ALL 0x3f000000UL

static long key_do(int what, unsigned long a, unsigned long b, unsigned long c)
{
	return syscall(SYS_keyctl, what, a, b, c);
}

/* As a login or a desktop leaves it: a key in the session that only who possesses it reads. */
Test(keyring, a_key_of_the_session_is_left_behind)
{
	char text[16] = "";
	struct err err = ERR_INIT;
	long key;

	if (key_do(KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0) < 0)
		cr_skip_test("no keys here: %s", strerror(errno));
	key = syscall(SYS_add_key, "user", "lych-test-key", "secret", 6,
		      KEY_SPEC_SESSION_KEYRING);
	cr_assert_gt(key, 0);
	cr_assert_eq(key_do(KEYCTL_SETPERM, (unsigned long)key, POSSESSOR_ALL, 0), 0);
	cr_assert_eq(key_do(KEYCTL_READ, (unsigned long)key, (unsigned long)text, 16), 6);

	cr_assert_eq(keyring_leave_session(&err), 0, "%s", err.msg);

	cr_assert_lt(key_do(KEYCTL_READ, (unsigned long)key, (unsigned long)text, 16), 0);
	cr_assert_eq(errno, EACCES);
	cr_assert_lt(syscall(SYS_request_key, "user", "lych-test-key", NULL, 0), 0);
	cr_assert_eq(errno, ENOKEY);
	cr_assert_eq(key_do(KEYCTL_READ, (unsigned long)KEY_SPEC_SESSION_KEYRING,
			    (unsigned long)text, 16),
		     0, "the new one is empty");
}
