/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pod/unit_template.h"

#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(unit_template, .timeout = 20);

/* ---- values ----------------------------------------------------------------- */

Test(unit_template, refuses_paths_that_mean_something_else)
{
	static const struct {
		const char *path, *part;
	} bad[] = {
		{"", "absolute"},
		{"relative", "absolute"},
		{"~/x", "absolute"},
		{"/a%h", "'%'"},
		{"/a%%b", "'%'"},
		{"/a\\x2f", "backslash"},
		{"/a\"b", "quote"},
		{"/a'b", "quote"},
		{"/a`b", "quote"},
		{"/a$HOME", "quote or '$'"},
		{"/a b", "blank"},
		{"/a:b", "':'"},
		{"/a,z", "','"},
		{"/a;b", "';'"},
		{"/a\tb", "unprintable"},
		{"/a\nSecret=x", "unprintable"},
		{"/a\r", "unprintable"},
		{"/a\x7f", "unprintable"},
		{"/a\x1b[1m", "unprintable"},
		{"/a\xff", "unprintable"},
		{"/a\xe2\x80\xae"
		 "b",
		 "unprintable"}, /* right-to-left override */
		{"/a\xe2\x80\x8b"
		 "b",
		 "unprintable"}, /* zero-width space */
		{"/a\xc2\x85", "unprintable"},
		{"/a/../b", "'..'"},
		{"/..", "'..'"},
		{"/a/.", "'.'"},
		{"/./a", "'.'"},
		{"/a//b", "empty"},
		{"/a/", "empty"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = ERR_INIT;

		cr_expect(unit_path_check(bad[i].path, &err) < 0, "%s", bad[i].path);
		cr_expect_eq(err.id, ERRID_BIND_VALUE);
		cr_expect(strstr(err.msg, bad[i].part), "%s: %s", bad[i].path, err.msg);
	}
}

Test(unit_template, takes_plain_paths)
{
	static const char *const good[] = {"/", "/a", "/a-b_c.d/..e/f..",
					   "/home/jos\xc3\xa9/@x+=#~!"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = ERR_INIT;

		cr_expect(unit_path_check(good[i], &err) == 0, "%s: %s", good[i],
			  err.msg);
	}
}

Test(unit_template, refuses_a_path_that_is_too_long)
{
	char path[5000];
	struct err err = ERR_INIT;

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	cr_expect(unit_path_check(path, &err) < 0);
}

Test(unit_template, refuses_values_of_the_wrong_kind)
{
	static const struct {
		enum unit_value_kind kind;
		const char *text;
	} bad[] = {
		{UNIT_WORD, ""},
		{UNIT_WORD, "-x"},
		{UNIT_WORD, "a b"},
		{UNIT_WORD, "a/b"},
		{UNIT_WORD, "a,type=env"},
		{UNIT_WORD, "a\n"},
		{UNIT_IMAGE, "--privileged"},
		{UNIT_IMAGE, "a b"},
		{UNIT_IMAGE, "a%b"},
		{UNIT_IMAGE, "a\nNetwork=host"},
		{UNIT_IMAGE, "other.build"},
		{UNIT_IMAGE, "localhost/lychgate-tomb:1.image"},
		{UNIT_IMAGE, "oci-archive:/etc/passwd"},
		{UNIT_IMAGE, "dir:/x"},
		{UNIT_BIND, "/a:/b"},
		{UNIT_BIND, "/a:/b:ro:z"},
		{UNIT_BIND, "/a:b:ro"},
		{UNIT_BIND, "a:/b:ro"},
		{UNIT_BIND, "/a:/b:"},
		{UNIT_BIND, "/a:/b:ro,suid"},
		{UNIT_BIND, "/a%:/b:ro"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct unit_values v = {0};
		struct err err = ERR_INIT;

		cr_expect(unit_values_text(&v, "X", bad[i].kind, bad[i].text, &err) < 0,
			  "%s", bad[i].text);
		cr_expect_eq(err.id, ERRID_BIND_VALUE);
		cr_expect(str_starts(err.msg, "X: "), "%s", err.msg);
		unit_values_done(&v);
	}
}

/* ---- templates -------------------------------------------------------------- */

static void values(struct unit_values *v)
{
	struct err err = ERR_INIT;

	cr_assert(unit_values_text(v, "IMAGE", UNIT_IMAGE, "localhost/a@sha256:00",
				   &err) == 0);
	cr_assert(unit_values_text(v, "UNSET", UNIT_WORD, NULL, &err) == 0);
	unit_values_number(v, "N", 4096);
	unit_values_flag(v, "YES", true);
	unit_values_flag(v, "NO", false);
	unit_values_list(v, "NONE");
	unit_values_list(v, "MOUNT");
	cr_assert(unit_values_add(v, "MOUNT", UNIT_BIND, "/a:/a:ro,z", &err) == 0);
	cr_assert(unit_values_add(v, "MOUNT", UNIT_BIND, "/b:/b:rw,z", &err) == 0);
}

Test(unit_template, refuses_templates)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{"", "t: empty"},
		{"a", "without a last newline"},
		{"a\n@NOBODY@\n", "t:2: @NOBODY@: unknown"},
		{"@UNSET@\n", "is not set"},
		{"@YES@\n", "true or false"},
		{"@MOUNT@\n", "a list"},
		{"@ITEM@\n", "only in a line of a list"},
		{"@?YES@ @ITEM@\n", "only in a line of a list"},
		{"@?NOBODY@ x\n", "unknown"},
		{"@*NOBODY@ x\n", "unknown"},
		{"@?MOUNT@ x\n", "use '@*'"},
		{"@*N@ x\n", "no list"},
		{"@*YES@ x\n", "no list"},
		{"@?YES@x\n", "not '@?NAME@ line'"},
		{"@?YES@\n", "not '@?NAME@ line'"},
		{"@? x\n", "not '@?NAME@ line'"},
		{"@*MOUNT Volume=@ITEM@\n", "not '@*NAME@ line'"},
		{"a\tb\n", "control"},
		{"a\r\n", "control"},
		{"a\xff\n", "UTF-8"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct unit_values v = {0};
		struct buf out;
		struct err err = ERR_INIT;

		values(&v);
		buf_init(&out, 65536);
		cr_expect(unit_template_render("t", bad[i].text, strlen(bad[i].text), &v,
					       &out, &err) < 0,
			  "%s", bad[i].text);
		cr_expect_eq(err.id, ERRID_BIND_TEMPLATE);
		cr_expect(strstr(err.msg, bad[i].part), "%s: %s", bad[i].text, err.msg);
		buf_done(&out);
		unit_values_done(&v);
	}
}

Test(unit_template, refuses_an_output_above_its_ceiling)
{
	struct unit_values v = {0};
	struct buf out;
	struct err err = ERR_INIT;

	values(&v);
	buf_init(&out, 8);
	cr_expect(unit_template_render("t", "@IMAGE@\n", 8, &v, &out, &err) < 0);
	cr_expect_eq(err.id, ERRID_BIND_TEMPLATE);
	buf_done(&out);
	unit_values_done(&v);
}

Test(unit_template, renders)
{
	static const char text[] = "# user@%U.service @ @a@ @@ @N\n"
				   "Image=@IMAGE@ @N@@N@\n"
				   "@?YES@ yes @N@\n"
				   "@?NO@ no @NOBODY@\n"
				   "@?UNSET@ no\n"
				   "@?N@ set\n"
				   "@*NONE@ Volume=@ITEM@\n"
				   "@*MOUNT@ Volume=@ITEM@ @N@\n"
				   "\n";
	static const char want[] = "# user@%U.service @ @a@ @@ @N\n"
				   "Image=localhost/a@sha256:00 40964096\n"
				   "yes 4096\n"
				   "set\n"
				   "Volume=/a:/a:ro,z 4096\n"
				   "Volume=/b:/b:rw,z 4096\n"
				   "\n";
	struct unit_values v = {0};
	struct buf out;
	struct err err = ERR_INIT;

	values(&v);
	buf_init(&out, 65536);
	cr_assert(unit_template_render("t", text, sizeof(text) - 1, &v, &out, &err) == 0,
		  "%s", err.msg);
	cr_expect_str_eq(buf_str(&out), want);
	buf_done(&out);
	unit_values_done(&v);
}
