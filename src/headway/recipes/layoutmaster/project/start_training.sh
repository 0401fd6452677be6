#!/usr/bin/env bash
# ./start_training.sh [--config FILE] [--full-size] [key=value …]
exec "@PYTHON@" -P -m headway guide layoutmaster start_training --project="$(dirname "$(readlink -f "$0")")" "$@"
