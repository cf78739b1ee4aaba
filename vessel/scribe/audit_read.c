/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * Theory of operation. Lines and seals are read side by side. Before the first line and behind
 * each one, the seals that were made there are compared with the tree of the lines so far. So
 * each seal is judged by exactly the lines that it signed, and each of the scribe's own records,
 * which name the newest seal, by the seal that was read last.
 *
 * What is wrong with one line or one seal ends the reading. What shows only when all was read
 * (a log that is shorter than what was sealed, a seal that is gone from the end) is judged then.
 *
 * A log may be written meanwhile. Of a segment those lines are read that it had when it was opened:
 * the seals that they name were there by then. Lines are on disk before their seal is, so a seal that was
 * there before the first line was read has all of its lines; only such a one proves that lines
 * are missing.
 */
#include "vessel/scribe/audit_read.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

/* Each start of a vessel is one. */
#define STREAMS_MAX 32768
#define TS_SECONDS (sizeof("2026-11-29T17:00:00") - 1)

/* ---- seals ---- */

PRINTF_FMT(4, 5)
static int refuse(struct audit_reading *r, enum audit_verdict verdict, struct err *err,
		  const char *fmt, ...)
{
	va_list ap;
	char text[256];

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->verdict = verdict;
	return err_set_id(err, ERRID_AUDIT_SEAL, "%s", text);
}

/* Where the next line does not follow the last one either, that is told, for it names the line. */
static bool compare(struct audit_reading *r)
{
	const struct seal *s = &r->seals.last;
	struct merkle_hash root;

	merkle_root(&r->chain.tree, &root);
	if (*r->chain.log.s && !str_eq(s->log.s, r->chain.log.s))
		(void)err_set_id(&r->flaw, ERRID_AUDIT_SEAL,
				 "the checkpoints are of log %s", s->log.s);
	else if (s->size != r->chain.tree.size || !merkle_hash_eq(&root, &s->root))
		(void)err_set_id(
			&r->flaw, ERRID_AUDIT_SEAL,
			"seq %llu to %llu: not the records that checkpoint %llu sealed",
			(unsigned long long)r->sealed + 1, (unsigned long long)s->size,
			(unsigned long long)r->seals.count);
	r->has_flaw = err_is_set(&r->flaw);
	r->flaw_seq = r->sealed + 1;
	return !r->has_flaw;
}

static int tell_flaw(struct audit_reading *r, struct err *err)
{
	r->verdict = AUDIT_TAMPERED;
	r->bad_seq = r->flaw_seq;
	*err = r->flaw;
	return -1;
}

/* The newest seal was made here. */
static void note_seal(struct audit_reading *r)
{
	struct merkle_hash kept;

	r->met = r->seals.count;
	r->met_hash = r->seals.hash;
	r->newest = r->seals.last;
	r->sealed = r->newest.size;
	unsealed_none(&r->unsealed);
	r->pin_was_seen |= r->pin && r->newest.has_genesis &&
			   memcmp(r->pin, r->newest.genesis, ED25519_PUBLIC_SIZE) == 0;
	if (r->kept) {
		seal_hash(r->kept, &kept);
		r->kept_was_seen |= merkle_hash_eq(&kept, &r->met_hash);
	}
	for (size_t i = 0; i < r->n_anchors; i++)
		anchor_on_seal(&r->anchor[i], &r->newest, &r->met_hash);
	/* what a restore has lost is in front of its new keys */
	if (r->newest.has_genesis)
		r->lost_at = 0;
}

/* The seals that were made where the reading stands now. */
static int meet_seals(struct audit_reading *r, struct err *err)
{
	for (size_t i = 0; i < r->n_anchors; i++)
		anchor_on_tree(&r->anchor[i], &r->chain.tree);
	for (;;) {
		int n = r->is_ahead ? 1 : seal_reader_next(&r->seals, err);

		if (n < 0 && err->id == ERRID_AUDIT_SEAL)
			r->verdict = r->seals.flaw == SEAL_FORGED ? AUDIT_TAMPERED
								  : AUDIT_UNSEALED;
		if (n <= 0)
			return n;
		r->is_ahead = r->seals.last.size > r->chain.tree.size;
		if (r->is_ahead)
			return 0;
		if (!compare(r))
			return 0;
		if (r->visit && r->visit->seal(r, r->visit->arg, err) < 0)
			return -1;
		note_seal(r);
	}
}

/* The scribe has found lines without a seal; the person who asks may know of it. */
static void note_mark(struct audit_reading *r, uint64_t seq)
{
	size_t seen = r->known_seen;

	for (size_t i = 0; i < r->n_known; i++)
		r->known_seen += r->known[i] == seq;
	if (r->mark_at || r->known_seen > seen)
		return;
	r->mark_at = seq;
	r->mark_from = r->sealed + 1;
}

static void note_line(struct audit_reading *r, const struct audit_head *h,
		      const char *members, size_t len)
{
	char named[SHA256_HEX_SIZE], hex[SHA256_HEX_SIZE];

	unsealed_add(&r->unsealed, h, members, len);
	for (size_t i = 0; i < r->n_anchors && str_eq(h->prod, AUDIT_OWN_PROD); i++)
		anchor_on_record(&r->anchor[i], members, len);
	if (audit_line_is_event(h, members, len, UNSEALED_EVENT))
		note_mark(r, h->seq);
	/* by whole seconds: less is what keeps a clock right */
	if (!r->clock_back && str_eq(r->last_boot.s, h->boot.s) &&
	    strncmp(h->ts, r->last_ts, TS_SECONDS) < 0)
		r->clock_back = h->seq;
	r->last_boot = h->boot;
	memcpy(r->last_ts, h->ts, sizeof(r->last_ts));
	hex_encode(r->met_hash.b, sizeof(r->met_hash.b), hex);
	if (!r->lost_at && audit_line_seal(h, members, len, named) &&
	    (!r->met || !str_eq(named, hex)))
		r->lost_at = h->seq;
}

/* ---- lines ---- */

static int count_line(struct audit_reading *r, const struct audit_head *h,
		      struct err *err)
{
	size_t i = r->n_streams;
	struct audit_stream *s;

	while (i > 0 && !(str_eq(r->streams[i - 1].id.s, h->stream.s) &&
			  str_eq(r->streams[i - 1].prod, h->prod)))
		i--;
	if (i == 0) {
		if (r->n_streams == STREAMS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d streams",
				       STREAMS_MAX);
		r->streams =
			xreallocarray(r->streams, r->n_streams + 1, sizeof(*r->streams));
		r->streams[r->n_streams] = (struct audit_stream){.id = h->stream};
		i = ++r->n_streams;
		if (str_copy(r->streams[i - 1].prod, AUDIT_PROD_MAX, h->prod) < 0)
			return err_set(err, ERR_INTERNAL, "a producer's name");
	}
	/* what speaks is looked for at the end: there it is found at once */
	struct audit_stream found = r->streams[i - 1];

	r->streams[i - 1] = r->streams[r->n_streams - 1];
	s = &r->streams[r->n_streams - 1];
	*s = found;
	if (h->pseq != s->last + 1) {
		r->bad_seq = h->seq;
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: number %llu of %s follows %llu",
				  (unsigned long long)h->seq, (unsigned long long)h->pseq,
				  h->prod, (unsigned long long)s->last);
	}
	s->last = h->pseq;
	return 0;
}

static int on_line(const struct audit_head *h, const char *members, size_t len, void *arg,
		   struct err *err)
{
	struct audit_reading *r = arg;

	if (r->has_flaw)
		return tell_flaw(r, err);
	note_line(r, h, members, len);
	if (count_line(r, h, err) < 0 ||
	    (r->visit && r->visit->line(r, h, members, len, r->visit->arg, err) < 0))
		return -1;
	return meet_seals(r, err);
}

static int read_segments(struct audit_reading *r, int dirfd, const char *dir,
			 struct err *err)
{
	uint64_t first = 0, last = 0, end = 0, size = 0;

	if (audit_segments(dirfd, &first, &last, err) < 0) {
		r->verdict = last ? AUDIT_TRUNCATED : r->verdict;
		return -1;
	}
	for (size_t i = 0; !last && r->seals.file_bytes == 0 && i < r->n_anchors; i++)
		if (r->anchor[i].n)
			return refuse(
				r, AUDIT_TRUNCATED, err,
				"cut off: there is no log, and %s has checkpoints of one",
				r->anchor[i].file);
	if (!last && r->seals.file_bytes == 0)
		return err_set(err, ERR_NOT_FOUND, "%s: no log", dir);
	if (meet_seals(r, err) < 0)
		return -1;
	if (last && first != 1) {
		r->verdict = AUDIT_TRUNCATED;
		return err_set_id(err, ERRID_AUDIT_CHAIN, "seq 1: segment 1 is missing");
	}
	for (uint64_t n = 1; n <= last; n++) {
		if (audit_segment_read(dirfd, n, &r->chain, on_line, r, &end, &size,
				       err) < 0)
			return -1;
		r->segments++;
		if (n < last && end != size)
			return err_set_id(
				err, ERRID_AUDIT_CHAIN,
				"seq %llu: segment %llu ends in the middle of a line",
				(unsigned long long)r->chain.seq, (unsigned long long)n);
	}
	/* a line that its writer has not finished, or never will */
	r->torn_bytes = size - end;
	return 0;
}

/* ---- what shows at the end ---- */

/* More was sealed than there is. */
static int judge_length(struct audit_reading *r, struct err *err)
{
	uint64_t had = 0;

	while (r->is_ahead && r->seals.read_bytes <= r->seals.file_bytes) {
		int n;

		had = r->seals.last.size;
		n = seal_reader_next(&r->seals, err);
		if (n < 0 && err->id == ERRID_AUDIT_SEAL)
			r->verdict = r->seals.flaw == SEAL_FORGED ? AUDIT_TAMPERED
								  : AUDIT_UNSEALED;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
	}
	if (!had)
		return 0;
	return refuse(
		r, AUDIT_TRUNCATED, err,
		"the log has %llu records, and %llu were sealed: its end was cut, or "
		"an old copy was put back",
		(unsigned long long)r->chain.tree.size, (unsigned long long)had);
}

static int judge_keys(struct audit_reading *r, struct err *err)
{
	bool is_pinned =
		r->pin && memcmp(r->pin, r->seals.genesis, ED25519_PUBLIC_SIZE) == 0;

	if (r->pin && !r->pin_was_seen)
		return refuse(r, AUDIT_TAMPERED, err,
			      "its keys do not begin with the key that --pin names");
	if (r->seals.begins > 1 && !is_pinned)
		return refuse(
			r, AUDIT_UNSEALED, err,
			"seq %llu: other keys begin here, which the old ones did not "
			"sign; after a restore that is so: give the new one by --pin",
			(unsigned long long)r->seals.began + 1);
	return 0;
}

static int judge_unsealed(struct audit_reading *r, struct err *err)
{
	if (r->unsealed.late_at)
		return refuse(r, AUDIT_UNSEALED, err,
			      "seq %llu: no checkpoint after seq %llu, where one was due",
			      (unsigned long long)r->unsealed.late_at,
			      (unsigned long long)r->sealed);
	if (r->unsealed.ends_with_stop)
		return refuse(
			r, AUDIT_UNSEALED, err,
			"the log ends with a clean stop, and the checkpoint of that "
			"is gone, or its scribe was killed before it made it");
	if (r->mark_at)
		return refuse(
			r, AUDIT_UNSEALED, err,
			"seq %llu to %llu had no checkpoint where one was due when a "
			"scribe started: somebody else may have written there. Look at "
			"them; if that is explained, give --known %llu",
			(unsigned long long)r->mark_from,
			(unsigned long long)r->mark_at - 1,
			(unsigned long long)r->mark_at);
	if (r->known_seen < r->n_known)
		return refuse(r, AUDIT_UNKNOWN, err,
			      "--known names a record that is no " UNSEALED_EVENT);
	return 0;
}

static bool tells_nothing(const struct anchor_reader *a)
{
	return a->flaw == ANCHOR_EMPTY || a->flaw == ANCHOR_UNREAD;
}

/* Of several the first that shows something is told. */
static int judge_anchors(struct audit_reading *r, struct err *err)
{
	static const enum audit_verdict verdict[] = {
		[ANCHOR_CUT_OFF] = AUDIT_TRUNCATED,
		[ANCHOR_REWRITTEN] = AUDIT_TRUNCATED,
		[ANCHOR_OTHER_LOG] = AUDIT_TRUNCATED,
		[ANCHOR_FORGED] = AUDIT_TAMPERED,
		[ANCHOR_UNSEALED] = AUDIT_UNSEALED,
		[ANCHOR_SHORTENED] = AUDIT_TRUNCATED,
	};
	bool found = false;

	for (size_t i = 0; i < r->n_anchors; i++) {
		struct anchor_reader *a = &r->anchor[i];
		struct err why = ERR_INIT;

		if (anchor_judge(a, &r->chain.log, r->chain.tree.size, &why) == 0 ||
		    found || tells_nothing(a))
			continue;
		found = true;
		r->verdict = verdict[a->flaw];
		*err = why;
	}
	return found ? -1 : 0;
}

/* One that tells nothing hides neither another nor what else is wrong. */
static int judge_untold(const struct audit_reading *r, struct err *err)
{
	for (size_t i = 0; i < r->n_anchors; i++)
		if (tells_nothing(&r->anchor[i]))
			return anchor_say(&r->anchor[i], r->chain.tree.size, err);
	return 0;
}

static int judge(struct audit_reading *r, struct err *err)
{
	if (r->has_flaw)
		return tell_flaw(r, err);
	if (judge_length(r, err) < 0)
		return -1;
	if (r->kept && !r->kept_was_seen)
		return refuse(
			r, AUDIT_TRUNCATED, err,
			"the checkpoint of %llu records (%s) that was kept elsewhere is "
			"not in it: an old copy was put back, or it is another log",
			(unsigned long long)r->kept->size, r->kept->time);
	if (judge_anchors(r, err) < 0)
		return -1;
	if (!r->met && r->lost_at)
		return refuse(r, AUDIT_UNSEALED, err,
			      "seq %llu names a checkpoint, and there is none: the file "
			      "\"" SEAL_FILE "\" is gone",
			      (unsigned long long)r->lost_at);
	if (!r->met)
		return refuse(r, AUDIT_UNSEALED, err,
			      "no checkpoint: it was written before Lychgate had any, or "
			      "they were taken away; the chain of hashes holds");
	if (judge_keys(r, err) < 0)
		return -1;
	if (r->lost_at)
		return refuse(r, AUDIT_UNSEALED, err,
			      "seq %llu names a checkpoint that is gone",
			      (unsigned long long)r->lost_at);
	if (judge_unsealed(r, err) < 0)
		return -1;
	return judge_untold(r, err);
}

int audit_read(struct audit_reading *r, const char *dir, struct err *err)
{
	cleanup_close int dirfd =
		open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	audit_chain_init(&r->chain);
	r->seals.fd = -1;
	if (dirfd < 0)
		(void)err_sys(err, "%s", dir);
	else if (seal_reader_open(&r->seals, dirfd, err) == 0 &&
		 read_segments(r, dirfd, dir, err) == 0 && judge(r, err) == 0)
		return 0;
	if (r->verdict == AUDIT_OK)
		r->verdict =
			err->id == ERRID_AUDIT_CHAIN ? AUDIT_TAMPERED : AUDIT_UNKNOWN;
	if (err->id == ERRID_AUDIT_CHAIN && !r->bad_seq)
		r->bad_seq = r->chain.seq;
	return -1;
}

void audit_reading_done(struct audit_reading *r)
{
	seal_reader_done(&r->seals);
	free(r->streams);
}
