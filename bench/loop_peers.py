"""The same tiny step under other trainers, for loop_overhead.py; each is left out when it is not installed.

Each is written as its own guide writes it, and given the fair minimum: no logging, no checkpoints, no progress bar, the
fused AdamW that Headway has too. All take their batches from a DataLoader over a TensorDataset; a hand-written loop
over the same DataLoader is beside them, so that the loader's share of their time can be seen.
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset, default_collate

from tiny.work import make_data, make_model

LEAD = 20
"""Steps that a trainer with a loop of its own takes before its clock starts: its start-up is not the loop's cost."""
TimedLoop = Callable[[int], float]
"""Takes that many optimizer steps and returns the seconds they took."""


def find(batch: int) -> dict[str, TimedLoop]:
    """Return the peers that are installed, and say which are not."""
    peers: dict[str, TimedLoop] = {"raw, fused AdamW, DataLoader": raw_loader(batch)}
    for name, (make, packages) in PEERS.items():
        missing = [package for package in packages if importlib.util.find_spec(package) is None]
        if missing:
            print(f"{name}: left out, {' and '.join(missing)} not installed", file=sys.stderr)
        else:
            peers[name] = make(batch)
    return peers


def timed(steps: Callable[[int], None]) -> TimedLoop:
    """Put a clock round a loop that can be stopped and gone on with."""

    def seconds(count: int) -> float:
        began = time.perf_counter()
        steps(count)
        return time.perf_counter() - began

    return seconds


def raw_loader(batch: int) -> TimedLoop:
    """Return a hand-written loop over the peers' DataLoader."""
    model, optimizer, scheduler, loader = parts(batch)
    batches = endless(loader)

    def steps(count: int) -> None:
        for x, y in itertools.islice(batches, count):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

    return timed(steps)


def fabric(batch: int) -> TimedLoop:
    """Return a loop on Lightning Fabric."""
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    model, optimizer, scheduler, loader = parts(batch)
    model, optimizer = fabric.setup(model, optimizer)
    batches = endless(fabric.setup_dataloaders(loader))

    def steps(count: int) -> None:
        for x, y in itertools.islice(batches, count):
            loss = F.cross_entropy(model(x), y)
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

    return timed(steps)


def accelerate(batch: int) -> TimedLoop:
    """Return a loop on Accelerate."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer, loader, scheduler = accelerator.prepare(*by_accelerate(batch))
    batches = endless(loader)

    def steps(count: int) -> None:
        for x, y in itertools.islice(batches, count):
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

    return timed(steps)


def by_accelerate(batch: int) -> tuple[Any, ...]:
    """Return the parts in the order that Accelerate's guide prepares them."""
    model, optimizer, scheduler, loader = parts(batch)
    return model, optimizer, loader, scheduler


def lightning_trainer(batch: int) -> TimedLoop:
    """Return Lightning's Trainer, started again each time."""
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = make_model()

        def training_step(self, rows: tuple[Tensor, Tensor], index: int) -> Tensor:
            x, y = rows
            return F.cross_entropy(self.model(x), y)

        def configure_optimizers(self) -> dict[str, Any]:
            optimizer = make_optimizer(self)
            scheduler = {"scheduler": make_scheduler(optimizer), "interval": "step"}
            return {"optimizer": optimizer, "lr_scheduler": scheduler}

    class Clock(lightning.Callback):
        def __init__(self) -> None:
            self.at: dict[int, float] = {}

        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            self.at[trainer.global_step] = time.perf_counter()

    def seconds(count: int) -> float:
        clock = Clock()
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            trainer = lightning.Trainer(
                accelerator="cpu",
                devices=1,
                max_steps=LEAD + count,
                gradient_clip_val=1.0,
                logger=False,
                callbacks=[clock],
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                default_root_dir=folder,
            )
            trainer.fit(Module(), make_loader(batch))
        return clock.at[LEAD + count] - clock.at[LEAD]

    return seconds


def hf_trainer(batch: int) -> TimedLoop:
    """Return the Trainer of transformers, started again each time."""
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = make_model()

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.model(x)
            return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.at: dict[int, float] = {}

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            self.at[state.global_step] = time.perf_counter()

    def collate(rows: list[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        x, labels = default_collate(rows)
        return {"x": x, "labels": labels}

    def seconds(count: int) -> float:
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(
                output_dir=folder,
                use_cpu=True,
                max_steps=LEAD + count,
                per_device_train_batch_size=batch,
                learning_rate=1e-3,
                weight_decay=0.01,
                max_grad_norm=1.0,
                optim="adamw_torch_fused",
                lr_scheduler_type="cosine",
                logging_strategy="no",
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                remove_unused_columns=False,
            )
            dataset = TensorDataset(*make_data())
            trainer = Trainer(Model(), args, data_collator=collate, train_dataset=dataset, callbacks=[clock])
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return clock.at[LEAD + count] - clock.at[LEAD]

    return seconds


def parts(batch: int) -> tuple[nn.Module, torch.optim.Optimizer, LambdaLR, DataLoader[tuple[Tensor, ...]]]:
    """Return a network, its optimizer and schedule, and its batches."""
    torch.manual_seed(0)
    model = make_model()
    optimizer = make_optimizer(model)
    return model, optimizer, make_scheduler(optimizer), make_loader(batch)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Return fused AdamW."""
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def make_scheduler(optimizer: torch.optim.Optimizer) -> LambdaLR:
    """Return a cosine so long that no round reaches its end."""
    return LambdaLR(optimizer, lambda step: 0.5 + 0.5 * math.cos(step / 1e6))


def make_loader(batch: int) -> DataLoader[tuple[Tensor, ...]]:
    """Return shuffled batches, collated in this process."""
    return DataLoader(TensorDataset(*make_data()), batch_size=batch, shuffle=True)


def endless(loader: Any) -> Iterator[Any]:
    """Return the batches of one epoch after another."""
    while True:
        yield from loader


PEERS: dict[str, tuple[Callable[[int], TimedLoop], tuple[str, ...]]] = {
    "Lightning Fabric": (fabric, ("lightning",)),
    "Accelerate": (accelerate, ("accelerate",)),
    "Lightning Trainer": (lightning_trainer, ("lightning",)),
    "HF Trainer": (hf_trainer, ("transformers", "accelerate")),
}
"""Name, maker, and the packages it needs."""
