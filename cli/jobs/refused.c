/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See refused.h. The log is the scribe's, but what stands in it was partly named by a job
 * (hosts, models, paths): all of it is data, and whoever shows it escapes it.
 */
#include "cli/jobs/refused.h"

#include "cli/base/audit_log.h"
#include "cli/jobs/amounts.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/crypto/planted.h"
#include "common/mem.h"
#include "common/str.h"
#include <inttypes.h>
#include <stdlib.h>

#define PLACES_TOLD 3u

static const struct json *list(const struct json *o, const char *key)
{
	const struct json *arr = NULL;
	struct err ignored = ERR_INIT;

	return json_has(o, key) && json_get_arr(o, key, true, 64, &arr, &ignored) == 0
		       ? arr
		       : NULL;
}

/* ---- one record -------------------------------------------------------------- */

static bool take_asked(struct refusal *r, const struct json *data)
{
	const char *target = render_text_of(data, "target"),
		   *origin = render_text_of(data, "origin"),
		   *model = render_text_of(data, "model");

	if (str_starts(r->event, "fetch.")) {
		r->asked = *origin ? xasprintf("fetch %s", origin) : xstrdup("fetch");
		r->target = *origin ? xasprintf("%s/", origin) : NULL;
	} else if (str_starts(r->event, "package.")) {
		r->asked = xasprintf("package %s %s", render_text_of(data, "registry"),
				     render_text_of(data, "path"));
		r->target = *render_text_of(data, "registry")
				    ? xasprintf("registry:%s",
						render_text_of(data, "registry"))
				    : NULL;
	} else if (str_starts(r->event, "ask.")) {
		r->asked = xasprintf("ask %s%s%s", *target ? target : "a model",
				     *model ? ", model " : "", model);
		r->target = str_starts(target, "portal:")
				    ? xstrdup(target + strlen("portal:"))
				    : NULL;
	}
	return r->asked != NULL;
}

/* "token in text 3 at byte 4 (40 bytes), ..., and 2 more". */
static char *found_words(const struct json *data)
{
	const struct json *arr = list(data, "found");
	uint64_t total = render_number_of(data, "found_total");
	struct buf b;
	size_t n = 0;

	buf_init(&b, 4096);
	for (; arr && n < json_arr_len(arr) && n < PLACES_TOLD; n++) {
		const struct json *f = json_arr_at(arr, n);

		buf_addf(&b,
			 "%s%s in %s %" PRIu64 " at byte %" PRIu64 " (%" PRIu64 " bytes)",
			 n ? ", " : "", render_text_of(f, "family"),
			 render_text_of(f, "in"), render_number_of(f, "nth"),
			 render_number_of(f, "offset"), render_number_of(f, "length"));
	}
	if (total > n && n)
		buf_addf(&b, ", and %" PRIu64 " more", total - n);
	return buf_take(&b, NULL);
}

static const char *thing_of(enum err_id id)
{
	switch ((int)id) {
	case ERRID_BUDGET_REQUESTS:
		return "requests";
	case ERRID_BUDGET_TOKENS:
		return "tokens";
	case ERRID_BUDGET_MONEY:
		return "money";
	case ERRID_BUDGET_BYTES:
		return "bytes";
	case ERRID_BUDGET_PACKAGES:
		return "packages";
	default:
		return NULL;
	}
}

static char *wanted_words(const struct json *data, enum err_id id)
{
	const char *thing = thing_of(id);
	const struct json *estimate = NULL;
	struct err ignored = ERR_INIT;
	char amount[AMOUNT_SIZE];

	if (!thing || !json_has(data, "estimate") ||
	    json_get_obj(data, "estimate", true, &estimate, &ignored) < 0)
		return xstrdup("");
	amount_text(amount, thing, render_number_of(estimate, thing));
	return xstrdup(amount);
}

static bool take_refusal(struct refusal *r, const struct json *data)
{
	const char *reason = render_text_of(data, "reason"),
		   *detail = render_text_of(data, "detail");

	r->group = str_ends(r->event, ".denied") ? REFUSED_DENIED : REFUSED_FAILED;
	r->code = xstrdup(render_text_of(data, "error_code"));
	r->id = err_id_from_text(r->code);
	/* the job itself hung up */
	if (!r->code[0] || (r->group == REFUSED_FAILED &&
			    (r->id == ERRID_NONE || r->id == ERRID_CORE_GENERIC)))
		return false;
	r->detail = str_starts(detail, "the reason is in") || !*detail ? xstrdup(reason)
								       : xstrdup(detail);
	/* "again in 7 s" is over, and would make each a kind of its own */
	if (r->id == ERRID_WARD_RATE)
		r->detail[strcspn(r->detail, ";")] = '\0';
	r->rule = render_number_of(data, "rule");
	r->line = render_number_of(data, "line");
	r->found = found_words(data);
	r->wanted = wanted_words(data, r->id);
	return take_asked(r, data);
}

static bool is_replaced(const struct json *data)
{
	struct err ignored = ERR_INIT;
	bool v = false;

	return json_get_bool(data, "replaced", true, &v, &ignored) == 0 && v;
}

/* Signals for a person, and for containment. */
static bool take_signal(struct refusal *r, const struct json *data)
{
	r->group = REFUSED_SIGNAL;
	if (str_eq(r->event, "detection.canary") && json_has(data, "planted"))
		r->asked = xasprintf("what was planted in its environment (the canary "
				     "" PLANTED_VARIABLE ") was in a request to %s%s",
				     render_text_of(data, "target"),
				     is_replaced(data) ? ", where it was replaced" : "");
	else if (str_eq(r->event, "detection.canary") && is_replaced(data))
		r->asked = xasprintf("the key of its own broker (the canary) was in a "
				     "request to %s, where it was replaced",
				     render_text_of(data, "target"));
	else if (str_eq(r->event, "detection.canary"))
		r->asked = xasprintf("it tried to send the key of its own broker (the "
				     "canary) to %s, which no honest program does",
				     render_text_of(data, "target"));
	else if (str_eq(r->event, "detection.denials"))
		r->asked = xasprintf("%" PRIu64 " refusals within %" PRIu64 " s",
				     render_number_of(data, "denials"),
				     render_number_of(data, "within_seconds"));
	else if (str_eq(r->event, "detection.foreign_token"))
		r->asked = xasprintf("%s spoke for it by a token of %s",
				     render_text_of(data, "tomb"),
				     render_text_of(data, "token_of"));
	else if (str_eq(r->event, "detection.odd_name"))
		r->asked = xasprintf("a name below %s that looks made up: %s",
				     render_text_of(data, "below"),
				     render_text_of(data, "host"));
	else if (str_eq(r->event, "detection.daemon_died") ||
		 str_eq(r->event, "daemon.died"))
		r->asked = xasprintf("%s died while it read the %s of this job",
				     render_text_of(data, "daemon"),
				     render_text_of(data, "read"));
	return r->asked != NULL;
}

static void refusal_done(struct refusal *r)
{
	free(r->event);
	free(r->asked);
	free(r->target);
	free(r->code);
	free(r->detail);
	free(r->found);
	free(r->wanted);
}

static char *or_empty(char *s)
{
	return s ? s : xstrdup("");
}

static bool is_same(const struct refusal *a, const struct refusal *b)
{
	return str_eq(a->event, b->event) && str_eq(a->asked, b->asked) &&
	       str_eq(a->code, b->code) && str_eq(a->detail, b->detail) &&
	       a->rule == b->rule && a->line == b->line;
}

static void add(struct refused *all, struct refusal *r)
{
	for (size_t i = 0; i < all->n; i++)
		if (is_same(&all->list[i], r)) {
			all->list[i].count++;
			refusal_done(r);
			return;
		}
	if (all->n == REFUSED_KINDS_MAX) {
		all->dropped++;
		refusal_done(r);
		return;
	}
	all->list = xreallocarray(all->list, all->n + 1, sizeof(*all->list));
	all->list[all->n++] = *r;
}

static int on_record(const char *event, const struct json *record, void *arg,
		     struct err *err)
{
	struct refused *all = arg;
	struct refusal r = {.count = 1};
	const struct json *data = NULL;
	struct err ignored = ERR_INIT;
	bool is_end = str_ends(event, ".denied") || str_ends(event, ".failed");
	bool is_one;

	(void)err;
	if (json_get_obj(record, "unmapped", true, &data, &ignored) < 0)
		return 0;
	if (str_eq(event, "broker.refusals")) {
		all->not_told += render_number_of(data, "not_told_one_by_one");
		return 0;
	}
	r.event = xstrdup(event);
	is_one = is_end ? take_refusal(&r, data) : take_signal(&r, data);
	r.code = or_empty(r.code);
	r.detail = or_empty(r.detail);
	r.found = or_empty(r.found);
	r.wanted = or_empty(r.wanted);
	if (is_one)
		add(all, &r);
	else
		refusal_done(&r);
	return 0;
}

void refused_read(const struct paths *p, job_id_t job, const char *from, const char *to,
		  struct refused *ret)
{
	cleanup_close int dirfd = -1;
	char number_text[32];
	struct audit_log_query q = {.job = number_text,
				    .from = from,
				    .to = to,
				    .on_record = on_record,
				    .arg = ret};

	*ret = (struct refused){.unread = ERR_INIT};
	(void)snprintf(number_text, sizeof(number_text), "%" PRId64, job);
	if (audit_log_open(p, &dirfd, &ret->unread) == 0)
		(void)!audit_log_read(dirfd, &q, &ret->unread);
}

void refused_add_result(struct refused *all, const struct json *result)
{
	const struct json *arr = result ? list(result, "broker_refused") : NULL;

	for (size_t i = 0; arr && i < json_arr_len(arr); i++) {
		const struct json *o = json_arr_at(arr, i);
		struct refusal r = {
			.group = REFUSED_DENIED,
			.event = xstrdup("broker.refused"),
			.asked = xstrdup("a request"),
			.code = xstrdup(render_text_of(o, "error_code")),
			.detail = xstrdup("by the tomb; the vessel did not hear of it"),
			.found = xstrdup(""),
			.wanted = xstrdup(""),
			.count = render_number_of(o, "count"),
		};

		r.id = err_id_from_text(r.code);
		if (r.code[0] && r.count > 0)
			add(all, &r);
		else
			refusal_done(&r);
	}
}

void refused_done(struct refused *r)
{
	for (size_t i = 0; i < r->n; i++)
		refusal_done(&r->list[i]);
	free(r->list);
	*r = (struct refused){.unread = ERR_INIT};
}

/* ---- in words ---------------------------------------------------------------- */

static const struct {
	enum err_id id;
	const char *command, *what_for;
} advice[] = {
#define X(id, command, what_for) {ERRID_##id, command, what_for},
#include "cli/jobs/why_advice.def"
#undef X
};

/* What a shell takes as one word as it stands. */
static bool is_plain(const char *s)
{
	return *s && s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789_./:,=+@%-")] == '\0';
}

static void put_command(const char *command, const char *target, job_id_t job,
			struct buf *out)
{
	for (const char *at = command; *at;) {
		if (str_starts(at, "{job}")) {
			buf_addf(out, "%" PRId64, job);
			at += strlen("{job}");
		} else if (str_starts(at, "{target}")) {
			buf_adds(out, target && is_plain(target) ? target : "URL");
			at += strlen("{target}");
		} else {
			buf_addc(out, *at++);
		}
	}
}

void refused_advice(enum err_id id, const char *target, job_id_t job, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++) {
		if (id == ERRID_NONE || advice[i].id != id)
			continue;
		buf_addc(out, '\'');
		put_command(advice[i].command, target, job, out);
		buf_addf(out, "' %s", advice[i].what_for);
		return;
	}
	if (id != ERRID_NONE)
		buf_adds(out, err_info(id)->hint);
}

void refused_sentence(const struct refusal *r, struct buf *out)
{
	buf_adds(out, r->asked);
	if (r->group != REFUSED_SIGNAL)
		buf_addf(out, "%s: %s",
			 r->group == REFUSED_DENIED ? " refused" : " failed",
			 r->id != ERRID_NONE ? err_info(r->id)->title : r->code);
	if (r->detail[0])
		buf_addf(out, " (%s)", r->detail);
	/* the rule that allowed it has no part in what a later step refused */
	if (r->line && (r->id == ERRID_WARD_DENIED || r->id == ERRID_WARD_RATE))
		buf_addf(out, ", line %" PRIu64 " of codex.yaml", r->line);
	if (r->found[0])
		buf_addf(out, "; found: %s", r->found);
	if (r->wanted[0])
		buf_addf(out, "; it wanted %s", r->wanted);
	if (r->count > 1)
		buf_addf(out, ", %" PRIu64 " times", r->count);
}

static void put_or_null(struct jsonw *w, const char *key, const char *s)
{
	jsonw_kstr(w, key, s && s[0] ? s : NULL);
}

void refused_json(const struct refusal *r, job_id_t job, struct jsonw *w)
{
	cleanup_buf struct buf words = {0};

	buf_init(&words, 4096);
	refused_advice(r->id, r->target, job, &words);
	jsonw_obj(w);
	jsonw_kstr(w, "event", r->event);
	jsonw_kstr(w, "asked", r->asked);
	put_or_null(w, "error_code", r->code);
	put_or_null(w, "detail", r->detail);
	jsonw_ku64(w, "rule", r->rule);
	jsonw_ku64(w, "line", r->line);
	put_or_null(w, "found", r->found);
	put_or_null(w, "wanted", r->wanted);
	jsonw_ku64(w, "count", r->count);
	put_or_null(w, "advice", buf_str(&words));
	jsonw_obj_end(w);
}
