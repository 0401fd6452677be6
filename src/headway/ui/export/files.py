"""Metrics and validations of a run as CSV, JSON or TensorBoard event files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from headway.errors import UsageError
from headway.telemetry import (
    COLUMNS,
    GPU_KEYS,
    HOST_KEYS,
    JOB_KEYS,
    RANK_KEYS,
    Event,
    RunDir,
    held_validations,
    number,
    plain,
    read_devices,
    read_events,
    section,
)
from headway.ui.export.tensorboard import Table, write_events, write_tables
from headway.ui.rows import Keep, Lines, kept_rows, open_new, read_lines

Format = Literal["csv", "json", "tensorboard"]
FORMATS: Final = ("csv", "json", "tensorboard")
Heads = tuple[NDArray[np.int64], NDArray[np.int64], Keep]
"""Attempt, step and mark of each line."""
_TAGS: Final = {
    **{key: f"train/{key}" for key in ("loss", "lr", "grad_norm", "samples", "mem")},
    **{key: f"time/{key}" for key in COLUMNS[COLUMNS.index("dt") :] if key != "mem"},
}


def list_targets(run: RunDir, kind: Format, to: Path) -> list[Path]:
    """Return the files an export would write."""
    if kind == "tensorboard":
        ranks = [to / f"rank-{rank}" / _event_name(run) for rank in run.ranks()]
        return [*ranks, to / "validation" / _event_name(run)]
    devices = [to / f"devices.{kind}"] if run.devices.is_file() else []
    return [to / f"metrics.{kind}", to / f"validations.{kind}", *devices]


def export_run(run: RunDir, kind: Format, to: Path) -> int:
    """Write the files and return the number of points: lines of metrics and validations, or scalars.

    Metrics go through as a stream: their values are copied as they are, so a run of any length takes little memory.
    """
    checks = held_validations(read_events(run.events))
    if not checks and not any(True for rank in run.ranks() for _ in read_lines(run.metrics(rank))):
        raise UsageError("ui/no-metrics", name=run.name)
    to.mkdir(parents=True, exist_ok=True)
    if kind != "tensorboard" and run.devices.is_file():
        _write_devices(run, kind, to)
    if kind == "csv":
        return _write_csv(run, checks, to)
    if kind == "json":
        return _write_json(run, checks, to)
    return _write_tensorboard(run, checks, to)


def _checks(checks: list[Event]) -> Iterator[dict[str, Any]]:
    for event in checks:
        for name, value in event["measures"].items():
            best = bool(event.get("best"))
            yield {"step": event["step"], "t": event.get("t"), "measure": name, "value": number(value), "best": best}


def _write_csv(run: RunDir, checks: list[Event], to: Path) -> int:
    def write(file: IO[bytes], rank: int, lines: Lines, keep: Keep, is_first: bool) -> None:
        text = lines.bare(keep)
        if b"n" in text or b'"' in text:
            for name, plain_text in (
                (b"null", b""),
                (b'"NaN"', b"nan"),
                (b'"Infinity"', b"inf"),
                (b'"-Infinity"', b"-inf"),
            ):
                text = text.replace(name, plain_text)
        head = b"%d," % rank
        file.write(head + text[:-1].replace(b"\n", b"\n" + head) + b"\n")

    with open_new(to / "metrics.csv") as file:
        file.write(",".join(["rank", "attempt", *COLUMNS]).encode() + b"\n")
        num = _copy_rows(run, file, write)
    with (
        open_new(to / "validations.csv") as file,
        io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="") as text,
    ):
        writer = csv.DictWriter(text, ["step", "t", "measure", "value", "best"], lineterminator="\n")
        writer.writeheader()
        rows = list(_checks(checks))
        writer.writerows(rows)
    return num + len(rows)


def _write_json(run: RunDir, checks: list[Event], to: Path) -> int:
    def write(file: IO[bytes], rank: int, lines: Lines, keep: Keep, is_first: bool) -> None:
        text = lines.whole(keep)[:-1].replace(b'{"a":', b',\n{"rank":%d,"attempt":' % rank)
        # Lines of one rank follow each other: the comma is before each, but not before the very first.
        file.write((text[1:] if is_first else text).replace(b"\n,", b","))

    with open_new(to / "metrics.json") as file:
        file.write(b'{"schema":"metrics/1","metrics":[')
        num = _copy_rows(run, file, write)
        file.write(b"\n]}\n")
    rows = list(_checks(checks))
    data = {"schema": "validations/1", "validations": plain(rows)}
    with open_new(to / "validations.json") as file:
        file.write(json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n")
    return num + len(rows)


def _write_devices(run: RunDir, kind: Format, to: Path) -> None:
    """Write what the sampler read: as it is, or one row per reading and GPU, rank, host and job."""
    history = read_devices(run.devices)
    if kind == "json":
        data = {"schema": "devices/1", "about": plain(history.about), "readings": plain(history.readings)}
        with open_new(to / "devices.json") as file:
            text = json.dumps(data, ensure_ascii=False, allow_nan=False)
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        return
    names = dict.fromkeys((*GPU_KEYS, *HOST_KEYS, *JOB_KEYS, *RANK_KEYS))
    with open_new(to / "devices.csv") as file:
        lines = io.StringIO()
        table = csv.DictWriter(lines, ["t", "n", "of", "index", *names], extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        for reading in history.readings:
            when = {"t": reading["t"], "n": reading.get("n", 1)}
            table.writerow({**when, "of": "host", **section(reading.get("host"))})
            table.writerow({**when, "of": "job", **section(reading.get("job"))})
            for part, name in (("gpus", "gpu"), ("ranks", "rank")):
                for index in history.gpus() if part == "gpus" else history.ranks():
                    if one := history.at(reading, part, index):
                        table.writerow({**when, "of": name, "index": index, **_flat(one)})
        file.write(lines.getvalue().encode("utf-8", "replace"))


def _flat(one: dict[str, Any]) -> dict[str, Any]:
    return {key: "; ".join(map(str, value)) if isinstance(value, list) else value for key, value in one.items()}


def _copy_rows(run: RunDir, file: IO[bytes], write: Callable[[IO[bytes], int, Lines, Keep, bool], None]) -> int:
    """Write the lines of all ranks that still count and return how many they are.

    All are taken for counting at first. Only a rank that has done steps again is read twice: its lines are taken back.
    """
    num = 0
    for rank in run.ranks():
        began = file.tell()
        heads = []
        is_first = num == 0
        for lines in read_lines(run.metrics(rank)):
            write(file, rank, lines, np.ones(len(lines.step), dtype=np.bool_), is_first)
            is_first = False
            heads.append((lines.attempt, lines.step, lines.is_mark))
        if not heads:
            continue
        kept = kept_rows(*map(np.concatenate, zip(*heads, strict=True)))
        if not kept.all():
            file.seek(began)
            file.truncate()
            place, is_first = 0, num == 0
            for lines in read_lines(run.metrics(rank)):
                keep = kept[place : place + len(lines.step)]
                place += len(lines.step)
                if keep.any():
                    write(file, rank, lines, keep, is_first)
                    is_first = False
        num += int(kept.sum())
    return num


def _write_tensorboard(run: RunDir, checks: list[Event], to: Path) -> int:
    num = 0
    for rank in run.ranks():
        num += _write_rank(run.metrics(rank), to / f"rank-{rank}" / _event_name(run))
    points = [
        (
            int(event["step"]),
            number(event.get("t")),
            {f"validation/{k}": number(v) for k, v in event["measures"].items()},
        )
        for event in checks
    ]
    return num + (write_events(to / "validation" / _event_name(run), points) if points else 0)


def _write_rank(metrics: Path, target: Path) -> int:
    seen: list[Heads] = []
    num = write_tables(target, _tables(metrics, seen))
    if not seen:
        return num
    # As with the other formats: only a rank that has done steps again is read twice.
    kept = kept_rows(*map(np.concatenate, zip(*seen, strict=True)))
    return num if kept.all() else write_tables(target, _tables(metrics, [], kept))


def _tables(path: Path, seen: list[Heads], kept: Keep | None = None) -> Iterator[Table]:
    """Yield the lines as columns, or those that are kept; add what `kept_rows` asks for to `seen`."""
    place = 0
    for lines in read_lines(path):
        seen.append((lines.attempt, lines.step, lines.is_mark))
        keep = slice(None) if kept is None else kept[place : place + len(lines.step)]
        place += len(lines.step)
        values = {tag: lines.floats(key)[keep] for key, tag in _TAGS.items()}
        yield Table(lines.step[keep], lines.floats("t")[keep], values, frozenset({_TAGS["mem"]}))


def _event_name(run: RunDir) -> str:
    # TensorBoard looks for `tfevents` in the name; the same run gives the same name, so a second export replaces it.
    return f"events.out.tfevents.{run.name}"
