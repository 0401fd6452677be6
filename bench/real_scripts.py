"""Run small scripts on common trainers under their own launcher and under `headway run`; the result must be the same.

    python bench/real_scripts.py [--python PEERS/bin/python] [--mindspore MS/bin/python] [--deepspeed DS/bin/python]

Every script prints `RESULT loss world_size` on its first rank. A trainer that is not installed in the interpreter given
for it is named on stderr and left out. The last line is JSON: `rows`, `same`, `skipped`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from marked_runs import ROOT, end_all, environment, marked, new_mark

HERE = Path(__file__).resolve().parent / "real"
LIMIT_S = 240.0
ACCELERATE = ("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One script and the line people start it with."""

    name: str
    script: str
    line: tuple[str, ...]
    needs: str
    """Module without which it cannot run."""
    where: str = "python"
    """Which of the interpreters given."""
    options: tuple[str, ...] = ()
    """Of `headway run`."""
    world: int | None = None
    """Ranks that must really have trained together; None: as many as its own launcher starts."""


ROWS = (
    Row(name="torch DDP, torchrun", script="ddp_example.py", needs="torch", line=("torchrun", "--nproc_per_node=2")),
    Row(
        name="torch DDP, torchrun kept",
        script="ddp_example.py",
        needs="torch",
        line=("torchrun", "--standalone", "--nproc_per_node=2"),
        options=("--launcher", "original"),
    ),
    Row(
        name="torch DDP, distributed.launch",
        script="ddp_example.py",
        needs="torch",
        line=("python", "-m", "torch.distributed.launch", "--use_env", "--nproc_per_node=2"),
    ),
    Row(name="nanoGPT-like, one process", script="gpt_example.py", needs="torch", line=("python",)),
    Row(
        name="nanoGPT-like, torchrun",
        script="gpt_example.py",
        needs="torch",
        line=("torchrun", "--standalone", "--nproc_per_node=2"),
    ),
    # With --cpu, accelerate starts one process whatever --num_processes says: two need mpirun. Both must agree on that.
    Row(
        name="accelerate launch --cpu",
        script="accelerate_example.py",
        needs="accelerate",
        line=("accelerate", "launch", "--cpu", "--num_processes", "2", *ACCELERATE),
    ),
    # The script itself asks for the CPU, so this is two ranks that train together.
    Row(
        name="accelerate launch, two ranks",
        script="accelerate_example.py",
        needs="accelerate",
        line=("accelerate", "launch", "--multi_gpu", "--num_processes", "2", *ACCELERATE),
        world=2,
    ),
    Row(
        name="accelerate script, torchrun",
        script="accelerate_example.py",
        needs="accelerate",
        line=("torchrun", "--nproc_per_node=2"),
    ),
    Row(name="HF Trainer, one process", script="trainer_example.py", needs="transformers", line=("python",)),
    Row(
        name="HF Trainer, torchrun",
        script="trainer_example.py",
        needs="transformers",
        line=("torchrun", "--nproc_per_node=2"),
    ),
    Row(name="Lightning, starts its own", script="lightning_example.py", needs="lightning", line=("python",)),
    Row(
        name="Lightning, torchrun",
        script="lightning_example.py",
        needs="lightning",
        line=("torchrun", "--nproc_per_node=2"),
    ),
    Row(
        name="DeepSpeed",
        script="deepspeed_example.py",
        needs="deepspeed",
        where="deepspeed",
        line=("deepspeed", "--num_accelerators", "2"),
    ),
    Row(
        name="MindSpore, one process",
        script="mindspore_example.py",
        needs="mindspore",
        where="mindspore",
        line=("python",),
    ),
    Row(
        name="MindSpore, msrun",
        script="mindspore_example.py",
        needs="mindspore",
        where="mindspore",
        line=("msrun", "--worker_num=2", "--local_worker_num=2", "--master_port=PORT", "--join=True", "--log_dir=LOGS"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How one start went."""

    code: int | None
    result: str
    seconds: float
    leftovers: int
    text: str


def start(words: list[str], folder: Path, python: Path, *, is_ours: bool) -> Ran:
    """Run a line with an interpreter's programs first on PATH."""
    mark = new_mark()
    env = environment(mark, folder)
    env["PATH"] = f"{python.parent}:{os.environ['PATH']}"
    env["PYTHONPATH"] = str(ROOT / "src") if is_ours else ""
    env |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(words, cwd=folder, env=env, stdout=output, stderr=output, start_new_session=True)
        try:
            code: int | None = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
    seconds = time.monotonic() - began
    time.sleep(0.3)
    left = marked(mark)
    end_all(left)
    process.wait()
    text = (folder / "output").read_text(errors="replace")
    for log in sorted(folder.glob("LOGS*/worker_*.log")):  # msrun keeps its workers' words to itself without --join
        text += log.read_text(errors="replace")
    found = re.findall(r"RESULT (\S+ \d+)", text)
    return Ran(code=code, result=found[-1] if found else "none", seconds=seconds, leftovers=len(left), text=text)


def compare(row: Row, python: Path) -> tuple[Ran, Ran]:
    """Run a row under its own launcher and under ours, each in a folder of its own."""
    results = []
    for is_ours in (False, True):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            shutil.copy(HERE / row.script, folder)
            words = [_fill(word) for word in row.line] + [row.script]
            if is_ours:
                words = [sys.executable, "-m", "headway", "run", "--out", "runs", *row.options, *words]
            else:
                words[0] = str(python.parent / words[0])
            results.append(start(words, folder, python, is_ours=is_ours))
    return results[0], results[1]


def _fill(word: str) -> str:
    return word.replace("PORT", str(20_000 + os.getpid() % 10_000))


def has_module(python: Path, name: str) -> bool:
    """Say whether an interpreter can import a module."""
    asked = f"import importlib.util as u, sys; sys.exit(u.find_spec({name!r}) is None)"
    return python.exists() and subprocess.run([python, "-c", asked], check=False).returncode == 0


def main() -> None:
    """Run all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--mindspore", type=Path, help="an interpreter with MindSpore")
    parser.add_argument("--deepspeed", type=Path, help="an interpreter with DeepSpeed")
    parser.add_argument("--only", action="append", help="rows whose name holds this text")
    args = parser.parse_args()
    rows = same = 0
    skipped: list[str] = []
    print(f"{'script and launcher':32}{'own launcher':>24}{'headway run':>24}  {'':8}{'own':>7}{'ours':>8}")
    for row in ROWS:
        if args.only and not any(text in row.name for text in args.only):
            continue
        # Not resolved: a virtual environment is known by the link's own place.
        python = (getattr(args, row.where) or args.python).absolute()
        if not has_module(python, row.needs):
            print(f"SKIPPED {row.name}: {row.needs} is not installed in {python}", file=sys.stderr, flush=True)
            skipped.append(row.name)
            continue
        theirs, ours = compare(row, python)
        is_same = theirs.result == ours.result != "none" and (theirs.code, ours.code, ours.leftovers) == (0, 0, 0)
        is_same = is_same and (row.world is None or ours.result.endswith(f" {row.world}"))
        rows, same = rows + 1, same + is_same
        word = "same" if is_same else "DIFFERS"
        times = f"{theirs.seconds:>5.0f} s{ours.seconds:>6.0f} s"
        print(f"{row.name:32}{theirs.result:>24}{ours.result:>24}  {word:8}{times}", flush=True)
        if not is_same:
            print(f"  exit codes {theirs.code} and {ours.code}, left over {ours.leftovers}")
            print("\n".join("  | " + line for line in (ours.text or theirs.text).splitlines()[-15:]), flush=True)
    print(json.dumps({"rows": rows, "same": same, "skipped": skipped}))


if __name__ == "__main__":
    main()
