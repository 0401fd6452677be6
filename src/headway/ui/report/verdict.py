"""The first line of the report: how the run ended, what it reached, and whether that is any good."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from headway.telemetry import Measure
from headway.ui.report.both_languages import both
from headway.ui.report.gather import Facts
from headway.units import ABSENT, duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A best measure beside a baseline."""

    name: str
    baseline: Measure
    best: Measure

    @property
    def share(self) -> float:
        """How much better than the baseline, as a share of it; negative: worse."""
        gap = (
            self.baseline.value - self.best.value if self.best.sense == "min" else self.best.value - self.baseline.value
        )
        return gap / abs(self.baseline.value) if self.baseline.value else math.nan


def find_gains(facts: Facts) -> list[Gain]:
    """Return the best measure beside every baseline."""
    best = facts.state.best
    return [] if best is None else [Gain(name=name, baseline=one, best=best) for name, one in facts.baselines]


def write_verdict(facts: Facts) -> list[Markup]:
    """Return the sentences of the verdict, the most important first."""
    state = facts.state
    total = ABSENT if state.total_steps is None else state.total_steps
    said = [both(f"report/verdict-{state.state}", step=state.step, total=total, wall=duration(facts.wall_s))]
    if state.state in ("failed", "stopped", "interrupted") and state.why:
        said.append(both("report/verdict-why", why=state.why))
    if state.best is not None:
        best = state.best
        said.append(both("report/verdict-best", name=best.name, value=f"{best.value:.4g}", step=best.step))
    for gain in find_gains(facts):
        code = "report/verdict-beats" if gain.share > 0 else "report/verdict-misses"
        share = f"{abs(gain.share) * 100:.1f}"
        said.append(both(code, name=gain.name, value=f"{gain.baseline.value:.4g}", share=share))
    if state.attempts > 1:
        said.append(both("report/verdict-restarts", num=state.attempts - 1, redone=facts.redone_steps))
    return said
