/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper, the guard and the job.
 * The inner contract of lych-sandbox. One job is four processes, each the parent of the next,
 * and a fifth when it lives for more than a moment:
 *
 *	parent   the command line (main.c) or the spawner (serve.c). Parses the
 *		 spec, opens the workspace, starts the keeper, reads the reports.
 *	keeper	 grade full: pid 1 of the job's own pid namespace, in the job's
 *		 user, mount, net, ipc and uts namespaces. Builds the root, counts what is
 *		 on the disk, answers the calls that the job may not make itself. It
 *		 may have to wait for a file, so it keeps no clock and kills nobody.
 *	meter	 the keeper's other child: measures memory and processes (meter.c).
 *	guard	 knows the deadline, takes the parent's orders, kills and reaps the whole
 *		 tree, reports the end (guard.h). It touches nothing of the job.
 *	job	 session, cgroup, caps, seccomp; then, when it knows
 *		 its spec, stdio, limits, Landlock, self-test, exec.
 *
 * A warm sandbox is a keeper and a job that are built but have no spec yet: both wait for
 * it, the keeper for KEEPER_BIND, the job for struct job_go. A cold start is the same
 * code with the spec in hand from the beginning. Each is used once.
 *
 * Files: main.c (command line, stages), outcome.c (what the caller is told), those of terminal/ (--tty: the
 * person's terminal), pty.c (the job's), spec.c (argv or NUL block -> struct
 * sbx_spec), root.c + mounts.c (private root), procmask.c (its /proc), fds.c, limits.c (rlimits, cgroup leaf),
 * cpus.c (affinity), caps.c, landlock rules in walls.c, seccomp.c (filter as data),
 * selftest.c, job.c (the order of the stages in the child), birth.c (the keeper until the
 * job runs), broker.c (the job's way to the tomb), guard*.c (the guard),
 * keeper.c + files.c + disk.c + room.c (what is on the disk, and who answers), meter.c + sample.c +
 * use*.c + tree.c + hidden.c + sysvipc.c + diag.c (memory and processes), end.c (the last look), notify*.c (the calls that the keeper answers), report.c (status and walls), serve.c
 * (the spawner), serve_job.c (its jobs), pool.c (its warm sandboxes), prepared_rules.c (rules made in
 * advance), serve_walls.c (its namespaces).
 */
#ifndef LYCH_SANDBOX_CONTRACT_SANDBOX_H
#define LYCH_SANDBOX_CONTRACT_SANDBOX_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/landlock.h"
#include "common/proto.h"
#include "common/proto/job_spec.h"
#include "common/proto/payload.h"
#include "common/proto/spawn_proto.h"
#include "sandbox/contract/cpus.h"
#include "sandbox/contract/terminal.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SBX_HOSTNAME "tomb" /* unless the spec says otherwise */
#define SBX_TMPDIR ".tmp"   /* in floor, in a workspace that can be written */

enum sbx_net { NET_LOOPBACK, NET_NONE }; /* none: lo stays down; no inet socket at all */

enum sbx_mount_kind { MOUNT_RO, MOUNT_RW, MOUNT_ROX };
struct sbx_mount {
	enum sbx_mount_kind kind; /* --ro, --rw, --rox: same absolute path inside */
	char *path;
};

/* The spec: owned strings; see sbx_spec_parse(). */
struct sbx_spec {
	enum sbx_grade grade;
	enum sbx_net net;
	struct sbx_mount *mounts;
	size_t n_mounts;
	char *workspace;   /* --workspace DIR: at /work, writable; the cwd. NULL: none */
	bool workspace_ro; /* --workspace-ro DIR: the same, read-only */
	int workspace_fd;  /* opened by the parent, O_PATH|O_DIRECTORY|O_NOFOLLOW; -1 */
	char *cwd; /* default: the workspace, else caller_cwd if it is shown, else / */
	char *caller_cwd;    /* command line only: where the caller stood; NULL */
	char **env;	     /* NULL-terminated "K=V", complete: nothing is inherited */
	char **argv;	     /* NULL-terminated */
	usec_t timeout_usec; /* wall, default 600 s, never 0 */
	unsigned grace_ms;   /* between SIGTERM and SIGKILL, default 250 */
	uint64_t memory_bytes, disk_bytes, tmp_bytes, output_bytes /* RLIMIT_FSIZE */;
	unsigned processes, cpus, nofile;
	uint64_t cpu_sec; /* RLIMIT_CPU, 0 = none */
	char *cgroup;	/* --cgroup DIR: delegated, our leaf is made in it; NULL = none */
	int cgroup_fd;	/* the spawner opened it in another mount namespace; else -1 */
	char *hostname; /* default SBX_HOSTNAME; a container may keep its own instead */
	bool hostname_chosen; /* by --hostname: this one or nothing */
	bool explain;	  /* record refused files and connections too; observation only */
	bool tell_absent; /* ... and what is not shown; the parent looks whether it exists */
	bool show_home; /* command line: --home, a word of its own (home.h) */
	bool json;	/* command line: one JSON line about the end on stderr */
	bool tty; /* command line, full: a terminal of its own as stdio (terminal.h) */
	const char *tools; /* the spawner's own, borrowed: the directory of the broker's
			      clients (BROKER_TOOLS); NULL: none */
	bool own_tmpdir; /* floor: TMPDIR is SBX_TMPDIR in the workspace, which the keeper makes */
	bool broker; /* the spawner's own wish, not of the grammar: see broker.h */
};

/*
 * The grammar, the same for argv and for the block. "--opt value" or "--opt=value":
 *
 *	--grade full|floor	--network loopback|none
 *	--workspace DIR | --workspace-ro DIR
 *	--ro PATH --rw PATH --rox PATH (repeatable)		--cwd DIR
 *	--env NAME=VALUE (repeatable)	--hostname NAME		--cgroup DIR
 *	--timeout DURATION	--grace DURATION	--cpu-time DURATION
 *	--memory SIZE --disk SIZE --tmp SIZE --file-size SIZE	--processes N
 *	--cpus N		--nofile N		--json	--explain	--home	--tty
 *	--limit NAME=VALUE (repeatable), the same as --NAME VALUE; NAME: timeout cpu-time
 *	memory disk tmp file-size processes cpus nofile
 *	--			then argv of the job
 *
 * SIZE and DURATION as common/str.h reads them ("512MiB", "30s"). On the command line a
 * relative path is taken from the working directory; in the block every path is absolute
 * but the workspace, which may be relative to the spawner's jobs directory ("42.1/work").
 * argv[0] (command line only; the block starts with the first option) is not looked at.
 * HOME, PATH, TMPDIR, LANG, USER and TERM are added to env when they are not given, and what
 * tells Python, Node and Java how they are run (spec_env.c).
 * Errors: ERRID_CORE_USAGE / SPEC_*.
 */
MUST_CHECK int sbx_spec_parse(int argc, char *const argv[], struct sbx_spec *ret,
			      struct err *err);
/* A block of NUL-terminated strings, the same grammar; <= SPAWN_SPEC_MAX_BYTES. */
MUST_CHECK int sbx_spec_parse_block(const char *block, size_t len, struct sbx_spec *ret,
				    struct err *err);
/* Makes a relative workspace of a block absolute; nothing to do for others. */
MUST_CHECK int sbx_spec_base_workspace(struct sbx_spec *s, const char *jobs_dir,
				       struct err *err);
void sbx_spec_init(struct sbx_spec *s); /* defaults of common/proto/job_spec.h */
void sbx_spec_done(struct sbx_spec *s);

/* What keeper and guard tell the parent over a SOCK_SEQPACKET pair: the very structs of
 * common/proto/spawn_proto.h (spawn_started, spawn_refused, spawn_exited), handle 0. */

struct sbx_limits { /* how each limit is enforced, for spawn_started */
	unsigned n;
	struct {
		char name[16];
		char mechanism[32];
		uint64_t value;
	} l[SPAWN_LIMITS_MAX];
	int cgroup_fd;	     /* the job's leaf, -1 without */
	int cgroup_procs_fd; /* cgroup.procs of it, opened by the parent: the opener's
				namespaces count */
	int cgroup_parent_fd;
	bool cgroup_cpu; /* the leaf holds the CPU limit too */
	char leaf[40];
	unsigned nproc; /* RLIMIT_NPROC to set */
	struct sbx_cpus cpus;
};

/* What a keeper is born with. */
struct sbx_birth {
	const struct sbx_spec *spec; /* warm: only what the walls are built from (grade,
					network, tmp size, host name, no grants) */
	bool warm;		     /* the spec comes with keeper_bind() */
	const char *jobs_dir;	     /* warm: what the workspace of that spec is below */
	bool templated; /* full: our mount namespace is the spawner's template */
	int stdio[3];	/* become 0, 1, 2 of the job; not of a warm one */
	/* Full, not warm: instead of them it gets a terminal of its own, like this one; NULL: none. */
	const struct sbx_terminal *terminal;
	int null_fd; /* /dev/null, for reading and writing: the keeper's own stdio, and a
			 * warm job's until it has a spec */
	int meminfo_fd; /* /proc/meminfo of the machine */
	int workspace;	/* templated, not warm: the workspace as a detached mount; -1 */
	struct landlock_set rules; /* floor: what walls_landlock_system() makes; fd -1 */
};

struct keeper {
	pid_t pid;
	int pidfd;
	int sock;
	enum sbx_grade grade;
	bool lost, reaped; /* start.c */
	struct sbx_limits limits;
};
/* Starts a keeper. The parent sends struct spawn_kill on its socket; EOF there means the
 * parent is gone, and the guard ends the job. */
MUST_CHECK int keeper_start(const struct sbx_birth *birth, struct keeper *ret,
			    struct err *err);
/* Gives a warm keeper its job. sent: the block that spec was parsed from.
 * workspace: full, the detached mount; floor, the directory; -1: none. All are only
 * borrowed. On failure nothing ran, and the keeper is good for nothing else. */
MUST_CHECK int keeper_bind(struct keeper *k, const struct sbx_spec *spec,
			   const struct payload *sent, const int stdio[3], int workspace,
			   struct err *err);
/* How many there may be at once: with a job, warm, and about to end. */
#define KEEPERS_MAX (4 * SPAWN_JOBS_MAX)
/* How often to ask for a lost one. */
#define STRAYS_MSEC 5
/* Nothing more is wanted of it. lost: its socket ended without a report, so its guard is dead.
 * Does not wait. */
void keeper_end(struct keeper *k, bool lost);
/* After keeper_end(), when its pidfd can be read or, of a lost one, each STRAYS_MSEC: is it over, and
 * its job with it? Then k holds nothing any more. Does not wait. */
MUST_CHECK bool keeper_is_over(struct keeper *k);
/* Both, waiting. */
void keeper_done(struct keeper *k, bool lost);

/* parent -> keeper, next to struct spawn_kill; with the descriptors of handover.h. */
#define KEEPER_BIND 0x4b01u
struct keeper_bind {
	uint32_t type;
	uint32_t spec_bytes;
	uint32_t broker;	  /* 1: the job gets one */
	struct sbx_limits limits; /* but its descriptors, which were there at birth */
};
/* keeper -> parent, next to the messages of common/proto/spawn_proto.h: every wall that needs
 * no spec stands. */
#define KEEPER_READY 0x4b02u

/* Body of the keeper process; never returns. keeper.c */
NORETURN void keeper_main(const struct sbx_birth *birth, const struct sbx_limits *limits,
			  int sock);

/* root.c: in the new namespaces, as pid 1 with all capabilities in them. Builds and
 * pivots into the private root; proc_fd: a descriptor of the /proc of this pid namespace
 * for supervision. */
struct sbx_root {
	int proc_fd;	    /* -1 in floor: use /proc */
	int tmp_fd, shm_fd; /* for fstatvfs of the tmpfs mounts; -1 in floor */
	int work_fd;	    /* the workspace as seen inside; -1 */
};
/* Opens spec->workspace into spec->workspace_fd and judges it (a real directory of ours,
 * not "/", not a mount of its own, nothing of /proc and its like in it): ERRID_SANDBOX_WORKSPACE. The parent calls it;
 * root_build opens the path again in its own mount namespace and refuses when it is not
 * the same directory any more. */
MUST_CHECK int root_open_workspace(struct sbx_spec *spec, struct err *err);
MUST_CHECK int root_build(const struct sbx_spec *spec, struct sbx_root *ret,
			  struct err *err);
/* The spawner, in a mount namespace of its own: makes it the root that all sandboxes with
 * this host name and no grants have in common, and enters it. */
MUST_CHECK int root_template(const struct sbx_spec *spec, struct err *err);
/* A keeper in a copy of the template: adds its own /proc, /dev/pts, /tmp and /dev/shm. */
MUST_CHECK int root_from_template(const struct sbx_spec *spec, struct sbx_root *ret,
				  struct err *err);
/* procmask.c: in the job, behind that root, while it has its capabilities. */
MUST_CHECK int root_cover_proc(struct err *err);
/* Attaches the detached mount at /work and takes it over as ret->work_fd. */
MUST_CHECK int root_place_workspace(int mount_fd, int root_fd, struct sbx_root *ret,
				    struct err *err);

/* job.c: the child. Stages in order; any failure writes {stage, errno, id, text} to
 * status_fd (a SEQPACKET socket, O_CLOEXEC) and exits 78. On the way the seccomp listener
 * goes to the keeper through it (notify_hand_over). On success it does not return:
 * execve. EOF on status_fd = exec worked. The layer names go to the keeper through the
 * report. */
struct job_status {	   /* what comes through status_fd */
	uint32_t error_id; /* enum err_id; SANDBOX_EXEC: the exec itself failed */
	int32_t sys;
	char stage[24];
	char text[SPAWN_TEXT_MAX];
};
/* keeper -> job on the same socket: go on. With the ruleset, and with the descriptors of
 * handover.h when the job is warm (the workspace in floor only). */
struct job_go {
	uint32_t nproc;	     /* RLIMIT_NPROC */
	uint32_t spec_bytes; /* warm: of the block */
	uint32_t broker;     /* 1: its end of the broker comes after the ruleset */
};
/* work_fd: the workspace's directory (floor, not warm); -1. */
NORETURN void job_main(const struct sbx_birth *birth, const struct sbx_limits *limits,
		       int work_fd, int status_fd);

/* limits.c */
/* In the parent, before the fork: the leaf, without limits yet. Nothing to do without
 * spec->cgroup. ERRID_SANDBOX_CGROUP. */
MUST_CHECK int limits_make_leaf(const struct sbx_spec *spec, struct sbx_limits *ret,
				struct err *err);
/* In the parent, before the job goes: writes the limits of the leaf (each write checked
 * and read back) and says how each is enforced; ERRID_SANDBOX_LIMIT when something cannot
 * be, ERRID_SANDBOX_CGROUP. */
MUST_CHECK int limits_prepare(const struct sbx_spec *spec, struct sbx_limits *l,
			      struct err *err);
/* In the job, while it has its capabilities and before its filter: no core dumps, join the
 * leaf (checked), cgroup namespace (full). */
MUST_CHECK int limits_enter(enum sbx_grade grade, int cgroup_procs_fd, struct err *err);
/* In the job: rlimits, NOFILE last. */
MUST_CHECK int limits_apply(const struct sbx_spec *spec, unsigned nproc, struct err *err);
/* cgroup.kill, rmdir of the leaf: one that is still busy is left to limits_sweep(). */
void limits_done(struct sbx_limits *l);
/* Try again those that were busy; when to come back, USEC_INFINITY: nothing is left. */
usec_t limits_sweep(void);
void limits_sweep_all(void); /* wait for them, at the end: up to a second */

/* walls.c, seccomp.c, selftest.c: in the job but where it is said. */
MUST_CHECK int
walls_drop_caps(struct err *err); /* bounding, ambient, sets, securebits; no_new_privs;
				     dumpable stays for ptrace by nobody */
/* In the keeper, while the job installs its filter, or in advance (prepared_rules.h): a ruleset with
 * what all jobs of this grade and network have in common, ... */
MUST_CHECK int walls_landlock_system(enum sbx_grade grade, enum sbx_net net,
				     struct landlock_set *ret, struct err *err);
/* ... what the spec adds but for the workspace, which a warm one does not know yet, ... */
MUST_CHECK int walls_landlock_spec(const struct sbx_spec *spec, struct landlock_set *set,
				   struct err *err);
/* ... and the workspace (floor: spec->workspace_fd). The job enforces it. */
MUST_CHECK int walls_landlock_workspace(const struct sbx_spec *spec,
					struct landlock_set *set, struct err *err);
/* Compiles the filter for this grade and network into static memory; a fork inherits it.
 * Optional: seccomp_install does it when nobody has. */
MUST_CHECK int seccomp_prepare(const struct sbx_spec *spec, struct err *err);
/* *ret_listener (O_CLOEXEC): what the keeper needs to answer the supervised calls
 * (notify.h). ERRID_SANDBOX_LISTENER when somebody outside listens already. */
MUST_CHECK int seccomp_install(const struct sbx_spec *spec, int *ret_listener,
			       struct err *err);
MUST_CHECK int selftest_run(const struct sbx_spec *spec, int own_socket, struct err *err);
/* fds.c: stdio becomes 0, 1, 2; keep[i] becomes 3 + i (O_CLOEXEC) and is updated; -1 in
 * keep stays -1 and its number stays closed. Nothing else survives. A stdio that is a
 * directory, or a socket other than a connected AF_UNIX stream or seqpacket, is refused.
 */
#define FDS_KEEP_MAX 8
MUST_CHECK int fds_arrange(const int stdio[3], int *keep, size_t n_keep, struct err *err);
/* No stdio is a file, nor a socket whose peer could send one. */
bool fds_bring_no_files(const int stdio[3]);
/* A warm job's own stdio, in place of what it waited with; the same judgement. */
MUST_CHECK int fds_replace_stdio(const int stdio[3], struct err *err);

/* serve.c: the spawner. */
struct serve_options {
	int fd;			    /* the SEQPACKET socket */
	const char *jobs_dir;	    /* the only writable tree that it keeps */
	const char *cgroup, *tools; /* NULL: none */
	enum sbx_grade grade;
	unsigned pool; /* how many warm sandboxes it may hold ready */
};
int serve_main(const struct serve_options *o);

#endif
