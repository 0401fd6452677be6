"""Which rank the others wait for: from a picture of ranks that hang to the odd one out and the likely reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

_GONE: Final = "0"
_BUSY: Final = 0.1
"""Of a core: on a crowded machine a rank that computes gets no more, and one that waits uses almost nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """One rank at the moment of the picture. None: not known."""

    rank: int
    state: str
    """The kernel's letter (R, S, D, T, Z), or `0` for a rank that has ended with exit code 0."""
    step: int
    phase: str
    collectives: int | None = None
    """Collectives begun so far."""
    collective: str | None = None
    """The one it is in; None: in none."""
    numel: int | None = None
    seconds: float = 0.0
    """Since it last moved."""
    cpu_share: float | None = None
    """Processor time over the silence, in cores."""
    place: str | None = None
    """Innermost line of the user's own code."""
    stack: tuple[str, ...] = ()
    pid: int | None = None
    is_at_work: bool = False
    """It, or what it has started, has used processor or disk lately, or waits for a disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """Ranks that hang, and the one that keeps the others waiting."""

    kind: str
    """`rank-stopped`, `early-exit`, `disk-wait`, `collective-mismatch`, `data-stall`, `rank-behind`, `rank-busy` or
    `all-wait`."""
    rank: int | None
    """The odd one out; None: none of them is odd."""
    seconds: float
    views: tuple[RankView, ...]

    @property
    def code(self) -> str:
        """Message code."""
        if self.kind == "collective-mismatch" and self.rank is None:
            return "diagnose/hang-disagree"
        return "diagnose/foreign-early-exit" if self.kind == "early-exit" else f"diagnose/hang-{self.kind}"

    @property
    def is_certain(self) -> bool:
        """Say whether waiting is of no use: a rank outside of collectives may save, measure or load, and come back."""
        return self.kind in ("rank-stopped", "early-exit", "collective-mismatch")

    @property
    def is_at_work(self) -> bool:
        """Say whether the odd one does something."""
        return any(view.is_at_work for view in self.views if view.rank == self.rank)

    @property
    def is_waited_for(self) -> bool:
        """Say whether any living rank is inside of a collective."""
        return any(view.collective is not None for view in self.views if view.state != _GONE)

    def facts(self) -> dict[str, object]:
        """Return what the placeholders of the message stand for."""
        odd = next((view for view in self.views if view.rank == self.rank), self.views[0])
        others = [view for view in self.views if view.rank != self.rank and view.collective]
        one = [view.rank for view in self.views if _signature(view) == _signature(self.views[0])]
        other = [view.rank for view in self.views if view.rank not in one]
        if self.code == "diagnose/hang-disagree":
            odd, others = next(view for view in self.views if view.rank in other), [self.views[0]]
        return {
            "rank": "n/a" if self.rank is None else self.rank,
            "seconds": round(self.seconds),
            "pid": "n/a" if odd.pid is None else odd.pid,
            "place": odd.place or "n/a",
            "own": _call(odd),
            "others": _call(others[0]) if others else "n/a",
            "one": ", ".join(map(str, one)),
            "other": ", ".join(map(str, other)) or "n/a",
        }

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, for the history."""
        return {
            "class": self.kind,
            "rank": self.rank,
            "code": self.code,
            "seconds": round(self.seconds, 1),
            "facts": {name: str(value) for name, value in self.facts().items()},
            "ranks": [{**asdict(view), "stack": list(view.stack)} for view in self.views],
        }


def judge_hang(views: Sequence[RankView], seconds: float) -> Hang:
    """Name the odd one out. The most certain signs come first."""
    kind, rank = _find_odd(views)
    return Hang(kind=kind, rank=rank, seconds=seconds, views=tuple(views))


def _find_odd(views: Sequence[RankView]) -> tuple[str, int | None]:
    stopped = [view for view in views if view.state in ("T", "t")]
    if stopped:
        return "rank-stopped", stopped[0].rank
    gone = [view for view in views if view.state == _GONE]
    views = [view for view in views if view.state != _GONE]
    inside = [view for view in views if view.collective is not None]
    outside = [view for view in views if view.collective is None]
    if not views:
        return "all-wait", None
    # Whoever is still outside may be the one that the others wait for, in a group without those who have left.
    if gone and inside and not outside:
        return "early-exit", gone[0].rank
    on_disk = [view for view in outside if view.state == "D"]
    if on_disk:
        return "disk-wait", on_disk[0].rank
    if inside and outside:
        return _judge_outsider(min(outside, key=lambda view: (view.collectives or 0, view.rank)))
    if inside:
        return _judge_all_inside(inside)
    loading = [view for view in views if _is_loading(view)]
    if loading:
        return "data-stall", loading[0].rank
    behind = min(views, key=lambda view: (view.step, view.rank))
    if len({view.step for view in views}) > 1:
        return _judge_outsider(behind)
    return "all-wait", None


def _judge_outsider(view: RankView) -> tuple[str, int]:
    """The others wait in a collective, this one does something else."""
    if _is_loading(view):
        return "data-stall", view.rank
    if view.state == "R" or (view.cpu_share is not None and view.cpu_share > _BUSY):
        return "rank-busy", view.rank
    return "rank-behind", view.rank


def _judge_all_inside(views: Sequence[RankView]) -> tuple[str, int | None]:
    """All wait, but not for the same thing: the majority is right; without one nobody can say who is odd."""
    calls = Counter(_signature(view) for view in views)
    if len(calls) == 1:
        return "all-wait", None
    (usual, most), (_, second), *_ = calls.most_common()
    if most == second:
        return "collective-mismatch", None
    others = [view for view in views if _signature(view) != usual]
    return "collective-mismatch", min(others, key=lambda view: (view.collectives or 0, view.rank)).rank


def _signature(view: RankView) -> tuple[object, ...]:
    return view.collectives, view.collective, view.numel


def _is_loading(view: RankView) -> bool:
    return any("utils/data/" in frame or "dataloader" in frame.lower() for frame in view.stack)


def _call(view: RankView) -> str:
    """Return `all_reduce #12 (1024 elements)`."""
    if view.collective is None:
        return f"#{view.collectives}" if view.collectives else "n/a"
    size = f" ({view.numel})" if view.numel is not None and view.numel >= 0 else ""
    return f"{view.collective} #{view.collectives}{size}"
