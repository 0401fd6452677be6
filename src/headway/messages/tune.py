"""Texts of `headway tune`."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "tune/help": Text(
        en="Try settings in short real runs on this machine and write the fastest into the config.\n\n"
        "Searched: micro-batch (the total batch stays), precision, activation checkpointing, compilation,\n"
        "threads, data loader workers and how much they prefetch. Settings typed as key=value are not changed.\n"
        "Every probe runs in its own processes, with optimizer state and a validation batch; running out of memory\n"
        "is a result like any other. Comments, order and key names of the file are kept.\n"
        "The exit code is 4 when nothing fits and 5 when nothing runs, with the reason of every probe.\n\n"
        "Example:\n"
        "  headway tune run.yaml --budget 10m\n"
        "  headway tune nanochat --write-to fast.yaml --lr-range",
        zh="在本机上用短时间的真实训练尝试各种设置，把最快的写入配置。\n\n"
        "搜索内容：微批（总批大小不变）、精度、激活重计算、编译、线程数、数据加载进程数及其预取量。\n"
        "以 key=value 给出的设置保持不变。\n"
        "每次试测都在独立的进程里进行，包含优化器状态和一个验证批次；显存不足也只是一种结果。\n"
        "文件中的注释、顺序和原有的配置项名称都会保留。\n"
        "全都放不下时退出码为 4，全都无法运行时为 5，并列出每次试测的原因。\n\n"
        "示例：\n"
        "  headway tune run.yaml --budget 10m\n"
        "  headway tune nanochat --write-to fast.yaml --lr-range",
    ),
    "tune/help-budget": Text(en="time limit for the search: 90s, 10m, 1h", zh="整个搜索的时间预算：90s、10m、1h"),
    "tune/help-write-to": Text(
        en="write the result into this YAML file; the source file is not changed",
        zh="把结果写入这个 YAML 文件，源文件保持不变",
    ),
    "tune/help-lr-range": Text(
        en="then raise the learning rate during a short training and suggest lr.base",
        zh="随后在一段短训练中逐步提高学习率，给出合适的 lr.base",
    ),
    "tune/help-dry-run": Text(en="show what would be tried, run nothing", zh="只显示将要尝试的设置，不试测"),
    "tune/help-yes": Text(en="write without asking", zh="不询问，直接写入"),
    "tune/help-json": Text(en="print one JSON object (tune/1)", zh="输出一个 JSON 对象（tune/1）"),
    # the screen
    "tune/space-title": Text(en="to try ({grid} combinations)", zh="待尝试（共 {grid} 种组合）"),
    "tune/probing": Text(en="probe {number}: {words}", zh="试测 {number}：{words}"),
    "tune/best-so-far": Text(en="fastest so far: {rate} samples/s", zh="目前最快 {rate} 样本/秒"),
    "tune/probe-ok": Text(
        en="probe {number}: {words}: {rate} samples/s, step {step}, {memory}",
        zh="试测 {number}：{words}：{rate} 样本/秒，每步 {step}，{memory}",
    ),
    "tune/probe-bad": Text(en="probe {number}: {words}: {why:said}", zh="试测 {number}：{words}：{why:said}"),
    "tune/start-words": Text(en="as configured", zh="按当前配置"),
    "tune/title": Text(
        en="{num} probes of {grid} combinations in {took}", zh="{num} 次试测（共 {grid} 种组合），用时 {took}"
    ),
    "tune/column-settings": Text(en="settings", zh="设置"),
    "tune/column-rate": Text(en="samples/s", zh="样本/秒"),
    "tune/column-memory": Text(en="{memory:word} (forecast)", zh="{memory:word}（预测）"),
    "tune/column-result": Text(en="result", zh="结果"),
    "tune/ending-ok": Text(en="ok", zh="成功"),
    "tune/ending-out-of-memory": Text(en="out of memory", zh="显存或内存不足"),
    "tune/ending-failed": Text(en="failed", zh="失败"),
    "tune/ending-too-slow": Text(en="too slow", zh="过慢"),
    "tune/ending-interrupted": Text(en="interrupted", zh="被中断"),
    "tune/skipped": Text(en="not tried: {key}={value:list}: {why:said}", zh="未尝试：{key}={value:list}：{why:said}"),
    "tune/skip-typed": Text(en="typed on the command line or set in the environment", zh="已在命令行或环境变量中指定"),
    "tune/skip-no-compiler": Text(en="no C++ compiler is installed", zh="没有安装 C++ 编译器"),
    "tune/skip-no-bf16": Text(en="this CPU has no bf16 units", zh="该 CPU 没有 bf16 单元"),
    "tune/skip-memory-enough": Text(en="memory does not limit the batch size", zh="批大小并不受显存或内存限制"),
    "tune/skip-no-wait": Text(
        en="only {share} of a step is spent waiting for data", zh="每步只有 {share} 的时间在等数据"
    ),
    "tune/skip-no-workers": Text(en="no data loader workers are used", zh="没有使用数据加载进程"),
    "tune/skip-past-best": Text(en="{best} was already faster", zh="{best} 个时已经更快"),
    "tune/skip-too-large": Text(
        en="the forecast is {used}, but a rank has only {have}", zh="预测需要 {used}，而每个 rank 只有 {have}"
    ),
    "tune/cut": Text(
        en="the search ended because the budget of {budget} was used up; a larger --budget may find faster settings",
        zh="搜索因预算 {budget} 用完而结束；增大 --budget 或许能找到更快的设置",
    ),
    "tune/best": Text(
        en="fastest: {words} ({rate} samples/s, {gain}× the starting settings)",
        zh="最快：{words}（{rate} 样本/秒，是起始设置的 {gain} 倍）",
    ),
    "tune/best-from-nothing": Text(
        en="fastest: {words} ({rate} samples/s; the starting settings did not run)",
        zh="最快：{words}（{rate} 样本/秒；起始设置无法运行）",
    ),
    "tune/already-best": Text(
        en="no setting tried is faster than the current config ({rate} samples/s)",
        zh="没有比当前配置更快的设置（{rate} 样本/秒）",
    ),
    "tune/lr-advice": Text(
        en="learning rate: the loss falls fastest near lr.base={rate}", zh="学习率：损失在 lr.base={rate} 附近下降最快"
    ),
    "tune/lr-breaks": Text(
        en="learning rate: above about lr.base={rate} the loss rises", zh="学习率：大约从 lr.base={rate} 起损失开始上升"
    ),
    "tune/lr-unclear": Text(
        en="learning rate: the loss did not fall clearly in the range test, so no lr.base can be suggested",
        zh="学习率：测试区间内损失没有明显下降，无法给出 lr.base 的建议",
    ),
    "tune/lr-failed": Text(
        en="learning rate: the range test did not complete: {why:said}", zh="学习率：区间测试未能完成：{why:said}"
    ),
    "tune/rates": Text(en="learning rate: range test", zh="学习率：区间测试"),
    "tune/ask": Text(en="write {words} into {path}?", zh="把 {words} 写入 {path}？"),
    "tune/written": Text(en="written: {words} into {path}", zh="已写入：{words}，文件 {path}"),
    "tune/record": Text(en="all probes: {path}", zh="全部试测记录：{path}"),
    "tune/next": Text(en="next: headway train {words}", zh="下一步：headway train {words}"),
    # what can go wrong
    "tune/probe-late": Text(en="not finished after {took}", zh="{took} 后仍未完成"),
    "tune/probe-interrupted": Text(en="interrupted", zh="被中断"),
    "tune/budget-unreadable": Text(
        en="--budget {given} is not a time of at least 3 seconds",
        zh="--budget 给的是 {given}，应为不少于 3 秒的时长",
        en_hint=("write it like 10m, 90s or 1h:\n  --budget 10m"),
        zh_hint=("写成 10m、90s 或 1h 这样：\n  --budget 10m"),
    ),
    "tune/budget-too-short": Text(
        en="the budget was used up before the first probe finished",
        zh="第一次试测还没完成，预算就用完了",
        en_hint=("give more time:\n  --budget 10m"),
        zh_hint=("多给一些时间：\n  --budget 10m"),
    ),
    "tune/budget-ended": Text(
        en="the budget was used up and none of the {num} probes finished:\n{reasons}",
        zh="预算用完，{num} 次试测都未完成：\n{reasons}",
        en_hint=("begin from settings that run, or give more time:\n  --budget 30m"),
        zh_hint=("从能运行的设置开始，或多给一些时间：\n  --budget 30m"),
    ),
    "tune/nothing-fits": Text(
        en="all {num} probes ran out of memory, even with the smallest micro-batch:\n{reasons}",
        zh="{num} 次试测全部显存或内存不足，最小的微批也不例外：\n{reasons}",
        en_hint=("take a smaller model, use devices with more memory, or shard it:\n  parallel.strategy=fsdp"),
        zh_hint=("换更小的模型、使用显存更大的设备，或分片：\n  parallel.strategy=fsdp"),
    ),
    "tune/nothing-runs": Text(
        en="none of the {num} probes finished:\n{reasons}",
        zh="{num} 次试测都未完成：\n{reasons}",
        en_hint=(
            "the fault is not in the settings that are searched; `headway train` with the same words shows it "
            "with its traceback"
        ),
        zh_hint="问题不在被搜索的设置上；用同样的参数运行 `headway train` 会给出完整的报错",
    ),
    "tune/rates-torch-only": Text(
        en="the ranks train with {framework}, but the learning-rate range test supports only PyTorch",
        zh="各 rank 使用 {framework} 训练，而学习率区间测试只支持 PyTorch",
        en_hint="remove --lr-range, or set task.framework=torch if the recipe supports PyTorch",
        zh_hint="去掉 --lr-range；配方支持 PyTorch 时也可设 task.framework=torch",
    ),
    "tune/source-unwritable": Text(
        en="the result of the search could not be written into {path}: {why:said}",
        zh="搜索结果无法写入 {path}：{why:said}",
        en_hint=("keep it and write a new file:\n  --write-to {near}"),
        zh_hint=("保留原文件，写入新文件：\n  --write-to {near}"),
    ),
    "tune/target-not-yaml": Text(
        en="--write-to {path}: new files can only be written as YAML",
        zh="--write-to {path}：新文件只能写成 YAML",
        en_hint="use a name that ends in .yaml",
        zh_hint="文件名以 .yaml 结尾",
    ),
    "tune/not-written": Text(
        en="{path} was not changed: reading the new text back gave different values: {why:list}",
        zh="{path} 没有改动：新内容读回后数值不一致：{why:list}",
        en_hint="give the fastest settings, printed above, on the command line instead",
        zh_hint="改为在命令行写出上面打印的最快设置",
    ),
}
