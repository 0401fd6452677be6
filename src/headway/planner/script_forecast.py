"""What a traced script would take and give on the machine of the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.machine import MachineReport
from headway.planner.forecast import CPU_CONTEXT_BYTES, find_card, gpu_room, place_card
from headway.planner.memory import TIGHT, MemoryForecast, Verdict
from headway.planner.roofline import Card, SpeedForecast, time_traced
from headway.planner.script_trace import ScriptLine, ScriptTrace, trace_script

_BY_SAMPLE = ("activations", "temporaries", "batch")
"""Holders that grow with the batch."""
_MOST = 1 << 16
"""Samples of a micro-batch beyond which nobody searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptForecast:
    """How a script of the user's own would do."""

    line: ScriptLine
    trace: ScriptTrace
    memory: MemoryForecast
    used_bytes: float
    device_bytes: float
    """Memory a rank may use on the smallest device."""
    verdict: Verdict
    device: str | None
    """The GPU; none: the host's memory."""
    speed: SpeedForecast | None
    card: Card | None = None
    """Rates of the GPU, where they are known."""

    @property
    def largest_micro_batch(self) -> int | None:
        """Most samples that would fit, if what grows with the batch grows evenly; none: not known, or not one."""
        if self.trace.micro_batch is None or self.with_batch(1).verdict != "fits":
            return None
        low, high = 1, _MOST
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.with_batch(middle).verdict == "fits" else (low, middle - 1)
        return low

    def with_batch(self, samples: int) -> ScriptForecast:
        """Return the forecast of another micro-batch, by what the trace has seen of one."""
        assert self.trace.micro_batch is not None
        share = samples / self.trace.micro_batch
        parts = {name: held * (share if name in _BY_SAMPLE else 1.0) for name, held in self.memory.parts.items()}
        trace = replace(
            self.trace,
            micro_batch=samples,
            flops=round(self.trace.flops * share),
            moved_bytes=round(self.trace.moved_bytes * share),
        )
        return _judge(self, replace(self.memory, parts=parts), trace)

    def with_card(self, card: Card) -> ScriptForecast:
        """Return the forecast of the same step on as many GPUs of another kind."""
        if self.card is not None:
            card = replace(card, node=self.card.node, network_gb_s=self.card.network_gb_s)
        other = replace(self, card=card, device=card.name, device_bytes=card.memory_bytes)
        return _judge(other, self.memory, self.trace)

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as `--json` prints it."""
        trace, speed = self.trace, self.speed
        out: dict[str, Any] = {
            "schema": "plan-script/1",
            "script": self.line.entry,
            "args": list(self.line.args),
            "ranks": self.line.ranks,
            "device": self.device,
            "verdict": self.verdict,
            "used_bytes": round(self.used_bytes),
            "device_bytes": round(self.device_bytes),
            "allocated_bytes": round(self.memory.allocated_bytes),
            "parts": {name: round(held) for name, held in self.memory.parts.items()},
            "moment": self.memory.moment,
            "micro_batch": trace.micro_batch,
            "accumulation": trace.accumulation,
            "params": trace.params,
            "trained": trace.trained,
            "optimizers": list(trace.optimizers),
            "left_out": list(trace.left_out),
            "largest_micro_batch": self.largest_micro_batch,
            "took_s": trace.took_s,
            "step_s": None,
            "samples_s": None,
            "mfu": None,
        }
        if speed is not None:
            out |= {"step_s": speed.step_s, "mfu": speed.mfu}
            out["samples_s"] = speed.samples_s if trace.micro_batch else None
        return out


def foresee_script(line: ScriptLine, machine: MachineReport) -> ScriptForecast:
    """Trace the script of a launch line and return how it would do on a machine; takes seconds."""
    gpus = [gpu for gpu in machine.gpus if not gpu.lost]
    trace = trace_script(line, gpus)
    if not line.is_launched:  # the script may start its ranks itself (torch.multiprocessing.spawn)
        line = replace(line, ranks=trace.world_size, local_ranks=trace.world_size)
    memory = weigh_script(trace, line)
    on_gpu = bool(gpus) and trace.on_device
    room = min(gpu_room(gpu) for gpu in gpus[: line.local_ranks]) if on_gpu else machine.planned_memory_bytes
    blank = ScriptForecast(
        line=line,
        trace=trace,
        memory=memory if on_gpu else replace(memory, ranks=1),
        used_bytes=0.0,
        device_bytes=room if on_gpu else room / line.local_ranks,
        verdict="fits",
        device=gpus[0].name if on_gpu else None,
        speed=None,
        card=place_card(find_card(gpus[0]), machine, ranks=line.ranks, local=line.local_ranks) if on_gpu else None,
    )
    return _judge(blank, blank.memory, trace)


def _judge(found: ScriptForecast, memory: MemoryForecast, trace: ScriptTrace) -> ScriptForecast:
    """Return the forecast with this memory and step judged on its device."""
    room, card = found.device_bytes, found.card
    if found.device is None:
        used = memory.allocated_bytes + CPU_CONTEXT_BYTES
        verdict: Verdict = "fits" if used <= TIGHT * room else "tight" if used <= room else "will-not-fit"
        return replace(found, memory=memory, trace=trace, used_bytes=used, verdict=verdict)
    speed = None
    if card is not None:
        speed = time_traced(
            card,
            number="half" if trace.half_share > 0.5 else "fp32",
            flops=trace.flops,
            moved=trace.moved_bytes,
            update=trace.update_bytes,
            weights=trace.weight_bytes,
            trained=trace.trained_bytes,
            kernels=trace.kernels,
            plan=(trace.micro_batch or 1, trace.accumulation, found.line.ranks, False),
        )
    verdict = memory.judge(room)
    return replace(found, memory=memory, trace=trace, used_bytes=memory.used_bytes, verdict=verdict, speed=speed)


def weigh_script(trace: ScriptTrace, line: ScriptLine) -> MemoryForecast:
    """Return who holds a rank's memory at its peak, in the planner's words."""
    parts = {name: float(held) for name, held in trace.parts.items()}
    parts["temporaries"] = parts.pop("backward", 0.0) + parts.pop("step", 0.0)
    return MemoryForecast(
        parts={name: held for name, held in parts.items() if held > 0}, moment=trace.moment, ranks=line.ranks
    )
