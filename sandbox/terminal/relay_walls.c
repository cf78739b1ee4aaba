/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the relay.
 * See relay_walls.h. A list of calls by number: their arguments are descriptors that it has.
 */
#include "sandbox/terminal/relay_walls.h"

#include "common/cleanup.h"
#include "sandbox/contract/keeper.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define WAITS SYS_poll
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define WAITS SYS_ppoll
#endif

#define LOAD(field)                                                                      \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(verdict) BPF_STMT(BPF_RET | BPF_K, (verdict))
#define ALLOW(call)                                                                      \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), ANSWER(SECCOMP_RET_ALLOW)

static struct sock_filter program[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	ALLOW(SYS_read),
	ALLOW(SYS_write),
	ALLOW(WAITS),
	ALLOW(SYS_restart_syscall), /* a wait, after a stop */
	ALLOW(SYS_recvmsg),	    /* the parent's words, the job's terminal */
	ALLOW(SYS_close),
	ALLOW(SYS_exit_group),
#ifdef HAVE_LSAN
	ALLOW(SYS_sigaltstack), /* the sanitizer asks before a function that does not return */
#endif
	ANSWER(SECCOMP_RET_ERRNO | EPERM),
};

static int failed(struct err *err, const char *what)
{
	return err_sys_id(err, ERRID_TTY_RELAY, "%s", what);
}

int relay_walls(int person, int parent_sock, pid_t parent, struct err *err)
{
	const int keep[] = {person, parent_sock};
	const struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]),
					  .filter = program};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		return failed(err, "its parent");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return failed(err, "prctl");
	if (ns_close_all_but(keep, 2, err) < 0)
		return err_wrap(err, "its descriptors");
	if (syscall(SYS_close_range, 0, 2, 0) < 0)
		return failed(err, "close_range");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		return failed(err, "seccomp");
	if (syscall(SYS_getppid) >= 0 || errno != EPERM)
		return err_set_id(err, ERRID_TTY_RELAY,
				  "seccomp: a call that is not on its list was allowed");
	return 0;
}
