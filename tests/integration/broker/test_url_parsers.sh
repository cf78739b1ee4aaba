#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What our URL grammar takes, two independent parsers read with the same host and port.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec python3 tests/integration/broker/url_parsers.py "${LYCH_BUILD:-build/release}/tests/support/url_read"
