"""A foreign rank's entry: become the user's program, with the environment and files that the nursery has set up."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, NoReturn

from headway.launch.foreign import Foreign
from headway.telemetry import RunDir, read_json

_NOT_OURS = ("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE", "HEADWAY_HOOK_CLAIMED")
"""Left by a launcher or a run around this one; each of them would mislead the rank."""


def main(job: dict[str, Any]) -> NoReturn:
    """Replace this process; whatever prevents that is raised, and told by the nursery."""
    foreign = Foreign.from_json(read_json(RunDir(Path(job["run_dir"])).job)["foreign"])
    argv = list(job.get("argv") or foreign.argv)
    if foreign.local_rank_flag:
        argv.insert(_first_script(argv), f"{foreign.local_rank_flag}={job['local_rank']}")
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    os.chdir(foreign.cwd)
    # What is ignored stays so across an exec. Python ignores the first two, and `yes | head` would never end; a shell
    # ignores the next two in what it starts with `&`, and a stop that we pass on would not be heard; the nursery
    # ignores the last ones.
    ignored = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
    for signum in ignored:
        signal.signal(signum, signal.SIG_DFL)
    os.execvpe(argv[0], argv, environment)


def _first_script(argv: list[str]) -> int:
    """Return the place behind the script or module of `python -u script …`, or behind a program of another kind."""
    if not Path(argv[0]).name.startswith(("python", "pypy")):
        return 1
    place = 1
    while place < len(argv) and argv[place].startswith("-"):
        place += 2 if argv[place] in ("-m", "-W", "-X") else 1
        if argv[place - 2] == "-m":
            return place
    return place + 1
