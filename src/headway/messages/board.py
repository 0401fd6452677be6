"""Words of the board in the browser, and of the device pages it shares with the report."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "board/plot-util": Text(en="GPU utilisation", zh="GPU 利用率"),
    "board/plot-gpu-memory": Text(en="GPU memory", zh="显存"),
    "board/plot-temp": Text(en="GPU temperature", zh="GPU 温度"),
    "board/plot-power": Text(en="GPU power", zh="GPU 功耗"),
    "board/plot-cores": Text(en="CPU cores in use per rank", zh="每个 rank 使用的 CPU 核数"),
    "board/plot-rank-memory": Text(en="Host memory per rank", zh="每个 rank 的内存"),
    "board/axis-time": Text(en="time", zh="时间"),
    "board/gpu": Text(en="GPU {rank}", zh="GPU {rank}"),
    "board/note-mean": Text(en="mean {mean}, highest {most}", zh="平均 {mean}，最高 {most}"),
    "board/devices": Text(en="Devices", zh="设备"),
    "board/heat": Text(en="How busy each device was", zh="各设备的繁忙程度"),
    "board/device": Text(en="device", zh="设备"),
    "board/busy": Text(en="busy (mean)", zh="利用率（平均）"),
    "board/memory-peak": Text(en="memory (peak)", zh="显存/内存（峰值）"),
    "board/temp-peak": Text(en="temperature (peak)", zh="温度（最高）"),
    "board/power-mean": Text(en="power (mean)", zh="功耗（平均）"),
    "board/throttle": Text(en="clock held down by", zh="降频原因"),
    "board/line": Text(
        en="runs in a browser: curves, devices, logs, live", zh="在浏览器中查看训练：曲线、设备、日志，实时更新"
    ),
    "board/help": Text(
        en="Show all runs of a folder in a browser: curves, ranks, devices, logs, checkpoints, findings.\n\n"
        "The board listens on this machine only. The printed address works once and gives your browser a cookie; "
        "press Enter for another. From another machine: ssh -L 8787:127.0.0.1:8787 HOST, then open the address there. "
        "Pages work without scripts and never change anything.\n\n"
        "Example:\n  headway board --runs runs",
        zh="在浏览器中查看一个目录里的全部训练：曲线、rank、设备、日志、检查点、发现的问题。\n\n"
        "看板只在本机监听。打印的地址只能用一次，浏览器由此得到一个 cookie；按回车可得到新地址。"
        "从另一台机器查看：先 ssh -L 8787:127.0.0.1:8787 HOST，再在那里打开该地址。"
        "页面不需要脚本，也不会改动任何东西。\n\n"
        "示例：\n  headway board --runs runs",
    ),
    "board/opt-port": Text(en="port to listen on; 0: any free one", zh="监听端口；0 表示任选空闲端口"),
    "board/opt-host": Text(en="address to listen on", zh="监听地址"),
    "board/opt-open": Text(en="open the address in a browser", zh="在浏览器中打开该地址"),
    "board/serving": Text(en="runs of {out}: {address}", zh="{out} 中的训练：{address}"),
    "board/another": Text(
        en="the address works once; press Enter for another, Ctrl-C to end",
        zh="该地址只能用一次；按回车得到新地址，按 Ctrl-C 结束",
    ),
    "board/not-loopback": Text(
        en="the board listens on {host}, which other machines can reach, without encryption; an ssh tunnel is safer",
        zh="看板在 {host} 上监听，其他机器可以访问且没有加密；用 ssh 隧道更安全",
    ),
    "board/port-taken": Text(
        en="cannot listen on {host}, port {port}: {why}",
        zh="无法在 {host} 的端口 {port} 上监听：{why}",
        en_hint="headway board --port 0",
        zh_hint="运行：headway board --port 0",
    ),
    "board/token-unsafe": Text(
        en="{path} is not a file that only you can read, so the board does not use it",
        zh="{path} 不是只有你能读的文件，看板不会使用它",
        en_hint="rm {path}",
        zh_hint="运行：rm {path}",
    ),
    "board/runs": Text(en="Runs", zh="训练"),
    "board/compare": Text(en="Compare", zh="对比"),
    "board/machine": Text(en="Machine", zh="机器"),
    "board/nav": Text(en="Board", zh="看板"),
    "board/pages": Text(en="Pages of this run", zh="此训练的页面"),
    "board/language": Text(en="Language", zh="语言"),
    "board/theme": Text(en="Theme", zh="主题"),
    "board/theme-auto": Text(en="As the system", zh="跟随系统"),
    "board/theme-light": Text(en="Light", zh="浅色"),
    "board/theme-dark": Text(en="Dark", zh="深色"),
    "board/skip": Text(en="Skip to the content", zh="跳到正文"),
    "board/live": Text(en="live", zh="实时"),
    "board/footer": Text(
        en="Headway board: everything here is read from the run directories; / searches, [ and ] change the page",
        zh="Headway 看板：全部内容都读自训练目录；按 / 搜索，按 [ 和 ] 翻页",
    ),
    "board/missing": Text(en="There is no such page or run", zh="没有这个页面或训练"),
    "board/search": Text(en="Search", zh="搜索"),
    "board/search-runs": Text(en="Name, recipe or state", zh="名称、配方或状态"),
    "board/all": Text(en="all", zh="全部"),
    "board/pick": Text(en="Compare {name}", zh="对比 {name}"),
    "board/ago": Text(en="{time} ago", zh="{time} 前"),
    "board/compare-chosen": Text(en="Compare the chosen runs", zh="对比所选训练"),
    "board/shown": Text(en="{first} to {last} of {num}", zh="第 {first} 至 {last} 个，共 {num} 个"),
    "board/newer": Text(en="newer", zh="较新"),
    "board/older": Text(en="older", zh="较早"),
    "board/no-match": Text(en="No run matches", zh="没有符合的训练"),
    "board/no-runs": Text(en="There are no runs here yet. Start one:", zh="这里还没有训练。开始训练："),
    "board/tab-overview": Text(en="Overview", zh="总览"),
    "board/tab-ranks": Text(en="Ranks", zh="各 rank"),
    "board/tab-devices": Text(en="Devices", zh="设备"),
    "board/tab-logs": Text(en="Log", zh="日志"),
    "board/tab-checkpoints": Text(en="Checkpoints", zh="检查点"),
    "board/tab-findings": Text(en="Findings", zh="问题"),
    "board/tab-plan": Text(en="Plan and reality", zh="计划与实际"),
    "board/tab-samples": Text(en="Samples", zh="样例"),
    "board/tab-config": Text(en="Config", zh="配置"),
    "board/eta": Text(en="Remaining", zh="剩余"),
    "board/at-clock": Text(en="until {clock}", zh="预计 {clock}"),
    "board/of-wall": Text(en="after {wall}", zh="已用 {wall}"),
    "board/planned": Text(en="planned {planned}", zh="计划 {planned}"),
    "board/choices": Text(en="How the curves are shown", zh="曲线显示方式"),
    "board/axis": Text(en="by", zh="横轴"),
    "board/by-step": Text(en="step", zh="步"),
    "board/by-time": Text(en="time", zh="时间"),
    "board/by-samples": Text(en="samples", zh="样本"),
    "board/by-tokens": Text(en="tokens", zh="token 数"),
    "board/axis-samples": Text(en="samples", zh="样本数"),
    "board/axis-tokens": Text(en="tokens", zh="token 数"),
    "board/note-line": Text(en="a note and tags for a run", zh="给训练写备注、加标签"),
    "board/note-help": Text(
        en=(
            "Write a note and tags for a run, or show them. The board shows them and finds runs by them.\n\n"
            "Example:\n  headway note 20261115-180405_nanochat_ab12 'larger batch, same data' --tag baseline"
        ),
        zh=(
            "给一次训练写备注、加标签，或查看它们；看板会显示并可按它们搜索。\n\n"
            "示例：\n  headway note 20261115-180405_nanochat_ab12 '批大小加倍，数据不变' --tag baseline"
        ),
    ),
    "board/note-opt-tag": Text(en="add this tag; may be given several times", zh="添加标签，可多次使用"),
    "board/note-opt-untag": Text(en="remove this tag; may be given several times", zh="去掉标签，可多次使用"),
    "board/note-tags": Text(en="tags: {tags}", zh="标签：{tags}"),
    "board/note-none": Text(en="no note", zh="没有备注"),
    "board/note": Text(en="Note and tags", zh="备注与标签"),
    "board/note-how": Text(en="Written in a terminal:", zh="在终端中填写："),
    "board/new-run": Text(en="New run", zh="新的训练"),
    "board/recipe": Text(en="recipe", zh="训练方案"),
    "board/more-settings": Text(en="more settings, one key=value per line", zh="其他配置项，每行一个 key=value"),
    "board/show-command": Text(en="Show the command", zh="显示命令"),
    "board/its-command": Text(en="The command", zh="命令"),
    "board/first-plan": Text(en="To see memory, batch and time first:", zh="先看显存、批大小和时间："),
    "board/no-settings": Text(
        en="These lines are no key=value and are left out:", zh="以下各行不是 key=value，未采用："
    ),
    "board/starts-nothing": Text(
        en="This page starts nothing: paste the command into a terminal",
        zh="此页面不会启动任何任务：请把命令粘贴到终端运行",
    ),
    "board/opt-new-run": Text(
        en="a page that makes the command of a new run; it starts nothing",
        zh="显示“新的训练”页面，只生成命令，不启动任务",
    ),
    "board/environment": Text(en="Environment and code that differ", zh="环境与代码的差异"),
    "board/one-sided": Text(
        en="{num} settings that only some of these runs have", zh="{num} 个只有部分训练才有的配置项"
    ),
    "board/parts-first": Text(
        en="The losses of the first two runs differ from the first step on", zh="前两次训练的损失从第一步起就不同"
    ),
    "board/differs": Text(en="differs", zh="有差异"),
    "board/glance": Text(
        en="A long run: these curves are from a few hundred places of it, a spike between them may be missing",
        zh="训练很长：曲线取自其中几百处，其间的尖峰可能未显示",
    ),
    "board/unzoom": Text(en="show all", zh="显示全部"),
    "board/chart-keys": Text(
        en="drag over a curve to zoom, double-click for all; on a curve in focus arrows read values, + - and Esc zoom",
        zh="在曲线上拖动可放大，双击还原；选中曲线后用左右箭头读数，+、- 和 Esc 缩放",
    ),
    "board/no-charts": Text(
        en="These curves cannot be zoomed: the script for that is not built. It needs npm, once:",
        zh="曲线暂时无法缩放：所需脚本尚未构建。需要 npm，只需执行一次：",
    ),
    "board/smoothing": Text(en="smoothing", zh="平滑"),
    "board/smooth-auto": Text(en="usual", zh="一般"),
    "board/smooth-off": Text(en="none", zh="无"),
    "board/smooth-strong": Text(en="strong", zh="强"),
    "board/scale": Text(en="scale", zh="纵轴"),
    "board/linear": Text(en="linear", zh="线性"),
    "board/log-scale": Text(en="logarithmic", zh="对数"),
    "board/open-findings": Text(en="Open findings", zh="尚未解决的问题"),
    "board/over-findings": Text(en="Findings that are over", zh="已结束的问题"),
    "board/no-findings": Text(en="Nothing was found", zh="没有发现问题"),
    "board/lasted": Text(en="lasted {seconds}", zh="持续 {seconds}"),
    "board/cost": Text(en="cost {cost} of training", zh="损失训练时间 {cost}"),
    "board/hangs": Text(en="Hangs", zh="卡死"),
    "board/place": Text(en="place", zh="位置"),
    "board/last-lines": Text(en="Last lines of the log", zh="日志最后几行"),
    "board/whole-log": Text(en="full log", zh="完整日志"),
    "board/full": Text(en="fully busy", zh="满载"),
    "board/lag": Text(en="behind", zh="落后"),
    "board/split": Text(en="split of a step", zh="一步的时间构成"),
    "board/step-time": Text(en="time per step", zh="每步时间"),
    "board/cores": Text(en="cores", zh="核数"),
    "board/last-line": Text(en="last line", zh="最后一行"),
    "board/no-ranks": Text(en="No rank has started yet", zh="还没有 rank 启动"),
    "board/host-cpu": Text(en="Processor", zh="处理器"),
    "board/host-cores": Text(en="Cores", zh="核数"),
    "board/host-memory": Text(en="Memory", zh="内存"),
    "board/host-disk": Text(en="Disk left", zh="磁盘剩余"),
    "board/host-stall": Text(en="Time waiting for a core", zh="等待处理器的时间"),
    "board/job-cores": Text(en="this run: {cores} cores", zh="此训练：{cores} 核"),
    "board/job-memory": Text(en="this run: {memory}", zh="此训练：{memory}"),
    "board/disk": Text(en="Disk left", zh="磁盘剩余"),
    "board/network": Text(en="Network", zh="网络"),
    "board/activity": Text(en="activity", zh="单元活跃度"),
    "board/holders": Text(en="processes (pid, user, program, MiB)", zh="进程（pid、用户、程序、MiB）"),
    "board/targets": Text(
        en="Usual targets: utilisation of at least 90%, at most 80 °C. Utilisation says that something runs, not that "
        "it runs well; SM and tensor activity do, where the card counts them",
        zh="常用目标：利用率不低于 90%，温度不超过 80 °C。利用率只说明有程序在运行，并不说明运行得好；"
        "SM 与 tensor 活跃度才能说明（部分显卡提供）",
    ),
    "board/readings": Text(en="{num} readings", zh="共 {num} 次读数"),
    "board/no-devices": Text(en="This run has no readings of devices", zh="此训练没有设备读数"),
    "board/search-log": Text(en="Text in the log", zh="日志中的文字"),
    "board/all-ranks": Text(en="all, merged", zh="全部，合并"),
    "board/log-start": Text(en="start", zh="开头"),
    "board/log-end": Text(en="end", zh="结尾"),
    "board/first-error": Text(en="first error", zh="第一个错误"),
    "board/no-lines": Text(en="No lines", zh="没有内容"),
    "board/earlier": Text(en="earlier", zh="更早"),
    "board/later": Text(en="later", zh="更晚"),
    "board/log-size": Text(en="log of {size}", zh="日志共 {size}"),
    "board/log-cut": Text(en="only the first matches are shown", zh="只显示前面的匹配"),
    "board/resume-from": Text(en="continue from here", zh="从这里继续训练"),
    "board/verify": Text(en="Verification", zh="校验"),
    "board/verified-at-save": Text(
        en="Every checkpoint here was read back and verified when it was saved. To verify them again:",
        zh="这里的每个检查点在保存时都已读回并校验。重新校验：",
    ),
    "board/disk-room": Text(
        en="{free} are left on the disk, enough for {more} more", zh="磁盘剩余 {free}，还能放 {more} 个"
    ),
    "board/disk-left": Text(en="{free} are left on the disk", zh="磁盘剩余 {free}"),
    "board/no-checkpoints": Text(en="No checkpoint yet", zh="还没有检查点"),
    "board/script-checkpoints": Text(
        en="A script keeps its checkpoints by itself; Headway does not know them",
        zh="脚本自行保存检查点，Headway 并不知道它们",
    ),
    "board/no-plan": Text(en="A script runs without a plan", zh="脚本没有计划"),
    "board/no-samples": Text(en="This run has produced no pictures or texts yet", zh="此训练还没有产生图片或文字"),
    "board/parts-at": Text(
        en="The losses of the first two runs are the same before step {step} and differ from there on",
        zh="前两次训练的损失在第 {step} 步之前相同，从这一步起不同",
    ),
    "board/add-run": Text(en="Add a run", zh="加入训练"),
    "board/drop": Text(en="Leave out", zh="去掉"),
    "board/gpus": Text(en="GPUs", zh="GPU 列表"),
    "board/no-gpus": Text(
        en="This machine has no GPU, or its driver does not answer", zh="本机没有 GPU，或驱动没有响应"
    ),
    "board/busy-now": Text(en="busy", zh="利用率"),
    "board/memory-now": Text(en="memory", zh="显存"),
    "board/temp-now": Text(en="temperature", zh="温度"),
    "board/power-now": Text(en="power", zh="功耗"),
    "board/lost": Text(en="does not answer", zh="没有响应"),
    "board/training-now": Text(en="Training now", zh="正在训练"),
    "board/none-running": Text(en="Nothing trains now", zh="当前没有训练"),
    "board/as-checked": Text(en="As the check of the newest run found it", zh="最新训练检查到的情况"),
}
