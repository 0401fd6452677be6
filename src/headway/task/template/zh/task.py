"""配方 mytask 学什么：样本、模型、损失和指标。只有训练的各个 rank 会导入本文件。

其余由训练循环负责：梯度累积、梯度裁剪、精度、多张 GPU、检查点、断点续训。
"""

from itertools import pairwise

import torch
from torch import nn
from torch.utils.data import Dataset

from headway.task import Loss, Samples, Task, make_groups


class Points(Dataset):
    """正弦曲线上的点，仅作示例。换成自己的数据集：需要 __len__ 和 __getitem__。"""

    def __init__(self, size, start):
        self.size, self.start = size, start

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        x = torch.tensor([0.37 * (self.start + index) % 6.0 - 3.0])
        # torch、numpy、random 的随机数按样本设定种子，断点续训后得到相同的样本。
        return {"x": x + 0.01 * torch.randn(1), "y": torch.sin(x)}


class MytaskTask(Task):
    """用一个小网络拟合这些点。"""

    best = ("mse", "min")  # 按这项指标决定哪个检查点最佳

    def __init__(self, config):
        self.config, self.section = config, config.task

    def build_model(self):
        width = self.section.width
        sizes = [1] + [width] * self.section.depth
        hidden = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(sizes)]
        return nn.Sequential(*hidden, nn.Linear(width, 1))

    def blocks(self, model):
        """返回重复的部分：FSDP 逐个分片，激活重计算也以它们为单位。"""
        return list(model)[:-1]

    def param_groups(self, model):
        """返回要训练的参数；优化器由配置决定（optimizer.name=adamw、adam、muon 或 sgd）。"""
        return make_groups(model, self.blocks(model), self.config.optimizer, lr=self.config.lr.base)

    def train_data(self):
        return Samples(Points(self.section.samples, start=0), seed=self.config.seed)

    def eval_data(self):
        return Samples(Points(200, start=self.section.samples), seed=self.config.seed)

    def data_id(self):
        """返回能识别训练数据的内容；数据变了就不能断点续训。"""
        return {"samples": str(self.section.samples)}

    def loss(self, model, batch):
        """返回总和与个数，而不是平均值：除法由训练循环对所有 rank 和微批统一进行。"""
        error = (model(batch["x"]) - batch["y"]).square()
        return Loss(error.sum(), error.numel())

    def measures(self, model, batch):
        """返回一个验证批次上的各项总和；训练循环会把它们相加。"""
        error = (model(batch["x"]) - batch["y"]).square()
        return {"error": error.sum(), "count": torch.tensor(float(error.numel()))}

    def summarize(self, sums):
        """把总和换算成给人看的指标。"""
        return {"mse": sums["error"] / sums["count"]}


def make_task(config):
    """返回这个任务；各个 rank 按这个函数名查找。"""
    return MytaskTask(config)
