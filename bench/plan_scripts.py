"""Does the traced memory of somebody's own script agree with what the allocator really gave out?

    python bench/plan_scripts.py [--only gpt]

Three scripts at two sizes each (bench/scripts), on CPU: the forecast is the trace on fake tensors that
`headway plan --script` makes; the truth is the same script really run up to its second update, with every allocation
and release of torch's CPU allocator added up. Each in a process of its own.
Last line: {"worst_error": …, "median_error": …, "rows": …}.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
SIZES: dict[str, list[str]] = {
    "mlp": ["--batch 64", "--batch 512 --width 1024"],
    "gpt": [
        "--batch 4 --block 128 --layers 4 --width 256 --vocab 8192 --accumulate 1 --eval-batches 0",
        "--batch 8 --block 64 --layers 6 --width 192 --vocab 4096 --accumulate 3 --eval-batches 2",
    ],
    "convnet": ["--cpu --batch 16 --size 32 --width 32", "--cpu --batch 8 --size 64 --width 48"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(SIZES))
    parser.add_argument("--real", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.real:
        run_really(given.real[0], given.real[1:])
        return
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.bin"
        tokens.write_bytes(bytes(byte % 16 if place % 2 else byte for place, byte in enumerate(os.urandom(200_000))))
        for name, sizes in SIZES.items():
            for words in sizes if given.only in (None, name) else ():
                args = [*words.split(), *(["--data", str(tokens), "--out", folder] if name == "gpt" else [])]
                errors.append(compare(name, words, args))
    print(
        json.dumps(
            {
                "worst_error": round(max(errors), 4),
                "median_error": round(statistics.median(errors), 4),
                "rows": len(errors),
            }
        )
    )


def compare(name: str, words: str, args: list[str]) -> float:
    """Trace in one process, train in another; return by how much the trace is off."""
    from headway.planner import ask_script

    script = str(SCRIPTS / f"{name}.py")
    found = ask_script(entry=script, kind="script", args=args, python=sys.executable)
    done = subprocess.run(
        [sys.executable, __file__, "--real", script, *args], capture_output=True, text=True, check=False
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise SystemExit(done.stderr)
    true = json.loads(lines[-1])["peak_bytes"]
    error = found["peak_bytes"] / true - 1
    sizes = f"{found['peak_bytes'] / 1e6:9.2f} MB foreseen {true / 1e6:9.2f} MB true"
    print(f"{name:8s} {words[:80]:80s} {sizes} {error:+.2%}  ({found['took_s']:.1f} s)", flush=True)
    return abs(error)


def run_really(script: str, args: list[str]) -> None:
    """Run a script up to its second update; print the most that torch's allocator had given out after its first."""
    import time

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    marks: list[int] = []
    watched = profile(activities=[ProfilerActivity.CPU], profile_memory=True)

    def after(*_: object) -> None:
        marks.append(time.time_ns())
        if len(marks) == 2:
            watched.__exit__(None, None, None)
            print(json.dumps({"peak_bytes": add_up(watched, marks[0])}), flush=True)
            os._exit(0)

    register_optimizer_step_post_hook(after)
    sys.argv = [script, *args]
    watched.__enter__()
    runpy.run_path(script, run_name="__main__")


def add_up(watched: object, start_ns: int) -> int:
    """Return the most bytes alive from that time on."""
    events = [one for one in watched.profiler.kineto_results.events() if one.name() == "[memory]"]  # type: ignore[attr-defined]
    live = most = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        live += event.nbytes()
        if event.start_ns() >= start_ns:
            most = max(most, live)
    return most


if __name__ == "__main__":
    main()
