/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * How an error is shown: title, text, code and hint, or one line of JSON.
 */
#include "cli/base/cmd.h"

#include "cli/base/client.h"
#include "cli/base/mode.h"
#include "cli/ui/progress.h"
#include "cli/ui/render.h"
#include "common/buf.h"
#include "common/jsonw.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

void cmd_tell(enum err_id id, const char *text)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, 65536);
	render_escape(&b, text, strlen(text), 0);
	progress_hide();
	if (id == ERRID_NONE) {
		(void)fprintf(stderr, "lych: %s\n", buf_str(&b));
		return;
	}
	(void)fprintf(stderr, "lych: %s: %s\n", err_info(id)->title, buf_str(&b));
	(void)fprintf(stderr, "      %s  %s\n", err_info(id)->text, mode_hint(id));
}

static bool json_asked;

void cmd_ask_json(bool is_asked)
{
	json_asked = is_asked;
}

static void print_json(enum err_id id, const char *detail, const char *hint)
{
	cleanup_buf struct buf b = {.max = 65536};
	struct jsonw w;

	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", err_info(id)->text);
	jsonw_kstr(&w, "title", err_info(id)->title);
	jsonw_kstr(&w, "detail", detail);
	jsonw_kstr(&w, "hint", hint);
	jsonw_obj_end(&w);
	(void)fprintf(stderr, "%s\n", buf_str(&b));
}

int cmd_fail(const struct err *err, bool json)
{
	cleanup_buf struct buf b = {0};
	struct err other = ERR_INIT;

	/* a reader that has enough, as head has, is no error: as any program of a pipeline,
	 * without a word, and with the code of one that SIGPIPE ended */
	if (err->id == ERRID_CORE_OUTPUT && err->sys == EPIPE)
		return 128 + SIGPIPE;
	if (client_is_misread(err)) {
		(void)err_set_id(&other, ERRID_HTTP_ANSWER, "%s: %s", err_title(err),
				 err->msg);
		err = &other;
	}
	/* without an id of its own it is the one that says so, with its title and exit code */
	if (err->id == ERRID_NONE) {
		(void)err_set_id(&other, ERRID_CORE_GENERIC, "%s: %s", err_title(err),
				 err->msg);
		err = &other;
	}
	buf_init(&b, 65536);
	progress_hide();
	if (json || json_asked) {
		print_json(err->id, err->msg, mode_hint(err->id));
		return err_exit_code(err);
	}
	render_escape(&b, err->msg, strlen(err->msg), 0);
	(void)fprintf(stderr, "lych: %s: %s\n", err_title(err), buf_str(&b));
	(void)fprintf(stderr, "      %s  %s\n", err_text(err), mode_hint(err->id));
	return err_exit_code(err);
}

int cmd_end(int r, struct err *err, bool json)
{
	return r < 0 || render_flush(err) < 0 ? cmd_fail(err, json) : 0;
}

int cmd_take_word(struct cmd_words *w, const char *arg)
{
	if (w->n == CMD_WORDS_MAX)
		return ARGP_ERR_UNKNOWN;
	w->at[w->n++] = arg;
	return 0;
}

bool cmd_words_are(const struct cmd_words *w, size_t n, const char *verb)
{
	return w->n == n && str_eq(w->at[0], verb);
}

NORETURN static void usage(const char *command, const char *fmt, va_list ap)
{
	cleanup_buf struct buf b = {0};
	char text[512], hint[160];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)snprintf(hint, sizeof(hint), "See '%.100s --help'.", command);
	if (json_asked) {
		print_json(ERRID_CORE_USAGE, text, hint);
		exit(EXIT_USAGE);
	}
	buf_init(&b, 8192);
	render_escape(&b, text, strlen(text), 0);
	(void)fprintf(stderr, "lych: %s: %s\n", err_info(ERRID_CORE_USAGE)->title,
		      buf_str(&b));
	(void)fprintf(stderr, "      %s  %s\n", err_info(ERRID_CORE_USAGE)->text, hint);
	exit(EXIT_USAGE);
}

void cmd_usage(const struct argp_state *state, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	usage(state->name, fmt, ap);
	va_end(ap);
}

void cmd_usage_of(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	usage(command, fmt, ap);
	va_end(ap);
}

int cmd_refuse_root(struct err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};
	uid_t r, e, s;

	if (getresuid(&r, &e, &s) < 0)
		return err_sys(err, "getresuid");
	if (r == 0 || e == 0 || s == 0)
		return err_set_id(err, ERRID_CORE_ROOT, "uid %u", e);
	if (syscall(SYS_capget, &h, d) < 0)
		return err_sys(err, "capget");
	if (d[0].effective || d[0].permitted || d[1].effective || d[1].permitted)
		return err_set_id(err, ERRID_CORE_ROOT,
				  "this process holds capabilities");
	return 0;
}
