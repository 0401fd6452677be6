"""The search: one axis after the other, each climbed from the best point so far, guided by what probes have shown.

A grid tries every combination; most of it is known beforehand. More workers do not help a rank that never waits for
data, recomputation does not help one that has memory left, and rate over micro-batch has one hill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headway.errors import HeadwayError, PlanError, TrainError, UsageError
from headway.messages import say
from headway.tune.record import Probe, Settings, Skip, Tuned, Value
from headway.tune.space import Space

_BETTER = 1.02
"""A value must be this much faster to replace one that is simpler: a probe cannot tell less."""
_DOUBT = 0.85
"""Points at least this near the best are rivals: a neighbour's busy second could have decided."""
_RIVALS = 3
_WAITS = 0.03
"""Share of a step spent on data from which more loading could help."""


class OutOfTime(Exception):  # noqa: N818 - an end, not a fault
    """The budget is used up; what has been found counts."""


Measure = Callable[[Settings, int], Probe]
"""Tries a point; raises `OutOfTime` when there is no time left for it."""
Fits = Callable[[Settings], "Skip | None"]
"""Says why the forecast rules a point out, or nothing."""


def search(start: Settings, space: Space, measure: Measure, fits: Fits) -> Tuned:
    """Return the best point found; refuse, with every reason, when nothing runs."""
    return _Search(start, space, measure, fits).run()


class _Search:
    def __init__(self, start: Settings, space: Space, measure: Measure, fits: Fits) -> None:
        self._start, self._space = start, space
        self._measure, self._fits = measure, fits
        self._tried: dict[Settings, Probe] = {}
        self._again: list[Probe] = []
        """Second measurements."""
        self._skips = list(space.skips)
        self._is_memory_short = False
        """A larger micro-batch was ruled out by memory."""

    def run(self) -> Tuned:
        is_cut = False
        best: Probe | None = None
        try:
            best = self._find_footing()
            for axis in self._space.values:
                best = self._improve(axis, best)
            best = self._settle(best)
        except OutOfTime:
            is_cut = True
            best = max((one for one in self._tried.values() if one.is_ok), key=lambda one: one.samples_s, default=None)
        if best is None:
            raise self._explain(is_cut=is_cut)
        return Tuned(
            start=self._tried[self._start],
            best=best,
            probes=(*self._tried.values(), *self._again),
            skips=tuple(self._skips),
            grid=self._space.grid,
            is_cut=is_cut,
        )

    def _try(self, settings: Settings) -> Probe:
        if settings not in self._tried:
            self._tried[settings] = self._measure(settings, len(self._tried) + 1)
        return self._tried[settings]

    def _settle(self, best: Probe | None) -> Probe | None:
        """Return the winner after the best so far and its strongest rivals were measured once more.

        What disturbs a probe only ever makes it slower, so each counts with the better of its two. A grid so small
        that this would cost more than a quarter of it is left as it is.
        """
        room = self._space.grid // 4 - len(self._tried)
        if best is None or room < 2:
            return best
        near = [one for one in self._tried.values() if one.is_ok and one.samples_s >= _DOUBT * best.samples_s]
        rivals = sorted((one for one in near if one is not best), key=lambda one: -one.samples_s)
        if not rivals:
            return best
        best = self._measure_again(best)
        for rival in rivals[: min(_RIVALS, room - 1)]:
            again = self._measure_again(rival)
            if again.samples_s > best.samples_s * _BETTER:
                best = again
        return best

    def _measure_again(self, first: Probe) -> Probe:
        second = self._measure(first.settings, len(self._tried) + len(self._again) + 1)
        self._again.append(second)
        return max(first, second, key=lambda one: one.samples_s)

    # --- where the start itself does not run ---

    def _find_footing(self) -> Probe | None:
        """Return the first point that runs: the start, or what takes less memory or fewer tools."""
        probe = self._try(self._start)
        if probe.is_ok:
            return probe
        if probe.ending == "out-of-memory":
            self._is_memory_short = True
            return self._shrink()
        plain = replace(self._start, compile=False, workers=0)
        # Threads of a busy machine wait for each other; and a graph may take longer to compile than a probe may last.
        others = [self._start.moved(axis, value) for axis, _ in self._start.own for value in self._space.values[axis]]
        for point in (plain, replace(plain, threads=1), *others):
            if self._may(point):
                probe = self._try(point)
                if probe.is_ok:
                    return probe
        return None

    def _shrink(self) -> Probe | None:
        rungs = [value for value in self._space.values["micro_batch"] if int(value) < self._start.micro_batch]
        saving = True in self._space.values["activation_checkpoint"] and not self._start.activation_checkpoint
        points = [replace(self._start, micro_batch=int(rung)) for rung in reversed(rungs)]
        if saving:
            smallest = points[-1] if points else self._start
            points.append(replace(smallest, activation_checkpoint=True))
        for point in points:
            probe = self._try(point)
            if probe.is_ok:
                return probe
        return None

    def _may(self, settings: Settings) -> bool:
        return all(settings.value(axis) in values for axis, values in self._space.values.items())

    # --- one axis ---

    def _improve(self, axis: str, best: Probe | None) -> Probe | None:
        if best is None:
            return None
        values = self._space.values[axis]
        if len(values) == 1:
            return best
        if axis in ("micro_batch", "threads"):
            return self._climb(axis, values, best)
        why = self._needless(axis, best)
        for value in values:
            if value == best.settings.value(axis):
                continue
            if why is not None:
                self._skips.append(replace(why, value=value))
                continue
            candidate = self._candidate(axis, value, best)
            if candidate is not None and candidate.samples_s > best.samples_s * _BETTER:
                best = candidate
            elif axis == "workers":
                why = Skip(
                    axis=axis, value=value, code="tune/skip-past-best", facts={"best": str(best.settings.workers)}
                )
        if axis == "activation_checkpoint" and best.settings.activation_checkpoint:
            return self._climb("micro_batch", self._space.values["micro_batch"], best)
        return best

    def _needless(self, axis: str, best: Probe) -> Skip | None:
        """Return why an axis needs no probe at all."""
        if axis == "activation_checkpoint" and not self._is_memory_short and not best.settings.activation_checkpoint:
            return Skip(axis=axis, value=True, code="tune/skip-memory-enough")
        share = best.data_share()
        if axis == "workers" and share is not None and share < _WAITS and best.settings.workers == 0:
            return Skip(axis=axis, value=0, code="tune/skip-no-wait", facts={"share": f"{share:.1%}"})
        if axis == "prefetch" and best.settings.workers == 0:
            return Skip(axis=axis, value=0, code="tune/skip-no-workers")
        if axis == "prefetch" and share is not None and share < _WAITS:
            return Skip(axis=axis, value=0, code="tune/skip-no-wait", facts={"share": f"{share:.1%}"})
        if axis.endswith(".prefetch") and share is not None and share < _WAITS:
            return Skip(axis=axis, value=0, code="tune/skip-no-wait", facts={"share": f"{share:.1%}"})
        return None

    def _candidate(self, axis: str, value: Value, best: Probe) -> Probe | None:
        """Try one value at the best point; none: the forecast rules it out."""
        settings = best.settings.moved(axis, value)
        if axis == "activation_checkpoint" and value:
            settings = self._grown(settings)
        why = self._fits(settings)
        if why is not None:
            self._is_memory_short = True
            self._skips.append(why)
            return None
        probe = self._try(settings)
        if probe.ending == "out-of-memory":
            self._is_memory_short = True
        return probe if probe.is_ok else None

    def _grown(self, settings: Settings) -> Settings:
        """Return the largest micro-batch foreseen to fit: recomputing is slower, only the room it makes can pay."""
        sizes = [int(value) for value in self._space.values["micro_batch"] if int(value) > settings.micro_batch]
        points = [replace(settings, micro_batch=size) for size in reversed(sizes)]
        return next((point for point in points if self._fits(point) is None), settings)

    def _climb(self, axis: str, values: Sequence[Value], best: Probe) -> Probe:
        """Go up the hill of one axis: long strides first, then short ones, upwards before downwards."""
        stride = max(1, (len(values) - 1) // 2)
        while True:
            here = values.index(best.settings.value(axis))
            for place in (here + stride, here - stride):
                if 0 <= place < len(values):
                    candidate = self._candidate(axis, values[place], best)
                    if candidate is not None and candidate.samples_s > best.samples_s * _BETTER:
                        best = candidate
                        break
            else:
                if stride == 1:
                    return best
                stride //= 2

    # --- nothing runs ---

    def _explain(self, *, is_cut: bool) -> HeadwayError:
        """Return the refusal: never just that nothing was found."""
        bad = [one for one in self._tried.values() if not one.is_ok]
        if not bad:
            return UsageError("tune/budget-too-short")
        lines = "\n".join(f"  {one.settings.words()}: {say(one.code, **one.facts)}" for one in bad)
        facts = {"num": str(len(bad)), "reasons": lines}
        if is_cut:
            return UsageError("tune/budget-ended", **facts)
        if all(one.ending == "out-of-memory" for one in bad):
            return PlanError("tune/nothing-fits", **facts)
        return TrainError("tune/nothing-runs", **facts)
