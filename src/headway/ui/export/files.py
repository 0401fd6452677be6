"""Metrics and validations of a run as CSV, JSON or TensorBoard event files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from headway.errors import UsageError
from headway.telemetry import COLUMNS, Columns, Event, RunDir, number, plain, read_events, read_metrics
from headway.ui.export.tensorboard import Point, write_events

Format = Literal["csv", "json", "tensorboard"]
FORMATS: Final = ("csv", "json", "tensorboard")

_WHOLE: Final = ("step", "samples", "mem")


def list_targets(run: RunDir, kind: Format, to: Path) -> list[Path]:
    """Return the files an export would write."""
    if kind == "tensorboard":
        ranks = [to / f"rank-{rank}" / _event_name(run) for rank in run.ranks()]
        return [*ranks, to / "validation" / _event_name(run)]
    return [to / f"metrics.{kind}", to / f"validations.{kind}"]


def export_run(run: RunDir, kind: Format, to: Path) -> int:
    """Write the files and return the number of points: lines of metrics and validations, or scalars."""
    metrics = {rank: read_metrics(run.metrics(rank)) for rank in run.ranks()}
    checks = [event for event in read_events(run.events) if event.get("kind") == "validation" and "step" in event]
    if not any(len(columns["step"]) for columns in metrics.values()) and not checks:
        raise UsageError("ui/no-metrics", name=run.name)
    to.mkdir(parents=True, exist_ok=True)
    if kind == "csv":
        return _write_csv(metrics, checks, to)
    if kind == "json":
        return _write_json(metrics, checks, to)
    return _write_tensorboard(run, metrics, checks, to)


def _rows(metrics: dict[int, Columns]) -> Iterator[dict[str, Any]]:
    for rank, columns in metrics.items():
        for i in range(len(columns["step"])):
            row: dict[str, Any] = {"rank": rank, "attempt": int(columns["a"][i])}
            yield row | {key: _cell(key, columns[key][i]) for key in COLUMNS}


def _cell(key: str, value: float) -> float | int | None:
    if key in _WHOLE:
        return None if math.isnan(value) else int(value)
    return value


def _checks(checks: list[Event]) -> Iterator[dict[str, Any]]:
    for event in checks:
        for name, value in (event.get("measures") or {}).items():
            best = bool(event.get("best"))
            yield {"step": event["step"], "t": event.get("t"), "measure": name, "value": number(value), "best": best}


def _write_csv(metrics: dict[int, Columns], checks: list[Event], to: Path) -> int:
    num = _write_table(to / "metrics.csv", ["rank", "attempt", *COLUMNS], _rows(metrics))
    return num + _write_table(to / "validations.csv", ["step", "t", "measure", "value", "best"], _checks(checks))


def _write_table(path: Path, fields: list[str], rows: Iterator[dict[str, Any]]) -> int:
    num = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            num += 1
    return num


def _write_json(metrics: dict[int, Columns], checks: list[Event], to: Path) -> int:
    num = 0
    for name, rows in (("metrics", list(_rows(metrics))), ("validations", list(_checks(checks)))):
        data = {"schema": f"{name}/1", name: plain(rows)}
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        (to / f"{name}.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        num += len(rows)
    return num


def _write_tensorboard(run: RunDir, metrics: dict[int, Columns], checks: list[Event], to: Path) -> int:
    num = 0
    for rank, columns in metrics.items():
        num += write_events(to / f"rank-{rank}" / _event_name(run), _points(columns))
    points = [
        (
            int(event["step"]),
            number(event.get("t")),
            {f"validation/{k}": number(v) for k, v in event["measures"].items()},
        )
        for event in checks
        if event.get("measures")
    ]
    return num + (write_events(to / "validation" / _event_name(run), points) if points else 0)


def _points(columns: Columns) -> Iterator[Point]:
    tags = {key: f"train/{key}" for key in ("loss", "lr", "grad_norm", "samples", "mem")}
    tags |= {key: f"time/{key}" for key in COLUMNS[COLUMNS.index("dt") :] if key != "mem"}
    for i in range(len(columns["step"])):
        values = {tag: columns[key][i] for key, tag in tags.items() if key != "mem" or not math.isnan(columns[key][i])}
        yield int(columns["step"][i]), columns["t"][i], values


def _event_name(run: RunDir) -> str:
    # TensorBoard looks for `tfevents` in the name; the same run gives the same name, so a second export replaces it.
    return f"events.out.tfevents.{run.name}"
