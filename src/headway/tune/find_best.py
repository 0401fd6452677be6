"""A search from start to end: its folder, its budget, its record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from headway.config import LoadedConfig, dump_yaml
from headway.errors import UsageError
from headway.launch import Nursery
from headway.machine import MachineReport
from headway.planner import Plan
from headway.telemetry import write_json
from headway.tune.foresee import Foresight
from headway.tune.probe import Effort, Prober, append_line
from headway.tune.rates import SWEEP, RateAdvice, advise_rate
from headway.tune.record import Probe, Settings, Tuned, Value, settings_of
from headway.tune.remember import remember_probe
from headway.tune.search import OutOfTime, search
from headway.tune.space import Space, make_space

_LEAST_S = 3.0
"""With less left of the budget no probe is begun."""
_FAIR_S = {"torch": 45.0, "mindspore": 150.0}
"""What a probe may take of even a small budget; MindSpore compiles a graph for every length of a batch first."""


class Watcher(Protocol):
    """Whoever shows the search."""

    def begin(self, settings: Settings, number: int) -> None:
        """A probe begins."""
        ...

    def begin_rates(self) -> None:
        """The range test of the learning rate begins."""
        ...

    def tick(self) -> None:
        """About ten times per second."""
        ...

    def end(self, probe: Probe) -> None:
        """A probe has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be tuned, and with how much effort."""

    loaded: LoadedConfig
    machine: MachineReport
    plan: Plan
    place: Path
    """Folder of the record; must be there."""
    budget_s: float
    effort: Effort = field(default_factory=Effort)
    limit_bytes: int | None = None
    """Memory one rank of a CPU probe may take; none: its share of what is free."""

    def space(self) -> Space:
        """Return what may be tried."""
        loaded = self.loaded
        return make_space(
            self.plan, loaded.config, self.machine, loaded.origins, framework=loaded.framework, own=self._own()
        )

    def start(self) -> Settings:
        """Return the point at which the plan is."""
        return settings_of(self.plan, self.loaded.config, self._own())

    def _own(self) -> Mapping[str, Sequence[Value]]:
        choose = self.loaded.recipe.tunable
        return choose(self.loaded.config.task, self.plan.device) if choose is not None else {}


def tune(
    question: Question, *, start_nursery: Callable[[], Nursery], watcher: Watcher, has_rates: bool = False
) -> tuple[Tuned, RateAdvice | Probe | None]:
    """Return the best settings found within the budget, and what the range test says of the rate if it was wanted.

    The test's word is its advice, none where the loss did not fall, or the probe that failed.

    Raises:
        UsageError, PlanError, TrainError: nothing could be measured; the text has the reason of every probe.
        KeyboardInterrupt: somebody stopped it; the record has every probe until then.
    """
    began = time.monotonic()
    place = question.place
    write_json(place / "machine.json", question.machine.to_json())
    write_json(place / "plan.json", question.plan.to_json())
    (place / "config.yaml").write_text(dump_yaml(question.loaded.config), encoding="utf-8")
    foresight = Foresight(loaded=question.loaded, machine=question.machine, plan=question.plan)
    prober = _make_prober(question, start_nursery, watcher)

    def measure(settings: Settings, number: int) -> Probe:
        left_s = question.budget_s - (time.monotonic() - began)
        if left_s < _LEAST_S:
            raise OutOfTime
        watcher.begin(settings, number)
        # One point that never ends must not take the time of all others.
        limit_s = min(max(_FAIR_S[question.loaded.framework], question.budget_s / 4), left_s + _LEAST_S)
        probe = prober.measure(settings, number, limit_s=min(limit_s, question.effort.limit_s))
        forecast = foresight.forecast(settings)
        probe = replace(probe, forecast_bytes=round(forecast.used_bytes) if forecast else None)
        append_line(place / "tune.jsonl", probe.to_json())
        remember_probe(probe, question.plan, question.loaded.config, question.machine)
        watcher.end(probe)
        if probe.ending == "interrupted":
            raise KeyboardInterrupt
        return probe

    try:
        found = search(question.start(), question.space(), measure, foresight.rule_out)
        advice = _test_rates(prober, found, watcher) if has_rates else None
    finally:
        prober.close()
    write_json(place / "tune.json", found.to_json())
    return found, advice


def probe_plan(question: Question, *, start_nursery: Callable[[], Nursery], watcher: Watcher) -> list[Probe]:
    """Time the plan itself and a second micro-batch, so that the next forecast is based on measured steps."""
    start = question.start()
    sizes = [int(size) for size in question.space().values["micro_batch"]]
    below = [size for size in sizes if size < start.micro_batch]
    above = [size for size in sizes if size > start.micro_batch]
    second = below[-1] if below else above[0] if above else None
    points = [start] if second is None else [start, replace(start, micro_batch=second)]
    prober, found = _make_prober(question, start_nursery, watcher), []
    try:
        for number, point in enumerate(points, 1):
            watcher.begin(point, number)
            probe = prober.measure(point, number)
            watcher.end(probe)
            append_line(question.place / "tune.jsonl", probe.to_json())
            remember_probe(probe, question.plan, question.loaded.config, question.machine)
            found.append(probe)
            if probe.ending == "interrupted":
                raise KeyboardInterrupt
    finally:
        prober.close()
    return found


def _make_prober(question: Question, start_nursery: Callable[[], Nursery], watcher: Watcher) -> Prober:
    return Prober(
        place=question.place,
        loaded=question.loaded,
        machine=question.machine,
        plan=question.plan,
        start_nursery=start_nursery,
        effort=question.effort,
        limit_bytes=question.limit_bytes,
        tick=watcher.tick,
    )


def _test_rates(prober: Prober, found: Tuned, watcher: Watcher) -> RateAdvice | Probe | None:
    number = len(found.probes) + 1
    watcher.begin_rates()
    curve = prober.sweep(found.best.settings, number, SWEEP)
    if isinstance(curve, Probe):
        if curve.ending == "interrupted":
            raise KeyboardInterrupt
        return curve
    append_line(prober.place / "tune.jsonl", {"number": number, "lr_range": curve})
    return advise_rate(curve)


def read_budget(text: str) -> float:
    """Return seconds of `90`, `90s`, `10m` or `1.5h`."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1:].lower()]) if text[-1:].lower() in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError as err:
        raise UsageError("tune/budget-unreadable", given=text) from err
    if not _LEAST_S <= seconds < 1e9:
        raise UsageError("tune/budget-unreadable", given=text)
    return seconds
