/* SPDX-License-Identifier: Apache-2.0 */
/* What goes with a message is a sealed memfd, and nothing else is taken. */
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/mem.h"
#include "common/proto/payload.h"
#include "common/proto/spawn_proto.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct head {
	uint32_t bytes;
};

static int sv[2];

static void setup(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
}

TestSuite(payload, .init = setup);

static char *pattern(size_t n)
{
	char *p = xmalloc(n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + i % 23);
	return p;
}

static int take(struct head *h, int *fds, unsigned *n_fds, struct payload *ret,
		struct err *err)
{
	cr_assert_eq(fdpass_recv(sv[1], h, sizeof(*h), fds, n_fds, 0),
		     (ssize_t)sizeof(*h));
	return payload_take(h->bytes, fds, n_fds, ret, err);
}

static void there_and_back(size_t bytes)
{
	cleanup_free char *block = pattern(bytes);
	int fds[FDPASS_MAX] = FDPASS_NONE, out = STDERR_FILENO;
	struct head h = {(uint32_t)bytes};
	struct payload sent, got;
	struct err err = ERR_INIT;
	unsigned n_fds;

	cr_assert_eq(payload_make(block, bytes, &sent, &err), 0);
	cr_assert_eq(payload_send(sv[0], &h, sizeof(h), &sent, &out, 1, 0), 0);
	payload_done(&sent);
	cr_assert_eq(take(&h, fds, &n_fds, &got, &err), 0, "%s", err.msg);
	cr_expect_eq(got.bytes, bytes);
	cr_expect_eq(memcmp(got.block, block, bytes), 0);
	/* The other descriptors are where they would be without it. */
	cr_expect_eq(n_fds, 1);
	cr_expect_geq(fds[0], 0);
	cr_expect_eq(fds[1], -1);
	/* And further on, as the spawner does with a warm keeper. */
	cr_assert_eq(payload_send(sv[0], &h, sizeof(h), &got, fds, n_fds, 0), 0);
	payload_done(&got);
	cr_expect_eq(got.memfd, -1);
	fd_close(&fds[0]);
	cr_assert_eq(take(&h, fds, &n_fds, &got, &err), 0);
	cr_expect_eq(memcmp(got.block, block, bytes), 0);
	fd_close(&fds[0]);
	payload_done(&got);
}

Test(payload, there_and_back)
{
	there_and_back(1);
	there_and_back(4096);
	there_and_back((size_t)1 << 20);
}

Test(payload, nothing_and_too_much_are_not_made)
{
	struct payload s;
	struct err err = ERR_INIT;

	cr_expect_eq(payload_make("", 0, &s, &err), -1);
	cr_expect_eq(err.id, ERRID_SPEC_SIZE);
	err_clear(&err);
	cr_expect_eq(payload_make("", (size_t)SPAWN_SPEC_MAX_BYTES + 1, &s, &err), -1);
	cr_expect_eq(err.id, ERRID_SPEC_SIZE);
}

/* memfd_bytes: -1 without one. */
static void refused(uint32_t says, long memfd_bytes, int seals, const char *what)
{
	int fds[FDPASS_MAX] = FDPASS_NONE, fd = -1;
	struct payload got = PAYLOAD_NONE;
	struct head h = {says};
	struct err err = ERR_INIT;
	unsigned n_fds;

	if (memfd_bytes >= 0) {
		fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		cr_assert_eq(ftruncate(fd, memfd_bytes), 0);
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	}
	cr_assert_eq(fdpass_send(sv[0], &h, sizeof(h), &fd, fd >= 0, 0), 0);
	cr_expect_eq(take(&h, fds, &n_fds, &got, &err), -1, "%s", what);
	cr_expect_eq(err.id, ERRID_SANDBOX_SPAWNER, "%s", what);
	fd_close(&fd);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

Test(payload, what_is_not_what_it_says_is_refused)
{
	const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	refused(0, -1, 0, "nothing");
	refused(0, 0, all, "an empty memfd");
	refused(100, -1, 0, "one without its memfd");
	refused(100, 99, all, "a shorter memfd");
	refused(100, 101, all, "a longer memfd");
	refused(SPAWN_SPEC_MAX_BYTES + 1, (long)SPAWN_SPEC_MAX_BYTES + 1, all,
		"too long");
	refused(100, 100, all & ~F_SEAL_WRITE, "a memfd that can be written");
	refused(100, 100, all & ~F_SEAL_SHRINK, "a memfd that can be cut");
	refused(100, 100, all & ~F_SEAL_GROW, "a memfd that can grow");
	refused(100, 100, all & ~F_SEAL_SEAL, "a memfd that can be sealed further");
}

/* A pipe has no seals. */
Test(payload, another_kind_of_descriptor_is_refused)
{
	int fds[FDPASS_MAX] = FDPASS_NONE, p[2];
	struct payload got = PAYLOAD_NONE;
	struct head h = {1};
	struct err err = ERR_INIT;
	unsigned n_fds;

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(fdpass_send(sv[0], &h, sizeof(h), p, 1, 0), 0);
	cr_expect_eq(take(&h, fds, &n_fds, &got, &err), -1);
	cr_expect_eq(err.id, ERRID_SANDBOX_SPAWNER);
	fd_close(&p[0]);
	fd_close(&p[1]);
}
