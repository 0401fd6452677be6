"""The way of a run through the code: which folder is entered how often, for one `train` and one `run`.

Every module is counted where it is first called: the modules in that order are the way, and a folder is entered where
the way comes into it from another one. Imports do not count, neither do threads and child processes.

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
SCRIPT = "import time\nfor step in range(1, 4):\n    print(f'step {step}/3 loss {1 / step:.3f}', flush=True)\n"
TRAIN = ("train", "nanochat", "--no-trace", "train.steps=2", "eval.every=2", "task.depth=1")
RUN = ("run", sys.executable, "script.py")


def trace(words: list[str]) -> None:
    """Run one command in this process and print the modules of its way as JSON."""
    way: dict[str, None] = {}
    root = f"{SOURCE}{os.sep}"
    imports = 0

    def see(frame: FrameType, event: str, arg: object) -> None:
        nonlocal imports
        if frame.f_code.co_name == "<module>":
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not imports and frame.f_code.co_filename.startswith(root):
            way.setdefault(frame.f_code.co_filename[len(root) :])

    from headway.cli import main

    sys.setprofile(see)
    try:
        main(words)
    except SystemExit as end:
        sys.setprofile(None)
        assert not end.code, end.code
    finally:
        sys.setprofile(None)
        print(json.dumps(list(way)), file=sys.stderr)


def walk(words: tuple[str, ...]) -> list[str]:
    """Return the modules that a command passes, in order."""
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
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return [module for module in modules if module.partition("/")[0] not in HELPERS]


def count_entries(way: list[str]) -> Counter[str]:
    """Return how often each folder is entered."""
    return Counter(folder for folder, _ in groupby(module.partition("/")[0] for module in way))


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
        way = walk(words)
        entries = count_entries(way)
        print(f"{words[0]}: {len(way)} modules")
        for folder, num in entries.most_common():
            print(f"  {num:3d} {folder}")
        if asked.modules:
            print("  " + " ".join(f"{name} →" if is_last else name for name, is_last in _marked(way)))
        worst |= entries
    print(json.dumps(dict(sorted(worst.items()))))


def _marked(way: list[str]) -> list[tuple[str, bool]]:
    """Return each module, and whether the way leaves its folder after it."""
    folders = [module.partition("/")[0] for module in way]
    return [(module, folders[at : at + 2] != [folders[at]] * 2) for at, module in enumerate(way)]


if __name__ == "__main__":
    main()
