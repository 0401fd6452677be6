"""What probes need before the first one: a folder for their record, and a nursery."""

from __future__ import annotations

from pathlib import Path

from headway.config import LoadedConfig
from headway.launch import Nursery
from headway.start.nursery import Tell, nursery_for
from headway.start.write import describe_command
from headway.telemetry import new_run_dir, write_json
from headway.tune.probe import ENTRY, MINDSPORE_ENTRY


def make_place(loaded: LoadedConfig) -> Path:
    """Make the folder of the record: beside the runs, not among them."""
    run = new_run_dir(Path(loaded.config.out) / "tune", loaded.config.name or loaded.recipe.name)
    (run.root / "ranks").rmdir()
    run.checkpoints.rmdir()
    write_json(run.command, describe_command())
    return run.root


def probe_nursery(loaded: LoadedConfig, tell: Tell) -> Nursery:
    """Start importing what probes of this config need."""
    entry = MINDSPORE_ENTRY if loaded.framework == "mindspore" else ENTRY
    return nursery_for(loaded, tell, entry=entry)
