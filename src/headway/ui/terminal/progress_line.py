"""The one line that moves while a run trains, drawn by the supervisor from heartbeats."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from headway.messages import say
from headway.telemetry import Beat, RunRow, RunState
from headway.ui.terminal.pace import NOT_STEPS, Pace
from headway.ui.text import cell_width, clean_text, columns_of, fit_text
from headway.units import ABSENT, duration, short

_PLAIN_EVERY_S: Final = 30.0
_REDRAW_S: Final = 0.1


class ProgressLine:
    """Draws the line in place on a terminal; elsewhere writes it every 30 s."""

    def __init__(
        self,
        stream: TextIO,
        *,
        total_steps: int,
        tokens_per_sample: int | None = None,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._total = total_steps
        self._tokens = tokens_per_sample
        self._is_terminal = stream.isatty() if is_terminal is None else is_terminal
        self._clock = clock
        self._pace = Pace()
        self._lock = threading.Lock()
        self._line = ""
        self._drawn = ""
        self._drawn_s = -math.inf

    def update(self, beats: Sequence[Beat], validation: tuple[str, float] | None = None) -> None:
        """Show where the ranks are; cheap enough for every turn of the supervisor's loop."""
        if not beats:
            return
        with self._lock:
            now = self._clock()
            slowest = min(beats, key=lambda beat: (beat.attempt, beat.step))
            self._pace.see(slowest, now)
            self._line = self._compose(slowest, validation)
            wait = _REDRAW_S if self._is_terminal else _PLAIN_EVERY_S
            if now - self._drawn_s >= wait and slowest.step > 0:
                self._draw(now)

    def say(self, text: str) -> None:
        """Write a line of talk above the progress line."""
        with self._lock:
            if self._is_terminal and self._drawn:
                self._stream.write(f"\r\x1b[K{text}\n{self._drawn}")
            else:
                self._stream.write(f"{text}\n")
            self._stream.flush()

    def close(self) -> None:
        """Leave the last line on the screen and go to the next."""
        with self._lock:
            if self._line and (self._line != self._drawn or self._is_terminal):
                self._draw(self._clock())
            if self._is_terminal and self._drawn:
                self._stream.write("\n")
                self._stream.flush()
            self._drawn = self._line = ""

    def _draw(self, now: float) -> None:
        if self._is_terminal:
            self._drawn = fit_line(self._line, columns_of(self._stream))
            self._stream.write(f"\r{self._drawn}\x1b[K")
        elif self._line != self._drawn:
            self._drawn = self._line
            self._stream.write(f"{self._line}\n")
        self._stream.flush()
        self._drawn_s = now

    def _compose(self, beat: Beat, validation: tuple[str, float] | None) -> str:
        share = 100 * beat.step // self._total if self._total else 100
        parts = [say("ui/progress-step", step=beat.step, total=self._total, share=min(share, 100))]
        if beat.step:
            parts.append(say("ui/progress-loss", loss=f"{beat.loss:.4g}"))
        if validation is not None:
            parts.append(say("ui/progress-val", name=clean_text(validation[0]), value=f"{validation[1]:.4g}"))
        if beat.phase in NOT_STEPS:
            parts.append(say(f"ui/phase-{beat.phase}"))
        rate = self._pace.rate_samples_s() or (beat.rate if beat.rate > 0 else None)
        if rate is not None:
            parts.append(rate_text(rate, self._tokens))
        eta = self._eta_s(beat, rate)
        if eta is not None:
            parts.append(say("ui/progress-eta", eta=clock_text(eta)))
        return " | ".join(parts)

    def _eta_s(self, beat: Beat, rate: float | None) -> float | None:
        left = max(0, self._total - beat.step)
        step_s = self._pace.step_s()
        if step_s is None and rate and beat.step:
            step_s = beat.samples / beat.step / rate
        return None if step_s is None else left * step_s


def rate_text(rate_samples_s: float | None, tokens_per_sample: int | None) -> str:
    """Return a speed in tokens where samples have tokens, in samples otherwise."""
    if rate_samples_s is None:
        return ABSENT
    if tokens_per_sample:
        return say("ui/rate-tokens", rate=short(rate_samples_s * tokens_per_sample))
    return say("ui/rate-samples", rate=short(rate_samples_s))


def speed_text(state: RunState | RunRow) -> str:
    """Return a run's speed: steps per second where nobody knows how many samples a step has."""
    if state.rate_samples_s is None and state.rate_steps_s is not None:
        return say("ui/rate-steps", rate=short(state.rate_steps_s))
    return rate_text(state.rate_samples_s, state.tokens_per_sample)


def clock_text(seconds: float) -> str:
    """Return a time to go as `0:42` or `2:03:05`; it does not flicker between units as `duration` would."""
    whole = max(0, math.ceil(seconds))
    if whole >= 86_400:
        return duration(whole)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def fit_line(line: str, width: int) -> str:
    """Return the line with as many of its parts as fit; step and ETA are the last to go."""
    parts = line.split(" | ")
    while len(parts) > 2 and cell_width(" | ".join(parts)) > width:
        del parts[-2]
    return fit_text(" | ".join(parts), width)
