"""The planner's formula forecasts of memory, speed and scaling against published measurements.

Each row of the file is asked as a question of the built-in families; rows that no family can express say why. Figures
are also given for two halves of the rows, split by a hash of their id: rates of the roofline were fitted on the half
`fit` alone, the terms of the memory formulas come from the models' code and were checked on both.

Questions are built in code here, with knobs of the formulas. What a user can ask, as a command line, is scored by
`plan_asked.py`; its figures are in the last line too, as `asked`.

    python bench/plan_accuracy.py --rows FILE [--quiet]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from headway.planner.roofline import scale_step
from plan_asked import score_rows
from plan_rows import GIB, InexpressibleError, Question, Row, ask, measured_bytes
from plan_speed import ask_speed, find_card

ASKED = Path(__file__).parent / "rows" / "asked.jsonl"


def half_of(row: Row) -> str:
    """Return `fit` or `held-out`, from the row's id alone."""
    return "fit" if hashlib.sha256(str(row["id"]).encode()).digest()[0] % 2 else "held-out"


def percentile(values: list[float], share: float) -> float:
    """Return the value below which that share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


@dataclass
class Score:
    """Errors of one kind of forecast, by half, and the rows that could not be asked."""

    name: str
    errors: dict[str, list[float]] = field(default_factory=lambda: {"fit": [], "held-out": []})
    signed: list[float] = field(default_factory=list)
    why_not: Counter[str] = field(default_factory=Counter)
    rows: int = 0

    def add(self, row: Row, guess: float, real: float, unit: str) -> str:
        """Take in one row and return its line."""
        error = guess / real - 1
        self.errors[half_of(row)].append(abs(error))
        self.signed.append(error)
        return (
            f"{row['id']:8} {row['model'][:38]:38} {half_of(row):8} "
            f"predicted {guess:9.3f}  measured {real:9.3f} {unit}  {error:+7.1%}"
        )

    def summary(self, prefix: str) -> dict[str, float]:
        """Return the figures of the last line."""
        every = self.errors["fit"] + self.errors["held-out"]
        if not every:
            return {}
        out = {"median_error": statistics.median(every), "p90_error": percentile(every, 0.9)}
        out["bias"] = statistics.median(self.signed)
        for half, values in self.errors.items():
            if values:
                out[f"median_error_{half.replace('-', '_')}"] = statistics.median(values)
                out[f"p90_error_{half.replace('-', '_')}"] = percentile(values, 0.9)
        return {f"{prefix}{name}": round(value, 4) for name, value in out.items()} | {f"{prefix}rows": len(every)}


def predicted_bytes(question: Question, which: str) -> float:
    """Return the forecast that the row's figure is to be compared with."""
    forecast = question.forecast
    return forecast.reserved_bytes if which == "reserved" else forecast.allocated_bytes


def judge_rows(rows: list[Row], say: bool) -> dict[str, object]:
    """Return how the verdicts meet the cards: rows that ran, and rows that ran out of memory."""
    ran = refused = oom = fits = 0
    for row in rows:
        card = find_card(row)
        worked = row.get("fits") or measured_bytes(row) is not None
        if card is None or row["kind"] != "measured" or not (worked or row.get("oom")):
            continue
        try:
            verdict = ask(row).forecast.judge(card.memory_bytes)
        except InexpressibleError:
            continue
        if row.get("oom"):
            oom += 1
            fits += verdict == "fits"
        else:
            ran += 1
            refused += verdict == "will-not-fit"
        wrong = (row.get("oom") and verdict == "fits") or (not row.get("oom") and verdict == "will-not-fit")
        if say and (row.get("oom") or wrong):
            print(f"{row['id']:8} {row['model'][:38]:38} {'ran out' if row.get('oom') else 'ran':8} called {verdict}")
    return {
        "oom_rows": oom,
        "oom_called_fits": fits,
        "ran_rows": ran,
        "needless_refusals": round(refused / ran, 4) if ran else 0.0,
    }


def scale_rows(rows: list[Row], say: bool) -> dict[str, object]:
    """Return how well replicas are forecast from one GPU's measured speed."""
    groups: dict[tuple[object, ...], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        if row.get("params") and "DeepLearningExamples" in row["source"] and row.get("gpu"):
            key = (
                row["model"],
                row["gpu"],
                str(row.get("precision", "fp32")),
                row.get("micro_batch"),
                row.get("seq_len"),
            )
            groups[key][row.get("world_size", 1)] = row
    points: list[float] = []
    for key, by_ranks in groups.items():
        alone = _rate(by_ranks[1]) if 1 in by_ranks else None
        card = find_card(next(iter(by_ranks.values())))
        if alone is None or card is None:
            continue
        for ranks, row in sorted(by_ranks.items()):
            rate = _rate(row)
            if ranks == 1 or rate is None or not row.get("micro_batch"):
                continue
            if row.get("grad_accum", 1) != by_ranks[1].get("grad_accum", 1):
                continue  # another amount of work between two sums
            one_step = row["micro_batch"] * row.get("seq_len", 1) / alone
            if "samples_per_s_total" in row:
                one_step = row["micro_batch"] / alone
            half = any(word in str(key[2]) for word in ("amp", "bf16"))
            step = scale_step(one_step, card, ranks=ranks, trained=row["params"], grad_bytes=2 if half else 4)
            guess, real = one_step / step, rate / alone / ranks
            points.append(abs(guess - real))
            if say:
                print(f"{row['id']:8} {key[0]!s:30} {ranks} ranks  predicted {guess:6.1%}  measured {real:6.1%}")
    return {
        "scaling_rows": len(points),
        "scaling_error_points": round(100 * statistics.mean(points), 2) if points else None,
    }


def _rate(row: Row) -> float | None:
    for name in ("tokens_per_s_total", "samples_per_s_total"):
        if name in row:
            return float(row[name])
    return None


def _stated(row: Row) -> Row:
    """Return what the row states: an empty field or a size of nothing says no more than a missing one."""
    return {key: value for key, value in row.items() if value is not None and (value is False or value != 0)}


def main() -> None:
    """Print every row and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--quiet", action="store_true", help="the last line only")
    options = parser.parse_args()
    say = not options.quiet
    rows = [_stated(json.loads(line)) for line in options.rows.read_text(encoding="utf-8").splitlines() if line.strip()]

    memory, speed = Score("memory"), Score("speed")
    for row in rows:
        peak = measured_bytes(row)
        if peak is None:
            continue
        memory.rows += 1
        try:
            line = memory.add(row, predicted_bytes(ask(row), peak[1]) / GIB, peak[0] / GIB, f"GiB {peak[1]}")
        except InexpressibleError as reason:
            memory.why_not[str(reason)] += 1
            line = f"{row['id']:8} {row['model'][:38]:38} not expressible: {reason}"
        if say:
            print(line)
    for row in rows:
        if not any(
            name in row for name in ("tokens_per_s_total", "tokens_per_s_per_gpu", "samples_per_s_total", "step_time_s")
        ):
            continue
        speed.rows += 1
        try:
            forecast, real = ask_speed(row)
        except InexpressibleError as reason:
            speed.why_not[str(reason)] += 1
            continue
        line = speed.add(row, forecast.step_s, real, "s a step")
        if say:
            print(line)
    verdicts, scaling = judge_rows(rows, say), scale_rows(rows, say)
    if say:
        for score in (memory, speed):
            print(
                f"\n{score.name}: {sum(map(len, score.errors.values()))} of {score.rows} rows expressible; the others:"
            )
            for reason, number in score.why_not.most_common():
                print(f"{number:5}  {reason}")
    share = len(memory.signed) / memory.rows if memory.rows else 0.0
    print(
        json.dumps(
            {
                **memory.summary(""),
                "expressible": round(share, 4),
                "rows_with_peak": memory.rows,
                **verdicts,
                **speed.summary("speed_"),
                **scaling,
                "asked": score_rows([ASKED])["open"].to_json(),
            }
        )
    )


if __name__ == "__main__":
    main()
