"""Texts of the Atlas recipe."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "atlas/patches": Text(
        en="an image of {size} pixels cannot be divided evenly into patches of {patch} pixels",
        zh="{size} 像素的图像无法平分为边长 {patch} 的图块",
        en_hint=("use a size that divides:\n  task.image_size={near}"),
        zh_hint=("改用可以整除的大小：\n  task.image_size={near}"),
    ),
    "atlas/dense-width": Text(
        en="task.vggt_dense_width={width} is not a multiple of 8; VGGT's dense head needs one for its positions",
        zh="task.vggt_dense_width={width} 不是 8 的倍数，而 VGGT 稠密头的位置编码要求 8 的倍数",
        en_hint=("use a width that divides:\n  task.vggt_dense_width={near}"),
        zh_hint=("改用可以整除的宽度：\n  task.vggt_dense_width={near}"),
    ),
    "atlas/heads": Text(
        en="{key}={heads} does not divide a width of {width} evenly",
        zh="{key}={heads} 无法平分宽度 {width}",
        en_hint="set {key} to one of {ways:list}",
        zh_hint="将 {key} 设为以下之一：{ways:list}",
    ),
    "atlas/whiten-trained": Text(
        en="task.whiten=true needs features that do not change, but with task.freeze_vggt=false they change during "
        "training",
        zh="task.whiten=true 要求特征保持不变，而 task.freeze_vggt=false 会让特征随训练改变",
        en_hint=("use one of these:\n  task.whiten=false\n  task.freeze_vggt=true"),
        zh_hint=("改用下列之一：\n  task.whiten=false\n  task.freeze_vggt=true"),
    ),
    "atlas/batch-meaning": Text(
        en="data.batch_size={per_device} is per GPU: {per_device} × {ranks} GPUs × gradient accumulation "
        "{accumulation} = {total} per step, not {usual}, as batch_size {guide} on the same number of GPUs gives",
        zh="data.batch_size={per_device} 是每张 GPU 的批大小：{per_device} × {ranks} 张 GPU × 梯度累积 "
        "{accumulation} 次 = 每步 {total}，而 batch_size {guide} 在同样多的 GPU 上是每步 {usual}",
        en_hint=("for {usual} per step:\n  data.batch_size={same} training.gradient_accumulation_steps={turns}"),
        zh_hint=("若要每步 {usual}：\n  data.batch_size={same} training.gradient_accumulation_steps={turns}"),
    ),
    "atlas/rate-meaning": Text(
        en="the learning rate is {rate}; {base} scaled only by the number of GPUs, as in the guide, gives {by_gpus}; "
        "scaled by the samples per step ({total} instead of {guide}), it gives {by_samples}",
        zh=(
            "学习率为 {rate}；按指南只随 GPU 数缩放 {base} 得 {by_gpus}，"
            "按每步样本数（{total} 比 {guide}）缩放得 {by_samples}"
        ),
        en_hint=(
            "the first line is for the first meaning, the second for the second:\n"
            "  lr.base_batch={one_gpu}\n"
            "  lr.base_batch={guide}"
        ),
        zh_hint=("前一种含义用第一行，后一种含义用第二行：\n  lr.base_batch={one_gpu}\n  lr.base_batch={guide}"),
    ),
    "atlas/encoders-too-large": Text(
        en="the encoders alone need {need} on each GPU, but the smallest has {have}; more GPUs do not help, because "
        "each holds all encoders",
        zh="仅编码器在每张 GPU 上就需要 {need}，而最小的一张只有 {have}；增加 GPU 不会减少占用，因为每张都保存全部权重",
        en_hint=(
            "freeze the encoders, or shard them:\n"
            "  task.freeze_vggt=true task.freeze_lang_encoder=true\n"
            "  parallel.strategy=fsdp"
        ),
        zh_hint=(
            "冻结编码器，或使用分片：\n  task.freeze_vggt=true task.freeze_lang_encoder=true\n  parallel.strategy=fsdp"
        ),
    ),
    "atlas/no-weights": Text(
        en="the weights of {key}={name} are not on this machine, and the small built-in encoders are turned off",
        zh="本机没有 {key}={name} 的权重，而小型内置编码器已关闭",
        en_hint=(
            "fetch the weights and set {key} to their folder, or use the small built-in encoders:\n"
            "  task.builtin_encoders=true"
        ),
        zh_hint=("下载权重并将 {key} 设为其目录，或使用内置的小编码器：\n  task.builtin_encoders=true"),
    ),
    "atlas/stands-in": Text(
        en="the weights of {key}={name} are not on this machine; the small built-in encoder is used instead",
        zh="本机没有 {key}={name} 的权重，改用小型内置编码器",
    ),
    "atlas/not-safetensors": Text(
        en="there are no safetensors weights at {path}",
        zh="{path} 处没有 safetensors 权重",
        en_hint="set task.vggt_checkpoint to a .safetensors file or a folder with model.safetensors; pickle files "
        "are not read",
        zh_hint="将 task.vggt_checkpoint 设为 .safetensors 文件或含 model.safetensors 的目录；不会读取 pickle 文件",
    ),
    "atlas/other-weights": Text(
        en="{file} contains {have} tensors, but this VGGT has {want}; the first mismatch is {name}",
        zh="{file} 含 {have} 个张量，而此处的 VGGT 有 {want} 个；首个不匹配的是 {name}",
        en_hint="keep task.vggt_* at the sizes of the weights (the defaults are VGGT-1B), or use other weights",
        zh_hint="让 task.vggt_* 与权重的大小一致（默认值即 VGGT-1B），或换用其他权重",
    ),
    "atlas/no-transformers": Text(
        en="the encoder in {folder} needs the package transformers, but it is not installed",
        zh="{folder} 中的编码器需要软件包 transformers，但尚未安装",
        en_hint=("install it:\n  pip install transformers"),
        zh_hint=("安装它：\n  pip install transformers"),
    ),
    "atlas/missing-library": Text(
        en="the data of Atlas needs {package}, but it is not installed",
        zh="Atlas 的数据需要 {package}，但尚未安装",
        en_hint=("install it:\n  pip install 'headway[atlas]'"),
        zh_hint=("安装它：\n  pip install 'headway[atlas]'"),
    ),
    "atlas/no-episodes": Text(
        en="there is no episode in {folder}: neither {split}/episode_000000 nor a .hdf5 file",
        zh="{folder} 中没有回合：既没有 {split}/episode_000000，也没有 .hdf5 文件",
        en_hint=(
            "set task.data_dir to the folder above {split}, or to LIBERO's files, or try the synthetic data:\n"
            "  task.synthetic=true"
        ),
        zh_hint=(
            "将 task.data_dir 设为 {split} 的上一级目录或 LIBERO 文件所在目录，或先用合成数据：\n  task.synthetic=true"
        ),
    ),
    "atlas/few-episodes": Text(
        en="{folder} contains {have} episodes, of which {held} are held out for validation; training and validation "
        "need at least one each",
        zh="{folder} 中有 {have} 个回合，其中 {held} 个留作验证；训练和验证各至少需要一个",
        en_hint="add episodes (two per task), or set task.val_split to a folder of held-out episodes",
        zh_hint="增加回合（每个任务两个），或将 task.val_split 设为留作验证的回合所在目录",
    ),
    "atlas/only-synthetic": Text(
        en="{folder} contains scripted episodes, but this run needs real ones",
        zh="{folder} 中是脚本生成的回合，而本次训练要求真实数据",
        en_hint=("set task.data_dir to real episodes, or train on the synthetic ones:\n  task.synthetic=true"),
        zh_hint=("将 task.data_dir 指向真实回合；如果合成数据就够用：\n  task.synthetic=true"),
    ),
    "atlas/frames": Text(
        en="{folder} has {have} images of the {camera} camera, but {rows} actions",
        zh="{folder} 中 {camera} 相机有 {have} 张图像，而动作有 {rows} 行",
        en_hint="every action needs one image of each camera; without a wrist camera set task.use_wrist_camera=false",
        zh_hint="每个动作需要每个相机各一张图像；没有腕部相机时设 task.use_wrist_camera=false",
    ),
    "atlas/no-actions": Text(
        en="{folder} has neither actions.parquet nor actions.csv",
        zh="{folder} 中既没有 actions.parquet，也没有 actions.csv",
        en_hint="add one of them, with 7 columns and one row per frame, or remove the episode",
        zh_hint="放入其中之一：7 列，每帧一行；或移除该回合",
    ),
    "atlas/bad-actions": Text(
        en="each action in {file} has {have} numbers, but {want} are needed",
        zh="{file} 中每个动作有 {have} 个数，而需要 {want} 个",
        en_hint="an action is dx, dy, dz, three rotations and the gripper, one row per frame",
        zh_hint="一个动作为 dx、dy、dz、三个旋转和夹爪，每帧一行",
    ),
    "atlas/not-finite": Text(
        en="row {row} of the actions in {file} contains NaN or Inf",
        zh="{file} 的动作第 {row} 行出现 NaN/Inf",
        en_hint="repair {file}, or remove the episode",
        zh_hint="修复 {file}，或移除该回合",
    ),
    "atlas/no-instruction": Text(
        en="{folder} has no instruction, neither in language_task.txt nor in metadata.json",
        zh="{folder} 中没有指令：language_task.txt 和 metadata.json 里都没有",
        en_hint="write the instruction into language_task.txt; the model would learn no language from a placeholder",
        zh_hint="把指令写入 language_task.txt；用占位文字训练，模型学不到语言",
    ),
    "atlas/bad-file": Text(
        en="{file} cannot be read correctly: {why:said}",
        zh="无法正常读取 {file}：{why:said}",
        en_hint="download {file} again, or move it out of the folder",
        zh_hint="重新下载 {file}，或把它移出该目录",
    ),
    "atlas/bad-index": Text(
        en="{file} cannot be read: {why:said}",
        zh="无法读取 {file}：{why:said}",
        en_hint=("remove the folder; the next start creates it again:\n  rm -r {folder}"),
        zh_hint=("删除该目录；下次启动时会重新生成：\n  rm -r {folder}"),
    ),
    "atlas/not-prepared": Text(
        en="the episodes in {folder} have not been indexed for this run, or have changed since then",
        zh="{folder} 中的回合尚未为本次训练建立索引，或之后又有改动",
        en_hint="start the run with `headway train` or `headway resume`, which prepare the data first",
        zh_hint="用 `headway train` 或 `headway resume` 启动，它们会先准备数据",
    ),
    "atlas/cannot-write": Text(
        en="data cannot be prepared in {folder}: {why:said}",
        zh="无法在 {folder} 中准备数据：{why:said}",
        en_hint="set task.cache_dir (and for synthetic data task.data_dir) to a folder you can write to",
        zh_hint="将 task.cache_dir（合成数据还有 task.data_dir）设为可写的目录",
    ),
    "atlas/making-episodes": Text(en="creating scripted episodes in {folder}", zh="正在 {folder} 中生成脚本回合"),
    "atlas/reading-episodes": Text(en="reading {files} files in {folder}", zh="正在读取 {folder} 中的 {files} 个文件"),
    "atlas/prepared": Text(
        en="{train} training episodes ({frames} frames), {val} held out for validation",
        zh="训练回合 {train} 个（{frames} 帧），留作验证 {val} 个",
    ),
    "atlas/encoding": Text(
        en="the frozen encoders have processed {done} of {frames} frames; this is done only once",
        zh="冻结的编码器已处理 {done} / {frames} 帧；只需做一次",
    ),
    "atlas/no-such-episode": Text(
        en="there is no held-out episode {episode}; the numbers are 0 to {last}",
        zh="没有编号为 {episode} 的验证回合；编号为 0 到 {last}",
        en_hint=("the last one:\n  episode={last}"),
        zh_hint=("最后一个是：\n  episode={last}"),
    ),
    "atlas/predicted": Text(
        en='{frames} frames with the instruction "{said}": pose L1 {l1}, gripper equal to the demonstration in '
        "{gripper} of them",
        zh="指令“{said}”下的 {frames} 帧：位姿 L1 {l1}，夹爪与示范一致的比例 {gripper}",
    ),
    "atlas/filmed-won": Text(
        en='film: under "{said}" the gripper closes on the named block after {steps} steps',
        zh="影片：指令“{said}”下，夹爪在第 {steps} 步夹住了指定的方块",
    ),
    "atlas/filmed-other": Text(
        en='film: under "{said}" the gripper closes on the other block after {steps} steps',
        zh="影片：指令“{said}”下，夹爪在第 {steps} 步夹住了另一个方块",
    ),
    "atlas/filmed-not-over": Text(
        en='film: under "{said}" the gripper closes on no block within {steps} steps',
        zh="影片：指令“{said}”下，夹爪在 {steps} 步内没有夹住方块",
    ),
    "atlas/filmed-record": Text(
        en="film: the held-out episode as it was recorded; there is no simulator for these episodes",
        zh="影片：留出片段的原始录像；这类数据没有仿真器",
    ),
    "atlas/ignored-hub": Text(
        en="nothing is downloaded during training: download the data first, then set data.data_dir; put a token into "
        "HF_TOKEN",
        zh="训练时不会下载任何内容：先下载数据并设置 data.data_dir；令牌应放在 HF_TOKEN 中",
    ),
    "atlas/ignored-later": Text(
        en="this belongs to a later version of the original; here, one frame gives one action of 7 numbers",
        zh="这属于原项目之后的版本；此处一帧给出一个 7 维动作",
    ),
    "atlas/ignored-log": Text(
        en="every step is recorded in the run directory, and so is the log", zh="每一步都记录在训练目录中，日志也在那里"
    ),
    "atlas/ignored-tracker": Text(
        en="no tracker login is needed here: metrics are in the run directory, and `headway export` exports them",
        zh="这里不需要登录任何跟踪平台：指标保存在训练目录中，可用 headway export 导出",
    ),
    "atlas/ignored-resume": Text(
        en="a run resumes from its newest verified checkpoint: headway resume RUN",
        zh="训练会从最新的、通过校验的检查点继续：headway resume RUN",
    ),
    "atlas/guide-split": Text(
        en="--split {split}: only held-out episodes are evaluated; on training episodes the result would only show "
        "what the model has memorized",
        zh="--split {split}：只在留作验证的回合上评测；用训练回合评测只能看出模型记住了多少",
        en_hint="set --split val",
        zh_hint="设 --split val",
    ),
    "atlas/guide-evaluates": Text(
        en="evaluating {path} of {run} on the held-out episodes", zh="在留作验证的回合上评测 {path}（训练 {run}）"
    ),
    "atlas/guide-end": Text(
        en="training ended with exit code {code}; log: {log}", zh="训练结束，退出码 {code}；日志：{log}"
    ),
    "atlas/advice-memory": Text(
        en="lower data.batch_size, which is per GPU (now {per_device}), for example to 4\n"
        "raise training.gradient_accumulation_steps (now {accumulation}): the total batch stays the same\n"
        "freeze more: model.freeze_vggt=true model.freeze_lang_encoder=true",
        zh="减小每卡的 data.batch_size（当前 {per_device}），例如减到 4\n"
        "增大 training.gradient_accumulation_steps（当前 {accumulation}），总批大小不变\n"
        "冻结更多模块：model.freeze_vggt=true model.freeze_lang_encoder=true",
    ),
    "atlas/help-train": Text(
        en="usage: torchrun --nproc_per_node=N atlas/train.py --config atlas/configs/train_config.yaml [--resume "
        "FILE]\n"
        "Trains on N devices; log in logs/, checkpoints in checkpoints/. The learning-rate scaling rule is in this "
        "script\n"
        "  --resume       continue from one of the checkpoints in checkpoints/",
        zh="用法：torchrun --nproc_per_node=N atlas/train.py --config atlas/configs/train_config.yaml [--resume "
        "文件]\n"
        "用 N 个设备训练；日志在 logs/，检查点在 checkpoints/；学习率缩放规则写在该脚本中\n"
        "  --resume       从 checkpoints/ 中的某个检查点继续训练",
    ),
    "atlas/help-eval": Text(
        en="usage: python atlas/eval.py --config FILE --checkpoint checkpoints/best_model.pt [--split val]\n"
        "Evaluates a checkpoint on the held-out episodes",
        zh=(
            "用法：python atlas/eval.py --config 文件 --checkpoint checkpoints/best_model.pt [--split val]\n"
            "在留作验证的回合上评测一个检查点"
        ),
    ),
}

KEYS: dict[str, str] = {
    "task.mode": "original：保留原版的缺陷（夹爪目标超出输出范围，填充被当作文字）。",
    "task.freeze_vggt": "不训练 VGGT。",
    "task.freeze_lang_encoder": "不训练语言编码器。",
    "task.vggt_checkpoint": "VGGT 的 safetensors 权重文件或目录，或本机 hub 缓存中的名字；不设则用内置编码器。",
    "task.lang_encoder_name": "hub 格式的 Transformer 目录，或本机 hub 缓存中的名字；不设则用内置编码器。",
    "task.builtin_encoders": "本机没有上述权重时，改用小型内置编码器。",
    "task.cache_features": "冻结的编码器只对数据运行一次，结果存到磁盘，训练时直接读取。",
    "task.image_size": "VGGT 所见图像的边长，须为图块边长的倍数。",
    "task.use_wrist_camera": "把腕部相机作为第二个视角。",
    "task.vggt_patch": "图块的边长。",
    "task.vggt_width": "VGGT 的宽度；聚合后的 token 是其两倍宽。",
    "task.vggt_heads": "VGGT 的注意力头数。",
    "task.vggt_vit_depth": "VGGT 图块编码器的层数。",
    "task.vggt_depth": "VGGT 的交替层对数：先在每个视角内做注意力，再跨所有视角。",
    "task.vggt_dense_width": "VGGT 深度头和点云头的特征数。",
    "task.point_stride": "横向和纵向每隔多少像素给 PointNet 一个点。",
    "task.lang_dim": "内置语言编码器的宽度；来自磁盘的编码器自带宽度。",
    "task.lang_max_length": "指令最长的 token 数；超出部分截断。",
    "task.vision_features": "由 VGGT 的 token 得到的特征数。",
    "task.point_features": "PointNet 各层的宽度。",
    "task.pose_features": "由相机位姿得到的特征数。",
    "task.geom_output_dim": "每个视角几何特征的宽度。",
    "task.fusion_hidden_dim": "融合模块的宽度。",
    "task.fusion_layers": "融合模块的层数。",
    "task.fusion_heads": "融合模块的注意力头数。",
    "task.head_dims": "动作头的宽度。",
    "task.dropout": "融合模块和动作头的 dropout。",
    "task.use_pointnet": "读取 VGGT 的点云图。",
    "task.use_pose": "读取 VGGT 的相机位姿。",
    "task.whiten": "读取 VGGT 特征之前，按训练集的统计让各方向的方差相同（白化）。",
    "task.pose_weight": "位姿在损失中的权重。",
    "task.gripper_weight": "夹爪在损失中的权重。",
    "task.pose_loss_type": "位姿六个数的损失。",
    "task.gripper_loss_type": "夹爪的损失。",
    "task.data_dir": "含 train/episode_000000 等的目录，或含 LIBERO 的 *.hdf5 文件的目录。",
    "task.cache_dir": "存放由数据生成的索引和特征的目录。",
    "task.synthetic": "data_dir 中没有回合时，生成一小套合成数据而不是停止。",
    "task.train_split": "data_dir 中训练回合所在的目录名。",
    "task.val_split": "data_dir 中留作验证的回合所在的目录名；不设则从训练回合中留出 val_share。",
    "task.val_share": "没有验证目录时留作验证的回合比例；总是整个回合，从不拆分。",
    "task.flip_hdf5": "LIBERO 的 HDF5 图像上下颠倒存放，读取时翻正。",
    "task.trial_episodes": "效果测试中脚本抓取环境的回合数；0：不做效果测试。只有合成数据才有该环境。",
    "task.trial_steps": "其中一个回合最多的动作数。",
}
