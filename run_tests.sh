#!/usr/bin/env bash
# Set up Headway with its development tools, then run every check: format, lint, types, imports, documents, tests.
# Arguments go to pytest instead of the whole suite: ./run_tests.sh tests/unit/plan
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh
setup torch,atlas,layoutmaster,nanochat,rdt,dev
setup_mindspore
bin=.venv/bin
if [ "$#" -gt 0 ]; then
  exec "$bin/python" -m pytest "$@"
fi
"$bin/ruff" format --check --quiet src tests bench
"$bin/ruff" check --quiet src tests bench
"$bin/mypy" --no-error-summary
"$bin/lint-imports" --no-cache --verbose 2>&1 | tail -n 8
NO_MKDOCS_2_WARNING=1 "$bin/python" scripts/make_site.py
# Unit tests share the cores; those that start ranks and measure their time have them to themselves.
code=0
"$bin/python" -m pytest --numprocesses 2 tests/unit || code=$?
"$bin/python" -m pytest tests/procs tests/e2e || code=$?
exit "$code"
