"""Texts of `headway run`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "run/help": Text(
        en="""Run any launch line under supervision: first failure, real exit code, no orphans.

LINE is what you type today: torchrun, python, accelerate, deepspeed, mpirun, a shell script. Nothing in your code
changes. Lines of torchrun and plain python are started by headway itself; others keep their launcher.
Words are passed on as they are; a line in quotes is read by bash. Options of headway stand before LINE.

Ctrl-C and SIGTERM are passed on to whoever can save, and --grace is given to all of them. SIGUSR1, SIGUSR2 and SIGHUP
go to the processes that handle them; the run continues.

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
        en="GPUs: a number (takes free ones), indexes 0,1 or UUIDs", zh="GPU：数量（自动选空闲的）、编号 0,1 或 UUID"
    ),
    "run/option-cpus": Text(en="ranks on CPU, without GPUs", zh="在 CPU 上启动多少个 rank，不用 GPU"),
    "run/option-launcher": Text(
        en="start the ranks ourselves, or keep the line's own launcher", zh="由 headway 启动各 rank，或保留原启动器"
    ),
    "run/option-restarts": Text(
        en="restarts after kills and lost connections; three in a row without progress end the run",
        zh="被终止或断连后最多重启多少次；连续三次没有进展就结束",
    ),
    "run/option-oom-knob": Text(
        en="after an out-of-memory error, start again with these numbers changed:"
        " 'per_device_train_batch_size/2,gradient_accumulation_steps*2'",
        zh="内存不足后修改这些参数并重新启动：'per_device_train_batch_size/2,gradient_accumulation_steps*2'",
    ),
    "run/oom-knob": Text(
        en="--oom-knob {text} cannot be read: it is a list of NAME/NUMBER and NAME*NUMBER, with numbers from 2 to 9999",
        zh="无法识别 --oom-knob {text}：应为 NAME/2 或 NAME*2 形式的列表，数字为 2 到 9999",
        en_hint="type: --oom-knob 'per_device_train_batch_size/2,gradient_accumulation_steps*2'",
        zh_hint="例如：--oom-knob 'per_device_train_batch_size/2,gradient_accumulation_steps*2'",
    ),
    "run/oom-knob-missing": Text(
        en="--oom-knob names {name}, but the line has no number of that name (--{name} 8, {name}=8 or a variable)",
        zh="--oom-knob 指定了 {name}，但命令中没有这个名字的数值（--{name} 8、{name}=8 或环境变量）",
        en_hint="add it to the line with its number, for example --{name} 8",
        zh_hint="把它和数值加到命令里，例如 --{name} 8",
    ),
    "run/option-on-hang": Text(en="what to do when the ranks stand still", zh="各 rank 停滞时怎么办"),
    "run/option-hang-after": Text(
        en="seconds of silence before ranks count as standing still", zh="静默多少秒后视为停滞"
    ),
    "run/option-when-free": Text(en="wait until so many GPUs are free", zh="等到有这么多 GPU 空闲再开始"),
    "run/option-grace": Text(en="seconds to end by itself after a stop", zh="要求停止后，留给程序自行结束的秒数"),
    "run/option-no-hook": Text(en="put nothing into the processes", zh="不向进程注入任何内容"),
    "run/option-no-training": Text(
        en="the program need not train: no step is no failure", zh="程序不必训练：一步未走也不算失败"
    ),
    "run/option-out": Text(en="folder for run directories", zh="训练目录放在哪里"),
    "run/option-dry-run": Text(en="show what would be started", zh="只显示将要启动的内容"),
    "run/option-json": Text(en="with --dry-run: print it as JSON", zh="与 --dry-run 一起使用：以 JSON 输出"),
    "run/json-without-dry-run": Text(
        en="--json shows what would be started, so it needs --dry-run; the output of a run is the program's own",
        zh="--json 用于显示将要启动的内容，需要与 --dry-run 一起使用；运行时的输出是程序自己的",
        en_hint="type: headway run --dry-run --json {line}",
        zh_hint="输入：headway run --dry-run --json {line}",
    ),
    "run/cpus-original": Text(
        en="--cpus {cpus} only hides the GPUs here, the line starts its own processes: {why}",
        zh="这里 --cpus {cpus} 只会隐藏 GPU，进程由命令自己启动：{why}",
    ),
    "run/note": Text(en="note: {text}", zh="提示：{text}"),
    "run/dry-own": Text(en="its launcher decides", zh="由其启动器决定"),
    "run/made": Text(en="run directory: {run}", zh="训练目录：{run}"),
    "run/log": Text(en="whole log: {log}", zh="完整日志：{log}"),
    "run/done": Text(en="done: {steps} steps seen; log: {log}", zh="已完成：观察到 {steps} 步；日志：{log}"),
    "run/done-unseen": Text(
        en="done with exit code 0; no training step was seen; log: {log}",
        zh="已完成，退出码 0；没有观察到训练步；日志：{log}",
    ),
    "run/own-place": Text(en="your code: {place}", zh="你的代码：{place}"),
    "run/dry": Text(
        en="{mode} start, ranks: {ranks}, launcher of the line: {launcher}",
        zh="启动方式：{mode}，rank 数：{ranks}，命令的启动器：{launcher}",
    ),
    "run/dry-original": Text(en="the original launcher is kept: {why}", zh="保留原启动器：{why}"),
    "run/why-script": Text(en="it is a shell script", zh="这是 shell 脚本"),
    "run/why-unknown": Text(en="no Python program was recognised in it", zh="没有识别出 Python 程序"),
    "run/why-launcher": Text(en="{launcher} does work of its own", zh="{launcher} 有自己的工作要做"),
    "run/why-nodes": Text(en="it is for {nodes} nodes", zh="它面向 {nodes} 个节点"),
    "run/why-shell": Text(
        en="bash runs the text: it is more than one plain command",
        zh="这段文本由 bash 执行：它不只是一条简单命令",
    ),
    "run/why-bash": Text(en="{word} can only be run by bash", zh="{word} 只能由 bash 执行"),
    "run/why-not-torchs": Text(
        en="{program} is not the launcher of an installed torch, so it is started as it is",
        zh="{program} 不是已安装的 torch 自带的启动器，因此照原样启动",
    ),
    "run/no-background": Text(
        en="the & at the end is left out: headway waits for the line; use headway run --detach for the background",
        zh="省略了结尾的 &：headway 会等待命令结束；要放到后台运行，使用 headway run --detach",
    ),
    "run/pasted-note": Text(
        en="""line {line}: {what}. The text is run as it is written. To run the repaired line instead:
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
        en="this line cannot be started natively: {why}",
        zh="这条命令无法直接启动：{why}",
        en_hint="leave out --launcher, or use --launcher original",
        zh_hint="去掉 --launcher，或改用 --launcher original",
    ),
    "run/no-program": Text(
        en="{program} is not on PATH",
        zh="PATH 中找不到 {program}",
        en_hint="activate its environment first, or write its whole path",
        zh_hint="先激活对应的环境，或写出完整路径",
    ),
    "run/not-clean": Text(
        en="{path} is no launch that headway adopt has written",
        zh="{path} 不是 headway adopt 写出的启动配置",
        en_hint="a training config is run by headway train {path}, a launch line as it is: headway run torchrun …",
        zh_hint="训练配置用 headway train {path}；启动命令照原样输入：headway run torchrun …",
    ),
    "run/clean-open": Text(
        en="{path} leaves open: {names}",
        zh="{path} 中还有未确定的值：{names}",
        en_hint="write their values into the file, and take their names out of its list unresolved",
        zh_hint="把它们的值写进文件，并从 unresolved 列表中去掉",
    ),
    "run/clean-patterns": Text(
        en="{path} holds words that a shell would replace by others, and no shell has: {words}",
        zh="{path} 中有需要由 shell 展开、而尚未展开的词：{words}",
        en_hint="write into the file what they stand for, and take them out of its list patterns",
        zh_hint="在文件中写出它们实际代表的内容，并从 patterns 列表中去掉",
    ),
    "run/clean-launcher": Text(
        en="{path} is for {launcher}; from a file only python and torchrun on one machine can be started",
        zh="{path} 用的是 {launcher}，而从文件只能启动单机的 python 和 torchrun",
        en_hint="run the line it came from: headway run {launcher} …",
        zh_hint="运行它原来的命令：headway run {launcher} …",
    ),
    "run/no-resume": Text(
        en="{run} is a program of its own; only it knows how it goes on",
        zh="{run} 是外部程序，只有它自己知道如何继续",
        en_hint="type its headway run line again, with the option by which it resumes",
        zh_hint="重新输入它的 headway run 命令，并加上它自己的续训选项",
    ),
    "run/bad-gpus": Text(
        en="{value} is neither a number, an index nor a UUID of a GPU",
        zh="{value} 不是 GPU 的数量、编号或 UUID",
        en_hint="--gpus 2 takes two free ones, --gpus 0,1 takes these two",
        zh_hint="--gpus 2 选两块空闲的，--gpus 0,1 指定这两块",
    ),
    "run/gpus-or-cpus": Text(
        en="--gpus and --cpus contradict each other",
        zh="--gpus 与 --cpus 互相矛盾",
        en_hint="keep one of them",
        zh_hint="只保留其中一个",
    ),
    "run/no-gpus": Text(
        en="the line wants one rank for each GPU ({words}), but none is here",
        zh="命令要求每块 GPU 一个 rank（{words}），但本机没有 GPU",
        en_hint="start on CPU with: headway run --cpus 2 …",
        zh_hint="改用 CPU：headway run --cpus 2 …",
    ),
    "run/too-few-gpus": Text(
        en="{wanted} GPUs are wanted, {here} are here", zh="需要 {wanted} 块 GPU，本机只有 {here} 块"
    ),
    "run/too-few-free": Text(
        en="{wanted} free GPUs are wanted; held: {holders}",
        zh="需要 {wanted} 块空闲 GPU；占用情况：{holders}",
        en_hint="wait for them with: --when-free {wanted}",
        zh_hint="等待空闲：--when-free {wanted}",
    ),
    "run/no-such-gpu": Text(en="there is no GPU {name}; {here} are here", zh="没有 GPU {name}；本机共 {here} 块"),
    "run/gpu-twice": Text(
        en="GPU {name} is named twice", zh="GPU {name} 写了两次", en_hint="name each once", zh_hint="每块只写一次"
    ),
    "run/gpu-claimed": Text(
        en="GPU {name} is held by another run ({holder})",
        zh="GPU {name} 正被另一个训练占用（{holder}）",
        en_hint="take free ones with --gpus N, or wait with --when-free N",
        zh_hint="用 --gpus N 选空闲的，或用 --when-free N 等待",
    ),
    "run/waiting": Text(
        en="waiting for {wanted} free GPUs; held: {holders}", zh="等待 {wanted} 块空闲 GPU；占用情况：{holders}"
    ),
    "run/progress": Text(
        en="step {step}, loss {loss}, {rate} steps/s, {left} left",
        zh="第 {step} 步，loss {loss}，{rate} 步/秒，剩余 {left}",
    ),
    "run/lines-skipped": Text(en="… {num} more lines, all in the log", zh="……另有 {num} 行，均在日志中"),
    "run/restart": Text(en="restarting after rank {rank}: {text}", zh="rank {rank} 出错，重新启动：{text}"),
    "run/stop": Text(
        en="stopping: the signal was passed on; once more kills at once", zh="正在停止：信号已转发；再按一次立即终止"
    ),
    "run/stop-now": Text(en="killing all ranks", zh="立即终止所有 rank"),
    "run/hang-one": Text(en="{text}, {seconds} s ago", zh="{text}，已 {seconds} 秒"),
    "run/hang": Text(en="no rank has moved for {seconds} s: {text}", zh="所有 rank 已有 {seconds} 秒没有进展：{text}"),
    "run/hang-wait": Text(
        en="waiting on; --on-hang stop or restart would act", zh="继续等待；可用 --on-hang stop 或 restart 处理"
    ),
    "run/hang-restart": Text(en="ending the ranks, to start them again", zh="结束各 rank 并重新启动"),
    "run/hang-stop": Text(en="ending the run", zh="结束本次训练"),
    "run/column-rank": Text(en="  rank", zh="  rank"),
    "run/column-state": Text(en="state", zh="状态"),
    "run/column-step": Text(en="step", zh="步"),
    "run/column-phase": Text(en="phase", zh="阶段"),
    "run/column-collective": Text(en="collective", zh="集合通信"),
    "run/column-seconds": Text(en="still for", zh="已停滞"),
    "run/column-place": Text(en="line", zh="代码行"),
}
