"""Texts of the machine stage and of `headway check`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    # findings
    "machine/no-gpu": Text(
        en="no GPU on this machine: training uses {cpus} CPU ranks", zh="本机没有 GPU：将用 {cpus} 个 CPU rank 训练"
    ),
    "machine/gpus-chosen": Text(
        en="{num} of {here} GPUs will be used: {list:list}", zh="将使用 {here} 张 GPU 中的 {num} 张：{list:list}"
    ),
    "machine/gpus-differ": Text(
        en="the GPUs are of different models ({list:list}); every step waits for the slowest one",
        zh="所选 GPU 型号不一（{list:list}），每一步都要等最慢的一张",
        en_hint=("use those of one kind:\n  parallel.gpus={same}"),
        zh_hint=("只用同一型号：\n  parallel.gpus={same}"),
    ),
    "machine/gpu-busy": Text(
        en="GPU {gpu} is in use: {used} of {total}, by {holders}",
        zh="GPU {gpu} 正被占用：已用 {used}（共 {total}），占用者 {holders}",
        en_hint=("wait for it, or use it anyway:\n  parallel.gpus={gpu}"),
        zh_hint=("等它空闲；一定要用就写：\n  parallel.gpus={gpu}"),
    ),
    "machine/gpu-lost": Text(
        en="GPU {gpu} is lost: the driver lists it but cannot communicate with it",
        zh="GPU {gpu} 已失联：驱动能列出它，但无法与它通信",
        en_hint=("look for Xid lines, then reset the GPU or reboot:\n  sudo dmesg | grep -i xid"),
        zh_hint=("查看 Xid 记录，然后重置该 GPU 或重启机器：\n  sudo dmesg | grep -i xid"),
    ),
    "machine/gpus-hidden": Text(
        en="CUDA_VISIBLE_DEVICES='{value}' hides all {hidden} GPUs: training uses the CPU",
        zh="CUDA_VISIBLE_DEVICES='{value}' 隐藏了全部 {hidden} 张 GPU：将在 CPU 上训练",
        en_hint=("show them again:\n  unset CUDA_VISIBLE_DEVICES"),
        zh_hint=("让它们重新可见：\n  unset CUDA_VISIBLE_DEVICES"),
    ),
    "machine/gpu-driver-broken": Text(
        en="the GPU driver does not respond: {said:said}",
        zh="GPU 驱动没有正常应答：{said:said}",
        en_hint=(
            "see its own error; after a driver update the machine has to be rebooted; `parallel.gpus=0` trains on the "
            "CPU:\n  nvidia-smi"
        ),
        zh_hint=("查看它自己的报错；驱动升级后需要重启机器；`parallel.gpus=0` 则用 CPU 训练：\n  nvidia-smi"),
    ),
    "machine/driver-too-old": Text(
        en="driver {driver} supports CUDA up to {serves}, but torch {torch} is built for CUDA {cuda}",
        zh="驱动 {driver} 最高支持 CUDA {serves}，而 torch {torch} 是为 CUDA {cuda} 构建的",
        en_hint="update the driver, or install a torch built for CUDA {serves} or older",
        zh_hint="升级驱动，或安装为 CUDA {serves} 及更早版本构建的 torch",
    ),
    "machine/torch-missing": Text(
        en="torch is not installed for {python}{why}",
        zh="{python} 没有安装 torch{why}",
        en_hint=("install it:\n  {python} -m pip install 'torch>=2.8'"),
        zh_hint=("安装：\n  {python} -m pip install 'torch>=2.8'"),
    ),
    "machine/torch-cpu-build": Text(
        en="torch {torch} is a CPU-only build, so the {gpus} GPUs of this machine are not used",
        zh="torch {torch} 是 CPU 版，本机的 {gpus} 张 GPU 用不上",
        en_hint=(
            "install a build for CUDA, here for CUDA 12.8:\n"
            "  {python} -m pip install --force-reinstall 'torch>=2.8' --index-url "
            "https://download.pytorch.org/whl/cu128"
        ),
        zh_hint=(
            "改装 CUDA 版，这里以 CUDA 12.8 为例：\n"
            "  {python} -m pip install --force-reinstall 'torch>=2.8' --index-url "
            "https://download.pytorch.org/whl/cu128"
        ),
    ),
    "machine/python-broken": Text(
        en="the interpreter of the ranks, {python}, cannot be run: {why:said}",
        zh="rank 所用的解释器 {python} 无法运行：{why:said}",
        en_hint=("name an interpreter that works:\n  env.python=$(which python3)"),
        zh_hint=("指定可用的解释器：\n  env.python=$(which python3)"),
    ),
    "machine/out-not-writable": Text(
        en="the output folder {out} is not writable: this user has no permission to write {place}, or it is not a "
        "folder",
        zh="输出目录 {out} 无法写入：当前用户无权写 {place}，或它不是目录",
        en_hint=("choose another place:\n  out=$HOME/runs"),
        zh_hint=("换一个位置：\n  out=$HOME/runs"),
    ),
    "machine/disk-full": Text(
        en="only {free} free at {place}, but a run needs at least {need}",
        zh="{place} 只剩 {free}，而一次训练至少需要 {need}",
        en_hint=("make room, or choose a place on another disk:\n  out=$HOME/runs"),
        zh_hint=("清理空间，或换到另一块磁盘：\n  out=$HOME/runs"),
    ),
    "machine/disk-low": Text(
        en="only {free} free at {place} (less than {need}): checkpoints may not fit",
        zh="{place} 只剩 {free}（低于 {need}）：可能放不下检查点",
        en_hint=("make room, choose a place on another disk with out=, or keep fewer checkpoints:\n  save.keep_last=1"),
        zh_hint=("清理空间，用 out= 换到另一块磁盘，或少保留检查点：\n  save.keep_last=1"),
    ),
    "machine/inodes-low": Text(
        en="only {free:,} more files can be created at {place} (less than {need:,})",
        zh="{place} 只能再建 {free:,} 个文件（低于 {need:,}）",
        en_hint=("delete small files there, or choose a place on another disk:\n  out=$HOME/runs"),
        zh_hint=("删除那里的小文件，或换到另一块磁盘：\n  out=$HOME/runs"),
    ),
    "machine/memory-low": Text(
        en="only {free} of {total} memory free (less than {need})",
        zh="内存只剩 {free}（共 {total}，低于 {need}）",
        en_hint=("see what uses it:\n  ps aux --sort=-rss | head"),
        zh_hint=("查看被谁占用：\n  ps aux --sort=-rss | head"),
    ),
    "machine/shm-small": Text(
        en="/dev/shm has {free} free, but {workers} data loader workers per rank need {need}",
        zh="/dev/shm 只剩 {free}，每个 rank 的 {workers} 个数据加载进程需要 {need}",
        en_hint=("start the container with --shm-size=8g, or do without data loader workers:\n  parallel.workers=0"),
        zh_hint=("启动容器时加 --shm-size=8g，或不使用数据加载进程：\n  parallel.workers=0"),
    ),
    "machine/nofile-low": Text(
        en="a process can open {have:,} files, but this run may need {need}",
        zh="每个进程最多打开 {have:,} 个文件，而这次训练可能需要 {need} 个",
        en_hint=("raise it in this shell:\n  ulimit -n {need}"),
        zh_hint=("在当前终端提高上限：\n  ulimit -n {need}"),
    ),
    "machine/env-left-over": Text(
        en="{list:list} in the environment has no effect: Headway sets these variables for every rank",
        zh="环境变量 {list:list} 不起作用：Headway 会为每个 rank 自行设置",
        en_hint=("remove them:\n  unset {names}"),
        zh_hint=("取消设置：\n  unset {names}"),
    ),
    "machine/omp-set": Text(
        en="OMP_NUM_THREADS={value} has no effect: parallel.threads sets the number of threads",
        zh="OMP_NUM_THREADS={value} 不起作用：线程数由 parallel.threads 决定",
        en_hint=("remove it; if you want that number, set parallel.threads={value}:\n  unset OMP_NUM_THREADS"),
        zh_hint=("取消设置；确实要用这个数就设 parallel.threads={value}：\n  unset OMP_NUM_THREADS"),
    ),
    # what the CPU really computes
    "machine/cpu-trying": Text(
        en="testing which instructions this CPU really executes (takes some seconds, once per machine and framework)",
        zh="正在测试本机 CPU 实际能执行哪些指令（需数秒，每台机器、每个框架版本只做一次）",
    ),
    "machine/cpu-computes": Text(
        en="the CPU executes everything it advertises: {list:list}", zh="CPU 能执行它声明的全部指令：{list:list}"
    ),
    "machine/cpu-limited": Text(
        en="the CPU advertises instructions that it cannot execute ({cases}); every process that computes gets "
        "{settings}",
        zh="CPU 声明了实际不能执行的指令（{cases}）；所有参与计算的进程都会设置 {settings}",
    ),
    "machine/cpu-own-value": Text(
        en="{values} is set, and the CPU fails with it ({cases}); your setting is kept",
        zh="已设置 {values}，而在此设置下 CPU 计算失败（{cases}）；你的设置保持不变",
        en_hint=("change it:\n  {fix}"),
        zh_hint=("改为：\n  {fix}"),
    ),
    "machine/cpu-no-precision": Text(
        en="this CPU cannot compute in {precision} with any setting ({cases})",
        zh="本机 CPU 在任何设置下都不能用 {precision} 计算（{cases}）",
        en_hint=("these work on this machine: {works:list}\n  train.precision={other}"),
        zh_hint=("本机可用的精度：{works:list}\n  train.precision={other}"),
    ),
    "machine/cpu-computes-nothing": Text(
        en="this CPU cannot run the framework of the ranks with any setting: {cases}",
        zh="本机 CPU 在任何设置下都无法运行各 rank 所用的框架：{cases}",
        en_hint="use a build of the framework made for this CPU, or another machine",
        zh_hint="改用为此 CPU 构建的框架版本，或换一台机器",
    ),
    # health of GPUs
    "machine/gpu-hot": Text(
        en="GPU {gpus} is at {temp} °C: it lowers its clock, and every rank waits for the slowest one",
        zh="GPU {gpus} 温度 {temp} °C：会自动降频，所有 rank 都要等最慢的一个",
        en_hint=(
            "check fans and airflow, or lower the power limit (`nvidia-smi -pl`); its temperatures and limits:\n"
            "  nvidia-smi -q -d TEMPERATURE,POWER -i {gpus}"
        ),
        zh_hint=(
            "检查风扇和风道，或降低功耗上限（`nvidia-smi -pl`）；查看温度与上限：\n"
            "  nvidia-smi -q -d TEMPERATURE,POWER -i {gpus}"
        ),
    ),
    "machine/gpu-throttled": Text(
        en="GPU {gpus} is throttled ({what:list}), SM clock {clock}: steps take many times longer",
        zh="GPU {gpus} 正被强制降频（{what:list}），SM 时钟 {clock}：每一步会慢很多倍",
        en_hint=(
            "check the power supply and cooling of the chassis:\n"
            "  nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE -i {gpus}"
        ),
        zh_hint=("检查机箱供电与散热：\n  nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE -i {gpus}"),
    ),
    "machine/gpu-power-capped": Text(
        en="GPU {gpus} draws {power} W of at most {cap} W: its clock is limited by power",
        zh="GPU {gpus} 功耗 {power} W，上限 {cap} W：时钟受功耗限制",
        en_hint=("nothing to repair; this shows the limit:\n  nvidia-smi -q -d POWER -i {gpus}"),
        zh_hint=("无需处理；查看上限：\n  nvidia-smi -q -d POWER -i {gpus}"),
    ),
    "machine/gpu-uncorrected": Text(
        en="GPU {gpus} has uncorrectable memory errors (since the driver was loaded: {num}, in total: {ever}): they "
        "crash ranks or corrupt weights",
        zh="GPU {gpus} 出现不可纠正的显存错误（驱动加载以来：{num}，累计：{ever}）：会使 rank 崩溃或损坏权重",
        en_hint=("stop its programs and reset it; replace it if the errors come back:\n  sudo nvidia-smi -r -i {gpus}"),
        zh_hint=("停掉占用程序后重置；反复出现就更换该卡：\n  sudo nvidia-smi -r -i {gpus}"),
    ),
    "machine/gpu-corrected": Text(
        en="GPU {gpus} corrected {num} memory errors since the driver was loaded: harmless now, but watch it",
        zh="GPU {gpus} 自驱动加载以来纠正了 {num} 次显存错误：暂无影响，需要留意",
        en_hint=("watch whether they grow:\n  nvidia-smi -q -d ECC -i {gpus}"),
        zh_hint=("观察是否增长：\n  nvidia-smi -q -d ECC -i {gpus}"),
    ),
    "machine/gpu-remap-pending": Text(
        en="GPU {gpus} has bad memory rows that are replaced only after a reset: until then errors will come back",
        zh="GPU {gpus} 有坏的显存行，重置后才会被替换：在此之前错误会再次出现",
        en_hint=("stop its programs, then reset it, or reboot:\n  sudo nvidia-smi -r -i {gpus}"),
        zh_hint=("停掉占用程序后重置，或重启机器：\n  sudo nvidia-smi -r -i {gpus}"),
    ),
    "machine/gpu-remap-failed": Text(
        en="GPU {gpus} has run out of spare memory rows: its memory can no longer be repaired",
        zh="GPU {gpus} 的备用显存行已用尽：显存无法再修复",
        en_hint="leave it out with parallel.gpus and have it replaced",
        zh_hint="用 parallel.gpus 避开它，并申请更换",
    ),
    "machine/gpu-pages-pending": Text(
        en="GPU {gpus} has memory pages that are retired only after a reset",
        zh="GPU {gpus} 有显存页等待重置后停用",
        en_hint=("stop its programs, then reset it, or reboot:\n  sudo nvidia-smi -r -i {gpus}"),
        zh_hint=("停掉占用程序后重置，或重启机器：\n  sudo nvidia-smi -r -i {gpus}"),
    ),
    "machine/gpu-pages-retired": Text(
        en="GPU {gpus} has retired {num} memory pages; it should be replaced when it reaches 60",
        zh="GPU {gpus} 已停用 {num} 个显存页：达到 60 个就该更换",
        en_hint=("see which:\n  nvidia-smi -q -d PAGE_RETIREMENT -i {gpus}"),
        zh_hint=("查看详情：\n  nvidia-smi -q -d PAGE_RETIREMENT -i {gpus}"),
    ),
    "machine/gpu-needs": Text(
        en="the driver requires this for GPU {gpus}: {what:list}",
        zh="驱动要求对 GPU {gpus} 执行：{what:list}",
        en_hint=("stop its programs, then reset it, or reboot:\n  sudo nvidia-smi -r -i {gpus}"),
        zh_hint=("停掉占用程序后重置，或重启机器：\n  sudo nvidia-smi -r -i {gpus}"),
    ),
    "machine/gpu-sensor-broken": Text(
        en="GPU {gpus} cannot read {what:list} (ERR!): cooling may have failed",
        zh="GPU {gpus} 读不到 {what:list}（ERR!）：散热可能已失效",
        en_hint=("check its fans and power cables before training:\n  nvidia-smi -q -i {gpus}"),
        zh_hint=("训练前检查风扇和供电线：\n  nvidia-smi -q -i {gpus}"),
    ),
    "machine/gpu-fabric": Text(
        en="the NVSwitch fabric of GPU {gpus} is not ready ({what}): CUDA refuses to start with error 802",
        zh="GPU {gpus} 的 NVSwitch 互连尚未就绪（{what}）：CUDA 会以错误 802 拒绝启动",
        en_hint=("start its manager:\n  sudo systemctl start nvidia-fabricmanager"),
        zh_hint=("启动其管理服务：\n  sudo systemctl start nvidia-fabricmanager"),
    ),
    "machine/gpu-pcie-narrow": Text(
        en="GPU {gpus} uses only {have} of {most} PCIe lanes: copying batches and checkpoints is slower",
        zh="GPU {gpus} 只用到 {most} 条 PCIe 通道中的 {have} 条：批次和检查点的拷贝会变慢",
        en_hint=("see how the slot is wired:\n  sudo lspci -vv | grep -i lnksta"),
        zh_hint=("查看插槽的链路：\n  sudo lspci -vv | grep -i lnksta"),
    ),
    "machine/gpu-ecc-off": Text(
        en="ECC is off on GPU {gpus}: a flipped bit in memory corrupts the weights without notice",
        zh="GPU {gpus} 未启用 ECC：显存翻位会悄悄进入权重",
        en_hint=("switch it on, then reset the GPU:\n  sudo nvidia-smi -i {gpus} -e 1"),
        zh_hint=("启用后重置该 GPU：\n  sudo nvidia-smi -i {gpus} -e 1"),
    ),
    "machine/gpu-ecc-pending": Text(
        en="the ECC mode of GPU {gpus} changes only after a reset",
        zh="GPU {gpus} 的 ECC 模式变更等待重置后生效",
        en_hint=("when it is idle:\n  sudo nvidia-smi -r -i {gpus}"),
        zh_hint=("空闲时运行：\n  sudo nvidia-smi -r -i {gpus}"),
    ),
    "machine/mig-on": Text(
        en="GPU {gpus} is split by MIG (instances: {num}): each rank gets one instance, and instances cannot "
        "communicate",
        zh="GPU {gpus} 被 MIG 切分（实例数：{num}）：每个 rank 只能用一个实例，实例之间无法通信",
        en_hint=("use it as one GPU:\n  sudo nvidia-smi -i {gpus} -mig 0"),
        zh_hint=("要整卡使用：\n  sudo nvidia-smi -i {gpus} -mig 0"),
    ),
    "machine/mig-empty": Text(
        en="GPU {gpus} is in MIG mode without an instance: no program can use it",
        zh="GPU {gpus} 处于 MIG 模式但没有任何实例：任何程序都用不了它",
        en_hint=(
            "use it as one GPU, or create instances:\n"
            "  sudo nvidia-smi -i {gpus} -mig 0\n"
            "  sudo nvidia-smi mig -i {gpus} -cgi 0 -C"
        ),
        zh_hint=(
            "整卡使用，或创建实例：\n  sudo nvidia-smi -i {gpus} -mig 0\n  sudo nvidia-smi mig -i {gpus} -cgi 0 -C"
        ),
    ),
    "machine/gpu-exclusive": Text(
        en="GPU {gpus} is in mode {what}: only one process can use it at a time",
        zh="GPU {gpus} 处于 {what} 模式：同一时间只允许一个进程使用",
        en_hint=("share it again:\n  sudo nvidia-smi -i {gpus} -c 0"),
        zh_hint=("恢复共享：\n  sudo nvidia-smi -i {gpus} -c 0"),
    ),
    "machine/gpu-prohibited": Text(
        en="GPU {gpus} does not allow computing (mode Prohibited)",
        zh="GPU {gpus} 禁止计算（Prohibited 模式）",
        en_hint=("allow it:\n  sudo nvidia-smi -i {gpus} -c 0"),
        zh_hint=("允许计算：\n  sudo nvidia-smi -i {gpus} -c 0"),
    ),
    "machine/gpu-memory-unseen": Text(
        en="{used} of {total} on GPU {gpus} is used by processes that are not visible here (in another container?)",
        zh="GPU {gpus} 有 {used}（共 {total}）被这里看不到的进程占用（可能在其他容器里）",
        en_hint=("look from the host:\n  nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv"),
        zh_hint=("在宿主机上查看：\n  nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv"),
    ),
    "machine/gpu-desktop": Text(
        en="a desktop runs on GPU {gpus} ({what:list}): it uses some memory and time",
        zh="GPU {gpus} 上运行着桌面（{what:list}）：会占用少量显存和时间",
        en_hint=("before a long run log out, or end the desktop:\n  sudo systemctl isolate multi-user.target"),
        zh_hint=("长时间训练前退出桌面，或运行：\n  sudo systemctl isolate multi-user.target"),
    ),
    "machine/gpu-persistence-off": Text(
        en="persistence mode is off on GPU {gpus}: the first access takes a few seconds longer",
        zh="GPU {gpus} 未开启持久模式：首次访问会多等几秒",
        en_hint=("switch it on:\n  sudo nvidia-smi -pm 1"),
        zh_hint=("开启：\n  sudo nvidia-smi -pm 1"),
    ),
    "machine/gpu-wddm": Text(
        en="GPU {gpus} is driven by Windows (WDDM): power and processes are not reported, and the desktop shares its "
        "memory",
        zh="GPU {gpus} 由 Windows 驱动（WDDM）：看不到功耗和进程，显存与桌面共用",
        en_hint="close graphical programs; update the driver on the Windows side",
        zh_hint="关闭占用显存的图形程序；驱动需在 Windows 侧升级",
    ),
    "machine/gpu-small": Text(
        en="the only GPU ({gpus}) has {total}: suitable only for small models or small batches",
        zh="唯一的 GPU（{gpus}）只有 {total} 显存：只适合小模型或较小的批大小",
        en_hint=("see what fits:\n  headway plan"),
        zh_hint=("查看能放下什么：\n  headway plan"),
    ),
    "machine/gpu-too-old": Text(
        en="GPU {gpus} ({name}) has compute capability {capability}, but current torch versions support only {least} "
        "or higher",
        zh="GPU {gpus}（{name}）计算能力为 {capability}，当前的 torch 都不支持低于 {least} 的卡",
        en_hint=("use another GPU, or train on the CPU:\n  parallel.gpus=0"),
        zh_hint=("换用其他 GPU，或在 CPU 上训练：\n  parallel.gpus=0"),
    ),
    "machine/gpu-no-bf16": Text(
        en="GPU {gpus} ({name}, compute capability {capability}) does not support bf16: training uses fp16 or fp32",
        zh="GPU {gpus}（{name}，计算能力 {capability}）不支持 bf16：将用 fp16 或 fp32 训练",
        en_hint="leave train.precision=auto, and fp16 is chosen",
        zh_hint="保持 train.precision=auto，会自动选用 fp16",
    ),
    "machine/gpu-not-in-build": Text(
        en="torch built for CUDA {cuda} has no kernels for {name} (compute capability {capability})",
        zh="为 CUDA {cuda} 构建的 torch 不含 {name}（计算能力 {capability}）的 kernel",
        en_hint=(
            "install the {use} build from PyTorch's {use} index; the line for it: "
            "https://pytorch.org/get-started/locally"
        ),
        zh_hint="从 PyTorch 的 {use} 源安装 {use} 构建；安装命令见 https://pytorch.org/get-started/locally",
    ),
    "machine/vgpu-host": Text(
        en="a vGPU host lends GPU {gpus} to {num} virtual machines: it cannot be used for training here",
        zh="GPU {gpus} 由 vGPU 宿主机借给了 {num} 个虚拟机：在这里无法训练",
        en_hint="train inside the virtual machine, or install the compute driver here",
        zh_hint="到虚拟机内训练，或在本机安装计算驱动",
    ),
    # drivers and versions
    "machine/driver-old": Text(
        en="driver {driver} supports CUDA up to {serves}, but current torch needs CUDA {need} or newer",
        zh="驱动 {driver} 最高支持 CUDA {serves}，而当前的 torch 需要 CUDA {need} 以上",
        en_hint="update the driver to 525 or newer, or install an older torch built for CUDA {serves}",
        zh_hint="把驱动升级到 525 以上，或安装为 CUDA {serves} 构建的旧版 torch",
    ),
    "machine/driver-no-cuda": Text(
        en="driver {driver} does not provide CUDA (CUDA Version N/A): torch will not find a GPU",
        zh="驱动 {driver} 不提供 CUDA（CUDA Version: N/A）：torch 找不到任何 GPU",
        en_hint=(
            "install the data-centre or desktop driver; a container needs `--gpus all -e "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility`"
        ),
        zh_hint="安装数据中心版或桌面版驱动；容器启动时加 `--gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility`",
    ),
    "machine/driver-mismatch": Text(
        en="the driver library ({library}) and the loaded kernel module have different versions",
        zh="驱动的用户态库（{library}）与已加载的内核模块版本不一致",
        en_hint=("a reboot is needed after a driver update; `parallel.gpus=0` trains on the CPU:\n  sudo reboot"),
        zh_hint=("驱动升级后需要重启；`parallel.gpus=0` 则用 CPU 训练：\n  sudo reboot"),
    ),
    "machine/driver-not-loaded": Text(
        en="the NVIDIA driver is not installed or not loaded ({said:said})",
        zh="NVIDIA 驱动未安装或未加载（{said:said}）",
        en_hint=("load it; a container needs `--gpus all`:\n  sudo modprobe nvidia"),
        zh_hint=("加载驱动；容器启动时加 `--gpus all`：\n  sudo modprobe nvidia"),
    ),
    "machine/container-lost": Text(
        en="the driver reports an unknown error, as it does in a container that has lost its GPUs ({said:said})",
        zh="驱动返回未知错误：容器失去 GPU 时就是这样（{said:said}）",
        en_hint=(
            "restart the container; if it happens again after `systemctl daemon-reload`, name the devices with "
            "`--device /dev/nvidia0`; `parallel.gpus=0` trains on the CPU"
        ),
        zh_hint="重启容器；若在 `systemctl daemon-reload` 之后再次出现，用 `--device /dev/nvidia0` 显式传入设备；"
        "`parallel.gpus=0` 则用 CPU 训练",
    ),
    "machine/no-devices": Text(
        en="the driver is loaded but finds no GPU",
        zh="驱动已加载，但没有找到任何 GPU",
        en_hint=("look for it:\n  lspci | grep -i nvidia\n  sudo dmesg | grep -iE 'nvrm|xid'"),
        zh_hint=("查找原因：\n  lspci | grep -i nvidia\n  sudo dmesg | grep -iE 'nvrm|xid'"),
    ),
    "machine/gpu-lost-bus": Text(
        en="the driver cannot communicate with the GPU at {bus} ({said:said})",
        zh="驱动无法与位于 {bus} 的 GPU 通信（{said:said}）",
        en_hint=(
            "look for its Xid, then reboot; if it happens again, check power and seating; `parallel.gpus=0` trains on "
            "the CPU:\n  sudo dmesg | grep -i xid"
        ),
        zh_hint=(
            "查看 Xid 后重启；若反复出现，检查供电和插槽；`parallel.gpus=0` 则用 CPU 训练：\n  sudo dmesg | grep -i xid"
        ),
    ),
    "machine/gpu-init-failed": Text(
        en="the driver could not start the GPU at {bus}",
        zh="驱动无法启动位于 {bus} 的 GPU",
        en_hint="reboot; if that does not help, reseat the board and check its power cables",
        zh_hint="重启；仍不行就重新插卡并检查供电线",
    ),
    "machine/cuda-compat": Text(
        en="driver {driver} itself supports CUDA {native}, but CUDA {shown} is shown: compatibility libraries are in "
        "use",
        zh="驱动 {driver} 本身支持 CUDA {native}，却显示 {shown}：正在使用前向兼容库",
        en_hint="this works only on data-centre GPUs; otherwise update the driver",
        zh_hint="仅数据中心 GPU 支持这种方式；其他显卡需升级驱动",
    ),
    "machine/smi-differs": Text(
        en="nvidia-smi has version {smi}, the driver has version {driver}: the driver's version applies",
        zh="nvidia-smi 版本为 {smi}，驱动版本为 {driver}：以驱动为准",
        en_hint="install both from the same package",
        zh_hint="从同一个软件包安装",
    ),
    "machine/toolkit-newer": Text(
        en="the CUDA toolkit on this machine is {toolkit}, but the driver supports only up to {serves}: kernels "
        "compiled here may not load",
        zh="本机 CUDA 工具包是 {toolkit}，驱动只支持到 {serves}：在这里编译的 kernel 可能无法加载",
        en_hint="update the driver, or compile with the toolkit for {serves}",
        zh_hint="升级驱动，或改用 {serves} 的工具包编译",
    ),
    "machine/toolkit-old": Text(
        en="the CUDA toolkit on this machine is {toolkit}: too old to compile extensions for current torch",
        zh="本机 CUDA 工具包是 {toolkit}：太旧，无法为当前的 torch 编译扩展",
        en_hint="wheels need no toolkit; to compile, install CUDA 12 and set CUDA_HOME",
        zh_hint="预编译包不需要工具包；要编译就安装 CUDA 12 并设置 CUDA_HOME",
    ),
    "machine/toolkit-differs": Text(
        en="the CUDA toolkit on this machine is {toolkit}, but torch is built for CUDA {cuda}: extensions are "
        "compiled for a different CUDA version",
        zh="本机 CUDA 工具包是 {toolkit}，torch 为 {cuda} 构建：扩展会按另一个 CUDA 版本编译",
        en_hint="this matters only when you compile extensions; then point CUDA_HOME at CUDA {cuda}",
        zh_hint="只在本机编译扩展时有影响；届时把 CUDA_HOME 指向 CUDA {cuda}",
    ),
    "machine/packages-disagree": Text(
        en="torch is built for CUDA {cuda}, but cudatoolkit {toolkit} is installed in the same environment",
        zh="torch 为 CUDA {cuda} 构建，同一环境里却装着 cudatoolkit {toolkit}",
        en_hint="remove one of the two, preferably by creating a new environment",
        zh_hint="二者只留其一，最好新建一个环境",
    ),
    "machine/vision-pair": Text(
        en="torchvision {vision} was not compiled for torch {torch} (needed: {want}): its operators fail to load",
        zh="torchvision {vision} 不是为 torch {torch} 编译的（应为 {want}）：其算子会加载失败",
        en_hint=("install the one that belongs to it:\n  python -m pip install 'torchvision=={want}.*'"),
        zh_hint=("安装与之配套的版本：\n  python -m pip install 'torchvision=={want}.*'"),
    ),
    "machine/numpy-pair": Text(
        en="torch {torch} was compiled for numpy 1, but numpy {numpy} is installed: tensors cannot be converted to "
        "arrays",
        zh="torch {torch} 按 numpy 1 编译，却装着 numpy {numpy}：张量无法转换成数组",
        en_hint=("install an older one:\n  python -m pip install 'numpy<2'"),
        zh_hint=("安装较旧的版本：\n  python -m pip install 'numpy<2'"),
    ),
    "machine/python-pair": Text(
        en="torch {torch} does not support Python {python} (supported since torch {need}): parts of it fail when "
        "they are used",
        zh="torch {torch} 不支持 Python {python}（{need} 起才支持）：部分功能在使用时会失败",
        en_hint=("install a newer one:\n  python -m pip install -U 'torch>={need}'"),
        zh_hint=("安装较新的版本：\n  python -m pip install -U 'torch>={need}'"),
    ),
    "machine/p2p-driver": Text(
        en="several {name} with driver {driver}: it claims P2P support but delivers wrong data or hangs (fixed in "
        "{need})",
        zh="驱动 {driver} 下有多张 {name}：它声称支持 P2P，却会传错数据或卡死（{need} 已修复）",
        en_hint=("update the driver, or do without P2P:\n  export NCCL_P2P_DISABLE=1"),
        zh_hint=("升级驱动，或不使用 P2P：\n  export NCCL_P2P_DISABLE=1"),
    ),
    "machine/torch-debug": Text(
        en="torch {torch} is a debug build, which is many times slower",
        zh="torch {torch} 是调试版：速度会慢很多倍",
        en_hint="install a release build from pytorch.org",
        zh_hint="从 pytorch.org 安装正式版",
    ),
    "machine/cuda-unavailable": Text(
        en="torch {torch} finds no usable GPU",
        zh="torch {torch} 找不到可用的 GPU",
        en_hint=("see why:\n  python -c 'import torch; torch.cuda.init()'"),
        zh_hint=("查看原因：\n  python -c 'import torch; torch.cuda.init()'"),
    ),
    "machine/ops-missing": Text(
        en="DeepSpeed operators that cannot be compiled here: {list:list} (this matters only if you use them)",
        zh="无法在此编译的 DeepSpeed 算子：{list:list}（用到时才有影响）",
        en_hint=("see why:\n  ds_report"),
        zh_hint=("查看原因：\n  ds_report"),
    ),
    "machine/wsl": Text(
        en="this is WSL: it uses the Windows driver, which does not report the GPU's power and processes",
        zh="当前是 WSL：驱动来自 Windows，看不到 GPU 的功耗和进程",
        en_hint="update the driver on the Windows side, never inside WSL",
        zh_hint="在 Windows 侧升级驱动，不要在 WSL 里安装驱动",
    ),
    "machine/docker-no-nvidia": Text(
        en="docker has no nvidia runtime ({list:list}): containers get no GPU",
        zh="docker 没有 nvidia 运行时（{list:list}）：容器用不了 GPU",
        en_hint=(
            "install nvidia-container-toolkit, then:\n"
            "  sudo nvidia-ctk runtime configure --runtime=docker\n"
            "  sudo systemctl restart docker"
        ),
        zh_hint=(
            "安装 nvidia-container-toolkit，然后运行：\n"
            "  sudo nvidia-ctk runtime configure --runtime=docker\n"
            "  sudo systemctl restart docker"
        ),
    ),
    "machine/docker-default": Text(
        en="docker has the nvidia runtime, but uses {runtime} by default",
        zh="docker 装有 nvidia 运行时，但默认用 {runtime}",
        en_hint="start containers with `docker run --gpus all`",
        zh_hint="启动容器时写 `docker run --gpus all`",
    ),
    "machine/rocm-low-power": Text(
        en="the AMD GPUs are in a low-power state: they wake up when they are used",
        zh="AMD GPU 处于低功耗状态：使用时会自动唤醒",
        en_hint="no action needed",
        zh_hint="无需处理",
    ),
    # links
    "machine/links-slow": Text(
        en="no NVLink between the GPUs ({list:list}): all communication goes through the CPU ({kind})",
        zh="GPU 之间没有 NVLink（{list:list}）：每次通信都要经过处理器（{kind}）",
        en_hint=("prefer plain replicas with gradient accumulation:\n  parallel.strategy=ddp batch.accumulation=4"),
        zh_hint=("优先用普通数据并行加梯度累积：\n  parallel.strategy=ddp batch.accumulation=4"),
    ),
    "machine/links-pcie": Text(
        en="the GPUs are connected by PCIe switches ({list:list}), without NVLink",
        zh="GPU 之间通过 PCIe 交换机相连（{list:list}），没有 NVLink",
        en_hint="fine for parallel.strategy=ddp; sharding (fsdp) will be slower",
        zh_hint="适合 parallel.strategy=ddp；分片（fsdp）会慢一些",
    ),
    "machine/links-uneven": Text(
        en="pairs of GPUs are connected in different ways ({list:list}): the slowest pair determines the speed",
        zh="各对 GPU 的连接方式不同（{list:list}）：最慢的一对决定速度",
        en_hint=("with fewer GPUs, choose a group with fast links:\n  nvidia-smi topo -m"),
        zh_hint=("使用较少的 GPU 时，选连接快的一组：\n  nvidia-smi topo -m"),
    ),
    "machine/nvlink-down": Text(
        en="GPU {gpu} has {up} NVLinks up and {down} down: communication falls back to PCIe or hangs",
        zh="GPU {gpu} 有 {up} 条 NVLink 正常、{down} 条断开：通信会退回 PCIe 或卡死",
        en_hint=("see which; then restart the fabric manager or reboot the node:\n  nvidia-smi nvlink -s -i {gpu}"),
        zh_hint=("查看是哪条链路；然后重启 fabric manager 或整台机器：\n  nvidia-smi nvlink -s -i {gpu}"),
    ),
    "machine/p2p-closed": Text(
        en="{num} of {pairs} pairs of GPUs cannot access each other's memory ({list:list}): NCCL uses /dev/shm instead",
        zh="{pairs} 对 GPU 中有 {num} 对不能直接互访显存（{list:list}）：NCCL 会改走 /dev/shm",
        en_hint="this is normal on consumer boards; keep 1 GiB of /dev/shm free",
        zh_hint="消费级显卡通常如此；保证 /dev/shm 有 1 GiB 以上",
    ),
    # Ascend
    "machine/npu-unwell": Text(
        en="NPU {npu} ({name}) reports health {health}",
        zh="NPU {npu}（{name}）健康状态为 {health}",
        en_hint=("see why:\n  npu-smi info -t health -i {npu}"),
        zh_hint=("查看原因：\n  npu-smi info -t health -i {npu}"),
    ),
    "machine/npu-hot": Text(
        en="NPU {npu} ({name}) is at {temp} °C and lowers its clock",
        zh="NPU {npu}（{name}）温度 {temp} °C，会自动降频",
        en_hint=("check cooling:\n  npu-smi info -t temp -i {npu}"),
        zh_hint=("检查散热：\n  npu-smi info -t temp -i {npu}"),
    ),
    "machine/npu-busy": Text(
        en="NPU {npu} ({name}) is in use: {used} of {total}",
        zh="NPU {npu}（{name}）正被占用：已用 {used}（共 {total}）",
        en_hint=("see what uses it:\n  npu-smi info"),
        zh_hint=("查看占用者：\n  npu-smi info"),
    ),
    "machine/npu-driver-broken": Text(
        en="npu-smi does not respond: {said:said}",
        zh="npu-smi 没有正常应答：{said:said}",
        en_hint=("see its own error; the user must be in the group HwHiAiUser:\n  npu-smi info"),
        zh_hint=("查看它自己的报错；当前用户须在 HwHiAiUser 组：\n  npu-smi info"),
    ),
    # kernel log
    "machine/gpu-fallen": Text(
        en="the GPU at {bus} has fallen off the bus (Xid {xid}, {num} times): it cannot be used until a reboot",
        zh="位于 {bus} 的 GPU 已从总线掉线（Xid {xid}，{num} 次）：重启前无法使用",
        en_hint=(
            "reboot; if it happens again, check power, cooling and seating, then have it replaced:\n  sudo reboot"
        ),
        zh_hint=("重启；反复出现时检查供电、散热和插槽，再申请更换：\n  sudo reboot"),
    ),
    "machine/xid-gsp": Text(
        en="the GPU at {bus} does not respond to its driver (Xid {xid}, {num} times, GSP): programs on it hang",
        zh="位于 {bus} 的 GPU 不回应驱动（Xid {xid}，{num} 次，GSP）：其上的程序会卡死",
        en_hint="drain the node, then reset the GPU or reboot; update the driver if it happens again",
        zh_hint="排空节点后重置该 GPU 或重启；反复出现时升级驱动",
    ),
    "machine/xid-remap": Text(
        en="the GPU at {bus} marked bad memory rows (Xid {xid}, {num} times): they are replaced at the next reset",
        zh="位于 {bus} 的 GPU 标记了坏的显存行（Xid {xid}，{num} 次）：下次重置时替换",
        en_hint="reset the GPU when it is idle with `nvidia-smi -r -i` and its index",
        zh_hint="空闲时重置该 GPU：`nvidia-smi -r -i` 加它的编号",
    ),
    "machine/xid-remap-failed": Text(
        en="the GPU at {bus} could not replace bad memory rows (Xid {xid}, {num} times)",
        zh="位于 {bus} 的 GPU 无法替换坏的显存行（Xid {xid}，{num} 次）",
        en_hint="take the node out and have the board replaced",
        zh_hint="把该节点下线并更换显卡",
    ),
    "machine/xid-memory": Text(
        en="the GPU at {bus} had memory errors it could not correct (Xid {xid}, {num} times)",
        zh="位于 {bus} 的 GPU 出现无法纠正的显存错误（Xid {xid}，{num} 次）",
        en_hint=(
            "reset the GPU with `nvidia-smi -r -i` and its index, then look at its errors:\n  nvidia-smi -q -d ECC"
        ),
        zh_hint=("用 `nvidia-smi -r -i` 加编号重置该 GPU，然后查看错误计数：\n  nvidia-smi -q -d ECC"),
    ),
    "machine/xid-link": Text(
        en="the GPU at {bus} had NVLink errors (Xid {xid}, {num} times): communication may hang",
        zh="位于 {bus} 的 GPU 出现 NVLink 错误（Xid {xid}，{num} 次）：通信可能卡死",
        en_hint=("see the counts; reboot the node if they grow:\n  nvidia-smi nvlink -e"),
        zh_hint=("查看计数；若持续增长，重启节点：\n  nvidia-smi nvlink -e"),
    ),
    "machine/xid-program": Text(
        en="a program on the GPU at {bus} caused an error (Xid {xid}, {num} times): the machine itself is fine",
        zh="位于 {bus} 的 GPU 上有程序出错（Xid {xid}，{num} 次）：机器本身正常",
        en_hint="no action needed on this machine; check that program",
        zh_hint="本机无需处理；检查那个程序",
    ),
    "machine/xid-other": Text(
        en="the driver reported Xid {xid} ({num} times) for the GPU at {bus}",
        zh="驱动在位于 {bus} 的 GPU 上报告了 Xid {xid}（{num} 次）",
        en_hint=("look it up in NVIDIA's list of Xid errors:\n  sudo dmesg | grep -i xid"),
        zh_hint=("在 NVIDIA 的 Xid 列表中查询：\n  sudo dmesg | grep -i xid"),
    ),
    "machine/sxid": Text(
        en="an NVSwitch reported SXid {sxid}: links between the GPUs are faulty",
        zh="NVSwitch 报告了 SXid {sxid}：GPU 之间的链路有故障",
        en_hint=("restart the fabric manager, or reboot:\n  sudo systemctl restart nvidia-fabricmanager"),
        zh_hint=("重启 fabric manager 或整机：\n  sudo systemctl restart nvidia-fabricmanager"),
    ),
    "machine/oom-killed": Text(
        en="the kernel killed {name} (pid {pid}, {held}) because the machine ran out of memory",
        zh="内核因整机内存不足强制终止了 {name}（pid {pid}，{held}）",
        en_hint=("lower parallel.workers, or free memory:\n  ps aux --sort=-rss | head"),
        zh_hint=("调低 parallel.workers，或释放内存：\n  ps aux --sort=-rss | head"),
    ),
    "machine/oom-unnamed": Text(
        en="memory ran out when {name} requested more, and the kernel killed a process that the log does not name",
        zh="{name} 申请内存时内存已耗尽，内核强制终止了一个进程（日志没有写明是哪个）",
        en_hint=("find it:\n  sudo dmesg -T | grep -i 'killed process'"),
        zh_hint=("查找：\n  sudo dmesg -T | grep -i 'killed process'"),
    ),
    "machine/oom-group": Text(
        en="the kernel killed {name} (pid {pid}, {held}) because its container reached its memory limit",
        zh="内核因容器达到内存上限强制终止了 {name}（pid {pid}，{held}）",
        en_hint="raise the limit (`docker run --memory`, or `--mem` of the scheduler), or lower parallel.workers",
        zh_hint="提高上限（`docker run --memory`，或调度器的 `--mem`），或调低 parallel.workers",
    ),
    "machine/swap-full": Text(
        en="all {total} of swap space are in use",
        zh="{total} 交换空间已全部用尽",
        en_hint=("see what uses it:\n  ps aux --sort=-rss | head"),
        zh_hint=("查看占用者：\n  ps aux --sort=-rss | head"),
    ),
    # limits and room
    "machine/memlock-low": Text(
        en="a process can lock only {have} of memory ({need} needed): InfiniBand refuses to start",
        zh="每个进程只能锁定 {have} 内存（需要 {need}）：InfiniBand 会拒绝启动",
        en_hint=(
            "raise it (a container: `--ulimit memlock=-1`); without InfiniBand nothing is needed:\n"
            "  ulimit -l unlimited"
        ),
        zh_hint=("提高上限（容器：`--ulimit memlock=-1`）；没有 InfiniBand 时无需处理：\n  ulimit -l unlimited"),
    ),
    "machine/nproc-low": Text(
        en="this user can have {have:,} processes and threads ({need} needed): ranks fail when they start their "
        "threads",
        zh="当前用户最多 {have:,} 个进程和线程（需要 {need}）：rank 启动线程时会失败",
        en_hint=("raise it in this shell:\n  ulimit -u {need}"),
        zh_hint=("在当前终端提高上限：\n  ulimit -u {need}"),
    ),
    "machine/few-cores": Text(
        en="only {cores} cores: ranks and their data loader workers share them",
        zh="只有 {cores} 个核：rank 和数据加载进程要共用",
        en_hint=("keep parallel.workers small; see the plan:\n  headway plan"),
        zh_hint=("parallel.workers 不宜大；查看计划：\n  headway plan"),
    ),
    "machine/memory-small": Text(
        en="only {total} of memory (less than {need}): suitable only for small models",
        zh="内存共 {total}（低于 {need}）：只适合小模型",
        en_hint=("see what fits:\n  headway plan"),
        zh_hint=("查看能放下什么：\n  headway plan"),
    ),
    "machine/no-swap": Text(
        en="there is no swap space: when memory runs out, a process is killed immediately",
        zh="没有交换空间：内存用尽时会立即有进程被强制终止",
        en_hint=("watch the memory:\n  free -h"),
        zh_hint=("留意内存：\n  free -h"),
    ),
    "machine/shm-little": Text(
        en="/dev/shm has only {total} ({need} needed): data loader workers and NCCL crash with a bus error when it "
        "is full",
        zh="/dev/shm 只有 {total}（需要 {need}）：写满时数据加载进程和 NCCL 会以 bus error 结束",
        en_hint=("make it larger; a container needs `--shm-size=8g`:\n  sudo mount -o remount,size=8G /dev/shm"),
        zh_hint=("调大它；容器启动时加 `--shm-size=8g`：\n  sudo mount -o remount,size=8G /dev/shm"),
    ),
    "machine/mount-filling": Text(
        en="{mount} is {used}% full, {free} free: checkpoints may not fit",
        zh="{mount} 已用 {used}%，剩余 {free}：可能放不下检查点",
        en_hint=(
            "make room, or choose a place on another disk with out=; the largest folders:\n"
            "  du -xh {mount} | sort -h | tail"
        ),
        zh_hint=("清理空间，或用 out= 换到另一块磁盘；查看最大的目录：\n  du -xh {mount} | sort -h | tail"),
    ),
    "machine/gpu-inforom": Text(
        en="the infoROM of the GPU at {bus} is corrupted: the errors and memory pages it reports cannot be trusted",
        zh="位于 {bus} 的 GPU 的 infoROM 已损坏：它报告的错误和显存页信息不可信",
        en_hint="use another GPU for long runs, and have the manufacturer repair the board's firmware",
        zh_hint="长时间训练换用别的 GPU，并联系厂商修复该卡的固件",
    ),
    "machine/quota-low": Text(
        en="the quota at {place} leaves {free} ({used} of {limit} used), but a checkpoint needs {need}",
        zh="{place} 的配额只剩 {free}（已用 {used}，共 {limit}），而一个检查点需要 {need}",
        en_hint=("make room, ask for a larger quota, or choose a place on another disk:\n  out=$HOME/runs"),
        zh_hint=("清理空间、申请更大的配额，或换到另一块磁盘：\n  out=$HOME/runs"),
    ),
    "machine/ib-down": Text(
        en="{num} of {ports} InfiniBand or RoCE ports are not active ({list:list}): NCCL uses the others, or Ethernet",
        zh="{ports} 个 InfiniBand 或 RoCE 端口中有 {num} 个未激活（{list:list}）：NCCL 会改用其余端口或以太网",
        en_hint=("check cable, switch and subnet manager, then look again:\n  ibstat"),
        zh_hint=("检查线缆、交换机和子网管理器，然后查看：\n  ibstat"),
    ),
    "machine/node-unwell": Text(
        en="node {node} has the state {state} in Slurm (reason: {why:said}): no job starts there",
        zh="Slurm 给节点 {node} 的状态是 {state}（原因：{why:said}）：作业不会在那里启动",
        en_hint=("choose another node, or ask the administrator:\n  scontrol show node {node}"),
        zh_hint=("换一个节点，或询问管理员：\n  scontrol show node {node}"),
    ),
    "machine/write-refused": Text(
        en="{need} could not be reserved at {place}: {why:said}; a checkpoint of this run would fail in the same way",
        zh="无法在 {place} 预留 {need}：{why:said}；这次训练的检查点会同样写不下",
        en_hint=("look at quota, limits and space:\n  quota -s\n  ulimit -f\n  df -h {place}"),
        zh_hint=("查看配额、限制和剩余空间：\n  quota -s\n  ulimit -f\n  df -h {place}"),
    ),
    "machine/clock-apart": Text(
        en="the clock of this machine and that of the disk at {place} differ by {apart} s: the times of files and "
        "runs will be wrong",
        zh="本机时钟与 {place} 所在磁盘的时钟相差 {apart} 秒：文件和训练的时间会因此出错",
        en_hint=("synchronise the clock:\n  sudo timedatectl set-ntp true"),
        zh_hint=("同步时钟：\n  sudo timedatectl set-ntp true"),
    ),
    "machine/clock-wrong": Text(
        en="the clock of this machine shows {year}, which is before Headway was written: certificates and run times "
        "will be wrong",
        zh="本机时钟显示为 {year} 年，早于 Headway 的发布：证书和训练时间都会出错",
        en_hint=("synchronise the clock:\n  sudo timedatectl set-ntp true"),
        zh_hint=("同步时钟：\n  sudo timedatectl set-ntp true"),
    ),
    "machine/port-refused": Text(
        en="no port can be opened on 127.0.0.1: {why:said}; the ranks could not connect to each other",
        zh="无法在 127.0.0.1 上监听：{why:said}；rank 之间无法建立连接",
        en_hint=("bring the loopback up:\n  sudo ip link set lo up"),
        zh_hint=("启用回环接口：\n  sudo ip link set lo up"),
    ),
    "machine/tracker-unreachable": Text(
        en="the tracker at {address} ({name}) does not respond: {why:said}",
        zh="跟踪服务 {address}（{name}）没有应答：{why:said}",
        en_hint=("remove it, or work offline:\n  unset {name}\n  export WANDB_MODE=offline"),
        zh_hint=("取消设置，或离线工作：\n  unset {name}\n  export WANDB_MODE=offline"),
    ),
    "machine/env-renamed": Text(
        en="{name}={value} has no effect: the current name is {use}",
        zh="{name}={value} 不起作用：现在的名字是 {use}",
        en_hint=("remove it:\n  unset {name}"),
        zh_hint=("取消设置：\n  unset {name}"),
    ),
    "machine/env-unread": Text(
        en="{name}={value} has no effect: Headway does not read it",
        zh="{name}={value} 不起作用：Headway 不读取它",
        en_hint=("remove it:\n  unset {name}"),
        zh_hint=("取消设置：\n  unset {name}"),
    ),
    "machine/env-debug": Text(
        en="{name}={value} is for debugging and makes every step slower",
        zh="{name}={value} 用于调试，会拖慢每一步",
        en_hint=("remove it:\n  unset {name}"),
        zh_hint=("取消设置：\n  unset {name}"),
    ),
    "machine/env-bytecode": Text(
        en="{name}={value}: every rank compiles all modules again when it starts",
        zh="{name}={value}：每个 rank 启动时都要重新编译所有模块",
        en_hint=("remove it:\n  unset {name}"),
        zh_hint=("取消设置：\n  unset {name}"),
    ),
    "machine/env-link-off": Text(
        en="{name}={value} turns off a fast path between GPUs: communication is slower",
        zh="{name}={value} 关闭了 GPU 之间的一条快速通道：通信会变慢",
        en_hint=("unless it was set on purpose:\n  unset {name}"),
        zh_hint=("若非有意设置：\n  unset {name}"),
    ),
    "machine/env-order": Text(
        en="{name}={value}: GPU numbers differ from those of nvidia-smi, so parallel.gpus may select other GPUs",
        zh="{name}={value}：GPU 编号与 nvidia-smi 不同，parallel.gpus 可能选到别的卡",
        en_hint=("number the GPUs as nvidia-smi does:\n  export CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        zh_hint=("让编号与 nvidia-smi 一致：\n  export CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    ),
    "machine/env-foreign": Text(
        en="{name}={value} loads other libraries into every rank: they can cause crashes and wrong results",
        zh="{name}={value} 会把别的库带进每个 rank：崩溃和错误结果可能由此而来",
        en_hint=("unless it was set on purpose:\n  unset {name}"),
        zh_hint=("若非有意设置：\n  unset {name}"),
    ),
    "machine/env-tf32": Text(
        en="{name}={value} turns TF32 off: fp32 parts run up to eight times slower",
        zh="{name}={value} 关闭了 TF32：fp32 部分最多会慢八倍",
        en_hint=("unless it was set on purpose:\n  unset {name}"),
        zh_hint=("若非有意设置：\n  unset {name}"),
    ),
    "machine/env-alloc-both": Text(
        en="{name} and {other} are both set; torch uses only {other}",
        zh="{name} 和 {other} 同时设置，torch 只采用 {other}",
        en_hint=("keep one:\n  unset {other}"),
        zh_hint=("只留一个：\n  unset {other}"),
    ),
    "machine/env-alloc-key": Text(
        en="{name} contains options that torch does not know: {keys:list}",
        zh="{name} 中有 torch 不认识的选项：{keys:list}",
        en_hint=("correct it, for example:\n  export {name}=expandable_segments:True"),
        zh_hint=("改正它，例如：\n  export {name}=expandable_segments:True"),
    ),
    "machine/data-refused": Text(
        en="the recipe does not accept the data: {why:said}",
        zh="配方不接受这份数据：{why:said}",
        en_hint="{fix}",
        zh_hint="{fix}",
    ),
    "machine/data-absent": Text(
        en="{key} is {path}, but nothing is there",
        zh="{key} 为 {path}，但该位置没有内容",
        en_hint="correct {key}, or put the data there",
        zh_hint="改正 {key}，或把数据放到该处",
    ),
    "machine/data-ready": Text(en="data is ready: {num:,} training samples", zh="数据已就绪：{num:,} 个训练样本"),
    "machine/batch-ok": Text(
        en="a real batch of {num:,} samples was loaded in {time}: {shapes:list}",
        zh="已读取一个真实批次（{num:,} 个样本），用时 {time}：{shapes:list}",
    ),
    "machine/batch-broken": Text(
        en="the first batch contains NaN or Inf: {names:list}",
        zh="第一个批次出现 NaN/Inf：{names:list}",
        en_hint="check the data that task.* names; training on it gives NaN immediately",
        zh_hint="检查 task.* 指向的数据；用它训练会立即出现 NaN",
    ),
    "machine/batch-failed": Text(
        en="the data loader returned no batch: {why:said}",
        zh="数据加载没有给出批次：{why:said}",
        en_hint="run the same command with --dry-run to see the full error",
        zh_hint="在同一条命令后加 --dry-run 查看完整报错",
    ),
    "machine/stands-in": Text(
        en="checking another machine: {source}; what its record does not contain is not checked, and nothing is taken "
        "from this machine",
        zh="检查的是另一台机器：{source}；记录中没有的信息不检查，也不取自本机",
    ),
    "machine/wished": Text(
        en="checking {source}, assuming a host with {cores} cores and {memory} of memory; disk and framework are those "
        "of this machine",
        zh="检查的是 {source}，假定主机有 {cores} 核、{memory} 内存；磁盘和框架取自本机",
        en_hint=(
            "to check a real machine, give its record: `nvidia-smi -q > machine.txt` there, then `headway check "
            "--machine machine.txt`"
        ),
        zh_hint=(
            "要检查真实的机器，先在那台机器上运行 `nvidia-smi -q > machine.txt`，再运行 `headway check --machine "
            "machine.txt`"
        ),
    ),
    "machine/smoke-ok": Text(
        en="{ranks} ranks connected over {backend} and exchanged {size}: content correct, {rate}/s",
        zh="{ranks} 个 rank 已通过 {backend} 连接并交换了 {size}：内容正确，{rate}/s",
    ),
    "machine/smoke-failed": Text(
        en="{ranks} ranks could not exchange data over {backend}: {why:said}",
        zh="{ranks} 个 rank 无法通过 {backend} 交换数据：{why:said}",
        en_hint=(
            "see more, or try without P2P:\n"
            "  NCCL_DEBUG=INFO headway check --smoke\n"
            "  NCCL_P2P_DISABLE=1 headway check --smoke"
        ),
        zh_hint=(
            "查看细节，或不使用 P2P 再试：\n"
            "  NCCL_DEBUG=INFO headway check --smoke\n"
            "  NCCL_P2P_DISABLE=1 headway check --smoke"
        ),
    ),
    "machine/smoke-wrong": Text(
        en="data that {ranks} ranks exchanged over {backend} arrived changed: {why:said}",
        zh="{ranks} 个 rank 通过 {backend} 交换的数据到达时已改变：{why:said}",
        en_hint=(
            "GPUs may report P2P that does not work; update the driver, or do without it:\n  export NCCL_P2P_DISABLE=1"
        ),
        zh_hint=("GPU 声称的 P2P 可能不可靠；升级驱动，或不使用 P2P：\n  export NCCL_P2P_DISABLE=1"),
    ),
    # another machine
    "machine/on-unknown": Text(
        en="--on {given}: this GPU is not known",
        zh="--on {given}：没有这种 GPU 的数据",
        en_hint=("the nearest: {near:list}\n  --on {first}"),
        zh_hint=("最接近的：{near:list}\n  --on {first}"),
    ),
    "machine/on-size": Text(
        en="--on {given}: there is no such card with {stated} GB",
        zh="--on {given}：没有 {stated} GB 显存的这种卡",
        en_hint="choose one of: {known:list}",
        zh_hint="可选：{known:list}",
    ),
    "machine/on-no-node": Text(
        en="--on {given} requests no node",
        zh="--on {given} 没有指定任何节点",
        en_hint=("the number of nodes must be at least 1, for example:\n  --on 2x{rest}"),
        zh_hint=("节点数至少为 1，例如：\n  --on 2x{rest}"),
    ),
    "machine/on-none": Text(
        en="--on {given} requests no GPU",
        zh="--on {given} 没有指定任何 GPU",
        en_hint=("the number must be at least 1, for example:\n  --on 2x4090"),
        zh_hint=("数量至少为 1，例如：\n  --on 2x4090"),
    ),
    "machine/on-and-machine": Text(
        en="--on and --machine both specify a machine",
        zh="--on 和 --machine 同时指定了机器",
        en_hint="use only one of them",
        zh_hint="两者只写一个",
    ),
    "machine/record-unknown": Text(
        en="{path} contains nothing known: it is neither machine.json nor the output of a known command",
        zh="{path} 里没有可识别的内容：既不是 machine.json，也不是已知命令的输出",
        en_hint=(
            "record one on that machine with `nvidia-smi -q > machine.txt`, or with Headway:\n"
            "  headway check --json > machine.json"
        ),
        zh_hint=(
            "在那台机器上用 `nvidia-smi -q > machine.txt` 录制一份，或用 Headway 录制：\n"
            "  headway check --json > machine.json"
        ),
    ),
    "machine/record-unreadable": Text(
        en="{path} cannot be read: {why:said}",
        zh="无法读取 {path}：{why:said}",
        en_hint=(
            "record one on that machine with `nvidia-smi -q > machine.txt`, or with Headway:\n"
            "  headway check --json > machine.json"
        ),
        zh_hint=(
            "在那台机器上用 `nvidia-smi -q > machine.txt` 录制一份，或用 Headway 录制：\n"
            "  headway check --json > machine.json"
        ),
    ),
    # refusals of the choice of devices
    "machine/torch-cannot-gpu": Text(
        en="parallel.gpus={wanted} requests GPUs, but torch {torch} is a CPU-only build",
        zh="parallel.gpus={wanted} 要用 GPU，但 torch {torch} 是 CPU 版",
        en_hint=("install a torch with CUDA, or train on the CPU:\n  parallel.gpus=0"),
        zh_hint=("安装带 CUDA 的 torch，或在 CPU 上训练：\n  parallel.gpus=0"),
    ),
    "machine/no-free-gpu": Text(
        en="none of the {total} GPUs is free ({holders})",
        zh="{total} 张 GPU 均被占用（{holders}）",
        en_hint=("wait, name the ones to use anyway (parallel.gpus=0,1), or train on the CPU:\n  parallel.gpus=0"),
        zh_hint=("等待空闲；一定要用就写出编号（parallel.gpus=0,1）；或在 CPU 上训练：\n  parallel.gpus=0"),
    ),
    "machine/too-few-gpus": Text(
        en="parallel.gpus={wanted}, but this machine has only {here} ({list:list})",
        zh="parallel.gpus={wanted}，但本机只有 {here} 张（{list:list}）",
        en_hint=("use those that are there:\n  parallel.gpus={here}"),
        zh_hint=("使用现有的 GPU：\n  parallel.gpus={here}"),
    ),
    "machine/gpus-taken": Text(
        en="parallel.gpus={wanted}, but only {free} are free; the others are in use ({holders})",
        zh="parallel.gpus={wanted}，但只有 {free} 张空闲，其余被占用（{holders}）",
        en_hint=("use the free ones, or name the ones to use anyway (parallel.gpus=0,1):\n  parallel.gpus={free}"),
        zh_hint=("使用空闲的 GPU；一定要用就写出编号（parallel.gpus=0,1）：\n  parallel.gpus={free}"),
    ),
    "machine/no-such-gpu": Text(
        en="parallel.gpus names GPU {gpu}, but only {here} are visible on this machine ({list:list})",
        zh="parallel.gpus 里有 GPU {gpu}，但本机可见的只有 {here} 张（{list:list}）",
        en_hint="numbers start at 0 and count only the GPUs that CUDA_VISIBLE_DEVICES leaves visible",
        zh_hint="编号从 0 开始，只计 CUDA_VISIBLE_DEVICES 留下的 GPU",
    ),
    "machine/gpu-twice": Text(
        en="parallel.gpus={wanted} names a GPU twice, but each rank needs its own",
        zh="parallel.gpus={wanted} 有重复的编号，而每个 rank 需要独占一张 GPU",
        en_hint="name each GPU once",
        zh_hint="每个编号只写一次",
    ),
    "machine/stopped": Text(
        en="this machine cannot run the training: {num} problems must be solved first",
        zh="本机无法训练：有 {num} 项问题必须先解决",
        en_hint="solve the problems marked ✗ above",
        zh_hint="解决上面标 ✗ 的问题",
    ),
    # headway check
    "machine/help": Text(
        en="Check this machine: GPUs, memory, disk, limits, framework; with a config, also its data.\n\n"
        "The exit code is 3 when something here would stop a run.\n\n"
        "Example:\n"
        "  headway check\n"
        "  headway check run.yaml --smoke\n"
        "  headway check --machine nvidia-smi.txt",
        zh="检查本机：GPU、内存、磁盘、限制、框架；给出配置时也检查数据。\n\n"
        "若有问题会让训练无法开始，退出码为 3。\n\n"
        "示例：\n"
        "  headway check\n"
        "  headway check run.yaml --smoke\n"
        "  headway check --machine nvidia-smi.txt",
    ),
    "machine/help-json": Text(en="print one JSON object (machine/1)", zh="输出一个 JSON 对象（machine/1）"),
    "machine/help-out": Text(
        en="folder that will contain the runs (its disk is checked)", zh="存放训练目录的位置（检查其所在磁盘）"
    ),
    "machine/help-machine": Text(
        en="check a recorded machine: machine.json or the output of nvidia-smi, npu-smi, … (- for stdin)",
        zh="检查一台录制的机器：machine.json 或 nvidia-smi、npu-smi 等命令的输出（- 表示标准输入）",
    ),
    "machine/help-on": Text(
        en="check a machine with these GPUs, such as 8xH20, or two such nodes: 2x8xH20",
        zh="检查装有这些 GPU 的机器，例如 8xH20；两个这样的节点写 2x8xH20",
    ),
    "machine/help-smoke": Text(
        en="let two ranks really exchange data (starts the framework, takes some seconds)",
        zh="让两个 rank 实际交换数据（会启动框架，需要几秒）",
    ),
    "machine/row-npu": Text(en="npu {index}", zh="NPU {index}"),
    "machine/row-links": Text(en="gpu links", zh="GPU 互连"),
    "machine/row-limits": Text(en="limits", zh="限制"),
    "machine/limits": Text(
        en="{files:,} open files · {procs:,} processes · {locked} lockable memory",
        zh="{files:,} 个文件 · {procs:,} 个进程 · 可锁定内存 {locked}",
    ),
    "machine/title": Text(en="machine", zh="本机"),
    "machine/title-other": Text(en="machine: {source}", zh="机器：{source}"),
    "machine/row-host": Text(en="host", zh="主机"),
    "machine/row-cpu": Text(en="cpu", zh="处理器"),
    "machine/row-memory": Text(en="memory", zh="内存"),
    "machine/row-shm": Text(en="/dev/shm", zh="共享内存"),
    "machine/row-disk": Text(en="disk", zh="磁盘"),
    "machine/row-python": Text(en="python", zh="Python"),
    "machine/row-torch": Text(en="torch", zh="PyTorch"),
    "machine/row-driver": Text(en="gpu driver", zh="GPU 驱动"),
    "machine/row-gpu": Text(en="gpu {index}", zh="GPU {index}"),
    "machine/cores": Text(en="{cores} of {host} cores", zh="{host} 核中可用 {cores} 核"),
    "machine/free-of": Text(en="{free} free of {total}", zh="剩余 {free}，共 {total}"),
    "machine/line-memory": Text(en="{free} memory free", zh="内存剩余 {free}"),
    "machine/line-disk": Text(en="{free} disk free", zh="磁盘剩余 {free}"),
    "machine/unlimited": Text(en="no limit", zh="无限制"),
    "machine/absent": Text(en="not installed", zh="未安装"),
    "machine/state-free": Text(en="free", zh="空闲"),
    "machine/state-busy": Text(en="in use", zh="占用中"),
    "machine/state-lost": Text(en="lost", zh="失联"),
    "machine/ready": Text(
        en="this machine is ready; see the plan of a run: headway plan",
        zh="本机就绪；查看训练计划：headway plan",
    ),
    "machine/ready-other": Text(
        en="nothing prevents a run on {source}; see its plan there: headway plan {place}",
        zh="在 {source} 上没有阻碍训练的问题；查看在该机器上的训练计划：headway plan {place}",
    ),
}
