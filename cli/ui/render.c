/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See render.h.
 */
#include "cli/ui/render.h"

#include "cli/ui/denials.h"
#include "cli/ui/glyph.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto/denied.h"
#include "common/str.h"
#include "common/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define CELL_MAX 4096
#define TABLE_CELL_WIDTH 100
#define VALUE_MAX ((size_t)8 << 20)
#define ROW_MAX ((size_t)256 << 20)
#define COLUMNS_UNKNOWN 80
#define ROWS_UNKNOWN 24
#define COLUMN_GAP 2
#define COLUMN_MIN 4

static void add_escaped(struct buf *out, const unsigned char *s, unsigned n, uint32_t cp)
{
	if (n == 1 && cp == '\n')
		buf_adds(out, "\\n");
	else if (n == 1 && cp == '\t')
		buf_adds(out, "\\t");
	else if (n == 1 && cp == '\r')
		buf_adds(out, "\\r");
	else if (n == 1)
		buf_addf(out, "\\x%02x", s[0]);
	else
		buf_addf(out, "\\u{%x}", cp);
}

void render_escape(struct buf *out, const char *text, size_t len, size_t width)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t shown = 0;

	while (len) {
		unsigned n = glyph_len(s[0]);
		uint32_t cp;

		if (width && shown + 1 >= width && len > 1) {
			buf_adds(out, "…");
			return;
		}
		if (n == 0 || n > len || !utf8_is_valid(s, n)) {
			buf_addf(out, "\\x%02x", s[0]);
			n = 1;
			shown += 4;
		} else {
			size_t before = out->len;

			cp = glyph_decode(s, n);
			if (glyph_is_dangerous(cp)) {
				add_escaped(out, s, n, cp);
				shown += out->len - before;
			} else {
				buf_add(out, s, n);
				shown++;
			}
		}
		s += n;
		len -= n;
	}
}

/* The terminals behind a pager. */
static int paged[STDERR_FILENO + 1] = {-1, -1, -1};

/* What a descriptor shows, in the end. */
static int screen_of(int fd)
{
	return fd >= 0 && fd <= STDERR_FILENO && paged[fd] >= 0 ? paged[fd] : fd;
}

bool render_is_terminal(int fd)
{
	return isatty(screen_of(fd)) == 1;
}

int render_page(int fd, struct err *err)
{
	for (int out = STDOUT_FILENO; out <= STDERR_FILENO; out++) {
		if (out == STDERR_FILENO && !render_is_terminal(out))
			continue;
		paged[out] = fcntl(out, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (paged[out] < 0 || dup2(fd, out) < 0)
			return err_sys(err, "a descriptor of the pager");
	}
	return 0;
}

void render_unpage(void)
{
	for (int out = STDOUT_FILENO; out <= STDERR_FILENO; out++) {
		if (paged[out] < 0)
			continue;
		(void)!dup2(paged[out], out);
		fd_close(&paged[out]);
	}
}

bool render_has_cursor(int fd)
{
	const char *term = getenv("TERM");

	return render_is_terminal(fd) && term && term[0] && !str_eq(term, "dumb");
}

bool render_has_colour(int fd)
{
	const char *no = getenv("NO_COLOR");

	return render_has_cursor(fd) && !(no && no[0]);
}

/* ---- tables --------------------------------------------------------------- */

void table_init(struct table *t, size_t n_cols)
{
	*t = (struct table){.n_cols = n_cols};
}

static void add_cell(struct table *t, const char *text, size_t max, size_t width)
{
	struct buf b;

	buf_init(&b, max);
	render_escape(&b, text, strlen(text), width);
	t->cells = xreallocarray(t->cells, t->n_cells + 1, sizeof(*t->cells));
	t->cells[t->n_cells++] = xstrdup(buf_str(&b));
	buf_done(&b);
}

void table_cell(struct table *t, const char *text)
{
	add_cell(t, text ? text : "", CELL_MAX, TABLE_CELL_WIDTH);
}

void table_cell_whole(struct table *t, const char *text)
{
	/* an escaped byte takes four */
	add_cell(t, text, strlen(text) * 4 + 64, 0);
}

/* ---- trees ----------------------------------------------------------------- */

static void add_value(struct buf *b, const struct json *v)
{
	struct err not = ERR_INIT;
	struct jsonw w;
	const char *s;

	if (!v) {
		buf_addc(b, '-');
	} else if (json_as_str(v, VALUE_MAX, &s, &not) == 0) {
		buf_adds(b, s);
	} else {
		jsonw_init(&w, b);
		json_write(v, &w);
	}
}

/* A limit or a denial of a job, or a wall of a daemon: its name, and the rest in a few words. */
static bool add_named(const struct json *o, const char **name, struct buf *b)
{
	struct err not = ERR_INIT;
	struct spawn_denied denied;
	const char *how = "";
	uint64_t value;
	bool held;

	if (json_get_str(o, "name", true, 256, name, &not) == 0 &&
	    json_get_u64(o, "value", true, 0, UINT64_MAX, &value, &not) == 0 &&
	    json_get_str(o, "mechanism", true, 256, &how, &not) == 0) {
		buf_addf(b, "%" PRIu64 " by %s", value, how);
		return true;
	}
	if (json_has(o, "act") && denials_read_one(o, &denied, &not) == 0) {
		*name = spawn_wall_name(denied.wall);
		denied_sentence(&denied, b);
		return true;
	}
	if (json_get_str(o, "wall", true, 256, name, &not) == 0 &&
	    json_get_str(o, "answer", true, 1024, &how, &not) == 0 &&
	    json_get_bool(o, "held", true, &held, &not) == 0) {
		buf_addf(b, "%s: %s", held ? "held" : "DID NOT HOLD", how);
		return true;
	}
	return false;
}

static void add_tree(struct table *t, const char *prefix, const struct json *v,
		     unsigned depth);

static bool is_object(const struct json *v)
{
	struct err not = ERR_INIT;

	return v && json_as_obj(v, &not) == 0;
}

/* Of objects: rows for each; of plain values: one row. */
static void add_list(struct table *t, const char *prefix, const struct json *arr,
		     unsigned depth)
{
	cleanup_buf struct buf plain = {0};
	size_t n = json_arr_len(arr);

	if (n == 0 || !is_object(json_arr_at(arr, 0))) {
		buf_init(&plain, VALUE_MAX);
		add_value(&plain, n ? arr : NULL);
		table_cell_whole(t, prefix);
		table_cell_whole(t, buf_str(&plain));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct json *v = json_arr_at(arr, i);
		cleanup_buf struct buf b = {0};
		const char *name = "";

		buf_init(&b, 4096);
		bool named = is_object(v) && add_named(v, &name, &b);
		cleanup_free char *key = named ? xasprintf("%s.%s", prefix, name)
					       : xasprintf("%s.%zu", prefix, i);

		if (!named) {
			add_tree(t, key, v, depth + 1);
			continue;
		}
		table_cell_whole(t, key);
		table_cell_whole(t, buf_str(&b));
	}
}

/* created_at and its like; what a spec has by such a name is a person's own text. */
static bool is_time_of_ours(const char *key)
{
	return str_ends(key, "_at") && !str_starts(key, "spec.");
}

static void add_tree(struct table *t, const char *prefix, const struct json *v,
		     unsigned depth)
{
	cleanup_buf struct buf b = {0};
	struct err not = ERR_INIT;
	const struct json *child, *arr;
	char when[WHEN_SIZE];
	const char *key;
	usec_t wall;

	if (depth < JSON_DEPTH_DEFAULT && is_object(v)) {
		const void *at = NULL;

		while (json_obj_next(v, &at, &key, &child)) {
			cleanup_free char *name =
				xasprintf("%s%s%s", prefix, prefix[0] ? "." : "", key);

			if (json_get_arr(v, key, true, SIZE_MAX, &arr, &not) == 0)
				add_list(t, name, arr, depth + 1);
			else
				add_tree(t, name, child, depth + 1);
		}
		return;
	}
	buf_init(&b, VALUE_MAX);
	add_value(&b, v);
	table_cell_whole(t, prefix);
	if (is_time_of_ours(prefix) && when_parse(buf_str(&b), &wall)) {
		when_text(wall, when);
		table_cell_whole(t, when);
		return;
	}
	table_cell_whole(t, buf_str(&b));
}

void table_tree(struct table *t, const struct json *obj)
{
	add_tree(t, "", obj, 0);
}

/* ---- the width of a terminal ------------------------------------------------ */

/* 0: no terminal, so nothing is cut. */
static size_t terminal_columns(int fd)
{
	struct winsize w = {0};

	if (!render_is_terminal(fd))
		return 0;
	return ioctl(screen_of(fd), TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col
								     : COLUMNS_UNKNOWN;
}

size_t render_rows(int fd)
{
	struct winsize w = {0};

	return ioctl(screen_of(fd), TIOCGWINSZ, &w) == 0 && w.ws_row ? w.ws_row
								     : ROWS_UNKNOWN;
}

/* The first character of a text that is not empty: its bytes, and columns of a terminal. */
static size_t glyph_of(const char *s, size_t *ret_columns)
{
	const unsigned char *u = (const unsigned char *)s;
	unsigned n = glyph_len(u[0]);

	if (n == 0 || strnlen(s, n) < n) {
		*ret_columns = 1;
		return 1;
	}
	*ret_columns = glyph_columns(glyph_decode(u, n));
	return n;
}

/* What is not for a terminal is aligned by characters. */
static size_t columns_of(const char *s, bool terminal)
{
	size_t n = 0, bytes, columns;

	for (; *s; s += bytes) {
		bytes = glyph_of(s, &columns);
		n += terminal ? columns : 1;
	}
	return n;
}

/* Returns the columns that it took. */
static size_t add_cut(struct buf *out, const char *s, size_t max)
{
	size_t all = columns_of(s, true), used = 0, bytes, columns;

	if (all <= max) {
		buf_adds(out, s);
		return all;
	}
	if (max == 0)
		return 0;
	for (; *s; s += bytes) {
		bytes = glyph_of(s, &columns);
		if (used + columns > max - 1)
			break;
		buf_add(out, s, bytes);
		used += columns;
	}
	buf_adds(out, "…");
	return used + 1;
}

char *render_fit(const char *line, int fd)
{
	size_t max = terminal_columns(fd);
	cleanup_buf struct buf b = {0};

	if (!max)
		return xstrdup(line);
	buf_init(&b, strlen(line) + 8);
	(void)add_cut(&b, line, max);
	return xstrdup(buf_str(&b));
}

/* The widest first: a name of a job does not push away what stands beside it. */
static void shrink(size_t *widths, size_t n, size_t max)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++) {
		if (widths[i] > max)
			widths[i] = max;
		total += widths[i] + (i + 1 < n ? COLUMN_GAP : 0);
	}
	while (total > max) {
		size_t widest = 0;

		for (size_t i = 1; i < n; i++)
			if (widths[i] > widths[widest])
				widest = i;
		if (widths[widest] <= COLUMN_MIN)
			return; /* render_fit() cuts the line */
		widths[widest]--;
		total--;
	}
}

/* max 0: for no terminal. */
static void add_row(struct buf *line, char *const *cells, const size_t *widths, size_t n,
		    size_t max)
{
	for (size_t i = 0; i < n; i++) {
		size_t used = max ? add_cut(line, cells[i], widths[i])
				  : columns_of(cells[i], false);

		if (!max)
			buf_adds(line, cells[i]);
		if (i + 1 == n)
			break;
		for (size_t k = used; k < widths[i] + COLUMN_GAP; k++)
			buf_addc(line, ' ');
	}
}

void table_print(const struct table *t, bool header)
{
	size_t max = terminal_columns(STDOUT_FILENO), n = t->n_cols;
	bool colour = render_has_colour(STDOUT_FILENO);
	cleanup_free size_t *widths = xcalloc(n, sizeof(*widths));

	for (size_t i = 0; i < t->n_cells; i++) {
		size_t columns = columns_of(t->cells[i], max > 0);

		if (columns > widths[i % n])
			widths[i % n] = columns;
	}
	if (max)
		shrink(widths, n, max);
	for (size_t i = 0; i + n <= t->n_cells; i += n) {
		bool head = header && i == 0 && colour;
		cleanup_buf struct buf line = {0};

		buf_init(&line, ROW_MAX);
		add_row(&line, t->cells + i, widths, n, max);
		cleanup_free char *fit = render_fit(buf_str(&line), STDOUT_FILENO);

		(void)printf("%s%s%s\n", head ? "\x1b[1m" : "", fit,
			     head ? "\x1b[0m" : "");
	}
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){0};
}

char *render_shown(const char *text)
{
	cleanup_buf struct buf b;

	buf_init(&b, 1 << 20);
	render_escape(&b, text, strlen(text), 0);
	return xstrdup(buf_str(&b));
}

const char *render_text_of(const struct json *o, const char *key)
{
	const char *s = "";

	if (!o || !json_has(o, key) || json_is_null(o, key) ||
	    json_get_str(o, key, true, 65536, &s, NULL) < 0)
		return "";
	return s;
}

uint64_t render_number_of(const struct json *o, const char *key)
{
	uint64_t v = 0;

	return o && json_has(o, key) &&
			       json_get_u64(o, key, true, 0, UINT64_MAX, &v, NULL) == 0
		       ? v
		       : 0;
}

void render_json(const struct json *j)
{
	cleanup_buf struct buf b = {0};
	struct jsonw w;

	buf_init(&b, (size_t)64 << 20);
	jsonw_init(&w, &b);
	json_write(j, &w);
	(void)puts(buf_str(&b));
}

void render_size(char out[32], unsigned long long bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1024.0 && u + 1 < ARRAY_SIZE(units)) {
		v /= 1024.0;
		u++;
	}
	(void)snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static bool stdout_is_closed;
static int
	stdout_errno; /* why stdio could not write; stdio only says that it could not */

int render_write(int fd, const void *data, size_t len, struct err *err)
{
	const char *p = data;

	if (len && fd == STDOUT_FILENO && stdout_is_closed) {
		errno = EBADF;
		return err_sys_id(err, ERRID_CORE_OUTPUT, "stdout is closed");
	}
	while (len) {
		struct pollfd pfd = {.fd = fd, .events = POLLOUT};
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EAGAIN && poll(&pfd, 1, -1) >= 0)
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys_id(err, ERRID_CORE_OUTPUT, "write to %s",
					  fd == STDERR_FILENO ? "stderr" : "stdout");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static ssize_t write_stdout(void *cookie, const char *data, size_t len)
{
	struct err err = ERR_INIT;

	(void)cookie;
	if (render_write(STDOUT_FILENO, data, len, &err) == 0)
		return (ssize_t)len;
	errno = stdout_errno = err.sys;
	return 0;
}

int render_stdout_init(bool is_closed, struct err *err)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stdout});

	stdout_is_closed = is_closed;
	if (!f)
		return err_sys(err, "stdout");
	if (render_is_terminal(STDOUT_FILENO) && setvbuf(f, NULL, _IOLBF, BUFSIZ) != 0)
		return err_sys(err, "stdout");
	stdout = f;
	return 0;
}

int render_is_read(struct err *err)
{
	struct pollfd pfd = {.fd = STDOUT_FILENO};

	/* no event is asked for: POLLERR comes unasked, when a pipe has no reader (poll(2)) */
	if (poll(&pfd, 1, 0) <= 0 || !(pfd.revents & POLLERR))
		return 0;
	errno = EPIPE;
	return err_sys_id(err, ERRID_CORE_OUTPUT, "write to stdout");
}

int render_flush(struct err *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (stdout_errno)
		errno = stdout_errno;
	return err_sys_id(err, ERRID_CORE_OUTPUT, "write to stdout");
}
