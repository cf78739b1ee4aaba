/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/registry.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

TestSuite(registry, .timeout = 20);

#define LOCAL "http://127.0.0.1:8787/registry/"
#define PEP691 "application/vnd.pypi.simple.v1+json"
#define ANY SIMPLE_HTML_JSON
#define HASH "#sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char npm_url[] = "https://npm.example/mirror/",
	    pypi_url[] = "https://pypi.example/root/simple/",
	    files_url[] = "https://files.example/";
static const struct registry npm = {
	.kind = REGISTRY_NPM, .url = npm_url, .files = {files_url}, .n_files = 1};
static const struct registry pypi = {
	.kind = REGISTRY_PYPI, .url = pypi_url, .files = {files_url}, .n_files = 1};

static const char *const refused[] = {
	"",
	"/",
	"//",
	"..",
	"../x",
	"left-pad/../..",
	".",
	"left-pad//-/x.tgz",
	"left pad",
	"left-pad?x=1",
	"left-pad#x",
	"a%2fb",
	"@a%2f%2fb/%2f",
	"%2e%2e",
	"@s/%2e%2e/x",
	"left-pad%00",
	"a\\b",
	"a:b",
	"-/v1/search",
	"-/npm/v1/security/audits",
	"~2/x.tgz",
	"~0/x.tgz",
	"~1/",
	"~/x",
	"~1",
	"left-pad/1.3.0/x",
	"a/-/b.sh",
	"caf\xc3\xa9",
	"a\nb",
	"@scope/a/b",
	"%2",
	"%",
	"a%",
};

Test(registry, what_is_no_package_is_refused)
{
	char url[4096], longer[REGISTRY_PATH_MAX + 8];
	bool index;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct err err = ERR_INIT;

		cr_expect(registry_upstream(&npm, refused[i], url, sizeof(url), &index,
					    &err) < 0,
			  "'%s' became %s", refused[i], url);
		cr_expect_eq(err.id, ERRID_REGISTRY_PATH);
		err_clear(&err);
		cr_expect(registry_upstream(&pypi, refused[i], url, sizeof(url), &index,
					    &err) < 0,
			  "'%s' became %s", refused[i], url);
	}
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	cr_expect(registry_upstream(&npm, longer, url, sizeof(url), &index,
				    &(struct err)ERR_INIT) < 0);
}

Test(registry, indexes_and_files_have_their_url_upstream)
{
	static const struct {
		const struct registry *r;
		const char *path, *url;
		bool index;
	} row[] = {
		{&npm, "left-pad", "https://npm.example/mirror/left-pad", true},
		{&npm, "@babel%2fcore", "https://npm.example/mirror/@babel%2fcore", true},
		{&npm, "@babel%2Fcore", "https://npm.example/mirror/@babel%2Fcore", true},
		{&npm, "@babel/core", "https://npm.example/mirror/@babel/core", true},
		{&npm, "left-pad/-/left-pad-1.3.0.tgz",
		 "https://npm.example/mirror/left-pad/-/left-pad-1.3.0.tgz", false},
		{&npm, "@babel/core/-/core-7.0.0.tgz",
		 "https://npm.example/mirror/@babel/core/-/core-7.0.0.tgz", false},
		{&npm, "~1/x/y.tgz", "https://files.example/x/y.tgz", false},
		{&pypi, "simple/six/", "https://pypi.example/root/simple/six/", true},
		{&pypi, "simple/six/six-1.16.0-py2.py3-none-any.whl",
		 "https://pypi.example/root/simple/six/six-1.16.0-py2.py3-none-any.whl",
		 false},
		{&pypi, "~1/p/torch-2.0%2Bcpu.whl",
		 "https://files.example/p/torch-2.0%2Bcpu.whl", false},
		{&pypi, "~1/p/six.whl.metadata",
		 "https://files.example/p/six.whl.metadata", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		char url[4096];
		bool index = !row[i].index;
		struct err err = ERR_INIT;

		cr_assert_eq(registry_upstream(row[i].r, row[i].path, url, sizeof(url),
					       &index, &err),
			     0, "%s: %s", row[i].path, err.msg);
		cr_expect_str_eq(url, row[i].url);
		cr_expect_eq(index, row[i].index, "%s", row[i].path);
	}
}

/* Its digits are another one's by each key. */
static const char *without_mark(struct buf *mapped)
{
	char *mark = strstr(buf_str(mapped), "/~0/");

	for (; mark; mark = strstr(mark + 4, "/~0/"))
		if (strspn(mark + 4, "0123456789abcdef") == 32 && mark[36] == '/') {
			memcpy(mark + 4, "MARK", 4);
			memmove(mark + 8, mark + 36, strlen(mark + 36) + 1);
		}
	return buf_str(mapped);
}

Test(registry, links_lead_to_the_mirror_or_nowhere)
{
	static const struct registry_page six = {&pypi,
						 "https://pypi.example/root/simple/six/"};
	static const struct registry_page pad = {&npm, "https://npm.example/mirror/pad"};
	static const struct {
		const struct registry_page *page;
		const char *link, *mapped;
	} row[] = {
		{&six, "../../packages/a/six.whl" HASH,
		 LOCAL "pypi/~0/MARK/root/packages/a/six.whl" HASH},
		{&six, "/packages/six.whl", LOCAL "pypi/~0/MARK/packages/six.whl"},
		{&six, "six.whl", LOCAL "pypi/simple/six/six.whl"},
		{&six, "https://files.example/a/six.whl" HASH,
		 LOCAL "pypi/~1/a/six.whl" HASH},
		{&six, "https://pypi.example/x/six.whl", LOCAL "pypi/~0/MARK/x/six.whl"},
		{&pad, "https://npm.example/mirror/pad/-/pad-1.tgz",
		 LOCAL "npm/pad/-/pad-1.tgz"},
		{&pad, "https://files.example/pad-1.tgz", LOCAL "npm/~1/pad-1.tgz"},
		{&pad, "https://npm.example/other/pad-1.tgz", NULL},
		{&six, "https://files.example.evil/six.whl", NULL},
		{&six, "https://files.example@evil/six.whl", NULL},
		{&six, "https://evil/six.whl", NULL},
		{&six, "//files.example/six.whl", NULL},
		{&six, "http://files.example/six.whl", NULL},
		{&six, "file:///etc/passwd", NULL},
		{&six, "javascript:alert(1)", NULL},
		{&six, "six.whl?x=1", NULL},
		{&six, "#top", NULL},
		{&six, "", NULL},
		{&six, "..\\six.whl", NULL},
		{&pad, "https://npm.example/mirror/../other/x.tgz", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct registry_page page = *row[i].page;
		struct buf out cleanup_buf;
		bool kept;

		buf_init(&out, 8192);
		kept = registry_map_link(&page, row[i].link, &out);
		cr_expect_eq(kept, row[i].mapped != NULL, "%s -> %s", row[i].link,
			     buf_str(&out));
		if (kept && row[i].mapped)
			cr_expect_str_eq(without_mark(&out), row[i].mapped);
	}
}

/* The page in pieces of n bytes; the error's text where there is one. */
static int rewrite(const struct registry_page *page, enum registry_form form,
		   const char *key, const char *text, size_t n, struct buf *out,
		   struct err *err)
{
	struct registry_page p = *page;
	struct registry_rewrite *rw =
		registry_rewrite_new(form, key, registry_map_link, &p);
	size_t len = strlen(text);
	int r = 0;

	for (size_t i = 0; !r && i < len; i += n)
		r = registry_rewrite_feed(rw, text + i, len - i < n ? len - i : n, out,
					  err);
	if (!r)
		r = registry_rewrite_end(rw, out, err);
	registry_rewrite_free(rw);
	return r;
}

static const struct registry_page npm_page = {&npm, "https://npm.example/mirror/pad"};
static const struct registry_page pypi_page = {&pypi,
					       "https://pypi.example/root/simple/six/"};

static const struct {
	const struct registry_page *page;
	enum registry_form form;
	const char *key, *in, *out;
} pages[] = {
	{&npm_page, REGISTRY_JSON, "tarball",
	 "{\"name\":\"pad\",\"versions\":{\"1.0\":{\"dist\":{\"integrity\":\"sha512-x\","
	 "\"tarball\": \"https:\\/\\/npm.example/mirror/pad/-/pad-1.0.tgz\"},"
	 "\"homepage\":\"https://npm.example/mirror/\"},\"2.0\":{\"dist\":{\"tarball\":"
	 "\"https://evil/"
	 "pad.tgz\"}}},\"x\":[1,-2.5e3,true,null,\"tarball\",\"\\u00e4\"]}",
	 "{\"name\":\"pad\",\"versions\":{\"1.0\":{\"dist\":{\"integrity\":\"sha512-x\","
	 "\"tarball\": \"" LOCAL "npm/pad/-/pad-1.0.tgz\"},"
	 "\"homepage\":\"https://npm.example/mirror/\"},\"2.0\":{\"dist\":{\"tarball\":"
	 "\"\"}}},\"x\":[1,-2.5e3,true,null,\"tarball\",\"\\u00e4\"]}"},
	{&npm_page, REGISTRY_JSON, "tarball",
	 "{\"tarball\":{\"tarball\":{\"a\":[\"https://evil/"
	 "\"]}},\"a\":[{\"tarball\":1},[]]}",
	 "{\"tarball\":{\"tarball\":{\"a\":[\"https://evil/"
	 "\"]}},\"a\":[{\"tarball\":1},[]]}"},
	/* all that JSON has, and text of one to four bytes a character */
	{&npm_page, REGISTRY_JSON, "tarball",
	 " {\"a\" : [ ] , \"b\":{ "
	 "},\"c\":[0,-0,10,-1.50,2e9,0E-1,3.0e+7,true,false,null],"
	 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\":\"\xef\xbf\xbf\x7f\xed\x9f\xbf\","
	 "\"\\ud83d\":\"\"}\n",
	 " {\"a\" : [ ] , \"b\":{ "
	 "},\"c\":[0,-0,10,-1.50,2e9,0E-1,3.0e+7,true,false,null],"
	 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\":\"\xef\xbf\xbf\x7f\xed\x9f\xbf\","
	 "\"\\ud83d\":\"\"}\n"},
	/* a key's escapes are undone before it is compared; what cannot be ours stays as it was */
	{&npm_page, REGISTRY_JSON, "tarball",
	 "{\"a\\\\b\":1,\"\\ud83d\\ude00\\n\\t\":{\"\\u0074arball\":\"https://evil/\"},"
	 "\"c\":{\"\\u0074\\u0061\\u0072\\u0062\\u0061\\u006C\\u006c\":"
	 "\"https://npm.example/mirror/pad/-/pad-1.0.tgz\"},\"\\u0000tarball\":\"x\","
	 "\"tarball\\u0000\":\"y\",\"\\u0074arball \":\"z\",\"\\u0165arball\":\"w\"}",
	 "{\"a\\\\b\":1,\"\\ud83d\\ude00\\n\\t\":{\"\\u0074arball\":\"\"},"
	 "\"c\":{\"\\u0074\\u0061\\u0072\\u0062\\u0061\\u006C\\u006c\":"
	 "\"" LOCAL "npm/pad/-/pad-1.0.tgz\"},\"\\u0000tarball\":\"x\","
	 "\"tarball\\u0000\":\"y\",\"\\u0074arball \":\"z\",\"\\u0165arball\":\"w\"}"},
	{&npm_page, REGISTRY_JSON, "tarball",
	 "[{\"tarball\":\"https://evil/\",\"d\":{\"tarball\":\"https://evil/"
	 "\"}},{\"tarball\":"
	 "\"https://evil/\"}]",
	 "[{\"tarball\":\"\",\"d\":{\"tarball\":\"\"}},{\"tarball\":\"\"}]"},
	{&pypi_page, REGISTRY_JSON, "url",
	 "{\"files\":[{\"url\":\"../../p/six.whl\",\"hashes\":{\"sha256\":\"ab\"}}]}",
	 "{\"files\":[{\"url\":\"" LOCAL
	 "pypi/~0/MARK/root/p/six.whl\",\"hashes\":{\"sha256\":\"ab\"}}]}"},
	/* a page of PyPI's: hashes, sizes, PEP 658 and 714 go by as they are */
	{&pypi_page, REGISTRY_JSON, "url",
	 "{\"meta\":{\"api-version\":\"1.1\"},\"name\":\"six\",\"versions\":[\"1.0\"],"
	 "\"files\":"
	 "[{\"core-metadata\":{\"sha256\":\"ab\"},\"data-dist-info-metadata\":true,"
	 "\"filename\":\"six.whl\",\"hashes\":{\"sha256\":\"cd\"},\"size\":7,\"url\":"
	 "\"https://files.example/a/six.whl\",\"yanked\":\"why \\\"url\\\": x\"},"
	 "{\"filename\":\"six.zip\",\"hashes\":{},\"url\":\"https://evil/six.zip\"}]}",
	 "{\"meta\":{\"api-version\":\"1.1\"},\"name\":\"six\",\"versions\":[\"1.0\"],"
	 "\"files\":"
	 "[{\"core-metadata\":{\"sha256\":\"ab\"},\"data-dist-info-metadata\":true,"
	 "\"filename\":\"six.whl\",\"hashes\":{\"sha256\":\"cd\"},\"size\":7,\"url\":"
	 "\"" LOCAL "pypi/~1/a/six.whl\",\"yanked\":\"why \\\"url\\\": x\"},"
	 "{\"filename\":\"six.zip\",\"hashes\":{},\"url\":\"\"}]}"},
	{&pypi_page, REGISTRY_HTML, NULL,
	 "<!DOCTYPE html><html><!-- <a href=x> --><body>\n<a href=\"../../p/six.whl" HASH
	 "\" data-requires-python=\"&gt;=3.6\">six.whl</a><br/>\n"
	 "<A HREF='https://evil/six.whl'>x</A><a data-x=href=1 "
	 "href=/p/a.whl>y</a></body>",
	 "<!DOCTYPE html><html><!-- <a href=x> --><body>\n<a href=\"" LOCAL
	 "pypi/~0/MARK/root/p/six.whl" HASH
	 "\" data-requires-python=\"&gt;=3.6\">six.whl</a>"
	 "<br/>\n<A HREF=\"\">x</A><a data-x=href=1 href=\"" LOCAL
	 "pypi/~0/MARK/p/a.whl\">y</a></body>"},
	{&pypi_page, REGISTRY_HTML, NULL,
	 "<?xml version='1.0'?><!doctype HTML PUBLIC \"-//W3C//DTD\"><title>six < 2"
	 "</title ><!----><!--SERIAL 7-->\r\n<!-- a-b - > <b> -->"
	 "<p>1 <2 << a\t<a href='https://evil/'>x</a\n></p>",
	 "<?xml version='1.0'?><!doctype HTML PUBLIC \"-//W3C//DTD\"><title>six < 2"
	 "</title ><!----><!--SERIAL 7-->\r\n<!-- a-b - > <b> -->"
	 "<p>1 <2 << a\t<a href=\"\">x</a\n></p>"},
};

Test(registry, pages_are_rewritten_however_they_are_cut)
{
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		for (size_t n = 1; n < strlen(pages[i].in) + 1; n++) {
			struct buf out cleanup_buf;
			struct err err = ERR_INIT;

			buf_init(&out, 65536);
			cr_assert_eq(rewrite(pages[i].page, pages[i].form, pages[i].key,
					     pages[i].in, n, &out, &err),
				     0, "page %zu in pieces of %zu: %s", i, n, err.msg);
			cr_assert_str_eq(without_mark(&out), pages[i].out);
		}
}

static const char *const no_json[] = {
	"",
	"[",
	"{\"a\":1",
	"{}{}",
	"\"x\"",
	"{\"a\":]}",
	"{\"a\" 'b'}",
	"{\"tarball\":\"x\",\"tarball\":\"https://evil/\"}",
	"{\"tarball\":\"x\",\"a\":{},\"\\u0074arball\":\"https://evil/\"}",
	"{\"tarball\":1,\"t\\u0061rball\":\"https://evil/\"}",
	"{\"a\\x62\":1}",
	"{\"a\\\nb\":1}",
	"{\"\\u007\":1}",
	"{\"\\u00g4arball\":\"https://evil/\"}",
	"{\"a\":\"\\'\"}",
	"{\"a\":\"\\U0074\"}",
	"{\"a\":\"x\\",
	"{\"a\":1 \"tarball\":\"https://evil/\"}",
	"{\"a\":\"\n\"}",
	"<html>",
	"{:1}",
	/* what JSON has not, though some read it */
	"{\"a\":1,}",
	"{\"a\":[1,]}",
	"{,\"a\":1}",
	"[,]",
	"[1,,2]",
	"[1 2]",
	"[{}{}]",
	"{\"a\":1]",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":\"b\":1}",
	"{\"a\" \"b\"}",
	"{\"a\"::1}",
	"{a:1}",
	"{1:1}",
	"{'a':1}",
	"[01]",
	"[-01]",
	"[1.]",
	"[.1]",
	"[+1]",
	"[-]",
	"[1e]",
	"[1e+]",
	"[1.e1]",
	"[0x1]",
	"[1_0]",
	"[1-1]",
	"[--1]",
	"[NaN]",
	"[Infinity]",
	"[nul]",
	"[nullx]",
	"[True]",
	"[t rue]",
	"[1/**/]",
	"[1]\v",
	"[1]x",
	"[1],",
	"1",
	"null",
	"\xef\xbb\xbf[]",
	/* text that is not UTF-8 */
	"[\"\x80\"]",
	"[\"\xc3\"]",
	"[\"\xc3\x28\"]",
	"[\"\xc0\xaf\"]",
	"[\"\xe0\x9f\xbf\"]",
	"[\"\xed\xa0\x80\"]",
	"[\"\xf0\x8f\xbf\xbf\"]",
	"[\"\xf4\x90\x80\x80\"]",
	"[\"\xf8\x88\x80\x80\x80\"]",
	"[\"\xff\"]",
	"{\"tarball\":\"https://npm.example/mirror/\xe9\"}",
	"{\"\xe9\":1}",
	/* a reader may take its text for a link */
	"{\"tarball\":[\"https://evil/\"]}",
	"{\"tarball\": [[\"https://evil/\"]]}",
	"{\"t\\u0061rball\" :\n[]}",
};

static const char *const no_html[] = {
	"<base href=\"https://evil/\"><a href=\"six.whl\">",
	"<script>",
	"<a href=\"x",
	"<STYLE >",
	/* what one reader of HTML ends here, and another there */
	"<!--><a href=\"https://evil/\">x</a><!-- -->",
	"<!---><a href=\"https://evil/\">x</a><!-- -->",
	"<!-- --!><a href=\"https://evil/\">x</a><!-- -->",
	"<!-- -- ><a href=\"https://evil/\">x</a><!-- -->",
	"<!-- <!-- --> <a href=\"https://evil/\"> -->",
	"<!-- a --->",
	"<![CDATA[ > <a title=\" ]]> <a href=https://evil/> \">",
	"<!ENTITY x>",
	"<!doctype html [<!ENTITY x>]>",
	"<!a>",
	"<!>",
	"<? > <a title=\"?> <a href=https://evil/>\">",
	"</a x=\"><a title=\"> <a href=https://evil/>",
	"</a <b>",
	"</ a>",
	"</>",
	"<title><!--</title><a href=https://evil/> -->",
	"<title><a x=\"</title><a href=https://evil/>\">",
	"<title></b>",
	"<textarea><!--</textarea><a href=https://evil/> -->",
	"<noscript>",
	"<a href=\"six.whl\"\x01>",
	"<a\vhref=six.whl>",
	"<!-- ",
	"<!",
	"<",
	"</a",
};

Test(registry, what_is_no_index_is_an_error)
{
	char *deep = xmalloc(REGISTRY_DEPTH_MAX + 3);
	struct buf out cleanup_buf;

	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(no_json); i++) {
		struct err err = ERR_INIT;

		cr_expect(rewrite(&npm_page, REGISTRY_JSON, "tarball", no_json[i], 7,
				  &out, &err) < 0,
			  "%s", no_json[i]);
		cr_expect_eq(err.id, ERRID_REGISTRY_INDEX);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_html); i++) {
		struct err err = ERR_INIT;

		cr_expect(rewrite(&pypi_page, REGISTRY_HTML, NULL, no_html[i], 3, &out,
				  &err) < 0,
			  "%s", no_html[i]);
		cr_expect_eq(err.id, ERRID_REGISTRY_INDEX);
	}
	memset(deep, '[', REGISTRY_DEPTH_MAX + 2);
	deep[REGISTRY_DEPTH_MAX + 2] = '\0';
	cr_expect(rewrite(&npm_page, REGISTRY_JSON, "tarball", deep, 9, &out,
			  &(struct err)ERR_INIT) < 0);
	free(deep);
}

Test(registry, a_link_that_is_too_long_is_an_error_and_holds_no_memory)
{
	size_t n = REGISTRY_LINK_MAX * 3;
	char *text = xmalloc(n + 64);
	struct err err = ERR_INIT;
	struct buf out cleanup_buf;

	buf_init(&out, 1 << 20);
	(void)snprintf(text, 64, "{\"tarball\":\"");
	memset(text + 12, 'a', n);
	memcpy(text + 12 + n, "\"}", 3);
	cr_expect(rewrite(&npm_page, REGISTRY_JSON, "tarball", text, 1000, &out, &err) <
		  0);
	cr_expect_eq(err.id, ERRID_REGISTRY_INDEX);
	free(text);
}

static const struct {
	enum registry_kind kind;
	enum broker_simple wants;
	const char *path, *type;
	bool ok;
	enum registry_form form;
	const char *key;
} forms[] = {
	{REGISTRY_NPM, ANY, "pad", "text/html", false, 0, NULL},
	{REGISTRY_NPM, ANY, "pad", NULL, false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "application/jsonx", false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "application/json", false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", NULL, false, 0, NULL},
	{REGISTRY_PYPI, SIMPLE_JSON, "simple/six/", "text/html", false, 0, NULL},
	{REGISTRY_PYPI, SIMPLE_HTML, "simple/six/", PEP691, false, 0, NULL},
	/* an alphabet in which there may be tags, or quotes, that we do not see */
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; charset=utf-7", false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html;charset=\"cp037\"", false, 0,
	 NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; CHARSET=utf-16", false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; charset*=us-ascii''utf-7", false,
	 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; charset=utf-8; charset=utf-7",
	 false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; charset = utf-8", false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; charset=", false, 0, NULL},
	{REGISTRY_NPM, ANY, "pad", "application/json; charset=utf-7", false, 0, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html; charset=\"UTF-8\"; x=1", true,
	 REGISTRY_HTML, NULL},
	{REGISTRY_PYPI, ANY, "simple/six/", "text/html;charset=ISO-8859-1", true,
	 REGISTRY_HTML, NULL},
	{REGISTRY_NPM, ANY, "pad", "application/json; charset=utf-8", true, REGISTRY_JSON,
	 "tarball"},
	{REGISTRY_PYPI, SIMPLE_HTML, "simple/six/", "text/html", true, REGISTRY_HTML,
	 NULL},
	{REGISTRY_PYPI, SIMPLE_JSON, "simple/six/", PEP691, true, REGISTRY_JSON, "url"},
	/* it may have one of two only, and not the one that is liked better */
	{REGISTRY_PYPI, SIMPLE_JSON_HTML, "simple/six/",
	 "application/vnd.pypi.simple.v1+html; charset=utf-8", true, REGISTRY_HTML, NULL},
	{REGISTRY_PYPI, SIMPLE_HTML_JSON, "simple/six/", PEP691, true, REGISTRY_JSON,
	 "url"},
	/* the others name any type, or none */
	{REGISTRY_CARGO, ANY, "config.json", NULL, true, REGISTRY_CARGO_CONFIG, NULL},
	{REGISTRY_CARGO, ANY, "se/rd/serde", "binary/octet-stream", true, REGISTRY_CRATE,
	 NULL},
	{REGISTRY_GO, ANY, "a.example/m/@v/list", "text/html", true, REGISTRY_GO_LIST,
	 NULL},
	{REGISTRY_GO, ANY, "a.example/m/@latest", NULL, true, REGISTRY_GO_INFO, NULL},
	{REGISTRY_GO, ANY, "sumdb/sum.example/latest", "", true, REGISTRY_GO_NOTE, NULL},
};

Test(registry, the_form_is_told_by_the_content_type_or_the_path)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct registry_got got = {forms[i].kind, forms[i].wants,
						 forms[i].path, forms[i].type, false};
		struct registry_is is;
		struct err err = ERR_INIT;

		cr_expect_eq(registry_form(&got, &is, &err) == 0, forms[i].ok,
			     "row %zu: %s", i, err.msg);
		if (!forms[i].ok) {
			cr_expect_eq(err.id, ERRID_REGISTRY_INDEX);
			continue;
		}
		cr_expect_eq(is.form, forms[i].form, "row %zu", i);
		cr_expect(str_eq(is.key, forms[i].key), "row %zu", i);
		cr_expect_not_null(is.content_type);
	}
}

Test(registry, an_index_is_asked_for_in_the_form_that_the_job_takes)
{
	cr_expect_null(registry_accept(REGISTRY_PYPI, SIMPLE_NEITHER));
	cr_expect(!strstr(registry_accept(REGISTRY_PYPI, SIMPLE_HTML), "json"));
	cr_expect_str_eq(registry_accept(REGISTRY_PYPI, SIMPLE_JSON), PEP691);
	cr_expect(str_starts(registry_accept(REGISTRY_PYPI, SIMPLE_JSON_HTML),
			     PEP691 ", "));
	cr_expect(str_ends(registry_accept(REGISTRY_PYPI, SIMPLE_HTML_JSON),
			   PEP691 "; q=0.1"));
	cr_expect_not_null(registry_accept(REGISTRY_NPM, SIMPLE_NEITHER));
}
