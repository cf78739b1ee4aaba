/* SPDX-License-Identifier: Apache-2.0 */
/* Elsewhere at a registry's origin a job may name what an index has named, and nothing else. */
#include "vessel/broker/intents/registry_links.h"

#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/registry.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(registry_links, .timeout = 20);

#define LOCAL "http://127.0.0.1:8787/registry/"
#define NO_MARK "00000000000000000000000000000000"

static char pypi_url[] = "https://host.example/pypi/simple/",
	    other_url[] = "https://host.example/other/simple/",
	    cargo_url[] = "https://host.example/index/",
	    own_host[] = "https://host.example/", files_url[] = "https://files.example/";
static const struct registry pypi = {
	.kind = REGISTRY_PYPI, .url = pypi_url, .files = {own_host}, .n_files = 1};
static const struct registry cargo = {
	.kind = REGISTRY_CARGO, .url = cargo_url, .files = {files_url}, .n_files = 1};

static bool upstream(const struct registry *r, const char *path, char url[2048])
{
	struct err err = ERR_INIT;
	bool is_index;
	int ret = registry_upstream(r, path, url, 2048, &is_index, &err);

	cr_expect(ret == 0 || err.id == ERRID_REGISTRY_PATH, "%s", path);
	err_clear(&err);
	return ret == 0;
}

/* What a job has of a link: behind "/registry/NAME/", without the hash. */
static bool mapped(const struct registry *r, const char *link, char ret[2048])
{
	struct registry_page page = {
		r, r->kind == REGISTRY_PYPI ? "https://host.example/pypi/simple/six/"
					    : "https://host.example/index/config.json"};
	struct buf out cleanup_buf;
	const char *name = registry_kind_name(r->kind);

	buf_init(&out, 8192);
	if (!registry_map_link(&page, link, &out))
		return false;
	cr_assert(str_starts(buf_str(&out), LOCAL));
	cr_assert(str_copy(ret, 2048, buf_str(&out) + strlen(LOCAL) + strlen(name) + 1) ==
		  0);
	ret[strcspn(ret, "#")] = '\0';
	return true;
}

/* Every one has the form of a file: by it alone they went out, with the registry's key. */
Test(registry_links, what_no_index_named_is_asked_of_nobody)
{
	static const struct {
		const struct registry *r;
		const char *path;
	} row[] = {
		{&cargo, "~0/api/v4/projects/1/export/download"},
		{&cargo, "~0/private/report/download"},
		{&cargo, "~0/a/b/c/d/e/f/download"},
		{&cargo, "~0/x.crate"},
		{&cargo, "~0/" NO_MARK "/api/v4/projects/1/export/download"},
		{&cargo, "~0/" NO_MARK "/dl/tiny/1.0.0/download"},
		{&cargo, "~0/index../x/narrow4/download"},
		{&pypi, "~0/api/v4/projects/1/repository/archive.tar.gz"},
		{&pypi, "~0/" NO_MARK "/api/v4/projects/1/repository/archive.tar.gz"},
		{&pypi, "~0/x.whl.metadata"},
		{&pypi, "~0/" NO_MARK},
		{&pypi, "~0/" NO_MARK "/"},
		{&pypi, "~0/00000000000000000000000000000000x.whl"},
	};
	char url[2048];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		cr_expect_not(upstream(row[i].r, row[i].path, url), "%s became %s",
			      row[i].path, url);
}

Test(registry_links, a_mark_is_of_one_file_of_one_registry)
{
	struct registry other = pypi;
	char path[2048], wrong[2048], url[2048];

	cr_assert(mapped(
		&pypi, "../../packages/6/six-1.16.0+a-py3-none-any.whl#sha256=00", path));
	cr_assert(upstream(&pypi, path, url));
	cr_expect_str_eq(
		url,
		"https://host.example/pypi/packages/6/six-1.16.0+a-py3-none-any.whl");
	/* as pip writes it, and what lies beside it */
	cr_assert(str_fmt(wrong, sizeof(wrong), "%.*s%%2B%s.metadata",
			  (int)strcspn(path, "+"), path, strchr(path, '+') + 1) == 0);
	cr_expect(upstream(&pypi, wrong, url), "%s", wrong);
	cr_expect(str_ends(url, "/six-1.16.0%2Ba-py3-none-any.whl.metadata"));

	cr_assert(str_fmt(wrong, sizeof(wrong), "%.35s/pypi/packages/6/six-1.16.0.tar.gz",
			  path) == 0);
	cr_expect_not(upstream(&pypi, wrong, url), "another file");
	other.url = other_url;
	cr_expect_not(upstream(&other, path, url), "another registry");
	other = pypi;
	other.links_key[31] = 1;
	cr_expect_not(upstream(&other, path, url), "another key");
	path[3] = path[3] == 'f' ? '0' : 'f';
	cr_expect_not(upstream(&pypi, path, url), "another mark");
	/* an index may name what is no file: it is none then, either */
	cr_assert(mapped(&pypi, "/api/v4/user", path));
	cr_expect_not(upstream(&pypi, path, url));
}

Test(registry_links, crates_are_where_dl_says)
{
	static const struct {
		const char *dl, *of_prefix, *right, *wrong;
	} row[] = {
		{"/dl", "/dl", "/dl/tiny/1.0.0/download", "/dl/x/tiny/1.0.0/download"},
		{"https://host.example/api/v1/crates", "/api/v1/crates",
		 "/api/v1/crates/tiny/1.0.0/download", "/api/v1/tiny/1.0.0/download"},
		{"/c/{prefix}/{crate}-{version}.crate", "/c", "/c/ti/ny/tiny-1.0.0.crate",
		 "/d/ti/ny/tiny-1.0.0.crate"},
		{"/c/all-{crate}/{version}/{sha256-checksum}/download", "/c",
		 "/c/all-tiny/1.0.0/00/download", "/cc/all-tiny/1.0.0/00/download"},
	};
	char path[2048], asked[2048], url[2048];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cr_assert(mapped(&cargo, row[i].dl, path), "%s", row[i].dl);
		cr_assert(str_starts(path + 35, row[i].of_prefix), "%s", path);
		cr_assert(str_fmt(asked, sizeof(asked), "%.35s%s", path, row[i].right) ==
			  0);
		cr_expect(upstream(&cargo, asked, url), "%s", asked);
		cr_expect(str_ends(url, row[i].right), "%s", url);
		cr_assert(str_fmt(asked, sizeof(asked), "%.35s%s", path, row[i].wrong) ==
			  0);
		cr_expect_not(upstream(&cargo, asked, url), "%s", asked);
	}
}

Test(registry_links, a_dl_that_names_no_place_is_none)
{
	static const char *const none[] = {
		"/{crate}/{version}/download",
		"/x-{crate}.crate",
		"/",
		"/dl#x",
		"/dl/../api",
		"/dl/{crate}/..",
		"/dl/./x",
		"/dl/{user}/{crate}.crate",
		"/dl/{crate",
		"/dl/crate}",
		"https://files.example/c#x",
		"https://files.example/{word}/x",
		"https://elsewhere.example/dl",
	};
	char path[2048];

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		cr_expect_not(mapped(&cargo, none[i], path), "%s -> %s", none[i], path);
	cr_expect(mapped(&cargo, "https://files.example/c/{crate}.crate", path));
	cr_expect_str_eq(path, "~1/c/{crate}.crate");
}

/* codex.yaml may name the registry's own host among them: its key goes along by an index's word
 * alone. */
Test(registry_links, a_file_host_has_no_key)
{
	char path[2048];

	cr_expect(registry_is_elsewhere("~1/p/six.whl"));
	cr_expect_not(registry_is_elsewhere("~0/x/six.whl"));
	cr_expect_not(registry_is_elsewhere("simple/six/"));
	cr_assert(mapped(&pypi, "https://host.example/p/six.whl", path));
	cr_expect(str_starts(path, "~0/"), "%s", path);
}

Test(registry_links, a_key_is_of_its_master_and_no_tombs_secret)
{
	uint8_t a[SHA256_SIZE], again[SHA256_SIZE], b[SHA256_SIZE];

	registry_links_key("master", a);
	registry_links_key("master", again);
	registry_links_key("mastes", b);
	cr_expect_eq(memcmp(a, again, sizeof(a)), 0, "it outlives a restart");
	cr_expect_neq(memcmp(a, b, sizeof(a)), 0);
}

Test(registry_links, a_reader_sees_a_path_without_its_mark)
{
	static const char *const row[][2] = {
		{"~0/" NO_MARK "/p/six.whl", "~0/p/six.whl"},
		{"~1/" NO_MARK "/p/six.whl", "~1/" NO_MARK "/p/six.whl"},
		{"~0/p/six.whl", "~0/p/six.whl"},
		{"simple/" NO_MARK "/", "simple/" NO_MARK "/"},
		{"~0/" NO_MARK, "~0/" NO_MARK},
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cleanup_buf struct buf out = {.max = 256};

		registry_unmarked(row[i][0], strlen(row[i][0]), &out);
		cr_expect_str_eq(buf_str(&out), row[i][1]);
	}
}
