"""What the terminal says while a run trains."""

from __future__ import annotations

from headway.messages import Text

TEXTS = {
    "console/run-made": Text(en="run directory: {run}", zh="训练目录：{run}"),
    "console/run-resumed": Text(
        en="resuming {run}: the newest checkpoint is at step {step}", zh="继续训练 {run}：最新检查点为第 {step} 步"
    ),
    "console/run-restarted": Text(en="resuming {run} from step {step}", zh="继续训练 {run}：从第 {step} 步开始"),
    "console/resumed": Text(en="training resumes from step {step}", zh="从第 {step} 步继续训练"),
    "console/validation": Text(en="step {step} validation: {values} {mark}", zh="第 {step} 步验证：{values} {mark}"),
    "console/trial": Text(en="step {step} trial: {values}", zh="第 {step} 步效果测试：{values}"),
    "console/best": Text(en="(best)", zh="（最佳）"),
    "console/saved": Text(
        en="step {step} checkpoint saved and verified: {size} in {taken}",
        zh="第 {step} 步检查点已保存并校验：{size}，用时 {taken}",
    ),
    "console/save-failed": Text(
        en="step {step}: the checkpoint was not saved, training continues: {why:said}",
        zh="第 {step} 步检查点保存失败，训练继续：{why:said}",
    ),
    "console/save-lost": Text(
        en="NOT SAVED: step {step}, {num} failed saves in a row: {why:said}\n"
        "NOT SAVED: the newest checkpoint is at step {committed}; if the run ends now, everything after it is lost",
        zh=(
            "未保存：第 {step} 步，已连续 {num} 次保存失败：{why:said}\n"
            "未保存：最新检查点为第 {committed} 步；若训练此时中断，其后的结果将全部丢失"
        ),
    ),
    "console/save-lost-first": Text(
        en="NOT SAVED: step {step}, {num} failed saves in a row: {why:said}\n"
        "NOT SAVED: the run has no checkpoint yet; if it ends now, everything is lost",
        zh=(
            "未保存：第 {step} 步，已连续 {num} 次保存失败：{why:said}\n"
            "未保存：该训练还没有检查点；若此时中断，结果将全部丢失"
        ),
    ),
    "console/checkpoint-skipped": Text(
        en="checkpoint {path} is not used: {why:said}", zh="不使用检查点 {path}：{why:said}"
    ),
    "console/guard": Text(
        en="step {step}: NaN or Inf in the {what:word} (rank {rank}, samples {samples:list}); guard.policy={policy}",
        zh="第 {step} 步：{what:word}出现 NaN/Inf（rank {rank}，样本 {samples:list}）；guard.policy={policy}",
    ),
    "console/resumed-memory": Text(
        en="training continues from step {step}, which was kept in memory; steps to redo: {redone}",
        zh="从内存中保留的第 {step} 步继续训练；需重做的步数：{redone}",
    ),
    "console/memory-refused": Text(
        en="the copy in memory cannot be used (rank {rank}: {why}); continuing from the newest intact checkpoint",
        zh="内存中的副本不可用（rank {rank}：{why}）；从最新的完好检查点继续",
    ),
    "console/restart-memory": Text(
        en="rank {rank}: {text}; restarting from the last finished step, which is kept in memory",
        zh="rank {rank}：{text}；从内存中保留的最后完成的一步重启",
    ),
    "console/restart": Text(
        en="rank {rank}: {text}; restarting from the newest intact checkpoint",
        zh="rank {rank}：{text}；从最新的完好检查点重启",
    ),
    "console/restart-anew": Text(
        en="rank {rank}: {text}; restarting from the first step, because there is no checkpoint yet",
        zh="rank {rank}：{text}；还没有检查点，从第一步重新开始",
    ),
    "console/stop": Text(
        en="saving and stopping; press Ctrl-C again to stop immediately", zh="正在保存并停止；再按一次 Ctrl-C 立即停止"
    ),
    "console/save-asked": Text(
        en="{signal}: saving a checkpoint; training continues", zh="{signal}：保存检查点并继续训练"
    ),
    "console/hang-wait": Text(
        en="waiting; set launch.on_hang=restart or launch.on_hang=stop to act on a hang",
        zh="继续等待；可用 launch.on_hang=restart 或 launch.on_hang=stop 处理",
    ),
    "console/hang-restart": Text(
        en="ending the ranks to restart them from the last state that was kept", zh="结束各 rank，从最近保留的状态重启"
    ),
    "console/hang-stop": Text(en="ending the run", zh="结束本次训练"),
    "console/stop-now": Text(en="stopping immediately", zh="立即停止"),
    "console/end-done": Text(en="done: {steps} of {total} steps", zh="完成：{steps}/{total} 步"),
    "console/end-best": Text(en="best {name} {value}: {path}", zh="最佳 {name} {value}：{path}"),
    "console/end-gain": Text(
        en="{name} {value}: {share} better than the baseline {baseline} ({baseline_value})",
        zh="{name} {value}，比 {baseline} 基线（{baseline_value}）好 {share}",
    ),
    "console/end-loss": Text(
        en="{name} {value}: {share} worse than the baseline {baseline} ({baseline_value})",
        zh="{name} {value}，比 {baseline} 基线（{baseline_value}）差 {share}",
    ),
    "console/end-no-report": Text(
        en="the report could not be written: {why:said}\nafter fixing that: {command}",
        zh="无法写出报告：{why:said}\n解决后运行：{command}",
    ),
    "console/end-untold": Text(
        en="the run has ended, but its directory {run} can no longer be read: {why:said}",
        zh="训练已结束，但已无法读取其目录 {run}：{why:said}",
    ),
    "console/end-report": Text(en="report: {path}", zh="报告：{path}"),
}
