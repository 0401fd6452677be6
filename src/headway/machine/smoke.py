"""Lets two ranks really talk before a run depends on it: do they meet, does what they exchange arrive as it was?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headway.ask import Answer, Asked
from headway.machine.cpu import cpu_environment
from headway.machine.devices import can_use_gpus, pick_devices
from headway.machine.record import Finding, MachineReport
from headway.units import size

DEADLINE_S = 60.0
"""Importing a framework from a cold disk takes most of it."""
_BYTES = 16 << 20
_RANKS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAnswer:
    """What one rank of the test said."""

    rank: int
    trouble: str | None = None
    """Its last words when it failed."""
    wrong: int = 0
    """Numbers that arrived changed."""
    rate_bytes_s: float | None = None
    pairs: Mapping[str, bool] = field(default_factory=dict)
    """Pairs of GPUs, and whether a direct copy arrived whole."""


class RankRunner(Protocol):
    """Answers one question: what do these ranks say?"""

    def run(self, python: str, jobs: Sequence[Mapping[str, Any]]) -> list[RankAnswer]:
        """Start one process a job, wait for all within the deadline and return their answers."""
        ...


class ChildRunner:
    """Starts ranks as children of this process, in the ranks' interpreter."""

    def run(self, python: str, jobs: Sequence[Mapping[str, Any]]) -> list[RankAnswer]:
        """Return the answers; what has not ended in time is killed and says so."""
        source = Path(__file__).with_name("smoke_child.py").read_text(encoding="utf-8")
        # Two ranks of one machine need no other interface, and a host name that leads nowhere is a common fault.
        environ = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **cpu_environment(python)}
        until = time.monotonic() + DEADLINE_S
        with ExitStack() as children:
            asked = [children.enter_context(Asked(python, job, source=source, env=environ)) for job in jobs]
            return [_hear(rank, child.answer(max(0.1, until - time.monotonic()))) for rank, child in enumerate(asked)]


def _hear(rank: int, told: Answer) -> RankAnswer:
    if told.exit_code is None:
        return RankAnswer(rank=rank, trouble=f"> {DEADLINE_S:.0f} s")
    try:
        answer = told.value if told.exit_code == 0 else {}
        return RankAnswer(
            rank=rank, wrong=int(answer["wrong"]), rate_bytes_s=float(answer["rate"]), pairs=answer["pairs"]
        )
    except (ValueError, KeyError, TypeError):  # it printed something else: what it said is the trouble
        return RankAnswer(rank=rank, trouble=told.why)


def try_ranks(report: MachineReport, wanted: Any = "auto", runner: RankRunner | None = None) -> Iterator[Finding]:
    """Yield what two ranks on this machine's devices say. Any: the config's `parallel.gpus`."""
    if report.framework.torch is None:
        return
    gpus = pick_devices(report, wanted) if report.gpus and can_use_gpus(report) else ()
    backend = "nccl" if len(gpus) >= _RANKS else "gloo"
    with tempfile.TemporaryDirectory(prefix="headway-smoke-") as folder:
        job = {"world": _RANKS, "backend": backend, "bytes": _BYTES, "devices": list(gpus), "store": f"{folder}/store"}
        jobs = [{**job, "rank": rank} for rank in range(_RANKS)]
        answers = (runner or ChildRunner()).run(report.framework.python, jobs)
    yield judge_answers(answers, backend)


def judge_answers(answers: Sequence[RankAnswer], backend: str) -> Finding:
    """Return the one finding of the test; the first trouble in time is not known, so the plainest one is reported."""
    about = {"ranks": str(len(answers)), "backend": backend}
    troubles = [answer.trouble for answer in answers if answer.trouble]
    if troubles:
        # A rank that waited in vain says less than the one that failed.
        why = next((trouble for trouble in troubles if not trouble.startswith(">")), troubles[0])
        return Finding(code="machine/smoke-failed", level="stop", facts={**about, "why": why})
    wrong = sum(answer.wrong for answer in answers)
    pairs = [pair for answer in answers for pair, is_right in answer.pairs.items() if not is_right]
    if wrong or pairs:
        why = f"{wrong} ≠" if wrong else f"P2P {', '.join(pairs)}"
        return Finding(code="machine/smoke-wrong", level="stop", facts={**about, "why": why})
    rates = [answer.rate_bytes_s for answer in answers if answer.rate_bytes_s]
    facts = {**about, "size": size(_BYTES), "rate": size(min(rates)) if rates else "n/a"}
    return Finding(code="machine/smoke-ok", level="ok", facts=facts)
