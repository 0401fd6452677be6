"""Words on the terminal: the progress line, the table of runs, the live view."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "ui/progress-step": Text(en="step {step}/{total} {share}%", zh="步 {step}/{total} {share}%"),
    "ui/progress-loss": Text(en="loss {loss}", zh="损失 {loss}"),
    "ui/progress-val": Text(en="val {name} {value}", zh="验证 {name} {value}"),
    "ui/progress-eta": Text(en="ETA {eta}", zh="剩余 {eta}"),
    "ui/rate-tokens": Text(en="{rate} tok/s", zh="{rate} token/秒"),
    "ui/rate-samples": Text(en="{rate} samples/s", zh="{rate} 样本/秒"),
    "ui/rate-steps": Text(en="{rate} steps/s", zh="{rate} 步/秒"),
    "ui/progress-alone": Text(en="step {step:,}", zh="第 {step:,} 步"),
    "ui/phase-start": Text(en="starting", zh="启动中"),
    "ui/phase-restore": Text(en="restoring", zh="恢复检查点"),
    "ui/phase-data": Text(en="data", zh="取数据"),
    "ui/phase-forward": Text(en="forward", zh="前向"),
    "ui/phase-backward": Text(en="backward", zh="反向"),
    "ui/phase-optimizer": Text(en="optimizer", zh="更新参数"),
    "ui/phase-eval": Text(en="validating", zh="验证中"),
    "ui/phase-save": Text(en="saving", zh="保存中"),
    "ui/phase-stopping": Text(en="stopping", zh="停止中"),
    "ui/phase-ended": Text(en="ended", zh="已结束"),
    "ui/phase-unknown": Text(en="unknown", zh="未知"),
    "ui/state-findings": Text(en="findings: {num}", zh="问题 {num} 个"),
    "ui/state-running": Text(en="running", zh="训练中"),
    "ui/state-done": Text(en="done", zh="已完成"),
    "ui/state-stopped": Text(en="stopped", zh="已停止"),
    "ui/state-failed": Text(en="failed", zh="失败"),
    "ui/state-interrupted": Text(en="interrupted", zh="被中断"),
    "ui/state-lost": Text(en="lost", zh="失联"),
    "ui/runs-name": Text(en="run", zh="训练"),
    "ui/runs-state": Text(en="state", zh="状态"),
    "ui/runs-step": Text(en="step", zh="步数"),
    "ui/runs-best": Text(en="best", zh="最佳"),
    "ui/runs-loss": Text(en="loss", zh="损失"),
    "ui/runs-rate": Text(en="speed", zh="速度"),
    "ui/runs-age": Text(en="started", zh="开始于"),
    "ui/ago-s": Text(en="{num} s ago", zh="{num} 秒前"),
    "ui/ago-min": Text(en="{num} min ago", zh="{num} 分钟前"),
    "ui/ago-h": Text(en="{num} h ago", zh="{num} 小时前"),
    "ui/ago-d": Text(en="{num} d ago", zh="{num} 天前"),
    "ui/option-runs-tag": Text(
        en="only runs with this tag (see headway note)", zh="只列出带此标签的训练（见 headway note）"
    ),
    "ui/option-runs-state": Text(en="only runs in this state", zh="只列出处于此状态的训练"),
    "ui/runs-none-such": Text(en="no run matches these options", zh="没有符合条件的训练"),
    "ui/runs-cause": Text(en="cause", zh="原因"),
    "ui/cause-rank": Text(en="rank {rank}: {text}", zh="rank {rank}：{text}"),
    "ui/runs-size": Text(en="checkpoints", zh="检查点"),
    "ui/lines-in-log": Text(en="further output is written only to {log}", zh="后续输出只写入 {log}"),
    "ui/watch-lost-line": Text(
        en="the supervisor is gone; start the run again with its headway run line",
        zh="监控进程已不在；用原来的 headway run 命令重新启动",
    ),
    "ui/runs-closed": Text(
        en="no permission to read {num} more runs of other users: {names:list}",
        zh="另有 {num} 次训练属于其他用户，无权读取：{names:list}",
    ),
    "ui/runs-empty": Text(
        en="no runs in {out} yet; start one: headway train", zh="{out} 中还没有训练；开始训练：headway train"
    ),
    "ui/compare-name": Text(en="run", zh="训练"),
    "ui/compare-settings": Text(en="what differs", zh="差异"),
    "ui/compare-best": Text(en="best", zh="最佳"),
    "ui/compare-gain": Text(en="compared with the first", zh="与第一个相比"),
    "ui/compare-step": Text(en="step", zh="步"),
    "ui/compare-rate": Text(en="speed", zh="速度"),
    "ui/compare-time": Text(en="time", zh="用时"),
    "ui/compare-same": Text(en="nothing", zh="无"),
    "ui/compare-better": Text(en="{gap} better", zh="好 {gap}"),
    "ui/compare-worse": Text(en="{gap} worse", zh="差 {gap}"),
    "ui/compare-equal": Text(en="equal", zh="相同"),
    "ui/compare-alone": Text(
        en="no other run in {out} can be compared with {name}",
        zh="{out} 中没有与 {name} 同类的其他训练",
        en_hint=("name two runs; this lists them:\n  headway runs"),
        zh_hint=("给出两个训练任务的名称；查看列表：\n  headway runs"),
    ),
    "ui/watch-loss": Text(en="loss", zh="损失"),
    "ui/watch-val": Text(en="validation", zh="验证"),
    "ui/watch-best": Text(en="best", zh="最佳"),
    "ui/watch-speed": Text(en="speed", zh="速度"),
    "ui/watch-eta": Text(en="time left", zh="剩余时间"),
    "ui/watch-attempts": Text(en="attempts", zh="启动次数"),
    "ui/watch-incidents": Text(en="incidents", zh="故障"),
    "ui/watch-checkpoints": Text(en="checkpoints", zh="检查点"),
    "ui/watch-saved": Text(en="step {step} ({size})", zh="第 {step} 步（{size}）"),
    "ui/watch-at": Text(en="{name} {value} at step {step}", zh="{name} {value}（第 {step} 步）"),
    "ui/watch-rank": Text(en="rank", zh="rank"),
    "ui/watch-phase": Text(en="phase", zh="阶段"),
    "ui/watch-step": Text(en="step", zh="步"),
    "ui/watch-age": Text(en="last update", zh="最近心跳"),
    "ui/watch-log": Text(en="log", zh="日志"),
    "ui/watch-lost": Text(
        en="the supervisor is gone; resume with: headway resume {name}",
        zh="监控进程已不在；继续训练：headway resume {name}",
    ),
    "ui/help-runs": Text(
        en="List the runs of a folder, newest first.\n\n"
        "Example:\n  headway runs --state failed\n  headway runs rm --dry-run 20261115-180405_nanochat_ab12",
        zh="列出目录中的训练，最新的在前。\n\n"
        "示例：\n  headway runs --state failed\n  headway runs rm --dry-run 20261115-180405_nanochat_ab12",
    ),
    "ui/help-runs-rm": Text(
        en="Delete runs with their checkpoints.\n\n"
        "A run that is still running is refused. On a terminal it asks first; elsewhere --yes is needed.\n\n"
        "Example:\n  headway runs rm --dry-run 20261115-180405_nanochat_ab12",
        zh="删除训练及其检查点。\n\n仍在运行的训练不会被删除。在终端中会先询问；否则需要 --yes。\n\n"
        "示例：\n  headway runs rm --dry-run 20261115-180405_nanochat_ab12",
    ),
    "ui/option-rm-yes": Text(en="do not ask", zh="不再询问"),
    "ui/ask-rm": Text(
        en="delete {num} runs ({size})? This cannot be undone", zh="删除 {num} 次训练（{size}）？此操作无法撤销"
    ),
    "ui/removed": Text(en="deleted {name} ({size})", zh="已删除 {name}（{size}）"),
    "ui/would-remove": Text(en="would delete {name} ({size})", zh="将删除 {name}（{size}）"),
    "ui/rm-needs-yes": Text(
        en="this is not a terminal, so there was no confirmation and nothing was deleted",
        zh="当前不是终端，无法询问，未删除任何内容",
        en_hint="confirm it on the command line:\n  headway runs rm --yes {runs}",
        zh_hint="在命令行中确认：\n  headway runs rm --yes {runs}",
    ),
    "ui/help-compare": Text(
        en="Show how runs differ in settings and in results.\n\n"
        "The first RUN is the one the others are compared with. With one RUN, or none for the newest: the runs of "
        "the same folder and recipe that differ from it in a few settings.\n\n"
        "Example:\n"
        "  headway compare\n"
        "  headway compare ab12 cd34 --json",
        zh="显示各次训练在设置和结果上的差异。\n\n"
        "以第一个 RUN 为基准。只给一个 RUN（或省略，取最新的）时：与同一目录、同一配方中只差少数设置的训练比较。\n\n"
        "示例：\n"
        "  headway compare\n"
        "  headway compare ab12 cd34 --json",
    ),
    "ui/help-watch": Text(
        en="Watch a run live.\n\n"
        "RUN is a run directory, its name or a part of the name; without it, the newest run.\n\n"
        "Example:\n"
        "  headway watch\n"
        "  headway watch ab12 --once",
        zh=(
            "实时查看训练。\n\nRUN 是训练目录、训练名或名字的一部分；省略时取最新的训练。\n\n"
            "示例：\n  headway watch\n  headway watch ab12 --once"
        ),
    ),
    "ui/help-export": Text(
        en="Write metrics and validation results as files for other tools.\n\n"
        "Example:\n"
        "  headway export ab12 --format tensorboard --to tb",
        zh="把指标和验证结果写成其他工具能读的文件。\n\n示例：\n  headway export ab12 --format tensorboard --to tb",
    ),
    "ui/opt-out": Text(en="folder that contains the run directories", zh="存放训练目录的位置"),
    "ui/opt-json": Text(en="print one JSON object", zh="输出一个 JSON 对象"),
    "ui/opt-once": Text(en="show it once and exit", zh="只显示一次"),
    "ui/opt-format": Text(en="file format", zh="文件格式"),
    "ui/opt-to": Text(
        en="folder to write to; default: export/ in the run directory", zh="写到哪个目录；默认是训练目录下的 export/"
    ),
    "ui/opt-dry-run": Text(en="show what would be written, write nothing", zh="只说明会写入什么，不实际写入"),
    "ui/exported": Text(en="wrote {num:,} points to {path}", zh="已把 {num:,} 个数据点写入 {path}"),
    "ui/would-write": Text(en="would write {path}", zh="将会写入 {path}"),
    "ui/no-metrics": Text(
        en="{name} has no metrics yet: no step is finished",
        zh="{name} 还没有指标：一步都没有完成",
        en_hint=("see what it is doing:\n  headway watch {name} --once"),
        zh_hint=("查看当前状态：\n  headway watch {name} --once"),
    ),
    "ui/why-named": Text(
        en="a line of the log names the cause itself",
        zh="日志中有一行直接说明了原因",
    ),
    "ui/why-usual": Text(
        en="it is the first failure in the log that does not follow from another",
        zh="它是日志中最早的、不由其他故障引起的失败",
    ),
    "ui/why-follows": Text(
        en="the log contains only messages that usually follow from another failure",
        zh="日志里只有通常由其他故障引起的信息",
    ),
    "ui/why-explains": Text(
        en="it explains the other failures in the log",
        zh="它能解释日志中的其他失败",
    ),
    "ui/why-contested": Text(
        en="another finding is as likely",
        zh="另一个结果同样可能",
    ),
    "ui/why-exit": Text(
        en="the supervisor saw the process end this way",
        zh="监控进程看到了进程的结束方式",
    ),
    "ui/sure-certain": Text(en="certain", zh="确定"),
    "ui/sure-likely": Text(en="likely", zh="很可能"),
    "ui/sure-possible": Text(en="possible", zh="可能"),
    "ui/run-is": Text(en="run {run}: {state}", zh="训练 {run}：{state}"),
    "ui/no-failure": Text(en="no failure found in {lines} lines of log", zh="{lines} 行日志中没有发现失败"),
    "ui/survived": Text(en="  training continued after {line}", zh="  以下信息之后训练仍在继续：{line}"),
    "ui/root-cause": Text(en="root cause: {text} [{code}]", zh="根本原因：{text} [{code}]"),
    "ui/how-sure": Text(en="  {sure}: {why}", zh="  {sure}：{why}"),
    "ui/evidence": Text(en="evidence:", zh="证据："),
    "ui/consequences": Text(en="only a consequence:", zh="只是后果："),
    "ui/and-more": Text(en="  and {num} more (see --json)", zh="  另有 {num} 条（见 --json）"),
    "ui/what-to-do": Text(en="what to do, cheapest first:", zh="处理办法，代价小的在前："),
    "ui/also-found": Text(en="another cause: {text} [{code}]", zh="另一个原因：{text} [{code}]"),
    "ui/times": Text(en="{num} times", zh="{num} 次"),
    "ui/log-line": Text(en="line {number}{note}: {text}", zh="第 {number} 行{note}：{text}"),
    "ui/explain-category": Text(en="  category: {category}", zh="  类别：{category}"),
    "ui/explain-retry-yes": Text(en="  trying again may help", zh="  重试可能有效"),
    "ui/explain-retry-no": Text(
        en="  trying again does not help: the same would happen", zh="  重试没有用：同样的事会再次发生"
    ),
    "ui/explain-explains": Text(en="  explains: {codes:list}", zh="  能解释：{codes:list}"),
    "ui/explain-headway": Text(en="in a run of a recipe:", zh="配方训练："),
    "ui/explain-script": Text(en="in a script of your own:", zh="自己的脚本："),
    "ui/explain-reproducer": Text(en="raised on purpose in {path}", zh="复现测试：{path}"),
}
