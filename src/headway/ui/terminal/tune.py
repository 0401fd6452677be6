"""What `headway tune` shows: the values to try, a bar over the budget, each probe as it ends, and the result."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from headway.messages import say
from headway.planner import Plan
from headway.tune import Probe, RateAdvice, Settings, Skip, Space, Tuned, key_of, write_value
from headway.ui.console_safe import make_console
from headway.units import duration, short, size


def show_space(space: Space, console: Console) -> None:
    """Print what may be tried, and what not and why."""
    table = Table(
        title=say("tune/space-title", grid=space.grid),
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=False,
    )
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for axis, values in space.values.items():
        table.add_row(key_of(axis), ", ".join(write_value(value) for value in values))
    console.print(table)
    show_skips(space.skips, console)
    console.print()


def space_record(space: Space) -> dict[str, Any]:
    """Return what may be tried as plain JSON. Any: values of many types."""
    skipped = [{"key": key_of(one.axis), "value": one.value, "why": say(one.code, **one.facts)} for one in space.skips]
    values = {key_of(axis): list(some) for axis, some in space.values.items()}
    return {"schema": "tune-space/1", "dry_run": True, "grid": space.grid, "values": values, "skipped": skipped}


def show_skips(skips: Iterable[Skip], console: Console) -> None:
    """Print what is not tried, one line a key and reason."""
    values: dict[tuple[str, str], list[str]] = {}
    for skip in skips:
        values.setdefault((key_of(skip.axis), say(skip.code, **skip.facts)), []).append(write_value(skip.value))
    for (key, why), some in values.items():
        console.print(say("tune/skipped", key=key, value=", ".join(some), why=why), style="dim", markup=False)


class ProbeScreen:
    """A bar on a terminal; everywhere a line for each probe."""

    def __init__(self, stream: TextIO, budget_s: float) -> None:
        self._console = make_console(stream=stream)
        self._start: Settings | None = None
        self._best = 0.0
        self._began = time.monotonic()
        self._bar: Progress | None = None
        if stream.isatty():
            columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
            # Drawn from the supervisor's own loop: a thread of the bar would live through every fork.
            self._bar = Progress(*columns, console=self._console, auto_refresh=False, transient=True)
            self._task = self._bar.add_task("", total=budget_s)

    def __enter__(self) -> ProbeScreen:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, settings: Settings, number: int) -> None:
        """Name the probe that runs."""
        self._start = self._start or settings
        if self._bar is not None:
            text = say("tune/probing", number=number, words=self._words(settings))
            if self._best:
                text += f" · {say('tune/best-so-far', rate=short(self._best))}"
            self._bar.update(self._task, description=text)

    def begin_rates(self) -> None:
        """Say that the rate is tested now."""
        if self._bar is not None:
            self._bar.update(self._task, description=say("tune/rates"))
        else:
            self._console.print(say("tune/rates"), markup=False)

    def tick(self) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=time.monotonic() - self._began)
            self._bar.refresh()

    def end(self, probe: Probe) -> None:
        """Print what a probe found."""
        words = self._words(probe.settings)
        if probe.is_ok:
            self._best = max(self._best, probe.samples_s)
            facts = {"rate": short(probe.samples_s), "step": duration(probe.step_s), "memory": size(probe.peak_bytes)}
            text = say("tune/probe-ok", number=probe.number, words=words, **facts)
        else:
            text = say("tune/probe-bad", number=probe.number, words=words, why=say(probe.code, **probe.facts))
        self._console.print(text, markup=False)

    def _words(self, settings: Settings) -> str:
        assert self._start is not None
        return settings.words(self._start) or say("tune/start-words")


def show_result(
    found: Tuned,
    advice: RateAdvice | Probe | Literal[False] | None,
    base: float,
    budget_s: float,
    began: float,
    console: Console,
    plan: Plan,
    shown: Sequence[Skip] = (),
) -> None:
    """Print every probe, what was left out, and what won.

    Args:
        advice: of the range test; none: it said nothing; a probe: it failed; False: it was not wanted.
        shown: what was said to be left out before the search.
        base: the config's own learning rate.
    """
    took = duration(time.monotonic() - began)
    table = Table(
        title=say("tune/title", num=len(found.probes), grid=found.grid, took=took),
        title_justify="left",
        title_style="bold",
        box=None,
    )
    for code in ("tune/column-settings", "tune/column-rate", "tune/column-memory", "tune/column-result"):
        table.add_column(say(code, memory="gpu-memory" if plan.gpus else "host-memory"), overflow="fold")
    for probe in found.probes:
        memory = f"{size(probe.peak_bytes)} ({size(probe.forecast_bytes)})"
        rate = short(probe.samples_s) if probe.is_ok else say("plan/value-none")
        words = probe.settings.words(found.start.settings) or say("tune/start-words")
        is_best = probe is found.best
        ending = say(f"tune/ending-{probe.ending}")
        table.add_row(words, rate, memory, f"{ending} *" if is_best else ending, style="bold" if is_best else None)
    console.print(table)
    show_skips((skip for skip in found.skips if skip not in shown), console)
    if found.is_cut:
        console.print(say("tune/cut", budget=duration(budget_s)), markup=False)
    _say_best(found, console)
    if advice is not False:
        _say_rates(advice, base, console)


def _say_best(found: Tuned, console: Console) -> None:
    rate = short(found.best.samples_s)
    words = found.best.settings.words(found.start.settings)
    if not words:
        console.print(say("tune/already-best", rate=rate), markup=False)
    elif found.gain is None:
        console.print(say("tune/best-from-nothing", words=words, rate=rate), markup=False)
    else:
        console.print(say("tune/best", words=words, rate=rate, gain=f"{found.gain:.2f}"), markup=False)


def _say_rates(advice: RateAdvice | Probe | None, base: float, console: Console) -> None:
    if isinstance(advice, Probe):
        console.print(say("tune/lr-failed", why=say(advice.code, **advice.facts)), markup=False)
        return
    if advice is None:
        console.print(say("tune/lr-unclear"), markup=False)
        return
    console.print(say("tune/lr-advice", rate=f"{base * advice.factor:.3g}"), markup=False)
    if advice.breaks_at is not None:
        console.print(say("tune/lr-breaks", rate=f"{base * advice.breaks_at:.3g}"), markup=False)
