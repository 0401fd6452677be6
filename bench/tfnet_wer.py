"""How fast TFNet learns to read the synthetic dev set, and what its parts bring; by `headway train`, start to end.

`python bench/tfnet_wer.py`              PyTorch and MindSpore: seconds until the WER is below 50%
`python bench/tfnet_wer.py --ablate`     PyTorch: the whole model, without the frequency branch, without distillation
`python bench/tfnet_wer.py --framework mindspore train.steps=160`

The floor is the best constant answer. Seconds are of the whole command (import, compile, validation and saving), cpu
seconds of all its processes up to its end. MindSpore runs in .venv-mindspore where that is there. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from headway.telemetry import list_runs, read_events

GOAL = 50.0
PARTS = {
    "whole": (),
    "no frequency branch": ("task.frequency=false",),
    "no distillation": ("task.distill=off",),
    "neither": ("task.frequency=false", "task.distill=off"),
}
MINDSPORE = Path(__file__).parent.parent / ".venv-mindspore" / "bin" / "python"


def main() -> int:
    """Train every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=["torch", "mindspore"])
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    if asked.ablate:
        base = _words(asked.framework or "torch")
        ways = {name: (*base, *words) for name, words in PARTS.items()}
    else:
        names = [asked.framework] if asked.framework else ["torch", "mindspore"]
        ways = {name: _words(name) for name in names}
    print(
        f"{'way':<22}{'floor':>8}{'best WER':>10}{'below 50 % at':>16}{'after, s':>10}{'whole run, s':>14}{'cpu, s':>9}"
    )
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name, words in ways.items():
            one = found[name] = measure(Path(place) / name.replace(" ", "-"), [*words, *asked.words])
            at = "never" if one["step"] is None else f"step {one['step']}"
            after = "n/a" if one["seconds"] is None else f"{one['seconds']:.0f}"
            row = f"{name:<22}{one['floor']:>8.1f}{one['wer']:>10.1f}{at:>16}{after:>10}"
            print(f"{row}{one['whole_s']:>14.0f}{one['cpu_s']:>9.0f}", flush=True)
    if asked.ablate:
        for name in list(PARTS)[1:]:
            print(f"{name}: WER {found[name]['wer'] - found['whole']['wer']:+.1f} points against the whole model")
    print(json.dumps({"schema": "tfnet-wer/1", "goal": GOAL, "ways": found}))
    return 0


def _words(framework: str) -> tuple[str, ...]:
    own = MINDSPORE if framework == "mindspore" and MINDSPORE.exists() else None
    return (f"task.framework={framework}", "eval.every=10", *([f"env.python={own}"] if own else []))


def measure(out: Path, words: list[str]) -> dict[str, Any]:
    """Train once; return the best WER and when it fell below the goal."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.time()
    line = [sys.executable, "-P", "-m", "headway", "train", "tfnet", f"out={out}", *words]
    done = subprocess.run(line, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (run,) = list_runs(out)
    history = read_events(run.events)
    (floor,) = [event["measures"]["constant_wer"] for event in history if event["kind"] == "baseline"]
    seen = [event for event in history if event["kind"] == "validation"]
    good = next((event for event in seen if event["measures"]["wer"] < GOAL), None)
    return {
        "floor": floor,
        "wer": min(event["measures"]["wer"] for event in seen),
        "step": good["step"] if good else None,
        "seconds": good["t"] - began if good else None,
        "whole_s": time.time() - began,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


if __name__ == "__main__":
    raise SystemExit(main())
