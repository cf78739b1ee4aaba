/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * The calls that the keeper answers: the listener of the job's seccomp filter.
 *
 * Some calls cannot be judged from registers, and Landlock does not see them: in floor a
 * chmod of a file of ours that lies outside of every tree of the job; in full a question
 * about interfaces, on a socket of another network, and an attribute of what lies in memory;
 * in both grades an affinity that would leave the CPUs of the limit. The filter stops such a call, the
 * kernel tells the keeper, and the keeper copies the arguments out of the job's memory,
 * opens the object itself (or takes the job's own descriptor), judges what it has and acts
 * on that very descriptor, or refuses. It never says "go on" to the kernel for such a call: what the job's memory or a
 * path says may have changed by then.
 *
 * Who can do what. The job can ask as often as it likes, with any bytes, can change its
 * memory, its descriptors and its directories while it is being answered, and can die in
 * between: every number and path is copied once and bounded, each copy counts only when
 * the kernel says afterwards that the asking thread still waits (NOTIF_ID_VALID), and a
 * turn of the keeper's loop answers a bounded number. Without a keeper the kernel answers
 * ENOSYS: the end of the supervisor is a refusal.
 *
 * Files: notify.c (the listener), notify_mem.c (the job's memory and descriptors),
 * notify_path.c (from a path to a judged descriptor), notify_meta.c (metadata),
 * notify_cpu.c (affinity, priority), notify_ioctl.c (interfaces, terminals), notify_deny.c (what was refused;
 * denials.c keeps it), notify_explain.c (--explain:
 * what will be; there the kernel goes on, since it is the kernel that decides).
 *
 * Denials. Every call that the table answers with EPERM comes here too, and only to be
 * told: the answer is always EPERM, whatever happens to the telling. The records are the
 * keeper's own; of the job's words they hold only the object that it named, bounded. At
 * most SPAWN_DENIED_MAX kinds are kept, then counted.
 */
#ifndef LYCH_SANDBOX_KEEPER_NOTIFY_H
#define LYCH_SANDBOX_KEEPER_NOTIFY_H

#include "sandbox/contract/sandbox.h"
#include "sandbox/keeper/denials.h"
#include "sandbox/keeper/room.h"
#include "sandbox/walls/seccomp_table.h"

#include <sched.h>

struct seccomp_notif;
struct tree;

struct explain;

/* A tree (or single file) that the job may write. */
struct notify_tree {
	int fd; /* O_PATH; while it is open its mount keeps its number */
	uint64_t mount;
	char *name; /* as the spec has it: the job may use this name for it */
};

struct notify {
	int listener; /* -1: not there yet */
	bool taken;
	bool over; /* it has hung up: nobody is left who could ask */
	enum sbx_grade grade;
	bool own_opens; /* no stdio of the job is a file, or could bring one (floor) */
	bool own_terminals; /* no stdio is a terminal, or could bring one (full) */
	pid_t guard, meter; /* of this job: nobody that it may touch */
	int proc_fd;	    /* borrowed: the /proc that shows the job's processes */
	int own_fds;	    /* our own /proc/self/fd; -1: not needed so far */
	cpu_set_t cpus;	    /* the job's; what it may choose from */
	struct notify_tree *tree;
	size_t n_trees;
	enum sc_where where;
	uint32_t asker; /* whose pidfd is kept */
	int asker_fd;
	/* What the disk limit still covers, and what is taken of that now (keep.h). */
	struct room (*disk_room)(void *arg);
	void (*disk_given)(void *arg, uint64_t asked, uint64_t grew);
	void *disk_arg;
	uint64_t file_max;		   /* how large one file may be */
	unsigned rules_made, domains_made; /* of Landlock, by the job */
	unsigned groups_joined;		   /* by its sockets */
	_Atomic uint32_t *filters_made;	   /* borrowed: of seccomp */
	struct shared_maps *shared_maps;   /* borrowed: that the job asked for */
	bool started;  /* the job's command was executed: what is refused now is told */
	int status_fd; /* borrowed, for one step */
	struct denials *log; /* borrowed: what was refused */
	/* --explain; NULL without */
	struct explain *explain;
	bool tell_absent;
};

/* In the job, after seccomp_install: gives the listener to the keeper and closes it. */
MUST_CHECK int notify_hand_over(int status_fd, int *listener, struct err *err);

/* ---- in the keeper --------------------------------------------------------------- */

void notify_init(struct notify *n, enum sbx_grade grade);
/* The writable trees of the spec, opened now; work_fd: the workspace. Before the job can ask. */
MUST_CHECK int notify_bind(struct notify *n, const struct sbx_spec *spec, int work_fd,
			   struct err *err);
/*
 * One packet of the job's status socket. NOTIFY_LISTENER: it was the listener, which is
 * now ours; more comes. NOTIFY_READY: a warm job waits for its spec. 0: end of file. sizeof(*ret): a status. -1: anything else, errno is EINTR or
 * EAGAIN when there was nothing; else err says what is wrong.
 */
#define NOTIFY_LISTENER 1
#define NOTIFY_READY 2
MUST_CHECK ssize_t notify_recv_status(struct notify *n, int status_fd, pid_t main_pid,
				      const struct tree *procs, struct job_status *ret,
				      struct err *err);
/* The listener, as long as somebody could ask; else -1. */
int notify_poll_fd(const struct notify *n);
/* The listener has something (revents of poll): answers a bounded number of calls, or sees
 * that nobody is left. status_fd: -1 once the command was executed. */
void notify_step(struct notify *n, short revents, int status_fd);
/* The same from within longer work, if there is a call at all. */
void notify_meanwhile(struct notify *n, int status_fd);
/* Who asks and who answers take turns on one CPU, which is fastest, unless the keeper has
 * something to go on with: then they stay apart. */
void notify_stay_apart(const struct notify *n, bool apart);
/* In a copy: somebody else answers. */
void notify_leave(struct notify *n);

/* ---- between notify*.c ------------------------------------------------------------ */

/* What a handler returns: 0 or more is the call's value, negative an errno. */
/* Does the thread that asked still wait? Everything read about it before was its own. */
bool notify_still_waits(const struct notify *n, const struct seccomp_notif *req);

/* notify_mem.c. All return 0 or a negative errno as the kernel would have it. */
int notify_read(const struct seccomp_notif *req, uint64_t addr, void *out, size_t len);
/* Into the memory of who still waits. */
int notify_write(const struct notify *n, const struct seccomp_notif *req, uint64_t addr,
		 const void *data, size_t len);
/* A string with its NUL. -ENAMETOOLONG when it does not end within size bytes. */
int notify_read_string(const struct seccomp_notif *req, uint64_t addr, char *out,
		       size_t size);
/* O_PATH descriptor of the caller's descriptor or working directory (AT_FDCWD). */
int notify_open_fd(const struct notify *n, const struct seccomp_notif *req, int fd,
		   int *ret);
/* The caller's descriptor itself, with its open file: not to be kept. Any error but
 * EBADF: it could not be taken, where notify_open_fd may be able to open it. */
int notify_take_fd(struct notify *n, const struct seccomp_notif *req, int fd, int *ret);
/* What a call on a descriptor acts on: the caller's open file (*ret_opened; it may be one
 * of O_PATH), or an O_PATH descriptor of the same, which its own is not: EBADF. */
int notify_open_object(struct notify *n, const struct seccomp_notif *req, int fd,
		       int *ret, bool *ret_opened);
/* The thread group of a thread, 0 when there is none. */
pid_t notify_tgid(const struct notify *n, pid_t tid);

/* notify_path.c. *ret: an O_PATH descriptor inside a writable tree; NOTIFY_OUTSIDE (for
 * the job EPERM) when what the path leads to is not. */
#define NOTIFY_OUTSIDE (-5000)
#define NOTIFY_FOLLOW 1u
#define NOTIFY_EMPTY 2u /* "" is dirfd itself */
int notify_resolve(struct notify *n, const struct seccomp_notif *req, int dirfd,
		   const char *path, unsigned how, int *ret);
/* The same judgement for a descriptor of ours. */
bool notify_is_inside(struct notify *n, int fd);
/* The number of the mount that a descriptor is on, or a negative errno. */
int notify_mount_of(int fd, uint64_t *ret);
/* Pure. The part of an absolute path below top, "." for top itself, NULL when it does not lead
 * there: "//" and "/./" are skipped, ".." is taken by the text as long as top is not
 * reached. */
const char *notify_path_strip(const char *path, const char *top);

/* notify_meta.c: true when this number is one of its calls. *ret may be NOTIFY_OUTSIDE or
 * NOTIFY_SET_ID, which are EPERM for the job. */
#define NOTIFY_SET_ID (-5001)
bool notify_meta(struct notify *n, const struct seccomp_notif *req, int *ret);
/* Of one of its calls: the path that it names ("": none) and the descriptor to start from. */
int notify_meta_named(const struct seccomp_notif *req, char *path, size_t size);
/* Newer than Debian 12's headers; the same on every architecture. */
#define NR_LANDLOCK_ADD_RULE 445
#define NR_LANDLOCK_RESTRICT_SELF 446
/* notify_limits.c. NOTIFY_GO_ON: the kernel may go on with it. */
#define NOTIFY_GO_ON (-5002)
int notify_fallocate(struct notify *n, const struct seccomp_notif *req);
int notify_landlock(struct notify *n, const struct seccomp_notif *req);
int notify_filter(struct notify *n);
int notify_map(struct notify *n, const struct seccomp_notif *req);
int notify_join(struct notify *n, const struct seccomp_notif *req);
/* notify_cpu.c */
int notify_affinity(const struct notify *n, const struct seccomp_notif *req);
int notify_priority(struct notify *n, const struct seccomp_notif *req);
/* notify_ioctl.c. Before the job can ask, and as long as the terminal of whoever started us is ours too. */
void notify_note_terminals(struct notify *n, const int stdio[3]);
int notify_take_terminal(struct notify *n, const struct seccomp_notif *req);
/* notify_ioctl.c: an ioctl about network interfaces. NOTIFY_OUTSIDE: none that only asks. */
int notify_interfaces(struct notify *n, const struct seccomp_notif *req);

/* notify_deny.c. Was it asked by the command, or still by our own stages? Asking first
 * saves working out what the self-test meant. */
bool notify_is_the_jobs(const struct notify *n, const struct seccomp_notif *req);
/* The same record again is counted. grant may be "". Nothing is noted
 * before the command was executed (our own self-test walks into walls). */
void notify_record(struct notify *n, const struct seccomp_notif *req, unsigned wall,
		   unsigned act, int sys, const char *object, const char *grant);
/* A call that the table refuses. */
void notify_record_call(struct notify *n, const struct seccomp_notif *req);
/* A socket address, "192.0.2.1:443". */
void notify_address(const struct seccomp_notif *req, uint64_t addr, uint64_t len,
		    char *out, size_t size);

/* notify_explain.c: what will refuse a call that the kernel is about to decide. */
void notify_explain_start(struct notify *n, const struct sbx_spec *spec);
void notify_explain(struct notify *n, const struct seccomp_notif *req);
/* Metadata that was refused, unless the kernel would have refused it anyway. */
void notify_record_metadata(struct notify *n, const struct seccomp_notif *req,
			    unsigned wall);
/* What could not be looked at before; last: what still can't is forgotten. */
void notify_explain_again(struct notify *n, bool last);

#endif
