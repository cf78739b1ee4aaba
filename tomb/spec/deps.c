/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See deps.h.
 */
#include "tomb/spec/deps.h"

#include "common/str.h"

#include <string.h>

/*
 * pip, which builds nothing and clones nothing: "wheels only" does not hold for what a wheel
 * requires by a URL, whose archive pip would unpack and ask for its metadata by running it.
 * Where a pip has other insides there is none of this, and nothing is fetched.
 */
#define PIP_OF_WHEELS                                                                    \
	"import sys\n"                                                                   \
	"from pip._internal.cli.main import main\n"                                      \
	"from pip._internal.distributions.sdist import SourceDistribution\n"             \
	"from pip._internal.exceptions import InstallationError\n"                       \
	"from pip._internal.operations import prepare\n"                                 \
	"def refuse(*args, **kwargs):\n"                                                 \
	"    raise InstallationError(\"a package that is no wheel of the registry\")\n"  \
	"SourceDistribution.prepare_distribution_metadata\n"                             \
	"SourceDistribution.prepare_distribution_metadata = refuse\n"                    \
	"prepare.unpack_vcs_link\n"                                                      \
	"prepare.unpack_vcs_link = refuse\n"                                             \
	"sys.exit(main(sys.argv[1:]))\n"

/* $1: list, lock or none; behind it npm's packages. Nothing of the job's is in the text, nor
 * where it runs: DEPS_DIR, which holds what deps_*() wrote. -I: modules are not looked for
 * beside requirements.txt, nor where a variable says. */
static const char fetch[] =
	"set -eu\n"
	"kind=$1; shift\n"
	"if [ -s " DEPS_REQUIREMENTS " ]; then\n"
	"	python3 -I -c '" PIP_OF_WHEELS
	"' download --quiet --no-input --no-cache-dir "
	"--only-binary=:all: \\\n"
	"		--dest wheels -r " DEPS_REQUIREMENTS "\n"
	"fi\n"
	"case $kind in\n"
	"list) npm install --no-save --no-package-lock --ignore-scripts --loglevel=error "
	"\\\n"
	"	--cache npm -- \"$@\" ;;\n"
	"lock) npm ci --ignore-scripts --loglevel=error --cache npm ;;\n"
	"esac\n";
static const char install[] =
	"set -eu\n"
	"if [ -s " DEPS_DIR "/" DEPS_REQUIREMENTS " ]; then\n"
	"	python3 -I -m pip install --quiet --no-input --no-cache-dir --no-index "
	"\\\n"
	"		--disable-pip-version-check --only-binary=:all: "
	"--no-warn-script-location \\\n"
	"		--find-links " DEPS_DIR "/wheels --target " DEPS_DIR
	"/python \\\n"
	"		-r " DEPS_DIR "/" DEPS_REQUIREMENTS "\n"
	"fi\n"
	"case $1 in\n"
	"list | lock)\n"
	"	if [ -e node_modules ]; then\n"
	"		cp -a --remove-destination " DEPS_DIR
	"/node_modules/. node_modules/\n"
	"	elif [ -e " DEPS_DIR "/node_modules ]; then\n"
	"		mv " DEPS_DIR "/node_modules .\n"
	"	fi\n"
	"	npm rebuild --offline --foreground-scripts --loglevel=error \\\n"
	"		--cache " DEPS_DIR "/npm ;;\n"
	"esac\n"
	"rm -rf " DEPS_DIR "/npm " DEPS_DIR "/wheels " DEPS_DIR "/node_modules\n";

void deps_requirements(const struct deps *d, struct buf *out)
{
	for (size_t i = 0; i < d->n_pypi; i++) {
		buf_adds(out, d->pypi[i]);
		buf_addc(out, '\n');
	}
}

static void command(const struct deps *d, const char *script, struct buf *out)
{
	const char *const argv[] = {"/bin/sh", "-c", script, "deps",
				    d->npm_lock ? "lock"
				    : d->n_npm	? "list"
						: "none"};

	for (size_t i = 0; i < ARRAY_SIZE(argv); i++)
		buf_add(out, argv[i], strlen(argv[i]) + 1);
}

void deps_fetch_argv(const struct deps *d, struct buf *out)
{
	command(d, fetch, out);
	for (size_t i = 0; i < d->n_npm; i++)
		buf_add(out, d->npm[i], strlen(d->npm[i]) + 1);
}

void deps_install_argv(const struct deps *d, struct buf *out)
{
	command(d, install, out);
}
