#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# A job is contained by a person: what is refused, its steps one by one, what is refused afterwards, and a vessel that is
# killed within and between the steps. The cases are in contain.py, over a tomb of SQL.
set -euo pipefail
cd "$(dirname "$0")/../../.."
tests/support/rig tests/integration/queue/contain.py
