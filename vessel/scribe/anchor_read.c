/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * See anchor_read.h.
 *
 * A line that its scribe did not finish is no sin: the last one, or one behind which the next was
 * begun on a new line. It is the beginning of the line of a seal of this log, and that is asked.
 */
#include "vessel/scribe/anchor_read.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Some eight years of one a minute. */
#define LINES_MAX ((size_t)1 << 22)
#define ODD_MAX ((size_t)65536)
#define READ_CHUNK ((size_t)65536)

struct anchored {
	uint64_t size, number; /* of the line */
	off_t at;
	size_t len;
	struct merkle_hash root, hash;
	bool is_sealed, has_root; /* the log has this seal; these records */
};

struct anchor_key {
	uint64_t epoch;
	uint8_t public[ED25519_PUBLIC_SIZE];
};

/* ---- reading the file ---- */

static void add_odd(struct anchor_reader *a, const char *line, size_t len,
		    uint64_t number)
{
	if (!a->n_odd++)
		a->odd_line = number;
	buf_add(&a->odd, line, len);
	buf_addc(&a->odd, '\n');
}

static int add_line(struct anchor_reader *a, const char *line, size_t len, off_t at,
		    uint64_t number, struct err *err)
{
	struct seal s;
	struct anchored *one;

	if (len == 0)
		return 0;
	if (len >= ANCHOR_LINE_MAX || anchor_line_parse(line, len, &s, NULL) < 0) {
		add_odd(a, line, len, number);
		return 0;
	}
	if (a->n == LINES_MAX)
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%s: more than %zu lines",
				  a->file, LINES_MAX);
	if ((a->n & (a->n - 1)) == 0)
		a->line = xreallocarray(a->line, a->n ? 2 * a->n : 1, sizeof(*a->line));
	one = &a->line[a->n++];
	*one = (struct anchored){
		.size = s.size, .number = number, .at = at, .len = len, .root = s.root};
	seal_hash(&s, &one->hash);
	return 0;
}

/* The whole lines of b. */
static int eat_lines(struct anchor_reader *a, struct buf *b, struct err *err)
{
	size_t done = 0, len;
	const char *nl;

	for (; done < b->len && (nl = memchr(b->data + done, '\n', b->len - done));
	     done += len + 1) {
		len = (size_t)(nl - b->data) - done;
		if (add_line(a, b->data + done, len, a->end + (off_t)done, ++a->n_lines,
			     err) < 0)
			return -1;
	}
	a->end += (off_t)done;
	buf_consume(b, done);
	return b->len < ANCHOR_LINE_MAX
		       ? 0
		       : err_set_id(err, ERRID_AUDIT_ANCHOR, "%s: line %llu has no end",
				    a->file, (unsigned long long)a->n_lines + 1);
}

/* What there is from a->end on. */
static int read_lines(struct anchor_reader *a, struct err *err)
{
	cleanup_free char *chunk = xmalloc(READ_CHUNK);
	cleanup_buf struct buf b;
	ssize_t got;

	buf_init(&b, READ_CHUNK + ANCHOR_LINE_MAX);
	for (;;) {
		got = pread(a->fd, chunk, READ_CHUNK, a->end + (off_t)b.len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys_id(err, ERRID_AUDIT_ANCHOR, "read %s", a->file);
		if (got == 0)
			return 0;
		buf_add(&b, chunk, (size_t)got);
		if (eat_lines(a, &b, err) < 0)
			return -1;
	}
}

static int by_size(const void *x, const void *y)
{
	const struct anchored *a = x, *b = y;

	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

static int read_file(struct anchor_reader *a, struct err *err)
{
	struct stat st;

	a->fd = open(a->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (a->fd < 0 || fstat(a->fd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_ANCHOR, "%s", a->file);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%s: no regular file",
				  a->file);
	return read_lines(a, err);
}

void anchor_reader_open(struct anchor_reader *a, const char *file)
{
	*a = (struct anchor_reader){.file = file};
	buf_init(&a->odd, ODD_MAX);
	if (anchor_name(file, a->name, NULL) < 0)
		a->name[0] = '\0';
	if (read_file(a, &a->why) < 0)
		a->n = a->n_odd = 0;
	if (a->n)
		qsort(a->line, a->n, sizeof(*a->line), by_size);
}

void anchor_reader_done(struct anchor_reader *a)
{
	fd_close(&a->fd);
	free(a->line);
	free(a->key);
	buf_done(&a->odd);
	a->line = NULL;
	a->key = NULL;
}

/* ---- beside the log ---- */

void anchor_on_tree(struct anchor_reader *a, const struct merkle *tree)
{
	struct merkle_hash root;

	if (a->at == a->n || a->line[a->at].size != tree->size)
		return;
	merkle_root(tree, &root);
	for (; a->at < a->n && a->line[a->at].size == tree->size; a->at++)
		a->line[a->at].has_root = merkle_hash_eq(&a->line[a->at].root, &root);
}

static void add_key(struct anchor_reader *a, uint64_t epoch,
		    const uint8_t public[ED25519_PUBLIC_SIZE])
{
	if ((a->n_keys & (a->n_keys - 1)) == 0)
		a->key = xreallocarray(a->key, a->n_keys ? 2 * a->n_keys : 1,
				       sizeof(*a->key));
	a->key[a->n_keys].epoch = epoch;
	memcpy(a->key[a->n_keys++].public, public, ED25519_PUBLIC_SIZE);
}

/* Of the lines that are none those that are the beginning of this seal's are explained. */
static void explain_odd(struct anchor_reader *a, const struct seal *s)
{
	cleanup_buf struct buf line, rest;
	const char *at = a->odd.data, *nl;
	size_t left = a->odd.len, len;

	buf_init(&line, ANCHOR_LINE_MAX);
	buf_init(&rest, ODD_MAX);
	anchor_line_write(&line, s);
	for (; left && (nl = memchr(at, '\n', left)); at += len + 1, left -= len + 1) {
		len = (size_t)(nl - at);
		if (len < line.len && memcmp(line.data, at, len) == 0)
			a->n_odd--;
		else
			buf_add(&rest, at, len + 1);
	}
	buf_reset(&a->odd);
	buf_add(&a->odd, rest.data, rest.len);
}

void anchor_on_seal(struct anchor_reader *a, const struct seal *s,
		    const struct merkle_hash *hash)
{
	if (s->has_genesis)
		add_key(a, s->epoch, s->genesis);
	if (s->has_next)
		add_key(a, s->epoch + 1, s->next);
	if (a->n_odd && buf_ok(&a->odd))
		explain_odd(a, s);
	for (size_t i = a->at; i-- > 0 && a->line[i].size == s->size;) {
		if (!merkle_hash_eq(&a->line[i].hash, hash))
			continue;
		a->line[i].is_sealed = true;
		a->newest = s->size;
	}
}

/* The number behind this text, from `from` on. */
static bool number_behind(const char *members, size_t len, const char *from,
			  const char *key, uint64_t *ret)
{
	const char *end = members + len, *at = memmem(members, len, from, strlen(from));
	char digits[24];

	at = at ? memmem(at, (size_t)(end - at), key, strlen(key)) : NULL;
	if (!at)
		return false;
	at += strlen(key);
	(void)snprintf(digits, sizeof(digits), "%.*s",
		       (int)(end - at < 20 ? end - at : 20), at);
	digits[strspn(digits, "0123456789")] = '\0';
	return parse_u64(digits, 0, INT64_MAX, ret, NULL) == 0;
}

void anchor_on_record(struct anchor_reader *a, const char *members, size_t len)
{
	char listed[ANCHOR_NAME_MAX + 8], told[ANCHOR_NAME_MAX + 64];

	if (!*a->name || str_fmt(listed, sizeof(listed), "\"%s\":", a->name) < 0 ||
	    str_fmt(told, sizeof(told),
		    ",\"anchor\":\"%s\",\"kind\":\"path\",\"ok\":true,\"size\":",
		    a->name) < 0)
		return;
	/* a heartbeat's, and that of one that stands again */
	if (!number_behind(members, len, ",\"anchored\":{", listed, &a->promised))
		(void)number_behind(members, len, told, told, &a->promised);
}

/* ---- at the end ---- */

static void fault(struct anchor_reader *a, enum anchor_flaw flaw, uint64_t number,
		  uint64_t size)
{
	if (a->flaw == ANCHOR_HOLDS || flaw < a->flaw ||
	    (flaw == ANCHOR_CUT_OFF && size > a->flaw_size)) {
		a->flaw = flaw;
		a->flaw_line = number;
		a->flaw_size = size;
	}
}

/* By a key of this log, or one that a line which is good, and which the log does not have, says to
 * be the next: a log that was put back had other keys before. */
static bool is_signed(struct anchor_reader *a, const struct seal *s)
{
	for (size_t i = 0; i < a->n_keys; i++)
		if (a->key[i].epoch == s->epoch && seal_is_of(s, a->key[i].public)) {
			if (s->has_next)
				add_key(a, s->epoch + 1, s->next);
			return true;
		}
	return false;
}

static void judge_line(struct anchor_reader *a, const struct anchored *one,
		       const struct uuid *log, uint64_t records)
{
	char line[ANCHOR_LINE_MAX];
	struct seal s;

	if (one->is_sealed)
		return;
	if (pread(a->fd, line, one->len, one->at) != (ssize_t)one->len ||
	    anchor_line_parse(line, one->len, &s, NULL) < 0)
		fault(a, ANCHOR_FORGED, one->number, one->size);
	else if (!*log->s && records == 0)
		fault(a, ANCHOR_CUT_OFF, one->number, one->size);
	else if (!str_eq(s.log.s, log->s))
		fault(a, ANCHOR_OTHER_LOG, one->number, one->size);
	else if (!is_signed(a, &s))
		fault(a, ANCHOR_FORGED, one->number, one->size);
	else if (one->size > records)
		fault(a, ANCHOR_CUT_OFF, one->number, one->size);
	else if (!one->has_root)
		fault(a, ANCHOR_REWRITTEN, one->number, one->size);
	else
		fault(a, ANCHOR_UNSEALED, one->number, one->size);
}

int anchor_say(const struct anchor_reader *a, uint64_t records, struct err *err)
{
	unsigned long long number = a->flaw_line, size = a->flaw_size, has = records;

	switch (a->flaw) {
	case ANCHOR_HOLDS:
		return 0;
	case ANCHOR_FORGED:
		return err_set_id(
			err, ERRID_AUDIT_ANCHOR,
			"%s, line %llu: no key of this log signed it: the anchor "
			"was changed, or the log's keys were",
			a->file, number);
	case ANCHOR_OTHER_LOG:
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "%s, line %llu: a checkpoint of another log: it is not "
				  "this one's, or a new log was put in its place",
				  a->file, number);
	case ANCHOR_CUT_OFF:
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "cut off: the log has %llu records, and %s, line %llu, "
				  "has a checkpoint of %llu: its end was cut, or an old "
				  "copy was put back",
				  has, a->file, number, size);
	case ANCHOR_REWRITTEN:
		return err_set_id(
			err, ERRID_AUDIT_ANCHOR,
			"rewritten: the first %llu records are not those that "
			"%s, line %llu, has a checkpoint of: they were changed, or "
			"an old copy was put back and gone on with",
			size, a->file, number);
	case ANCHOR_UNSEALED:
		return err_set_id(err, ERRID_AUDIT_ANCHOR,
				  "the checkpoint of %llu records, which %s has in line "
				  "%llu, is gone from the log's checkpoints; its records "
				  "are there",
				  size, a->file, number);
	case ANCHOR_SHORTENED:
		return err_set_id(
			err, ERRID_AUDIT_ANCHOR,
			"%s: it was cut, or is an older copy of the anchor: the "
			"log says that it has a checkpoint of %llu records, and "
			"its newest is of %llu",
			a->file, size, (unsigned long long)a->newest);
	case ANCHOR_EMPTY:
		return err_set_id(err, ERRID_AUDIT_ANCHOR, "%s: no checkpoint", a->file);
	case ANCHOR_UNREAD:
		*err = a->why;
		return -1;
	}
	return err_set(err, ERR_INTERNAL, "a flaw of an anchor");
}

static int by_number(const void *x, const void *y)
{
	const struct anchored *a = x, *b = y;

	return a->number < b->number ? -1 : 1;
}

/* What the log promised while it was read was written there before that. */
static bool keeps_promise(struct anchor_reader *a)
{
	size_t before = a->n;
	uint64_t newest = a->newest;
	struct err ignored = ERR_INIT;

	if (a->promised <= newest)
		return true;
	(void)!read_lines(a, &ignored);
	for (size_t i = before; i < a->n; i++)
		newest = a->line[i].size > newest ? a->line[i].size : newest;
	a->n = before;
	return a->promised <= newest;
}

int anchor_judge(struct anchor_reader *a, const struct uuid *log, uint64_t records,
		 struct err *err)
{
	bool is_empty = a->n == 0 && a->n_odd == 0;

	a->was_judged = true;
	if (err_is_set(&a->why)) {
		a->flaw = ANCHOR_UNREAD;
		return anchor_say(a, records, err);
	}
	/* in the order in which they were written: a line says which key signs those behind it */
	if (a->n)
		qsort(a->line, a->n, sizeof(*a->line), by_number);
	if (a->n_odd)
		fault(a, ANCHOR_FORGED, a->odd_line, 0);
	for (size_t i = 0; i < a->n; i++)
		judge_line(a, &a->line[i], log, records);
	if (!keeps_promise(a))
		fault(a, ANCHOR_SHORTENED, 0, a->promised);
	else if (is_empty)
		fault(a, ANCHOR_EMPTY, 0, 0);
	return anchor_say(a, records, err);
}

const char *anchor_flaw_name(enum anchor_flaw flaw)
{
	static const char *const names[] = {
		[ANCHOR_HOLDS] = "holds",	  [ANCHOR_FORGED] = "forged",
		[ANCHOR_OTHER_LOG] = "other log", [ANCHOR_CUT_OFF] = "cut off",
		[ANCHOR_REWRITTEN] = "rewritten", [ANCHOR_UNSEALED] = "unsealed",
		[ANCHOR_SHORTENED] = "shortened", [ANCHOR_EMPTY] = "empty",
		[ANCHOR_UNREAD] = "unreadable",
	};

	assert((size_t)flaw < ARRAY_SIZE(names));
	return names[flaw];
}
