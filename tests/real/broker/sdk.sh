# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The SDKs for the tests in here, as npm has them. Source it.

# Sets packages (a directory with node_modules) and node. SDK_PACKAGES: one that is there already. HOME is npm's.
sdk_packages() { # where, HOME
	packages=${SDK_PACKAGES:-}
	if [ -z "$packages" ]; then
		packages=$1
		mkdir "$packages"
		echo '{"name":"x","version":"1.0.0","private":true}' >"$packages/package.json"
		(cd "$packages" && HOME=$2 npm install --silent --no-audit --no-fund openai @anthropic-ai/sdk @google/genai node@22) ||
			return 1
	fi
	node=$(realpath "$packages/node_modules/node/bin/node") && "$node" --version
}
