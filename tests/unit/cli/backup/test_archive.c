/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/backup/archive.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TestSuite(archive, .timeout = 20);

#define SHA "abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"

static struct backup_key key;

/* An archive of these names (NULL at the end), each with its name as its bytes. */
static int write_names(const char *const *names)
{
	struct archive_writer w;
	struct err err = ERR_INIT;
	int fd = memfd_create("archive", MFD_CLOEXEC);

	backup_key_of(&(struct backup_code){{1}}, &key);
	archive_begin(&w, fd);
	for (; *names; names++)
		cr_assert_eq(archive_add(&w, *names, *names, strlen(*names), &err), 0,
			     "%s", err.msg);
	cr_assert_eq(archive_end(&w, &key, &err), 0, "%s", err.msg);
	archive_done(&w);
	return fd;
}

struct seen {
	char names[4096];
	char id[BACKUP_KEY_ID_SIZE], seal[SHA256_HEX_SIZE], right[SHA256_HEX_SIZE];
	unsigned seals, ends;
};

static int on_file(const char *name, uint64_t size, void *arg, struct err *err)
{
	struct seen *s = arg;
	size_t n = strlen(s->names);

	(void)err;
	cr_assert_eq(size, strlen(name));
	(void)snprintf(s->names + n, sizeof(s->names) - n, "%s\n", name);
	return 0;
}

static int on_file_end(const char *name UNUSED, void *arg, struct err *err UNUSED)
{
	((struct seen *)arg)->ends++;
	return 0;
}

static int on_seal(const char *id, const char *seal, const void *data, size_t len,
		   void *arg, struct err *err UNUSED)
{
	struct seen *s = arg;

	s->seals++;
	backup_key_seal(&key, data, len, s->right);
	return id ? str_copy(s->id, sizeof(s->id), id) |
			       str_copy(s->seal, sizeof(s->seal), seal)
		  : 0;
}

static int read_it(int fd, struct seen *s, struct err *err)
{
	const struct archive_reader r = {.on_file = on_file,
					 .on_file_end = on_file_end,
					 .on_seal = on_seal,
					 .arg = s};

	*s = (struct seen){0};
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	return archive_read(fd, &r, err);
}

Test(archive, comes_back_with_its_seal)
{
	static const char *const names[] = {
		ARCHIVE_INFO,
		ARCHIVE_DATABASE,
		ARCHIVE_CONFIG,
		ARCHIVE_PRIVATE,
		"vessel/blobs/ab/" SHA,
		"vessel/output/0/1.1/meta",
		"vessel/output/0/1.1/order",
		"vessel/output/0/1.10/stdout",
		"vessel/output/0/10.0/stderr.sum",
		"vessel/output/1/256.1/stdout",
		"vessel/output/10/2560.1/stdout",
		"vessel/output/2/512.1/stdout",
		"audit/seals",
		"audit/segment-0000000001.jsonl",
		"audit/segment-0000000002.jsonl",
		NULL,
	};
	cleanup_close int fd = write_names(names);
	struct err err = ERR_INIT;
	struct seen s;

	cr_assert_eq(read_it(fd, &s, &err), 0, "%s", err.msg);
	for (const char *const *n = names; *n; n++)
		cr_expect(strstr(s.names, *n), "%s", *n);
	cr_expect_eq(s.ends, ARRAY_SIZE(names) - 1);
	cr_expect_eq(s.seals, 1);
	cr_expect_str_eq(s.id, key.id);
	cr_expect_str_eq(s.seal, s.right);
}

static const char *const out_of_order[][5] = {
	{ARCHIVE_DATABASE, ARCHIVE_INFO},
	{ARCHIVE_INFO},
	{ARCHIVE_INFO, ARCHIVE_CONFIG},
	{ARCHIVE_INFO, ARCHIVE_INFO, ARCHIVE_DATABASE},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, ARCHIVE_DATABASE},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, ARCHIVE_CONFIG, ARCHIVE_CONFIG},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, ARCHIVE_PRIVATE, ARCHIVE_CONFIG},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, "vessel/output/0/2.1/meta",
	 "vessel/output/0/1.1/meta"},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, "audit/segment-0000000001.jsonl",
	 "vessel/output/0/1.1/meta"},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, "audit/segment-0000000001.jsonl",
	 "audit/segment-0000000001.jsonl"},
	{ARCHIVE_INFO, ARCHIVE_DATABASE, "audit/segment-0000000001.jsonl", "audit/seals"},
};

static const char *const foreign_names[] = {
	"x",
	"../x",
	"/x",
	"config",
	"config/backup.key",
	"audit/lock",
	"audit/.keys",
	"audit/seals/x",
	"audit/segment-1.jsonl",
	"audit/segment-0000000001.jsonl.tmp",
	"audit/segment-0000000001.jsonl/x",
	"vessel/blobs/ab",
	"vessel/blobs/aa/" SHA,
	"vessel/blobs/ab/" SHA "0",
	"vessel/blobs/AB/AB" SHA,
	"vessel/output/0/1.1",
	"vessel/output/1.1/meta",
	"vessel/output/1/1.1/meta",
	"vessel/output/0/256.1/meta",
	"vessel/output/00/1.1/meta",
	"vessel/output/0/1.1/x",
	"vessel/output/0/1.1/meta/x",
	"vessel/output/0/01.1/meta",
	"vessel/output/0/0.1/meta",
	"vessel/output/0/1.01/meta",
	"vessel/output/0/.1/meta",
	"vessel/output/0/1./meta",
	"vessel/output/0/-1.1/meta",
	"vessel/output/43402777777777777/11111111111111111111.1/meta",
	"vessel/reactor/1",
	"secrets/lychgate_work",
	"BACKUP.json/x",
	"MANIFEST/x",
};

Test(archive, its_names_are_those_of_a_backup_in_order_and_once)
{
	struct err err = ERR_INIT;
	struct seen s;

	for (size_t i = 0; i < ARRAY_SIZE(out_of_order); i++) {
		cleanup_close int fd = write_names(out_of_order[i]);

		cr_expect_eq(read_it(fd, &s, &err), -1, "case %zu", i);
		cr_expect_eq(err.id, ERRID_BACKUP_DAMAGED, "case %zu: %s", i, err.msg);
		cr_expect_eq(s.seals, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(foreign_names); i++) {
		const char *const names[] = {ARCHIVE_INFO, ARCHIVE_DATABASE,
					     foreign_names[i], NULL};
		cleanup_close int fd = write_names(names);

		cr_expect_eq(read_it(fd, &s, &err), -1, "'%s'", foreign_names[i]);
		cr_expect_eq(err.id, ERRID_BACKUP_DAMAGED, "'%s'", foreign_names[i]);
	}
}

/* A bit of the seal's digits makes another seal; any other one is seen without a key. */
Test(archive, every_bit_counts)
{
	static const char *const names[] = {ARCHIVE_INFO, ARCHIVE_DATABASE, NULL};
	cleanup_close int fd = write_names(names);
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned only_by_seal = 0;
	struct err err = ERR_INIT;
	struct seen s;

	for (off_t at = 0; at < size; at++) {
		for (int bit = 0; bit < 8; bit++) {
			unsigned char was, now;

			cr_assert_eq(pread(fd, &was, 1, at), 1);
			now = (unsigned char)(was ^ 1 << bit);
			cr_assert_eq(pwrite(fd, &now, 1, at), 1);
			if (read_it(fd, &s, &err) == 0) {
				only_by_seal++;
				cr_expect(
					!str_eq(s.id, key.id) || !str_eq(s.seal, s.right),
					"bit %d of byte %ld is not seen", bit, (long)at);
			}
			cr_assert_eq(pwrite(fd, &was, 1, at), 1);
		}
	}
	cr_expect_lt(only_by_seal, 8 * (BACKUP_KEY_ID_SIZE + SHA256_HEX_SIZE));
	cr_expect_gt(only_by_seal, 0);
	cr_assert_eq(read_it(fd, &s, &err), 0);
}

Test(archive, without_its_seal_it_says_so)
{
	/* the manifest's length, its bytes and the rest as without that line */
	static const char *const names[] = {ARCHIVE_INFO, ARCHIVE_DATABASE, NULL};
	cleanup_close int fd = write_names(names);
	off_t size = lseek(fd, 0, SEEK_END), at = 4 * 512;
	char head[512], text[1024];
	struct err err = ERR_INIT;
	unsigned sum = 0;
	struct seen s;
	char *seal;

	cr_assert_eq(size, 4 * 512 + 512 + 512 + 1024);
	cr_assert_eq(pread(fd, head, sizeof(head), at), (ssize_t)sizeof(head));
	cr_assert_eq(pread(fd, text, sizeof(text), at + 512), (ssize_t)sizeof(text));
	seal = strstr(text, "\nseal ") + 1;
	memset(seal, 0, (size_t)(text + sizeof(text) - seal));
	(void)snprintf(head + 124, 12, "%011o", (unsigned)(seal - text));
	memset(head + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(head); i++)
		sum += (unsigned char)head[i];
	(void)snprintf(head + 148, 8, "%06o", sum);
	head[155] = ' ';
	cr_assert_eq(pwrite(fd, head, sizeof(head), at), (ssize_t)sizeof(head));
	cr_assert_eq(pwrite(fd, text, sizeof(text), at + 512), (ssize_t)sizeof(text));
	cr_assert_eq(read_it(fd, &s, &err), 0, "%s", err.msg);
	cr_expect_eq(s.seals, 1);
	cr_expect_eq(s.id[0], '\0');
}
