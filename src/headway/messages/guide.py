"""Texts of the guides' own commands, as far as all guides share them."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "guide/small": Text(
        en="no GPU on this machine: a small model ({size}) is trained on CPU ranks; {flag} trains the guide's full "
        "size",
        zh="本机没有 GPU：在 CPU 上训练小模型（{size}）；加 {flag} 训练指南中的完整规模",
    ),
    "guide/full": Text(
        en="training the guide's full size ({flag}, or this machine has a GPU)",
        zh="按指南中的完整规模训练（{flag}，或本机有 GPU）",
    ),
    "guide/many-nodes": Text(
        en="the launcher starts {ranks} processes on several machines, {here} of them on this one; a guide's script "
        "trains on one machine",
        zh="启动器在多台机器上共启动 {ranks} 个进程，本机 {here} 个；指南脚本只在一台机器上训练",
        en_hint="start it on one machine, or supervise a script of your own with headway run",
        zh_hint="只在一台机器上启动，或用 headway run 监控自己的脚本",
    ),
    "guide/half-set": Text(
        en="RANK={rank}, WORLD_SIZE={ranks}: a process started by hand needs both variables, as whole numbers",
        zh="RANK={rank}，WORLD_SIZE={ranks}：手动启动时，每个进程都要有这两个变量，且须为整数",
        en_hint=(
            "unset both for one GPU, or let torchrun set them with `--nproc_per_node`:\n"
            "  unset RANK WORLD_SIZE LOCAL_RANK"
        ),
        zh_hint=(
            "单卡训练时取消这两个变量，或用 torchrun 的 `--nproc_per_node` 设置它们：\n"
            "  unset RANK WORLD_SIZE LOCAL_RANK"
        ),
    ),
    "guide/rank-range": Text(
        en="RANK={rank}, but with WORLD_SIZE={ranks} it must be from 0 to {last}",
        zh="RANK={rank}，而 WORLD_SIZE={ranks} 时编号只能是 0 到 {last}",
        en_hint="give every process its own RANK from 0 to {last}",
        zh_hint="给每个进程各自的 RANK：0 到 {last}",
    ),
    "guide/rank-twice": Text(
        en="two processes have RANK={rank} (pid {first} and {second}): a RANK that is exported once is the same for "
        "all of them",
        zh="有两个进程的 RANK 都是 {rank}（pid {first} 和 {second}）：只 export 一次，所有进程的 RANK 就都相同",
        en_hint=(
            "start them with one line, or give each its own RANK from 0 to {last}: `torchrun "
            "--nproc_per_node={ranks}` before the script"
        ),
        zh_hint=(
            "用一条命令启动：在脚本前写 `torchrun --nproc_per_node={ranks}`；或给每个进程各自的 RANK（0 到 {last}）"
        ),
    ),
    "guide/ranks-missing": Text(
        en="WORLD_SIZE={ranks}, but only {have} processes have started, and no further one within {waited} s; "
        "missing: RANK {missing:list}",
        zh="WORLD_SIZE={ranks}，但只来了 {have} 个进程，{waited} 秒内没有新的；缺少 RANK {missing:list}",
        en_hint="start one process for each RANK, or set WORLD_SIZE={have}",
        zh_hint="为每个 RANK 各启动一个进程，或设 WORLD_SIZE={have}",
    ),
    "guide/other-world": Text(
        en="RANK={rank} has WORLD_SIZE={theirs}, but RANK=0 has WORLD_SIZE={ours}",
        zh="RANK={rank} 的 WORLD_SIZE 为 {theirs}，而 RANK=0 的为 {ours}",
        en_hint="set the same WORLD_SIZE for all processes",
        zh_hint="让所有进程的 WORLD_SIZE 相同",
    ),
    "guide/no-first": Text(
        en="RANK={rank} has waited {waited} s for RANK=0 at its MASTER_ADDR and MASTER_PORT, but no such process "
        "exists",
        zh="RANK={rank} 按 MASTER_ADDR 和 MASTER_PORT 等待 RANK=0 已 {waited} 秒，但没有该进程",
        en_hint="start RANK=0 too, with the same MASTER_ADDR and MASTER_PORT",
        zh_hint="同时启动 RANK=0，并使用相同的 MASTER_ADDR 和 MASTER_PORT",
    ),
    "guide/run-gone": Text(
        en="{path} comes from run {run}, whose directory no longer exists; the file alone contains weights, not the "
        "optimizer state",
        zh="{path} 来自训练 {run}，但该目录已不存在；文件本身只有权重，没有优化器状态",
        en_hint="bring the run directory back, or start a new run without --resume",
        zh_hint="恢复该训练目录，或去掉 --resume 开始新的训练",
    ),
    "guide/unused": Text(
        en="{num} settings of the guide have other values at the small size ({flag} uses the guide's values):",
        zh="小规模训练时有 {num} 项设置改用其他值（加 {flag} 则全部按原值）：",
    ),
    "guide/unused-size": Text(en="size of the model", zh="模型规模"),
    "guide/unused-cores": Text(en="this machine has {cores} cores", zh="本机有 {cores} 个 CPU 核"),
    "guide/unused-small": Text(en="chosen for the small model", zh="按小模型选取"),
    "guide/unset": Text(en="not set", zh="不设置"),
    "guide/unset-planned": Text(en="see the plan", zh="见下面的计划"),
    "guide/in-steps": Text(en="{num:,} steps", zh="{num:,} 步"),
    "guide/unused-data": Text(en="no data there: the built-in set is used", zh="该处没有数据，改用内置数据"),
    "guide/each-rank": Text(en="{num} per rank", zh="每 rank {num} 个"),
    "guide/size-layers": Text(en="width {width}, {layers} layers", zh="宽度 {width}，{layers} 层"),
    "guide/unset-own": Text(en="a small built-in one", zh="内置的小模块"),
    "guide/no-config": Text(
        en="there is no config {path}; available: {known:list}",
        zh="没有配置文件 {path}；现有：{known:list}",
        en_hint="use one of them, or omit it to use {usual}",
        zh_hint="改用其中之一；不写则使用 {usual}",
    ),
    "guide/odd-flag": Text(
        en="this script has no option {flag}; available: {known:list}",
        zh="该脚本没有选项 {flag}；可用的有：{known:list}",
        en_hint="any value of the config can be changed as key=value, for example training.num_epochs=20",
        zh_hint="配置中的任何值都可写成 key=value，例如 training.num_epochs=20",
    ),
    "guide/odd-word": Text(
        en="{word} is neither an option nor key=value",
        zh="{word} 既不是选项也不是 key=value",
        en_hint="add --help to see what the script takes",
        zh_hint="加 --help 查看脚本的用法",
    ),
    "guide/odd-seconds": Text(
        en="{flag}={value} is not a number of seconds above 0",
        zh="{flag}={value} 不是大于 0 的秒数",
        en_hint="write it as a number: {flag}=3",
        zh_hint="写成数字：{flag}=3",
    ),
    "guide/odd-count": Text(
        en="{flag}={value} is not a whole number above 0",
        zh="{flag}={value} 不是大于 0 的整数",
        en_hint="write it as a number: {flag}=2",
        zh_hint="写成数字：{flag}=2",
    ),
    "guide/no-value": Text(
        en="{flag} has no value",
        zh="{flag} 缺少取值",
        en_hint="write the value after it: {flag}=…",
        zh_hint="在后面写上值：{flag}=…",
    ),
    "guide/no-checkpoint": Text(
        en="there is no checkpoint {path}, neither here nor among those of earlier runs; its folder contains: "
        "{known:list}",
        zh="没有检查点 {path}，以前各次训练的检查点中也没有；该目录中有：{known:list}",
        en_hint="use one of them, or train first",
        zh_hint="改用其中之一，或先训练",
    ),
    "guide/no-checkpoint-yet": Text(
        en="there is no checkpoint {path}, and no run of this project has written any yet",
        zh="没有检查点 {path}，本项目的训练还没有写出过检查点",
        en_hint="train first; the name is then found, wherever later runs move the file",
        zh_hint="先训练；之后用这个名称就能找到，文件被之后的训练移走也不影响",
    ),
    "guide/no-checkpoint-folder": Text(
        en="there is no checkpoint {path}; the runs of this project have written theirs to {folders:list}",
        zh="没有检查点 {path}；本项目的训练把检查点写在 {folders:list}",
        en_hint="name a file of that folder",
        zh_hint="改用该目录中的文件",
    ),
    "guide/foreign": Text(
        en="{path} was not written by a run of this project, so the run and step to resume from are unknown",
        zh="{path} 不是由本项目的训练写出的，无法得知应从哪次训练的哪一步继续",
        en_hint=("use a checkpoint of this project, or resume a run by its name; this lists them:\n  headway runs"),
        zh_hint=("改用本项目写出的检查点，或按名称继续训练；查看列表：\n  headway runs"),
    ),
    "guide/found-elsewhere": Text(
        en="{path} was moved when a later run started; using {place} of run {run}",
        zh="{path} 已在之后的训练启动时移走；使用训练 {run} 的 {place}",
    ),
    "guide/found-near": Text(
        en="there is no {path}; using {place} of run {run}", zh="没有 {path}；使用训练 {run} 的 {place}"
    ),
    "guide/moved": Text(
        en="{num} checkpoints of the earlier run {run} are now in {place}",
        zh="上一次训练 {run} 的 {num} 个检查点已移到 {place}",
    ),
    "guide/beside": Text(
        en="run {run} is at work and writes its checkpoints to {folder}; those of this run go to {place}",
        zh="训练 {run} 正在进行，其检查点写在 {folder}；本次训练的检查点写在 {place}",
    ),
    "guide/moved-one": Text(en="{path} of an earlier run is now {place}", zh="以前训练的 {path} 已移到 {place}"),
    "guide/best-kept": Text(
        en="{path} remains the best model of run {run} ({best}) until this run finds a better one",
        zh="{path} 仍是训练 {run} 的最佳模型（{best}），本次训练得到更好的结果时才替换",
    ),
    "guide/best-stays": Text(
        en="{path} remains the model of run {run} ({best}), which is better than the best of this run ({own}); the "
        "best model of this run is in {place}",
        zh="{path} 仍是训练 {run} 的模型（{best}），优于本次训练的最佳（{own}）；本次训练的最佳模型保存在 {place}",
    ),
    "guide/stopped": Text(
        en="stopped on request; the state is saved; to continue:\n{command}",
        zh="已按要求停止并保存；继续训练：\n{command}",
    ),
    "guide/stopped-early": Text(
        en="stopped on request before the first checkpoint: nothing was saved",
        zh="已按要求停止，尚无检查点：没有可保存的内容",
    ),
    "guide/interrupted": Text(
        en="stopped on request; what was saved before is unchanged", zh="已按要求停止；此前保存的内容没有变化"
    ),
    "guide/no-run": Text(
        en="{out} has no run {name} to continue",
        zh="{out} 中没有可以继续的训练 {name}",
        en_hint=("leave --resume out to start a new run, or list the runs:\n  headway runs --out {out}"),
        zh_hint=("去掉 --resume 开始新的训练，或列出已有的训练：\n  headway runs --out {out}"),
    ),
    "guide/saved": Text(en="checkpoint saved: {path} (step {step})", zh="检查点已保存：{path}（第 {step} 步）"),
    "guide/not-copied": Text(
        en="{name} was not written: {why:said}; the run's own checkpoint is intact: {checkpoint}",
        zh="未能写出 {name}：{why:said}；训练目录中的检查点完好：{checkpoint}",
    ),
    "guide/finishing": Text(
        en="training has ended; the last files are still being written to {folder} (Ctrl-C again ends at once)",
        zh="训练已结束，正在向 {folder} 写出最后的文件（再按一次 Ctrl-C 立即退出）",
    ),
    "guide/elsewhere": Text(
        en="working in the project folder {folder}: logs and results are there",
        zh="在项目目录 {folder} 中运行，日志和结果也在该目录中",
    ),
    "guide/help-end": Text(
        en="  --lang en|zh   language of what is shown\n"
        "  --help         show this text; nothing is started\n"
        "README.md in this folder explains what each script does and where the results are",
        zh="  --lang en|zh   界面语言\n  --help         显示本说明，不启动任何程序\n"
        "各脚本的作用和结果位置见本目录的 README.md",
    ),
    "guide/nothing-to-watch": Text(
        en="no training has been started in {folder} yet",
        zh="{folder} 中还没有启动过训练",
        en_hint="start one in another terminal; without --once the monitor waits for it",
        zh_hint="先在另一个终端启动训练；不加 --once 时，监控会一直等到训练启动",
    ),
    "guide/help-tail": Text(
        en="  key=value      any setting of the config, for this command only\n"
        "  {flag}    train the guide's full size even without a GPU\n"
        "  --lang en|zh   language of what is shown\n"
        "  --help         show this text; nothing is started\n"
        "README.md in this folder explains what each script does and where the results are",
        zh=(
            "  key=value      配置中的任意一项，只对本次命令有效\n"
            "  {flag}    没有 GPU 时也按指南的完整规模训练\n"
            "  --lang en|zh   界面语言\n"
            "  --help         显示本说明，不启动任何程序\n"
            "各脚本的作用和结果位置见本目录的 README.md"
        ),
    ),
    "guide/analysis": Text(en="error analysis: {cause}", zh="错误分析：{cause}"),
    "guide/evidence": Text(en="evidence: {evidence}", zh="依据：{evidence}"),
    "guide/evidence-code": Text(
        en="error code {code}, explained by headway explain {code}", zh="错误代码 {code}，说明见 headway explain {code}"
    ),
    "guide/not-moved": Text(
        en="the files of earlier runs could not be moved aside and stay where they are: {why:said}",
        zh="无法移走以前训练的文件，它们仍在原处：{why:said}",
    ),
    "guide/advice": Text(en="what the guide advises:", zh="指南的建议："),
    "guide/cause-unknown": Text(en="the command ended without an error message", zh="命令结束时没有给出错误信息"),
    "guide/advice-memory": Text(
        en="lower the batch size (now {per_device} per device, {total} in total) and raise gradient accumulation "
        "(now {accumulation})\n"
        "close other programs that use memory",
        zh="减小批大小（当前每卡 {per_device}，合计 {total}），并增加梯度累积次数（当前 {accumulation}）\n"
        "关闭占用显存或内存的其他程序",
    ),
    "guide/advice-data": Text(
        en="check that the data folder is right (now {data}); relative paths start in the project folder",
        zh="检查数据目录是否正确（当前 {data}）；相对路径以项目目录为起点",
    ),
    "guide/advice-device": Text(
        en="check the GPUs: nvidia-smi\nsee which devices can be used: headway check",
        zh="查看 GPU 状态：nvidia-smi\n查看本机可用的设备：headway check",
    ),
    "guide/advice-environment": Text(
        en="use the environment in which the framework is installed; see what is missing in this one: headway check",
        zh="使用装有训练框架的环境；查看本环境缺少什么：headway check",
    ),
    "guide/advice-port": Text(
        en="start it again: each start chooses a free port for the ranks\n"
        "look for a process left over from an earlier run: headway runs",
        zh="重新启动即可：每次都会为各 rank 选用空闲端口\n检查是否有上次训练残留的进程：headway runs",
    ),
    "guide/advice-disk": Text(
        en="free some space: df -h .\nkeep fewer checkpoints: save.keep_last=1",
        zh="清理磁盘：df -h .\n少保留检查点：save.keep_last=1",
    ),
    "guide/advice-config": Text(
        en="change the setting as the message says, in the config file or with key=value on the command line",
        zh="按提示修改该设置：可改配置文件，也可在命令行写 key=value",
    ),
    "guide/advice-done": Text(
        en="to train longer, raise the epochs or steps in the config file or on the command line, then repeat the "
        "command\n"
        "for a new run, leave out what continues the old one",
        zh="要训练更久，先增加配置文件或命令行中的轮数或步数，再重复该命令\n要开始新的训练，去掉命令中指定继续的部分",
    ),
    "guide/check-devices": Text(en="checking the GPUs", zh="检查 GPU 状态"),
    "guide/check-no-gpu": Text(
        en="no GPU on this machine (the guide needs {want}): using {want} CPU ranks instead",
        zh="本机没有 GPU（指南需要 {want} 张）：改用 {want} 个 CPU rank",
    ),
    "guide/check-few-gpus": Text(
        en="{have} GPUs are available, but the guide needs {want}", zh="可用的 GPU 有 {have} 张，而指南需要 {want} 张"
    ),
    "guide/check-hidden": Text(
        en="CUDA_VISIBLE_DEVICES={shown} shows fewer GPUs than the {want} this script needs; set "
        "CUDA_VISIBLE_DEVICES=0,1",
        zh="CUDA_VISIBLE_DEVICES={shown} 可见的 GPU 少于该脚本所需的 {want} 张；应设为 CUDA_VISIBLE_DEVICES=0,1",
    ),
    "guide/check-gpu": Text(
        en="GPU {number} {name}: {have} free (the guide recommends {want})",
        zh="GPU {number} {name}：可用显存 {have}（指南建议 {want}）",
    ),
    "guide/check-port": Text(en="port {port} is free", zh="端口 {port} 空闲"),
    "guide/check-port-busy": Text(
        en="port {port} is in use; the next free one is {free} (the ranks choose a free port automatically)",
        zh="端口 {port} 已被占用，下一个空闲端口是 {free}（各 rank 会自动选用空闲端口）",
    ),
    "guide/check-ports-busy": Text(
        en="ports {port} to {last} are in use (the ranks choose a free port automatically)",
        zh="端口 {port} 到 {last} 均被占用（各 rank 会自动选用空闲端口）",
    ),
    "guide/check-variable": Text(
        en="{name}={have}, but the guide sets {want}: a PyTorch built without libuv may not start a script of "
        "your own (the ranks of Headway are not affected); export {name}={want}",
        zh="{name}={have}，而指南设为 {want}：若 PyTorch 编译时未带 libuv，自己的脚本可能无法启动（Headway 的 rank "
        "不受影响）；export {name}={want}",
    ),
    "guide/monitor-machine": Text(
        en="machine: CPU {cpu}% of {cores} cores, memory {used} of {total}, free disk {free}",
        zh="系统：CPU {cpu}%（{cores} 核），内存 {used} / {total}，可用磁盘 {free}",
    ),
    "guide/monitor-job": Text(
        en="this run: {num} processes, CPU {cpu}%, memory {memory}",
        zh="本次训练：{num} 个进程，CPU {cpu}%，内存 {memory}",
    ),
    "guide/monitor-run": Text(en="on disk: {path} {size}", zh="占用磁盘：{path} {size}"),
    "guide/monitor-gpu": Text(
        en="GPU {number} {name}: utilisation {used}, free memory {free}, {temperature} °C",
        zh="GPU {number} {name}：利用率 {used}，可用显存 {free}，{temperature} °C",
    ),
    "guide/monitor-no-gpu": Text(en="GPU: this machine has none", zh="GPU：本机没有"),
    "guide/monitor-warning": Text(en="last warning: {text}", zh="最近的警告：{text}"),
    "guide/monitor-log": Text(en="end of {path}:", zh="{path} 的末尾："),
}
