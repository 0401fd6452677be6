"""What losses say: not a number, a jump that stays, a training that does not get better."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from headway.diagnosis.live_scene import Scene, Step
from headway.telemetry import best_measure, number, section
from headway.telemetry.open_findings import Sighting

_BASE: Final = 200
_LEAST_BASE: Final = 50
_RECENT: Final = 5
_SIGMAS: Final = 8.0
_JUMP: Final = 0.25
_MAD: Final = 1.4826
_BLOCKS: Final = 64
_LEAST_STEPS: Final = 1000
_LEAST_SHARE: Final = 0.2
_LEARNED: Final = 0.005
_VALIDATIONS: Final = 12


@dataclass(slots=True)
class LossFinder:
    """Remembers how the loss went."""

    _seen: int = 0
    _guarded: int = 0
    _base: tuple[float, float] | None = None
    """Median and spread before the jump that is going on."""
    _blocks: list[tuple[int, float]] = field(default_factory=list)
    """First step and median of stretches of the run."""
    _stride: int = 1
    _waiting: list[float] = field(default_factory=list)

    def find(self, scene: Scene) -> Iterator[Sighting]:
        """Return what is wrong with the loss now."""
        steps = [one for one in next(iter(scene.ranks.values()), ()) if one.has_loss]
        if not steps:
            return
        new = [one for one in steps if one.step > self._seen] if steps[-1].step >= self._seen else steps
        self._seen = steps[-1].step
        yield from _find_nan(scene, new)
        yield from self._find_skipped(scene)
        yield from self._find_jump(scene, steps)
        self._keep(new)
        yield from self._find_plateau(scene)

    def _find_skipped(self, scene: Scene) -> Iterator[Sighting]:
        was, self._guarded = self._guarded, len(scene.guarded)
        num = self._guarded
        if num > was:
            facts = {"step": scene.guarded[-1].get("step"), "num": num, "run": scene.name}
            cost = num * (scene.step_s or 0.0)
            yield Sighting(code="live/steps-skipped", facts=facts, ignored_s=cost, cure="optimizer.clip=0.5")

    def _find_jump(self, scene: Scene, steps: Sequence[Step]) -> Iterator[Sighting]:
        finite = [one for one in steps if math.isfinite(one.loss)]
        recent, before = finite[-_RECENT:], finite[-_RECENT - _BASE : -_RECENT]
        if len(before) < _LEAST_BASE:
            return
        middle, spread = self._base or _spread([one.loss for one in before])
        limit = middle + max(_SIGMAS * spread, _JUMP * abs(middle), 1e-6)
        high = [one for one in recent if one.loss > limit]
        if len(high) < _RECENT - 1:
            if median(one.loss for one in recent) <= limit:
                self._base = None
            return
        self._base = self._base or (middle, spread)
        rate = number(section(scene.config.get("lr")).get("base"))
        setting = f"lr.base={rate / 2:g}" if math.isfinite(rate) else ""
        facts = {
            "step": high[0].step,
            "loss": f"{recent[-1].loss:.4g}",
            "usual": f"{middle:.4g}",
            "setting": setting,
            "run": scene.name,
        }
        code = "live/loss-spike-script" if scene.is_script else "live/loss-spike"
        yield Sighting(code=code, facts=facts, slower=1.0, cure=setting)

    def _keep(self, new: Sequence[Step]) -> None:
        """Keep medians of stretches of equal length, at most so many."""
        for one in new:
            if math.isfinite(one.loss):
                self._waiting.append(one.loss)
            if len(self._waiting) >= self._stride:
                self._blocks.append((one.step, median(self._waiting)))
                self._waiting.clear()
        while len(self._blocks) >= 2 * _BLOCKS:
            self._stride *= 2
            pairs = zip(self._blocks[::2], self._blocks[1::2], strict=False)
            self._blocks = [(first[0], (first[1] + second[1]) / 2) for first, second in pairs]

    def _find_plateau(self, scene: Scene) -> Iterator[Sighting]:
        since = self._never_learned(scene) or _stale_since(scene)
        if since is not None:
            facts = {"since": since, "step": scene.step, "run": scene.name}
            code = "live/plateau-script" if scene.is_script else "live/plateau"
            cure = "" if scene.is_script else "eval.patience=5"
            yield Sighting(code=code, facts=facts, slower=1.0, cure=cure)

    def _never_learned(self, scene: Scene) -> int | None:
        """Return the first step, if the loss has not fallen since: in a run that learns, the first steps do most."""
        warmup = number(scene.plan.get("warmup_samples")) / max(1.0, number(scene.plan.get("batch_samples")))
        least = max(_LEAST_STEPS, _LEAST_SHARE * (scene.total_steps or 0), 2 * warmup if math.isfinite(warmup) else 0)
        if scene.step < least or len(self._blocks) < _BLOCKS // 2:
            return None
        values = [value for _, value in self._blocks]
        first, last = values[: len(values) // 8], values[len(values) // 2 :]
        middle, spread = _spread(first)
        is_flat = median(last) > middle - _LEARNED * abs(middle) and trend(values) > -1.0
        return (
            self._blocks[0][0] if is_flat and median(last) < middle + _SIGMAS * spread + _JUMP * abs(middle) else None
        )


def _find_nan(scene: Scene, new: Sequence[Step]) -> Iterator[Sighting]:
    bad = [one.step for one in new if not math.isfinite(one.loss)]
    if bad:
        facts = {"step": bad[0], "run": scene.name}
        yield Sighting(code="live/loss-nan", facts=facts, slower=1.0)


def _stale_since(scene: Scene) -> int | None:
    """Return the step of the best validation, if that is long ago and the later ones do not even tend to be better."""
    checks = scene.validations
    if len(checks) < _VALIDATIONS:
        return None
    name = best_measure(checks[-1])
    sign = -1.0 if checks[-1].get("sense") == "max" else 1.0
    values = [sign * number(one["measures"].get(name)) for one in checks]
    if not all(map(math.isfinite, values)):
        return None
    best = min(range(len(values)), key=lambda at: values[at])
    later = values[len(values) // 2 :]
    if best >= len(values) // 3 or trend(later) < 0.0 or median(later) <= median(values[best : len(values) // 2 + 1]):
        return None
    return int(number(checks[best].get("step")))


def trend(values: Sequence[float]) -> float:
    """Return the Mann-Kendall statistic: how surely values rise (above 0) or fall, in standard deviations."""
    num = len(values)
    pairs = sum((b > a) - (b < a) for at, a in enumerate(values) for b in values[at + 1 :])
    return pairs / math.sqrt(num * (num - 1) * (2 * num + 5) / 18) if num > 2 else 0.0


def _spread(values: Sequence[float]) -> tuple[float, float]:
    middle = median(values)
    return middle, _MAD * median(abs(value - middle) for value in values)
