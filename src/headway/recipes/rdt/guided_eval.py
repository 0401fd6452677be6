"""The guide's `eval_rdt_libero.py`: weights from a file, rollouts in the scripted world, videos."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.config import load_config
from headway.errors import TrainError, UsageError
from headway.messages import language, say
from headway.recipes import guided
from headway.recipes.rdt.guided_flags import read_flags
from headway.recipes.rdt.section import RdtSection
from headway.task import find_recipe
from headway.units import count

_WEIGHTS = "model.safetensors"
_DEFAULTS = {"num_tasks": "5", "max_steps": "100", "exec_horizon": "1", "unit": "rounds", "record_video": "false"}
"""What the published script does when it is not told; it counts chunks drawn, not steps."""
_FOLDER = "eval_results"


def evaluate(argv: Sequence[str]) -> int:
    """Drive the arm with the weights of a file."""
    is_full, words = guided.take_full_size(argv)
    asked = {**_DEFAULTS, **read_flags(words)}
    named = Path(asked.pop("pretrained", "checkpoints"))
    weights = _find(named, is_full=is_full)
    section = _section_of(weights, asked)
    _say(guided.size_line(is_full, f"{section.hidden_size} × {section.depth}"))
    _say(say("rdt/guide-evaluates", weights=weights, params=count(section.num_params)))
    if weights not in (named, *_inside(named)):
        _say(say("rdt/guide-other-step", asked=named, weights=weights))
    for flag, trained in (("text_encoder", section.text_encoder), ("vision_encoder", section.vision_encoder)):
        other = asked.pop(flag, trained)
        if other != trained:
            _say(say("rdt/guide-encoder", flag=flag, asked=other, trained=trained))
    benchmark = asked.pop("benchmark", None)
    if benchmark is not None:
        _say(say("rdt/guide-benchmark", benchmark=benchmark))
    out = Path(asked.get("video_output_dir", _FOLDER))
    options = _check_options({key: value for key, value in asked.items() if key != "config"})
    request = {"section": section.model_dump(mode="json"), "options": options, "to": str(out), "lang": language()}
    answer = _ask(request)
    for line in (answer["text"], *answer["files"]):
        _say(line)
    return 0


def _ask(request: Mapping[str, Any]) -> dict[str, Any]:
    """Let a child with the framework answer; its own error comes back as ours."""
    command = [sys.executable, "-P", "-m", "headway.recipes.rdt.drive", json.dumps(request)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = child.stdout.strip().splitlines()
    if child.returncode != 0 or not lines:
        raise TrainError("cli/child-failed", code=child.returncode)
    answer: dict[str, Any] = json.loads(lines[-1])
    if "error" in answer:
        raise TrainError(answer["error"]["code"], **answer["error"]["facts"])
    return answer


def _find(named: Path, *, is_full: bool) -> Path:
    """Return the weights of a file or folder; at small size, where the guide's step was never reached, the newest."""
    for path in (named, *_inside(named)):
        if path.is_file() and path.suffix == ".safetensors":
            return path
    # checkpoints/NAME/checkpoint-19000/ema/model.safetensors: look among its neighbours.
    home = next((one.parent for one in (named, *named.parents) if one.name.startswith("checkpoint-")), named)
    known = sorted(home.glob(f"checkpoint-*/ema/{_WEIGHTS}"), key=lambda path: _step(path.parents[1]))
    if known and not is_full:
        return known[-1]
    raise UsageError("rdt/guide-no-weights", path=named, known=", ".join(map(str, known)) or "n/a")


def _inside(folder: Path) -> tuple[Path, ...]:
    return folder / "ema" / _WEIGHTS, folder / _WEIGHTS


def _step(folder: Path) -> int:
    text = folder.name.removeprefix("checkpoint-")
    return int(text) if text.isdigit() else -1


def _section_of(weights: Path, asked: Mapping[str, str]) -> RdtSection:
    """Return what the model was trained as: from the record beside the weights, else from the config file."""
    for folder in (weights.parent, weights.parents[1]):
        file = folder / "config.json"
        if file.is_file():
            kept = json.loads(file.read_text(encoding="utf-8")).get("headway")
            if kept is not None:
                return RdtSection.model_validate({**kept, "pretrained": str(weights)})
    config = asked.get("config")
    words = ["recipe=rdt", "preset=rdt-1b", f"task.pretrained={weights}"]
    section: RdtSection = load_config(config, recipe=find_recipe, overrides=words).config.task
    return section


def _check_options(asked: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of `headway predict`, checked like a config."""
    recipe = find_recipe("rdt")
    assert recipe.predict is not None
    only = replace(recipe, section=recipe.predict, defaults={}, presets={}, aliases={}, implied={}, ignored={})
    loaded = load_config(None, recipe=only, overrides=[f"{key}={value}" for key, value in asked.items()])
    options: dict[str, Any] = loaded.config.task.model_dump(mode="json")
    return options


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
