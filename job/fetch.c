/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * lych-fetch: one URL, through the job's broker.
 */
#include "common/args/args.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/lsan.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "job/client.h"
#include "job/pick.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "lych-fetch"
#define BODY_MAX_BYTES ((size_t)1 << 20)
#define URL_MAX_BYTES 4096
#define REFUSAL_MAX_BYTES 65536

struct fetch {
	const char *url, *output, *data;
	struct client_request rq;
	struct client_reply reply;
	int out;
	bool to_file;
	struct buf refusal;
};

static const struct argp_option option_table[] = {
	{"output", 'o', "FILE", 0, "Write there instead of stdout", 0},
	{"header", 'H', "NAME: VALUE", 0, "A header of the request (repeatable)", 0},
	{"data", 'd', "DATA", 0, "POST this; @FILE: what is in it, @-: stdin", 0},
	{0},
};

/* What says how the request is framed, and to whom it goes: two of one kind are refused on the way. */
static bool is_ours(const char *name)
{
	static const char *const ours[] = {
		"host", "connection", "content-length", "transfer-encoding",
		"te",	"trailer",    "upgrade",	"keep-alive",
	};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (str_eq(name, ours[i]))
			return true;
	return false;
}

static bool has_header(const struct fetch *f, const char *name)
{
	for (size_t i = 0; i < f->rq.n_headers; i++)
		if (str_eq(f->rq.headers[i].name, name))
			return true;
	return false;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static void add_header(struct fetch *f, char *text, struct argp_state *state)
{
	char *colon = strchr(text, ':'), *value;

	if (!colon || colon == text || !is_plain(text)) {
		args_error(state, "--header wants 'NAME: VALUE', in ASCII");
		return;
	}
	/* Two more are ours. */
	if (f->rq.n_headers + 2 > CLIENT_HEADERS_MAX)
		args_error(state, "too many headers");
	*colon = '\0';
	for (char *p = text; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + 'a' - 'A');
	if (is_ours(text))
		args_error(state, "--header %s: it is made from the request itself",
			   text);
	if (has_header(f, text))
		args_error(state, "--header %s: given twice", text);
	value = colon + 1 + strspn(colon + 1, " ");
	f->rq.headers[f->rq.n_headers++] = (struct client_header){text, value};
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct fetch *f = state->input;

	switch (key) {
	case 'o':
		f->output = arg;
		return 0;
	case 'H':
		add_header(f, arg, state);
		return 0;
	case 'd':
		f->data = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (f->url)
			args_error(state, "one URL");
		f->url = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		args_error(state, "a URL is wanted");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The file is made when there is something to write: a refusal leaves none. */
static int on_head(const struct client_reply *reply, void *arg, struct err *err)
{
	struct fetch *f = arg;

	f->reply = *reply;
	if (!reply->from_upstream || !f->output || str_eq(f->output, "-"))
		return 0;
	f->out = open(f->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	f->to_file = true;
	return f->out < 0 ? err_sys_id(err, ERRID_CORE_OUTPUT, "%s", f->output) : 0;
}

static int on_data(const void *data, size_t len, void *arg, struct err *err)
{
	struct fetch *f = arg;

	if (f->reply.from_upstream)
		return fs_write_all(f->out, data, len, err);
	if (f->refusal.len + len <= REFUSAL_MAX_BYTES)
		buf_add(&f->refusal, data, len);
	return 0;
}

static int tell_refusal(const struct fetch *f)
{
	cleanup_buf struct buf why = {.max = 4096};

	if (!pick_text(buf_str(&f->refusal), f->refusal.len, "error", &why))
		buf_adds(&why, "an answer without a reason");
	client_complain(PROGRAM, "refused (%d): %s", f->reply.status, buf_str(&why));
	return EXIT_REFUSED;
}

static int read_file(int fd, struct buf *out, struct err *err)
{
	char part[65536];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno != EINTR)
			return err_sys(err, "read");
		if (n > 0)
			buf_add(out, part, (size_t)n);
		if (!buf_ok(out))
			return err_set_id(err, ERRID_CORE_USAGE,
					  "--data: above %zu bytes", BODY_MAX_BYTES);
	}
	return 0;
}

static int read_data(struct fetch *f, struct buf *out, struct err *err)
{
	cleanup_close int fd = -1;

	if (f->data[0] != '@') {
		buf_adds(out, f->data);
		return buf_ok(out)
			       ? 0
			       : err_set_id(err, ERRID_CORE_USAGE,
					    "--data: above %zu bytes", BODY_MAX_BYTES);
	}
	if (str_eq(f->data, "@-"))
		return read_file(0, out, err);
	fd = open(f->data + 1, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open %s", f->data + 1);
	return read_file(fd, out, err);
}

static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		    (c >= 'a' && c <= 'z') || strchr("-._~", c))
			buf_addc(out, (char)c);
		else
			buf_addf(out, "%%%02X", c);
	}
}

static int fetch(struct fetch *f)
{
	const struct client_ops ops = {.head = on_head, .data = on_data, .arg = f};
	cleanup_buf struct buf path = {.max = 4 * URL_MAX_BYTES};
	cleanup_buf struct buf body = {.max = BODY_MAX_BYTES};
	struct err err = ERR_INIT;
	int code = 0;

	assert(f->url); /* the parser of the arguments saw to it */
	if (strlen(f->url) > URL_MAX_BYTES) {
		(void)err_set_id(&err, ERRID_CORE_USAGE, "a URL has at most %d bytes",
				 URL_MAX_BYTES);
		args_refuse(PROGRAM, err.msg);
	}
	buf_adds(&path, BROKER_PATH_FETCH "?url=");
	add_escaped(&path, f->url);
	f->rq.method = f->data ? "POST" : "GET";
	f->rq.path = buf_str(&path);
	if (f->data) {
		if (read_data(f, &body, &err) < 0)
			return client_failed(PROGRAM, &err);
		f->rq.body = buf_str(&body);
		f->rq.len = body.len;
		if (!has_header(f, "content-type"))
			f->rq.headers[f->rq.n_headers++] = (struct client_header){
				"content-type", "application/octet-stream"};
	}
	if (client_call(&f->rq, &ops, &err) < 0)
		code = client_failed(PROGRAM, &err);
	else if (!f->reply.from_upstream)
		code = tell_refusal(f);
	else if (f->reply.status >= 400) {
		client_complain(PROGRAM, "the server answered %d", f->reply.status);
		code = EXIT_REFUSED;
	}
	if (f->to_file && f->out >= 0 && close(f->out) < 0 && !code) {
		client_complain(PROGRAM, "%s: %s", f->output, strerror(errno));
		code = EXIT_REFUSED;
	}
	return code;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table,
		parse_option,
		"URL",
		"Fetch a URL, through the broker of this job.\vExit: 0 fetched, 1 "
		"refused or "
		"failed (why: on stderr), 2 wrong usage, 4 no broker.\n\n"
		"Examples:\n"
		"  lych-fetch -o index.html https://docs.example.org/",
		NULL,
		NULL,
		NULL,
	};
	static struct fetch f = {.out = 1};
	struct err err = ERR_INIT;

	lsan_turn_off(); /* in a job */
	(void)signal(SIGPIPE, SIG_IGN);
	if (fs_fill_stdio(&err) < 0)
		return args_fail("lych-fetch", &err);
	buf_init(&f.refusal, REFUSAL_MAX_BYTES);
	args_name(argc, argv, "lych-fetch");
	args_read(&argp, argc, argv, 0, &f);
	return fetch(&f);
}
