/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See outcome.h.
 */
#include "sandbox/outcome.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/proto/denied.h"
#include "common/utf8.h"

#include <errno.h>
#include <signal.h>

#define EXIT_TIMEOUT 124
#define EXIT_CANNOT_EXEC 126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL 128
#define JSON_MAX ((size_t)1 << 20)
#define LINE_MAX_BYTES ((size_t)8 << 10)

/* Text that may have any bytes, for a terminal: what is no UTF-8 stands there as \xNN. */
static const char *shown(const char *text, struct buf *b)
{
	size_t len = strlen(text);

	if (utf8_is_valid(text, len))
		return text;
	buf_init(b, 4 * len + 1);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
			buf_addf(b, "\\x%02x", (unsigned char)text[i]);
		else
			buf_addc(b, text[i]);
	return buf_str(b);
}

void outcome_complain(const struct err *err)
{
	cleanup_buf struct buf b = {0};

	(void)fprintf(stderr, "lych-sandbox: %s: %s\n      %s  %s\n", err_title(err),
		      shown(err->msg, &b), err_text(err), err_hint(err));
}

void outcome_complain_json(const struct err *err)
{
	cleanup_buf struct buf b = {.max = JSON_MAX};
	struct jsonw w;

	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", err_text(err));
	jsonw_kstr(&w, "title", err_title(err));
	jsonw_kstr(&w, "detail", err->msg);
	jsonw_kstr(&w, "hint", err_hint(err));
	jsonw_obj_end(&w);
	(void)fprintf(stderr, "%s\n", buf_str(&b));
}

int outcome_exit_code(const struct outcome *o)
{
	if (o->has_refused)
		return EXIT_SETUP;
	if (!o->has_exited)
		return EXIT_OWN_ERROR;
	switch ((enum spawn_end)o->exited.how) {
	case SPAWN_END_EXITED:
		return o->exited.code;
	case SPAWN_END_EXEC:
		return o->exited.code == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC;
	case SPAWN_END_TIMEOUT:
		return EXIT_TIMEOUT;
	case SPAWN_END_CANCEL:
		return EXIT_SIGNAL + (o->signal ? o->signal : SIGTERM);
	case SPAWN_END_SIGNALLED:
		return EXIT_SIGNAL + o->exited.code;
	case SPAWN_END_OOM:
	case SPAWN_END_DISK:
	case SPAWN_END_PROCESSES:
	case SPAWN_END_CPU:
	case SPAWN_END_OUTPUT:
	case SPAWN_END_LEASE:
	case SPAWN_END_SHUTDOWN:
	case SPAWN_END_UNMEASURED:
	case SPAWN_END_OBJECTS:
		return EXIT_SIGNAL + SIGKILL;
	case SPAWN_END_LOST:
	case SPAWN_END_MAX_:
		break;
	}
	return EXIT_OWN_ERROR;
}

static const char *how_name(const struct outcome *o)
{
	if (o->has_refused)
		return "refused";
	return o->has_exited && spawn_end_name(o->exited.how)
		       ? spawn_end_name(o->exited.how)
		       : "lost";
}

static void json_walls(struct jsonw *w, const struct spawn_started *s)
{
	jsonw_key(w, "walls");
	jsonw_obj(w);
	jsonw_kstr(w, "grade",
		   s->grade < GRADE_MAX_ ? sbx_grade_name((enum sbx_grade)s->grade)
					 : NULL);
	jsonw_ku64(w, "landlock_abi", s->landlock_abi);
	jsonw_key(w, "layers");
	jsonw_arr(w);
	for (uint32_t i = 0; i < s->n_layers && i < SPAWN_LAYERS_MAX; i++)
		jsonw_strn(w, s->layers[i], strnlen(s->layers[i], sizeof(s->layers[i])));
	jsonw_arr_end(w);
	jsonw_key(w, "limits");
	jsonw_arr(w);
	for (uint32_t i = 0; i < s->n_limits && i < SPAWN_LIMITS_MAX; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "name", s->limits[i].name);
		jsonw_ku64(w, "value", s->limits[i].value);
		jsonw_kstr(w, "mechanism", s->limits[i].mechanism);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

static void json_denied(struct jsonw *w, const struct outcome *o)
{
	jsonw_key(w, "denied");
	jsonw_arr(w);
	for (unsigned i = 0; i < o->n_denied; i++)
		denied_json(&o->denied[i], w);
	jsonw_arr_end(w);
	jsonw_ku64(w, "denied_dropped",
		   o->n_denied ? o->denied[o->n_denied - 1].dropped : 0);
}

/* One line a kind, after the job's own output. */
static void print_denied(const struct outcome *o)
{
	for (unsigned i = 0; i < o->n_denied; i++) {
		cleanup_buf struct buf b;

		buf_init(&b, LINE_MAX_BYTES);
		denied_sentence(&o->denied[i], &b);
		if (buf_ok(&b))
			(void)fprintf(stderr, "lych-sandbox: %s\n", buf_str(&b));
	}
	if (o->n_denied && o->denied[o->n_denied - 1].dropped)
		(void)fprintf(stderr, "lych-sandbox: and %u other kinds\n",
			      o->denied[o->n_denied - 1].dropped);
}

static void print_json(const struct outcome *o)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, JSON_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "how", how_name(o));
	jsonw_ki64(&w, "code", outcome_exit_code(o));
	if (o->has_refused) {
		jsonw_kstr(&w, "error_code", o->refused.error_code);
		jsonw_kstr(&w, "stage", o->refused.stage);
		jsonw_kstr(&w, "detail", o->refused.text);
	}
	if (o->has_exited) {
		jsonw_kstr(&w, "detail", o->exited.detail);
		jsonw_kbool(&w, "tree_gone", o->exited.tree_gone);
		jsonw_ku64(&w, "killed_strays", o->exited.killed_strays);
		jsonw_ku64(&w, "wall_ms", o->exited.wall_usec / USEC_PER_MSEC);
		jsonw_ku64(&w, "cpu_ms", o->exited.cpu_usec / USEC_PER_MSEC);
		jsonw_ku64(&w, "memory_peak_bytes", o->exited.memory_peak_bytes);
		jsonw_ku64(&w, "disk_peak_bytes", o->exited.disk_peak_bytes);
		jsonw_ku64(&w, "processes_peak", o->exited.processes_peak);
	}
	if (o->has_started)
		json_walls(&w, &o->started);
	json_denied(&w, o);
	jsonw_obj_end(&w);
	if (buf_ok(&b))
		(void)fprintf(stderr, "%s\n", buf_str(&b));
}

static void print_text(const struct outcome *o)
{
	if (o->has_refused) {
		enum err_id id = err_id_from_text(o->refused.error_code);
		cleanup_buf struct buf b = {0};

		(void)fprintf(
			stderr, "lych-sandbox: %s: nothing ran: %s: %s\n      %s  %s\n",
			err_info(id)->title, o->refused.stage, shown(o->refused.text, &b),
			o->refused.error_code, err_info(id)->hint);
	} else if (!o->has_exited) {
		(void)fprintf(stderr,
			      "lych-sandbox: the keeper is lost; the job was ended\n");
	} else if (o->exited.how != SPAWN_END_EXITED &&
		   o->exited.how != SPAWN_END_SIGNALLED) {
		(void)fprintf(stderr, "lych-sandbox: %s%s%s\n", how_name(o),
			      o->exited.detail[0] ? ": " : "", o->exited.detail);
	}
}

static volatile sig_atomic_t code_without_words;

static void end_without_words(int signal)
{
	(void)signal;
	_exit(code_without_words);
}

void outcome_bound(const struct outcome *o, unsigned sec)
{
	const struct sigaction leave = {.sa_handler = end_without_words};
	sigset_t set;

	code_without_words = outcome_exit_code(o);
	(void)signal(SIGALRM, SIG_IGN); /* one of somebody's that waits is gone by that */
	(void)sigaction(SIGALRM, &leave, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)alarm(sec);
}

void outcome_print(const struct outcome *o, const struct sbx_spec *spec)
{
	if (spec->json)
		print_json(o);
	else
		print_text(o);
	if (o->is_cut && !spec->json)
		(void)fputs("lych-sandbox: the terminal took nothing any more: what it "
			    "had not taken is lost\n",
			    stderr);
	if (spec->explain && !spec->json)
		print_denied(o);
}
