"""Words about run directories."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "telemetry/no-runs": Text(
        en="there is no run in {out}",
        zh="{out} 里还没有任何训练",
        en_hint="start one: headway train, or name the folder: --out DIR",
        zh_hint="先开始一个：headway train，或用 --out DIR 指明目录",
    ),
    "telemetry/no-run": Text(
        en="no run is called {given}; {out} holds {num} other runs",
        zh="找不到名为 {given} 的训练；{out} 里有 {num} 个别的训练",
        en_hint="list them: headway runs --out {out}",
        zh_hint="先查看列表：headway runs --out {out}",
    ),
    "telemetry/many-runs": Text(
        en="{given} fits {num} runs: {names}",
        zh="{given} 对得上 {num} 个训练：{names}",
        en_hint="give the whole name: {first}",
        zh_hint="请写全名：{first}",
    ),
}
