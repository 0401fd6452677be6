#!/usr/bin/env bash
# ./start_training_gpu.sh [--config FILE] [key=value ...]
exec "@PYTHON@" -P -m headway guide tfnet start_training_gpu --project="$(dirname "$(readlink -f "$0")")" --python="$(command -v python || true)" "$@"
