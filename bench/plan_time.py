"""How well `headway plan` foresees the time of published runs, each asked as a command line.

    python bench/plan_time.py [--rows bench/rows/asked_time.jsonl] [--set open|aside|all] [--worst 20]

A row is one object a line: source, url, command (the words after `headway`), and one of step_s, tokens_s, samples_s.
Half of the rows are set aside: they were not looked at while the roofline was calibrated. Error is the forecast step
over the published one, minus one. Last line: {"time_within_25": …, "median": …, "p90": …, "rows": …, "aside": {…}}.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from headway.cli.main import root

ROWS = Path(__file__).parent / "rows" / "asked_time.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--set", choices=("open", "aside", "all"), default="open")
    parser.add_argument("--worst", type=int, default=20)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.rows.read_text(encoding="utf-8").splitlines() if line]
    asked = [(row, ask(row)) for row in rows if given.set in ("all", row["set"])]
    show(asked, given.worst)
    parts = {name: judge(error for row, error in asked if row["set"] == name) for name in ("open", "aside")}
    print(json.dumps({**parts["open"], "aside": parts["aside"]}))


def ask(row: Mapping[str, Any]) -> float | None:
    """Return the error of the forecast step; none: the command does not say a time."""
    words = [str(word) for word in row["command"]]
    result = CliRunner().invoke(root, [*words, "--json"])
    try:
        said = json.loads(result.stdout)
    except ValueError:
        return None
    said = said.get("forecast") or said
    if not said.get("step_s"):
        return None
    if row.get("step_s"):
        return said["step_s"] / row["step_s"] - 1
    if row.get("samples_s"):
        return row["samples_s"] / said["samples_s"] - 1
    tokens = next(int(word.partition("=")[2]) for word in words if word.startswith("seq="))
    return row["tokens_s"] / (said["samples_s"] * tokens) - 1


def judge(errors: Iterable[float | None]) -> dict[str, float | int | None]:
    """Return how many are within a quarter, with the rows that got no answer counted as misses."""
    given = list(errors)
    sizes = sorted(abs(error) if error is not None else 9.0 for error in given)
    if not sizes:
        return {"time_within_25": None, "median": None, "p90": None, "rows": 0}
    return {
        "time_within_25": round(sum(size <= 0.25 for size in sizes) / len(sizes), 3),
        "median": round(statistics.median(sizes), 3),
        "p90": round(sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))], 3),
        "rows": len(sizes),
    }


def show(asked: list[tuple[Mapping[str, Any], float | None]], worst: int) -> None:
    """Print one line a source, then the worst rows."""
    for source in sorted({row["source"] for row, _ in asked}):
        errors = [error for row, error in asked if row["source"] == source]
        known = [error for error in errors if error is not None]
        mean = f"{statistics.median(known):+.0%}" if known else "n/a"
        inside = sum(abs(error) <= 0.25 for error in known)
        print(f"{source:22} {inside:3d} of {len(errors):3d} within 25 %, median {mean}")
    far = sorted(asked, key=lambda one: -abs(one[1] if one[1] is not None else 9.0))[:worst]
    for row, error in far:
        print(f"{'none' if error is None else f'{error:+.0%}':>6} {row['source']:14} {' '.join(row['command'][1:])}")


if __name__ == "__main__":
    main()
