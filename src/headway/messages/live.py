"""What is found while a run trains: what it is, what cures it."""

from headway.messages import Text

_RESUME = "  headway stop {run}\n  headway resume {run} "


def _cure(en: str, zh: str, setting: str) -> dict[str, str]:
    return {"en_hint": f"{en}\n{_RESUME}{setting}", "zh_hint": f"{zh}\n{_RESUME}{setting}"}


TEXTS: dict[str, Text] = {
    "live/ignored": Text(en="about {cost} lost if ignored", zh="若不处理，约损失 {cost}"),
    "live/no-cost": Text(en="no time lost so far", zh="目前没有损失时间"),
    "live/failed": Text(
        en="the steps could not be analysed ({why}); training continues, but some findings may be missing",
        zh="无法分析训练步（{why}）；训练继续，但可能漏报问题",
    ),
    "live/data-starved": Text(
        en="rank {rank} waits for data for {percent}% of each step ({wait} of {step}, {now} loader workers); "
        "{wanted} workers would be enough",
        zh="rank {rank} 每步有 {percent}% 的时间在等数据（{step} 中的 {wait}，数据加载进程 {now} 个）；"
        "增至 {wanted} 个就够了",
        **_cure(
            "stop and resume with more workers:",
            "停止，增加数据加载进程后继续训练：",
            "parallel.workers={wanted}",
        ),
    ),
    "live/data-starved-cores": Text(
        en="rank {rank} waits for data for {percent}% of each step ({wait} of {step}, {now} loader workers); it would "
        "take {wanted} workers per rank, but this machine has {cores} cores: prepare the data in advance",
        zh="rank {rank} 每步有 {percent}% 的时间在等数据（{step} 中的 {wait}，数据加载进程 {now} 个）；"
        "每个 rank 需要 {wanted} 个，但本机只有 {cores} 核：应提前处理好数据",
    ),
    "live/straggler": Text(
        en="rank {rank} works {percent}% longer on each step than the others ({work} against {usual}), "
        "and they wait for it",
        zh="rank {rank} 每步比其他 rank 多用 {percent}% 的时间（{work}，其他为 {usual}），其他 rank 都在等它",
        **_cure("stop and resume without its device:", "停止，去掉它的设备后继续训练：", "{setting}"),
    ),
    "live/plan-slow": Text(
        en="a step takes {real}, but the plan was {planned}",
        zh="每步用时 {real}，计划为 {planned}",
        en_hint="measure which settings are fastest here:\n  headway tune",
        zh_hint="实测本机上最快的设置：\n  headway tune",
    ),
    "live/plan-memory": Text(
        en="rank {rank} uses {real} of memory, but the plan was {planned}; memory may run out",
        zh="rank {rank} 占用 {real}，计划为 {planned}；显存或内存可能不足",
        **_cure("stop and resume with a smaller micro-batch:", "停止，减小微批后继续训练：", "batch.per_device={half}"),
    ),
    "live/save-share": Text(
        en="saving takes {percent}% of the time ({taken} for each checkpoint)",
        zh="保存检查点占用 {percent}% 的时间（每个 {taken}）",
        **_cure("stop and resume with fewer saves:", "停止，降低保存频率后继续训练：", "save.every={every}"),
    ),
    "live/disk-slow": Text(
        en="the disk has become slow: the last checkpoint was written at {rate}/s and took {taken}; "
        "it is usually {usual}/s",
        zh="磁盘变慢：最近一个检查点的写入速度为 {rate}/s，用时 {taken}；平时为 {usual}/s",
        **_cure("stop and resume with fewer saves:", "停止，降低保存频率后继续训练：", "save.every={every}"),
    ),
    "live/disk-filling": Text(
        en="the disk of the run directory fills up by {rate} per minute; {free} is left, enough for {left}",
        zh="训练目录所在磁盘每分钟被写入 {rate}；剩余 {free}，只够 {left}",
        en_hint="free some space:\n  headway ckpt prune {run}",
        zh_hint="释放空间：\n  headway ckpt prune {run}",
    ),
    "live/memory-creep": Text(
        en="the memory of {who} grows by {rate} per minute, from {first} to {last} so far; it runs out in {left}",
        zh="{who} 的内存每分钟增加 {rate}，已从 {first} 增至 {last}；{left} 后将耗尽",
        en_hint="usual causes: a list of tensors that keep their graph alive, a cache without a limit",
        zh_hint="常见原因：列表里保存了带计算图的张量、没有上限的缓存",
    ),
    "live/memory-grows": Text(
        en="the memory of {who} grows by {rate} per minute, from {first} to {last} so far; there is enough for the "
        "rest of the run",
        zh="{who} 的内存每分钟增加 {rate}，已从 {first} 增至 {last}；足够到训练结束",
        en_hint="usual causes: a list of tensors that keep their graph alive, a cache without a limit",
        zh_hint="常见原因：列表里保存了带计算图的张量、没有上限的缓存",
    ),
    "live/loss-nan": Text(
        en="the loss of step {step} is NaN or Inf",
        zh="第 {step} 步的损失出现 NaN/Inf",
        en_hint="lower the learning rate, or clip gradients",
        zh_hint="降低学习率，或对梯度做裁剪",
    ),
    "live/steps-skipped": Text(
        en="{num} steps had NaN or Inf in the loss or gradient, most recently step {step}",
        zh="有 {num} 步的损失或梯度出现 NaN/Inf，最近的是第 {step} 步",
        en_hint="find the sample that causes it:\n  headway replay {run} --step {step}",
        zh_hint="查出有问题的样本：\n  headway replay {run} --step {step}",
    ),
    "live/loss-spike": Text(
        en="the loss jumped from {usual} to {loss} at step {step}",
        zh="第 {step} 步的损失突然从 {usual} 升到 {loss}",
        **_cure("stop and resume with a lower learning rate:", "停止，降低学习率后继续训练：", "{setting}"),
    ),
    "live/loss-spike-script": Text(
        en="the loss jumped from {usual} to {loss} at step {step}",
        zh="第 {step} 步的损失突然从 {usual} 升到 {loss}",
        en_hint="continue from an earlier checkpoint with a lower learning rate",
        zh_hint="降低学习率，从更早的检查点继续训练",
    ),
    "live/plateau": Text(
        en="no improvement since step {since}; the run is at step {step}",
        zh="自第 {since} 步以来没有改善；现在是第 {step} 步",
        **_cure(
            "train with another learning rate, or let it stop by itself when nothing improves:",
            "换一个学习率重新训练，或让它在没有改善时自动停止：",
            "eval.patience=5",
        ),
    ),
    "live/plateau-script": Text(
        en="no improvement since step {since}; the run is at step {step}",
        zh="自第 {since} 步以来没有改善；现在是第 {step} 步",
        en_hint="check the learning rate, and that the optimizer has the model's parameters",
        zh_hint="检查学习率，以及优化器是否包含模型的参数",
    ),
    "live/rank-waits": Text(
        en="rank {rank} has kept rank {ranks} waiting for {seconds} s; after step {step} it is busy with: "
        "{phase:phase}",
        zh="rank {ranks} 已等待 rank {rank} {seconds} 秒；后者完成第 {step} 步后正在：{phase:phase}",
        en_hint="see where it is (key d shows its stack), or restart the ranks automatically from now on:\n"
        "  headway watch {run}\n  headway resume {run} launch.on_hang=restart",
        zh_hint="查看它停在哪里（按 d 显示调用栈），或今后让它自动重启：\n  headway watch {run}\n"
        "  headway resume {run} launch.on_hang=restart",
    ),
    "live/stranger": Text(
        en="another process uses GPU {gpu} of this run: {program} of user {user}, pid {pid}, {held}",
        zh="其他进程占用了本次训练的 GPU {gpu}：用户 {user} 的 {program}，pid {pid}，{held}",
        **_cure("stop and resume on the other GPUs:", "停止，用其余 GPU 继续训练：", "{setting}"),
    ),
    "live/stranger-script": Text(
        en="another process uses GPU {gpu} of this run: {program} of user {user}, pid {pid}, {held}",
        zh="其他进程占用了本次训练的 GPU {gpu}：用户 {user} 的 {program}，pid {pid}，{held}",
        en_hint="end it, if it is yours:\n  kill {pid}",
        zh_hint="如果是自己的进程，结束它：\n  kill {pid}",
    ),
    "live/gpu-idle": Text(
        en="GPU {gpu} is busy for {busy}% of the time, the target is {target}%; {used}% of its memory is in use",
        zh="GPU {gpu} 的利用率为 {busy}%，目标为 {target}%；显存使用 {used}%",
        **_cure(
            "stop and resume with a setting that keeps it busier:",
            "停止，改用能提高利用率的设置后继续训练：",
            "{setting}",
        ),
    ),
    "live/gpu-memory": Text(
        en="{used}% of the memory of GPU {gpu} is in use, the target is at most {target}%; "
        "a longer sample may run out of memory",
        zh="GPU {gpu} 的显存使用 {used}%，目标为不超过 {target}%；遇到更长的样本可能显存不足",
        **_cure("stop and resume with a smaller micro-batch:", "停止，减小微批后继续训练：", "{setting}"),
    ),
    "live/gpu-memory-script": Text(
        en="{used}% of the memory of GPU {gpu} is in use, the target is at most {target}%; "
        "a longer sample may run out of memory",
        zh="GPU {gpu} 的显存使用 {used}%，目标为不超过 {target}%；遇到更长的样本可能显存不足",
        en_hint="use a smaller batch with more gradient accumulation",
        zh_hint="减小批大小，增加梯度累积次数",
    ),
    "live/gpu-warm": Text(
        en="GPU {gpu} has been at {target} °C or more for five minutes ({temp} °C now); its clock is not lowered yet",
        zh="GPU {gpu} 连续五分钟不低于 {target} °C（现在 {temp} °C）；尚未降频",
        en_hint="improve its cooling, or lower its power limit:\n  nvidia-smi -q -d TEMPERATURE,POWER -i {gpu}",
        zh_hint="改善散热，或降低功耗上限：\n  nvidia-smi -q -d TEMPERATURE,POWER -i {gpu}",
    ),
}
