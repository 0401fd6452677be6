"""Play the steps of a guide's day in other orders: what must hold whatever was done before.

    python bench/guide_orders.py [--guide NAME …] [--seed 1] [--orders 1] [--keep DIR]
    python bench/guide_orders.py --guide layoutmaster --step start --step beside --step "break 2"

An order is drawn by its seed: start, stop, Ctrl-C twice, start again, resume an old name (also by other spellings of
its path, and with a typo), edit, evaluate, monitor, ask for help, start and evaluate beside a run at work, delete
a checkpoint, rename the project, speak English, and five ways to break it; or it is given by --step. After every step
the same is asked: the exit code, no traceback, log and screen end alike, no file of an earlier run is lost, the best
model is not replaced by a worse one, a step that starts nothing leaves no run, and no process stays. The last line is
JSON: orders, checks, kept, kept_share, by_guide.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from guide_walk import ROOT, Day

sys.path[:0] = [str(ROOT / "tests")]
_LEFT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What one guide's reader can do, as command lines."""

    prepare: Callable[[Path], Day]
    start: str
    """Trains a few steps to the end."""
    long: str
    """Trains until it is stopped."""
    step_line: str
    """How the log's lines of steps look."""
    logs: str
    folder: str
    """Of the guide's checkpoints."""
    resume: Callable[[str], str]
    """The name of a checkpoint or run to the command that continues from it."""
    is_by_run: bool = False
    """Whether a run is continued by its name, and not a checkpoint by that of its file."""
    best: str | None = None
    evaluate: str | None = None
    edits: tuple[str, str, str] = ("", "", "")
    """File, what is in it, what is written in its place; the next edit turns it back."""
    breaks: Sequence[tuple[str, str]] = ()
    """A command that cannot work, and a word that helps."""
    helps: Sequence[str] = ()
    out: str = "runs"


@dataclass(slots=True)
class Seen:
    """What an order has made so far."""

    files: dict[str, str] = field(default_factory=dict)
    """Hash of each file under a guide's name to where it was first seen."""
    best: float | None = None
    names: list[str] = field(default_factory=list)
    is_edited: bool = False


def play(plot: Plot, place: Path, seed: int, steps: Sequence[str] = ()) -> Day:
    """Do all steps in the order of a seed, or those that are given, and check after each."""
    dice = random.Random(seed)
    day, seen = plot.prepare(place), Seen()
    drawn = ["start", "start", "stop", "stop", "resume", "resume", "edit", "evaluate", "monitor", "help"]
    drawn += ["spell", "typo", "twice", "beside", "delete", "rename", "english"]
    drawn += [f"break {number}" for number in range(len(plot.breaks))]
    dice.shuffle(drawn)
    steps = steps or drawn
    print(f"  [{day.guide}] seed {seed}: {', '.join(steps)}", flush=True)
    for step in steps:
        before, name = set(day.runs(plot.out)), f"seed {seed}, {step}"
        told = _do(plot, day, seen, step, dice)
        _check(plot, day, seen, name, before, told)
    return day


def _do(plot: Plot, day: Day, seen: Seen, step: str, dice: random.Random) -> tuple[str, bool]:
    """Do one step; return what must come of it (`trained`, `stopped`, `nothing`) and whether it did."""
    match step.split():
        case ["start"]:
            return "trained", day.do(plot.start) == 0
        case ["stop"]:
            before = _sizes(plot, day)
            code = day.stop_when(plot.long, lambda: _is_going(plot, day, before))
            return "stopped", code == 130
        case ["resume"]:
            known = day.runs(plot.out) if plot.is_by_run else seen.names
            if not known:
                return "nothing", day.do(plot.resume("latest" if plot.is_by_run else "nothing_yet")) not in (0, 1)
            before = _sizes(plot, day)
            code = day.stop_when(plot.resume(dice.choice(known)), lambda: _is_going(plot, day, before))
            # Nothing is left to do for a run that has ended, and that is said with how to train longer.
            return "resumed", code in (0, 130) or (code == 2 and day.says("已完成", "headway resume"))
        case ["spell"] if seen.names:
            before = _sizes(plot, day)
            spelt = _spelt(plot, day, dice.choice(day.runs(plot.out) if plot.is_by_run else seen.names), dice)
            line = plot.resume(spelt).replace(f"{plot.folder}/{spelt}", spelt)
            code = day.stop_when(line, partial(_is_going, plot, day, before))
            return "resumed", code in (0, 130) or (code == 2 and day.says("已完成"))
        case ["typo"]:
            code = day.do(plot.resume("no_such_file.pt"))
            return "nothing", code == 2 and day.says("no_such_file")
        case ["twice"]:
            before = _sizes(plot, day)
            return "stopped", day.stop_when(plot.long, lambda: _is_going(plot, day, before), times=2) == 130
        case ["beside"]:
            return "beside", _beside(plot, day)
        case ["delete"] if seen.names:
            notes = _notes(plot, day)
            path = dice.choice(notes)[0]
            seen.files.pop(_hash(path), None)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            seen.best = None if path.name == plot.best else seen.best
            return "trained", day.do(plot.start) == 0
        case ["rename"]:
            day.place = day.place.rename(day.place.with_name(f"{day.place.name} 2"))
            seen.files = {mark: str(day.place / Path(where).name) for mark, where in seen.files.items()}
            return "trained", day.do(plot.start) == 0
        case ["english"]:
            code = day.do(plot.start, LANG="en_US.UTF-8")
            return "trained", code == 0 and "训练" not in day.screen
        case ["edit"]:
            file, *values = plot.edits
            old, new = reversed(values) if seen.is_edited else values
            day.edit(file, old, new)
            seen.is_edited = not seen.is_edited
            return "trained", day.do(plot.start) == 0
        case ["evaluate"] if plot.evaluate is not None:
            code = day.do(plot.evaluate)
            return "nothing", code == 0 if seen.names else code not in (0, 1)
        case ["monitor"]:
            code = day.do(f"headway watch --once --out {plot.out}")
            return "nothing", code == 0 if day.runs(plot.out) else code not in (0, 1)
        case ["help"]:
            return "nothing", all(day.do(f"{line} --help") == 0 and day.says("用法") for line in plot.helps)
        case ["break", number]:
            line, word = plot.breaks[int(number)]
            return "nothing", day.do(line) not in (0, 1, 130) and day.says(word)
    return "nothing", True


def _spelt(plot: Plot, day: Day, name: str, dice: random.Random) -> str:
    """Return another spelling of the path of a file, or of a run."""
    path = f"{plot.out if plot.is_by_run else plot.folder}/{name}"
    return dice.choice([f"./{path}", shlex.quote(str(day.place / path)), path.replace("/", "//")])


def _beside(plot: Plot, day: Day) -> bool:
    """Start, evaluate and look while a run is at work, then stop it; say whether all of it went well."""
    before, done = _sizes(plot, day), []

    def is_over() -> bool:
        if not _is_going(plot, day, before):
            return False
        lines = [plot.start, plot.evaluate, f"headway watch --once --out {plot.out}"]
        done.extend(day.do(line) for line in lines if line is not None)
        return True

    return day.stop_when(plot.long, is_over) == 130 and not any(done)


def _is_going(plot: Plot, day: Day, before: dict[Path, int]) -> bool:
    """Say whether a command that was just started has taken a step, by what its log has more than before."""
    found = _logs(plot, day)
    text = found[-1].read_text(encoding="utf-8", errors="replace")[before.get(found[-1], 0) :] if found else ""
    return re.search(plot.step_line, text) is not None


def _sizes(plot: Plot, day: Day) -> dict[Path, int]:
    return {path: len(path.read_text(encoding="utf-8", errors="replace")) for path in _logs(plot, day)}


def _logs(plot: Plot, day: Day) -> list[Path]:
    return sorted(day.place.glob(plot.logs))


def _check(plot: Plot, day: Day, seen: Seen, name: str, before: set[str], told: tuple[str, bool]) -> None:
    what, is_right = told
    day.check(f"{name}: ends as it should", is_right)
    day.check(f"{name}: no traceback", "Traceback (most recent call last)" not in day.screen)
    day.check(f"{name}: every file could be written", "未能写出" not in day.screen)
    fresh = set(day.runs(plot.out)) - before
    most = {"nothing": 0, "beside": 2}.get(what, 1)
    least = {"trained": 1, "stopped": 1, "beside": 2}.get(what, 0)
    day.check(f"{name}: {what} leaves as many runs as it should", least <= len(fresh) <= most, str(fresh))
    notes = _notes(plot, day)
    hashes = {path: _hash(path) for path, _, _ in notes}
    lost = {where for mark, where in seen.files.items() if mark not in hashes.values()}
    day.check(f"{name}: no file of an earlier run is lost", not lost, str(sorted(lost)))
    newest = max(day.runs(plot.out), default="")
    seen.files.update({hashes[path]: str(path) for path, run, _ in notes if run != newest})
    # A run that is continued may replace its own files; those of all others stay.
    for mark in [hashes[path] for path, run, _ in notes if run == newest]:
        seen.files.pop(mark, None)
    best = [note for path, _, note in notes if path == day.place / plot.folder / str(plot.best)]
    value = _value(best[0]) if best else None
    if seen.best is not None:
        day.check(f"{name}: the best is not replaced by a worse one", value is not None and value <= seen.best + 1e-12)
    seen.best = value if value is not None else seen.best
    names = {path.name for path, _, _ in notes if path.name != "current_model.ckpt"}
    seen.names += sorted(names - set(seen.names))
    log = _logs(plot, day)
    if what in ("trained", "stopped", "resumed") and log:
        end = log[-1].read_text(encoding="utf-8").splitlines()[-3:]
        day.check(f"{name}: the log ends as the screen does", end == day.screen.splitlines()[-3:])
    day.check(f"{name}: no process stays", not _left(day.place))


def _notes(plot: Plot, day: Day) -> list[tuple[Path, str, dict[str, Any]]]:
    """Return every file that some run says it has written: where it is, the run, its note."""
    found = []
    for record in sorted((day.place / plot.out).glob("*/guide.json")):
        for name, note in json.loads(record.read_text()).get("files", {}).items():
            folder = day.place / plot.folder
            if (folder / name).exists():
                found.append((folder / name, record.parent.name, note))
    return found


def _value(note: dict[str, Any]) -> float | None:
    """Return the deciding measure, lower is better."""
    value = note["measures"].get(note["decides"])
    return None if value is None else -value if note["sense"] == "max" else value


def _hash(path: Path) -> str:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()


def _left(place: Path) -> list[str]:
    """Return the processes that still work in a project some seconds after its command has ended."""
    deadline = time.monotonic() + _LEFT_S
    while True:
        left = []
        for process in psutil.process_iter():
            try:
                is_here = Path(process.cwd()).is_relative_to(place)
            except (psutil.Error, OSError):
                continue
            left += [" ".join(process.cmdline())] if is_here else []
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.5)


def _nanochat(place: Path) -> Day:
    return Day("nanochat", place)


def _layoutmaster(place: Path) -> Day:
    from headway.recipes.layoutmaster.section import LayoutMasterSection
    from headway.recipes.layoutmaster.synthetic import write_posters

    day = Day("layoutmaster", place)
    write_posters(day.place / "data-action_head", LayoutMasterSection(trajectory_steps=2), num=10)
    config = "config_data_action_head.json"
    for old, new in {'"batch_size": 32': '"batch_size": 8', '"num_epochs": 100': '"num_epochs": 6'}.items():
        day.edit(config, old, new)
    day.edit(config, '"save_every": 10', '"save_every": 2')
    return day


def _atlas(place: Path) -> Day:
    from headway.recipes.atlas.build import write_synthetic

    day = Day("atlas", place)
    (day.place / "dataset").mkdir()
    write_synthetic(day.place / "dataset", episodes=20, frames=3)
    (day.place / "dataset" / "synthetic.json").unlink()
    config = "atlas/configs/train_config.yaml"
    day.edit(config, "num_epochs: 50", "num_epochs: 3")
    day.edit(config, "warmup_steps: 1000", "warmup_steps: 2")
    with (day.place / config).open("a") as file:
        file.write("parallel:\n  threads: 1\n")
    return day


def _rdt(place: Path) -> Day:
    from fakes.rdt_demos import write_demos

    words = {"TASK__SAMPLE__BATCHES": "1", "TASK__ROLLOUT__EPISODES": "2", "TASK__ROLLOUT__MAX_STEPS": "4"}
    words |= {"EVAL__SAMPLES": "8", "LR__WARMUP_SAMPLES": "8", "EVAL__EVERY": "5"}
    day = Day("rdt", place, {f"HEADWAY_SET_{key}": value for key, value in words.items()})
    write_demos(place / ".cache" / "headway" / "rdt", demos=3)
    return day


def _tfnet(place: Path) -> Day:
    from fakes.tfnet_set import SMALL, write_small

    root = write_small(place / "small")
    own = [word for word in SMALL if not word.startswith("batch.")]
    words = (
        *own,
        "parallel.threads=1",
        "save.every=1",
        f"task.data_dir={root}",
        "task.synthetic=true",
        "task.framework=torch",
    )
    pairs = (word.split("=", 1) for word in words)
    return Day("tfnet", place, {f"HEADWAY_SET_{key.upper().replace('.', '__')}": value for key, value in pairs})


_LAYOUT = "config_data_action_head.json"
_ATLAS = "atlas/configs/train_config.yaml"
_RDT = "checkpoints/single_task_scene10_2gpu"
PLOTS = {
    "nanochat": Plot(
        prepare=_nanochat,
        start="./train_dual_gpu_enhanced.sh --num_iterations=6 --eval_every=3",
        long="./train_dual_gpu.sh configs/dual_gpu/conservative.py --num_iterations=4000",
        step_line=r"\| loss: ",
        logs="logs/train_dual_gpu_*.log",
        folder="base_checkpoints/d4",
        resume=lambda run: f"./train_dual_gpu_enhanced.sh --resume={run}",
        is_by_run=True,
        edits=("configs/dual_gpu/balanced.py", "device_batch_size = 12", "device_batch_size = 4"),
        breaks=(
            ("./train_dual_gpu_enhanced.sh --device_batch_size=16 --total_batch_size=49152", "--device_batch_size=12"),
            ("./train_dual_gpu.sh configs/dual_gpu/reckless.py", "conservative.py"),
            ("./train_dual_gpu_enhanced.sh --device_batchsize=8", "device_batch_size"),
            ("./train_dual_gpu_enhanced.sh --num_iterations=many", "num_iterations"),
            ("./train_dual_gpu_enhanced.sh task.synthetic=false --data_dir=nowhere --num_iterations=1", "nowhere"),
        ),
        helps=("./train_dual_gpu.sh", "./monitor_training.sh"),
    ),
    "layoutmaster": Plot(
        prepare=_layoutmaster,
        start="./start_training.sh",
        long="./start_training.sh training.num_epochs=3000",
        step_line=r"Epoch \d+ - Train Loss",
        logs="logs/training_*.log",
        folder="checkpoints",
        resume=lambda name: f"python train.py --config {_LAYOUT} --mode train --resume checkpoints/{name}",
        best="best_model.pth",
        evaluate=f"python train.py --config {_LAYOUT} --mode predict --checkpoint checkpoints/best_model.pth",
        edits=(_LAYOUT, '"batch_size": 8', '"batch_size": 4'),
        breaks=(
            (f"python train.py --config {_LAYOUT}", "--mode"),
            ("python train.py --config nope.json --mode train", _LAYOUT),
            ("python train.py --mode train --resume checkpoints/checkpoint_epoch_77.pth", "checkpoint_epoch_77"),
            ("python train.py --mode train --epochs 3", "--resume"),
            ("./start_training.sh data.batch_size=9", "batch"),
        ),
        helps=("./start_training.sh", "python train.py"),
    ),
    "atlas": Plot(
        prepare=_atlas,
        start=f"torchrun --nproc_per_node=2 atlas/train.py --config {_ATLAS}",
        long=f"env HEADWAY_SET_TRAIN__EPOCHS=900 python atlas/train.py --config {_ATLAS}",
        step_line=r"\| Step \d+/",
        logs="logs/train_*.log",
        folder="checkpoints",
        resume=lambda name: f"python atlas/train.py --config {_ATLAS} --resume checkpoints/{name}",
        best="best_model.pt",
        evaluate=f"python atlas/eval.py --config {_ATLAS} --checkpoint checkpoints/best_model.pt",
        edits=(_ATLAS, "batch_size: 8 ", "batch_size: 4 "),
        breaks=(
            (f"python atlas/train.py --config {_ATLAS} --resume checkpoints/checkpoint_epoch_9999.pt", "epoch_9999"),
            ("python atlas/train.py --config atlas/configs/x.yaml", "train_config.yaml"),
            (f"python atlas/train.py --config {_ATLAS} --epochs 3", "--resume"),
            (f"python atlas/train.py --config {_ATLAS} data.data_dir=nowhere task.synthetic=false", "nowhere"),
            (f"python atlas/eval.py --config {_ATLAS} --checkpoint x.pt --split train", "--split val"),
        ),
        helps=("python atlas/train.py", "python atlas/eval.py"),
    ),
    "rdt": Plot(
        prepare=_rdt,
        start="bash train_single_task_2gpu.sh --max_train_steps=6 --checkpointing_period=3",
        long="bash train_single_task_2gpu.sh --max_train_steps=5000 --checkpointing_period=1000",
        step_line=r"\| [1-9]\d*/\d+ \[",
        logs=f"{_RDT}/training.log",
        folder=_RDT,
        resume=lambda name: (
            f"python main.py --num_processes=2 --output_dir={_RDT} --max_train_steps=8 --resume_from_checkpoint={name}"
        ),
        evaluate=f"python eval_sim/eval_rdt_libero.py --pretrained {_RDT}/checkpoint-19000/ema/model.safetensors "
        "--num_tasks 1 --max_steps 2 --exec_horizon 2",
        edits=("train_single_task_2gpu.sh", "--train_batch_size=16", "--train_batch_size=12"),
        breaks=(
            ("bash train_single_task_2gpu.sh --train_batch_size=15", "15"),
            ("python main.py --config_path=configs/x.yaml", "configs/base.yaml"),
            ("python eval_sim/eval_rdt_libero.py --pretrained none/checkpoint-1", "train_single"),
            ("python main.py --train_batchsize=8", "train_batch_size"),
            ("python main.py --output_dir=checkpoints/new --resume_from_checkpoint=latest", "resume_from"),
        ),
        helps=("bash train_single_task_2gpu.sh", "python eval_sim/eval_rdt_libero.py"),
    ),
    "tfnet": Plot(
        prepare=_tfnet,
        start="env HEADWAY_SET_TRAIN__STEPS=3 ./start_training_gpu.sh",
        long="env HEADWAY_SET_TRAIN__STEPS=4000 python train_tfnet_gpu.py --config configs/gpu_config.json",
        step_line=" - Batch ",
        logs="logs_gpu/gpu_training_*.log",
        folder="checkpoints_gpu",
        resume=lambda run: f"python train_tfnet_gpu.py --config configs/gpu_config.json --resume {run}",
        is_by_run=True,
        best="best_model.ckpt",
        edits=("configs/gpu_config.json", '"batch_size": 8', '"batch_size": 2'),
        breaks=(
            ("python train_tfnet_gpu.py --config configs/other.json", "gpu_config.json"),
            ("./start_training_gpu.sh --epochs 3", "--config"),
            ("env -u HEADWAY_SET_TASK__SYNTHETIC -u HEADWAY_SET_TASK__DATA_DIR python train_tfnet_gpu.py --full-size "
             "--config configs/gpu_config.json", "CE-CSL"),
            ("./start_training_gpu.sh training.batch_size=many", "training.batch_size"),
            ("./start_training_gpu.sh dataset.train_label_path=none.csv", "none.csv"),
        ),
        helps=("./start_training_gpu.sh", "python test_gpu_setup.py"),
        out="output_gpu",
    ),
}  # fmt: skip


def main() -> int:
    """Play the orders and print what held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guide", action="append", choices=PLOTS, help="only this one; may be given again")
    parser.add_argument("--seed", type=int, default=1, help="of the first order")
    parser.add_argument("--orders", type=int, default=1, help="of each guide")
    parser.add_argument("--step", action="append", default=[], help="instead of a drawn order; may be given again")
    parser.add_argument("--keep", type=Path, help="a folder for the projects, which stay there")
    asked = parser.parse_args()
    rows: dict[str, list[bool]] = {}
    for name in asked.guide or PLOTS:
        for seed in range(asked.seed, asked.seed + asked.orders):
            with tempfile.TemporaryDirectory() as temp:
                place = (asked.keep or Path(temp)) / f"{name}-{seed}"
                place.mkdir(parents=True)
                day = play(PLOTS[name], place, seed, asked.step)
                rows.setdefault(name, []).extend(is_kept for _, is_kept in day.rows)
    done = [is_kept for found in rows.values() for is_kept in found]
    by_guide = {name: f"{sum(found)}/{len(found)}" for name, found in rows.items()}
    facts = {"orders": asked.orders * len(rows), "checks": len(done), "kept": sum(done)}
    print(json.dumps({**facts, "kept_share": round(sum(done) / len(done), 4), "by_guide": by_guide}))
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
