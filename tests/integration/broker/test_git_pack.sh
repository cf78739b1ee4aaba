#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The gate's reader of packs beside git itself: packs that git made are taken object by object as git names
# them, with either kind of delta; thin, broken, swollen and deep ones are refused.
set -euo pipefail
cd "$(dirname "$0")/../../.."
read=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}/tests/support/git/pack_read
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
dir=$(mktemp -d /tmp/packs-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export HOME=$dir GIT_CONFIG_NOSYSTEM=1
exec python3 -B tests/integration/broker/git_pack.py "$read" "$dir"
