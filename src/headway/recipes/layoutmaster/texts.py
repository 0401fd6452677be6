"""Texts of the LayoutMaster recipe."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "layoutmaster/why-missing": Text(en="{name} is missing", zh="缺少 {name}"),
    "layoutmaster/why-tensor": Text(
        en="{name} is {dtype} {shape} or contains NaN or Inf; it should be float32 (…, {num}, …)",
        zh="{name} 为 {dtype} {shape}，或出现 NaN/Inf；应为 float32 (…, {num}, …)",
    ),
    "layoutmaster/why-other-target": Text(
        en="its target is not the poster's: {num} elements differ, element {place} by {away} pixels",
        zh="其中的目标布局与海报不符：{num} 个元素不同，第 {place} 个元素相差 {away} 像素",
    ),
    "layoutmaster/why-layers": Text(en="layers is not a list of objects", zh="layers 不是由对象组成的列表"),
    "layoutmaster/why-no-layers": Text(en="it has no layers", zh="没有任何图层"),
    "layoutmaster/why-same-id": Text(en="two layers have the same id", zh="有两个图层的 id 相同"),
    "layoutmaster/why-no-object": Text(en="it is not a JSON object", zh="不是 JSON 对象"),
    "layoutmaster/why-canvas": Text(en="canvas_size is not a JSON object", zh="canvas_size 不是 JSON 对象"),
    "layoutmaster/why-value": Text(en="{key} is {value}", zh="{key} 为 {value}"),
    "layoutmaster/why-large": Text(
        en="it has {have:,} bytes, but at most {cap:,} are read", zh="文件有 {have:,} 字节，最多读取 {cap:,} 字节"
    ),
    "layoutmaster/heads": Text(
        en="task.hidden_dim={width} must be divisible by its {heads} attention heads and by 4",
        zh="task.hidden_dim={width} 必须能被 {heads} 个注意力头和 4 同时整除",
        en_hint=("use the nearest one that is:\n  task.hidden_dim={near}"),
        zh_hint=("改用可以整除的宽度：\n  task.hidden_dim={near}"),
    ),
    "layoutmaster/layer-scale": Text(
        en="layer numbers are scaled by {scale} (the top-level max_elements), but a poster may have {elements} layers",
        zh="层序按 {scale} 归一化（顶层的 max_elements），而一张海报最多有 {elements} 层",
        en_hint=("give both the same number:\n  task.layer_scale={elements}"),
        zh_hint=("两处写成同一个数：\n  task.layer_scale={elements}"),
    ),
    "layoutmaster/backbone-not-set": Text(
        en="visual_backbone=clip needs weights, but backbone_path is null",
        zh="visual_backbone=clip 需要权重，但 backbone_path 为空",
        en_hint=(
            "set task.backbone_path to a CLIP folder with model.safetensors, or use the small backbone:\n"
            "  task.visual_backbone=small"
        ),
        zh_hint=(
            "将 task.backbone_path 设为含 config.json 和 model.safetensors 的目录，或使用小骨干网络：\n"
            "  task.visual_backbone=small"
        ),
    ),
    "layoutmaster/jsonl": Text(
        en="use_trajectory_dataset=false means the older JSONL format, which is not supported here",
        zh="use_trajectory_dataset=false 表示旧的 JSONL 格式，这里不支持",
        en_hint="set task.use_trajectory_dataset=true and task.data_dir to a folder with one directory per poster",
        zh_hint="设 task.use_trajectory_dataset=true，并将 task.data_dir 设为每张海报一个子目录的目录",
    ),
    "layoutmaster/original-predicts-noise": Text(
        en="head_mode=original predicts noise; it cannot be used with prediction_type=sample",
        zh="head_mode=original 预测的是噪声，不能与 prediction_type=sample 同用",
        en_hint="remove task.prediction_type, or set task.head_mode=fixed",
        zh_hint="去掉 task.prediction_type，或设 task.head_mode=fixed",
    ),
    "layoutmaster/noise-weight": Text(
        en="loss.noise_weight={weight} would have no effect: the original code does not read it and uses 1.0",
        zh="loss.noise_weight={weight} 不会生效：原版代码不读取它，实际为 1.0",
        en_hint="keep it at 1.0, or set task.head_mode=fixed, which reads it",
        zh_hint="保持 1.0，或设 task.head_mode=fixed（会读取它）",
    ),
    "layoutmaster/betas": Text(
        en="the noise schedule cannot go from beta_start={start} to beta_end={end}",
        zh="噪声无法从 beta_start={start} 变到 beta_end={end}",
        en_hint=(
            "keep 0 < beta_start <= beta_end < 1; the published values:\n  task.beta_start=0.0001 task.beta_end=0.02"
        ),
        zh_hint=("须满足 0 < beta_start <= beta_end < 1；原值为：\n  task.beta_start=0.0001 task.beta_end=0.02"),
    ),
    "layoutmaster/too-many-steps": Text(
        en="task.{key}={steps} is more than the {most} timesteps of the diffusion",
        zh="task.{key}={steps} 超过了扩散的总步数 {most}",
        en_hint=("10 to 50 are usual; at most:\n  task.{key}={most}"),
        zh_hint=("通常为 10 到 50；最多为：\n  task.{key}={most}"),
    ),
    "layoutmaster/no-posters": Text(
        en="{folder} has no poster: a poster is a directory with json/ and parse/ inside",
        zh="{folder} 中没有海报：每张海报是一个目录，内含 json/ 和 parse/",
        en_hint=(
            "set task.data_dir (data.data_root) to the folder above the posters, or try the synthetic data:\n"
            "  task.synthetic=true"
        ),
        zh_hint=("将 task.data_dir（data.data_root）设为海报目录的上一级，或先用合成数据：\n  task.synthetic=true"),
    ),
    "layoutmaster/only-synthetic": Text(
        en="{folder} contains the small synthetic posters, but this run needs real ones",
        zh="{folder} 中是小型合成海报，而本次训练要求真实数据",
        en_hint=(
            "set task.data_dir to a folder with real posters, or train on the synthetic ones:\n  task.synthetic=true"
        ),
        zh_hint=("将 task.data_dir 指向真实海报所在的目录；如果合成数据就够用：\n  task.synthetic=true"),
    ),
    "layoutmaster/few-posters": Text(
        en="{have} posters with train_ratio={ratio} leave the training set or the validation set empty",
        zh="{have} 张海报按 train_ratio={ratio} 划分后，训练集或验证集为空",
        en_hint="add posters, or set task.train_ratio so that both parts have at least one",
        zh_hint="增加海报，或调整 task.train_ratio，使两部分至少各有一张",
    ),
    "layoutmaster/no-json": Text(
        en="{folder} contains no *_parse_data.json",
        zh="{folder} 中没有 *_parse_data.json",
        en_hint="put the poster's annotations there, or move its folder out of the data folder",
        zh_hint="把该海报的标注放到该处，或将其移出数据目录",
    ),
    "layoutmaster/bad-json": Text(
        en="{file} is not a valid poster annotation: {why:said}",
        zh="{file} 不是有效的海报标注：{why:said}",
        en_hint="correct the file, or move its poster out of the data folder",
        zh_hint="修正该文件，或将这张海报移出数据目录",
    ),
    "layoutmaster/bad-image": Text(
        en="{file} is not a readable PNG: {why:said}",
        zh="无法读取 PNG 文件 {file}：{why:said}",
        en_hint="replace {file}; without this file, its element would be black",
        zh_hint="替换 {file}；若删除该文件，对应元素将为全黑",
    ),
    "layoutmaster/no-trajectories": Text(
        en="{folder} has no trajectories.safetensors",
        zh="{folder} 中没有 trajectories.safetensors",
        en_hint=("make them:\n  python -m headway.recipes.layoutmaster.trajectory --data_root {root}"),
        zh_hint=("生成它们：\n  python -m headway.recipes.layoutmaster.trajectory --data_root {root}"),
    ),
    "layoutmaster/only-pickle": Text(
        en="the trajectories in {folder} are a pickle file, and loading a pickle can run any code in it",
        zh="{folder} 中的轨迹是 pickle 文件，而加载 pickle 会执行其中的任意代码",
        en_hint=("convert all of them in a sealed process:\n  python -m headway.recipes.layoutmaster.convert {root}"),
        zh_hint=("在隔离进程中全部转换：\n  python -m headway.recipes.layoutmaster.convert {root}"),
    ),
    "layoutmaster/bad-trajectories": Text(
        en="{file} is not a valid trajectory file: {why:said}",
        zh="{file} 不是有效的轨迹文件：{why:said}",
        en_hint="remove the file and make it again with `python -m headway.recipes.layoutmaster.trajectory`",
        zh_hint="删除该文件后用 `python -m headway.recipes.layoutmaster.trajectory` 重新生成",
    ),
    "layoutmaster/not-prepared": Text(
        en="the posters in {folder} have not been prepared for this run, or have changed since then",
        zh="{folder} 中的海报尚未为本次训练准备，或准备之后又有改动",
        en_hint="start the run with `headway train` or `headway resume`, which prepare the data first",
        zh_hint="用 `headway train` 或 `headway resume` 启动，它们会先准备数据",
    ),
    "layoutmaster/damaged": Text(
        en="{file} has {have:,} bytes, but its index says {want:,}",
        zh="{file} 有 {have:,} 字节，而其索引记录为 {want:,} 字节",
        en_hint=("remove the folder; the next start creates it again:\n  rm -r {folder}"),
        zh_hint=("删除该目录；下次启动时会重新生成：\n  rm -r {folder}"),
    ),
    "layoutmaster/bad-index": Text(
        en="{file} cannot be read: {why:said}",
        zh="无法读取 {file}：{why:said}",
        en_hint=("remove the folder; the next start creates it again:\n  rm -r {folder}"),
        zh_hint=("删除该目录；下次启动时会重新生成：\n  rm -r {folder}"),
    ),
    "layoutmaster/cannot-write": Text(
        en="data cannot be prepared in {folder}: {why:said}",
        zh="无法在 {folder} 中准备数据：{why:said}",
        en_hint="set task.data_dir to a folder you can write to",
        zh_hint="将 task.data_dir 设为可写的目录",
    ),
    "layoutmaster/missing-library": Text(
        en="preparing LayoutMaster data needs the package {package}, but it is not installed",
        zh="准备 LayoutMaster 数据需要软件包 {package}，但尚未安装",
        en_hint=("install it:\n  pip install 'headway[layoutmaster]'"),
        zh_hint=("安装它：\n  pip install 'headway[layoutmaster]'"),
    ),
    "layoutmaster/no-transformers": Text(
        en="the CLIP model in {folder} needs the package transformers, but it is not installed",
        zh="{folder} 中的 CLIP 模型需要软件包 transformers，但尚未安装",
        en_hint=("install it:\n  pip install transformers"),
        zh_hint=("安装它：\n  pip install transformers"),
    ),
    "layoutmaster/bad-clip": Text(
        en="{path} is not a CLIP model: {why:said}",
        zh="{path} 不是 CLIP 模型：{why:said}",
        en_hint="task.backbone_path must be a folder with config.json and model.safetensors",
        zh_hint="task.backbone_path 应为含 config.json 和 model.safetensors 的目录",
    ),
    "layoutmaster/clip-size": Text(
        en="the CLIP model in {path} takes images of {clip} pixels, but image_size is {ours}",
        zh="{path} 中的 CLIP 模型输入为 {clip} 像素，而 image_size 为 {ours}",
        en_hint=("use the size of this CLIP:\n  task.image_size={clip}"),
        zh_hint=("改用该 CLIP 的大小：\n  task.image_size={clip}"),
    ),
    "layoutmaster/path-unused": Text(
        en="backbone_path={path} is not loaded: as in the original, this backbone is a re-implementation with random "
        "weights",
        zh="backbone_path={path} 不会被加载：与原版一样，该骨干网络是随机权重的仿制结构",
    ),
    "layoutmaster/missing-images": Text(
        en="{num} of {total} elements in {folder} have no PNG; the model sees them as black",
        zh="{folder} 中 {total} 个元素里有 {num} 个没有 PNG，模型将其视为全黑",
    ),
    "layoutmaster/made-posters": Text(
        en="created {posters} synthetic posters in {folder}", zh="已在 {folder} 中生成 {posters} 张合成海报"
    ),
    "layoutmaster/made-trajectories": Text(
        en="created the trajectories of {num} posters in {folder}", zh="已为 {folder} 中的 {num} 张海报生成轨迹"
    ),
    "layoutmaster/prepared": Text(
        en="{train} training posters and {val} held-out posters ready ({size}) in {folder}",
        zh="训练海报 {train} 张、验证海报 {val} 张（{size}）已就绪，位于 {folder}",
    ),
    "layoutmaster/converted": Text(
        en="converted {num} of {total} pickles in {folder}", zh="已转换 {folder} 中 {total} 个 pickle 文件里的 {num} 个"
    ),
    "layoutmaster/bad-pickle": Text(
        en="{file} was not converted: {why:said}",
        zh="{file} 未能转换：{why:said}",
        en_hint=("recreate its trajectories:\n  python -m headway.recipes.layoutmaster.trajectory --data_root {root}"),
        zh_hint=("重新生成轨迹：\n  python -m headway.recipes.layoutmaster.trajectory --data_root {root}"),
    ),
    "layoutmaster/no-seal": Text(
        en="this system cannot isolate the process that reads a pickle: {why:said}",
        zh="本系统无法隔离读取 pickle 的进程：{why:said}",
        en_hint=("recreate the trajectories:\n  python -m headway.recipes.layoutmaster.trajectory --data_root {root}"),
        zh_hint=("重新生成轨迹：\n  python -m headway.recipes.layoutmaster.trajectory --data_root {root}"),
    ),
    "layoutmaster/predicted": Text(
        en="generated layouts for {num} posters, mean IoU {iou}; each folder has prediction.json, before.png, "
        "after.png and target.png",
        zh="已为 {num} 张海报生成布局，平均 IoU {iou}；每个目录含 prediction.json、before.png、after.png 和 target.png",
    ),
    "layoutmaster/batch-meaning": Text(
        en="batch_size={total} is the total over all {ranks} devices, {share} on each; it is not {total} on each, "
        "which would be {other} in total",
        zh="batch_size={total} 是全部 {ranks} 个设备的总和，每个设备 {share}；不是每个设备 {total}（那样总共 {other}）",
        en_hint="lr={rate} belongs to this total batch, so it does not change with the number of devices",
        zh_hint="学习率 {rate} 对应这个总批大小，设备数变化时无需调整",
    ),
    "layoutmaster/guide-start": Text(
        en="training starts with {config}; everything below is also written to {log}",
        zh="开始训练，配置 {config}；以下内容同时写入 {log}",
    ),
    # What the guide's reader looks for; the Chinese is the guide's own, word for word.
    "layoutmaster/sign-gpus": Text(en="✅ training on {ranks} GPUs", zh="✅ 使用 {ranks} 个GPU进行训练"),
    "layoutmaster/sign-cpus": Text(en="✅ training with {ranks} CPU processes", zh="✅ 使用 {ranks} 个CPU进程进行训练"),
    "layoutmaster/sign-train": Text(en="✅ the training set has {num} samples", zh="✅ 训练数据集包含 {num} 个样本"),
    "layoutmaster/sign-held": Text(en="✅ the validation set has {num} samples", zh="✅ 验证数据集包含 {num} 个样本"),
    "layoutmaster/sign-busy": Text(en="{mark} GPU utilisation: {share}%", zh="{mark} GPU利用率: {share}%"),
    "layoutmaster/sign-not-falling": Text(
        en="❌ the loss did not fall: {numbers}", zh="❌ 损失函数没有下降: {numbers}"
    ),
    "layoutmaster/sign-rising": Text(
        en="❌ the loss fell and then rose again: {numbers}", zh="❌ 损失函数先降后升: {numbers}"
    ),
    "layoutmaster/sign-falling": Text(en="✅ the loss falls steadily: {numbers}", zh="✅ 损失函数稳定下降: {numbers}"),
    "layoutmaster/guide-end": Text(en="training ended with exit code {code}", zh="训练结束，退出码 {code}"),
    "layoutmaster/guide-ask": Text(
        en="train with {config}: {batch} posters per step over all devices, {epochs} epochs?",
        zh="用 {config} 训练：所有设备合计每步 {batch} 张海报，共 {epochs} 轮，是否开始？",
    ),
    "layoutmaster/guide-sheet": Text(
        en="overview of all posters (before, after, target): {path}",
        zh="全部海报的对照图（排版前、排版后、目标）：{path}",
    ),
    "layoutmaster/guide-data-fine": Text(
        en="{posters} posters with {images:,} images ({missing} missing), {size}, read at {rate} posters per second",
        zh="{posters} 张海报、{images:,} 张图像（缺 {missing} 张），{size}，读取速度每秒 {rate} 张海报",
    ),
    "layoutmaster/guide-no-mode": Text(
        en="in the original, train.py without --mode predicts instead of training, and its start script forgot it; "
        "here --mode is required",
        zh="原版 train.py 不写 --mode 时是预测而不是训练，其启动脚本正是漏写了它；这里必须写明",
        en_hint="add --mode train, or --mode predict --checkpoint checkpoints/best_model.pth",
        zh_hint="加上 --mode train，或 --mode predict --checkpoint checkpoints/best_model.pth",
    ),
    "layoutmaster/guide-odd-mode": Text(
        en="there is no --mode {mode}",
        zh="没有 --mode {mode}",
        en_hint="write --mode train or --mode predict",
        zh_hint="写 --mode train 或 --mode predict",
    ),
    "layoutmaster/ignored-tracker": Text(
        en="no tracker login is needed here: metrics are in the run directory, and `headway export` exports them",
        zh="这里不需要登录任何跟踪平台：指标保存在训练目录中，可用 headway export 导出",
    ),
    "layoutmaster/ignored-device": Text(en="parallel.gpus chooses the devices", zh="设备由 parallel.gpus 决定"),
    "layoutmaster/ignored-multi-gpu": Text(
        en="all free GPUs are used, one process per GPU; parallel.gpus=1 uses one. batch_size remains the total over "
        "all GPUs",
        zh="默认使用所有空闲 GPU，每卡一个进程；parallel.gpus=1 只用一张。batch_size 仍是所有卡的总和",
    ),
    "layoutmaster/ignored-save-dir": Text(
        en="checkpoints to resume from are in the run directory; the guide's own scripts also write their .pth files "
        "to this folder, and `headway ckpt export` writes weights to any place",
        zh="断点续训用的检查点在训练目录中；指南的脚本另外把 .pth 文件写到该目录，"
        "headway ckpt export 可将权重导出到任意位置",
    ),
    "layoutmaster/advice-memory": Text(
        en='lower batch_size, the total over all GPUs (now {total}): "batch_size": 16\nlower hidden_dim (now {hidden})',
        zh='减少 batch_size（所有 GPU 合计，当前 {total}）："batch_size": 16\n减小 hidden_dim（当前 {hidden}）',
    ),
    "layoutmaster/help-start-training": Text(
        en="usage: ./start_training.sh [--config FILE] [--resume FILE]\n"
        "Trains with config_data_action_head.json; log in logs/, checkpoints in checkpoints/",
        zh="用法：./start_training.sh [--config 文件] [--resume 文件]\n"
        "用 config_data_action_head.json 训练；日志在 logs/，检查点在 checkpoints/",
    ),
    "layoutmaster/help-train-multi-gpu": Text(
        en="usage: python train_multi_gpu.py [--config FILE]\n"
        "Asks before it starts (on a terminal), then trains as ./start_training.sh does",
        zh="用法：python train_multi_gpu.py [--config 文件]\n启动前先询问（在终端中），之后与 ./start_training.sh 相同",
    ),
    "layoutmaster/help-train": Text(
        en="usage: python train.py --config FILE --mode train|predict [--resume FILE] [--checkpoint FILE] "
        "[--num_samples N] [--output_dir DIR] [--poster_dir DIR]\n"
        "  --resume       continue from one of the checkpoints in checkpoints/\n"
        "  --checkpoint   the model to predict with; default: checkpoints/best_model.pth",
        zh=(
            "用法：python train.py --config 文件 --mode train|predict [--resume 文件] [--checkpoint 文件] "
            "[--num_samples N] [--output_dir 目录] [--poster_dir 目录]\n"
            "  --resume       从 checkpoints/ 中的某个检查点继续训练\n"
            "  --checkpoint   用于预测的模型，默认为 checkpoints/best_model.pth"
        ),
    ),
    "layoutmaster/help-test-data-loading": Text(
        en="usage: python test_data_loading.py [--config FILE]\n"
        "Prepares the posters as a training would, reads and counts all of them; nothing is trained",
        zh="用法：python test_data_loading.py [--config 文件]\n按训练的方式准备海报数据，全部读取一遍并计数；不训练",
    ),
}

KEYS: dict[str, str] = {
    "task.head_mode": "fixed：修正后的数学；original：原版的数学，其损失爆炸且从不下降。",
    "task.hidden_dim": "Transformer 的宽度。",
    "task.num_layers": "块数：每块含元素间注意力、对图像的注意力和前馈层。",
    "task.num_heads": "注意力头数。",
    "task.max_elements": "一张海报最多的元素数；超出时保留最底下的层。",
    "task.layer_scale": "层序除以该值后映射到 -1 至 1（即指南顶层的 max_elements）；不设则为 max_elements。",
    "task.dropout": "注意力、前馈层和输出头的 dropout。",
    "task.visual_backbone": "看图的网络；除 clip 外都没有可加载的权重。",
    "task.visual_dim": "图像特征的宽度。",
    "task.backbone_path": "`clip` 所用 CLIP 模型的目录，内含 config.json 和 model.safetensors（需要 transformers）。",
    "task.freeze_visual": "骨干网络保持不变；false：与其余部分一起训练。",
    "task.data_dir": "每张海报一个子目录的数据目录（即指南的 data-action_head）。",
    "task.synthetic": "data_dir 中没有海报时，生成小型合成海报，而不是停止。",
    "task.train_ratio": "按名字排序后用于训练的海报比例；其余留作验证。",
    "task.image_size": "骨干网络看到的元素图像边长（像素）。",
    "task.canvas_size": "所有海报缩放到的画布宽和高。",
    "task.use_trajectory_dataset": "使用目录格式；不支持旧的 JSONL 格式。",
    "task.num_timesteps": "扩散的总步数。",
    "task.beta_start": "第一步的噪声；用于 linear 调度。",
    "task.beta_end": "最后一步的噪声；用于 linear 调度。",
    "task.schedule_type": "噪声如何增长。",
    "task.prediction_type": "网络预测什么：干净布局或噪声；不设则 fixed 为 sample，original 为 epsilon。",
    "task.trajectory_steps": "生成器写出的轨迹点数。",
    "task.loss.noise": "网络预测量的 Huber 损失的权重；原版不读取它，因此原版模式下必须为 1。",
    "task.loss.position": "边框损失的权重：平方误差，加上一半的 1 - IoU。",
    "task.loss.layer": "层序损失的权重：平方误差，加上 0.3 倍的两两次序交叉熵。",
    "task.loss.confidence": "置信度平方误差的权重。",
    "task.loss.aesthetic": "美学损失的权重：黄金比例、面积均匀、重心居中。",
    "task.loss.overlap": "重叠损失的权重：每对元素的重叠部分占较小者的比例。",
    "task.loss.alignment": "对齐损失的权重：差一点就对齐的边。",
    "task.betas": "按指南的写法给出 AdamW 的两个衰减；不设则用 optimizer.beta1 和 optimizer.beta2。",
    "task.num_steps": "效果测试和 `headway predict` 的 DDIM 步数。",
    "task.eval_steps": "验证时的 DDIM 步数。",
}
"""What the keys of the recipe's own section are, in Chinese; the English is the string below each field."""
