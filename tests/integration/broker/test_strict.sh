#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stand-in that agents and SDKs are tried with (tests/support/python/strict/) refuses what a provider refuses: an id, a
# signature, a call, a result that is not what was given out, an unknown key, an empty text.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec python3 -B tests/integration/broker/strict.py
