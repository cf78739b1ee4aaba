/* SPDX-License-Identifier: Apache-2.0 */
/* A rule that forbids a path holds for every spelling that some server takes for it. */
#include "vessel/broker/ward_path.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/conf/priv.h"
#include "common/mem.h"
#include "tests/unit/common/conf/ward_rule.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(ward_path, .timeout = 60);

struct spelling {
	const char *path, *prefix;
};

static void expect_within(const struct spelling *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *prefix = t[i].prefix ? t[i].prefix : "/admin";
		cleanup_free char *below = xasprintf("%s/rest", t[i].path);
		cleanup_free char *after = xasprintf("/b/%%252e%%252e%s", t[i].path);

		cr_expect(ward_path_is_within(t[i].path, prefix), "%s", t[i].path);
		cr_expect(ward_path_is_within(below, prefix), "%s", below);
		cr_expect(ward_path_is_within(after, prefix), "%s", after);
	}
}

/* What codex.yaml refuses in a rule that allows is what no request would be allowed by (of other
 * characters a rule's path has none). */
Test(ward_path, a_rule_that_could_never_match_is_refused_when_it_is_read)
{
	static const char chars[] = {'.', '+', ';', ':', '$', '/', 'a', '~'};
	char path[8] = "/";
	unsigned climbing = 0;

	for (unsigned n = 0; n < 8 * 8 * 8 * 8 * 8; n++) {
		for (unsigned i = 0, rest = n; i < 5; i++, rest /= 8)
			path[1 + i] = chars[rest % 8];
		climbing += ward_path_may_climb(path);
		cr_assert_eq(conf_path_may_climb(path), ward_path_may_climb(path), "%s",
			     path);
	}
	cr_expect_gt(climbing, 100u);
	expect_refused("{host: a.example, path: \"/a/..+/b\", action: allow}",
		       ": path: some servers", "");
	expect_refused(
		"{host: a.example, path: \"/a/.../b\", action: limit, limit: 1/min}",
		": path: some servers", "");
}

Test(ward_path, two_ways_in_one)
{
	static const struct spelling t[] = {
		{.path = "/%c0%a5%36%31dmin"},
		{.path = "/%ef%bc%8561dmin"},
		{.path = "/%25c0%25a5%2536%2531dmin"},
		{.path = "/%25c0%a561dmin"},
		{.path = "/%ef%bc%85c1%a1dmin"},
		{.path = "/%c0%a5ef%c0%a5bd%c0%a581dmin"},
		{.path = "/x/%c0%a52e%c0%a52e/admin"},
		{.path = "/%25u0061dmin"},
		{.path = "/%25u0025u0061dmin"},
		{.path = "/%25uff41dmin"},
		{.path = "/%25ud835%25udc1admin"},
		{.path = "/x%25u002f..%25u2215admin"},
		{.path = "/%f0%8f%bd%81dmin"}, /* a full-width letter, overlong */
	};

	expect_within(t, ARRAY_SIZE(t));
}

Test(ward_path, what_is_left_off_at_the_end_of_a_name)
{
	static const struct spelling t[] = {
		{.path = "/x/..%20/admin"},
		{.path = "/x/..%2520/admin"},
		{.path = "/x/..%c2%a0/admin"},
		{.path = "/x/..%e3%80%80/admin"},
		{.path = "/x/..%20;/admin"},
		{.path = "/x/%20../admin"},
		{.path = "/x/..+/admin"},
		{.path = "/x/..%2500/admin"},
		{.path = "/x/..::$INDEX_ALLOCATION/admin"},
		{.path = "/admin+"},
		{.path = "/admin%2b"},
		{.path = "/+admin"},
		{.path = "/admin%80"},
		{.path = "/admin%ff"},
		{.path = "/ad%80min"},
		{.path = "/%fe/admin"},
		{.path = "/admin%c3"},
		{.path = "/admin::$DATA"},
		{.path = "/admin::$data"},
		{.path = "/admin:$i30:$INDEX_ALLOCATION"},
		{.path = "/admin%3a%3a%24DATA"},
		{.path = "/admin:"},
		{.path = "/%00admin"},
		{.path = "/c++%20", .prefix = "/c++"},
		{.path = "/c%20%20", .prefix = "/c++"},
		{.path = "/c++/x", .prefix = "/c++"},
		{.path = "/a;b;c", .prefix = "/a;b"},
		{.path = "/.git%20", .prefix = "/.git"},
		{.path = "/admin", .prefix = "/admin."},
	};

	expect_within(t, ARRAY_SIZE(t));
}

/* Characters that show nothing, within a name, at its end and between two dots. */
Test(ward_path, what_shows_nothing)
{
	static const struct spelling t[] = {
		{.path = "/ad%F0%9B%B2%A0min"},
		{.path = "/admin%F0%9B%B2%A0"},
		{.path = "/%F0%9B%B2%A3admin"},
		{.path = "/x/.%F0%9B%B2%A0./admin"},
		{.path = "/x/..%F0%9B%B2%A3/admin"},
		{.path = "/ad%25F0%259B%25B2%25A1min"},
		{.path = "/ad%EF%BF%B0min"},
		{.path = "/ad%EF%BF%BBmin"},
		{.path = "/ad%C2%ADmin"},
		{.path = "/ad%E3%85%A4min"},
		{.path = "/ad%F3%A0%BF%BFmin"},
	};

	expect_within(t, ARRAY_SIZE(t));
}

Test(ward_path, utf8_of_lax_decoders)
{
	static const struct spelling t[] = {
		{.path = "/%f8%80%80%81%a1dmin"},
		{.path = "/%fc%80%80%80%81%a1dmin"},
		{.path = "/x/%f8%80%80%80%ae%f8%80%80%80%ae/admin"},
		{.path = "/x/%c0%2e%c0%2e/admin"},
		{.path = "/%c1%21dmin"},
		{.path = "/ad%2509min"},
		{.path = "/ad%250d%250amin"},
		{.path = "/%c1%61dmin"},
		{.path = "/%e0%01%21dmin"},
		{.path = "/x%c0%2f..%c0%2fadmin"},
		{.path = "/x%c1/%252e%252e/admin"},
		{.path = "/%e1dmin"},	      /* Latin-1 */
		{.path = "/%e1%e4%ed%e9%ee"}, /* seven bits of each */
	};

	expect_within(t, ARRAY_SIZE(t));
}

Test(ward_path, forms_that_are_compatible_and_letters_that_look_alike)
{
	static const struct spelling t[] = {
		{.path = "/x/%e2%80%a5/admin"},
		{.path = "/x/%e2%80%a4%e2%80%a4/admin"},
		{.path = "/x/%ef%b8%b0/admin"},
		{.path = "/admin%cd%be"},
		{.path = "/admin%cd%bex"},
		{.path = "/admin%ef%b9%94x"},
		{.path = "/admin%ef%b9%96x"},
		{.path = "/admin%ef%b9%9fx"},
		{.path = "/x%ef%b9%a8..%ef%b9%a8admin"},
		{.path = "/x%c2%a5..%c2%a5admin"},
		{.path = "/%ef%b9%aa61dmin"},
		{.path = "/%ef%ac%80x", .prefix = "/ffx"},
		{.path = "/%ef%ac%81le", .prefix = "/file"},
		{.path = "/%ef%ac%82y", .prefix = "/fly"},
		{.path = "/o%ef%ac%83ce", .prefix = "/office"},
		{.path = "/wa%ef%ac%84e", .prefix = "/waffle"},
		{.path = "/%ef%ac%85op", .prefix = "/stop"},
		{.path = "/%ef%ac%86op", .prefix = "/stop"},
		{.path = "/pa%c3%9f", .prefix = "/pass"},
		{.path = "/pa%e1%ba%9e", .prefix = "/pass"},
		{.path = "/c%c3%a6sar", .prefix = "/caesar"},
		{.path = "/ad%e2%85%bfin"},
		{.path = "/a%e2%85%be%e2%85%bfin"},
		{.path = "/%e2%85%b7", .prefix = "/viii"},
		{.path = "/adm%e2%84%b9n"},
		{.path = "/%e1%8e%aadmin"},
		{.path = "/%ea%93%aedmin"},
		{.path = "/adm%ea%93%b2n"},
		{.path = "/%ea%ad%ba%ea%93%93min"},
		{.path = "/%e1%ba%a1dmin"},  /* a with a dot below */
		{.path = "/a%e2%83%9ddmin"}, /* and a circle around it */
		{.path = "/%e2%84%a1", .prefix = "/tel"},
		{.path = "/%e2%84%80x", .prefix = "/a/cx"},
	};

	expect_within(t, ARRAY_SIZE(t));
}

/* A server may follow some of what looks like ".." or "/" and take the rest for names. */
Test(ward_path, readings_of_one_path_mix)
{
	static const struct spelling t[] = {
		{.path = "/x/%252e%252e/admin/%e2%80%a5/b"},
		{.path = "/x%255cy/%252e%252e/admin"},
		{.path = "/x%ef%bc%8fy/%252e%252e/admin"},
		{.path = "/x//%252e%252e/admin"},
		{.path = "/x/%3f/%252e%252e/admin", .prefix = "/x/admin"},
		{.path = "/x//%252e%252e/admin", .prefix = "/x/admin"},
		{.path = "/v/%80/%252e%252e/admin", .prefix = "/v/admin"},
		{.path = "/v/a/b/%252e%252e/%252e%252e/admin", .prefix = "/v/admin"},
	};

	expect_within(t, ARRAY_SIZE(t));
}

Test(ward_path, other_paths_stay_others)
{
	static const struct spelling t[] = {
		{"/", "/admin"},
		{"/administration", "/admin"},
		{"/adm", "/admin"},
		{"/x/admin", "/admin"},
		{"/admin:x", "/admin"},
		{"/models:predict", "/models"},
		{"/c", "/c++"},
		{"/c+", "/c++"},
		{"/c+x", "/c"},
		{"/a;admin", "/admin"},
		{"/a", "/a;b"},
		{"/%e6%97%a5admin", "/admin"},
		{"/admin%e6%97%a5", "/admin"},
		{"/%e6%97%a5/admin", "/admin"},
		{"/%e4%b8%8a/admin", "/admin"},
		{"/%e4%b8%80/admin", "/admin"},
		{"/%c3%a9admin", "/admin"},
		{"/caf%c3%a9", "/admin"},
		{"/100%25", "/admin"},
		{"/a/%252e%252e/b", "/admin"},
		{"/.admin", "/admin"},
		{"/file", "/fiile"},
		{"/git", "/.git"},
		{"/a/b", "/a/b/c"},
		{"/b/c", "/a/b/c"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		cr_expect_not(ward_path_is_within(t[i].path, t[i].prefix), "%s %s",
			      t[i].path, t[i].prefix);
}

/* What is coded again and again is not read to its end. */
Test(ward_path, what_cannot_be_told_is_within)
{
	cleanup_free char *deep = xmalloc(4096);
	cleanup_free char *is_long = xmalloc(WARD_PATH_BYTES_MAX + 2);

	memcpy(deep, "/%", 2);
	for (int i = 0; i < 40; i++)
		memcpy(deep + 2 + 2 * i, "25", 2);
	memcpy(deep + 82, "61", 3);
	cr_expect(ward_path_is_within(deep, "/admin"));
	memset(is_long, 'a', WARD_PATH_BYTES_MAX + 1);
	is_long[0] = '/';
	is_long[WARD_PATH_BYTES_MAX + 1] = '\0';
	cr_expect(ward_path_is_within(is_long, "/admin"));
}
