/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
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
#include "common/crypto/sha256.h"
#include "common/crypto/tomb_secret.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/net/dial.h"
#include "common/proto.h"
#include "common/str.h"
#include "tomb/broker/proxy.h"
#include "tomb/events.h"
#include "tomb/files/workspace.h"
#include "tomb/health.h"
#include "tomb/tomb.h"
#include "tomb/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_MAX_BYTES 512
#define QUEUE_NAME "main"

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
		.on_hint = event_hint,
		.on_state = event_db_state,
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
		.on_hint = event_hint,
		.on_state = event_db_state,
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
		.on_known = event_known,
		.on_refused = event_turned_away,
		.on_away = event_unknown_yet,
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
	    work_new(t->loop, &t->peer, t->opt.slots * 3 + 2, &t->work, err) < 0 ||
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
		.health = event_health,
		.claim_now = event_slot,
		.check_now = event_check_now,
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
		.free_slots = event_free_slots,
		.has_room = event_has_room,
		.on_asking = event_asking,
		.on_claimed = event_claimed,
		.on_error = event_claim_error,
		.rearm = event_claims_rearm,
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
		.tls = t->tls,
		.null_fd = t->null_fd,
		.grade = t->opt.grade,
		.unrooted = t->opt.starter.unrooted,
		.prepare_usec = t->opt.prepare_usec,
		.tools = t->tools,
		.on_slot = event_slot,
		.on_lease = event_tick_soon,
		.on_security = event_security,
		.arg = t,
	};

	t->leases = leases_new(&t->queue, &clock_real, event_tick_soon, t);
	rw.leases = t->leases;
	t->handback = handback_new(t->loop, &t->queue, t->notes, !t->place.blameless);
	t->claims = claims_new(&cw);
	t->runner = runner_new(&rw);
	t->tick = loop_timer_new(t->loop, event_tick, t);
	t->patience = loop_timer_new(t->loop, event_patience, t);
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
		.unrooted = t->opt.starter.unrooted,
		.api_socket = t->opt.api_socket,
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

/* Likewise. In floor no job has a loopback on which it could ask for a tunnel. */
static int start_tls(struct tomb *t, struct err *err)
{
#ifdef LYCH_TEST_BUILD
	t->tls_place.probe = &t->probe;
	t->tls_place.probe_process = t->opt.probe_process;
#endif
	return t->opt.grade == GRADE_FULL ? tls_start(&t->tls_place, &t->tls, err) : 0;
}

#ifdef LYCH_TEST_BUILD
static void event_tls_tried(const char *pem UNUSED, const struct err *why UNUSED,
			    void *arg)
{
	struct tomb *t = arg;

	loop_stop(t->loop, EXIT_FAILURE);
}
#endif

static int attach_tls(struct tomb *t, struct err *err)
{
	const struct tls_events ev = {
		.up = event_tls_up,
		.gone = event_tls_gone,
		.arg = t,
		.patience_usec = TLS_PATIENCE_USEC,
	};

	if (!t->tls)
		return 0;
	if (tls_attach(t->tls, t->loop, &ev, err) < 0)
		return -1;
#ifdef LYCH_TEST_BUILD
	if (t->opt.probe_process && str_eq(t->opt.probe_process, "tls-process"))
		(void)tls_job_new(t->tls, event_tls_tried, t);
#endif
	return 0;
}

static int start(struct tomb *t, struct err *err)
{
	struct spawn_events ev = {
		.hello = event_spawner_up,
		.terminal = event_terminal,
		.started = event_started,
		.refused = event_refused,
		.denied = event_denied,
		.exited = event_exited,
		.gone = event_spawner_gone,
		.arg = t,
	};

	const struct files_events fev = {
		.up = event_files_up,
		.gone = event_files_gone,
		.arg = t,
		.patience_usec = FILES_PATIENCE_USEC,
	};

	/* first of all: what is started from here on does not get it */
	if (t->opt.starter.unrooted && dial_begin(t->opt.starter.dial_fd, err) < 0)
		return -1;
	if (place_open(&t->place, t->opt.data, t->opt.jobs_apart, err) < 0 ||
	    notes_open(t->place.data_fd, &t->boot, t->place.proved, &t->notes, err) < 0 ||
	    find_tools(t, err) < 0 ||
	    spawn_start(t->opt.sandbox, t->place.jobs_path, t->tools, t->opt.cgroup,
			t->opt.grade, t->opt.starter.unrooted, t->opt.slots, &t->spawn,
			err) < 0 ||
	    start_files(t, err) < 0 || start_tls(t, err) < 0)
		return -1;
	t->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (t->null_fd < 0)
		return err_sys(err, "open /dev/null");
	/* OpenSSL reads its configuration at the first digest: not later, when it cannot.
	 */
	sha256_free(sha256_new());
	if (loop_new(&t->loop, err) < 0 ||
	    loop_signal(t->loop, SIGTERM, event_signal, t, err) < 0 ||
	    loop_signal(t->loop, SIGINT, event_signal, t, err) < 0 ||
	    notify_new(t->loop, t->opt.starter.ready_fd, &t->notify, err) < 0)
		return -1;
	if (open_peers(t, err) < 0 || open_control(t, err) < 0)
		return -1;
	make_cores(t);
	if (files_attach(t->files, t->loop, &fev, err) < 0 || attach_tls(t, err) < 0 ||
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
	tls_free(t->tls);
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
	if (argc >= 2 && str_eq(argv[1], "health")) {
		args_name(argc - 1, argv + 1, "lych-tomb health");
		return health_main(argc - 1, argv + 1);
	}
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
