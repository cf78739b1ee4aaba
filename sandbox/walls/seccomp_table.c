/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper and the job.
 * See seccomp_table.h.
 */
#include "sandbox/walls/seccomp_table.h"
#include "common/attr.h"
#include "sandbox/contract/shared_maps.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#define ALL_BITS 0xffffffffu
#define NEW_NAMESPACES                                                                   \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |        \
		    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET))
#define IPPROTO_TCP_NR 6
#define IPPROTO_UDP_NR 17
#define TCP_ULP_NR 31
#define MADV_COLLAPSE_NR 25
#define TCP_MD5SIG_NR 14
#define TCP_MD5SIG_EXT_NR 32
#define TCP_AO_ADD_KEY_NR 38
#define IPPROTO_UDPLITE_NR 136

#define IS(a, v) {.mask = ALL_BITS, .value = (uint32_t)(v), .arg = (a)}
#define BITS(a, m, v) {.mask = (uint32_t)(m), .value = (uint32_t)(v), .arg = (a)}
#define ANY(a, m) {.mask = (uint32_t)(m), .arg = (a), .special = SC_ANY_BIT}
/* Of all 64 bits; a power of two. */
#define BELOW(a, n) {.mask = ~((uint32_t)(n) - 1), .arg = (a), .special = SC_NULL_POINTER}
#define SC_NULL(a) {.mask = ALL_BITS, .arg = (a), .special = SC_NULL_POINTER}
#define OWN_UID(a) {.mask = ALL_BITS, .arg = (a), .special = SC_OWN_UID}
#define OWN_GID(a) {.mask = ALL_BITS, .arg = (a), .special = SC_OWN_GID}
#define IF(n, w, v, ...)                                                                 \
	{                                                                                \
		.name = (n), .where = (w), .verdict = (v), .cond = { __VA_ARGS__ }       \
	}

#define UNSEEN(n, w, ...)                                                                \
	{.name = (n),                                                                    \
	 .where = (w),                                                                   \
	 .verdict = SC_ALLOW,                                                            \
	 .cond = {__VA_ARGS__},                                                          \
	 .unseen = true}

/* Terminal ioctls that type for, redirect or reprogram somebody else's terminal. */
#define TIOC_STI 0x5412
#define TIOC_LINUX 0x541C
#define TIOC_CONS 0x541D
#define TIOC_SCTTY 0x540E
#define TIOC_SETD 0x5423
#define NO_IOCTL(n) IF("ioctl", SC_BOTH, SC_EPERM, IS(1, n))
#define IOCTL(where, n) IF("ioctl", where, SC_ALLOW, IS(1, n))
#define IOCTL_TYPE(where, verdict, t)                                                    \
	IF("ioctl", where, verdict, BITS(1, 0xff00, (t) << 8))

/* 1 stream, 2 datagram, 5 seqpacket; the flag bits above are the kernel's to check. */
#define TYPE(a, t) BITS(a, 0xf, t)
#define INET(family, type, proto)                                                        \
	IF("socket", SC_FULL_LO, SC_ALLOW, IS(0, family), TYPE(1, type), IS(2, proto))

#define JOINS(level, option)                                                             \
	IF("setsockopt", SC_FULL, SC_SUPERVISED, IS(1, level), IS(2, option))

#define NO_TCP(option)                                                                   \
	IF("setsockopt", SC_BOTH, SC_EPERM, IS(1, IPPROTO_TCP_NR), IS(2, option))

#define PRCTL(option) IF("prctl", SC_BOTH, SC_ALLOW, IS(0, option))

/*
 * An ioctl is allowed by name or by type: terminals and what every descriptor has ('T'); of
 * the file systems what reads a file's own attributes, copies within it, and in full sets its
 * flags (chattr). What a file system has besides acts on more than the file: btrfs and
 * bcachefs make subvolumes, which are devices of their own that no walk over the workspace
 * counts; a key of the owner's encrypted directories is taken away by any descriptor on that
 * file system; space is reserved as with fallocate(2); labels, ids and devices are told. In
 * floor none may change a file at all: Landlock does not see it, and a descriptor that may
 * only read is enough.
 *
 * Interfaces (0x89): a stdio may be a socket that was made outside, and answers for the
 * network where it was made, whatever its family. In full the keeper answers, for the job's
 * own: notify_ioctl.c. What concerns the socket alone goes on.
 */
#define FS_GETBSZ 0x2
#define FS_GETFLAGS 0x80086601u
#define FS_SETFLAGS 0x40086602u
#define FS_GETVERSION 0x80087601u
#define FS_FIEMAP 0xc020660bu
#define FS_FSGETXATTR 0x801c581fu
#define FS_FSSETXATTR 0x401c5820u
#define FS_CLONE 0x40049409u
#define FS_CLONE_RANGE 0x4020940du
#define FS_DEDUPE_RANGE 0xc0189436u
#define NOTIF_ID_VALID 0x40082102u
#define SOCK_SETOWN 0x8901
#define SOCK_SPGRP 0x8902
#define SOCK_GETOWN 0x8903
#define SOCK_GPGRP 0x8904
#define SOCK_ATMARK 0x8905
#define SOCK_OUTQNSD 0x894b
#define TYPE_TERMINAL 0x54
#define TYPE_INTERFACE 0x89
#define TYPE_NAMESPACE 0xb7 /* nsfs: of one's own, setns is refused */
#define TYPE_PIDFD 0xff

/* A CPU clock names a process in the bits above the lowest three, all ones: oneself. With
 * bit 2 it is a thread's, and the kernel answers for the caller's own only. */
#define CLOCK_OTHER 0x80000000u
#define CLOCK_THREAD 4u
#define CLOCK_SELF 0xfffffff8u
#define OWN_CLOCKS(n)                                                                    \
	IF(n, SC_BOTH, SC_ALLOW, BITS(0, CLOCK_OTHER, 0)),                               \
		IF(n, SC_BOTH, SC_ALLOW, BITS(0, CLOCK_THREAD, CLOCK_THREAD)),           \
		IF(n, SC_BOTH, SC_ALLOW, BITS(0, CLOCK_SELF, CLOCK_SELF))

/* A file of the workspace is owned by whoever started the job, on a disk that others may
 * see: with a set-id bit they would run what the job wrote as that user. open() makes
 * plain files only; g+s by chmod stays, directories carry it. */
#define O_TMPFILE_BIT 020000000
#define MAKES_A_FILE (O_CREAT | O_TMPFILE_BIT)
#define NO_SET_ID_AT(n, flags, mode)                                                     \
	IF(n, SC_BOTH, SC_EPERM, ANY(flags, MAKES_A_FILE), ANY(mode, S_ISUID | S_ISGID))
#define NO_SET_UID(n, mode) IF(n, SC_FULL, SC_EPERM, ANY(mode, S_ISUID))
#define NODE_BITS (S_IFMT | S_ISUID | S_ISGID)

/* open(2), "access mode 3": a descriptor that neither reads nor writes, for ioctls. Landlock
 * asks for rights by what a descriptor can do, so it asks for none: every file, FIFO and
 * device that the uid may write could be opened. */
#define NO_MODE_3(n, flags) IF(n, SC_BOTH, SC_EPERM, BITS(flags, O_ACCMODE, O_ACCMODE))

#define SCHED_RESET 0x40000000u
#define SCHED(policy)                                                                    \
	IF("sched_setscheduler", SC_BOTH, SC_ALLOW, IS(0, 0), IS(1, policy)),            \
		IF("sched_setscheduler", SC_BOTH, SC_ALLOW, IS(0, 0),                    \
		   IS(1, (policy) | SCHED_RESET))

const struct sc_clause sc_clauses[] = {
	/* threads and fork; every other flag is ordinary */
	IF("clone", SC_BOTH, SC_ALLOW, BITS(0, NEW_NAMESPACES | CLONE_NEWTIME, 0)),
	/* the low byte of clone's flags is the exit signal: CLONE_NEWTIME (0x80) cannot
	 * be asked for there, and a signal number with that bit does not exist */

	/* UDP-Lite is the kernel's UDP with another checksum; Python's own tests need it */
	INET(AF_INET, SOCK_STREAM, 0), INET(AF_INET, SOCK_STREAM, IPPROTO_TCP_NR),
	INET(AF_INET, SOCK_DGRAM, 0), INET(AF_INET, SOCK_DGRAM, IPPROTO_UDP_NR),
	INET(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE_NR), INET(AF_INET6, SOCK_STREAM, 0),
	INET(AF_INET6, SOCK_STREAM, IPPROTO_TCP_NR), INET(AF_INET6, SOCK_DGRAM, 0),
	INET(AF_INET6, SOCK_DGRAM, IPPROTO_UDP_NR),
	INET(AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE_NR),
	/* getaddrinfo and if_nametoindex ask rtnetlink; protocol 0 is NETLINK_ROUTE */
	IF("socket", SC_FULL_LO, SC_ALLOW, IS(0, AF_NETLINK), IS(2, 0)),
	IF("socket", SC_FULL, SC_ALLOW, IS(0, AF_UNIX)),
	IF("socketpair", SC_FULL, SC_ALLOW, IS(0, AF_UNIX)),
	/* not datagrams: sendto with an address would reach any pathname socket of the
	   host */
	IF("socketpair", SC_FLOOR, SC_ALLOW, IS(0, AF_UNIX), TYPE(1, SOCK_STREAM)),
	IF("socketpair", SC_FLOOR, SC_ALLOW, IS(0, AF_UNIX), TYPE(1, SOCK_SEQPACKET)),
	UNSEEN("sendto", SC_FULL, SC_NULL(4)), IF("sendto", SC_FULL, SC_ALLOW, {0}),
	IF("sendto", SC_FLOOR, SC_ALLOW, SC_NULL(4)),

	NO_IOCTL(TIOC_STI), NO_IOCTL(TIOC_LINUX), NO_IOCTL(TIOC_CONS),
	/* of the job's own terminals only: notify_ioctl.c */
	IF("ioctl", SC_FULL, SC_SUPERVISED, IS(1, TIOC_SCTTY)), NO_IOCTL(TIOC_SCTTY),
	NO_IOCTL(TIOC_SETD), IOCTL(SC_BOTH, FS_GETBSZ), IOCTL(SC_BOTH, FS_GETFLAGS),
	IOCTL(SC_BOTH, FS_FIEMAP), IOCTL(SC_BOTH, FS_GETVERSION),
	IOCTL(SC_BOTH, FS_FSGETXATTR), IOCTL(SC_BOTH, FS_CLONE),
	IOCTL(SC_BOTH, FS_CLONE_RANGE), IOCTL(SC_BOTH, FS_DEDUPE_RANGE),
	/* our own look at the listener that this filter gave; a job has none */
	IOCTL(SC_BOTH, NOTIF_ID_VALID), IOCTL(SC_FULL, FS_SETFLAGS),
	IOCTL(SC_FULL, FS_FSSETXATTR), IOCTL(SC_FULL, SOCK_SETOWN),
	IOCTL(SC_FULL, SOCK_SPGRP), IOCTL(SC_FULL, SOCK_GETOWN),
	IOCTL(SC_FULL, SOCK_GPGRP), IOCTL(SC_FULL, SOCK_ATMARK),
	IOCTL(SC_FULL, SOCK_OUTQNSD), IOCTL_TYPE(SC_BOTH, SC_ALLOW, TYPE_TERMINAL),
	IOCTL_TYPE(SC_FULL, SC_ALLOW, TYPE_NAMESPACE),
	IOCTL_TYPE(SC_FULL, SC_ALLOW, TYPE_PIDFD),
	IOCTL_TYPE(SC_FULL, SC_SUPERVISED, TYPE_INTERFACE),

	/* a lease on a file that is only shown makes whoever writes to it wait */
	IF("fcntl", SC_BOTH, SC_EPERM, IS(1, F_SETLEASE)),
	/* other protocols on top of TCP: modules of their own, loaded by name */
	NO_TCP(TCP_ULP_NR),
	/* keys of routers: the kernel keeps any number of them for a socket, and no list tells how many */
	NO_TCP(TCP_MD5SIG_NR), NO_TCP(TCP_MD5SIG_EXT_NR), NO_TCP(TCP_AO_ADD_KEY_NR),
	/* programs for the kernel's interpreter; a job has no packets to choose from */
	IF("setsockopt", SC_BOTH, SC_EPERM, IS(1, SOL_SOCKET), IS(2, SO_ATTACH_FILTER)),
	IF("setsockopt", SC_BOTH, SC_EPERM, IS(1, SOL_SOCKET), IS(2, SO_ATTACH_BPF)),
	IF("setsockopt", SC_BOTH, SC_EPERM, IS(1, SOL_SOCKET),
	   IS(2, SO_ATTACH_REUSEPORT_CBPF)),
	IF("setsockopt", SC_BOTH, SC_EPERM, IS(1, SOL_SOCKET),
	   IS(2, SO_ATTACH_REUSEPORT_EBPF)),

	/* Each group that is joined is searched for under a lock of all networks of the machine, when it
	   is left too: counted, notify_limits.c */
	JOINS(IPPROTO_IP, IP_ADD_MEMBERSHIP), JOINS(IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP),
	JOINS(IPPROTO_IP, MCAST_JOIN_GROUP), JOINS(IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP),
	JOINS(IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP), JOINS(IPPROTO_IPV6, MCAST_JOIN_GROUP),
	JOINS(IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP),

	/* The limit for core dumps stays at the 1 that limits.c set: with any other the kernel
	   starts the host's handler, if there is one, for each crash. Programs with secrets
	   take a 0 that is refused to them for a reason to end. */
	IF("setrlimit", SC_BOTH, SC_NOTHING, IS(0, RLIMIT_CORE)),
	IF("prlimit64", SC_BOTH, SC_ALLOW, IS(0, 0), IS(1, RLIMIT_CORE), SC_NULL(2)),
	IF("prlimit64", SC_BOTH, SC_NOTHING, IS(0, 0), IS(1, RLIMIT_CORE), SC_NULL(3)),
	IF("prlimit64", SC_BOTH, SC_EPERM, IS(0, 0), IS(1, RLIMIT_CORE)),
	/* Only about oneself: in full process 1 is the keeper, in floor there are
	   neighbours. */
	IF("prlimit64", SC_BOTH, SC_ALLOW, IS(0, 0)),
	IF("setpriority", SC_BOTH, SC_ALLOW, IS(0, 0), IS(1, 0)),
	/* a process by its number, which may be one's own: notify_cpu.c */
	IF("setpriority", SC_BOTH, SC_SUPERVISED, IS(0, 0)),
	IF("ioprio_set", SC_BOTH, SC_ALLOW, IS(0, 1), IS(1, 0)),
	IF("sched_setparam", SC_BOTH, SC_ALLOW, IS(0, 0)),
	/* Not SCHED_IDLE: who has next to no weight holds a lock for as long as others want
	 * the processor. Policy and slice of sched_setattr are in memory: not at all. */
	SCHED(SCHED_OTHER), SCHED(SCHED_BATCH),
	IF("get_robust_list", SC_BOTH, SC_ALLOW, IS(0, 0)), OWN_CLOCKS("clock_gettime"),
	OWN_CLOCKS("clock_getres"), OWN_CLOCKS("clock_nanosleep"),
	OWN_CLOCKS("timer_create"),

	/* Only our own ids have a mapping in full. The kernel would say EINVAL to any other;
	   programs that ask whether they are root expect EPERM. */
	IF("setuid", SC_BOTH, SC_ALLOW, OWN_UID(0)),
	IF("setreuid", SC_BOTH, SC_ALLOW, OWN_UID(1), OWN_UID(0)),
	IF("setresuid", SC_BOTH, SC_ALLOW, OWN_UID(2), OWN_UID(1), OWN_UID(0)),
	IF("setgid", SC_BOTH, SC_ALLOW, OWN_GID(0)),
	IF("setregid", SC_BOTH, SC_ALLOW, OWN_GID(1), OWN_GID(0)),
	IF("setresgid", SC_BOTH, SC_ALLOW, OWN_GID(2), OWN_GID(1), OWN_GID(0)),

	NO_MODE_3("open", 1), NO_MODE_3("openat", 2), NO_SET_ID_AT("open", 1, 2),
	NO_SET_ID_AT("openat", 2, 3),
	IF("creat", SC_BOTH, SC_EPERM, ANY(1, S_ISUID | S_ISGID)), NO_SET_UID("chmod", 1),
	NO_SET_UID("fchmod", 1), NO_SET_UID("fchmodat", 2),
	NO_SET_UID("#452", 2), /* fchmodat2 */

	/* FIFOs, sockets and plain files; no device */
	IF("mknod", SC_BOTH, SC_ALLOW, BITS(1, NODE_BITS, S_IFIFO)),
	IF("mknod", SC_BOTH, SC_ALLOW, BITS(1, NODE_BITS, S_IFREG)),
	IF("mknod", SC_BOTH, SC_ALLOW, BITS(1, NODE_BITS, S_IFSOCK)),
	IF("mknod", SC_BOTH, SC_ALLOW, BITS(1, NODE_BITS, 0)),
	IF("mknodat", SC_BOTH, SC_ALLOW, BITS(2, NODE_BITS, S_IFIFO)),
	IF("mknodat", SC_BOTH, SC_ALLOW, BITS(2, NODE_BITS, S_IFREG)),
	IF("mknodat", SC_BOTH, SC_ALLOW, BITS(2, NODE_BITS, S_IFSOCK)),
	IF("mknodat", SC_BOTH, SC_ALLOW, BITS(2, NODE_BITS, 0)),

	/* Pages of the machine's own pool, which no limit of the job counts. */
	IF("mmap", SC_BOTH, SC_EPERM, ANY(3, MAP_HUGETLB)),
	/* How long a shared one is, nobody can ask later, nor whether there are huge pages:
	   noted, notify_limits.c. The bit is in MAP_SHARED_VALIDATE too. Not of the many small ones:
	   a call that waits for the keeper can be interrupted by a signal, and mmap is
	   not known for that. */
	IF("mmap", SC_BOTH, SC_ALLOW, ANY(3, MAP_SHARED), BELOW(1, SHARED_MAPS_SMALL)),
	IF("mmap", SC_BOTH, SC_SUPERVISED, ANY(3, MAP_SHARED)),
	IF("madvise", SC_BOTH, SC_SUPERVISED, IS(2, MADV_COLLAPSE_NR)),
	IF("memfd_create", SC_BOTH, SC_EPERM, ANY(1, MFD_HUGETLB)),
	IF("shmget", SC_BOTH, SC_EPERM, ANY(2, SHM_HUGETLB)),

	IF("personality", SC_BOTH, SC_ALLOW, IS(0, 0)),
	IF("personality", SC_BOTH, SC_ALLOW, IS(0, ALL_BITS)),
	/* a filter of the job's own only takes away, and is counted: notify_limits.c; a
	   listener would let it act as a kernel */
	IF("seccomp", SC_BOTH, SC_ALLOW, IS(0, SECCOMP_SET_MODE_STRICT)),
	IF("seccomp", SC_BOTH, SC_SUPERVISED, IS(0, SECCOMP_SET_MODE_FILTER),
	   BITS(1, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0)),
	IF("seccomp", SC_BOTH, SC_ALLOW, IS(0, SECCOMP_GET_ACTION_AVAIL)),

	/* not dumpable would hide a process from the supervision's look at its
	   descriptors */
	IF("prctl", SC_BOTH, SC_EPERM, IS(0, PR_SET_DUMPABLE), IS(1, 0)),
	PRCTL(PR_SET_DUMPABLE), PRCTL(PR_GET_DUMPABLE), PRCTL(PR_SET_NAME),
	PRCTL(PR_GET_NAME), PRCTL(PR_SET_PDEATHSIG), PRCTL(PR_GET_PDEATHSIG),
	PRCTL(PR_GET_KEEPCAPS), PRCTL(PR_GET_TIMING), PRCTL(PR_SET_TIMERSLACK),
	PRCTL(PR_GET_TIMERSLACK), PRCTL(PR_SET_NO_NEW_PRIVS), PRCTL(PR_GET_NO_NEW_PRIVS),
	PRCTL(PR_CAPBSET_READ), PRCTL(PR_CAP_AMBIENT), PRCTL(PR_GET_SECUREBITS),
	PRCTL(PR_GET_SECCOMP), PRCTL(PR_SET_CHILD_SUBREAPER),
	PRCTL(PR_GET_CHILD_SUBREAPER), PRCTL(PR_GET_TID_ADDRESS),
	PRCTL(PR_SET_THP_DISABLE), PRCTL(PR_GET_THP_DISABLE), PRCTL(PR_GET_TSC),
	PRCTL(PR_GET_SPECULATION_CTRL), PRCTL(PR_SET_TAGGED_ADDR_CTRL),
	PRCTL(PR_GET_TAGGED_ADDR_CTRL), PRCTL(65), /* PR_SET_MDWE */
	PRCTL(66),				   /* PR_GET_MDWE */
	PRCTL(0x53564d41),			   /* PR_SET_VMA */
	PRCTL(0x41555856),			   /* PR_GET_AUXV */
};
const size_t sc_n_clauses = ARRAY_SIZE(sc_clauses);

/* Files by path or descriptor (Landlock judges the path), memory, time, own processes. */
static const char *const allow[] = {
	/* descriptors and data */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev",
	"preadv2", "pwritev2", "close", "close_range", "lseek", "dup", "dup2", "dup3",
	"pipe", "pipe2", "fcntl", "flock", "fsync", "fdatasync", "sync_file_range",
	"fadvise64", "readahead", "sendfile", "splice", "tee", "copy_file_range", "poll",
	"ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl",
	"epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "signalfd",
	"signalfd4", "timerfd_create", "timerfd_settime", "timerfd_gettime",
	"inotify_rm_watch", "memfd_create",
	/* paths */
	"open", "openat", "creat", "stat", "fstat", "lstat", "newfstatat", "statx",
	"access", "faccessat", "faccessat2", "statfs", "fstatfs", "truncate", "ftruncate",
	"getdents", "getdents64", "getcwd", "chdir", "fchdir", "rename", "renameat",
	"renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat",
	"symlink", "symlinkat", "readlink", "readlinkat", "umask", "getxattr",
	"lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
	"#464" /* getxattrat */, "#465" /* listxattrat */, "#468" /* file_getattr */,
	/* memory */
	"mmap", "mprotect", "munmap", "brk", "mremap", "msync", "mincore", "madvise",
	"mlock", "mlock2", "munlock", "mlockall", "munlockall", "membarrier",
	"pkey_alloc", "pkey_free", "pkey_mprotect", "set_mempolicy", "get_mempolicy",
	"#453" /* map_shadow_stack */, "#462" /* mseal */,
	/* processes and threads of the job; Landlock scopes the signals */
	"fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid",
	"kill", "tkill", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"rt_sigpending", "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
	"rt_sigsuspend", "sigaltstack", "pause", "restart_syscall", "pidfd_send_signal",
	"getpid", "getppid", "gettid", "getpgrp", "getpgid", "setpgid", "getsid",
	"setsid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid",
	"getgroups", "setfsuid", "setfsgid", "capget", "capset", "set_tid_address",
	"set_robust_list", "rseq", "futex", "futex_waitv", "#454" /* futex_wake */,
	"#455" /* futex_wait */, "#456" /* futex_requeue */, "arch_prctl",
	"set_thread_area", "get_thread_area", "getrlimit", "setrlimit", "getrusage",
	"times", "getpriority", "ioprio_get", "sched_yield", "sched_getparam",
	"sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
	"sched_rr_get_interval", "sched_getattr", "sched_getaffinity", "getcpu",
	"landlock_create_ruleset",
	/* time, names, randomness */
	"nanosleep", "gettimeofday", "time", "getitimer", "setitimer", "alarm",
	"timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "uname",
	"sysinfo", "getrandom",
	/* an open socket: which one may be opened is the clauses' matter */
	"recvfrom", "recvmsg", "recvmmsg", "sendmsg", "sendmmsg", "shutdown",
	"getsockname", "getpeername", "setsockopt", "getsockopt", NULL};

/* In full these stay inside the namespaces; in floor they would reach the host. */
static const char *const allow_in_full[] = {
	"connect", "bind", "listen", "accept", "accept4", "mq_open", "mq_unlink",
	"mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
	/* System V objects; the meter counts them: sysvipc.c */
	"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop",
	"msgget", "msgsnd", "msgrcv", "msgctl",
	/* Landlock does not judge what is watched; without the first two programs poll */
	"inotify_init", "inotify_init1", "inotify_add_watch", NULL};

/* Any process of the host in floor, whose end it tells. Programs fall back to waiting for
 * their children; a descriptor of one's own comes with clone(CLONE_PIDFD). */
static const char *const absent_in_floor[] = {"pidfd_open", NULL};

/* A file's mode, owner, times and attributes. In full the private root is the wall; in floor
 * the keeper looks at the object and acts itself: notify_meta.c. */
static const char *const metadata[] = {
	"chmod",       "fchmod",       "fchmodat",     "#452" /* fchmodat2 */,
	"chown",       "fchown",       "lchown",       "fchownat",
	"utime",       "utimes",       "futimesat",    "utimensat",
	"removexattr", "lremovexattr", "fremovexattr", "#466" /* removexattrat */,
	NULL};

/* An attribute of a memfd, an access list of a file in a tmpfs, which what is made below a
 * directory inherits: the kernel keeps 64 KiB for each, and nothing counts them. In both grades
 * the keeper sets them, in the trees of the job that lie on a disk. */
static const char *const attributes[] = {"setxattr", "lsetxattr", "fsetxattr",
					 "#463" /* setxattrat */, NULL};

/* cpus beyond --cpus: the affinity is how that limit stands without a cgroup, so the
 * keeper sets it, within those: notify_cpu.c. Disk that is taken at once, rules that the
 * kernel keeps: notify_limits.c */
static const char *const within_limits[] = {"sched_setaffinity", "fallocate",
					    "landlock_add_rule", "landlock_restrict_self",
					    NULL};

/* What is left of a call when no clause allowed it. */
static const char *const deny_else[] = {"clone",	  "socket",
					"socketpair",	  "sendto",
					"ioctl",	  "clock_gettime",
					"clock_getres",	  "clock_nanosleep",
					"timer_create",	  "prlimit64",
					"setpriority",	  "ioprio_set",
					"sched_setparam", "sched_setscheduler",
					"sched_setattr",  "get_robust_list",
					"setuid",	  "setreuid",
					"setresuid",	  "setgid",
					"setregid",	  "setresgid",
					"mknod",	  "mknodat",
					"personality",	  "seccomp",
					"prctl",	  NULL};

static const char *const deny[] = {
	/* namespaces, roots and mounts, old and new */
	"unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "move_mount",
	"open_tree", "#467" /* open_tree_attr */, "fsopen", "fsconfig", "fsmount",
	"fspick", "mount_setattr", "#457" /* statmount */, "#458" /* listmount */,
	"name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark",
	"#469" /* file_setattr */, "quotactl", "quotactl_fd", "swapon", "swapoff", "sync",
	"syncfs", "acct",
	/* one byte of a huge page keeps the whole of it, where nothing counts it */
	"vmsplice",
	/* a file in memory keeps a policy for each of its pages, when it is mapped no more */
	"mbind",
	/* other processes */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
	"process_mrelease", "kcmp", "pidfd_getfd", "migrate_pages", "move_pages",
	"setgroups",
	/* large parts of the kernel that a job has no business with */
	"io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "io_destroy",
	"io_submit", "io_cancel", "io_getevents", "io_pgetevents", "bpf",
	"perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl",
	"remap_file_pages", "memfd_secret", "modify_ldt", "set_mempolicy_home_node",
	"#451" /* cachestat */, "#460" /* lsm_set_self_attr */,
	"#459" /* lsm_get_self_attr */, "#461" /* lsm_list_modules */, "lookup_dcookie",
	"vhangup",
	/* the machine */
	"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module",
	"delete_module", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
	"sethostname", "setdomainname", "syslog", "iopl", "ioperm", "nfsservctl", NULL};

/* clone3 and openat2 have their flags and modes in memory: programs fall back to clone and
 * openat. The rest was never built or is gone. */
static const char *const absent[] = {"clone3",
				     "openat2",
				     "uselib",
				     "ustat",
				     "sysfs",
				     "_sysctl",
				     "create_module",
				     "get_kernel_syms",
				     "query_module",
				     "getpmsg",
				     "putpmsg",
				     "afs_syscall",
				     "tuxcall",
				     "security",
				     "vserver",
				     "epoll_ctl_old",
				     "epoll_wait_old",
				     "#335" /* uretprobe */,
				     "#336" /* uprobe */,
				     NULL};

const struct sc_list sc_lists[] = {
	{SC_BOTH, SC_ALLOW, allow},
	{SC_FULL, SC_ALLOW, allow_in_full},
	{SC_FLOOR, SC_EPERM, allow_in_full},
	{SC_FULL, SC_ALLOW, absent_in_floor},
	{SC_FLOOR, SC_ENOSYS, absent_in_floor},
	{SC_FULL, SC_ALLOW, metadata},
	{SC_FLOOR, SC_SUPERVISED, metadata},
	{SC_BOTH, SC_SUPERVISED, attributes},
	{SC_BOTH, SC_SUPERVISED, within_limits},
	{SC_BOTH, SC_EPERM, deny_else},
	{SC_BOTH, SC_EPERM, deny},
	{SC_BOTH, SC_ENOSYS, absent},
};
const size_t sc_n_lists = ARRAY_SIZE(sc_lists);

const char *const sc_observed[] = {
	"open", "openat", "openat2", "creat", "truncate", "mkdir", "mkdirat", "mknod",
	"mknodat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2",
	"link", "linkat", "symlink", "symlinkat", "execve", "execveat", "connect", "bind",
	"sendto",
	/* a program that looks before it opens never comes to open */
	"stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
	"chdir", NULL};
