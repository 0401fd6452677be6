"""Words of the report."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "report/help": Text(
        en=(
            "Write the report of a run: one HTML file that opens offline, or Markdown, or JSON.\n\n"
            "Example:\n  headway report 20261115-180405_nanochat_ab12\n"
            "  headway report 20261115-180405_nanochat_ab12 --format md --to -"
        ),
        zh=(
            "生成训练报告：一个可离线打开的 HTML 文件，也可以是 Markdown 或 JSON。\n\n"
            "示例：\n  headway report 20261115-180405_nanochat_ab12\n"
            "  headway report 20261115-180405_nanochat_ab12 --format md --to -"
        ),
    ),
    "report/opt-open": Text(en="open it in the browser after it is written", zh="写好后用浏览器打开"),
    "report/opt-to": Text(
        en="file to write, - to print it; default: report.html, .md or .json in the run directory",
        zh="写到哪个文件，- 表示直接输出；默认是训练目录下的 report.html、.md 或 .json",
    ),
    "report/written": Text(en="report: {path}", zh="报告：{path}"),
    "report/opt-format": Text(
        en="html: one page; md: Markdown; json: everything as data", zh="html：一个网页；md：Markdown；json：全部数据"
    ),
    "report/through": Text(en="Through the run", zh="训练过程"),
    "report/through-how": Text(
        en="Each bar is a moment, as high as its loss: click one, or move with the left and right arrows",
        zh="每条竖条是一个时刻，高度为当时的损失：点击任意一条，或用左右箭头移动",
    ),
    "report/title": Text(en="training report", zh="训练报告"),
    "report/verdict-done": Text(
        en="done: {step} of {total} steps in {wall}", zh="已完成：{step}/{total} 步，用时 {wall}"
    ),
    "report/verdict-running": Text(
        en="still running: {step} of {total} steps after {wall}", zh="训练中：{step}/{total} 步，已用时 {wall}"
    ),
    "report/verdict-stopped": Text(
        en="stopped safely at step {step} of {total} after {wall}; continue with headway resume",
        zh="在第 {step} 步（共 {total} 步）安全停止，用时 {wall}；可用 headway resume 继续",
    ),
    "report/verdict-failed": Text(
        en="failed at step {step} of {total} after {wall}", zh="在第 {step} 步（共 {total} 步）失败，用时 {wall}"
    ),
    "report/verdict-interrupted": Text(
        en="interrupted at step {step} of {total} after {wall}; continue with headway resume",
        zh="在第 {step} 步（共 {total} 步）被中断，用时 {wall}；可用 headway resume 继续",
    ),
    "report/verdict-lost": Text(
        en="lost at step {step} of {total} after {wall}: its supervisor is gone; continue with headway resume",
        zh="在第 {step} 步（共 {total} 步）失联，用时 {wall}：监控进程已不在；可用 headway resume 继续",
    ),
    "report/verdict-why": Text(en="why: {why:said}", zh="原因：{why:said}"),
    "report/verdict-best": Text(en="best {name} {value} at step {step}", zh="最佳 {name} {value}（第 {step} 步）"),
    "report/verdict-beats": Text(
        en="{share}% better than the {name} baseline ({value})", zh="比 {name} 基线（{value}）好 {share}%"
    ),
    "report/verdict-misses": Text(
        en="{share}% worse than the {name} baseline ({value})", zh="比 {name} 基线（{value}）差 {share}%"
    ),
    "report/verdict-restarts": Text(
        en="restarts: {num}, steps repeated: {redone}", zh="重启 {num} 次，重做 {redone} 步"
    ),
    "report/best-at": Text(en="best checkpoint", zh="最佳检查点"),
    "report/tile-best": Text(en="best {name}", zh="最佳 {name}"),
    "report/tile-loss": Text(en="training loss", zh="训练损失"),
    "report/tile-speed": Text(en="speed", zh="速度"),
    "report/tile-wall": Text(en="time", zh="用时"),
    "report/tile-kept": Text(en="checkpoints kept", zh="保留的检查点"),
    "report/at-step": Text(en="at step {step}", zh="第 {step} 步"),
    "report/attempts": Text(en="attempts: {num}", zh="启动次数：{num}"),
    "report/better": Text(en="{share}% better than {name}", zh="比 {name} 好 {share}%"),
    "report/worse": Text(en="{share}% worse than {name}", zh="比 {name} 差 {share}%"),
    "report/unit-tokens": Text(en="tokens/s", zh="token/秒"),
    "report/unit-samples": Text(en="samples/s", zh="样本/秒"),
    "report/incidents": Text(en="What went wrong", zh="故障与原因"),
    "report/incident": Text(en="incident", zh="故障"),
    "report/warnings": Text(en="Warnings", zh="警告"),
    "report/rank": Text(en="rank {rank}", zh="rank {rank}"),
    "report/attempt": Text(en="attempt {attempt}", zh="第 {attempt} 次启动"),
    "report/traceback": Text(en="traceback", zh="调用栈"),
    "report/timeline": Text(en="Timeline", zh="时间线"),
    "report/lane-attempts": Text(en="attempts", zh="启动"),
    "report/lane-validations": Text(en="validation", zh="验证"),
    "report/lane-saves": Text(en="checkpoints", zh="检查点"),
    "report/lane-incidents": Text(en="incidents", zh="故障"),
    "report/bar-memory": Text(
        en="attempt {attempt} from step {step}, kept in memory: {how:word}",
        zh="第 {attempt} 次启动，从内存中保留的第 {step} 步开始：{how:word}",
    ),
    "report/bar": Text(
        en="attempt {attempt} from step {step}: {how:word}", zh="第 {attempt} 次启动，从第 {step} 步开始：{how:word}"
    ),
    "report/shares": Text(en="Where the time went", zh="时间花在哪里"),
    "report/share-data": Text(en="waiting for data", zh="等待数据"),
    "report/share-forward": Text(en="forward", zh="前向"),
    "report/share-backward": Text(en="backward", zh="反向"),
    "report/share-comm": Text(en="communication", zh="通信"),
    "report/share-optimizer": Text(en="optimizer", zh="优化器"),
    "report/share-save": Text(en="saving (stall)", zh="保存（停顿）"),
    "report/share-eval": Text(en="validation", zh="验证"),
    "report/share-other": Text(en="start, restarts, repeated steps", zh="启动、重启、重做"),
    "report/axis-step": Text(en="step", zh="步"),
    "report/every-step": Text(en="every step", zh="每一步"),
    "report/smoothed": Text(en="smoothed", zh="平滑后"),
    "report/plot-loss": Text(en="Training loss", zh="训练损失"),
    "report/note-loss": Text(en="from {first} to {last}", zh="从 {first} 到 {last}"),
    "report/plot-validation": Text(en="Validation: {name}", zh="验证：{name}"),
    "report/note-validation": Text(
        en="{num} validations, from {first} to {last}", zh="共 {num} 次验证，从 {first} 到 {last}"
    ),
    "report/plot-speed": Text(en="Speed, {unit}", zh="速度（{unit}）"),
    "report/note-speed": Text(en="median {median}, slowest step {low}", zh="中位数 {median}，最慢一步 {low}"),
    "report/plot-split": Text(en="Time within a step", zh="一步的时间构成"),
    "report/note-split": Text(en="median over ranks; {part} takes {share}%", zh="各 rank 的中位数；{part}占 {share}%"),
    "report/part-data": Text(en="data wait", zh="等待数据"),
    "report/part-forward": Text(en="forward", zh="前向"),
    "report/part-backward": Text(en="backward", zh="反向"),
    "report/part-comm": Text(en="communication", zh="通信"),
    "report/part-optimizer": Text(en="optimizer", zh="优化器"),
    "report/part-save": Text(en="save", zh="保存"),
    "report/part-other": Text(en="other", zh="其他"),
    "report/plot-memory": Text(en="Peak {memory:word}", zh="{memory:word}峰值"),
    "report/note-memory": Text(en="peak {peak}, ranks: {num}", zh="峰值 {peak}，rank 数：{num}"),
    "report/plot-lr": Text(en="Learning rate", zh="学习率"),
    "report/note-lr": Text(en="highest {peak}, last {last}", zh="最高 {peak}，最后 {last}"),
    "report/plot-norm": Text(en="Gradient norm", zh="梯度范数"),
    "report/note-written": Text(
        en="from the script's TensorBoard files: {num} points, last {last}",
        zh="来自脚本的 TensorBoard 文件：{num} 个点，最后 {last}",
    ),
    "report/note-norm": Text(en="highest {peak} at step {step}", zh="最高 {peak}（第 {step} 步）"),
    "report/planned-happened": Text(en="Planned and actual", zh="计划与实际"),
    "report/planned": Text(en="planned", zh="计划"),
    "report/happened": Text(en="actual", zh="实际"),
    "report/row-steps": Text(en="steps", zh="步数"),
    "report/row-samples": Text(en="samples", zh="样本数"),
    "report/row-tokens": Text(en="tokens", zh="token 数"),
    "report/row-ranks": Text(en="ranks", zh="rank 数"),
    "report/row-params": Text(en="parameters", zh="参数量"),
    "report/row-redone": Text(en="steps repeated", zh="重做的步数"),
    "report/row-attempts": Text(en="attempts", zh="启动次数"),
    "report/row-step-time": Text(en="time per step (error of the plan)", zh="每步时间（计划的误差）"),
    "report/row-wall": Text(en="time", zh="用时"),
    "report/row-memory": Text(
        en="peak {memory:word} per rank (error of the plan)", zh="单个 rank 的{memory:word}峰值（计划的误差）"
    ),
    "report/plan": Text(en="The plan, and where each number came from", zh="计划，以及每个数值的来源"),
    "report/value": Text(en="value", zh="值"),
    "report/origin": Text(en="from", zh="来源"),
    "report/checkpoints": Text(en="Checkpoints", zh="检查点"),
    "report/step": Text(en="step", zh="步"),
    "report/after": Text(en="after", zh="时刻"),
    "report/size": Text(en="size", zh="大小"),
    "report/beside": Text(en="Compared with runs with other settings", zh="与其他设置的训练相比"),
    "report/beside-this": Text(en="this run", zh="本次训练"),
    "report/measures": Text(en="Results of the model", zh="模型的结果"),
    "report/baselines": Text(en="baselines on the same data", zh="同一数据上的基线"),
    "report/stall": Text(en="training paused", zh="训练停顿"),
    "report/write": Text(en="write time", zh="写入用时"),
    "report/validation": Text(en="validation", zh="验证"),
    "report/kept": Text(en="kept", zh="保留"),
    "report/best": Text(en="best", zh="最佳"),
    "report/there": Text(en="yes", zh="是"),
    "report/pruned": Text(en="pruned", zh="已清理"),
    "report/command": Text(en="Command", zh="命令"),
    "report/commit": Text(en="commit", zh="提交"),
    "report/diff": Text(en="uncommitted changes", zh="未提交的改动"),
    "report/config": Text(en="Settings that were changed", zh="修改过的配置"),
    "report/defaults": Text(en="{num} values at their default", zh="{num} 项保持默认"),
    "report/machine": Text(en="Machine", zh="机器"),
    "report/events": Text(en="all events ({num})", zh="全部事件（{num}）"),
    "report/log": Text(en="end of the log", zh="日志末尾"),
    "report/footer": Text(
        en="written by Headway from the run directory only; one file that loads nothing from elsewhere",
        zh="由 Headway 仅凭训练目录生成；单个文件，不加载任何外部资源",
    ),
}
