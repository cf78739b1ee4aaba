/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * See line.h.
 */
#include "vessel/scribe/line.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "vessel/scribe/seal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SEGMENT_DIGITS 10
#define SEGMENT_PREFIX "segment-"
#define SEGMENT_SUFFIX ".jsonl"
#define READ_CHUNK ((size_t)1 << 20)

bool audit_prod_is_valid(const char *prod)
{
	size_t n = strspn(prod, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n < AUDIT_PROD_MAX && prod[n] == '\0' && prod[0] >= 'a';
}

void audit_line_write(struct buf *out, const struct audit_head *h, const char *members,
		      size_t len)
{
	buf_addf(out,
		 "{\"v\":1,\"log\":\"%s\",\"seq\":%llu,\"prev\":\"%s\",\"ts\":\"%s\","
		 "\"boot\":\"%s\",\"up_ms\":%llu,\"prod\":\"%s\",\"stream\":\"%s\","
		 "\"pseq\":%llu,",
		 h->log.s, (unsigned long long)h->seq, h->prev, h->ts, h->boot.s,
		 (unsigned long long)h->up_ms, h->prod, h->stream.s,
		 (unsigned long long)h->pseq);
	buf_add(out, members, len);
	buf_adds(out, "}\n");
}

/* ---- reading the head back ---- */

struct cursor {
	const char *p, *end;
	bool bad;
};

static void literal(struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	if (c->bad || (size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0) {
		c->bad = true;
		return;
	}
	c->p += n;
}

/* Bytes up to the closing quote, which is stepped over. */
static void text(struct cursor *c, char *out, size_t size)
{
	const char *quote;
	size_t n;

	out[0] = '\0';
	if (c->bad)
		return;
	quote = memchr(c->p, '"', (size_t)(c->end - c->p));
	n = quote ? (size_t)(quote - c->p) : size;
	if (n >= size) {
		c->bad = true;
		return;
	}
	memcpy(out, c->p, n);
	out[n] = '\0';
	c->p = quote + 1;
}

static void uuid(struct cursor *c, struct uuid *out)
{
	struct uuid raw;

	text(c, raw.s, sizeof(raw.s));
	if (c->bad || uuid_parse(raw.s, out, NULL) < 0 || !str_eq(raw.s, out->s))
		c->bad = true;
}

static void number(struct cursor *c, uint64_t min, uint64_t *out)
{
	char digits[24];
	size_t n = 0;

	if (c->bad)
		return;
	while (c->p < c->end && n < sizeof(digits) - 1 && *c->p >= '0' && *c->p <= '9')
		digits[n++] = *c->p++;
	digits[n] = '\0';
	if (parse_u64(digits, min, INT64_MAX, out, NULL) < 0)
		c->bad = true;
}

int audit_line_parse(const char *line, size_t len, struct audit_head *ret,
		     const char **ret_members, struct err *err)
{
	struct cursor c = {.p = line, .end = line + len};
	struct audit_head h = {0};
	uint8_t raw[SHA256_SIZE];

	if (len >= AUDIT_LINE_MAX)
		return err_set_id(err, ERRID_AUDIT_CHAIN, "a line of %zu bytes", len);
	literal(&c, "{\"v\":1,\"log\":\"");
	uuid(&c, &h.log);
	literal(&c, ",\"seq\":");
	number(&c, 1, &h.seq);
	literal(&c, ",\"prev\":\"");
	text(&c, h.prev, sizeof(h.prev));
	if (!c.bad && sha256_hex_parse(h.prev, raw, NULL) < 0)
		c.bad = true;
	literal(&c, ",\"ts\":\"");
	text(&c, h.ts, sizeof(h.ts));
	literal(&c, ",\"boot\":\"");
	uuid(&c, &h.boot);
	literal(&c, ",\"up_ms\":");
	number(&c, 0, &h.up_ms);
	literal(&c, ",\"prod\":\"");
	text(&c, h.prod, sizeof(h.prod));
	literal(&c, ",\"stream\":\"");
	uuid(&c, &h.stream);
	literal(&c, ",\"pseq\":");
	number(&c, 1, &h.pseq);
	literal(&c, ",\"");
	if (c.bad || !audit_prod_is_valid(h.prod) || line[len - 1] != '}')
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "a line is not one of the audit log's (byte %zu)",
				  (size_t)(c.p - line));
	*ret = h;
	*ret_members = c.p - 1;
	return 0;
}

bool audit_line_seal(const struct audit_head *h, const char *members, size_t len,
		     char ret_hex[SHA256_HEX_SIZE])
{
	struct cursor c = {.p = members, .end = members + len};
	char event[AUDIT_PROD_MAX];
	uint8_t raw[SHA256_SIZE];

	literal(&c, "\"event\":\"");
	text(&c, event, sizeof(event));
	literal(&c, ",\"seal\":\"");
	text(&c, ret_hex, SHA256_HEX_SIZE);
	return !c.bad && str_eq(h->prod, AUDIT_OWN_PROD) &&
	       sha256_hex_parse(ret_hex, raw, NULL) == 0;
}

bool audit_line_is_event(const struct audit_head *h, const char *members, size_t len,
			 const char *event)
{
	static const char begin[] = "\"event\":\"";
	size_t before = strlen(begin), n = strlen(event);

	return str_eq(h->prod, AUDIT_OWN_PROD) && len > before + n &&
	       memcmp(members, begin, before) == 0 &&
	       memcmp(members + before, event, n) == 0 && members[before + n] == '"';
}

/* ---- the chain ---- */

void audit_chain_init(struct audit_chain *c)
{
	*c = (struct audit_chain){.seq = 1};
	memset(c->prev, '0', SHA256_HEX_SIZE - 1);
}

void audit_chain_step(struct audit_chain *c, const char *line, size_t len)
{
	struct merkle_hash leaf;

	merkle_leaf(line, len, &leaf);
	merkle_add(&c->tree, &leaf);
	hex_encode(leaf.b, sizeof(leaf.b), c->prev);
	c->seq++;
}

int audit_chain_next(struct audit_chain *c, const char *line, size_t len,
		     struct audit_head *ret, const char **ret_members, struct err *err)
{
	if (audit_line_parse(line, len, ret, ret_members, err) < 0)
		return err_wrap(err, "seq %llu", (unsigned long long)c->seq);
	if (ret->seq != c->seq)
		return err_set_id(
			err, ERRID_AUDIT_CHAIN, "seq %llu: the line says seq %llu",
			(unsigned long long)c->seq, (unsigned long long)ret->seq);
	if (!str_eq(ret->prev, c->prev))
		return err_set_id(
			err, ERRID_AUDIT_CHAIN,
			"seq %llu: its \"prev\" is not the hash of the line before",
			(unsigned long long)c->seq);
	if (*c->log.s && !str_eq(c->log.s, ret->log.s))
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: a line of another log",
				  (unsigned long long)c->seq);
	c->log = ret->log;
	audit_chain_step(c, line, len);
	return 0;
}

/* ---- files ---- */

void audit_segment_name(uint64_t n, char out[AUDIT_SEGMENT_NAME])
{
	(void)snprintf(out, AUDIT_SEGMENT_NAME, SEGMENT_PREFIX "%0*llu" SEGMENT_SUFFIX,
		       SEGMENT_DIGITS, (unsigned long long)(n % 10000000000ULL));
}

static uint64_t segment_number(const char *name)
{
	const char *digits = name + strlen(SEGMENT_PREFIX);
	char again[AUDIT_SEGMENT_NAME], bare[SEGMENT_DIGITS + 1];
	uint64_t n;

	if (!str_starts(name, SEGMENT_PREFIX) || strlen(digits) < SEGMENT_DIGITS)
		return 0;
	digits += strspn(digits, "0");
	(void)snprintf(bare, sizeof(bare), "%.*s", (int)strspn(digits, "0123456789"),
		       digits);
	if (parse_u64(bare, 1, 9999999999ULL, &n, NULL) < 0)
		return 0;
	audit_segment_name(n, again);
	return str_eq(again, name) ? n : 0;
}

static bool is_beside(const char *name)
{
	static const char *const names[] = {".", "..", "lock", SEAL_FILE,
					    AUDIT_KEYS_FILE};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

int audit_segments(int dirfd, uint64_t *ret_first, uint64_t *ret_last, struct err *err)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	uint64_t first = 0, last = 0, count = 0;
	const struct dirent *e;

	if (!d) {
		int r = err_sys_id(err, ERRID_AUDIT_DIR, "list the audit directory");

		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	while ((errno = 0, e = readdir(d))) {
		uint64_t n = segment_number(e->d_name);

		if (is_beside(e->d_name))
			continue;
		if (!n)
			return err_set_id(err, ERRID_AUDIT_CHAIN,
					  "the audit directory holds a foreign file");
		first = !first || n < first ? n : first;
		last = n > last ? n : last;
		count++;
	}
	if (errno)
		return err_sys_id(err, ERRID_AUDIT_DIR, "list the audit directory");
	*ret_first = first;
	*ret_last = last;
	if (count && last - first + 1 != count)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "a segment between %llu and %llu is missing",
				  (unsigned long long)first, (unsigned long long)last);
	return 0;
}

/* The complete lines at the front of the buffer. */
static int eat_lines(struct buf *b, struct audit_chain *c, audit_line_fn *fn, void *arg,
		     uint64_t *end, struct err *err)
{
	size_t at = 0;
	const char *nl;

	while (at < b->len && (nl = memchr(b->data + at, '\n', b->len - at))) {
		size_t len = (size_t)(nl - (b->data + at));
		struct audit_head head;
		const char *members;

		if (audit_chain_next(c, b->data + at, len, &head, &members, err) < 0)
			return -1;
		if (fn && fn(&head, members, len - (size_t)(members - (b->data + at)),
			     arg, err) < 0)
			return -1;
		at += len + 1;
		*end += len + 1;
	}
	buf_consume(b, at);
	if (b->len >= AUDIT_LINE_MAX)
		return err_set_id(err, ERRID_AUDIT_CHAIN, "seq %llu: a line without end",
				  (unsigned long long)c->seq);
	return 0;
}

int audit_segment_open(int dirfd, uint64_t n, int flags, int *ret, struct err *err)
{
	char name[AUDIT_SEGMENT_NAME];
	cleanup_close int fd = -1;
	struct stat st;

	audit_segment_name(n, name);
	fd = fs_open_beneath(dirfd, name, O_NOFOLLOW | O_NONBLOCK | flags, 0600, err);
	if (fd < 0)
		return err_wrap(err, "%s", name);
	if (fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_AUDIT_DIR, "%s is not a regular file", name);
	*ret = TAKE_FD(fd);
	return 0;
}

int audit_segment_read(int dirfd, uint64_t n, struct audit_chain *c, audit_line_fn *fn,
		       void *arg, uint64_t *ret_end, uint64_t *ret_size, struct err *err)
{
	cleanup_free char *chunk = xmalloc(READ_CHUNK);
	cleanup_buf struct buf b;
	char name[AUDIT_SEGMENT_NAME];
	cleanup_close int fd = -1;
	struct stat st;
	ssize_t got;

	buf_init(&b, READ_CHUNK + AUDIT_LINE_MAX);
	*ret_end = *ret_size = 0;
	audit_segment_name(n, name);
	if (audit_segment_open(dirfd, n, O_RDONLY, &fd, err) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "%s", name);
	while (*ret_size < (uint64_t)st.st_size) {
		uint64_t left = (uint64_t)st.st_size - *ret_size;

		got = read(fd, chunk, left < READ_CHUNK ? (size_t)left : READ_CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys_id(err, ERRID_AUDIT_WRITE, "read %s", name);
		if (got == 0)
			break;
		*ret_size += (uint64_t)got;
		buf_add(&b, chunk, (size_t)got);
		if (eat_lines(&b, c, fn, arg, ret_end, err) < 0)
			return err_wrap(err, "%s", name);
	}
	return 0;
}
