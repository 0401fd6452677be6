"""Words about run directories."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "telemetry/no-runs": Text(
        en="there is no run in {out}",
        zh="{out} 中还没有训练",
        en_hint="start one: headway train, or name the folder: --out DIR",
        zh_hint="开始训练：headway train；或用 --out DIR 指定目录",
    ),
    "telemetry/no-run": Text(
        en="there is no run called {given}; {out} contains {num} other runs",
        zh="没有名为 {given} 的训练；{out} 中另有 {num} 次训练",
        en_hint="list them: headway runs --out {out}",
        zh_hint="查看列表：headway runs --out {out}",
    ),
    "telemetry/closed": Text(
        en="no permission to read {path}: it belongs to {owner}, and run directories are private by default",
        zh="无权读取 {path}：它属于 {owner}，训练目录默认仅所有者可读",
        en_hint="ask {owner} to type: chmod -R go+rX {path}",
        zh_hint="由 {owner} 运行：chmod -R go+rX {path}",
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
        en_hint="look at it:\nls -l {path}",
        zh_hint="查看该文件：\nls -l {path}",
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
