/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local/config_text.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

#define V "version: \"1\"\n"

static int set(const char *text, const char *key, const char *value, struct buf *out,
	       char **old, struct err *err)
{
	buf_init(out, CONF_FILE_MAX_BYTES);
	*old = NULL;
	return config_text_set(text, key, value, out, old, err);
}

static const struct {
	const char *before, *key, *value, *after, *old;
} rows[] = {
	/* a value in a block: quotes, blanks and comments stay */
	{V "tomb:\n  slots: 8\n", "tomb.slots", "4", V "tomb:\n  slots: 4\n", "8"},
	{V "tomb:\n  slots:   8   # mine\n", "tomb.slots", "64",
	 V "tomb:\n  slots:   64   # mine\n", "8"},
	{V "tomb:\n  \"slots\": '8' # '\n", "tomb.slots", "4",
	 V "tomb:\n  \"slots\": '4' # '\n", "8"},
	{V "retention: 30d", "retention", "keep", V "retention: keep", "30d"},
	{V "# retention: 1h\nretention : 30d\n", "retention", "7d",
	 V "# retention: 1h\nretention : 7d\n", "30d"},
	{V "pod:\n  tomb:\n    memory: 1GiB\ntomb:\n  slots: 8\n", "pod.tomb.memory",
	 "2GiB", V "pod:\n  tomb:\n    memory: 2GiB\ntomb:\n  slots: 8\n", "1GiB"},
	/* the same name elsewhere, and in lists */
	{V "ward:\n- host: a.example.org\n  action: allow\n- {host: b.example.org, "
	   "action: deny}\nstore: {max: 1GiB}\nqueue:\n  max_waiting: 5\n",
	 "store.max", "2GiB",
	 V "ward:\n- host: a.example.org\n  action: allow\n- {host: b.example.org, "
	   "action: deny}\nstore: {max: 2GiB}\nqueue:\n  max_waiting: 5\n",
	 "1GiB"},
	/* in a flow mapping */
	{V "limits:\n  memory: {default: 512MiB, max: 64GiB} # all\n",
	 "limits.memory.max", "1GiB",
	 V "limits:\n  memory: {default: 512MiB, max: 1GiB} # all\n", "64GiB"},
	{V "limits: {memory: { default: 1MiB , max: 1GiB }, cpus: {max: 2}}\n",
	 "limits.cpus.max", "3",
	 V "limits: {memory: { default: 1MiB , max: 1GiB }, cpus: {max: 3}}\n", "2"},
	{V "gate: {portal_threshold: \"0.40\", forbidden_threshold: \"0.70\"}\n",
	 "gate.portal_threshold", "0.30",
	 V "gate: {portal_threshold: \"0.30\", forbidden_threshold: \"0.70\"}\n", "0.40"},
	{V "tomb: {'grade': \"full\",\"slots\": 8}\n", "tomb.slots", "2",
	 V "tomb: {'grade': \"full\",\"slots\": 2}\n", "8"},
	/* a key that is missing: at the end of its section, behind what is said there */
	{V "tomb:\n  grade: full\n  # or floor\n\nqueue:\n  max_waiting: 5\n",
	 "tomb.slots", "4",
	 V "tomb:\n  grade: full\n  # or floor\n  slots: 4\n\nqueue:\n  max_waiting: "
	   "5\n",
	 NULL},
	{V "pod:\n  tomb:\n    memory: 1GiB\n  cgroups: none\n", "pod.tomb.processes",
	 "99", V "pod:\n  tomb:\n    memory: 1GiB\n    processes: 99\n  cgroups: none\n",
	 NULL},
	{V "limits:\n  memory: {default: 512MiB }\n", "limits.memory.max", "1GiB",
	 V "limits:\n  memory: {default: 512MiB, max: 1GiB }\n", NULL},
	{V "limits: {cpus: {max: 2}}\n", "limits.disk.max", "1GiB",
	 V "limits: {cpus: {max: 2}, disk: {max: 1GiB}}\n", NULL},
	{V "limits: {memory: {}}\n", "limits.memory.max", "1GiB",
	 V "limits: {memory: {max: 1GiB}}\n", NULL},
	{V "limits:\n  cpus: {max: 2}", "limits.disk.max", "1GiB",
	 V "limits:\n  cpus: {max: 2}\n  disk:\n    max: 1GiB\n", NULL},
	/* a section that is missing */
	{V, "retention", "7d", V "retention: 7d\n", NULL},
	{"version: '1'", "store.max", "1GiB", "version: '1'\n\nstore:\n  max: 1GiB\n",
	 NULL},
	{V "# the end\n", "pod.tomb.memory", "1GiB",
	 V "# the end\n\npod:\n  tomb:\n    memory: 1GiB\n", NULL},
	/* what has to be quoted is */
	{V "postgres:\n  bin: /usr/bin # x\n", "postgres.bin", "/opt/a b&c",
	 V "postgres:\n  bin: \"/opt/a b&c\" # x\n", "/usr/bin"},
	{V "postgres: {bin: \"/a\"}\n", "postgres.bin", "/it's",
	 V "postgres: {bin: \"/it's\"}\n", "/a"},
	{V "postgres: {bin: '/a'}\n", "postgres.bin", "/it's, {b}: #c",
	 V "postgres: {bin: \"/it's, {b}: #c\"}\n", "/a"},
};

Test(config_text, one_value_changes_and_nothing_else)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_buf struct buf out = {0};
		cleanup_free char *old = NULL;
		struct err err = ERR_INIT;

		cr_expect(set(rows[i].before, rows[i].key, rows[i].value, &out, &old,
			      &err) == 0,
			  "%zu: %s", i, err.msg);
		cr_expect_str_eq(buf_str(&out), rows[i].after, "%zu: %s", i,
				 buf_str(&out));
		cr_expect(str_eq(old, rows[i].old), "%zu: it was %s", i, old);
	}
}

Test(config_text, what_only_a_person_can_change_is_left_alone)
{
	static const char *const texts[] = {
		V "tomb: {slots: 8,\n  grade: full}\n", /* over two lines */
		V "tomb:\n  slots:\n    8\n",		/* on a line of its own */
		V "tomb:\n  slots:\n    # the number\n    8\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_buf struct buf out = {0};
		cleanup_free char *old = NULL;
		struct err err = ERR_INIT;

		cr_expect(set(texts[i], "tomb.slots", "4", &out, &old, &err) < 0,
			  "%zu: %s", i, buf_str(&out));
		cr_expect_eq(err.code, ERR_UNSUPPORTED, "%zu: %s", i, err.msg);
		cr_expect_eq(err.id, ERRID_START_LAYOUT);
		cr_expect(strstr(err_hint(&err), "lych config edit"), "%zu: %s", i,
			  err_hint(&err));
	}
}

static const struct {
	const char *before, *key, *after, *old;
} gone[] = {
	{V "retention: 30d # mine\nstore: {max: 1GiB}\n", "retention",
	 V "store: {max: 1GiB}\n", "30d"},
	{V "tomb:\n  grade: full\n  # of them\n  slots: 8\n", "tomb.slots",
	 V "tomb:\n  grade: full\n  # of them\n", "8"},
	{V "tomb:\n  slots: 8\n\nretention: 30d\n", "tomb.slots", V "\nretention: 30d\n",
	 "8"},
	{V "# first\npod:\n  # second\n  tomb:\n    memory: 1GiB", "pod.tomb.memory",
	 V "# first\n  # second\n", "1GiB"},
	{V "pod:\n  tomb:\n    memory: 1GiB\n  cgroups: none\n", "pod.tomb.memory",
	 V "pod:\n  cgroups: none\n", "1GiB"},
	{V "pod:\n  cgroups: none\n  tomb:\n    memory: 1GiB\n", "pod.tomb.memory",
	 V "pod:\n  cgroups: none\n", "1GiB"},
	/* in braces: with one comma, and the braces stay */
	{V "limits:\n  memory: {default: 1MiB, max: 1GiB} # x\n", "limits.memory.max",
	 V "limits:\n  memory: {default: 1MiB} # x\n", "1GiB"},
	{V "limits:\n  memory: { 'default': 1MiB , max: 1GiB }\n",
	 "limits.memory.default", V "limits:\n  memory: {max: 1GiB }\n", "1MiB"},
	{V "limits: {memory: {max: 1GiB}, cpus: {max: 2}}\n", "limits.memory.max",
	 V "limits: {memory: {}, cpus: {max: 2}}\n", "1GiB"},
	{V "postgres: {bin: \"/a, {b}: #c\"}\n", "postgres.bin", V "postgres: {}\n",
	 "/a, {b}: #c"},
	/* what is not there */
	{V "tomb:\n  grade: full\n", "tomb.slots", V "tomb:\n  grade: full\n", NULL},
	{V "# tomb\n", "tomb.slots", V "# tomb\n", NULL},
};

Test(config_text, one_key_is_taken_away_and_nothing_else)
{
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		cleanup_buf struct buf out = {.max = CONF_FILE_MAX_BYTES};
		cleanup_free char *old = NULL;
		struct err err = ERR_INIT;

		cr_expect(config_text_unset(gone[i].before, gone[i].key, &out, &old,
					    &err) == 0,
			  "%zu: %s", i, err.msg);
		cr_expect_str_eq(buf_str(&out), gone[i].after, "%zu: %s", i,
				 buf_str(&out));
		cr_expect(str_eq(old, gone[i].old), "%zu: it was %s", i, old);
	}
}

Test(config_text, what_only_a_person_can_take_away_is_left_alone)
{
	static const char *const texts[] = {
		V "tomb: {slots: 8,\n  grade: full}\n",
		V "tomb:\n  slots:\n    8\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_buf struct buf out = {.max = CONF_FILE_MAX_BYTES};
		cleanup_free char *old = NULL;
		struct err err = ERR_INIT;

		cr_expect(config_text_unset(texts[i], "tomb.slots", &out, &old, &err) < 0,
			  "%zu: %s", i, buf_str(&out));
		cr_expect_eq(err.id, ERRID_START_LAYOUT, "%zu: %s", i, err.msg);
	}
}

/* A value that would be more than a value is none. */
Test(config_text, a_value_stays_one)
{
	static const char *const values[] = {
		"",	      "8\n  queue: vessel",
		"8\tx",	      "\\",
		"a\"b'c",     "\xe2\x80\xa8",
		"\x7f",	      "8\r",
		"\"8\"\n# '", "\xff",
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		cleanup_buf struct buf out = {0};
		cleanup_free char *old = NULL;
		struct err err = ERR_INIT;

		cr_expect(set(V "tomb:\n  slots: 8\n", "tomb.slots", values[i], &out,
			      &old, &err) < 0,
			  "%zu: %s", i, buf_str(&out));
	}
}

/* Each value of what `lych config init` writes can be set, to what it is and to another. */
Test(config_text, every_key_of_the_template)
{
	cleanup_buf struct buf flat = {.max = (size_t)1 << 20};
	struct err err = ERR_INIT;
	size_t n = 0;

	cr_assert(conf_flatten(conf_template(), strlen(conf_template()), &flat, &err) ==
		  0);
	for (char *line = flat.data, *next; line < flat.data + flat.len; line = next) {
		cleanup_buf struct buf same = {0}, other = {0}, back = {0};
		cleanup_free char *old = NULL, *was = NULL, *again = NULL;
		char *value = strchr(line, '=');

		next = line + strcspn(line, "\n");
		*next++ = '\0';
		*value++ = '\0';
		cr_expect(conf_key_check(line, &err) == 0, "%s", err.msg);
		cr_expect(set(conf_template(), line, value, &same, &old, &err) == 0,
			  "%s: %s", line, err.msg);
		cr_expect_str_eq(buf_str(&same), conf_template(), "%s", line);
		cr_expect_str_eq(old, value);
		cr_expect(set(conf_template(), line, "x", &other, &was, &err) == 0,
			  "%s: %s", line, err.msg);
		cr_expect(set(buf_str(&other), line, value, &back, &again, &err) == 0,
			  "%s: %s", line, err.msg);
		cr_expect_str_eq(buf_str(&back), conf_template(), "%s", line);
		n++;
	}
	cr_expect(n > 40, "%zu", n);
}

Test(config_text, a_key_is_known_or_told)
{
	static const char *const bad[][2] = {
		{"tomb.slot", "did you mean 'tomb.slots'?"},
		{"tonb.slots", "did you mean 'tomb'?"},
		{"limits.memory.min", "no key 'limits.memory.min'"},
		{"limits.memory", "has keys of its own: 'limits.memory.default'"},
		{"ward", "is a list"},
		{"ward.0.host", "'ward' is a list"},
		{"pod.mounts", "'pod.mounts' is a list"},
		{"tomb.slots.max", "'tomb.slots' is one value"},
		{"", "no key ''"},
		{"tomb.", "no key 'tomb.'"},
		{".", "no key '.'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = ERR_INIT;

		cr_expect(conf_key_check(bad[i][0], &err) < 0, "%s", bad[i][0]);
		cr_expect_eq(err.id, ERRID_CORE_USAGE);
		cr_expect(strstr(err.msg, bad[i][1]), "%s: %s", bad[i][0], err.msg);
	}
}

/* What two texts differ in, lists too. */
Test(config_text, flat_values)
{
	static const char text[] =
		V "ward:\n  - host: a.example.org\n    action: allow\n    addresses:\n"
		  "      - 10.0.0.1\n      - 10.0.0.2\n"
		  "  - {portal: main, action: deny}\n"
		  "pod:\n  mounts:\n    - /b:rw\n";
	cleanup_buf struct buf flat = {.max = 4096};
	struct err err = ERR_INIT;

	cr_assert(conf_flatten(text, sizeof(text) - 1, &flat, &err) == 0, "%s", err.msg);
	cr_expect_str_eq(buf_str(&flat),
			 "version=1\npod.mounts.0=/b:rw\nward.0.host=a.example.org\n"
			 "ward.0.action=allow\nward.0.addresses.0=10.0.0.1\n"
			 "ward.0.addresses.1=10.0.0.2\nward.1.portal=main\n"
			 "ward.1.action=deny\n",
			 "%s", buf_str(&flat));
}

static char *differs(const char *a, const char *b)
{
	static const char *const but[] = {"ward", "keys", NULL};

	return conf_flat_differs(a, b, but);
}

Test(config_text, the_key_in_which_two_texts_differ_is_named)
{
	static const struct {
		const char *a, *b, *key;
	} rows[] = {
		{"version=1\n", "version=1\n", NULL},
		{"version=1\nward.0.host=a\n", "version=1\n", NULL},
		{"keys.0.x=1\nb=2\nward.0.host=a\n", "keys.0.x=2\nb=2\n", NULL},
		{"keys.0.x=1\nkeysmith=2\n", "keys.0.x=1\n", "keysmith"},
		{"ward.0.host=a\nz=1\n", "ward.0.host=b\nward.1.host=c\nz=1\n", NULL},
		{"a=1\nb=2\n", "a=1\nb=3\n", "b"},
		{"a=1\nb=2\nc=3\n", "a=1\nc=3\n", "b"},
		{"a=1\nc=3\n", "a=1\nb=2\nc=3\n", "b"},
		{"a=1\n", "a=1\nb=2\n", "b"},
		{"a=1\nb=2\n", "a=1\n", "b"},
		{"a=1\nward.0.x=1\n", "a=1\nward.0.x=2\nwards=1\n", "wards"},
		{"", "a=1\n", "a"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_free char *key = differs(rows[i].a, rows[i].b);

		cr_expect(str_eq(key, rows[i].key), "row %zu: %s", i, key ? key : "none");
	}
}
