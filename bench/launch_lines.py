"""How many real launch lines are understood in every field.

A row counts when the launch, all further launches and everything left open are exactly as labelled. A launcher's own
default and "not said" are taken as equal where the labels allow it (`--strict` does not).

    python bench/launch_lines.py --lines FILE [--strict]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from headway.adopt import understand

OPTIONAL = ("world_size", "hostfile", "wrappers", "sbatch", "slurm")
ALL_VISIBLE = ("deepspeed", "composer", "paddle", "llamafactory")
"""Launchers that start one rank for each visible GPU unless told otherwise."""


def default_of(launcher: str, key: str, row: dict[str, Any]) -> Any:
    """Return what a launcher does where nothing is said, or None."""
    if key == "nproc_per_node" and launcher in ("torchrun", "torch.distributed.launch"):
        return 1
    if key == "nproc_per_node" and launcher in ALL_VISIBLE and row.get("cuda_visible_devices"):
        return len(row["cuda_visible_devices"])
    if key == "nnodes" and not row.get("hostfile"):
        return 1
    return None


def differences(ours: dict[str, Any], wanted: dict[str, Any], *, strict: bool) -> list[str]:
    """Return the fields in which two launches differ, with both values."""
    found = []
    for key in (*wanted, *(key for key in OPTIONAL if key in ours and key not in wanted)):
        got, want = ours.get(key), wanted.get(key)
        if got == want:
            continue
        default = default_of(wanted["launcher"], key, wanted)
        if not strict and default is not None and {None, default} >= {got, want}:
            continue
        found.append(f"{key}: {got!r}, wanted {want!r}")
    return found


def judge(row: dict[str, Any], *, strict: bool) -> list[str]:
    """Return everything that is wrong with our reading of a row."""
    meaning = understand(row["text"])
    if meaning.launch is None:
        return ["no launch found"]
    wrong = differences(meaning.launch.to_json(), row["expected"], strict=strict)
    more, wanted = [one.to_json() for one in meaning.more], row.get("more", [])
    if len(more) != len(wanted):
        names = [one["entry"]["name"] if one["entry"] else None for one in more]
        wrong.append(f"more: {len(more)} further launches {names}, wanted {len(wanted)}")
    for place, (got, want) in enumerate(zip(more, wanted, strict=False), start=1):
        wrong += [f"more {place}: {one}" for one in differences(got, want, strict=strict)]
    if meaning.unresolved != sorted(row["unresolved"]):
        wrong.append(f"unresolved: {meaning.unresolved}, wanted {sorted(row['unresolved'])}")
    return wrong


def main() -> None:
    """Print every miss, a table by launcher and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, required=True, help="JSON lines: text, expected, more, unresolved")
    parser.add_argument("--strict", action="store_true", help="a default and nothing said are different")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.lines.read_text(encoding="utf-8").splitlines() if line.strip()]
    total, right = Counter[str](), Counter[str]()
    for row in rows:
        wrong = judge(row, strict=args.strict)
        launcher = row["expected"]["launcher"]
        total[launcher] += 1
        right[launcher] += not wrong
        if wrong:
            print(f"miss {row['id']}")
            print("".join(f"  {line}\n" for line in wrong), end="")
    print(f"{'launcher':<26} {'rows':>5} {'right':>6}")
    for launcher, count in total.most_common():
        print(f"{launcher:<26} {count:>5} {right[launcher]:>6}")
    figures = {"accuracy": round(right.total() / max(1, len(rows)), 4), "rows": len(rows), "right": right.total()}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
