/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper and the job.
 * Installs the filter of seccomp_table.c, with a listener for the keeper. One program a kind of sandbox, compiled once
 * into static memory, and what the keeper answers from: the parent does it before the fork, the children inherit it.
 */
#include "sandbox/contract/sandbox.h"
#include "sandbox/walls/seccomp_table.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KIND_FULL_LO, KIND_FULL_NONE, KIND_FLOOR, KIND_MAX_ };

static struct sock_filter programs[KIND_MAX_][2][SC_PROGRAM_MAX]; /* plain, observing */
static unsigned short lengths[KIND_MAX_][2];

static const enum sc_where wheres[KIND_MAX_] = {SC_FULL_LO, SC_FULL_NONE, SC_FLOOR};

static int kind_of(const struct sbx_spec *spec)
{
	if (spec->grade == GRADE_FLOOR)
		return KIND_FLOOR;
	return spec->net == NET_NONE ? KIND_FULL_NONE : KIND_FULL_LO;
}

enum sc_where seccomp_where(const struct sbx_spec *spec)
{
	return wheres[kind_of(spec)];
}

bool seccomp_is_listener(int fd)
{
	uint64_t none = 0;

	return fd > 2 && ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &none) < 0 &&
	       errno == ENOENT;
}

int seccomp_prepare(const struct sbx_spec *spec, struct err *err)
{
	int kind = kind_of(spec), n;
	bool observe = spec->explain;

	if (lengths[kind][observe])
		return 0;
	n = sc_compile(wheres[kind], observe, programs[kind][observe], SC_PROGRAM_MAX);
	if (n < 0 || sc_collect(wheres[kind]) < 0)
		return err_sys_id(err, ERRID_SANDBOX_SECCOMP, "compile the filter");
	lengths[kind][observe] = (unsigned short)n;
	return 0;
}

int seccomp_install(const struct sbx_spec *spec, int *ret_listener, struct err *err)
{
	const unsigned flags =
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	struct sock_fprog prog;
	int kind = kind_of(spec), fd;

	if (seccomp_prepare(spec, err) < 0)
		return -1;
	prog = (struct sock_fprog){.len = lengths[kind][spec->explain],
				   .filter = programs[kind][spec->explain]};
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	if (fd < 0 && errno == EBUSY)
		return err_sys_id(err, ERRID_SANDBOX_LISTENER,
				  "seccomp: an outer filter has a listener already");
	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_SECCOMP, "seccomp");
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER ||
	    !seccomp_is_listener(fd))
		return err_set_id(err, ERRID_SANDBOX_SECCOMP,
				  "the seccomp filter is not in force");
	*ret_listener = fd;
	return 0;
}
