"""A residual net on pictures with `.cuda()` written into it, SGD, a moving average of the weights, a top-5 measure."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--cpu", action="store_true")
parser.add_argument("--parallel", action="store_true")
given = parser.parse_args()


class Pictures(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        maker = torch.Generator().manual_seed(index)
        return torch.rand(3, given.size, given.size, generator=maker), index % 100


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.skip = nn.Conv2d(before, after, 1, stride, bias=False) if before != after else nn.Identity()

    def forward(self, x):
        y = nn.functional.relu(self.norm1(self.conv1(x)), inplace=True)
        return nn.functional.relu(self.norm2(self.conv2(y)) + self.skip(x), inplace=True)


def put(thing):
    return thing if given.cpu else thing.cuda()


def accuracy(output, target, top=(1, 5)):
    with torch.no_grad():
        _, found = output.topk(max(top), 1, True, True)
        right = found.t().eq(target.view(1, -1).expand_as(found.t()))
        return [right[:k].reshape(-1).float().sum(0) * (100.0 / target.size(0)) for k in top]


width = given.width
stages = [Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)]
model = nn.Sequential(
    *(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
    *stages,
    *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 100)),
)
model = put(torch.nn.DataParallel(model) if given.parallel else model)
average = copy.deepcopy(model).eval().requires_grad_(False)
criterion = put(nn.CrossEntropyLoss())
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
loader = DataLoader(
    Pictures(), batch_size=given.batch, shuffle=True, num_workers=0 if given.cpu else 4, pin_memory=not given.cpu
)

step = 0
while True:
    for images, target in loader:
        images, target = put(images), put(target)
        output = model(images)
        loss = criterion(output, target)
        first, fifth = accuracy(output, target)
        if torch.isnan(loss):
            raise RuntimeError("loss is not a number")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, now in zip(average.parameters(), model.parameters(), strict=True):
                kept.lerp_(now, 0.01)
        step += 1
        print(step, loss.item(), first.item(), float(fifth), images[0, 0, 0, 0].cpu().numpy())
        if step == given.steps:
            raise SystemExit(0)
