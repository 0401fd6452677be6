"""Texts of the nanochat recipe."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "nanochat/why-footer": Text(
        en="it is incomplete: {size} bytes without the end that a parquet file has",
        zh="文件不完整：共 {size} 字节，缺少 parquet 的文件尾",
    ),
    "nanochat/why-columns": Text(
        en="it has no column text; its columns: {names:list}", zh="没有 text 列；现有的列：{names:list}"
    ),
    "nanochat/why-type": Text(en="its column text has type {kind}", zh="text 列的类型为 {kind}"),
    "nanochat/guide-torch": Text(en="PyTorch {version}, of {python}", zh="PyTorch {version}（{python}）"),
    "nanochat/guide-start": Text(
        en="dual-GPU training with {config}; log: {log}", zh="启动双卡分布式训练：{config}；日志：{log}"
    ),
    "nanochat/guide-config-fine": Text(
        en="config checked, the batch sizes divide evenly", zh="配置验证通过，批大小可以整除"
    ),
    "nanochat/guide-end": Text(en="training ended with exit code {code}", zh="训练结束，退出码 {code}"),
    "nanochat/guide-other-log": Text(
        en="there is no log {path}; showing the newest one in its folder",
        zh="没有日志 {path}；显示同一目录下最新的日志",
    ),
    "nanochat/heads": Text(
        en="at depth {depth}, a width of {width} cannot be divided into {heads} heads of even width",
        zh="深度 {depth} 的宽度 {width} 无法平分为 {heads} 个偶数宽的注意力头",
        en_hint="use a depth that divides evenly: {near:list}",
        zh_hint="改用可以整除的深度：{near:list}",
    ),
    "nanochat/kv-heads": Text(
        en="{heads} query heads cannot be shared evenly by {kv} key and value heads",
        zh="{heads} 个查询头无法平均共用 {kv} 个键值头",
        en_hint="set task.n_kv_head to one of {ways:list}",
        zh_hint="将 task.n_kv_head 设为以下之一：{ways:list}",
    ),
    "nanochat/bf16-fsdp": Text(
        en="task.wte_bf16=true cannot be used with parallel.strategy=fsdp: parameters that are sharded together must "
        "have the same type",
        zh="task.wte_bf16=true 不能与 parallel.strategy=fsdp 同用：一起分片的参数类型必须相同",
        en_hint=("leave out task.wte_bf16, or use replicas:\n  parallel.strategy=ddp"),
        zh_hint=("去掉 task.wte_bf16，或使用数据并行：\n  parallel.strategy=ddp"),
    ),
    "nanochat/no-shards": Text(
        en="there is no shard_*.parquet in {folder}",
        zh="{folder} 中没有 shard_*.parquet",
        en_hint=(
            "copy them there, set task.data_dir to the folder above base_data, or try the synthetic data:\n"
            "  task.synthetic=true"
        ),
        zh_hint=("把分片放到该处，或将 task.data_dir 设为 base_data 的上一级，或先用合成数据：\n  task.synthetic=true"),
    ),
    "nanochat/few-shards": Text(
        en="{folder} contains {have} shards, but at least 2 are needed: the last one is for validation, the others "
        "for training",
        zh="{folder} 中只有 {have} 个分片，至少需要 2 个：最后一个用于验证，其余用于训练",
        en_hint="copy at least one more shard_*.parquet into {folder}; files that end in .tmp do not count",
        zh_hint="再复制至少一个 shard_*.parquet 到 {folder}；以 .tmp 结尾的文件不算",
    ),
    "nanochat/only-synthetic": Text(
        en="{folder} contains the small synthetic shards, but this run needs real ones",
        zh="{folder} 中是小型合成分片，而本次训练要求真实数据",
        en_hint=(
            "set task.data_dir to a folder with real shards, or train on the synthetic ones:\n  task.synthetic=true"
        ),
        zh_hint=("将 task.data_dir 指向真实分片所在的目录；如果合成数据就够用：\n  task.synthetic=true"),
    ),
    "nanochat/bad-shard": Text(
        en="{file} is not a readable shard: {why:said}",
        zh="无法读取分片 {file}：{why:said}",
        en_hint="download {file} again; a shard is a parquet file with one text column named text",
        zh_hint="重新下载 {file}；分片应为 parquet 文件，且含一个名为 text 的文本列",
    ),
    "nanochat/too-few-tokens": Text(
        en="the {split} shards contain {tokens:,} tokens, but one sample needs {need:,}",
        zh="{split} 分片共有 {tokens:,} 个 token，而一个样本需要 {need:,} 个",
        en_hint="add shards, or lower task.max_seq_len below {tokens:,}",
        zh_hint="增加分片，或将 task.max_seq_len 降到 {tokens:,} 以下",
    ),
    "nanochat/not-prepared": Text(
        en="the shards in {folder} have not been tokenised for this run, or have changed since then",
        zh="{folder} 中的分片尚未为本次训练分词，或分词之后又有改动",
        en_hint="start the run with `headway train` or `headway resume`, which prepare the data first",
        zh_hint="用 `headway train` 或 `headway resume` 启动，它们会先准备数据",
    ),
    "nanochat/damaged": Text(
        en="{file} has {have:,} bytes, but its index says {want:,}",
        zh="{file} 有 {have:,} 字节，而索引记录为 {want:,} 字节",
        en_hint=("remove the folder; the next start creates it again:\n  rm -r {folder}"),
        zh_hint=("删除该目录；下次启动时会重新生成：\n  rm -r {folder}"),
    ),
    "nanochat/bad-index": Text(
        en="{file} cannot be read: {why:said}",
        zh="无法读取 {file}：{why:said}",
        en_hint=("remove the folder; the next start creates it again:\n  rm -r {folder}"),
        zh_hint=("删除该目录；下次启动时会重新生成：\n  rm -r {folder}"),
    ),
    "nanochat/cannot-write": Text(
        en="data cannot be prepared in {folder}: {why:said}",
        zh="无法在 {folder} 中准备数据：{why:said}",
        en_hint="set task.data_dir to a folder you can write to, with room for about {need}",
        zh_hint="将 task.data_dir 设为可写的目录，并预留约 {need} 的空间",
    ),
    "nanochat/missing-library": Text(
        en="preparing nanochat data needs the package {package}, but it is not installed",
        zh="准备 nanochat 数据需要软件包 {package}，但尚未安装",
        en_hint=("install it:\n  pip install 'headway[nanochat]'"),
        zh_hint=("安装它：\n  pip install 'headway[nanochat]'"),
    ),
    "nanochat/made-shards": Text(
        en="created {shards} synthetic shards ({size}) in {folder}",
        zh="已在 {folder} 中生成 {shards} 个合成分片（{size}）",
    ),
    "nanochat/training-tokenizer": Text(
        en="training a tokenizer with {vocab:,} tokens on {shards} shards",
        zh="正在用 {shards} 个分片训练分词器，词表大小 {vocab:,}",
    ),
    "nanochat/tokenising": Text(
        en="tokenising {shard} ({number} of {shards})", zh="正在分词 {shard}（第 {number} 个，共 {shards} 个）"
    ),
    "nanochat/prepared": Text(
        en="{train} training tokens and {val} validation tokens ready in {folder}",
        zh="数据就绪：训练 {train} 个 token、验证 {val} 个 token，位于 {folder}",
    ),
    "nanochat/ignored-tracker": Text(
        en="no tracker login is needed here: metrics are in the run directory, and `headway export` exports them",
        zh="这里不需要登录任何跟踪平台：指标保存在训练目录中，可用 headway export 导出",
    ),
    "nanochat/ignored-sample": Text(
        en="text is generated on request: headway predict RUN", zh="需要时再生成文本：headway predict RUN"
    ),
    "nanochat/ignored-core": Text(
        en="the CORE tasks are not evaluated during training; validation measures bits per byte (bpb)",
        zh="训练期间不评测 CORE 任务；验证指标为每字节比特数（bpb）",
    ),
    "nanochat/ignored-ratio": Text(
        en="train.steps sets the length of a run (presets use 20 tokens per parameter)",
        zh="训练长度由 train.steps 决定（各预设按每参数 20 个 token 设定）",
    ),
    "nanochat/ignored-resume": Text(
        en="a run resumes from its newest verified checkpoint: headway resume RUN",
        zh="训练会从通过校验的最新检查点继续：headway resume RUN",
    ),
    "nanochat/ignored-device": Text(en="parallel.gpus chooses the devices", zh="设备由 parallel.gpus 决定"),
    "nanochat/guide-usual": Text(
        en="no config was given: using the default {config}; available: {known:list}",
        zh="没有指定配置文件，使用默认的 {config}；可选：{known:list}",
    ),
    "nanochat/bad-tokenizer": Text(
        en="{file} is not a tokenizer of nanochat: {why:said}",
        zh="{file} 不是 nanochat 的分词器：{why:said}",
        en_hint="set task.tokenizer_file to the tokenizer.pkl that nanochat's tok_train wrote",
        zh_hint="将 task.tokenizer_file 设为 nanochat 的 tok_train 写出的 tokenizer.pkl",
    ),
    "nanochat/tokenizer-size": Text(
        en="the tokenizer in {file} has {have:,} tokens, but task.vocab_size is {want:,}",
        zh="{file} 中的分词器有 {have:,} 个 token，而 task.vocab_size 为 {want:,}",
        en_hint="set task.vocab_size={have}",
        zh_hint="设置 task.vocab_size={have}",
    ),
    "nanochat/ignored-warmup": Text(
        en="the published schedule has no warm-up; lr.warmup_steps adds one",
        zh="原版没有学习率预热；需要时设置 lr.warmup_steps",
    ),
    "nanochat/guide-samples": Text(
        en="the same number of samples per step, each of them shorter", zh="每步样本数不变，每个样本更短"
    ),
    "nanochat/guide-divides": Text(
        en="{each:,} × {length:,} × {ranks} × {turns} = {total:,} tokens per step: the batch size divides evenly",
        zh="{each:,} × {length:,} × {ranks} × {turns} = {total:,} 个 token / 步：批大小可以整除",
    ),
    "nanochat/advice-memory": Text(
        en="lower device_batch_size (now {per_device})\nlower total_batch_size (now {total})\n"
        "turn compilation off: train.compile=false (the guide's TORCH_COMPILE=0)",
        zh="减小 device_batch_size（当前 {per_device}）\n减小 total_batch_size（当前 {total}）\n"
        "关闭编译优化：train.compile=false（即指南中的 TORCH_COMPILE=0）",
    ),
    "nanochat/advice-wandb": Text(
        en="nothing here logs in to wandb, as if use_dummy_wandb = True were always set\n"
        "for your own scripts: export WANDB_MODE=disabled",
        zh="这里不会登录 wandb，相当于始终 use_dummy_wandb = True\n自己的脚本可设置：export WANDB_MODE=disabled",
    ),
    "nanochat/advice-libuv": Text(
        en="use the old store: export USE_LIBUV=0\nand: export TORCHELASTIC_USE_AGENT_STORE=0",
        zh="改用旧的 store 服务：export USE_LIBUV=0\n并且：export TORCHELASTIC_USE_AGENT_STORE=0",
    ),
    "nanochat/help-train-dual-gpu": Text(
        en="usage: ./train_dual_gpu.sh [CONFIG] [--resume=latest|RUN|FILE] [--key=value …]\n"
        "Checks GPUs, port and config, then trains on two devices; log in logs/, weights in base_checkpoints/\n"
        "  CONFIG         configs/dual_gpu/conservative.py, balanced.py (default) or aggressive.py",
        zh="用法：./train_dual_gpu.sh [配置文件] [--resume=latest|RUN|FILE] [--key=value …]\n"
        "先检查 GPU、端口和配置，再用两个设备训练；日志在 logs/，权重在 base_checkpoints/\n"
        "  配置文件       configs/dual_gpu/conservative.py、balanced.py（默认）或 aggressive.py",
    ),
    "nanochat/help-train-dual-gpu-enhanced": Text(
        en="usage: ./train_dual_gpu_enhanced.sh [--config=FILE] [--device_batch_size=N] [--total_batch_size=TOKENS] "
        "[--num_iterations=N] [--eval_every=N] [--key=value …]\n"
        "Checks GPUs, port and config, then trains on two devices; log in logs/, weights in base_checkpoints/\n"
        "  --config       default: configs/dual_gpu/balanced.py",
        zh=(
            "用法：./train_dual_gpu_enhanced.sh [--config=文件] [--device_batch_size=N] [--total_batch_size=TOKENS] "
            "[--num_iterations=N] [--eval_every=N] [--key=value …]\n"
            "先检查 GPU、端口和配置，再用两个设备训练；日志在 logs/，权重在 base_checkpoints/\n"
            "  --config       默认为 configs/dual_gpu/balanced.py"
        ),
    ),
    "nanochat/help-monitor-training": Text(
        en="usage: ./monitor_training.sh [--interval=SECONDS] [--log=FILE] [--once]\n"
        "Shows the newest run (progress, loss, time left, checkpoints, best), CPU, memory, disk, GPUs and the end of "
        "the log\n"
        "  --interval     seconds between two updates (5)\n"
        "  --log          show the end of this log; if it does not exist, of the newest one",
        zh=(
            "用法：./monitor_training.sh [--interval=秒] [--log=文件] [--once]\n"
            "显示最新一次训练（进度、损失、剩余时间、检查点、最佳结果），以及 CPU、内存、磁盘、GPU 和日志末尾\n"
            "  --interval     刷新间隔，默认 5 秒\n"
            "  --log          显示该日志的末尾；文件不存在时显示最新的日志"
        ),
    ),
}

KEYS: dict[str, str] = {
    "task.depth": "模型的层数；宽度、头数和参数量由它决定。",
    "task.aspect": "每层对应的宽度：模型宽度为 depth * aspect。",
    "task.head_dim": "注意力头的最大宽度；头数为模型宽度除以它，向上取整。",
    "task.n_kv_head": "键值头的个数，由各组查询头共用；不设则与查询头一样多。",
    "task.max_seq_len": "一个样本的 token 数。",
    "task.vocab_size": "分词器的词表大小，含 9 个特殊 token。",
    "task.rope_base": "旋转位置编码（RoPE）的底数。",
    "task.softcap": "用 tanh 把 logits 压到正负该值之间。",
    "task.loss_chunk": "同一时刻最多保留多少个 token 的 fp32 logits；更长的批次分段，反向传播时重新计算；0：不分段。",
    "task.embedding_lr": "token 嵌入在宽度 768 时的 AdamW 学习率；随宽度的平方根下降。",
    "task.unembedding_lr": "输出矩阵在宽度 768 时的 AdamW 学习率；随宽度的平方根下降。",
    "task.matrix_lr": "各层内部矩阵的 Muon 学习率。",
    "task.wte_bf16": "与原版一样用 bf16 存放 token 嵌入；每个权重省 2 字节，但会丢失微小的更新。",
    "task.data_dir": "存放 base_data/shard_00000.parquet 等分片的目录；由它们生成的文件放在旁边。",
    "task.synthetic": "data_dir 中没有分片时，生成小型合成分片，而不是停止。",
    "task.tokenizer_chars": "用训练分片中多少个字符来训练分词器。",
    "task.tokenizer_file": "nanochat 的 tokenizer.pkl，按原样使用；不设则用分片训练分词器。",
    "task.eval_tokens": "一次验证的 token 数，从最后一个分片的开头算起；不设则用整个分片。",
}
"""What the keys of the recipe's own section are, in Chinese; the English is the string below each field."""
