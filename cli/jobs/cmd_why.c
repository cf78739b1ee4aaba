/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych why: how a job ended and why (why.h), what its walls refused it, and what was refused
 * to it when it asked its broker (refused.h); for people and for programs.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/jobs/amounts.h"
#include "cli/jobs/last_job.h"
#include "cli/jobs/why.h"
#include "cli/jobs/why_proposals.h"
#include "cli/ui/denials.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "cli/ui/spark.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto/denied.h"
#include "common/str.h"

#include <argp.h>
#include <inttypes.h>

#define JSON_MAX_BYTES ((size_t)1 << 20)
#define FILES_TOLD 10u
#define LIKE_TOLD 3u /* more kinds of one call are one line */

/* ---- for people ------------------------------------------------------------- */

static size_t count_walls(const struct why *y, bool absent)
{
	size_t n = 0;

	for (size_t i = 0; i < y->n_denied; i++)
		n += (y->denied[i].wall == SPAWN_WALL_ABSENT) == absent;
	return n;
}

/* Of one call with one answer: 57 files that it tried are one line, not 57. */
static bool is_like(const struct spawn_denied *a, const struct spawn_denied *b)
{
	return a->wall == b->wall && a->act == b->act && a->sys == b->sys &&
	       str_eq(a->call, b->call);
}

static bool is_first_of_its_like(const struct why *y, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_like(&y->denied[i], &y->denied[at]))
			return false;
	return true;
}

/* Up to LIKE_TOLD lines each; of more the first, and the number of the others. */
static void print_like(const struct why *y, size_t at)
{
	uint64_t kinds = 0, times = 0;

	for (size_t i = at; i < y->n_denied; i++)
		if (is_like(&y->denied[i], &y->denied[at])) {
			kinds++;
			times += y->denied[i].count;
		}
	for (size_t i = at; i < y->n_denied; i++)
		if (is_like(&y->denied[i], &y->denied[at]) &&
		    (i == at || kinds <= LIKE_TOLD)) {
			cleanup_buf struct buf b = {0};

			buf_init(&b, WHY_WORDS_MAX);
			denied_sentence(&y->denied[i], &b);
			(void)printf("  %s", buf_str(&b));
			if (kinds > LIKE_TOLD)
				(void)printf("; and %" PRIu64
					     " others by the same call, %" PRIu64
					     " times in all ('lych show' has each)",
					     kinds - 1, times);
			(void)putchar('\n');
		}
}

static void print_group(const struct why *y, uint32_t wall)
{
	for (size_t i = 0; i < y->n_denied; i++)
		if (y->denied[i].wall == wall && is_first_of_its_like(y, i))
			print_like(y, i);
}

static const char unexplained[] = "The job ran without --explain: calls that no job may "
				  "make are recorded, files and "
				  "connections that nothing grants are not. 'lych run "
				  "--explain' records those too.";

static const char explained[] =
	"What was not copied in does not exist inside; looking for it is no refusal.";

static const char grants[] =
	"The options named are those of lych-sandbox; to 'lych run' a file is granted by "
	"copying it in with --file or --dir.";

static void print_denials(const struct why *y)
{
	size_t refused = count_walls(y, false), absent = count_walls(y, true);

	if (!y->final || !y->ran)
		return;
	if (refused == 0)
		(void)puts("No wall refused anything that is recorded.");
	else
		(void)printf("Refused by its walls (%zu):\n", refused);
	for (uint32_t w = 1; w < SPAWN_WALL_MAX_; w++)
		if (w != SPAWN_WALL_ABSENT)
			print_group(y, w);
	if (absent) {
		(void)printf("Not shown inside, which is absence and no refusal (%zu):\n",
			     absent);
		print_group(y, SPAWN_WALL_ABSENT);
	}
	if (y->dropped)
		(void)printf("  and %" PRIu64 " more kinds that were only counted\n",
			     y->dropped);
	if (refused &&
	    (y->end.fail_class == FAIL_EXIT || y->end.fail_class == FAIL_CRASH) &&
	    y->end.state == JOB_FAILED)
		(void)puts("Whether one of these made it fail, only its own output can "
			   "tell: 'lych logs'.");
	for (size_t i = 0; i < y->n_denied; i++)
		if (y->denied[i].grant[0]) {
			(void)puts(grants);
			break;
		}
	(void)puts(y->explain ? explained : unexplained);
}

static void print_line(const char *label, const struct buf *words)
{
	cleanup_buf struct buf b = {0};

	if (!words->len)
		return;
	buf_init(&b, WHY_WORDS_MAX * 8);
	render_escape(&b, words->data, words->len, 0);
	(void)printf("%s%s%s\n", label, buf_str(&b), b.data[b.len - 1] == '.' ? "" : ".");
}

static void print_escaped(const char *indent, const struct buf *words)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, WHY_WORDS_MAX * 8);
	render_escape(&b, words->data ? words->data : "", words->len, 0);
	(void)printf("%s%s\n", indent, buf_str(&b));
}

/* ---- budgets ------------------------------------------------------------------- */

/* Could it ask anything at all? */
static bool may_ask(const struct why *y)
{
	const struct json *deps = NULL;
	struct err ignored = ERR_INIT;

	if (!y->spec)
		return false;
	if (json_has(y->spec, "deps") &&
	    json_get_obj(y->spec, "deps", true, &deps, &ignored) == 0)
		return true;
	return *render_text_of(y->spec, "egress") &&
	       !str_eq(render_text_of(y->spec, "egress"), "none");
}

static const struct {
	enum err_id id;
	const char *thing;
} budgets[] = {
	{ERRID_BUDGET_REQUESTS, "requests"}, {ERRID_BUDGET_TOKENS, "tokens"},
	{ERRID_BUDGET_MONEY, "money"},	     {ERRID_BUDGET_BYTES, "bytes"},
	{ERRID_BUDGET_DENIALS, "denials"},   {ERRID_BUDGET_PACKAGES, "packages"},
};

static bool was_short(const struct refused *all, enum err_id id)
{
	for (size_t i = 0; i < all->n; i++)
		if (id == ERRID_NONE ? all->list[i].id >= ERRID_BUDGET_REQUESTS &&
					       all->list[i].id <= ERRID_BUDGET_PACKAGES
				     : all->list[i].id == id)
			return true;
	return false;
}

/* "tokens: job 1 990 of 1000, day 990 of 5000": of what was short only. */
static void print_book(const struct json *books, const char *thing)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, WHY_WORDS_MAX);
	buf_addf(&b, "%s: ", thing);
	for (size_t i = 0; i < json_arr_len(books); i++) {
		const struct json *book = json_arr_at(books, i);
		cleanup_free char *amount = NULL;
		struct err ignored = ERR_INIT;

		if (amount_of_book(book, thing, &amount, &ignored) < 0)
			continue;
		buf_addf(&b, "%s%s%s%s %s", i ? ", " : "", render_text_of(book, "scope"),
			 *render_text_of(book, "key") ? " " : "",
			 render_text_of(book, "key"), amount);
	}
	print_escaped("  ", &b);
}

static void print_books(const struct json *budget, const struct refused *all)
{
	const struct json *books = NULL;
	struct err ignored = ERR_INIT;

	if (json_get_arr(budget, "books", true, 4096, &books, &ignored) < 0 ||
	    json_arr_len(books) == 0)
		return;
	(void)puts("Used by now, of the limits in codex.yaml:");
	for (size_t i = 0; i < ARRAY_SIZE(budgets); i++)
		if (was_short(all, budgets[i].id))
			print_book(books, budgets[i].thing);
}

/* What was used up when a budget was short; nothing when the vessel does not say. */
static struct json *ask_budget(struct client *c, const struct why *y)
{
	char target[64];
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = JOB_GET_MSEC};
	struct err ignored = ERR_INIT;
	struct json *j = NULL;

	(void)snprintf(target, sizeof(target), "/v1/budget?job=%" PRId64, y->id);
	return was_short(&y->refused, ERRID_NONE) &&
			       client_json(c, &rq, &j, NULL, &ignored) == 0
		       ? j
		       : NULL;
}

/* ---- what its broker refused -------------------------------------------------- */

static void print_refusal(const struct refusal *r, job_id_t id)
{
	cleanup_buf struct buf words = {0}, advice = {0};

	buf_init(&words, WHY_WORDS_MAX);
	buf_init(&advice, WHY_WORDS_MAX);
	refused_sentence(r, &words);
	print_escaped("  ", &words);
	if (r->group == REFUSED_SIGNAL)
		return;
	buf_addf(&advice, "%s  ", r->code);
	refused_advice(r->id, r->target, id, &advice);
	print_escaped("      ", &advice);
}

static void print_refused(const struct why *y, const struct json *budget)
{
	static const char *const heads[REFUSED_GROUP_MAX_] = {
		[REFUSED_DENIED] = "Refused to what it asked of its broker",
		[REFUSED_FAILED] = "Allowed by its broker, and failed",
		[REFUSED_SIGNAL] = "Signals that its requests gave",
	};
	const struct refused *all = &y->refused;

	for (unsigned g = 0; g < REFUSED_GROUP_MAX_; g++) {
		size_t n = 0;

		for (size_t i = 0; i < all->n; i++)
			n += all->list[i].group == g;
		if (n)
			(void)printf("%s (%zu):\n", heads[g], n);
		for (size_t i = 0; i < all->n; i++)
			if (all->list[i].group == g)
				print_refusal(&all->list[i], y->id);
	}
	if (all->dropped + all->not_told)
		(void)printf("  and %" PRIu64 " more of which only the number is known\n",
			     all->dropped + all->not_told);
	if (budget)
		print_books(budget, all);
	if (err_is_set(&all->unread) && may_ask(y)) {
		cleanup_buf struct buf b = {0};

		buf_init(&b, WHY_WORDS_MAX);
		buf_addf(&b,
			 "What its broker refused is not known: the audit log cannot be "
			 "read (%s).",
			 all->unread.msg);
		print_escaped("", &b);
	}
}

/* ---- what was not delivered ---------------------------------------------------- */

static void print_files(const struct why *y, const char *key, const char *head,
			const char *foot)
{
	const struct json *arr = NULL;
	struct err ignored = ERR_INIT;
	size_t n;

	if (!y->result || !json_has(y->result, key) ||
	    json_get_arr(y->result, key, true, 4096, &arr, &ignored) < 0)
		return;
	n = json_arr_len(arr);
	if (n == 0)
		return;
	(void)printf("%s (%zu):\n", head, n);
	for (size_t i = 0; i < n && i < FILES_TOLD; i++) {
		cleanup_buf struct buf b = {0};

		buf_init(&b, WHY_WORDS_MAX * 2);
		buf_addf(&b, "%s: %s", render_text_of(json_arr_at(arr, i), "path"),
			 render_text_of(json_arr_at(arr, i), "why"));
		print_escaped("  ", &b);
	}
	if (n > FILES_TOLD)
		(void)printf("  and %zu more ('lych show' has each)\n", n - FILES_TOLD);
	(void)puts(foot);
}

static void print_not_delivered(const struct why *y)
{
	print_files(y, "quarantined",
		    "Quarantined, for a program of yours would obey them",
		    "They lie below tomb/quarantine in the data directory; "
		    "docs/QUARANTINE.md.");
	print_files(y, "refused_artifacts", "No artifacts, whatever the patterns say",
		    "Only regular files with one name are taken; docs/QUARANTINE.md.");
}

static void put_amount(struct buf *b, bool is_bytes, uint64_t v)
{
	char size[32];

	if (is_bytes)
		render_size(size, v);
	else
		(void)snprintf(size, sizeof(size), "%" PRIu64, v);
	buf_adds(b, size);
}

/* "Memory in its last 9 looks: ▁▂▄█ (3.1 MiB to 70.0 MiB, the limit is 64.0 MiB)". */
static void print_curve(const struct why *y)
{
	bool is_memory = y->limit && str_eq(y->limit->key, "memory_bytes");
	const uint64_t *v = is_memory ? y->memory : y->processes;
	cleanup_buf struct buf b = {0};
	uint64_t least, most;

	if (y->n_samples == 0 ||
	    (!is_memory && !(y->limit && str_eq(y->limit->key, "processes"))))
		return;
	least = most = v[0];
	for (size_t i = 1; i < y->n_samples; i++) {
		least = v[i] < least ? v[i] : least;
		most = v[i] > most ? v[i] : most;
	}
	buf_init(&b, WHY_WORDS_MAX);
	buf_addf(&b, "%s in the last %zu looks: ", is_memory ? "Memory" : "Processes",
		 y->n_samples);
	spark_line(v, y->n_samples, y->limit_value > most ? y->limit_value : most, &b);
	buf_adds(&b, " (");
	put_amount(&b, is_memory, least);
	buf_adds(&b, " to ");
	put_amount(&b, is_memory, most);
	buf_adds(&b, ", the limit is ");
	put_amount(&b, is_memory, y->limit_value);
	(void)printf("%s)\n", buf_str(&b));
}

/* What the vessel was asked for beside the job's record; NULL: it did not say. */
struct beside {
	struct json *budget, *proposals;
};

static void print_text(const struct why *y, job_id_t id, const struct beside *b)
{
	cleanup_free char *head =
		xasprintf("job %" PRId64 " %s: ", id, job_state_name(y->end.state));

	print_line(head, &y->reason);
	print_curve(y);
	print_line("What to do: ", &y->advice);
	print_denials(y);
	print_refused(y, b->budget);
	why_proposals_print(b->proposals, id, y->final);
	print_not_delivered(y);
}

/* ---- for programs ----------------------------------------------------------- */

static void put_buf(struct jsonw *w, const char *key, const struct buf *b)
{
	jsonw_key(w, key);
	if (b->len)
		jsonw_strn(w, b->data, b->len);
	else
		jsonw_null(w);
}

static void print_json_curve(const struct why *y, struct jsonw *w)
{
	jsonw_key(w, "curve");
	jsonw_arr(w);
	for (size_t i = 0; i < y->n_samples; i++) {
		jsonw_obj(w);
		jsonw_ku64(w, "memory_bytes", y->memory[i]);
		jsonw_ku64(w, "processes", y->processes[i]);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void print_json_refused(const struct why *y, job_id_t id, struct jsonw *w)
{
	jsonw_key(w, "refused");
	jsonw_arr(w);
	for (size_t i = 0; i < y->refused.n; i++)
		refused_json(&y->refused.list[i], id, w);
	jsonw_arr_end(w);
	jsonw_ku64(w, "refused_dropped", y->refused.dropped + y->refused.not_told);
	jsonw_kstr(w, "audit_log",
		   err_is_set(&y->refused.unread) ? y->refused.unread.msg : NULL);
}

static void print_json_denial(const struct spawn_denied *d, struct jsonw *w)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, WHY_WORDS_MAX);
	denied_sentence(d, &b);
	jsonw_obj(w);
	jsonw_kstr(w, "sentence", buf_str(&b));
	jsonw_key(w, "record");
	denied_json(d, w);
	jsonw_obj_end(w);
}

static int print_json(const struct why *y, job_id_t id, const struct beside *b,
		      struct err *err)
{
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	buf_init(&out, JSON_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ki64(&w, "id", id);
	jsonw_kstr(&w, "state", job_state_name(y->end.state));
	jsonw_kstr(&w, "class", fail_class_name(y->end.fail_class));
	jsonw_kstr(&w, "end", y->how[0] ? y->how : NULL);
	put_buf(&w, "reason", &y->reason);
	put_buf(&w, "advice", &y->advice);
	jsonw_key(&w, "limit");
	if (y->limit) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "name", y->limit->key);
		jsonw_ku64(&w, "value", y->limit_value);
		jsonw_kstr(&w, "option", y->limit->option);
		jsonw_obj_end(&w);
	} else {
		jsonw_null(&w);
	}
	print_json_curve(y, &w);
	jsonw_kbool(&w, "explained", y->explain);
	jsonw_key(&w, "denials");
	jsonw_arr(&w);
	for (size_t i = 0; i < y->n_denied; i++)
		print_json_denial(&y->denied[i], &w);
	jsonw_arr_end(&w);
	jsonw_ku64(&w, "denials_dropped", y->dropped);
	print_json_refused(y, id, &w);
	why_proposals_json(b->proposals, id, &w);
	jsonw_obj_end(&w);
	if (!buf_ok(&out))
		return err_set_id(err, ERRID_CORE_TOO_LARGE, "the answer");
	(void)puts(buf_str(&out));
	return 0;
}

/* ---- the command ------------------------------------------------------------ */

struct why_args {
	bool json;
	job_id_t id;
};

static error_t why_parse(int key, char *arg, struct argp_state *state)
{
	struct why_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_job(&a->id, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A record has the time at which the scribe wrote it: one that was busy, or away, did that
 * after the job's end. "": it has not ended. */
#define LOG_LATE_USEC (24 * 3600 * USEC_PER_SEC)

static void log_end(const char *finished_at, char to[RFC3339_SIZE])
{
	usec_t end;

	to[0] = '\0';
	if (when_parse(finished_at, &end))
		clock_rfc3339(end + LOG_LATE_USEC, to);
}

static int why(struct why_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *job = NULL;
	struct beside b = {0};
	char to[RFC3339_SIZE];
	struct why y;
	int r;

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0 ||
	    last_job_take(c, false, &a->id, err) < 0 ||
	    job_get(c, a->id, JOB_GET_MSEC, &job, err) < 0)
		return -1;
	r = why_read(&y, a->id, job, err);
	if (r == 0) {
		log_end(render_text_of(job, "finished_at"), to);
		refused_read(&p, a->id, render_text_of(job, "created_at"), to,
			     &y.refused);
		refused_add_result(&y.refused, y.result);
		b.budget = ask_budget(c, &y);
		b.proposals = why_proposals_ask(c);
	}
	if (r == 0 && a->json)
		r = print_json(&y, a->id, &b, err);
	else if (r == 0 && (r = pager_begin(err)) == 0)
		print_text(&y, a->id, &b);
	json_free(b.budget);
	json_free(b.proposals);
	why_done(&y);
	return r < 0 ? -1 : render_flush(err);
}

int cmd_why(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = why_parse,
		.args_doc = "[JOB]",
		.doc = "How a job (the last one, when none is named) ended and why, what "
		       "its walls and its broker refused it, and what would change "
		       "that.\v"
		       "Examples:\n"
		       "  lych why\n"
		       "  lych why 2 --json"};
	struct why_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return why(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
