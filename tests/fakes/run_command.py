"""`headway run` as a user types it, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakes.launches import MARK, ROOT, marked, wait_until
from headway.telemetry import RunDir, read_events


class Ran:
    """A `headway run` that was started."""

    def __init__(
        self, folder: Path, *words: str, env: dict[str, str] | None = None, program: str | None = None, **popen: Any
    ) -> None:
        self.folder = folder
        command = ["-m", "headway"] if program is None else ["-c", program]
        self.mark = os.urandom(8).hex()
        paths = [str(ROOT / "src"), *filter(None, [(env or {}).get("PYTHONPATH")])]
        environment = {**os.environ, **(env or {}), "PYTHONPATH": ":".join(paths), MARK: self.mark}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        environment["HEADWAY_CLAIMS"] = str(folder / "claims")
        for name in {"RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"} - set(env or {}):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, *command, "run", "--out", str(folder / "runs"), *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **popen,
        )

    def wait(self, timeout_s: float = 120) -> int:
        """Wait for the end; what it printed is in `out` and `err`."""
        out, err = self.process.communicate(timeout=timeout_s)
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        wait_until(lambda: not marked(self.mark), "the end of all processes")
        return self.process.returncode

    @property
    def run(self) -> RunDir:
        """The run's directory, once there is one."""
        found = wait_until(lambda: sorted((self.folder / "runs").glob("2*")), "a run directory")
        return RunDir(found[-1])

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind so far."""
        return [event for event in read_events(self.run.events) if event["kind"] == kind]

    def wait_event(self, kind: str) -> dict[str, Any]:
        """Wait for an event."""
        return wait_until(lambda: self.events(kind), kind)[0]

    def wait_line(self, text: str) -> None:
        """Wait until a rank has printed a text."""
        wait_until(lambda: self.run.log.exists() and text.encode() in self.run.log.read_bytes(), text)

    def last_incident(self) -> dict[str, Any]:
        """Return the last incident."""
        return self.events("incident")[-1]

    def close(self) -> None:
        """End whatever is left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for pid in marked(self.mark):
            os.kill(pid, 9)


@contextmanager
def running(folder: Path, *words: str, **settings: Any):
    """Start, and leave nothing behind."""
    ran = Ran(folder, *words, **settings)
    try:
        yield ran
    finally:
        ran.close()


def finished(folder: Path, *words: str, **settings: Any) -> Ran:
    """Start and wait for the end."""
    with running(folder, *words, **settings) as ran:
        ran.wait()
    return ran


def script(folder: Path, text: str, name: str = "train.py") -> str:
    """Write a user's script; return its name."""
    indent = re.match(r"\n?( *)", text)
    width = len(indent[1]) if indent else 0
    lines = [line[width:] for line in text.strip("\n").splitlines()]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name
