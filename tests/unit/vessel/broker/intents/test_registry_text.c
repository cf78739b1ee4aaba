/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors of crates and of Go modules: which paths there are, and what an index must be. */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/registry.h"
#include "vessel/broker/intents/registry_text.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(registry_text, .timeout = 20);

#define LOCAL "http://127.0.0.1:8787/registry/cargo/"
#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char cargo_url[] = "https://index.example/root/", go_url[] = "https://go.example/",
	    files_url[] = "https://files.example/";
static const struct registry cargo = {
	.kind = REGISTRY_CARGO, .url = cargo_url, .files = {files_url}, .n_files = 1};
static const struct registry go = {
	.kind = REGISTRY_GO, .url = go_url, .files = {files_url}, .n_files = 1};

static const struct {
	const struct registry *r;
	const char *path;
} refused[] = {
	{&cargo, ""},
	{&cargo, "config.json/"},
	{&cargo, "Config.json"},
	{&cargo, "a"},
	{&cargo, "2/a"},
	{&cargo, "1/ab"},
	{&cargo, "3/b/abc"},
	{&cargo, "3/abc"},
	{&cargo, "se/rd/Serde"},
	{&cargo, "Se/rd/serde"},
	{&cargo, "se/rd/serdf/x"},
	{&cargo, "xx/rd/serde"},
	{&cargo, "se/rd/serd.e"},
	{&cargo, "se/rd/serde%2b"},
	{&cargo, "api/v1/crates"},
	{&cargo, "api/v1/crates/new"},
	{&cargo, "download"},
	{&cargo, "x/download"},
	{&cargo, "~0/download"},
	{&cargo, "~2/a/1/download"},
	{&cargo, "~1/../a/download"},
	{&go, "a.example/m"},
	{&go, "a.example/m/@v/"},
	{&go, "a.example/m/@v/list/x"},
	{&go, "a.example/m/@v/v1.0.0"},
	{&go, "a.example/m/@v/.info"},
	{&go, "a.example/m/@v/-x.info"},
	{&go, "a.example/m/@v/v1/x.info"},
	{&go, "a.example/m/@v/v1@x.info"},
	{&go, "a.example/m/@v/v1.0.0.exe"},
	{&go, "a.example/m/@head"},
	{&go, "a.example/m@v/list"},
	{&go, "@v/list"},
	{&go, "/@v/list"},
	{&go, "fmt/@v/list"},
	{&go, "-a.example/m/@v/list"},
	{&go, "a.example/M/@v/list"},
	{&go, "a.example/!M/@v/list"},
	{&go, "a.example/m!/@v/list"},
	{&go, "a.example//m/@v/list"},
	{&go, "a.example/../m/@v/list"},
	{&go, "a.example/m%40v/@v/list"},
	{&go, "~0/a.example/m/@v/v1.zip"},
	{&go, "~1/a.example/m/@v/v1.zip"},
	{&go, "sumdb/sum.example/other"},
	{&go, "sumdb/sum.example/latest/x"},
	{&go, "sumdb/localhost/latest"},
	{&go, "sumdb/Sum.example/latest"},
	{&go, "sumdb/sum.example/lookup/a.example/m"},
	{&go, "sumdb/sum.example/lookup/@v1"},
	{&go, "sumdb/sum.example/lookup/fmt@v1"},
	{&go, "sumdb/sum.example/lookup/a.example/m@"},
	{&go, "sumdb/sum.example/tile/8"},
	{&go, "sumdb/sum.example/tile/8/0"},
	{&go, "sumdb/sum.example/tile/8/0/"},
	{&go, "sumdb/sum.example/tile/8/0/a"},
	{&go, "sumdb/sum.example/tile/8/date/1"},
	{&go, "sumdb/sum.example/tile/8/0/1/2/3/4/5/6/7"},
};

Test(registry_text, what_is_no_package_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		char url[4096];
		struct err err = ERR_INIT;
		bool index;

		cr_expect(registry_upstream(refused[i].r, refused[i].path, url,
					    sizeof(url), &index, &err) < 0,
			  "'%s' became %s", refused[i].path, url);
		cr_expect_eq(err.id, ERRID_REGISTRY_PATH);
	}
}

static const struct {
	const struct registry *r;
	const char *path, *url;
	bool index;
} taken[] = {
	{&cargo, "config.json", "https://index.example/root/config.json", true},
	{&cargo, "1/a", "https://index.example/root/1/a", true},
	{&cargo, "2/ab", "https://index.example/root/2/ab", true},
	{&cargo, "3/a/abc", "https://index.example/root/3/a/abc", true},
	{&cargo, "se/rd/serde_json", "https://index.example/root/se/rd/serde_json", true},
	{&cargo, "do/wn/download", "https://index.example/root/do/wn/download", true},
	{&cargo, "~1/crates/serde/1.0.0+b/download",
	 "https://files.example/crates/serde/1.0.0+b/download", false},
	{&cargo, "~0/f89ae4d2c4cc7e6f9be00d5bc097507b/dl/serde/serde-1.0.0.crate",
	 "https://index.example/dl/serde/serde-1.0.0.crate", false},
	{&cargo, "dl/serde/1.0.0/download",
	 "https://index.example/root/dl/serde/1.0.0/download", false},
	{&go, "a.example/!big/m/v2/@v/list",
	 "https://go.example/a.example/!big/m/v2/@v/list", true},
	{&go, "a.example/m/@latest", "https://go.example/a.example/m/@latest", true},
	{&go, "a.example/m/@v/v1.0.0-!r!c.1+incompatible.info",
	 "https://go.example/a.example/m/@v/v1.0.0-!r!c.1+incompatible.info", true},
	{&go, "a.example/m/@v/master.info",
	 "https://go.example/a.example/m/@v/master.info", true},
	{&go, "a.example/m/@v/v0.0.0-20200102030405-0123456789ab.mod",
	 "https://go.example/a.example/m/@v/v0.0.0-20200102030405-0123456789ab.mod",
	 false},
	{&go, "gopkg.example/yaml.v3/@v/v3.0.1.zip",
	 "https://go.example/gopkg.example/yaml.v3/@v/v3.0.1.zip", false},
	{&go, "sumdb/sum.example/supported",
	 "https://go.example/sumdb/sum.example/supported", true},
	{&go, "sumdb/sum.example/lookup/a.example/m@v1.0.0",
	 "https://go.example/sumdb/sum.example/lookup/a.example/m@v1.0.0", true},
	{&go, "sumdb/sum.example/tile/8/0/x012/345.p/17",
	 "https://go.example/sumdb/sum.example/tile/8/0/x012/345.p/17", false},
	{&go, "sumdb/sum.example/tile/8/data/000",
	 "https://go.example/sumdb/sum.example/tile/8/data/000", false},
};

Test(registry_text, indexes_and_files_have_their_url_upstream)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		char url[4096];
		bool index = !taken[i].index;
		struct err err = ERR_INIT;

		cr_assert_eq(registry_upstream(taken[i].r, taken[i].path, url,
					       sizeof(url), &index, &err),
			     0, "%s: %s", taken[i].path, err.msg);
		cr_expect_str_eq(url, taken[i].url);
		cr_expect_eq(index, taken[i].index, "%s", taken[i].path);
	}
}

static int read_page(enum registry_form form, const char *text, size_t len, size_t n,
		     struct buf *out, struct err *err)
{
	struct registry_page page = {&cargo, "https://index.example/root/config.json"};
	struct registry_rewrite *rw =
		registry_rewrite_new(form, NULL, registry_map_link, &page);
	int r = 0;

	for (size_t i = 0; !r && i < len; i += n)
		r = registry_rewrite_feed(rw, text + i, len - i < n ? len - i : n, out,
					  err);
	if (!r)
		r = registry_rewrite_end(rw, out, err);
	registry_rewrite_free(rw);
	return r;
}

#define CRATE(more) "{\"name\":\"a\",\"vers\":\"1.0.0\",\"cksum\":\"" SUM "\"" more "}"

static const struct {
	enum registry_form form;
	const char *text, *why;
} bad[] = {
	{REGISTRY_CRATE, "<html>", "byte"},
	{REGISTRY_CRATE, "[]\n", "object"},
	{REGISTRY_CRATE, CRATE("") "\n" CRATE(",\"name\":\"b\""), "duplicate"},
	{REGISTRY_CRATE, CRATE(",\"c\\u006bsum\":\"" SUM "\"") "\n", "duplicate"},
	{REGISTRY_CRATE, CRATE("") CRATE(""), "byte"},
	{REGISTRY_CRATE, "{\"name\":\"a\",\"vers\":\"1.0.0\"}\n", "cksum"},
	{REGISTRY_CRATE, "{\"name\":\"a\",\"vers\":1,\"cksum\":\"" SUM "\"}", "vers"},
	{REGISTRY_CRATE, "{\"name\":\"a\",\"vers\":\"1\",\"cksum\":\"0123\"}", "sha256"},
	{REGISTRY_CRATE, "{\"name\":\"a\",\"vers\":\"1\",\"cksum\":\"" SUM "0\"}",
	 "cksum"},
	{REGISTRY_CARGO_CONFIG, "", "byte"},
	{REGISTRY_CARGO_CONFIG, "{}", "dl"},
	{REGISTRY_CARGO_CONFIG, "{\"dl\":1}", "dl"},
	{REGISTRY_CARGO_CONFIG, "{\"dl\":\"https://evil.example/x\"}", "file_hosts"},
	{REGISTRY_CARGO_CONFIG, "{\"dl\":\"http://files.example/x\"}", "file_hosts"},
	{REGISTRY_CARGO_CONFIG, "{\"dl\":\"https://files.example.evil/x\"}",
	 "file_hosts"},
	{REGISTRY_CARGO_CONFIG, "{\"dl\":\"https://files.example/x?y\"}", "file_hosts"},
	{REGISTRY_CARGO_CONFIG,
	 "{\"dl\":\"https://files.example/x\",\"\\u0064l\":\"https://evil/\"}",
	 "duplicate"},
	{REGISTRY_CARGO_CONFIG,
	 "{\"dl\":\"https://files.example/x\",\"auth-required\":true}", "token"},
	{REGISTRY_GO_LIST, "v1.0.0\nlatest\n", "version"},
	{REGISTRY_GO_LIST, "v1.0.0\r\n", "version"},
	{REGISTRY_GO_LIST, "v1.0.0 2020-01-02\n", "version"},
	{REGISTRY_GO_LIST, "<html>", "version"},
	{REGISTRY_GO_INFO, "", "byte"},
	{REGISTRY_GO_INFO, "{}", "Version"},
	{REGISTRY_GO_INFO, "{\"Version\":\"1.0.0\"}", "Version"},
	{REGISTRY_GO_INFO, "{\"Version\":\"v1/../x\"}", "Version"},
	{REGISTRY_GO_INFO, "{\"Version\":\"v1\",\"V\\u0065rsion\":\"v2\"}", "duplicate"},
	{REGISTRY_GO_INFO, "{\"Version\":\"v1\"}{}", "byte"},
	{REGISTRY_GO_NOTE, "a\x1b[2J", "control"},
	{REGISTRY_GO_NOTE, "a\xff", "text"},
};

Test(registry_text, what_is_no_index_is_an_error_that_says_why)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct buf out cleanup_buf;
		struct err err = ERR_INIT;

		buf_init(&out, 65536);
		cr_expect(read_page(bad[i].form, bad[i].text, strlen(bad[i].text), 7,
				    &out, &err) < 0,
			  "%s", bad[i].text);
		cr_expect_eq(err.id, ERRID_REGISTRY_INDEX);
		cr_expect(strstr(err.msg, bad[i].why), "%s: %s", bad[i].text, err.msg);
	}
}

Test(registry_text, what_is_too_long_is_an_error_and_holds_no_more)
{
	static const enum registry_form form[] = {REGISTRY_CRATE, REGISTRY_CARGO_CONFIG,
						  REGISTRY_GO_LIST, REGISTRY_GO_INFO,
						  REGISTRY_GO_NOTE};
	size_t len = REGISTRY_CRATE_LINE_MAX + 4096;
	char *text = xmalloc(len);

	memset(text, 'v', len);
	for (size_t i = 0; i < ARRAY_SIZE(form); i++) {
		struct buf out cleanup_buf;
		struct err err = ERR_INIT;

		buf_init(&out, len * 2);
		cr_expect(read_page(form[i], text, len, 16384, &out, &err) < 0);
		cr_expect_eq(err.id, ERRID_REGISTRY_INDEX);
		cr_expect(strstr(err.msg, "too long"), "%s", err.msg);
	}
	free(text);
}

static const struct {
	enum registry_form form;
	const char *in, *out; /* NULL: as it came */
} good[] = {
	{REGISTRY_CRATE, "", NULL},
	{REGISTRY_CRATE,
	 CRATE(",\"deps\":[{\"name\":\"b\",\"registry\":null}],\"features\":{\"x\\/"
	       "y\":[]}") "\n" CRATE(",\"yanked\":true") "\n\n",
	 NULL},
	{REGISTRY_CRATE, CRATE(""), NULL},
	{REGISTRY_CARGO_CONFIG,
	 "{\"dl\":\"https://files.example/crates\",\"api\":\"https://evil.example\"}",
	 "{\"dl\":\"" LOCAL "~1/crates\"}"},
	{REGISTRY_CARGO_CONFIG,
	 "{\"auth-required\":false,\"\\u0064l\":\"/dl/{crate}/{version}.crate\"}",
	 "{\"dl\":\"" LOCAL
	 "~0/f89ae4d2c4cc7e6f9be00d5bc097507b/dl/{crate}/{version}.crate\"}"},
	{REGISTRY_CARGO_CONFIG_KEY,
	 "{\"dl\":\"https://files.example/x\",\"auth-required\":true}",
	 "{\"dl\":\"" LOCAL "~1/x\"}"},
	{REGISTRY_CARGO_CONFIG, "{\"dl\":\"https://index.example/root/dl\"}",
	 "{\"dl\":\"" LOCAL "dl\"}"},
	{REGISTRY_GO_LIST, "", NULL},
	{REGISTRY_GO_LIST,
	 "v1.0.0\nv2.0.0+incompatible\nv0.0.0-20200102030405-0123456789ab", NULL},
	{REGISTRY_GO_INFO,
	 "{\"Version\":\"v1.0.0\",\"Time\":\"2020-01-02T03:04:05Z\",\"Origin\":{\"URL\":"
	 "\"https://evil.example\"}}\n",
	 NULL},
	{REGISTRY_GO_NOTE, "", NULL},
	{REGISTRY_GO_NOTE,
	 "1\na.example/m v1.0.0 h1:x=\n\n\xe2\x80\x94 sum.example Az3grl=\n", NULL},
};

Test(registry_text, an_index_passes_as_it_is_however_it_is_cut)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		for (size_t n = 1; n < strlen(good[i].in) + 2; n++) {
			struct buf out cleanup_buf;
			struct err err = ERR_INIT;

			buf_init(&out, 65536);
			cr_assert_eq(read_page(good[i].form, good[i].in,
					       strlen(good[i].in), n, &out, &err),
				     0, "%s in pieces of %zu: %s", good[i].in, n,
				     err.msg);
			cr_assert_str_eq(buf_str(&out),
					 good[i].out ? good[i].out : good[i].in);
		}
}
