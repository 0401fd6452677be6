"""The process beside a run that sends its alerts and feeds its trackers; it outlives the supervisor by seconds.

It reads the run directory and watches the supervisor's process, so it also speaks when that was killed. What talks to
the outside is a child with a deadline. Six seconds after the end of the run everything is ended, whoever hangs.
`python -m headway.bridges.keeper SUPERVISOR RUN OFFSET LANGUAGE`
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from headway.bridges.addresses import find_addresses
from headway.bridges.compose import compose
from headway.bridges.deliver import Sending
from headway.bridges.limiter import Limiter
from headway.bridges.notes import read_notes, write_note
from headway.bridges.rules import Alert, AlertRules
from headway.bridges.settings import Settings, read_settings
from headway.bridges.trackers import Feeder
from headway.config import read_condition, read_quiet
from headway.messages import set_language
from headway.process import adopt_orphans, descendants, kill_all, name_process
from headway.telemetry import Event, RunDir, read_beat
from headway.telemetry.lines import read_objects

_POLL_S: Final = 0.5
_SEND_S: Final = 20.0
"""For a message while the run continues."""
_END_S: Final = 6.0
"""For everything after the run's end; then whatever is left is killed."""
_LAST_S: Final = 9
_SETTLE_S: Final = 0.3
"""A supervisor that has just ended may have written its last event in this very moment."""
_HOUR_S: Final = 3600.0


class Keeper:
    """One run's alerts and trackers."""

    def __init__(self, run: RunDir, settings: Settings, offset: int) -> None:
        self._run, self._offset, self._rows_at = run, offset, 0
        alert = settings.alert
        self._addresses = find_addresses(alert.to, os.environ)
        self._rules = AlertRules(
            (alert.on,) if isinstance(alert.on, str) else alert.on,
            [read_condition(one) for one in alert.when],
            alert.no_progress_s,
        )
        now = time.time()
        past = [one["t"] for one in read_notes(run) if one.get("kind") == "sent" and now - one["t"] < _HOUR_S]
        quiet = read_quiet(alert.quiet) if alert.quiet else None
        self._limiter = Limiter(per_hour=alert.per_hour, repeat_s=alert.repeat_s, quiet=quiet, past=past)
        self._sendings: list[tuple[Alert, Sending]] = []
        self._feeders = [Feeder(run, name) for name in settings.trackers]
        self._step = (0, 0)
        self._ended = False
        if run.metrics(0).is_file():  # of the run so far: only what comes now is news
            self._rows_at = run.metrics(0).stat().st_size

    def serve(self, supervisor: int | None) -> None:
        """Watch until the supervisor has ended the run or itself; none: it is gone already."""
        while not self._ended:
            ready = supervisor is None or bool(select.select([supervisor], [], [], _POLL_S)[0])
            if ready:
                time.sleep(_SETTLE_S)
            self._look()
            if ready and not self._ended:
                self._ended = True
                self._tell(Alert(kind="lost", code="alert/lost"), time.time())
        self._end()

    def _look(self) -> None:
        now = time.time()
        events, self._offset = read_objects(self._run.events, self._offset)
        for event in events:
            for alert in self._rules.event(event):
                self._tell(alert, now)
            self._follow(event)
        if self._rules.needs_rows:
            rows, self._rows_at = read_objects(self._run.metrics(0), self._rows_at)
            for alert in [alert for row in rows for alert in self._rules.row(row)]:
                self._tell(alert, now)
        reach = self._reach()
        if reach != self._step:
            self._step = reach
            self._rules.moved(now)
        for alert in [*self._rules.time(now), *self._limiter.due(now)]:
            self._tell(alert, now)
        self._collect()

    def _reach(self) -> tuple[int, int]:
        """Return what is larger after each step: the heartbeat's, or the numbers that a line has printed."""
        beat = read_beat(self._run.heartbeat(0))
        try:
            return beat.step if beat is not None else 0, self._run.metrics(0).stat().st_size
        except OSError:
            return beat.step if beat is not None else 0, 0

    def _follow(self, event: Event) -> None:
        if event.get("kind") == "attempt_ended":
            self._rules.pause()
        if event.get("kind") == "run_ended":
            self._ended = True

    def _tell(self, alert: Alert, now: float) -> None:
        if not self._addresses or not self._limiter.offer(alert, now):
            return
        message = compose(self._run, alert, num_held=self._limiter.take_held())
        deadline_s = _END_S - 1.0 if self._ended or alert.is_end else _SEND_S
        self._sendings.append((alert, Sending(message, self._addresses, deadline_s=deadline_s)))

    def _collect(self, *, is_last: bool = False) -> None:
        """Take down how messages were taken."""
        over = [one for one in self._sendings if is_last or one[1].is_over()]
        self._sendings = [one for one in self._sendings if one not in over]
        for alert, sending in over:
            for one in sending.finish():
                facts: dict[str, Any] = {"alert": alert.kind, "code": alert.code, "to": one.channel}
                if one.is_sent:
                    write_note(self._run, "sent", **facts, seconds=one.seconds)
                else:
                    write_note(self._run, "not_sent", **facts, why=one.code, facts=one.facts)

    def _end(self) -> None:
        """Let everybody finish until the deadline."""
        signal.alarm(_LAST_S)  # should we ourselves hang in a disk that is gone: the kernel ends us, and our children
        until = time.monotonic() + _END_S
        for feeder in self._feeders:
            feeder.ask_to_end()
        while time.monotonic() < until and (self._sendings or any(feeder.is_alive() for feeder in self._feeders)):
            self._collect()
            time.sleep(0.05)
        self._collect(is_last=True)
        for feeder in self._feeders:
            feeder.close(_END_S)
        kill_all(descendants(os.getpid()))


def main(argv: Sequence[str]) -> int:
    """Serve one run."""
    supervisor, place, offset, lang = argv
    name_process("headway-keeper")
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)  # the end of the run is what ends us
    pidfd = os.pidfd_open(int(supervisor)) if os.getppid() == int(supervisor) else None
    adopt_orphans()
    set_language("zh" if lang == "zh" else "en")
    run = RunDir(Path(place))
    keeper = Keeper(run, read_settings(run), int(offset))
    keeper.serve(pidfd)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
