/* SPDX-License-Identifier: Apache-2.0 */
/* What a codex.yaml is refused for is told in our own words, with the line, the key and what is expected. */
#include "common/conf/conf.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(conf_shape, .timeout = 30);

#define V "version: \"1\"\n"

static const struct {
	const char *text, *message;
} broken[] = {
	/* no keys at all */
	{"", "line 1: the file is empty: version: \"1\" is required"},
	{"\n# nothing\n\n", "line 1: the file is empty: version: \"1\" is required"},
	{"garbage",
	 "line 1: 'garbage' is no key: 'KEY: VALUE' is expected, with a blank behind "
	 "the ':'"},
	{"- a\n", "line 1: an entry of a list where a key is expected"},
	{"tomb: {slots: 8}\n", "line 1: version: \"1\" is required"},
	{"{tomb: {slots: 8}}\n", "line 1: version: \"1\" is required"},
	/* keys */
	{V "tomb:{slots: 8}\n",
	 "line 2: 'tomb:' is no key: 'KEY: VALUE' is expected, with a "
	 "blank behind the ':'"},
	{V "tombs: {slots: 8}\n", "line 2: no key 'tombs'; did you mean 'tomb'?"},
	{V "frobnicate: 1\n", "line 2: no key 'frobnicate'; codex.yaml(5) lists them"},
	{V "limits:\n  disk:\n    dfault: 1MiB\n",
	 "line 4: limits.disk: no key 'dfault'; did you mean 'default'?"},
	{V "limits: {memory: {default: 1MiB, min: 1}}\n",
	 "line 2: limits.memory: no key 'min'; codex.yaml(5) lists them"},
	{V "ward:\n  - portal: a\n    actoin: permit\n",
	 "line 4: ward, entry 1: no key 'actoin'; did you mean 'action'?"},
	{V "portals:\n- name: a\n- name: b\n  models:\n    - {name: c, inptu: 1}\n",
	 "line 6: portals, entry 2: models, entry 1: no key 'inptu'; did you mean "
	 "'input'?"},
	{V "tomb: {slots: 8}\n# again\ntomb: {slots: 9}\n",
	 "line 4: the key 'tomb' is there twice: leave one out"},
	{V "tomb: {slots: 8, \"slots\": 9}\n",
	 "line 2: tomb: the key 'slots' is there twice: leave one out"},
	{V "tomb:\n  slots 8\n",
	 "line 3: tomb: 'slots 8' is no key: 'KEY: VALUE' is expected, "
	 "with a blank behind the ':'"},
	/* kinds of values */
	{V "tomb: 5\n",
	 "line 2: tomb: keys of its own are expected below it, each two blanks "
	 "deeper, not one value"},
	{V "tomb:\nqueue: {max_waiting: 7}\n",
	 "line 2: tomb: keys of its own are expected below it, each two blanks deeper, "
	 "not nothing"},
	{V "tomb:\n  - slots: 8\n",
	 "line 2: tomb: keys of its own are expected below it, each "
	 "two blanks deeper, not a list"},
	{V "retention: {jobs: 7d}\n",
	 "line 2: retention: one value is expected behind the ':', not '{'"},
	{V "retention:\n  jobs: 7d\n",
	 "line 2: retention: one value is expected behind the ':', not lines below it"},
	{V "retention:\n", "line 2: retention: a value is missing"},
	{V "tomb: {grade: }\n", "line 2: tomb.grade: a value is missing"},
	{V "pod: {label: \"\"}\n", "line 2: pod.label: a value is missing"},
	{V "ward: none\n",
	 "line 2: ward: a list is expected below it, each entry with '- ' "
	 "before it, not one value"},
	{V "ward:\n  portal: a\n",
	 "line 2: ward: a list is expected below it, each entry with "
	 "'- ' before it, not keys"},
	{V "ward: - portal: a\n",
	 "line 2: ward: '- ' begins an entry: on a line of its own below the key"},
	{V "pod:\n  mounts:\n    - {path: /a}\n",
	 "line 4: pod.mounts, entry 1: one value is expected behind the ':', not '{'"},
	{V "ward:\n  - - a\n",
	 "line 3: ward, entry 1: keys of its own are expected below it, "
	 "each two blanks deeper, not a list in a list"},
	/* columns */
	{V "  tomb: {slots: 8}\n",
	 "line 2: version: it has a value, and this line is deeper than its key"},
	{V "tomb:\n  slots: 8\n   grade: full\n",
	 "line 4: tomb.slots: it has a value, and this line is deeper than its key"},
	{V "tomb:\n   slots: 8\n  grade: full\n",
	 "line 4: tomb: as deep as no key above it: 2 blanks, and its keys have 3"},
	{V "pod:\n  mounts:\n    - /a\n    /b\n",
	 "line 5: pod.mounts: an entry begins with '- ', as deep as the one above it"},
	{V "tomb:\n  slots: 8\n  - grade\n",
	 "line 4: tomb: '- ' among keys: an entry of a list"},
	/* braces, quotes, colons */
	{V "tomb: {slots: 8\n", "line 2: tomb: the '{' is not closed by a '}'"},
	{V "tomb: {slots: 8\nqueue: {max_waiting: 7}\n",
	 "line 3: tomb: a ',' or '}' is missing: the '{' is on line 2"},
	{V "tomb: {slots: 8}}\n",
	 "line 2: tomb: '}' behind the value: quote all of it, or leave it out"},
	{V "postgres: {bin: \"/a\" b}\n",
	 "line 2: postgres: a ',' or '}' is missing: the '{' is on line 2"},
	{V "retention: \"7d\" # ok\nstore:\n  max: '5GiB' more\n",
	 "line 4: store.max: 'more' behind the value: quote all of it, or leave it out"},
	{V "retention: a: b\n",
	 "line 2: retention: a second ':' behind the value: quote the value"},
	/* what is beyond the subset */
	{V "tomb:\n\tslots: 8\n", "line 3: tab: use blanks"},
	{V "tomb: {slots: 8}\r\n",
	 "line 2: a carriage return at its end: save the file with the "
	 "line ends of Unix"},
	{V "retention: 7d # \x01\n", "line 2: control byte: leave it out"},
	{V "\nretention: \"7d\xc2\x9b\"\n", "line 3: control byte: leave it out"},
	{V "\n{\n",
	 "line 3: '{' is no key: 'KEY: VALUE' is expected, with a blank behind "
	 "the ':'"},
	{V "# \xff\n", "line 2: not UTF-8: save the file as UTF-8"},
	{"\xff\xfev", "line 1: not UTF-8: save the file as UTF-8"},
	{"---\n" V, "line 1: a document marker: one document only"},
	{V "tomb: &a {slots: 8}\n",
	 "line 2: YAML beyond keys and plain values: quote it or leave it out"},
	{V "tomb: *a\n",
	 "line 2: YAML beyond keys and plain values: quote it or leave it out"},
	{V "tomb: !!map {slots: 8}\n",
	 "line 2: YAML beyond keys and plain values: quote it or leave it out"},
	{V "tomb: [slots]\n",
	 "line 2: [a, b]: give each on a line of its own below the key, as "
	 "'- a' and '- b'"},
};

Test(conf_shape, each_refusal_names_line_key_and_what_is_expected)
{
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct err err = ERR_INIT;
		struct conf c;

		cr_expect(conf_parse(broken[i].text, strlen(broken[i].text), &c, &err) <
				  0,
			  "%s", broken[i].text);
		cr_expect_eq(err.id, ERRID_START_CONFIG);
		cr_expect_str_eq(err.msg, broken[i].message, "%s: %s", broken[i].text,
				 err.msg);
	}
}

static void expect_refused(const struct buf *b, const char *part)
{
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert(buf_ok(b));
	cr_expect(conf_parse(b->data, b->len, &c, &err) < 0);
	cr_expect_eq(err.id, ERRID_START_CONFIG);
	cr_expect(strstr(err.msg, part), "%s", err.msg);
}

Test(conf_shape, what_is_large_or_has_nul_is_told_as_well)
{
	static const char nul[] = V "retention: 7d\0\n";
	cleanup_buf struct buf b = {.max = 1 << 20};

	buf_add(&b, nul, sizeof(nul) - 1);
	expect_refused(&b, "line 2: NUL byte: save the file as UTF-8");
	buf_reset(&b);
	buf_adds(&b, V "tomb: ");
	for (int i = 0; i < 60000; i++)
		buf_addc(&b, '{');
	expect_refused(&b, "line 2: tomb: ");
	buf_reset(&b);
	buf_adds(&b, V "retention: ");
	for (int i = 0; i < 5000; i++)
		buf_addc(&b, 'd');
	expect_refused(&b, "line 2: retention: a value of more than 4095 bytes");
	buf_reset(&b);
	buf_adds(&b, V "pod:\n  mounts:\n");
	for (int i = 0; i < CONF_MOUNTS_MAX + 1; i++)
		buf_addf(&b, "    - /%d\n", i);
	expect_refused(&b, "line 36: pod.mounts: more than 32 entries");
	buf_reset(&b);
	for (int i = 0; i < 5000; i++)
		buf_addf(&b, "%*sa:\n", i % 80, "");
	expect_refused(&b, "line 1: no key 'a'");
}

/* The template with a byte put in, taken away or changed, each byte in turn: what is refused has a line,
 * and no word of the parser's own. */
static void try(const char *text, size_t len)
{
	static const char *const words[] = {"Load", "libyaml", "did not find", "context",
					    "not the YAML of"};
	struct err err = ERR_INIT;
	struct conf c;

	if (conf_parse(text, len, &c, &err) == 0) {
		conf_done(&c);
		return;
	}
	cr_expect_eq(err.id, ERRID_START_CONFIG);
	cr_expect(strncmp(err.msg, "line ", 5) == 0, "%s", err.msg);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		cr_expect(!strstr(err.msg, words[i]), "%s in:\n%.*s", err.msg, (int)len,
			  text);
}

Test(conf_shape, a_byte_too_many_or_too_few_is_explained)
{
	static const char text[] = V "tomb:\n  grade: full\n  slots: 8 # of them\n"
				     "limits:\n  memory: {default: 1MiB, max: \"2MiB\"}\n"
				     "ward:\n  - portal: a\n    action: allow\n"
				     "pod:\n  mounts:\n  - /a\n  - '/b'\n";
	static const char other[] = " \n-:{},#\"'a";
	char copy[sizeof(text) + 1];
	size_t len = sizeof(text) - 1;

	for (size_t at = 0; at < len; at++) {
		memcpy(copy, text, at);
		memcpy(copy + at, text + at + 1, len - at - 1);
		try(copy, len - 1);
		for (size_t k = 0; k < sizeof(other) - 1; k++) {
			memcpy(copy, text, len);
			copy[at] = other[k];
			try(copy, len);
			memcpy(copy + at + 1, text + at, len - at);
			try(copy, len + 1);
		}
	}
}
