"""Texts of the TFNet recipe and of what MindSpore says."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "tfnet/other-frames": Text(
        en="{file} is not the ResNet-34 of this model: {name} is {have} there, but {want} here",
        zh="{file} 不是该模型所用的 ResNet-34：其中 {name} 为 {have}，此处为 {want}",
        en_hint="a torchvision ResNet-34 fits the published widths: preset=original",
        zh_hint="torchvision 的 ResNet-34 适用于原版的通道数：preset=original",
    ),
    "tfnet/crop": Text(
        en="task.crop_size={crop} is larger than the frames, task.frame_size={frame}",
        zh="task.crop_size={crop} 大于帧的尺寸 task.frame_size={frame}",
        en_hint=("at least:\n  task.frame_size={crop}"),
        zh_hint=("至少为：\n  task.frame_size={crop}"),
    ),
    "tfnet/frames": Text(
        en="task.min_frames={low} is more than task.max_frames={high}",
        zh="task.min_frames={low} 大于 task.max_frames={high}",
        en_hint=("at most:\n  task.min_frames={high}"),
        zh_hint=("最多为：\n  task.min_frames={high}"),
    ),
    "tfnet/sink-shape": Text(
        en="task.data_sink needs batches of one shape, but with task.bucket={bucket} they have several",
        zh="task.data_sink 要求所有批次形状相同，而 task.bucket={bucket} 时形状不止一种",
        en_hint=("lower task.max_frames, or use the larger bucket:\n  task.bucket={want}"),
        zh_hint=("调小 task.max_frames，或改用更大的分桶：\n  task.bucket={want}"),
    ),
    "tfnet/no-labels": Text(
        en="cannot read the labels {file}: {why:said}",
        zh="无法读取标注文件 {file}：{why:said}",
        en_hint=(
            "set task.data_dir to the folder that holds video/ and label/, or try the synthetic data:\n"
            "  task.synthetic=true"
        ),
        zh_hint=("将 task.data_dir 设为包含 video/ 与 label/ 的目录，或先用合成数据：\n  task.synthetic=true"),
    ),
    "tfnet/no-named-labels": Text(
        en="{key} names the labels {file}, but there is no such file",
        zh="{key} 指定的标注文件 {file} 不存在",
        en_hint="correct the path, or leave {key} out: the labels are then those of task.data_dir",
        zh_hint="改正路径；或去掉 {key}，使用 task.data_dir 中的标注",
    ),
    "tfnet/bad-header": Text(
        en="the header of {file} is {have}, but CE-CSL's labels have {want}",
        zh="{file} 的表头是 {have}，而 CE-CSL 标注的表头应为 {want}",
        en_hint="use a CSV file in UTF-8 with that header",
        zh_hint="使用带有该表头的 UTF-8 编码 CSV 文件",
    ),
    "tfnet/no-rows": Text(
        en="{file} has {lines} lines and 0 complete rows",
        zh="{file} 共 {lines} 行，其中完整的标注为 0 行",
        en_hint="download the labels again",
        zh_hint="重新下载标注文件",
    ),
    "tfnet/short-rows": Text(
        en="{file}: skipped {num} incomplete rows (lines {lines:list})",
        zh="{file}：略去 {num} 行不完整的标注（第 {lines:list} 行）",
    ),
    "tfnet/missing-clips": Text(
        en="{num} of {total} labelled clips are not in {folder}: {names:list}",
        zh="{total} 个有标注的片段中有 {num} 个不在 {folder} 中：{names:list}",
        en_hint="a clip is {folder}/<signer>/<number>.mp4 or a folder of frames with that name",
        zh_hint="片段应为 {folder}/<手语者>/<编号>.mp4，或同名的帧目录",
    ),
    "tfnet/empty-clip": Text(
        en="clip {clip} has no frames",
        zh="片段 {clip} 没有任何帧",
        en_hint="download it again, or remove its row from the labels",
        zh_hint="重新下载该片段，或从标注中删去对应的行",
    ),
    "tfnet/bad-frame": Text(
        en="cannot read {file}: {why:said}",
        zh="无法读取 {file}：{why:said}",
        en_hint="download it again, or remove its row from the labels",
        zh_hint="重新下载该文件，或从标注中删去对应的行",
    ),
    "tfnet/no-decoder": Text(
        en="{clip} is a video, but no video decoder is installed",
        zh="{clip} 是视频文件，但没有安装解码库",
        en_hint=(
            "unpack each clip into a folder of JPEG frames of the same name, or install a decoder:\n  pip install av"
        ),
        zh_hint=("把每个片段解成同名目录下的 JPEG 帧，或安装解码库：\n  pip install av"),
    ),
    "tfnet/unseen": Text(
        en="{num} words of dev and test never occur in the training set: {words:list}",
        zh="dev 与 test 中有 {num} 个词从未在训练集中出现：{words:list}",
    ),
    "tfnet/short-clips": Text(
        en="{num} of {total} training clips have too few frames for their labels (have < needed): {names:list}",
        zh="{total} 个训练片段中有 {num} 个的帧数不足以容纳其标注（现有 < 所需）：{names:list}",
        en_hint=("raise task.max_frames if that is what cuts them, or leave them out:\n  task.short_clips=skip"),
        zh_hint=("若因 task.max_frames 截断所致，调大该值；或略去它们：\n  task.short_clips=skip"),
    ),
    "tfnet/making": Text(
        en="creating a small synthetic data set with the layout of CE-CSL in {folder}",
        zh="正在 {folder} 中按 CE-CSL 的目录结构生成小型合成数据",
    ),
    "tfnet/only-synthetic": Text(
        en="{folder} contains the small synthetic set, but this run needs real clips",
        zh="{folder} 中是小型合成数据，而本次训练要求真实片段",
        en_hint=("set task.data_dir to CE-CSL, or train on the synthetic clips:\n  task.synthetic=true"),
        zh_hint=("将 task.data_dir 指向 CE-CSL；如果合成数据就够用：\n  task.synthetic=true"),
    ),
    "tfnet/found": Text(
        en="clips: {train} for training, {dev} for validation, {test} for testing; {words} words",
        zh="片段：训练 {train}，验证 {dev}，测试 {test}；词表 {words} 个词",
    ),
    "tfnet/vocabulary": Text(
        en="the weights were trained with {before} words, but the data has {now}; word {number} was {was} and is now "
        "{is_now}",
        zh="权重对应 {before} 个词，而当前数据有 {now} 个词；第 {number} 个词原为 {was}，现为 {is_now}",
        en_hint="use the labels and task.text_cleanup the weights were trained with",
        zh_hint="使用训练该权重时的标注与 task.text_cleanup",
    ),
    "tfnet/guide-start": Text(
        en="TFNet training with {config}; log: {log}", zh="启动 TFNet 训练：{config}；日志：{log}"
    ),
    "tfnet/column-clip": Text(en="clip", zh="片段"),
    "tfnet/column-read": Text(en="prediction", zh="预测"),
    "tfnet/column-label": Text(en="label", zh="标注"),
    "tfnet/column-errors": Text(en="errors", zh="错误"),
    "tfnet/guide-end": Text(
        en="training ended with exit code {code} after {minutes} minutes",
        zh="训练结束，退出码 {code}，用时 {minutes} 分钟",
    ),
    "tfnet/guide-device": Text(en="devices: {names:list}", zh="设备：{names:list}"),
    "tfnet/guide-memory": Text(
        en="memory: {have} GiB (the guide requires {want} GB)",
        zh="内存：{have} GiB（指南要求 {want} GB）",
        en_hint="lower training.batch_size and dataset.max_frames in the config",
        zh_hint="在配置中调小 training.batch_size 与 dataset.max_frames",
    ),
    "tfnet/guide-disk": Text(
        en="free disk: {have} GiB (the guide requires {want} GB)",
        zh="可用磁盘：{have} GiB（指南要求 {want} GB）",
        en_hint="free some space, or keep fewer checkpoints with save.keep_last=1",
        zh_hint="清理磁盘，或用 save.keep_last=1 少保留检查点",
    ),
    "tfnet/guide-conda": Text(
        en="conda environment: {name} (any name works; only the installed packages matter)",
        zh="conda 环境：{name}（名称不限，只看其中装了什么）",
    ),
    "tfnet/guide-no-mindspore": Text(
        en="MindSpore is not installed in {python}",
        zh="{python} 中没有安装 MindSpore",
        en_hint=("install it:\n  {python} -m pip install mindspore 'numpy<2'"),
        zh_hint=("安装它：\n  {python} -m pip install mindspore 'numpy<2'"),
    ),
    "tfnet/guide-config": Text(en="config is readable: {path}", zh="配置文件可读：{path}"),
    "tfnet/ignored-name": Text(en="it is only a name", zh="它只是一个名称"),
    "tfnet/ignored-precision": Text(
        en="task.amp_level (MindSpore) or train.precision (PyTorch) sets the precision",
        zh="精度由 task.amp_level（MindSpore）或 train.precision（PyTorch）决定",
    ),
    "tfnet/ignored-rowsize": Text(
        en="batches are not passed through MindSpore's shared memory", zh="批次不经过 MindSpore 的共享内存传递"
    ),
    "tfnet/ignored-reuse": Text(en="MindSpore always reuses memory", zh="MindSpore 始终复用内存"),
    "tfnet/ignored-ctc": Text(
        en="the blank is always 0 and the loss is a mean over clips", zh="空白符始终为 0，损失按片段取平均"
    ),
    "tfnet/ignored-optimizer": Text(
        en="optimizer.name sets the optimizer; lr.schedule, lr.milestones and lr.gamma set the learning-rate schedule",
        zh="优化器由 optimizer.name 设定，学习率调度由 lr.schedule、lr.milestones 与 lr.gamma 设定",
    ),
    "tfnet/ignored-paths": Text(
        en="checkpoints to resume from and all logs are in the run directory, which is below paths.output_dir; the "
        "guide's own scripts also write checkpoints_gpu/ and logs_gpu/",
        zh="断点续训用的检查点和全部日志在训练目录中，训练目录在 paths.output_dir 之下；"
        "指南的脚本另外写 checkpoints_gpu/ 和 logs_gpu/",
    ),
    "tfnet/ignored-logging": Text(
        en="every step is recorded, and the screen shows the important values", zh="每一步都会记录，屏幕只显示要点"
    ),
    "tfnet/advice-memory": Text(
        en="lower training.batch_size in the config (now {per_device})\nlower model.hidden_size (now {hidden})\n"
        "close other programs on the GPU",
        zh="在配置中减少 training.batch_size（当前 {per_device}）\n"
        "减小 model.hidden_size（当前 {hidden}）\n关闭其他 GPU 应用程序",
    ),
    "tfnet/advice-device": Text(
        en="check that the NVIDIA driver is installed: nvidia-smi\n"
        "check that CUDA is installed: nvcc --version\n"
        "check that the GPU build of MindSpore is installed: python test_gpu_setup.py",
        zh=(
            "确认 NVIDIA 驱动已安装：nvidia-smi\n确认 CUDA 已安装：nvcc --version\n"
            "确认已安装 MindSpore GPU 版本：python test_gpu_setup.py"
        ),
    ),
    "tfnet/advice-environment": Text(
        en="use the environment with MindSpore: . ./enter_mindspore.sh (the guide's conda activate mindspore-gpu)\n"
        "check it: python test_gpu_setup.py",
        zh="进入装有 MindSpore 的环境：. ./enter_mindspore.sh（即指南中的 conda activate mindspore-gpu）\n"
        "检查环境：python test_gpu_setup.py",
    ),
    "tfnet/help-test-gpu-setup": Text(
        en="usage: python test_gpu_setup.py [--config FILE]\n"
        "Checks devices, memory, disk, MindSpore, the config and the data; nothing is trained",
        zh="用法：python test_gpu_setup.py [--config 文件]\n检查设备、内存、磁盘、MindSpore、配置和数据；不训练",
    ),
    "tfnet/help-quick-start-gpu": Text(
        en="usage: python quick_start_gpu.py [--config FILE]\nChecks the machine, then trains",
        zh="用法：python quick_start_gpu.py [--config 文件]\n先检查本机，再训练",
    ),
    "tfnet/help-start-training-gpu": Text(
        en="usage: ./start_training_gpu.sh [--config FILE] [--resume latest|RUN|FILE]\n"
        "Trains with configs/gpu_config.json; log in logs_gpu/, "
        "checkpoints in checkpoints_gpu/, the rest in output_gpu/",
        zh="用法：./start_training_gpu.sh [--config 文件] [--resume latest|RUN|FILE]\n"
        "用 configs/gpu_config.json 训练；日志在 logs_gpu/，检查点在 checkpoints_gpu/，其余在 output_gpu/",
    ),
    "tfnet/help-train-tfnet-gpu": Text(
        en="usage: python train_tfnet_gpu.py --config configs/gpu_config.json [--resume latest|RUN|FILE]\n"
        "Trains; log in logs_gpu/, checkpoints in checkpoints_gpu/, the rest in output_gpu/",
        zh="用法：python train_tfnet_gpu.py --config configs/gpu_config.json [--resume latest|RUN|FILE]\n"
        "启动训练；日志在 logs_gpu/，检查点在 checkpoints_gpu/，其余在 output_gpu/",
    ),
}

KEYS: dict[str, str] = {
    "task.framework": "训练所用的框架；两种框架的检查点格式相同。",
    "task.data_dir": "CE-CSL 目录，含 video/{train,dev,test}/<手语者>/<编号> 与 label/{train,dev,test}.csv。",
    "task.train_data_path": "训练片段的目录；不设则为 data_dir 下的 video/train。",
    "task.valid_data_path": "验证片段的目录；不设则为 data_dir 下的 video/dev。",
    "task.test_data_path": "测试片段的目录；不设则为 data_dir 下的 video/test。",
    "task.train_label_path": "训练标注；不设则为 data_dir 下的 label/train.csv。",
    "task.valid_label_path": "验证标注；不设则为 data_dir 下的 label/dev.csv。",
    "task.test_label_path": "测试标注；不设则为 data_dir 下的 label/test.csv。",
    "task.synthetic": "data_dir 中没有标注时，按同样的目录结构生成小型合成数据，而不是停下。",
    "task.short_clips": "帧数不足以容纳标注的训练片段如何处理：列出后停止，或列出后略去。",
    "task.text_cleanup": "手语词的清洗方式；no_punct 还会去掉标点，其 WER 不能与论文相比。",
    "task.frame_size": "裁剪前帧的高与宽。",
    "task.crop_size": "模型看到的高与宽。",
    "task.min_frames": "时间缩放后片段的最少帧数。",
    "task.max_frames": "片段的最多帧数；更长的会均匀抽帧。",
    "task.bucket": "批次的帧数补齐到该值的倍数；该值越大，需要编译的计算图越少。",
    "task.time_rescale": "训练片段在时间上最多拉伸或压缩的比例。",
    "task.flip": "被左右翻转的训练片段所占比例；同一片段的各帧一致。",
    "task.cache_bytes": "每个 rank 在内存中保留的已解码片段字节数。",
    "task.hidden_size": "两个序列分支的通道数。",
    "task.channels": "帧网络四个阶段的通道数。",
    "task.blocks": "帧网络四个阶段的残差块数。",
    "task.attention": "主干之前及第 2 至 4 阶段之前的运动注意力的隐藏通道数。",
    "task.frames_file": (
        "帧网络起始所用的 ImageNet ResNet-34 权重（resnet34-333f7ec4.pth 或 resnet34-b627a593.pth），与原版相同；"
        "不设则由随机种子生成。"
    ),
    "task.thin_eval": "验证和测试片段也均匀抽取到 max_frames 帧；原版读取全部帧。",
    "task.merge_equal": "把相邻的两个相同 gloss 读作一个，与原版的解码器相同。",
    "task.frequency": "是否训练第二个分支，其输入为每帧特征的频谱。",
    "task.distill": "卷积向 LSTM 学习的蒸馏方式；original：教师也会被更新，填充帧也计入。",
    "task.kd_temperature": "蒸馏的 softmax 温度。",
    "task.kd_weight": "每个蒸馏项的权重。",
    "task.decoder": "评测时如何从输出得到手语词。",
    "task.beam_width": "束搜索保留的句子数。",
    "task.device_target": "MindSpore：训练所用的设备；auto：按计划所定。",
    "task.device_id": "MindSpore：设备编号；不设则为 rank 自己的编号。",
    "task.graph_mode": "MindSpore：编译整步运行（GRAPH_MODE）；false 则逐行运行（PYNATIVE_MODE）。",
    "task.force_pynative": "MindSpore：无论 task.graph_mode 如何都逐行运行。",
    "task.amp_level": "MindSpore：混合精度级别；O0 即 fp32，true 即 O2。",
    "task.loss_scale": "MindSpore：amp_level 为 O1 至 O3 时损失乘上的倍数，随后再从梯度中除去；损失本身是较大的总和。",
    "task.graph_kernel": "MindSpore：在 GPU 与 Ascend 上融合算子（enable_graph_kernel）。",
    "task.max_device_memory": "MindSpore：显存上限，例如 8GB。",
    "task.mempool_block_size": "MindSpore：每次申请显存的大小，例如 512MB；实际至少为 1GB。",
    "task.memory_offload": "MindSpore：把闲置的张量放到主机内存。",
    "task.prefetch": "MindSpore：提前读取的批次数。",
    "task.data_sink": "MindSpore：把批次送入设备上的队列（GPU 与 Ascend）；所有批次须形状相同，见 bucket。",
    "task.profiling": "MindSpore：把性能分析写入训练目录。",
    "task.dump": "MindSpore：把编译出的计算图写入训练目录。",
}
"""Chinese descriptions of the recipe's own keys."""
