"""One question to a child interpreter, both ends.

The question is one JSON object on the child's stdin, the answer is JSON on its stdout. Files lie between the two, not
pipes: a child that prints a flood, or leaves a process behind that keeps its streams open, cannot make us wait. The
child has a session of its own, and whatever it has started is ended with it.

It is named by module where Headway is installed, or given as source text where it may not be. A file in the working
directory never stands in for a module: `-P` sees to that, and for source text, which interpreters older than 3.11 run
too, the first line that is run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from headway.process import die_with_parent

_RUN_TEXT: Final = (
    "import sys; sys.path[:1] == [''] and sys.path.pop(0); "
    "exec(compile(sys.argv[1], '<question>', 'exec'), {'__name__': '__main__'})"
)
_MOST_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a child said."""

    value: Any
    """The last line of its stdout, read as JSON; None: it gave no answer. Any: what is asked for differs."""
    said: str
    """All of its stdout."""
    errors: str
    """All of its stderr."""
    exit_code: int | None
    """Below zero: the signal that ended it; None: it took too long."""

    @property
    def why(self) -> str:
        """The last that it said, for a child that gave no answer."""
        lines = (self.errors.strip() or self.said.strip()).splitlines()
        return lines[-1].strip()[:_MOST_CHARS] if lines else f"exit code {self.exit_code}"


class Asked:
    """A question that is being answered."""

    def __init__(
        self,
        python: str,
        question: Mapping[str, Any],
        *,
        module: str = "",
        source: str = "",
        env: Mapping[str, str] | None = None,
        hear: Callable[[bytes], None] | None = None,
    ) -> None:
        """Start the child.

        Args:
            python: its interpreter.
            question: given to it with our pid as `asker`, so that it can end with us.
            module: its program, by name.
            source: its program, as text.
            env: its whole environment; none: ours.
            hear: takes every line of its stderr as it comes.

        Raises:
            OSError: the interpreter cannot be started.
        """
        self._said, self._errors = _file(), _file()
        self._hear, self._line = hear, b""
        with _file() as asked:
            asked.write(json.dumps({**question, "asker": os.getpid()}).encode())
            asked.seek(0)
            try:
                self._process = subprocess.Popen(
                    [python, "-P", "-m", module] if module else [python, "-c", _RUN_TEXT, source],
                    stdin=asked,
                    stdout=self._said,
                    stderr=subprocess.PIPE if hear is not None else self._errors,
                    env=None if env is None else dict(env),
                    start_new_session=True,
                )
            except OSError:
                self._close_files()
                raise

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        """End the child and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._close_files()

    def _close_files(self) -> None:
        self._said.close()
        self._errors.close()

    def answer(self, within_s: float | None = None) -> Answer:
        """Wait for the child's end; None: as long as it takes."""
        has_ended = self._wait(within_s)
        said, errors = (_text(file) for file in (self._said, self._errors))
        lines = said.strip().splitlines()
        value = None
        with contextlib.suppress(ValueError):
            value = json.loads(lines[-1]) if has_ended and lines else None
        return Answer(value=value, said=said, errors=errors, exit_code=self._process.wait() if has_ended else None)

    def _wait(self, within_s: float | None) -> bool:
        # A pidfd, since Popen.wait(timeout) looks only every 50 ms.
        until, end, errors = (
            time.monotonic() + (within_s or 0.0),
            os.pidfd_open(self._process.pid),
            self._process.stderr,
        )
        waiting = select.poll()
        waiting.register(end, select.POLLIN)
        if errors is not None:
            os.set_blocking(errors.fileno(), False)
            waiting.register(errors, select.POLLIN)
        try:
            while True:
                left_s = None if within_s is None else until - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return False
                ready = {fd for fd, _ in waiting.poll(None if left_s is None else left_s * 1000)}
                if errors is not None and errors.fileno() in ready and self._take_errors(errors):
                    waiting.unregister(errors)
                elif end in ready:
                    return True
        finally:
            os.close(end)

    def _take_errors(self, stream: IO[bytes]) -> bool:
        """Pass on whole lines; say whether there will be no more."""
        data = os.read(stream.fileno(), 1 << 16)
        *lines, self._line = (self._line + data).split(b"\n")
        if not data and self._line:
            lines.append(self._line)
        assert self._hear is not None
        for line in lines:
            self._hear(line + b"\n")
        return not data


def ask(
    python: str,
    question: Mapping[str, Any],
    *,
    module: str = "",
    source: str = "",
    within_s: float | None = None,
    env: Mapping[str, str] | None = None,
    hear: Callable[[bytes], None] | None = None,
) -> Answer:
    """Ask a child and wait for its answer; arguments and errors as for `Asked`."""
    with Asked(python, question, module=module, source=source, env=env, hear=hear) as asked:
        return asked.answer(within_s)


def take_question() -> tuple[dict[str, Any], Callable[[Mapping[str, Any]], None]]:
    """Return the question, and how to send its answer: the end of a child that has Headway. It ends with its asker.

    What the code that it calls prints is not an answer, and goes nowhere.
    """
    question = json.load(sys.stdin)
    die_with_parent(question["asker"])
    own, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)

    def send(answer: Mapping[str, Any]) -> None:
        data = json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(own, data) :]

    return question, send


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
