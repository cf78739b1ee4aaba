/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/spec/deps.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(deps_files, .timeout = 10);

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define H1 "h1:FBNaj/YL2N44X3irE/g7I14McFW3lm7eQvt69NygwKQ="

static struct buf all;

static void put(const char *name, const char *data, size_t len, void *arg UNUSED)
{
	buf_addf(&all, "== %s\n", name);
	buf_add(&all, data, len);
}

/* Of the spec that has them. */
static struct deps deps_of(const char *deps)
{
	cleanup_free char *text = xasprintf("{\"deps\":%s}", deps);
	cleanup_json struct json *j = NULL;
	struct deps ret = {.n_pypi = 0};
	struct err err = ERR_INIT;

	cr_assert(json_parse(text, strlen(text), JSON_DEPTH_DEFAULT, &j, &err) == 0 &&
			  deps_read(j, NULL, &ret, &err) == 0,
		  "%s", err.msg);
	return ret;
}

static const char *files(const char *deps)
{
	struct deps d = deps_of(deps);

	buf_done(&all);
	buf_init(&all, 65536);
	deps_files(&d, put, NULL);
	deps_done(&d);
	return buf_str(&all);
}

Test(deps_files, crates_each_with_a_name_of_its_own)
{
	const char *got = files("{\"cargo\":[\"tiny\",\"serde[derive,rc]@1.0\","
				"\"old[]@=0.9.15 --hash=sha256:" HEX64
				"\",\"old@1.0.0-rc.1 --hash=sha256:" HEX64 "\"]}");
	static const char *const want[] = {
		"\nd0 = { package = \"tiny\", version = \"*\" }\n",
		"\nd1 = { package = \"serde\", version = \"1.0\", "
		"features = [\"derive\",\"rc\",] }\n",
		"\nd2 = { package = \"old\", version = \"=0.9.15\", "
		"default-features = false }\n",
		"\nd3 = { package = \"old\", version = \"=1.0.0-rc.1\" }\n",
		"== Cargo.lock\nversion = 3\n\n[[package]]\nname = \"old\"\n"
		"version = \"0.9.15\"\n",
		"version = \"1.0.0-rc.1\"\nsource = "
		"\"registry+https://github.com/rust-lang/"
		"crates.io-index\"\nchecksum = \"" HEX64 "\"\n",
		"== .lychgate-cargo/config.toml\n[source.crates-io]\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect(strstr(got, want[i]), "no %s in %s", want[i], got);
	cr_expect_not(strstr(got, "go.mod"));
}

Test(deps_files, modules_and_what_they_require_unless_all_have_their_hash)
{
	const char *got = files("{\"go\":[\"example.org/Tiny@v1.0.0\","
				"\"example.org/Tiny@v1.0.0/go.mod " H1 "\"]}");

	cr_expect(strstr(got,
			 "\n\ngo 1.16\n\nrequire (\n\texample.org/Tiny v1.0.0\n)\n== "
			 "go.sum\nexample.org/Tiny v1.0.0/go.mod " H1 "\n"),
		  "%s", got);
	got = files("{\"go\":[\"example.org/Tiny@v1.0.0 " H1
		    "\",\"example.org/x@v0.1.0/go.mod " H1 "\"]}");
	cr_expect(strstr(got,
			 "\n\ngo 1.17\n\nrequire (\n\texample.org/Tiny v1.0.0\n)\n== "
			 "go.sum\nexample.org/Tiny v1.0.0 " H1
			 "\nexample.org/x v0.1.0/go.mod " H1 "\n"),
		  "%s", got);
	cr_expect_not(strstr(got, "Cargo"));
}

/* No checksum is passed over, no version control or other go is run. */
Test(deps_files, how_modules_are_fetched)
{
	static const char *const want[] = {" GOSUMDB=sum.golang.org ",
					   " GONOSUMDB= ", " GOVCS='*:off' ",
					   " GOTOOLCHAIN=local ", " GOENV=off "};
	struct deps d = deps_of("{\"go\":[\"example.org/Tiny@v1.0.0\"]}");

	buf_done(&all);
	buf_init(&all, 16384);
	deps_fetch_argv(&d, &all);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect(memmem(all.data, all.len, want[i], strlen(want[i])), "%s",
			  want[i]);
	deps_done(&d);
}

static void put_env(const char *name, const char *value, void *arg UNUSED)
{
	buf_addf(&all, "%s=%s|", name, value);
}

static const char *env(const struct deps *d, enum egress_mode egress)
{
	buf_done(&all);
	buf_init(&all, 4096);
	deps_env(d, egress, put_env, NULL);
	return buf_str(&all);
}

/* The broker's variables are not said twice. */
Test(deps_files, the_variables_of_a_job)
{
	struct deps d = deps_of("{\"cargo\":[\"tiny\"],"
				"\"go\":[\"example.org/Tiny@v1.0.0\"]}");

	cr_expect_str_eq(env(&d, EGRESS_REGISTRY), "GOMODCACHE=/work/.lychgate-deps/go|");
	cr_expect_str_eq(env(&d, EGRESS_BROKERED),
			 "CARGO_HOME=/work/.lychgate-cargo|CARGO_NET_OFFLINE=true|"
			 "GOMODCACHE=/work/.lychgate-deps/go|");
	cr_expect_str_eq(env(&d, EGRESS_NONE),
			 "CARGO_HOME=/work/.lychgate-cargo|CARGO_NET_OFFLINE=true|"
			 "GOMODCACHE=/work/.lychgate-deps/go|GOPROXY=off|GOSUMDB=off|"
			 "GOFLAGS=-mod=mod|GOTOOLCHAIN=local|");
	deps_done(&d);
}
