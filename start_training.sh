#!/usr/bin/env bash
# Set up Headway in .venv, then `headway train` with the arguments given here.
#   ./start_training.sh                          the default recipe on built-in data
#   ./start_training.sh nanochat depth=6 gpus=2  any recipe, file and values
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh
setup torch,atlas,layoutmaster,nanochat,rdt
if [ "${1:-}" = tfnet ]; then
  case " $* " in
    *" task.framework=torch "* | *" env.python="*) ;;
    *)
      setup_mindspore
      set -- "$@" "env.python=$PWD/.venv-mindspore/bin/python"
      ;;
  esac
fi
exec .venv/bin/headway train "$@"
