#!/usr/bin/env bash
# Set up Headway with its development tools, then run every check: format, lint, types, imports, documents, tests.
# ./run_tests.sh --fast leaves out documents and what takes long; other arguments go to pytest: ./run_tests.sh tests/unit/plan
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh
setup_programs &
programs=$!
setup torch,atlas,layoutmaster,nanochat,rdt,dev dev
setup_mindspore
wait "$programs"
bin=.venv/bin
is_fast=no
if [ "${1:-}" = --fast ]; then
  is_fast=yes
elif [ "$#" -gt 0 ]; then
  exec "$bin/python" -m pytest "$@"
fi
"$bin/ruff" format --check --quiet src tests bench
"$bin/ruff" check --quiet src tests bench
"$bin/mypy" --no-error-summary
"$bin/lint-imports" --no-cache --verbose 2>&1 | tail -n 8
# Hundreds of short-lived processes import Headway: without compiled files each would compile it anew.
unset PYTHONDONTWRITEBYTECODE
# Whole files share the cores, those that take longest first (tests/conftest.py); three for two cores, as many tests wait.
together=(--numprocesses 3 --dist loadfile --no-loadscope-reorder)
if [ "$is_fast" = yes ]; then
  exec "$bin/python" -m pytest "${together[@]}" -m "not slow and not alone" tests/unit
fi
NO_MKDOCS_2_WARNING=1 "$bin/python" scripts/make_site.py
code=0
if ! "$bin/python" -m pytest "${together[@]}" -m "not alone"; then
  echo "run_tests.sh: what failed beside others runs again alone; only what fails again counts"
  "$bin/python" -m pytest --last-failed --last-failed-no-failures none -m "not alone" || code=$?
fi
# What measures time has the cores to itself.
"$bin/python" -m pytest -m alone tests/procs tests/e2e || code=$?
exit "$code"
