"""配方 mytask 的设置与预设。本文件在加载任何框架之前读取，所以不要在这里 import torch。"""

from headway.task import Count, Recipe, Section


class MytaskSection(Section):
    """配置中的 `task` 段。字段下面的字符串就是它的帮助：headway config explain task"""

    width: Count = 32
    """每个隐藏层的单元数。"""
    depth: Count = 2
    """隐藏层数。"""
    samples: Count = 1000
    """训练样本数。"""


RECIPE = Recipe(
    name="mytask",
    section=MytaskSection,
    task="task",  # 同目录下的 task.py
    # 没有指定时使用的设置；全部配置项见 headway config explain
    defaults={"batch.per_device": 32, "train.epochs": 20, "lr.base": 0.01},
    # headway train … preset=large
    presets={"large": {"task.width": 256, "task.depth": 4}},
    # 知道样本数，打开数据之前就能把轮数换算成步数。
    train_samples=lambda section: section.samples,
)
