/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the vessel may have the egress parent do about keys of hosts: no word but those, no file but a
 * host's secret, and a key to no second place.
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/hosts/places.h"
#include "vessel/egress/hosts/word.h"
#include <criterion/criterion.h>

TestSuite(hosts, .timeout = 20);

static const char *const addresses[] = {"10.0.0.1", "10.0.0.2"};
static const struct egress_portal good = {.name = "forge",
					  .url = "https://git.example.com",
					  .secret = "host_forge",
					  .path = "/team/repo",
					  .user = "git",
					  .addresses = addresses,
					  .n_addresses = 2};

/* How the parent reads it; NULL: not at all. */
static struct host_word *passed(const struct host_word *word)
{
	cleanup_buf struct buf b = {.max = HOST_WORD_MAX_BYTES};
	struct err err = ERR_INIT;

	cr_assert_eq(host_word_add(&b, word, &err), 0);
	return host_word_parse(b.data, b.len);
}

Test(hosts, only_a_key_of_a_host_is_a_word)
{
	static const struct {
		size_t at;
		const char *value;
	} rows[] = {
#define BAD(member, text) {offsetof(struct egress_portal, member), text}
		BAD(secret, "portal_main"),
		BAD(secret, "host_"),
		BAD(secret, "host_../portal_main"),
		BAD(secret, "host_x/y"),
		BAD(secret, "lychgate_db_vessel"),
		BAD(secret, "/etc/passwd"),
		BAD(secret, ""),
		BAD(name, ""),
		BAD(name, "a b"),
		BAD(name, "A"),
		BAD(url, ""),
		BAD(url, "https://a\r\nX: y"),
		BAD(path, "x"),
		BAD(path, "/ x"),
		BAD(path, "/\n"),
		BAD(user, "a:b"),
		BAD(user, "a\n"),
		BAD(field, "X-Key"), /* beside a user */
#undef BAD
	};
	struct host_word word = {.place = 30, .turn = 7, .same = HOST_NO_PLACE};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		word.host = good;
		memcpy((char *)&word.host + rows[i].at, &rows[i].value,
		       sizeof(rows[i].value));
		cr_expect_null(passed(&word), "%zu", i);
	}
	word.host = good;
	word.host.n_addresses = 1;
	word.host.addresses = (const char *const[]){"10.0.0.1\n"};
	cr_expect_null(passed(&word));
}

Test(hosts, a_word_is_read_as_it_was_said_and_no_part_of_it_is_one)
{
	struct host_word word = {
		.place = 30, .turn = 0x01020304, .same = 31, .host = good};
	struct host_word *is;
	cleanup_buf struct buf b = {.max = HOST_WORD_MAX_BYTES};
	struct err err = ERR_INIT;

	cr_assert_eq(host_word_add(&b, &word, &err), 0);
	for (size_t n = 0; n < b.len; n++)
		cr_expect_null(host_word_parse(b.data, n), "%zu", n);
	is = host_word_parse(b.data, b.len);
	cr_assert_not_null(is);
	cr_expect(is->place == 30 && is->turn == 0x01020304 && is->same == 31);
	cr_expect(!is->is_end && is->host.is_host && places_are_same(&is->host, &good));
	host_word_free(is);
	buf_addc(&b, '\0');
	cr_expect_null(host_word_parse(b.data, b.len));

	word = (struct host_word){.place = 30, .is_end = true};
	is = passed(&word);
	cr_assert_not_null(is);
	cr_expect(is->is_end && is->place == 30);
	host_word_free(is);
}

Test(hosts, a_key_goes_to_its_first_place_or_within_it)
{
	struct places *p = places_new();
	struct egress_portal h = good;
	struct err err = ERR_INIT;

	cr_assert_eq(places_take(p, &good, &err), 0);
#define REFUSED(member, value)                                                           \
	h = good;                                                                        \
	h.member = value;                                                                \
	cr_expect(places_take(p, &h, &err) < 0 && err.id == ERRID_CREDENTIAL_PLACE);     \
	err = (struct err)ERR_INIT
	REFUSED(url, "https://git.example.com:8443");
	REFUSED(url, "https://evil.example.com");
	REFUSED(path, "/team");
	REFUSED(path, "");
	REFUSED(path, "/team/repo2");
	REFUSED(user, "root");
	REFUSED(user, NULL);
	REFUSED(field, "X-Api-Key");
	REFUSED(addresses, ((const char *const[]){"10.0.0.1", "10.0.0.3"}));
#undef REFUSED
	h = good;
	h.name = "other";
	h.path = "/team/repo/raw";
	h.n_addresses = 1;
	cr_expect_eq(places_take(p, &h, &err), 0, "%s", err.msg);
	/* a narrower one does not bind what comes later */
	cr_expect_eq(places_take(p, &good, &err), 0);
	h.url = "https://other.example.com";
	h.secret = "host_other";
	cr_expect_eq(places_take(p, &h, &err), 0);
	places_free(p);
}

Test(hosts, of_secrets_there_are_so_many)
{
	struct places *p = places_new();
	struct egress_portal h = good;
	struct err err = ERR_INIT;
	char name[32];
	unsigned n = 0;

	h.secret = name;
	do
		(void)snprintf(name, sizeof(name), "host_%u", n++);
	while (n < 1000 && places_take(p, &h, &err) == 0);
	cr_expect_eq(n, 65u);
	cr_expect_eq(err.id, ERRID_CREDENTIAL_MANY);
	h.secret = "host_3";
	cr_expect_eq(places_take(p, &h, &err), 0);
	places_free(p);
}
