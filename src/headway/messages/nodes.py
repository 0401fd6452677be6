"""Texts of several nodes in one run."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "nodes/line": Text(en="join a run that another node leads", zh="加入由另一节点主导的训练任务"),
    "nodes/help": Text(
        en="Join a run that another node leads: start this on each of the other nodes.\n\n"
        "The leader is `headway train`, `run` or `resume` with --nodes. Interpreter, job and working directory come "
        "from it; nothing else is needed here. SIGTERM, SIGINT and SIGUSR1 are passed to the leader.\n\n"
        "Example:\n"
        "  headway train nanochat --nodes 2 --meet /shared/meet.json\n"
        "  headway node --meet /shared/meet.json",
        zh="加入由另一节点主导的训练任务：在其余每个节点上各启动一个。\n\n"
        "主节点运行带 --nodes 的 `headway train`、`run` 或 `resume`。解释器、任务与工作目录都由主节点给出，"
        "此处无需再写。SIGTERM、SIGINT 与 SIGUSR1 会转交主节点。\n\n"
        "示例：\n"
        "  headway train nanochat --nodes 2 --meet /shared/meet.json\n"
        "  headway node --meet /shared/meet.json",
    ),
    "nodes/option-leader": Text(
        en="where the leader is; the secret is in HEADWAY_NODE_SECRET or --secret-fd",
        zh="主节点的地址；密钥在 HEADWAY_NODE_SECRET 或 --secret-fd 中",
    ),
    "nodes/option-meet": Text(en="file that the leader writes (its --meet)", zh="主节点写入的文件（即其 --meet）"),
    "nodes/option-run": Text(en="directory of the run to join again", zh="要重新加入的训练的目录"),
    "nodes/option-index": Text(
        en="number of this node, from 1; default: the next free one", zh="本节点的编号，从 1 开始；默认取下一个空闲编号"
    ),
    "nodes/option-cpus": Text(
        en="number of CPU ranks on this node, if not that of the leader", zh="本节点的 CPU rank 数，与主节点不同时使用"
    ),
    "nodes/option-secret-fd": Text(
        en="number of an open file whose first line is the secret", zh="已打开文件的编号，其首行为密钥"
    ),
    "nodes/option-wait": Text(en="seconds to wait for the leader", zh="等待主节点的秒数"),
    "nodes/option-nodes": Text(
        en="train on several nodes: their number (2, or 1:4 for as few as 1), or host names for ssh (gpu1,gpu2)",
        zh="多节点训练：节点数（2，或 1:4 表示最少 1 个），或经 ssh 启动的主机名（gpu1,gpu2）",
    ),
    "nodes/option-min": Text(
        en="after losing nodes, continue with as few as this many", zh="节点丢失后，至少保留多少节点即可继续"
    ),
    "nodes/option-address": Text(
        en="address at which the others reach this node; default: its address in their network, with a random port",
        zh="其他节点访问本节点的地址；默认取通往它们的网络地址和随机端口",
    ),
    "nodes/option-public": Text(
        en="allow an address that can be reached from the internet", zh="允许使用互联网可访问的地址"
    ),
    "nodes/option-nodes-wait": Text(en="seconds until all nodes must have joined", zh="等待全部节点加入的秒数"),
    "nodes/option-lead-meet": Text(
        en="write address and secret into this file (mode 0600), for `headway node --meet`",
        zh="把地址和密钥写入该文件（权限 0600），供 `headway node --meet` 使用",
    ),
    "nodes/leading": Text(
        en="leading {nodes} nodes on {address}:{port}", zh="主导 {nodes} 个节点，地址 {address}:{port}"
    ),
    "nodes/joined": Text(
        en="node {index} has joined: {host} ({address})", zh="节点 {index} 已加入：{host}（{address}）"
    ),
    "nodes/lost": Text(en="node {index} is lost: {host}", zh="节点 {index} 已丢失：{host}"),
    "nodes/waiting": Text(
        en="{here} of {nodes} nodes have joined; start the others with: {typed}",
        zh="{nodes} 个节点中已加入 {here} 个；用以下命令启动其余节点：{typed}",
    ),
    "nodes/not-joined": Text(
        en="only {here} of {nodes} nodes joined within {seconds} s",
        zh="{seconds} 秒内只有 {here} 个节点加入，共需 {nodes} 个",
        en_hint="type this on each of the other nodes, with the secret in HEADWAY_NODE_SECRET or in a file:\n  {typed}",
        zh_hint="在其余每个节点上运行；没有密钥文件时，密钥放在 HEADWAY_NODE_SECRET 中：\n  {typed}",
    ),
    "nodes/not-asked": Text(
        en="--nodes-min, --nodes-address and --meet have no effect without --nodes",
        zh="没有 --nodes 时，--nodes-min、--nodes-address 和 --meet 不起作用",
        en_hint="add the number of nodes:\n  --nodes 2",
        zh_hint="补充节点数：\n  --nodes 2",
    ),
    "nodes/not-here": Text(
        en="this machine ({here}) is not one of the nodes {names}, but the leader must be one of them",
        zh="本机（{here}）不在节点 {names} 之中，而主节点必须是其中之一",
        en_hint="log in to the first of them and start the command there:\n  ssh {first}",
        zh_hint="登录第一个节点，在那里运行：\n  ssh {first}",
    ),
    "nodes/bad-number": Text(
        en="--nodes {nodes} with a minimum of {least} is not possible",
        zh="--nodes {nodes} 与最少 {least} 个节点无法同时成立",
        en_hint="give at least two nodes, and a minimum that is not larger:\n  --nodes 2 --nodes-min 1",
        zh_hint="至少两个节点，且最小值不大于节点数：\n  --nodes 2 --nodes-min 1",
    ),
    "nodes/bad-place": Text(
        en="{value} is not an address: HOST, HOST:PORT or [IPV6]:PORT",
        zh="{value} 不是地址，应为 HOST、HOST:PORT 或 [IPV6]:PORT",
    ),
    "nodes/detached": Text(
        en="a run on several nodes cannot be started with --detach yet",
        zh="多节点训练任务暂不支持 --detach",
        en_hint="leave --detach out, and start the command in tmux or with `nohup` before it",
        zh_hint="去掉 --detach，在 tmux 中启动，或在命令前加上 `nohup`",
    ),
    "nodes/original-line": Text(
        en="this launch line cannot be started on several nodes: {why}",
        zh="这条启动命令无法在多个节点上启动：{why}",
        en_hint="use a line of torchrun, accelerate launch or plain python",
        zh_hint="改用 torchrun、accelerate launch 或普通 python 命令",
    ),
    "nodes/line-processes": Text(
        en="the line does not say how many processes {launcher} starts, which every node must know",
        zh="启动命令没有写明 {launcher} 启动多少个进程，而每个节点都需要知道",
        en_hint="say it, for one node:\n  --num_processes 8",
        zh_hint="写明单个节点的进程数：\n  --num_processes 8",
    ),
    "nodes/line-nodes": Text(
        en="the launch line asks for {there} nodes, but --nodes is {here}",
        zh="启动命令写明 {there} 个节点，而 --nodes 为 {here}",
        en_hint="make both the same:\n  --nodes {there}",
        zh_hint="让两者一致：\n  --nodes {there}",
    ),
    "nodes/open-file": Text(
        en="{path} contains a secret, but other users may read or replace it (mode {mode}, or another owner)",
        zh="{path} 含有密钥，但其他用户可以读取或替换它（权限 {mode}，或属主不是当前用户）",
        en_hint="allow only yourself to read it:\n  chmod 600 {path}",
        zh_hint="改为只有自己可读：\n  chmod 600 {path}",
    ),
    "nodes/bad-file": Text(en="{path} does not contain the address of the leader", zh="{path} 中没有主节点的地址"),
    "nodes/no-leader-file": Text(
        en="no leader wrote {path} within {seconds} s",
        zh="{seconds} 秒内没有主节点写入 {path}",
        en_hint="the leader must run, and the file must be on a disk that both nodes share",
        zh_hint="主节点必须已启动，且该文件须位于两个节点共享的磁盘上",
    ),
    "nodes/slurm-tasks": Text(
        en="the Slurm step has {tasks} tasks on {nodes} nodes, but there is one supervisor per node",
        zh="该 Slurm 作业步在 {nodes} 个节点上有 {tasks} 个任务，而每个节点只需一个监控进程",
        en_hint="start one task per node: add `--ntasks-per-node=1` to srun",
        zh_hint="每个节点只启动一个任务：给 srun 加上 `--ntasks-per-node=1`",
    ),
    "nodes/short-secret": Text(
        en="{name} is shorter than {least} characters",
        zh="{name} 少于 {least} 个字符",
        en_hint="make a random one:\n  export {name}=$(openssl rand -hex 32)",
        zh_hint="生成随机密钥：\n  export {name}=$(openssl rand -hex 32)",
    ),
    "nodes/no-secret": Text(
        en="the secret of the run is missing: {name} is empty",
        zh="缺少该训练任务的密钥：{name} 为空",
        en_hint="use the file that the leader writes:\n  headway node --meet /shared/meet.json",
        zh_hint="使用主节点写入的文件：\n  headway node --meet /shared/meet.json",
    ),
    "nodes/no-leader": Text(
        en="the leader is not given: one of --leader, --meet and --run is needed",
        zh="没有指明主节点：需要 --leader、--meet、--run 三者之一",
        en_hint="for example, with the file that the leader writes:\n  headway node --meet /shared/meet.json",
        zh_hint="例如使用主节点写入的文件：\n  headway node --meet /shared/meet.json",
    ),
    "nodes/called-off": Text(
        en="the leading node has ended before all nodes were there, exit code {exit}",
        zh="主节点在所有节点到齐之前已结束，退出码 {exit}",
        en_hint="its own output says why",
        zh_hint="原因见主节点的输出",
    ),
    "nodes/public-address": Text(
        en="{address} can be reached from outside a private network, but traffic between ranks is not encrypted",
        zh="{address} 可从专用网络之外访问，而 rank 之间的通信没有加密",
        en_hint="use an address of a private network, or allow this one:\n  --nodes-address 10.0.0.1\n  --nodes-public",
        zh_hint="指定专用网络的地址，或允许使用该地址：\n  --nodes-address 10.0.0.1\n  --nodes-public",
    ),
    "nodes/no-listener": Text(
        en="this node cannot listen on {address}, port {port}: {why}",
        zh="本节点无法监听 {address} 的端口 {port}：{why}",
        en_hint="give one of this node's own addresses (--nodes-address); these are they:\n  ip -brief address",
        zh_hint="用 --nodes-address 指定本节点自己的地址，可用的有：\n  ip -brief address",
    ),
    "nodes/unknown-host": Text(en="the host name {host} cannot be resolved: {why}", zh="无法解析主机 {host}：{why}"),
    "nodes/no-route": Text(en="{host} cannot be reached from here: {why}", zh="本机无法到达 {host}：{why}"),
    "nodes/no-answer": Text(
        en="the leader did not answer within {seconds} s: {why}",
        zh="主节点在 {seconds} 秒内没有应答：{why}",
        en_hint="a firewall between the nodes is the usual cause",
        zh_hint="常见原因是节点之间的防火墙",
    ),
    "nodes/not-proven": Text(
        en="{address}:{port} and this node do not have the same secret: {why}",
        zh="{address}:{port} 与本节点的密钥不一致：{why}",
    ),
    "nodes/other-version": Text(
        en="{host} has headway {there}, but the leader has {here}",
        zh="{host} 的 headway 版本为 {there}，主节点为 {here}",
        en_hint="install the same version on both:\n  python -m pip install headway=={here}",
        zh_hint="在两处安装同一版本：\n  python -m pip install headway=={here}",
    ),
    "nodes/too-many": Text(
        en="node {index} is not needed: the run has only {nodes} nodes",
        zh="节点 {index} 多余：该训练任务共 {nodes} 个节点",
    ),
    "nodes/index-taken": Text(en="number {index} is already taken by {host}", zh="编号 {index} 已由 {host} 占用"),
    "nodes/too-few-gpus": Text(
        en="{host} has {have} GPUs, but the run needs: {wanted}", zh="{host} 有 {have} 张 GPU，但任务需要：{wanted}"
    ),
    "nodes/no-python": Text(
        en="{host} has no interpreter {python}",
        zh="{host} 上没有解释器 {python}",
        en_hint="the environment must have the same path on every node",
        zh_hint="每个节点上的环境路径必须相同",
    ),
    "nodes/no-cwd": Text(
        en="{host} has no folder {path}: {why}",
        zh="{host} 上没有目录 {path}：{why}",
        en_hint="the code must have the same path on every node",
        zh_hint="每个节点上的代码路径必须相同",
    ),
    "nodes/no-shared-dir": Text(
        en="{host} cannot access the run directory {path}",
        zh="{host} 无法访问训练目录 {path}",
        en_hint="put the runs on a disk that all nodes share:\n  --runs /shared/runs",
        zh_hint="把训练目录放在所有节点共享的磁盘上：\n  --runs /shared/runs",
    ),
    "nodes/import-failed": Text(
        en="on {host} the interpreter of the ranks, {python}, could not import a required module: {text:said}",
        zh="{host} 上 rank 所用的解释器 {python} 缺少所需的模块：{text:said}",
        en_hint="install the same packages there as on this node",
        zh_hint="在那台机器上安装与本节点相同的软件包",
    ),
    "nodes/ssh-failed": Text(
        en="ssh {host} failed: {text:said}",
        zh="ssh {host} 失败：{text:said}",
        en_hint="ssh must work without a password; test it:\n  ssh -o BatchMode=yes {host} true",
        zh_hint="须能免密登录；测试：\n  ssh -o BatchMode=yes {host} true",
    ),
    "nodes/ssh-no-folder": Text(
        en="{host} has no folder {path}",
        zh="{host} 上没有目录 {path}",
        en_hint="the code must have the same path on every node",
        zh_hint="每个节点上的代码路径必须相同",
    ),
    "nodes/ssh-no-python": Text(
        en="{host} has no interpreter {python}",
        zh="{host} 上没有解释器 {python}",
        en_hint="the environment must have the same path on every node",
        zh_hint="每个节点上的环境路径必须相同",
    ),
    "nodes/ssh-no-headway": Text(
        en="on {host}, {python} cannot import headway: {text:said}",
        zh="{host} 上的 {python} 无法导入 headway：{text:said}",
        en_hint="install it there:\n  ssh {host} {python} -m pip install headway",
        zh_hint="在那台机器上安装：\n  ssh {host} {python} -m pip install headway",
    ),
    "nodes/ssh-ended": Text(
        en="the node on {host} ended before it joined: {text:said}", zh="{host} 上的节点在加入之前退出：{text:said}"
    ),
    "nodes/fewer": Text(
        en="continuing on {there} nodes with {ranks} ranks and the same total batch, without {hosts}",
        zh="改用 {there} 个节点、{ranks} 个 rank 继续，总批大小不变；缺少 {hosts}",
    ),
    "nodes/too-few": Text(
        en="stopped: {hosts} did not come back, {there} of at least {least} nodes are left",
        zh="已停止：{hosts} 没有恢复，剩余 {there} 个节点，至少需要 {least} 个",
        en_hint="continue on the remaining nodes:\n  headway resume {run}",
        zh_hint="在现有节点上继续训练：\n  headway resume {run}",
    ),
    "nodes/no-smaller": Text(
        en="stopped: {hosts} did not come back, and the batch does not fit the {there} nodes that are left: {why}",
        zh="已停止：{hosts} 没有恢复，且剩余 {there} 个节点无法保持该批大小：{why}",
        en_hint="continue when all nodes are back:\n  headway resume {run}",
        zh_hint="全部节点恢复后继续训练：\n  headway resume {run}",
    ),
    "nodes/link-lost": Text(
        en="the connection to the leader is lost; the ranks of this node have ended; trying to rejoin for {seconds} s",
        zh="与主节点的连接已断开；本节点的 rank 已结束，{seconds} 秒内尝试重新加入",
    ),
    "nodes/leader-lost": Text(
        en="the node that leads the run no longer answers; all processes of the run on this node have ended",
        zh="领导训练的节点已无响应；本节点上该训练的进程已全部结束",
    ),
    "nodes/over": Text(en="the run has ended with exit code {exit}", zh="训练任务已结束，退出码 {exit}"),
}
