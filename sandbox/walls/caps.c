/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper, the guard and the job.
 * See caps.h.
 */
#include "sandbox/walls/caps.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cap_sets {
	struct __user_cap_data_struct half[_LINUX_CAPABILITY_U32S_3];
};

static int get_sets(struct cap_sets *ret)
{
	struct __user_cap_header_struct own = {.version = _LINUX_CAPABILITY_VERSION_3};

	return (int)syscall(SYS_capget, &own, ret->half);
}

bool caps_has(int cap)
{
	struct cap_sets s;

	return get_sets(&s) == 0 &&
	       (s.half[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap));
}

int caps_keep_only(const int *caps, struct err *err)
{
	struct __user_cap_header_struct own = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct cap_sets want = {0}, now;

	for (; *caps >= 0; caps++) {
		want.half[CAP_TO_INDEX(*caps)].permitted |= CAP_TO_MASK(*caps);
		want.half[CAP_TO_INDEX(*caps)].effective |= CAP_TO_MASK(*caps);
	}
	if (syscall(SYS_capset, &own, want.half) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "set the capability sets");
	if (get_sets(&now) < 0 || memcmp(&now, &want, sizeof(now)) != 0)
		return err_set_id(err, ERRID_SANDBOX_CAPS,
				  "other capabilities are left than were set");
	return 0;
}
