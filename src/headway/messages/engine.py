"""What the engine says."""

from __future__ import annotations

from headway.messages import Text

TEXTS = {
    "engine/batch-neutral": Text(
        en="a smaller micro-batch does not change the training: the gradients of {after} samples at once and of "
        "{other} at a time differ by {difference} (limit {limit})",
        zh="减小微批不改变训练：一次 {after} 个样本与每次 {other} 个样本的梯度相对差异为 {difference}（上限 {limit}）",
    ),
    "engine/batch-neutral-noisy": Text(
        en="a smaller micro-batch does not change the training: the gradients of {after} samples at once and of "
        "{other} at a time differ by {difference}, no more than the loss itself varies with "
        "other random numbers ({noise})",
        zh="减小微批不改变训练：一次 {after} 个样本与每次 {other} 个样本的梯度相对差异为 {difference}，"
        "不超过损失函数自身随机数带来的差异（{noise}）",
    ),
    "engine/batch-not-compared": Text(
        en="the micro-batch is now one sample; it could not be checked that the training stays the same",
        zh="微批已减小到 1 个样本，无法核对训练是否保持不变",
    ),
    "engine/batch-not-finite": Text(
        en="the loss or gradients of {num} micro-batches contain NaN or Inf; it could not be checked that the training"
        " stays the same with {after} samples per device instead of {before}",
        zh="{num} 个微批的损失或梯度含有 NaN 或 Inf，无法核对每卡样本数由 {before} 改为 {after} 后训练是否保持不变",
    ),
    "engine/batch-not-neutral": Text(
        en="{before} samples per device ran out of memory, and a smaller micro-batch would change the training: the"
        " gradients of {after} samples at once and of {other} at a time differ by {difference} (limit {limit})",
        zh="每卡 {before} 个样本时显存或内存不足，而减小微批会改变训练：一次 {after} 个样本与每次 {other} 个样本的"
        "梯度相对差异为 {difference}（上限 {limit}）",
        en_hint=(
            "return the sum and the count of the loss from the recipe (not a mean); to continue in any case:\n"
            "  headway resume {run} launch.on_oom=always"
        ),
        zh_hint=(
            "让配方的 loss 返回总和与个数（而不是平均值）；如仍要继续：\n  headway resume {run} launch.on_oom=always"
        ),
    ),
    "engine/batch-norm-not-neutral": Text(
        en="{before} samples per device ran out of memory, and a smaller micro-batch would change the training:"
        " {layers} computes its statistics over the micro-batch",
        zh="每卡 {before} 个样本时显存或内存不足，而减小微批会改变训练：{layers} 的统计量按微批计算",
        en_hint=(
            "to save memory, or to continue with {after} samples per device in any case:\n"
            "  headway resume {run} train.activation_checkpoint=true  # saves memory\n"
            "  headway resume {run} launch.on_oom=always  # continues with {after} samples"
        ),
        zh_hint=(
            "节省显存，或仍以每卡 {after} 个样本继续：\n"
            "  headway resume {run} train.activation_checkpoint=true  # 节省显存\n"
            "  headway resume {run} launch.on_oom=always  # 以 {after} 个样本继续"
        ),
    ),
    "engine/batch-not-proven": Text(
        en="{before} samples per device ran out of memory; on MindSpore it cannot be checked that {after} samples per"
        " device are the same training",
        zh="每卡 {before} 个样本时显存或内存不足；在 MindSpore 上无法核对每卡 {after} 个样本时训练是否保持不变",
        en_hint="to continue in any case:\n  headway resume {run} launch.on_oom=always",
        zh_hint="如仍要继续：\n  headway resume {run} launch.on_oom=always",
    ),
    "engine/not-finite": Text(
        en="NaN or Inf in the {what:word} of step {step}; first on rank {rank}, samples {samples:list}",
        zh="第 {step} 步的{what:word}出现 NaN/Inf；最先出现在 rank {rank}，样本 {samples:list}",
        en_hint=("look at these samples, lower lr.base, or skip such steps:\n  headway resume {run} guard.policy=skip"),
        zh_hint=("检查这些样本、调低 lr.base，或跳过这样的步：\n  headway resume {run} guard.policy=skip"),
    ),
    "engine/not-finite-limit": Text(
        en="NaN or Inf in the {what:word} of step {step} (rank {rank}, samples {samples:list}); guard.limit={limit} "
        "is reached",
        zh="第 {step} 步的{what:word}出现 NaN/Inf（rank {rank}，样本 {samples:list}）；已达到 guard.limit={limit}",
        en_hint="the run does not recover by itself: lower lr.base or check the data",
        zh_hint="训练无法自行恢复：调低 lr.base 或检查数据",
    ),
    "engine/nothing-to-roll-back": Text(
        en="NaN or Inf in the {what:word} of step {step} (rank {rank}, samples {samples:list}), and there is no "
        "checkpoint to roll back to yet",
        zh="第 {step} 步的{what:word}出现 NaN/Inf（rank {rank}，样本 {samples:list}），而且还没有可回退的检查点",
        en_hint=("save earlier (save.every), or skip such steps:\n  headway resume {run} guard.policy=skip"),
        zh_hint=("更早开始保存（save.every），或跳过这样的步：\n  headway resume {run} guard.policy=skip"),
    ),
    "engine/data-changed": Text(
        en="the training data is not the data this run started with ({before:,} samples then, {now:,} now)",
        zh="训练数据与本次训练开始时的不同（当时 {before:,} 个样本，现在 {now:,} 个）",
        en_hint="restore the data, or start a new run with `headway train`",
        zh_hint="恢复原来的数据，或用 `headway train` 开始新的训练",
    ),
    "engine/seed-changed": Text(
        en="the run started with seed={before}, but its config now has seed={now}: the order of samples would change",
        zh="本次训练开始时 seed={before}，而现在的配置是 seed={now}：样本顺序会改变",
        en_hint="restore the seed, or start a new run with `headway train`",
        zh_hint="恢复原来的 seed，或用 `headway train` 开始新的训练",
    ),
    "engine/frozen-changed": Text(
        en="the frozen weights are not the ones this run started with ({before} then, {now} now)",
        zh="冻结的权重与本次训练开始时的不同（当时 {before}，现在 {now}）",
        en_hint="restore the same pretrained files, or start a new run with `headway train`",
        zh_hint="换回原来的预训练文件，或用 `headway train` 开始新的训练",
    ),
    "engine/no-validation-samples": Text(
        en="the validation set is empty, so the model cannot be evaluated",
        zh="验证集为空，无法评测模型",
        en_hint="add held-out samples to the data, then start again",
        zh_hint="为数据补充留出的验证样本，然后重新开始",
    ),
    "engine/other-optimizer": Text(
        en="optimizer.name={name} is set, but this recipe trains with {used}",
        zh="设置了 optimizer.name={name}，但该配方只用 {used} 训练",
        en_hint="set optimizer.name={instead}, or make the recipe's param_groups call headway.task.make_groups",
        zh_hint="设 optimizer.name={instead}，或让该配方的 param_groups 调用 headway.task.make_groups",
    ),
    "engine/stopped-early": Text(
        en="stopped early at step {step}: {stale} validations in a row were no better than the one at step {best}; "
        "to continue: headway resume eval.patience={more}",
        zh=(
            "在第 {step} 步提前停止：连续 {stale} 次验证都没有优于第 {best} 步；"
            "继续训练：headway resume eval.patience={more}"
        ),
    ),
    "engine/trial-failed": Text(
        en="the trial (sampling, rollouts) failed and is skipped, training continues: {why:said}",
        zh="效果测试（采样、rollout）失败，本次跳过，训练继续：{why:said}",
    ),
    "engine/no-trial-sharded": Text(
        en="the model is sharded over the ranks (fsdp), so there are no trials (sampling, rollouts) while it trains",
        zh="模型分片在各 rank 上（fsdp），训练期间不做效果测试（采样、rollout）",
        en_hint="run the trial on a saved checkpoint instead:\n  headway eval {run}",
        zh_hint="改为对已保存的检查点做效果测试：\n  headway eval {run}",
    ),
    "engine/change-does-not-fit": Text(
        en="the checkpoint does not fit what has been changed since it was saved: {why}",
        zh="检查点与保存之后所做的修改不符：{why}",
        en_hint="resume with the earlier values:\n  headway resume {run} {words}",
        zh_hint="改回原来的值后继续训练：\n  headway resume {run} {words}",
    ),
    "engine/recipe-raised": Text(
        en="{type}: {text}, in the recipe's code at {file}, line {line}",
        zh="{type}：{text}，出自配方代码 {file} 第 {line} 行",
        en_hint="correct that line, then type the same command again; the checkpoint is intact",
        zh_hint="改好这一行后重新运行同一命令；检查点完好",
    ),
    "engine/memory-no-room": Text(
        en="no copies of the training state are kept in memory: they would take {need}, and only {free} is free; after "
        "a fault the run continues from its last checkpoint",
        zh="不在内存中保留训练状态的副本：需要 {need}，而空闲内存只有 {free}；发生故障后将从最近的检查点继续",
        en_hint="save more often, so that less is lost:\n  save.every_s=60",
        zh_hint="提高保存频率以减少损失：\n  save.every_s=60",
    ),
    "engine/memory-not-pinned": Text(
        en="the driver did not pin the memory for copies of the training state (error {code}): copies are slower",
        zh="驱动未能锁定用于训练状态副本的内存（错误 {code}），复制会变慢",
    ),
    "engine/save-not-pinned": Text(
        en="the driver did not pin the memory that checkpoints are copied into (error {code}): copies are slower",
        zh="驱动未能锁定用于复制检查点的内存（错误 {code}），复制会变慢",
    ),
    "engine/grace-short": Text(
        en="writing a checkpoint took {taken} s, but a stop gives the ranks only {grace} s: the steps since the last "
        "checkpoint would be lost",
        zh="写入检查点用了 {taken} 秒，而停止时只给各 rank 留 {grace} 秒：上一个检查点之后的步可能丢失",
        en_hint=("after the next stop, give it more time:\n  headway resume {run} launch.grace_s={wanted}"),
        zh_hint=("下次停止后，留出更多时间：\n  headway resume {run} launch.grace_s={wanted}"),
    ),
    "engine/last-save-lost": Text(
        en="the last checkpoint (step {step}) could not be written to {path}",
        zh="最后的检查点（第 {step} 步）无法写入 {path}",
        en_hint=("the reason is in the log above; remove it, then resume:\n  headway resume {run}"),
        zh_hint=("原因见上面的日志；排除后继续训练：\n  headway resume {run}"),
    ),
    "engine/no-checkpoint": Text(
        en="run {run} has no checkpoint that passes verification",
        zh="训练 {run} 没有通过校验的检查点",
        en_hint=("see how far it came, then resume it:\n  headway runs"),
        zh_hint=("先查看它训练到哪一步，再继续训练：\n  headway runs"),
    ),
    "engine/no-such-step": Text(
        en="run {run} has no checkpoint of step {step}",
        zh="训练 {run} 没有第 {step} 步的检查点",
        en_hint=("see which there are:\n  headway ckpt list {run}"),
        zh_hint=("查看已有的检查点：\n  headway ckpt list {run}"),
    ),
    "engine/cannot-predict": Text(
        en="{task} does not support predict",
        zh="{task} 不支持 predict",
        en_hint=("measure it instead:\n  headway eval"),
        zh_hint=("改为评测：\n  headway eval"),
    ),
}
