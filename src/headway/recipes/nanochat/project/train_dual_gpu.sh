#!/usr/bin/env bash
# ./train_dual_gpu.sh configs/dual_gpu/conservative.py [--key=value …]
exec "@PYTHON@" -P -m headway guide nanochat train_dual_gpu --project="$(dirname "$(readlink -f "$0")")" "$@"
