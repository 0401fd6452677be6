"""Texts of the machine stage and of `headway check`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    # findings
    "machine/no-gpu": Text(
        en="no GPU here: training runs on {cpus} CPU ranks",
        zh="本机没有 GPU：将用 {cpus} 个 CPU rank 训练",
    ),
    "machine/gpus-chosen": Text(
        en="{num} of {here} GPUs will be used: {list}",
        zh="将使用 {here} 个 GPU 中的 {num} 个：{list}",
    ),
    "machine/gpus-differ": Text(
        en="the GPUs differ ({list}), and the slowest sets the pace of every step",
        zh="所选 GPU 型号不一（{list}），每一步都要等最慢的那个",
        en_hint="choose equal ones, such as parallel.gpus=0,1",
        zh_hint="选用相同的型号，例如 parallel.gpus=0,1",
    ),
    "machine/gpu-busy": Text(
        en="GPU {gpu} is in use: {used} of {total}, held by {holders}",
        zh="GPU {gpu} 正被占用：已用 {used}（共 {total}），占用者 {holders}",
        en_hint="wait for it, or use it all the same with parallel.gpus={gpu}",
        zh_hint="等它空闲；一定要用就写 parallel.gpus={gpu}",
    ),
    "machine/gpu-lost": Text(
        en="GPU {gpu} is lost: the driver lists it and cannot talk to it",
        zh="GPU {gpu} 已失联：驱动能列出它，但无法与它通信",
        en_hint="look for Xid lines with `sudo dmesg | grep -i xid`, then reset the GPU or reboot",
        zh_hint="用 `sudo dmesg | grep -i xid` 查看 Xid 记录，然后重置该 GPU 或重启机器",
    ),
    "machine/gpus-hidden": Text(
        en="CUDA_VISIBLE_DEVICES='{value}' hides all {hidden} GPUs: training runs on CPU",
        zh="CUDA_VISIBLE_DEVICES='{value}' 隐藏了全部 {hidden} 个 GPU：将在 CPU 上训练",
        en_hint="type: unset CUDA_VISIBLE_DEVICES",
        zh_hint="运行：unset CUDA_VISIBLE_DEVICES",
    ),
    "machine/gpu-driver-broken": Text(
        en="the GPU driver does not answer: {said}",
        zh="GPU 驱动没有正常应答：{said}",
        en_hint="run nvidia-smi by hand; after a driver update the machine has to be rebooted",
        zh_hint="手动运行 nvidia-smi 看报错；驱动升级后需要重启机器",
    ),
    "machine/driver-too-old": Text(
        en="driver {driver} serves CUDA {serves}, but torch {torch} is built for CUDA {cuda}",
        zh="驱动 {driver} 最高支持 CUDA {serves}，而 torch {torch} 是为 CUDA {cuda} 构建的",
        en_hint="update the driver, or install a torch built for CUDA {serves} or older",
        zh_hint="升级驱动，或安装为 CUDA {serves} 及更早版本构建的 torch",
    ),
    "machine/torch-missing": Text(
        en="{python} has no torch{why}",
        zh="{python} 没有安装 torch{why}",
        en_hint="install it: {python} -m pip install 'torch>=2.8'",
        zh_hint="安装：{python} -m pip install 'torch>=2.8'",
    ),
    "machine/torch-cpu-build": Text(
        en="torch {torch} is built for CPU only, so the {gpus} GPUs here stay idle",
        zh="torch {torch} 是 CPU 版，本机的 {gpus} 个 GPU 用不上",
        en_hint="install another: {python} -m pip install --force-reinstall 'torch>=2.8' "
        "--index-url https://download.pytorch.org/whl/cu128",
        zh_hint="换一个版本：{python} -m pip install --force-reinstall 'torch>=2.8' "
        "--index-url https://download.pytorch.org/whl/cu128",
    ),
    "machine/python-broken": Text(
        en="the ranks' interpreter {python} cannot be run: {why}",
        zh="rank 所用的解释器 {python} 无法运行：{why}",
        en_hint="set env.python to a working interpreter, such as env.python=$(which python3)",
        zh_hint="把 env.python 指向可用的解释器，例如 env.python=$(which python3)",
    ),
    "machine/out-not-writable": Text(
        en="the output folder {out} cannot be written: {place} is closed to this user or is not a folder",
        zh="输出目录 {out} 无法写入：当前用户无权写 {place}，或它不是目录",
        en_hint="choose another place, such as out=$HOME/runs",
        zh_hint="换一个位置，例如 out=$HOME/runs",
    ),
    "machine/disk-full": Text(
        en="{free} are free at {place}, and a run needs at least {need}",
        zh="{place} 只剩 {free}，而一次训练至少需要 {need}",
        en_hint="make room, or choose another disk with out=/path/with/space",
        zh_hint="清理空间，或换一块磁盘：out=/path/with/space",
    ),
    "machine/disk-low": Text(
        en="only {free} are free at {place} (below {need}): checkpoints may not fit",
        zh="{place} 只剩 {free}（低于 {need}）：可能放不下检查点",
        en_hint="make room, keep fewer with save.keep_last=1, or choose another disk with out=/path/with/space",
        zh_hint="清理空间，少留几个（save.keep_last=1），或换一块磁盘：out=/path/with/space",
    ),
    "machine/inodes-low": Text(
        en="only {free} files can still be made at {place} (below {need})",
        zh="{place} 只能再建 {free} 个文件（低于 {need}）",
        en_hint="delete small files there, or choose another disk with out=/path/with/space",
        zh_hint="删除那里的小文件，或换一块磁盘：out=/path/with/space",
    ),
    "machine/memory-low": Text(
        en="only {free} of {total} memory are free (below {need})",
        zh="内存只剩 {free}（共 {total}，低于 {need}）",
        en_hint="see who holds it with `ps aux --sort=-rss | head`",
        zh_hint="用 `ps aux --sort=-rss | head` 查看被谁占用",
    ),
    "machine/shm-small": Text(
        en="/dev/shm has {free} free, and {workers} loader processes a rank want {need}",
        zh="/dev/shm 只剩 {free}，每个 rank 的 {workers} 个数据加载进程需要 {need}",
        en_hint="start the container with --shm-size=8g, or set parallel.workers=0",
        zh_hint="启动容器时加 --shm-size=8g，或设 parallel.workers=0",
    ),
    "machine/nofile-low": Text(
        en="a process may open {have} files, and this run may need {need}",
        zh="每个进程最多打开 {have} 个文件，而这次训练可能需要 {need} 个",
        en_hint="type: ulimit -n {need}",
        zh_hint="运行：ulimit -n {need}",
    ),
    "machine/env-left-over": Text(
        en="{list} in the environment have no effect: Headway sets them for every rank",
        zh="环境变量 {list} 不起作用：Headway 会为每个 rank 自行设置",
        en_hint="type: unset {names}",
        zh_hint="运行：unset {names}",
    ),
    "machine/omp-set": Text(
        en="OMP_NUM_THREADS={value} has no effect: parallel.threads decides",
        zh="OMP_NUM_THREADS={value} 不起作用：线程数由 parallel.threads 决定",
        en_hint="type: unset OMP_NUM_THREADS, and write parallel.threads={value} if you want that number",
        zh_hint="运行：unset OMP_NUM_THREADS；确实要用这个数就写 parallel.threads={value}",
    ),
    # refusals of the choice of devices
    "machine/torch-cannot-gpu": Text(
        en="parallel.gpus={wanted} asks for GPUs, but torch {torch} is built for CPU only",
        zh="parallel.gpus={wanted} 要用 GPU，但 torch {torch} 是 CPU 版",
        en_hint="install a torch with CUDA, or train on CPU with parallel.gpus=0",
        zh_hint="安装带 CUDA 的 torch，或用 parallel.gpus=0 在 CPU 上训练",
    ),
    "machine/no-free-gpu": Text(
        en="none of the {total} GPUs is free ({holders})",
        zh="{total} 个 GPU 没有一个空闲（{holders}）",
        en_hint="wait, name the ones to use all the same (parallel.gpus=0,1), or train on CPU with parallel.gpus=0",
        zh_hint="等一等；一定要用就写出编号（parallel.gpus=0,1）；或用 parallel.gpus=0 在 CPU 上训练",
    ),
    "machine/too-few-gpus": Text(
        en="parallel.gpus={wanted}, but this machine has {here} ({list})",
        zh="parallel.gpus={wanted}，但本机只有 {here} 个（{list}）",
        en_hint="set parallel.gpus={here}",
        zh_hint="改为 parallel.gpus={here}",
    ),
    "machine/gpus-taken": Text(
        en="parallel.gpus={wanted}, but only {free} are free; the others are held ({holders})",
        zh="parallel.gpus={wanted}，但只有 {free} 个空闲，其余被占用（{holders}）",
        en_hint="set parallel.gpus={free}, or name the ones to use all the same, such as parallel.gpus=0,1",
        zh_hint="改为 parallel.gpus={free}；一定要用就写出编号，例如 parallel.gpus=0,1",
    ),
    "machine/no-such-gpu": Text(
        en="parallel.gpus names GPU {gpu}, but this machine shows {here} ({list})",
        zh="parallel.gpus 里有 GPU {gpu}，但本机可见的只有 {here} 个（{list}）",
        en_hint="indexes start at 0 and count what CUDA_VISIBLE_DEVICES leaves in sight",
        zh_hint="编号从 0 开始，只计 CUDA_VISIBLE_DEVICES 留下的 GPU",
    ),
    "machine/gpu-twice": Text(
        en="parallel.gpus={wanted} names a GPU twice, and each rank needs its own",
        zh="parallel.gpus={wanted} 有重复的编号，每个 rank 需要独占一个 GPU",
        en_hint="name each GPU once",
        zh_hint="每个编号只写一次",
    ),
    "machine/stopped": Text(
        en="this machine cannot run it: {num} findings stop the run",
        zh="本机无法训练：有 {num} 项问题必须先解决",
        en_hint="repair what is marked ✗ above",
        zh_hint="解决上面标 ✗ 的问题",
    ),
    # headway check
    "machine/help": Text(
        en="Look at this machine: GPUs, memory, disk, limits, framework.\n\n"
        "Exit code 3 when something here would stop a run.\n\n"
        "Example:\n  headway check\n  headway check --json | jq .findings",
        zh="检查本机：GPU、内存、磁盘、限制、框架。\n\n"
        "若有问题会让训练无法开始，退出码为 3。\n\n"
        "示例：\n  headway check\n  headway check --json | jq .findings",
    ),
    "machine/help-json": Text(en="print one JSON object (machine/1)", zh="输出一个 JSON 对象（machine/1）"),
    "machine/help-out": Text(
        en="folder that will hold the runs (its disk is checked)", zh="存放训练目录的位置（检查其所在磁盘）"
    ),
    "machine/title": Text(en="machine", zh="本机"),
    "machine/row-host": Text(en="host", zh="主机"),
    "machine/row-cpu": Text(en="cpu", zh="处理器"),
    "machine/row-memory": Text(en="memory", zh="内存"),
    "machine/row-shm": Text(en="/dev/shm", zh="共享内存"),
    "machine/row-disk": Text(en="disk", zh="磁盘"),
    "machine/row-files": Text(en="open files", zh="可打开文件数"),
    "machine/row-python": Text(en="python", zh="Python"),
    "machine/row-torch": Text(en="torch", zh="PyTorch"),
    "machine/row-driver": Text(en="gpu driver", zh="GPU 驱动"),
    "machine/row-gpu": Text(en="gpu {index}", zh="GPU {index}"),
    "machine/cores": Text(en="{cores} of {host} cores", zh="{host} 核中可用 {cores} 核"),
    "machine/free-of": Text(en="{free} free of {total}", zh="剩余 {free}，共 {total}"),
    "machine/line-memory": Text(en="{free} memory free", zh="内存剩余 {free}"),
    "machine/line-disk": Text(en="{free} disk free", zh="磁盘剩余 {free}"),
    "machine/unlimited": Text(en="no limit", zh="无限制"),
    "machine/absent": Text(en="not installed", zh="未安装"),
    "machine/state-free": Text(en="free", zh="空闲"),
    "machine/state-busy": Text(en="in use", zh="占用中"),
    "machine/state-lost": Text(en="lost", zh="失联"),
    "machine/ready": Text(
        en="ready; see how a run would be laid out: headway plan", zh="本机就绪；查看训练计划：headway plan"
    ),
}
