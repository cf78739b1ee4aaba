/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * See log.h. How a log is taken up again is in recover.c.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/scribe/log_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SEAL_RECORDS 256
#define SEAL_USEC (60 * USEC_PER_SEC)
/* Under load a seal has more records, and the log waits for its fsync once a second at most. */
#define SEAL_APART_USEC USEC_PER_SEC

uint64_t scribe_log_last(struct scribe_log *l, const char *prod,
			 const struct uuid *stream)
{
	const struct stream *s = streams_find(&l->streams, prod, stream);

	return s ? s->last : 0;
}

/* ---- opening ---- */

int log_open_segment(struct scribe_log *l, uint64_t n, int flags, struct err *err)
{
	fd_close(&l->fd);
	if (audit_segment_open(l->dirfd, n, O_WRONLY | O_APPEND | flags, &l->fd, err) <
	    0) {
		err->id = ERRID_AUDIT_WRITE;
		err->code = ERR_UNAVAILABLE;
		return -1;
	}
	l->segment = n;
	return 0;
}

static int open_seals(struct scribe_log *l, struct err *err)
{
	struct seals_config cfg = {
		.dirfd = l->dirfd, .clock = l->cfg.clock, .rng = l->cfg.rng};

	return seals_open(&cfg, &l->seals, err);
}

/* Keys begin where there are none. */
static int begin_seals(struct scribe_log *l, struct err *err)
{
	const struct seal *last = seals_last(l->seals, NULL);

	if (!*l->chain.log.s && last)
		l->chain.log = last->log;
	else if (!*l->chain.log.s) /* nothing yet, or a first line that was torn */
		uuid_new(l->cfg.rng, &l->chain.log);
	if (!seals_must_begin(l->seals))
		return 0;
	/* what a writer that died has left may not be on the disk yet */
	if (l->fd >= 0 && fdatasync(l->fd) < 0)
		return err_sys_id(err, ERRID_AUDIT_WRITE, "fdatasync of the log");
	return seals_begin(l->seals, &l->chain.log, &l->chain.tree, err);
}

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

/* What was found is told: a tail that was cut, lines without a seal. */
static int stage_start(struct scribe_log *l, struct err *err)
{
	uint64_t had = l->chain.tree.size;
	cleanup_buf struct buf more;

	buf_init(&more, 128);
	if (l->counts.recovered_bytes) {
		buf_addf(&more, "\"bytes\":%llu",
			 (unsigned long long)l->counts.recovered_bytes);
		if (scribe_log_own(l, "scribe.recovered_tail", &more, err) < 0)
			return -1;
	}
	if (l->found.late_at) {
		buf_reset(&more);
		buf_addf(&more, "\"from\":%llu,\"to\":%llu",
			 (unsigned long long)seals_last(l->seals, NULL)->size + 1,
			 (unsigned long long)had);
		if (scribe_log_own(l, UNSEALED_EVENT, &more, err) < 0)
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
	if (open_dir(l, err) < 0 || open_seals(l, err) < 0 || log_recover(l, err) < 0 ||
	    begin_seals(l, err) < 0 || stage_start(l, err) < 0) {
		scribe_log_free(l);
		return -1;
	}
	l->sealed_at = cfg->clock->boot_usec(cfg->clock->ctx);
	*ret = l;
	return 0;
}

void scribe_log_free(struct scribe_log *l)
{
	if (!l)
		return;
	streams_done(&l->streams);
	seals_free(l->seals);
	buf_done(&l->staged);
	fd_close(&l->fd);
	fd_close(&l->lock_fd);
	fd_close(&l->dirfd);
	free(l);
}

/* ---- staging ---- */

static struct stream *own_stream(struct scribe_log *l, struct err *err)
{
	return streams_get(&l->streams, AUDIT_OWN_PROD, &l->chain.log, l->chain.seq, err);
}

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
	audit_chain_step(&l->chain, l->staged.data + before, line - 1);
	l->n_staged++;
	stream_remember(s, pseq, members, len, l->chain.seq);
	return 0;
}

static void add_named_seal(const struct scribe_log *l, struct buf *b)
{
	struct merkle_hash hash = {{0}};
	char hex[SHA256_HEX_SIZE];

	(void)seals_last(l->seals, &hash);
	hex_encode(hash.b, sizeof(hash.b), hex);
	buf_addf(b, ",\"seal\":\"%s\"", hex);
}

static void add_tree(const struct merkle *t, struct buf *b)
{
	bool comma = false;

	buf_adds(b, ",\"tree\":[");
	for (unsigned level = MERKLE_LEVELS; level-- > 0;) {
		char one[SEAL_TEXT32];

		if (!(t->size & ((uint64_t)1 << level)))
			continue;
		seal_text32(t->edge[level].b, one);
		buf_addf(b, "%s\"%s\"", comma ? "," : "", one);
		comma = true;
	}
	buf_addc(b, ']');
}

/* The first line of a segment. */
static int stage_header(struct scribe_log *l, struct err *err)
{
	struct stream *own = own_stream(l, err);
	cleanup_buf struct buf b;
	bool comma = false;

	buf_init(&b, AUDIT_EVENT_MAX);
	if (!own)
		return -1;
	buf_adds(&b, "\"event\":\"" HEADER_EVENT "\"");
	add_named_seal(l, &b);
	add_tree(&l->chain.tree, &b);
	buf_addf(&b, ",\"segment\":%llu,\"streams\":[", (unsigned long long)l->segment);
	for (size_t i = 0; i < l->streams.n; i++) {
		const struct stream *s = streams_at(&l->streams, i);

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
	if (log_open_segment(l, l->segment + 1, O_CREAT | O_EXCL, err) < 0)
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
	own = own_stream(l, err);
	if (!own)
		return -1;
	buf_addf(&b, "\"event\":\"%s\"", event);
	add_named_seal(l, &b);
	if (more && more->len) {
		buf_addc(&b, ',');
		buf_add(&b, more->data, more->len);
	}
	if (!buf_ok(&b))
		return err_set(err, ERR_INTERNAL, "a record of the scribe is too long");
	return stage(l, own, own->last + 1, b.data, b.len, err);
}

int scribe_log_add(struct scribe_log *l, const char *prod, const struct uuid *stream,
		   uint64_t pseq, const char *members, size_t len,
		   enum scribe_taken *ret_taken, struct err *err)
{
	struct stream *s = streams_find(&l->streams, prod, stream);
	uint64_t last = s ? s->last : 0;

	if (!audit_prod_is_valid(prod) || str_eq(prod, AUDIT_OWN_PROD))
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
		if (stream_judge_old(s, pseq, members, len, err) < 0)
			return -1;
		l->counts.duplicates++;
		*ret_taken = SCRIBE_DUPLICATE;
		return 0;
	}
	if (!s)
		s = streams_get(&l->streams, prod, stream, l->chain.seq, err);
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

static uint64_t unsealed(const struct scribe_log *l)
{
	const struct seal *last = seals_last(l->seals, NULL);

	return l->chain.tree.size - (last ? last->size : 0);
}

bool scribe_log_seal_is_due(const struct scribe_log *l)
{
	usec_t since = l->cfg.clock->boot_usec(l->cfg.clock->ctx) - l->sealed_at;

	return !l->n_staged && unsealed(l) > 0 && since >= SEAL_APART_USEC &&
	       (unsealed(l) >= SEAL_RECORDS || since >= SEAL_USEC);
}

int scribe_log_seal(struct scribe_log *l, bool ends_epoch, struct err *err)
{
	if (l->is_broken)
		return err_set_id(err, ERRID_AUDIT_WRITE, "a write has failed before");
	if (l->n_staged)
		return err_set(err, ERR_INTERNAL, "a seal of what is not written");
	if (!ends_epoch && !unsealed(l))
		return 0;
	if (seals_add(l->seals, &l->chain.tree, ends_epoch, err) < 0) {
		l->is_broken = true;
		return -1;
	}
	l->sealed_at = l->cfg.clock->boot_usec(l->cfg.clock->ctx);
	l->counts.seals++;
	return 0;
}

const struct seal *scribe_log_newest(const struct scribe_log *l)
{
	return seals_last(l->seals, NULL);
}

void scribe_log_genesis(const struct scribe_log *l, char ret[SEAL_TEXT32])
{
	seal_text32(seals_genesis(l->seals), ret);
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
