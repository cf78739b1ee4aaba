/* SPDX-License-Identifier: Apache-2.0 */
/* A question whose last part is a request of git's: what may never leave is found in its words and its ids. */
#include "common/crypto/sha1.h"
#include "common/str.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>
#include <stdint.h>
#include <zlib.h>

TestSuite(gate_git, .init = begin, .fini = end, .timeout = 60);

static const struct gate_canary canary = {.data = "canary-5c1fd03a77", .len = 17};

static void look_at(const char *body, enum gate_part_kind kind, size_t len)
{
	const struct gate_part part[] = {
		{.data = "https://git.example/a.git/x", .len = 27, .kind = GATE_PART_URL},
		{.data = body, .len = len, .kind = kind}};
	const struct gate_input in = {
		.parts = part, .n_parts = 2, .canaries = &canary, .n_canaries = 1};

	gate_scan(g, &in, &r);
}

static bool has(enum gate_family f)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].family == f)
			return true;
	return false;
}

#define HAVE_A "0032have 63616e6172792d35633166643033613737000000\n"
#define HAVE_B "0032have 63616e6172792d3563316664000000000000000a\n"
#define FETCH "0011command=fetch0001"

Test(gate_git, what_may_never_leave_is_found_in_words_and_ids)
{
	static const struct {
		const char *body;
		enum gate_family family;
	} rows[] = {
		{FETCH "001fwant-ref canary-5c1fd03a77\n0000", GATE_CANARY},
		{FETCH HAVE_A "0000", GATE_CANARY},
		{FETCH "0021deepen-since 772041995331870\n0000", GATE_EXACT},
		{FETCH "0029want-ref refs/heads/Project_BlueBird\n0000", GATE_EXACT},
		{FETCH "0036want-ref 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\n0000",
		 GATE_TOKEN},
	};

	add_term("Project_BlueBird");
	add_term("772041995331870");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		look_at(rows[i].body, GATE_PART_GIT_FETCH, strlen(rows[i].body));
		cr_expect_geq(r.score, 0.7, "%zu: %f", i, r.score);
		cr_expect_eq(r.verdict, GATE_REFUSE);
		cr_expect(has(rows[i].family), "%zu", i);
		cr_expect(r.n && r.finding[0].is_split && r.finding[0].part == 1);
		cr_expect_str_eq(r.note, "in the request itself");
	}
}

Test(gate_git, ids_and_what_is_weak_pass)
{
	char body[8192] = FETCH;
	size_t n = strlen(body);

	for (unsigned i = 0; i < 100; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
				      "0032have %08x%08x%08x%08x%08x\n", i * 2654435761u,
				      i * 40503u + 77u, ~i * 2246822519u, i ^ 0xdeadbeefu,
				      i * 3266489917u);
	n += (size_t)snprintf(body + n, sizeof(body) - n, "%s",
			      "0028want-ref refs/heads/joe@example.org\n0000");
	look_at(body, GATE_PART_GIT_FETCH, n);
	cr_expect_eq(r.verdict, GATE_PASS, "%f: %s", r.score, r.note);
	cr_expect_eq(r.n, 0);
}

Test(gate_git, what_is_no_request_is_unreadable_and_says_why)
{
	look_at("hello", GATE_PART_GIT_FETCH, 5);
	cr_expect_eq(r.score, 1.0);
	cr_expect(has(GATE_UNREADABLE));
	cr_expect(strstr(r.note, "its length is no number"), "%s", r.note);
	look_at("hello", GATE_PART_TEXT, 5);
	cr_expect_eq(r.score, 0.0);
	cr_expect_str_eq(r.note, "");
}

/* ---- a push ---- */

#define ID "d37e568a7e406c8bb28067d1bee51988c311c1ee"
#define COMMAND                                                                          \
	"0062"                                                                           \
	"0000000000000000000000000000000000000000 " ID " refs/heads/a"                   \
	"0000"

/* A pack of these, each of one type of git's (1: a commit, 2: a tree, 3: a blob) and below 2048 bytes. */
struct thing {
	unsigned type;
	const char *data;
	size_t len;
};

static size_t push_of(const struct thing *t, unsigned n, char *out, size_t size)
{
	size_t at = strlen(COMMAND), begin = at;

	memcpy(out, COMMAND "PACK\0\0\0\2\0\0\0", at + 11);
	out[at + 11] = (char)n;
	at += 12;
	for (unsigned i = 0; i < n; i++) {
		uLongf room = size - at;

		cr_assert_lt(t[i].len, 2048);
		out[at++] = (char)(0x80 | t[i].type << 4 | (t[i].len & 15));
		out[at++] = (char)(t[i].len >> 4);
		cr_assert_eq(compress((Bytef *)out + at, &room, (const Bytef *)t[i].data,
				      t[i].len),
			     Z_OK);
		at += room;
	}
	sha1_of("", 0, out + begin, at - begin, (uint8_t *)out + at);
	return at + SHA1_SIZE;
}

#define TREE_OF(name)                                                                    \
	"100644 " name "\0"                                                              \
	"iiiiiiiiiiiiiiiiiiii"
#define COMMIT_OF(message)                                                               \
	"tree " ID "\nparent " ID                                                        \
	"\nauthor Joe Doe <joe@example.org> 1700000000 +0000\n"                          \
	"committer Joe Doe <joe@example.org> 1700000000 +0000\n\n" message "\n"
#define THING(type, text) {type, text, sizeof(text) - 1}
#define KEY "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"

Test(gate_git, a_push_is_refused_for_each_kind_of_object_that_may_not_leave)
{
	static const struct {
		struct thing thing;
		enum gate_family family;
		const char *in;
	} rows[] = {
		{THING(3, "key = " KEY "\n"), GATE_TOKEN, "in blob "},
		{THING(3, "canary-5c1fd03a77"), GATE_CANARY, "in blob "},
		{THING(2, TREE_OF("Project_BlueBird.txt")), GATE_EXACT, "in tree "},
		{THING(2, "160000 a\0"
			  "canary-5c1fd03a77xyz"),
		 GATE_CANARY, "in tree "},
		{THING(1, COMMIT_OF("see " KEY)), GATE_TOKEN, "in commit "},
		{THING(3, "-----BEGIN OPENSSH PRIVATE KEY-----\n"
			  "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAA"
			  "tzc2gtZW\n"
			  "QyNTUxOQAAACDJ8Vb5yqKk0g1Zp2Lr0nHc7Yx1m0b5w2n3k4j5h6g7fAAAAJgk"
			  "1mSJJNZk\n"
			  "-----END OPENSSH PRIVATE KEY-----\n"),
		 GATE_PRIVATE_KEY, "in blob "},
	};
	static char body[16384];

	add_term("Project_BlueBird");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct thing all[] = {THING(3, "harmless\n"), rows[i].thing,
					    THING(3, "more\n")};
		uint8_t id[SHA1_SIZE];
		char hex[2 * SHA1_SIZE + 1], head[32];
		static const char *const names[] = {"", "commit", "tree", "blob"};
		int n = snprintf(head, sizeof(head), "%s %zu", names[all[1].type],
				 all[1].len);

		look_at(body, GATE_PART_GIT_PUSH, push_of(all, 3, body, sizeof(body)));
		cr_expect_eq(r.verdict, GATE_REFUSE, "%zu: %s", i, r.note);
		cr_expect(has(rows[i].family), "%zu", i);
		sha1_of(head, (size_t)n + 1, all[1].data, all[1].len, id);
		hex_encode(id, SHA1_SIZE, hex);
		cr_expect(str_starts(r.note, rows[i].in) && strstr(r.note, hex), "%s",
			  r.note);
		cr_expect(!strstr(r.note, "ghp_"));
	}
}

Test(gate_git, a_push_of_ordinary_things_passes_and_one_that_cannot_be_read_does_not)
{
	static const struct thing all[] = {
		THING(1, COMMIT_OF("Mail joe@example.org, ann@example.org, 10.1.2.3")),
		THING(2, TREE_OF("README.md")), THING(3, "int main(void)\n{\n}\n")};
	static char body[16384];
	size_t n = push_of(all, 3, body, sizeof(body));

	look_at(body, GATE_PART_GIT_PUSH, n);
	cr_expect_eq(r.verdict, GATE_PASS, "%f %s", r.score, r.note);
	cr_expect_eq(r.n, 0);
	body[n - 1] ^= 1;
	look_at(body, GATE_PART_GIT_PUSH, n);
	cr_expect(r.verdict == GATE_REFUSE && has(GATE_UNREADABLE));
	cr_expect_str_eq(r.note, "the pack: its digest is wrong");
	/* as git asks before a large push */
	look_at("0000", GATE_PART_GIT_PUSH, 4);
	cr_expect_eq(r.verdict, GATE_PASS);
}

static void count(void *arg)
{
	(*(unsigned *)arg)++;
}

Test(gate_git, a_push_tells_that_it_goes_on_and_how_much_it_was)
{
	static const struct thing all[] = {
		THING(2, TREE_OF("README.md")), THING(3, "int main(void)\n{\n}\n"),
		THING(3, "key = " KEY "\n"), THING(3, "never seen\n")};
	static char body[16384];
	unsigned n = 0;

	gate_on_progress(g, count, &n);
	look_at(body, GATE_PART_GIT_PUSH, push_of(all, 2, body, sizeof(body)));
	cr_expect_eq(r.verdict, GATE_PASS, "%s", r.note);
	cr_expect_eq(r.unpacked, all[0].len + all[1].len);
	cr_expect_geq(n, 2u);
	look_at(body, GATE_PART_GIT_PUSH, push_of(all, 4, body, sizeof(body)));
	cr_expect_eq(r.verdict, GATE_REFUSE);
	cr_expect_eq(r.unpacked, all[0].len + all[1].len + all[2].len);
	look_at("hello", GATE_PART_TEXT, 5);
	cr_expect_eq(r.unpacked, 0u);
	/* what could not be read took nobody knows how much */
	look_at("hello", GATE_PART_GIT_PUSH, 5);
	cr_expect_eq(r.unpacked, GATE_UNPACKED_MAX_BYTES);
}

/* Ten digits are a number of some person's as well; of a commit they are its time. */
Test(gate_git, the_time_of_a_commit_refuses_no_push)
{
	static char body[16384];

	for (unsigned t = 0; t < 1500; t++) {
		char text[512];
		const struct thing one = {1, text,
					  (size_t)snprintf(text, sizeof(text),
							   "tree " ID "\nauthor Joe Doe "
							   "<joe@example.org> %u +0130\n"
							   "committer Joe Doe "
							   "<joe@example.org> %u -0500\n"
							   "\nMore\n",
							   1700000000 + t * 77777,
							   1700000000 + t * 77777 + 3)};

		look_at(body, GATE_PART_GIT_PUSH, push_of(&one, 1, body, sizeof(body)));
		cr_assert_eq(r.verdict, GATE_PASS, "%s: %s", text, r.note);
	}
}
