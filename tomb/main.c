/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lych-tomb: the worker. The order of its start, each step final before the next:
 *
 *	refuse root, options, data directory and its lock, leftovers of an earlier run
 *	proved dead and removed, the spawner executed, the file workers' parent forked
 *	(neither must inherit what follows; `lych status` knows the spawner as the first),
 *	secrets, queue, vessel and control sockets, confinement and its self-test, the
 *	spawner's HELLO, the database, ready, loop.
 *
 * From the confinement on the tomb opens unix sockets and no file, and executes nothing: all
 * that runs a job is the spawner, all that touches a job's folder a file worker, and it can
 * only ask them. When the spawner or the workers' parent ends, so does the tomb, and the
 * starter begins all of them anew.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/net/confine.h"
#include "common/net/confine_probe.h"
#include "common/net/loop.h"
#include "common/net/notify.h"
#include "common/net/sha256.h"
#include "common/net/tomb_secret.h"
#include "common/proto.h"
#include "common/str.h"
#include "tomb/claim.h"
#include "tomb/control.h"
#include "tomb/files.h"
#include "tomb/handback.h"
#include "tomb/health.h"
#include "tomb/hello.h"
#include "tomb/lease.h"
#include "tomb/options.h"
#include "tomb/place.h"
#include "tomb/proxy.h"
#include "tomb/queue_pg.h"
#include "tomb/queue_vessel.h"
#include "tomb/runner.h"
#include "tomb/spawn.h"
#include "tomb/walls.h"
#include "tomb/work.h"
#include "tomb/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SECRET_MAX_BYTES 512
#define QUEUE_NAME "main"
/* What has ended is still delivered and reported, for this long. */
#define STOP_PATIENCE_USEC (8 * USEC_PER_SEC)
#define STOP_LAST_USEC (3 * USEC_PER_SEC)
/* Below this a job could not even leave its output. */
#define ROOM_MIN_BYTES ((uint64_t)16 << 20)
#define ROOM_MIN_FILES 64
#define ERROR_LOG_GAP_USEC (10 * USEC_PER_SEC)

struct tomb {
	struct tomb_options opt;
	struct place place;
	struct files_place files_place;
	char work_socket[PATH_MAX], tools[PATH_MAX];
	int null_fd;
	struct loop *loop;
	struct notify *notify;
	struct loop_timer *tick, *patience;
	struct files *files;
	struct spawn *spawn;
	struct queue_pg *pg;	 /* the one door, */
	struct queue_vessel *qv; /* or the other */
	struct queue queue;
	struct vessel_peer peer;
	struct hello *greeting;
	struct work *work;
	struct httpc *intents;
	struct control *control;
	struct leases *leases;
	struct notes *notes;
	struct handback *handback;
	struct claims *claims;
	struct runner *runner;
	struct confine_report walls;
	struct uuid boot;
	bool hello, files_up, known, db_up, ready, stopping, last, disk_full;
	int exit_code;
	usec_t last_error;
#ifdef LYCH_TEST_BUILD
	struct confine_probe probe;
#endif
};

/* ---- time ---- */

static void on_tick(void *arg)
{
	struct tomb *t = arg;
	usec_t next = leases_tick(t->leases), other = claims_tick(t->claims), now;

	if (other < next)
		next = other;
	if (next == USEC_INFINITY)
		return;
	now = clock_boot_usec();
	loop_timer_arm(t->tick, next > now ? next - now : 0);
}

static void tick_soon(void *arg)
{
	struct tomb *t = arg;

	loop_timer_arm(t->tick, 0);
}

/* ---- the end ---- */

static void check_stopped(struct tomb *t)
{
	if (t->stopping && runner_count(t->runner) == 0 && !claims_busy(t->claims))
		loop_stop(t->loop, t->exit_code);
}

static void on_patience(void *arg)
{
	struct tomb *t = arg;

	if (t->last) {
		/* Their leases expire; nothing of them runs any more. */
		log_warn("leaving %u jobs unreported", runner_count(t->runner));
		loop_stop(t->loop, t->exit_code);
		return;
	}
	t->last = true;
	runner_shutdown(t->runner, true);
	loop_timer_arm(t->patience, STOP_LAST_USEC);
	check_stopped(t);
}

static void stop(struct tomb *t, int exit_code)
{
	if (t->stopping)
		return;
	log_info("stopping, %u jobs", runner_count(t->runner));
	t->stopping = true;
	t->exit_code = exit_code;
	notify_stopping(t->notify);
	claims_stop(t->claims);
	runner_shutdown(t->runner, false);
	loop_timer_arm(t->patience, STOP_PATIENCE_USEC);
	check_stopped(t);
}

static void on_signal(int signo, void *arg)
{
	(void)signo;
	stop(arg, 0);
}

/* ---- what the world says ---- */

static void check_ready(struct tomb *t)
{
	if (t->ready || !t->hello || !t->files_up || !t->known || !t->db_up)
		return;
	t->ready = true;
	notify_ready(t->notify);
	log_kv(LOG_INFO_, "ready", "version", LYCH_VERSION, "name", t->opt.name, "queue",
	       queue_door_name(t->opt.queue), "boot", t->boot.s, NULL);
	handback_start(t->handback);
	tick_soon(t);
}

static void on_hint(void *arg)
{
	struct tomb *t = arg;

	leases_hint(t->leases);
	claims_hint(t->claims);
	tick_soon(t);
}

static void on_db_state(bool up, const struct err *why, void *arg)
{
	struct tomb *t = arg;

	t->db_up = up;
	if (up)
		log_info("the queue is up");
	else if (why)
		log_err(LOG_WARN_, "the queue is away", why);
	if (up) {
		on_hint(t);
		check_ready(t);
	}
}

static void on_known(void *arg)
{
	struct tomb *t = arg;

	t->known = true;
	check_ready(t);
}

static void on_unknown_yet(const struct err *why, void *arg UNUSED)
{
	log_err(LOG_WARN_, "waiting for the vessel", why);
}

/* Jobs that run are given back where that is still possible; nothing more is begun. */
static void on_turned_away(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	log_err(LOG_ERROR_, "stopping, the vessel turns this tomb away", why);
	stop(t, err_exit_code(why));
}

static unsigned free_slots(void *arg)
{
	struct tomb *t = arg;
	unsigned used = runner_count(t->runner);

	/* Nothing is claimed that could not run at once. */
	if (!t->ready || t->stopping || used >= t->opt.slots)
		return 0;
	return t->opt.slots - used;
}

static bool is_full(int fd)
{
	struct statvfs v;

	return fstatvfs(fd, &v) == 0 &&
	       ((uint64_t)v.f_bavail * v.f_frsize < ROOM_MIN_BYTES ||
		(v.f_files > 0 && v.f_favail < ROOM_MIN_FILES));
}

/* On a full disk every job would fail, and use up its attempts. */
static bool has_room(void *arg)
{
	struct tomb *t = arg;
	bool full = is_full(t->place.jobs_fd) || is_full(t->place.data_fd);
	struct err err = ERR_INIT;

	if (full && !t->disk_full) {
		(void)err_set_id(&err, ERRID_CORE_DISK_FULL,
				 "no job is begun until %llu MiB are free for jobs",
				 (unsigned long long)(ROOM_MIN_BYTES >> 20));
		log_err(LOG_WARN_, "waiting", &err);
	} else if (!full && t->disk_full) {
		log_info("there is room on the disk again");
	}
	t->disk_full = full;
	return !full;
}

static void on_asking(const struct uuid *claim_id, void *arg)
{
	struct tomb *t = arg;

	notes_claim(t->notes, claim_id);
}

static void on_claimed(const struct queue_claimed *job, usec_t sent, void *arg)
{
	struct tomb *t = arg;

	runner_take(t->runner, job, sent);
	if (t->stopping)
		runner_shutdown(t->runner, t->last);
}

static void on_claim_error(const struct err *err, void *arg)
{
	struct tomb *t = arg;
	usec_t now = clock_boot_usec();

	if (t->last_error && now - t->last_error < ERROR_LOG_GAP_USEC)
		return;
	t->last_error = now;
	log_err(LOG_WARN_, "claim", err);
}

static void on_claims_rearm(void *arg)
{
	struct tomb *t = arg;

	check_stopped(t);
	tick_soon(t);
}

static void on_slot(void *arg)
{
	struct tomb *t = arg;

	claims_hint(t->claims);
	tick_soon(t);
	check_stopped(t);
}

static void on_security(const struct lease_key *key, enum queue_answer answer, void *arg)
{
	char job[24];

	(void)snprintf(job, sizeof(job), "%" PRId64, key->job);
	log_kv(LOG_ERROR_,
	       "security: stopping, the queue knows another end of a job of ours", "job",
	       job, "answer", queue_answer_name(answer), NULL);
	stop(arg, 1);
}

/* ---- the spawner ---- */

static void spawner_broken(struct tomb *t, const char *what)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_SANDBOX_SPAWNER, "%s", what);
	log_err(LOG_ERROR_, "spawner", &err);
	loop_stop(t->loop, err_exit_code(&err));
}

static void on_hello(const struct spawn_hello *m, void *arg)
{
	struct tomb *t = arg;

	log_kv(LOG_INFO_, "spawner is up", "limits", m->mechanism, NULL);
	t->hello = true;
	check_ready(t);
}

static void on_started(const struct spawn_started *m, int broker, void *arg)
{
	struct tomb *t = arg;

	if (runner_started(t->runner, m, broker) < 0)
		spawner_broken(t, "STARTED of a job that is not starting");
}

static void on_refused(const struct spawn_refused *m, void *arg)
{
	struct tomb *t = arg;

	if (runner_refused(t->runner, m) < 0)
		spawner_broken(t, "REFUSED of a job that is not starting");
}

static void on_denied(const struct spawn_denied *m, void *arg)
{
	struct tomb *t = arg;

	if (runner_denied(t->runner, m) < 0)
		spawner_broken(t, "DENIED of a job that does not run, or too many");
}

static void on_exited(const struct spawn_exited *m, void *arg)
{
	struct tomb *t = arg;

	if (runner_exited(t->runner, m) < 0)
		spawner_broken(t, "EXITED of a job that does not run");
}

static void on_gone(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	/* Every job died with it; the leases expire and the jobs run again. */
	log_err(LOG_ERROR_, "the spawner is gone", why);
	loop_stop(t->loop, err_exit_code(why) ? err_exit_code(why) : 1);
}

/* ---- the file workers ---- */

static void on_files_up(void *arg)
{
	struct tomb *t = arg;

	log_info("file workers are up");
	t->files_up = true;
	check_ready(t);
}

static void on_files_gone(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	/* No job could be begun, or its artifacts taken: whoever starts us begins anew. */
	log_err(LOG_ERROR_, "the file workers are gone", why);
	loop_stop(t->loop, err_exit_code(why) ? err_exit_code(why) : 1);
}

/* ---- the control socket ---- */

static void on_health(struct buf *json, void *arg)
{
	struct tomb *t = arg;
	struct jsonw w;

	jsonw_init(&w, json);
	jsonw_obj(&w);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_kstr(&w, "name", t->opt.name);
	jsonw_ku64(&w, "jobs", runner_count(t->runner));
	jsonw_ku64(&w, "slots", t->opt.slots);
	jsonw_kstr(&w, "spawner", t->hello ? "up" : "starting");
	jsonw_kstr(&w, "queue", queue_door_name(t->opt.queue));
	jsonw_kstr(&w, "database", t->db_up ? "up" : "away");
	jsonw_key(&w, "walls");
	jsonw_arr(&w);
	for (unsigned i = 0; i < t->walls.n; i++) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "wall", t->walls.line[i].wall);
		jsonw_kstr(&w, "answer", t->walls.line[i].answer);
		jsonw_kbool(&w, "held", t->walls.line[i].held);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
}

static bool on_check_now(job_id_t job, void *arg)
{
	struct tomb *t = arg;

	if (!runner_has(t->runner, job))
		return false;
	leases_hint(t->leases);
	tick_soon(t);
	return true;
}

/* ---- start ---- */

static int read_secret(int dir, const char *name, char out[SECRET_MAX_BYTES],
		       struct err *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys_id(err, ERRID_SECRET_MISSING, "%s", name);
	return fs_read_secret(dir, name, out, SECRET_MAX_BYTES, err);
}

/* Made for this tomb from a master that it never sees. */
static int read_own_secret(const struct tomb *t, int dir, enum tomb_secret which,
			   char out[SECRET_MAX_BYTES], struct err *err)
{
	char name[TOMB_SECRET_NAME_SIZE];

	if (str_fmt(name, sizeof(name), "%s%s", tomb_secret_prefix(which), t->opt.name) <
	    0)
		return err_set(err, ERR_INTERNAL, "name of a secret");
	return read_secret(dir, name, out, err);
}

static int open_queue_pg(struct tomb *t, int secrets, struct err *err)
{
	char db[SECRET_MAX_BYTES] = "";
	struct queue_pg_config pc = {
		.socket_dir = t->opt.pg_dir,
		.role = t->opt.name,
		.password = db,
		.queue = QUEUE_NAME,
		.boot = t->boot,
		.on_hint = on_hint,
		.on_state = on_db_state,
		.arg = t,
	};
	int r = -1;

	if (read_own_secret(t, secrets, TOMB_SECRET_DB, db, err) == 0 &&
	    queue_pg_new(t->loop, &pc, &t->pg, &t->queue, err) == 0)
		r = 0;
	explicit_bzero(db, sizeof(db));
	return r;
}

static int open_queue_vessel(struct tomb *t, struct err *err)
{
	struct queue_vessel_config vc = {
		.peer = &t->peer,
		.queue = QUEUE_NAME,
		.boot = t->boot,
		.on_hint = on_hint,
		.on_state = on_db_state,
		.arg = t,
	};

	return queue_vessel_new(t->loop, &vc, &t->qv, &t->queue, err);
}

/* Secrets are read here, given to those who use them, and wiped here. */
static int open_peers(struct tomb *t, struct err *err)
{
	char bearer[SECRET_MAX_BYTES] = "";
	cleanup_close int dir = open(t->opt.secrets, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hello_config hc = {
		.peer = &t->peer,
		.door = t->opt.queue,
		.boot = t->boot,
		.slots = t->opt.slots,
		.on_known = on_known,
		.on_refused = on_turned_away,
		.on_away = on_unknown_yet,
		.arg = t,
	};
	int r = -1;

	if (dir < 0)
		return err_sys_id(err, ERRID_SECRET_MISSING, "open %s", t->opt.secrets);
	if (str_fmt(t->work_socket, sizeof(t->work_socket), "%s/vessel.sock",
		    t->opt.work_dir) < 0)
		return err_set_id(err, ERRID_START_SOCKET, "%s is too long",
				  t->opt.work_dir);
	if (read_own_secret(t, dir, TOMB_SECRET_WORK, bearer, err) == 0)
		r = vessel_peer_init(&t->peer, t->work_socket, t->opt.name, bearer,
				     t->opt.protocol, err);
	explicit_bzero(bearer, sizeof(bearer));
	if (r < 0 ||
	    work_new(t->loop, &t->peer, t->opt.slots * 2 + 2, &t->work, err) < 0 ||
	    httpc_new(t->loop, t->work_socket,
		      t->opt.slots * proxy_inflight(t->opt.slots), &t->intents, err) < 0)
		return -1;
	r = t->opt.queue == DOOR_POSTGRES ? open_queue_pg(t, dir, err)
					  : open_queue_vessel(t, err);
	return r < 0 ? -1 : hello_new(t->loop, &hc, &t->greeting, err);
}

static int open_control(struct tomb *t, struct err *err)
{
	struct control_ops ops = {
		.health = on_health,
		.claim_now = on_slot,
		.check_now = on_check_now,
		.arg = t,
	};
	char path[PATH_MAX];

	if (str_fmt(path, sizeof(path), "%s/tomb-%s.sock", t->opt.work_dir, t->opt.name) <
	    0)
		return err_set_id(err, ERRID_START_SOCKET, "%s is too long",
				  t->opt.work_dir);
	return control_new(t->loop, path, &ops, &t->control, err);
}

static void make_cores(struct tomb *t)
{
	struct claims_world cw = {
		.queue = &t->queue,
		.clock = &clock_real,
		.rng = &random_real,
		.free_slots = free_slots,
		.has_room = has_room,
		.on_asking = on_asking,
		.on_claimed = on_claimed,
		.on_error = on_claim_error,
		.rearm = on_claims_rearm,
		.arg = t,
	};
	struct runner_world rw = {
		.loop = t->loop,
		.queue = &t->queue,
		.work = t->work,
		.intents = t->intents,
		.peer = &t->peer,
		.slots = t->opt.slots,
		.spawn = t->spawn,
		.notes = t->notes,
		.files = t->files,
		.null_fd = t->null_fd,
		.grade = t->opt.grade,
		.tools = t->tools,
		.on_slot = on_slot,
		.on_lease = tick_soon,
		.on_security = on_security,
		.arg = t,
	};

	t->leases = leases_new(&t->queue, &clock_real, tick_soon, t);
	rw.leases = t->leases;
	t->handback = handback_new(t->loop, &t->queue, t->notes, !t->place.blameless);
	t->claims = claims_new(&cw);
	t->runner = runner_new(&rw);
	t->tick = loop_timer_new(t->loop, on_tick, t);
	t->patience = loop_timer_new(t->loop, on_patience, t);
}

/* lych-ask and lych-fetch: in tools/ beside lych-sandbox, or where `make install` puts it
 * (the sandbox is in bin/ then). */
static int find_tools(struct tomb *t, struct err *err)
{
	static const char *const places[] = {"tools", "../libexec/lychgate/tools"};
	const char *slash = strrchr(t->opt.sandbox, '/');
	char path[PATH_MAX];

	if (access(t->opt.sandbox, X_OK) < 0)
		return err_sys_id(err, ERRID_SANDBOX_SPAWNER, "%s", t->opt.sandbox);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (str_fmt(path, sizeof(path), "%.*s/%s", (int)(slash - t->opt.sandbox),
			    t->opt.sandbox, places[i]) == 0 &&
		    realpath(path, t->tools))
			return 0;
	return err_set_id(err, ERRID_START_TOOL,
			  "tools/, with lych-ask and lych-fetch, is not beside %s",
			  t->opt.sandbox);
}

/* As early as can be: what they are forked from holds no secret yet. */
static int start_files(struct tomb *t, struct err *err)
{
	t->files_place = (struct files_place){
		.jobs = t->place.jobs_path,
		.spool = t->place.spool_path,
		.artifacts = t->place.artifacts_path,
		.quarantine = t->place.quarantine_path,
	};
#ifdef LYCH_TEST_BUILD
	if (t->opt.probe_walls &&
	    confine_probe_load(t->opt.probe_walls, &t->probe, err) < 0)
		return -1;
	t->files_place.probe = &t->probe;
	t->files_place.probe_process = t->opt.probe_process;
#endif
	return files_start(&t->files_place, t->opt.slots, &t->files, err);
}

static int start(struct tomb *t, struct err *err)
{
	struct spawn_events ev = {
		.hello = on_hello,
		.started = on_started,
		.refused = on_refused,
		.denied = on_denied,
		.exited = on_exited,
		.gone = on_gone,
		.arg = t,
	};

	const struct files_events fev = {
		.up = on_files_up,
		.gone = on_files_gone,
		.arg = t,
		.patience_usec = FILES_PATIENCE_USEC,
	};

	if (place_open(&t->place, t->opt.data, t->opt.jobs_apart, err) < 0 ||
	    notes_open(t->place.data_fd, &t->boot, t->place.proved, &t->notes, err) < 0 ||
	    find_tools(t, err) < 0 ||
	    spawn_start(t->opt.sandbox, t->place.jobs_path, t->tools, t->opt.cgroup,
			t->opt.grade, t->opt.slots, &t->spawn, err) < 0 ||
	    start_files(t, err) < 0)
		return -1;
	t->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (t->null_fd < 0)
		return err_sys(err, "open /dev/null");
	/* OpenSSL reads its configuration at the first digest: not later, when it cannot.
	 */
	sha256_free(sha256_new());
	if (loop_new(&t->loop, err) < 0 ||
	    loop_signal(t->loop, SIGTERM, on_signal, t, err) < 0 ||
	    loop_signal(t->loop, SIGINT, on_signal, t, err) < 0 ||
	    notify_new(t->loop, t->opt.ready_fd, &t->notify, err) < 0)
		return -1;
	if (open_peers(t, err) < 0 || open_control(t, err) < 0)
		return -1;
	make_cores(t);
	if (files_attach(t->files, t->loop, &fev, err) < 0 ||
	    spawn_attach(t->spawn, t->loop, &ev, err) < 0 ||
	    tomb_confine(&t->opt, &t->walls, err) < 0)
		return -1;
#ifdef LYCH_TEST_BUILD
	if (t->opt.probe_walls && !t->opt.probe_process)
		confine_probe_run(&t->probe);
#endif
	return 0;
}

/* The order matters: what calls back goes before what it calls. */
static void finish(struct tomb *t)
{
	control_free(t->control);
	hello_free(t->greeting);
	queue_pg_free(t->pg);
	queue_vessel_free(t->qv);
	runner_free(t->runner);
	claims_free(t->claims);
	leases_free(t->leases);
	handback_free(t->handback);
	notes_free(t->notes);
	httpc_free(t->intents);
	work_free(t->work);
	vessel_peer_done(&t->peer);
	files_free(t->files);
	spawn_free(t->spawn);
	loop_timer_free(t->tick);
	loop_timer_free(t->patience);
	notify_free(t->notify);
	loop_free(t->loop);
	fd_close(&t->null_fd);
	place_close(&t->place);
}

int main(int argc, char **argv)
{
	static struct tomb t = {.place = PLACE_INIT, .null_fd = -1};
	struct err err = ERR_INIT;
	int code;

	if (fs_fill_stdio(&err) < 0)
		return err_exit_code(&err);
	log_init("tomb", LOG_INFO_);
	(void)umask(077);
	if (confine_refuse_root(&err) < 0) {
		log_err(LOG_ERROR_, "refused", &err);
		return err_exit_code(&err);
	}
	/* A write to a gone peer or past a size limit is an error, not an end. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return EXIT_FAILURE;
	if (argc >= 2 && str_eq(argv[1], "health"))
		return health_main(argc - 1, argv + 1);
	if (tomb_options_parse(argc, argv, &t.opt, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		return err_exit_code(&err);
	}
	uuid_new(&random_real, &t.boot);
	if (start(&t, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		code = err_exit_code(&err);
	} else {
		code = loop_run(t.loop, &err);
		if (code < 0) {
			log_err(LOG_ERROR_, "loop", &err);
			code = err_exit_code(&err);
		}
	}
	finish(&t);
	return code;
}
