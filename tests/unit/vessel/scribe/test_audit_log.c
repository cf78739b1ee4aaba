/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log as files: chain, recovery, rotation, repeated events. */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "vessel/scribe/log.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];
static const struct uuid boot = {"00000000-1111-4222-8333-444444444444"};
static const struct uuid stream = {"aaaaaaaa-1111-4222-8333-444444444444"};
static const struct uuid other = {"bbbbbbbb-1111-4222-8333-444444444444"};

static void begin(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/ly-audit-XXXXXX");
	cr_assert(mkdtemp(dir));
}

static void end(void)
{
	struct err err = ERR_INIT;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert(fs_remove_beneath(tmp, dir + 5, &err) == 0);
	close(tmp);
}

TestSuite(audit_log, .init = begin, .fini = end, .timeout = 60);

static struct scribe_log *open_log(uint64_t segment, struct err *err)
{
	struct scribe_log_config cfg = {
		.dir = dir,
		.segment_bytes = segment,
		.clock = &clock_real,
		.rng = &random_real,
		.kernel_boot = boot,
	};
	struct scribe_log *l = NULL;

	if (scribe_log_open(&cfg, &l, err) < 0)
		return NULL;
	return l;
}

static struct scribe_log *must_open(uint64_t segment)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = open_log(segment, &err);

	cr_assert(l, "%s", err.msg);
	cr_assert(scribe_log_commit(l, &err) == 0, "%s", err.msg);
	return l;
}

static enum scribe_taken add(struct scribe_log *l, const struct uuid *s, uint64_t pseq)
{
	enum scribe_taken taken = SCRIBE_STAGED;
	struct err err = ERR_INIT;
	char members[64];

	snprintf(members, sizeof(members), "\"event\":\"e%llu\"",
		 (unsigned long long)pseq);
	cr_assert(scribe_log_add(l, "queue", s, pseq, members, strlen(members), &taken,
				 &err) == 0,
		  "%s", err.msg);
	return taken;
}

static void commit(struct scribe_log *l)
{
	struct err err = ERR_INIT;

	cr_assert(scribe_log_commit(l, &err) == 0, "%s", err.msg);
}

/* Every segment from the first; how many records, -1 when the chain does not hold. */
static long verify(struct err *err)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t first, last, stop, size;
	struct audit_chain c;

	audit_chain_init(&c);
	if (audit_segments(fd, &first, &last, err) < 0)
		return -1;
	for (uint64_t n = 1; n <= last; n++) {
		if (audit_segment_read(fd, n, &c, NULL, NULL, &stop, &size, err) < 0)
			return -1;
		if (stop != size)
			return -1;
	}
	return (long)c.seq - 1;
}

static char *slurp(const char *name, size_t *len)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = ERR_INIT;
	char *text;

	cr_assert(fs_read_file(fd, name, 1 << 20, &text, len, &err) == 0, "%s", err.msg);
	return text;
}

static void spill(const char *name, const char *data, size_t len)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	close(fd);
}

#define FIRST "segment-0000000001.jsonl"

Test(audit_log, a_directory_that_is_not_private_is_refused)
{
	static const mode_t modes[] = {0755, 0750, 0701, 0770, 0500, 01700};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		cr_assert(chmod(dir, modes[i]) == 0);
		cr_expect_null(open_log(0, &err));
		cr_expect_eq(err.id, ERRID_AUDIT_DIR, "%04o: %s", modes[i], err.msg);
	}
	cr_assert(chmod(dir, 0700) == 0);
	scribe_log_free(must_open(0));
}

Test(audit_log, a_link_to_a_directory_and_a_missing_one_are_refused)
{
	struct scribe_log_config cfg = {.clock = &clock_real, .rng = &random_real};
	struct scribe_log *l;
	struct err err = ERR_INIT;
	char path[128], real[128];

	snprintf(path, sizeof(path), "%s/link", dir);
	snprintf(real, sizeof(real), "%s/real", dir);
	cr_assert(mkdir(real, 0700) == 0 && symlink(real, path) == 0);
	cfg.dir = path;
	cr_expect(scribe_log_open(&cfg, &l, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_DIR);
	snprintf(path, sizeof(path), "%s/none", dir);
	cr_expect(scribe_log_open(&cfg, &l, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_DIR);
}

Test(audit_log, two_writers_never_share_a_directory)
{
	struct scribe_log *l = must_open(0);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct err err = ERR_INIT;

		_exit(!open_log(0, &err) && err.id == ERRID_START_LOCKED ? 0 : 1);
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_expect_eq(status, 0);
	scribe_log_free(l);
}

Test(audit_log, a_chain_of_lines_holds_and_goes_on_after_a_restart)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = must_open(0);
	struct uuid id = *scribe_log_id(l);

	for (uint64_t i = 1; i <= 10; i++)
		add(l, &stream, i);
	commit(l);
	cr_expect_eq(verify(&err), 12, "%s", err.msg); /* segment, start */
	scribe_log_free(l);
	l = must_open(0);
	cr_expect_str_eq(scribe_log_id(l)->s, id.s);
	cr_expect_eq(scribe_log_last(l, "queue", &stream), 10);
	cr_expect_eq(scribe_log_last(l, "queue", &other), 0);
	add(l, &stream, 11);
	commit(l);
	cr_expect_eq(verify(&err), 14, "%s", err.msg);
	scribe_log_free(l);
}

Test(audit_log, one_fsync_makes_a_whole_batch_durable)
{
	struct scribe_log *l = must_open(0);
	struct scribe_counts before = scribe_log_counts(l), after;

	for (uint64_t i = 1; i <= 400; i++)
		add(l, &stream, i);
	cr_expect_eq(scribe_log_counts(l).events, before.events, "nothing before it");
	commit(l);
	after = scribe_log_counts(l);
	cr_expect_eq(after.events - before.events, 400);
	cr_expect_eq(after.batches - before.batches, 1);
	scribe_log_free(l);
}

Test(audit_log, a_repeated_event_is_dropped_also_after_a_restart_and_a_rotation)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = must_open(4096);
	long records;

	for (uint64_t i = 1; i <= 60; i++) {
		cr_expect_eq(add(l, &stream, i), SCRIBE_STAGED);
		commit(l);
	}
	for (uint64_t i = 40; i <= 60; i++)
		cr_expect_eq(add(l, &stream, i), SCRIBE_DUPLICATE);
	records = verify(&err);
	cr_expect_gt(records, 60);
	scribe_log_free(l);
	l = must_open(4096);
	for (uint64_t i = 55; i <= 60; i++)
		cr_expect_eq(add(l, &stream, i), SCRIBE_DUPLICATE);
	cr_expect_eq(add(l, &stream, 61), SCRIBE_STAGED);
	commit(l);
	/* scribe.start, the new event, perhaps a segment's header */
	cr_expect_geq(verify(&err), records + 2, "%s", err.msg);
	cr_expect_eq(scribe_log_counts(l).duplicates, 6);
	scribe_log_free(l);
}

Test(audit_log, a_gap_and_another_event_under_an_old_number_are_refused)
{
	struct scribe_log *l = must_open(0);
	enum scribe_taken taken;
	struct err err = ERR_INIT;

	cr_expect(scribe_log_add(l, "queue", &stream, 0, "\"a\":1", 5, &taken, &err) < 0,
		  "no number");
	cr_expect_eq(err.id, ERRID_AUDIT_ORDER);
	cr_expect(scribe_log_add(l, "queue", &stream, 2, "\"a\":1", 5, &taken, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_ORDER);
	add(l, &stream, 1);
	cr_expect(scribe_log_add(l, "queue", &stream, 3, "\"a\":1", 5, &taken, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_ORDER);
	cr_expect(scribe_log_add(l, "queue", &stream, 1, "\"a\":1", 5, &taken, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_ORDER);
	for (uint64_t i = 2; i <= SCRIBE_REMEMBERED + 1; i++) {
		add(l, &stream, i);
		if (scribe_log_is_full(l))
			commit(l);
	}
	cr_expect_eq(add(l, &stream, 2), SCRIBE_DUPLICATE);
	cr_expect(scribe_log_add(l, "queue", &stream, 1, "\"event\":\"e1\"", 12, &taken,
				 &err) < 0,
		  "too far back to be compared");
	cr_expect_eq(err.id, ERRID_AUDIT_ORDER);
	cr_expect(scribe_log_add(l, "scribe", &stream, 1, "\"a\":1", 5, &taken, &err) < 0,
		  "the scribe's own name");
	scribe_log_free(l);
}

Test(audit_log, an_event_that_is_too_long_is_refused_and_nothing_of_it_stays)
{
	struct scribe_log *l = must_open(0);
	cleanup_free char *big = xmalloc(AUDIT_EVENT_MAX + 1);
	enum scribe_taken taken;
	struct err err = ERR_INIT;

	memset(big, 'x', AUDIT_EVENT_MAX + 1);
	memcpy(big, "\"a\":\"", 5);
	big[AUDIT_EVENT_MAX] = '"';
	cr_expect(scribe_log_add(l, "queue", &stream, 1, big, AUDIT_EVENT_MAX + 1, &taken,
				 &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_EVENT);
	big[AUDIT_EVENT_MAX - 1] = '"';
	cr_expect(scribe_log_add(l, "queue", &stream, 1, big, AUDIT_EVENT_MAX, &taken,
				 &err) == 0,
		  "%s", err.msg);
	commit(l);
	cr_expect_eq(verify(&err), 3);
	scribe_log_free(l);
}

/* The writer dies after each possible byte of its last batch. */
Test(audit_log, a_torn_end_at_every_offset_is_cut_and_told)
{
	struct scribe_log *l = must_open(0);
	cleanup_free char *whole = NULL;
	size_t len, kept;
	struct err err = ERR_INIT;

	for (uint64_t i = 1; i <= 2; i++)
		add(l, &stream, i);
	commit(l);
	scribe_log_free(l);
	whole = slurp(FIRST, &len);
	for (size_t cut = 0; cut <= len; cut++) {
		cleanup_free char *now = NULL;
		size_t now_len, lines = 0, torn;

		spill(FIRST, whole, cut);
		for (size_t i = 0; i < cut; i++)
			lines += whole[i] == '\n';
		for (kept = cut; kept > 0 && whole[kept - 1] != '\n'; kept--)
			;
		torn = cut - kept;
		l = must_open(0);
		cr_assert_eq(scribe_log_counts(l).recovered_bytes, torn);
		scribe_log_free(l);
		now = slurp(FIRST, &now_len);
		cr_assert(memcmp(now, whole, kept) == 0);
		cr_assert_eq(torn > 0,
			     strstr(now + kept, "scribe.recovered_tail") != NULL);
		/* a header again if nothing was left, the cut if there was one, the start */
		cr_assert_eq(verify(&err), (long)lines + (lines == 0) + (torn > 0) + 1,
			     "cut at %zu: %s", cut, err.msg);
	}
}

/* The same at the beginning of a later segment, whose first line is its header. */
Test(audit_log, a_torn_first_line_of_a_later_segment_is_written_again)
{
	struct scribe_log *l = must_open(4096);
	cleanup_free char *whole = NULL;
	struct err err = ERR_INIT;
	char name[AUDIT_SEGMENT_NAME];
	uint64_t last, first;
	size_t len, header;
	uint64_t i;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (i = 1; audit_segments(fd, &first, &last, &err) == 0 && last < 3; i++) {
		add(l, &stream, i);
		commit(l);
	}
	scribe_log_free(l);
	audit_segment_name(3, name);
	whole = slurp(name, &len);
	header = (size_t)((char *)memchr(whole, '\n', len) - whole);
	for (size_t cut = 0; cut < header; cut++) {
		spill(name, whole, cut);
		l = must_open(4096);
		/* event i-1 was in the torn segment: nobody was told, it comes again */
		cr_assert_eq(scribe_log_last(l, "queue", &stream), i - 2);
		cr_assert_eq(add(l, &stream, i - 1), SCRIBE_STAGED);
		commit(l);
		scribe_log_free(l);
		cr_assert_gt(verify(&err), 0, "cut at %zu: %s", cut, err.msg);
	}
	close(fd);
}

/* Whatever byte of a finished line is another one: it is seen, and nothing is written. */
Test(audit_log, every_changed_byte_is_found)
{
	struct scribe_log *l = must_open(0);
	cleanup_free char *whole = NULL;
	struct err err = ERR_INIT;
	size_t len, end_of_last;

	add(l, &stream, 1);
	commit(l);
	add(l, &stream, 2);
	commit(l);
	scribe_log_free(l);
	whole = slurp(FIRST, &len);
	/* the bare chain cannot see a change of its last line's members */
	for (end_of_last = len - 1; whole[end_of_last - 1] != '\n'; end_of_last--)
		;
	for (size_t i = 0; i + 1 < end_of_last; i++) {
		cleanup_free char *bad = xmalloc(len);

		memcpy(bad, whole, len);
		bad[i] ^= 1;
		spill(FIRST, bad, len);
		err_clear(&err);
		l = open_log(0, &err);
		cr_assert_null(l, "byte %zu", i);
		cr_assert_eq(err.id, ERRID_AUDIT_CHAIN, "byte %zu: %s", i, err.msg);
	}
}

Test(audit_log, lines_that_are_dropped_repeated_or_swapped_are_found)
{
	struct scribe_log *l = must_open(0);
	cleanup_free char *whole = NULL;
	const char *at[8];
	struct err err = ERR_INIT;
	size_t len;

	for (uint64_t i = 1; i <= 4; i++)
		add(l, &stream, i);
	commit(l);
	scribe_log_free(l);
	whole = slurp(FIRST, &len);
	at[0] = whole;
	for (int i = 1; i <= 6; i++)
		at[i] = (char *)memchr(at[i - 1], '\n', len) + 1;
	static const int orders[][6] = {
		{0, 1, 2, 4, 5, -1}, {0, 1, 2, 2, 3, 4}, {0, 1, 3, 2, 4, 5},
		{1, 2, 3, 4, 5, -1}, {0, 1, 2, 3, 5, 4},
	};
	for (size_t k = 0; k < sizeof(orders) / sizeof(*orders); k++) {
		struct buf b;

		buf_init(&b, 1 << 20);
		for (int i = 0; i < 6 && orders[k][i] >= 0; i++)
			buf_add(&b, at[orders[k][i]],
				(size_t)(at[orders[k][i] + 1] - at[orders[k][i]]));
		spill(FIRST, b.data, b.len);
		buf_done(&b);
		cr_expect_null(open_log(0, &err), "order %zu", k);
		cr_expect_eq(err.id, ERRID_AUDIT_CHAIN);
	}
}

Test(audit_log, a_missing_segment_and_a_foreign_file_are_refused)
{
	struct scribe_log *l = must_open(4096);
	struct err err = ERR_INIT;
	char path[128];

	for (uint64_t i = 1; i <= 60; i++) {
		add(l, &stream, i);
		commit(l);
	}
	scribe_log_free(l);
	snprintf(path, sizeof(path), "%s/notes.txt", dir);
	spill("notes.txt", "x", 1);
	cr_expect_null(open_log(4096, &err));
	cr_expect_eq(err.id, ERRID_AUDIT_CHAIN);
	unlink(path);
	snprintf(path, sizeof(path), "%s/segment-0000000002.jsonl", dir);
	unlink(path);
	cr_expect_null(open_log(4096, &err));
	cr_expect_eq(err.id, ERRID_AUDIT_CHAIN);
	snprintf(path, sizeof(path), "%s/" FIRST, dir);
	unlink(path);
	cr_expect_null(open_log(4096, &err), "the log begins with segment 3");
	cr_expect_eq(err.id, ERRID_AUDIT_CHAIN);
}

/* More streams than are kept: the busy one stays known, over restarts too. */
Test(audit_log, the_busy_stream_is_not_forgotten)
{
	struct err err = ERR_INIT;
	struct scribe_log *l;

	for (unsigned i = 1; i <= 100; i++) {
		struct uuid one;
		enum scribe_taken taken;

		l = must_open(4096);
		uuid_new(&random_real, &one);
		cr_assert(scribe_log_add(l, "vessel", &one, 1, "\"a\":1", 5, &taken,
					 &err) == 0);
		cr_assert_eq(scribe_log_last(l, "queue", &stream), i - 1);
		add(l, &stream, i);
		commit(l);
		scribe_log_free(l);
	}
	cr_expect_gt(verify(&err), 300);
}

static int add_of(struct scribe_log *l, const char *prod, const struct uuid *of,
		  uint64_t pseq, struct err *err)
{
	enum scribe_taken taken;

	return scribe_log_add(l, prod, of, pseq, "\"a\":1", 5, &taken, err);
}

/* Half an hour without a database: a vessel that starts again and again makes streams, and the
 * outbox is silent. Its numbers must still be known when it comes back. */
Test(audit_log, a_silent_stream_is_not_forgotten_for_anothers_many)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = must_open(4096);
	long records;

	for (uint64_t i = 1; i <= 5; i++)
		add(l, &stream, i);
	commit(l);
	for (unsigned i = 0; i < 100; i++) {
		struct uuid one;

		uuid_new(&random_real, &one);
		cr_assert(add_of(l, "vessel", &one, 1, &err) == 0, "%s", err.msg);
		commit(l);
		if (i % 10 == 0) {
			scribe_log_free(l);
			l = must_open(4096);
		}
	}
	cr_expect_eq(scribe_log_last(l, "queue", &stream), 5);
	cr_expect(add_of(l, "queue", &stream, 1, &err) < 0, "an old number is none");
	cr_expect_eq(add(l, &stream, 6), SCRIBE_STAGED);
	commit(l);
	records = verify(&err);
	cr_expect_gt(records, 106, "%s", err.msg);
	scribe_log_free(l);
}

Test(audit_log, of_its_own_streams_a_producer_loses_the_one_silent_for_longest)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = must_open(0);
	struct uuid ids[SCRIBE_STREAMS_EACH + 1];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		uuid_new(&random_real, &ids[i]);
		cr_assert(add_of(l, "vessel", &ids[i], 1, &err) == 0);
		if (i > 0) /* the first one goes on to speak */
			cr_assert(add_of(l, "vessel", &ids[0], i + 1, &err) == 0);
	}
	cr_expect_eq(scribe_log_last(l, "vessel", &ids[0]), ARRAY_SIZE(ids));
	cr_expect_eq(scribe_log_last(l, "vessel", &ids[1]), 0);
	for (size_t i = 2; i < ARRAY_SIZE(ids); i++)
		cr_expect_eq(scribe_log_last(l, "vessel", &ids[i]), 1, "%zu", i);
	/* one that was forgotten can't begin anew in the middle */
	cr_expect(add_of(l, "vessel", &ids[1], 2, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_ORDER);
	scribe_log_free(l);
}

/* As many as can be, with the longest names and numbers: a segment's first record holds them. */
Test(audit_log, every_stream_finds_room_in_a_segments_first_record)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = must_open(4096);
	char prod[AUDIT_PROD_MAX];
	unsigned n = 0;

	/* the scribe is one of them */
	for (unsigned p = 1; p < SCRIBE_PRODUCERS_MAX; p++) {
		memset(prod, 'a', sizeof(prod) - 1);
		prod[sizeof(prod) - 1] = '\0';
		prod[0] = (char)('a' + p);
		for (unsigned i = 0; i < SCRIBE_STREAMS_EACH; i++) {
			struct uuid one;

			uuid_new(&random_real, &one);
			cr_assert(add_of(l, prod, &one, 1, &err) == 0, "%s", err.msg);
			n++;
		}
		commit(l);
	}
	cr_expect_eq(n, (SCRIBE_PRODUCERS_MAX - 1) * SCRIBE_STREAMS_EACH);
	cr_expect(add_of(l, "one_more", &other, 1, &err) < 0);
	cr_expect_eq(err.id, ERRID_AUDIT_EVENT);
	for (uint64_t i = 0; i < 8; i++) { /* some segments of the known ones */
		cr_assert(scribe_log_own(l, "scribe.heartbeat", NULL, &err) == 0);
		commit(l);
	}
	scribe_log_free(l);
	l = must_open(4096);
	cr_expect(add_of(l, "one_more", &other, 1, &err) < 0);
	scribe_log_free(l);
}
