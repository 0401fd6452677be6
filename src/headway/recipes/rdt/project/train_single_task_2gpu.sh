#!/usr/bin/env bash
# bash train_single_task_2gpu.sh [--key=value …]
# 双卡，一个 LIBERO 任务。--train_batch_size 是两张 GPU 的总和（16 即每卡 8）。-- 之后的参数来自命令行。
# Two GPUs, one LIBERO task. --train_batch_size is over both GPUs (16: 8 on each). What follows -- is what you type.
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0,1}"
exec "@PYTHON@" -P -m headway guide rdt train --project="$(dirname "$(readlink -f "$0")")" --num_processes=2 \
    --config_path=configs/base.yaml \
    --output_dir=checkpoints/single_task_scene10_2gpu \
    --train_batch_size=16 \
    --sample_batch_size=16 \
    --dataloader_num_workers=8 \
    --max_train_steps=20000 \
    --checkpointing_period=1000 \
    --sample_period=500 \
    --learning_rate=1e-4 \
    --mixed_precision=bf16 \
    --state_noise_snr=40 \
    --image_aug \
    -- "$@"
