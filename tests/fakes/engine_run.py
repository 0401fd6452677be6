"""A rank of the tiny recipe inside the test's own process, ready to take steps."""

from __future__ import annotations

import json
import os
from pathlib import Path

from safetensors import safe_open

from headway.checkpoint import find_resumable
from headway.config import load_config
from headway.engine.rank import prepare
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.machine import inspect_machine
from headway.planner import make_plan
from headway.task import find_recipe
from headway.telemetry import RunDir, write_json

TINY = str(Path(__file__).parent / "tiny")


def make_job(place: Path, *words: str) -> RunDir:
    """Write a run directory for the tiny recipe; an existing one keeps its checkpoints."""
    loaded = load_config(None, recipe=find_recipe, overrides=[f"recipe={TINY}", f"out={place}", *words])
    plan = make_plan(loaded, inspect_machine(place, config=loaded.config), loaded.recipe)
    run = RunDir(place)
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    config = loaded.config.model_dump(mode="json")
    write_json(run.job, {"recipe": loaded.config.recipe, "config": config, "plan": plan.to_json()})
    write_json(run.plan, plan.to_json())
    return run


def make_run(place: Path, *words: str, attempt: int = 1) -> Run:
    """Return a single rank that is where the run directory says."""
    run = make_job(place, "parallel.cpus=1", *words)
    fd = os.open(place / "reports", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    job = {"run_dir": str(run.root), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": attempt, "lang": "en"}
    return prepare({**job, "report_fd": fd, "listen_fd": None, "master_port": 0}, Reporter(fd))


def reports(place: Path, kind: str) -> list[dict]:
    """Return the events of a kind that the rank has sent."""
    lines = [json.loads(line) for line in (place / "reports").read_text().splitlines()]
    return [line["event"] for line in lines if line["kind"] == "event" and line["event"]["kind"] == kind]


def read_tensors(run: RunDir) -> dict[str, bytes]:
    """Return every tensor of the newest checkpoint, whole, byte for byte."""
    found = find_resumable(run.checkpoints)
    assert found.path is not None and found.manifest is not None
    out: dict[str, bytes] = {}
    for name, entry in found.manifest.tensors.items():
        parts = []
        for piece in entry.pieces:
            with safe_open(str(found.path / piece.file), framework="np") as file:
                parts.append((piece.offset, file.get_tensor(piece.key).tobytes()))
        out[name] = b"".join(data for _, data in sorted(parts))
    return out
