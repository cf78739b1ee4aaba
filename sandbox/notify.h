/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that the keeper answers: the listener of the job's seccomp filter.
 *
 * Some calls cannot be judged from registers, and Landlock does not see them: in floor a
 * chmod of a file of ours that lies outside of every tree of the job; in both grades an
 * affinity that would leave the CPUs of the limit. The filter stops such a call, the
 * kernel tells the keeper, and the keeper copies the arguments out of the job's memory,
 * opens the object itself, judges what it opened and acts on that very descriptor, or
 * refuses. It never says "go on" to the kernel for such a call: what the job's memory or a
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
 * notify_cpu.c (affinity).
 */
#ifndef LYCH_SANDBOX_NOTIFY_H
#define LYCH_SANDBOX_NOTIFY_H

#include "sandbox/sandbox.h"
#include "sandbox/seccomp_table.h"

#include <sched.h>

struct seccomp_notif;

/* A tree (or single file) that the job may write: floor only. */
struct notify_tree {
	int fd;	    /* O_PATH */
	char *name; /* as the spec has it: the job may use this name for it */
};

struct notify {
	int listener; /* -1: not there yet, or nobody is left who could ask */
	bool taken;
	enum sbx_grade grade;
	int proc_fd;	/* borrowed: the /proc that shows the job's processes */
	cpu_set_t cpus; /* the job's; what it may choose from */
	struct notify_tree *tree;
	size_t n_trees;
};

/* In the job, after seccomp_install: gives the listener to the keeper and closes it. */
MUST_CHECK int notify_hand_over(int status_fd, int *listener, struct err *err);
bool notify_is_listener(int fd);

/* ---- in the keeper --------------------------------------------------------------- */

void notify_init(struct notify *n, enum sbx_grade grade);
/* The writable trees of the spec, opened now. Before the job can ask. */
MUST_CHECK int notify_bind(struct notify *n, const struct sbx_spec *spec,
			   struct err *err);
/*
 * One packet of the job's status socket. NOTIFY_LISTENER: it was the listener, which is
 * now ours; more comes. NOTIFY_READY: a warm job waits for its spec. 0: end of file. sizeof(*ret): a status. -1: anything else, errno is EINTR or
 * EAGAIN when there was nothing; else err says what is wrong.
 */
#define NOTIFY_LISTENER 1
#define NOTIFY_READY 2
MUST_CHECK ssize_t notify_recv_status(struct notify *n, int status_fd, pid_t main_pid,
				      int proc_fd, struct job_status *ret,
				      struct err *err);
/* The CPUs that the job has now are those that it may choose from. */
MUST_CHECK int notify_take_cpus(struct notify *n, pid_t main_pid, struct err *err);
/* The listener is readable (or hung up): answers a bounded number of calls. */
void notify_step(struct notify *n);
void notify_done(struct notify *n);

/* ---- between notify*.c ------------------------------------------------------------ */

/* What a handler returns: 0 or more is the call's value, negative an errno. */
/* Does the thread that asked still wait? Everything read about it before was its own. */
bool notify_still_waits(const struct notify *n, const struct seccomp_notif *req);

/* notify_mem.c. All return 0 or a negative errno as the kernel would have it. */
int notify_read(const struct seccomp_notif *req, uint64_t addr, void *out, size_t len);
/* A string with its NUL. -ENAMETOOLONG when it does not end within size bytes. */
int notify_read_string(const struct seccomp_notif *req, uint64_t addr, char *out,
		       size_t size);
/* O_PATH descriptor of the caller's descriptor or working directory (AT_FDCWD). */
int notify_open_fd(const struct notify *n, const struct seccomp_notif *req, int fd,
		   int *ret);
/* Was it opened with O_PATH in the job? Calls that act on a descriptor refuse those. */
int notify_check_not_path(const struct notify *n, const struct seccomp_notif *req,
			  int fd);
/* The thread group of a thread, 0 when there is none. */
pid_t notify_tgid(const struct notify *n, pid_t tid);

/* notify_path.c. *ret: an O_PATH descriptor inside a writable tree; -EPERM when what the
 * path leads to is not. */
#define NOTIFY_FOLLOW 1u
#define NOTIFY_EMPTY 2u /* "" is dirfd itself */
int notify_resolve(const struct notify *n, const struct seccomp_notif *req, int dirfd,
		   const char *path, unsigned how, int *ret);
/* The same judgement for a descriptor of ours. */
bool notify_is_inside(const struct notify *n, int fd);
/* Pure parts. Is path the top itself or below it? */
bool notify_path_is_below(const char *path, const char *top);
/* The part of an absolute path below top, "." for top itself, NULL when it does not lead
 * there: "//" and "/./" are skipped, ".." is taken by the text as long as top is not
 * reached. */
const char *notify_path_strip(const char *path, const char *top);

/* notify_meta.c: true when this number is one of its calls. */
bool notify_meta(const struct notify *n, const struct seccomp_notif *req, int *ret);
/* notify_cpu.c */
int notify_affinity(const struct notify *n, const struct seccomp_notif *req);

#endif
