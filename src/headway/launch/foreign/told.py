"""What the lines of a foreign program tell about the whole run: its length, its validations, a loss that is NaN."""

from __future__ import annotations

import math
import re
import time
from typing import Final

from headway.launch.foreign.printed import Progress
from headway.launch.foreign.printed_measures import find_measures, main_measure, sense
from headway.launch.history import History

_HINT: Final = re.compile(rb"(?i)val|test|eval|dev|\xe9\xaa\x8c\xe8\xaf\x81|\xe6\xb5\x8b\xe8\xaf\x95|\xe8\xaf\x84")
"""Lines with none of these (the last ones: 验证, 测试, 评) tell no validation."""
_LINE_BYTES: Final = 2000
_BURST: Final = 20
_EVERY_S: Final = 1.0
"""Events wait for the disk: of a program that prints a result with every batch, one per second is kept."""
_MOST_LENGTHS: Final = 20
"""A total that still changes after that is not the run's length."""


class Told:
    """Turns what the first rank prints into events; the best result is that of all attempts."""

    def __init__(self, history: History, *, stops_at_nan: bool) -> None:
        self._history = history
        self._nan_code = "launch/loss-not-finite-stop" if stops_at_nan else "launch/loss-not-finite"
        self._total: int | None = None
        self._lengths = 0
        self._best: dict[str, float] = {}
        self._budget, self._filled_at = float(_BURST), time.monotonic()
        self.not_finite: str | None = None
        """The first line of this attempt whose loss was NaN or infinite."""

    def begin(self) -> None:
        """Forget what was wrong with the attempt before."""
        self.not_finite = None

    def line(self, line: bytes, now: Progress | None, last: Progress | None) -> None:
        """Take a line with what it reported of the progress, and what the lines up to it have reported."""
        if now is not None:
            self._see_length(now)
            if self.not_finite is None and now.loss is not None and not math.isfinite(now.loss):
                self.not_finite = line[:_LINE_BYTES].decode("utf-8", "replace").strip()
                facts = {"step": now.step, "value": "NaN" if math.isnan(now.loss) else "Inf"}
                self._history.emit("warning", code=self._nan_code, facts=facts)
        if last is not None and _HINT.search(line[:_LINE_BYTES]):
            found = find_measures(line[:_LINE_BYTES].decode("utf-8", "replace"))
            if found and self._may_speak():
                self._validated(last.step, found)

    def _see_length(self, now: Progress) -> None:
        if now.total is not None and now.total != self._total and self._lengths < _MOST_LENGTHS:
            self._total = now.total
            self._lengths += 1
            self._history.emit("length", total_steps=now.total)

    def _validated(self, step: int, found: dict[str, float]) -> None:
        name = main_measure(list(found))
        way, value = sense(name), found[name]
        before = self._best.get(name)
        is_best = math.isfinite(value) and (before is None or (value < before if way == "min" else value > before))
        if is_best:
            self._best[name] = value
        event = {"step": step, "measures": found, "best": is_best, "measure": name, "sense": way, "is_printed": True}
        self._history.emit("validation", **event)

    def _may_speak(self) -> bool:
        now = time.monotonic()
        self._budget = min(_BURST, self._budget + (now - self._filled_at) / _EVERY_S)
        self._filled_at = now
        if self._budget < 1:
            return False
        self._budget -= 1
        return True
