/* SPDX-License-Identifier: Apache-2.0 */
#include "common/str.h"
#include "vessel/egress/addr.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

struct row {
	char text[48];
	bool is_public;
};

/* The first, the last and the neighbours of each range. */
static struct row ranges[] = {
	{"0.0.0.0", false},
	{"0.255.255.255", false},
	{"1.0.0.0", true},
	{"9.255.255.255", true},
	{"10.0.0.0", false},
	{"10.255.255.255", false},
	{"11.0.0.0", true},
	{"100.63.255.255", true},
	{"100.64.0.0", false},
	{"100.100.100.200", false},
	{"100.127.255.255", false},
	{"100.128.0.0", true},
	{"126.255.255.255", true},
	{"127.0.0.1", false},
	{"127.255.255.255", false},
	{"128.0.0.0", true},
	{"168.63.129.15", true},
	{"168.63.129.16", false},
	{"168.63.129.17", true},
	{"169.253.255.255", true},
	{"169.254.0.0", false},
	{"169.254.169.254", false},
	{"169.254.255.255", false},
	{"169.255.0.0", true},
	{"172.15.255.255", true},
	{"172.16.0.0", false},
	{"172.31.255.255", false},
	{"172.32.0.0", true},
	{"191.255.255.255", true},
	{"192.0.0.0", false},
	{"192.0.0.192", false},
	{"192.0.0.255", false},
	{"192.0.1.0", true},
	{"192.0.2.0", false},
	{"192.0.2.255", false},
	{"192.0.3.0", true},
	{"192.31.195.255", true},
	{"192.31.196.0", false},
	{"192.31.197.0", true},
	{"192.52.192.255", true},
	{"192.52.193.255", false},
	{"192.52.194.0", true},
	{"192.88.98.255", true},
	{"192.88.99.0", false},
	{"192.88.100.0", true},
	{"192.167.255.255", true},
	{"192.168.0.0", false},
	{"192.168.255.255", false},
	{"192.169.0.0", true},
	{"192.175.47.255", true},
	{"192.175.48.0", false},
	{"192.175.49.0", true},
	{"198.17.255.255", true},
	{"198.18.0.0", false},
	{"198.19.255.255", false},
	{"198.20.0.0", true},
	{"198.51.99.255", true},
	{"198.51.100.0", false},
	{"198.51.101.0", true},
	{"203.0.112.255", true},
	{"203.0.113.0", false},
	{"203.0.114.0", true},
	{"223.255.255.255", true},
	{"224.0.0.0", false},
	{"239.255.255.255", false},
	{"240.0.0.0", false},
	{"255.255.255.255", false},
	{"8.8.8.8", true},
	{"::", false},
	{"::1", false},
	{"::127.0.0.1", false},
	{"::10.0.0.1", false},
	{"::ffff:8.8.8.8", false},
	{"::ffff:10.0.0.1", false},
	{"64:ff9b::808:808", false},
	{"64:ff9b::a9fe:a9fe", false},
	{"64:ff9b:1::1", false},
	{"100::1", false},
	{"1fff:ffff::1", false},
	{"2000::", true},
	{"2001::1", false},
	{"2001:0:53aa:64c:0:fbff:f5ff:fffe", false},
	{"2001:1ff:ffff::1", false},
	{"2001:200::1", true},
	{"2001:4860:4860::8888", true},
	{"2001:db7::1", true},
	{"2001:db8::1", false},
	{"2001:db8:ffff::1", false},
	{"2001:db9::1", true},
	{"2002:7f00:1::", false},
	{"2002:808:808::1", false},
	{"2003::1", true},
	{"2606:4700:4700::1111", true},
	{"2620:4f:7fff::1", true},
	{"2620:4f:8000::1", false},
	{"2620:4f:8001::1", true},
	{"3ffe::1", true},
	{"3fff::1", false},
	{"3fff:fff::1", false},
	{"3fff:1000::1", true},
	{"4000::1", false},
	{"5f00::1", false},
	{"fc00::1", false},
	{"fd00:ec2::254", false},
	{"fdff::1", false},
	{"fe80::1", false},
	{"fec0::1", false},
	{"ff02::1", false},
	/* IPv4 in an interface number */
	{"2606:4700::5efe:a00:1", false},
	{"2606:4700::200:5efe:a00:1", false},
	{"2606:4700::100:5efe:a00:1", true},
};

ParameterizedTestParameters(addr, the_ranges)
{
	return cr_make_param_array(struct row, ranges,
				   sizeof(ranges) / sizeof(ranges[0]));
}

ParameterizedTest(struct row *row, addr, the_ranges)
{
	struct addr_policy p = {.n_exact = 0};
	struct addr a;

	cr_assert_eq(addr_parse(row->text, &a), 0, "%s", row->text);
	cr_assert_eq(addr_is_public(&a), row->is_public, "%s", row->text);
	cr_assert_eq(addr_policy_check(&p, &a),
		     row->is_public ? REASON_NONE : REASON_ADDR_PRIVATE);
	/* Named exactly it may be reached, and only it. */
	cr_assert_eq(addr_policy_allow(&p, row->text, NULL), 0);
	cr_assert_eq(addr_policy_check(&p, &a), REASON_NONE);
	a.b[a.v6 ? 15 : 3] ^= 1;
	if (!addr_is_public(&a))
		cr_assert_eq(addr_policy_check(&p, &a), REASON_ADDR_PRIVATE);
}

Test(addr, only_one_way_to_write_it)
{
	static const char *const bad[] = {
		"",
		"1",
		"127.1",
		"0x7f.0.0.1",
		"0177.0.0.1",
		"127.0.0.01",
		"127.0.0.1 ",
		" 127.0.0.1",
		"127.0.0.1.",
		"256.0.0.1",
		"1.2.3",
		"1.2.3.4.5",
		"::0",
		"0:0:0:0:0:0:0:1",
		"::FFFF:1",
		"2001:DB8::",
		"fe80::1%eth0",
		"[::1]",
		"::ffff:7f00:1",
		"10.0.0.0/8",
		"1::2::3",
		"12345::",
		"localhost",
	};
	struct addr a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_lt(addr_parse(bad[i], &a), 0, "took '%s'", bad[i]);
}

/* Whatever IPv4 address it is: no IPv6 address that carries it is open. */
Test(addr, no_ipv4_address_hides_in_an_ipv6_one)
{
	static const uint8_t fronts[][12] = {
		{0},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
		{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
		{0, 0x64, 0xff, 0x9b},
		{0, 0x64, 0xff, 0x9b, 0, 1},
		{0x26, 0x06, 0x47, 0, 0, 0, 0, 0, 0, 0, 0x5e, 0xfe},
		{0x26, 0x06, 0x47, 0, 0, 0, 0, 0, 2, 0, 0x5e, 0xfe},
	};
	uint32_t x = 2463534242;

	for (unsigned i = 0; i < 20000; i++) {
		struct addr a = {.v6 = true};

		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		memcpy(a.b, fronts[i % (sizeof(fronts) / sizeof(fronts[0]))], 12);
		memcpy(a.b + 12, &x, 4);
		cr_assert_not(addr_is_public(&a));
		/* 6to4 and Teredo carry it elsewhere. */
		memset(a.b, 0, 16);
		a.b[0] = 0x20;
		a.b[1] = 2;
		memcpy(a.b + 2, &x, 4);
		cr_assert_not(addr_is_public(&a));
		a.b[1] = 1;
		a.b[2] = a.b[3] = 0;
		cr_assert_not(addr_is_public(&a));
	}
}

/* Every IPv4 address is public or not as the plain list of ranges says. */
Test(addr, agrees_with_the_list_as_numbers)
{
	static const struct {
		uint32_t from, to;
	} closed[] = {
		{0x00000000, 0x00ffffff}, {0x0a000000, 0x0affffff},
		{0x64400000, 0x647fffff}, {0x7f000000, 0x7fffffff},
		{0xa83f8110, 0xa83f8110}, {0xa9fe0000, 0xa9feffff},
		{0xac100000, 0xac1fffff}, {0xc0000000, 0xc00000ff},
		{0xc0000200, 0xc00002ff}, {0xc01fc400, 0xc01fc4ff},
		{0xc034c100, 0xc034c1ff}, {0xc0586300, 0xc05863ff},
		{0xc0a80000, 0xc0a8ffff}, {0xc0af3000, 0xc0af30ff},
		{0xc6120000, 0xc613ffff}, {0xc6336400, 0xc63364ff},
		{0xcb007100, 0xcb0071ff}, {0xe0000000, 0xffffffff},
	};

	for (uint64_t x = 0; x <= 0xffffffff; x += 251) {
		struct addr a = {.b = {(uint8_t)(x >> 24), (uint8_t)(x >> 16),
				       (uint8_t)(x >> 8), (uint8_t)x}};
		bool open = true;

		for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
			if (x >= closed[i].from && x <= closed[i].to)
				open = false;
		if (addr_is_public(&a) != open)
			cr_assert_fail("%08llx", (unsigned long long)x);
	}
}

Test(addr, this_hosts_own_addresses)
{
	struct addr_policy p = {.n_exact = 0};
	struct err err = ERR_INIT;
	struct addr a;

	cr_assert_eq(addr_policy_read_own(&p, &err), 0, "%s", err.msg);
	cr_assert_eq(addr_parse("127.0.0.1", &a), 0);
	cr_assert(addr_is_own_now(&a));
	cr_assert_eq(addr_parse("8.8.8.8", &a), 0);
	cr_assert_not(addr_is_own_now(&a));
	cr_assert_eq(addr_policy_check(&p, &a), REASON_NONE);
	/* As if an interface had it. */
	p.own[p.n_own++] = a;
	cr_assert_eq(addr_policy_check(&p, &a), REASON_SELF);
	cr_assert_eq(addr_policy_allow(&p, "8.8.8.8", &err), 0);
	cr_assert_eq(addr_policy_check(&p, &a), REASON_NONE);
}

Test(addr, a_rule_names_one_address_in_one_way)
{
	struct addr_policy p = {.n_exact = 0};
	struct err err = ERR_INIT;

	cr_assert_lt(addr_policy_allow(&p, "10.0.0.0/8", &err), 0);
	cr_assert_lt(addr_policy_allow(&p, "localhost", &err), 0);
	cr_assert_lt(addr_policy_allow(&p, "127.1", &err), 0);
	cr_assert_eq(p.n_exact, 0);
	for (unsigned i = 0; i < ADDR_EXACT_MAX; i++)
		cr_assert_eq(addr_policy_allow(&p, "10.0.0.1", &err), 0);
	cr_assert_lt(addr_policy_allow(&p, "10.0.0.1", &err), 0);
}

Test(addr, to_a_socket_address_and_back)
{
	static const char *const texts[] = {"10.1.2.3", "2001:db8::1:2"};

	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_storage sa;
		struct addr a, b;
		uint16_t port = 0;
		socklen_t len;
		char text[ADDR_TEXT_SIZE];

		cr_assert_eq(addr_parse(texts[i], &a), 0);
		len = addr_to_sockaddr(&a, 4711, &sa);
		cr_assert_eq(addr_from_sockaddr((struct sockaddr *)&sa, len, &b, &port),
			     0);
		cr_assert(addr_eq(&a, &b));
		cr_assert_eq(port, 4711);
		addr_format(&b, text);
		cr_assert_str_eq(text, texts[i]);
		cr_assert_lt(addr_from_sockaddr((struct sockaddr *)&sa, 4, &b, &port), 0);
	}
}
