#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The examples of each command's --help, as they are printed, typed one after the other by somebody who has installed Lychgate.
set -uo pipefail
exec bash "$(dirname "$0")/type_places.sh" help
