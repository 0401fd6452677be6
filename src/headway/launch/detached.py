"""The program behind `detach`: supervise a run that is ready to start, with nobody watching.

`python -m headway.launch.detached RUN_DIR ENTRY MODULE…`
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from headway.errors import HeadwayError
from headway.launch.failure import failure_text
from headway.launch.nursery import start_nursery
from headway.launch.outcome import SilentObserver
from headway.launch.run import launch_run
from headway.telemetry import RunDir, read_json


def main(argv: Sequence[str]) -> int:
    """Launch and return the exit code; what is printed lands in supervisor.log."""
    root, entry, *preload = argv
    run = RunDir(Path(root))
    try:
        python = read_json(run.job)["config"].get("env", {}).get("python")
        outcome = launch_run(run, observer=SilentObserver(), nursery=start_nursery(python, preload, entry))
    except HeadwayError as err:
        sys.stderr.write(f"{err}\n")
        return err.exit_code
    if outcome.exit_code:
        sys.stderr.write("\n".join(failure_text(outcome)) + "\n")
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
