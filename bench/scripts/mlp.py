"""A plain loop over a DataLoader: digits by a perceptron, as a first tutorial writes it."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--device", default=None)
given = parser.parse_args()

torch.manual_seed(0)
device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
whole = TensorDataset(torch.randn(3000, 784), torch.randint(0, 10, (3000,)))
train, _ = random_split(whole, [2800, 200])
loader = DataLoader(
    train, batch_size=given.batch, shuffle=True, num_workers=2 if device == "cuda" else 0, drop_last=True
)

model = nn.Sequential(
    nn.Linear(784, given.width), nn.ReLU(), nn.Linear(given.width, given.width), nn.ReLU(), nn.Linear(given.width, 10)
).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

step = 0
for _ in range(1000):
    correct = 0
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(1) == y).sum().item()
        step += 1
        print(f"step {step}: loss {loss:.3f}, right {correct / (step * given.batch):.1%}")
        if step >= given.steps:
            raise SystemExit(0)
