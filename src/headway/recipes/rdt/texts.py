"""Texts of the RDT recipe."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "rdt/why-length": Text(en="{name}: not 128 numbers in {keys:list}", zh="{name}：{keys:list} 不是 128 个数"),
    "rdt/why-missing": Text(en="data/{name} does not contain {parts:list}", zh="data/{name} 中缺少 {parts:list}"),
    "rdt/heads": Text(
        en="a width of {width} cannot be divided evenly into {heads} heads",
        zh="宽度 {width} 无法平分为 {heads} 个注意力头",
        en_hint="set task.num_heads to one of {ways:list}",
        zh_hint="将 task.num_heads 设为以下之一：{ways:list}",
    ),
    "rdt/exec-horizon": Text(
        en="exec_horizon={asked} is more than the {chunk} actions of a chunk",
        zh="exec_horizon={asked} 超过了一个动作块的 {chunk} 个动作",
        en_hint=("at most:\n  exec_horizon={chunk}"),
        zh_hint=("最多为：\n  exec_horizon={chunk}"),
    ),
    "rdt/batch-meaning": Text(
        en="train_batch_size={given} has the guide's meaning: {given} over all {ranks} devices, {per_device} on "
        "each, {total} per step with gradient accumulation {accumulation}; the original main.py applies it to each "
        "device, which gives {other} per step",
        zh="train_batch_size={given} 按指南的含义解释：{ranks} 个设备合计 {given}，每个设备 {per_device}，梯度累积 "
        "{accumulation} 次，每步共 {total}；原版 main.py 把它当作每个设备的批大小，每步会是 {other}",
        en_hint=("for the meaning of main.py, use this instead of train_batch_size:\n  batch.per_device={given}"),
        zh_hint=("若要 main.py 的含义，用它代替 train_batch_size：\n  batch.per_device={given}"),
    ),
    "rdt/does-not-fit": Text(
        en="training needs about {need} on each GPU with batch.per_device={batch}, but the smallest has {have}",
        zh="batch.per_device={batch} 时每张 GPU 约需 {need}，而最小的一张只有 {have}",
        en_hint=(
            "shard it and take {fits} on each of {ways} GPUs (about {less} each; batch.accumulation makes up for "
            "a smaller batch), or take the smaller model:\n"
            "  parallel.strategy=fsdp\n"
            "  preset=rdt-170m"
        ),
        zh_hint=(
            "使用分片，{ways} 张 GPU 每张取 {fits}（每张约 {less}；批大小变小可用 batch.accumulation 补足），"
            "或用更小的模型：\n"
            "  parallel.strategy=fsdp\n"
            "  preset=rdt-170m"
        ),
    ),
    "rdt/guide-judges": Text(
        en="checking the guide's numbers on the guide's {cards} first (only planned, nothing is trained there):",
        zh="先按指南的 {cards} 检查指南中的数值（只做规划，不在其上训练）：",
    ),
    "rdt/guide-judged": Text(
        en="  batch size: {each} on each × {ranks} × {turns} = {total} per step",
        zh="  批大小：每卡 {each} × {ranks} × {turns} = 每步 {total}",
    ),
    "rdt/past-horizon": Text(
        en="max_steps={max_steps} × {factor} is {asked} environment steps, but the environment ends after {horizon}; "
        "episodes stop there",
        zh="max_steps={max_steps} × {factor} 为 {asked} 个环境步，但环境在 {horizon} 步后结束；回合到此为止",
        en_hint=(
            "count environment steps, at most {horizon}:\n  task.rollout.unit=steps task.rollout.max_steps={horizon}"
        ),
        zh_hint=("改为按环境步计数，最多 {horizon}：\n  task.rollout.unit=steps task.rollout.max_steps={horizon}"),
    ),
    "rdt/no-demos": Text(
        en="there is no <TASK>_demo.hdf5 in {folder}",
        zh="{folder} 中没有 <TASK>_demo.hdf5",
        en_hint=("copy LIBERO's files there, set task.data_dir, or try the synthetic data:\n  task.synthetic=true"),
        zh_hint=("把 LIBERO 的文件放到该处，或设置 task.data_dir，或先用合成数据：\n  task.synthetic=true"),
    ),
    "rdt/few-demos": Text(
        en="{file} contains {have} demonstrations, of which {kept} are held out for validation, so none is left for "
        "training",
        zh="{file} 中有 {have} 个示范，留作验证的有 {kept} 个，没有剩下可训练的",
        en_hint="add demonstrations; every task needs at least two",
        zh_hint="增加示范；每个任务至少需要两个",
    ),
    "rdt/too-short": Text(
        en="no chunk of {chunk} actions fits: the longest demonstration has {longest} steps, and task.tail=original "
        "does not pad",
        zh="放不下 {chunk} 个动作的动作块：最长的示范只有 {longest} 步，而 task.tail=original 不做填充",
        en_hint=("pad the end, or use shorter chunks:\n  task.tail=pad\n  task.action_chunk_size={longest}"),
        zh_hint=("补齐末尾，或使用更短的动作块：\n  task.tail=pad\n  task.action_chunk_size={longest}"),
    ),
    "rdt/held-out-too-short": Text(
        en="no chunk of {chunk} actions fits into a held-out demonstration: the longest has {longest} steps, and "
        "task.tail=original does not pad, so the model could not be validated",
        zh=(
            "留作验证的示范放不下 {chunk} 个动作的动作块：其中最长的只有 {longest} 步，而 task.tail=original 不做填充，"
            "因此无法验证模型"
        ),
        en_hint=(
            "hold out more demonstrations with a larger task.holdout (now {holdout}), pad the end, or use "
            "shorter chunks:\n"
            "  task.tail=pad\n"
            "  task.action_chunk_size={longest}"
        ),
        zh_hint=(
            "调大 task.holdout（现为 {holdout}）以留出更多示范，补齐末尾，或使用更短的动作块：\n"
            "  task.tail=pad\n"
            "  task.action_chunk_size={longest}"
        ),
    ),
    "rdt/too-many-steps": Text(
        en="task.sample.steps={steps} is too many for task.num_train_timesteps={levels}: the solver can take at most "
        "{most} steps",
        zh="task.sample.steps={steps} 对 task.num_train_timesteps={levels} 过多：求解器最多 {most} 步",
        en_hint=("5 is usual; at most:\n  task.sample.steps={most}"),
        zh_hint=("通常为 5；最多为：\n  task.sample.steps={most}"),
    ),
    "rdt/only-synthetic": Text(
        en="{folder} contains the scripted demonstrations, but this run needs real ones",
        zh="{folder} 中是脚本生成的示范，而本次训练要求真实数据",
        en_hint=(
            "set task.data_dir to a folder with LIBERO's files, or train on the synthetic ones:\n  task.synthetic=true"
        ),
        zh_hint=("将 task.data_dir 指向存放 LIBERO 文件的目录；如果合成数据就够用：\n  task.synthetic=true"),
    ),
    "rdt/bad-file": Text(
        en="{file} cannot be read correctly: {why:said}",
        zh="无法正常读取 {file}：{why:said}",
        en_hint="download {file} again, or move it out of the folder",
        zh_hint="重新下载 {file}，或把它移出该目录",
    ),
    "rdt/bad-index": Text(
        en="{file} cannot be read: {why:said}",
        zh="无法读取 {file}：{why:said}",
        en_hint=("remove the folder; the next start creates it again:\n  rm -r {folder}"),
        zh_hint=("删除该目录；下次启动时会重新生成：\n  rm -r {folder}"),
    ),
    "rdt/not-prepared": Text(
        en="the demonstrations in {folder} have not been indexed for this run, or have changed since then",
        zh="{folder} 中的示范尚未为本次训练建立索引，或之后又有改动",
        en_hint="start the run with `headway train` or `headway resume`, which prepare the data first",
        zh_hint="用 `headway train` 或 `headway resume` 启动，它们会先准备数据",
    ),
    "rdt/cannot-write": Text(
        en="data cannot be prepared in {folder}: {why:said}",
        zh="无法在 {folder} 中准备数据：{why:said}",
        en_hint="set task.data_dir to a folder you can write to, with room for about {need}",
        zh_hint="将 task.data_dir 设为可写的目录，并预留约 {need} 的空间",
    ),
    "rdt/missing-library": Text(
        en="this needs {package}, but it is not installed",
        zh="此处需要 {package}，但尚未安装",
        en_hint=("install it:\n  pip install {package}"),
        zh_hint=("安装它：\n  pip install {package}"),
    ),
    "rdt/no-statistics": Text(
        en="there are no statistics named {name}; available: {known:list}",
        zh="没有名为 {name} 的统计；已有的是：{known:list}",
        en_hint="set task.statistics to one of them, or put {name} into {folder}/dataset_stat.json",
        zh_hint="将 task.statistics 设为其中之一，或把 {name} 写入 {folder}/dataset_stat.json",
    ),
    "rdt/bad-statistics": Text(
        en="the statistics in {file} cannot be used: {why:said}",
        zh="{file} 中的统计无法使用：{why:said}",
        en_hint="a record needs state_mean and state_std with 128 numbers each; without the file they are computed",
        zh_hint="每条记录需要各含 128 个数的 state_mean 和 state_std；没有该文件时会自动计算",
    ),
    "rdt/no-encoder": Text(
        en="{key} is {folder}, but it contains no config.json",
        zh="{key} 为 {folder}，但其中没有 config.json",
        en_hint=("fetch the model into that folder, or use the built-in one:\n  {key}={built_in}"),
        zh_hint=("把模型下载到该目录，或使用内置的编码器：\n  {key}={built_in}"),
    ),
    "rdt/no-sentence": Text(
        en="{file} has no tokens for these sentences: {missing:list}",
        zh="{file} 中没有这些句子的 token：{missing:list}",
        en_hint="encode every instruction and the empty sentence: one tensor per sentence, named after it",
        zh_hint="为每条指令和空句子各编码一个张量，以句子本身为名",
    ),
    "rdt/sentence-size": Text(
        en="sentences have up to {length} tokens of width {width}; the model accepts {max_length} of width {max_width}",
        zh="句子最长 {length} 个 token、宽度 {width}；模型接受 {max_length} 个、宽度 {max_width}",
        en_hint="set task.tokenizer_max_length and task.lang_token_dim to the encoder's output",
        zh_hint="按编码器的输出设置 task.tokenizer_max_length 和 task.lang_token_dim",
    ),
    "rdt/picture-size": Text(
        en="the encoder turns an image into {patches} tokens of width {width}, but the model accepts {want} of width "
        "{want_width}",
        zh="编码器为每张图像给出 {patches} 个 token、宽度 {width}；模型接受 {want} 个、宽度 {want_width}",
        en_hint=("use the sizes of this encoder:\n  task.img_patches={patches} task.img_token_dim={width}"),
        zh_hint=("改用该编码器的尺寸：\n  task.img_patches={patches} task.img_token_dim={width}"),
    ),
    "rdt/no-pretrained": Text(
        en="there are no weights at {file}",
        zh="{file} 处没有权重",
        en_hint="set task.pretrained to a .safetensors, .bin or .pt file, or to a folder that contains one",
        zh_hint="将 task.pretrained 设为 .safetensors、.bin 或 .pt 文件，或含有其中之一的目录",
    ),
    "rdt/pretrained-misfit": Text(
        en="the weights in {file} do not match this model: {what}",
        zh="{file} 中的权重与该模型不符：{what}",
        en_hint="set task.hidden_size, task.depth and the other sizes to those of the weights",
        zh_hint="按权重设置 task.hidden_size、task.depth 等尺寸",
    ),
    "rdt/sample-budget": Text(
        en="sampling one chunk takes about {need}, but task.sample.memory_gib allows {have}",
        zh="生成一个动作块约需 {need}，而 task.sample.memory_gib 只允许 {have}",
        en_hint="raise task.sample.memory_gib",
        zh_hint="调大 task.sample.memory_gib",
    ),
    "rdt/no-world": Text(
        en="the scripted environment has only these tasks, and the data contains none of them: {tasks:list}",
        zh="脚本环境只有以下任务，而数据中一个也没有：{tasks:list}",
        en_hint=("measure the error on held-out demonstrations instead:\n  headway eval"),
        zh_hint=("改为在留出的示范上评测误差：\n  headway eval"),
    ),
    "rdt/making-demos": Text(
        en="creating scripted demonstrations of two tasks in {folder}", zh="正在 {folder} 中生成两个任务的脚本示范"
    ),
    "rdt/reading-demos": Text(
        en="reading {files} demonstration files ({size})", zh="正在读取 {files} 个示范文件（{size}）"
    ),
    "rdt/prepared": Text(
        en="{train} demonstrations for training, {held} held out for validation; index in {folder}",
        zh="{train} 个示范用于训练，{held} 个留作验证；索引位于 {folder}",
    ),
    "rdt/task-rate": Text(
        en="{solved} of {num} solved ({rate}, 95% confidence interval {low} to {high}): {task}",
        zh="成功 {solved}/{num}（{rate}，95% 置信区间 {low} 至 {high}）：{task}",
    ),
    "rdt/all-rate": Text(
        en="{solved} of {num} episodes of {tasks} tasks solved: {rate}, 95% confidence interval {low} to {high}",
        zh="{tasks} 个任务共 {num} 个回合，成功 {solved} 个：{rate}，95% 置信区间 {low} 至 {high}",
    ),
    "rdt/guide-nothing-to-resume": Text(
        en="no run has written to {folder} yet, so there is nothing to resume",
        zh="还没有训练写入过 {folder}，没有可以继续的内容",
        en_hint="remove --resume_from_checkpoint",
        zh_hint="去掉 --resume_from_checkpoint",
    ),
    # What the guide's reader looks for; the Chinese is the guide's own, word for word.
    "rdt/sign-gpus": Text(en="distributed training on {ranks} GPUs", zh="使用{ranks}张GPU进行分布式训练"),
    "rdt/sign-cpus": Text(
        en="distributed training with {ranks} CPU processes", zh="使用{ranks}个CPU进程进行分布式训练"
    ),
    "rdt/sign-cpu": Text(en="training with one CPU process", zh="使用1个CPU进程进行训练"),
    "rdt/sign-devices": Text(en="GPUs: {devices}", zh="GPU设备: {devices}"),
    "rdt/sign-no-devices": Text(en="GPUs: none", zh="GPU设备: 无"),
    "rdt/sign-speedup": Text(
        en="expected speed-up according to the guide: about 1.8-1.9x (2 GPUs, with communication); "
        "for a forecast of ours: headway plan rdt --what-if",
        zh="预期加速: 约1.8-1.9x (2张GPU, 考虑通信开销)（指南的数值；我们的预测：headway plan rdt --what-if）",
    ),
    "rdt/sign-statistics": Text(en="🔍 using the statistics {statistics}", zh="🔍 使用 {statistics} 统计信息"),
    "rdt/sign-one-task": Text(
        en="🔍 training on one task: using the statistics {statistics}",
        zh="🔍 检测到单任务训练，使用 {statistics} 统计信息",
    ),
    "rdt/sign-corrected": Text(
        en="✅ using the correct statistics of this task (corrected standard deviation of the position)",
        zh="✅ 使用正确的单任务统计（Position std修复）",
    ),
    "rdt/guide-two-tasks": Text(
        en="(using the built-in demonstrations of two tasks; the statistics are computed from them)",
        zh="（这里使用的是内置示范，含两个任务；统计信息由这些示范计算得到）",
    ),
    "rdt/guide-exported": Text(
        en="checkpoint for other tools, with the EMA weights: {folder}",
        zh="供其他工具使用的检查点（含 EMA 权重）：{folder}",
    ),
    "rdt/guide-next": Text(
        en="next: python eval_sim/eval_rdt_libero.py --pretrained {folder}/ema/model.safetensors --num_tasks 2 "
        "--max_steps 200 --exec_horizon 16 --record_video --video_output_dir videos",
        zh="下一步：python eval_sim/eval_rdt_libero.py --pretrained {folder}/ema/model.safetensors --num_tasks 2 "
        "--max_steps 200 --exec_horizon 16 --record_video --video_output_dir videos",
    ),
    "rdt/guide-evaluates": Text(
        en="evaluating {weights} ({params} parameters)", zh="正在评测 {weights}（{params} 个参数）"
    ),
    "rdt/guide-other-step": Text(
        en="{asked} does not exist (a small model takes fewer steps than the guide's); using {weights} instead, the "
        "checkpoint with the best validation result",
        zh="{asked} 不存在（小模型的训练步数少于指南）；改用现有检查点中验证结果最好的 {weights}",
    ),
    "rdt/guide-encoder": Text(
        en="--{flag} {asked} is not used: this model was trained with {trained} and cannot use another encoder",
        zh="--{flag} {asked} 不起作用：该模型训练时使用的是 {trained}，不能换用其他编码器",
    ),
    "rdt/guide-benchmark": Text(
        en="--benchmark {benchmark}: LIBERO's simulator is not used here; the episodes run in the built-in "
        "environment with its two tasks",
        zh="--benchmark {benchmark}：此处不使用 LIBERO 仿真器；回合在内置环境的两个任务中进行",
    ),
    "rdt/guide-no-weights": Text(
        en="there are no weights at {path}; available: {known:list}",
        zh="{path} 处没有权重；现有的是：{known:list}",
        en_hint=("train first, or give one of them as --pretrained:\n  bash train_single_task_2gpu.sh"),
        zh_hint=("先训练，或用 --pretrained 给出其中之一：\n  bash train_single_task_2gpu.sh"),
    ),
    "rdt/ignored-config": Text(
        en="give the file itself: headway train configs/base.yaml recipe=rdt",
        zh="直接给出该文件即可：headway train configs/base.yaml recipe=rdt",
    ),
    "rdt/ignored-deepspeed": Text(
        en="DeepSpeed is not used; parallel.strategy=fsdp shards the state over the ranks",
        zh="不使用 DeepSpeed；parallel.strategy=fsdp 会把状态分到各个 rank",
    ),
    "rdt/ignored-hdf5": Text(
        en="demonstrations are always read from HDF5 files, for fine-tuning", zh="示范总是从 HDF5 文件读取，用于微调"
    ),
    "rdt/ignored-lang-embed": Text(
        en="task.lang_embed is the file with the encoded sentences", zh="编码好的句子由 task.lang_embed 指定文件"
    ),
    "rdt/ignored-resume": Text(
        en="headway resume continues from the newest intact checkpoint", zh="headway resume 会从最新的完好检查点继续"
    ),
    "rdt/ignored-scale-lr": Text(
        en="lr.base_batch and lr.scaling set how the learning rate follows the batch size",
        zh="学习率随批大小的变化由 lr.base_batch 和 lr.scaling 决定",
    ),
    "rdt/ignored-schedule": Text(en="lr.schedule does not have this schedule", zh="lr.schedule 没有这种学习率调度"),
    "rdt/ignored-8bit": Text(
        en="optimizer state is kept in fp32; parallel.strategy=fsdp saves more memory",
        zh="优化器状态以 fp32 保存；parallel.strategy=fsdp 更省显存",
    ),
    "rdt/ignored-unused": Text(en="it has no effect here", zh="在此不起作用"),
    "rdt/ignored-tracker": Text(
        en="metrics are in the run directory; headway report shows them",
        zh="指标保存在训练目录中；用 headway report 查看",
    ),
    "rdt/ignored-fixed": Text(en="the recipe supports only the published value", zh="该配方只支持发布时的取值"),
    "rdt/ignored-buffer": Text(
        en="there is no disk buffer; every step of every demonstration is a sample",
        zh="没有磁盘缓冲；每个示范的每一步都是一个样本",
    ),
    "rdt/advice-memory": Text(
        en="lower train_batch_size, the total over all GPUs (now {total}): --train_batch_size=12\n"
        "and raise gradient accumulation (now {accumulation}): --gradient_accumulation_steps=2",
        zh=(
            "减小 train_batch_size（所有 GPU 合计，当前 {total}）：--train_batch_size=12\n"
            "同时增加梯度累积（当前 {accumulation} 次）：--gradient_accumulation_steps=2"
        ),
    ),
    "rdt/advice-port": Text(
        en="for problems between GPUs: export NCCL_DEBUG=INFO\nexport NCCL_P2P_DISABLE=1",
        zh="GPU 之间通信有问题时：export NCCL_DEBUG=INFO\nexport NCCL_P2P_DISABLE=1",
    ),
    "rdt/help-train": Text(
        en="usage: bash train_single_task_2gpu.sh [--train_batch_size=N] [--max_train_steps=N] [--key=value …]\n"
        "also: bash train_single_task.sh (one GPU), accelerate launch … main.py …\n"
        "Trains; log, progress bar and checkpoint-N are in --output_dir. --train_batch_size is the total over all "
        "GPUs\n"
        "  --resume_from_checkpoint=latest|checkpoint-N   continue",
        zh=(
            "用法：bash train_single_task_2gpu.sh [--train_batch_size=N] [--max_train_steps=N] [--key=value …]\n"
            "另有：bash train_single_task.sh（单卡）、accelerate launch … main.py …\n"
            "启动训练；日志、进度条和 checkpoint-N 都在 --output_dir 中；--train_batch_size 为所有 GPU 合计\n"
            "  --resume_from_checkpoint=latest|checkpoint-N   继续训练"
        ),
    ),
    "rdt/help-evaluate": Text(
        en="usage: python eval_sim/eval_rdt_libero.py --pretrained FILE [--num_tasks N] [--max_steps N] "
        "[--exec_horizon N] [--record_video] [--video_output_dir DIR]\n"
        "Controls the arm in the built-in environment with the weights of FILE and counts the solved episodes",
        zh=(
            "用法：python eval_sim/eval_rdt_libero.py --pretrained 文件 [--num_tasks N] [--max_steps N] "
            "[--exec_horizon N] [--record_video] [--video_output_dir 目录]\n"
            "用该权重在内置环境中驱动机械臂，统计成功的回合"
        ),
    ),
}

KEYS: dict[str, str] = {
    "task.hidden_size": "Transformer 的宽度。",
    "task.depth": "层数；偶数层关注句子，奇数层关注图像。",
    "task.num_heads": "注意力头的个数。",
    "task.action_chunk_size": "一个动作块中的动作数。",
    "task.img_history_size": "每个相机给出几个时刻：当前时刻及其之前的时刻。",
    "task.num_cameras": "相机个数，顺序为外部、右腕、左腕；LIBERO 只有前两个。",
    "task.img_patches": "一张图像的 token 数。",
    "task.img_token_dim": "图像 token 的宽度。",
    "task.tokenizer_max_length": "句子最长的 token 数。",
    "task.lang_token_dim": "句子 token 的宽度。",
    "task.lang_adaptor": "句子 token 与 Transformer 之间的网络：linear 或 mlpNx_gelu。",
    "task.img_adaptor": "图像 token 与 Transformer 之间的网络。",
    "task.state_adaptor": "状态、动作向量与 Transformer 之间的网络；两者共用。",
    "task.vision_encoder": "冻结的图像编码器：`patches`（内置），或 SigLIP 模型的目录（需要 transformers）。",
    "task.text_encoder": "冻结的文本编码器：`words`（内置），或 T5 模型的目录（需要 transformers）。",
    "task.lang_embed": "事先编码好的 safetensors 文件，每个句子一个张量；设置后不再加载文本编码器。",
    "task.pretrained": (
        "初始权重，参数名与发布时相同：.safetensors、.bin 或 .pt 文件，DeepSpeed 的 mp_rank_00 文件，"
        "或含有其中之一的目录。"
    ),
    "task.norm": (
        "归一化的除数：rms：均方根；timm_var：方差的平方根，与 timm 1.0.3 相同，发布的权重以它训练；"
        "auto：设置了 task.pretrained 时为 timm_var，否则为 rms。"
    ),
    "task.num_train_timesteps": "扩散的噪声级数（平方余弦）；模型总是预测干净的动作块。",
    "task.loss": "在该机器人用到的槽位上取均方误差；`original`：在全部 128 个槽位上，其中 118 个恒为零。",
    "task.rotation": "如何理解数据中的朝向；`original` 把轴角向量当作欧拉角。",
    "task.tail": "靠近结尾的动作块重复最后一个动作；`original` 不从那里起块，因此学不到收尾动作。",
    "task.position_scale": "动作为 1 时机械臂移动的厘米数。",
    "task.rotation_scale": "动作为 1 时机械臂转动的弧度。",
    "task.control_hz": "每秒的动作数。",
    "task.data_dir": "存放示范的目录，每个任务一个 <TASK>_demo.hdf5，与 LIBERO 发布的相同。",
    "task.synthetic": "data_dir 中没有示范时，生成两个脚本任务的小型示范，而不是停止。",
    "task.dataset": "该数据的统计以什么名字保存。",
    "task.statistics": "使用哪个名字的统计，取自 data_dir 的 dataset_stat.json 或该数据自身；不设则为 task.dataset。",
    "task.holdout": "每个任务留作验证的示范比例，至少一个。",
    "task.cond_mask_prob": "训练时隐藏各个条件的概率：频率、状态、掩码、每张图像、句子。",
    "task.cam_ext_mask_prob": "仅对外部相机的同一概率；不设则为 task.cond_mask_prob。",
    "task.state_noise_snr": "训练时加在状态上的噪声，以信噪比分贝计；不设则不加噪声。",
    "task.image_aug": "对一半的训练图像改变亮度、对比度、饱和度和色相。",
    "task.sample.batch": "每个设备一次生成的动作块数；`task.sample.memory_gib` 放不下时自动减少。",
    "task.sample.batches": "一次评测的批数，所有设备合计，均匀分布在留出的步上；不设则为全部。",
    "task.sample.memory_gib": "采样和 rollout 在训练之外可用的显存或内存，按每个设备计。",
    "task.sample.steps": "求解器的步数。",
    "task.rollout.episodes": "一次效果测试的回合数，所有任务和设备合计；0：不做 rollout。",
    "task.rollout.exec_horizon": "生成下一个动作块之前执行当前块中的几个动作。",
    "task.rollout.max_steps": "最长的回合，单位见 `task.rollout.unit`；无论如何环境自身的上限都会结束它。",
    "task.rollout.unit": "max_steps 的计数单位：环境步，或生成动作块的次数（发布的评测脚本如此计数）。",
    "task.rollout.env_horizon": "环境在多少步后无论如何都结束回合（LIBERO 的仿真器为 1000）。",
    "task.rollout.record_video": "把一次效果测试中每个任务的第一个回合写成 GIF。",
    "task.rollout.video_dir": "效果测试视频的目录。",
}
"""What the keys of the recipe's own section are, in Chinese; the English is the string below each field."""
