"""Many small things instead of a few large ones, for `real_sizes.py`: steps, samples, checkpoints, runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from headway.checkpoint.commit import SaveFields
from headway.checkpoint.shard import Box, Shard
from headway.checkpoint.writer import Save, Writer
from headway.telemetry import MetricsWriter, RunDir
from headway.weights.layout import lay_out
from sizes_commands import SIZED, headway

Case = tuple[str, str, str]


def run_many(place: Path, *, scale: float) -> Iterator[Case]:
    """Yield the cases; `scale` makes all numbers smaller, for a quick look."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    yield from _samples(place, round(100_000 * scale))
    run = RunDir(next((place / "runs").iterdir()))
    yield from _steps(place, run, round(1_000_000 * scale))
    yield from _checkpoints(place, run, round(1_000 * scale))
    yield from _runs(place, run, round(500 * scale))
    shutil.rmtree(place)


def _samples(place: Path, num: int) -> Iterator[Case]:
    """Train on samples that are one file each."""
    files = place / "samples"
    for start in range(0, num, 1000):
        folder = files / f"{start // 1000:05d}"
        folder.mkdir(parents=True)
        for i in range(start, min(start + 1000, num)):
            (folder / f"{i}.txt").write_text(str(i))
    words = [f"task.files={files}", f"task.samples={num}", "task.state_mb=3", "parallel.cpus=1", "train.steps=20"]
    began = time.monotonic()
    ended = headway(place, "train", SIZED, *words, "--no-trace", "batch.per_device=64", "eval.samples=4")
    wrong = "" if ended.returncode == 0 else ended.stderr[-300:]
    shutil.rmtree(files)
    yield f"{num} samples in files", wrong, f"{time.monotonic() - began:.1f} s"


def _steps(place: Path, run: RunDir, num: int) -> Iterator[Case]:
    """Give a finished run very many steps; everything that reads them must still answer."""
    run.metrics(0).unlink()
    writer = MetricsWriter(run.metrics(0), 1)
    for step in range(1, num + 1):
        writer.add(step, step * 4, 1 / step, 1e-3, 0.5, 1.8e9 + step, 0.01, *[0.001] * 7, 10_000_000)
        if step % 10_000 == 0:
            writer.flush()
    writer.close()
    for words in (("runs", "--json"), ("report", run.name), ("export", run.name)):
        yield _measured(place, f"{words[0]}, {num} steps", words)


def _checkpoints(place: Path, run: RunDir, num: int) -> Iterator[Case]:
    """Keep very many checkpoints in one run: list, verify, prune."""
    keep = SimpleNamespace(keep_last=num + 10, keep_every=None, keep_best=False)
    events: list[dict] = []
    writer = Writer(run.checkpoints, rank=0, world_size=1, attempt=9, retention=keep, report=events.append)
    spans = lay_out({"model/w": ("F32", (8, 8))})
    began = time.monotonic()
    for step in range(1001, 1001 + num):
        data = memoryview(bytearray(step.to_bytes(4, "little") * 64))
        shard = Shard(boxes={"model/w": Box("model/w", (8, 8), (0, 0))}, spans=spans, data=data)
        writer.begin(Save(step=step, shard=shard, fields=SaveFields(), stall_s=0.0, began=time.monotonic()))
        writer.wait(None)
    taken = time.monotonic() - began
    committed = sum(event["kind"] == "checkpoint_committed" for event in events)
    yield f"{num} saves", "" if committed == num else f"{committed} committed", f"{taken / num * 1000:.0f} ms each"
    yield _measured(place, f"ckpt list, {num}", ("ckpt", "list", run.name, "--json"))
    yield _measured(place, f"ckpt verify, {num}", ("ckpt", "verify", run.name, "--json"))
    yield _measured(place, f"ckpt prune, {num}", ("ckpt", "prune", run.name, "--keep-last", "2", "--yes"))
    left = len(list(run.checkpoints.glob("step-*")))
    yield "prune left", "" if left <= 3 else f"{left} left", f"{left}"


def _runs(place: Path, run: RunDir, num: int) -> Iterator[Case]:
    """Fill a folder with runs."""
    run.metrics(0).unlink()
    shutil.rmtree(run.checkpoints)
    for number in range(num - 1):
        name = run.name[:-4] + f"{number:04x}"
        shutil.copytree(run.root, run.root.parent / name, dirs_exist_ok=True)
    case, wrong, facts = _measured(place, f"runs, {num}", ("runs", "--json"), is_parsed=True)
    yield case, wrong, facts
    yield _measured(place, f"runs on a screen, {num}", ("runs",))


def _measured(place: Path, case: str, words: tuple[str, ...], *, is_parsed: bool = False) -> Case:
    """Run a command as a child; return its time and its peak memory."""
    line = [sys.executable, "-m", "headway", "--lang", "en", *words]
    began = time.monotonic()
    with (place / "out").open("w+b") as out:
        child = subprocess.Popen(line, cwd=place, stdout=out, stderr=out, env={**os.environ, "HOME": str(place)})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    facts = f"{time.monotonic() - began:.1f} s, {_mb(usage):.0f} MB"
    wrong = "" if child.returncode == 0 else f"exit {child.returncode}: {text[-300:]}"
    if is_parsed and not wrong:
        wrong = "" if len(json.loads(text)["runs"]) == int(case.split()[-1]) else "runs are missing"
    return case, wrong, facts


def _mb(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss * 1024 / 1e6
