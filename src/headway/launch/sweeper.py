"""A third process that outlives supervisor and nursery, should both be killed in one instant.

Ranks die with the nursery by the kernel's own hand, but what they have started in sessions of its own does not, and a
process that is killed cannot look after it. So a shell of a megabyte waits at the end of a pipe whose other ends only
the two hold. When both are gone, it becomes an interpreter that ends everything with the run's tag:
`python -m headway.launch.sweeper TAG PID [run=FOLDER | claim=FILE]…`.

Whoever kills all three in one instant wins: only a PID namespace or a control group of its own could prevent that, and
both are root's to give (or an administrator's, who delegates a group).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from headway.launch.claims import drop_claims
from headway.launch.hook import remove_temps
from headway.process import TAG_NAME, sweep

_SCRIPT: Final = """
python=$1 tag=$2 pid=$3; set --
trap '' HUP INT QUIT TERM USR1 USR2
while read -r word rest; do
  case $word in done) exit 0;; keep) set -- "$@" "$rest";; esac
done
exec "$python" -P -m headway.launch.sweeper "$tag" "$pid" "$@"
"""
_SHELL: Final = "/bin/sh"
_WAIT: Final = "--wait"
_END_S: Final = 2.0


class Sweeper:
    """The supervisor's end of it."""

    def __init__(self, python: str, tag: str) -> None:
        reading, self.writing = os.pipe()
        """The nursery is handed `writing` too and must not hand it on."""
        environment = {name: value for name, value in os.environ.items() if name != TAG_NAME}
        self._told: set[str] = set()
        try:
            self._process = subprocess.Popen(
                _command(python, tag),
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,  # a signal to our group is not for it
            )
        finally:
            os.close(reading)

    def keep(self, kind: str, place: str) -> None:
        """Name a run's folder or a claim that is to be cleared with the processes."""
        line = f"keep {kind}={place}\n"
        if line not in self._told and "\n" not in place:
            self._told.add(line)
            with contextlib.suppress(OSError):  # one that somebody has killed leaves us no worse than before
                os.write(self.writing, line.encode(errors="surrogateescape"))

    def dismiss(self) -> None:
        """Everything is in order: nothing is left to do for it."""
        with contextlib.suppress(OSError):
            os.write(self.writing, b"done\n")
        os.close(self.writing)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _command(python: str, tag: str, shell: str = _SHELL) -> list[str]:
    """Return what waits: a shell, or where an image has none, the interpreter itself, ten times as large."""
    if os.access(shell, os.X_OK):
        return [shell, "-c", _SCRIPT, "headway-after", python, tag, str(os.getpid())]
    return [python, "-P", "-m", "headway.launch.sweeper", tag, str(os.getpid()), _WAIT]


def _wait(lines: Iterable[str]) -> list[str] | None:
    """Return what is kept when the pipe closes, or None when we are dismissed."""
    kept = []
    for line in lines:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "done":
            return None
        kept.append(rest)
    return kept


def main(argv: Sequence[str]) -> int:
    """End what is left of a run whose supervisor and nursery are gone."""
    tag, pid, *kept = argv
    if kept == [_WAIT]:
        told = _wait(sys.stdin)
        if told is None:
            return 0
        kept = told
    sweep(tag)
    for one in kept:
        kind, _, place = one.partition("=")
        if kind == "run":
            remove_temps(Path(place))
        else:
            drop_claims([place], int(pid))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
