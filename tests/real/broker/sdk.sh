# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The SDKs for the tests in here, as npm has them. Source it.

# Sets packages (a directory with node_modules) and node. SDK_PACKAGES: one that is there already. HOME is npm's.
sdk_packages() { # where, HOME, package...
	local where=$1 home=$2
	shift 2
	packages=${SDK_PACKAGES:-}
	if [ -z "$packages" ]; then
		packages=$where
		mkdir "$packages"
		echo '{"name":"x","version":"1.0.0","private":true}' >"$packages/package.json"
		(cd "$packages" && HOME=$home npm install --silent --no-audit --no-fund "$@" node@22) || return 1
	fi
	node=$(realpath "$packages/node_modules/node/bin/node") && "$node" --version
}
