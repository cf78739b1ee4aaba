/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper reads of memory: of a process, of the machine, of a list of sockets. */
#include "sandbox/contract/meminfo.h"
#include "sandbox/keeper/diag.h"
#include "sandbox/keeper/use.h"

#include <criterion/criterion.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>

Test(use, a_status_is_read)
{
	struct use_pages v;

	cr_assert(use_parse_status("Name:\tx\nVmSize:\t 100 kB\nVmRSS:\t 12 kB\n"
				   "RssAnon:\t 8 kB\nRssFile:\t 4 kB\nRssShmem:\t 3 kB\n"
				   "VmPTE:\t 2 kB\nVmSwap:\t 1 kB\nHugetlbPages:\t 5 kB\n"
				   "Seccomp:\t2\nSeccomp_filters:\t7\n",
				   &v));
	cr_expect_eq(v.anon, 8 * 1024u);
	cr_expect_eq(v.shmem, 3 * 1024u);
	cr_expect_eq(v.swap, 1024u);
	cr_expect_eq(v.tables, 2 * 1024u);
	cr_expect_eq(v.huge, 5 * 1024u);
	cr_expect_eq(v.size, 100 * 1024u);
	cr_expect_eq(v.filters, 7u);
	cr_expect_not(use_parse_status("Name:\tx\nState:\tZ (zombie)\n", &v));
	cr_expect_not(use_parse_status("", &v));
}

Test(meminfo, the_four_numbers_or_none)
{
	struct meminfo m;

	cr_assert_eq(
		meminfo_parse("MemTotal: 9 kB\nMemAvailable:    5 kB\nSwapTotal: 7 kB\n"
			      "SwapFree: 6 kB\nShmem: 3 kB\nSReclaimable: 8 "
			      "kB\nSUnreclaim:      2 kB\n",
			      &m),
		0);
	cr_expect_eq(m.available, 5 * 1024u);
	cr_expect_eq(m.swap, 6 * 1024u);
	cr_expect_eq(m.shmem, 3 * 1024u);
	cr_expect_eq(m.kernel, 2 * 1024u);
	cr_expect_lt(
		meminfo_parse("MemAvailable: 5 kB\nSwapFree: 6 kB\nShmem: 3 kB\n", &m),
		0);
	cr_expect_lt(meminfo_parse("", &m), 0);
}

/* ---- sockets -------------------------------------------------------------------------- */

#define QUEUE 1000000

static char msg[512];
static size_t len;

static void put(const void *data, size_t n)
{
	memcpy(msg + len, data, n);
	len = NLMSG_ALIGN(len + n);
}

static void put_attribute(unsigned short type, const void *data, size_t n)
{
	struct rtattr a = {.rta_len = (unsigned short)RTA_LENGTH(n), .rta_type = type};

	memcpy(msg + len, &a, sizeof(a));
	memcpy(msg + len + sizeof(a), data, n);
	len += RTA_ALIGN(a.rta_len);
}

static void unix_socket(uint8_t type, uint8_t state, uint32_t waits, uint32_t wmem)
{
	const struct unix_diag_msg m = {.udiag_family = AF_UNIX,
					.udiag_type = type,
					.udiag_state = state,
					.udiag_ino = 42};
	const struct unix_diag_rqlen q = {.udiag_rqueue = waits};
	uint32_t mem[SK_MEMINFO_VARS] = {[SK_MEMINFO_WMEM_ALLOC] = wmem};

	memset(msg, 0, sizeof(msg));
	len = 0;
	put(&m, sizeof(m));
	put_attribute(UNIX_DIAG_RQLEN, &q, sizeof(q));
	put_attribute(UNIX_DIAG_MEMINFO, mem, sizeof(mem));
}

static uint64_t bytes_of(int family)
{
	struct diag_one one = {0};

	cr_assert(diag_parse(family, msg, len, QUEUE, &one));
	return one.bytes;
}

Test(diag, what_a_unix_socket_holds)
{
	const uint32_t peer = 7;
	const uint32_t icons[] = {5, 0, 0};

	unix_socket(SOCK_STREAM, 1, 0, 4096);
	cr_expect_eq(bytes_of(AF_UNIX), 4096u, "on its way to others");
	unix_socket(SOCK_STREAM, 1, 100, 0);
	cr_expect_eq(bytes_of(AF_UNIX), (uint64_t)QUEUE, "of a sender that is gone");
	put_attribute(UNIX_DIAG_PEER, &peer, sizeof(peer));
	cr_expect_eq(bytes_of(AF_UNIX), 0u, "its sender is charged");
	unix_socket(SOCK_STREAM, 10, 3, 0);
	put_attribute(UNIX_DIAG_ICONS, icons, sizeof(icons));
	cr_expect_geq(bytes_of(AF_UNIX), (uint64_t)2 * QUEUE, "two whose sender is gone");
	cr_expect_lt(bytes_of(AF_UNIX), (uint64_t)3 * QUEUE);
	unix_socket(SOCK_DGRAM, 7, 1, 0);
	cr_expect_geq(bytes_of(AF_UNIX), (uint64_t)11 * QUEUE,
		      "from whom, and how many?");
	put_attribute(UNIX_DIAG_PEER, &peer, sizeof(peer));
	cr_expect_eq(bytes_of(AF_UNIX), 0u, "one of a pair");
	put_attribute(UNIX_DIAG_NAME, "x", 1);
	cr_expect_geq(bytes_of(AF_UNIX), (uint64_t)11 * QUEUE, "others know its name");
}

Test(diag, what_a_tcp_socket_holds)
{
	struct inet_diag_msg m = {.idiag_family = AF_INET, .idiag_inode = 9};
	uint32_t mem[SK_MEMINFO_VARS] = {[SK_MEMINFO_RMEM_ALLOC] = 100,
					 [SK_MEMINFO_WMEM_ALLOC] = 5,
					 [SK_MEMINFO_WMEM_QUEUED] = 50};

	memset(msg, 0, sizeof(msg));
	len = 0;
	put(&m, sizeof(m));
	put_attribute(INET_DIAG_SKMEMINFO, mem, sizeof(mem));
	cr_expect_eq(bytes_of(AF_INET), 150u);
	/* Who listens to a group has an entry of the interface too. */
	mem[SK_MEMINFO_OPTMEM] = 1000;
	len = 0;
	put(&m, sizeof(m));
	put_attribute(INET_DIAG_SKMEMINFO, mem, sizeof(mem));
	cr_expect_eq(bytes_of(AF_INET), 150u + 6000u);
	m.idiag_inode = 0;
	memcpy(msg, &m, sizeof(m));
	cr_expect_geq(bytes_of(AF_INET), 150u + 4096,
		      "and itself, since nobody holds it");
}

Test(diag, a_cut_message_is_none)
{
	struct diag_one one;

	unix_socket(SOCK_STREAM, 1, 1, 1);
	for (size_t n = 0; n < len; n++)
		if (n < len - sizeof(uint32_t))
			cr_expect_not(diag_parse(AF_UNIX, msg, n, QUEUE, &one), "%zu", n);
	cr_expect_not(diag_parse(AF_INET, msg, 8, QUEUE, &one));
}
