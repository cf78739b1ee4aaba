/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See events.h.
 */
#include "tomb/events.h"

#include "common/jsonw.h"
#include "common/log.h"
#include "common/str.h"
#include "tomb/tomb.h"

#include <inttypes.h>
#include <sys/statvfs.h>

/* What has ended is still delivered and reported, for this long. */
#define STOP_PATIENCE_USEC (8 * USEC_PER_SEC)
#define STOP_LAST_USEC (3 * USEC_PER_SEC)
/* Below this a job could not even leave its output. */
#define ROOM_MIN_BYTES ((uint64_t)16 << 20)
#define ROOM_MIN_FILES 64
#define ERROR_LOG_GAP_USEC (10 * USEC_PER_SEC)

/* ---- time ---- */

void event_tick(void *arg)
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

void event_tick_soon(void *arg)
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

void event_patience(void *arg)
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

void event_signal(int signo, void *arg)
{
	(void)signo;
	stop(arg, 0);
}

/* ---- what the world says ---- */

static void check_ready(struct tomb *t)
{
	if (t->ready || !t->hello || !t->files_up || (t->tls && !t->tls_up) ||
	    !t->known || !t->db_up)
		return;
	t->ready = true;
	notify_ready(t->notify);
	log_kv(LOG_INFO_, "ready", "version", LYCH_VERSION, "name", t->opt.name, "queue",
	       queue_door_name(t->opt.queue), "boot", t->boot.s, NULL);
	handback_start(t->handback);
	event_tick_soon(t);
}

void event_hint(void *arg)
{
	struct tomb *t = arg;

	leases_hint(t->leases);
	claims_hint(t->claims);
	event_tick_soon(t);
}

void event_db_state(bool up, const struct err *why, void *arg)
{
	struct tomb *t = arg;

	t->db_up = up;
	if (up)
		log_info("the queue is up");
	else if (why)
		log_err(LOG_WARN_, "the queue is away", why);
	if (up) {
		event_hint(t);
		check_ready(t);
	}
}

void event_known(void *arg)
{
	struct tomb *t = arg;

	t->known = true;
	check_ready(t);
}

void event_unknown_yet(const struct err *why, void *arg UNUSED)
{
	log_err(LOG_WARN_, "waiting for the vessel", why);
}

/* Jobs that run are given back where that is still possible; nothing more is begun. */
void event_turned_away(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	log_err(LOG_ERROR_, "stopping, the vessel turns this tomb away", why);
	stop(t, err_exit_code(why));
}

unsigned event_free_slots(void *arg)
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
bool event_has_room(void *arg)
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

void event_asking(const struct uuid *claim_id, void *arg)
{
	struct tomb *t = arg;

	notes_claim(t->notes, claim_id);
}

void event_claimed(const struct queue_claimed *job, usec_t sent, void *arg)
{
	struct tomb *t = arg;

	runner_take(t->runner, job, sent);
	if (t->stopping)
		runner_shutdown(t->runner, t->last);
}

void event_claim_error(const struct err *err, void *arg)
{
	struct tomb *t = arg;
	usec_t now = clock_boot_usec();

	if (t->last_error && now - t->last_error < ERROR_LOG_GAP_USEC)
		return;
	t->last_error = now;
	log_err(LOG_WARN_, "claim", err);
}

void event_claims_rearm(void *arg)
{
	struct tomb *t = arg;

	check_stopped(t);
	event_tick_soon(t);
}

void event_slot(void *arg)
{
	struct tomb *t = arg;

	claims_hint(t->claims);
	event_tick_soon(t);
	check_stopped(t);
}

void event_security(const struct lease_key *key, enum queue_answer answer, void *arg)
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

void event_spawner_up(const struct spawn_hello *m, void *arg)
{
	struct tomb *t = arg;

	log_kv(LOG_INFO_, "spawner is up", "limits", m->mechanism, NULL);
	t->hello = true;
	check_ready(t);
}

void event_terminal(const struct spawn_terminal *m, int master, void *arg)
{
	struct tomb *t = arg;

	if (runner_terminal(t->runner, m, master) < 0)
		spawner_broken(t, "TERMINAL of a job that is not to have one");
}

void event_started(const struct spawn_started *m, int broker, void *arg)
{
	struct tomb *t = arg;

	if (runner_started(t->runner, m, broker) < 0)
		spawner_broken(t, "STARTED of a job that is not starting");
}

void event_refused(const struct spawn_refused *m, void *arg)
{
	struct tomb *t = arg;

	if (runner_refused(t->runner, m) < 0)
		spawner_broken(t, "REFUSED of a job that is not starting");
}

void event_denied(const struct spawn_denied *m, void *arg)
{
	struct tomb *t = arg;

	if (runner_denied(t->runner, m) < 0)
		spawner_broken(t, "DENIED of a job that does not run, or too many");
}

void event_exited(const struct spawn_exited *m, void *arg)
{
	struct tomb *t = arg;

	if (runner_exited(t->runner, m) < 0)
		spawner_broken(t, "EXITED of a job that does not run");
}

void event_spawner_gone(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	/* Every job died with it; the leases expire and the jobs run again. */
	log_err(LOG_ERROR_, "the spawner is gone", why);
	loop_stop(t->loop, err_exit_code(why) ? err_exit_code(why) : 1);
}

/* ---- the file workers ---- */

void event_files_up(void *arg)
{
	struct tomb *t = arg;

	log_info("file workers are up");
	t->files_up = true;
	check_ready(t);
}

void event_files_gone(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	/* No job could be begun, or its artifacts taken: whoever starts us begins anew. */
	log_err(LOG_ERROR_, "the file workers are gone", why);
	loop_stop(t->loop, err_exit_code(why) ? err_exit_code(why) : 1);
}

/* ---- the TLS processes ---- */

void event_tls_up(void *arg)
{
	struct tomb *t = arg;

	t->tls_up = true;
	check_ready(t);
}

void event_tls_gone(const struct err *why, void *arg)
{
	struct tomb *t = arg;

	/* Each job that may ask begins with one: whoever starts us begins anew. */
	log_err(LOG_ERROR_, "the TLS processes are gone", why);
	loop_stop(t->loop, err_exit_code(why) ? err_exit_code(why) : 1);
}

/* ---- the control socket ---- */

void event_health(struct buf *json, void *arg)
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

bool event_check_now(job_id_t job, void *arg)
{
	struct tomb *t = arg;

	if (!runner_has(t->runner, job))
		return false;
	leases_hint(t->leases);
	event_tick_soon(t);
	return true;
}
