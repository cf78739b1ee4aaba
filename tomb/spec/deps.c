/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See deps.h.
 */
#include "tomb/spec/deps.h"

#include "common/proto/broker_proto.h"
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

/* cargo with the sparse protocol; it builds nothing, and so runs nothing. */
#define FETCH_CRATES                                                                     \
	"	command -v cargo >/dev/null || stop cargo: no cargo in " JOB_PATH "\n"   \
	"	case $(cargo --version) in\n"                                                  \
	"	'cargo 1.'?.* | 'cargo 1.'[0-5]?.* | 'cargo 1.6'[0-7].*)\n"                    \
	"		stop cargo: it needs cargo 1.68 or newer ;;\n"                                \
	"	esac\n"                                                                        \
	"	cargo fetch --quiet\n"

/*
 * go, with every module checked: by the hash that was named, or by the checksum database, which it
 * asks through the mirror. It runs no version control, and no other go, which a module may name
 * and which would be a download that is run.
 */
#define FETCH_MODULES                                                                    \
	"	command -v go >/dev/null || stop go: no go in " JOB_PATH "\n"            \
	"	GOMODCACHE=$PWD/go GOFLAGS='-mod=mod -modcacherw' GOENV=off \\\n"              \
	"	GO111MODULE=on GOWORK=off GOSUMDB=sum.golang.org GONOSUMDB= \\\n"              \
	"	GOPRIVATE= GONOPROXY= GOVCS='*:off' GOTOOLCHAIN=local \\\n"                    \
	"		go mod download || stop go: each module is checked, by the \\\n"              \
	"		hash that is named with it or by the checksum database\n"

/* $1: list, lock or none; behind it npm's packages. Nothing of the job's is in the text, nor
 * where it runs: DEPS_DIR, which holds what deps_files() wrote. -I: modules are not looked for
 * beside requirements.txt, nor where a variable says. */
static const char fetch[] =
	"set -eu\n"
	"stop() { echo \"lychgate: --dep $*\" >&2; exit 1; }\n"
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
	"esac\n"
	"if [ -e Cargo.toml ]; then\n" FETCH_CRATES "fi\n"
	"if [ -e go.mod ]; then\n" FETCH_MODULES "fi\n";
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
	"cd " DEPS_DIR "\n"
	"if [ -e Cargo.toml ]; then\n"
	"	rm -rf ../" BROKER_CARGO_HOME "\n"
	"	mv " BROKER_CARGO_HOME " ../\n"
	"fi\n"
	"rm -rf npm wheels node_modules Cargo.toml Cargo.lock go.mod go.sum\n";

void deps_env(const struct deps *d, enum egress_mode egress,
	      void (*put)(const char *name, const char *value, void *arg), void *arg)
{
	const bool mirror = egress == EGRESS_REGISTRY, alone = egress == EGRESS_NONE;
	const struct {
		bool wanted;
		const char *name, *value;
	} variables[] = {
		{d->n_pypi, "PYTHONPATH", DEPS_PYTHON},
		/* with a mirror it is the broker's, and the same */
		{d->n_cargo && !mirror, "CARGO_HOME", "/work/" BROKER_CARGO_HOME},
		{d->n_cargo && !mirror, "CARGO_NET_OFFLINE", "true"},
		{d->n_go, "GOMODCACHE", "/work/" DEPS_DIR "/go"},
		/* what is there was checked when it came */
		{d->n_go && alone, "GOPROXY", "off"},
		{d->n_go && alone, "GOSUMDB", "off"},
		{d->n_go && alone, "GOFLAGS", "-mod=mod"},
		{d->n_go && alone, "GOTOOLCHAIN", "local"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (variables[i].wanted)
			put(variables[i].name, variables[i].value, arg);
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
