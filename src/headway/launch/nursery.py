"""The supervisor's end of the nursery: start it early, ask it for ranks, end it."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headway.launch import wire
from headway.launch.oom_kills import count_oom_kills
from headway.launch.program import RankOrder
from headway.launch.sweeper import Sweeper
from headway.process import DETACHED, TAG_NAME, sweep

ENTRY: Final = "headway.engine.rank:main"
_OUTPUT_BYTES: Final = 1 << 16
_END_S: Final = 6.0


class Nursery:
    """A running nursery process. Its messages arrive on `link`; whoever supervises reads them there."""

    def __init__(
        self,
        *,
        python: str,
        preload: Sequence[str],
        entry: str,
        tag: str,
        env: Mapping[str, str | None] | None = None,
        stdin: int | None = None,
        file_limit: tuple[int, int] | None = None,
    ) -> None:
        self.python, self.preload, self.entry, self.tag = python, tuple(preload), entry, tag
        self.stdin = stdin
        """What the ranks read, a program of the user's; None: nothing."""
        self.env = dict(env or {})
        """Set over this process's own environment, for the nursery and the ranks; None: removed."""
        self.file_limit = file_limit or resource.getrlimit(resource.RLIMIT_NOFILE)
        """What the ranks may open; a supervisor of many ranks has raised its own since."""
        self.is_ready = False
        self._oom_kills = count_oom_kills()
        self.failure = ""
        """Traceback of the import that failed."""
        self.link, theirs = wire.pair()
        self._sweeper = Sweeper(python=sys.executable, tag=tag)
        after = self._sweeper.writing
        # What imports print is kept in memory: there may be no run directory yet, and the screen belongs to the UI.
        self._output = os.memfd_create("headway-nursery-output")
        numbers = theirs.fileno(), after, os.getpid()
        with theirs:
            self.process = subprocess.Popen(
                # -P: a file in the working directory must never stand in for a module of ours or of the framework.
                [python, "-P", "-m", "headway.launch.nursery_process", *map(str, numbers), entry, *preload],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno(), after],
                env=self._environ(),
                start_new_session=True,  # Ctrl-C and a closed terminal are the supervisor's business
            )
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, self.file_limit)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return the next message and its files; None when the nursery is gone."""
        answer = wire.receive(self.link)
        if answer is not None and answer[0]["kind"] == "ready":
            self.is_ready = True
        if answer is not None and answer[0]["kind"] == "failed":
            self.failure = answer[0]["traceback"]
        return answer

    def _environ(self) -> dict[str, str]:
        """Return our environment without the mark of a supervisor in the background, which no rank is."""
        mark = DETACHED.partition("=")[0]
        found: dict[str, str | None] = {**os.environ, mark: None, **self.env, TAG_NAME: self.tag}
        return {name: value for name, value in found.items() if value is not None}

    def fork(self, order: RankOrder, files: Sequence[int]) -> None:
        """Ask for one rank; the answer comes as a `forked` message with the rank's pidfd.

        Args:
            order: what it is started with.
            files: write end of the output pipe, write end of the report pipe.

        Raises:
            BlockingIOError: the nursery has not taken the orders before it; ask again later.
        """
        self._sweeper.keep("run", str(order.call["run_dir"]))
        message = {"job": dict(order.call), "env": dict(order.env), "files": list(order.files)}
        wire.send_now(self.link, message, [*files, *order.files.values()])

    def keep_claims(self, files: Sequence[str]) -> None:
        """Name claims of this process, which the nursery removes should it outlive us."""
        for file in files:
            self._sweeper.keep("claim", file)
        wire.send(self.link, {"claims": list(files)})

    def output(self) -> str:
        """Return the end of what the nursery printed before any rank was forked."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, _OUTPUT_BYTES, max(0, size - _OUTPUT_BYTES)).decode(errors="replace")

    def saw_oom_kill(self) -> bool:
        """Say whether the kernel has killed for memory since this nursery was started."""
        now = count_oom_kills()
        return now is not None and self._oom_kills is not None and now > self._oom_kills

    def renew(self) -> Nursery:
        """Start another one like it, after this one has died."""
        self.close()
        return Nursery(
            python=self.python,
            preload=self.preload,
            entry=self.entry,
            tag=self.tag,
            env=self.env,
            stdin=self.stdin,
            file_limit=self.file_limit,
        )

    def close(self) -> None:
        """End the nursery and everything it forked; safe to call twice."""
        if self.link.fileno() < 0:
            return
        self.link.close()
        if not self.is_ready:
            self.process.kill()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self._output)
        sweep(self.tag)
        self._sweeper.dismiss()


def start_nursery(
    python: str | None = None,
    preload: Sequence[str] = (),
    entry: str = ENTRY,
    env: Mapping[str, str | None] | None = None,
    stdin: int | None = None,
) -> Nursery:
    """Start importing now; call from the main thread, as early as the interpreter of the ranks is known."""
    tag = secrets.token_hex(8)
    return Nursery(python=python or sys.executable, preload=preload, entry=entry, tag=tag, env=env, stdin=stdin)
