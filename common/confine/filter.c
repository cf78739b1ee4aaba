/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The daemons' seccomp filter, as data. Three answers: allowed; EPERM for what
 * is known and refused; ENOSYS for what nobody here has looked at, so that a
 * newer glibc falls back instead of failing. A foreign architecture (and x32) kills.
 *
 * The program is written as plain BPF and not with libseccomp's rules: those give
 * a number that is allowed for some arguments only the *default* answer for the
 * others, and the default here must stay ENOSYS.
 *
 * What keeps a taken-over daemon from becoming something else: no execve, no new
 * process or thread, no executable memory, no socket but of the policy's families, no
 * namespace or mount call, no ptrace, no signal to another process, no further filter.
 */
#include "common/confine/priv.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define PR_SET_VMA_ 0x53564d41 /* glibc names its arenas */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the argument offsets below are those of a little-endian machine"
#endif

/* One number whose answer depends on one argument (its low 32 bits are what the
 * kernel reads: int or unsigned int in every call below but mmap's, whose
 * protection bits are all in the low half). */
enum arg_rule {
	ARG_ONE_OF,  /* allowed when the argument is one of values[] */
	ARG_NONE_OF, /* refused when it is one of values[] */
	ARG_NO_BITS, /* refused when it has any bit of values[0] */
	ARG_MUST_BE, /* refused unless it is one of values[]; else the rules that follow */
};

struct arg_check {
	int nr;
	unsigned arg;
	enum arg_rule rule;
	unsigned n;
	uint32_t values[10];
};

static const struct arg_check checked[] = {
	{SYS_socketpair, 0, ARG_ONE_OF, 1, {AF_UNIX}},
	{SYS_mmap, 2, ARG_NO_BITS, 1, {PROT_EXEC}},
	{SYS_mprotect, 2, ARG_NO_BITS, 1, {PROT_EXEC}},
	/* libevent asks how much there is; stdio asks whether it is a terminal */
	{SYS_ioctl, 1, ARG_ONE_OF, 4, {FIONREAD, FIONBIO, FIOCLEX, 0x5401 /* TCGETS */}},
	/* SIGIO and leases are signals to others by another name */
	{SYS_fcntl,
	 1,
	 ARG_NONE_OF,
	 5,
	 {F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY}},
	{SYS_prlimit64, 0, ARG_ONE_OF, 1, {0}},
	{SYS_prctl,
	 0,
	 ARG_ONE_OF,
	 8,
	 {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP,
	  PR_CAPBSET_READ, PR_SET_VMA_, PR_GET_SECUREBITS}},
};

#define PROGRAM_MAX 1024

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short n;
	bool overflow;
};

static void emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->n >= PROGRAM_MAX) {
		p->overflow = true;
		return;
	}
	p->code[p->n++] = (struct sock_filter){code, jt, jf, k};
}

static void emit_return(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, 0, 0, action);
}

#define ANSWER_ALLOW SECCOMP_RET_ALLOW
#define ANSWER_EPERM (SECCOMP_RET_ERRNO | EPERM)
#define ANSWER_ENOSYS (SECCOMP_RET_ERRNO | ENOSYS)

static void emit_answer(struct program *p, int nr, uint32_t action)
{
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
	emit_return(p, action);
}

/* jeq nr ? : skip the block; ld arg; (jeq value ? hit : next)...; miss; hit */
static void emit_check(struct program *p, const struct arg_check *c)
{
	bool listed = c->rule == ARG_ONE_OF || c->rule == ARG_MUST_BE;
	uint32_t hit = listed ? ANSWER_ALLOW : ANSWER_EPERM;
	uint32_t miss = listed ? ANSWER_EPERM : ANSWER_ALLOW;
	uint16_t op = c->rule == ARG_NO_BITS ? BPF_JSET : BPF_JEQ;

	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(c->n + 3), (uint32_t)c->nr);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
	     (uint32_t)(offsetof(struct seccomp_data, args) + c->arg * sizeof(uint64_t)));
	for (unsigned i = 0; i < c->n; i++)
		emit(p, (uint16_t)(BPF_JMP | op | BPF_K), (uint8_t)(c->n - i), 0,
		     c->values[i]);
	emit_return(p, miss);
	if (c->rule == ARG_MUST_BE) /* the number again, for what follows */
		emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
		     offsetof(struct seccomp_data, nr));
	else
		emit_return(p, hit);
}

static bool is_refused(int nr)
{
	for (size_t i = 0; i < confine_refused_len; i++)
		if (confine_refused[i] == nr)
			return true;
	return nr == SYS_socket || nr == SYS_connect || nr == SYS_kill ||
	       nr == SYS_tgkill || nr == SYS_mmap || nr == SYS_mprotect ||
	       nr == SYS_prctl || nr == SYS_ioctl;
}

/*
 * The parent of the egress workers: fork() as glibc makes it, SIGKILL, and what its children
 * call to confine themselves below it. Each of the last only takes something away.
 */
static void emit_parent(struct program *p)
{
	static const int own_walls[] = {SYS_seccomp, SYS_landlock_create_ruleset,
					SYS_landlock_add_rule,
					SYS_landlock_restrict_self};
	static const struct arg_check fork_call = {
		SYS_clone,
		0,
		ARG_ONE_OF,
		1,
		{CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD}};
	/* What does not move any more is ended; Landlock's scope leaves only its own in reach. */
	static const struct arg_check child_kill = {
		SYS_kill, 1, ARG_ONE_OF, 1, {SIGKILL}};
	static const struct arg_check process_state = {
		SYS_prctl,
		0,
		ARG_ONE_OF,
		8,
		{PR_SET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP,
		 PR_CAPBSET_READ, PR_SET_VMA_, PR_GET_SECUREBITS, PR_SET_PDEATHSIG}};

	emit_check(p, &fork_call);
	emit_check(p, &child_kill);
	emit_check(p, &process_state);
	for (size_t i = 0; i < ARRAY_SIZE(own_walls); i++)
		emit_answer(p, own_walls[i], ANSWER_ALLOW);
}

/* socket() by its family: the policy's only. */
static void emit_sockets(struct program *p, const struct confine_policy *policy)
{
	struct arg_check families = {SYS_socket, 0, ARG_ONE_OF, 0, {0}};

	if (policy->may_make_unix_sockets)
		families.values[families.n++] = AF_UNIX;
	if (policy->may_make_inet_sockets) {
		families.values[families.n++] = AF_INET;
		families.values[families.n++] = AF_INET6;
	}
	if (families.n > 0)
		emit_check(p, &families);
	else
		emit_answer(p, SYS_socket, ANSWER_EPERM);
}

#define WITH_FLAGS(type)                                                                 \
	(type), (type) | SOCK_CLOEXEC, (type) | SOCK_NONBLOCK,                           \
		(type) | SOCK_CLOEXEC | SOCK_NONBLOCK

/*
 * Landlock has no say over modes, nor over open() for neither reading nor writing (access mode 3),
 * whose descriptor fchmod() takes: so a file of anybody's is in reach. What a daemon gives its own
 * is 0600 and less, a file worker what a job's tree may have, and neither can give a file to others.
 */
static void emit_modes(struct program *p, const struct confine_policy *policy)
{
	static const uint32_t private = 07777 & ~0600, of_a_tree = 07777 & ~0755;
	uint32_t no_bits = policy->may_change_modes ? of_a_tree : private;
	const struct arg_check calls[] = {
		{SYS_fchmod, 1, ARG_NO_BITS, 1, {no_bits}},
		{SYS_fchmodat, 2, ARG_NO_BITS, 1, {no_bits}},
		{FCHMODAT2, 2, ARG_NO_BITS, 1, {no_bits}},
#if defined(__x86_64__)
		{SYS_chmod, 1, ARG_NO_BITS, 1, {no_bits}},
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (policy->may_change_modes || calls[i].nr == SYS_fchmod)
			emit_check(p, &calls[i]);
		else
			emit_answer(p, calls[i].nr, ANSWER_EPERM);
}

/* Before the other rules: what they would allow. */
static void emit_unrooted(struct program *p, const struct confine_policy *policy)
{
	static const struct arg_check streams = {
		SYS_socket, 1, ARG_MUST_BE, 4, {WITH_FLAGS(SOCK_STREAM)}};
	static const struct arg_check pairs = {
		SYS_socketpair,
		1,
		ARG_MUST_BE,
		8,
		{WITH_FLAGS(SOCK_STREAM), WITH_FLAGS(SOCK_SEQPACKET)}};

	if (!policy->may_make_inet_sockets && !confine_leaves_out(policy, "connect"))
		emit_answer(p, SYS_connect,
			    SECCOMP_RET_ERRNO | ((uint32_t)confine_connect_errno(policy) &
						 SECCOMP_RET_DATA));
	if (policy->may_make_unix_sockets && !confine_leaves_out(policy, "socket"))
		emit_check(p, &streams);
	if (!confine_leaves_out(policy, "socketpair"))
		emit_check(p, &pairs);
	/* An abstract name is no file: Landlock does not see who takes one. */
	if (!policy->may_listen && !policy->may_make_inet_sockets &&
	    !confine_leaves_out(policy, "bind"))
		emit_answer(p, SYS_bind, ANSWER_EPERM);
	if (!policy->may_listen && !confine_leaves_out(policy, "listen"))
		emit_answer(p, SYS_listen, ANSWER_EPERM);
	if (!confine_leaves_out(policy, "modes"))
		emit_modes(p, policy);
}

/* What depends on the policy and on this process. */
static int emit_policy(struct program *p, const struct confine_policy *policy,
		       struct err *err)
{
	uint32_t self = (uint32_t)getpid();
	struct arg_check own_tgkill = {
		SYS_tgkill, 0, ARG_ONE_OF, 1, {self}}; /* abort() */
	struct arg_check own_kill = {SYS_kill, 0, ARG_ONE_OF, 1, {self}};

	for (const int *nr = policy->extra_syscalls; nr && *nr >= 0; nr++) {
		if (is_refused(*nr))
			return err_set_id(
				err, ERRID_START_CONFINE,
				"%s asks for system call %d, which no daemon may have",
				policy->name, *nr);
		emit_answer(p, *nr, ANSWER_ALLOW);
	}
	emit_check(p, &own_tgkill);
	if (policy->unrooted)
		emit_unrooted(p, policy);
	if (policy->may_fork)
		emit_parent(p);
	else if (policy->may_signal)
		emit_check(p, &own_kill);
	else
		emit_answer(p, SYS_kill, ANSWER_EPERM);
	emit_sockets(p, policy);
	return 0;
}

int confine_filter(const struct confine_policy *policy, struct err *err)
{
	static struct program p;
	struct sock_fprog prog;

	p = (struct program){0};
	emit(&p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH_NATIVE);
	emit_return(&p, SECCOMP_RET_KILL_PROCESS);
	emit(&p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
	emit(&p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
	emit_return(&p, SECCOMP_RET_KILL_PROCESS);
#endif
	if (emit_policy(&p, policy, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(checked); i++)
		emit_check(&p, &checked[i]);
	for (size_t i = 0; i < confine_allowed_len; i++)
		emit_answer(&p, confine_allowed[i], ANSWER_ALLOW);
	for (size_t i = 0; i < confine_refused_len; i++)
		emit_answer(&p, confine_refused[i], ANSWER_EPERM);
	emit_return(&p, ANSWER_ENOSYS);
	if (p.overflow)
		return err_set_id(err, ERRID_START_CONFINE,
				  "the filter of %s is too long", policy->name);

	prog = (struct sock_fprog){.len = p.n, .filter = p.code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_sys_id(err, ERRID_START_CONFINE,
				  "install the seccomp filter of %s", policy->name);
	return 0;
}
