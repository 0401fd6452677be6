"""Names and places inside a run directory. The directory is the interface between the stages."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.telemetry.reading import write_whole

SHARE_VARIABLE = "HEADWAY_SHARE_RUNS"
"""Set to 1, new run directories may be read by other users."""


@dataclass(frozen=True, slots=True)
class RunDir:
    """One run's directory and the places in it."""

    root: Path

    @property
    def name(self) -> str:
        """The run's name: its folder's name."""
        return self.root.name

    @property
    def config(self) -> Path:
        """The resolved config, for people."""
        return self.root / "config.yaml"

    @property
    def origins(self) -> Path:
        """Which layer set each value."""
        return self.root / "origins.json"

    @property
    def machine(self) -> Path:
        """What the check found."""
        return self.root / "machine.json"

    @property
    def plan(self) -> Path:
        """How the run is laid out."""
        return self.root / "plan.json"

    @property
    def command(self) -> Path:
        """Arguments, names of environment variables, commit and diff."""
        return self.root / "command.json"

    @property
    def job(self) -> Path:
        """What the ranks read: recipe, config and plan in one file."""
        return self.root / "job.json"

    @property
    def events(self) -> Path:
        """The run's history."""
        return self.root / "events.jsonl"

    @property
    def devices(self) -> Path:
        """Readings of GPUs, host and ranks."""
        return self.root / "devices.jsonl"

    @property
    def lease(self) -> Path:
        """Who supervises the run now."""
        return self.root / "lease.json"

    @property
    def log(self) -> Path:
        """All ranks' output, merged by arrival."""
        return self.root / "log"

    @property
    def checkpoints(self) -> Path:
        """The checkpoints."""
        return self.root / "checkpoints"

    @property
    def report(self) -> Path:
        """The one-file report."""
        return self.root / "report.html"

    def rank(self, rank: int) -> Path:
        """The files of one rank."""
        return self.root / "ranks" / str(rank)

    def metrics(self, rank: int) -> Path:
        """One line a step."""
        return self.rank(rank) / "metrics.jsonl"

    def stdout(self, rank: int) -> Path:
        """What the rank printed, byte for byte."""
        return self.rank(rank) / "stdout.log"

    def heartbeat(self, rank: int) -> Path:
        """The rank's heartbeat page."""
        return self.rank(rank) / "heartbeat"

    def ranks(self) -> list[int]:
        """Ranks that have left files, in order."""
        try:
            names = os.listdir(self.root / "ranks")
        except OSError:
            return []
        # Nine digits are more ranks than there are; a longer name is somebody's joke, and no number to count by.
        return sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 10)


def new_run_dir(out: Path, name: str) -> RunDir:
    """Make a fresh run directory, `20261115-180405_nanochat_ab12`; the last part is the second's fraction."""
    out.mkdir(parents=True, exist_ok=True)
    while True:
        now = time.time()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
        root = out / f"{stamp}_{name}_{int(now % 1 * 0x10000):04x}"
        try:
            root.mkdir(_mode())
        except FileExistsError:
            continue
        (root / "ranks").mkdir()
        (root / "checkpoints").mkdir()
        return RunDir(root)


def _mode() -> int:
    """Return who may look: only the owner, for logs and diffs hold what nobody meant to share, unless they say so."""
    return 0o755 if os.environ.get(SHARE_VARIABLE, "").lower() in ("1", "yes", "true", "all") else 0o700


def write_json(path: Path, data: Any) -> None:
    """Replace a file by whole, durable JSON."""
    # A name or an argument may be bytes that are not text; they are written as the escape that JSON has for them.
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"), is_durable=True)
