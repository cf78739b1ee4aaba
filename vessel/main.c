/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * lych-vessel: the control plane. Order of `serve`, each step final before the
 * next: refuse root, options, configuration, the parent of the egress workers,
 * secrets, data directory and its lock, the workers with their walls, listeners,
 * database client, confinement and its self-test, the fencing row, ready, loop.
 * Until the fencing row is ours the sockets answer 503.
 *
 * From the confinement on the vessel can open its data directory and nothing
 * else, make unix sockets and no other, and execute nothing.
 */
#include "common/args/args.h"
#include "common/cleanup.h"
#include "common/confine/probe.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/net/dial.h"
#include "common/net/notify.h"
#include "common/str.h"
#include "vessel/api/vessel.h"
#include "vessel/audit/audit.h"
#include "vessel/boot_file.h"
#include "vessel/broker.h"
#include "vessel/broker/containments.h"
#include "vessel/broker/deaths.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/gate/private_store.h"
#include "vessel/broker/triggers.h"
#include "vessel/codex.h"
#include "vessel/egress_workers.h"
#include "vessel/health.h"
#include "vessel/host_requests.h"
#include "vessel/migrate_main.h"
#include "vessel/options.h"
#include "vessel/receipts.h"
#include "vessel/reconcile.h"
#include "vessel/sockets.h"
#include "vessel/walls.h"
#include "vessel/watchdog.h"
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>

#define SECRET_MAX_BYTES 512
#define STOP_USEC (500 * USEC_PER_MSEC)

struct secrets {
	char vessel[SECRET_MAX_BYTES], watchdog[SECRET_MAX_BYTES];
	/* masters: no tomb has them */
	char tomb[SECRET_MAX_BYTES], work[SECRET_MAX_BYTES];
};

/* One process, one of these; `v` is what the handlers see. */
struct serve {
	struct vessel v;
	struct options opt;
	struct secrets secrets;
	struct reconcile *reconcile;
	struct receipts *receipts;
	struct watchdog *watchdog;
	struct notify *notify;
	struct uuid previous;
	int lock_fd;
	int secrets_fd;
	struct sockets sockets;
#ifdef LYCH_TEST_BUILD
	struct confine_probe probe;
#endif
	struct loop_timer *stop_timer;
	bool stopping, begun;
};

/* ---- before confinement ---- */

static int read_secret(struct serve *s, const char *name, char *out, struct err *err)
{
	struct stat st;

	if (fstatat(s->secrets_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys_id(err, ERRID_SECRET_MISSING, "%s", name);
	return fs_read_secret(s->secrets_fd, name, out, SECRET_MAX_BYTES, err);
}

static int read_secrets(struct serve *s, struct err *err)
{
	s->secrets_fd =
		open(s->opt.secrets, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->secrets_fd < 0)
		return err_sys_id(err, ERRID_SECRET_MISSING,
				  "open the secrets directory");
	if (read_secret(s, "lychgate_db_vessel", s->secrets.vessel, err) < 0 ||
	    read_secret(s, "lychgate_db_watchdog", s->secrets.watchdog, err) < 0 ||
	    read_secret(s, "lychgate_work", s->secrets.work, err) < 0)
		return -1;
	/* Needed, and so read, only where tombs claim through us. */
	if (s->opt.n_tombs > 0 &&
	    read_secret(s, "lychgate_db_tomb", s->secrets.tomb, err) < 0)
		return -1;
	fd_close(&s->secrets_fd);
	return 0;
}

static int open_data(struct serve *s, struct err *err)
{
	struct vessel *v = &s->v;
	pid_t holder = 0;

	if (fs_mkdir_all(s->opt.data, 0700, err) < 0)
		return -1;
	v->data_fd = open(s->opt.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (v->data_fd < 0)
		return err_sys(err, "open %s", s->opt.data);
	s->lock_fd = fs_open_beneath(v->data_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW,
				     0600, err);
	if (s->lock_fd < 0)
		return store_err(err);
	if (fs_lock(s->lock_fd, &holder, err) < 0)
		return err_wrap(err, "%s (held by process %d)", s->opt.data, (int)holder);
	if (boot_file_read(v->data_fd, &s->previous, err) < 0)
		return -1;
	if (host_requests_init(v->data_fd, err) < 0)
		return -1;
	v->budget.max = v->conf.store_max_bytes;
	if (blobs_new(v->data_fd, &v->budget, &v->blobs, err) < 0 ||
	    incoming_new(v->loop, v->data_fd, &v->budget, v->blobs, &v->incoming, err) <
		    0 ||
	    output_new(v->data_fd, &v->budget, v->conf.output_max, &v->output, err) < 0)
		return store_err(err);
	return 0;
}

/* ---- callbacks ---- */

static void on_gate_away(const struct err *why, void *arg UNUSED)
{
	log_err(LOG_WARN_, "the gate's worker is away: nothing leaves", why);
}

static void on_change(void *arg)
{
	struct serve *s = arg;

	registered_refresh(s->v.registered);
	events_hint(s->v.events);
	hints_tell(s->v.hints);
	audit_hint(s->v.audit);
	dispatch_hint(s->v.dispatch);
	containments_changed(s->v.containments);
}

static void on_door_state(struct door_tomb *t, bool up, const struct err *why, void *arg)
{
	struct serve *s = arg;

	if (!up && why && queue_is_up(s->v.queue))
		log_kv(LOG_WARN_, "a tomb's connection to the database is away", "tomb",
		       door_tomb_name(t), "why", why->msg, NULL);
	hints_state(s->v.hints, t);
}

static void on_state(bool up, const struct err *why, void *arg)
{
	struct serve *s = arg;

	if (up) {
		log_info("database is up");
		reconcile_db_up(s->reconcile);
	} else {
		s->v.metrics.db_losses++;
		if (why)
			log_err(LOG_WARN_, "database is away", why);
	}
}

static void on_tomb_session_ended(const char *role, const char *why, void *arg UNUSED)
{
	log_kv(LOG_WARN_, "a tomb's database session was ended", "role", role, "why", why,
	       NULL);
}

static void on_watchdog_error(const struct err *err, void *arg)
{
	struct serve *s = arg;

	/* with the database away the other connection has said so already */
	if (queue_is_up(s->v.queue))
		log_err(LOG_WARN_, "watchdog", err);
}

static int remember_boot(void *arg, struct err *err)
{
	struct serve *s = arg;

	return boot_file_write(s->v.data_fd, &s->v.boot, err) < 0 ? store_err(err) : 0;
}

/* The database is ours, and it said which tombs there are. */
static void begin(void *arg)
{
	struct serve *s = arg;

	if (s->begun || !s->v.owned || !registered_is_known(s->v.registered))
		return;
	s->begun = true;
	audit_owned(s->v.audit);
	dispatch_owned(s->v.dispatch);
	deaths_hint(s->v.deaths);
	attended_begin(s->v.attended);
	notify_ready(s->notify);
	log_kv(LOG_INFO_, "ready", "version", LYCH_VERSION, "boot", s->v.boot.s, NULL);
}

static void on_end(job_id_t job, int64_t epoch, void *arg)
{
	struct serve *s = arg;

	receipts_add(s->receipts, job, epoch);
}

static void on_owned(void *arg)
{
	struct serve *s = arg;

	registered_refresh(s->v.registered);
	begin(s);
}

static void on_ended(const struct err *why, void *arg)
{
	struct serve *s = arg;

	log_err(LOG_ERROR_, "stopping", why);
	loop_stop(s->v.loop, err_exit_code(why));
}

static void on_stop_timer(void *arg)
{
	struct serve *s = arg;

	loop_stop(s->v.loop, 0);
}

static void on_bye(const struct err *err UNUSED, void *arg)
{
	on_stop_timer(arg);
}

static void say_bye(void *arg)
{
	struct serve *s = arg;

	audit_stopping(s->v.audit);
	queue_vessel_bye(s->v.queue, &s->v.boot, on_bye, s);
}

/* Give the fencing row back, but wait for nobody: the next start can do it too. */
static void on_signal(int signo UNUSED, void *arg)
{
	struct serve *s = arg;

	if (s->stopping || !s->v.owned) {
		loop_stop(s->v.loop, 0);
		return;
	}
	log_info("stopping");
	notify_stopping(s->notify);
	s->stopping = true;
	dispatch_stop(s->v.dispatch);
	reconcile_stop(s->reconcile);
	loop_timer_arm(s->stop_timer, STOP_USEC);
	receipts_when_idle(s->receipts, say_bye, s);
}

/* ---- opening ---- */

static void on_abandoned(job_id_t job, void *arg)
{
	struct serve *s = arg;
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRId64, job);
	log_kv(LOG_INFO_, "nobody waits for a job any more; it is cancelled", "job", id,
	       NULL);
	s->v.metrics.cancels++;
	events_hint(s->v.events);
}

static void open_attended(struct serve *s)
{
	const struct attended_world w = {.loop = s->v.loop,
					 .queue = s->v.queue,
					 .on_abandoned = on_abandoned,
					 .arg = s};

	s->v.attended = attended_new(&w);
}

static int open_database(struct serve *s, struct err *err)
{
	struct queue_config cfg = {
		.socket_dir = s->opt.pg_dir,
		.password = s->secrets.vessel,
		.on_change = on_change,
		.on_state = on_state,
		.arg = s,
	};
	struct watchdog_config dog = {
		.socket_dir = s->opt.pg_dir,
		.password = s->secrets.watchdog,
		.on_kill = on_tomb_session_ended,
		.on_error = on_watchdog_error,
		.arg = s,
	};

	const struct door_config doors = {
		.socket_dir = s->opt.pg_dir,
		.tombs = s->opt.tombs,
		.n_tombs = s->opt.n_tombs,
		.on_state = on_door_state,
		.arg = s,
	};

	if (queue_new(s->v.loop, &cfg, &s->v.queue, err) < 0 ||
	    door_new(s->v.loop, &doors, &s->v.door, err) < 0)
		return -1;
	registered_attach(s->v.registered, s->v.queue, s->v.door);
	events_set_queue(s->v.events, s->v.queue);
	open_attended(s);
	return watchdog_new(s->v.loop, &dog, &s->watchdog, err);
}

static int open_registered(struct serve *s, struct err *err)
{
	const struct registered_config cfg = {
		.loop = s->v.loop,
		.work_master = s->secrets.work,
		.db_master = s->opt.n_tombs > 0 ? s->secrets.tomb : NULL,
		.on_ready = begin,
		.arg = s,
	};

	return registered_new(&cfg, &s->v.registered, err);
}

/* The gate's side in this process; its worker comes with the egress workers. */
static int open_gate(struct serve *s, struct err *err)
{
	const struct conf_gate *g = &s->v.conf.broker.gate;
	const struct gate_client_config cfg = {
		.loop = s->v.loop,
		.portal_threshold = g->portal_threshold,
		.forbidden_threshold = g->forbidden_threshold,
		.refuses = {[GATE_PICTURE] = !g->allows_pictures,
			    [GATE_SOUND] = !g->allows_sound,
			    [GATE_PDF] = !g->allows_pdf},
		.on_away = on_gate_away,
		.on_died = egress_workers_died,
		.note = &s->v.reading,
		.arg = &s->v,
	};

	s->v.gate = gate_client_new(&cfg);
	return private_store_open(s->v.data_fd, s->v.gate, &s->v.terms, err);
}

static int fork_workers(struct serve *s, struct err *err)
{
#ifdef LYCH_TEST_BUILD
	if (s->opt.probe_worker)
		return egress_workers_fork(&s->v, &s->opt, &s->probe, err);
#endif
	return egress_workers_fork(&s->v, &s->opt, NULL, err);
}

static int read_config(struct serve *s, struct err *err)
{
	struct vessel *v = &s->v;

	if (codex_open(v, s->opt.config, err) < 0)
		return -1;
	/* By the owner's word alone, and by it always. */
	if (v->conf.unrooted != s->opt.starter.unrooted)
		return err_set_id(
			err, ERRID_START_CONFIG,
			"daemons: no_private_root is for 'lych up', which says it "
			"to each daemon");
	return s->opt.starter.unrooted ? dial_begin(s->opt.starter.dial_fd, err) : 0;
}

static int open_audit(struct serve *s, struct err *err)
{
	const struct audit_config cfg = {.loop = s->v.loop,
					 .clock = s->v.clock,
					 .queue = s->v.queue,
					 .boot = &s->v.boot,
					 .socket_dir = s->opt.audit_dir,
					 .on_end = on_end,
					 .arg = s};

	if (fs_mkdir_all(s->opt.audit_dir, 0700, err) < 0)
		return -1;
	return audit_new(&cfg, &s->v.audit, err);
}

static int start(struct serve *s, struct err *err)
{
	struct vessel *v = &s->v;
	struct reconcile_config rc = {.remember = remember_boot,
				      .sweep_after = RECONCILE_SWEEP_USEC,
				      .owned = on_owned,
				      .ended = on_ended,
				      .arg = s};

	if (read_config(s, err) < 0)
		return -1;
#ifdef LYCH_TEST_BUILD
	if (s->opt.probe_walls &&
	    confine_probe_load(s->opt.probe_walls, &s->probe, err) < 0)
		return -1;
#endif
	/* no secret is in memory yet, nothing is open: their parent has neither */
	if (fork_workers(s, err) < 0)
		return -1;
	if (read_secrets(s, err) < 0 || loop_new(&v->loop, err) < 0 ||
	    open_data(s, err) < 0 || open_gate(s, err) < 0 ||
	    loop_signal(v->loop, SIGTERM, on_signal, s, err) < 0 ||
	    loop_signal(v->loop, SIGINT, on_signal, s, err) < 0 ||
	    notify_new(v->loop, s->opt.starter.ready_fd, &s->notify, err) < 0)
		return -1;
	if (egress_workers_attach(v, err) < 0)
		return -1;
	s->stop_timer = loop_timer_new(v->loop, on_stop_timer, s);
	v->events = events_new(v->loop);
	v->hints = hints_new(v->loop);
	v->feeds = feeds_new(v->loop);
	v->tombs = tombs_new(v->clock);
	v->owners = lease_owners_new();
	if (open_registered(s, err) < 0 ||
	    sockets_open(&s->sockets, v, s->opt.api_dir, s->opt.work_dir, err) < 0 ||
	    open_database(s, err) < 0 || open_audit(s, err) < 0)
		return -1;
	if (broker_start(v, s->secrets.work, err) < 0 ||
	    deaths_open(v, s->opt.api_dir, err) < 0)
		return -1;
	v->containments = containments_new(v);
	s->receipts = receipts_new(v);
	v->triggers = triggers_new(v);
	explicit_bzero(&s->secrets, sizeof(s->secrets));
	if (vessel_confine(&s->opt, &v->walls, err) < 0)
		return -1;
#ifdef LYCH_TEST_BUILD
	if (s->opt.probe_walls && !s->opt.probe_worker)
		confine_probe_run(&s->probe);
#endif
	if (s->opt.sweep_after_sec)
		rc.sweep_after = s->opt.sweep_after_sec * USEC_PER_SEC;
	sockets_watch(&s->sockets);
	rc.previous = s->previous;
	s->reconcile = reconcile_new(v, &rc);
	return 0;
}

static void stop(struct serve *s)
{
	struct vessel *v = &s->v;

	explicit_bzero(&s->secrets, sizeof(s->secrets));
	sockets_close(&s->sockets);
	deaths_close(v);
	triggers_free(v->triggers);
	containments_free(v->containments);
	receipts_free(s->receipts);
	broker_free(v);
	loop_timer_free(s->stop_timer);
	reconcile_free(s->reconcile);
	audit_free(v->audit);
	egress_workers_free(v);
	watchdog_free(s->watchdog);
	events_free(v->events);
	attended_free(v->attended);
	hints_free(v->hints);
	feeds_free(v->feeds);
	door_free(v->door);
	tombs_free(v->tombs);
	lease_owners_free(v->owners);
	queue_free(v->queue);
	registered_free(v->registered); /* last: requests that ended count there */
	private_store_free(v->terms);
	gate_client_free(v->gate);
	incoming_free(v->incoming);
	blobs_free(v->blobs);
	output_free(v->output);
	notify_free(s->notify);
	loop_free(v->loop);
	codex_close(v);
	fd_close(&v->data_fd);
	fd_close(&s->secrets_fd);
	fd_close(&s->lock_fd);
}

static int serve_main(int argc, char **argv)
{
	static struct serve s = {.lock_fd = -1, .secrets_fd = -1, .v = {.data_fd = -1}};
	struct err err = ERR_INIT;
	int code;

	if (options_parse(argc, argv, &s.opt, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		return err_exit_code(&err);
	}
	s.v.clock = &clock_real;
	s.v.rng = &random_real;
	s.v.uid = getuid();
	s.v.protocol = s.opt.protocol ? (unsigned)s.opt.protocol : LYCH_API_VERSION;
	s.v.started_usec = clock_boot_usec();
	uuid_new(s.v.rng, &s.v.boot);
	if (start(&s, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		code = err_exit_code(&err);
	} else {
		code = loop_run(s.v.loop, &err);
		if (code < 0) {
			log_err(LOG_ERROR_, "loop", &err);
			code = err_exit_code(&err);
		}
	}
	stop(&s);
	return code;
}

static const char usage[] = "Usage: lych-vessel serve|migrate [options]\n"
			    "       lych-vessel serve|migrate|health --help\n"
			    "       lych-vessel health --api-dir DIR\n"
			    "       lych-vessel --version\n";

NORETURN static void refuse_word(const char *word)
{
	cleanup_free char *text =
		word ? xasprintf("no command '%s': serve, migrate or health", word)
		     : xstrdup("a command is wanted: serve, migrate or health");

	args_refuse("lych-vessel", text);
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;

	if (fs_fill_stdio(&err) < 0)
		return err_exit_code(&err);
	log_init("vessel", LOG_INFO_);
	(void)umask(077);
	if (confine_refuse_root(&err) < 0) {
		log_err(LOG_ERROR_, "refused", &err);
		return err_exit_code(&err);
	}
	/* a write to a gone peer or past a size limit is an error, not an end */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return EXIT_FAILURE;
	if (argc >= 2 && str_eq(argv[1], "serve")) {
		args_name(argc - 1, argv + 1, "lych-vessel serve");
		return serve_main(argc - 1, argv + 1);
	}
	if (argc >= 2 && str_eq(argv[1], "migrate")) {
		args_name(argc - 1, argv + 1, "lych-vessel migrate");
		return migrate_main(argc - 1, argv + 1);
	}
	if (argc >= 2 && str_eq(argv[1], "health")) {
		args_name(argc - 1, argv + 1, "lych-vessel health");
		return vessel_health_main(argc - 1, argv + 1);
	}
	if (argc == 2 && str_eq(argv[1], "--version"))
		return args_version("lych-vessel");
	if (argc == 2 && str_eq(argv[1], "--help")) {
		(void)fputs(usage, stdout);
		return args_flush("lych-vessel");
	}
	refuse_word(argc >= 2 ? argv[1] : NULL);
}
