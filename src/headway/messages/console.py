"""What the terminal says while a run trains."""

from __future__ import annotations

from headway.messages import Text

TEXTS = {
    "console/run-made": Text(en="run directory: {run}", zh="训练目录：{run}"),
    "console/run-resumed": Text(
        en="resuming {run}: the newest checkpoint is of step {step}", zh="继续训练 {run}：最新检查点为第 {step} 步"
    ),
    "console/run-restarted": Text(en="resuming {run} from step {step}", zh="继续训练 {run}：从第 {step} 步开始"),
    "console/resumed": Text(en="training resumes from step {step}", zh="从第 {step} 步继续训练"),
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
    "console/save-lost": Text(
        en="NOT SAVED: step {step}, failed save number {num} in a row: {why}\n"
        "NOT SAVED: the newest checkpoint is of step {committed}; if the run ends now, everything after it is lost",
        zh="未保存：第 {step} 步，已连续 {num} 次保存失败：{why}\n"
        "未保存：最新检查点为第 {committed} 步；若训练此时中断，其后的结果将全部丢失",
    ),
    "console/save-lost-first": Text(
        en="NOT SAVED: step {step}, failed save number {num} in a row: {why}\n"
        "NOT SAVED: the run has no checkpoint yet; if it ends now, everything is lost",
        zh="未保存：第 {step} 步，已连续 {num} 次保存失败：{why}\n"
        "未保存：该训练还没有检查点；若此时中断，结果将全部丢失",
    ),
    "console/checkpoint-skipped": Text(en="checkpoint {path} is not used: {why}", zh="不使用检查点 {path}：{why}"),
    "console/guard": Text(
        en="step {step}: the {what} is not finite (rank {rank}, samples {samples}); guard.policy={policy}",
        zh="第 {step} 步：{what} 不是有限数（rank {rank}，样本 {samples}）；guard.policy={policy}",
    ),
    "console/restart": Text(
        en="rank {rank}: {text}; restarting from the newest intact checkpoint",
        zh="rank {rank}：{text}；从最新的完好检查点重启",
    ),
    "console/restart-anew": Text(
        en="rank {rank}: {text}; restarting from the first step, there is no checkpoint yet",
        zh="rank {rank}：{text}；还没有检查点，从第一步重新开始",
    ),
    "console/stop": Text(
        en="saving and stopping; Ctrl-C again stops at once", zh="正在保存并停止；再按一次 Ctrl-C 立即停止"
    ),
    "console/save-asked": Text(en="{signal}: saving a checkpoint and continuing", zh="{signal}：保存检查点并继续训练"),
    "console/hang-wait": Text(
        en="waiting; launch.on_hang=restart or stop would act", zh="继续等待；可用 launch.on_hang=restart 或 stop 处理"
    ),
    "console/hang-restart": Text(
        en="ending the ranks, to restart them from the last checkpoint", zh="结束各 rank，从最近的检查点重启"
    ),
    "console/hang-stop": Text(en="ending the run", zh="结束本次训练"),
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
