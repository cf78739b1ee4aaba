/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What the tomb hears from its queue, its spawner, its file workers, its control socket and its
 * clock. Each is a callback, and arg is the struct tomb (tomb/tomb.h) that main.c made.
 */
#ifndef LYCH_TOMB_EVENTS_H
#define LYCH_TOMB_EVENTS_H

#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include "tomb/job/spawn.h"
#include "tomb/queue/queue.h"
#include <stdbool.h>

void event_tick(void *arg);
void event_patience(void *arg);
void event_signal(int signo, void *arg);
void event_hint(void *arg);
void event_db_state(bool up, const struct err *why, void *arg);
void event_known(void *arg);
void event_unknown_yet(const struct err *why, void *arg UNUSED);
void event_turned_away(const struct err *why, void *arg);
unsigned event_free_slots(void *arg);
bool event_has_room(void *arg);
void event_asking(const struct uuid *claim_id, void *arg);
void event_claimed(const struct queue_claimed *job, usec_t sent, void *arg);
void event_claim_error(const struct err *err, void *arg);
void event_claims_rearm(void *arg);
void event_slot(void *arg);
void event_security(const struct lease_key *key, enum queue_answer answer, void *arg);
void event_tick_soon(void *arg);
void event_spawner_up(const struct spawn_hello *m, void *arg);
void event_terminal(const struct spawn_terminal *m, int master, void *arg);
void event_started(const struct spawn_started *m, int broker, void *arg);
void event_refused(const struct spawn_refused *m, void *arg);
void event_denied(const struct spawn_denied *m, void *arg);
void event_exited(const struct spawn_exited *m, void *arg);
void event_spawner_gone(const struct err *why, void *arg);
void event_files_up(void *arg);
void event_files_gone(const struct err *why, void *arg);
void event_tls_up(void *arg);
void event_tls_gone(const struct err *why, void *arg);
void event_health(struct buf *json, void *arg);
bool event_check_now(job_id_t job, void *arg);

#endif
