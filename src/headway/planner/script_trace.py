"""The trace of a script of the user's own: a child runs it with fake devices."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from headway.ask import ask
from headway.errors import PlanError, UsageError
from headway.machine import Gpu, cpu_environment

TIMEOUT_S: Final = 300.0
_TROUBLES: Final = {
    "data-dependent": "plan/script-values",
    "unsupported": "plan/script-values",
    "sharded": "plan/script-sharded",
    "no-step": "plan/script-no-step",
    "error": "plan/script-error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLine:
    """A launch line, as far as one rank of it is concerned."""

    text: str
    entry: str
    kind: str
    """`script` or `module`."""
    args: tuple[str, ...] = ()
    ranks: int = 1
    """All of them, on all nodes."""
    local_ranks: int = 1
    has_gpus: bool = False
    """Whether the machine of the plan has any."""
    is_launched: bool = False
    """Whether a launcher tells the script of its ranks."""
    env: Mapping[str, str] = field(default_factory=dict)
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTrace:
    """What one rank of a script holds and does in a step, evaluation apart."""

    peak_bytes: int
    parts: Mapping[str, int]
    """Holder to bytes at the peak."""
    moment: str
    on_device: bool
    """Whether the script put anything on a GPU; if not, all its tensors were counted."""
    micro_batch: int | None
    """Leading dimension of a batch; none: no batch was seen on its way."""
    accumulation: int
    world_size: int
    """Ranks of the process group the script made; 1: it made none."""
    params: int
    trained: int
    weight_bytes: int
    trained_bytes: int
    state_bytes: int
    flops: int
    """Of forward and backward of one micro-batch."""
    half_share: float
    """Part of the arithmetic that is in 16 bits."""
    moved_bytes: int
    update_bytes: int
    kernels: int
    """Launched for one micro-batch."""
    optimizers: tuple[str, ...]
    left_out: tuple[str, ...]
    """What the script asks for and the trace does without."""
    took_s: float
    rss_bytes: int


def trace_script(line: ScriptLine, gpus: Sequence[Gpu]) -> ScriptTrace:
    """Run a script up to its second update without a GPU; refuse with the script's own line and reason.

    Args:
        gpus: those the script is to find; none: it is on the CPU.
    """
    env = dict(line.env)
    if line.is_launched:
        env |= {
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": str(line.ranks),
            "LOCAL_WORLD_SIZE": str(line.local_ranks),
            "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
        }
    answer = ask_script(
        entry=line.entry, kind=line.kind, args=line.args, python=line.python, gpu=_describe(gpus), env=env
    )
    known = {one.name for one in fields(ScriptTrace)}
    facts = {name: value for name, value in answer.items() if name in known}
    return ScriptTrace(**{**facts, "optimizers": tuple(facts["optimizers"]), "left_out": tuple(facts["left_out"])})


def _describe(gpus: Sequence[Gpu]) -> dict[str, Any] | None:
    """Return what the fake devices need of the GPUs."""
    if not gpus:
        return None
    first = gpus[0]
    return {
        "num": len(gpus),
        "name": first.name or "GPU",
        "total_bytes": min(gpu.total_bytes or 0 for gpu in gpus),
        "capability": list(first.capability or (8, 0)),
    }


def ask_script(
    *,
    entry: str,
    kind: str,
    args: Sequence[str],
    python: str,
    gpu: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the child's answer (`script/1`)."""
    with tempfile.TemporaryDirectory(prefix="headway-script-") as folder:
        scratch, site = Path(folder) / "scratch", Path(folder) / "site"
        scratch.mkdir()
        site.mkdir()
        # Only our own package, so that an interpreter with torch and without Headway is enough.
        (site / "headway").symlink_to(Path(__file__).resolve().parent.parent)
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        question = {
            "entry": entry,
            "kind": kind,
            "args": list(args),
            "gpu": gpu,
            "scratch": str(scratch),
        }
        more = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        environ = {**cpu_environment(python, is_on_cpu=True), **(env or {}), **more}
        try:
            told = ask(python, question, module="headway.trace.script", within_s=TIMEOUT_S, env=environ)
        except OSError as err:
            raise UsageError("plan/script-python", python=python, why=err.strerror or "?") from err
    if told.exit_code is None:
        raise PlanError("plan/script-slow", seconds=round(TIMEOUT_S))
    if told.value is None:
        raise PlanError("plan/script-error", where=Path(entry).name, why=_last(told.errors))
    answer: dict[str, Any] = told.value
    if "trouble" in answer:
        raise _explain(answer, told.errors)
    return answer


def _last(said: str) -> str:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "?"


def _explain(answer: Mapping[str, Any], said: str) -> PlanError:
    """Return the refusal: what stopped the trace, at which of the user's lines."""
    code = _TROUBLES[answer["trouble"]]
    where, text = answer["where"], answer["text"]
    if code == "plan/script-no-step":
        ended = f" ({text}: {_last(said)})" if text.startswith("exit ") and text != "exit 0" and said.strip() else ""
        return PlanError(code, where=where, steps=answer["steps"], ended=ended)
    if code == "plan/script-sharded":
        return PlanError(code, where=where, what="FSDP")
    return PlanError(code, where=where, why=text)
