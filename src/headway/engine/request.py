"""What the answers of a trained model have in common: an error is one too, and they name their checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.ask import take_question
from headway.checkpoint import Manifest, find_resumable, list_checkpoints, verify_checkpoint
from headway.errors import CheckpointError, HeadwayError, TrainError
from headway.messages import set_language
from headway.task import locate_in_recipe
from headway.telemetry import RunDir


def answer_request(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer one request; an error is an answer too. Any: what is asked for differs by command."""
    request, send = take_question()
    set_language(request["lang"])
    try:
        told = answer(request)
    except HeadwayError as error:
        facts = {key: str(value) for key, value in error.facts.items()}
        told = {"error": {"code": error.code, "facts": facts}}
    except Exception as error:  # border: what a recipe raises is its author's to read, without our own frames
        place = locate_in_recipe(error)
        if place is None:
            raise
        file, line = place
        text = str(error).strip().split("\n")[0]
        facts = {"type": type(error).__name__, "text": text, "file": file, "line": str(line)}
        told = {"error": {"code": "engine/recipe-raised", "facts": facts}}
    send(told)


def find_checkpoint(place: RunDir, step: int | None) -> tuple[Path, Manifest, dict[str, Any]]:
    """Return the checkpoint of a step, or the newest that is intact, and what the answer says of it.

    A newer one that is not intact is named with its reason: nobody should take an older model for the newest.
    """
    if step is None:
        found = find_resumable(place.checkpoints)
        if found.manifest is None or found.path is None:
            if found.skipped:
                raise CheckpointError("checkpoint/none-whole", path=place.checkpoints, num=len(found.skipped))
            raise TrainError("engine/no-checkpoint", run=place.name)
        path, manifest = found.path, found.manifest
    else:
        found = None
        named = [info.path for info in list_checkpoints(place.checkpoints) if info.step == step]
        if not named:
            raise TrainError("engine/no-such-step", run=place.name, step=step)
        path, manifest = named[-1], verify_checkpoint(named[-1])
    skipped = [{"checkpoint": str(bad), "why": why.text()} for bad, why in found.skipped] if found else []
    return path, manifest, {"step": manifest.step, "checkpoint": str(path), "skipped": skipped}
