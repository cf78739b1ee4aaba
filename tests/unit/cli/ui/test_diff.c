/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/diff.h"

#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(diff, .timeout = 20);

static void expect(const char *from, const char *to, const char *want)
{
	struct buf b;

	buf_init(&b, 65536);
	cr_expect_eq(diff_unified("a", from, "b", to, &b), want[0] != '\0');
	cr_expect_str_eq(buf_str(&b), want);
	buf_done(&b);
}

Test(diff, nothing_changed)
{
	expect("", "", "");
	expect("x\ny\n", "x\ny\n", "");
	expect(NULL, NULL, "");
}

Test(diff, a_file_comes_or_goes)
{
	expect(NULL, "x\ny\n", "--- /dev/null\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
	expect("x\n", NULL, "--- a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n");
}

Test(diff, context_and_hunks)
{
	expect("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
	       "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
	expect("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
	       "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n",
	       "--- a\n+++ b\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n"
	       "@@ -9,4 +10,3 @@\n 9\n 10\n 11\n-12\n");
	expect("a\nb\nc\n", "c\na\nb\n",
	       "--- a\n+++ b\n@@ -1,3 +1,3 @@\n+c\n a\n b\n-c\n");
}

Test(diff, huge_texts_are_replaced_whole)
{
	struct buf a, b, out;

	buf_init(&a, 1 << 20);
	buf_init(&b, 1 << 20);
	buf_init(&out, 4 << 20);
	for (int i = 0; i < 3000; i++) {
		buf_addf(&a, "a%d\n", i);
		buf_addf(&b, "b%d\n", i);
	}
	cr_expect(diff_unified("a", buf_str(&a), "b", buf_str(&b), &out));
	cr_expect(strstr(buf_str(&out), "@@ -1,3000 +1,3000 @@\n-a0\n"));
	cr_expect(buf_ok(&out));
	buf_done(&a);
	buf_done(&b);
	buf_done(&out);
}
