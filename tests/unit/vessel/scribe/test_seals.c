/* SPDX-License-Identifier: Apache-2.0 */
/* Seals: their one form, whose key signs what, and what a writer that dies at any step of an epoch's
 * end leaves: a log that goes on, and not the old key. */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "tests/unit/vessel/scribe/log_fixture.h"
#include "vessel/scribe/audit_read.h"
#include "vessel/scribe/seal_read.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

#define SEGMENT "segment-0000000001.jsonl"

static const uint8_t nothing[4096];

TestSuite(seals, .init = begin, .fini = end, .timeout = 60);

static struct scribe_log *open_log(struct err *err)
{
	return open_with(&clock_real, 4096, err);
}

static struct scribe_log *must_open(void)
{
	return must_open_with(&clock_real, 4096);
}

static void refused(enum err_id id, const char *what)
{
	struct err err = ERR_INIT;
	struct scribe_log *l = open_log(&err);

	cr_expect_null(l, "%s", what);
	scribe_log_free(l);
	cr_expect_eq(err.id, id, "%s: %s", what, err.msg);
}

/* A file of the directory. */
struct file {
	char data[65536];
	size_t len;
};

static void load(const char *name, struct file *f)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = ERR_INIT;
	char *text;

	cr_assert(fs_read_file(fd, name, sizeof(f->data), &text, &f->len, &err) == 0,
		  "%s", err.msg);
	memcpy(f->data, text, f->len);
	free(text);
}

static void store(const char *name, const void *data, size_t len)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	close(fd);
}

/* How many seals there are, each by the key that it must have; -1 and the flaw. */
static long count_seals(enum seal_flaw *ret_flaw)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct seal_reader r;
	struct err err = ERR_INIT;
	long n;
	int got;

	cr_assert(seal_reader_open(&r, fd, &err) == 0);
	while ((got = seal_reader_next(&r, &err)) == 1)
		;
	n = got < 0 ? -1 : (long)r.count;
	if (ret_flaw)
		*ret_flaw = r.flaw;
	cr_expect(got < 0 || r.read_bytes == r.file_bytes, "an unfinished one");
	seal_reader_done(&r);
	return n;
}

Test(seals, a_log_begins_with_keys_and_is_sealed_over_restarts)
{
	struct scribe_log *l = must_open();
	char genesis[SEAL_TEXT32], again[SEAL_TEXT32];
	struct stat st;
	char path[128];

	scribe_log_genesis(l, genesis);
	cr_expect_eq(count_seals(NULL), 1);
	for (uint64_t i = 1; i <= 20; i++) {
		add(l, i);
		if (i % 5 == 0)
			seal(l, i % 10 == 0);
	}
	cr_expect_eq(count_seals(NULL), 5);
	scribe_log_free(l);
	l = must_open();
	scribe_log_genesis(l, again);
	cr_expect_str_eq(again, genesis);
	seal(l, true);
	scribe_log_free(l);
	cr_expect_eq(count_seals(NULL), 6);
	snprintf(path, sizeof(path), "%s/" AUDIT_KEYS_FILE, dir);
	cr_expect(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
}

Test(seals, nothing_new_needs_no_seal_and_an_epoch_can_end_without_a_record)
{
	struct scribe_log *l = must_open();

	seal(l, false);
	seal(l, false);
	cr_expect_eq(count_seals(NULL), 2);
	cr_expect_not(scribe_log_seal_is_due(l));
	seal(l, true);
	seal(l, true);
	cr_expect_eq(count_seals(NULL), 4);
	scribe_log_free(l);
}

/* The two places of .keys; which one holds bytes. */
static bool place_is_empty(const struct file *keys, size_t n)
{
	size_t at = n * 512;

	return keys->len <= at ||
	       memcmp(keys->data + at, nothing,
		      keys->len - at < 512 ? keys->len - at : 512) == 0;
}

static void one_key_only(const char *what)
{
	static struct file keys;

	load(AUDIT_KEYS_FILE, &keys);
	cr_expect_neq(place_is_empty(&keys, 0), place_is_empty(&keys, 1), "%s", what);
}

/* What is on the disk between any two steps, and within the second one at each byte. */
Test(seals, killed_at_any_step_of_an_epochs_end_the_log_goes_on_and_the_old_key_is_gone)
{
	static struct file keys_before, keys_after, both, seals_before, seals_after, now,
		log;
	struct scribe_log *l = must_open();
	uint64_t pseq = 1;
	size_t new_place;

	add(l, pseq++);
	seal(l, false);
	load(AUDIT_KEYS_FILE, &keys_before);
	load(SEAL_FILE, &seals_before);
	add(l, pseq++);
	seal(l, true);
	load(AUDIT_KEYS_FILE, &keys_after);
	load(SEAL_FILE, &seals_after);
	load(SEGMENT, &log);
	scribe_log_free(l);
	new_place = place_is_empty(&keys_after, 0);
	cr_assert_eq(place_is_empty(&keys_before, 0), !new_place);
	memset(&both, 0, sizeof(both));
	both.len = 1024;
	memcpy(both.data, keys_before.data, keys_before.len);
	memcpy(both.data + 512 * new_place, keys_after.data + 512 * new_place,
	       keys_after.len - 512 * new_place < 512 ? keys_after.len - 512 * new_place
						      : 512);
	for (size_t len = seals_before.len; len <= seals_after.len; len++) {
		store(AUDIT_KEYS_FILE, both.data, both.len);
		store(SEAL_FILE, seals_after.data, len);
		store(SEGMENT, log.data, log.len);
		l = must_open();
		one_key_only("killed while the seal was written");
		load(AUDIT_KEYS_FILE, &now);
		cr_assert_eq(place_is_empty(&now, new_place), len < seals_after.len,
			     "%zu: which key goes on", len);
		scribe_log_free(l);
		cr_assert_eq(count_seals(NULL), len < seals_after.len ? 2 : 3, "%zu",
			     len);
	}
	/* the new key was on its way, or not even begun */
	for (size_t part = 0; part < 108; part += 9) {
		memcpy(now.data, keys_before.data, sizeof(now.data));
		now.len = 1024;
		memset(now.data + 512 * new_place, 0, 512);
		memcpy(now.data + 512 * new_place, both.data + 512 * new_place, part);
		store(AUDIT_KEYS_FILE, now.data, now.len);
		store(SEAL_FILE, seals_before.data, seals_before.len);
		store(SEGMENT, log.data, log.len);
		l = must_open();
		one_key_only("killed while the key was written");
		seal(l, true);
		scribe_log_free(l);
		cr_assert_eq(count_seals(NULL), 3);
	}
}

Test(seals, an_old_key_is_in_no_file_when_its_epoch_is_over)
{
	static struct file keys;
	struct scribe_log *l = must_open();
	uint8_t old[8][32];

	for (size_t i = 0; i < 8; i++) {
		load(AUDIT_KEYS_FILE, &keys);
		/* magic, epoch, then the private key */
		memcpy(old[i], keys.data + (place_is_empty(&keys, 0) ? 512 : 0) + 24, 32);
		seal(l, true);
		load(AUDIT_KEYS_FILE, &keys);
		for (size_t k = 0; k <= i; k++)
			cr_expect_null(memmem(keys.data, keys.len, old[k], 32), "%zu", i);
	}
	scribe_log_free(l);
}

Test(seals, a_log_that_was_cut_or_changed_or_has_no_key_is_not_gone_on_with)
{
	static struct file seals, keys, segment, bad;
	struct scribe_log *l = must_open();

	for (uint64_t i = 1; i <= 3; i++)
		add(l, i);
	seal(l, true);
	scribe_log_free(l);
	load(SEAL_FILE, &seals);
	load(AUDIT_KEYS_FILE, &keys);
	load(SEGMENT, &segment);

	bad = segment;
	while (bad.data[--bad.len - 1] != '\n')
		;
	store(SEGMENT, bad.data, bad.len);
	refused(ERRID_AUDIT_SEAL, "cut");
	bad = segment;
	bad.data[bad.len - 4] ^= 1; /* of the last line, which no other line follows */
	store(SEGMENT, bad.data, bad.len);
	refused(ERRID_AUDIT_SEAL, "its last line is another one");
	store(SEGMENT, segment.data, segment.len);

	store(SEAL_FILE, seals.data, 0);
	refused(ERRID_AUDIT_SEAL, "no seals");
	for (size_t i = 0; i < seals.len; i += 7) {
		bad = seals;
		bad.data[i] ^= 1;
		store(SEAL_FILE, bad.data, bad.len);
		cr_expect_neq(count_seals(NULL), 2, "byte %zu", i);
	}
	store(SEAL_FILE, seals.data, seals.len);
	store(AUDIT_KEYS_FILE, nothing, 1024);
	refused(ERRID_AUDIT_SEAL, "no key");
	store(AUDIT_KEYS_FILE, keys.data, keys.len);
	scribe_log_free(must_open());
}

/* As lych restore does it. */
Test(seals, a_restored_log_goes_on_with_new_keys_that_the_old_ones_did_not_sign)
{
	struct scribe_log *l = must_open();
	char genesis[SEAL_TEXT32], again[SEAL_TEXT32];

	add(l, 1);
	seal(l, true);
	scribe_log_genesis(l, genesis);
	scribe_log_free(l);
	store(AUDIT_KEYS_FILE, "restored\n", 9);
	l = must_open();
	scribe_log_genesis(l, again);
	cr_expect_str_neq(again, genesis);
	one_key_only("begun anew");
	add(l, 2);
	seal(l, true);
	scribe_log_free(l);
	scribe_log_free(must_open());
	cr_expect_eq(count_seals(NULL), 4);
}

Test(seals, a_restart_far_behind_the_last_seal_reads_back_to_it)
{
	struct scribe_log *l = must_open();

	for (uint64_t i = 1; i <= 10; i++)
		add(l, i);
	seal(l, false);
	for (uint64_t i = 11; i <= 150; i++) /* some segments of 4096 bytes */
		add(l, i);
	scribe_log_free(l);
	l = must_open();
	cr_expect_eq(scribe_log_last(l, "queue", &stream), 150);
	seal(l, false);
	scribe_log_free(l);
	cr_expect_eq(count_seals(NULL), 3);
}

static usec_t wall_now, boot_now;

static usec_t set_wall(void *ctx UNUSED)
{
	return wall_now;
}

static usec_t real_boot(void *ctx UNUSED)
{
	return clock_boot_usec();
}

static usec_t set_boot(void *ctx UNUSED)
{
	return boot_now;
}

static bool ends_epoch(void)
{
	static struct file f;
	struct seal s = {0};
	struct err err = ERR_INIT;

	load(SEAL_FILE, &f);
	for (size_t at = 0, n; (n = seal_length(f.data + at, f.len - at)); at += n)
		cr_assert(seal_parse(f.data + at, n, &s, &err) == 0, "%s", err.msg);
	return s.has_next;
}

Test(seals, one_is_due_after_256_records_or_a_minute_and_an_epoch_ends_after_an_hour)
{
	static const struct clock_ops clock = {.boot_usec = set_boot,
					       .wall_usec = set_wall};
	struct scribe_log *l;
	uint64_t pseq = 1;

	boot_now = 5 * USEC_PER_SEC;
	l = must_open_with(&clock, 0);
	seal(l, false);
	boot_now += 59 * USEC_PER_SEC;
	for (; pseq <= 255; pseq++)
		add(l, pseq);
	cr_expect_not(scribe_log_seal_is_due(l), "255 records, 59 seconds");
	boot_now += USEC_PER_SEC;
	cr_expect(scribe_log_seal_is_due(l), "a minute");
	seal(l, false);
	for (; pseq <= 600; pseq++)
		add(l, pseq);
	cr_expect_not(scribe_log_seal_is_due(l), "many, but within the same second");
	boot_now += USEC_PER_SEC;
	cr_expect(scribe_log_seal_is_due(l), "256 records");
	seal(l, false);
	boot_now += 60 * USEC_PER_SEC;
	cr_expect_not(scribe_log_seal_is_due(l), "nothing to seal");
	cr_expect_not(ends_epoch());
	boot_now += 3600 * USEC_PER_SEC;
	add(l, pseq);
	seal(l, false);
	cr_expect(ends_epoch(), "an hour");
	boot_now += 60 * USEC_PER_SEC;
	add(l, pseq + 1);
	seal(l, false);
	cr_expect_not(ends_epoch(), "the next one has just begun");
	scribe_log_free(l);
}

static uint64_t clock_back(void)
{
	struct audit_reading r = {0};
	struct err err = ERR_INIT;

	cr_assert(audit_read(&r, dir, &err) == 0, "%s", err.msg);
	audit_reading_done(&r);
	return r.clock_back;
}

Test(seals, a_clock_that_was_set_back_is_told)
{
	static const struct clock_ops clock = {.boot_usec = real_boot,
					       .wall_usec = set_wall};
	struct scribe_log *l;

	wall_now = 1000 * USEC_PER_SEC + USEC_PER_SEC / 2;
	l = must_open_with(&clock, 0);
	wall_now -= USEC_PER_MSEC;
	add(l, 1);
	wall_now += USEC_PER_SEC;
	add(l, 2);
	cr_expect_eq(clock_back(), 0, "a millisecond is none");
	wall_now -= 2 * USEC_PER_SEC;
	add(l, 3);
	wall_now += 9 * USEC_PER_SEC;
	add(l, 4);
	cr_expect_eq(clock_back(), 5, "segment, start, and the third of four");
	scribe_log_free(l);
}

/* ---- reading ---- */

static void sealed_by(struct buf *out, struct seal *s, uint8_t seed,
		      struct merkle_hash *prev)
{
	uint8_t key[32] = {seed};

	s->prev = *prev;
	seal_sign(s, key);
	seal_write(out, s);
	seal_hash(s, prev);
}

static void public_of(uint8_t seed, uint8_t ret[32])
{
	uint8_t key[32] = {seed};

	ed25519_public(key, ret);
}

/* Which of four seals are written, and by which keys; 1 is the genesis, 2 the next epoch's. */
static void write_four(const uint8_t by[4], const bool has[4])
{
	struct merkle_hash prev = {{0}};
	struct buf b;

	buf_init(&b, 65536);
	for (size_t i = 0; i < 4; i++) {
		struct seal s = {.log = {"aaaaaaaa-1111-4222-8333-444444444444"},
				 .size = 10 * i,
				 .epoch = i > 1,
				 .has_genesis = i == 0,
				 .has_next = i == 1};
		struct buf one;

		buf_init(&one, SEAL_MAX);
		clock_rfc3339(1, s.time);
		public_of(1, s.genesis);
		public_of(2, s.next);
		sealed_by(&one, &s, by[i], &prev);
		if (has[i])
			buf_add(&b, one.data, one.len);
		buf_done(&one);
	}
	store(SEAL_FILE, b.data, b.len);
	buf_done(&b);
}

Test(seals, each_epoch_is_signed_by_its_own_key_and_none_is_left_out)
{
	static const uint8_t right[] = {1, 1, 2, 2};
	static const bool all[] = {true, true, true, true};
	static const uint8_t wrong[][4] = {
		{2, 1, 2, 2}, {1, 2, 2, 2}, {1, 1, 1, 2}, {1, 1, 2, 1}, {1, 1, 3, 3}};
	static const bool holes[][4] = {{false, true, true, true},
					{true, false, true, true},
					{true, true, false, true},
					{true, false, false, true},
					{false, false, true, true}};
	enum seal_flaw flaw;

	write_four(right, all);
	cr_expect_eq(count_seals(NULL), 4);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		write_four(wrong[i], all);
		cr_expect_eq(count_seals(&flaw), -1, "%zu", i);
		cr_expect_eq(flaw, SEAL_FORGED, "%zu", i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(holes); i++) {
		write_four(right, holes[i]);
		cr_expect_eq(count_seals(&flaw), -1, "%zu", i);
		cr_expect_eq(flaw, SEAL_MISSING, "%zu", i);
	}
}

Test(seals, a_seal_has_one_form)
{
	struct seal s = {.log = {"aaaaaaaa-1111-4222-8333-444444444444"},
			 .size = 7,
			 .epoch = 3},
		    got;
	struct merkle_hash prev = {{0}};
	struct err err = ERR_INIT;
	struct buf b;

	clock_rfc3339(1, s.time);
	buf_init(&b, SEAL_MAX);
	sealed_by(&b, &s, 1, &prev);
	cr_assert(seal_parse(b.data, b.len, &got, &err) == 0, "%s", err.msg);
	cr_expect_eq(got.size, 7);
	cr_expect_eq(seal_length(b.data, b.len), b.len);
	for (size_t len = 0; len < b.len; len++) {
		cr_expect_eq(seal_length(b.data, len), 0, "%zu", len);
		cr_expect(seal_parse(b.data, len, &got, &err) < 0, "%zu", len);
	}
	for (size_t i = 0; i < b.len; i++) {
		static const char odd[] = {'\n', ' ', 'A', '\0', '\x1b'};

		for (size_t k = 0; k < sizeof(odd); k++) {
			uint8_t public[32];
			char was = b.data[i];

			public_of(1, public);
			b.data[i] = odd[k];
			cr_expect(was == odd[k] ||
					  seal_parse(b.data, b.len, &got, &err) < 0 ||
					  !seal_is_of(&got, public),
				  "byte %zu", i);
			b.data[i] = was;
		}
	}
	buf_done(&b);
}
