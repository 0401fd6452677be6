"""Texts of `headway run`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "run/help": Text(
        en="""Run any launch line under supervision: first failure, real exit code, no orphans.

LINE is what you type today: torchrun, python, accelerate, deepspeed, mpirun, a shell script. Your code does not
change. headway starts torchrun and plain python lines itself; other lines keep their launcher.
Words are passed on unchanged; a line in quotes is read by bash. Options of headway go before LINE.

Ctrl-C and SIGTERM are forwarded to the processes that can save; all of them get --grace seconds. SIGUSR1, SIGUSR2 and
SIGHUP are forwarded to the processes that handle them; the run continues.

Example:
  headway run torchrun --nproc_per_node=2 train.py --epochs 3
  headway run --gpus 2 --restarts 3 torchrun train.py
  headway run bash train.sh
  headway run 'LR=$LR python train.py > out.log 2>&1'
  headway run launch.yaml    (written by headway adopt … --to launch.yaml)""",
        zh="""在监控下运行任意启动命令：指出最先的故障，返回真实退出码，不留孤儿进程。

LINE 就是平时输入的命令：torchrun、python、accelerate、deepspeed、mpirun 或 shell 脚本，代码无需改动。
torchrun 和普通 python 命令由 headway 直接启动，其余命令仍用自己的启动器。
各个词原样传递；放在引号里的整条命令由 bash 解析。headway 的选项写在 LINE 之前。

Ctrl-C 和 SIGTERM 会转发给能保存状态的进程，它们都有 --grace 秒的时间。
SIGUSR1、SIGUSR2 和 SIGHUP 转发给会处理它们的进程，训练继续。

示例：
  headway run torchrun --nproc_per_node=2 train.py --epochs 3
  headway run --gpus 2 --restarts 3 torchrun train.py
  headway run bash train.sh
  headway run 'LR=$LR python train.py > out.log 2>&1'
  headway run launch.yaml    （由 headway adopt … --to launch.yaml 写出）""",
    ),
    "run/option-gpus": Text(
        en="GPUs: a number (chooses free ones), numbers such as 0,1, or UUIDs",
        zh="GPU：数量（自动选空闲的）、编号 0,1 或 UUID",
    ),
    "run/option-cpus": Text(en="number of ranks on CPU, without GPUs", zh="在 CPU 上启动多少个 rank，不用 GPU"),
    "run/option-launcher": Text(
        en="let headway start the ranks, or keep the line's own launcher", zh="由 headway 启动各 rank，或保留原启动器"
    ),
    "run/option-restarts": Text(
        en="restarts after kills and lost connections; three in a row without progress end the run",
        zh="被终止或断连后最多重启多少次；连续三次没有进展就结束",
    ),
    "run/option-oom-knob": Text(
        en="after an out-of-memory error, start again with these numbers changed: 'batch_size/2,grad_accum*2'",
        zh="显存或内存不足后修改这些参数并重新启动：'batch_size/2,grad_accum*2'",
    ),
    "run/oom-knob": Text(
        en="--oom-knob {text} cannot be read: it is a list of NAME/NUMBER and NAME*NUMBER, with numbers from 2 to 9999",
        zh="无法识别 --oom-knob {text}：应为 NAME/2 或 NAME*2 形式的列表，数字为 2 到 9999",
        en_hint="for example:\n  --oom-knob 'per_device_train_batch_size/2,gradient_accumulation_steps*2'",
        zh_hint="例如：\n  --oom-knob 'per_device_train_batch_size/2,gradient_accumulation_steps*2'",
    ),
    "run/oom-knob-missing": Text(
        en="--oom-knob names {name}, but the line has no number of that name (--{name} 8, {name}=8 or a variable)",
        zh="--oom-knob 指定了 {name}，但命令中没有这个名字的数值（--{name} 8、{name}=8 或环境变量）",
        en_hint="add it to the line with its number, for example --{name} 8",
        zh_hint="把它和数值加到命令里，例如 --{name} 8",
    ),
    "run/option-resume-with": Text(
        en="words that make the script continue when it starts again: '--resume {{latest}}' or 'RESUME={{latest}}'",
        zh="重新启动时让脚本继续训练的参数：'--resume {{latest}}' 或 'RESUME={{latest}}'",
    ),
    "run/resume-with": Text(
        en="--resume-with {text} has no words that a shell can read",
        zh="--resume-with {text} 中没有 shell 能读懂的内容",
        en_hint="write the script's own argument; {{latest}} becomes its newest checkpoint:\n"
        "  --resume-with '--resume_from_checkpoint {{latest}}'",
        zh_hint="写脚本自己的参数，{{latest}} 会换成最新的检查点：\n"
        "  --resume-with '--resume_from_checkpoint {{latest}}'",
    ),
    "run/resume-with-shell": Text(
        en="--resume-with {text} adds arguments, but this line is shell text and has no place for them",
        zh="--resume-with {text} 要添加参数，但这条命令是 shell 文本，没有添加的位置",
        en_hint="use a variable that the line reads:\n  --resume-with 'RESUME={{latest}}'",
        zh_hint="改用命令会读取的环境变量：\n  --resume-with 'RESUME={{latest}}'",
    ),
    "run/option-on-nan": Text(
        en="what to do when the loss becomes NaN or infinite", zh="损失变成 NaN 或无穷大时怎么办"
    ),
    "run/option-on-hang": Text(en="what to do when the ranks hang", zh="各 rank 卡死时怎么办"),
    "run/option-hang-after": Text(
        en="seconds without progress before the ranks count as hung", zh="多少秒没有进展视为卡死"
    ),
    "run/option-when-free": Text(en="wait until this many GPUs are free", zh="等到有这么多 GPU 空闲再开始"),
    "run/option-grace": Text(
        en="seconds the program gets to end by itself after a stop", zh="要求停止后，留给程序自行结束的秒数"
    ),
    "run/option-no-hook": Text(en="do not inject anything into the processes", zh="不向进程注入任何内容"),
    "run/option-no-training": Text(
        en="the program does not have to train: no training step is not a failure",
        zh="程序不必训练：一步未走也不算失败",
    ),
    "run/option-name": Text(
        en="name of the run, used in its folder name [default: the script's]",
        zh="训练的名称，用于目录名 [默认：脚本名]",
    ),
    "run/not-a-name": Text(
        en="--name is {got!r}, but it becomes part of a folder name: use letters, digits and . _ + -, at most 80 "
        "characters",
        zh="--name 的值是 {got!r}，它会成为目录名的一部分：只能使用字母、数字和 . _ + -，最多 80 个字符",
        en_hint="choose a name like this:\n  --name baseline-2",
        zh_hint="改用类似这样的名称：\n  --name baseline-2",
    ),
    "run/option-out": Text(en="folder for run directories", zh="训练目录放在哪里"),
    "run/option-dry-run": Text(en="show what would be started", zh="只显示将要启动的内容"),
    "run/option-json": Text(en="with --dry-run: print it as JSON", zh="与 --dry-run 一起使用：以 JSON 输出"),
    "run/json-without-dry-run": Text(
        en="--json shows what would be started, so it needs --dry-run; a run prints only the program's own output",
        zh="--json 用于显示将要启动的内容，需要与 --dry-run 一起使用；运行时的输出是程序自己的",
        en_hint=("only a dry run is printed as JSON:\n  headway run --dry-run --json {line}"),
        zh_hint=("只有试算可以输出 JSON：\n  headway run --dry-run --json {line}"),
    ),
    "run/cpus-original": Text(
        en="--cpus {cpus} only hides the GPUs here, because the line starts its own processes: {why:said}",
        zh="这里 --cpus {cpus} 只会隐藏 GPU，进程由命令自己启动：{why:said}",
    ),
    "run/note": Text(en="note: {text}", zh="提示：{text}"),
    "run/dry-own": Text(en="its launcher decides", zh="由其启动器决定"),
    "run/made": Text(en="run directory: {run}", zh="训练目录：{run}"),
    "run/log": Text(en="full log: {log}", zh="完整日志：{log}"),
    "run/done": Text(en="done: {steps} steps observed; log: {log}", zh="已完成：观察到 {steps} 步；日志：{log}"),
    "run/done-unseen": Text(
        en="done with exit code 0; no training step was observed; log: {log}",
        zh="已完成，退出码 0；没有观察到训练步；日志：{log}",
    ),
    "run/own-place": Text(en="your code: {place}", zh="你的代码：{place}"),
    "run/dry": Text(
        en="start: {mode:word}, ranks: {ranks}, launcher of the line: {launcher}",
        zh="启动方式：{mode:word}，rank 数：{ranks}，命令的启动器：{launcher}",
    ),
    "run/dry-original": Text(en="the original launcher is kept: {why:said}", zh="保留原启动器：{why:said}"),
    "run/why-script": Text(en="it is a shell script", zh="这是 shell 脚本"),
    "run/why-unknown": Text(en="no Python program was recognised in it", zh="没有识别出 Python 程序"),
    "run/why-launcher": Text(en="{launcher} does work of its own", zh="{launcher} 有自己的工作要做"),
    "run/why-nodes": Text(en="it is for {nodes} nodes", zh="它面向 {nodes} 个节点"),
    "run/why-shell": Text(
        en="bash runs the text, because it is more than one simple command",
        zh="这段文本由 bash 执行：它不只是一条简单命令",
    ),
    "run/why-bash": Text(en="only bash can run {word}", zh="{word} 只能由 bash 执行"),
    "run/why-not-torchs": Text(
        en="{program} is a program of its own, not torch's launcher, so it is started as it is",
        zh="{program} 是另外的程序，不是 torch 自带的启动器，因此照原样启动",
    ),
    "run/no-background": Text(
        en="the & at the end is ignored: headway waits for the line; use headway run --detach to run in the background",
        zh="已忽略结尾的 &：headway 会等待命令结束；要放到后台运行，使用 headway run --detach",
    ),
    "run/pasted-note": Text(
        en="""line {line}: {what}. The text is run as written. To run the repaired line instead:
  headway adopt {text} --to launch.yaml
  headway run launch.yaml""",
        zh="""第 {line} 行：{what}。文本按原样执行。如要运行修正后的命令：
  headway adopt {text} --to launch.yaml
  headway run launch.yaml""",
    ),
    "run/pasted": Text(
        en="{program} is not a program; line {line} of the text: {what}",
        zh="{program} 不是程序；文本第 {line} 行：{what}",
        en_hint="""run the repaired line:
  headway adopt {text} --to launch.yaml
  headway run launch.yaml""",
        zh_hint="""运行修正后的命令：
  headway adopt {text} --to launch.yaml
  headway run launch.yaml""",
    ),
    "run/not-native": Text(
        en="headway cannot start this line itself: {why:said}",
        zh="headway 无法直接启动这条命令：{why:said}",
        en_hint=("leave out --launcher, or keep the line's own launcher:\n  --launcher original"),
        zh_hint=("去掉 --launcher，或使用该命令自己的启动器：\n  --launcher original"),
    ),
    "run/no-program": Text(
        en="{program} is not on PATH",
        zh="PATH 中找不到 {program}",
        en_hint="activate its environment first, or write its full path",
        zh_hint="先激活对应的环境，或写出完整路径",
    ),
    "run/is-script": Text(
        en="{program} is a Python script and cannot be executed by itself",
        zh="{program} 是 Python 脚本，不能直接执行",
        en_hint="start it with its interpreter:\n  headway run python {line}",
        zh_hint="用解释器启动：\n  headway run python {line}",
    ),
    "run/not-clean": Text(
        en="{path} is not a launch config written by headway adopt",
        zh="{path} 不是 headway adopt 写出的启动配置",
        en_hint=(
            "it is a training config; a launch line is typed after `headway run` as it is:\n  headway train {path}"
        ),
        zh_hint=("这是训练配置；启动命令要照原样写在 `headway run` 后面：\n  headway train {path}"),
    ),
    "run/clean-open": Text(
        en="{path} has values that are not set: {names:list}",
        zh="{path} 中还有未确定的值：{names:list}",
        en_hint="write the values into the file, and remove the names from its list unresolved",
        zh_hint="把它们的值写进文件，并从 unresolved 列表中去掉",
    ),
    "run/clean-patterns": Text(
        en="{path} contains words that a shell must expand first: {words:list}",
        zh="{path} 中有需要由 shell 展开、而尚未展开的词：{words:list}",
        en_hint="write what they expand to into the file, and remove them from its list patterns",
        zh_hint="在文件中写出它们实际代表的内容，并从 patterns 列表中去掉",
    ),
    "run/clean-launcher": Text(
        en="{path} is for {launcher}; from a file, only python and torchrun on one machine can be started",
        zh="{path} 用的是 {launcher}，而从文件只能启动单机的 python 和 torchrun",
        en_hint="run the line it came from with `headway run`, as it is",
        zh_hint="用 `headway run` 照原样运行它原来的命令",
    ),
    "run/no-resume": Text(
        en="{run} is an external program; only the program itself knows how to resume",
        zh="{run} 是外部程序，只有它自己知道如何继续",
        en_hint="type its headway run line again, with the program's own option for resuming",
        zh_hint="重新输入它的 headway run 命令，并加上该程序自己的断点续训选项",
    ),
    "run/bad-gpus": Text(
        en="{value} is not a number, an index or a UUID of a GPU",
        zh="{value} 不是 GPU 的数量、编号或 UUID",
        en_hint=("`--gpus 0,1` takes these two; two free ones:\n  --gpus 2"),
        zh_hint=("`--gpus 0,1` 指定这两张；选两张空闲的：\n  --gpus 2"),
    ),
    "run/gpus-or-cpus": Text(
        en="--gpus and --cpus cannot be used together",
        zh="--gpus 与 --cpus 不能同时使用",
        en_hint="keep one of them",
        zh_hint="只保留其中一个",
    ),
    "run/no-gpus": Text(
        en="the line needs one rank per GPU ({words}), but this machine has no GPU",
        zh="命令要求每张 GPU 一个 rank（{words}），但本机没有 GPU",
        en_hint=("start it on the CPU:\n  --cpus 2"),
        zh_hint=("改用 CPU：\n  --cpus 2"),
    ),
    "run/too-few-gpus": Text(
        en="{wanted} GPUs are needed, but this machine has {here}", zh="需要 {wanted} 张 GPU，本机只有 {here} 张"
    ),
    "run/too-few-free": Text(
        en="{wanted} free GPUs are needed; in use: {holders}",
        zh="需要 {wanted} 张空闲 GPU；占用情况：{holders}",
        en_hint=("wait for them:\n  --when-free {wanted}"),
        zh_hint=("等待空闲：\n  --when-free {wanted}"),
    ),
    "run/no-such-gpu": Text(
        en="there is no GPU {name}; this machine has {here}", zh="没有 GPU {name}；本机共 {here} 张"
    ),
    "run/gpu-twice": Text(
        en="GPU {name} is named twice", zh="GPU {name} 写了两次", en_hint="name each GPU once", zh_hint="每张只写一次"
    ),
    "run/gpu-claimed": Text(
        en="GPU {name} is used by another run ({holder})",
        zh="GPU {name} 正被另一次训练占用（{holder}）",
        en_hint="take free ones by their number, such as `--gpus 1`, or wait for them with `--when-free`",
        zh_hint="用 `--gpus 1` 这样的数量选空闲的，或用 `--when-free` 等待",
    ),
    "run/waiting": Text(
        en="waiting for {wanted} free GPUs; in use: {holders}", zh="等待 {wanted} 张空闲 GPU；占用情况：{holders}"
    ),
    "run/progress-step": Text(en="step {step}", zh="第 {step} 步"),
    "run/progress-rate": Text(en="{rate} steps/s", zh="{rate} 步/秒"),
    "run/progress-left": Text(en="{left} left", zh="剩余 {left}"),
    "run/progress-comma": Text(en=", ", zh="，"),
    "run/lines-skipped": Text(en="… {num} more lines, all in the log", zh="……另有 {num} 行，均在日志中"),
    "run/restart": Text(en="restarting after rank {rank}: {text}", zh="rank {rank} 出错，重新启动：{text}"),
    "run/stop": Text(
        en="stopping: the signal was forwarded; press Ctrl-C again to kill immediately",
        zh="正在停止：信号已转发；再按一次 Ctrl-C 立即强制终止",
    ),
    "run/stop-now": Text(en="killing all ranks", zh="立即强制终止所有 rank"),
    "run/hang-one": Text(en="{text}, for {seconds} s", zh="{text}，已持续 {seconds} 秒"),
    "run/hang": Text(
        en="no rank has made progress for {seconds} s: {text}", zh="所有 rank 已有 {seconds} 秒没有进展：{text}"
    ),
    "run/hang-wait": Text(
        en="waiting; use --on-hang stop or --on-hang restart to act on a hang",
        zh="继续等待；可用 --on-hang stop 或 --on-hang restart 处理",
    ),
    "run/hang-restart": Text(en="ending the ranks to restart them", zh="结束各 rank 并重新启动"),
    "run/hang-stop": Text(en="ending the run", zh="结束本次训练"),
    "run/column-rank": Text(en="  rank", zh="  rank"),
    "run/column-state": Text(en="state", zh="状态"),
    "run/column-step": Text(en="step", zh="步"),
    "run/column-phase": Text(en="phase", zh="阶段"),
    "run/column-collective": Text(en="collective", zh="集合通信"),
    "run/column-seconds": Text(en="idle for", zh="无进展"),
    "run/column-place": Text(en="line", zh="代码行"),
}
