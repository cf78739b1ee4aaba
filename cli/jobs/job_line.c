/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See job_line.h.
 */
#include "cli/jobs/job_line.h"

#include "cli/follow/job_end.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/proto/job_spec.h"
#include "common/str.h"
#include <inttypes.h>

#define COMMAND_MAX 4096

void job_lines_done(struct job_lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->line[i].command);
	free(l->line);
	*l = (struct job_lines){0};
}

void job_lines_age(struct job_lines *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!l->line[i].is_seen) {
			free(l->line[i].command);
			continue;
		}
		l->line[n] = l->line[i];
		l->line[n++].is_seen = false;
	}
	l->n = n;
}

/* NULL: it is not known. */
static struct job_line *known(const struct job_lines *l, job_id_t id)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->line[i].id == id)
			return &l->line[i];
	return NULL;
}

static struct job_line *find(struct job_lines *l, job_id_t id)
{
	struct job_line *line = known(l, id);

	if (line)
		return line;
	l->line = xreallocarray(l->line, l->n + 1, sizeof(*l->line));
	l->line[l->n] = (struct job_line){.id = id, .end = "-"};
	return &l->line[l->n++];
}

bool job_lines_know(const struct job_lines *l, job_id_t id)
{
	return known(l, id) != NULL;
}

/* As a shell would take it back. */
static void add_word(struct buf *b, const char *word)
{
	static const char plain[] = "-_./:=@%+,";

	if (b->len)
		buf_addc(b, ' ');
	if (*word && !word[str_run(word, plain)]) {
		buf_adds(b, word);
		return;
	}
	buf_addc(b, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_adds(b, "'\\''");
		else
			buf_addc(b, *word);
	buf_addc(b, '\'');
}

static char *command_of(const struct json *job)
{
	const struct json *spec = NULL, *argv = NULL;
	cleanup_buf struct buf b = {0};
	const char *word;

	if (!json_has(job, "spec") || json_is_null(job, "spec") ||
	    json_get_obj(job, "spec", true, &spec, NULL) < 0 ||
	    json_get_arr(spec, "argv", true, ARGV_MAX, &argv, NULL) < 0)
		return xstrdup("-");
	/* a word takes at most four bytes for each of its own */
	buf_init(&b, COMMAND_MAX + 4 * ARG_MAX_BYTES + 16);
	for (size_t i = 0; i < json_arr_len(argv); i++) {
		if (b.len > COMMAND_MAX) {
			buf_adds(&b, " …");
			break;
		}
		if (json_as_str(json_arr_at(argv, i), ARG_MAX_BYTES, &word, NULL) == 0)
			add_word(&b, word);
	}
	return xstrdup(buf_str(&b));
}

/* The program's own code; else which limit or signal it was, of which a limit says more. */
static void end_of(const struct json *job, char *out, size_t size)
{
	const struct json *result = NULL;
	struct job_end e;

	if (job_end_read(job, &e, NULL) < 0 || !job_state_is_final(e.state))
		return;
	if (json_is_null(job, "result") ||
	    json_get_obj(job, "result", true, &result, NULL) < 0)
		result = NULL;
	if (e.has_exit_code && (e.state == JOB_SUCCEEDED || e.fail_class == FAIL_EXIT))
		(void)snprintf(out, size, "%d", e.exit_code);
	else if (e.fail_class != FAIL_NONE && e.fail_class != FAIL_CRASH)
		(void)snprintf(out, size, "%s", fail_class_name(e.fail_class));
	else if (result && e.exec_errno)
		(void)snprintf(out, size, "%s", render_text_of(result, "exec_errno"));
	else if (result && e.signal)
		(void)snprintf(out, size, "%s", render_text_of(result, "signal"));
}

static int ask(struct job_line *l, struct client *c, struct err *err)
{
	cleanup_json struct json *job = NULL;
	struct err why = ERR_INIT;

	free(l->command);
	l->command = NULL;
	if (job_get(c, l->id, JOB_GET_MSEC, &job, &why) == 0) {
		l->command = command_of(job);
		end_of(job, l->end, sizeof(l->end));
	} else if (why.id == ERRID_RUN_NOT_FOUND) {
		l->command = xstrdup("-");
	} else {
		*err = why;
		return -1;
	}
	return 0;
}

static usec_t time_of(const struct json *job, const char *key)
{
	usec_t wall;

	return when_parse(render_text_of(job, key), &wall) ? wall : 0;
}

int job_lines_take(struct job_lines *l, struct client *c, const struct json *job,
		   const struct job_line **ret, bool *ret_changed, struct err *err)
{
	enum job_state state;
	struct job_line *line;
	const char *name;
	bool is_new;
	job_id_t id;

	if (json_as_obj(job, err) < 0 ||
	    json_get_i64(job, "id", true, 1, INT64_MAX, &id, err) < 0 ||
	    json_get_str(job, "state", true, sizeof(line->state) - 1, &name, err) < 0)
		return -1;
	line = find(l, id);
	is_new = !line->is_known || !str_eq(line->state, name);
	if (ret_changed)
		*ret_changed = is_new;
	line->created = time_of(job, "created_at");
	line->started = time_of(job, "started_at");
	line->finished = time_of(job, "finished_at");
	/* its command stays; how it ended is known when it has, and a retry takes that back */
	if (is_new) {
		bool has_ended =
			job_state_from_name(name, &state) && job_state_is_final(state);

		(void)snprintf(line->end, sizeof(line->end), "-");
		if ((!line->is_known || has_ended) && ask(line, c, err) < 0)
			return -1;
	}
	(void)snprintf(line->state, sizeof(line->state), "%s", name);
	line->is_known = line->is_seen = true;
	*ret = line;
	return 0;
}
