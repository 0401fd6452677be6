#!/usr/bin/env bash
# ./train_dual_gpu_enhanced.sh --config=configs/dual_gpu/balanced.py [--key=value …]
exec "@PYTHON@" -P -m headway guide nanochat train_dual_gpu_enhanced --project="$(dirname "$(readlink -f "$0")")" "$@"
