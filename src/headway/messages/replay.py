"""`headway replay`."""

from headway.messages import Text

_PARTS = {
    "nan-loss": ("the loss is {text}", "损失为 {text}"),
    "nan-gradient": ("the gradient is NaN or Inf", "梯度出现 NaN/Inf"),
    "exception": ("{text:said}", "{text:said}"),
}

TEXTS: dict[str, Text] = {
    "replay/line": Text(
        en="repeat a failed step alone and find the sample that makes it fail",
        zh="重跑失败的那一步，找出使它失败的样本",
    ),
    "replay/help": Text(
        en="""Repeat the step at which a run failed, alone, and find the sample that causes the failure.

It starts from the nearest checkpoint before the step and uses exactly the same samples as the run. A sample is named
when its loss or gradient is NaN or Inf, when it raises an exception, or when its shape differs from the others. The run
itself is not changed. Exit code 5: the step failed again; 0: it did not.

Example:
  headway replay
  headway replay RUN --step 120""",
        zh="""单独重跑训练失败的那一步，找出有问题的样本。

从这一步之前最近的检查点开始，样本与原训练完全一致。有问题的样本：使损失或梯度出现 NaN/Inf、引发异常，或形状不符。
不改动训练目录。退出码 5：再次失败；0：没有失败。

示例：
  headway replay
  headway replay RUN --step 120""",
    ),
    "replay/option-step": Text(
        en="step to repeat; default: the one that failed last", zh="要重跑的步；默认为最近失败的一步"
    ),
    "replay/mindspore": Text(
        en="replay works for recipes on PyTorch; this run trains with MindSpore",
        zh="replay 仅支持 PyTorch 配方；这次训练使用 MindSpore",
    ),
    "replay/no-failed-step": Text(
        en="{run} has no record of a failed step",
        zh="{run} 没有失败的步的记录",
        en_hint="name the step:\n  headway replay {run} --step 1",
        zh_hint="指定步：\n  headway replay {run} --step 1",
    ),
    "replay/beginning": Text(en="the beginning of the run", zh="训练的起点"),
    "replay/from": Text(
        en="step {step}, replayed from {origin} (steps between: {num})",
        zh="第 {step} 步，从 {origin} 重跑（中间步数：{num}）",
    ),
    "replay/nothing": Text(
        en="the step runs without a failure: its samples are not at fault",
        zh="这一步没有失败：问题不在它的样本",
    ),
    "replay/not-exact": Text(
        en="one process computed the micro-batches of all ranks: the samples are the same, sums may differ a little",
        zh="由一个进程依次处理所有 rank 的微批：样本完全一致，求和的末位数字可能不同",
    ),
    "replay/together": Text(
        en="none of the samples fails alone; they fail only together: {samples:list}",
        zh="每个样本单独处理都不失败，只有这些样本放在一起才失败：{samples:list}",
    ),
    **{
        f"replay/part-{kind}": Text(
            en=f"micro-batch {{micro_batch}} of rank {{rank}}: {en}", zh=f"rank {{rank}} 的微批 {{micro_batch}}：{zh}"
        )
        for kind, (en, zh) in _PARTS.items()
    },
    **{
        f"replay/sample-{kind}": Text(
            en=f"sample {{index}} (epoch {{epoch}}, rank {{rank}}): {en}",
            zh=f"样本 {{index}}（第 {{epoch}} 轮，rank {{rank}}）：{zh}",
        )
        for kind, (en, zh) in (
            _PARTS | {"shape": ("its shape differs from the others: {text}", "形状与其他样本不同：{text}")}
        ).items()
    },
}
