"""Texts of jobs of a cluster's scheduler."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "cluster/line": Text(en="run a command as a job of a cluster (Slurm)", zh="把命令作为集群任务提交（Slurm）"),
    "cluster/help": Text(
        en="Run a command as a job of a cluster: the same words as here, after `--`.\n\n"
        "A readable batch file is written beside the runs and submitted with sbatch. Before its time limit or a "
        "preemption the run saves and stops, the job is queued again, and the same run continues. Exit code 93 and "
        "three starts in a row without a new step, are final. `run` starts your own line again with the same "
        "words. Values of --site come from ~/.config/headway/clusters.yaml, by the name of the site.\n\n"
        "Example:\n"
        "  headway submit --slurm --gpus-per-node 8 --time 2:00:00 -- train nanochat\n"
        "  headway submit --slurm --site lab --dry-run -- run torchrun train.py",
        zh="把命令作为集群任务提交：`--` 之后与在本机的写法相同。\n\n"
        "在训练目录旁写出可读的批处理文件，并用 sbatch 提交。到达时限或被抢占之前，训练先保存并停止，任务重新排队，"
        "之后同一训练继续。退出码 93，或连续三次启动都没有新的一步，则不再排队。`run` 会用同样的命令重新启动你的脚本。"
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
    "cluster/option-runs": Text(en="folder of runs; the job's own is in it", zh="训练目录的上级目录，任务目录也在其中"),
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
        en="{word} cannot be submitted, only {names:list}",
        zh="{word} 不能提交，只能提交 {names:list}",
        en_hint="put the command after the options:\n  headway submit --slurm -- train nanochat",
        zh_hint="把命令写在选项之后：\n  headway submit --slurm -- train nanochat",
    ),
    "cluster/not-inside": Text(
        en="{option} has no meaning inside a job",
        zh="{option} 在任务内没有意义",
        en_hint="leave it out; --nodes and --dry-run of `submit` come before the `--`",
        zh_hint="去掉它；`submit` 的 --nodes 和 --dry-run 写在 `--` 之前",
    ),
    "cluster/bad-time": Text(
        en="{value} is not a time limit of Slurm",
        zh="{value} 不是 Slurm 的时限",
        en_hint="hours, minutes and seconds, or days and hours:\n  --time 2:00:00\n  --time 3-12",
        zh_hint="小时、分、秒，或天与小时：\n  --time 2:00:00\n  --time 3-12",
    ),
    "cluster/bad-value": Text(
        en="{key}: {value} cannot be given to Slurm: it is empty or has control characters",
        zh="{key}：{value} 无法交给 Slurm：为空或含有控制字符",
    ),
    "cluster/bad-folder": Text(
        en="{path}: Slurm puts its own values in place of % and \\ in the path of a job's output",
        zh="{path}：在任务输出的路径中，Slurm 会替换 % 和 \\",
        en_hint="choose a folder without them:\n  --runs ~/runs",
        zh_hint="换一个不含这些字符的目录：\n  --runs ~/runs",
    ),
    "cluster/secret": Text(
        en="{word} holds a secret, and a batch file is kept on disk",
        zh="{word} 含有密钥，而批处理文件会留在磁盘上",
        en_hint="put it into an environment variable that your program reads; Slurm hands it on",
        zh_hint="放进程序会读取的环境变量，Slurm 会传递它",
    ),
    "cluster/no-sites": Text(
        en="there is no {path}, so no site {site}",
        zh="没有 {path}，因此没有站点 {site}",
        en_hint="write it:\n  {site}:\n    partition: gpu\n    time: 2:00:00",
        zh_hint="写入：\n  {site}:\n    partition: gpu\n    time: 2:00:00",
    ),
    "cluster/no-site": Text(en="{path} has no site {site}, but: {known}", zh="{path} 中没有站点 {site}，只有：{known}"),
    "cluster/site-key": Text(
        en="{path}: {place} is not a setting of a site; the nearest is {near}",
        zh="{path}：{place} 不是站点的设置，最接近的是 {near}",
    ),
    "cluster/site-value": Text(
        en="{path}: {place} cannot be {value}",
        zh="{path}：{place} 不能是 {value}",
        en_hint="texts for partition, account, qos, time (in quotes) and setup; whole numbers; options as a list of "
        "`--name=value`",
        zh_hint="partition、account、qos、time（加引号）和 setup 为文本；数量为整数；options 为 `--name=value` 的列表",
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
        en="this is not a job of Slurm: SLURM_JOB_ID is not set", zh="这不是 Slurm 任务：没有 SLURM_JOB_ID"
    ),
    "cluster/requeued": Text(en="job {job} is queued again at step {step}", zh="任务 {job} 在第 {step} 步重新排队"),
    "cluster/not-running": Text(
        en="job {job} is {state}, so it is not queued again here", zh="任务 {job} 的状态为 {state}，此处不再排队"
    ),
    "cluster/no-progress": Text(
        en="job {job} was stopped {num} times in a row without a new step after {step}, so it is not queued again",
        zh="任务 {job} 连续 {num} 次停止，第 {step} 步之后没有新的一步，不再排队",
        en_hint="give it more time, or see what takes so long before the first step:\n  headway diagnose",
        zh_hint="增加时限，或查看第一步之前耗时的原因：\n  headway diagnose",
    ),
}
