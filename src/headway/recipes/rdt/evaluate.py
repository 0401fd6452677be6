"""The RDT guide's evaluation: the weights of a checkpoint drive the arm; the results in the guide's own words."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway import guide
from headway.errors import TrainError, UsageError
from headway.messages import language, say
from headway.recipes.rdt.section import RdtSection
from headway.task import find_recipe
from headway.units import count

_WEIGHTS = "model.safetensors"
_DEFAULTS = {"num_tasks": "5", "max_steps": "100", "exec_horizon": "1", "unit": "rounds", "record_video": "false"}
"""What the published evaluation does when it is not told; it counts chunks drawn, not steps."""


def evaluate(argv: Sequence[str]) -> int:
    """Drive the arm with the weights of a file, in the scripted world; videos where they are asked for."""
    given = guide.read_flags(argv, (), takes_settings=True)
    is_full = given.is_full_wanted or guide.has_gpu()
    asked = {**_DEFAULTS, **guide.settings_of(given.words)}
    named = Path(asked.pop("pretrained", "checkpoints"))
    weights = find_weights(named, is_full=is_full)
    section = section_of(weights, asked)
    guide.write(guide.size_line(is_full, guide.layers_text(section.hidden_size, section.depth)))
    guide.write(say("rdt/guide-evaluates", weights=weights, params=count(section.num_params)))
    if weights not in (named, *_inside(named)):
        guide.write(say("rdt/guide-other-step", asked=named, weights=weights))
    for flag, trained in (("text_encoder", section.text_encoder), ("vision_encoder", section.vision_encoder)):
        other = asked.pop(flag, trained)
        if other != trained:
            guide.write(say("rdt/guide-encoder", flag=flag, asked=other, trained=trained))
    benchmark = asked.pop("benchmark", None)
    if benchmark is not None:
        guide.write(say("rdt/guide-benchmark", benchmark=benchmark))
    out = Path(asked.get("video_output_dir", "eval_results"))
    options = check_options({key: value for key, value in asked.items() if key != "config"})
    with _held(weights) as held:
        kept = section.model_copy(update={"pretrained": str(held)})
        request = {"section": kept.model_dump(mode="json"), "options": options, "to": str(out), "lang": language()}
        answer = _ask(request)
    for line in (answer["text"], *answer["files"]):
        guide.write(line)
    return 0


@contextlib.contextmanager
def _held(weights: Path) -> Iterator[Path]:
    """Keep a file under a second name while it is read: a run that trains meanwhile removes older checkpoints."""
    home = next((one.parent for one in weights.parents if one.name.startswith("checkpoint-")), weights.parent)
    try:
        place = tempfile.TemporaryDirectory(prefix=".eval-", dir=home)
    except OSError:  # a folder that is read only: nobody removes anything there
        yield weights
        return
    with place as folder:
        held = Path(folder) / weights.name
        try:
            os.link(weights, held)
        except FileNotFoundError:
            raise UsageError("rdt/guide-no-weights", path=weights, known="n/a") from None
        except OSError:  # a file system without hard links
            shutil.copyfile(weights, held)
        yield held


def _ask(request: Mapping[str, Any]) -> dict[str, Any]:
    """Let a child with the framework answer; its own error comes back as ours. Any: JSON."""
    command = [sys.executable, "-P", "-m", "headway.recipes.rdt.drive", json.dumps(request)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = child.stdout.strip().splitlines()
    if child.returncode != 0 or not lines:
        raise TrainError("cli/child-failed", code=child.returncode)
    answer: dict[str, Any] = json.loads(lines[-1])
    if "error" in answer:
        raise TrainError(answer["error"]["code"], **answer["error"]["facts"])
    return answer


def find_weights(named: Path, *, is_full: bool) -> Path:
    """Return the weights of a file or folder; at small size, where the guide's step was never reached, the best."""
    for path in (named, *_inside(named)):
        if path.is_file() and path.suffix == ".safetensors":
            return path
    # checkpoints/NAME/checkpoint-19000/ema/model.safetensors: look among its neighbours, earlier runs' too.
    home = next((one.parent for one in (named, *named.parents) if one.name.startswith("checkpoint-")), named)
    best = guide.best_of(guide.held_below(home, guide.RUNS))
    found = [*home.glob(f"checkpoint-*/ema/{_WEIGHTS}"), *home.glob(f"*/checkpoint-*/ema/{_WEIGHTS}")]
    known = sorted(found, key=lambda path: _step(path.parents[1]))
    if known and not is_full:
        return next((path for path in _inside(best.path) if path.is_file()), known[-1]) if best else known[-1]
    raise UsageError("rdt/guide-no-weights", path=named, known=", ".join(map(str, known)) or "n/a")


def _inside(folder: Path) -> tuple[Path, ...]:
    return folder / "ema" / _WEIGHTS, folder / _WEIGHTS


def _step(folder: Path) -> int:
    text = folder.name.removeprefix("checkpoint-")
    return int(text) if text.isdigit() else -1


def section_of(weights: Path, asked: Mapping[str, str]) -> RdtSection:
    """Return what the model was trained as: from the record beside the weights, else from the config file."""
    for folder in (weights.parent, weights.parents[1]):
        file = folder / "config.json"
        if file.is_file():
            kept = json.loads(file.read_text(encoding="utf-8")).get("headway")
            if kept is not None:
                return RdtSection.model_validate({"norm": "rms", **kept, "pretrained": str(weights)})
    words = ["recipe=rdt", "preset=rdt-1b", f"task.pretrained={weights}"]
    section: RdtSection = guide.load_config(asked.get("config"), recipe=find_recipe, overrides=words).config.task
    return section


def check_options(asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of `headway predict`, checked like a config. Any: plain values."""
    recipe = find_recipe("rdt")
    assert recipe.predict is not None
    only = replace(recipe, section=recipe.predict, defaults={}, presets={}, aliases={}, implied={}, ignored={})
    loaded = guide.load_config(None, recipe=only, overrides=[f"{key}={value}" for key, value in asked.items()])
    options: dict[str, Any] = loaded.config.task.model_dump(mode="json")
    return options
