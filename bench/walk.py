"""The way of a run through the code: which folder is entered how often, for one `train` and one `run`.

A folder is entered when a call comes into one of its modules for the first time from another folder. Coming back by a
return is not an entry, neither is a call into a folder that is still at work (its own callback), nor a second module
of the folder one was in last. What is asked repeatedly in the same way, as a screen is every second, is entered once. A
method of a record (docs/architecture.md) is not a visit to the stage that made it. Imports, threads and child processes
do not count.

In brackets is the older, harsher count: the modules in the order of their first calls, a folder counted wherever
that order comes into it from another one, be it by a return.

    python bench/walk.py            # both ways; the last line is JSON, one key per folder
    python bench/walk.py --modules  # also every module of the way
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path
from types import FrameType

SOURCE = Path(__file__).resolve().parents[1] / "src" / "headway"
HELPERS = frozenset({"messages", "units.py", "errors.py", "secret.py", "redact.py", "process.py", "ask.py"})
"""Called from everywhere by their nature: texts, numbers, errors, secrets, processes."""
RECORDS = frozenset({"config/recipe.py", "planner/record.py", "launch/job.py", "machine/record.py", "adopt/record.py"})
"""Handed from stage to stage."""
SCRIPT = "import time\nfor step in range(1, 4):\n    print(f'step {step}/3 loss {1 / step:.3f}', flush=True)\n"
TRAIN = ("train", "nanochat", "--no-trace", "train.steps=2", "eval.every=2", "task.depth=1")
RUN = ("run", sys.executable, "script.py")


GUARD = "ui/output.py"
"""Calls the command and is left after it."""


def trace(words: list[str]) -> None:
    """Run one command in this process and print the modules of its way as JSON."""
    way: dict[str, bool] = {}
    root = f"{SOURCE}{os.sep}"
    imports = 0

    def see(frame: FrameType, event: str, arg: object) -> None:
        nonlocal imports
        if frame.f_code.co_name == "<module>":
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not imports and frame.f_code.co_filename.startswith(root):
            module = frame.f_code.co_filename[len(root) :]
            if module not in way:
                way[module] = _folder(module) not in _folders_at_work(frame.f_back, root)

    from headway.cli import main

    sys.setprofile(see)
    try:
        main(words)
    except SystemExit as end:
        sys.setprofile(None)
        assert not end.code, end.code
    finally:
        sys.setprofile(None)
        print(json.dumps(list(way.items())), file=sys.stderr)


def _folder(module: str) -> str:
    return module.partition("/")[0]


def _folders_at_work(frame: FrameType | None, root: str) -> set[str]:
    """Return the folders that have a call under way; what guards the streams is so from first to last."""
    found = set()
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(root) and name[len(root) :] != GUARD:
            found.add(_folder(name[len(root) :]))
        frame = frame.f_back
    return found


def walk(words: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Return the modules that a command passes, in order, and whether each was called from outside of its folder."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "script.py").write_text(SCRIPT)
        done = subprocess.run(
            [sys.executable, "-P", __file__, "--trace", json.dumps(words)],
            capture_output=True,
            text=True,
            cwd=place,
            env={**os.environ, "HOME": place},
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    modules = json.loads(done.stderr.splitlines()[-1])
    return [(module, is_entered) for module, is_entered in modules if _folder(module) not in HELPERS]


def count_entries(way: list[str]) -> Counter[str]:
    """Return how often each folder is come into."""
    return Counter(folder for folder, _ in groupby(map(_folder, way)))


def main() -> None:
    """Print both ways."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--trace")
    asked = parser.parse_args()
    if asked.trace:
        trace(json.loads(asked.trace))
        return
    worst: Counter[str] = Counter()
    for words in (TRAIN, RUN):
        found = walk(words)
        way = [module for module, _ in found]
        doors = [module for module, is_entered in found if is_entered and module not in {*RECORDS, GUARD}]
        entries, harsh = count_entries(doors), count_entries(way)
        print(f"{words[0]}: {len(way)} modules")
        for folder, num in entries.most_common():
            print(f"  {num:3d} ({harsh[folder]}) {folder}")
        if asked.modules:
            marked = (f"[{name}]" if name in doors else name for name in way)
            print("  " + " ".join(marked))
        worst |= entries
    print(json.dumps(dict(sorted(worst.items()))))


if __name__ == "__main__":
    main()
