#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# tests/soak/followers.sh, with a thousand.
set -euo pipefail
FOLLOWERS=1000 exec "$(dirname "$0")/../../soak/followers.sh"
