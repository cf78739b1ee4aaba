#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A stdin that is streamed, as the vessel has it: who may feed and take, the window, ends, another vessel. The cases are in
# stdin.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/stdin.py
