"""Texts of starting and supervising."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "launch/already-supervised": Text(
        en="{run} already has a supervisor: process {pid} on {host}",
        zh="{run} 已有监控进程：{host} 上的进程 {pid}",
        en_hint=("watch it:\n  headway watch {run}"),
        zh_hint=("查看进度：\n  headway watch {run}"),
    ),
    "launch/lease-waiting": Text(
        en="the run's supervisor on {host} may still live; waiting until its lease is {seconds} s old",
        zh="{host} 上的监控可能仍在运行；等待其租约满 {seconds} 秒",
    ),
    "launch/lease-elsewhere": Text(
        en="{run} is supervised by process {pid} on {host}, which was last seen {age} s ago",
        zh="{run} 由 {host} 上的进程 {pid} 监控，{age} 秒前仍有心跳",
        en_hint="stop it there; if that machine is down, try again in one minute",
        zh_hint="在那台机器上停止它；若机器已下线，一分钟后再试",
    ),
    "launch/lease-taken-over": Text(
        en="the previous supervisor (process {pid} on {host}) is gone; this process now supervises the run",
        zh="原监控进程（{host} 上的进程 {pid}）已不存在，现由本进程接管",
    ),
    "launch/not-running": Text(
        en="no process on this machine supervises {run}",
        zh="本机没有进程在监控 {run}",
        en_hint=("see its state:\n  headway runs"),
        zh_hint=("查看状态：\n  headway runs"),
    ),
    "launch/import-failed": Text(
        en="the interpreter of the ranks, {python}, could not import a required module: {text:said}",
        zh="rank 所用的解释器 {python} 缺少所需的模块：{text:said}",
        en_hint="install what is missing in this environment: {python}",
        zh_hint="在这个环境中安装缺少的软件包：{python}",
    ),
    "launch/no-headway": Text(
        en="headway is not installed for the interpreter of the ranks, {python} ({text:said})",
        zh="rank 所用的解释器 {python} 中没有安装 headway（{text:said}）",
        en_hint=("install it there:\n  {python} -m pip install headway"),
        zh_hint=("在该环境中安装：\n  {python} -m pip install headway"),
    ),
    "launch/no-progress": Text(
        en="stopped permanently: {restarts} restarts in a row did not get past step {step}",
        zh="已彻底停止：连续重启 {restarts} 次都没有超过第 {step} 步",
        en_hint=("remove the cause, then:\n  headway resume {run}"),
        zh_hint=("排除原因后运行：\n  headway resume {run}"),
    ),
    "launch/failed": Text(en="training failed at step {step} on rank {rank}", zh="训练失败：rank {rank}，第 {step} 步"),
    "launch/rank-failed": Text(
        en="rank {rank} failed after step {step} ({how}): {text}",
        zh="rank {rank} 在第 {step} 步之后失败（{how}）：{text}",
    ),
    "launch/exit-code": Text(en="exit code {exit}", zh="退出码 {exit}"),
    "launch/hint": Text(en="hint: {text}", zh="提示：{text}"),
    "launch/unkillable": Text(
        en="ranks {ranks:list} did not end after SIGKILL; they hang in the kernel",
        zh="rank {ranks:list} 收到 SIGKILL 后仍未退出，卡在内核中",
        en_hint=("a dead network disk or a lost GPU is the usual cause; the kernel says which:\n  dmesg | tail"),
        zh_hint=("常见原因是网络磁盘失联或 GPU 掉卡；查看内核日志：\n  dmesg | tail"),
    ),
    "launch/system-refused": Text(
        en="{run} cannot continue: the operating system refused an operation ({why:said})",
        zh="{run} 无法继续：系统拒绝了操作（{why:said}）",
        en_hint="the usual cause is a full or read-only disk, a directory that was moved, or too few open files "
        "(ulimit -n); saved checkpoints are kept",
        zh_hint="常见原因是磁盘已满或只读、目录被移走、可打开的文件数过少（ulimit -n）；已保存的检查点不受影响",
    ),
    "launch/done": Text(en="{run} is done", zh="{run} 已完成"),
    "launch/stopped": Text(
        en="{run} stopped by itself at step {step}; its state is saved",
        zh="{run} 在第 {step} 步自行停止，状态已保存",
        en_hint=("continue:\n  headway resume {run}"),
        zh_hint=("继续训练：\n  headway resume {run}"),
    ),
    "launch/interrupted": Text(
        en="stopped on request at step {step}; its state is saved",
        zh="已按要求在第 {step} 步停止，状态已保存",
        en_hint=("continue:\n  headway resume {run}"),
        zh_hint=("继续训练：\n  headway resume {run}"),
    ),
    "launch/interrupted-early": Text(
        en="stopped on request before training had started",
        zh="训练开始之前已按要求停止",
        en_hint=("start it:\n  headway resume {run}"),
        zh_hint=("开始训练：\n  headway resume {run}"),
    ),
    "launch/stopped-now": Text(
        en="stopped immediately on request, near step {step}; nothing new was saved, the previous checkpoint is kept",
        zh="已按要求立即停止（约第 {step} 步）；没有保存新的状态，之前的检查点仍在",
        en_hint=("continue from the last checkpoint:\n  headway resume {run}"),
        zh_hint=("从上一个检查点继续训练：\n  headway resume {run}"),
    ),
    "launch/unsaved": Text(
        en="stopped near step {step} without a new checkpoint: the ranks could not save within {grace} s",
        zh="在第 {step} 步附近停止，没有新的检查点：各 rank 没能在 {grace} 秒内完成保存",
        en_hint=(
            "continue from the last checkpoint; a larger launch.grace_s gives more time to save:\n"
            "  headway resume {run}"
        ),
        zh_hint=("从上一个检查点继续训练；调大 launch.grace_s 可留出更多保存时间：\n  headway resume {run}"),
    ),
    "launch/batch-reduced": Text(
        en="out of memory at {before} samples per device: continuing with {after} and gradient accumulation"
        " {accumulation}; the total batch of {batch} samples and the learning rate stay the same",
        zh="每卡批大小为 {before} 时显存或内存不足：改为 {after}，梯度累积 {accumulation} 次后继续训练；"
        "总批大小 {batch} 和学习率不变",
        en_hint="to stop instead: launch.on_oom=stop",
        zh_hint="如需改为停止：launch.on_oom=stop",
    ),
    "launch/ranks-fewer": Text(
        en="lost rank {lost}: continuing on {after} instead of {before} ranks with the same total batch of {batch}"
        " samples; each rank takes {least} to {most} micro-batches per step, weighted by their samples",
        zh="rank {lost} 已丢失：从 {before} 个 rank 改为 {after} 个继续训练，总批大小仍为 {batch} 个样本；"
        "每个 rank 每步处理 {least} 到 {most} 个微批，梯度按样本数加权",
        en_hint="they are tried again by themselves; to stop instead: launch.on_lost=stop",
        zh_hint="之后会自动重新尝试；如需改为停止：launch.on_lost=stop",
    ),
    "launch/ranks-back": Text(
        en="trying lost rank {lost} again: continuing on {after} instead of {before} ranks with the same total batch"
        " of {batch} samples",
        zh="重新尝试丢失的 rank {lost}：从 {before} 个 rank 改为 {after} 个继续训练，总批大小仍为 {batch} 个样本",
    ),
    "launch/nothing-lost": Text(
        en="run {run} is training on all of its ranks; none is lost",
        zh="训练 {run} 正在全部 rank 上进行，没有丢失的 rank",
        en_hint="see its ranks:\n  headway watch {run}",
        zh_hint="查看各 rank：\n  headway watch {run}",
    ),
    "launch/asked-back": Text(
        en="run {run} will try lost rank {lost} again after the current step",
        zh="训练 {run} 将在当前步结束后重新尝试丢失的 rank {lost}",
    ),
    "launch/knobs-turned": Text(
        en="out of memory: starting the line again with {changes}; a script that resumes from its own checkpoint loses"
        " nothing before it",
        zh="显存或内存不足：以 {changes} 重新启动这条命令；能从自身检查点继续的脚本不会丢失检查点之前的进度",
    ),
    "launch/loss-not-finite": Text(
        en="the loss is {value} at step {step}; the training continues (--on-nan stop ends it)",
        zh="第 {step} 步损失为 {value}；训练继续（--on-nan stop 会结束训练）",
    ),
    "launch/loss-not-finite-stop": Text(
        en="the loss is {value} at step {step}: ending the training (--on-nan stop)",
        zh="第 {step} 步损失为 {value}：结束训练（--on-nan stop）",
    ),
    "launch/resume-words": Text(
        en="starting the line again so that it continues: {place}", zh="重新启动这条命令，从这里继续：{place}"
    ),
    "launch/resume-nothing": Text(
        en="this run has written no checkpoint below {folder} yet: the line starts again from its beginning",
        zh="本次训练在 {folder} 下还没有写出检查点：命令从头开始",
    ),
    "launch/resume-possible": Text(
        en="the line starts again as it is, but it has written {place}; if the script can continue from it, start it"
        " with --resume-with '--resume {{latest}}' (and the script's own name for this argument)",
        zh="命令按原样重新启动，但它已写出 {place}；若脚本能由此继续，启动时加上 --resume-with '--resume {{latest}}'"
        "（换成脚本自己的参数名）",
    ),
    "launch/no-memory-file": Text(
        en="the system did not provide memory for copies of the training state ({why}); after a fault the run "
        "continues from its last checkpoint",
        zh="系统不提供用于训练状态副本的内存（{why}）；发生故障后将从最近的检查点继续",
    ),
    "launch/quiet": Text(en="no rank has made progress for {seconds} s", zh="所有 rank 已有 {seconds} 秒没有进展"),
    "launch/terminal-closed": Text(
        en="the terminal was closed; {run} continues in the background",
        zh="终端已关闭，{run} 继续在后台运行",
        en_hint=("see it:\n  headway watch {run}"),
        zh_hint=("查看进度：\n  headway watch {run}"),
    ),
    "launch/stop-elsewhere": Text(
        en="{run} is supervised by process {pid} in another container of {host}, which cannot be reached from here",
        zh="{run} 由 {host} 上另一个容器中的进程 {pid} 监控，从这里无法访问",
        en_hint=("type this inside that container:\n  headway stop {run}"),
        zh_hint=("在那个容器中运行：\n  headway stop {run}"),
    ),
    "launch/stop-not-ours": Text(
        en="{run} is supervised by process {pid} of user {user}; other users cannot stop it",
        zh="{run} 由用户 {user} 的进程 {pid} 监控，其他用户无法停止它",
        en_hint=("as that user:\n  sudo -u {user} headway stop {place}"),
        zh_hint=("以该用户的身份运行：\n  sudo -u {user} headway stop {place}"),
    ),
    "launch/claims-closed": Text(
        en="the folder in which runs register the GPUs they use is not accessible: {folder} belongs to {user} and "
        "you have no permission, or it is not a folder",
        zh="用于登记 GPU 占用的目录无法使用：{folder} 属于用户 {user}，当前用户没有权限，或者它不是目录",
        en_hint=(
            "open it, or use another folder:\n"
            "  sudo chmod 1777 {folder}\n"
            "  export HEADWAY_CLAIMS=$HOME/.cache/headway-claims"
        ),
        zh_hint=(
            "开放权限，或改用其他目录：\n"
            "  sudo chmod 1777 {folder}\n"
            "  export HEADWAY_CLAIMS=$HOME/.cache/headway-claims"
        ),
    ),
    "launch/claims-locked": Text(
        en="another process has locked the GPU registration folder for {seconds} s: {folder}",
        zh="另一个进程锁住 GPU 占用登记目录已达 {seconds} 秒：{folder}",
        en_hint=(
            "see which process holds it, or use another folder:\n"
            "  lsof {folder}\n"
            "  export HEADWAY_CLAIMS=$HOME/.cache/headway-claims"
        ),
        zh_hint=(
            "查看是哪个进程占用，或改用其他目录：\n  lsof {folder}\n  export HEADWAY_CLAIMS=$HOME/.cache/headway-claims"
        ),
    ),
    "launch/other-user": Text(
        en="these processes belong to another user and cannot be signalled or ended from here: {processes:list}",
        zh="这些进程属于其他用户，这里无法向它们发信号，也无法终止它们：{processes:list}",
        en_hint=("end them:\n  sudo kill {pids}"),
        zh_hint=("终止它们：\n  sudo kill {pids}"),
    ),
    "launch/signal-passed": Text(
        en="{signal} was forwarded to {num} processes that handle it; the run continues",
        zh="已将 {signal} 转发给 {num} 个会处理它的进程；训练继续",
    ),
    "launch/signal-unheard": Text(
        en="{signal} was not forwarded: no process of the run handles it, so it would kill them; the run continues",
        zh="未转发 {signal}：没有进程处理它，转发会使这些进程终止；训练继续",
    ),
    "launch/signal-early": Text(
        en="{signal} arrived before the ranks started; there is nothing to save yet",
        zh="收到 {signal} 时各 rank 尚未启动，还没有可保存的内容",
    ),
    "launch/background": Text(
        en="the command has ended, but processes it started are still running; waiting for them: {processes:list}",
        zh="命令已结束，但它启动的进程仍在运行，继续等待：{processes:list}",
    ),
    "launch/background-ended": Text(
        en="training has ended; these idle processes that it left behind were asked to end: {processes:list}",
        zh="训练已结束；它留下的这些空闲进程已被要求退出：{processes:list}",
    ),
    "launch/too-many-files": Text(
        en="{ranks} ranks need {need} open files, but the limit is {limit}",
        zh="{ranks} 个 rank 需要同时打开 {need} 个文件，但上限是 {limit}",
        en_hint=("as root, or raise LimitNOFILE of the service:\n  ulimit -Hn {need}"),
        zh_hint=("需要 root 权限；或调大服务的 LimitNOFILE：\n  ulimit -Hn {need}"),
    ),
    "launch/store-open": Text(
        en="the store of rank 0 listens on port {port} of every network interface: anyone who can reach it can "
        "change what the ranks exchange there",
        zh="rank 0 的存储服务监听所有网络接口的 {port} 端口：能访问它的人都能改动各 rank 在其中交换的内容",
    ),
    "launch/log-gap": Text(
        en="{path} could not be written ({why:said}); training continues, the gap is marked in the file",
        zh="无法写入 {path}（{why:said}）；训练继续，缺口会在文件中标明",
    ),
    "launch/screen-broken": Text(
        en="the display failed and was turned off ({why:said}); training continues",
        zh="显示出错，已关闭（{why:said}）；训练继续",
    ),
    "launch/bug": Text(
        en="the supervisor itself failed, and the run has ended: {text:said}",
        zh="监控进程自身出错，训练已结束：{text:said}",
    ),
    "launch/foreign-stopped": Text(en="stopped on request near step {step}", zh="已按要求停止（约第 {step} 步）"),
    "launch/foreign-stopped-early": Text(
        en="stopped on request before the program had started", zh="程序启动之前已按要求停止"
    ),
    "launch/foreign-killed": Text(
        en="stopped near step {step}; the program did not end by itself and was killed",
        zh="已停止（约第 {step} 步）；程序没有自行结束，已被强制终止",
        en_hint="--grace gives it more time",
        zh_hint="用 --grace 留出更多时间",
    ),
    "launch/foreign-no-progress": Text(
        en="stopped permanently: {restarts} restarts in a row did not get past step {step}",
        zh="已彻底停止：连续重启 {restarts} 次都没有超过第 {step} 步",
        en_hint="fix the cause, then start it again",
        zh_hint="排除原因后重新启动",
    ),
}
