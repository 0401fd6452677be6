"""Texts of the plan stage and of `headway plan`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    # refusals
    "plan/batch-does-not-divide": Text(
        en="batch.total={total} {unit:word} is not a multiple of {multiple} ({factors})",
        zh="batch.total={total}（单位 {unit:word}）不是 {multiple} 的整数倍（{factors}）",
        en_hint="the nearest settings that divide evenly:\n{choices}",
        zh_hint="能整除的最接近的设置：\n{choices}",
    ),
    "plan/batch-disagrees": Text(
        en="batch.total={total} {unit:word}, but {factors} gives {multiple}",
        zh="batch.total={total}（单位 {unit:word}），但 {factors} 等于 {multiple}",
        en_hint="set two of the three and Headway derives the third, or use one of these:\n{choices}",
        zh_hint="三个值给出两个即可，第三个由 Headway 推出；或改用下列设置之一：\n{choices}",
    ),
    "plan/all-devices-does-not-divide": Text(
        en="{name}={whole} cannot be split into {per_device} samples for each of {ranks} ranks",
        zh="{name}={whole} 无法按每个 rank {per_device} 个样本分给 {ranks} 个 rank",
        en_hint=("give batch.per_device instead, or use one of these:\n{choices}"),
        zh_hint=("改为直接给出 batch.per_device，或使用下列设置之一：\n{choices}"),
    ),
    "plan/no-tokens": Text(
        en="batch.unit=tokens, but a sample of this recipe has no fixed number of tokens (batch.total={total})",
        zh="batch.unit=tokens，但该配方的样本没有固定的 token 数（batch.total={total}）",
        en_hint=("count the batch in samples:\n  batch.unit=samples"),
        zh_hint=("改为按样本数计算：\n  batch.unit=samples"),
    ),
    "plan/no-length": Text(
        en="the length of the run is not set",
        zh="没有设置训练长度",
        en_hint=("give one of train.steps, train.samples and train.epochs, for example:\n  train.steps=1000"),
        zh_hint=("给出 train.steps、train.samples、train.epochs 之一，例如：\n  train.steps=1000"),
    ),
    "plan/length-twice": Text(
        en="the length of the run is set more than once: {given}",
        zh="训练长度重复设置：{given}",
        en_hint="keep one of them",
        zh_hint="只保留一个",
    ),
    "plan/epochs-unknown": Text(
        en="train.epochs={epochs}, but the size of the training set is not known until the data is prepared",
        zh="train.epochs={epochs}，但数据准备好之前不知道训练集的大小",
        en_hint=(
            "prepare the data first, or give the length in steps or samples, for example:\n"
            "  train.epochs=null train.steps=1000"
        ),
        zh_hint=("先准备数据，或用步数或样本数给出长度，例如：\n  train.epochs=null train.steps=1000"),
    ),
    "plan/fp16-on-cpu": Text(
        en="train.precision=fp16 needs a GPU: CPU kernels for fp16 are slow or missing, and fp16 needs loss scaling",
        zh="train.precision=fp16 需要 GPU：CPU 上的 fp16 算子很慢或缺失，而且 fp16 需要损失缩放",
        en_hint=("use one of these:\n  train.precision=bf16\n  train.precision=fp32"),
        zh_hint=("改用下列之一：\n  train.precision=bf16\n  train.precision=fp32"),
    ),
    "plan/single-nodes": Text(
        en="parallel.strategy=single is one rank, but {ranks} more are on other nodes",
        zh="parallel.strategy=single 只有一个 rank，但其他节点上还有 {ranks} 个",
        en_hint="choose a strategy for several ranks:\n  parallel.strategy=ddp",
        zh_hint="选择多 rank 的并行方式：\n  parallel.strategy=ddp",
    ),
    "plan/single-many": Text(
        en="parallel.strategy=single uses one rank, but {ranks} are requested",
        zh="parallel.strategy=single 只用一个 rank，这里却要 {ranks} 个",
        en_hint=("use replicas, or one rank:\n  parallel.strategy=ddp\n  {one}"),
        zh_hint=("改用数据并行，或只用一个 rank：\n  parallel.strategy=ddp\n  {one}"),
    ),
    "plan/does-not-fit": Text(
        en="a micro-batch of {micro} needs {used} on each GPU, but the smallest has {have} ({most:list})",
        zh="微批（micro-batch）为 {micro} 时每张 GPU 需要 {used}，而最小的一张只有 {have}（{most:list}）",
        en_hint="these fit, with the same total batch:\n{choices}",
        zh_hint="下列设置放得下，且总批大小不变：\n{choices}",
    ),
    "plan/never-fits": Text(
        en="a micro-batch of {micro} needs {used} on each GPU, but the smallest has {have} ({most:list})",
        zh="微批（micro-batch）为 {micro} 时每张 GPU 需要 {used}，而最小的一张只有 {have}（{most:list}）",
        en_hint="no other micro-batch or strategy fits: use larger GPUs, more GPUs, or a smaller model{choices}",
        zh_hint="换其他微批或并行方式也放不下：改用显存更大的 GPU、更多 GPU 或更小的模型{choices}",
    ),
    "plan/trace-slow": Text(
        en="tracing the model did not finish within {seconds} s",
        zh="模型追踪在 {seconds} 秒内没有完成",
        en_hint=("leave the trace out; the plan then uses a formula where the recipe has one:\n  --no-trace"),
        zh_hint=("跳过追踪；配方有估算公式时，计划会改用公式：\n  --no-trace"),
    ),
    "plan/trace-failed": Text(
        en="the model could not be traced: {why:said}",
        zh="无法追踪模型：{why:said}",
        en_hint=("leave the trace out; the first steps of a run then measure these values:\n  --no-trace"),
        zh_hint=("跳过追踪；训练的前几步会测得它本应预测的数值：\n  --no-trace"),
    ),
    "plan/probe-elsewhere": Text(
        en="--probe measures steps on this machine, but the plan is for another one",
        zh="--probe 在本机试测，而计划针对的是另一台机器",
        en_hint="remove --probe, or remove --on and --machine",
        zh_hint="去掉 --probe，或去掉 --on 与 --machine",
    ),
    "plan/model-unknown": Text(
        en="the shape of a model called {name} is not known",
        zh="没有名为 {name} 的模型的结构数据",
        en_hint=(
            "similar names: {near:list}; all names with `headway plan --model list`; or give the config.json of "
            "a Hugging Face model:\n"
            "  --model {first}"
        ),
        zh_hint=(
            "相近的名字：{near:list}；用 `headway plan --model list` 查看全部；也可以给出 Hugging Face 模型的 "
            "config.json：\n"
            "  --model {first}"
        ),
    ),
    "plan/model-tracing": Text(
        en="there is no formula for {name}: tracing it with the installed transformers or timm",
        zh="没有 {name} 的公式：用已安装的 transformers 或 timm 追踪",
    ),
    "plan/model-untraced": Text(
        en="{name} cannot be traced: {why:said}",
        zh="无法追踪 {name}：{why:said}",
        en_hint="trace your own script that trains it:\n  headway plan --script train.py",
        zh_hint="改为追踪你自己的训练脚本：\n  headway plan --script train.py",
    ),
    "plan/model-unread": Text(
        en="{path} could not be read: {why:said}",
        zh="无法读取 {path}：{why:said}",
        en_hint=("give the config.json of a Hugging Face model, or a public name:\n  --model llama-3.1-8b"),
        zh_hint=("给出 Hugging Face 模型的 config.json，或公开的模型名：\n  --model llama-3.1-8b"),
    ),
    "plan/model-other-kind": Text(
        en="{path} describes a model of type {kind}, but only Llama-like decoders can be read from a file",
        zh="{path} 描述的是 {kind} 类模型，而从文件只能读取 Llama 类的解码器",
        en_hint="plan the training script instead, with `headway plan --script` and its launch line in quotes",
        zh_hint="改为规划训练脚本：用 `headway plan --script`，把启动命令放在引号里",
    ),
    "plan/model-odd-key": Text(
        en="{word} is not a setting of this model's training step",
        zh="{word} 不是该模型训练步的设置",
        en_hint="write key=value with one of: {known:list}",
        zh_hint="写作 key=value，可用的有：{known:list}",
    ),
    "plan/model-odd-value": Text(
        en="{key} cannot be {value}",
        zh="{key} 不能是 {value}",
        en_hint="use one of: {choices:list}",
        zh_hint="可用的取值：{choices:list}",
    ),
    "plan/model-positions": Text(
        en="{name} has only {most} positions, but seq={seq} needs more; the published model cannot be trained with it",
        zh="{name} 的位置编码只有 {most} 个位置，而 seq={seq} 超出了它；按公开的结构无法这样训练",
        en_hint=("shorten the sequence, or take a model with rotary positions:\n  seq={most}"),
        zh_hint=("缩短序列，或换用旋转位置编码的模型：\n  seq={most}"),
    ),
    "plan/model-needs-gpu": Text(
        en="this machine has no GPU to plan {name} for",
        zh="本机没有 GPU，无法规划 {name}",
        en_hint=("name the cards:\n  --on 8xH20"),
        zh_hint=("指定显卡：\n  --on 8xH20"),
    ),
    "plan/model-does-not-fit": Text(
        en="{name} with a batch size of {micro} needs {used} on each GPU, but the smallest has {have} ({most:list})",
        zh="{name} 的批大小为 {micro} 时每张 GPU 需要 {used}，而最小的一张只有 {have}（{most:list}）",
        en_hint=("these changes fit:\n{choices}"),
        zh_hint=("改成下列设置就放得下：\n{choices}"),
    ),
    "plan/model-and-script": Text(
        en="--model plans a public model and --script plans your own script; they cannot be used together",
        zh="--model 规划公开的模型，--script 规划你自己的脚本，两者不能同时使用",
        en_hint="remove one of them",
        zh_hint="去掉其中一个",
    ),
    "plan/script-and-source": Text(
        en="--script plans your own script, but {words} is a recipe, a config file or a setting",
        zh="--script 规划的是你自己的脚本，而 {words} 是配方、配置文件或设置",
        en_hint="put the full launch line after --script, in quotes, and remove the other words",
        zh_hint="把整条启动命令放进 --script 的引号里，去掉其余的词",
    ),
    "plan/script-unread": Text(
        en="this line does not start a Python script or module: {line}",
        zh="这条命令没有启动 Python 脚本或模块：{line}",
        en_hint=(
            "give the line that starts the training, in quotes, for example `--script 'torchrun "
            "--nproc_per_node=2 train.py --batch 8'`"
        ),
        zh_hint="用引号给出启动训练的那条命令，例如 `--script 'torchrun --nproc_per_node=2 train.py --batch 8'`",
    ),
    "plan/script-missing": Text(
        en="script {path} does not exist",
        zh="脚本 {path} 不存在",
        en_hint="give the path relative to the current folder, as you would to start it",
        zh_hint="像启动它那样，写出相对当前目录的路径",
    ),
    "plan/script-python": Text(
        en="{python} could not be started: {why:said}",
        zh="无法启动 {python}：{why:said}",
        en_hint="before the script, name a Python in which torch is installed",
        zh_hint="在脚本前写上装有 torch 的 Python",
    ),
    "plan/script-ranks": Text(
        en="the line starts {ranks} ranks on one machine, but this machine has {gpus} GPUs",
        zh="这条命令在一台机器上启动 {ranks} 个 rank，而这里只有 {gpus} 张 GPU",
        en_hint=("plan for as many GPUs as ranks:\n  --on {ranks}x4090"),
        zh_hint=("按 rank 数规划 GPU：\n  --on {ranks}x4090"),
    ),
    "plan/script-values": Text(
        en="{where} cannot be traced: it needs values that do not exist during a trace ({why:said})",
        zh="{where} 无法追踪：它需要追踪时没有的数值（{why:said}）",
        en_hint="a size that depends on results (x[mask], nonzero) cannot be traced; `headway run` shows the memory "
        "of the real script while it runs",
        zh_hint="大小取决于计算结果的操作（x[mask]、nonzero）无法追踪；用 `headway run` 运行真实脚本可看到显存占用",
    ),
    "plan/script-sharded": Text(
        en="{where} uses {what}, which cannot be traced in a script yet",
        zh="{where} 使用 {what}，目前还不能在脚本中追踪",
        en_hint="plan the script without sharding for its activations, then divide weights, gradients and optimizer "
        "state by the number of ranks",
        zh_hint="先去掉分片来规划激活值，再把权重、梯度和优化器状态除以 rank 数",
    ),
    "plan/script-no-step": Text(
        en="{where} ended after {steps} optimizer steps, but a trace needs two{ended}",
        zh="{where} 只执行了 {steps} 次优化器更新就结束了，而追踪需要两次{ended}",
        en_hint="check the arguments and the data the script needs; at least two updates must happen",
        zh_hint="检查脚本所需的参数和数据；至少要有两次更新",
    ),
    "plan/script-error": Text(
        en="the script failed at {where}: {why:said}",
        zh="脚本在 {where} 处出错：{why:said}",
        en_hint="fix the script if it also fails by itself; if it only lacks GPUs, add to headway plan: --on 2x4090",
        zh_hint="如果直接运行脚本也出错，先修好脚本；如果只是缺少 GPU，给 headway plan 加上：--on 2x4090",
    ),
    "plan/script-slow": Text(
        en="the script did not reach its second optimizer step within {seconds} s",
        zh="脚本在 {seconds} 秒内没有执行到第二次优化器更新",
        en_hint="shorten what comes before it: data preparation, evaluation at the start, gradient accumulation",
        zh_hint="缩短之前的工作：数据准备、开始时的验证、梯度累积",
    ),
    "plan/script-does-not-fit": Text(
        en="a batch size of {micro} needs {used} on each GPU, but the smallest has {have} ({most:list})",
        zh="批大小为 {micro} 时每张 GPU 需要 {used}，而最小的一张只有 {have}（{most:list}）",
        en_hint="about {fits} samples would fit: lower the script's batch size, use activation checkpointing, or use "
        "larger GPUs",
        zh_hint="大约 {fits} 个样本放得下：减小脚本的批大小、启用激活重计算，或改用显存更大的 GPU",
    ),
    "plan/script-over-host": Text(
        en="the script needs {used} of memory on each rank, but only {have} is available",
        zh="脚本的每个 rank 需要 {used} 内存，而只有 {have}",
        en_hint="lower the script's batch size, or start fewer ranks",
        zh_hint="减小脚本的批大小，或减少 rank 数",
    ),
    # warnings
    "plan/script-on-host": Text(
        en="the script puts nothing on a GPU: the figures are for host memory",
        zh="脚本没有把任何张量放到 GPU 上：这里是主机内存的用量",
    ),
    "plan/script-compiled": Text(
        en="torch.compile was skipped in the trace: compiled, the script usually needs less memory and time",
        zh="追踪时没有使用 torch.compile：编译后脚本通常占用更少的显存和时间",
    ),
    "plan/script-tight": Text(
        en="memory is tight: about {used} of {have}",
        zh="显存紧张：约 {used}，可用 {have}",
        en_hint="lower the script's batch size, or use activation checkpointing (torch.utils.checkpoint)",
        zh_hint="减小脚本的批大小，或启用激活重计算（torch.utils.checkpoint）",
    ),
    "plan/tight": Text(
        en="memory is tight: about {used} of {have}",
        zh="显存紧张：约 {used}，可用 {have}",
        en_hint=("lower batch.per_device, or use activation checkpointing:\n  train.activation_checkpoint=true"),
        zh_hint=("减小 batch.per_device，或启用激活重计算：\n  train.activation_checkpoint=true"),
    ),
    "plan/over-memory": Text(
        en="a rank needs about {used}, but its share of the free memory is {have}",
        zh="每个 rank 约需 {used}，而分到的空闲内存只有 {have}",
        en_hint="lower batch.per_device or parallel.cpus",
        zh_hint="减小 batch.per_device 或 parallel.cpus",
    ),
    "plan/disk-short": Text(
        en="the checkpoints will need {need}, but {place} has only {have} free",
        zh="检查点共需 {need}，而 {place} 只剩 {have}",
        en_hint=("raise save.keep_every, set out= to a larger disk, or keep fewer:\n  save.keep_last=1"),
        zh_hint=("增大 save.keep_every、用 out= 指向更大的磁盘，或少保留检查点：\n  save.keep_last=1"),
    ),
    "plan/not-deterministic": Text(
        en="train.deterministic=true, but a step uses operations without a deterministic GPU kernel: {ops:list}",
        zh="train.deterministic=true，但训练步用到了没有确定性 GPU 实现的算子：{ops:list}",
        en_hint="the run would end at the first of them; without the setting it works, but results of two runs "
        "differ in the last bits:\n  train.deterministic=false",
        zh_hint="训练会在遇到第一个这样的算子时报错结束；关闭该设置即可训练，但两次训练的结果在末位上会有差异：\n"
        "  train.deterministic=false",
    ),
    "plan/offload-alone": Text(
        en="parallel.offload=true has no effect: only sharded weights (fsdp, two ranks or more) can be in host memory",
        zh="parallel.offload=true 不起作用：只有分片的权重（fsdp，至少两个 rank）可以放在主机内存中",
    ),
    "plan/offload-over-host": Text(
        en="weights, gradients and optimizer state need {need} of host memory, but only {have} is free",
        zh="权重、梯度和优化器状态需要 {need} 主机内存，而可用的只有 {have}",
        en_hint="use more nodes or a smaller model, or keep them on the GPUs:\n  parallel.offload=false",
        zh_hint="使用更多节点或更小的模型，或把它们留在 GPU 上：\n  parallel.offload=false",
    ),
    "plan/fsdp-alone": Text(
        en="parallel.strategy=fsdp has no effect: one rank has nobody to share its weights with",
        zh="parallel.strategy=fsdp 不起作用：只有 1 个 rank，没有可分摊权重的对象",
    ),
    "plan/ranks-over-cores": Text(
        en="{ranks} CPU ranks share {cores} cores, which is slower than {cores} ranks",
        zh="{ranks} 个 CPU rank 共用 {cores} 个核：比 {cores} 个 rank 更慢",
        en_hint=("use as many as there are cores:\n  parallel.cpus={cores}"),
        zh_hint=("改为与核数相同：\n  parallel.cpus={cores}"),
    ),
    "plan/threads-over-cores": Text(
        en="{ranks} ranks with {threads} threads each share {cores} cores",
        zh="{ranks} 个 rank 各 {threads} 个线程，共用 {cores} 个核",
        en_hint="remove parallel.threads; the cores are then divided evenly",
        zh_hint="不写 parallel.threads 时会自动均分",
    ),
    "plan/bf16-emulated": Text(
        en="{gpu} (compute capability {capability}) has no bf16 units: bf16 is emulated and slow",
        zh="{gpu}（计算能力 {capability}）没有 bf16 单元：bf16 只能由软件模拟，很慢",
        en_hint=("use fp16:\n  train.precision=fp16"),
        zh_hint=("改用 fp16：\n  train.precision=fp16"),
    ),
    "plan/model-bf16-emulated": Text(
        en="{gpu} has no bf16 units: bf16 is emulated there and several times slower than fp16",
        zh="{gpu} 没有 bf16 单元：bf16 只能由软件模拟，比 fp16 慢数倍",
        en_hint=("use fp16:\n  {command}"),
        zh_hint=("改用 fp16：\n  {command}"),
    ),
    "plan/min-over-rate": Text(
        en="lr.min={least} is above the learning rate at the start, {rate}",
        zh="lr.min={least} 高于初始学习率 {rate}",
        en_hint=("set lr.min below {rate}, or leave it out:\n  lr.min=null"),
        zh_hint=("让 lr.min 小于 {rate}，或不设置它：\n  lr.min=null"),
    ),
    "plan/workers-over-cores": Text(
        en="{total} data loader workers are too many for this machine with {cores} cores, so each rank gets {workers}",
        zh="{total} 个数据加载进程对本机（{cores} 个核）过多，每个 rank 改用 {workers} 个",
        en_hint="to use another number on each of the {ranks} ranks, set parallel.workers",
        zh_hint="如需给 {ranks} 个 rank 指定其他数量，设置 parallel.workers",
    ),
    "plan/warmup-too-long": Text(
        en="warm-up takes {warmup:,} samples, but the run has {total:,}: the full learning rate is never reached",
        zh="学习率预热要 {warmup:,} 个样本，而整个训练只有 {total:,} 个：学习率始终达不到设定值",
        en_hint="lower lr.warmup_samples or make the run longer",
        zh_hint="减小 lr.warmup_samples，或延长训练",
    ),
    "plan/batch-over-epoch": Text(
        en="one step takes {batch:,} samples, but the training set has {samples:,}",
        zh="一步要 {batch:,} 个样本，而训练集只有 {samples:,} 个",
        en_hint="lower batch.total",
        zh_hint="减小 batch.total",
    ),
    "plan/length-overruled": Text(
        en="{key} sets the length; {over}, which has lower priority, has no effect",
        zh="训练长度由 {key} 决定；优先级较低的 {over} 不起作用",
    ),
    # the table
    "plan/row-device": Text(en="device", zh="设备"),
    "plan/row-ranks": Text(en="ranks", zh="rank 数"),
    "plan/row-strategy": Text(en="strategy", zh="并行方式"),
    "plan/row-offload": Text(en="offload", zh="放到主机内存"),
    "plan/row-sums": Text(en="sums of gradients", zh="梯度汇总"),
    "plan/value-offload": Text(
        en="weights, gradients, optimizer state in host memory", zh="权重、梯度、优化器状态在主机内存中"
    ),
    "plan/value-sums-micro": Text(en="after every micro-batch", zh="每个微批之后"),
    "plan/from-sums-micro": Text(
        en="unsharded gradients would need 4 more bytes per parameter on every GPU",
        zh="完整的梯度会让每张 GPU 的每个参数多占 4 字节",
    ),
    "plan/row-precision": Text(en="precision", zh="精度"),
    "plan/row-batch-per-device": Text(en="batch per device", zh="每卡批大小"),
    "plan/row-batch-accumulation": Text(en="gradient accumulation", zh="梯度累积次数"),
    "plan/row-batch-samples": Text(en="total batch, samples", zh="总批大小（样本）"),
    "plan/row-batch-tokens": Text(en="total batch, tokens", zh="总批大小（token）"),
    "plan/row-steps": Text(en="steps", zh="步数"),
    "plan/row-samples": Text(en="samples", zh="样本数"),
    "plan/row-epochs": Text(en="epochs", zh="轮数"),
    "plan/row-lr-factor": Text(en="learning rate factor", zh="学习率倍数"),
    "plan/row-lr": Text(en="learning rate", zh="学习率"),
    "plan/row-warmup": Text(en="warm-up", zh="学习率预热"),
    "plan/row-schedule": Text(en="schedule", zh="学习率调度"),
    "plan/row-eval-every": Text(en="validation", zh="验证"),
    "plan/row-save-every": Text(en="checkpoint", zh="检查点"),
    "plan/row-workers": Text(en="loader workers", zh="数据加载进程"),
    "plan/row-threads": Text(en="threads per rank", zh="每 rank 线程数"),
    "plan/row-memory": Text(en="memory per rank", zh="每 rank 内存"),
    "plan/row-gpu-memory": Text(en="GPU memory per rank", zh="每 rank 显存"),
    "plan/row-params": Text(en="parameters", zh="参数量"),
    "plan/row-step-time": Text(en="time per step", zh="每步时间"),
    "plan/row-rate": Text(en="speed", zh="速度"),
    "plan/row-eta": Text(en="total time", zh="总用时"),
    "plan/row-left": Text(en="time left", zh="剩余用时"),
    "plan/row-network": Text(en="network between nodes", zh="节点间网络"),
    "plan/row-communication": Text(en="waiting for communication", zh="等待通信"),
    "plan/value-network": Text(en="{rate} per node, one way", zh="每节点单向 {rate}"),
    "plan/value-communication": Text(en="{time} of each step ({share})", zh="每步 {time}（占 {share}）"),
    "plan/from-network": Text(en="command line --network", zh="命令行 --network"),
    "plan/from-network-usual": Text(
        en="usual for nodes with these GPUs; set yours with --network",
        zh="此类 GPU 节点的常见值；用 --network 指定实际值",
    ),
    "plan/from-wished-nodes": Text(en="{product}: nodes × GPUs per node", zh="{product}：节点数 × 每节点 GPU 数"),
    "plan/help-network": Text(
        en="network of one node to the others in Gb/s, one way, with --on 2x8xH20 (default: usual for such GPUs)",
        zh="与 --on 2x8xH20 同用：单节点到其他节点的单向网络带宽（Gb/s），默认取此类 GPU 的常见值",
    ),
    "plan/network-alone": Text(
        en="--network {network} is the network between nodes, but the plan is for one node",
        zh="--network {network} 是节点间网络带宽，但此计划只有一个节点",
        en_hint="name several nodes, for example:\n  --on 2x8xH20 --network {network}",
        zh_hint="指定多个节点，例如：\n  --on 2x8xH20 --network {network}",
    ),
    "plan/script-nodes": Text(
        en="--on {wanted} names {nodes} nodes, but the launch line starts {ranks} ranks, not as many on each node",
        zh="--on {wanted} 指定了 {nodes} 个节点，但启动命令启动的 {ranks} 个 rank 没有平均分到各节点",
        en_hint="add the number of nodes to the launch line:\n  --nnodes={nodes}",
        zh_hint="在启动命令中写明节点数：\n  --nnodes={nodes}",
    ),
    "plan/row-energy": Text(en="energy, at most", zh="能耗上限"),
    "plan/row-script-batch": Text(en="batch size per step", zh="每步的批大小"),
    "plan/row-script-ranks": Text(en="ranks", zh="rank 数"),
    "plan/row-script-params": Text(en="parameters", zh="参数量"),
    "plan/row-model-largest": Text(en="largest batch per GPU", zh="每卡最大批大小"),
    "plan/row-script-largest": Text(en="largest batch per rank", zh="每 rank 最大批大小"),
    "plan/from-even-growth": Text(
        en="assumes that memory grows in proportion to the batch size", zh="假定显存随批大小按比例增长"
    ),
    "plan/value-largest": Text(en="{num} (largest that fits)", zh="{num}（放得下的最大值）"),
    "plan/column-script-batch": Text(en="batch size per rank", zh="每 rank 批大小"),
    "plan/row-model-step": Text(en="training step", zh="训练步"),
    "plan/row-in-memory": Text(en="copy kept in memory", zh="主机内存中的副本"),
    "plan/value-no-copies": Text(en="off", zh="关闭"),
    "plan/value-copies-auto": Text(
        en="every step, or less often to stay below 5% of the time", zh="每步一次；耗时超过 5% 时减少次数"
    ),
    "plan/from-copies-room": Text(
        en="two copies take {need}, more than half of the free {free}",
        zh="两份副本需 {need}，超过空闲主机内存 {free} 的一半",
    ),
    "plan/from-copies-mindspore": Text(en="not with MindSpore", zh="MindSpore 不支持"),
    "plan/from-copies-size": Text(en="{need} of host memory", zh="占主机内存 {need}"),
    "plan/from-copies-price": Text(
        en="{need} of host memory; a copy takes {copy}, a step {step}",
        zh="占主机内存 {need}；复制一次 {copy}，训练一步 {step}",
    ),
    "plan/row-disk": Text(en="disk for checkpoints", zh="检查点占用磁盘"),
    "plan/value-memory-fits": Text(en="{used} of {have}: fits", zh="{used} / {have}：放得下"),
    "plan/value-memory-tight": Text(en="{used} of {have}: tight", zh="{used} / {have}：紧张"),
    "plan/value-memory-will-not-fit": Text(en="{used} of {have}: will not fit", zh="{used} / {have}：放不下"),
    "plan/value-other-total": Text(
        en="{memory}; total batch {now}, not {before}", zh="{memory}；总批大小为 {now}，而不是 {before}"
    ),
    "plan/cards-list-title": Text(
        en="GPUs for --on, and their TFLOPS in 16-bit matrix multiplication",
        zh="--on 可用的 GPU，及其 16 位矩阵乘的 TFLOPS",
    ),
    "plan/column-name": Text(en="name", zh="写法"),
    "plan/column-room": Text(en="memory", zh="显存"),
    "plan/column-sheet": Text(en="data sheet", zh="标称"),
    "plan/column-measured": Text(en="measured", zh="实测"),
    "plan/column-source": Text(en="source", zh="来源"),
    "plan/value-assumed": Text(
        en="no public measurement; {rate} is derived from {other}",
        zh="没有公开的实测；按 {other} 的实测比例推得 {rate}",
    ),
    "plan/value-same-chip": Text(en="{source}, measured on {other}", zh="{source}，在 {other} 上实测"),
    "plan/value-batch-tight": Text(en="{num} (tight)", zh="{num}（紧张）"),
    "plan/value-memory-share": Text(en="{used}: {name}, at most {share}", zh="{used}：{name}，不超过 {share}"),
    "plan/value-rate": Text(en="{rate} samples/s", zh="{rate} 样本/秒"),
    "plan/value-rate-tokens": Text(en="{rate} samples/s, {tokens} tokens/s", zh="{rate} 样本/秒，{tokens} token/秒"),
    "plan/from-trace": Text(en="traced, peak in {moment:word}", zh="追踪所得，峰值在{moment:word}"),
    "plan/from-formula": Text(en="formula, peak in {moment:word}", zh="公式所得，峰值在{moment:word}"),
    "plan/from-trace-count": Text(en="counted in the traced model", zh="由追踪的模型得出"),
    "plan/from-formula-count": Text(en="counted from the model's shape", zh="由模型结构得出"),
    "plan/from-floor": Text(
        en="estimate: the model is too small to forecast; this is the least time the host needs",
        zh="估计：模型太小，无法推算；这是主机所需的最短时间",
    ),
    "plan/from-probe": Text(
        en="measured by a probe on this machine ({num} measurements)", zh="本机试测所得（{num} 次测量）"
    ),
    "plan/from-run": Text(
        en="measured in earlier runs on this machine ({num} measurements)", zh="本机此前的训练（{num} 次测量）"
    ),
    "plan/from-stretched": Text(
        en="extrapolated from {num} measurements at other sizes on this machine",
        zh="由本机其他规模的测量（{num} 次）推算",
    ),
    "plan/from-roofline": Text(
        en="forecast from the GPU's measured rates, {mfu} of the peak", zh="按该 GPU 的实测算力推算，为峰值的 {mfu}"
    ),
    "plan/from-derived": Text(
        en="forecast, {mfu} of its peak; this card has no public measurement, so its rate is derived from {other}",
        zh="推算，为峰值的 {mfu}；该卡没有公开的实测，算力由 {other} 推得",
    ),
    "plan/holder-weights": Text(en="weights", zh="权重"),
    "plan/holder-gradients": Text(en="gradients", zh="梯度"),
    "plan/holder-optimizer-state": Text(en="optimizer state", zh="优化器状态"),
    "plan/holder-moving-average": Text(en="moving average (EMA)", zh="EMA（滑动平均）"),
    "plan/holder-activations": Text(en="activations", zh="激活值"),
    "plan/holder-logits-and-loss": Text(en="logits and loss", zh="logits 与损失"),
    "plan/holder-weights-in-compute-type": Text(en="weights in the compute type", zh="计算精度的权重副本"),
    "plan/holder-gathered-weights": Text(en="gathered weights", zh="聚合的权重"),
    "plan/holder-evaluation": Text(en="validation", zh="验证"),
    "plan/holder-temporaries": Text(en="temporaries", zh="临时张量"),
    "plan/holder-batch": Text(en="batch", zh="批次数据"),
    "plan/holder-workspace": Text(en="workspace", zh="工作区"),
    "plan/holder-shard": Text(en="shard", zh="分片"),
    "plan/holder-communication-buffers": Text(en="communication buffers", zh="通信缓冲区"),
    "plan/holder-buckets": Text(en="DDP buckets", zh="DDP 通信桶"),
    "plan/holder-outside": Text(en="context, allocator, communication", zh="上下文、分配器与通信"),
    "plan/holders-title": Text(en="memory breakdown", zh="内存明细"),
    "plan/holders-gpu-title": Text(en="GPU memory breakdown", zh="显存明细"),
    "plan/whatif-title": Text(en="what if", zh="如果改成"),
    "plan/column-change": Text(en="change", zh="改动"),
    "plan/column-memory": Text(en="memory", zh="内存"),
    "plan/column-gpu-memory": Text(en="GPU memory", zh="显存"),
    "plan/column-largest": Text(en="largest batch", zh="最大批大小"),
    "plan/column-rate": Text(en="samples/s", zh="样本/秒"),
    "plan/cards-title": Text(en="on {num} GPUs of other models", zh="换成 {num} 张其他型号的 GPU"),
    "plan/column-card": Text(en="GPU", zh="GPU"),
    "plan/speedup-title": Text(en="more ranks", zh="更多 rank"),
    "plan/column-ranks": Text(en="ranks", zh="rank 数"),
    "plan/column-speedup": Text(en="speed-up", zh="加速比"),
    "plan/value-none": Text(en="none", zh="无"),
    "plan/value-end": Text(en="at the end", zh="仅在结束时"),
    "plan/value-epochs": Text(en="every {epochs} epochs", zh="每 {epochs} 轮"),
    "plan/value-both": Text(en="every {steps} steps and {epochs} epochs", zh="每 {steps} 步以及每 {epochs} 轮"),
    "plan/value-steps": Text(en="every {steps} steps", zh="每 {steps} 步"),
    "plan/value-warmup": Text(en="{samples} samples, {steps} steps", zh="{samples} 个样本，{steps} 步"),
    "plan/from-default": Text(en="default {rest}", zh="默认 {rest}"),
    "plan/from-recipe": Text(en="recipe {rest}", zh="配方 {rest}"),
    "plan/from-preset": Text(en="preset {rest}", zh="预设 {rest}"),
    "plan/from-environment": Text(en="environment {rest}", zh="环境变量 {rest}"),
    "plan/from-command-line": Text(en="command line {rest}", zh="命令行 {rest}"),
    "plan/from-command-line-before": Text(en="command line of attempt {rest}", zh="第 {rest} 次启动时的命令行"),
    "plan/from-free-gpus": Text(en="free GPUs: {num} of {here}", zh="空闲 GPU：{here} 张中的 {num} 张"),
    "plan/from-no-gpu": Text(en="no GPU here", zh="本机没有 GPU"),
    "plan/from-cpu-torch": Text(en="torch {torch} is a CPU-only build", zh="torch {torch} 是 CPU 版"),
    "plan/from-one-a-gpu": Text(en="one per GPU", zh="每张 GPU 一个"),
    "plan/from-ranks": Text(en="auto for {ranks} ranks", zh="按 {ranks} 个 rank 自动选择"),
    "plan/from-bf16": Text(en="auto: every GPU supports bf16", zh="自动：所有 GPU 都支持 bf16"),
    "plan/from-fp16": Text(en="auto: a GPU does not support bf16", zh="自动：有 GPU 不支持 bf16"),
    "plan/from-fp32": Text(en="auto: compute capability not known", zh="自动：GPU 计算能力未知"),
    "plan/from-fp32-cpu": Text(en="auto: fp32 on CPU", zh="自动：CPU 上用 fp32"),
    "plan/from-rule-per-device": Text(en="rule: 8 if not set", zh="规则：未设置时取 8"),
    "plan/from-rule-accumulation": Text(en="rule: 1 if not set", zh="规则：未设置时取 1"),
    "plan/from-no-scaling": Text(en="lr.base_batch not set or no scaling", zh="未设 lr.base_batch 或不缩放"),
    "plan/from-before": Text(en="kept from before", zh="沿用此前的值"),
    "plan/from-out-of-memory": Text(
        en="{before} samples per device ran out of memory", zh="每卡批大小 {before} 曾导致显存或内存不足"
    ),
    "plan/uneven-batch": Text(
        en="the total batch of {batch} samples does not divide by {ranks} ranks: each takes {least} to {most}"
        " micro-batches of {size} per step, weighted by their samples; the training stays the same",
        zh="总批大小 {batch} 不能被 {ranks} 个 rank 整除：每个 rank 每步处理 {least} 到 {most} 个大小为 {size} 的微批，"
        "梯度按样本数加权；训练不变",
    ),
    "plan/from-lost-ranks": Text(en="rank {lost} was lost", zh="rank {lost} 已丢失"),
    "plan/from-all-ranks": Text(en="all ranks are back", zh="所有 rank 均已恢复"),
    "plan/from-kept": Text(en="kept from {ranks} ranks before", zh="沿用此前 {ranks} 个 rank 时的值"),
    "plan/from-cores": Text(en="{cores} cores / {ranks} ranks", zh="{cores} 核 / {ranks} 个 rank"),
    "plan/from-script": Text(
        en="traced in {seconds} s, peak in {moment:word}", zh="追踪 {seconds} 秒所得，峰值在{moment:word}"
    ),
    # headway plan
    "plan/script-trained": Text(
        en="{num} of them trained by {optimizers:list}", zh="其中 {num} 个由 {optimizers:list} 训练"
    ),
    "plan/script-by-hand": Text(
        en="{num} of them trained, without an optimizer", zh="其中 {num} 个参与训练，没有优化器"
    ),
    "plan/script-how": Text(en="{origin}; {what}", zh="{origin}；{what}"),
    "plan/script-whole": Text(en="two steps, without evaluation and loading", zh="两步训练，不含验证与加载"),
    "plan/script-next": Text(en="next: headway run -- {line}", zh="下一步：headway run -- {line}"),
    "plan/title": Text(en="plan for {recipe}", zh="{recipe} 的训练计划"),
    "plan/column-what": Text(en="what", zh="项目"),
    "plan/column-value": Text(en="value", zh="取值"),
    "plan/column-origin": Text(en="from", zh="来源"),
    "plan/next": Text(en="next: headway train {args}", zh="下一步：headway train {args}"),
    "plan/help": Text(
        en="Show the plan of a run on this machine: devices, batch size, learning rate, length.\n\n"
        "SOURCE is a recipe or a config file; settings are written key=value. Nothing is started.\n"
        "The exit code is 4 when nothing fits; the nearest settings that fit are then shown.\n\n"
        "With --script, your own PyTorch script is run up to its second step on fake tensors, without a GPU;\n"
        "files that it would save or overwrite are not changed.\n\n"
        "With --model, a public model is planned from its published shape (or its config.json):\n"
        "Llama, Qwen, Mistral, Gemma, GPT-2, ViT, ResNet, Swin, Mask R-CNN, SegFormer and others (--model list).\n"
        "A model without a formula is built with the installed transformers or timm and traced.\n\n"
        "Example:\n"
        "  headway plan nanochat batch.per_device=4 parallel.cpus=1\n"
        "  headway plan run.yaml --json\n"
        "  headway plan --script 'train.py --batch 8' --on 2x4090\n"
        "  headway plan --model llama-3.1-8b method=lora seq=4096 --on 1x4090",
        zh="显示训练在本机上的计划：设备、批大小、学习率、长度。\n\n"
        "SOURCE 是配方名或配置文件；设置写作 key=value。不会启动任何训练。\n"
        "没有可行的计划时退出码为 4，并给出最接近的可行设置。\n\n"
        "--script 会用假张量（不需要 GPU）把你自己的 PyTorch 脚本运行到第二步；\n"
        "它本来会保存或覆盖的文件保持不变。\n\n"
        "--model 按公布的结构（或 config.json）规划公开的模型：\n"
        "Llama、Qwen、Mistral、Gemma、GPT-2、ViT、ResNet、Swin、Mask R-CNN、SegFormer 等（--model list）。\n"
        "没有公式的模型由已安装的 transformers 或 timm 构建并追踪。\n\n"
        "示例：\n"
        "  headway plan nanochat batch.per_device=4 parallel.cpus=1\n"
        "  headway plan run.yaml --json\n"
        "  headway plan --script 'train.py --batch 8' --on 2x4090\n"
        "  headway plan --model llama-3.1-8b method=lora seq=4096 --on 1x4090",
    ),
    "plan/help-trace": Text(
        en="forecast memory by tracing the real model and step (takes seconds, no GPU needed) instead of by formula; "
        "the default when there is no formula",
        zh="追踪真实的模型与训练步来预测显存（需数秒，不需要 GPU），而不用公式；没有公式的配方默认如此",
    ),
    "plan/help-script": Text(
        en="plan your own script: its launch line, in quotes. It is run up to its second step on fake tensors; files "
        "written by native code, other programs it starts and network access are not blocked",
        zh=(
            "规划你自己的脚本：引号里写它的启动命令。脚本会用假张量运行到第二步；"
            "原生代码写文件、它启动的其他程序和网络访问不会被拦截"
        ),
    ),
    "plan/help-model": Text(
        en="plan a public model by its name or config.json; settings: batch, accumulation, seq or image, precision, "
        "optimizer, method, rank, targets, frozen, recompute, strategy (or zero=1|2|3), tensor, compile, loss, "
        "attention, lengths, stack",
        zh=(
            "按名字或 config.json 规划公开的模型；设置有 batch、accumulation、seq 或 image、precision、optimizer、"
            "method、rank、targets、frozen、recompute、strategy（或 zero=1|2|3）、tensor、compile、loss、"
            "attention、lengths、stack"
        ),
    ),
    "plan/help-probe": Text(
        en="measure a few real steps on this machine first; the plan then uses the measured time",
        zh="先在本机实测几步，计划按实测给出时间",
    ),
    "plan/help-what-if": Text(
        en="also show other batch sizes, strategies and numbers of ranks",
        zh="同时显示其他批大小、并行方式和 rank 数的结果",
    ),
    "plan/help-json": Text(
        en="print one JSON object (plan/1; with --script, plan-script/1; with --model, plan-model/1)",
        zh="输出一个 JSON 对象（plan/1；用 --script 时为 plan-script/1，用 --model 时为 plan-model/1）",
    ),
}
