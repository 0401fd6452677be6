"""How often the root cause is named right: every log of an index against its label.

    python bench/diagnose_score.py --index FILE

An index is a file of JSON lines with `file` (relative to the index) and `category`. It prints the confusion table,
every miss, and as the last line `accuracy`, `false_alarms` and `seconds`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from headway.diagnosis import diagnose_log, load_rules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.index.read_text(encoding="utf-8").splitlines() if line.strip()]
    began = time.perf_counter()
    told = [(row, *judge(given.index.parent / row["file"])) for row in rows]
    seconds = time.perf_counter() - began
    table = Counter((row["category"], found) for row, found, _, _ in told)
    for label in sorted({row["category"] for row in rows}):
        found = {name: num for (wanted, name), num in sorted(table.items()) if wanted == label}
        right, total = found.get(label, 0), sum(found.values())
        others = ", ".join(f"{name} {num}" for name, num in found.items() if name != label)
        print(f"{label:26} {right:3}/{total:<3} {others}")
    misses = [one for one in told if one[1] != one[0]["category"]]
    for row, found, code, evidence in misses:
        print(f"miss {row.get('id', row['file'])}: {row['category']} was read as {found} [{code}] {evidence[:140]!r}")
    healthy = [one for one in told if one[0]["category"] == "healthy"]
    alarms = sum(found != "healthy" for _, found, _, _ in healthy)
    print(
        f"logs={len(rows)} healthy={len(healthy)} accuracy={1 - len(misses) / max(1, len(rows)):.4f} "
        f"false_alarms={alarms} seconds={seconds:.2f}"
    )


def judge(path: Path) -> tuple[str, str, str]:
    """Return the category, the code and the evidence."""
    with path.open("rb") as file:
        cause = diagnose_log(file, load_rules()).cause
    return (cause.category, cause.code, cause.evidence) if cause else ("healthy", "", "")


if __name__ == "__main__":
    main()
