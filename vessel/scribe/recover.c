/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * Taking up a log again. Every segment begins with a record of the scribe that names the streams
 * and their last numbers, and the right edge of the tree. So a restart reads the last segment
 * and the one before it (for the hashes of what was written lately, and back to the last seal)
 * and never the whole log.
 *
 * Nothing is repaired but a torn last line. What was sealed must be there as it was; the flaw that
 * the chain itself shows is told first, since it names the line.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/scribe/log_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int members_json(const char *members, size_t len, struct json **ret,
			struct err *err)
{
	cleanup_buf struct buf text;

	buf_init(&text, AUDIT_LINE_MAX);
	buf_addc(&text, '{');
	buf_add(&text, members, len);
	return json_parse(text.data, text.len, JSON_DEPTH_DEFAULT, ret, err);
}

/* The streams that a segment's first record names, with what they had before it. */
static int read_header(struct scribe_log *l, const char *members, size_t len,
		       struct err *err)
{
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL;

	if (members_json(members, len, &j, err) < 0 ||
	    json_get_arr(j, "streams", true, SCRIBE_STREAMS_MAX, &arr, err) < 0)
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
		s = streams_get(&l->streams, prod, &stream, l->chain.seq, err);
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

static int broken_seal(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_AUDIT_SEAL, "%s", why);
}

/* Where the last seal was made the tree has to be the one that it signed. */
static int meet_seal(const struct scribe_log *l, struct err *err)
{
	const struct seal *last = seals_last(l->seals, NULL);
	struct merkle_hash root;

	if (!last || l->chain.tree.size != last->size)
		return 0;
	merkle_root(&l->chain.tree, &root);
	if (!merkle_hash_eq(&root, &last->root))
		return broken_seal(err, "the records are not those that the last "
					"checkpoint sealed");
	return 0;
}

/* A record of ours names the seal that was the newest then. */
static int check_named_seal(const struct scribe_log *l, const struct audit_head *h,
			    const char *members, size_t len, struct err *err)
{
	char named[SHA256_HEX_SIZE], hex[SHA256_HEX_SIZE];
	struct merkle_hash hash;
	const struct seal *last = seals_last(l->seals, &hash);

	if (!audit_line_seal(h, members, len, named))
		return 0;
	if (!last)
		return broken_seal(err,
				   "the log is sealed, and its checkpoints are gone");
	/* after a restore the seals may be some moments older than the records */
	if (last->size >= h->seq || seals_must_begin(l->seals))
		return 0;
	hex_encode(hash.b, sizeof(hash.b), hex);
	if (!str_eq(hex, named))
		return broken_seal(err, "a checkpoint that the log names is gone");
	return 0;
}

/* And no news: where keys begin anew, as after a restore, that is said already. */
static bool is_behind_seals(const struct scribe_log *l, const struct audit_head *h)
{
	const struct seal *last = seals_last(l->seals, NULL);

	return last && !seals_must_begin(l->seals) && h->seq > last->size;
}

static int on_old_line(const struct audit_head *h, const char *members, size_t len,
		       void *arg, struct err *err)
{
	struct scribe_log *l = arg;
	struct stream *s;

	if (!err_is_set(&l->seal_flaw) && meet_seal(l, &l->seal_flaw) == 0)
		(void)check_named_seal(l, h, members, len, &l->seal_flaw);
	if (is_behind_seals(l, h))
		unsealed_add(&l->found, h, members, len);
	if (audit_line_is_event(h, members, len, HEADER_EVENT) &&
	    read_header(l, members, len, err) < 0)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: the segment's first record: not readable",
				  (unsigned long long)h->seq);
	s = streams_get(&l->streams, h->prod, &h->stream, l->chain.seq, err);
	if (!s)
		return -1;
	if (h->pseq != s->last + 1)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: number %llu of %s follows %llu",
				  (unsigned long long)h->seq, (unsigned long long)h->pseq,
				  h->prod, (unsigned long long)s->last);
	/* without the brace that ends the line */
	stream_remember(s, h->pseq, members, len - 1, l->chain.seq);
	return 0;
}

/* The right edge of the tree before a segment's first record, which that names. */
static int read_tree(struct scribe_log *l, const char *members, size_t len,
		     struct err *err)
{
	cleanup_json struct json *j = NULL;
	const struct json *arr = NULL;
	struct merkle t = {.size = l->chain.seq - 1};
	size_t i = 0;

	if (members_json(members, len, &j, err) < 0 ||
	    json_get_arr(j, "tree", false, MERKLE_LEVELS, &arr, err) < 0)
		return -1;
	if (!arr)
		return 0;
	for (unsigned level = MERKLE_LEVELS; level-- > 0;) {
		const char *one = NULL;

		if (!(t.size & ((uint64_t)1 << level)))
			continue;
		if (i == json_arr_len(arr) ||
		    json_as_str(json_arr_at(arr, i++), SEAL_TEXT32, &one, err) < 0 ||
		    seal_parse32(one, t.edge[level].b, err) < 0)
			return err_set(err, ERR_INVALID, "\"tree\"");
	}
	if (i != json_arr_len(arr))
		return err_set(err, ERR_INVALID, "\"tree\"");
	l->chain.tree = t;
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
	if (audit_segment_open(l->dirfd, n, O_RDONLY, &fd, err) < 0)
		return -1;
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
	if (read_tree(l, members, (size_t)(nl - members), err) < 0)
		return err_set_id(err, ERRID_AUDIT_CHAIN, "%s: its first record", name);
	return str_copy(l->chain.prev, sizeof(l->chain.prev), head.prev);
}

/*
 * Go to the segment from which on lines are read: the one before the last for what was written
 * lately, further back until the last seal is reached; the first one where no segment names its
 * tree (it was written before there were seals).
 */
static int start_chain(struct scribe_log *l, uint64_t last, uint64_t *ret,
		       struct err *err)
{
	const struct seal *seal = seals_last(l->seals, NULL);
	uint64_t n = last > 1 ? last - 1 : 1;

	for (;;) {
		bool has_tree;

		if (start_chain_at(l, n, err) < 0)
			return -1;
		has_tree = l->chain.tree.size + 1 == l->chain.seq;
		if (n == 1 || (has_tree && seal && l->chain.tree.size <= seal->size))
			break;
		n = has_tree ? n - 1 : 1;
	}
	*ret = n;
	(void)meet_seal(l, &l->seal_flaw);
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

static int read_back(struct scribe_log *l, struct err *err)
{
	uint64_t first, last, from, end = 0, size = 0;

	if (audit_segments(l->dirfd, &first, &last, err) < 0)
		return -1;
	if (!last)
		return 0;
	if (first != 1)
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "the log begins with segment %llu",
				  (unsigned long long)first);
	if (start_chain(l, last, &from, err) < 0)
		return -1;
	for (uint64_t n = from; n <= last; n++) {
		if (audit_segment_read(l->dirfd, n, &l->chain, on_old_line, l, &end,
				       &size, err) < 0)
			return -1;
		if (n < last && end != size)
			return err_set_id(err, ERRID_AUDIT_CHAIN,
					  "segment %llu ends in the middle of a line",
					  (unsigned long long)n);
	}
	if (log_open_segment(l, last, 0, err) < 0)
		return -1;
	return cut_tail(l, end, size, err);
}

/* What was recovered has all that was sealed. */
static int judge_seals(const struct scribe_log *l, struct err *err)
{
	const struct seal *last = seals_last(l->seals, NULL);

	if (!last)
		return 0;
	if (*l->chain.log.s && !str_eq(l->chain.log.s, last->log.s))
		return broken_seal(err, "the checkpoints are of another log");
	if (l->chain.tree.size < last->size)
		return err_set_id(
			err, ERRID_AUDIT_SEAL,
			"the log has %llu records, and %llu were sealed: it was "
			"cut, or an old copy was put back",
			(unsigned long long)l->chain.tree.size,
			(unsigned long long)last->size);
	return 0;
}

int log_recover(struct scribe_log *l, struct err *err)
{
	if (read_back(l, err) < 0)
		return -1;
	if (err_is_set(&l->seal_flaw)) {
		*err = l->seal_flaw;
		return -1;
	}
	return judge_seals(l, err);
}
