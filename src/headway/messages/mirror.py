"""Texts of checkpoints that are copied to another place."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "mirror/unknown": Text(
        en="save.mirror={got} is not a place that checkpoints can be copied to",
        zh="save.mirror={got} 不是可以复制检查点的位置",
        en_hint=(
            "use one of these forms; a folder needs its full path:\n"
            "  save.mirror=s3://bucket/folder\n"
            "  save.mirror=ssh://host/folder\n"
            "  save.mirror=/mnt/backup"
        ),
        zh_hint=(
            "可用的写法如下；目录必须写完整路径：\n"
            "  save.mirror=s3://bucket/folder\n"
            "  save.mirror=ssh://host/folder\n"
            "  save.mirror=/mnt/backup"
        ),
    ),
    "mirror/secret": Text(
        en="save.mirror contains a password, and the config is saved in every run directory",
        zh="save.mirror 中含有密码，而配置会保存在训练目录中",
        en_hint="for S3 use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or ~/.aws/credentials; for ssh use a key",
        zh_hint="S3 用 AWS_ACCESS_KEY_ID 和 AWS_SECRET_ACCESS_KEY 或 ~/.aws/credentials；ssh 用密钥",
    ),
    "mirror/no-boto3": Text(
        en="{address} needs the Python package boto3, which is not installed",
        zh="{address} 需要 Python 包 boto3，但没有安装",
        en_hint="install it:\n  {python} -m pip install boto3",
        zh_hint="安装：\n  {python} -m pip install boto3",
    ),
    "mirror/no-ssh": Text(
        en="{address} needs the program ssh, which is not installed",
        zh="{address} 需要程序 ssh，但没有安装",
        en_hint="on Debian or Ubuntu:\n  sudo apt-get install openssh-client",
        zh_hint="Debian 或 Ubuntu：\n  sudo apt-get install openssh-client",
    ),
    "mirror/no-folder": Text(
        en="the folder for copies of checkpoints, {folder}, does not exist",
        zh="用于复制检查点的目录 {folder} 不存在",
        en_hint="mount its disk, or create the folder there; Headway does not, because a disk may not be mounted",
        zh_hint="挂载磁盘或在那里创建该目录；Headway 不会自动创建，因为磁盘可能没有挂载",
    ),
    "mirror/not-writable": Text(
        en="the folder for copies of checkpoints, {folder}, cannot be written to",
        zh="用于复制检查点的目录 {folder} 不可写",
        en_hint="change its owner or its permissions, or choose another folder with save.mirror=",
        zh_hint="更改其所有者或权限，或用 save.mirror= 选择其他目录",
    ),
    "mirror/failed": Text(
        en="{address}: {why}",
        zh="{address}：{why}",
        en_hint="check the address, the network and your access rights there",
        zh_hint="检查地址、网络和访问权限",
    ),
    "mirror/differs": Text(
        en="{name} arrived at {address} with other bytes than were sent",
        zh="{name} 到达 {address} 后与发送的内容不同",
        en_hint="the copy was not kept and is sent again; if this repeats, check memory, disk and network",
        zh_hint="该副本没有保留，会重新发送；若反复出现，检查内存、磁盘和网络",
    ),
    "mirror/failing": Text(
        en="checkpoints are not being copied to {address}: {why}; training continues, and the copy is tried again",
        zh="检查点没有复制到 {address}：{why}；训练继续，复制会重试",
    ),
    "mirror/taken-over": Text(
        en="checkpoints are no longer copied to {address}: the same run is copied there by another process on {host}",
        zh="不再把检查点复制到 {address}：{host} 上的另一个进程正在把同一训练复制到那里",
    ),
    "mirror/left-behind": Text(
        en="the last checkpoint is still being copied by process {pid}, which continues without this one",
        zh="最后的检查点仍由进程 {pid} 复制，它会在本进程结束后继续",
    ),
    "mirror/incomplete": Text(
        en="the run has ended, and its newest checkpoint is not in {address}; it is only in the run directory of {run}",
        zh="训练已结束，但最新的检查点不在 {address}，只在 {run} 的训练目录中",
    ),
    "mirror/gone": Text(
        en="the process that copies the checkpoints of {run} elsewhere has ended; training continues without it",
        zh="负责复制 {run} 检查点的进程已结束；训练在没有它的情况下继续",
    ),
    "mirror/copied": Text(
        en="step {step} checkpoint copied to {to}: {size} in {taken}",
        zh="第 {step} 步检查点已复制到 {to}：{size}，用时 {taken}",
    ),
    "mirror/help-fetch": Text(
        en="Bring a run back from the place that save.mirror= names.\n\n"
        "The newest checkpoint there is copied and verified byte for byte, and an older one if it is damaged. The run "
        "gets the name it had; a run directory that is already here gets the checkpoint added.\n\n"
        "Example:\n"
        "  headway ckpt fetch s3://lab/runs/20261119-180405_nanochat_ab12",
        zh="从 save.mirror= 指定的位置取回一次训练。\n\n"
        "复制那里最新的检查点并逐字节校验；若已损坏则取较早的一个。训练沿用原来的名称；若本机已有该训练目录，"
        "则只补上检查点。\n\n"
        "示例：\n"
        "  headway ckpt fetch s3://lab/runs/20261119-180405_nanochat_ab12",
    ),
    "mirror/option-runs": Text(
        en="folder of runs that it is copied to (default: runs)", zh="复制到哪里：存放各次训练的目录（默认 runs）"
    ),
    "mirror/option-step": Text(en="the checkpoint of this step, not the newest", zh="取该步的检查点，而不是最新的"),
    "mirror/bad-address": Text(
        en="{given} is not an address of copied checkpoints",
        zh="{given} 不是检查点副本的地址",
        en_hint="name the place and the run, for example:\n  headway ckpt fetch s3://bucket/folder/RUN",
        zh_hint="写出位置和训练名称，例如：\n  headway ckpt fetch s3://bucket/folder/RUN",
    ),
    "mirror/no-run": Text(
        en="there is no run in {address}",
        zh="{address} 中没有训练",
        en_hint="give the address as in save.mirror=, then / and the name of the run",
        zh_hint="地址写法同 save.mirror=，后面加 / 和训练名称",
    ),
    "mirror/name-a-run": Text(
        en="{address} contains several runs or one that is not named: {runs:list}",
        zh="{address} 中有多次训练，或没有写明哪一次：{runs:list}",
        en_hint="name one of them:\n  headway ckpt fetch {address}/{newest}",
        zh_hint="写明其中之一：\n  headway ckpt fetch {address}/{newest}",
    ),
    "mirror/no-checkpoint": Text(
        en="{address} has no complete checkpoint of that step; steps there: {steps:list}",
        zh="{address} 中没有该步的完整检查点；那里有的步数：{steps:list}",
        en_hint="choose one of these steps with --step, or leave --step out for the newest",
        zh_hint="用 --step 选择其中一步，或不写 --step 取最新的",
    ),
    "mirror/run-lives": Text(
        en="{run} is being trained now",
        zh="{run} 正在训练",
        en_hint="a run that is being trained needs no copy; stop it first:\n  headway stop {run}",
        zh_hint="正在训练的任务不需要取回副本；如需取回先停止：\n  headway stop {run}",
    ),
    "mirror/have-it": Text(
        en="the newest checkpoint there, step {step}, is already here: {path}",
        zh="那里最新的检查点（第 {step} 步）本机已有：{path}",
        en_hint="continue from it:\n  headway resume {run}",
        zh_hint="从它继续训练：\n  headway resume {run}",
    ),
    "mirror/all-damaged": Text(
        en="none of the {num} checkpoints in {address} is intact; the newest: {why}",
        zh="{address} 中的 {num} 个检查点都已损坏；最新的：{why}",
        en_hint="look for another copy of the run; nothing of this one was kept here",
        zh_hint="查找该训练的其他副本；本机没有保留其中任何内容",
    ),
    "mirror/damaged": Text(
        en="{name} there is damaged and was skipped: {why}", zh="那里的 {name} 已损坏，已跳过：{why}"
    ),
    "mirror/fetched": Text(
        en="step {step} fetched and verified: {size} in {run}", zh="已取回并校验第 {step} 步：{size}，位于 {run}"
    ),
    "mirror/would-fetch": Text(en="would fetch {name} to {run}", zh="将取回 {name} 到 {run}"),
    "mirror/next": Text(en="next: headway resume {run}", zh="下一步：headway resume {run}"),
}
