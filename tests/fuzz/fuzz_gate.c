/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The framing gate on raw bytes. Whatever passes must have exactly the framing
 * that the gate reports, judged here by a second, naive look at the same bytes.
 */
#include "common/attr.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/net/httpd_priv.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Header lines of the raw head that begin with the text, in any case. */
static unsigned count_lines(const char *head, const char *text)
{
	unsigned n = 0;

	while ((head = strchr(head, '\n')) != NULL) {
		head++;
		n += strncasecmp(head, text, strlen(text)) == 0;
	}
	return n;
}

static void check_passed(const char *raw, size_t len, struct gate_head *g)
{
	char path[GATE_HEAD_MAX_BYTES];
	struct gate_pair query[GATE_QUERY_MAX];
	struct err err = ERR_INIT;
	size_t n_query = 0;

	assert(strlen(raw) == len);
	assert(count_lines(raw, "host:") == 1);
	assert(count_lines(raw, "content-length:") <= 1);
	assert(count_lines(raw, "transfer-encoding:") == g->is_chunked);
	assert(!g->is_chunked || count_lines(raw, "content-length:") == 0);
	assert(count_lines(raw, "host ") == 0 &&
	       count_lines(raw, "content-length ") == 0);
	assert(g->content_length == 0 || count_lines(raw, "content-length:") == 1);
	assert(!strstr(raw, "\n ") && !strstr(raw, "\n\t"));
	if (httpd_gate_path(g->path, false, path, sizeof(path), &err) == 0) {
		assert(path[0] == '/' && !str_has_control(path, strlen(path)));
		assert(!strstr(path, "/../") && !str_ends(path, "/.."));
	}
	if (g->query) {
		char *copy = xstrdup(g->query);

		if (gate_query(copy, query, &n_query, &err) == 0)
			for (size_t i = 0; i < n_query; i++)
				assert(!str_has_control(query[i].value,
							strlen(query[i].value)));
		free(copy);
	}
}

/* Of CONNECT: a target without a place to hide anything, and no body. */
static void check_connect(const char *raw, const struct gate_head *g)
{
	assert(g->is_connect && g->close && g->content_length == 0 && !g->query);
	assert(*g->path && !strpbrk(g->path, " \t/?#@"));
	assert(count_lines(raw, "host:") <= 1);
	assert(count_lines(raw, "transfer-encoding:") == 0);
	assert(count_lines(raw, "content-length:") <= 1);
	assert(!strstr(raw, "\n ") && !strstr(raw, "\n\t"));
}

static void read_connect(const char *raw, size_t len)
{
	char *head = xstrndup(raw, len);
	struct err err = ERR_INIT;
	struct gate_head g;

	if (gate_parse_connect(head, len, &g, &err) == 0)
		check_connect(raw, &g);
	free(head);
}

#define BODY_MAX 64

static int feed(const char *data, size_t len, size_t step, struct buf *body, size_t *ret)
{
	struct gate_chunks c;
	struct err err = ERR_INIT;
	size_t used;
	int r = 0;

	gate_chunks_begin(&c, BODY_MAX);
	buf_init(body, BODY_MAX);
	*ret = 0;
	for (size_t at = 0; at < len && r == 0; at += step) {
		used = 0;
		r = gate_chunks_feed(&c, data + at, len - at < step ? len - at : step,
				     body, &used, &err);
		*ret += used;
	}
	assert(buf_ok(body));
	return r;
}

/* How far it goes where its bytes are dropped. */
static size_t dropped(const char *data, size_t len)
{
	struct gate_chunks c;
	struct err err = ERR_INIT;
	size_t used = 0;

	gate_chunks_begin(&c, 0);
	assert(gate_chunks_feed(&c, data, len, NULL, &used, &err) >= 0);
	return used;
}

/* A body in chunks: the same at once and byte by byte, and no more than it may be. */
static void read_chunks(const char *data, size_t len)
{
	cleanup_buf struct buf one, other;
	size_t used, used_slowly;
	int at_once = feed(data, len, len + 1, &one, &used);
	int slowly = feed(data, len, 1, &other, &used_slowly);

	assert(at_once == slowly);
	if (at_once < 0)
		return;
	assert(used == used_slowly && used <= len);
	assert(dropped(data, len) == used);
	assert(one.len == other.len &&
	       memcmp(buf_str(&one), buf_str(&other), one.len) == 0);
	assert(at_once == 0 ||
	       (used >= 5 && memcmp(data + used - 5, "0\r\n\r\n", 5) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t scanned = 0, whole = 0, bytewise = 0;
	struct gate_head g;
	struct err err = ERR_INIT;
	int at_once = gate_head_end((const char *)data, size, &scanned, &whole, &err);
	int slowly = 0;

	/* How the bytes arrive must not matter. */
	scanned = 0;
	for (size_t n = 1; n <= size && slowly == 0; n++)
		slowly = gate_head_end((const char *)data, n, &scanned, &bytewise, &err);
	assert(at_once == slowly && whole == bytewise);
	if (at_once == 1) {
		char *raw = xstrndup((const char *)data, whole);
		char *head = xmalloc(whole + 1);

		memcpy(head, data, whole);
		head[whole] = '\0';
		if (gate_parse(head, whole, NULL, &g, &err) == 0) {
			check_passed(raw, whole, &g);
			if (g.is_chunked)
				read_chunks((const char *)data + whole, size - whole);
		}
		if (str_starts(raw, "CONNECT "))
			read_connect(raw, whole);
		free(head);
		free(raw);
	}
	return 0;
}
