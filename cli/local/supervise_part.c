/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * One part of the starter: its command line, its log, its start, and what it says until
 * it is ready. When that happens is supervise.c's.
 */
#include "cli/local/supervise_priv.h"

#include "cli/base/proc.h"
#include "cli/local/up_dial.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto/dial_proto.h"
#include "common/str.h"
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MIGRATE_TIMEOUT (300 * USEC_PER_SEC)
#define STATE_AGAIN USEC_PER_SEC

const char *const supervise_names[PART_MAX] = {"postgres", "scribe", "vessel", "tomb"};
static const char *const state_names[] = {"down", "starting", "ready"};

char *part_log_path(const struct super *u, enum part_id id)
{
	if (id == PART_PG)
		return xstrdup(u->s->pg.log);
	return xasprintf("%s/log/%s.log", u->s->paths->data, supervise_names[id]);
}

/* A child's own error code travels in its text: "LYCH-SANDBOX-004 ...". */
void part_set_code(struct err *err, enum err_id id)
{
	err->id = id;
	err->code = err_info(id)->code;
}

void part_adopt_code(struct err *err)
{
	const char *code = strstr(err->msg, "LYCH-");
	char text[32];
	enum err_id id;

	if (!code)
		return;
	(void)snprintf(text, sizeof(text), "%.*s",
		       (int)strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789"), code);
	id = err_id_from_text(text);
	if (id != ERRID_NONE)
		part_set_code(err, id);
}

/* One value of a line of common/log.h, without its quotes. */
static bool log_value(const char *line, const char *key, char *out, size_t size)
{
	cleanup_free char *mark = xasprintf(" %s=\"", key);
	const char *at = strstr(line, mark);
	size_t n = 0;

	if (!at)
		return false;
	for (at += strlen(mark); *at && *at != '"' && n + 1 < size; at++) {
		at += *at == '\\' && (at[1] == '"' || at[1] == '\\');
		out[n++] = *at;
	}
	out[n] = '\0';
	return true;
}

/* What its line says, for people; of a line that is not ours, the line. */
static void put_words(const char *line, char *out, size_t size)
{
	char code[32], words[320];

	if (log_value(line, "code", code, sizeof(code)) &&
	    log_value(line, "error", words, sizeof(words)))
		(void)snprintf(out, size, "%s: %s", code, words);
	else if (log_value(line, "msg", words, sizeof(words)))
		(void)snprintf(out, size, "%s", words);
	else
		(void)snprintf(out, size, "%.300s", line);
}

/* The last error that the part itself logged; NULL: none. Its workers lose it, and say so behind it. */
static char *own_error(char *text, const char *unit)
{
	cleanup_free char *mark = xasprintf(" unit=%s ", unit);
	char *found = NULL;
	size_t n;

	for (char *line = text; *line; line += n + (line[n] == '\n')) {
		n = strcspn(line, "\n");
		if (str_starts(line, "<3>") && memmem(line, n, mark, strlen(mark)) &&
		    memmem(line, n, " code=\"", strlen(" code=\"")))
			found = line;
	}
	if (found)
		found[strcspn(found, "\n")] = '\0';
	return found;
}

/* Why a part ended, for the error of a failed start, as it logged it. */
void part_log_tail(const struct super *u, enum part_id id, char *out, size_t size)
{
	cleanup_free char *path = part_log_path(u, id);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096], *own;
	struct stat st;
	off_t from;
	ssize_t n;

	out[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = u->part[id].log_from;
	if (st.st_size - from >= (off_t)sizeof(text))
		from = st.st_size - (off_t)sizeof(text) + 1;
	n = pread(fd, text, sizeof(text) - 1, from);
	if (n <= 0)
		return;
	text[n] = '\0';
	own = own_error(text, supervise_names[id]);
	put_words(own ? own : proc_why(text), out, size);
}

void part_write_state(struct super *u)
{
	cleanup_buf struct buf b = {0};
	cleanup_close int dirfd =
		open(u->s->paths->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct err err = ERR_INIT;
	struct jsonw w;

	buf_init(&b, 65536);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_ki64(&w, "pid", getpid());
	jsonw_kstr(&w, "data", u->s->paths->data);
	jsonw_kstr(&w, "runtime", u->s->paths->runtime);
	jsonw_ku64(&w, "postgres_major", u->s->pg.major);
	jsonw_kstr(&w, "grade", sbx_grade_name(u->s->conf->grade));
	jsonw_kbool(&w, "private_root", !u->s->conf->unrooted);
	jsonw_kstr(&w, "cgroup", u->no_cgroup ? "none" : "delegated scope");
	jsonw_kstr(&w, "cgroup_reason", u->no_cgroup ? u->no_cgroup : "");
	jsonw_kstr(&w, "state",
		   u->stopping	   ? "stopping"
		   : u->first	   ? "starting"
		   : u->restarting ? "restarting"
				   : "up");
	jsonw_ku64(&w, "generation", u->generation);
	jsonw_key(&w, "parts");
	jsonw_arr(&w);
	for (int i = 0; i < PART_MAX; i++) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "name", supervise_names[i]);
		jsonw_kstr(&w, "state", state_names[u->part[i].state]);
		jsonw_ki64(&w, "pid", u->part[i].pid > 0 ? u->part[i].pid : 0);
		jsonw_ku64(&w, "restarts", u->part[i].restarts);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	/* On a full disk the old one stays and would name processes that are gone. */
	bool failed = dirfd < 0 || fs_write_atomic(dirfd, STARTER_STATE, b.data, b.len,
						   0600, &err) < 0;

	if (failed && !u->state_again)
		log_err(LOG_WARN_, "the starter's state file could not be written", &err);
	u->state_again = failed ? clock_boot_usec() + STATE_AGAIN : 0;
}

/* ---- starting ------------------------------------------------------------- */

static char **scribe_argv(const struct supervise *s)
{
	char **a = xcalloc(10 + 2 * ANCHORS_MAX, sizeof(*a));
	size_t n = 0;

	a[n++] = xstrdup(s->scribe);
	a[n++] = xstrdup("--dir");
	a[n++] = xasprintf("%s/audit", s->paths->data);
	a[n++] = xstrdup("--socket-dir");
	a[n++] = xstrdup(s->paths->audit_dir);
	a[n++] = xstrdup("--ready-fd");
	a[n++] = xasprintf("%d", PROC_READY_FD);
	if (s->conf->unrooted)
		a[n++] = xstrdup("--no-private-root");
	for (size_t i = 0; i < s->conf->n_anchors; i++) {
		const struct conf_anchor *anchor = &s->conf->anchor[i];

		a[n++] = xstrdup(anchor->is_required ? "--anchor-required" : "--anchor");
		a[n++] = xstrdup(anchor->path);
	}
	return a;
}

static char **vessel_argv(const struct supervise *s)
{
	const struct paths *p = s->paths;
	char **a = xcalloc(26, sizeof(*a));
	size_t n = 0;

	a[n++] = xstrdup(s->vessel);
	a[n++] = xstrdup("serve");
	a[n++] = xstrdup("--data");
	a[n++] = xasprintf("%s/vessel", p->data);
	a[n++] = xstrdup("--api-dir");
	a[n++] = xstrdup(p->api_dir);
	a[n++] = xstrdup("--work-dir");
	a[n++] = xstrdup(p->work_dir);
	a[n++] = xstrdup("--pg-dir");
	a[n++] = xstrdup(p->pg_dir);
	a[n++] = xstrdup("--audit-dir");
	a[n++] = xstrdup(p->audit_dir);
	a[n++] = xstrdup("--secrets");
	a[n++] = xasprintf("%s/secrets", p->data);
	if (access(p->config, F_OK) == 0) {
		a[n++] = xstrdup("--config");
		a[n++] = xstrdup(p->config);
	}
	if (s->conf->queue == DOOR_VESSEL) {
		a[n++] = xstrdup("--tomb");
		a[n++] = xstrdup(TOMB_NAME);
	}
	a[n++] = xstrdup("--ready-fd");
	a[n++] = xasprintf("%d", PROC_READY_FD);
	if (s->conf->unrooted) {
		a[n++] = xstrdup("--no-private-root");
		a[n++] = xstrdup("--dial-fd");
		a[n++] = xasprintf("%d", PROC_DIAL_FD);
	}
	return a;
}

static char **tomb_argv(const struct super *u)
{
	const struct supervise *s = u->s;
	char **a = xcalloc(44, sizeof(*a));
	size_t n = 0;

	if (!u->no_scope) {
		a[n++] = xstrdup("/usr/bin/systemd-run");
		a[n++] = xstrdup("--user");
		a[n++] = xstrdup("--scope");
		a[n++] = xstrdup("--quiet");
		a[n++] = xstrdup("--collect");
		a[n++] = xasprintf("--unit=lychgate-tomb-%d-%u", getpid(),
				   u->part[PART_TOMB].scope_serial);
		a[n++] = xstrdup("--property=Delegate=yes");
		a[n++] = xstrdup("--");
	}
	a[n++] = xstrdup(s->self);
	a[n++] = xstrdup("_tomb");
	a[n++] = xstrdup("--data");
	a[n++] = xasprintf("%s/tomb", s->paths->data);
	a[n++] = xstrdup("--work");
	a[n++] = xstrdup(s->paths->work_dir);
	a[n++] = xstrdup("--queue");
	a[n++] = xstrdup(queue_door_name(s->conf->queue));
	if (s->conf->queue == DOOR_POSTGRES) {
		a[n++] = xstrdup("--pg");
		a[n++] = xstrdup(s->paths->pg_dir);
	}
	a[n++] = xstrdup("--secrets");
	a[n++] = xasprintf("%s/secrets", s->paths->data);
	a[n++] = xstrdup("--tomb");
	a[n++] = xstrdup(s->tomb);
	a[n++] = xstrdup("--sandbox");
	a[n++] = xstrdup(s->sandbox);
	a[n++] = xstrdup("--tools");
	a[n++] = xstrdup(s->tools);
	a[n++] = xstrdup("--slots");
	a[n++] = xasprintf("%u", s->conf->slots);
	a[n++] = xstrdup("--grade");
	a[n++] = xstrdup(sbx_grade_name(s->conf->grade));
	if (s->conf->jobs_dir) {
		a[n++] = xstrdup("--jobs-dir");
		a[n++] = xstrdup(s->conf->jobs_dir);
	}
	if (s->conf->jobs_tmpfs_bytes) {
		a[n++] = xstrdup("--jobs-tmpfs");
		a[n++] = xasprintf("%" PRIu64, s->conf->jobs_tmpfs_bytes);
	}
	a[n++] = xstrdup("--record");
	a[n++] = xasprintf("%s/tomb.process", s->paths->data);
	a[n++] = xstrdup("--ready");
	if (s->conf->unrooted)
		a[n++] = xstrdup("--no-private-root");
	if (!u->no_scope)
		a[n++] = xstrdup("--scope");
	return a;
}

void part_set_no_cgroup(struct super *u, const char *reason)
{
	free(u->no_cgroup);
	u->no_cgroup = reason ? xstrdup(reason) : NULL;
}

/* The names that a part may ask for; 0: it is not connected to anything. */
static unsigned dials_of(const struct super *u, enum part_id id)
{
	if (!u->s->conf->unrooted)
		return 0;
	switch (id) {
	case PART_VESSEL:
		return DIAL_BIT(DIAL_DATABASE) | DIAL_BIT(DIAL_SCRIBE);
	case PART_TOMB:
		return DIAL_BIT(DIAL_WORK) |
		       (u->s->conf->queue == DOOR_POSTGRES ? DIAL_BIT(DIAL_DATABASE) : 0);
	case PART_PG:
	case PART_SCRIBE:
	case PART_MAX:
	default:
		return 0;
	}
}

void part_dial(struct super *u, enum part_id id)
{
	struct part *p = &u->part[id];

	if (up_dial_answer(p->dial_fd, dials_of(u, id), u->s->paths) == 0)
		return;
	fd_close(&p->dial_fd);
	if (u->stopping || u->halting || p->pid <= 0)
		return;
	/* Without a dialer it would reach nobody any more who is started again. */
	log_kv(LOG_WARN_, "the dialer of a part has ended; the part is started again",
	       "part", supervise_names[id], NULL);
	watch_end(&p->watch);
	(void)kill(p->pid, SIGKILL);
}

int part_start(struct super *u, enum part_id id, struct err *err)
{
	struct part *p = &u->part[id];
	cleanup_env char **argv = NULL;
	cleanup_close int log = -1;
	int ready[2] = {-1, -1}, dials[2] = {-1, -1};
	struct proc_spec spec = {
		.env = (const char *const *)u->env, .in = -1, .ready_fd = -1};

	if (id == PART_PG && pg_configure(u->s->paths, &u->s->pg, err) < 0)
		return -1;
	if (id == PART_TOMB)
		part_set_no_cgroup(u, u->no_scope); /* its guard may add a reason */
	p->scope_serial++;
	argv = id == PART_PG	   ? pg_server_argv(u->s->paths, &u->s->pg)
	       : id == PART_SCRIBE ? scribe_argv(u->s)
	       : id == PART_VESSEL ? vessel_argv(u->s)
				   : tomb_argv(u);
	log = part_log_open(u, id, &p->log_from, err);
	if (log < 0)
		return -1;
	if (id != PART_PG && pipe2(ready, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	if (dials_of(u, id) &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, dials) < 0) {
		fd_close(&ready[0]);
		fd_close(&ready[1]);
		return err_sys(err, "socketpair");
	}
	spec.argv = (const char *const *)argv;
	spec.out = log;
	spec.err = log;
	spec.ready_fd = ready[1];
	spec.dial_fd = dials[1];
	/* As in a crash, which all of them are made for: nobody is left who would end
	 * one that waits for another or is stopped. PostgreSQL ends its own at once and
	 * recovers at the next start. */
	if (id == PART_PG)
		spec.data_max_bytes = PG_DATA_MAX_BYTES;
	spec.death_signal = id == PART_PG ? SIGQUIT : SIGKILL;
	int r = proc_start(&spec, &p->pid, err);

	fd_close(&ready[1]);
	fd_close(&dials[1]);
	if (r < 0) {
		fd_close(&ready[0]);
		fd_close(&dials[0]);
		p->pid = 0;
		return -1;
	}
	p->ready_fd = ready[0];
	p->dial_fd = dials[0];
	p->n_heard = 0;
	p->spoke = false;
	watch_begin(&p->watch, clock_awake_usec(), WATCH_SILENCE_USEC);
	p->state = PART_STARTING;
	p->started = clock_boot_usec();
	return 0;
}

int part_migrate(struct super *u, struct err *err)
{
	if (up_migrate(u->s->vessel, u->s->paths, NULL, (const char *const *)u->env,
		       MIGRATE_TIMEOUT, err) < 0) {
		part_adopt_code(err);
		return -1;
	}
	u->migrated = true;
	return 0;
}

void part_ready(struct super *u, enum part_id id)
{
	struct part *p = &u->part[id];

	p->state = PART_READY;
	p->spoke |= id == PART_PG;
	log_kv(LOG_INFO_, "ready", "part", supervise_names[id], NULL);
	part_write_state(u);
}

static void hear_line(struct super *u, enum part_id id, const char *line)
{
	struct part *p = &u->part[id];

	if (str_eq(line, WATCH_BEAT_LINE)) {
		p->spoke = true;
		watch_heard(&p->watch);
	} else if (id == PART_TOMB && str_starts(line, UP_NO_CGROUP)) {
		part_set_no_cgroup(u, line + strlen(UP_NO_CGROUP));
	} else if (str_eq(line, "READY=1") && p->state == PART_STARTING) {
		part_ready(u, id);
	}
}

void part_hear(struct super *u, enum part_id id)
{
	struct part *p = &u->part[id];
	ssize_t n = read(p->ready_fd, p->heard + p->n_heard,
			 sizeof(p->heard) - 1 - p->n_heard);
	char *line = p->heard, *end;

	if (n <= 0) {
		fd_close(&p->ready_fd);
		watch_hung_up(&p->watch);
		return;
	}
	p->n_heard += (size_t)n;
	p->heard[p->n_heard] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		hear_line(u, id, line);
	}
	/* The rest of an unfinished line; one that is too long says nothing to us. */
	p->n_heard = strlen(line);
	memmove(p->heard, line, p->n_heard);
	if (p->n_heard == sizeof(p->heard) - 1)
		p->n_heard = 0;
}
