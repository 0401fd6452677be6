"""What the terminal says while a run trains."""

from __future__ import annotations

from headway.messages import Text

TEXTS = {
    "console/run-made": Text(en="run directory: {run}", zh="训练目录：{run}"),
    "console/run-resumed": Text(en="goes on from step {step}: {run}", zh="从第 {step} 步继续：{run}"),
    "console/resumed": Text(en="training goes on from step {step}", zh="从第 {step} 步继续训练"),
    "console/validation": Text(en="step {step} validation: {values} {mark}", zh="第 {step} 步验证：{values} {mark}"),
    "console/trial": Text(en="step {step} trial: {values}", zh="第 {step} 步试跑：{values}"),
    "console/best": Text(en="(best)", zh="（最佳）"),
    "console/saved": Text(
        en="step {step} checkpoint saved and verified: {size} in {taken}",
        zh="第 {step} 步检查点已保存并校验：{size}，用时 {taken}",
    ),
    "console/save-failed": Text(
        en="step {step} checkpoint failed, training goes on: {why}", zh="第 {step} 步检查点保存失败，训练继续：{why}"
    ),
    "console/checkpoint-skipped": Text(en="checkpoint {path} is not used: {why}", zh="不使用检查点 {path}：{why}"),
    "console/guard": Text(
        en="step {step}: the {what} is not finite (rank {rank}, samples {samples}); guard.policy={policy}",
        zh="第 {step} 步：{what} 不是有限数（rank {rank}，样本 {samples}）；guard.policy={policy}",
    ),
    "console/restart": Text(
        en="rank {rank}: {text}; restarting from the last checkpoint", zh="rank {rank}：{text}；从最近的检查点重启"
    ),
    "console/stop": Text(
        en="saving and stopping; Ctrl-C again stops at once", zh="正在保存并停止；再按一次 Ctrl-C 立即停止"
    ),
    "console/stop-now": Text(en="stopping at once", zh="立即停止"),
    "console/end-done": Text(en="done: {steps} of {total} steps", zh="完成：{steps}/{total} 步"),
    "console/end-best": Text(en="best {name} {value}: {path}", zh="最佳 {name} {value}：{path}"),
    "console/end-gain": Text(
        en="{name} {value} beats {baseline} {baseline_value} by {share}",
        zh="{name} {value}，比 {baseline} 基线 {baseline_value} 好 {share}",
    ),
    "console/end-loss": Text(
        en="{name} {value} is {share} worse than {baseline} {baseline_value}",
        zh="{name} {value}，比 {baseline} 基线 {baseline_value} 差 {share}",
    ),
    "console/end-no-report": Text(
        en="the report could not be written: {why}\nonce that is mended: {command}",
        zh="无法写出报告：{why}\n解决后运行：{command}",
    ),
    "console/end-untold": Text(
        en="the run has ended, but its directory {run} cannot be read any more: {why}",
        zh="训练已结束，但已无法读取其目录 {run}：{why}",
    ),
    "console/end-report": Text(en="report: {path}", zh="报告：{path}"),
}
