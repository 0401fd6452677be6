"""`headway rehearse`."""

from headway.messages import Text

_FAULTS = {
    "kill": ("a rank is killed", "强制终止一个 rank"),
    "stop": ("a rank is paused", "暂停一个 rank"),
    "port": ("the port of the ranks is disturbed", "干扰 rank 会合的端口"),
    "disk": ("the disk is full", "磁盘写满"),
    "memory": ("memory runs out", "内存不足"),
    "terminal": ("the terminal is closed", "关闭终端"),
    "flip": (
        "a checkpoint bit flips, the supervisor is killed",
        "检查点翻转一位，并强制终止监控进程",
    ),
}
_HEADS = {
    "fault": ("fault", "故障"),
    "state": ("result", "结果"),
    "detect": ("detected in", "发现用时"),
    "recover": ("recovered in", "恢复用时"),
    "redone": ("steps redone", "重做步数"),
}

TEXTS: dict[str, Text] = {
    "rehearse/line": Text(en="raise faults on purpose and see what survives", zh="主动制造故障，检验能否挺过去"),
    "rehearse/help": Text(
        en="""Raise faults on a run of its own and measure what follows, in about a minute.

A rank is killed, a rank is paused, the port is disturbed, the disk is full, memory runs out, the terminal is closed, a
bit flips in the newest checkpoint. It prints which faults the run survived, how fast they were detected, how fast
training continued and how many steps were redone, and what the disk of --out guarantees. Without CONFIG a small network
is trained on the CPU; with CONFIG your own task on your own devices, in a temporary directory. Its config should
train for longer than a few minutes. Exit code 0: all survived; 5: a fault was not.

Example:
  headway rehearse
  headway rehearse --fault kill --fault disk --json
  headway rehearse config.yaml""",
        zh="""在一次单独的训练上主动制造故障并测量结果，约一分钟。

强制终止一个 rank、暂停一个 rank、干扰端口、写满磁盘、内存不足、关闭终端、最新检查点翻转一位。输出：哪些故障挺过去了、
多快发现、多快继续训练、重做了几步，以及 --out 所在磁盘能保证什么。不给 CONFIG 时在 CPU 上训练一个小网络；给出 CONFIG
时在临时目录中用你的设备训练你的任务，其训练时长应超过几分钟。退出码 0：全部挺过；5：有故障未挺过。

示例：
  headway rehearse
  headway rehearse --fault kill --fault disk --json
  headway rehearse config.yaml""",
    ),
    "rehearse/option-fault": Text(en="only this fault; may be repeated", zh="只制造这种故障；可重复给出"),
    "rehearse/option-out": Text(
        en="directory of runs whose disk is looked at; default: runs", zh="检查此训练目录所在的磁盘；默认为 runs"
    ),
    "rehearse/option-keep": Text(en="keep the rehearsal's run directory", zh="保留演练的训练目录"),
    "rehearse/begins": Text(
        en="rehearsing {num} faults on a run in a temporary directory; this takes about a minute",
        zh="在临时目录中的训练上演练 {num} 种故障，约需一分钟",
    ),
    **{f"rehearse/fault-{name}": Text(en=en, zh=zh) for name, (en, zh) in _FAULTS.items()},
    **{f"rehearse/head-{name}": Text(en=en, zh=zh) for name, (en, zh) in _HEADS.items()},
    "rehearse/state-survived": Text(en="survived", zh="挺过"),
    "rehearse/state-failed": Text(en="failed", zh="失败"),
    "rehearse/state-skipped": Text(en="skipped", zh="跳过"),
    "rehearse/run-ended": Text(
        en="the rehearsal's run ended with exit code {code}: {log:said}",
        zh="演练的训练已结束，退出码 {code}：{log:said}",
        en_hint="train it without faults first, and longer than the rehearsal takes:\n  headway train",
        zh_hint="先在没有故障的情况下训练一次，且时长要超过演练：\n  headway train",
    ),
    "rehearse/no-answer": Text(
        en="nothing happened within {seconds} s; the run's last output: {log:said}",
        zh="{seconds} 秒内没有反应；训练最后的输出：{log:said}",
        en_hint="repeat the rehearsal and keep its run directory:\n  headway rehearse --keep",
        zh_hint="再次演练并保留训练目录：\n  headway rehearse --keep",
    ),
    "rehearse/one-rank": Text(en="one rank alone has no port", zh="单个 rank 没有端口"),
    "rehearse/own-task": Text(en="only with the built-in task", zh="仅用于内置任务"),
    "rehearse/disk-real": Text(
        en="the run was on a small file system of its own that ran full", zh="训练位于单独的小文件系统上，该系统被写满"
    ),
    "rehearse/disk-limit": Text(
        en="by a limit on the size of files (RLIMIT_FSIZE): only root can mount a small file system",
        zh="通过文件大小限制（RLIMIT_FSIZE）：只有 root 能挂载小文件系统",
    ),
    "rehearse/batch-reduced": Text(
        en="micro-batch {before} became {after}; the total batch stays {batch}",
        zh="微批从 {before} 减为 {after}；总批大小仍为 {batch}",
    ),
    "rehearse/older-checkpoint": Text(
        en="the damaged checkpoint was refused; resumed from step {step}", zh="已损坏的检查点被拒绝；从第 {step} 步继续"
    ),
    "rehearse/flip-missed": Text(
        en="the damaged checkpoint was not refused; resumed from step {step}",
        zh="已损坏的检查点未被拒绝；从第 {step} 步继续",
    ),
    "rehearse/data-exact": Text(
        en="every sample was trained on exactly once: the ledger of the last checkpoint proves it",
        zh="每个样本恰好训练一次：最后一个检查点的账目证明了这一点",
    ),
    "rehearse/data-wrong": Text(
        en="samples were lost or repeated: the ledger of the last checkpoint does not fit its position",
        zh="有样本丢失或重复：最后一个检查点的账目与其位置不符",
    ),
    "rehearse/storage": Text(en="storage of {place} ({kind}):", zh="{place} 的存储（{kind}）："),
    "rehearse/fsync-plausible": Text(
        en="fsync takes {ms} ms (disk cache: {cache}), as long as a disk needs; only a power cut can prove more",
        zh="fsync 用时 {ms} 毫秒（磁盘缓存：{cache}），与真实磁盘相符；只有断电才能进一步证明",
    ),
    "rehearse/fsync-too-fast": Text(
        en="fsync returns after {ms} ms (disk cache: {cache}), before any disk can have answered: a power cut may lose"
        " saved checkpoints",
        zh="fsync 在 {ms} 毫秒内返回（磁盘缓存：{cache}），比任何磁盘都快：断电可能丢失已保存的检查点",
    ),
    "rehearse/fsync-memory": Text(
        en="this file system is in memory: everything is lost when the machine stops",
        zh="该文件系统位于内存中：机器停止后全部丢失",
    ),
    "rehearse/fsync-refused": Text(
        en="fsync is refused: nothing is guaranteed to reach the disk", zh="fsync 被拒绝：无法保证数据写到磁盘"
    ),
    "rehearse/folders-synced": Text(en="directories can be synced", zh="目录可以同步到磁盘"),
    "rehearse/folders-not-synced": Text(
        en="directories cannot be synced: a new checkpoint's name may be lost in a power cut",
        zh="目录无法同步到磁盘：断电可能丢失新检查点的名字",
    ),
    "rehearse/rename-atomic": Text(
        en="rename is atomic: {num} files replaced while being read, none seen missing or incomplete",
        zh="重命名是原子的：边读边替换 {num} 次，没有读到缺失或不完整的文件",
    ),
    "rehearse/rename-torn": Text(
        en="rename is not atomic: of {num} files replaced while being read, {torn} reads found none or part of one",
        zh="重命名不是原子的：边读边替换 {num} 次，有 {torn} 次读到缺失或不完整的文件",
    ),
    "rehearse/locks-kept": Text(en="file locks work", zh="文件锁有效"),
    "rehearse/locks-broken": Text(
        en="file locks do not work: two supervisors could take the same run",
        zh="文件锁不起作用：两个监控进程可能同时接管同一次训练",
    ),
    "rehearse/write-rate": Text(en="durable writing: {rate} MB/s", zh="持久写入：{rate} MB/s"),
    "rehearse/kept": Text(en="run directory kept in {place}", zh="训练目录保留在 {place}"),
    "rehearse/ended": Text(
        en="survived {num} of {of} faults in {seconds} s", zh="{seconds} 秒内挺过 {num}/{of} 种故障"
    ),
    "rehearse/failed": Text(
        en="survived {num} of {of} faults in {seconds} s; the first that was not survived ended the rehearsal",
        zh="{seconds} 秒内挺过 {num}/{of} 种故障；第一个未挺过的故障结束了演练",
    ),
}
