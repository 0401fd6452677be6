"""What `headway adopt` says about old launch lines, scripts and guides."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "adopt/help": Text(
        en="""Read an old launch line, script or guide: what it means, what has no effect, what is wrong.

WHAT is a file (a shell script, a batch script, a Markdown guide), a launch line, or - for standard input.
Nothing is run. The findings go to stderr, the clean config to stdout or to the file given with --to.

Example:
  headway adopt train.sh --to launch.yaml
  headway adopt "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py"
  headway adopt GUIDE.md --json""",
        zh="""读懂旧的启动命令、脚本或指南：含义是什么、哪些不起作用、哪里有错；并写出干净的配置。

WHAT 是文件（shell 脚本、批处理脚本、Markdown 指南）、一条启动命令，或用 - 表示标准输入。不会执行任何内容。
解读写到 stderr，干净的配置写到 stdout 或 --to 指定的文件。

示例：
  headway adopt train.sh --to launch.yaml
  headway adopt "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py"
  headway adopt GUIDE.md --json""",
    ),
    "adopt/option-to": Text(en="file to write the clean config to", zh="把干净的配置写到哪个文件"),
    "adopt/option-torch": Text(
        en="torch version to assume; default: the installed one", zh="按哪个 torch 版本判断；默认是本机安装的版本"
    ),
    "adopt/option-dry-run": Text(en="show what would be written, write nothing", zh="只显示将要写入的内容，不写文件"),
    "adopt/option-yes": Text(en="replace a file that exists", zh="覆盖已有文件"),
    # refusals
    "adopt/no-file": Text(
        en="{path} is neither a file nor a launch line",
        zh="{path} 既不是文件，也不是启动命令",
        en_hint="check the path, or put the complete launch line in quotes",
        zh_hint="检查路径，或用引号写出整条命令",
    ),
    "adopt/nothing-given": Text(
        en="nothing to read",
        zh="没有可读的内容",
        en_hint=(
            "give the script, or the line that starts the training in quotes:\n"
            "  headway adopt 'torchrun --nproc_per_node=2 train.py'"
        ),
        zh_hint=(
            "给出启动脚本，或用引号给出启动训练的那条命令：\n  headway adopt 'torchrun --nproc_per_node=2 train.py'"
        ),
    ),
    "adopt/nothing-found": Text(
        en="{source} starts no known program and sets no variable",
        zh="{source} 没有启动任何已知的程序，也没有设置变量",
        en_hint="pass the file or the launch line that starts the training",
        zh_hint="给出启动训练的那个文件或那条命令",
    ),
    "adopt/too-large": Text(
        en="the text has {size} KiB, but at most {limit} KiB are read",
        zh="文本有 {size} KiB，最多读取 {limit} KiB",
        en_hint="pass only the launch script",
        zh_hint="只给出启动脚本",
    ),
    "adopt/cannot-write": Text(
        en="cannot write {path}: {why:said}",
        zh="无法写入 {path}：{why:said}",
        en_hint=("write it to another place:\n  --to ~/launch.yaml"),
        zh_hint=("换一个位置：\n  --to ~/launch.yaml"),
    ),
    "adopt/exists": Text(
        en="{path} already exists",
        zh="{path} 已存在",
        en_hint=("replace it, or choose another file name with --to:\n  --yes"),
        zh_hint=("覆盖它，或用 --to 换一个文件名：\n  --yes"),
    ),
    # the reading
    "adopt/read-launch": Text(en="launch, line {line}: {launcher} {entry}", zh="第 {line} 行启动：{launcher} {entry}"),
    "adopt/read-more": Text(
        en="another launch, line {line}: {launcher} {entry}", zh="第 {line} 行另外启动：{launcher} {entry}"
    ),
    "adopt/read-none": Text(en="the text contains no launch command", zh="文本中没有启动命令"),
    "adopt/read-field": Text(en="  {name}: {value}", zh="  {name}：{value}"),
    "adopt/read-open": Text(en="not specified in the text: {names:list}", zh="文本没有给出：{names:list}"),
    "adopt/read-findings": Text(
        en="{kept} kept, {no_effect} without effect, {harmful} harmful, {contradictory} contradictory",
        zh="{kept} 项保留，{no_effect} 项不起作用，{harmful} 项有风险，{contradictory} 项自相矛盾",
    ),
    "adopt/read-finding": Text(
        en="line {line}: {verdict}: {subject}: {text}", zh="第 {line} 行：{verdict}：{subject}：{text}"
    ),
    "adopt/read-advice": Text(en="    {text}", zh="    {text}"),
    "adopt/written": Text(
        en="clean config: {path}; next: headway run {path}", zh="干净的配置：{path}；下一步：headway run {path}"
    ),
    "adopt/would-write": Text(en="would write {path}", zh="将写入 {path}"),
    "adopt/verdict-kept": Text(en="kept", zh="保留"),
    "adopt/verdict-no-effect": Text(en="no effect", zh="不起作用"),
    "adopt/verdict-harmful": Text(en="harmful", zh="有风险"),
    "adopt/verdict-contradictory": Text(en="contradictory", zh="自相矛盾"),
    "adopt/clean-bash": Text(
        en="headway run passes this line to bash, which reads its variables, files and options when it starts",
        zh="headway run 会把这一行交给 bash：其中的变量、文件和选项在启动时才读取",
    ),
    "adopt/clean-defaulted": Text(
        en="uses the text's own defaults for {names:list}; variables with these names in the environment are not used",
        zh="{names:list} 采用了文本中的默认值；环境中的同名变量不会生效",
    ),
    "adopt/clean-left-out": Text(en="removed: {name}: {why:said}", zh="已去掉 {name}：{why:said}"),
    "adopt/clean-changed": Text(en="changed: {name}: {why:said}", zh="已修改 {name}：{why:said}"),
    # slips of the author
    "adopt/slip-after-backslash": Text(
        en="spaces or a comment follow the backslash, so the shell ends the command here; read as if the lines were "
        "joined",
        zh="反斜杠后面有空格或注释，shell 会在此结束命令；已按续行理解",
        en_hint="make the backslash the last character of the line",
        zh_hint="让反斜杠成为行尾最后一个字符",
    ),
    "adopt/slip-comment-inside": Text(
        en="a comment between continued lines makes the shell end the command here; read as if the comment were absent",
        zh="续行之间夹着注释，shell 会在此结束命令；已忽略注释、按续行理解",
        en_hint="move the comment above the command",
        zh_hint="把注释移到命令上方",
    ),
    "adopt/slip-no-backslash": Text(
        en="the next line begins with an option, but this line does not end with a backslash; read as one command",
        zh="下一行以选项开头，但本行行尾没有反斜杠；已按同一条命令理解",
        en_hint="end this line with a backslash",
        zh_hint="在行尾加上反斜杠",
    ),
    "adopt/slip-open-quote": Text(
        en="a quote is opened but not closed; read as a plain character",
        zh="引号没有闭合；已当作普通字符",
        en_hint="close the quote",
        zh_hint="补上另一半引号",
    ),
    "adopt/slip-spaced-equals": Text(
        en="there are spaces around the =, so the shell does not set this variable; read as NAME=value",
        zh="等号旁边有空格，shell 不会设置该变量；已按 NAME=value 理解",
        en_hint="write NAME=value without spaces",
        zh_hint="写成 NAME=value，不留空格",
    ),
    "adopt/slip-crlf": Text(
        en="the lines end as on Windows (CRLF), which breaks every continued line in bash",
        zh="文件使用 Windows 换行（CRLF），bash 中所有续行都会失效",
        en_hint=("convert it:\n  sed -i 's/\\r$//' {path}"),
        zh_hint=("转换换行符：\n  sed -i 's/\\r$//' {path}"),
    ),
    "adopt/slip-typographic": Text(
        en="curly quotes, which bash treats as ordinary characters", zh="使用了弯引号，bash 会把它们当作普通字符"
    ),
    "adopt/slip-marks": Text(
        en="a prompt, a code fence or a notebook mark, which bash treats as part of the command",
        zh="含有提示符、代码围栏或 notebook 标记，bash 会把它们当作命令的一部分",
    ),
    # variables
    "adopt/env-kept": Text(en="{name} is passed on", zh="{name} 原样传递"),
    "adopt/env-default": Text(en="{name} is set to its default value", zh="{name} 的取值就是默认值"),
    "adopt/env-libuv": Text(
        en="{name}=0 only selects the old store server; Linux builds of torch include libuv and work well with it",
        zh="{name}=0 只是换回旧的 store 服务；Linux 版 torch 自带 libuv，无需关闭",
        en_hint="remove it; only a torch built without libuv needs it",
        zh_hint="删掉它；只有编译时不带 libuv 的 torch 才需要",
    ),
    "adopt/env-agent-store": Text(
        en="torchrun overwrites {name} for every rank; the value set here is never read",
        zh="torchrun 会为每个 rank 覆盖 {name}，这里设置的值从不被读取",
        en_hint="remove it",
        zh_hint="删掉它",
    ),
    "adopt/env-two-allocators": Text(
        en="PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF are both set: torch reads only PYTORCH_CUDA_ALLOC_CONF",
        zh="同时设置了 PYTORCH_ALLOC_CONF 和 PYTORCH_CUDA_ALLOC_CONF：后者生效，前者不会被读取",
        en_hint="keep one: PYTORCH_ALLOC_CONF with torch 2.9 or newer, PYTORCH_CUDA_ALLOC_CONF with older versions",
        zh_hint="只保留一个：torch 2.9 及更新版本用 PYTORCH_ALLOC_CONF，更早的版本用 PYTORCH_CUDA_ALLOC_CONF",
    ),
    "adopt/env-allocator-key": Text(
        en="{key:list} in {name} is not an option of the allocator",
        zh="{name} 中的 {key:list} 不是分配器的选项",
        en_hint="check its spelling",
        zh_hint="检查拼写",
    ),
    "adopt/env-allocator-mixed": Text(
        en="{name} combines two settings: with expandable_segments, max_split_size_mb has almost no effect",
        zh="{name} 混用了两种设置：启用 expandable_segments 后，max_split_size_mb 几乎不起作用",
        en_hint="keep only expandable_segments:True",
        zh_hint="只保留 expandable_segments:True",
    ),
    "adopt/env-renamed": Text(
        en="{name} is an old name that still works; the new name is {new}",
        zh="{name} 是旧名称，仍可使用；新名称是 {new}",
        en_hint="write {new}",
        zh_hint="改写为 {new}",
    ),
    "adopt/env-no-recorder": Text(
        en="{name}=0 turns off the flight recorder, so a hang leaves no trace",
        zh="{name}=0 会关闭 flight recorder，卡死时就没有记录可查",
        en_hint="remove it; the recorder costs almost nothing",
        zh_hint="删掉它；记录几乎没有开销",
    ),
    "adopt/env-gone": Text(
        en="torch has not read {name} since version {version}",
        zh="torch 从 {version} 起不再读取 {name}",
        en_hint="remove it",
        zh_hint="删掉它",
    ),
    "adopt/env-going": Text(
        en="{name} works only with torch versions before {version}, which removed it",
        zh="{name} 只在 torch {version} 之前的版本中有效，{version} 起已移除",
    ),
    "adopt/env-too-new": Text(
        en="torch reads {name} only since version {version}", zh="torch 从 {version} 起才读取 {name}"
    ),
    "adopt/env-nccl-engine": Text(
        en="{name} chooses the NCCL engine: in torch 2.14 it is off unless set to 1, since 2.15 it is on unless set "
        "to 0",
        zh="{name} 选择 NCCL 引擎：torch 2.14 设为 1 才启用，2.15 起设为 0 才关闭",
    ),
    "adopt/env-not-torch": Text(
        en="{name} is not a torch variable; only the project's own script could read it",
        zh="{name} 不是 torch 的变量，只有项目自己的脚本可能读取",
        en_hint="to turn compilation off: {real}",
        zh_hint="要关闭编译：{real}",
    ),
    "adopt/env-one-thread": Text(
        en="{name}=1 is what torchrun sets by default, and it is often too few",
        zh="{name}=1 本来就是 torchrun 的默认设置，而且往往偏少",
        en_hint="remove it: headway sets it to the number of cores divided by the number of ranks",
        zh_hint="删掉它：会按核数除以 rank 数自动设置",
    ),
    "adopt/env-transport": Text(
        en="{name} turns off a fast path between GPUs; use it only where that path is known to be broken",
        zh="{name} 会关闭 GPU 之间的一条快速通道；只有确认该通道有故障时才该用",
        en_hint="measure without it first",
        zh_hint="先去掉它实测一次",
    ),
    "adopt/env-blocking": Text(
        en="{name} makes every kernel launch synchronous; it is for debugging and slows training down",
        zh="{name} 让每个 kernel 都同步等待；只用于调试，会拖慢训练",
        en_hint="remove it for real runs",
        zh_hint="正式训练时删掉",
    ),
    "adopt/env-loud": Text(en="{name} fills the log with debug output", zh="{name} 会让日志充满调试信息"),
    "adopt/env-cuda-home": Text(
        en="{name} matters only for building extensions; torch includes its own CUDA libraries",
        zh="{name} 只在编译扩展时有用；torch 自带 CUDA 库",
    ),
    "adopt/env-overwritten": Text(
        en="the launcher sets {name} for every rank and overwrites this value",
        zh="启动器会为每个 rank 设置 {name}，覆盖这里的值",
        en_hint="remove it",
        zh_hint="删掉它",
    ),
    "adopt/env-threads": Text(
        en="{name}={value} applies to each rank: {ranks} ranks start {total} threads",
        zh="{name}={value} 是每个 rank 的线程数：{ranks} 个 rank 共 {total} 个线程",
        en_hint="more threads than cores slow down all ranks; a good value is the number of cores divided by {ranks}",
        zh_hint="线程数超过核数会拖慢所有 rank；核数除以 {ranks} 比较合适",
    ),
    "adopt/env-world-size-lost": Text(
        en="{name} is {said}, but {ranks} ranks are started and the launcher overwrites the value",
        zh="{name} 设为 {said}，实际启动 {ranks} 个 rank，而且启动器会覆盖这个值",
        en_hint="remove it; for {said} ranks write `--nproc-per-node={said}`",
        zh_hint="删掉它；要 {said} 个 rank，写 `--nproc-per-node={said}`",
    ),
    "adopt/env-world-size": Text(
        en="{name} is {said}, but {ranks} ranks are started: they wait for each other forever",
        zh="{name} 设为 {said}，实际启动 {ranks} 个 rank：它们会一直互相等待",
        en_hint="remove it and let a launcher set it, with the option `--nproc-per-node={said}` of torchrun",
        zh_hint="删掉它，交给启动器设置：torchrun 的选项 `--nproc-per-node={said}`",
    ),
    "adopt/env-rank-not-node-rank": Text(
        en="{name} is not read here; the variable for the node's number is NODE_RANK",
        zh="这里不读取 {name}；节点编号用的是 NODE_RANK",
        en_hint="write NODE_RANK",
        zh_hint="改写为 NODE_RANK",
    ),
    "adopt/env-one-rank-for-all": Text(
        en="{name}={value} is exported once for {count} processes, but each process needs its own value",
        zh="{name}={value} 只导出一次，却给 {count} 个进程共用；每个进程都要有自己的值",
        en_hint="start all of them by one torchrun line with `--nproc-per-node`",
        zh_hint="用一条 torchrun 命令启动全部进程，加上 `--nproc-per-node`",
    ),
    "adopt/env-device-and-local-rank": Text(
        en="{name}={device} leaves one device, with number 0: a LOCAL_RANK other than 0 asks for a device that does "
        "not exist",
        zh="{name}={device} 只留下一张卡，编号为 0：LOCAL_RANK 不为 0 就会找不到设备",
        en_hint="show all devices to every rank and let LOCAL_RANK choose one",
        zh_hint="让每个 rank 看到全部设备，由 LOCAL_RANK 选择",
    ),
    "adopt/env-too-few-devices": Text(
        en="{ranks} ranks are started, but {name} shows only {devices} devices",
        zh="启动 {ranks} 个 rank，但 {name} 只给出 {devices} 张卡",
        en_hint="start {devices} ranks, or show more devices",
        zh_hint="改为启动 {devices} 个 rank，或给出更多的卡",
    ),
    "adopt/env-spare-devices": Text(
        en="{name} shows {devices} devices, but {ranks} ranks use only {ranks} of them",
        zh="{name} 给出 {devices} 张卡，但只启动 {ranks} 个 rank，用到 {ranks} 张",
        en_hint="start {devices} ranks to use them all",
        zh_hint="启动 {devices} 个 rank 才能全部用上",
    ),
    "adopt/env-personal-path": Text(
        en="{name} points into {path}, which exists only on its author's machine",
        zh="{name} 指向 {path} 下的路径，只在作者的机器上存在",
        en_hint="remove it, or set your own path",
        zh_hint="删掉它，或换成自己的路径",
    ),
    "adopt/secret-in-text": Text(
        en="{name} contains a secret, in a file that others can read",
        zh="{name} 把密钥写在了别人也能看到的文件里",
        en_hint="remove the line and set {variable} in your own environment",
        zh_hint="删掉这一行，在自己的环境中设置 {variable}",
    ),
    "adopt/secret-in-args": Text(
        en="the argument {name} contains a secret; every user of the machine can see it in the process list",
        zh="参数 {name} 中有密钥；机器上的所有用户都能在进程列表里看到",
        en_hint="pass it in an environment variable: {variable}",
        zh_hint="改用环境变量传递：{variable}",
    ),
    # launches
    "adopt/launch-kept": Text(en="understood: {launcher}", zh="已读懂：{launcher}"),
    "adopt/launch-open": Text(en="its values are not in the file: {names:list}", zh="文件中没有这些值：{names:list}"),
    "adopt/launch-deprecated": Text(
        en="{launcher} is deprecated; it also passes --local-rank to the script unless --use_env is given",
        zh="{launcher} 已弃用；不加 --use_env 时还会给脚本传入 --local-rank",
        en_hint="use torchrun instead",
        zh_hint="改用 torchrun",
    ),
    "adopt/launch-predicts": Text(
        en="the script announces training, but with --mode {mode} {entry} does not train",
        zh="脚本声称要训练，但 --mode {mode} 让 {entry} 执行其他操作，不会训练",
        en_hint="write --mode train",
        zh_hint="改为 --mode train",
    ),
    "adopt/launch-no-mode": Text(
        en="{entry} is started with --mode train elsewhere, but here without --mode: its default may be to predict",
        zh="{entry} 在别处带有 --mode train，这里却省略了 --mode：默认行为可能是预测而不是训练",
        en_hint="write --mode train",
        zh_hint="加上 --mode train",
    ),
    "adopt/launch-nohup": Text(
        en="nohup does not protect {launcher}: it handles SIGHUP itself and ends when the terminal closes",
        zh="nohup 保护不了 {launcher}：它自己处理 SIGHUP，终端关闭时照样退出",
        en_hint="start it with headway run; with --detach it keeps running when the terminal closes",
        zh_hint="改用 headway run 启动，加 --detach 后不受终端关闭影响",
    ),
    "adopt/launch-accelerate-cpu": Text(
        en="--num_processes {count} has no effect: with --cpu, accelerate starts one process unless mpirun is "
        "configured",
        zh="--num_processes {count} 不起作用：带 --cpu 时，accelerate 只启动一个进程，除非配置了 mpirun",
        en_hint="remove --cpu and select the CPU in the script: Accelerator(cpu=True) with --multi_gpu",
        zh_hint="去掉 --cpu，用 --multi_gpu 启动，并在脚本里写 Accelerator(cpu=True)",
    ),
    "adopt/launch-restarts": Text(
        en="{count} restarts are allowed, but torchrun restarts on its old store: 5 of 11 restarts failed when we "
        "measured it",
        zh="允许重启 {count} 次，但 torchrun 重启时沿用旧的 store；实测 11 次重启有 5 次失败",
        en_hint="set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, or let headway run do the restarts",
        zh_hint="设置 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1，或交给 headway run 重启",
    ),
    "adopt/fixed-port": Text(
        en="port {port} is fixed; it collides with a second run or a leftover process on this machine",
        zh="端口固定为 {port}；同一台机器上的另一次训练或残留进程会与它冲突",
        en_hint="remove the port or use --standalone: a free port is then chosen",
        zh_hint="不写端口，或用 --standalone：会自动选用空闲端口",
    ),
    "adopt/port-shared": Text(
        en="several launches use port {port}, so they cannot run at the same time",
        zh="多条启动命令共用端口 {port}，无法同时运行",
        en_hint="remove the port: a free port is chosen for each launch",
        zh_hint="不写端口：会为每次启动自动选用空闲端口",
    ),
    "adopt/port-reserved": Text(
        en="port {port} is below 1024, so only root can use it",
        zh="端口 {port} 小于 1024，只有 root 能用",
        en_hint="remove the port: a free port is then chosen",
        zh_hint="不写端口：会自动选用空闲端口",
    ),
    "adopt/no-rendezvous": Text(
        en="{nodes} nodes are requested, but no rendezvous address is given",
        zh="要求 {nodes} 个节点，但没有给出汇合地址",
        en_hint=(
            "add on every node, with the name of the first node for HOST: `--rdzv-backend=c10d "
            "--rdzv-endpoint=HOST:29500`"
        ),
        zh_hint="在每个节点加上（HOST 换成第一个节点的名称）：`--rdzv-backend=c10d --rdzv-endpoint=HOST:29500`",
    ),
    "adopt/standalone-nodes": Text(
        en="--standalone means one node, but {nodes} are requested",
        zh="--standalone 只用一个节点，但要求的是 {nodes} 个",
        en_hint="remove --standalone, or request one node",
        zh_hint="去掉 --standalone，或只用一个节点",
    ),
    "adopt/total-disagrees": Text(
        en="the text says {total} ranks in total, but {nodes} nodes × {ranks} ranks per node is a different number",
        zh="写的是总共 {total} 个 rank，但 {nodes} 个节点 × 每个节点 {ranks} 个 rank 与之不符",
        en_hint="change one of the three numbers so that they agree",
        zh_hint="改其中一个数，使三者一致",
    ),
    # guides
    "adopt/guide-json-comment": Text(
        en="this is not valid JSON: it contains a comment, and ordinary JSON parsers reject it",
        zh="这不是标准的 JSON：里面有注释，普通解析器会拒绝",
        en_hint="headway reads JSON with comments; remove them for other tools",
        zh_hint="headway 可以读带注释的 JSON；给其他工具用时去掉注释",
    ),
    "adopt/guide-yaml-number": Text(
        en="older YAML parsers read {key}: {value} as text, not as a number",
        zh="旧的 YAML 解析器会把 {key}: {value} 读成文本而不是数值",
        en_hint="write {better}",
        zh_hint="写成 {better}",
    ),
    "adopt/guide-data-parallel": Text(
        en="DataParallel drives all GPUs from one process: it is slow, GPU 0 fills up first, and PyTorch advises "
        "against it",
        zh="DataParallel 用一个进程驱动所有 GPU：速度慢、GPU 0 先占满，PyTorch 官方不推荐",
        en_hint=(
            "use one process per GPU (torchrun); the total batch keeps its meaning when each process takes its share"
        ),
        zh_hint="每张 GPU 一个进程（torchrun）；各进程分担总批大小，其含义不变",
    ),
    "adopt/guide-batch-not-divisible": Text(
        en="the total batch {total:,} is not a multiple of {factors} = {product:,}",
        zh="总批大小 {total:,} 不能被 {factors} = {product:,} 整除",
        en_hint="use a multiple of {product:,}",
        zh_hint="改为 {product:,} 的整数倍",
    ),
    "adopt/guide-rate-of-large-batch": Text(
        en="the configs change the total batch from {tuned:,} to {total:,}, but none of them sets a learning rate",
        zh="这些配置的总批大小有 {tuned:,} 也有 {total:,}，但都没有设置学习率",
        en_hint="multiply the learning rates by about {factor} (square root of the ratio of the batches)",
        zh_hint="学习率约乘以 {factor}（批大小之比的平方根）",
    ),
    "adopt/guide-batch-each-device": Text(
        en="{value} is called the total batch, but accelerate applies it to each of the {ranks} processes: {real:,} in "
        "total",
        zh="{value} 被称为总批大小，但 accelerate 按每个进程计算，共 {ranks} 个进程：实际总批大小是 {real:,}",
        en_hint="for a total of {value}, set it to {value} / {ranks}",
        zh_hint="若总批大小要为 {value}，就设为 {value} / {ranks}",
    ),
    "adopt/guide-effective-batch": Text(
        en="the text says the total batch is {said:,}, but with {ranks} processes it is {real:,}",
        zh="总批大小写的是 {said:,}，但 {ranks} 个进程实际是 {real:,}",
        en_hint="compute it as per-device batch × processes × gradient accumulation",
        zh_hint="按“每卡批大小 × 进程数 × 梯度累积次数”计算",
    ),
    "adopt/guide-workers-each": Text(
        en="{value} data loader workers are per process: {ranks} processes start {real}",
        zh="{value} 个数据加载进程是按每个 rank 算的：{ranks} 个 rank 共启动 {real} 个",
    ),
    "adopt/guide-product": Text(en="the product is {real:,}, not {said:,}", zh="乘积是 {real:,}，不是 {said:,}"),
    "adopt/guide-not-the-same": Text(
        en="the guide calls {said:,} the same total batch as before, but the total before was {real:,}",
        zh="指南说总批大小 {said:,} 与原来相同，但原来是 {real:,}",
        en_hint="to keep the total batch, double gradient accumulation each time the per-device batch is halved",
        zh_hint="每卡批大小每减半一次，梯度累积次数加倍一次，总批大小才不变",
    ),
    "adopt/guide-batch-total": Text(
        en="batch size {value} is the total over all GPUs", zh="批大小 {value} 是所有 GPU 的总数"
    ),
    "adopt/guide-batch-each": Text(en="batch size {value} is per GPU", zh="批大小 {value} 是每张 GPU 的数量"),
    "adopt/guide-rate-rule": Text(
        en="this is the {rule} rule for the learning rate: lr.scaling={rule}",
        zh="这是学习率的 {rule} 缩放规则：lr.scaling={rule}",
    ),
    "adopt/guide-rate-by-ranks": Text(
        en="the learning rate is scaled only by the number of ranks; gradient accumulation over {steps} steps also "
        "enlarges the batch, but is not counted",
        zh="学习率只按 rank 数缩放；梯度累积 {steps} 次同样放大了总批大小，却没有计入",
        en_hint="scale it by the ratio of the total batches: lr.base_batch and lr.scaling",
        zh_hint="按总批大小的比值缩放：lr.base_batch 和 lr.scaling",
    ),
    "adopt/guide-total-batch-memory": Text(
        en="a smaller total batch does not save memory: only the per-device batch matters",
        zh="减小总批大小不会省显存：只有每卡批大小才有影响",
        en_hint="lower device_batch_size; gradient accumulation keeps the total batch",
        zh_hint="减小 device_batch_size，用梯度累积保持总批大小",
    ),
    "adopt/guide-accumulation": Text(
        en="the guide promises gradient accumulation, but none of its settings enables it",
        zh="指南说会自动梯度累积，但没有任何配置项设置它",
        en_hint="set it explicitly: batch.per_device and batch.total determine the number of accumulation steps",
        zh_hint="明确设置：梯度累积次数由 batch.per_device 和 batch.total 决定",
    ),
    "adopt/guide-utilisation": Text(
        en="GPU utilisation is not a useful target: it shows 100% even when all ranks are deadlocked",
        zh="GPU 利用率不能当目标：即使各 rank 互相卡死，它也显示 100%",
        en_hint="look at samples or tokens per second",
        zh_hint="看每秒样本数或 token 数",
    ),
    "adopt/guide-personal-folder": Text(
        en="{path} exists only on its author's machine",
        zh="{path} 只在作者的机器上存在",
        en_hint="use the folder of your own copy",
        zh_hint="换成你自己的目录",
    ),
    "adopt/guide-conda": Text(
        en="the guide requires an environment named {name}, but does not say what must be installed in it",
        zh="只按名字要求环境 {name}，没有说明里面需要什么",
        en_hint=("see what is installed:\n  headway check"),
        zh_hint=("查看已安装的内容：\n  headway check"),
    ),
    "adopt/guide-card-memory": Text(
        en="the text says {used} GB are in use on a {card}, but that card has {has} GB",
        zh="{card} 只有 {has} GB 显存，却写着用了 {used} GB",
        en_hint="expect that less fits, or check which card was used",
        zh_hint="实际能放下的更少，或核对是哪种卡",
    ),
    "adopt/guide-step-time": Text(
        en="the text says a step takes {many} s instead of {one} s, but the batch also changes from {small} to {large}",
        zh="文中说每步时间从 {one} 秒变为 {many} 秒，但批大小也从 {small} 变为 {large}",
        en_hint="compare samples per second: with the same per-device batch, a step takes as long as before",
        zh_hint="比较每秒样本数：每卡批大小不变时，每步时间并不会变短",
    ),
    "adopt/guide-speed": Text(
        en="{samples:,} samples at {rate} per second take {real} minutes, not {said}",
        zh="{samples:,} 个样本按每秒 {rate} 个要 {real} 分钟，不是 {said} 分钟",
        en_hint="rely on neither number; measure a step",
        zh_hint="两个数都不可靠，实测一步",
    ),
}
