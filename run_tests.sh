#!/usr/bin/env bash
# Set up Headway with its development tools, then run every check: format, lint, types, imports, tests.
# Arguments go to pytest instead of the whole suite: ./run_tests.sh tests/unit/plan
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh
setup torch,atlas,layoutmaster,nanochat,rdt,dev
setup_mindspore
bin=.venv/bin
if [ "$#" -eq 0 ]; then
  "$bin/ruff" format --check --quiet src tests bench
  "$bin/ruff" check --quiet src tests bench
  "$bin/mypy" --no-error-summary
  "$bin/lint-imports" --no-cache --verbose 2>&1 | tail -n 8
fi
exec "$bin/python" -m pytest "$@"
