#!/usr/bin/env bash
# ./monitor_training.sh [--interval=3] [--log=logs/train_dual_gpu_YYYYMMDD_HHMMSS.log] [--once]
exec "@PYTHON@" -P -m headway guide nanochat monitor_training --project="$(dirname "$(readlink -f "$0")")" "$@"
