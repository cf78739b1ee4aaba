/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The book of deaths in the vessel: its real doors, and what the last vessel was reading.
 */
#include "common/cleanup.h"
#include "vessel/api/vessel.h"
#include "vessel/audit/audit.h"
#include "vessel/broker/deaths.h"
#include "vessel/broker/dispatch/dispatch.h"

#include <fcntl.h>

#define NOTE_FILE "reading"

static struct audit_wait *before(void *env, const struct audit_event *e, queue_done *done,
				 void *arg, struct err *err)
{
	struct vessel *v = env;

	return audit_before(v->audit, e, done, arg, err);
}

static void contain(void *env, job_id_t job, const char *reason, queue_done *done,
		    void *arg)
{
	struct vessel *v = env;

	queue_contain(v->queue, job, reason, done, arg);
}

static void count(void *env)
{
	struct vessel *v = env;

	dispatch_signal(v->dispatch);
}

int deaths_open(struct vessel *v, const char *api_dir, struct err *err)
{
	const struct deaths_config cfg = {
		.loop = v->loop,
		.clock = v->clock,
		.data_fd = v->data_fd,
		.ops = {v, before, audit_forget, contain, count},
	};
	cleanup_close int dir =
		open(api_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct reading_note note;

	if (dir < 0)
		return err_sys(err, "open %s", api_dir);
	if (deaths_new(&cfg, &v->deaths, err) < 0 ||
	    reading_open(dir, NOTE_FILE, deaths_key(v->deaths), &v->reading, err) < 0)
		return -1;
	/* cleared first: who is killed just here loses one, and counts none twice */
	if (reading_get(&v->reading, &note)) {
		reading_clear(&v->reading);
		deaths_found(v->deaths, "vessel", &note);
	}
	reading_clear(&v->reading);
	return 0;
}

void deaths_close(struct vessel *v)
{
	deaths_free(v->deaths);
	v->deaths = NULL;
	reading_close(&v->reading);
}
