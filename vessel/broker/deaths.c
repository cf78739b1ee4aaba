/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See deaths.h.
 */
#include "vessel/broker/deaths.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/egress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define RETRY_USEC USEC_PER_SEC
#define BOOK_MAX_BYTES ((size_t)32 << 10)
#define TIMES_MAX 1000000u
#define REASON "a daemon died twice while it read what the job sent or was sent"

struct death {
	struct reading_note note; /* the last one */
	char daemon[EGRESS_NAME_SIZE + 8];
	uint64_t times, told; /* told: how many of these the log knows of */
	bool ended;	      /* the job */
};

struct deaths {
	struct deaths_config cfg;
	uint64_t key;
	struct death death[DEATHS_MAX]; /* the oldest first */
	size_t n;
	struct loop_timer *work;
	struct audit_wait *wait;
	struct contained *containing;
	job_id_t telling; /* whom wait is about, and how often */
	uint64_t telling_times;
	bool save_failed; /* logged once, until it works again */
};

/* The answer of a database call, which cannot be taken back. */
struct contained {
	struct deaths *d; /* NULL: it is gone */
	job_id_t job;
};

/* ---- the book ---- */

static struct death *find(struct deaths *d, job_id_t job)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->death[i].note.job == job)
			return &d->death[i];
	return NULL;
}

static bool is_enough(const struct death *x)
{
	return x->times >= DEATHS_ENOUGH;
}

static bool is_done(const struct death *x)
{
	return x->told == x->times && (x->ended || !is_enough(x));
}

static int read_death(const struct json *j, struct death *ret, struct err *err)
{
	static const char *const keys[] = {"job",   "epoch", "daemon", "read",
					   "times", "told",  "ended"};
	const char *daemon = "", *what = "";

	if (json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_i64(j, "job", true, 1, INT64_MAX, &ret->note.job, err) < 0 ||
	    json_get_i64(j, "epoch", true, 1, INT64_MAX, &ret->note.epoch, err) < 0 ||
	    json_get_str(j, "daemon", true, sizeof(ret->daemon) - 1, &daemon, err) < 0 ||
	    json_get_str(j, "read", true, 16, &what, err) < 0 ||
	    json_get_u64(j, "times", true, 1, TIMES_MAX, &ret->times, err) < 0 ||
	    json_get_u64(j, "told", true, 0, ret->times, &ret->told, err) < 0 ||
	    json_get_bool(j, "ended", true, &ret->ended, err) < 0)
		return -1;
	if (!reading_from_word(what, &ret->note.what))
		return err_set(err, ERR_INVALID, "read: %s", what);
	return str_copy(ret->daemon, sizeof(ret->daemon), daemon);
}

static int read_book(struct deaths *d, const char *text, size_t len, struct err *err)
{
	static const char *const keys[] = {"key", "deaths"};
	cleanup_json struct json *j = NULL;
	const struct json *list = NULL;
	uint64_t key = 0;

	if (json_parse(text, len, 4, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, "key", true, 1, INT64_MAX, &key, err) < 0 ||
	    json_get_arr(j, "deaths", true, DEATHS_MAX, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(list); i++) {
		struct death x = {0};

		if (read_death(json_arr_at(list, i), &x, err) < 0 ||
		    find(d, x.note.job)) {
			d->n = 0;
			return -1;
		}
		d->death[d->n++] = x;
	}
	d->key = key;
	return 0;
}

static void write_book(const struct deaths *d, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "key", d->key);
	jsonw_key(&w, "deaths");
	jsonw_arr(&w);
	for (size_t i = 0; i < d->n; i++) {
		const struct death *x = &d->death[i];

		jsonw_obj(&w);
		jsonw_ki64(&w, "job", x->note.job);
		jsonw_ki64(&w, "epoch", x->note.epoch);
		jsonw_kstr(&w, "daemon", x->daemon);
		jsonw_kstr(&w, "read", reading_word(x->note.what));
		jsonw_ku64(&w, "times", x->times);
		jsonw_ku64(&w, "told", x->told);
		jsonw_kbool(&w, "ended", x->ended);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
}

/* A full disk is no reason to forget: memory has it, and the next change tries again. */
static void save(struct deaths *d)
{
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	int r;

	buf_init(&out, BOOK_MAX_BYTES);
	write_book(d, &out);
	r = buf_ok(&out) ? fs_write_atomic(d->cfg.data_fd, DEATHS_FILE, out.data, out.len,
					   0600, &err)
			 : err_set(&err, ERR_INTERNAL, "it does not fit");
	if (r < 0 && !d->save_failed)
		log_err(LOG_ERROR_, "the book of deaths is not written", &err);
	d->save_failed = r < 0;
}

static void new_key(struct deaths *d)
{
	random_bytes(&d->key, sizeof(d->key));
	d->key = (d->key & INT64_MAX) | 1;
}

static int load(struct deaths *d, struct err *err)
{
	cleanup_free char *text = NULL;
	struct err why = ERR_INIT;
	struct stat st;
	size_t len;

	if (fstatat(d->cfg.data_fd, DEATHS_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (fs_read_file(d->cfg.data_fd, DEATHS_FILE, BOOK_MAX_BYTES, &text, &len,
				 err) < 0)
			return err_wrap(err, "%s", DEATHS_FILE);
		if (read_book(d, text, len, &why) == 0)
			return 0;
		log_err(LOG_WARN_, "the book of deaths is damaged, and begun anew", &why);
	}
	new_key(d);
	save(d);
	return 0;
}

/* ---- what is to be done: first the log, then the job ---- */

static void told(const struct err *err, void *arg)
{
	struct deaths *d = arg;
	struct death *x = find(d, d->telling);

	d->wait = NULL;
	if (err || !x) {
		loop_timer_arm(d->work, RETRY_USEC);
		return;
	}
	if (d->telling_times >= DEATHS_ENOUGH && x->told < DEATHS_ENOUGH)
		d->cfg.ops.signal(d->cfg.ops.env);
	x->told = d->telling_times;
	save(d);
	loop_timer_arm(d->work, 0);
}

static void tell(struct deaths *d, const struct death *x)
{
	const struct clock_ops *clock = d->cfg.clock;
	struct err err = ERR_INIT;
	cleanup_buf struct buf data;
	struct audit_event e = {
		.name = is_enough(x) ? "detection.daemon_died" : "daemon.died",
		.time_ms = clock->wall_usec(clock->ctx) / USEC_PER_MSEC,
		.actor = "lych-vessel",
		.job = x->note.job,
		.epoch = x->note.epoch,
	};
	struct jsonw w;

	buf_init(&data, AUDIT_DATA_MAX);
	jsonw_init(&w, &data);
	jsonw_obj(&w);
	jsonw_kstr(&w, "daemon", x->daemon);
	jsonw_kstr(&w, "read", reading_word(x->note.what));
	jsonw_ku64(&w, "times", x->times);
	jsonw_kbool(&w, "ends_job", is_enough(x));
	jsonw_obj_end(&w);
	e.data = buf_str(&data);
	e.data_len = data.len;
	d->telling = x->note.job;
	d->telling_times = x->times;
	d->wait = d->cfg.ops.before(d->cfg.ops.env, &e, told, d, &err);
	if (!d->wait)
		loop_timer_arm(d->work, RETRY_USEC);
}

static void contained(const struct err *err, void *arg)
{
	cleanup_free struct contained *c = arg;
	struct deaths *d = c->d;
	struct death *x = d ? find(d, c->job) : NULL;

	if (!d)
		return;
	d->containing = NULL;
	if (!err && x) {
		x->ended = true;
		save(d);
	}
	loop_timer_arm(d->work, err ? RETRY_USEC : 0);
}

static void contain(struct deaths *d, const struct death *x)
{
	struct contained *c = xnew(struct contained);

	c->d = d;
	c->job = x->note.job;
	d->containing = c;
	d->cfg.ops.contain(d->cfg.ops.env, c->job, REASON, contained, c);
}

static void on_work(void *arg)
{
	struct deaths *d = arg;

	if (d->wait || d->containing)
		return;
	for (size_t i = 0; i < d->n; i++) {
		const struct death *x = &d->death[i];

		if (x->told < x->times) {
			tell(d, x);
			return;
		}
		if (is_enough(x) && !x->ended) {
			contain(d, x);
			return;
		}
	}
}

/* ---- what was found ---- */

static struct death *add(struct deaths *d, job_id_t job)
{
	struct death *x = find(d, job);
	size_t out = 0;

	if (x)
		return x;
	if (d->n == DEATHS_MAX) {
		while (out < d->n - 1 && !is_done(&d->death[out]))
			out++;
		if (!is_done(&d->death[out]))
			out = 0;
		memmove(&d->death[out], &d->death[out + 1],
			(d->n - out - 1) * sizeof(*x));
		d->n--;
	}
	x = &d->death[d->n++];
	*x = (struct death){0};
	return x;
}

void deaths_found(struct deaths *d, const char *daemon, const struct reading_note *note)
{
	struct death *x = add(d, note->job);
	char id[24];

	x->note = *note;
	if (str_copy(x->daemon, sizeof(x->daemon), daemon) < 0)
		x->daemon[0] = '\0';
	if (x->times < TIMES_MAX)
		x->times++;
	/* again after it was ended: nothing of it should run, so it is looked to once more */
	x->ended = false;
	(void)snprintf(id, sizeof(id), "%" PRId64, note->job);
	log_kv(LOG_WARN_, "a daemon died while it read what is a job's", "daemon", daemon,
	       "job", id, "read", reading_word(note->what), NULL);
	save(d);
	loop_timer_arm(d->work, 0);
}

void deaths_hint(struct deaths *d)
{
	if (d && !d->wait && !d->containing)
		loop_timer_arm(d->work, 0);
}

uint64_t deaths_key(const struct deaths *d)
{
	return d->key;
}

int deaths_new(const struct deaths_config *cfg, struct deaths **ret, struct err *err)
{
	struct deaths *d = xnew(struct deaths);

	d->cfg = *cfg;
	if (load(d, err) < 0) {
		free(d);
		return -1;
	}
	d->work = loop_timer_new(cfg->loop, on_work, d);
	loop_timer_arm(d->work, 0);
	*ret = d;
	return 0;
}

void deaths_free(struct deaths *d)
{
	if (!d)
		return;
	if (d->wait)
		d->cfg.ops.forget(d->wait);
	if (d->containing)
		d->containing->d = NULL;
	loop_timer_free(d->work);
	free(d);
}
