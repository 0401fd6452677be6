"""Texts of the classes of failure: the supervisor's here, those that only a log names in the rules' own files."""

from __future__ import annotations

import re
import string
import tomllib
from pathlib import Path
from typing import Any, Final

from headway.messages import Text

RULES_FOLDER: Final = Path(__file__).resolve().parent.parent / "diagnosis" / "rules"
"""One file per finding. They are data, so that texts can be read without the stage that searches logs for them."""
_ALWAYS: Final = frozenset({"text", "type"})
"""Values that every finding has."""
_IN_COMMAND: Final = frozenset({"run"})
"""Values that every command may have: without a run it takes the newest one."""
_TYPED: Final = re.compile(r"(?!if )[a-z][\w-]*(?: (?!= )|$)")
"""A command of a shell, not a line of Python or of a batch file."""


def read_rule_texts(folder: Path) -> dict[str, Text]:
    """Return the texts of a folder of rules: two of each rule whose advice for a script is another one."""
    texts: dict[str, Text] = {}
    for path in sorted(folder.glob("*.toml")):
        rule = tomllib.loads(path.read_text(encoding="utf-8"))
        ours, theirs = (_first_advice(rule, audience) for audience in ("headway", "script"))
        texts[f"diagnose/{path.stem}"] = Text(*_words(rule["text"]), *ours)
        if theirs != ours:
            texts[f"diagnose/foreign-{path.stem}"] = Text(*_words(rule["text"]), *theirs)
    return texts


def _first_advice(rule: dict[str, Any], audience: str) -> tuple[str, str]:
    """Return the cheapest fix that needs no further values. Any: what TOML may hold."""
    for fix in rule.get("fix", ()):
        en, zh = _words(fix)
        is_plain = {name for text in (en, zh) for _, name, _, _ in string.Formatter().parse(text) if name} <= _ALWAYS
        if fix.get("for", audience) == audience and is_plain:
            return _with_command(en, zh, str(fix.get("command", "")))
    return "", ""


def _with_command(en: str, zh: str, command: str) -> tuple[str, str]:
    """Return an advice with its command: on a line of its own where a shell can run it as it is, else quoted."""
    names = {name for _, name, _, _ in string.Formatter().parse(command) if name is not None}
    if not command or names - _IN_COMMAND:
        return en, zh
    if _TYPED.match(command) and "…" not in command:
        return f"{en}:\n  {command}", f"{zh}：\n  {command}"
    return f"{en}: `{command}`", f"{zh}：`{command}`"


def _words(data: dict[str, Any]) -> tuple[str, str]:
    """Return both texts; the line of the log is foreign text, and introduced as such."""
    en, zh = (str(data[lang]) for lang in ("en", "zh"))
    is_bare = en.startswith("{type}")
    return (en, zh) if is_bare else (en.replace("{text}", "{text:said}"), zh.replace("{text}", "{text:said}"))


_OWN: Final[dict[str, Text]] = {
    "diagnose/option-capsule": Text(
        en="also write the black box of a run: one file with its last minutes, without secrets, to send to others",
        zh="同时写出该训练任务的黑匣子：一个文件，包含最后几分钟的全部记录，不含密钥，可发给他人",
    ),
    "diagnose/option-unpack": Text(
        en="unpack a black box into this folder as a run, for report, watch, board and runs",
        zh="把黑匣子作为一次训练解包到该目录，供 report、watch、board、runs 查看",
    ),
    "diagnose/capsule-written": Text(en="black box: {path}", zh="黑匣子：{path}"),
    "diagnose/capsule-unpacked": Text(
        en="unpacked to {path}; see it with: {command}", zh="已解包到 {path}；查看：{command}"
    ),
    "diagnose/capsule-refused": Text(
        en="{path} is not an intact Headway black box: {why}; nothing was read from it",
        zh="{path} 不是完好的 Headway 黑匣子：{why}；其中内容均未读取",
    ),
    "diagnose/device-out-of-memory": Text(
        en="the GPU ran out of memory: {text:said}",
        zh="GPU 显存不足：{text:said}",
        en_hint=(
            "lower batch.per_device (the total batch stays the same), or use activation checkpointing:\n"
            "  headway resume {run} train.activation_checkpoint=true"
        ),
        zh_hint=(
            "减小 batch.per_device（总批大小不变），或启用激活重计算：\n"
            "  headway resume {run} train.activation_checkpoint=true"
        ),
    ),
    "diagnose/host-out-of-memory": Text(
        en="the machine ran out of memory: {text:said}",
        zh="主机内存不足：{text:said}",
        en_hint=(
            "lower batch.per_device, give the job more memory, or do without data loader workers:\n"
            "  headway resume {run} parallel.workers=0"
        ),
        zh_hint=(
            "减小 batch.per_device、给作业分配更多内存，或不使用数据加载进程：\n"
            "  headway resume {run} parallel.workers=0"
        ),
    ),
    "diagnose/host-oom-kill": Text(
        en="killed by the kernel because the machine ran out of memory ({signal})",
        zh="主机内存耗尽，被内核强制终止（{signal}）",
        en_hint=(
            "lower batch.per_device, give the job more memory, or do without data loader workers:\n"
            "  headway resume {run} parallel.workers=0"
        ),
        zh_hint=(
            "减小 batch.per_device、给作业分配更多内存，或不使用数据加载进程：\n"
            "  headway resume {run} parallel.workers=0"
        ),
    ),
    "diagnose/shared-memory-full": Text(
        en="shared memory (/dev/shm) is full: {text:said}",
        zh="共享内存（/dev/shm）已满：{text:said}",
        en_hint=(
            "start the container with a larger --shm-size, or do without data loader workers:\n"
            "  headway resume {run} parallel.workers=0"
        ),
        zh_hint=("用更大的 --shm-size 启动容器，或不使用数据加载进程：\n  headway resume {run} parallel.workers=0"),
    ),
    "diagnose/disk-full": Text(
        en="the disk is full: {text:said}",
        zh="磁盘已满：{text:said}",
        en_hint=(
            "free some space, then resume; the first line removes checkpoints that are not needed:\n"
            "  headway ckpt prune {run}\n"
            "  headway resume {run}"
        ),
        zh_hint=(
            "腾出空间后继续训练；第一条命令删除不再需要的检查点：\n  headway ckpt prune {run}\n  headway resume {run}"
        ),
    ),
    "diagnose/process-limit": Text(
        en="a limit on files or processes was reached: {text:said}",
        zh="达到了文件数或进程数上限：{text:said}",
        en_hint=(
            "raise the limits in this shell, then resume; or lower parallel.workers:\n"
            "  ulimit -n 65535\n"
            "  ulimit -u unlimited\n"
            "  headway resume {run}"
        ),
        zh_hint=(
            "在当前终端提高上限后继续训练；或减小 parallel.workers：\n"
            "  ulimit -n 65535\n"
            "  ulimit -u unlimited\n"
            "  headway resume {run}"
        ),
    ),
    "diagnose/port-in-use": Text(
        en="another process uses the network port: {text:said}", zh="网络端口被其他进程占用：{text:said}"
    ),
    "diagnose/worker-died": Text(
        en="a data loader process died: {text:said}",
        zh="数据加载进程意外退出：{text:said}",
        en_hint=("load the data without workers once to see its own error:\n  headway resume {run} parallel.workers=0"),
        zh_hint=("不使用数据加载进程运行一次，查看它自己的报错：\n  headway resume {run} parallel.workers=0"),
    ),
    "diagnose/connection-lost": Text(
        en="lost the connection to another rank: {text:said}", zh="与其他 rank 的连接中断：{text:said}"
    ),
    "diagnose/server-refused": Text(
        en="a server that the program contacted refused the connection: {text:said}",
        zh="程序访问的服务器拒绝了连接：{text:said}",
        en_hint="start the server, or correct its address and port; no rank is at fault",
        zh_hint="启动该服务器，或更正其地址与端口；与其他 rank 无关",
    ),
    "diagnose/device-error": Text(
        en="the GPU reported an error: {text:said}",
        zh="GPU 报告错误：{text:said}",
        en_hint=(
            "look for Xid lines, then leave this GPU out with parallel.gpus:\n  nvidia-smi\n  sudo dmesg | grep -i xid"
        ),
        zh_hint=("查看 Xid 记录，然后用 parallel.gpus 避开这张 GPU：\n  nvidia-smi\n  sudo dmesg | grep -i xid"),
    ),
    "diagnose/import-error": Text(
        en="a module could not be imported: {text:said}",
        zh="模块导入失败：{text:said}",
        en_hint="install it into the interpreter of the ranks (see env.python)",
        zh_hint="把它安装到 rank 所用的解释器中（见 env.python）",
    ),
    "diagnose/missing-file": Text(
        en="a file is missing: {text:said}",
        zh="缺少文件：{text:said}",
        en_hint=("check the paths in the section task:\n  headway config show {run}/config.yaml"),
        zh_hint=("检查 task 配置段里的路径：\n  headway config show {run}/config.yaml"),
    ),
    "diagnose/python-exception": Text(
        en="{type}: {text}",
        zh="{type}：{text}",
        en_hint=(
            "the same step would fail again, so nothing was retried; repair it, then resume:\n  headway resume {run}"
        ),
        zh_hint=("同一步重试仍会失败，所以没有重试；修复后继续训练：\n  headway resume {run}"),
    ),
    "diagnose/recipe-exception": Text(
        en="{type}: {text}, in the recipe's code at {file}, line {line}",
        zh="{type}：{text}，出自配方代码 {file} 第 {line} 行",
        en_hint=(
            "the same step would fail again, so nothing was retried; correct that line, then resume:\n"
            "  headway resume {run}"
        ),
        zh_hint=("同一步重试仍会失败，所以没有重试；改好这一行后继续训练：\n  headway resume {run}"),
    ),
    "diagnose/killed": Text(en="killed from outside the run ({signal})", zh="被外部强制终止（{signal}）"),
    "diagnose/crashed": Text(
        en="crashed in native code ({signal})",
        zh="原生代码崩溃（{signal}）",
        en_hint="the last lines of its log show where",
        zh_hint="日志最后几行指出了位置",
    ),
    "diagnose/illegal-instruction": Text(
        en="the CPU refused an instruction (SIGILL) before the first step was done: the CPU or its hypervisor "
        "advertises an instruction set that it cannot execute",
        zh="第一步完成之前 CPU 拒绝执行某条指令（SIGILL）：CPU 或其虚拟机管理程序声明了某个指令集，实际却不能执行",
        en_hint=("find the highest setting that works on this CPU; later runs use it:\n  headway check --smoke"),
        zh_hint=("找出这台 CPU 可用的最高设置，之后的训练会自动采用：\n  headway check --smoke"),
    ),
    "diagnose/foreign-illegal-instruction": Text(
        en="the CPU refused an instruction (SIGILL) before the first step was done: the CPU or its hypervisor "
        "advertises an instruction set that it cannot execute",
        zh="第一步完成之前 CPU 拒绝执行某条指令（SIGILL）：CPU 或其虚拟机管理程序声明了某个指令集，实际却不能执行",
        en_hint=(
            "lower the instruction sets, then start it again; if that is not enough, try AVX512_CORE and AVX512, then"
            " AVX2 for both:\n"
            "  export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 MKL_ENABLE_INSTRUCTIONS=AVX512_E3"
        ),
        zh_hint=(
            "降低指令集后重新启动；仍不行就改用 AVX512_CORE 与 AVX512，再不行两者都改用 AVX2：\n"
            "  export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 MKL_ENABLE_INSTRUCTIONS=AVX512_E3"
        ),
    ),
    "diagnose/exited": Text(
        en="ended with exit code {exit} and no error message",
        zh="以退出码 {exit} 结束，没有错误信息",
        en_hint="the last lines of its log may show more",
        zh_hint="日志最后几行可能有更多信息",
    ),
    "diagnose/early-exit": Text(
        en="ended with exit code 0 before training finished",
        zh="训练尚未完成就以退出码 0 结束",
        en_hint="look for sys.exit or os._exit in the task's code",
        zh_hint="检查任务代码中的 sys.exit 或 os._exit",
    ),
    "diagnose/no-step": Text(
        en="reported success without finishing a single step",
        zh="一步都没有完成就报告训练结束",
        en_hint="check train.steps and the size of the data",
        zh_hint="检查 train.steps 与数据量",
    ),
    "diagnose/nursery-died": Text(
        en="the process from which the ranks are forked died ({signal})", zh="派生各 rank 的进程意外退出（{signal}）"
    ),
    "diagnose/unknown-end": Text(
        en="the process is gone and its exit status is unknown", zh="进程已消失，退出状态未知"
    ),
    "diagnose/node-lost": Text(
        en="node {node} ({host}) was lost: no heartbeat for {seconds} s",
        zh="节点 {node}（{host}）丢失：{seconds} 秒没有心跳",
        en_hint="the machine, its network or its supervisor may have failed; that node's kernel log or the scheduler "
        "shows why",
        zh_hint="可能是机器、网络或监控进程出了故障；查看调度系统或该节点的内核日志",
    ),
    "diagnose/fork-failed": Text(
        en="the rank could not be started: {text:said}",
        zh="无法启动该 rank：{text:said}",
        en_hint=("free memory, or raise the limit on processes in this shell:\n  ulimit -u unlimited"),
        zh_hint=("释放内存，或在当前终端提高进程数上限：\n  ulimit -u unlimited"),
    ),
    "diagnose/foreign-device-out-of-memory": Text(
        en="the GPU ran out of memory: {text:said}",
        zh="GPU 显存不足：{text:said}",
        en_hint="lower the batch size per GPU and raise gradient accumulation by the same factor",
        zh_hint="减小每卡批大小，并按相同倍数增大梯度累积次数",
    ),
    "diagnose/foreign-host-out-of-memory": Text(
        en="the machine ran out of memory: {text:said}",
        zh="主机内存不足：{text:said}",
        en_hint="use fewer data loader workers or a smaller batch, or give the job more memory",
        zh_hint="减少数据加载进程或减小批大小，或给作业分配更多内存",
    ),
    "diagnose/foreign-host-oom-kill": Text(
        en="killed by the kernel because the machine ran out of memory ({signal})",
        zh="主机内存耗尽，被内核强制终止（{signal}）",
        en_hint="use fewer data loader workers or a smaller batch, or give the job more memory",
        zh_hint="减少数据加载进程或减小批大小，或给作业分配更多内存",
    ),
    "diagnose/foreign-shared-memory-full": Text(
        en="shared memory (/dev/shm) is full: {text:said}",
        zh="共享内存（/dev/shm）已满：{text:said}",
        en_hint="use num_workers=0, or start the container with a larger --shm-size",
        zh_hint="设 num_workers=0，或用更大的 --shm-size 启动容器",
    ),
    "diagnose/foreign-disk-full": Text(
        en="the disk is full: {text:said}",
        zh="磁盘已满：{text:said}",
        en_hint="free some space, then start again",
        zh_hint="腾出空间后重新启动",
    ),
    "diagnose/foreign-process-limit": Text(
        en="a limit on files or processes was reached: {text:said}",
        zh="达到了文件数或进程数上限：{text:said}",
        en_hint=(
            "use fewer data loader workers, or raise the limits in this shell and start it again:\n"
            "  ulimit -n 65535\n"
            "  ulimit -u unlimited"
        ),
        zh_hint=("减少数据加载进程，或在当前终端提高上限后重新启动：\n  ulimit -n 65535\n  ulimit -u unlimited"),
    ),
    "diagnose/foreign-worker-died": Text(
        en="a data loader process died: {text:said}",
        zh="数据加载进程意外退出：{text:said}",
        en_hint="run once with num_workers=0 to see the worker's own error",
        zh_hint="用 num_workers=0 运行一次，查看它自己的报错",
    ),
    "diagnose/foreign-device-error": Text(
        en="the GPU reported an error: {text:said}",
        zh="GPU 报告错误：{text:said}",
        en_hint=("look for Xid lines, then leave this GPU out with --gpus:\n  nvidia-smi\n  sudo dmesg | grep -i xid"),
        zh_hint=("查看 Xid 记录，然后用 --gpus 避开这张 GPU：\n  nvidia-smi\n  sudo dmesg | grep -i xid"),
    ),
    "diagnose/foreign-import-error": Text(
        en="a module could not be imported: {text:said}",
        zh="模块导入失败：{text:said}",
        en_hint="install it into the interpreter that runs the script",
        zh_hint="把它安装到运行脚本的解释器中",
    ),
    "diagnose/foreign-missing-file": Text(
        en="a file is missing: {text:said}",
        zh="缺少文件：{text:said}",
        en_hint="check the path; relative paths start in the folder where headway run was typed",
        zh_hint="检查路径；相对路径从输入 headway run 的目录算起",
    ),
    "diagnose/foreign-python-exception": Text(
        en="{type}: {text}",
        zh="{type}：{text}",
        en_hint="the same error would happen again, so it was not retried",
        zh_hint="重试仍会失败，所以没有重试",
    ),
    "diagnose/foreign-early-exit": Text(
        en="ended with exit code 0 while other ranks still needed it",
        zh="其他 rank 仍需要它时，以退出码 0 提前结束",
        en_hint="look for a return, break or sys.exit that only this rank reaches, for example because its data is "
        "shorter",
        zh_hint="检查只有该 rank 会走到的 return、break 或 sys.exit，例如各 rank 数据长度不一",
    ),
    "diagnose/preempted": Text(
        en="ended by SIGTERM from outside the run: it was preempted or stopped by someone",
        zh="被外部的 SIGTERM 结束：被抢占，或被人停止",
        en_hint=("start it again with restarts; preemptions are counted separately:\n  --restarts 3"),
        zh_hint=("允许重启后重新启动；抢占单独计数：\n  --restarts 3"),
    ),
    "diagnose/foreign-no-step": Text(
        en="ended with exit code 0 and created an optimizer, but never took a step",
        zh="以退出码 0 结束，创建了优化器却一步都没有训练",
        en_hint=(
            "check the number of epochs and the size of the data; if the program is not meant to train:\n"
            "  --no-training"
        ),
        zh_hint=("检查轮数与数据量；本来就不训练的程序：\n  --no-training"),
    ),
    "diagnose/foreign-left-behind": Text(
        en="ended with exit code 0, but left processes behind that were idle for 30 s and were ended: {processes:list}",
        zh="以退出码 0 结束，但留下的进程 30 秒没有任何活动，已被终止：{processes:list}",
        en_hint="end them at the end of the script, or wait for them there (wait); with --no-training there is no "
        "time limit",
        zh_hint="在脚本末尾结束这些进程，或用 wait 等待它们；加 --no-training 会一直等待",
    ),
    "diagnose/hang-rank-stopped": Text(
        en="rank {rank} is paused by a signal (SIGSTOP)",
        zh="rank {rank} 被信号暂停（SIGSTOP）",
        en_hint=("let it continue:\n  kill -CONT {pid}"),
        zh_hint=("让它继续：\n  kill -CONT {pid}"),
    ),
    "diagnose/hang-disk-wait": Text(
        en="rank {rank} is waiting for a disk ({place})",
        zh="rank {rank} 在等待磁盘（{place}）",
        en_hint=("a network disk that has gone is the usual cause; the kernel says which:\n  dmesg | tail"),
        zh_hint=("常见原因是网络磁盘失联；查看内核日志：\n  dmesg | tail"),
    ),
    "diagnose/hang-collective-mismatch": Text(
        en="rank {rank} is in {own}, but the other ranks are in {others}",
        zh="rank {rank} 在 {own}，其他 rank 在 {others}",
        en_hint="every rank must call the same collectives in the same order and with the same shapes; see {place}",
        zh_hint="每个 rank 必须以相同顺序、相同形状调用相同的集合通信；见 {place}",
    ),
    "diagnose/hang-disagree": Text(
        en="rank {one:list} and rank {other:list} disagree: {others} and {own}",
        zh="rank {one:list} 与 rank {other:list} 不一致：前者在 {others}，后者在 {own}",
        en_hint="every rank must call the same collectives in the same order and with the same shapes; see {place}",
        zh_hint="每个 rank 必须以相同顺序、相同形状调用相同的集合通信；见 {place}",
    ),
    "diagnose/hang-data-stall": Text(
        en="rank {rank} is waiting for its data loader ({place})",
        zh="rank {rank} 在等待数据加载（{place}）",
        en_hint="check the disk and the data loader workers",
        zh_hint="检查磁盘与数据加载进程",
    ),
    "diagnose/hang-rank-behind": Text(
        en="the other ranks wait in {others}, but rank {rank} is elsewhere ({place})",
        zh="其他 rank 在 {others} 等待，rank {rank} 却在别处（{place}）",
        en_hint="a collective that one rank skips never completes; check the conditions around {place}",
        zh_hint="有 rank 跳过的集合通信永远不会结束；检查 {place} 附近的条件分支",
    ),
    "diagnose/hang-rank-busy": Text(
        en="the other ranks wait in {others}, but rank {rank} is still computing ({place})",
        zh="其他 rank 在 {others} 等待，rank {rank} 仍在计算（{place}）",
    ),
    "diagnose/hang-all-wait": Text(
        en="all ranks wait in the same place ({own})",
        zh="所有 rank 停在同一处（{own}）",
        en_hint="check the network between the ranks (NCCL_DEBUG=INFO, GLOO_SOCKET_IFNAME)",
        zh_hint="检查 rank 之间的网络（NCCL_DEBUG=INFO、GLOO_SOCKET_IFNAME）",
    ),
    "diagnose/collective-mismatch": Text(
        en="the ranks called collectives that do not match: {text:said}",
        zh="各 rank 调用的集合通信互不匹配：{text:said}",
        en_hint="every rank must call the same collectives in the same order and with the same shapes",
        zh_hint="每个 rank 必须以相同顺序、相同形状调用相同的集合通信",
    ),
    "diagnose/rule-unreadable": Text(
        en="the rule {path} cannot be read: {why}",
        zh="无法读取规则 {path}：{why}",
        en_hint="correct the file, or move it out of the folder; docs/howto/diagnose.md shows the format",
        zh_hint="改正该文件，或把它移出目录；格式见 docs/howto/diagnose.zh-CN.md",
    ),
    "diagnose/rule-wrong": Text(
        en="the rule {path} is not complete or not correct: {why}",
        zh="规则 {path} 不完整或有误：{why}",
        en_hint="correct the file, or move it out of the folder; docs/howto/diagnose.md shows the format",
        zh_hint="改正该文件，或把它移出目录；格式见 docs/howto/diagnose.zh-CN.md",
    ),
}

TEXTS: dict[str, Text] = {**read_rule_texts(RULES_FOLDER), **_OWN}
