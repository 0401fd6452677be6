"""Texts of the engine's MindSpore half."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "mindspore/missing": Text(
        en="MindSpore is not installed for {python}, but this run needs it",
        zh="{python} 没有安装 MindSpore，而本次训练需要它",
        en_hint=(
            "install it, name an interpreter that has it, or train the same model with PyTorch:\n"
            "  {python} -m pip install 'mindspore>=2.7' 'numpy<2'\n"
            "  env.python={other}\n"
            "  task.framework=torch"
        ),
        zh_hint=(
            "安装它、指定已安装它的解释器，或改用 PyTorch 训练同一模型：\n"
            "  {python} -m pip install 'mindspore>=2.7' 'numpy<2'\n"
            "  env.python={other}\n"
            "  task.framework=torch"
        ),
    ),
    "mindspore/ready": Text(
        en="MindSpore {mindspore} with numpy {numpy}: {python}",
        zh="已安装 MindSpore {mindspore} 与 numpy {numpy}：{python}",
    ),
    "mindspore/computes": Text(en="MindSpore works on {target}", zh="MindSpore 可以在 {target} 上计算"),
    "mindspore/numpy": Text(
        en="MindSpore {mindspore} needs numpy 1.x, but numpy {numpy} is installed",
        zh="MindSpore {mindspore} 需要 numpy 1.x，而当前安装的是 numpy {numpy}",
        en_hint=("install an older one:\n  pip install 'numpy<2'"),
        zh_hint=("安装较旧的版本：\n  pip install 'numpy<2'"),
    ),
    "mindspore/device": Text(
        en="MindSpore {mindspore} cannot use {target}: {why:said}",
        zh="MindSpore {mindspore} 无法使用 {target}：{why:said}",
        en_hint=("install the MindSpore build for this device, or train on the CPU:\n  task.device_target=CPU"),
        zh_hint=("安装对应该设备的 MindSpore 版本，或在 CPU 上训练：\n  task.device_target=CPU"),
    ),
    "mindspore/uses-torch": Text(
        en="MindSpore cannot use the {gpu} here, so the same model is trained with PyTorch: {why:said}",
        zh="MindSpore 无法使用这里的 {gpu}，改用 PyTorch 训练同一模型：{why:said}",
    ),
    "mindspore/sink": Text(
        en="task.data_sink=true needs a queue on the device, but MindSpore has none on {target}",
        zh="task.data_sink=true 需要设备上的队列，而 MindSpore 在 {target} 上没有这种队列",
        en_hint=("switch it off; task.prefetch loads ahead on every device:\n  task.data_sink=false"),
        zh_hint=("关闭它；task.prefetch 在任何设备上都能预取：\n  task.data_sink=false"),
    ),
    "mindspore/out-of-memory": Text(
        en="the device ran out of memory: {why:said}",
        zh="设备显存或内存不足：{why:said}",
        en_hint="lower batch.per_device, task.max_frames or task.crop_size, or raise task.max_device_memory",
        zh_hint="减小 batch.per_device、task.max_frames 或 task.crop_size，或调大 task.max_device_memory",
    ),
    "mindspore/compile": Text(
        en="MindSpore could not compile the step: {why:said}",
        zh="MindSpore 编译计算图失败：{why:said}",
        en_hint=(
            "run line by line to see the place; task.dump=true keeps the graphs in the run directory:\n"
            "  task.graph_mode=false"
        ),
        zh_hint=("逐行运行以定位；task.dump=true 会把计算图保存在训练目录中：\n  task.graph_mode=false"),
    ),
    "mindspore/package": Text(
        en="a package that MindSpore needs is missing: {why:said}",
        zh="缺少 MindSpore 依赖的包：{why:said}",
        en_hint="install it for the interpreter of the ranks (see env.python)",
        zh_hint="把它安装到 rank 所用的解释器中（见 env.python）",
    ),
    "mindspore/scheduler": Text(
        en="the MindSpore ranks could not connect to each other: {why:said}",
        zh="MindSpore 各 rank 之间未能建立连接：{why:said}",
        en_hint=("try again; if it fails again, train in one process:\n  parallel.cpus=1"),
        zh_hint=("重试；如果仍然失败，用单进程训练：\n  parallel.cpus=1"),
    ),
    "mindspore/no-task": Text(
        en="the recipe {recipe} has no MindSpore task",
        zh="配方 {recipe} 没有 MindSpore 版的任务",
        en_hint="train it with PyTorch",
        zh_hint="改用 PyTorch 训练",
    ),
    "mindspore/not-supported": Text(
        en="{key} has no effect in MindSpore runs, so it is not accepted",
        zh="{key} 在 MindSpore 训练中不起作用，因此不接受",
        en_hint=("leave it out, or use PyTorch:\n  task.framework=torch"),
        zh_hint=("去掉该设置，或改用 PyTorch：\n  task.framework=torch"),
    ),
    "mindspore/other-framework": Text(
        en="{path} was written by a PyTorch run: MindSpore can load its weights, but not its optimizer and random "
        "state",
        zh="{path} 由 PyTorch 训练写入：MindSpore 可以加载其中的权重，但无法恢复优化器状态和随机状态",
        en_hint=("resume with PyTorch:\n  task.framework=torch"),
        zh_hint=("改用 PyTorch 继续训练：\n  task.framework=torch"),
    ),
}
