"""Texts of the classes of failure."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "diagnose/device-out-of-memory": Text(
        en="the GPU ran out of memory: {text}",
        zh="GPU 显存不足：{text}",
        en_hint="lower batch.per_device (the total batch stays the same), or set train.activation_checkpoint=true",
        zh_hint="减小 batch.per_device（总批次不变），或设置 train.activation_checkpoint=true",
    ),
    "diagnose/host-out-of-memory": Text(
        en="the machine's memory ran out: {text}",
        zh="主机内存不足：{text}",
        en_hint="lower batch.per_device or parallel.workers, or give the job more memory",
        zh_hint="减小 batch.per_device 或 parallel.workers，或给作业分配更多内存",
    ),
    "diagnose/host-oom-kill": Text(
        en="killed by the kernel because memory ran out ({signal})",
        zh="主机内存耗尽，被内核终止（{signal}）",
        en_hint="lower batch.per_device or parallel.workers, or give the job more memory",
        zh_hint="减小 batch.per_device 或 parallel.workers，或给作业分配更多内存",
    ),
    "diagnose/shared-memory-full": Text(
        en="shared memory (/dev/shm) is full: {text}",
        zh="共享内存（/dev/shm）已满：{text}",
        en_hint="set parallel.workers=0, or start the container with a larger --shm-size",
        zh_hint="设置 parallel.workers=0，或用更大的 --shm-size 启动容器",
    ),
    "diagnose/disk-full": Text(
        en="the disk is full: {text}",
        zh="磁盘已满：{text}",
        en_hint="free some space (headway ckpt prune), then headway resume",
        zh_hint="腾出空间（headway ckpt prune），然后运行 headway resume",
    ),
    "diagnose/process-limit": Text(
        en="a limit on files or processes was reached: {text}",
        zh="达到了文件数或进程数上限：{text}",
        en_hint="raise it (ulimit -n 65535; ulimit -u unlimited) or lower parallel.workers",
        zh_hint="提高上限（ulimit -n 65535; ulimit -u unlimited），或减小 parallel.workers",
    ),
    "diagnose/port-in-use": Text(
        en="a network port was taken by another process: {text}",
        zh="网络端口被其他进程占用：{text}",
    ),
    "diagnose/worker-died": Text(
        en="a data loader process died: {text}",
        zh="数据加载进程意外退出：{text}",
        en_hint="run once with parallel.workers=0 to see its own error",
        zh_hint="用 parallel.workers=0 跑一次，看它自己的报错",
    ),
    "diagnose/connection-lost": Text(
        en="lost the connection to another rank: {text}",
        zh="与其他 rank 的连接中断：{text}",
    ),
    "diagnose/server-refused": Text(
        en="a server that the program asked refused the connection: {text}",
        zh="程序访问的服务器拒绝了连接：{text}",
        en_hint="start the server, or correct its address and port; no rank is at fault",
        zh_hint="启动该服务器，或更正其地址与端口；与其他 rank 无关",
    ),
    "diagnose/device-error": Text(
        en="the GPU reported an error: {text}",
        zh="GPU 报告错误：{text}",
        en_hint="look at nvidia-smi and dmesg for Xid lines; leave this GPU out with parallel.gpus",
        zh_hint="查看 nvidia-smi 与 dmesg 中的 Xid 信息；可用 parallel.gpus 避开这块 GPU",
    ),
    "diagnose/import-error": Text(
        en="a module could not be imported: {text}",
        zh="模块导入失败：{text}",
        en_hint="install it into the interpreter of the ranks (see env.python)",
        zh_hint="把它安装到 rank 所用的解释器中（见 env.python）",
    ),
    "diagnose/missing-file": Text(
        en="a file is missing: {text}",
        zh="缺少文件：{text}",
        en_hint="check the paths in the task section: headway config show",
        zh_hint="检查 task 小节里的路径：headway config show",
    ),
    "diagnose/python-exception": Text(
        en="{type}: {text}",
        zh="{type}：{text}",
        en_hint="the same step would fail again, so nothing was retried; repair it, then headway resume",
        zh_hint="同一步重试仍会失败，所以没有重试；修复后运行 headway resume",
    ),
    "diagnose/recipe-exception": Text(
        en="{type}: {text}, in the recipe's code at {file}, line {line}",
        zh="{type}：{text}，出自配方代码 {file} 第 {line} 行",
        en_hint="the same step would fail again, so nothing was retried; correct that line, then headway resume",
        zh_hint="同一步重试仍会失败，所以没有重试；改好这一行后运行 headway resume",
    ),
    "diagnose/killed": Text(
        en="killed from outside ({signal})",
        zh="被外部终止（{signal}）",
    ),
    "diagnose/crashed": Text(
        en="crashed in native code ({signal})",
        zh="原生代码崩溃（{signal}）",
        en_hint="the last lines of its log name the place",
        zh_hint="日志最后几行指出了位置",
    ),
    "diagnose/illegal-instruction": Text(
        en="the CPU refused an instruction (SIGILL) before the first step was done: it, or its hypervisor, advertises "
        "an instruction set that it does not run",
        zh="第一步完成之前 CPU 拒绝执行某条指令（SIGILL）：CPU 或其虚拟机管理程序声明了某个指令集，实际却不能执行",
        en_hint="type: headway check --smoke   (finds the highest setting that works; later runs get it), or by hand: "
        "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16   (then AVX512_CORE, then AVX2)",
        zh_hint="运行：headway check --smoke   （找出可用的最高设置，之后的训练会自动采用）；或手动运行："
        "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16   （仍不行就依次改用 AVX512_CORE、AVX2）",
    ),
    "diagnose/foreign-illegal-instruction": Text(
        en="the CPU refused an instruction (SIGILL) before the first step was done: it, or its hypervisor, advertises "
        "an instruction set that it does not run",
        zh="第一步完成之前 CPU 拒绝执行某条指令（SIGILL）：CPU 或其虚拟机管理程序声明了某个指令集，实际却不能执行",
        en_hint="type: export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16   (then AVX512_CORE, then AVX2), and start it again; "
        "`headway check --smoke` tries them all",
        zh_hint="运行：export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16   （仍不行就依次改用 AVX512_CORE、AVX2），"
        "然后重新启动；`headway check --smoke` 会逐个尝试",
    ),
    "diagnose/exited": Text(
        en="ended with exit code {exit} and no word why",
        zh="以退出码 {exit} 结束，没有说明原因",
        en_hint="the last lines of its log may say more",
        zh_hint="日志最后几行可能有更多信息",
    ),
    "diagnose/early-exit": Text(
        en="ended with exit code 0 before training was finished",
        zh="训练尚未完成就以退出码 0 结束",
        en_hint="look for sys.exit or os._exit in the task's code",
        zh_hint="检查任务代码中的 sys.exit 或 os._exit",
    ),
    "diagnose/no-step": Text(
        en="said it was done without finishing a single step",
        zh="一步都没有完成就报告训练结束",
        en_hint="check train.steps and the size of the data",
        zh_hint="检查 train.steps 与数据量",
    ),
    "diagnose/nursery-died": Text(
        en="the process the ranks are forked from died ({signal})",
        zh="派生各 rank 的进程意外退出（{signal}）",
    ),
    "diagnose/unknown-end": Text(
        en="it is gone, and nobody could say how it ended",
        zh="进程已消失，无法得知其结束方式",
    ),
    "diagnose/fork-failed": Text(
        en="the rank could not be started: {text}",
        zh="无法启动该 rank：{text}",
        en_hint="raise the limit on processes (ulimit -u) or free memory",
        zh_hint="提高进程数上限（ulimit -u），或释放内存",
    ),
    "diagnose/foreign-device-out-of-memory": Text(
        en="the GPU ran out of memory: {text}",
        zh="GPU 显存不足：{text}",
        en_hint="lower the batch size a GPU and raise gradient accumulation by as much",
        zh_hint="减小每块 GPU 的批次，并相应增大梯度累积",
    ),
    "diagnose/foreign-host-out-of-memory": Text(
        en="the machine's memory ran out: {text}",
        zh="主机内存不足：{text}",
        en_hint="use fewer data loader workers or a smaller batch, or give the job more memory",
        zh_hint="减少数据加载进程或批次，或给作业分配更多内存",
    ),
    "diagnose/foreign-host-oom-kill": Text(
        en="killed by the kernel because memory ran out ({signal})",
        zh="主机内存耗尽，被内核终止（{signal}）",
        en_hint="use fewer data loader workers or a smaller batch, or give the job more memory",
        zh_hint="减少数据加载进程或批次，或给作业分配更多内存",
    ),
    "diagnose/foreign-shared-memory-full": Text(
        en="shared memory (/dev/shm) is full: {text}",
        zh="共享内存（/dev/shm）已满：{text}",
        en_hint="use num_workers=0, or start the container with a larger --shm-size",
        zh_hint="设 num_workers=0，或用更大的 --shm-size 启动容器",
    ),
    "diagnose/foreign-disk-full": Text(
        en="the disk is full: {text}",
        zh="磁盘已满：{text}",
        en_hint="free some space, then start again",
        zh_hint="腾出空间后重新启动",
    ),
    "diagnose/foreign-process-limit": Text(
        en="a limit on files or processes was reached: {text}",
        zh="达到了文件数或进程数上限：{text}",
        en_hint="raise it (ulimit -n 65535; ulimit -u unlimited) or use fewer data loader workers",
        zh_hint="提高上限（ulimit -n 65535; ulimit -u unlimited），或减少数据加载进程",
    ),
    "diagnose/foreign-worker-died": Text(
        en="a data loader process died: {text}",
        zh="数据加载进程意外退出：{text}",
        en_hint="run once with num_workers=0 to see its own error",
        zh_hint="用 num_workers=0 跑一次，看它自己的报错",
    ),
    "diagnose/foreign-device-error": Text(
        en="the GPU reported an error: {text}",
        zh="GPU 报告错误：{text}",
        en_hint="look at nvidia-smi and dmesg for Xid lines; leave this GPU out with --gpus",
        zh_hint="查看 nvidia-smi 与 dmesg 中的 Xid 信息；可用 --gpus 避开这块 GPU",
    ),
    "diagnose/foreign-import-error": Text(
        en="a module could not be imported: {text}",
        zh="模块导入失败：{text}",
        en_hint="install it into the interpreter that runs the script",
        zh_hint="把它安装到运行脚本的解释器中",
    ),
    "diagnose/foreign-missing-file": Text(
        en="a file is missing: {text}",
        zh="缺少文件：{text}",
        en_hint="check the path; relative ones begin where headway run was typed",
        zh_hint="检查路径；相对路径从输入 headway run 的目录算起",
    ),
    "diagnose/foreign-python-exception": Text(
        en="{type}: {text}",
        zh="{type}：{text}",
        en_hint="the same would happen again, so nothing was retried",
        zh_hint="重试仍会失败，所以没有重试",
    ),
    "diagnose/foreign-early-exit": Text(
        en="ended with exit code 0 while other ranks still needed it",
        zh="其他 rank 仍需要它时，以退出码 0 提前结束",
        en_hint="look for a return, break or sys.exit that only this rank reaches, such as data of uneven length",
        zh_hint="检查只有该 rank 会走到的 return、break 或 sys.exit，例如各 rank 数据长度不一",
    ),
    "diagnose/preempted": Text(
        en="ended by SIGTERM from outside: preempted, or somebody stopped it",
        zh="被外部的 SIGTERM 结束：被抢占，或有人停止了它",
        en_hint="start it again with --restarts 3: preemptions have a budget of their own",
        zh_hint="加 --restarts 3 重新启动：抢占单独计数",
    ),
    "diagnose/foreign-no-step": Text(
        en="ended with exit code 0, made an optimizer and never took a step",
        zh="以退出码 0 结束，创建了优化器却一步都没有训练",
        en_hint="check the number of epochs and the size of the data; a program that need not train: --no-training",
        zh_hint="检查轮数与数据量；本来就不训练的程序加 --no-training",
    ),
    "diagnose/foreign-left-behind": Text(
        en="ended with exit code 0, but left processes behind that did nothing for 30 s and were ended: {processes}",
        zh="以退出码 0 结束，但留下的进程 30 秒没有任何活动，已被终止：{processes}",
        en_hint="end them at the end of the script, or wait for them there (wait); --no-training waits without a limit",
        zh_hint="在脚本末尾结束这些进程，或用 wait 等待它们；加 --no-training 会一直等待",
    ),
    "diagnose/hang-rank-stopped": Text(
        en="rank {rank} has been stopped by a signal (SIGSTOP)",
        zh="rank {rank} 被信号暂停（SIGSTOP）",
        en_hint="kill -CONT {pid}    # lets it continue",
        zh_hint="kill -CONT {pid}    # 让它继续",
    ),
    "diagnose/hang-disk-wait": Text(
        en="rank {rank} waits for a disk ({place})",
        zh="rank {rank} 在等待磁盘（{place}）",
        en_hint="a network disk that has gone is the usual cause; look at dmesg",
        zh_hint="常见原因是网络磁盘失联；查看 dmesg",
    ),
    "diagnose/hang-collective-mismatch": Text(
        en="rank {rank} is in {own}, the others are in {others}",
        zh="rank {rank} 在 {own}，其他 rank 在 {others}",
        en_hint="every rank must call the same collectives in the same order and with the same shapes; see {place}",
        zh_hint="每个 rank 必须以相同顺序、相同形状调用相同的集合通信；见 {place}",
    ),
    "diagnose/hang-disagree": Text(
        en="rank {one} and rank {other} disagree: {others} and {own}",
        zh="rank {one} 与 rank {other} 不一致：前者在 {others}，后者在 {own}",
        en_hint="every rank must call the same collectives in the same order and with the same shapes; see {place}",
        zh_hint="每个 rank 必须以相同顺序、相同形状调用相同的集合通信；见 {place}",
    ),
    "diagnose/hang-data-stall": Text(
        en="rank {rank} waits for its data loader ({place})",
        zh="rank {rank} 在等待数据加载（{place}）",
        en_hint="look at the disk and at the data loader's workers",
        zh_hint="检查磁盘与数据加载进程",
    ),
    "diagnose/hang-rank-behind": Text(
        en="the others wait in {others}, rank {rank} is elsewhere ({place})",
        zh="其他 rank 在 {others} 等待，rank {rank} 却在别处（{place}）",
        en_hint="a collective that one rank skips never ends; look at the conditions around {place}",
        zh_hint="有 rank 跳过的集合通信永远不会结束；检查 {place} 附近的条件分支",
    ),
    "diagnose/hang-rank-busy": Text(
        en="the others wait in {others}, rank {rank} still computes ({place})",
        zh="其他 rank 在 {others} 等待，rank {rank} 仍在计算（{place}）",
    ),
    "diagnose/hang-all-wait": Text(
        en="all ranks wait in the same place ({own})",
        zh="所有 rank 停在同一处（{own}）",
        en_hint="look at the network between the ranks (NCCL_DEBUG=INFO, GLOO_SOCKET_IFNAME)",
        zh_hint="检查 rank 之间的网络（NCCL_DEBUG=INFO、GLOO_SOCKET_IFNAME）",
    ),
    "diagnose/collective-mismatch": Text(
        en="the ranks called collectives that do not fit each other: {text}",
        zh="各 rank 调用的集合通信互不匹配：{text}",
        en_hint="every rank must call the same collectives in the same order and with the same shapes",
        zh_hint="每个 rank 必须以相同顺序、相同形状调用相同的集合通信",
    ),
}
