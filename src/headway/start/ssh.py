"""Further nodes over the user's own ssh: their keys, their config, the same paths on every host."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from typing import Final

from headway.errors import CheckError
from headway.launch.nodes.rendezvous import Meeting
from headway.messages import language
from headway.start.nursery import Tell

_CONNECT_S: Final = 15
_AGAIN_S: Final = 5.0
_END_S: Final = 5.0
_NO_FOLDER, _NO_PYTHON, _NO_HEADWAY = 71, 72, 73
_SSH_FAILED: Final = 255
_WHY: Final = {
    _NO_FOLDER: "nodes/ssh-no-folder",
    _NO_PYTHON: "nodes/ssh-no-python",
    _NO_HEADWAY: "nodes/ssh-no-headway",
}
_SSH_NAME: Final = "HEADWAY_SSH"
"""Environment variable: another program in place of `ssh`, with its options."""


class SshNodes:
    """One ssh per further node. The secret goes through its input, never on a command line."""

    def __init__(self, hosts: Sequence[str], meeting: Meeting, *, python: str, tell: Tell) -> None:
        self._hosts = dict(enumerate(hosts, start=1))
        self._meeting, self._python, self._tell = meeting, python, tell
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._started: dict[int, float] = {}
        for index in self._hosts:
            self.start(index)

    def start(self, index: int) -> None:
        """Start a node, unless it is on its way or was a moment ago."""
        now = time.monotonic()
        before = self._running.get(index)
        if before is not None and before.poll() is None:
            return
        if now - self._started.get(index, -_AGAIN_S) < _AGAIN_S:
            return
        self._started[index] = now
        words = shlex.split(os.environ.get(_SSH_NAME, "ssh"))
        options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_S}", "-T"]
        process = subprocess.Popen(
            [*words, *options, self._hosts[index], self._remote_line(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C here is the leader's to pass on
        )
        assert process.stdin is not None and process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        try:
            process.stdin.write(self._meeting.secret.encode() + b"\n")
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended already; `look` says how
        self._running[index] = process

    def look(self) -> None:
        """Refuse when a node could not be started.

        Raises:
            CheckError: with what ssh, or the host, has said.
        """
        for index, process in self._running.items():
            code = process.poll()
            if code is None:
                continue
            host = self._hosts[index]
            said = self._said(process)
            facts = {"host": host, "path": os.getcwd(), "python": self._python, "text": said or f"exit code {code}"}
            code_of = "nodes/ssh-failed" if code == _SSH_FAILED else _WHY.get(code, "nodes/ssh-ended")
            raise CheckError(code_of, **facts)

    def close(self) -> None:
        """Wait for all of them; the nodes have been told that the run is over."""
        until = time.monotonic() + _END_S
        for process in self._running.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stderr is not None:
                process.stderr.close()

    def _remote_line(self, index: int) -> str:
        """Return what the host's shell runs: it looks first, so that what is missing is named."""
        folder, python = shlex.quote(os.getcwd()), shlex.quote(self._python)
        address = self._meeting.address
        place = f"[{address}]:{self._meeting.port}" if ":" in address else f"{address}:{self._meeting.port}"
        words = ["-P", "-m", "headway", "--lang", language(), "node", "--leader", place]
        words += ["--index", str(index), "--secret-fd", "0"]
        return (
            f"cd {folder} || exit {_NO_FOLDER}; [ -x {python} ] || exit {_NO_PYTHON}; "
            f"{python} -P -c 'import headway' || exit {_NO_HEADWAY}; exec {python} {shlex.join(words)}"
        )

    @staticmethod
    def _said(process: subprocess.Popen[bytes]) -> str:
        assert process.stderr is not None
        said = process.stderr.read() or b""
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""
