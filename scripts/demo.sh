#!/usr/bin/env bash
# The main job on real input: SQLite, compiled by spillcc without a change, with more data than its memory
# budget.  scripts/demo.sh [BUILD_FOLDER] [--budget SIZE_IN_MIB] [--rows N] [--first-look]
set -euo pipefail
exec python3 -B "$(dirname "$0")/demo.py" "$@"
