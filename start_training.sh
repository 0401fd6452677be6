#!/usr/bin/env bash
# Set up Headway in .venv, then `headway train` with the arguments given here.
#   ./start_training.sh                          the default recipe on built-in data
#   ./start_training.sh nanochat depth=6 gpus=2  any recipe, file and values
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh
setup torch,layoutmaster,nanochat
exec .venv/bin/headway train "$@"
