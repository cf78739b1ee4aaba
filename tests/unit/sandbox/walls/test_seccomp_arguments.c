/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filter: what its conditions on arguments say holds for hostile ones. */
#include "sandbox/walls/seccomp_table.h"
#include "tests/unit/sandbox/walls/seccomp_run.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

Test(sandbox_seccomp, a_set_id_bit_is_given_to_no_new_file)
{
	const uint64_t tmpfile_flag = 020000000, plain = 0644;
	static const uint64_t set_id[] = {S_ISUID, S_ISGID, S_ISUID | S_ISGID};

	compile();
	for (size_t i = 0; i < 3; i++) {
		uint64_t mode = HIGH | plain | set_id[i];

		cr_assert_eq(RUN(full, SYS_openat, 0, 0, O_CREAT, mode), E_PERM);
		cr_assert_eq(RUN(floor_, SYS_openat, 0, 0, O_CREAT | O_WRONLY, mode),
			     E_PERM);
		cr_assert_eq(RUN(full, SYS_openat, 0, 0, tmpfile_flag, mode), E_PERM);
		cr_assert_eq(RUN(full, SYS_mknodat, 0, 0, S_IFREG | mode), E_PERM);
		/* without O_CREAT the register holds what it likes */
		cr_assert_eq(RUN(full, SYS_openat, 0, 0, O_RDONLY, mode), ALLOW);
	}
	cr_assert_eq(RUN(full, SYS_openat, 0, 0, O_CREAT, plain), ALLOW);
	cr_assert_eq(RUN(full, SYS_fchmod, 0, 04755), E_PERM);
	cr_assert_eq(RUN(full, SYS_fchmod, 0, 02755), ALLOW);
	cr_assert_eq(RUN(full, SYS_openat2, 0), E_NOSYS);
}

Test(sandbox_seccomp, no_file_is_opened_for_neither_reading_nor_writing)
{
	static const uint64_t may[] = {O_RDONLY, O_WRONLY, O_RDWR, O_PATH};

	compile();
	for (size_t i = 0; i < 4; i++) {
		cr_assert_eq(RUN(full, SYS_openat, 0, 0, HIGH | may[i]), ALLOW);
		cr_assert_eq(RUN(floor_, SYS_openat, 0, 0, HIGH | may[i]), ALLOW);
	}
	cr_assert_eq(RUN(full, SYS_openat, 0, 0, HIGH | O_ACCMODE), E_PERM);
	cr_assert_eq(RUN(floor_, SYS_openat, 0, 0, O_ACCMODE | O_TRUNC), E_PERM);
#ifdef SYS_open
	cr_assert_eq(RUN(floor_, SYS_open, 0, HIGH | O_ACCMODE | O_CLOEXEC), E_PERM);
#endif
}

Test(sandbox_seccomp, sockets_by_family_whatever_the_high_bits)
{
	static const int denied[] = {0,	 3,  4,	 8,  9,	 15, 17, 29, 30,
				     31, 33, 38, 39, 40, 43, 44, 45};

	compile();
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		for (uint64_t type = 1; type < 11; type++) {
			uint64_t f = (uint64_t)denied[i];

			cr_assert_eq(RUN(full, SYS_socket, f, type, 0), E_PERM);
			cr_assert_eq(RUN(full, SYS_socket, f | HIGH, type, 0), E_PERM);
			cr_assert_eq(RUN(none, SYS_socket, f, type, 0), E_PERM);
			cr_assert_eq(RUN(floor_, SYS_socket, f, type, 0), E_PERM);
		}
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		     ALLOW);
	cr_assert_eq(RUN(full, SYS_socket, AF_INET6 | HIGH, SOCK_DGRAM | HIGH, 17),
		     ALLOW);
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_STREAM, 262), E_PERM, "MPTCP");
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_STREAM, 132), E_PERM, "SCTP");
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_DGRAM, 1), E_PERM, "ping");
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_DGRAM, 136), ALLOW, "UDP-Lite");
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_STREAM, 136), E_PERM);
	cr_assert_eq(RUN(none, SYS_socket, AF_INET6, SOCK_DGRAM, 136), E_PERM);
	cr_assert_eq(RUN(full, SYS_socket, AF_INET, SOCK_RAW, 0), E_PERM);
	cr_assert_eq(RUN(full, SYS_socket, AF_NETLINK, SOCK_RAW, 0), ALLOW);
	cr_assert_eq(RUN(full, SYS_socket, AF_NETLINK, SOCK_RAW, 9), E_PERM);
	cr_assert_eq(RUN(none, SYS_socket, AF_UNIX, SOCK_STREAM, 0), ALLOW);
	cr_assert_eq(RUN(none, SYS_socket, AF_INET, SOCK_STREAM, 0), E_PERM);
	cr_assert_eq(RUN(none, SYS_socket, AF_NETLINK, SOCK_RAW, 0), E_PERM);
	for (uint64_t f = 0; f < 64; f++)
		for (uint64_t type = 0; type < 16; type++)
			cr_assert_eq(RUN(floor_, SYS_socket, f, type, 0), E_PERM);
	cr_assert_eq(RUN(floor_, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0), E_PERM);
	cr_assert_eq(RUN(floor_, SYS_sendto, 3, 0, 0, 0, 0, 0), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_sendto, 3, 0, 0, 0, 0x1000, 0), E_PERM);
	cr_assert_eq(RUN(floor_, SYS_sendto, 3, 0, 0, 0, HIGH, 0), E_PERM,
		     "a pointer has 64 bits");
}

Test(sandbox_seccomp, system_v_objects_are_of_full_only)
{
	static const char *const calls[] = {"shmget", "shmat",	"shmctl", "shmdt",
					    "semget", "semop",	"semctl", "semtimedop",
					    "msgget", "msgsnd", "msgrcv", "msgctl"};

	compile();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		cr_assert_eq(RUN(floor_, sc_number(calls[i]), 0), E_PERM, "%s", calls[i]);
		cr_assert_eq(RUN(full, sc_number(calls[i]), 0), ALLOW, "%s", calls[i]);
		cr_assert_eq(RUN(none, sc_number(calls[i]), 0), ALLOW, "%s", calls[i]);
	}
	/* pages of the machine's own pool */
	cr_assert_eq(RUN(full, SYS_shmget, 0, 1, HIGH | IPC_CREAT | SHM_HUGETLB), E_PERM);
	cr_assert_eq(RUN(none, SYS_shmget, 7, 1, SHM_HUGETLB), E_PERM);
	cr_assert_eq(RUN(full, SYS_shmget, 0, 1, IPC_CREAT | IPC_EXCL | 0600), ALLOW);
}

Test(sandbox_seccomp, clone_makes_no_namespace)
{
	static const uint64_t flags[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
					 CLONE_NEWIPC, CLONE_NEWUSER,	CLONE_NEWPID,
					 CLONE_NEWNET};

	compile();
	cr_assert_eq(RUN(full, SYS_clone, SIGCHLD), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_clone, 0x3d0f00), ALLOW, "pthread_create");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		cr_assert_eq(RUN(full, SYS_clone, flags[i] | SIGCHLD), E_PERM);
		cr_assert_eq(RUN(floor_, SYS_clone, flags[i] | SIGCHLD | HIGH), E_PERM);
		cr_assert_eq(RUN(full, SYS_clone, flags[i] | 0x3d0f00), E_PERM);
	}
}

Test(sandbox_seccomp, terminals_are_not_typed_at)
{
	static const uint64_t bad[] = {0x5412, 0x541C, 0x541D, 0x5423};

	compile();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(RUN(full, SYS_ioctl, 0, bad[i]), E_PERM);
		cr_assert_eq(RUN(floor_, SYS_ioctl, 0, bad[i] | HIGH), E_PERM);
	}
	/* the keeper's: there may be no terminal but its own (notify_ioctl.c) */
	cr_assert_eq(RUN(full, SYS_ioctl, 0, HIGH | 0x540E, 1), KEEPER, "TIOCSCTTY");
	cr_assert_eq(RUN(floor_, SYS_ioctl, 0, 0x540E), E_PERM, "TIOCSCTTY");
	cr_assert_eq(RUN(full, SYS_ioctl, 0, 0x4B3A), E_PERM, "KDSETMODE");
	cr_assert_eq(RUN(floor_, SYS_ioctl, 0, 0x5606), E_PERM, "VT_ACTIVATE");
	cr_assert_eq(RUN(full, SYS_ioctl, 0, 0x5401), ALLOW, "TCGETS");
	cr_assert_eq(RUN(full, SYS_ioctl, 0x5412, 0x5413), ALLOW,
		     "the argument, not the descriptor");
}

Test(sandbox_seccomp, only_oneself_is_scheduled_and_limited)
{
	compile();
	cr_assert_eq(RUN(full, SYS_prlimit64, 0, 7), ALLOW);
	cr_assert_eq(RUN(full, SYS_prlimit64, 1, 7), E_PERM);
	cr_assert_eq(RUN(full, SYS_prlimit64, HIGH, 7), ALLOW,
		     "the kernel reads 32 bits: 0");
	cr_assert_eq(RUN(floor_, SYS_setpriority, 0, 0, 5), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_setpriority, 2, 0, 5), E_PERM, "PRIO_USER");
	cr_assert_eq(RUN(floor_, SYS_setpriority, 0, 77, 5), KEEPER,
		     "it may be one's own");
	cr_assert_eq(RUN(full, SYS_setpriority, 1, 77, 5), E_PERM, "PRIO_PGRP");
	cr_assert_eq(RUN(full, SYS_sched_setaffinity, 0), KEEPER);
	cr_assert_eq(RUN(floor_, SYS_sched_setaffinity, 0), KEEPER);
	cr_assert_eq(RUN(full, SYS_sched_getaffinity, 77), ALLOW,
		     "pthread_getattr_np needs it");
}

Test(sandbox_seccomp, only_the_own_ids_are_taken)
{
	uint64_t u = geteuid(), g = getegid(), same = UINT32_MAX, other = u + 1;

	compile();
	cr_assert_eq(RUN(full, SYS_setuid, u), ALLOW);
	cr_assert_eq(RUN(full, SYS_setuid, u | HIGH), ALLOW);
	cr_assert_eq(RUN(full, SYS_setuid, other), E_PERM);
	cr_assert_eq(RUN(full, SYS_setresuid, same, u, same), ALLOW);
	cr_assert_eq(RUN(full, SYS_setresuid, same, u, other), E_PERM);
	cr_assert_eq(RUN(none, SYS_setreuid, other, same), E_PERM);
	cr_assert_eq(RUN(floor_, SYS_setreuid, u, u), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_setgid, g), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_setregid, same, g + 1), E_PERM);
	cr_assert_eq(RUN(full, SYS_setresgid, g, g, g + 1), E_PERM);
}

Test(sandbox_seccomp, metadata_in_floor_is_the_keepers)
{
	static const char *const calls[] = {
		"chmod",       "fchmod",       "fchmodat",     "#452",
		"chown",       "lchown",       "fchown",       "fchownat",
		"utime",       "utimes",       "futimesat",    "utimensat",
		"removexattr", "lremovexattr", "fremovexattr", "#466",
	};
	/* 64 KiB of the kernel's memory each, where the object lies in memory */
	static const char *const sets[] = {"setxattr", "lsetxattr", "fsetxattr", "#463"};

	compile();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int nr = sc_number(calls[i]);

		if (nr < 0)
			continue; /* not on this architecture */
		cr_assert_eq(RUN(floor_, nr, 0), KEEPER, "%s", calls[i]);
		cr_assert_eq(RUN(floor_, nr, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL), KEEPER);
		cr_assert_eq(RUN(full, nr, 0), ALLOW, "%s", calls[i]);
	}
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		cr_assert_eq(RUN(floor_, sc_number(sets[i]), 0), KEEPER, "%s", sets[i]);
		cr_assert_eq(RUN(full, sc_number(sets[i]), ~0ULL, 1, 2, 3), KEEPER, "%s",
			     sets[i]);
	}
	cr_assert_eq(RUN(floor_, 469, 0), E_PERM, "file_setattr");
	cr_assert_eq(RUN(full, 469, 0), E_PERM, "file_setattr");
}

Test(sandbox_seccomp, files_in_floor_are_not_changed_by_ioctl)
{
	static const uint64_t bad[] = {
		0x40086602, /* FS_IOC_SETFLAGS */
		0x40046602, 0x401c5820 /* FS_IOC_FSSETXATTR */,
		0x40087602, /* FS_IOC_SETVERSION */
		0x40806685, /* FS_IOC_ENABLE_VERITY */
		0x5000940e, /* BTRFS_IOC_SUBVOL_CREATE */
	};
	static const uint64_t good[] = {
		0x80086601, /* FS_IOC_GETFLAGS */
		0xc020660b, /* FS_IOC_FIEMAP */
		0x801c581f, /* FS_IOC_FSGETXATTR */
		0x40049409, /* FICLONE */
		0x5401,	    /* TCGETS */
		0x541b,	    /* FIONREAD */
	};

	compile();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(RUN(floor_, SYS_ioctl, 3, bad[i]), E_PERM);
		cr_assert_eq(RUN(floor_, SYS_ioctl, 3, bad[i] | HIGH), E_PERM);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert_eq(RUN(floor_, SYS_ioctl, 3, good[i]), ALLOW);
}

/* What acts on more than the file: subvolumes (devices that no walk counts), keys of the
 * owner's directories, space as by fallocate, and what tells labels, ids and devices. */
Test(sandbox_seccomp, a_file_system_is_not_acted_on_by_ioctl)
{
	static const uint64_t bad[] = {
		0x5000940e, /* BTRFS_IOC_SUBVOL_CREATE */
		0x50009401, /* BTRFS_IOC_SNAP_CREATE */
		0x50009417, /* BTRFS_IOC_SNAP_CREATE_V2 */
		0x50009418, /* BTRFS_IOC_SUBVOL_CREATE_V2 */
		0x5000940f, /* BTRFS_IOC_SNAP_DESTROY */
		0x5000943f, /* BTRFS_IOC_SNAP_DESTROY_V2 */
		0xc0c89425, /* BTRFS_IOC_SET_RECEIVED_SUBVOL */
		0x4008941a, /* BTRFS_IOC_SUBVOL_SETFLAGS */
		0x50009402, /* BTRFS_IOC_DEFRAG */
		0x8400941f, /* BTRFS_IOC_FS_INFO */
		0xd000941e, /* BTRFS_IOC_DEV_INFO: the path of the device */
		0xd0009412, /* BTRFS_IOC_INO_LOOKUP */
		0x81f8943c, /* BTRFS_IOC_GET_SUBVOL_INFO */
		0x81009431, /* FS_IOC_GETFSLABEL */
		0x4020bc10, /* BCH_IOCTL_SUBVOLUME_CREATE */
		0x80111500, /* FS_IOC_GETFSUUID */
		0x80811501, /* FS_IOC_GETFSSYSFSPATH */
		0xc0c0583b, /* FS_IOC_GETFSMAP */
		0x40305828, /* FS_IOC_RESVSP */
		0x4030582a, /* FS_IOC_RESVSP64 */
		0x40305839, /* FS_IOC_ZERO_RANGE */
		0x800c6613, /* FS_IOC_SET_ENCRYPTION_POLICY */
		0xc0506617, /* FS_IOC_ADD_ENCRYPTION_KEY */
		0xc0406618, /* FS_IOC_REMOVE_ENCRYPTION_KEY */
		0x40806685, /* FS_IOC_ENABLE_VERITY */
		0x40087602, /* FS_IOC_SETVERSION */
		0xf501,	    /* F2FS_IOC_START_ATOMIC_WRITE */
		0x80087213, /* FAT_IOCTL_GET_VOLUME_ID */
		0xc010cf05, /* CIFS_IOC_GET_MNT_INFO */
	};

	compile();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(RUN(full, SYS_ioctl, 3, bad[i]), E_PERM, "%#lx", bad[i]);
		cr_assert_eq(RUN(none, SYS_ioctl, 3, bad[i] | HIGH), E_PERM);
		cr_assert_eq(RUN(floor_, SYS_ioctl, 3, bad[i]), E_PERM);
	}
	cr_assert_eq(RUN(full, SYS_ioctl, 3, 0x40086602), ALLOW, "FS_IOC_SETFLAGS");
	cr_assert_eq(RUN(full, SYS_ioctl, 3, 0x401c5820), ALLOW, "FS_IOC_FSSETXATTR");
}

Test(sandbox_seccomp, an_ioctl_that_nobody_reviewed_is_refused)
{
	static const uint64_t sizes[] = {0, 0x40080000, 0x80100000, 0xc0200000};

	compile();
	for (uint64_t type = 0; type < 256; type++)
		for (uint64_t nr = 0; nr < 256; nr++)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
				uint64_t request = sizes[i] | type << 8 | nr;
				bool named = request == 2 || request == 0xc020660b ||
					     request == 0x40082102;
				bool terminal = type == 0x54;

				if (named || terminal)
					continue;
				cr_assert_eq(RUN(floor_, SYS_ioctl, 0, request), E_PERM,
					     "floor: %#lx", request);
				if (type == 0x89 || type == 0xb7 || type == 0xff ||
				    request == 0x40086602 || request == 0x80086601)
					continue;
				cr_assert_eq(RUN(full, SYS_ioctl, 0, request), E_PERM,
					     "full: %#lx", request);
			}
}

/* A socket that came from outside answers for the network where it was made. */
Test(sandbox_seccomp, the_keeper_answers_for_interfaces)
{
	static const uint64_t ask[] = {0x8910, 0x8912, 0x8913, 0x8915, 0x8927,
				       0x8933, 0x8946, 0x894c, 0x89e0, 0x89ff};

	for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
		struct seccomp_data d = {
			.nr = SYS_ioctl, .arch = ARCH, .args = {0, ask[i] | HIGH}};

		cr_assert_eq(sc_judge(SC_FULL_LO, &d), SC_SUPERVISED, "%#lx", ask[i]);
		cr_assert_eq(sc_judge(SC_FULL_NONE, &d), SC_SUPERVISED);
		cr_assert_eq(sc_judge(SC_FLOOR, &d), SC_EPERM);
	}
	compile();
	cr_assert_eq(RUN(full, SYS_ioctl, 0, 0x8905), ALLOW, "SIOCATMARK");
	cr_assert_eq(RUN(floor_, SYS_ioctl, 0, 0x8905), E_PERM, "SIOCATMARK");
}

/* The clock of process P is (~P << 3) with its kind in the lowest bits: 2 is its CPU time. */
Test(sandbox_seccomp, only_the_own_cpu_clocks_are_read)
{
	static const int calls[] = {SYS_clock_gettime, SYS_clock_getres,
				    SYS_clock_nanosleep, SYS_timer_create};
	static const int32_t pids[] = {1, 2, 77, 4194304, 0x0fffffff};

	compile();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (uint64_t clock = 0; clock < 16; clock++)
			cr_assert_eq(RUN(floor_, calls[i], HIGH | clock), ALLOW);
		for (size_t k = 0; k < sizeof(pids) / sizeof(pids[0]); k++) {
			uint32_t process = ~(uint32_t)pids[k] << 3;

			for (uint32_t kind = 0; kind < 4; kind++) {
				cr_assert_eq(RUN(floor_, calls[i], process | kind),
					     E_PERM);
				cr_assert_eq(RUN(full, calls[i], HIGH | process | kind),
					     E_PERM, "%d", pids[k]);
			}
			/* a thread: the kernel asks whether it is one of the caller's */
			cr_assert_eq(RUN(floor_, calls[i], process | 6), ALLOW);
		}
		/* as clock_getcpuclockid(0) has it */
		cr_assert_eq(RUN(floor_, calls[i], 0xfffffffau), ALLOW);
		cr_assert_eq(RUN(full, calls[i], HIGH | 0xfffffffau), ALLOW);
	}
}

/* The one limit at which no handler of the host is started: limits.c. */
Test(sandbox_seccomp, the_limit_for_core_dumps_stays)
{
	const struct program *all[3];

	compile();
	all[0] = &full, all[1] = &none, all[2] = &floor_;
	for (int k = 0; k < 3; k++) {
		const struct program p = *all[k];

		cr_assert_eq(RUN(p, SYS_setrlimit, HIGH | RLIMIT_CORE, 1), NOTHING);
		cr_assert_eq(RUN(p, SYS_setrlimit, RLIMIT_NOFILE, 1), ALLOW);
		cr_assert_eq(RUN(p, SYS_getrlimit, RLIMIT_CORE, 1), ALLOW);
		cr_assert_eq(RUN(p, SYS_prlimit64, 0, RLIMIT_CORE, 0, 1), ALLOW);
		cr_assert_eq(RUN(p, SYS_prlimit64, HIGH, HIGH | RLIMIT_CORE, 1, 0),
			     NOTHING);
		cr_assert_eq(RUN(p, SYS_prlimit64, 0, RLIMIT_CORE, HIGH, 0), NOTHING);
		cr_assert_eq(RUN(p, SYS_prlimit64, 0, RLIMIT_CORE, 1, 1), E_PERM);
		cr_assert_eq(RUN(p, SYS_prlimit64, 0, RLIMIT_NOFILE, 1, 1), ALLOW);
		cr_assert_eq(RUN(p, SYS_prlimit64, 77, RLIMIT_CORE, 1, 0), E_PERM);
	}
}

Test(sandbox_seccomp, in_floor_no_process_is_had_by_its_number)
{
	compile();
	cr_assert_eq(RUN(floor_, SYS_pidfd_open, 1), E_NOSYS);
	cr_assert_eq(RUN(full, SYS_pidfd_open, 1), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_ioctl, 3, 0xc040ff0b), E_PERM, "PIDFD_GET_INFO");
}

Test(sandbox_seccomp, what_keeps_memory_that_nobody_counts_is_refused)
{
	compile();
	cr_assert_eq(RUN(full, SYS_mbind, 0, 4096, 2), E_PERM);
	cr_assert_eq(RUN(floor_, SYS_mbind, 0, 4096, 2), E_PERM);
	cr_assert_eq(RUN(full, SYS_set_mempolicy, 0), ALLOW, "its own, one a thread");
	cr_assert_eq(RUN(full, SYS_mmap, 0, 4096, 3, MAP_HUGETLB | MAP_ANONYMOUS),
		     E_PERM);
	cr_assert_eq(RUN(floor_, SYS_mmap, 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS),
		     ALLOW);
	/* The keeper notes how long a shared one is, and lets the kernel go on. */
	cr_assert_eq(RUN(full, SYS_mmap, 0, 1 << 20, 3, MAP_SHARED | MAP_ANONYMOUS),
		     KEEPER);
	cr_assert_eq(RUN(floor_, SYS_mmap, 0, 1 << 17, 1, MAP_SHARED_VALIDATE, 7),
		     KEEPER);
	cr_assert_eq(RUN(full, SYS_mmap, 0, 1ul << 32, 3, MAP_SHARED | MAP_ANONYMOUS),
		     KEEPER, "the high half counts");
	cr_assert_eq(RUN(full, SYS_mmap, 0, (1 << 17) - 1, 3, MAP_SHARED | MAP_ANONYMOUS),
		     ALLOW);
	cr_assert_eq(RUN(full, SYS_mmap, 0, 1 << 20, 3, MAP_PRIVATE, 7), ALLOW);
	cr_assert_eq(
		RUN(full, SYS_mmap, 0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB),
		E_PERM);
	cr_assert_eq(RUN(full, SYS_madvise, 0, 4096, 25 /* MADV_COLLAPSE */), KEEPER);
	cr_assert_eq(RUN(full, SYS_madvise, 0, 4096, MADV_DONTNEED), ALLOW);
	cr_assert_eq(RUN(floor_, SYS_memfd_create, 0, MFD_HUGETLB | MFD_CLOEXEC), E_PERM);
	cr_assert_eq(RUN(full, SYS_memfd_create, 0, MFD_ALLOW_SEALING), ALLOW);
	cr_assert_eq(RUN(full, SYS_setsockopt, 3, IPPROTO_IP, IP_ADD_MEMBERSHIP), KEEPER);
	cr_assert_eq(RUN(full, SYS_setsockopt, 3, IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP),
		     KEEPER);
	cr_assert_eq(RUN(full, SYS_setsockopt, 3, IPPROTO_IP, IP_TTL), ALLOW);
	/* keys for a TCP socket: as many as somebody likes, and nobody counts them */
	cr_assert_neq(RUN(full, SYS_setsockopt, 3, IPPROTO_TCP, 14 /* TCP_MD5SIG */),
		      ALLOW);
	cr_assert_neq(RUN(full, SYS_setsockopt, 3, IPPROTO_TCP, 32 /* ..._EXT */), ALLOW);
	cr_assert_neq(RUN(full, SYS_setsockopt, 3, IPPROTO_TCP, 38 /* TCP_AO_ADD_KEY */),
		      ALLOW);
	cr_assert_eq(RUN(full, SYS_setsockopt, 3, IPPROTO_TCP, 1 /* TCP_NODELAY */),
		     ALLOW);
	cr_assert_eq(RUN(full, SYS_setsockopt, 3, SOL_SOCKET, IP_ADD_MEMBERSHIP), ALLOW);
	/* The keeper counts filters and lets the kernel go on. */
	cr_assert_eq(RUN(full, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0), KEEPER);
	cr_assert_eq(RUN(floor_, SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			 SECCOMP_FILTER_FLAG_TSYNC),
		     KEEPER);
	cr_assert_eq(RUN(full, SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			 SECCOMP_FILTER_FLAG_NEW_LISTENER),
		     E_PERM);
}

Test(sandbox_seccomp, no_device_is_made)
{
	compile();
	cr_assert_eq(RUN(full, SYS_mknodat, 0, 0, S_IFIFO | 0600), ALLOW);
	cr_assert_eq(RUN(full, SYS_mknodat, 0, 0, S_IFCHR | 0600), E_PERM);
	cr_assert_eq(RUN(full, SYS_mknodat, 0, 0, S_IFBLK | 0600), E_PERM);
}
