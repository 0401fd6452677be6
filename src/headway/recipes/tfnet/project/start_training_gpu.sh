#!/usr/bin/env bash
# ./start_training_gpu.sh [--config FILE] [key=value ...]
exec "@PYTHON@" -P -m headway guide tfnet start_training_gpu --python="$(command -v python || true)" "$@"
