#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# What removes jobs that ended long ago: `lych prune`, and retention in codex.yaml. The cases are in prune.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/prune.py
