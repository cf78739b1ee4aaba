#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# What the vessel keeps, when the disk changes it: output is compared with its digests, a blob is healed by the same
# bytes. The cases are in stored.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/stored.py
