"""What the readings of GPUs and host say while a run trains."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "devices/gpu-silent": Text(
        en="GPU {gpu} stopped answering ({why}); if a rank hangs now, this is the reason",
        zh="GPU {gpu} 不再响应（{why}）；如果此后有 rank 卡死，原因就在这里",
        en_hint="see its state:\n  nvidia-smi -q -i {gpu}",
        zh_hint="查看它的状态：\n  nvidia-smi -q -i {gpu}",
    ),
    "devices/gpu-hot": Text(
        en="GPU {gpu} lowers its clock because of heat: {temp} °C, {percent}% below its highest clock",
        zh="GPU {gpu} 因温度过高而降频：{temp} °C，比最高频率低 {percent}%",
        en_hint="see its temperatures and limits:\n  nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i {gpu}",
        zh_hint="查看温度与上限：\n  nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i {gpu}",
    ),
    "devices/gpu-brake": Text(
        en="the hardware slows GPU {gpu} down ({why}), {percent}% below its highest clock; check its power supply",
        zh="硬件使 GPU {gpu} 降频（{why}），比最高频率低 {percent}%；应检查供电",
        en_hint="see its power readings:\n  nvidia-smi -q -d POWER,PERFORMANCE -i {gpu}",
        zh_hint="查看供电读数：\n  nvidia-smi -q -d POWER,PERFORMANCE -i {gpu}",
    ),
    "devices/gpu-power-cap": Text(
        en="GPU {gpu} is held back by its power limit ({cap}): its clock is {percent}% below the highest",
        zh="GPU {gpu} 受功耗上限（{cap}）限制：频率比最高值低 {percent}%",
        en_hint="see which limit is allowed:\n  nvidia-smi -q -d POWER -i {gpu}",
        zh_hint="查看允许的功耗上限：\n  nvidia-smi -q -d POWER -i {gpu}",
    ),
    "devices/ecc": Text(
        en="GPU {gpu} reports {num} uncorrectable memory errors since the run started; results may be wrong",
        zh="GPU {gpu} 自训练开始以来报告了 {num} 个不可纠正的显存错误；结果可能有误",
        en_hint="see its error counts:\n  nvidia-smi -q -d ECC -i {gpu}",
        zh_hint="查看错误计数：\n  nvidia-smi -q -d ECC -i {gpu}",
    ),
    "devices/xid": Text(
        en="the driver reports Xid {xid} on GPU {gpu}",
        zh="驱动报告 GPU {gpu} 出现 Xid {xid} 错误",
        en_hint="see the kernel's messages:\n  dmesg | grep -i xid",
        zh_hint="查看内核日志：\n  dmesg | grep -i xid",
    ),
    "devices/disk-low": Text(
        en="only {free} left on the disk of the run directory; the next checkpoint may not fit",
        zh="训练目录所在磁盘只剩 {free}；下一个检查点可能放不下",
        en_hint="remove checkpoints that are not needed:\n  headway ckpt prune",
        zh_hint="删除不再需要的检查点：\n  headway ckpt prune",
    ),
    "devices/memory-low": Text(
        en="only {free} of {total} host memory is free; the kernel may kill a rank",
        zh="主机内存只剩 {free}（共 {total}）；内核可能强制终止某个 rank",
    ),
    "devices/sampler-gone": Text(
        en="the process that reads GPUs and host has ended; training continues without these readings",
        zh="读取 GPU 与主机状态的进程已退出；训练继续，但不再有这些读数",
    ),
    "devices/sampler-refused": Text(
        en="the process that reads GPUs and host did not start ({why}); training continues without these readings",
        zh="无法启动读取 GPU 与主机状态的进程（{why}）；训练继续，但没有这些读数",
    ),
}
