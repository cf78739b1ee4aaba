/* SPDX-License-Identifier: Apache-2.0 */
#include "common/proto/deps.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(deps, .timeout = 10);

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(deps, what_could_come_from_elsewhere_is_no_requirement)
{
	static const char *const bad[] = {
		"",
		" six",
		"-r other.txt",
		"--index-url=https://evil/",
		"six --index-url https://evil/",
		"six @ https://evil/six.whl",
		"six@https://evil/six.whl",
		"git+https://evil/six",
		"./six",
		"/tmp/six.whl",
		"../six",
		"six;python_version>'3'",
		"six ; python_version>'3'",
		"six==1.0\n-r x",
		"six==1.0 -r x",
		"six==",
		"six==1.0,",
		"six=1.0",
		"six[",
		"six[]",
		"six[a",
		"six[a,]",
		"-e six",
		"six==1.0 --hash=md5:" HEX64,
		"six==1.0 --hash=sha256:abc",
		"six==1.0 --hash=sha256:" HEX64 " --pre",
		"six==1.0  --hash=sha256:" HEX64,
		"six\\",
		"six#egg=x",
		"${HOME}",
		"six==1.0 ",
		"_six",
		"six-",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_not(deps_is_requirement(bad[i]), "%s", bad[i]);
}

Test(deps, requirements_are_names_versions_and_hashes)
{
	static const char *const good[] = {
		"six",
		"six==1.16.0",
		"Six>=1.16,<2",
		"zope.interface~=5.0",
		"uvicorn[standard,a-b]>=0.20",
		"six[x]",
		"torch==2.0.1+cpu",
		"x!=1.*",
		"x===1.0",
		"six==1.16.0 --hash=sha256:" HEX64 " --hash=sha256:" HEX64,
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_expect(deps_is_requirement(good[i]), "%s", good[i]);
}

Test(deps, what_could_come_from_elsewhere_is_no_npm_package)
{
	static const char *const bad[] = {
		"",
		"-g",
		"--registry=https://evil/",
		"./x",
		"../x",
		"/x",
		"x.tgz/",
		"https://evil/x.tgz",
		"git+ssh://evil/x",
		"user/repo",
		"github:user/repo",
		"x@npm:y@1",
		"x@file:../y",
		"x@https://evil/y.tgz",
		"x@user/repo",
		"@scope",
		"@scope/",
		"@/x",
		"@a/b/c",
		"X",
		"x@",
		"x@^",
		"x@1 || 2",
		"x@1 -g",
		"x y",
		"x\ny",
		".x",
		"_x",
		"~x",
		"x@git://y",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_not(deps_is_npm(bad[i]), "%s", bad[i]);
}

Test(deps, npm_packages_are_names_and_versions)
{
	static const char *const good[] = {
		"left-pad", "left-pad@1.3.0", "@babel/core@^7.0.0", "x@~1.2", "x@>=1.2.3",
		"x@latest", "x@1.0.0-rc.1+b", "lodash.get",	    "@a/b",   "is-odd@3",
	};
	char longer[DEPS_TEXT_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_expect(deps_is_npm(good[i]), "%s", good[i]);
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	cr_expect_not(deps_is_npm(longer));
	cr_expect_not(deps_is_requirement(longer));
}
