/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/npm_lock.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(npm_lock, .timeout = 10);

#define CORP "https://npm.example.org/repo"
#define SHA512                                                                           \
	"sha512-"                                                                        \
	"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
	"AAA"                                                                            \
	"AAAAA=="
#define PIN(more) "{'version':'1.0.0','integrity':'" SHA512 "'" more "}"
#define LOCK(place, pin)                                                                 \
	"{'lockfileVersion':3,'packages':{'':{'dependencies':{'a':'^1.0.0'}"             \
	"},"                                                                             \
	"'" place "':" pin "}}"

/* JSON whose quotes are apostrophes. */
static char *quoted(const char *s)
{
	char *ret = xstrdup(s);

	for (char *c = ret; *c; c++)
		if (*c == '\'')
			*c = '"';
	return ret;
}

static int write_lock(const char *text, const char *registry, struct buf *lock,
		      struct buf *package, struct err *err)
{
	cleanup_free char *json = quoted(text);
	cleanup_json struct json *j = NULL;

	cr_assert_eq(json_parse(json, strlen(json), NPM_LOCK_DEPTH_MAX, &j, err), 0,
		     "%s: %s", text, err->msg);
	return npm_lock_write(j, registry, lock, package, err);
}

static const char *const refused[] = {
	"{}",
	"{'lockfileVersion':1,'packages':{'':{}}}",
	"{'lockfileVersion':3,'packages':[]}",
	"{'lockfileVersion':3,'packages':{'node_modules/a':" PIN("") "}}",
	"{'lockfileVersion':3,'packages':{'':{'workspaces':['a']}}}",
	"{'lockfileVersion':3,'packages':{'':{'dependencies':{'a':'file:../"
	"a'}}}}",
	"{'lockfileVersion':3,'packages':{'':{'dependencies':{'../a':'1'}}}}",
	"{'lockfileVersion':3,'packages':{'':7}}",
	LOCK("packages/a", PIN("")),
	LOCK("node_modules/", PIN("")),
	LOCK("node_modules/..", PIN("")),
	LOCK("node_modules/.bin", PIN("")),
	LOCK("node_modules/@/a", PIN("")),
	LOCK("node_modules/@b", PIN("")),
	LOCK("node_modules/a/b", PIN("")),
	LOCK("node_modules/a/node_modules/../b", PIN("")),
	LOCK("../node_modules/a", PIN("")),
	LOCK("node_modules/a", "7"),
	LOCK("node_modules/a", "{'link':true,'resolved':'packages/a'}"),
	LOCK("node_modules/a", "{'version':'1.0.0'}"),
	LOCK("node_modules/a", "{'integrity':'" SHA512 "'}"),
	LOCK("node_modules/a", "{'version':'1.0.0','integrity':'md5-AAAA'}"),
	LOCK("node_modules/a", "{'version':'1.0.0','integrity':'sha512-'}"),
	LOCK("node_modules/a",
	     "{'version':'git+ssh://git@example.org/a.git#1','integrity':'" SHA512 "'}"),
	LOCK("node_modules/a",
	     PIN(",'resolved':'https://evil.example.org/a/-/a-1.0.0.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':'git+ssh://git@example.org/a.git#1'")),
	LOCK("node_modules/a", PIN(",'resolved':'file:a.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':7")),
	LOCK("node_modules/a",
	     PIN(",'resolved':'https://registry.npmjs.org.evil.org/a/-/a.tgz'")),
	LOCK("node_modules/a",
	     PIN(",'resolved':'https://registry.npmjs.org@evil.org/a/-/a.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':'http://registry.npmjs.org/a/-/a.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':'https://registry.npmjs.org/../a.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':'https://registry.npmjs.org//a.tgz'")),
	LOCK("node_modules/a",
	     PIN(",'resolved':'https://registry.npmjs.org/%2e%2e/a.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':'https://registry.npmjs.org/a.tgz?x=1'")),
	LOCK("node_modules/a", PIN(",'resolved':'https://registry.npmjs.org/a/'")),
	LOCK("node_modules/a",
	     PIN(",'resolved':'https://npm.example.org/other/a/-/a.tgz'")),
	LOCK("node_modules/a",
	     PIN(",'resolved':'https://npm.example.org/repository/a.tgz'")),
	LOCK("node_modules/a", PIN(",'resolved':'http://127.0.0.1:8787/fetch/a.tgz'")),
	LOCK("node_modules/a", PIN(",'name':'../b'")),
	LOCK("node_modules/a",
	     PIN(",'dependencies':{'b':'https://evil.example.org/b.tgz'}")),
	LOCK("node_modules/a", PIN(",'dependencies':{'b':'user/repo'}")),
	LOCK("node_modules/a", PIN(",'dependencies':{'b':'github:user/repo'}")),
	LOCK("node_modules/a", PIN(",'optionalDependencies':{'b':'npm:../b@1'}")),
	LOCK("node_modules/a", PIN(",'peerDependencies':{'b':'workspace:*'}")),
	LOCK("node_modules/a", PIN(",'dependencies':['b']")),
	LOCK("node_modules/a", PIN(",'peerDependenciesMeta':{'b':7}")),
	LOCK("node_modules/a", PIN(",'bin':{'../x':'a.js'}")),
	LOCK("node_modules/a", PIN(",'os':[7]")),
	LOCK("node_modules/a", PIN(",'dev':'yes'")),
};

Test(npm_lock, what_comes_from_another_place_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		cleanup_buf struct buf lock = {.max = 65536}, package = {.max = 65536};
		struct err err = ERR_INIT;

		cr_expect_lt(write_lock(refused[i], CORP, &lock, &package, &err), 0, "%s",
			     refused[i]);
		cr_expect(err_is_set(&err), "%s", refused[i]);
	}
}

/* What npm writes, what is made of it, and the package.json. */
static const char written[] =
	"{'name':'x','version':'9.9.9','lockfileVersion':2,'requires':true,'packages':{"
	"'':{'name':'x','license':'MIT','dependencies':{'a':'^1.0.0 || >=2 <3'},"
	"'devDependencies':{'@b/c':'npm:d@*'},'scripts':{'install':'evil'}},"
	"'node_modules/a':{'version':'1.0.0','integrity':'" SHA512 "',"
	"'resolved':'" CORP "/a/-/a-1.0.0.tgz','hasShrinkwrap':true,"
	"'bin':{'a':'a.js'},'engines':{'node':'>=1'}},"
	"'node_modules/@b/c':{'name':'d','version':'1.0.0','dev':true,"
	"'resolved':'http://127.0.0.1:8787/registry/npm/d/-/d.tgz',"
	"'integrity':'" SHA512 "'},"
	"'node_modules/a/node_modules/e':{'version':'1.0.0-rc.1+x','inBundle':true}},"
	"'dependencies':{'a':{'version':'file:../evil'}}}";
static const char want_lock[] =
	"{'lockfileVersion':3,'requires':true,'packages':{"
	"'':{'name':'job','version':'0.0.0','dependencies':{'a':'^1.0.0 || >=2 <3'},"
	"'devDependencies':{'@b/c':'npm:d@*'}},"
	"'node_modules/a':{'version':'1.0.0',"
	"'resolved':'https://registry.npmjs.org/a/-/a-1.0.0.tgz',"
	"'integrity':'" SHA512 "','bin':{'a':'a.js'}},"
	"'node_modules/@b/c':{'name':'d','version':'1.0.0',"
	"'resolved':'https://registry.npmjs.org/d/-/d.tgz',"
	"'integrity':'" SHA512 "','dev':true},"
	"'node_modules/a/node_modules/e':{'version':'1.0.0-rc.1+x','inBundle':true}}}";
static const char want_package[] =
	"{'name':'job','version':'0.0.0','dependencies':{'a':'^1.0.0 || >=2 <3'},"
	"'devDependencies':{'@b/c':'npm:d@*'},'private':true}";

static void expect_json(const struct buf *b, const char *want)
{
	cleanup_free char *text = quoted(want);

	cr_expect_str_eq(buf_str(b), text);
}

Test(npm_lock, what_leads_the_fetch_is_written_anew)
{
	cleanup_buf struct buf lock = {.max = 65536}, package = {.max = 65536};
	cleanup_buf struct buf again = {.max = 65536}, more = {.max = 65536};
	struct err err = ERR_INIT;

	cr_assert_eq(write_lock(written, CORP, &lock, &package, &err), 0, "%s", err.msg);
	expect_json(&lock, want_lock);
	expect_json(&package, want_package);
	/* what was written is read by who does not know the registry, and is the same */
	cr_assert_eq(write_lock(buf_str(&lock), NULL, &again, &more, &err), 0, "%s",
		     err.msg);
	expect_json(&again, want_lock);
}

Test(npm_lock, one_that_is_too_long_is_refused)
{
	cleanup_buf struct buf lock = {.max = 100}, package = {.max = 65536};
	struct err err = ERR_INIT;

	cr_expect_lt(
		write_lock(LOCK("node_modules/a", PIN("")), CORP, &lock, &package, &err),
		0);
	cr_expect_not_null(strstr(err.msg, "more than 100 bytes"), "%s", err.msg);
}
