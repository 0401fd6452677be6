"""Published training runs asked the way a user asks: every row is a command line, its answer is scored by the source.

A row of the file is one run of a public table: `command` (the words after `headway`), `memory_gib` with the figure that
is (`metric`: allocated, reserved or used, as the source says; used where it does not), `step_s`, `tokens_s` or
`samples_s` of all ranks, and whether it ran (`verdict`). Rows with `set: aside` were labelled before the planner was
changed and asked once, at the end of their `round`; they are scored apart.

    python bench/plan_asked.py --rows bench/rows/asked.jsonl [--rows MORE] [--open] [--quiet]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from headway.cli.plan import plan
from headway.errors import HeadwayError, PlanError

GIB = 1 << 30
Row = dict[str, Any]


def ask(command: list[str]) -> dict[str, Any]:
    """Return what `headway …` prints for these words, or its `trouble` with them."""
    assert command[0] == "plan", command
    words = command[1:] if "--json" in command else [*command[1:], "--json"]
    shown = CliRunner().invoke(plan, words)
    trouble = shown.exception
    if isinstance(trouble, HeadwayError) and not isinstance(trouble, PlanError):
        return {"trouble": str(trouble)}
    if trouble is not None and not isinstance(trouble, PlanError | SystemExit):
        raise trouble
    # A plan that does not fit is refused after its forecast is printed.
    return _forecast(json.loads(shown.stdout))


def _forecast(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the forecast of a model's answer, or the one inside a recipe's plan."""
    found: dict[str, Any] = answer.get("forecast") or answer
    return found


@dataclass
class Score:
    """Errors of a group of rows."""

    memory: list[float] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unasked: int = 0
    rows: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the figures of the last line."""
        ordered = sorted(map(abs, self.memory))
        within = sum(abs(error) <= 0.25 for error in self.time)
        return {
            "rows": self.rows,
            "unasked": self.unasked,
            "memory_rows": len(ordered),
            "median": round(statistics.median(ordered), 4) if ordered else None,
            "p90": round(ordered[round(0.9 * (len(ordered) - 1))], 4) if ordered else None,
            "bias": round(statistics.median(self.memory), 4) if ordered else None,
            "wrong_verdicts": len(self.wrong),
            "time_rows": len(self.time),
            "time_within_25": round(within / len(self.time), 4) if self.time else None,
        }


def add_row(row: Row, scores: list[Score]) -> str:
    """Ask one row, take its errors in, and return its line."""
    for score in scores:
        score.rows += 1
    answer = ask(row["command"])
    shown = " ".join(word for word in row["command"][2:] if word != "--json")
    line = f"{row['source'][:18]:18} {row['set']:5} {shown[:118]:118}"
    if "trouble" in answer:
        for score in scores:
            score.unasked += 1
        return f"{line}  not askable: {answer['trouble']}"
    if row.get("memory_gib") is not None:
        guess = answer[f"{row.get('metric') or 'used'}_bytes"] / GIB
        error = guess / row["memory_gib"] - 1
        line += f"  {guess:7.2f} of {row['memory_gib']:7.2f} GiB {error:+6.1%}"
        for score in scores:
            score.memory.append(error)
    seconds = _time_error(row, answer)
    if seconds is not None:
        line += f"  time {seconds:+6.1%}"
        for score in scores:
            score.time.append(seconds)
    is_wrong = answer["verdict"] == ("will-not-fit" if row["verdict"] == "runs" else "fits")
    if is_wrong:
        line += f"  WRONG: {row['verdict']}, called {answer['verdict']}"
        for score in scores:
            score.wrong.append(shown)
    return line


def _time_error(row: Row, answer: dict[str, Any]) -> float | None:
    """Return how much longer the forecast's step is than the measured one."""
    rate, step = answer.get("samples_s"), answer.get("step_s")
    if not rate or not step:
        return None
    if row.get("step_s"):
        return float(step / row["step_s"] - 1)
    if row.get("samples_s"):
        return float(row["samples_s"] / rate - 1)
    if row.get("tokens_s"):
        return float(row["tokens_s"] / (rate * answer["seq"]) - 1)
    return None


def score_rows(paths: list[Path], *, aside: bool = False, say: bool = False) -> dict[str, Score]:
    """Ask every row of these files and return the scores, by set and by source and set.

    Args:
        aside: ask the rows that are set aside as well.
        say: print each row.
    """
    scores: dict[str, Score] = defaultdict(Score)
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    for row in map(json.loads, lines):
        if row["set"] == "aside" and not aside:
            continue
        line = add_row(row, [scores[row["set"]], scores[f"{row['source']:28} {row['set']:5}"]])
        if say:
            print(line)
    return scores


def main() -> None:
    """Print every row, a table by source, and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, action="append", required=True)
    parser.add_argument("--open", action="store_true", help="leave the rows set aside unasked")
    parser.add_argument("--quiet", action="store_true", help="the last line only")
    options = parser.parse_args()
    scores = score_rows(options.rows, aside=not options.open, say=not options.quiet)
    by_set = {name: scores.pop(name, Score()).to_json() for name in ("open", "aside")}
    if not options.quiet:
        print(f"\n{'source':28} set   rows memory  median    p90    bias  time  within 25 %  wrong")
        for name, score in sorted(scores.items()):
            told = score.to_json()
            text = {key: "n/a" if value is None else value for key, value in told.items()}
            print(
                f"{name} {told['rows']:4} {told['memory_rows']:6} {text['median']:>7} {text['p90']:>6} "
                f"{text['bias']:>7} {told['time_rows']:5} {text['time_within_25']:>12} {told['wrong_verdicts']:6}"
            )
    sources = {name[:28].strip() for name in scores}
    last: dict[str, Any] = {**by_set["open"], "sources": len(sources)}
    if not options.open:
        last["aside"] = by_set["aside"]
    print(json.dumps(last))


if __name__ == "__main__":
    main()
