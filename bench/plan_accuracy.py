"""The planner's memory and speed forecasts against published measurements.

Each row of the file is asked as a question of the formula families; rows no family can express say why. Rows are split
by a hash of their id: constants were only ever looked at on the `fit` half.

    python bench/plan_accuracy.py --rows FILE [--gpus FILE] [--quiet]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
from collections import Counter
from pathlib import Path

from plan_rows import GIB, Inexpressible, Question, Row, ask, measured_bytes


def half_of(row: Row) -> str:
    """Return `fit` or `held-out`, from the row's id alone."""
    return "fit" if hashlib.sha256(str(row["id"]).encode()).digest()[0] % 2 else "held-out"


def percentile(values: list[float], share: float) -> float:
    """Return the value below which that share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def predicted_bytes(question: Question, which: str) -> float:
    """Return the forecast that the row's figure is to be compared with."""
    forecast = question.forecast
    return forecast.reserved_bytes if which == "reserved" else forecast.allocated_bytes


def main() -> None:
    """Print every row and the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--gpus", type=Path, help="data sheets (gpus.json); none: those in the package")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines() if line.strip()]

    errors: dict[str, list[float]] = {"fit": [], "held-out": []}
    signed: list[float] = []
    why_not: Counter[str] = Counter()
    with_peak = 0
    for row in rows:
        peak = measured_bytes(row)
        if peak is None:
            continue
        with_peak += 1
        try:
            question = ask(row)
        except Inexpressible as reason:
            why_not[str(reason)] += 1
            if not options.quiet:
                print(f"{row['id']:8} {row['model'][:34]:34} not expressible: {reason}")
            continue
        guess = predicted_bytes(question, peak[1])
        error = guess / peak[0] - 1
        signed.append(error)
        errors[half_of(row)].append(abs(error))
        if not options.quiet:
            print(
                f"{row['id']:8} {row['model'][:34]:34} {half_of(row):8} {peak[1]:9} "
                f"predicted {guess / GIB:7.2f}  measured {peak[0] / GIB:7.2f} GiB  {error:+7.1%}  {row.get('method', '')}"
            )
    every = errors["fit"] + errors["held-out"]
    for reason, number in why_not.most_common():
        print(f"{number:4} rows: {reason}")
    summary = {
        "median_error": round(statistics.median(every), 4),
        "p90_error": round(percentile(every, 0.9), 4),
        "expressible": round(len(every) / with_peak, 4),
        "rows": len(every),
        "rows_with_peak": with_peak,
        "bias": round(statistics.median(signed), 4),
        **{f"median_error_{k}": round(statistics.median(v), 4) for k, v in errors.items() if v},
        **{f"p90_error_{k}": round(percentile(v, 0.9), 4) for k, v in errors.items() if v},
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
