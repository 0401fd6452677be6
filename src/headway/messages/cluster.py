"""Texts of jobs of a cluster's scheduler."""

from __future__ import annotations

from headway.messages import Text

_SITE = """\
  mkdir -p {folder}
  printf '%s:\\n  partition: gpu\\n  time: "2:00:00"\\n' {site} > {path}"""

TEXTS: dict[str, Text] = {
    "cluster/line": Text(en="submit a command as a cluster job (Slurm)", zh="把命令作为集群任务提交（Slurm）"),
    "cluster/help": Text(
        en="Submit a command as a cluster job: after `--`, write it as you would on this machine.\n\n"
        "A readable batch file is written beside the runs and submitted with sbatch. Before its time limit or a "
        "preemption the run saves and stops, the job is queued again, and the same run continues. After exit code 93, "
        "or three starts in a row without a new step, it is not queued again. `run` starts your own launch line again "
        "unchanged. The values of --site are in ~/.config/headway/clusters.yaml, under the name of the site.\n\n"
        "Example:\n"
        "  headway submit --slurm --gpus-per-node 8 --time 2:00:00 -- train nanochat\n"
        "  headway submit --slurm --site lab --dry-run -- run torchrun train.py",
        zh="把命令作为集群任务提交：`--` 之后与在本机的写法相同。\n\n"
        "在训练目录旁写出可读的批处理文件，并用 sbatch 提交。到达时限或被抢占之前，训练先保存并停止，任务重新排队，"
        "之后同一训练继续。退出码 93，或连续三次启动都没有完成新的步，则不再排队。`run` 会原样重新启动你的命令。"
        "--site 的取值来自 ~/.config/headway/clusters.yaml，按站点名称查找。\n\n"
        "示例：\n"
        "  headway submit --slurm --gpus-per-node 8 --time 2:00:00 -- train nanochat\n"
        "  headway submit --slurm --site lab --dry-run -- run torchrun train.py",
    ),
    "cluster/option-slurm": Text(en="submit to Slurm", zh="提交到 Slurm"),
    "cluster/option-nodes": Text(en="number of nodes; default: 1", zh="节点数，默认 1"),
    "cluster/option-gpus": Text(en="GPUs per node", zh="每个节点的 GPU 数"),
    "cluster/option-cpus": Text(en="CPUs per node", zh="每个节点的 CPU 数"),
    "cluster/option-time": Text(en="time limit, as Slurm writes it", zh="时限，按 Slurm 的写法"),
    "cluster/option-partition": Text(en="partition", zh="分区"),
    "cluster/option-site": Text(
        en="take further values from this site in ~/.config/headway/clusters.yaml",
        zh="从 ~/.config/headway/clusters.yaml 的该站点取其余设置",
    ),
    "cluster/option-runs": Text(
        en="folder for run directories; the job's folder is created in it", zh="存放训练目录的位置，任务目录也建在其中"
    ),
    "cluster/option-dry-run": Text(en="print the batch file, submit nothing", zh="只打印批处理文件，不提交"),
    "cluster/option-json": Text(en="print one JSON object", zh="输出一个 JSON 对象"),
    "cluster/option-run-file": Text(
        en="write the path of the run directory into this file", zh="把训练目录的路径写入该文件"
    ),
    "cluster/option-exit-code": Text(en="exit code of the run", zh="训练的退出码"),
    "cluster/requeue-help": Text(
        en="Queue this Slurm job again after a run that was stopped; batch files of `headway submit` call it.\n\n"
        "Example:\n"
        "  headway requeue runs/slurm/20261118-214500-ab12 --exit-code 143",
        zh="训练停止后让当前 Slurm 任务重新排队；由 `headway submit` 的批处理文件调用。\n\n"
        "示例：\n"
        "  headway requeue runs/slurm/20261118-214500-ab12 --exit-code 143",
    ),
    "cluster/no-engine": Text(
        en="no scheduler is named",
        zh="没有指明调度系统",
        en_hint="name it:\n  {typed}",
        zh_hint="指明调度系统：\n  {typed}",
    ),
    "cluster/not-a-command": Text(
        en="{word} cannot be submitted; these commands can: {names:list}",
        zh="{word} 不能提交；可以提交的命令有 {names:list}",
        en_hint="put the command after the options:\n  headway submit --slurm -- train nanochat",
        zh_hint="把命令写在选项之后：\n  headway submit --slurm -- train nanochat",
    ),
    "cluster/not-inside": Text(
        en="{option} has no effect inside a job",
        zh="{option} 在任务内不起作用",
        en_hint="leave it out; --nodes and --dry-run of `submit` come before the `--`",
        zh_hint="去掉它；`submit` 的 --nodes 和 --dry-run 写在 `--` 之前",
    ),
    "cluster/bad-time": Text(
        en="{value} is not a time limit that Slurm accepts",
        zh="{value} 不是 Slurm 能识别的时限",
        en_hint="write `hours:minutes:seconds` or `days-hours`:\n  --time 2:00:00\n  --time 3-12",
        zh_hint="写成 `时:分:秒` 或 `天-时`：\n  --time 2:00:00\n  --time 3-12",
    ),
    "cluster/bad-value": Text(
        en="{key}: {value} cannot be given to Slurm: it is empty or contains control characters",
        zh="{key}：{value} 无法交给 Slurm：为空或含有控制字符",
    ),
    "cluster/bad-folder": Text(
        en="{path} contains % or \\, which Slurm replaces in the path of a job's output",
        zh="{path} 含有 % 或 \\，Slurm 会在任务输出的路径中替换它们",
        en_hint="choose a folder without them:\n  --runs ~/runs",
        zh_hint="换一个不含这些字符的目录：\n  --runs ~/runs",
    ),
    "cluster/secret": Text(
        en="{word} holds a secret, and a batch file is kept on disk",
        zh="{word} 含有密钥，而批处理文件会留在磁盘上",
        en_hint="put it into an environment variable that your program reads; Slurm passes it on",
        zh_hint="把它放进程序会读取的环境变量，Slurm 会传递给任务",
    ),
    "cluster/no-sites": Text(
        en="{path} does not exist, so the site {site} is unknown",
        zh="{path} 不存在，因此没有站点 {site} 的设置",
        en_hint=f"create it with the values of your cluster, for example:\n{_SITE}",
        zh_hint=f"按所用集群的设置新建，例如：\n{_SITE}",
    ),
    "cluster/no-site": Text(
        en="{path} has no site {site}; its sites: {known}", zh="{path} 中没有站点 {site}；已有的站点：{known}"
    ),
    "cluster/site-key": Text(
        en="{path}: {place} is not a setting of a site; the nearest is {near}",
        zh="{path}：{place} 不是站点的设置，最接近的是 {near}",
    ),
    "cluster/site-value": Text(
        en="{path}: {place} cannot be {value}",
        zh="{path}：{place} 不能是 {value}",
        en_hint="partition, account, qos, time (in quotes) and setup are strings, numbers are integers, and options "
        "is a list of `--name=value`",
        zh_hint="partition、account、qos、time（加引号）和 setup 为字符串；数量为整数；"
        "options 为 `--name=value` 的列表",
    ),
    "cluster/no-slurm": Text(
        en="{program} is not on this machine",
        zh="本机没有 {program}",
        en_hint="submit from a login node of the cluster, or look at the file with --dry-run",
        zh_hint="在集群的登录节点上提交，或用 --dry-run 查看文件",
    ),
    "cluster/slurm-silent": Text(
        en="{program} has not answered within {seconds} s",
        zh="{program} 在 {seconds} 秒内没有回应",
        en_hint="see whether Slurm's controller is up:\n  scontrol ping",
        zh_hint="查看 Slurm 控制器是否正常：\n  scontrol ping",
    ),
    "cluster/slurm-refused": Text(en="{program}: {text}", zh="{program} 报告：{text}"),
    "cluster/value": Text(en="{key}={value} ({origin})", zh="{key}={value}（{origin}）"),
    "cluster/submitted": Text(en="job {job} is submitted: {state}", zh="任务 {job} 已提交：{state}"),
    "cluster/follow": Text(
        en="follow it: {typed}\nsave and queue again: {stop}", zh="跟踪输出：{typed}\n保存并重新排队：{stop}"
    ),
    "cluster/not-in-job": Text(
        en="this is not a Slurm job: SLURM_JOB_ID is not set", zh="这不是 Slurm 任务：没有设置 SLURM_JOB_ID"
    ),
    "cluster/requeued": Text(en="job {job} is queued again at step {step}", zh="任务 {job} 在第 {step} 步重新排队"),
    "cluster/not-running": Text(
        en="job {job} is {state}, so it is not queued again here", zh="任务 {job} 的状态为 {state}，此处不再排队"
    ),
    "cluster/no-progress": Text(
        en="job {job} was stopped {num} times in a row without getting past step {step}, so it is not queued again",
        zh="任务 {job} 连续 {num} 次停止，始终没有超过第 {step} 步，不再排队",
        en_hint="give it more time, or see what takes so long before the first step:\n  headway diagnose",
        zh_hint="增加时限，或查看第一步之前耗时的原因：\n  headway diagnose",
    ),
}
