/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * lych-ask: one question to a model, through the job's broker.
 */
#include "common/args/args.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/lsan.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "job/client.h"
#include "job/pick.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "lych-ask"
#define PROMPT_MAX_BYTES ((size_t)4 << 20)
#define REPLY_MAX_BYTES ((size_t)64 << 20)
#define EVENT_MAX_BYTES ((size_t)4 << 20)
#define MODELS_SHOWN_MAX 1000
/* Their API wants one. */
#define ANTHROPIC_TOKENS 4096
#define ANTHROPIC_VERSION "2023-06-01"

struct ask {
	const char *model, *instruction;
	uint64_t max_tokens; /* 0: as the model likes */
	bool json, stream, anthropic, models;
	struct buf prompt;
	/* the answer */
	struct client_reply reply;
	struct buf body; /* of one that is not streamed */
	struct buf line; /* of a stream, as far as it came */
	bool any_text;
	bool has_ended;	    /* a stream said that this is all */
	struct buf failure; /* what a stream said instead of going on */
};

enum { OPT_ANTHROPIC = 256, OPT_MODELS, OPT_MAX_TOKENS };

static const struct argp_option option_table[] = {
	{"model", 'm', "NAME", 0, "The model (the first of --models)", 0},
	{"system", 's', "TEXT", 0, "The system prompt", 0},
	{"max-tokens", OPT_MAX_TOKENS, "N", 0, "At most so many tokens in the answer", 0},
	{"stream", 'S', NULL, 0, "Print the answer as it comes", 0},
	{"json", 'j', NULL, 0, "Print the answer as the provider gave it", 0},
	{"anthropic", OPT_ANTHROPIC, NULL, 0, "Speak Anthropic's API (else OpenAI's)", 0},
	{"models", OPT_MODELS, NULL, 0, "List the models that this job may ask", 0},
	{0},
};

static void add_word(struct ask *a, const char *word)
{
	if (a->prompt.len)
		buf_addc(&a->prompt, ' ');
	buf_adds(&a->prompt, word);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct ask *a = state->input;

	switch (key) {
	case 'm':
		a->model = arg;
		return 0;
	case 's':
		a->instruction = arg;
		return 0;
	case 'S':
		a->stream = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case OPT_ANTHROPIC:
		a->anthropic = true;
		return 0;
	case OPT_MODELS:
		a->models = true;
		return 0;
	case OPT_MAX_TOKENS:
		if (parse_u64(arg, 1, 10000000, &a->max_tokens, NULL) < 0)
			args_error(state, "--max-tokens: a number from 1");
		return 0;
	case ARGP_KEY_ARG:
		if (a->models)
			args_error(state, "--models takes no question");
		add_word(a, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_stdin(struct buf *out, struct err *err)
{
	char part[65536];
	ssize_t n;

	while ((n = read(0, part, sizeof(part))) != 0) {
		if (n < 0 && errno != EINTR)
			return err_sys(err, "read the question from stdin");
		if (n > 0)
			buf_add(out, part, (size_t)n);
		if (!buf_ok(out))
			break;
	}
	return 0;
}

static int write_out(const void *data, size_t len, struct err *err)
{
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0)
		return err_sys_id(err, ERRID_CORE_OUTPUT, "stdout");
	return 0;
}

/* ---- the answer -------------------------------------------------------------- */

static int on_head(const struct client_reply *reply, void *arg, struct err *err UNUSED)
{
	struct ask *a = arg;

	a->reply = *reply;
	return 0;
}

static bool is_refusal(const struct ask *a)
{
	return !a->reply.from_upstream || a->reply.status >= 400;
}

/* OpenAI's streams end with [DONE], after a finish_reason; Anthropic's with message_stop. */
static bool is_end(const char *json, size_t len)
{
	static const char done[] = "[DONE]";
	cleanup_buf struct buf text = {.max = 256};

	if (len == strlen(done) && memcmp(json, done, len) == 0)
		return true;
	if (pick_text(json, len, "choices.0.finish_reason", &text))
		return true;
	return pick_text(json, len, "type", &text) &&
	       str_eq(buf_str(&text), "message_stop");
}

/* One event of a stream: the JSON behind "data:". */
static int on_event(struct ask *a, const char *json, size_t len, struct err *err)
{
	cleanup_buf struct buf text = {.max = EVENT_MAX_BYTES};

	if (pick_text(json, len, "error.message", &a->failure))
		return 0;
	a->has_ended |= is_end(json, len);
	if (!pick_text(json, len, "choices.0.delta.content", &text) &&
	    !pick_text(json, len, "delta.text", &text))
		return 0;
	a->any_text |= text.len > 0;
	return write_out(buf_str(&text), text.len, err);
}

static int on_line(struct ask *a, struct err *err)
{
	static const char field[] = "data:";
	const char *line = buf_str(&a->line);
	size_t len = a->line.len, skip = strlen(field);

	if (len && line[len - 1] == '\r')
		len--;
	if (len < skip || memcmp(line, field, skip) != 0)
		return 0;
	while (skip < len && line[skip] == ' ')
		skip++;
	return on_event(a, line + skip, len - skip, err);
}

static int on_stream(struct ask *a, const char *data, size_t len, struct err *err)
{
	while (len) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl ? (size_t)(nl - data) : len;

		buf_add(&a->line, data, n);
		if (!buf_ok(&a->line))
			return err_set_id(err, ERRID_BROKER_ANSWER,
					  "an event above %zu bytes", EVENT_MAX_BYTES);
		if (!nl)
			return 0;
		if (on_line(a, err) < 0)
			return -1;
		buf_reset(&a->line);
		data += n + 1;
		len -= n + 1;
	}
	return 0;
}

static int on_data(const void *data, size_t len, void *arg, struct err *err)
{
	struct ask *a = arg;

	if (!is_refusal(a) && a->stream)
		return a->json ? write_out(data, len, err) : on_stream(a, data, len, err);
	buf_add(&a->body, data, len);
	return buf_ok(&a->body) ? 0
				: err_set_id(err, ERRID_BROKER_ANSWER,
					     "it is above %zu bytes", REPLY_MAX_BYTES);
}

static int tell_refusal(const struct ask *a)
{
	cleanup_buf struct buf why = {.max = 4096};
	const char *json = buf_str(&a->body);

	if (a->json && a->body.len) {
		(void)fwrite(json, 1, a->body.len, stdout);
		(void)fflush(stdout);
	}
	if (!pick_text(json, a->body.len, "error.message", &why))
		buf_addf(&why, "an answer without a reason");
	client_complain(PROGRAM, "%s (%d%s%s%s): %s",
			a->reply.from_upstream ? "the provider refused" : "refused",
			a->reply.status, a->reply.retry_after[0] ? ", again after " : "",
			a->reply.retry_after, a->reply.retry_after[0] ? " s" : "",
			buf_str(&why));
	return EXIT_REFUSED;
}

static int ask_broker(struct ask *a, const char *method, const char *path,
		      const struct buf *body, struct err *err)
{
	struct client_request rq = {.method = method, .path = path};
	const struct client_ops ops = {.head = on_head, .data = on_data, .arg = a};
	cleanup_free char *bearer = NULL;
	const char *key = client_key();

	bearer = xasprintf("Bearer %s", key ? key : "");
	rq.headers[rq.n_headers++] =
		a->anthropic ? (struct client_header){"x-api-key", key ? key : ""}
			     : (struct client_header){"authorization", bearer};
	if (a->anthropic)
		rq.headers[rq.n_headers++] =
			(struct client_header){"anthropic-version", ANTHROPIC_VERSION};
	if (body) {
		rq.headers[rq.n_headers++] =
			(struct client_header){"content-type", "application/json"};
		rq.body = buf_str(body);
		rq.len = body->len;
	}
	return client_call(&rq, &ops, err);
}

/* ---- what is asked ------------------------------------------------------------ */

/* GET /v1/models: the names, one a line, into out. */
static int list_models(struct ask *a, struct buf *out, int *ret_code)
{
	struct ask q = {.anthropic = a->anthropic, .json = a->json && a->models};
	struct err err = ERR_INIT;

	buf_init(&q.body, REPLY_MAX_BYTES);
	if (ask_broker(&q, "GET", BROKER_PATH_MODELS, NULL, &err) < 0)
		*ret_code = client_failed(PROGRAM, &err);
	else if (is_refusal(&q))
		*ret_code = tell_refusal(&q);
	else
		*ret_code = 0;
	if (*ret_code == 0 && q.json)
		buf_add(out, q.body.data, q.body.len);
	for (unsigned i = 0; *ret_code == 0 && !q.json && i < MODELS_SHOWN_MAX; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "data.%u.id", i);
		if (!pick_text(buf_str(&q.body), q.body.len, path, out))
			break;
		buf_addc(out, '\n');
	}
	buf_done(&q.body);
	return *ret_code ? -1 : 0;
}

static int show_models(struct ask *a)
{
	cleanup_buf struct buf names = {.max = REPLY_MAX_BYTES};
	struct err err = ERR_INIT;
	int code = 0;

	if (list_models(a, &names, &code) < 0)
		return code;
	if (write_out(buf_str(&names), names.len, &err) < 0)
		return client_failed(PROGRAM, &err);
	return 0;
}

static int first_model(struct ask *a, struct buf *name)
{
	int code = 0;

	if (list_models(a, name, &code) < 0)
		return code;
	if (!name->len) {
		struct err err = ERR_INIT;

		(void)err_set_id(&err, ERRID_BROKER_MODEL, "it may ask none");
		return client_failed(PROGRAM, &err);
	}
	name->len = strcspn(name->data, "\n");
	name->data[name->len] = '\0';
	return 0;
}

static void add_message(struct jsonw *w, const char *role, const char *text, size_t len)
{
	jsonw_obj(w);
	jsonw_kstr(w, "role", role);
	jsonw_key(w, "content");
	jsonw_strn(w, text, len);
	jsonw_obj_end(w);
}

static void write_question(const struct ask *a, struct buf *out)
{
	uint64_t max = a->max_tokens;
	struct jsonw w;

	if (a->anthropic && !max)
		max = ANTHROPIC_TOKENS;
	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "model", a->model);
	if (max)
		jsonw_ku64(&w, "max_tokens", max);
	if (a->stream)
		jsonw_kbool(&w, "stream", true);
	if (a->instruction && a->anthropic)
		jsonw_kstr(&w, "system", a->instruction);
	jsonw_key(&w, "messages");
	jsonw_arr(&w);
	if (a->instruction && !a->anthropic)
		add_message(&w, "system", a->instruction, strlen(a->instruction));
	add_message(&w, "user", buf_str(&a->prompt), a->prompt.len);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
}

/* The text of an answer that came as a whole. */
static void pick_answer(struct ask *a, struct buf *out)
{
	const char *json = buf_str(&a->body);

	if (pick_text(json, a->body.len, "choices.0.message.content", out))
		return;
	for (unsigned i = 0; i < 1000; i++) {
		char path[32];
		const char *raw;
		size_t n;

		(void)snprintf(path, sizeof(path), "content.%u", i);
		if (!pick_raw(json, a->body.len, path, &raw, &n))
			break;
		(void)pick_text(raw, n, "text", out);
	}
}

static int show_answer(struct ask *a)
{
	cleanup_buf struct buf text = {.max = REPLY_MAX_BYTES};
	struct err err = ERR_INIT;

	if (a->failure.len) {
		client_complain(PROGRAM, "the provider broke off: %s",
				buf_str(&a->failure));
		return EXIT_REFUSED;
	}
	if (a->stream && a->json)
		return 0;
	if (a->stream && !a->has_ended) {
		(void)write_out("\n", 1, &err);
		client_complain(PROGRAM, "the answer broke off: its stream has no end");
		return EXIT_REFUSED;
	}
	if (a->json) {
		buf_add(&text, a->body.data, a->body.len);
	} else {
		if (!a->stream)
			pick_answer(a, &text);
		a->any_text |= text.len > 0;
		if (!a->any_text)
			client_complain(PROGRAM,
					"the answer has no text; --json shows it");
	}
	buf_addc(&text, '\n');
	return write_out(text.data, text.len, &err) < 0 ? client_failed(PROGRAM, &err)
							: 0;
}

static int ask(struct ask *a)
{
	cleanup_buf struct buf body = {.max = 2 * PROMPT_MAX_BYTES};
	cleanup_buf struct buf first = {.max = 65536};
	struct err err = ERR_INIT;

	if (!a->prompt.len && read_stdin(&a->prompt, &err) < 0)
		return client_failed(PROGRAM, &err);
	if (!a->prompt.len || !buf_ok(&a->prompt)) {
		(void)err_set_id(&err, ERRID_CORE_USAGE,
				 "a question of 1 to %zu bytes is wanted",
				 PROMPT_MAX_BYTES);
		args_refuse(PROGRAM, err.msg);
	}
	if (!a->model) {
		int code = first_model(a, &first);

		if (code)
			return code;
		a->model = buf_str(&first);
	}
	write_question(a, &body);
	if (!buf_ok(&body))
		args_refuse(PROGRAM, "the question is too long");
	if (ask_broker(a, "POST", a->anthropic ? BROKER_PATH_MESSAGES : BROKER_PATH_CHAT,
		       &body, &err) < 0)
		return client_failed(PROGRAM, &err);
	return is_refusal(a) ? tell_refusal(a) : show_answer(a);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table,
		parse_option,
		"[QUESTION...]",
		"Ask a model, through the broker of this job. Without QUESTION it is "
		"read from "
		"stdin.\vExit: 0 answered, 1 refused or failed (why: on stderr), 2 wrong "
		"usage, "
		"4 no broker.\n\n"
		"Examples:\n"
		"  lych-ask 'Name three rivers.'\n"
		"  git diff | lych-ask -s 'Review this.' --stream",
		NULL,
		NULL,
		NULL,
	};
	static struct ask a;
	struct err err = ERR_INIT;

	lsan_turn_off(); /* in a job */
	(void)signal(SIGPIPE, SIG_IGN);
	if (fs_fill_stdio(&err) < 0)
		return args_fail("lych-ask", &err);
	buf_init(&a.prompt, PROMPT_MAX_BYTES);
	buf_init(&a.body, REPLY_MAX_BYTES);
	buf_init(&a.line, EVENT_MAX_BYTES);
	buf_init(&a.failure, 4096);
	args_name(argc, argv, "lych-ask");
	args_read(&argp, argc, argv, 0, &a);
	return a.models ? show_models(&a) : ask(&a);
}
