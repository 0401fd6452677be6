#!/usr/bin/env bash
# bash train_single_task.sh [--key=value …]
# 单卡，一个 LIBERO 任务。-- 之后的参数来自命令行。
# One GPU, one LIBERO task. What follows -- is what you type.
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-1}"
exec "@PYTHON@" -P -m headway guide rdt train --project="$(dirname "$(readlink -f "$0")")" --num_processes=1 \
    --config_path=configs/base.yaml \
    --output_dir=checkpoints/single_task_scene10 \
    --train_batch_size=8 \
    --sample_batch_size=8 \
    --dataloader_num_workers=4 \
    --max_train_steps=20000 \
    --checkpointing_period=1000 \
    --sample_period=500 \
    --learning_rate=1e-4 \
    --mixed_precision=bf16 \
    --state_noise_snr=40 \
    --image_aug \
    -- "$@"
