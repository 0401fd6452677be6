"""One step of a run again, alone: from the nearest checkpoint before it to the sample that breaks it.

Asked by the command line, by module name (`headway/ask.py`). One process takes the micro-batches of all ranks in turn:
the order of samples is a function of the position alone, so they are exactly those of the run. It works in a folder of
its own; of the run it only reads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from headway.checkpoint import Manifest, list_checkpoints, verify_checkpoint
from headway.engine.guard import one_by_one, run_pass
from headway.engine.loader import Loaded
from headway.engine.loop import take_step
from headway.engine.rank import prepare
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.engine.request import answer_request
from headway.engine.snapshot import load_checkpoint
from headway.errors import CheckpointError
from headway.planner import Plan
from headway.task.order import Int64, Order, micro_batches
from headway.telemetry import RunDir, require_record, write_json

_MOST_NAMED = 32
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """What one sample, or one micro-batch, did."""

    kind: str
    """`nan-loss`, `nan-gradient`, `exception`, `shape` or empty for nothing."""
    text: str = ""


def main() -> None:
    """Answer one request."""
    answer_request(_answer)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    place, scratch = RunDir(Path(request["run_dir"])), RunDir(Path(request["scratch"]))
    stored: dict[str, Any] = require_record(place.job, dict)
    ran = Plan.from_json(stored["plan"])
    plan = _alone(ran)
    write_json(scratch.job, {**stored, "plan": plan.to_json(), "shrunk": None, "probe": None})
    with open(os.devnull, "wb") as nowhere:
        job = {"run_dir": str(scratch.root), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": 1}
        run = prepare({**job, "lang": request["lang"], "master_port": 0}, Reporter(nowhere.fileno()), plan)
        wanted = int(request["step"])
        path, skipped = _go_back(run, place, wanted)
        begun = run.progress.step
        found = _go_on(run, wanted)
    return {
        "step": run.progress.step + 1,
        "checkpoint": str(path) if path is not None else None,
        "from_step": begun,
        "is_exact": ran.world_size == 1,
        "skipped": skipped,
        **_describe(run, ran, found),
    }


def _alone(plan: Plan) -> Plan:
    """Return the plan of one process that does the work of all ranks, and loads its own batches."""
    return replace(
        plan,
        world_size=1,
        accumulation=plan.batch_samples // plan.micro_batch,
        strategy="single",
        workers=0,
        gpus=plan.gpus[:1],
        gpu_uuids=plan.gpu_uuids[:1],
    )


def _go_back(run: Run, place: RunDir, wanted: int) -> tuple[Path | None, list[dict[str, str]]]:
    """Load the newest intact checkpoint before a step; a run that had none yet begins at its beginning."""
    skipped = []
    before = [info for info in list_checkpoints(place.checkpoints) if info.step < wanted]
    for info in reversed(before):
        try:
            manifest: Manifest = verify_checkpoint(info.path)
        except CheckpointError as err:
            skipped.append({"checkpoint": str(info.path), "why": err.text()})
            continue
        load_checkpoint(run, info.path)
        assert manifest.step == run.progress.step
        return info.path, skipped
    return None, skipped


def _go_on(run: Run, wanted: int) -> list[tuple[int, Loaded, Bad]]:
    """Take the steps between, then look at each micro-batch of the wanted one; a step between may break as well."""
    run.model.train()
    for module in run.task.frozen(run.model):
        module.eval()
    while run.progress.step + 1 < wanted:
        before = run.progress.step
        run.open_data()
        try:
            take_step(run)
        except Exception:  # border: what breaks this step is what was asked for
            break
        if run.progress.step <= before:
            break
    return _search(run)


def _search(run: Run) -> list[tuple[int, Loaded, Bad]]:
    """Return the micro-batches of the next step that break, by their number."""
    order = Order(len(run.data), run.config.seed)
    keys = islice(micro_batches(order, run.share, run.progress.position, run.progress.skips), run.plan.accumulation)
    run.keep_buffers()
    found = []
    for turn, (ids, epochs) in enumerate(keys):
        bad, loaded = _try(run, ids, epochs)
        if bad.kind:
            found.append((turn, loaded, bad))
    return found


def _try(run: Run, ids: Int64, epochs: Int64) -> tuple[Bad, Loaded]:
    """Load samples and take them through forward and backward."""
    nothing = Loaded({}, ids, epochs)
    try:
        loaded = Loaded(run.data.batch(ids, epochs), ids, epochs)
        loss, norm = run_pass(run, loaded)
    except Exception as err:  # border: whatever a sample raises is what was asked for
        return Bad(kind="exception", text=f"{type(err).__name__}: {err}"[:_SHOWN]), nothing
    finally:
        run.put_buffers_back()
    if not math.isfinite(loss):
        return Bad(kind="nan-loss", text=str(loss)), loaded
    if not math.isfinite(norm):
        return Bad(kind="nan-gradient", text=str(norm)), loaded
    return Bad(kind=""), loaded


def _describe(run: Run, ran: Plan, found: list[tuple[int, Loaded, Bad]]) -> dict[str, Any]:
    """Return the samples at fault; a micro-batch of which no sample breaks by itself is named whole."""
    samples: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for turn, loaded, bad in found:
        place = {"rank": turn % ran.world_size, "micro_batch": turn // ran.world_size}
        alone = _samples(run, loaded, place)
        parts.append(
            {**place, "kind": bad.kind, "text": bad.text, "samples": loaded.ids.tolist(), "alone": bool(alone)}
        )
        samples += alone
    return {"parts": parts[:_MOST_NAMED], "samples": samples[:_MOST_NAMED]}


def _samples(run: Run, loaded: Loaded, place: Mapping[str, int]) -> list[dict[str, Any]]:
    found, shapes = [], []
    with one_by_one(run):
        for index, epoch in zip(loaded.ids.tolist(), loaded.epochs.tolist(), strict=True):
            bad, one = _try(run, np.array([index]), np.array([epoch]))
            named = {"index": index, "epoch": epoch, **place}
            shapes.append((named, {name: list(value.shape[1:]) for name, value in one.batch.items()}))
            if bad.kind:
                found.append({**named, "kind": bad.kind, "text": bad.text})
    return found or _odd_shapes(shapes)


def _odd_shapes(shapes: list[tuple[dict[str, int], dict[str, list[int]]]]) -> list[dict[str, Any]]:
    """Return samples whose shapes are not those of most: alone each works, together they make no batch."""
    texts = [str(shape) for _, shape in shapes]
    if len(set(texts)) < 2:
        return []
    usual = max(set(texts), key=texts.count)
    odd = [(named, text) for (named, _), text in zip(shapes, texts, strict=True) if text != usual]
    return [{**named, "kind": "shape", "text": f"{text} / {usual}"[:_SHOWN]} for named, text in odd]


if __name__ == "__main__":
    main()
