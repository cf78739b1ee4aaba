/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The starter's watch: who is stopped or stuck is killed, and started again as if it had died.
 *
 * Scribe, vessel and tomb write a line to their readiness pipe at every few turns of their loops
 * (common/net/notify.h). The guard of the tomb holds no end of it, so a tomb that is gone is seen
 * although its guard is stopped. PostgreSQL does no such thing,
 * so its postmaster is asked what has a child of it answer: whether it speaks TLS.
 *
 * Who waits for a disk is stuck through no fault of its own, could not be killed before the disk
 * answers, and is excused (common/watch.h).
 */
#include "cli/local/supervise_priv.h"

#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PG_ASK_USEC (4 * USEC_PER_SEC)
#define CUT_OFF_LOOKS 3 /* the vessel needs a fraction of one */

/* As /proc/PID/stat has it; '?': it is gone. */
static char state_of(pid_t pid)
{
	cleanup_free char *text = proc_text(pid, "stat", NULL);
	const char *state;

	if (!text)
		return '?';
	state = strrchr(text, ')'); /* its name may hold anything */
	return state && str_starts(state, ") ") ? state[2] : '?';
}

/* It, or a child of it: the tomb is one of its guard. */
static bool is_in_state(const struct part *p, char state)
{
	cleanup_free char *children = proc_children(p->pid);

	if (state_of(p->pid) == state)
		return true;
	for (char *s = children; s && *s; s += strspn(s, " \n"))
		if (state_of((pid_t)strtol(s, &s, 10)) == state)
			return true;
	return false;
}

/* One that is starting has said nothing yet, and is given more time for that (supervise.c),
 * unless it is seen to be stopped. */
static bool is_excused(const struct part *p)
{
	return is_in_state(p, 'D') || (!p->spoke && !is_in_state(p, 'T'));
}

/* ---- PostgreSQL ------------------------------------------------------------ */

static int pg_ask(const char *dir)
{
	static const unsigned char do_you_speak_tls[] = {0,    0,    0,	   8,
							 0x04, 0xd2, 0x16, 0x2f};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 ||
	    str_fmt(sa.sun_path, sizeof(sa.sun_path), "%s/.s.PGSQL.5432", dir) < 0 ||
	    connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    send(fd, do_you_speak_tls, sizeof(do_you_speak_tls), MSG_NOSIGNAL) < 0)
		return -1;
	return TAKE_FD(fd);
}

void watch_pg_hear(struct super *u)
{
	char answer;

	if (read(u->pg_ask_fd, &answer, 1) == 1)
		watch_heard(&u->part[PART_PG].watch);
	fd_close(&u->pg_ask_fd);
}

static void watch_pg(struct super *u, usec_t now)
{
	if (!u->part[PART_PG].spoke || now < u->pg_ask_at)
		return;
	fd_close(&u->pg_ask_fd);
	u->pg_ask_fd = pg_ask(u->s->paths->pg_dir);
	u->pg_ask_at = now + PG_ASK_USEC;
}

/* ---- sockets that were removed ---------------------------------------------- */

/* The vessel makes its own anew, in the directory that it was given. When that one was
 * removed, the vessel cannot reach what stands in its place: the next one can. The scribe
 * makes none anew. Where all of the runtime directory is gone (a session that ended) a next
 * one would find neither database nor log, and this one still has them. */
static bool is_cut_off(const struct super *u, const struct part *part, const char *socket)
{
	const struct paths *p = u->s->paths;

	return part->state == PART_READY && access(socket, F_OK) < 0 && errno == ENOENT &&
	       access(p->work_dir, F_OK) == 0 && access(p->pg_dir, F_OK) == 0 &&
	       access(p->audit_dir, F_OK) == 0;
}

static void watch_socket(const struct super *u, struct part *p, const char *socket)
{
	p->cut_off_looks = is_cut_off(u, p, socket) ? p->cut_off_looks + 1 : 0;
	if (p->cut_off_looks != CUT_OFF_LOOKS)
		return;
	log_kv(LOG_WARN_, "a socket is gone; who listened on it is started again",
	       "socket", socket, NULL);
	watch_end(&p->watch);
	(void)kill(p->pid, SIGKILL);
}

static void watch_sockets(struct super *u)
{
	cleanup_free char *scribe = xasprintf("%s/scribe.sock", u->s->paths->audit_dir);

	watch_socket(u, &u->part[PART_VESSEL], u->s->paths->api_sock);
	watch_socket(u, &u->part[PART_SCRIBE], scribe);
}

/* ---- all of them ----------------------------------------------------------- */

int watch_turn(struct super *u)
{
	usec_t now = clock_awake_usec();

	watch_pg(u, now);
	if (now < u->look_at)
		return (int)((u->look_at - now) / USEC_PER_MSEC) + 1;
	u->look_at = now + WATCH_LOOK_USEC;
	for (int i = 0; i < PART_MAX; i++) {
		struct part *p = &u->part[i];

		if (!p->watch.looked || !watch_look(&p->watch, now, is_excused(p)))
			continue;
		log_kv(LOG_WARN_, "a part is stopped or stuck; it is killed", "part",
		       supervise_names[i], NULL);
		watch_end(&p->watch);
		(void)kill(p->pid, SIGKILL);
	}
	watch_sockets(u);
	return WATCH_LOOK_USEC / USEC_PER_MSEC;
}

static bool is_part(const struct super *u, pid_t pid)
{
	for (int i = 0; i < PART_MAX; i++)
		if (u->part[i].pid == pid)
			return true;
	return false;
}

void watch_kill_strays(const struct super *u)
{
	cleanup_free char *children = proc_children(getpid());

	for (char *s = children; s && *s; s += strspn(s, " \n")) {
		pid_t pid = (pid_t)strtol(s, &s, 10);

		if (pid > 1 && !is_part(u, pid))
			(void)kill(pid, SIGKILL);
	}
}
