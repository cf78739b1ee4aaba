/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the host that change: read again when they have settled, refused when they cannot be
 * read, and written by nobody but the watcher.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include "tests/support/certificate.h"
#include "vessel/egress/sources.h"
#include "vessel/egress/watcher.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(sources, .timeout = 60);

static char dir[32], resolv[64], hosts[64], roots[64];
static struct sources *s;
static struct watcher w;

static void put(const char *path, const void *text, size_t len)
{
	struct err err = ERR_INIT;

	cr_assert_eq(fs_write_atomic(AT_FDCWD, path, text, len, 0600, &err), 0, "%s",
		     err.msg);
}

static void put_text(const char *path, const char *text)
{
	put(path, text, strlen(text));
}

static void settle(void)
{
	watcher_look(&w);
	watcher_look(&w);
}

static bool is(enum egress_source which, const char *text)
{
	cleanup_free char *got = NULL;
	size_t len;

	got = sources_get(s, which, &len);
	if (!got || !text)
		return !got && !text;
	return len == strlen(got) && str_eq(got, text);
}

static bool has_roots(void)
{
	cleanup_free char *got = NULL;
	size_t len;

	got = sources_get(s, SOURCE_ROOTS, &len);
	return got && strstr(got, "BEGIN CERTIFICATE");
}

static void begin(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(str_copy(dir, sizeof(dir), "/tmp/lych-sources-XXXXXX"), 0);
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(str_fmt(resolv, sizeof(resolv), "%s/resolv", dir), 0);
	cr_assert_eq(str_fmt(hosts, sizeof(hosts), "%s/hosts", dir), 0);
	cr_assert_eq(str_fmt(roots, sizeof(roots), "%s/roots.pem", dir), 0);
	put_text(resolv, "nameserver 1.1.1.1\n");
	put_text(hosts, "127.0.0.1 localhost\n");
	certificate_write(roots, "127.0.0.1");
	cr_assert_eq(sources_new(&s, &err), 0, "%s", err.msg);
	watcher_init(&w, s, resolv, hosts, roots);
	settle();
}

static void end(void)
{
	sources_free(s);
	(void)unlink(resolv);
	(void)unlink(hosts);
	(void)unlink(roots);
	(void)rmdir(dir);
}

Test(sources, what_cannot_be_read_is_refused_until_it_can, .init = begin, .fini = end)
{
	static char huge[300 << 10];
	unsigned before;

	cr_assert(is(SOURCE_RESOLV, "nameserver 1.1.1.1\n"));
	cr_assert(has_roots());

	put(resolv, "nameserver\0 9.9.9.9\n", 20);
	put_text(roots, "no certificate\n");
	memset(huge, '#', sizeof(huge));
	put(hosts, huge, sizeof(huge));
	settle();
	cr_expect(is(SOURCE_RESOLV, NULL), "a NUL");
	cr_expect(is(SOURCE_HOSTS, NULL), "too long");
	cr_expect(is(SOURCE_ROOTS, NULL), "no authority");

	put_text(roots, "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n");
	settle();
	cr_expect(is(SOURCE_ROOTS, NULL), "half a certificate");
	cr_assert_eq(unlink(roots), 0);
	settle();
	cr_expect(is(SOURCE_ROOTS, NULL), "it is not there");
	/* it is refused once, not at each look */
	before = sources_generation(s);
	settle();
	cr_expect_eq(sources_generation(s), before);

	put_text(resolv, "nameserver 9.9.9.9\n");
	put_text(hosts, "# empty\n");
	certificate_write(roots, "127.0.0.2");
	settle();
	cr_expect(is(SOURCE_RESOLV, "nameserver 9.9.9.9\n"));
	cr_expect(is(SOURCE_HOSTS, "# empty\n"));
	cr_expect(has_roots());
}

/* A laptop between two networks has none, and that is no error. */
Test(sources, no_name_servers_are_a_state, .init = begin, .fini = end)
{
	cr_assert_eq(unlink(resolv), 0);
	cr_assert_eq(unlink(hosts), 0);
	settle();
	cr_expect(is(SOURCE_RESOLV, ""));
	cr_expect(is(SOURCE_HOSTS, ""));
}

Test(sources, who_writes_is_not_read_in_the_middle, .init = begin, .fini = end)
{
	put_text(resolv, "nameserver 9.9.9.9\n");
	watcher_look(&w);
	cr_expect(is(SOURCE_RESOLV, "nameserver 1.1.1.1\n"));
	put_text(resolv, "nameserver 9.9.9.9\nnameserver 8.8.8.8\n");
	watcher_look(&w);
	cr_expect(is(SOURCE_RESOLV, "nameserver 1.1.1.1\n"));
	watcher_look(&w);
	cr_expect(is(SOURCE_RESOLV, "nameserver 9.9.9.9\nnameserver 8.8.8.8\n"));
}

Test(sources, the_same_text_is_no_news, .init = begin, .fini = end)
{
	unsigned before = sources_generation(s);

	put_text(resolv, "nameserver 1.1.1.1\n");
	settle();
	cr_expect_eq(sources_generation(s), before);
}

/* What a worker could try: to write where it reads. */
static void try_to_write(void)
{
	size_t len;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	void *page = NULL, *end_of = NULL;

	sources_read_only(s);
	free(sources_get(s, SOURCE_RESOLV, &len));
	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "egress-sources"))
			continue;
		if (strstr(line, "rw"))
			_exit(2);
		if (sscanf(line, "%p-%p", &page, &end_of) != 2)
			_exit(3);
	}
	if (!page)
		_exit(4);
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0 || errno != EACCES)
		_exit(5);
	_exit(0);
}

Test(sources, a_reader_can_never_write, .init = begin, .fini = end)
{
	int status = 0;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		try_to_write();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	/* the watcher goes on */
	put_text(resolv, "nameserver 9.9.9.9\n");
	settle();
	cr_expect(is(SOURCE_RESOLV, "nameserver 9.9.9.9\n"));
}
