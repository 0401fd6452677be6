"""`headway replay`: take the failing step of a run again, alone, and find the sample that breaks it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import JSON, RUN, RUNS
from headway.cli.trained import ask_trained
from headway.errors import TrainError, UsageError
from headway.messages import say
from headway.redact import redact
from headway.telemetry import RunDir, find_run, read_events, read_record, section, whole
from headway.ui.text import clean_text


@command("replay", help="replay/help")
@RUN
@option("--step", type=click.IntRange(min=1), help="replay/option-step")
@RUNS
@JSON
def replay(run: str | None, step: int | None, out: Path, as_json: bool) -> int:
    """See the message `replay/help`."""
    place = find_run(run, out)
    if section(section(read_record(place.job).get("config")).get("task")).get("framework") == "mindspore":
        raise UsageError("replay/mindspore")
    wanted = step or find_failed_step(place)
    if wanted is None:
        raise UsageError("replay/no-failed-step", run=place.name)
    # The temporary folder is all that is written: the run stays as it failed.
    with tempfile.TemporaryDirectory(prefix="headway-replay-") as scratch:
        found = ask_trained(place, {"step": wanted, "scratch": scratch}, program="replay")
    if as_json:
        echo_json({"schema": "replay/1", "run": place.name, **found}, indent=2)
    else:
        click.echo("\n".join(clean_text(redact(line)) for line in _lines(found)))
    return TrainError.exit_code if found["parts"] else 0


def find_failed_step(place: RunDir) -> int | None:
    """Return the last step that failed: named by the guard, or the one after the last that a failed rank had ended."""
    for event in reversed(read_events(place.events)):
        step = whole(event.get("step"))
        if step is not None and event.get("kind") == "guard":
            return step
        if step is not None and event.get("kind") == "incident":
            return step + 1
    return None


_MOST: Final = 8


def _lines(found: dict[str, Any]) -> list[str]:
    """Any: plain JSON."""
    origin = found["checkpoint"] or say("replay/beginning")
    lines = [say("replay/from", step=found["step"], origin=origin, num=found["step"] - 1 - found["from_step"])]
    if not found["parts"]:
        return [*lines, say("replay/nothing")]
    for part in found["parts"][:_MOST]:
        facts = {key: part[key] for key in ("rank", "micro_batch", "text")}
        lines.append(say(f"replay/part-{part['kind']}", **facts))
    for one in found["samples"][:_MOST]:
        facts = {key: one[key] for key in ("index", "epoch", "rank", "text")}
        lines.append("  " + say(f"replay/sample-{one['kind']}", **facts))
    for part in found["parts"][:_MOST]:
        if not part["alone"]:
            lines.append("  " + say("replay/together", samples=", ".join(map(str, part["samples"][: 4 * _MOST]))))
    return lines if found["is_exact"] else [*lines, say("replay/not-exact")]
