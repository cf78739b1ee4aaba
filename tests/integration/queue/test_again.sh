#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A job that has ended, and a person: lych why says how, retry has it tried again, rm removes it; a contained one is
# evidence. The cases are in again.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/again.py
