"""A log as people have it: one file, or a folder with one file per rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from headway.diagnosis.find_cause import LogDiagnosis, diagnose_log
from headway.diagnosis.record import Diagnosis, Evidence
from headway.diagnosis.rulebook import Rulebook

_LOGS: Final = (".log", ".out", ".err", ".txt", ".gz", ".bz2", ".xz")
_STREAMS: Final = ("stdout", "stderr", "log", "nohup")
"""Names without an ending that hold output."""
_MOST: Final = 500
"""Files of a folder that are read."""
_SURE: Final = {"certain": 2, "likely": 1, "possible": 0}


def diagnose_file(path: Path, book: Rulebook) -> LogDiagnosis:
    """Return the root cause from a log file, packed or not."""
    with path.open("rb") as file:
        return diagnose_log(file, book)


def diagnose_folder(folder: Path, book: Rulebook) -> LogDiagnosis:
    """Return the root cause from a folder of logs: the one that is named most surely, in the file it is in.

    Each file is judged for itself: the lines of one rank say nothing about whether another continued.
    """
    read = [(path, diagnose_file(path, book)) for path in list_logs(folder)]
    total = LogDiagnosis(
        cause=None,
        num_lines=sum(one.num_lines for _, one in read),
        num_bytes=sum(one.num_bytes for _, one in read),
        survived=tuple(fault for _, one in read for fault in one.survived),
    )
    causes = [_in_file(one.cause, path.relative_to(folder)) for path, one in read if one.cause is not None]
    causes.sort(key=lambda cause: (cause.is_cascade, cause.code.endswith("-exception"), -_SURE[cause.sure]))
    if not causes:
        return total
    root = causes[0]
    others: dict[str, Diagnosis] = {}
    for cause in causes[1:]:
        if cause.category != root.category and cause.sure == "certain" and not cause.is_cascade:
            others.setdefault(cause.category, cause)
    explained = set(book.rules[root.code.removeprefix("diagnose/")].explains)
    apart = [one for one in others.values() if one.code.removeprefix("diagnose/") not in explained]
    return replace(total, cause=replace(root, others=(*root.others, *apart)))


def list_logs(folder: Path) -> list[Path]:
    """Return the files of a folder that hold output, in order of their names."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return [path for path in files if path.suffix in _LOGS or path.name in _STREAMS or "log" in path.name.lower()][
        :_MOST
    ]


def _in_file(cause: Diagnosis, path: Path) -> Diagnosis:
    """Return a cause whose evidence names the file."""
    lines = tuple(_named(one, path) for one in cause.lines)
    follow = tuple(replace(one, evidence=_named(one.evidence, path)) for one in cause.consequences)
    return replace(cause, facts={**cause.facts, "file": str(path)}, lines=lines, consequences=follow)


def _named(evidence: Evidence, path: Path) -> Evidence:
    return replace(evidence, text=f"{path}: {evidence.text}")
