"""Supervises one run in a process of its own: `launch_driver.py RUN_DIR [ENTRY [MODULE…]]`. Events go to stdout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headway.errors import HeadwayError
from headway.launch import launch_run, start_nursery
from headway.telemetry import RunDir
from headway.ui.terminal.failure import failure_text


class PrintingObserver:
    def event(self, event: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    def line(self, rank: int, line: bytes) -> None:
        pass

    def tick(self, beats: list[Any]) -> None:
        pass


def main(root: str, entry: str = "fakes.fake_worker:main", *preload: str) -> int:
    nursery = start_nursery(sys.executable, preload, entry)
    try:
        outcome = launch_run(RunDir(Path(root)), observer=PrintingObserver(), nursery=nursery)
    except HeadwayError as err:
        sys.stderr.write(f"{err}\n")
        return err.exit_code
    if outcome.exit_code:
        sys.stderr.write("\n".join(failure_text(outcome)) + "\n")
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
