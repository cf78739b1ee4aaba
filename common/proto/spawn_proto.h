/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The channel between the tomb and the spawner (lych-sandbox --serve FD): one
 * SOCK_SEQPACKET socketpair, one message a packet, fixed-size structs in host
 * byte order (both ends are the same build:
 * `version` is compared in HELLO).
 * The tomb speaks first. A message with a wrong size, type, version or number of
 * descriptors ends the side that received it: both are our own code, so it is
 * a bug, and the end of either side ends every job.
 *
 * Liveness both ways is EOF on this socket; that the spawner's loop turns is asked by
 * PING, which it answers before anything else that came after it.
 *
 *	tomb -> spawner
 *	  SPAWN_RUN   + SCM_RIGHTS { spec (common/proto/payload.h), stdin, stdout, stderr }
 *	  SPAWN_KILL
 *	  SPAWN_RESIZE    the job's terminal, of one that has one
 *	  SPAWN_PING      not again before its PONG
 *	spawner -> tomb
 *	  SPAWN_HELLO     once, when the spawner has built its own walls
 *	  SPAWN_TERMINAL  + SCM_RIGHTS { the other side of the job's terminal } when it was asked
 *			  for: before STARTED. The job's own side stays open in the spawner
 *	  SPAWN_STARTED   the job's argv was executed (exec worked)
 *			  + SCM_RIGHTS { its broker } when it was asked for
 *	  SPAWN_REFUSED   not established, nothing ran; the handle is free again
 *	  SPAWN_DENIED    what a wall refused the job: at most SPAWN_DENIED_MAX of them, all
 *			  between its STARTED and its EXITED (before EXITED alone when the
 *			  execution itself was refused)
 *	  SPAWN_EXITED    the job is over and its whole process tree is gone
 *	  SPAWN_PONG      with the number of the PING
 *
 * Every RUN gets exactly one of REFUSED or (STARTED then EXITED); EXITED comes without
 * STARTED when the exec itself failed (how = SPAWN_END_EXEC), and when the keeper or guard was
 * killed before it (SPAWN_END_LOST).
 */
#ifndef LYCH_COMMON_PROTO_SPAWN_PROTO_H
#define LYCH_COMMON_PROTO_SPAWN_PROTO_H

#include "common/proto/payload.h"
#include <stdint.h>

#define SPAWN_PROTO_VERSION 8u
#define SPAWN_SPEC_MAX_BYTES PAYLOAD_MAX_BYTES /* the NUL-separated block */
#define SPAWN_JOBS_MAX 256
#define SPAWN_TEXT_MAX 200
#define SPAWN_LIMITS_MAX 8
#define SPAWN_LAYERS_MAX 20
#define SPAWN_SAMPLES_MAX 32 /* the last looks at what a job used */
#define SPAWN_DENIED_MAX 64  /* distinct denials of one job; more are only counted */

enum spawn_type {
	SPAWN_RUN = 2,
	SPAWN_KILL = 4,
	SPAWN_PING = 6,
	SPAWN_RESIZE = 8,
	SPAWN_HELLO = 1,
	SPAWN_STARTED = 3,
	SPAWN_REFUSED = 5,
	SPAWN_EXITED = 7,
	SPAWN_DENIED = 9,
	SPAWN_PONG = 11,
	SPAWN_TERMINAL = 13,
};

/* Which wall said no. The numbers and names (common/proto/denied.c) are part of the result. */
enum spawn_wall {
	SPAWN_WALL_SECCOMP = 1,	 /* the system call itself, or its arguments */
	SPAWN_WALL_LANDLOCK = 2, /* a path, port or scope that nothing grants */
	SPAWN_WALL_MOUNT = 3,	 /* read-only, noexec: the private root */
	SPAWN_WALL_NETWORK = 4,	 /* no route: the network namespace */
	SPAWN_WALL_ABSENT = 5,	 /* full: not shown inside. Absence, not a denial */
	SPAWN_WALL_MAX_
};

enum spawn_act {
	SPAWN_ACT_READ = 1,
	SPAWN_ACT_WRITE = 2, /* open for writing, create, remove, rename, truncate */
	SPAWN_ACT_EXEC = 3,
	SPAWN_ACT_CONNECT = 4,	/* and bind, and datagrams */
	SPAWN_ACT_METADATA = 5, /* mode, owner, times, extended attributes */
	SPAWN_ACT_CALL = 6,	/* any other system call */
	SPAWN_ACT_MAX_
};

/* The job gets a broker (common/proto/broker_proto.h). In full it needs the loopback network. */
#define SPAWN_RUN_BROKER 1u
/* Grade full: the job gets a terminal of its own as stdio, and not what came with RUN. */
#define SPAWN_RUN_TTY 2u

struct spawn_run {
	uint32_t type; /* SPAWN_RUN */
	uint32_t version;
	uint64_t handle;     /* chosen by the tomb, unique among live jobs */
	uint32_t spec_bytes; /* of the block: common/proto/payload.h */
	uint32_t flags;	     /* SPAWN_RUN_* */
	uint32_t cols, rows; /* with SPAWN_RUN_TTY 1 to TTY_SIDE_MAX; else 0 */
};

/* Why the tomb wants it dead; echoed as spawn_exited.how. */
enum spawn_end {
	SPAWN_END_EXITED = 0,	 /* by itself: code is the exit status */
	SPAWN_END_SIGNALLED = 1, /* by a signal it raised or met: code is the signal */
	SPAWN_END_TIMEOUT = 2,
	SPAWN_END_OOM = 3,
	SPAWN_END_DISK = 4,
	SPAWN_END_PROCESSES = 5,
	SPAWN_END_CPU = 6,
	SPAWN_END_OUTPUT = 7,	 /* by SPAWN_KILL */
	SPAWN_END_CANCEL = 8,	 /* by SPAWN_KILL */
	SPAWN_END_LEASE = 9,	 /* by SPAWN_KILL */
	SPAWN_END_SHUTDOWN = 10, /* by SPAWN_KILL */
	SPAWN_END_EXEC = 11,	 /* execve failed: code is errno */
	SPAWN_END_LOST =
		12, /* its keeper or guard was killed: nothing of the job's doing */
	SPAWN_END_UNMEASURED =
		13,		/* it could no longer be measured, and was ended for it */
	SPAWN_END_OBJECTS = 14, /* more of the kernel's objects than a job may have */
	SPAWN_END_MAX_
};
/* Its name in a result ("timeout"); NULL when unknown. */
const char *spawn_end_name(uint32_t how);

struct spawn_kill {
	uint32_t type; /* SPAWN_KILL */
	uint32_t why;  /* SPAWN_END_OUTPUT .. SPAWN_END_SHUTDOWN */
	uint64_t handle;
	uint32_t grace_ms; /* SIGTERM, this long, then SIGKILL of the tree; 0: at once */
	uint32_t reserved;
};

/* A handle that has no terminal, or none any more, is ignored. */
struct spawn_resize {
	uint32_t type; /* SPAWN_RESIZE */
	uint32_t cols;
	uint64_t handle;
	uint32_t rows;
	uint32_t reserved;
};

struct spawn_terminal {
	uint32_t type; /* SPAWN_TERMINAL */
	uint32_t reserved;
	uint64_t handle;
};

/* Both ways: SPAWN_PING is answered by a SPAWN_PONG of the same number. */
struct spawn_ping {
	uint32_t type;
	uint32_t number;
};

struct spawn_hello {
	uint32_t type;
	uint32_t version;
	uint32_t landlock_abi;
	int32_t pid; /* as the spawner's parent sees it is not knowable here: own getpid()
		      */
	char mechanism[SPAWN_TEXT_MAX]; /* "cgroup2:<leaf>" or "rlimit+supervision" */
};

struct spawn_started {
	uint32_t type;
	uint32_t broker; /* enum broker_kind: of the descriptor that comes with it */
	uint64_t handle;
	uint32_t grade; /* enum sbx_grade */
	uint32_t landlock_abi;
	uint32_t n_layers, n_limits;
	char layers[SPAWN_LAYERS_MAX][24]; /* "userns", "mount", ... in order */
	struct {
		char name[16];	    /* "memory" */
		char mechanism[32]; /* "cgroup2", "rlimit", "supervised", "affinity",
				       "mount" */
		uint64_t value;	    /* bytes, count or microseconds */
	} limits[SPAWN_LIMITS_MAX];
};

struct spawn_refused {
	uint32_t type;
	int32_t sys; /* errno */
	uint64_t handle;
	char error_code[24]; /* "LYCH-SANDBOX-002" */
	char stage[24];	     /* "landlock" */
	char text[SPAWN_TEXT_MAX];
};

/* One kind of denial; the same act on the same object with the same answer is counted,
 * not repeated. Nothing here can come from the job but `object`, which is what it named:
 * raw bytes, escaped by whoever shows it. */
struct spawn_denied {
	uint32_t type; /* SPAWN_DENIED */
	uint32_t wall; /* enum spawn_wall */
	uint64_t handle;
	uint32_t act;	  /* enum spawn_act */
	uint32_t count;	  /* saturates */
	int32_t sys;	  /* the errno that the job saw */
	uint32_t dropped; /* on the last record: kinds beyond SPAWN_DENIED_MAX */
	char call[24];	  /* "openat" */
	char object[256]; /* a path, "192.0.2.1:443", "socket family 40"; "" when the call
			     says it all */
	char grant[256];  /* the smallest option that would allow it, "--ro /srv/data"; ""
			     when none does, or none is offered */
	char withheld[128]; /* why none is offered, though one would allow it; or "" */
};

struct spawn_exited {
	uint32_t type;
	uint32_t how; /* enum spawn_end */
	uint64_t handle;
	int32_t code;	    /* exit status, signal number or errno, by how; for a kill the
			       signal that ended it */
	uint32_t tree_gone; /* always 1: the message is sent only then */
	/* Of the disk's, up to 16 MiB may be what others added to its file system. */
	uint64_t wall_usec, cpu_usec, memory_peak_bytes, disk_peak_bytes;
	uint32_t processes_peak;
	uint32_t killed_strays; /* processes that had to be killed after the main one
				   ended */
	char detail[SPAWN_TEXT_MAX];
	/* Of one that passed its limit of memory or processes: the last looks, oldest first. */
	uint32_t n_samples;
	uint32_t sample_kib[SPAWN_SAMPLES_MAX], sample_processes[SPAWN_SAMPLES_MAX];
};

/* Whatever the spawner says, by its type; a keeper says it to the spawner first. */
union spawn_message {
	uint32_t type;
	struct spawn_hello hello;
	struct spawn_terminal terminal;
	struct spawn_started started;
	struct spawn_refused refused;
	struct spawn_denied denied;
	struct spawn_exited exited;
	struct spawn_ping pong;
};

#endif
