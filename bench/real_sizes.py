"""Climb a ladder of real sizes: all that is done with a checkpoint, from 0.1 to 6 GB and beyond every 32-bit limit.

    python bench/real_sizes.py [--largest-gb 6] [--smallest-gb 0.1] [--only state|commands|many] [--pick TEXT]
                                [--scale 1] [--work DIR]

`state`: a state in memory, saved three times (by one rank also twice at once) by one or two ranks, as replicas and
sharded, restored by other numbers of ranks and compared byte for byte; with tensors and files beyond 2 and 4 GiB, and
with more than 10,000 tensors. Two replicas beyond 1 GB hold one copy in memory that both map. Peak memory is compared
with the state and one buffer of it, the time to commit with torch.save and fsync of the same state. `commands`: the
same sizes through `headway train`, `ckpt verify`, `resume`, `resume --step`, `ckpt export`, `ckpt import`, `eval`,
`predict` and `ckpt prune`. `many`: 10^6 steps of metrics, 10^5 samples in files, 1,000 checkpoints, 500 runs.

Rungs for which memory or disk is not free are refused, loudly, and counted. The last line is JSON: `cases`, `right`,
`wrong`, `refused`, `peak_over_state` (1 is the state, 2 the state and one buffer), `commit_ratio` (to torch.save).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from sizes_commands import run_commands
from sizes_many import run_many

RUNGS = (0.1, 1.0, 3.0, 6.0)
MANY_TENSORS = 10_500
SLACK_GB = 1.5
"""Left alone for everybody else on the machine, and for the framework itself."""
BASE_BYTES = 200e6
"""Memory of threads, read buffers and the allocator, whatever the size of the state."""


@dataclass
class Tally:
    """What came out."""

    picked: str
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def add(self, rung: str, case: str, wrong: str, facts: str) -> None:
        """Count a case and print its line."""
        if wrong:
            self.wrong.append(f"{rung}: {case}: {wrong}")
        else:
            self.right += 1
        print(f"{rung:34} {case:28} {'WRONG ' + wrong if wrong else 'right':8} {facts}", flush=True)

    def can_climb(self, rung: str, place: Path, *, memory_gb: float, disk_gb: float) -> bool:
        """Refuse what would not fit beside the others on this machine; leave out what was not picked."""
        if self.picked not in rung:
            return False
        free_gb = psutil.virtual_memory().available / 1e9
        disk_free_gb = shutil.disk_usage(place).free / 1e9
        if free_gb >= memory_gb + SLACK_GB and disk_free_gb >= disk_gb + SLACK_GB:
            return True
        why = (
            f"needs {memory_gb:.1f} GB of memory ({free_gb:.1f} free), {disk_gb:.1f} of disk ({disk_free_gb:.1f} free)"
        )
        self.refused.append(rung)
        print(f"{rung:34} REFUSED: {why}", flush=True)
        return False


def climb_states(tally: Tally, place: Path, rungs: list[float]) -> None:
    """Save and restore states without a loop around them."""
    for gb in rungs:
        for ranks, layout, tensors in (
            (1, "replicas", 40),
            (1, "replicas", MANY_TENSORS),
            (2, "replicas", 40),
            (2, "sharded", 40),
        ):
            if tensors == MANY_TENSORS and gb > 1:
                continue  # 10,000 tensors of any size ask the same question
            rung = f"state {gb:g} GB, {ranks} × {layout}, {tensors} tensors"
            is_shared = layout == "replicas" and ranks > 1 and gb > 1  # two of the largest are more than a machine has
            held = gb * (ranks if layout == "replicas" and not is_shared else 1) + gb
            with tempfile.TemporaryDirectory(dir="/dev/shm") if is_shared else nullcontext("") as shared:
                if tally.can_climb(rung, place, memory_gb=held, disk_gb=4 * gb):
                    request = {"gb": gb, "layout": layout, "tensors": tensors, "shared": shared}
                    climb_state(tally, place / "state", rung, request, ranks=ranks)


def climb_state(
    tally: Tally, place: Path, rung: str, about: dict[str, Any], *, ranks: int, readers: tuple[int, ...] = (1, 2, 3)
) -> None:
    """Save one state three times and twice at once, and restore it by each number of readers."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    request = {"root": str(place / "checkpoints"), **about}
    saved = list(_ask_ranks({**request, "do": "save", "saves": 3, "is_compared": ranks == 1}, ranks))
    broken = _find_broken(saved, "failed")
    if broken:
        tally.add(rung, "save", broken, "")
        return
    first, others = max(a["stalls"][0] for a in saved), max(max(a["stalls"][1:]) for a in saved)
    commits, forced = saved[0]["commits"], saved[0]["forced_s"]
    facts = f"stall {first:.2f}, then {others:.2f} s; commit {', '.join(f'{c:.2f}' for c in commits)} s"
    if forced is not None:
        facts += f"; a save while one is in flight waits {forced:.2f} s"
    if saved[0]["plain_s"]:
        plain = statistics.median(saved[0]["plain_s"])
        tally.ratios.append(statistics.median(commits[:3]) / plain)
        facts += f"; torch.save + fsync {plain:.2f} s"
    due = 3 if forced is None else 5
    tally.add(rung, "save", "" if len(commits) == due else f"{len(commits)} of {due} saves committed", facts)
    if about["gb"] >= 1:
        _compare_memory(tally, rung, saved)
    for number in readers:
        answers = list(_ask_ranks({**request, "do": "load", "layout": "sharded", "shared": ""}, number))
        fault = _find_broken(answers, "wrong")
        facts = "" if fault else f"verify {answers[0]['verify_s']:.1f} s, restore {answers[0]['restore_s']:.1f} s"
        most = 0.0 if fault else max((answer["peak"] - BASE_BYTES) / max(answer["own"], 1) for answer in answers)
        if not fault and about["gb"] >= 1 and most > 1.1:
            fault = f"peak {most:.2f} times what is restored"
        tally.add(rung, f"restore on {number}", fault, facts)
    shutil.rmtree(place)
    if ranks == 1 and about["gb"] == 1:
        cold = next(_ask_ranks({**request, "do": "save", "saves": 2, "is_compared": False, "is_cold": True}, 1))
        facts = (
            "" if "error" in cold else f"{cold['stalls'][0]:.2f}, then {cold['stalls'][1]:.2f} s; prepared {first:.2f}"
        )
        tally.add(rung, "first stall, not prepared", _find_broken([cold], "failed"), facts)
        shutil.rmtree(place)


def _find_broken(answers: list[dict[str, Any]], key: str) -> str:
    """Return what the first rank that has anything to complain of says."""
    said = [str(answer.get("error") or answer[key]) for answer in answers if answer.get("error") or answer[key]]
    return said[0][-300:] if said else ""


def _compare_memory(tally: Tally, rung: str, saved: list[dict[str, Any]]) -> None:
    peak = max((answer["peak"] - BASE_BYTES) / max(answer["held"], 1) for answer in saved)
    tally.peaks.append(peak)
    wrong = "" if peak < 2.1 else f"{peak:.2f} times the state"
    tally.add(rung, "memory of saving", wrong, f"{peak:.2f} × the state")


def _ask_ranks(request: dict[str, Any], ranks: int) -> Iterator[dict[str, Any]]:
    """Run all ranks at once and yield their answers."""
    script = str(Path(__file__).with_name("sizes_state.py"))
    children = []
    for rank in range(ranks):
        line = [sys.executable, script, json.dumps({**request, "rank": rank, "ranks": ranks})]
        children.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for child in children:
        out, err = child.communicate(timeout=1800)
        yield json.loads(out.strip().splitlines()[-1]) if child.returncode == 0 else {"error": err[-600:] or "no word"}


def climb_commands(tally: Tally, place: Path, rungs: list[float]) -> None:
    """Take runs of each size through every command."""
    for gb in rungs:
        for ranks, strategy, tensors in (
            (1, "auto", 12),
            (1, "auto", MANY_TENSORS // 3),
            (2, "auto", 12),
            (2, "fsdp", 12),
        ):
            if tensors > 1000 and gb > 0.1:
                continue
            rung = f"run {gb:g} GB, {ranks} × {strategy}, {3 * tensors} tensors"
            # Weights, gradients and moments, the buffer of the save, and what a step needs besides.
            held = gb * 4 / 3 * (1 if strategy == "fsdp" else ranks) + gb * (1.4 if strategy == "fsdp" else 1.1)
            if tally.can_climb(rung, place, memory_gb=held, disk_gb=6 * gb):
                for case, wrong, facts in run_commands(
                    place / "run", gb=gb, tensors=tensors, ranks=ranks, strategy=strategy
                ):
                    tally.add(rung, case, wrong, facts)


def main() -> int:
    """Climb, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--largest-gb", type=float, default=RUNGS[-1])
    parser.add_argument("--smallest-gb", type=float, default=RUNGS[0])
    parser.add_argument("--only", choices=("state", "commands", "many"))
    parser.add_argument("--pick", default="", help="only rungs whose name holds this, such as 'run 6 GB, 2 × fsdp'")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the numbers of `many`")
    parser.add_argument("--work", type=Path, help="folder with room on a real disk; default: a temporary one")
    asked = parser.parse_args()
    rungs = [gb for gb in RUNGS if asked.smallest_gb <= gb <= asked.largest_gb]
    tally, began = Tally(picked=asked.pick), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headway-sizes-", dir=asked.work) as folder:
        place = Path(folder)
        if asked.only in (None, "state"):
            climb_states(tally, place, rungs)
        if asked.only in (None, "commands"):
            climb_commands(tally, place, rungs)
        if asked.only in (None, "many"):
            for case, wrong, facts in run_many(place / "many", scale=asked.scale):
                tally.add("many", case, wrong, facts)
    for line in tally.wrong:
        print(f"wrong: {line}")
    print(
        json.dumps(
            {
                "cases": tally.right + len(tally.wrong),
                "right": tally.right,
                "wrong": len(tally.wrong),
                "refused": len(tally.refused),
                "peak_over_state": round(max(tally.peaks), 3) if tally.peaks else None,
                "commit_ratio": round(statistics.median(tally.ratios), 2) if tally.ratios else None,
                "seconds": round(time.monotonic() - began),
            }
        )
    )
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
