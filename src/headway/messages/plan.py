"""Texts of the plan stage and of `headway plan`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    # refusals
    "plan/batch-does-not-divide": Text(
        en="batch.total={total} {unit} is no multiple of {multiple} ({factors})",
        zh="batch.total={total}（单位 {unit}）不是 {multiple} 的整数倍（{factors}）",
        en_hint="the nearest settings that divide:\n{choices}",
        zh_hint="能整除的最接近的设置：\n{choices}",
    ),
    "plan/batch-disagrees": Text(
        en="batch.total={total} {unit}, but {factors} gives {multiple}",
        zh="batch.total={total}（单位 {unit}），但 {factors} 等于 {multiple}",
        en_hint="give two of the three and Headway derives the third, or one of these:\n{choices}",
        zh_hint="三个值给出两个即可，第三个由 Headway 推出；或改用下列设置之一：\n{choices}",
    ),
    "plan/all-devices-does-not-divide": Text(
        en="batch.all_devices={whole} over {ranks} ranks is not batch.per_device={per_device} whole samples on each",
        zh="batch.all_devices={whole} 分给 {ranks} 个 rank，每个 rank 得不到整数个样本（batch.per_device={per_device}）",
        en_hint="set {choices}, or give batch.per_device instead",
        zh_hint="设 {choices}，或改为直接给出 batch.per_device",
    ),
    "plan/no-tokens": Text(
        en="batch.unit=tokens, but a sample of this recipe has no fixed number of tokens (batch.total={total})",
        zh="batch.unit=tokens，但该配方的样本没有固定的 token 数（batch.total={total}）",
        en_hint="set batch.unit=samples and give batch.total in samples",
        zh_hint="设 batch.unit=samples，并以样本数给出 batch.total",
    ),
    "plan/no-length": Text(
        en="nothing says how long the run is",
        zh="没有给出训练长度",
        en_hint="give one of train.steps=1000, train.samples=100000, train.epochs=3",
        zh_hint="任选一个给出：train.steps=1000、train.samples=100000、train.epochs=3",
    ),
    "plan/length-twice": Text(
        en="the length of the run is given more than once: {given}",
        zh="训练长度重复给出：{given}",
        en_hint="keep one of them",
        zh_hint="只保留一个",
    ),
    "plan/epochs-unknown": Text(
        en="train.epochs={epochs}, but the size of the training set is not known before the data is prepared",
        zh="train.epochs={epochs}，但数据准备好之前不知道训练集的大小",
        en_hint="prepare the data first, or give train.steps=1000 or train.samples=100000",
        zh_hint="先准备数据，或改用 train.steps=1000 或 train.samples=100000",
    ),
    "plan/fp16-on-cpu": Text(
        en="train.precision=fp16 needs a GPU: CPU kernels for fp16 are slow or missing, and its range needs a scaler",
        zh="train.precision=fp16 需要 GPU：CPU 上的 fp16 算子很慢或缺失，而且 fp16 的数值范围需要损失缩放",
        en_hint="set train.precision=bf16 or train.precision=fp32",
        zh_hint="改为 train.precision=bf16 或 train.precision=fp32",
    ),
    "plan/single-many": Text(
        en="parallel.strategy=single is one rank, but {ranks} are asked for",
        zh="parallel.strategy=single 只用一个 rank，这里却要 {ranks} 个",
        en_hint="set parallel.strategy=ddp, or ask for one: parallel.gpus=1 or parallel.cpus=1",
        zh_hint="改为 parallel.strategy=ddp；或只用一个：parallel.gpus=1 或 parallel.cpus=1",
    ),
    # warnings
    "plan/ranks-over-cores": Text(
        en="{ranks} CPU ranks share {cores} cores: slower than {cores} ranks",
        zh="{ranks} 个 CPU rank 共用 {cores} 个核：比 {cores} 个 rank 更慢",
        en_hint="set parallel.cpus={cores}",
        zh_hint="改为 parallel.cpus={cores}",
    ),
    "plan/threads-over-cores": Text(
        en="{ranks} ranks of {threads} threads share {cores} cores",
        zh="{ranks} 个 rank 各 {threads} 个线程，共用 {cores} 个核",
        en_hint="leave parallel.threads out and the cores are shared out",
        zh_hint="不写 parallel.threads 时会自动均分",
    ),
    "plan/bf16-emulated": Text(
        en="{gpu} (compute capability {capability}) has no bf16 units: bf16 is emulated and slow",
        zh="{gpu}（计算能力 {capability}）没有 bf16 单元：bf16 只能模拟，很慢",
        en_hint="set train.precision=fp16",
        zh_hint="改为 train.precision=fp16",
    ),
    "plan/warmup-too-long": Text(
        en="warm-up takes {warmup} samples and the run has {total}: the full rate is never reached",
        zh="预热要 {warmup} 个样本，而整个训练只有 {total} 个：学习率始终达不到设定值",
        en_hint="lower lr.warmup_samples or make the run longer",
        zh_hint="减小 lr.warmup_samples，或延长训练",
    ),
    "plan/batch-over-epoch": Text(
        en="one step takes {batch} samples, but the training set has {samples}",
        zh="一步要 {batch} 个样本，而训练集只有 {samples} 个",
        en_hint="lower batch.total",
        zh_hint="减小 batch.total",
    ),
    "plan/length-overruled": Text(
        en="{key} decides the length; {over} from a lower layer has no effect",
        zh="训练长度由 {key} 决定；优先级较低的 {over} 不起作用",
    ),
    # the table
    "plan/row-device": Text(en="device", zh="设备"),
    "plan/row-ranks": Text(en="ranks", zh="rank 数"),
    "plan/row-strategy": Text(en="strategy", zh="并行方式"),
    "plan/row-precision": Text(en="precision", zh="精度"),
    "plan/row-batch-per-device": Text(en="batch per device", zh="单设备批次"),
    "plan/row-batch-accumulation": Text(en="accumulation", zh="梯度累积"),
    "plan/row-batch-samples": Text(en="batch, samples", zh="总批次（样本）"),
    "plan/row-batch-tokens": Text(en="batch, tokens", zh="总批次（token）"),
    "plan/row-steps": Text(en="steps", zh="步数"),
    "plan/row-samples": Text(en="samples", zh="样本数"),
    "plan/row-epochs": Text(en="epochs", zh="轮数"),
    "plan/row-lr-factor": Text(en="lr factor", zh="学习率倍数"),
    "plan/row-lr": Text(en="learning rate", zh="学习率"),
    "plan/row-warmup": Text(en="warm-up", zh="预热"),
    "plan/row-schedule": Text(en="schedule", zh="学习率调度"),
    "plan/row-eval-every": Text(en="validation", zh="验证"),
    "plan/row-save-every": Text(en="checkpoint", zh="检查点"),
    "plan/row-workers": Text(en="loader processes", zh="数据加载进程"),
    "plan/row-threads": Text(en="threads a rank", zh="每 rank 线程数"),
    "plan/value-none": Text(en="none", zh="无"),
    "plan/value-end": Text(en="at the end", zh="仅在结束时"),
    "plan/value-steps": Text(en="every {steps} steps", zh="每 {steps} 步"),
    "plan/value-warmup": Text(en="{samples} samples, {steps} steps", zh="{samples} 个样本，{steps} 步"),
    "plan/from-default": Text(en="default {rest}", zh="默认 {rest}"),
    "plan/from-recipe": Text(en="recipe {rest}", zh="配方 {rest}"),
    "plan/from-preset": Text(en="preset {rest}", zh="预设 {rest}"),
    "plan/from-environment": Text(en="environment {rest}", zh="环境变量 {rest}"),
    "plan/from-command-line": Text(en="command line {rest}", zh="命令行 {rest}"),
    "plan/from-free-gpus": Text(en="free GPUs: {num} of {here}", zh="空闲 GPU：{here} 个中的 {num} 个"),
    "plan/from-no-gpu": Text(en="no GPU here", zh="本机没有 GPU"),
    "plan/from-cpu-torch": Text(en="torch {torch} is CPU only", zh="torch {torch} 是 CPU 版"),
    "plan/from-one-a-gpu": Text(en="one a GPU", zh="每个 GPU 一个"),
    "plan/from-ranks": Text(en="auto for {ranks} ranks", zh="按 {ranks} 个 rank 自动选择"),
    "plan/from-bf16": Text(en="auto: every GPU has bf16", zh="自动：所有 GPU 都支持 bf16"),
    "plan/from-fp16": Text(en="auto: a GPU without bf16", zh="自动：有 GPU 不支持 bf16"),
    "plan/from-fp32": Text(en="auto: capability not known", zh="自动：GPU 计算能力未知"),
    "plan/from-fp32-cpu": Text(en="auto: fp32 on CPU", zh="自动：CPU 上用 fp32"),
    "plan/from-rule-per-device": Text(en="rule: 8 when not given", zh="规则：未给出时取 8"),
    "plan/from-rule-accumulation": Text(en="rule: 1 when not given", zh="规则：未给出时取 1"),
    "plan/from-no-scaling": Text(en="no lr.base_batch or no scaling", zh="未设 lr.base_batch 或不缩放"),
    "plan/from-kept": Text(en="kept from {ranks} ranks before", zh="沿用此前 {ranks} 个 rank 时的值"),
    "plan/from-cores": Text(en="{cores} cores / {ranks} ranks", zh="{cores} 核 / {ranks} 个 rank"),
    # headway plan
    "plan/title": Text(en="plan for {recipe}", zh="{recipe} 的训练计划"),
    "plan/column-what": Text(en="what", zh="项目"),
    "plan/column-value": Text(en="value", zh="取值"),
    "plan/column-origin": Text(en="from", zh="来源"),
    "plan/next": Text(en="next: headway train {args}", zh="下一步：headway train {args}"),
    "plan/help": Text(
        en="Show how a run would be laid out here: devices, batch, learning rate, length.\n\n"
        "SOURCE is a recipe or a config file; settings are written key=value. Nothing is started.\n"
        "Exit code 4 when no layout fits, with the nearest ones that do.\n\n"
        "Example:\n  headway plan nanochat batch.per_device=4 parallel.cpus=1\n  headway plan run.yaml --json",
        zh="显示训练在本机上的计划：设备、批次、学习率、长度。\n\n"
        "SOURCE 是配方名或配置文件；设置写作 key=value。不会启动任何训练。\n"
        "没有可行的方案时退出码为 4，并给出最接近的可行设置。\n\n"
        "示例：\n  headway plan nanochat batch.per_device=4 parallel.cpus=1\n  headway plan run.yaml --json",
    ),
    "plan/help-json": Text(en="print one JSON object (plan/1)", zh="输出一个 JSON 对象（plan/1）"),
}
