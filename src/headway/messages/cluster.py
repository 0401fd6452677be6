"""Texts of jobs of a cluster's scheduler."""

from __future__ import annotations

from headway.messages import Text

_SITE = """\
  mkdir -p {folder}
  printf '%s:\\n  partition: gpu\\n  time: "2:00:00"\\n' {site} > {path}"""

TEXTS: dict[str, Text] = {
    "cluster/line": Text(en="submit a command as a cluster job", zh="把命令作为集群任务提交"),
    "cluster/help": Text(
        en="Submit a command as a cluster job: after `--`, write it as you would on this machine.\n\n"
        "A readable batch file is written beside the runs and submitted with sbatch. Before its time limit or a "
        "preemption the run saves and stops, the job is queued again, and the same run continues. After exit code 93, "
        "or three starts in a row without a new step, it is not queued again. Your own launch line is started again "
        "unchanged. With --array, {{array}} in the words becomes the number of the element, and each element is a run "
        "of its own. The values of --site are in ~/.config/headway/clusters.yaml, under the name of the site.\n\n"
        "Example:\n"
        "  headway submit --slurm --gpus-per-node 8 --time 2:00:00 -- train nanochat\n"
        "  headway submit --slurm --nodes 2 -- torchrun --nproc-per-node 8 train.py\n"
        "  headway submit --slurm --array 0-3 -- train nanochat seed={{array}}\n"
        "  headway submit --kubernetes --image lab/train:1 --dry-run -- train nanochat",
        zh="把命令作为集群任务提交：`--` 之后与在本机的写法相同。\n\n"
        "在训练目录旁写出可读的批处理文件，并用 sbatch 提交。到达时限或被抢占之前，训练先保存并停止，任务重新排队，"
        "之后同一训练继续。退出码 93，或连续三次启动都没有完成新的步，则不再排队。你自己的启动命令会原样重新启动。"
        "使用 --array 时，命令中的 {{array}} 会换成数组元素的编号，每个元素是一次独立的训练。"
        "--site 的取值来自 ~/.config/headway/clusters.yaml，按站点名称查找。\n\n"
        "示例：\n"
        "  headway submit --slurm --gpus-per-node 8 --time 2:00:00 -- train nanochat\n"
        "  headway submit --slurm --nodes 2 -- torchrun --nproc-per-node 8 train.py\n"
        "  headway submit --slurm --array 0-3 -- train nanochat seed={{array}}\n"
        "  headway submit --kubernetes --image lab/train:1 --dry-run -- train nanochat",
    ),
    "cluster/option-slurm": Text(en="submit to Slurm", zh="提交到 Slurm"),
    "cluster/option-kubernetes": Text(en="submit to Kubernetes by kubectl", zh="用 kubectl 提交到 Kubernetes"),
    "cluster/option-kind": Text(
        en="what Kubernetes makes of it; default: job (an Indexed Job)",
        zh="Kubernetes 对象的种类，默认 job（Indexed Job）",
    ),
    "cluster/option-image": Text(
        en="container image that has Headway and your code", zh="包含 Headway 和你的代码的容器镜像"
    ),
    "cluster/option-volume": Text(
        en="volume claim for the runs and where it is mounted; every pod sees it",
        zh="保存训练的卷声明及其挂载位置，所有 pod 都能看到",
    ),
    "cluster/option-namespace": Text(en="namespace; default: kubectl's own", zh="命名空间，默认为 kubectl 的当前值"),
    "cluster/option-memory": Text(en="memory per node, such as 64Gi", zh="每个节点的内存，例如 64Gi"),
    "cluster/option-shm": Text(en="size of /dev/shm; default: 8Gi", zh="/dev/shm 的大小，默认 8Gi"),
    "cluster/option-runtime": Text(
        en="ClusterTrainingRuntime of a TrainJob; default: torch-distributed",
        zh="TrainJob 的 ClusterTrainingRuntime，默认 torch-distributed",
    ),
    "cluster/no-image": Text(
        en="a pod needs an image that has Headway and your code",
        zh="pod 需要包含 Headway 和你的代码的镜像",
        en_hint="name it:\n  --image registry.example/lab/train:1",
        zh_hint="指明镜像：\n  --image registry.example/lab/train:1",
    ),
    "cluster/no-volume": Text(
        en="{nodes} nodes need a volume that all of them see: checkpoints are written there",
        zh="{nodes} 个节点需要一个都能看到的卷，检查点写在那里",
        en_hint="name a claim that can be mounted by many (ReadWriteMany):\n  --volume runs:/data",
        zh_hint="指明可被多个 pod 挂载的卷声明（ReadWriteMany）：\n  --volume runs:/data",
    ),
    "cluster/bad-volume": Text(
        en="{value} is not a claim and a folder",
        zh="{value} 不是卷声明加目录",
        en_hint="the claim's name, a colon, and where it is mounted:\n  --volume runs:/data",
        zh_hint="卷声明的名称、冒号和挂载位置：\n  --volume runs:/data",
    ),
    "cluster/bad-pod-name": Text(
        en="{name} cannot be the name of an object of Kubernetes", zh="{name} 不能作为 Kubernetes 对象的名称"
    ),
    "cluster/secret-pod": Text(
        en="{word} holds a secret, and a manifest is kept by the cluster",
        zh="{word} 含有密钥，而清单会保存在集群中",
        en_hint="put it into a Secret of Kubernetes that your image reads",
        zh_hint="放进镜像会读取的 Kubernetes Secret",
    ),
    "cluster/of-kubernetes": Text(en="{option} belongs to --kubernetes", zh="{option} 只用于 --kubernetes"),
    "cluster/of-slurm": Text(en="{option} belongs to --slurm", zh="{option} 只用于 --slurm"),
    "cluster/no-kubectl": Text(
        en="kubectl is not on this machine",
        zh="本机没有 kubectl",
        en_hint="print the manifests and create them elsewhere: add --dry-run",
        zh_hint="打印清单并在别处创建：加上 --dry-run",
    ),
    "cluster/kubectl-refused": Text(en="kubectl: {text}", zh="kubectl 报告：{text}"),
    "cluster/pods-submitted": Text(
        en="{name} is created\nfollow it: {logs}\nend it: {delete}",
        zh="{name} 已创建\n跟踪输出：{logs}\n结束：{delete}",
    ),
    "cluster/no-resume-in-pods": Text(
        en="resume cannot be submitted to Kubernetes: its run is on a volume that is not seen from here",
        zh="resume 不能提交到 Kubernetes：它的训练在此处看不到的卷上",
        en_hint="a job that is started again continues its run by itself",
        zh_hint="重新启动的任务会自行继续它的训练",
    ),
    "cluster/option-nodes": Text(en="number of nodes; default: 1", zh="节点数，默认 1"),
    "cluster/option-gpus": Text(en="GPUs per node", zh="每个节点的 GPU 数"),
    "cluster/option-cpus": Text(en="CPUs per node", zh="每个节点的 CPU 数"),
    "cluster/option-time": Text(en="time limit, as Slurm writes it", zh="时限，按 Slurm 的写法"),
    "cluster/option-array": Text(en="elements of an array, as Slurm writes them", zh="数组元素，按 Slurm 的写法"),
    "cluster/option-follow": Text(
        en="show the queue and the output until the job has ended", zh="显示排队状态和输出，直到任务结束"
    ),
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
        en="name one scheduler: --slurm or --kubernetes",
        zh="需要指明一个调度系统：--slurm 或 --kubernetes",
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
        en="{path} has no site {site}; its sites: {known:list}", zh="{path} 中没有站点 {site}；已有的站点：{known:list}"
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
        en="follow it: {typed}\nsave and end it: headway stop {job}",
        zh="跟踪输出：{typed}\n保存并结束：headway stop {job}",
    ),
    "cluster/follow-array": Text(
        en="see the jobs of this array: {typed}\noutput: {folder}", zh="查看数组中的各作业：{typed}\n输出位于：{folder}"
    ),
    "cluster/follow-json": Text(en="--follow and --json exclude each other", zh="--follow 与 --json 不能同时使用"),
    "cluster/now": Text(en="job {job}: {state}", zh="任务 {job}：{state}"),
    "cluster/ended": Text(en="job {job} has ended: {state}", zh="任务 {job} 已结束：{state}"),
    "cluster/cancelled": Text(en="job {job} is cancelled", zh="任务 {job} 已取消"),
    "cluster/stop-sent": Text(
        en="job {job}: asked run {run} to save and stop; the job is not queued again",
        zh="任务 {job}：已通知训练 {run} 保存并停止，任务不再排队",
    ),
    "cluster/stop-slow": Text(
        en="job {job} has not ended after {seconds} s",
        zh="等了 {seconds} 秒，任务 {job} 仍未结束",
        en_hint="wait longer, or end it without saving:\n  headway stop {job} --wait 300\n  headway stop {job} --now",
        zh_hint="继续等待，或不保存直接结束：\n  headway stop {job} --wait 300\n  headway stop {job} --now",
    ),
    "cluster/not-live": Text(en="job {job} neither waits nor runs: {state}", zh="任务 {job} 既未排队也未运行：{state}"),
    "cluster/array-element": Text(
        en="job {job} is an array: {names:list}",
        zh="任务 {job} 是数组：{names:list}",
        en_hint="name one element, or cancel them all:\n  headway stop {first}\n  scancel {job}",
        zh_hint="指明一个元素，或全部取消：\n  headway stop {first}\n  scancel {job}",
    ),
    "cluster/jobs-unknown": Text(
        en="the state of submitted jobs is unknown: {why}", zh="无法得知已提交任务的状态：{why}"
    ),
    "cluster/column-job": Text(en="job", zh="任务"),
    "cluster/column-state": Text(en="queue", zh="队列状态"),
    "cluster/column-reason": Text(en="reason", zh="原因"),
    "cluster/column-name": Text(en="name", zh="名称"),
    "cluster/column-run": Text(en="run", zh="训练"),
    "cluster/bad-array": Text(
        en="{value} is not an array of Slurm",
        zh="{value} 不是 Slurm 的数组",
        en_hint="a range, a list, or a range of which so many run at a time:\n"
        "  --array 0-9\n  --array 1,3,5\n  --array 0-99%4",
        zh_hint="范围、列表，或带同时运行上限的范围：\n  --array 0-9\n  --array 1,3,5\n  --array 0-99%4",
    ),
    "cluster/time-too-short": Text(
        en="a time limit of {value} leaves no time to train: the run is asked to save {seconds} s before it",
        zh="时限 {value} 没有留下训练时间：训练会在时限前 {seconds} 秒收到保存请求",
        en_hint="give it more time, or a run that saves faster a shorter grace:\n  launch.grace_s=10",
        zh_hint="增加时限；保存较快的训练可缩短等待：\n  launch.grace_s=10",
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
