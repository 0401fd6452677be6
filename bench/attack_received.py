"""More families of `attack.py`: what a user receives from others: scripts, guides, weights, pages, recipes, dumps.

Reading is not running. Whatever is received holds orders that would leave a mark, and no command may carry one out
unless it was typed as an order to do so.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack_worker import ESCAPES, EXITS, ROOT, TINY, Field, Verdict, call, finish, judge, start

# --- scripts and guides ---

MARKS: tuple[Callable[[str], str], ...] = (
    lambda mark: f"$(touch {mark})",
    lambda mark: f"`touch {mark}`",
    lambda mark: f"; touch {mark} ;",
    lambda mark: f"| tee {mark}",
    lambda mark: f"> {mark}",
    lambda mark: f"<(touch {mark})",
    lambda mark: f"${{X:=$(touch {mark})}}",
    lambda mark: f"$((x[$(touch {mark})]))",
    lambda mark: f"\ntouch {mark}\n",
    lambda mark: f"\ntrap 'touch {mark}' EXIT\n",
    lambda mark: f'\neval "touch {mark}"\n',
    lambda mark: f"\n. ./{mark}.sh\n",
)
LINES = (
    "torchrun --nproc_per_node={n} train.py --lr {w}",
    "python -m torch.distributed.launch --nproc_per_node {n} {w}",
    "deepspeed --num_gpus {n} train.py --config {w}",
    "accelerate launch --num_processes={n} {w} {w}",
    "CUDA_VISIBLE_DEVICES={n} nohup python train.py {w} > log.txt 2>&1 &",
    "srun -N {n} python {w}",
    "export MASTER_PORT={w}; mpirun -np {n} python {w}",
    "for i in {w} {w}; do python train.py $i; done",
    "if [ {w} ]; then torchrun {w}; else exit {n}; fi",
    "cat <<EOF | bash\n{w}\nEOF",
    "while true; do {w}; done",
    "f() {{ f | f & }}; f",
    "#SBATCH --gres=gpu:{n}\n#SBATCH -N {w}",
    "docker run --rm -v /:/x {w} python {w}",
)


def script(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A launch script or guide that wants to be run while it is only read."""
    words = [_odd_word(chance) for _ in range(40)]
    text = ""
    for _ in range(chance.choice((1, 3, 10, 200))):
        line = chance.choice(LINES)
        while "{w}" in line:
            line = line.replace("{w}", chance.choice(words), 1)
        text += line.replace("{n}", chance.choice(("1", "8", "-1", "0", "9" * 40, "$N", "x"))).replace("{{", "{") + "\n"
        text += chance.choice(("", "", chance.choice(MARKS)("mark")))
    kind = chance.choice(("sh", "sh", "md", "slurm", "yaml", "txt"))
    if kind == "md":
        text = f"# Train\n\n```bash\n{text}```\n" + chance.choice(("", "```sh\n", "<!--", "> " * 400, "|a|\n" * 300))
    if chance.random() < 0.15:
        cut = chance.randrange(len(text) + 1)
        text = (
            text[:cut] + chance.choice(("'", '"', "`", "$(", "((", "\0", "\\", "<<EOF", "{" * 2000, "\r")) + text[cut:]
        )
    file = place / f"start.{kind}"
    file.write_text(text, errors="surrogateescape")
    (place / "mark.sh").write_text("touch mark\n")
    line = chance.choice(
        (
            ("adopt", file.name),
            ("adopt", "--json", file.name),
            ("adopt", "--to", "clean.yaml", "--yes", file.name),
            ("adopt", "bash", file.name),
            ("run", "--dry-run", "bash", file.name),
            ("adopt", text[:2000].replace("\0", "")),
            ("config", "show", file.name),
            ("plan", file.name, "--no-trace"),
        )
    )
    verdict = judge("scripts", line, f"{text[:300]!r}", call(place, *line))
    if (place / "mark").exists():
        verdict.wrong["wrong_results"] = "a script that was only to be read was run"
    return verdict


def _odd_word(chance: random.Random) -> str:
    return chance.choice(
        (
            "train.py",
            "--lr=1e-3",
            "$HOME/x y",
            '"$@"',
            "'a b'",
            "${A[@]}",
            "\\",
            "*",
            "~root",
            "汉字",
            "$'\\x1b[31m'",
            "x" * 3000,
            chance.choice(ESCAPES),
            chance.choice(MARKS)("mark"),
            "",
        )
    )


# --- pages ---

PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</style><script>alert(1)</script>",
    "javascript:alert(1)",
    "<!--<script>alert(1)//-->",
    "</title><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "{{constructor.constructor('alert(1)')()}}",
)
_ACTIVE = re.compile(
    rb"<script>alert|<img src=x|<svg onload|<iframe|href=[\"']?javascript|<[a-z][^<>]* onmouseover=", re.I
)


def page(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A report of a run whose every text was written by somebody else."""
    run = place / "runs" / field.recipe_run.name
    shutil.copytree(field.recipe_run, run, symlinks=True)
    evil = chance.choice(PAYLOADS)
    for path in sorted(run.rglob("*.json*")):
        if path.is_file() and chance.random() < 0.7:
            lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            path.write_text("\n".join(_poisoned(line, evil, chance) for line in lines) + "\n")
    with (run / "log").open("a") as log:
        log.write(f'{evil}\nTraceback (most recent call last):\n  File "{evil}", line 1\nValueError: {evil}\n')
    words = chance.choice((("report", run.name), ("report", run.name, "--lang", "zh"), ("report",)))
    verdict = judge("pages", words, evil, call(place, *words))
    for html in place.rglob("*.html"):
        if found := _ACTIVE.search(html.read_bytes()):
            verdict.wrong["leaks"] = f"{found[0]!r} is alive in {html.name}"
    return verdict


def _poisoned(line: str, evil: str, chance: random.Random) -> str:
    """Put a text behind some of the texts of a JSON value; kinds and codes stay, or nothing would be shown."""
    try:
        value = json.loads(line)
    except ValueError:
        return line

    def walk(one: Any, key: str = "") -> Any:
        if isinstance(one, dict):
            return {name: walk(inner, name) for name, inner in one.items()}
        if isinstance(one, list):
            return [walk(inner, key) for inner in one]
        is_free = isinstance(one, str) and key not in ("kind", "state", "schema", "code", "strategy", "measure")
        return one + evil if is_free and chance.random() < 0.5 else one

    return json.dumps(walk(value))


# --- weights ---


class _Bomb:
    """Runs an order when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.mark}",)


def weights(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A file of weights that holds orders, lies about its sizes, or is none at all."""
    mark = place / "mark"
    way = chance.choice(("pickle", "zip", "zip-bomb", "header", "offsets", "huge", "deep", "empty", "folder", "link"))
    file = place / f"model.{'safetensors' if way in ('header', 'offsets', 'huge', 'deep') else 'pt'}"
    bomb = pickle.dumps({"w": _Bomb(mark)})
    if way == "pickle":
        file.write_bytes(bomb)
    elif way in ("zip", "zip-bomb"):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("archive/data.pkl", bomb if way == "zip" else pickle.dumps({"x": "\0" * 10**6}))
            made.writestr("archive/version", "3\n")
            made.writestr("archive/data/0", b"\0" * (10**6 if way == "zip" else 2 * 10**8))
            made.writestr("../../escaped", "x")
    elif way == "folder":
        file = place / "weights"
        file.mkdir()
        (file / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "../../../etc/passwd"}}))
    elif way == "link":
        file.symlink_to(chance.choice(("/dev/zero", "/etc/passwd", file.name, "/proc/self/mem")))
    else:
        header = {
            "header": b"{" + chance.randbytes(60),
            "offsets": json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [-8, 10**18]}}).encode(),
            "huge": json.dumps({"w": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 16]}}).encode(),
            "deep": b"[" * 100_000,
            "empty": b"",
        }[way]
        length = len(header) if chance.random() < 0.7 else chance.choice((0, 2**63, 2**64 - 1, 10**9))
        file.write_bytes(b"" if way == "empty" else struct.pack("<Q", length) + header + bytes(16))
    words = ("ckpt", "import", TINY, str(file), "--to", "made", "parallel.cpus=1")
    verdict = judge("weights", words, way, start(place, *words), EXITS - {0})
    if mark.exists() or (place.parent.parent / "escaped").exists():
        verdict.wrong["wrong_results"] = "a file of weights gave an order, and it was carried out"
    if (place / "made").exists():
        verdict.wrong["wrong_results"] = "a run was made of weights that are none"
    return verdict


# --- recipes and interpreters of others ---


def stranger(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A config or a run from somebody else that names code: looking at it must not run that code."""
    mark, own = place / "mark", place / "theirs"
    shutil.copytree(TINY, own, ignore=shutil.ignore_patterns("__pycache__"))
    order = f"import os\nos.system('touch {mark}')\n"
    for name in chance.sample(("preset.py", "task.py", "__init__.py", "texts.py", "sitecustomize.py"), 2):
        file = own / name
        text = file.read_text() if file.exists() else ""
        future = "from __future__ import annotations\n"
        file.write_text(future + order + text.replace(future, "") if future in text else order + text)
    interpreter = place / "python"
    interpreter.write_text(f'#!/bin/sh\ntouch {mark}\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    run = place / "runs" / field.recipe_run.name
    shutil.copytree(field.recipe_run, run, symlinks=True)
    job = json.loads((run / "job.json").read_text())
    way = chance.choice(("recipe", "python", "both"))
    if way != "python":
        job["recipe"] = str(own)
    if way != "recipe":
        job["config"].setdefault("env", {})["python"] = str(interpreter)
    (run / "job.json").write_text(json.dumps(job))
    if (run / "config.yaml").exists() and way != "recipe":
        (run / "config.yaml").write_text((run / "config.yaml").read_text() + f"\nenv: {{python: {interpreter}}}\n")
    config = {"recipe": "./theirs"} if way != "python" else {"recipe": "nanochat", "env": {"python": "./python"}}
    (place / "job.yaml").write_text(json.dumps(config))
    words = chance.choice(
        (
            ("config", "show", "job.yaml"),
            ("plan", "job.yaml", "--no-trace"),
            ("check", "job.yaml"),
            ("eval", run.name),
            ("predict", run.name, "x=1"),
            ("resume", run.name, "--dry-run"),
            ("resume", run.name, "train.steps=14"),
            ("ckpt", "export", run.name),
            ("report", run.name),
            ("watch", run.name, "--once"),
            ("runs",),
            ("adopt", "job.yaml"),
        )
    )
    verdict = judge("strangers", words, way, start(place, *words))
    if mark.exists():
        verdict.wrong["wrong_results"] = "code that only a file names was run"
    return verdict


# --- signals ---


def signals(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A signal at any moment of any command: an end without a traceback, and nothing half written."""
    run = place / "runs" / field.recipe_run.name
    shutil.copytree(field.recipe_run, run, symlinks=True)
    words = chance.choice(
        (
            ("report", run.name),
            ("export", run.name, "--format", "tensorboard"),
            ("ckpt", "verify", run.name),
            ("ckpt", "export", run.name),
            ("ckpt", "prune", run.name, "--yes"),
            ("runs",),
            ("plan", "nanochat", "--no-trace"),
            ("config", "show"),
            ("watch", run.name),
            ("eval", run.name),
            ("train", TINY, "train.steps=30", "parallel.cpus=1"),
        )
    )
    signum = chance.choice(
        (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT)
    )
    moment = chance.uniform(0.05, 1.5)
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(moment)
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signum)
    try:
        ended = finish(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    by_signal = frozenset({-signum, 128 + signum})
    verdict = judge("signals", words, f"{signum.name} after {moment:.2f} s", ended, EXITS | by_signal)
    if b"headway" not in ended.err:
        verdict.wrong.pop("tracebacks", None)  # the interpreter itself, before it came to us
    for checkpoint in run.glob("checkpoints/step-*"):
        checked = call(place, "ckpt", "verify", run.name)
        if checked.code != 0:
            verdict.wrong["wrong_results"] = f"{checkpoint.name} is damaged"
        break
    return verdict


RECEIVED: dict[str, tuple[float, Callable[[Field, random.Random, Path], Verdict]]] = {
    "scripts": (12, script),
    "pages": (5, page),
    "weights": (0.3, weights),
    "strangers": (0.5, stranger),
    "signals": (0.5, signals),
}
