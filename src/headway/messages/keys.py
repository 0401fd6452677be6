"""What each key of the config is, in Chinese. The English is the string below the field, said there and only there.

A recipe's own keys are `KEYS` in its texts. A test asks for every key of every built-in recipe.
"""

from __future__ import annotations

from importlib import import_module

from headway.messages import find_module

CHINESE: dict[str, str] = {
    "recipe": "内置配方的名字，或含有 preset.py 和 task.py 的目录。",
    "preset": "以配方的哪个预设为起点。",
    "name": "训练目录名中的名字；不设则用配方名。",
    "out": "存放训练目录的位置。",
    "lang": "界面语言；auto 取自系统区域设置。",
    "seed": "权重初始化、数据顺序和数据增强的随机种子。",
    "task": "配方自己的配置段：模型大小、数据路径；参见 `headway config explain task`。",
    "batch": "每步（参数更新）用多少样本。",
    "batch.per_device": "每卡批大小：每个 rank 一次前向和反向传播处理的样本数（微批，micro-batch）。",
    "batch.total": "总批大小：每步中所有 rank、所有微批的样本数或 token 数（见 `batch.unit`）。",
    "batch.accumulation": "梯度累积次数：每个 rank 处理多少个微批后更新一次参数；给出 per_device 和 total 时自动推出。",
    "batch.all_devices": "所有 rank 在一个微批中的样本总数，有的指南称为总批大小；除以 rank 数得到 per_device。",
    "batch.unit": "`batch.total` 的计数单位。",
    "lr": "学习率、随批大小缩放的规则、学习率调度。",
    "lr.base": "总批大小为 `lr.base_batch` 时的学习率；有多个参数组的配方按它缩放各组的学习率。",
    "lr.base_batch": "调出 `lr.base` 时的总批大小（单位见 `batch.unit`）；不设则为本次训练的总批大小。",
    "lr.scaling": "总批大小与 `lr.base_batch` 之比变化时，学习率如何跟随。",
    "lr.schedule": "学习率预热之后的学习率调度；`linear` 在训练最后 `lr.decay` 的部分降到 `lr.final`。",
    "lr.warmup_samples": "学习率预热：学习率从零升到设定值所用的样本数。",
    "lr.warmup_steps": "学习率预热的步数，即指南的计数方式；不设则由 `lr.warmup_samples` 决定。",
    "lr.decay": "`linear` 在训练最后多大比例内下降；cosine 和 multistep 覆盖整个训练。",
    "lr.final": "cosine 或 linear 结束时剩余学习率的比例。",
    "lr.min": "最终学习率，直接写数值而不是比例（例如从 4e-4 降到 1e-6）；不设则由 `lr.final` 决定。",
    "lr.milestones": "`multistep` 在训练的哪些比例处把学习率乘以 `lr.gamma`。",
    "lr.gamma": "`multistep` 的倍率。",
    "optimizer": "配方没有自行设置的参数组所用的优化器。",
    "optimizer.name": "优化器；muon 负责矩阵，其余交给 AdamW。",
    "optimizer.beta1": "一阶矩的衰减。",
    "optimizer.beta2": "二阶矩的衰减。",
    "optimizer.eps": "加在二阶矩平方根上的小量。",
    "optimizer.weight_decay": "权重衰减：AdamW 和 Muon 为解耦式，Adam 和 SGD 为 L2。",
    "optimizer.momentum": "SGD：保留上一次更新的比例；0 表示不用动量，也没有优化器状态。",
    "optimizer.nesterov": "SGD：使用 Nesterov 形式的动量。",
    "optimizer.clip": "全局梯度范数的上限；不设则不裁剪。",
    "train": "训练多久、用什么精度计算。",
    "train.steps": "整个训练的步数（参数更新次数）；steps、samples、epochs 只给一个。",
    "train.samples": "整个训练的样本数。",
    "train.epochs": "遍历训练集的轮数。",
    "train.precision": "计算精度；auto：GPU 支持时用 bf16，CPU 上用 fp32。",
    "train.compile": "用 torch.compile 编译模型。",
    "train.activation_checkpoint": "激活重计算：反向传播时逐块重新计算激活值，以节省显存。",
    "train.tf32": "在 GPU 上用 TensorFloat-32 计算 fp32 的乘积：更快，尾数为 10 位。",
    "train.deterministic": "在 GPU 上只使用确定性算子，使断点续训的结果逐位一致：速度较慢，"
    "遇到没有确定性实现的算子时训练报错结束。CPU 上的 rank 不需要它，结果本来就逐位一致。",
    "eval": "验证、最佳模型、早停。",
    "eval.every": "每隔多少步验证一次；0：只在结束时。",
    "eval.every_epochs": "除 `eval.every` 之外，像有些指南那样每隔多少轮验证一次。",
    "eval.samples": "验证样本数；不设则用整个验证集。",
    "eval.trial_every": "每隔多少步做一次效果测试（采样、rollout；仅限支持的配方）；0：只在结束时。",
    "eval.patience": "连续多少次验证没有改善就提前停止；不设则从不早停。",
    "save": "检查点及其保留。",
    "save.every": "每隔多少步保存一次检查点；0：只在结束和收到停止请求时。",
    "save.every_epochs": "除 `save.every` 之外，像有些指南那样每隔多少轮保存一次。",
    "save.every_s": "除 `save.every` 之外，每隔多少秒也保存一次。",
    "save.in_memory": (
        "每隔多少步在主机内存中保留一份训练状态；rank 被强制终止、崩溃或卡死后从它继续训练。"
        "auto：每步一次，若因此占用超过 5% 的训练时间则减少次数；0：不保留，从最近的检查点继续。"
    ),
    "save.keep_last": "保留最新的几个检查点。",
    "save.keep_every": "步数为该值倍数的检查点都保留。",
    "save.keep_best": "保留验证结果最好的检查点。",
    "save.mirror": (
        "训练继续的同时把已提交的检查点复制到哪里：`s3://bucket/folder`、`ssh://host/folder` 或另一块磁盘上的目录；"
        "用 `headway ckpt fetch` 从那里取回训练。"
    ),
    "save.mirror_keep_last": "副本处保留最新的几个检查点；`save.keep_every` 和 `save.keep_best` 同样适用。",
    "save.mirror_wait_s": "训练完成后，最多等待多少秒让最后的检查点复制完。",
    "ema": "权重的 EMA（滑动平均）。",
    "ema.decay": "EMA 的衰减；不设则不保留 EMA。",
    "ema.power": "衰减按 `1 - (1 + step / inv_gamma) ** -power` 升高，同 RDT；不设则按 `(1 + step) / (10 + step)`。",
    "ema.inv_gamma": "配合 ema.power，把升高过程拉长到更多步。",
    "ema.update_after": "配合 ema.power，在前多少步内平均值就等于权重本身。",
    "ema.min": "配合 ema.power，升高过程中衰减的最小值。",
    "guard": "NaN 与 Inf 的处理。",
    "guard.policy": "停止训练、跳过该步的更新，或回退到上一个检查点并跳过该步的样本。",
    "guard.limit": "跳过或回退达到多少次后停止训练。",
    "parallel": "设备与并行方式。",
    "parallel.gpus": "使用哪些 GPU：所有空闲的、数量或编号；0：在 CPU 上训练。",
    "parallel.cpus": "不用 GPU 时的 CPU rank 数。",
    "parallel.strategy": "单进程、每步汇总一次梯度的副本（DDP），或分片参数（FSDP2）。",
    "parallel.offload": "用于 fsdp：权重、梯度和优化器状态放在主机内存中并在那里更新，"
    "每一块用到时才移到 GPU。速度较慢，用于状态放不下显存的模型。",
    "parallel.workers": "每个 rank 的数据加载进程数；0：由 rank 自己加载。",
    "parallel.prefetch": "每个数据加载进程预先准备好的微批数。",
    "parallel.all_workers": "所有 rank 合计的数据加载进程数，单进程的指南就是这样计数；据此均分得到 workers。",
    "parallel.threads": "每个 rank 的 CPU 线程数；不设则均分各核。",
    "parallel.timeout_s": "rank 之间的一次通信（NCCL、gloo）超过这么多秒就放弃；卡死的 rank 由心跳更早发现。",
    "launch": "监控与重启。",
    "launch.grace_s": "收到停止信号后，留给各 rank 保存并退出的秒数，超时则强制终止；"
    "未设置时，若计划的检查点较大、两次保存耗时更长，则自动延长。",
    "launch.restarts": "连续重启多少次仍无进展就彻底停止（退出码 93）。",
    "launch.on_oom": (
        "内存不足时：shrink 在证明训练结果不变的前提下减小微批并增加梯度累积（总批大小不变）后继续，"
        "always 任何情况下都继续，stop 结束训练。"
    ),
    "launch.on_hang": (
        "rank 卡死或被信号暂停时：wait 提示并等待，restart 从最近保留的状态重启所有 rank，stop 结束训练。"
    ),
    "launch.on_lost": (
        "rank 或 GPU 彻底丢失时：continue 以相同的总批大小在剩余的 rank 上继续训练，丢失的 rank 恢复后再接回来；"
        "stop 结束训练。适用于单机上的 PyTorch 配方。"
    ),
    "launch.lost_after": "同一个 rank 连续多少次一启动就失败（一步都没完成）后视为丢失。",
    "launch.return_s": "多少秒后重新尝试丢失的 rank；每次失败后等待时间加倍，最长一小时。",
    "alert": "发往聊天工具、邮箱或 webhook 的消息。",
    "alert.to": (
        "保存地址的环境变量名；地址本身只有不含密钥时才能写在这里。`HEADWAY_ALERT_TO` 中的地址总会使用。"
        "参见 docs/howto/alerts.zh-CN.md。"
    ),
    "alert.on": "对哪些事件发消息。",
    "alert.when": "对指标的条件，例如 `val.bpb > 1.2` 或 `loss > 5 and step > 1000`；每次变为成立时发一条。",
    "alert.no_progress_s": "多少秒没有完成新的步就算没有进展。",
    "alert.quiet": "免打扰的本地时段，例如 `23:00-07:00`；此间只发送训练结束的消息，其余的在时段过后发送。",
    "alert.repeat_s": "同一条消息再次发送前至少间隔的秒数；其间未发送的条数写在下一条消息里。",
    "alert.per_hour": "每小时最多发送的消息数；训练结束总会发送。",
    "track": "接收 rank 0 数值的实验跟踪平台。",
    "track.to": "写入哪些平台；平台的软件包和账号由你自己准备。",
    "track.project": "平台中的项目（实验）名。",
    "track.name": "训练在平台中的名字；不设则用训练目录名。",
    "watch": "训练中发现的问题从何时起报告；默认值为各指南的目标。",
    "watch.data_wait": "一步之中，rank 等待数据的时间最多可占多大比例。",
    "watch.straggler": "一个 rank 每步的工作时间最多可比其他 rank 长多少（比例）。",
    "watch.plan_off": "每步时间和内存最多可比计划多出多少（比例）。",
    "watch.save_share": "保存检查点最多可占训练时间的多大比例。",
    "watch.gpu_busy": "GPU 利用率应达到的比例。",
    "watch.memory_least": "GPU 不够忙时，显存至少应使用的比例。",
    "watch.memory_most": "显存最多使用的比例，计划本就更高时除外。",
    "watch.temp_c": "GPU 温度应低于多少摄氏度。",
    "watch.quiet_s": "其他 rank 等待某个 rank 至少多少秒才报告。",
    "env": "rank 的解释器。",
    "env.python": "框架装在别的环境时，rank 所用的 Python；不设则用当前环境的。",
}


def describe_key(key: str, recipe: str) -> str | None:
    """Return what a key is, or None for a key of a recipe that has no Chinese."""
    if key in CHINESE:
        return CHINESE[key]
    try:
        own: dict[str, str] = vars(import_module(find_module(recipe))).get("KEYS", {})
    except ModuleNotFoundError:
        return None
    return own.get(key)
