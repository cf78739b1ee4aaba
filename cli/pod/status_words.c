/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See status_words.h.
 */
#include "cli/pod/status_words.h"

#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <inttypes.h>

#define LINE_MAX_BYTES 16384
#define WALLS_MAX 1024
/* Below it neither a job's files nor its output find a place for long. */
#define DISK_LITTLE (256ULL << 20)
#define NAMED_WALLS 5 /* that do not hold; more of them are counted */

void status_line(const char *label, const char *text)
{
	cleanup_free char *shown = render_shown(text);
	cleanup_free char *line = xasprintf("%s: %s", label, shown);
	cleanup_free char *fit = render_fit(line, STDOUT_FILENO);

	(void)puts(fit);
}

static const struct json *child(const struct json *o, const char *key)
{
	const struct json *c = NULL;
	struct err ignored = ERR_INIT;

	if (!json_has(o, key) || json_is_null(o, key) ||
	    json_get_obj(o, key, true, &c, &ignored) < 0)
		return NULL;
	return c;
}

static const struct json *list(const struct json *o, const char *key)
{
	const struct json *arr = NULL;
	struct err ignored = ERR_INIT;

	return json_get_arr(o, key, true, WALLS_MAX, &arr, &ignored) < 0 ? NULL : arr;
}

static bool flag(const struct json *o, const char *key)
{
	struct err ignored = ERR_INIT;
	bool v = false;

	return json_get_bool(o, key, true, &v, &ignored) == 0 && v;
}

/* Of a scribe that is not there this is what it said last. */
static void alarm_anchors(const struct json *audit)
{
	const struct json *anchors = list(audit, "anchors");

	for (size_t i = 0; anchors && i < json_arr_len(anchors); i++) {
		const struct json *a = json_arr_at(anchors, i);

		if (!flag(a, "ok"))
			(void)printf("AN ANCHOR OF THE AUDIT LOG DOES NOT STAND\n"
				     "      %s  %s\n\n",
				     render_text_of(a, "name"),
				     render_text_of(a, "detail"));
	}
}

void status_alarm(const struct json *vessel)
{
	const struct json *audit = child(vessel, "audit");

	if (!audit)
		return;
	alarm_anchors(audit);
	if (flag(audit, "ok"))
		return;
	(void)printf("NO JOB IS BEGUN: the audit log is not written\n      %s  %s\n"
		     "      %s\n\n",
		     render_text_of(audit, "error_code"), render_text_of(audit, "detail"),
		     render_text_of(audit, "hint"));
}

/* ---- the lines ------------------------------------------------------------- */

static void line_database(const struct json *vessel, struct buf *b)
{
	const struct json *database = child(vessel, "database"),
			  *queue = child(vessel, "queue");

	if (database && flag(database, "up"))
		buf_addf(b, "up, PostgreSQL %s",
			 queue ? render_text_of(queue, "server") : "?");
	else
		buf_addf(b, "DOWN: %s",
			 database ? render_text_of(database, "detail") : "?");
}

static void line_anchors(const struct json *audit, struct buf *b)
{
	const struct json *anchors = audit ? list(audit, "anchors") : NULL;
	size_t n = anchors ? json_arr_len(anchors) : 0, stand = 0;

	for (size_t i = 0; i < n; i++)
		stand += flag(json_arr_at(anchors, i), "ok");
	if (n)
		buf_addf(b, "; %zu of %zu anchors stand", stand, n);
}

static void line_audit(const struct json *vessel, struct buf *b)
{
	const struct json *audit = child(vessel, "audit");

	if (!audit || !flag(audit, "ok"))
		buf_adds(b, "NOT written");
	else
		buf_addf(b, "written, %" PRIu64 " records since the scribe began",
			 render_number_of(audit, "events"));
	line_anchors(audit, b);
}

static void line_workers(const struct json *vessel, struct buf *b)
{
	const struct json *workers = list(vessel, "egress_workers");

	for (size_t i = 0; workers && i < json_arr_len(workers); i++) {
		const struct json *w = json_arr_at(workers, i);
		uint64_t restarts = render_number_of(w, "restarts");

		buf_addf(b, "%s%s %s", i ? ", " : "", render_text_of(w, "name"),
			 flag(w, "up") ? "up" : "DOWN");
		if (restarts)
			buf_addf(b, " (restarted %" PRIu64 "x)", restarts);
	}
}

static void line_classifier(const struct json *vessel, struct buf *b)
{
	const struct json *c = child(vessel, "classifier");

	if (!c)
		return;
	buf_addf(b,
		 "portal %s, %s; let pass %" PRIu64 ", refused %" PRIu64
		 ", no answer %" PRIu64,
		 render_text_of(c, "portal"),
		 flag(c, "answers") ? "asked about each ask"
				    : "DOES NOT ANSWER: asks are refused",
		 render_number_of(c, "passed"), render_number_of(c, "refused"),
		 render_number_of(c, "failed"));
}

/* What no person asked for: of each trigger that was pulled how often, and how many were contained by it. */
static void line_signals(const struct json *vessel, struct buf *b)
{
	const struct json *triggers = list(vessel, "triggers");

	for (size_t i = 0; triggers && i < json_arr_len(triggers); i++) {
		const struct json *t = json_arr_at(triggers, i);
		uint64_t pulled = render_number_of(t, "pulled"),
			 contained = render_number_of(t, "contained");

		if (!pulled)
			continue;
		buf_addf(b, "%s%s %" PRIu64, b->len ? ", " : "",
			 render_text_of(t, "trigger"), pulled);
		if (contained)
			buf_addf(b, " (%" PRIu64 " CONTAINED)", contained);
	}
	if (b->len)
		buf_adds(b, "; 'lych audit tail' names the jobs");
}

static void line_tombs(const struct json *vessel, struct buf *b)
{
	const struct json *tombs = list(vessel, "tombs");

	if (!tombs || json_arr_len(tombs) == 0)
		buf_adds(b, "NONE was seen: jobs wait");
	for (size_t i = 0; tombs && i < json_arr_len(tombs); i++) {
		const struct json *t = json_arr_at(tombs, i);

		buf_addf(b, "%s%s %s", i ? ", " : "", render_text_of(t, "name"),
			 flag(t, "refused") ? "REFUSED" : "");
		if (!flag(t, "refused"))
			buf_addf(b, "(%" PRIu64 " slots, seen %" PRIu64 " s ago)",
				 render_number_of(t, "slots"),
				 render_number_of(t, "seen_ago_s"));
	}
}

/* Those that wait or run first. */
static void line_jobs(const struct json *vessel, struct buf *b)
{
	const struct json *queue = child(vessel, "queue"),
			  *jobs = queue ? child(queue, "jobs") : NULL, *v;
	const void *at = NULL;
	const char *key;
	size_t n = 0;

	for (int open = 1; jobs && open >= 0; open--)
		for (at = NULL; json_obj_next(jobs, &at, &key, &v);) {
			enum job_state state;

			if (!job_state_from_name(key, &state) ||
			    job_state_is_final(state) == (open == 1))
				continue;
			buf_addf(b, "%s%" PRIu64 " %s", n++ ? ", " : "",
				 render_number_of(jobs, key), key);
		}
	if (!jobs)
		buf_adds(b, "not known while the database is away");
	else if (n == 0)
		buf_adds(b, "none yet");
	else if (render_number_of(queue, "oldest_waiting_s"))
		buf_addf(b, "; the oldest waits for %" PRIu64 " s",
			 render_number_of(queue, "oldest_waiting_s"));
}

static void line_store(const struct json *vessel, struct buf *b)
{
	const struct json *store = child(vessel, "store");
	char used[32], most[32], left[32];

	if (!store)
		return;
	render_size(used, render_number_of(store, "used_bytes"));
	render_size(most, render_number_of(store, "max_bytes"));
	render_size(left, render_number_of(store, "disk_free_bytes"));
	buf_addf(b, "%s of %s used; the disk %s %s left", used, most,
		 render_number_of(store, "disk_free_bytes") < DISK_LITTLE ? "HAS ONLY"
									  : "has",
		 left);
}

/* ---- walls ----------------------------------------------------------------- */

struct walls {
	size_t n, fallen;
	struct buf names; /* of those that do not hold */
};

static void count_walls(struct walls *w, const char *whose, const struct json *o)
{
	const struct json *walls = o ? list(o, "walls") : NULL;

	for (size_t i = 0; walls && i < json_arr_len(walls); i++) {
		const struct json *wall = json_arr_at(walls, i);

		w->n++;
		if (flag(wall, "held"))
			continue;
		if (w->fallen++ < NAMED_WALLS)
			buf_addf(&w->names, "%s%s of %s", w->fallen > 1 ? ", " : "",
				 render_text_of(wall, "wall"), whose);
	}
}

static void line_walls(const struct json *vessel, struct buf *b)
{
	const struct json *workers = list(vessel, "egress_workers");
	struct walls w = {0};

	buf_init(&w.names, LINE_MAX_BYTES);
	count_walls(&w, "the vessel", vessel);
	for (size_t i = 0; workers && i < json_arr_len(workers); i++)
		count_walls(&w, render_text_of(json_arr_at(workers, i), "name"),
			    json_arr_at(workers, i));
	count_walls(&w, "the scribe", child(vessel, "audit"));
	if (w.fallen)
		buf_addf(b, "%zu of %zu DO NOT HOLD: %s%s", w.fallen, w.n,
			 buf_str(&w.names), w.fallen > NAMED_WALLS ? " …" : "");
	else if (w.n)
		buf_addf(b, "all %zu of the daemons hold", w.n);
	else
		buf_adds(b, "NOT known");
	buf_done(&w.names);
}

void status_vessel(const struct json *vessel, const struct err *why, bool verbose)
{
	static const struct {
		const char *label;
		void (*write)(const struct json *vessel, struct buf *b);
	} lines[] = {
		{"database", line_database}, {"audit log", line_audit},
		{"workers", line_workers},   {"classifier", line_classifier},
		{"signals", line_signals},   {"tombs", line_tombs},
		{"jobs", line_jobs},	     {"store", line_store},
		{"walls", line_walls},
	};
	struct table t;

	if (!vessel) {
		status_line("vessel: does not answer", why->msg);
		return;
	}
	if (verbose) {
		table_init(&t, 2);
		table_tree(&t, vessel);
		table_print(&t, false);
		table_done(&t);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		cleanup_buf struct buf b = {.max = LINE_MAX_BYTES};

		lines[i].write(vessel, &b);
		if (b.len == 0 &&
		    (lines[i].write == line_classifier || lines[i].write == line_signals))
			continue; /* off, or none came */
		status_line(lines[i].label, buf_str(&b));
	}
	cleanup_free char *more =
		render_fit("'lych status -v' has all of it.", STDOUT_FILENO);

	(void)puts(more);
}
