"""A foreign rank's entry: become the user's program, with the environment and files that the nursery has set up."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from string import Template
from typing import Any, NoReturn

from headway.launch.foreign.line import COERCED, has_given
from headway.launch.job import ForeignLine, read_job
from headway.telemetry import RunDir

_NOT_OURS = ("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE", "HEADWAY_HOOK_CLAIMED")
"""Left by a launcher or a run around this one; each of them would mislead the rank."""


def main(job: dict[str, Any]) -> NoReturn:
    """Replace this process; whatever prevents that is raised, and reported by the nursery."""
    argv, cwd, has_macros = _program(job)
    if has_macros:
        values = {"local_rank": job["local_rank"]} | job.get("place", {})
        argv = [argv[0], *(Template(word).safe_substitute(values) for word in argv[1:])]
    environment = _environment()
    os.chdir(cwd)
    # What is ignored stays so across an exec. Python ignores the first two, and `yes | head` would never end; a shell
    # ignores the next two in what it starts with `&`, and a stop that we pass on would not be heard; the nursery
    # ignores the last ones.
    ignored = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
    for signum in ignored:
        signal.signal(signum, signal.SIG_DFL)
    os.execvpe(argv[0], argv, environment)


def _program(job: dict[str, Any]) -> tuple[list[str], str, bool]:
    """Return the words, the folder and whether `${local_rank}` means a number; a long line is in the job file."""
    if "argv" in job:
        return list(job["argv"]), job["cwd"], job["has_macros"]
    line = read_job(RunDir(Path(job["run_dir"]))).program
    assert isinstance(line, ForeignLine)
    words = dict(enumerate(line.argv)) | {int(at): word for at, word in job["hidden"].items()}
    return list(words.values()), line.cwd, line.has_macros


def _environment() -> dict[str, str]:
    """Return what the program sees: what a shell would have given it, and what the supervisor has set for this rank."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    if COERCED in environment and not has_given(COERCED):
        del environment[COERCED]
    return environment
