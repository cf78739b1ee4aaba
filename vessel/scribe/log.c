/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * Every segment begins with a record of the scribe that names the streams and their last
 * numbers, so a restart reads the last segment and the one before it (for the hashes of
 * what was written lately) and never the whole log.
 */
#include "vessel/scribe/log.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define STREAMS_MAX (SCRIBE_PRODUCERS_MAX * SCRIBE_STREAMS_EACH)
#define OWN_PROD "scribe"
#define HEADER_EVENT "\"event\":\"scribe.segment\""

struct print {
	uint8_t b[8]; /* of SHA256(members): tells a repetition from another event */
};

struct stream {
	char prod[AUDIT_PROD_MAX];
	struct uuid id;
	uint64_t last;
	uint64_t since; /* the first number whose print is known */
	uint64_t used;	/* seq of its last line: the longest silent one makes room */
	struct print prints[SCRIBE_REMEMBERED];
};

struct scribe_log {
	struct scribe_log_config cfg;
	int dirfd, lock_fd, fd;
	uint64_t segment, size;
	struct audit_chain chain;
	struct stream *streams[STREAMS_MAX];
	size_t n_streams;
	struct buf staged;
	size_t n_staged;
	bool is_broken; /* a commit failed: nothing works any more */
	struct scribe_counts counts;
};

/* ---- streams ---- */

/* i below n_streams */
static struct stream *stream_at(const struct scribe_log *l, size_t i)
{
	struct stream *s = l->streams[i];

	assert(s);
	return s;
}

static struct stream *find_stream(const struct scribe_log *l, const char *prod,
				  const struct uuid *id)
{
	for (size_t i = 0; i < l->n_streams; i++)
		if (str_eq(stream_at(l, i)->prod, prod) &&
		    str_eq(stream_at(l, i)->id.s, id->s))
			return stream_at(l, i);
	return NULL;
}

/*
 * Where a new stream of this producer goes: a free place, or that of its own stream that was silent
 * for longest. Never another producer's: the outbox is silent for as long as the database is away,
 * while a vessel that cannot reach it starts again and again, a stream each time. NULL: one
 * producer too many.
 */
static struct stream *place_for(struct scribe_log *l, const char *prod)
{
	struct stream *oldest = NULL;
	size_t own = 0, producers = 1; /* with this one */

	for (size_t i = 0; i < l->n_streams; i++) {
		struct stream *s = stream_at(l, i);
		size_t before = 0;

		if (str_eq(s->prod, prod)) {
			own++;
			if (!oldest || s->used < oldest->used)
				oldest = s;
			continue;
		}
		while (before < i && !str_eq(stream_at(l, before)->prod, s->prod))
			before++;
		producers += before == i; /* the first of its name */
	}
	if (own == SCRIBE_STREAMS_EACH) {
		*oldest = (struct stream){0};
		return oldest;
	}
	if (producers > SCRIBE_PRODUCERS_MAX)
		return NULL;
	return l->streams[l->n_streams++] = xnew(struct stream);
}

static struct stream *get_stream(struct scribe_log *l, const char *prod,
				 const struct uuid *id, struct err *err)
{
	struct stream *s = find_stream(l, prod, id);

	if (s)
		return s;
	s = place_for(l, prod);
	if (!s) {
		(void)err_set_id(err, ERRID_AUDIT_EVENT,
				 "%s would be producer %d of this log; it has at most %d",
				 prod, SCRIBE_PRODUCERS_MAX + 1, SCRIBE_PRODUCERS_MAX);
		return NULL;
	}
	if (str_copy(s->prod, sizeof(s->prod), prod) < 0)
		s->prod[0] = '\0'; /* was checked: it fits */
	s->id = *id;
	s->since = 1;
	s->used = l->chain.seq;
	return s;
}

static struct print print_of(const char *members, size_t len)
{
	uint8_t full[SHA256_SIZE];
	struct print p;

	sha256_of(members, len, full);
	memcpy(p.b, full, sizeof(p.b));
	return p;
}

static void remember(struct scribe_log *l, struct stream *s, uint64_t pseq,
		     struct print p)
{
	s->prints[pseq % SCRIBE_REMEMBERED] = p;
	s->last = pseq;
	s->used = l->chain.seq;
}

static bool print_is_known(const struct stream *s, uint64_t pseq)
{
	return pseq >= s->since && pseq + SCRIBE_REMEMBERED > s->last;
}

uint64_t scribe_log_last(struct scribe_log *l, const char *prod,
			 const struct uuid *stream)
{
	const struct stream *s = find_stream(l, prod, stream);

	return s ? s->last : 0;
}

/* ---- recovery ---- */

/* The streams that a segment's first record names, with what they had before it. */
static int read_header(struct scribe_log *l, const char *members, size_t len,
		       struct err *err)
{
	cleanup_json struct json *j = NULL;
	cleanup_buf struct buf text;
	const struct json *arr = NULL;

	buf_init(&text, AUDIT_LINE_MAX);
	buf_addc(&text, '{');
	buf_add(&text, members, len);
	if (json_parse(text.data, text.len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_get_arr(j, "streams", true, STREAMS_MAX, &arr, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *o = json_arr_at(arr, i);
		const char *prod, *id;
		struct uuid stream;
		struct stream *s;
		uint64_t last, used;

		if (json_as_obj(o, err) < 0 ||
		    json_get_str(o, "prod", true, AUDIT_PROD_MAX - 1, &prod, err) < 0 ||
		    json_get_str(o, "stream", true, 36, &id, err) < 0 ||
		    json_get_u64(o, "last", true, 1, INT64_MAX, &last, err) < 0 ||
		    json_get_u64(o, "seq", true, 1, INT64_MAX, &used, err) < 0 ||
		    uuid_parse(id, &stream, err) < 0)
			return -1;
		s = get_stream(l, prod, &stream, err);
		if (!s)
			return -1;
		if (s->last < last) { /* its events lie before what is read here */
			s->last = last;
			s->since = last + 1;
			s->used = used;
		}
	}
	return 0;
}

static int on_old_line(const struct audit_head *h, const char *members, size_t len,
		       void *arg, struct err *err)
{
	struct scribe_log *l = arg;
	bool is_own = str_eq(h->prod, OWN_PROD);
	struct stream *s;

	if (is_own && len > strlen(HEADER_EVENT) &&
	    memcmp(members, HEADER_EVENT, strlen(HEADER_EVENT)) == 0 &&
	    read_header(l, members, len, err) < 0)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: the segment's first record: not readable",
				  (unsigned long long)h->seq);
	s = get_stream(l, h->prod, &h->stream, err);
	if (!s)
		return -1;
	if (h->pseq != s->last + 1)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: number %llu of %s follows %llu",
				  (unsigned long long)h->seq, (unsigned long long)h->pseq,
				  h->prod, (unsigned long long)s->last);
	/* without the brace that ends the line */
	remember(l, s, h->pseq, print_of(members, len - 1));
	return 0;
}

/* Where the chain stands before segment n: its own first line says it. */
static int start_chain_at(struct scribe_log *l, uint64_t n, struct err *err)
{
	cleanup_free char *line = xmalloc(AUDIT_LINE_MAX);
	char name[AUDIT_SEGMENT_NAME];
	cleanup_close int fd = -1;
	struct audit_head head;
	const char *members, *nl;
	ssize_t got;

	audit_chain_init(&l->chain);
	if (n == 1)
		return 0;
	audit_segment_name(n, name);
	fd = fs_open_beneath(l->dirfd, name, O_RDONLY | O_NOFOLLOW, 0, err);
	if (fd < 0)
		return err_wrap(err, "%s", name);
	got = pread(fd, line, AUDIT_LINE_MAX, 0);
	if (got < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "read %s", name);
	nl = memchr(line, '\n', (size_t)got);
	if (!nl)
		return err_set_id(err, ERRID_AUDIT_CHAIN, "%s: no first line", name);
	if (audit_line_parse(line, (size_t)(nl - line), &head, &members, err) < 0)
		return err_wrap(err, "%s", name);
	l->chain.log = head.log;
	l->chain.seq = head.seq;
	return str_copy(l->chain.prev, sizeof(l->chain.prev), head.prev);
}

static int open_segment(struct scribe_log *l, uint64_t n, int flags, struct err *err)
{
	char name[AUDIT_SEGMENT_NAME];

	fd_close(&l->fd);
	audit_segment_name(n, name);
	l->fd = fs_open_beneath(l->dirfd, name, O_WRONLY | O_APPEND | O_NOFOLLOW | flags,
				0600, err);
	if (l->fd < 0) {
		err->id = ERRID_AUDIT_WRITE;
		err->code = ERR_UNAVAILABLE;
		return err_wrap(err, "%s", name);
	}
	l->segment = n;
	return 0;
}

/* The last line was not finished when its writer died: nobody was told that it exists. */
static int cut_tail(struct scribe_log *l, uint64_t end, uint64_t size, struct err *err)
{
	if (end < size && (ftruncate(l->fd, (off_t)end) < 0 || fdatasync(l->fd) < 0))
		return err_sys_id(err, ERRID_AUDIT_WRITE, "cut a torn line");
	l->size = end;
	l->counts.recovered_bytes = size - end;
	return 0;
}

static int recover(struct scribe_log *l, struct err *err)
{
	uint64_t first, last, end = 0, size = 0;

	if (audit_segments(l->dirfd, &first, &last, err) < 0)
		return -1;
	if (!last)
		return 0;
	if (first != 1)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "the log begins with segment %llu",
				  (unsigned long long)first);
	if (start_chain_at(l, last > 1 ? last - 1 : 1, err) < 0)
		return -1;
	for (uint64_t n = last > 1 ? last - 1 : 1; n <= last; n++) {
		if (audit_segment_read(l->dirfd, n, &l->chain, on_old_line, l, &end,
				       &size, err) < 0)
			return -1;
		if (n < last && end != size)
			return err_set_id(err, ERRID_AUDIT_CHAIN,
					  "segment %llu ends in the middle of a line",
					  (unsigned long long)n);
	}
	if (open_segment(l, last, 0, err) < 0)
		return -1;
	return cut_tail(l, end, size, err);
}

/* ---- opening ---- */

static int open_dir(struct scribe_log *l, struct err *err)
{
	pid_t holder = 0;
	struct stat st;

	l->dirfd = open(l->cfg.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->dirfd < 0 || fstat(l->dirfd, &st) < 0)
		return err_sys_id(err, ERRID_AUDIT_DIR, "%s", l->cfg.dir);
	if (st.st_uid != geteuid())
		return err_set_id(err, ERRID_AUDIT_DIR, "%s: belongs to uid %u",
				  l->cfg.dir, st.st_uid);
	if ((st.st_mode & 07777) != 0700)
		return err_set_id(err, ERRID_AUDIT_DIR, "%s: mode %04o, must be 0700",
				  l->cfg.dir, st.st_mode & 07777);
	l->lock_fd = fs_open_beneath(l->dirfd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW,
				     0600, err);
	if (l->lock_fd < 0) {
		err->id = ERRID_AUDIT_WRITE;
		err->code = ERR_UNAVAILABLE;
		return err_wrap(err, "%s/lock", l->cfg.dir);
	}
	if (fs_lock(l->lock_fd, &holder, err) < 0)
		return err_wrap(err, "%s (held by process %d)", l->cfg.dir, (int)holder);
	return 0;
}

static int stage_start(struct scribe_log *l, struct err *err)
{
	cleanup_buf struct buf more;

	buf_init(&more, 128);
	if (l->counts.recovered_bytes) {
		buf_addf(&more, "\"bytes\":%llu",
			 (unsigned long long)l->counts.recovered_bytes);
		if (scribe_log_own(l, "scribe.recovered_tail", &more, err) < 0)
			return -1;
	}
	return scribe_log_own(l, "scribe.start", NULL, err);
}

int scribe_log_open(const struct scribe_log_config *cfg, struct scribe_log **ret,
		    struct err *err)
{
	struct scribe_log *l = xnew(struct scribe_log);

	l->cfg = *cfg;
	if (!l->cfg.segment_bytes)
		l->cfg.segment_bytes = SCRIBE_SEGMENT_BYTES;
	l->dirfd = l->lock_fd = l->fd = -1;
	audit_chain_init(&l->chain);
	/* the last event of a batch, and a segment's header, may pass the batch's size */
	buf_init(&l->staged, SCRIBE_BATCH_BYTES + 2 * AUDIT_LINE_MAX);
	if (open_dir(l, err) < 0 || recover(l, err) < 0) {
		scribe_log_free(l);
		return -1;
	}
	if (!*l->chain.log.s) /* nothing yet, or a first line that was torn */
		uuid_new(cfg->rng, &l->chain.log);
	if (stage_start(l, err) < 0) {
		scribe_log_free(l);
		return -1;
	}
	*ret = l;
	return 0;
}

void scribe_log_free(struct scribe_log *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_streams; i++)
		free(l->streams[i]);
	buf_done(&l->staged);
	fd_close(&l->fd);
	fd_close(&l->lock_fd);
	fd_close(&l->dirfd);
	free(l);
}

/* ---- staging ---- */

static int stage(struct scribe_log *l, struct stream *s, uint64_t pseq,
		 const char *members, size_t len, struct err *err)
{
	usec_t wall = l->cfg.clock->wall_usec(l->cfg.clock->ctx);
	usec_t up = l->cfg.clock->boot_usec(l->cfg.clock->ctx);
	struct audit_head h = {
		.log = l->chain.log,
		.seq = l->chain.seq,
		.boot = l->cfg.kernel_boot,
		.up_ms = up / USEC_PER_MSEC,
		.stream = s->id,
		.pseq = pseq,
	};
	size_t before = l->staged.len, line;

	clock_rfc3339(wall, h.ts);
	if (str_copy(h.prev, sizeof(h.prev), l->chain.prev) < 0 ||
	    str_copy(h.prod, sizeof(h.prod), s->prod) < 0)
		return err_set(err, ERR_INTERNAL, "the head of a line does not fit");
	audit_line_write(&l->staged, &h, members, len);
	line = l->staged.len - before;
	if (!buf_ok(&l->staged) || line > AUDIT_LINE_MAX)
		return err_set(err, ERR_INTERNAL, "a line does not fit");
	audit_leaf(l->staged.data + before, line - 1, l->chain.prev);
	l->chain.seq++;
	l->n_staged++;
	remember(l, s, pseq, print_of(members, len));
	return 0;
}

/* The first line of a segment. */
static int stage_header(struct scribe_log *l, struct err *err)
{
	struct stream *own = get_stream(l, OWN_PROD, &l->chain.log, err);
	cleanup_buf struct buf b;
	bool comma = false;

	buf_init(&b, AUDIT_EVENT_MAX);
	if (!own)
		return -1;
	buf_addf(&b, HEADER_EVENT ",\"segment\":%llu,\"streams\":[",
		 (unsigned long long)l->segment);
	for (size_t i = 0; i < l->n_streams; i++) {
		const struct stream *s = stream_at(l, i);

		if (!s->last)
			continue;
		buf_addf(&b,
			 "%s{\"prod\":\"%s\",\"stream\":\"%s\",\"last\":%llu,"
			 "\"seq\":%llu}",
			 comma ? "," : "", s->prod, s->id.s, (unsigned long long)s->last,
			 (unsigned long long)s->used);
		comma = true;
	}
	buf_addc(&b, ']');
	if (!buf_ok(&b))
		return err_set(err, ERR_INTERNAL, "a segment's first record is too long");
	return stage(l, own, own->last + 1, b.data, b.len, err);
}

static int new_segment(struct scribe_log *l, struct err *err)
{
	if (open_segment(l, l->segment + 1, O_CREAT | O_EXCL, err) < 0)
		return -1;
	if (fsync(l->dirfd) < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "fsync the audit directory");
	l->size = 0;
	return stage_header(l, err);
}

/* Before the first line of a batch: which segment it goes to. */
static int choose_segment(struct scribe_log *l, struct err *err)
{
	if (l->is_broken)
		return err_set_id(err, ERRID_AUDIT_WRITE, "a write has failed before");
	if (l->n_staged)
		return 0;
	if (l->fd < 0 || l->size >= l->cfg.segment_bytes)
		return new_segment(l, err);
	/* its first line was torn and cut */
	return l->size == 0 ? stage_header(l, err) : 0;
}

int scribe_log_own(struct scribe_log *l, const char *event, const struct buf *more,
		   struct err *err)
{
	cleanup_buf struct buf b;
	struct stream *own;

	if (choose_segment(l, err) < 0) {
		l->is_broken = true;
		return -1;
	}
	buf_init(&b, AUDIT_EVENT_MAX);
	own = get_stream(l, OWN_PROD, &l->chain.log, err);
	if (!own)
		return -1;
	buf_addf(&b, "\"event\":\"%s\"", event);
	if (more && more->len) {
		buf_addc(&b, ',');
		buf_add(&b, more->data, more->len);
	}
	if (!buf_ok(&b))
		return err_set(err, ERR_INTERNAL, "a record of the scribe is too long");
	return stage(l, own, own->last + 1, b.data, b.len, err);
}

static int judge_old(const struct stream *s, uint64_t pseq, const char *members,
		     size_t len, struct err *err)
{
	struct print p = print_of(members, len);

	if (!print_is_known(s, pseq))
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "%s sends number %llu again, %llu was its last",
				  s->prod, (unsigned long long)pseq,
				  (unsigned long long)s->last);
	if (memcmp(p.b, s->prints[pseq % SCRIBE_REMEMBERED].b, sizeof(p.b)) != 0)
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "%s sends another event as number %llu than the one "
				  "that was written",
				  s->prod, (unsigned long long)pseq);
	return 0;
}

int scribe_log_add(struct scribe_log *l, const char *prod, const struct uuid *stream,
		   uint64_t pseq, const char *members, size_t len,
		   enum scribe_taken *ret_taken, struct err *err)
{
	struct stream *s = find_stream(l, prod, stream);
	uint64_t last = s ? s->last : 0;

	if (!audit_prod_is_valid(prod) || str_eq(prod, OWN_PROD))
		return err_set_id(err, ERRID_AUDIT_EVENT, "not a producer's name");
	if (len > AUDIT_EVENT_MAX)
		return err_set_id(err, ERRID_AUDIT_EVENT,
				  "an event of %zu bytes; at most %zu", len,
				  AUDIT_EVENT_MAX);
	if (!pseq || pseq > last + 1)
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "%s sends number %llu, %llu was its last", prod,
				  (unsigned long long)pseq, (unsigned long long)last);
	if (pseq <= last) {
		if (judge_old(s, pseq, members, len, err) < 0)
			return -1;
		l->counts.duplicates++;
		*ret_taken = SCRIBE_DUPLICATE;
		return 0;
	}
	if (!s)
		s = get_stream(l, prod, stream, err);
	if (!s)
		return -1;
	if (choose_segment(l, err) < 0) {
		l->is_broken = true;
		return -1;
	}
	*ret_taken = SCRIBE_STAGED;
	return stage(l, s, pseq, members, len, err);
}

bool scribe_log_is_full(const struct scribe_log *l)
{
	return l->n_staged >= SCRIBE_BATCH_EVENTS || l->staged.len >= SCRIBE_BATCH_BYTES;
}

int scribe_log_commit(struct scribe_log *l, struct err *err)
{
	if (l->is_broken)
		return err_set_id(err, ERRID_AUDIT_WRITE, "a write has failed before");
	if (!l->n_staged)
		return 0;
	if (fs_write_all(l->fd, l->staged.data, l->staged.len, err) < 0) {
		l->is_broken = true;
		err->id = ERRID_AUDIT_WRITE;
		err->code = ERR_UNAVAILABLE;
		return err_wrap(err, "append to the log");
	}
	if (fdatasync(l->fd) < 0) {
		l->is_broken = true;
		return err_sys_id(err, ERRID_AUDIT_WRITE, "fdatasync of the log");
	}
	l->size += l->staged.len;
	l->counts.events += l->n_staged;
	l->counts.batches++;
	l->n_staged = 0;
	buf_reset(&l->staged);
	return 0;
}

struct scribe_counts scribe_log_counts(const struct scribe_log *l)
{
	struct scribe_counts c = l->counts;

	c.seq = l->chain.seq - 1;
	return c;
}

const struct uuid *scribe_log_id(const struct scribe_log *l)
{
	return &l->chain.log;
}
