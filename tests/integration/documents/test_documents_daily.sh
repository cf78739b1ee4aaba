#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# What docs/ and the manuals show of each day, of models, rotation and restore, as typed by somebody who has installed Lychgate.
set -uo pipefail
exec bash "$(dirname "$0")/type_places.sh" config secrets daily
