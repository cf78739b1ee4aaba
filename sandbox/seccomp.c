/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Installs the filter of seccomp_table.c. One program a kind of sandbox, compiled once
 * into static memory: the parent does it before the fork, the children inherit it.
 */
#include "sandbox/sandbox.h"
#include "sandbox/seccomp_table.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KIND_FULL_LO, KIND_FULL_NONE, KIND_FLOOR, KIND_MAX_ };

static struct sock_filter programs[KIND_MAX_][SC_PROGRAM_MAX];
static unsigned short lengths[KIND_MAX_];

static int kind_of(const struct sbx_spec *spec)
{
	if (spec->grade == GRADE_FLOOR)
		return KIND_FLOOR;
	return spec->net == NET_NONE ? KIND_FULL_NONE : KIND_FULL_LO;
}

int seccomp_prepare(const struct sbx_spec *spec, struct err *err)
{
	static const enum sc_where where[KIND_MAX_] = {SC_FULL_LO, SC_FULL_NONE,
						       SC_FLOOR};
	int kind = kind_of(spec), n;

	if (lengths[kind])
		return 0;
	n = sc_compile(where[kind], programs[kind], SC_PROGRAM_MAX);
	if (n < 0)
		return err_sys_id(err, ERRID_SANDBOX_SECCOMP, "compile the filter");
	lengths[kind] = (unsigned short)n;
	return 0;
}

int seccomp_install(const struct sbx_spec *spec, struct err *err)
{
	struct sock_fprog prog;
	int kind = kind_of(spec);

	if (seccomp_prepare(spec, err) < 0)
		return -1;
	prog = (struct sock_fprog){.len = lengths[kind], .filter = programs[kind]};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_sys_id(err, ERRID_SANDBOX_SECCOMP, "seccomp");
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return err_set_id(err, ERRID_SANDBOX_SECCOMP,
				  "the filter is not in force");
	return 0;
}
