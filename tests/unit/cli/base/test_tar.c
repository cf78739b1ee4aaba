/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/tar.h"
#include "common/buf.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/lych-test-tar-XXXXXX";

static void make_top(void)
{
	cr_assert_not_null(mkdtemp(top));
	cr_assert_eq(chdir(top), 0);
}

static void remove_top(void)
{
	pid_t pid;

	cr_assert_eq(chdir("/"), 0);
	pid = fork();
	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", top, (char *)NULL);
		_exit(1);
	}
}

TestSuite(tar, .init = make_top, .fini = remove_top, .timeout = 20);

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static unsigned skipped;
static char last_skipped[256];

static void on_skip(const char *path, const char *why, void *arg)
{
	(void)why;
	(void)arg;
	skipped++;
	(void)snprintf(last_skipped, sizeof(last_skipped), "%s", path);
}

/* The whole archive, read in pieces of an odd size. */
static int pack_all(struct tar *t, struct buf *out, struct err *err)
{
	size_t n = 1;
	char piece[777];
	int r = 0;

	buf_init(out, 1 << 24);
	while (r == 0 && n > 0) {
		n = 0;
		r = tar_read(piece, sizeof(piece), &n, t, err);
		if (r == 0)
			buf_add(out, piece, n);
	}
	tar_close(t);
	return r;
}

static int pack(struct buf *out, struct err *err)
{
	struct tar *t = tar_new(NULL, on_skip, NULL);

	cr_assert_eq(tar_add(t, ".", NULL, NULL, err), 0, "%s", err->msg);
	return pack_all(t, out, err);
}

/* Listed by the system's tar: it must read what we write. */
static void list(const struct buf *archive, char *out, size_t size)
{
	char name[64]; /* of this test alone: others run beside it */
	int p[2], fd;
	size_t len = 0;
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%s.tar", top);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, archive->data, archive->len), (ssize_t)archive->len);
	cr_assert_eq(pipe(p), 0);
	if (fork() == 0) {
		dup2(p[1], 1);
		execl("/bin/tar", "tar", "-tf", name, (char *)NULL);
		_exit(1);
	}
	close(p[1]);
	while ((n = read(p[0], out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(p[0]);
	close(fd);
	unlink(name);
}

Test(tar, what_leads_out_or_is_no_file_is_left_out)
{
	struct err err = ERR_INIT;
	struct buf b;

	put("ok", "x");
	cr_assert_eq(symlink("/etc/passwd", "absolute"), 0);
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_assert_eq(symlink("../../etc/passwd", "upwards"), 0);
	cr_assert_eq(pack(&b, &err), 0, "%s", err.msg);
	cr_assert_eq(skipped, 3u);
	cr_assert_null(memmem(b.data, b.len, "root:", 5));
	cr_assert_null(memmem(b.data, b.len, "passwd", 6));
	buf_done(&b);
}

Test(tar, names_with_control_characters_are_refused)
{
	struct err err = ERR_INIT;
	struct buf b;

	put("a\nb", "x");
	cr_assert_lt(pack(&b, &err), 0);
	cr_assert_eq(err.id, ERRID_SPEC_PATH);
	buf_done(&b);
}

Test(tar, links_are_judged_by_where_they_end)
{
	cr_assert(tar_link_is_inside("a", "b"));
	cr_assert(tar_link_is_inside("d/a", "../b"));
	cr_assert(tar_link_is_inside("d/e/a", "../../b/./c"));
	cr_assert_not(tar_link_is_inside("a", "../b"));
	cr_assert_not(tar_link_is_inside("d/a", "../../b"));
	cr_assert_not(tar_link_is_inside("d/a", "x/../../../b"));
	cr_assert_not(tar_link_is_inside("a", "/b"));
	cr_assert_not(tar_link_is_inside("a", ""));
}

Test(tar, the_same_tree_gives_the_same_bytes_and_the_systems_tar_reads_them)
{
	struct err err = ERR_INIT;
	struct buf one, two;
	char deep[300] = "", names[8192];

	cr_assert_eq(mkdir("dir", 0700), 0);
	put("dir/zero", "");
	put("dir/b", "bbb");
	put("a", "aaa");
	put("gr\xc3\xbc\xc3\x9f", "utf8");
	cr_assert_eq(symlink("dir/b", "link"), 0);
	for (int i = 0; i < 12; i++) {
		size_t n = strlen(deep);

		(void)snprintf(deep + n, sizeof(deep) - n, "%sa-long-name-%02d",
			       n ? "/" : "", i);
		cr_assert_eq(mkdir(deep, 0700), 0);
	}
	cr_assert_eq(pack(&one, &err), 0, "%s", err.msg);
	cr_assert_eq(pack(&two, &err), 0, "%s", err.msg);
	cr_assert_eq(one.len % 512, 0u);
	cr_assert_eq(one.len, two.len);
	cr_assert_eq(memcmp(one.data, two.data, one.len), 0);
	list(&one, names, sizeof(names));
	cr_assert_not_null(strstr(names, "dir/zero\n"));
	cr_assert_not_null(strstr(names, "link\n"));
	cr_assert_not_null(strstr(names, deep), "the long path is there: %s", names);
	buf_done(&one);
	buf_done(&two);
}

/* Leaves "out", and takes directories where something below is taken. */
static int choose(const struct tar_entry *e, enum tar_verdict *ret, void *arg,
		  struct err *err)
{
	(void)arg;
	(void)err;
	if (strstr(e->path, "out"))
		*ret = TAR_LEAVE;
	else if (S_ISDIR(e->st->st_mode))
		*ret = TAR_BELOW;
	return 0;
}

Test(tar, trees_lie_side_by_side_and_what_is_not_wanted_stays)
{
	struct tar *t = tar_new(choose, on_skip, NULL);
	struct err err = ERR_INIT;
	struct buf b;
	char names[8192];

	cr_assert_eq(mkdir("one", 0700), 0);
	cr_assert_eq(mkdir("one/empty", 0700), 0);
	cr_assert_eq(mkdir("one/a", 0700), 0);
	cr_assert_eq(mkdir("one/a/b", 0700), 0);
	cr_assert_eq(mkdir("one/out", 0700), 0);
	cr_assert_eq(mkdir("two", 0700), 0);
	put("one/a/b/f", "f");
	put("one/a/out\n", "left out, so that its name does not matter");
	put("one/out/g", "g");
	put("two/h", "h");
	cr_assert_eq(tar_add(t, "one", NULL, NULL, &err), 0, "%s", err.msg);
	cr_assert_eq(tar_add(t, "two/", "to/it", NULL, &err), 0, "%s", err.msg);
	cr_assert_eq(pack_all(t, &b, &err), 0, "%s", err.msg);
	list(&b, names, sizeof(names));
	cr_assert_str_eq(names, "a/\na/b/\na/b/f\nto/it/h\n");
	buf_done(&b);
}

Test(tar, a_top_that_is_none_is_refused)
{
	struct tar *t = tar_new(NULL, on_skip, NULL);
	struct err err = ERR_INIT;

	cr_assert_eq(symlink(".", "self"), 0);
	cr_assert_lt(tar_add(t, "self", NULL, NULL, &err), 0);
	cr_assert_eq(err.id, ERRID_SPEC_TREE);
	err = (struct err)ERR_INIT;
	cr_assert_lt(tar_add(t, "none", NULL, NULL, &err), 0);
	tar_close(t);
}
