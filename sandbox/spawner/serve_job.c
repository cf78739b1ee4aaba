/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * The spawner's jobs: a RUN is judged and becomes a keeper, what a keeper says is passed on.
 */
#include "sandbox/spawner/serve.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void put_refused(struct server *s, uint64_t handle, const char *stage,
			const struct err *err)
{
	struct spawn_refused m;

	report_refused(stage, err, &m);
	m.handle = handle;
	serve_put(s, &m, sizeof(m), -1);
}

struct served *serve_find(struct server *s, uint64_t handle)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->job[i].handle == handle)
			return &s->job[i];
	return NULL;
}

/* The guard has proved that its job's tree is gone, and that was passed on: the tomb does
 * not wait for the keeper's own end. */
static void let_end(struct server *s, struct served *j)
{
	fd_close(&j->terminal);
	cpus_give(&j->keeper.limits.cpus);
	endings_add(&s->endings, &j->keeper);
	pool_after_end(&s->pool);
	*j = s->job[--s->n];
}

/* Keeper and guard ended without a report: killed from outside, and no fault of the job's, not
 * even before it had begun. That it is gone with them is still to be proved. */
static void lose_keeper(struct server *s, struct served *j)
{
	fd_close(&j->terminal);
	endings_add_lost(&s->endings, &j->keeper, j->handle);
	*j = s->job[--s->n];
}

void serve_end_within(struct served *j, usec_t usec)
{
	usec_t by = clock_awake_usec() + usec + OVERDUE_USEC;

	if (!j->end_by || by < j->end_by)
		j->end_by = by;
}

usec_t serve_overdue(struct server *s)
{
	usec_t now = clock_awake_usec(), next = USEC_INFINITY;

	for (unsigned i = s->n; i-- > 0;) {
		struct served *j = &s->job[i];

		if (j->end_by <= now)
			lose_keeper(s, j);
		else if (j->end_by - now < next)
			next = j->end_by - now;
	}
	return next;
}

void serve_on_ending(struct server *s, unsigned i)
{
	struct spawn_exited m = {.type = SPAWN_EXITED,
				 .how = SPAWN_END_LOST,
				 .code = SIGKILL,
				 .tree_gone = 1,
				 .detail = "the keeper was killed"};
	bool owed;

	if (!endings_step(&s->endings, i, &owed, &m.handle))
		return;
	if (owed)
		serve_put(s, &m, sizeof(m), -1);
}

/* What the spawner itself demands of a spec, beyond its grammar. */
static int judge_spec(struct server *s, struct sbx_spec *spec, struct err *err)
{
	struct stat st;

	if (spec->grade != s->place.grade)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "this spawner serves grade %s only",
				  sbx_grade_name(s->place.grade));
	if (spec->cgroup)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--cgroup is the spawner's own option");
	if (spec->broker && spec->grade == GRADE_FULL && spec->net == NET_NONE)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "the broker needs the loopback network");
	if (spec->tty && spec->grade == GRADE_FLOOR)
		return err_set_id(err, ERRID_TTY_GRADE,
				  "grade floor has no terminals of its own");
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].kind == MOUNT_RW)
			return err_set_id(
				err, ERRID_SPEC_PATH,
				"the workspace is the only writable tree of a job");
	spec->tools = s->place.tools;
	if (s->cgroup) {
		spec->cgroup = xstrdup(s->cgroup);
		spec->cgroup_fd = fcntl(s->place.cgroup_fd, F_DUPFD_CLOEXEC, 3);
		if (spec->cgroup_fd < 0)
			return err_sys_id(err, ERRID_SANDBOX_CGROUP, "dup");
	}
	if (!spec->workspace)
		return 0;
	if (path_check_relative(spec->workspace, strlen(spec->workspace), err) < 0)
		return err_wrap(err, "--workspace");
	spec->workspace_fd = fs_open_beneath(s->place.jobs_fd, spec->workspace,
					     O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, err);
	if (spec->workspace_fd < 0 || fstat(spec->workspace_fd, &st) < 0) {
		err->id = ERRID_SANDBOX_WORKSPACE;
		return err_wrap(err, "workspace");
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid())
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "%s is not a directory of ours", spec->workspace);
	return sbx_spec_base_workspace(spec, s->jobs_dir, err);
}

/* What is to become a job. */
struct order {
	const struct sbx_spec *spec;
	const struct payload *sent;	     /* what spec was parsed from */
	const int *stdio;		     /* HANDOVER_WORK of them */
	const struct sbx_terminal *terminal; /* instead of them; NULL: none */
};

/* From the template where it fits, else from the jobs namespace. */
static int start_cold_full(struct server *s, struct sbx_birth *birth, struct keeper *ret,
			   struct err *err)
{
	const struct sbx_spec *spec = birth->spec;
	cleanup_close int work = -1;
	int r;

	birth->templated = spawner_template_fits(spec);
	if (birth->templated && spec->workspace) {
		work = spawner_clone_workspace(&s->place, spec, err);
		if (work < 0)
			return -1;
		birth->workspace = work;
	}
	if (birth->templated)
		return keeper_start(birth, ret, err);
	if (spawner_enter_jobs(&s->place, err) < 0)
		return -1;
	r = keeper_start(birth, ret, err);
	spawner_leave_jobs(&s->place);
	return r;
}

static int start_cold(struct server *s, const struct order *o, struct keeper *ret,
		      struct err *err)
{
	struct sbx_birth birth = {.spec = o->spec,
				  .stdio = {o->stdio[0], o->stdio[1], o->stdio[2]},
				  .terminal = o->terminal,
				  .null_fd = STDIN_FILENO,
				  .meminfo_fd = s->pool.meminfo_fd,
				  .workspace = -1,
				  .rules = {.fd = -1}};
	int r;

	if (o->spec->grade == GRADE_FULL)
		return start_cold_full(s, &birth, ret, err);
	birth.rules = prepared_rules_take(&s->prepared);
	r = keeper_start(&birth, ret, err);
	landlock_done(&birth.rules);
	return r;
}

/* The sandbox waits already. What fails now is the job's refusal, and its own end. */
static int start_warm(struct server *s, const struct order *o, struct keeper *k,
		      struct err *err)
{
	const struct sbx_spec *spec = o->spec;
	cleanup_close int mount = -1;
	int r, work = spec->workspace_fd;

	if (spec->grade == GRADE_FULL && spec->workspace)
		work = mount = spawner_clone_workspace(&s->place, spec, err);
	r = spec->workspace && work < 0
		    ? -1
		    : keeper_bind(k, spec, o->sent, o->stdio, work, err);
	if (r < 0)
		endings_add(&s->endings, k);
	return r;
}

static int start_keeper(struct server *s, const struct order *o, struct keeper *ret,
			const char **stage, struct err *err)
{
	int r;

	if (s->n + s->endings.n_owed >= SPAWN_JOBS_MAX)
		return err_set(err, ERR_LIMIT, "already %d jobs", SPAWN_JOBS_MAX);
	*stage = "seccomp"; /* compiled once here, inherited by every job */
	if (seccomp_prepare(o->spec, err) < 0)
		return -1;
	*stage = "namespaces";
	/* a warm one has its stdio's place already */
	r = !o->terminal && pool_take(&s->pool, o->spec, ret)
		    ? start_warm(s, o, ret, err)
		    : start_cold(s, o, ret, err);
	if (r < 0 && (err->id == ERRID_SANDBOX_LIMIT || err->id == ERRID_SANDBOX_CGROUP))
		*stage = "limits";
	return r;
}

void serve_start(struct server *s, const struct spawn_run *m, const struct payload *sent,
		 const int *stdio)
{
	const struct sbx_terminal like = {.size = {.ws_col = (unsigned short)m->cols,
						   .ws_row = (unsigned short)m->rows}};
	struct served j = {.handle = m->handle, .terminal = -1};
	struct err err = ERR_INIT;
	const char *stage = "spec";
	struct sbx_spec spec;
	struct order order = {.spec = &spec, .sent = sent, .stdio = stdio};
	int r;

	r = sbx_spec_parse_block(sent->block, sent->bytes, &spec, &err);
	spec.broker = m->flags & SPAWN_RUN_BROKER;
	spec.tty = j.wants_terminal = m->flags & SPAWN_RUN_TTY;
	order.terminal = spec.tty ? &like : NULL;
	if (r == 0)
		r = judge_spec(s, &spec, &err);
	if (r == 0)
		r = start_keeper(s, &order, &j.keeper, &stage, &err);
	if (r == 0) {
		serve_end_within(&j, SETUP_MAX_USEC + spec.timeout_usec +
					     spec.grace_ms * USEC_PER_MSEC);
		s->job[s->n++] = j;
	} else {
		put_refused(s, m->handle, stage, &err);
	}
	sbx_spec_done(&spec);
}

/* The job's terminal, which comes before the job: one side is the tomb's. */
static bool take_terminal(struct server *s, struct served *j, int *fds)
{
	const struct spawn_terminal m = {.type = SPAWN_TERMINAL, .handle = j->handle};

	if (!j->wants_terminal || j->terminal >= 0)
		return false;
	j->terminal = TAKE_FD(fds[TERMINAL_SLAVE]);
	serve_put(s, &m, sizeof(m), TAKE_FD(fds[TERMINAL_MASTER]));
	return true;
}

static bool has_its_terminal(const struct served *j)
{
	return j->wants_terminal == (j->terminal >= 0);
}

void serve_on_keeper(struct server *s, struct served *j)
{
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	union spawn_message m;
	ssize_t n = fdpass_recv(j->keeper.sock, &m, sizeof(m), fds, &n_fds, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(m.type) && m.type == KEEPER_TERMINAL &&
	    n_fds == TERMINAL_FDS && take_terminal(s, j, fds)) {
		/* passed on */
	} else if (n == (ssize_t)sizeof(m.started) && m.type == SPAWN_STARTED &&
		   n_fds == (m.started.broker ? 1 : 0) && has_its_terminal(j)) {
		m.started.handle = j->handle;
		serve_put(s, &m, sizeof(m.started), TAKE_FD(fds[0]));
	} else if (n == (ssize_t)sizeof(m.denied) && m.type == SPAWN_DENIED) {
		m.denied.handle = j->handle;
		serve_put(s, &m, sizeof(m.denied), -1);
	} else if (n == (ssize_t)sizeof(m.refused) && m.type == SPAWN_REFUSED) {
		m.refused.handle = j->handle;
		serve_put(s, &m, sizeof(m.refused), -1);
		let_end(s, j);
	} else if (n == (ssize_t)sizeof(m.exited) && m.type == SPAWN_EXITED) {
		m.exited.handle = j->handle;
		serve_put(s, &m, sizeof(m.exited), -1);
		let_end(s, j);
	} else {
		lose_keeper(s, j);
	}
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}
