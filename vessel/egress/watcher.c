/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress watcher.
 * See watcher.h.
 *
 * A file is looked at every second by what stat() says of it, and read when that has changed and
 * then stayed the same for one look: who writes it may be in the middle. The watcher is not
 * below its parent's walls, so it ends by the end of the socket between them.
 */
#include "vessel/egress/watcher.h"

#include "common/cleanup.h"
#include "common/confine/confine.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/net/children.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "vessel/egress/wire.h"
#include "vessel/egress/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_MSEC 1000
#define WORD_MAX 16384

/* ---- looking ---- */

static const char *path_of(const struct watcher *w, enum egress_source which)
{
	return which == SOURCE_ROOTS ? sources_authorities(w->authorities)
				     : w->file[which].path;
}

struct seen seen_now(int dir, const char *path)
{
	struct seen s = {0};
	struct stat st;

	if (!path || fstatat(dir, path, &st, 0) < 0) {
		s.error = path ? errno : ENOENT;
		return s;
	}
	s.dev = st.st_dev;
	s.ino = st.st_ino;
	s.size = st.st_size;
	s.changed = st.st_ctim;
	return s;
}

bool seen_are_same(const struct seen *a, const struct seen *b)
{
	return a->error == b->error && a->dev == b->dev && a->ino == b->ino &&
	       a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

static void take(struct watcher *w, enum egress_source which)
{
	static const char *const effect[SOURCES_] = {
		"no name is resolved until it is right",
		"no name is resolved until it is right",
		"no server's certificate is believed until it is right",
	};
	const char *path = path_of(w, which);
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;
	size_t len = 0;

	if (sources_load(which, path, &text, &len, &err) < 0) {
		if (!sources_is(w->sources, which, NULL, 0))
			log_kv(LOG_ERROR_,
			       "security: a changed file is refused, and the old one is "
			       "in "
			       "force no longer",
			       "why", err.msg, "so", effect[which], NULL);
		sources_put(w->sources, which, NULL, 0);
		return;
	}
	if (sources_is(w->sources, which, text, len))
		return;
	sources_put(w->sources, which, text, len);
	log_kv(LOG_INFO_, "a file was read again", "path", path ? path : "-", NULL);
}

void watcher_init(struct watcher *w, struct sources *s, const char *resolv_conf,
		  const char *hosts, const char *authorities)
{
	*w = (struct watcher){.sources = s, .authorities = authorities};
	w->file[SOURCE_RESOLV].path = resolv_conf ? resolv_conf : "/etc/resolv.conf";
	w->file[SOURCE_HOSTS].path = hosts ? hosts : "/etc/hosts";
	/* they may have changed since they were read */
	for (unsigned i = 0; i < SOURCES_; i++)
		w->file[i].taken.error = -1;
}

void watcher_look(struct watcher *w)
{
	for (unsigned i = 0; i < SOURCES_; i++) {
		struct watched *f = &w->file[i];
		struct seen now = seen_now(AT_FDCWD, path_of(w, (enum egress_source)i));
		bool is_settled = seen_are_same(&now, &f->last);

		f->last = now;
		if (!is_settled || seen_are_same(&now, &f->taken))
			continue;
		f->taken = now;
		take(w, (enum egress_source)i);
	}
}

/* ---- the process ---- */

/* Where links from /etc lead, in the distributions that we know: also those of another manager of
 * networks, that may come later. */
static const char *const dirs[] = {
	"/etc",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
	"/var/lib/ca-certificates",
};

/* What the watcher may read, and where each file really is. */
struct reach {
	struct confine_path paths[ARRAY_SIZE(dirs) + SOURCES_];
	size_t n;
	char real[SOURCES_][PATH_MAX]; /* "": it is not there */
};

static bool is_reached(const struct reach *r, const char *real)
{
	for (size_t i = 0; i < r->n; i++) {
		size_t len = strlen(r->paths[i].path);

		if (strncmp(real, r->paths[i].path, len) == 0 &&
		    (real[len] == '/' || real[len] == '\0'))
			return true;
	}
	return false;
}

/* Elsewhere it is that file and no other: what takes its place is not seen. */
static void find_reach(struct watcher *w, struct reach *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (access(dirs[i], R_OK | X_OK) == 0)
			r->paths[r->n++] =
				(struct confine_path){dirs[i], LL_FS_READ_FILE};
	for (unsigned i = 0; i < SOURCES_; i++) {
		const char *path = path_of(w, (enum egress_source)i);

		if (!path || !realpath(path, r->real[i]))
			r->real[i][0] = '\0';
		else if (!is_reached(r, r->real[i]))
			r->paths[r->n++] =
				(struct confine_path){r->real[i], LL_FS_READ_FILE};
	}
}

/* In the root that it has now a link may lead nowhere; the file is there by its own name. */
static void follow(struct watcher *w, const struct reach *r)
{
	for (unsigned i = 0; i < SOURCES_; i++) {
		const char *path = path_of(w, (enum egress_source)i);

		if (!r->real[i][0] || (path && access(path, R_OK) == 0))
			continue;
		if (i == SOURCE_ROOTS)
			w->authorities = r->real[i];
		else
			w->file[i].path = r->real[i];
	}
}

static int confine(const struct egress_config *cfg, const struct reach *r,
		   struct confine_report *ret, struct err *err)
{
	const struct confine_policy policy = {
		.name = "egress watcher",
		.paths = r->paths,
		.n_paths = r->n,
		.private_root = !cfg->unrooted,
		.unrooted = cfg->unrooted,
		.api_socket = cfg->api_socket,
	};
	const char *const foreign[] = {cfg->secrets_dir, "/proc/self", NULL};

	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, ret, err);
}

/* The first and only word. */
static bool say(int fd, const struct confine_report *walls, const struct err *why)
{
	cleanup_buf struct buf b;

	buf_init(&b, WORD_MAX);
	if (why)
		egress_failed_add(&b, why);
	else
		egress_ready_add(&b, walls);
	return buf_ok(&b) && send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len;
}

static int watch(const struct egress_config *cfg, struct sources *s,
		 struct egress_pulse *pulse, int fd)
{
	static struct reach reach;
	struct pollfd end = {.fd = fd, .events = POLLIN};
	struct confine_report walls;
	struct watcher w;
	struct err err = ERR_INIT;

	watcher_init(&w, s, NULL, NULL, cfg->authorities);
	find_reach(&w, &reach);
	if (confine(cfg, &reach, &walls, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		(void)say(fd, NULL, &err);
		return err_exit_code(&err);
	}
	follow(&w, &reach);
	egress_worker_probe(cfg, "watcher");
	if (!say(fd, &walls, NULL))
		return EXIT_FAILURE;
	do {
		egress_pulse_beat(pulse);
		watcher_look(&w);
	} while (poll(&end, 1, LOOK_MSEC) == 0 || !end.revents);
	return 0;
}

NORETURN static void become_watcher(const struct egress_config *cfg, struct sources *s,
				    struct egress_pulse *pulse, int fd, pid_t parent)
{
	if (child_begin(parent) < 0)
		_exit(EXIT_FAILURE);
	children_keep(fd, -1);
	log_init("egress-watcher", LOG_INFO_);
	(void)prctl(PR_SET_NAME, "egress-watcher");
	_exit(watch(cfg, s, pulse, fd));
}

static int hear(int fd, struct confine_report *ret_walls, struct err *err)
{
	static char word[WORD_MAX];
	struct egress_frame f;
	struct err why = ERR_INIT;
	ssize_t n = recv(fd, word, sizeof(word), 0);
	size_t used;

	if (n > 0 && egress_frame_next(word, (size_t)n, &f, &used, err) == 1) {
		if (f.type == EGRESS_F_READY)
			return egress_ready_parse(f.data, f.len, ret_walls, err);
		if (f.type == EGRESS_F_FAILED &&
		    egress_failed_parse(f.data, f.len, &why, err) == 0) {
			*err = why;
			return -1;
		}
	}
	err_clear(err);
	return err_set_id(err, ERRID_START_CONFINE,
			  "the egress watcher ended before it was ready");
}

int watcher_start(const struct egress_config *cfg, struct sources *s,
		  struct egress_pulse *pulse, pid_t *ret_pid, int *ret_fd,
		  struct confine_report *ret_walls, struct err *err)
{
	pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "a socket to the egress watcher");
	*ret_pid = fork();
	if (*ret_pid == 0)
		become_watcher(cfg, s, pulse, pair[1], self);
	fd_close(&pair[1]);
	*ret_fd = pair[0];
	if (*ret_pid < 0)
		return err_sys(err, "fork the egress watcher");
	return hear(*ret_fd, ret_walls, err);
}
