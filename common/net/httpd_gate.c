/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The framing gate: raw bytes of a request head in, a struct gate_head or a
 * refusal out. It is the only parser of requests, so there is no second reading
 * that could differ from it. Whatever two HTTP implementations have ever been
 * seen to read differently is refused instead of repaired. Pure: no I/O.
 */
#include "common/net/httpd_priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"

#include <assert.h>
#include <strings.h>

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_HTTP_FRAMING, "%s", why);
}

int gate_head_end(const char *data, size_t len, size_t *scanned, size_t *ret_len,
		  struct err *err)
{
	size_t i;

	for (i = *scanned; i < len && i < GATE_HEAD_MAX_BYTES; i++) {
		unsigned char c = (unsigned char)data[i];
		bool after_cr = i > 0 && data[i - 1] == '\r';

		if (after_cr != (c == '\n'))
			return refuse(err, c == '\n' ? "bare LF" : "bare CR");
		if (c == 0x7f || (c < 0x20 && !strchr("\t\r\n", c)) || c == '\0')
			return refuse(err, "control byte in the head");
		if (c >= 0x80)
			return refuse(err, "byte outside ASCII in the head");
		if (c == '\r' && i == 0)
			return refuse(err, "empty request line");
		if (c == '\n' && i >= 3 && data[i - 2] == '\n') {
			*scanned = 0;
			*ret_len = i + 1;
			return 1;
		}
	}
	*scanned = i;
	if (i == GATE_HEAD_MAX_BYTES)
		return refuse(err, "head longer than 8 KiB");
	return 0;
}

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* The next line of *at, NUL-terminated in place; its CRLF is known to be there. */
static char *next_line(char **at)
{
	char *line = *at;
	char *cr = strchr(line, '\r');

	assert(cr);
	*cr = '\0';
	*at = cr + 2;
	return line;
}

static int parse_request_line(char *line, struct gate_head *g, struct err *err)
{
	char *target = strchr(line, ' ');
	char *version;
	char *query;

	if (!target)
		return refuse(err, "request line without a target");
	*target++ = '\0';
	version = strchr(target, ' ');
	if (!version)
		return refuse(err, "request line without a version");
	*version++ = '\0';
	if (!str_eq(version, "HTTP/1.1"))
		return refuse(err, "not HTTP/1.1");
	if (!*line)
		return refuse(err, "no method");
	for (const char *p = line; *p; p++)
		if (!is_token_char(*p))
			return refuse(err, "bad method");
	if (*target != '/')
		return refuse(err, "target is not a path");
	if (strpbrk(target, "\t#"))
		return refuse(err, "bad byte in the target");
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	g->method = line;
	g->path = target;
	g->query = query;
	return 0;
}

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t");
	end = s + strlen(s);
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	return s;
}

static int parse_header(char *line, struct gate_head *g, struct err *err)
{
	char *colon = strchr(line, ':');
	struct gate_pair *h;

	if (*line == ' ' || *line == '\t')
		return refuse(err, "folded header line");
	if (!colon || colon == line)
		return refuse(err, "header line without a name");
	for (const char *p = line; p < colon; p++)
		if (!is_token_char(*p))
			return refuse(err, "bad byte in a header name");
	if (g->n_headers == GATE_HEADERS_MAX)
		return refuse(err, "too many headers");
	*colon = '\0';
	if (gate_header(g, line))
		return refuse(err, "repeated header");
	h = &g->headers[g->n_headers++];
	h->name = line;
	h->value = trim(colon + 1);
	return 0;
}

const char *gate_header(const struct gate_head *g, const char *name)
{
	for (size_t i = 0; i < g->n_headers; i++)
		if (strcasecmp(g->headers[i].name, name) == 0)
			return g->headers[i].value;
	return NULL;
}

/* Is token one of the comma-separated words of list? */
static bool list_has(const char *list, const char *token)
{
	size_t n = strlen(token);

	while (*list) {
		size_t word;

		list += strspn(list, " \t,");
		word = strcspn(list, " \t,");
		if (word == n && strncasecmp(list, token, n) == 0)
			return true;
		list += word;
	}
	return false;
}

static int judge_host(const struct gate_head *g, const char *const *hosts,
		      struct err *err)
{
	static const char *const ours[] = {"lychgate", NULL};
	const char *host = gate_header(g, "Host");

	if (!host)
		return refuse(err, "no Host");
	for (hosts = hosts ? hosts : ours; *hosts; hosts++)
		if (strcasecmp(host, *hosts) == 0)
			return 0;
	return refuse(err, "Host is not ours");
}

static int content_length(const char *value, uint64_t *ret, struct err *err)
{
	struct err why = ERR_INIT;

	if (parse_u64(value, 0, INT64_MAX, ret, &why) < 0)
		return refuse(err, "Content-Length is not a plain number");
	return 0;
}

static int judge_headers(struct gate_head *g, const char *const *hosts, struct err *err)
{
	const char *length = gate_header(g, "Content-Length");
	const char *coding = gate_header(g, "Transfer-Encoding");
	const char *expect = gate_header(g, "Expect");
	const char *connection = gate_header(g, "Connection");
	const char *upgrade = gate_header(g, "Upgrade");

	if (judge_host(g, hosts, err) < 0)
		return -1;
	if (coding && (length || strcasecmp(coding, "chunked") != 0))
		return refuse(err, "Transfer-Encoding");
	if (upgrade && list_has(upgrade, "websocket"))
		return err_set_id(err, ERRID_HTTP_UPGRADE, "Upgrade: websocket");
	if (upgrade)
		return refuse(err, "Upgrade");
	if (length && content_length(length, &g->content_length, err) < 0)
		return -1;
	if (expect && strcasecmp(expect, "100-continue") != 0)
		return refuse(err, "unknown Expect");
	g->is_chunked = coding != NULL;
	g->expect_continue = expect != NULL;
	g->close = connection && list_has(connection, "close");
	return 0;
}

/* "host:port" or, as some write it, "host" alone. */
static bool host_is_of(const char *host, const char *authority)
{
	const char *colon = strrchr(authority, ':');
	size_t n = colon ? (size_t)(colon - authority) : strlen(authority);

	return strcasecmp(host, authority) == 0 ||
	       (strlen(host) == n && strncasecmp(host, authority, n) == 0);
}

static int parse_connect_line(char *line, struct gate_head *g, struct err *err)
{
	char *target = line + strlen("CONNECT "), *version = strchr(target, ' ');

	if (!version)
		return refuse(err, "request line without a version");
	*version++ = '\0';
	if (!str_eq(version, "HTTP/1.1") && !str_eq(version, "HTTP/1.0"))
		return refuse(err, "not HTTP/1.1");
	if (!*target || strpbrk(target, "\t/?#@"))
		return refuse(err, "target of CONNECT is not host:port");
	line[strlen("CONNECT")] = '\0';
	g->method = line;
	g->path = target;
	g->is_connect = true;
	g->close = true;
	return 0;
}

int gate_parse_connect(char *head, size_t len, struct gate_head *ret, struct err *err)
{
	static const char *const not_there[] = {"Transfer-Encoding", "Upgrade", "Expect"};
	struct gate_head g = {0};
	const char *host, *length;
	char *at = head;

	if (parse_connect_line(next_line(&at), &g, err) < 0)
		return -1;
	while (at < head + len - 2)
		if (parse_header(next_line(&at), &g, err) < 0)
			return -1;
	host = gate_header(&g, "Host");
	if (host && !host_is_of(host, g.path))
		return refuse(err, "Host is not what CONNECT names");
	for (size_t i = 0; i < ARRAY_SIZE(not_there); i++)
		if (gate_header(&g, not_there[i]))
			return refuse(err, not_there[i]);
	length = gate_header(&g, "Content-Length");
	if (length && !str_eq(length, "0"))
		return refuse(err, "CONNECT with a body");
	*ret = g;
	return 0;
}

int gate_parse(char *head, size_t len, const char *const *hosts, struct gate_head *ret,
	       struct err *err)
{
	struct gate_head g = {0};
	char *at = head;

	if (parse_request_line(next_line(&at), &g, err) < 0)
		return -1;
	while (at < head + len - 2)
		if (parse_header(next_line(&at), &g, err) < 0)
			return -1;
	if (judge_headers(&g, hosts, err) < 0)
		return -1;
	*ret = g;
	return 0;
}

/* Decode %XX from raw into out (which may be raw). -1: bad escape, NUL or control byte.
 */
static int percent_decode(const char *raw, char *out, bool slash_ok)
{
	char *start = out;

	while (*raw) {
		int c = (unsigned char)*raw++;

		if (c == '%') {
			int hi = hex_digit_value(raw[0]);
			int lo = hi < 0 ? -1 : hex_digit_value(raw[1]);

			if (lo < 0)
				return -1;
			c = hi << 4 | lo;
			raw += 2;
			if (c == '/' && !slash_ok)
				return -1;
		}
		if (c < 0x20 || c == 0x7f)
			return -1;
		*out++ = (char)c;
	}
	*out = '\0';
	return utf8_is_valid(start, (size_t)(out - start)) ? 0 : -1;
}

int httpd_gate_path(const char *raw, bool encoded_slash_ok, char *out, size_t size,
		    struct err *err)
{
	if (strlen(raw) >= size)
		return refuse(err, "path too long");
	if (*raw != '/')
		return refuse(err, "path does not begin with '/'");
	if (percent_decode(raw, out, encoded_slash_ok) < 0)
		return refuse(err, "bad byte or escape in the path");
	for (const char *p = out; p; p = strchr(p, '/')) {
		size_t n;

		p++;
		n = strcspn(p, "/");
		if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return refuse(err, "'.' or '..' in the path");
		if (n == 0 && *p)
			return refuse(err, "empty component in the path");
	}
	return 0;
}

int gate_query(char *query, struct gate_pair out[GATE_QUERY_MAX], size_t *ret_n,
	       struct err *err)
{
	size_t n = 0;
	char *at = query;

	while (at && *at) {
		char *key = at;
		char *value;

		at = strchr(at, '&');
		if (at)
			*at++ = '\0';
		value = strchr(key, '=');
		if (!value || value == key)
			return err_set_id(err, ERRID_HTTP_QUERY, "name=value expected");
		*value++ = '\0';
		if (n == GATE_QUERY_MAX)
			return err_set_id(err, ERRID_HTTP_QUERY, "too many parameters");
		if (percent_decode(key, key, true) < 0 ||
		    percent_decode(value, value, true) < 0)
			return err_set_id(err, ERRID_HTTP_QUERY, "bad byte or escape");
		for (size_t i = 0; i < n; i++)
			if (str_eq(out[i].name, key))
				return err_set_id(err, ERRID_HTTP_QUERY,
						  "repeated parameter");
		out[n].name = key;
		out[n].value = value;
		n++;
	}
	*ret_n = n;
	return 0;
}

int httpd_gate_query(const char *raw, const char *const *allowed, char *out, size_t size,
		     struct err *err)
{
	cleanup_free char *copy = raw ? xstrdup(raw) : NULL;
	struct gate_pair pairs[GATE_QUERY_MAX];
	size_t n = 0;

	out[0] = '\0';
	if (gate_query(copy, pairs, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *const *a = allowed;

		while (*a && !str_eq(*a, pairs[i].name))
			a++;
		if (!*a)
			return err_set_id(err, ERRID_HTTP_QUERY,
					  "unknown parameter %.64s", pairs[i].name);
		if (a == allowed && str_copy(out, size, pairs[i].value) < 0)
			return err_set_id(err, ERRID_HTTP_QUERY, "%s is too long", *a);
	}
	return 0;
}
