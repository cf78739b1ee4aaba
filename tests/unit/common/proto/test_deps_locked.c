/* SPDX-License-Identifier: Apache-2.0 */
#include "common/proto/deps.h"

#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(deps_locked, .timeout = 10);

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SUM " --hash=sha256:" HEX64
#define H1 " h1:FBNaj/YL2N44X3irE/g7I14McFW3lm7eQvt69NygwKQ="

Test(deps_locked, what_could_come_from_elsewhere_is_no_crate)
{
	static const char *const bad[] = {
		"",
		" serde",
		"-Zx",
		"_serde",
		"1serde",
		"../serde",
		"/tmp/serde",
		"serde/x",
		"serde@https://evil/x",
		"serde@git+https://evil/x",
		"git+https://evil/serde",
		"https://evil/serde.crate",
		"serde@",
		"serde@^",
		"serde@1 || 2",
		"serde@1,2",
		"serde@*",
		"serde@latest",
		"serde@=v1",
		"serde@1\"",
		"serde\", git = \"https://evil/",
		"serde@1\", registry = \"x",
		"serde[",
		"serde[a",
		"serde[a,]",
		"serde[a\"]",
		"serde[dep:x]",
		"serde[../x]",
		"serde[a] @1",
		"serde\n[patch.crates-io]",
		"serde@1\nx",
		"serde" SUM,
		"serde@1" SUM,
		"serde@1.0" SUM,
		"serde@^1.0.0" SUM,
		"serde@>=1.0.0" SUM,
		"serde@1.0.0" SUM SUM,
		"serde@1.0.0 --hash=sha256:abc",
		"serde@1.0.0 --hash=md5:" HEX64,
		"serde@1.0.0" SUM " ",
		"a23456789012345678901234567890123456789012345678901234567890123456",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_not(deps_is_crate(bad[i]), "%s", bad[i]);
}

Test(deps_locked, crates_are_names_features_versions_and_a_digest)
{
	static const char *const good[] = {
		"serde",
		"Serde_json",
		"serde@1",
		"serde@1.0.210",
		"serde@=1.0.210",
		"x@~1.2",
		"x@>=1.2.3-rc.1+b",
		"serde[derive,a_b-c]@1",
		"serde[]",
		"x[]@=1.0.0-alpha.1+x" SUM,
		"x@1.0.0" SUM,
	};
	struct deps_crate c;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_expect(deps_is_crate(good[i]), "%s", good[i]);
	cr_assert(deps_read_crate("tiny[a,b]@=1.0.0" SUM, &c));
	cr_expect(c.name_len == 4 && memcmp(c.name, "tiny", 4) == 0);
	cr_expect(c.features_len == 3 && memcmp(c.features, "a,b", 3) == 0);
	cr_expect(c.version_len == 6 && memcmp(c.version, "=1.0.0", 6) == 0);
	cr_expect_str_eq(c.sha256, HEX64);
	cr_assert(deps_read_crate("tiny", &c));
	cr_expect(!c.features && !c.version && !c.sha256);
}

Test(deps_locked, what_could_come_from_elsewhere_is_no_module)
{
	static const char *const bad[] = {
		"",
		"fmt@v1.0.0",
		"example.org",
		"example.org/x",
		"example.org/x@",
		"example.org/x@latest",
		"example.org/x@main",
		"example.org/x@v1",
		"example.org/x@v1.0",
		"example.org/x@1.0.0",
		"example.org/x@v1.0.0/",
		"example.org/x@v1.0.0/go.mod",
		"example.org/x@v1.0.0-",
		"example.org/x@v1.0.0\nreplace",
		"example.org/x@v1.0.0 => ../y",
		"example.org/x@v1.0.0 // indirect",
		"example.org/../x@v1.0.0",
		"example.org/./x@v1.0.0",
		"example.org/.git/x@v1.0.0",
		"example.org/x./y@v1.0.0",
		"example.org//x@v1.0.0",
		"example.org/x/@v1.0.0",
		"/example.org/x@v1.0.0",
		"-example.org/x@v1.0.0",
		"https://example.org/x@v1.0.0",
		"example.org/!x@v1.0.0",
		"example.org/x y@v1.0.0",
		"example.org/x@v1.0.0 h1:short=",
		"example.org/x@v1.0.0 h2:FBNaj/YL2N44X3irE/g7I14McFW3lm7eQvt69NygwKQ=",
		"example.org/x@v1.0.0 " H1,
		"example.org/x@v1.0.0" H1 H1,
		"example.org/x@v1.0.0" H1 "\n",
		"example.org/x@v1.0.0/x" H1,
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_not(deps_is_module(bad[i]), "%s", bad[i]);
}

Test(deps_locked, modules_are_paths_versions_and_a_hash)
{
	static const char *const good[] = {
		"example.org/Tiny@v1.0.0",
		"gopkg.in/yaml.v3@v3.0.1",
		"example.org/a-b_c~d/v2@v2.0.0-20200102030405-abcdef012345",
		"example.org/x@v1.0.0+incompatible",
		"example.org/x@v1.0.0" H1,
		"example.org/x@v1.0.0/go.mod" H1,
	};
	struct deps_module m;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_expect(deps_is_module(good[i]), "%s", good[i]);
	cr_assert(deps_read_module("example.org/x@v1.0.0/go.mod" H1, &m));
	cr_expect(m.path_len == 13 && m.version_len == 6 && m.is_mod);
	cr_expect(strncmp(m.version, "v1.0.0", 6) == 0);
	cr_expect_str_eq(m.h1, H1 + 1);
	cr_assert(deps_read_module("example.org/x@v1.0.0", &m));
	cr_expect(!m.h1 && !m.is_mod);
}
