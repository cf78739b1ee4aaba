/* SPDX-License-Identifier: Apache-2.0 */
/* A registry's index: the pieces must not matter, what comes out as a link is ours or
 * nothing, and what was taken for JSON is JSON to our other reader too. A path of a job: its URL
 * stays below the registry. First byte: which one. */
#include "common/json/json.h"
#include "vessel/broker/intents/registry.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define OUT_MAX_BYTES (1 << 22)
#define OURS "http://127.0.0.1:8787/registry/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char npm_url[] = "https://npm.example/m/",
	    pypi_url[] = "https://pypi.example/simple/",
	    cargo_url[] = "https://index.example/c/", go_url[] = "https://go.example/g/",
	    files_url[] = "https://files.example/";
static const struct registry registries[] = {
	{.kind = REGISTRY_NPM, .url = npm_url, .files = {files_url}, .n_files = 1},
	{.kind = REGISTRY_PYPI, .url = pypi_url, .files = {files_url}, .n_files = 1},
	{.kind = REGISTRY_CARGO, .url = cargo_url, .files = {files_url}, .n_files = 1},
	{.kind = REGISTRY_GO, .url = go_url, .files = {files_url}, .n_files = 1},
};
static const enum registry_form forms[][4] = {
	{REGISTRY_JSON, REGISTRY_JSON, REGISTRY_JSON, REGISTRY_JSON},
	{REGISTRY_HTML, REGISTRY_HTML, REGISTRY_HTML, REGISTRY_HTML},
	{REGISTRY_CRATE, REGISTRY_CARGO_CONFIG, REGISTRY_CRATE, REGISTRY_CARGO_CONFIG},
	{REGISTRY_GO_LIST, REGISTRY_GO_INFO, REGISTRY_GO_NOTE, REGISTRY_GO_INFO},
};

struct judge {
	struct registry_page page;
	size_t links;
};

static bool map(void *arg, const char *link, struct buf *out)
{
	struct judge *j = arg;
	size_t before = out->len;

	j->links++;
	if (!registry_map_link(&j->page, link, out))
		return false;
	assert(strncmp(buf_str(out) + before, OURS, strlen(OURS)) == 0);
	return true;
}

static int run(const struct registry *r, enum registry_form form, const uint8_t *data,
	       size_t size, size_t step, struct buf *out, size_t *ret_links)
{
	struct judge j = {.page = {r, r->url}};
	struct registry_rewrite *rw = registry_rewrite_new(
		form, form == REGISTRY_JSON ? "tarball" : NULL, map, &j);
	struct err err = ERR_INIT;
	int ret = 0;

	for (size_t i = 0; !ret && i < size; i += step)
		ret = registry_rewrite_feed(rw, data + i,
					    size - i < step ? size - i : step, out, &err);
	if (!ret)
		ret = registry_rewrite_end(rw, out, &err);
	registry_rewrite_free(rw);
	*ret_links = j.links;
	return ret;
}

static void try_path(const struct registry *r, const uint8_t *data, size_t size)
{
	char path[512], url[2048];
	struct err err = ERR_INIT;
	bool index;

	if (size >= sizeof(path) || memchr(data, 0, size))
		return;
	memcpy(path, data, size);
	path[size] = '\0';
	if (registry_upstream(r, path, url, sizeof(url), &index, &err) < 0)
		return;
	assert(strncmp(url, "https://", 8) == 0 && !strstr(url + 8, "//") &&
	       !strstr(url, "/../") && !strpbrk(url, "?# \\\n"));
}

/* json_scan refuses more: what is JSON, and is not for all readers the same. */
static void must_be_json(const uint8_t *data, size_t size)
{
	static const char *const more[] = {
		"NUL in a string", "lone surrogate", "number too long", "out of range",
		"duplicate key",   "too many",	     "too deeply",	"is required"};
	struct err err = ERR_INIT;

	if (json_scan(data, size, 32, &err) == 0)
		return;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (strstr(err.msg, more[i]))
			return;
	assert(!"what was rewritten is JSON");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, pieces;
	size_t n_whole, n_pieces;
	const struct registry *r;
	enum registry_form form;
	int a, b;

	if (size == 0)
		return 0;
	r = &registries[data[0] & 3];
	form = forms[data[0] & 3][data[0] >> 2 & 3];
	try_path(r, data + 1, size - 1);
	buf_init(&whole, OUT_MAX_BYTES);
	buf_init(&pieces, OUT_MAX_BYTES);
	a = run(r, form, data + 1, size - 1, size, &whole, &n_whole);
	b = run(r, form, data + 1, size - 1, 1, &pieces, &n_pieces);
	assert(a == b && n_whole == n_pieces);
	assert(whole.len == pieces.len &&
	       memcmp(buf_str(&whole), buf_str(&pieces), whole.len) == 0);
	if (a == 0 && form == REGISTRY_JSON)
		must_be_json(data + 1, size - 1);
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
