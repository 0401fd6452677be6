"""The commands of a run of real size, one after the other, for `real_sizes.py`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from blake3 import blake3

from headway.checkpoint import Manifest, list_checkpoints, read_manifest, verify_checkpoint
from headway.telemetry import RunDir, read_events
from headway.weights.layout import Header
from headway.weights.reading import open_folder, open_inside, read_at, read_header

SIZED = str(Path(__file__).parent / "sized")
_CHUNK = 16 << 20
_LOOK = """
import json, sys
import torch
from safetensors import safe_open
one, two = sys.argv[1:]
other = torch.load(two, weights_only=True, mmap=True)
with safe_open(one, "pt") as file:
    names = sorted(file.keys())
    same = names == sorted(other) and all(torch.equal(file.get_tensor(name), other[name]) for name in names)
    print(json.dumps({"num": len(names), "same": same}))
"""


def headway(place: Path, *words: str, timeout_s: float = 3000) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end."""
    line = [sys.executable, "-m", "headway", "--lang", "en", *words]
    environ = {**os.environ, "HOME": str(place), "OMP_NUM_THREADS": "1"}
    return subprocess.run(line, cwd=place, env=environ, capture_output=True, text=True, timeout=timeout_s)


def run_commands(place: Path, *, gb: float, tensors: int, ranks: int, strategy: str) -> Iterator[tuple[str, str, str]]:
    """Yield (case, what is wrong, facts) for everything a run of this size goes through."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    words = [
        f"task.state_mb={round(gb * 1000)}", f"task.tensors={tensors}", f"parallel.cpus={ranks}",
        f"parallel.strategy={strategy}", "train.steps=4", "save.every=2", "save.keep_last=9", "eval.every=1000",
        "eval.samples=4",
    ]  # fmt: skip
    began = time.monotonic()
    ended = headway(place, "train", SIZED, *words, "--no-trace")
    taken = time.monotonic() - began
    runs = sorted((place / "runs").glob("*/job.json"))
    if ended.returncode or not runs:
        yield "train", f"exit {ended.returncode}: {_end(ended)}", ""
        return
    run = RunDir(runs[0].parent)
    saves = [event for event in read_events(run.events) if event["kind"] == "checkpoint_committed"]
    yield "train", "" if [event["step"] for event in saves] == [2, 4] else f"saved {saves}", _saves(saves, taken)
    whole = list_checkpoints(run.checkpoints)[-1].path

    for case, check in (
        ("verify", lambda: _verify(place, run)),
        ("fork, bit-equal", lambda: _fork(place, run, whole)),
        ("export and import", lambda: _export(place, run, whole)),
        ("eval", lambda: _ask(place, "eval", run.name, "--json")),
        ("predict", lambda: _ask(place, "predict", run.name, "row=3", "--json")),
        ("resume", lambda: _resume(place, run, "train.steps=5", ranks=ranks)),
        ("prune", lambda: _prune(place, run)),
        (f"resume on {3 - ranks} ranks", lambda: _resume(place, run, "train.steps=6", ranks=3 - ranks)),
    ):
        yield _timed(case, check)
    shutil.rmtree(place)


def hash_tensors(path: Path, manifest: Manifest | None = None) -> dict[str, str]:
    """Return a hash of every tensor of a checkpoint, whatever the ranks that wrote it."""
    manifest = manifest or read_manifest(path)
    found = {}
    with open_folder(path) as folder:
        headers: dict[str, Header] = {}
        for name, tensor in manifest.tensors.items():
            if name.startswith("rng/"):
                continue
            hasher = blake3()
            for piece in sorted(tensor.pieces, key=lambda piece: piece.offset):
                with open_inside(folder, piece.file, where=path) as fd:
                    if piece.file not in headers:
                        headers[piece.file] = read_header(fd, where=path / piece.file)
                    header = headers[piece.file]
                    span = header.spans[piece.key]
                    for at in range(span.start, span.end, _CHUNK):
                        length = min(_CHUNK, span.end - at)
                        hasher.update(read_at(fd, header.data_start + at, length, where=path))
            found[name] = hasher.hexdigest()
    return found


def _timed(case: str, check: Callable[[], str]) -> tuple[str, str, str]:
    began = time.monotonic()
    try:
        wrong = check()
    except Exception as err:  # a case that cannot be judged is wrong
        wrong = f"{type(err).__name__}: {err}"
    return case, wrong, f"{time.monotonic() - began:.1f} s"


def _verify(place: Path, run: RunDir) -> str:
    ended = headway(place, "ckpt", "verify", run.name, "--json")
    answer = json.loads(ended.stdout)
    return "" if ended.returncode == 0 and len(answer["checkpoints"]) == 2 else _end(ended)


def _fork(place: Path, run: RunDir, whole: Path) -> str:
    """Go back to step 2 in a run of its own: step 4 must come out as it did without the way back."""
    before = set((place / "runs").iterdir())
    ended = headway(place, "resume", run.name, "--step", "2", "--no-trace")
    (fork,) = set((place / "runs").iterdir()) - before
    if ended.returncode:
        return _end(ended)
    last = list_checkpoints(RunDir(fork).checkpoints)[-1].path
    one, two = hash_tensors(whole), hash_tensors(last)
    differing = [name for name in one if one[name] != two.get(name)]
    shutil.rmtree(fork)
    return "" if not differing and one.keys() == two.keys() else f"{len(differing)} tensors differ: {differing[:2]}"


def _export(place: Path, run: RunDir, whole: Path) -> str:
    """Write both kinds of file; torch and the safetensors library must read the same from them."""
    one = headway(place, "ckpt", "export", run.name, "--to", "weights.safetensors")
    two = headway(place, "ckpt", "export", run.name, "--format", "pt", "--to", "exported")
    if one.returncode or two.returncode:
        return _end(one) + _end(two)
    model = next((place / "exported").glob("model_*.pt"))
    line = [sys.executable, "-c", _LOOK, str(place / "weights.safetensors"), str(model)]
    looked = subprocess.run(line, capture_output=True, text=True, timeout=900, check=True)
    answer = json.loads(looked.stdout)
    expected = sum(name.startswith("model/") for name in read_manifest(whole).tensors)
    if answer != {"num": expected, "same": True}:
        return f"{answer}, {expected} tensors expected"
    (place / "weights.safetensors").unlink()
    return _import(place, run, whole, model)


def _import(place: Path, run: RunDir, whole: Path, model: Path) -> str:
    """Begin a run with the exported weights: its step 0 must hold them, byte for byte."""
    config = json.loads(run.job.read_text())["config"]
    words = [f"task.{key}={config['task'][key]}" for key in ("state_mb", "tensors")]
    ended = headway(place, "ckpt", "import", SIZED, str(model), "--to", "imported", "parallel.cpus=1", *words)
    shutil.rmtree(model.parent)
    if ended.returncode:
        return _end(ended)
    one, two = hash_tensors(whole), hash_tensors(list_checkpoints(RunDir(place / "imported").checkpoints)[-1].path)
    shutil.rmtree(place / "imported")
    differing = [name for name in one if name.startswith("model/") and one[name] != two.get(name)]
    return f"{len(differing)} tensors differ: {differing[:2]}" if differing else ""


def _ask(place: Path, *words: str) -> str:
    ended = headway(place, *words)
    return "" if ended.returncode == 0 and json.loads(ended.stdout)["step"] == 4 else _end(ended)


def _resume(place: Path, run: RunDir, *words: str, ranks: int) -> str:
    """Train on; the history must say from where, and the newest checkpoint must pass."""
    before = list_checkpoints(run.checkpoints)[-1].step
    extra = [] if ranks == json.loads(run.plan.read_text())["world_size"] else [f"parallel.cpus={ranks}"]
    ended = headway(place, "resume", run.name, *words, *extra, "--no-trace")
    if ended.returncode:
        return _end(ended)
    started = [event for event in read_events(run.events) if event["kind"] == "training_started"][-1]
    newest = list_checkpoints(run.checkpoints)[-1]
    verify_checkpoint(newest.path)
    is_right = started["step"] == before and newest.step == before + 1
    return "" if is_right else f"went on from {started['step']}, newest {newest.step}"


def _prune(place: Path, run: RunDir) -> str:
    ended = headway(place, "ckpt", "prune", run.name, "--keep-last", "1", "--yes")
    left = list_checkpoints(run.checkpoints)
    # The newest and, where that is another one, the best.
    return (
        ""
        if ended.returncode == 0 and 1 <= len(left) <= 2 and left[-1].step == 5
        else f"{len(left)} left {_end(ended)}"
    )


def _saves(saves: list[dict[str, Any]], taken: float) -> str:
    stalls = ", ".join(f"{event['stall_s']:.2f}" for event in saves)
    commits = ", ".join(f"{event['write_s']:.1f}" for event in saves)
    size = saves[-1]["bytes"] / 1e9 if saves else 0.0
    return f"{taken:.0f} s, {size:.2f} GB, stalls {stalls} s, commits {commits} s"


def _end(ended: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    return " | ".join(lines[-4:])[-400:]
