/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See report.h.
 */
#include "tomb/job/report.h"

#include "common/jsonw.h"
#include "common/proto/denied.h"

#include <signal.h>
#include <string.h>

static void write_signal(struct jsonw *w, int signo)
{
	const char *abbrev = signo > 0 && signo < NSIG ? sigabbrev_np(signo) : NULL;
	char name[32];

	(void)snprintf(name, sizeof(name), abbrev ? "SIG%s" : "SIG%s%d",
		       abbrev ? abbrev : "", signo);
	jsonw_kstr(w, "signal", name);
}

/* Which wall could not be raised; nothing ran then. */
static void write_stage(struct jsonw *w, const struct job *j)
{
	jsonw_key(w, "refused");
	if (!j->has_refused) {
		jsonw_null(w);
		return;
	}
	jsonw_obj(w);
	jsonw_kstr(w, "error_code", j->refused.error_code);
	jsonw_kstr(w, "stage", j->refused.stage);
	jsonw_kstr(w, "detail", j->refused.text);
	jsonw_obj_end(w);
}

/* How the main process ended, as far as it ran at all. */
static void write_end(struct jsonw *w, const struct job *j)
{
	const struct spawn_exited *x = &j->exited;
	bool known = j->has_exited && j->ran;
	char name[32];

	jsonw_key(w, "exit_code");
	if (known && x->how == SPAWN_END_EXITED)
		jsonw_i64(w, x->code);
	else
		jsonw_null(w);
	if (known && x->how != SPAWN_END_EXITED && x->how != SPAWN_END_EXEC &&
	    x->code > 0) {
		write_signal(w, x->code);
	} else {
		jsonw_key(w, "signal");
		jsonw_null(w);
	}
	jsonw_key(w, "exec_errno");
	if (j->has_exited && x->how == SPAWN_END_EXEC) {
		denied_errno_name(x->code, name, sizeof(name));
		jsonw_str(w, name);
	} else {
		jsonw_null(w);
	}
	jsonw_kstr(w, "end",
		   j->has_refused  ? "refused"
		   : j->has_exited ? spawn_end_name(x->how)
				   : NULL);
	write_stage(w, j);
}

/* What the grade cannot close, as docs/SANDBOX.md says it. */
static const char floor_gap[] = "metadata of other files of this uid can be seen: stat";

/* Not the job's own wall, but the one behind it. */
static const char unrooted_gap[] = "the daemons have no private root: codex.yaml says "
				   "daemons: no_private_root";

static void write_walls(struct jsonw *w, const struct job *j, bool unrooted)
{
	const struct spawn_started *s = &j->started;

	jsonw_key(w, "walls");
	jsonw_obj(w);
	if (j->ran) {
		jsonw_kstr(w, "grade", sbx_grade_name((enum sbx_grade)s->grade));
		jsonw_ku64(w, "landlock_abi", s->landlock_abi);
		jsonw_key(w, "layers");
		jsonw_arr(w);
		for (uint32_t i = 0; i < s->n_layers && i < SPAWN_LAYERS_MAX; i++)
			jsonw_strn(w, s->layers[i],
				   strnlen(s->layers[i], sizeof(s->layers[i])));
		jsonw_arr_end(w);
		jsonw_key(w, "limits");
		jsonw_arr(w);
		for (uint32_t i = 0; i < s->n_limits && i < SPAWN_LIMITS_MAX; i++) {
			jsonw_obj(w);
			jsonw_key(w, "name");
			jsonw_strn(w, s->limits[i].name,
				   strnlen(s->limits[i].name, sizeof(s->limits[i].name)));
			jsonw_ku64(w, "value", s->limits[i].value);
			jsonw_key(w, "mechanism");
			jsonw_strn(w, s->limits[i].mechanism,
				   strnlen(s->limits[i].mechanism,
					   sizeof(s->limits[i].mechanism)));
			jsonw_obj_end(w);
		}
		jsonw_arr_end(w);
		jsonw_key(w, "gaps");
		jsonw_arr(w);
		if (s->grade == GRADE_FLOOR)
			jsonw_str(w, floor_gap);
		if (unrooted)
			jsonw_str(w, unrooted_gap);
		jsonw_arr_end(w);
	}
	jsonw_obj_end(w);
}

/* The last looks, of one that passed a limit. */
static void write_curve(struct jsonw *w, const struct spawn_exited *x)
{
	if (x->n_samples == 0)
		return;
	jsonw_key(w, "curve");
	jsonw_arr(w);
	for (uint32_t i = 0; i < x->n_samples && i < SPAWN_SAMPLES_MAX; i++) {
		jsonw_obj(w);
		jsonw_ku64(w, "memory_bytes", (uint64_t)x->sample_kib[i] << 10);
		jsonw_ku64(w, "processes", x->sample_processes[i]);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

/* What the job's broker refused here. Of what the vessel refused the log has each. */
static void write_broker_refused(struct jsonw *w, const struct proxy_refused *refused)
{
	jsonw_key(w, "broker_refused");
	jsonw_arr(w);
	for (size_t id = 0; id < ERRID_MAX_; id++) {
		if (refused->count[id] == 0)
			continue;
		jsonw_obj(w);
		jsonw_kstr(w, "error_code", err_info((enum err_id)id)->text);
		jsonw_ku64(w, "count", refused->count[id]);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void write_refused(struct jsonw *w, const char *key, const struct harvest_list *l)
{
	jsonw_key(w, key);
	jsonw_arr(w);
	for (size_t i = 0; l && i < l->n; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "path", l->item[i].path);
		jsonw_kstr(w, "why", l->item[i].why);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void write_harvest(struct jsonw *w, const struct harvest *h)
{
	jsonw_key(w, "artifacts");
	jsonw_arr(w);
	for (size_t i = 0; h && i < h->kept.n; i++) {
		const struct harvest_item *item = &h->kept.item[i];

		jsonw_obj(w);
		jsonw_kstr(w, "path", item->path);
		jsonw_ku64(w, "size", item->size);
		jsonw_kstr(w, "sha256", item->sha256);
		jsonw_kstr(w, "class", item->class);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	write_refused(w, "refused_artifacts", h ? &h->refused : NULL);
	jsonw_ku64(w, "refused_artifacts_total", h ? h->refused_total : 0);
	write_refused(w, "quarantined", h ? &h->held : NULL);
	jsonw_ku64(w, "quarantined_total", h ? h->held_total : 0);
}

void report_write(const struct report *r, struct buf *out)
{
	const struct job *j = r->job;
	const struct spawn_exited *x = &j->exited;
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "v", 1);
	write_end(&w, j);
	jsonw_kstr(&w, "class",
		   j->verdict == VERDICT_CANCELLED ? "" : fail_class_name(j->fail_class));
	jsonw_kstr(&w, "detail", j->detail);
	jsonw_ku64(&w, "wall_ms", x->wall_usec / 1000);
	jsonw_ku64(&w, "cpu_ms", x->cpu_usec / 1000);
	jsonw_ku64(&w, "memory_peak_bytes", x->memory_peak_bytes);
	jsonw_ku64(&w, "disk_peak_bytes", x->disk_peak_bytes);
	jsonw_ku64(&w, "processes_peak", x->processes_peak);
	write_curve(&w, x);
	jsonw_ku64(&w, "stdout_bytes", r->stdout_bytes);
	jsonw_ku64(&w, "stderr_bytes", r->stderr_bytes);
	jsonw_kbool(&w, "stdout_truncated", r->stdout_truncated);
	jsonw_kbool(&w, "stderr_truncated", r->stderr_truncated);
	/* A report is written only when the spawner said so, or nothing ever ran. */
	jsonw_kbool(&w, "tree_gone", true);
	jsonw_ku64(&w, "killed_strays", x->killed_strays);
	write_walls(&w, j, r->unrooted);
	denials_write(r->denials, &w);
	write_broker_refused(&w, r->broker_refused);
	write_harvest(&w, r->harvest);
	jsonw_obj_end(&w);
}
