"""Words about run directories."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "telemetry/no-runs": Text(
        en="there is no run in {out}",
        zh="{out} 中还没有训练",
        en_hint=("name another folder with --out, or start a run:\n  headway train"),
        zh_hint=("用 --out 指定其他目录，或开始训练：\n  headway train"),
    ),
    "telemetry/no-run": Text(
        en="there is no run called {given}; {out} contains {num} other runs",
        zh="没有名为 {given} 的训练；{out} 中另有 {num} 次训练",
        en_hint=("list them:\n  headway runs --out {out}"),
        zh_hint=("查看列表：\n  headway runs --out {out}"),
    ),
    "telemetry/remove-live": Text(
        en="{run} is still running, so it was not deleted",
        zh="{run} 仍在运行，未删除",
        en_hint="stop it first:\n  headway stop {run}",
        zh_hint="先停止它：\n  headway stop {run}",
    ),
    "telemetry/remove-link": Text(
        en="{path} is a link to {target}, not a run directory, so it was not deleted",
        zh="{path} 是指向 {target} 的链接，不是训练目录，未删除",
        en_hint="delete the link:\n  rm {path}",
        zh_hint="删除该链接：\n  rm {path}",
    ),
    "telemetry/remove-not-a-run": Text(
        en="{path} is not a complete run directory (it has no ranks/ or no checkpoints/), so it was not deleted",
        zh="{path} 不是完整的训练目录（缺少 ranks/ 或 checkpoints/），未删除",
        en_hint="see what is in it:\n  ls -la {path}",
        zh_hint="查看其中的内容：\n  ls -la {path}",
    ),
    "telemetry/remove-failed": Text(
        en="{path} could not be deleted completely: {why}",
        zh="{path} 未能完全删除：{why}",
        en_hint="see who owns it:\n  ls -la {path}",
        zh_hint="查看它属于谁：\n  ls -la {path}",
    ),
    "telemetry/closed": Text(
        en="no permission to read {path}: it belongs to {owner}, and run directories are private by default",
        zh="无权读取 {path}：它属于 {owner}，训练目录默认仅所有者可读",
        en_hint=("{owner} has to type:\n  chmod -R go+rX {path}"),
        zh_hint=("由 {owner} 运行：\n  chmod -R go+rX {path}"),
    ),
    "telemetry/record-missing": Text(
        en="{path} is missing: the run directory is incomplete",
        zh="缺少 {path}：训练目录不完整",
        en_hint="copy the complete run directory again, or start a new run",
        zh_hint="重新复制整个训练目录，或开始新的训练",
    ),
    "telemetry/record-unreadable": Text(
        en="{path} cannot be read: {why:said}",
        zh="无法读取 {path}：{why:said}",
        en_hint=("look at it:\n  ls -ld {path}"),
        zh_hint=("查看该文件：\n  ls -ld {path}"),
    ),
    "telemetry/record-damaged": Text(
        en="{path} is damaged: {why:said}",
        zh="{path} 已损坏：{why:said}",
        en_hint="restore it from a copy of the run directory, or start a new run",
        zh_hint="从训练目录的备份中还原该文件，或开始新的训练",
    ),
    "telemetry/many-runs": Text(
        en="{given} matches {num} runs: {names:list}",
        zh="{given} 匹配到 {num} 次训练：{names:list}",
        en_hint="give the full name: {first}",
        zh_hint="写出全名：{first}",
    ),
}
